/* optim.c - the step of an optimiser, and its saved state.
 *
 * Only the device knows whether all gradients are finite and how many steps were applied (weft__guard). A
 * step does not wait for it: the update kernel reads the guard and does nothing if a gradient is not finite.
 * On the CPU, where reading is free, each step checks the guard. On a GPU it is read when the program calls
 * weft_optim_skipped or saves. */
#include <math.h>
#include <string.h>
#include "autograd/fused.h"
#include "core/report/check.h"
#include "nn/optim.h"

enum { BAD_IN_A_ROW = 10 };

static bool holds(const weft_optim *o) { return o && o->w; }

/* ---- making ---- */
static void optim_end(void *p)
{
    weft_optim *o = p;
    if (!o->w)
        return;
    weft__members_end(o);
    weft__device_release(o->w, o->guard);
    o->w = NULL;
}

static bool too_many(const weft_optim *o) { return o->counts[2] >= BAD_IN_A_ROW; }

/* Starts the count of bad steps again after their error was reported. Fewer bad steps continue to count,
 * because recovery from another error is not a good step. */
static void optim_recover(void *p)
{
    weft_optim *o = p;
    if (!holds(o) || !too_many(o))               /* weft_optim_free may have ended it */
        return;
    o->counts[2] = 0;
    o->w->dev.k->upload(&o->w->dev, &o->guard->in_a_row, &o->counts[2], sizeof o->counts[2]);
}

static void send_guard(weft_optim *o)
{
    const int64_t *c = o->counts;
    weft__guard g = { .applied = c[0], .skipped = c[1], .in_a_row = c[2], .bad = c[3], .finite = 1 };
    o->w->dev.k->upload(&o->w->dev, o->guard, &g, sizeof g);
}

weft_optim *weft__optim_new(weft_module *m, const char *name, const weft__update *how, bool first,
                            bool second, bool average)
{
    static weft_optim none;
    weft *w = weft__ready(m);
    if (!w)
        return &none;
    w->running = name;
    weft_optim *o = weft__own(w, sizeof *o, optim_end, optim_recover);
    if (!o)
        return &none;
    *o = (weft_optim){ .w = w,
                       .module = m,
                       .name = name,
                       .how = *how,
                       .first = first,
                       .second = second,
                       .average = average,
                       .counts = { 0, 0, 0, -1 } };
    o->guard = weft__device_allocate(w, sizeof *o->guard);
    if (o->guard)
        send_guard(o);
    return o->guard && weft__members_join(o, name) ? o : &none;
}

void weft_optim_free(weft_optim *o)
{
    if (!o || !o->w)
        return;
    weft__members_leave(o);
    optim_end(o);
}

void weft_optim_set_group(weft_optim *o, const char *pattern, double lr_scale, double weight_decay)
{
    weft *w = holds(o) ? o->w : NULL;
    if (!w || w->status)
        return;
    real scale = (real)lr_scale, decay = (real)weight_decay;
    if (!pattern || !*pattern || !(scale >= 0 && decay >= 0 && isfinite(scale) && isfinite(decay))) {
        weft__fail(w, WEFT_EARG,
                   "optim_set_group: pattern %s%.80s%s, rate times %g, decay %g; a pattern of paths, and "
                   "numbers of 0 or more, and finite, are expected",
                   pattern ? "\"" : "", pattern ? pattern : "NULL", pattern ? "\"" : "", (double)scale,
                   (double)decay);
        return;
    }
    weft__group_set(o, pattern, scale, decay);
}

/* ---- reading the guard ---- */
static void name_bad(weft_optim *o)
{
    for (int i = 0; i < o->n; i++)
        if (o->counts[3] >= o->slot[i].from && o->counts[3] < o->slot[i].from + o->slot[i].n)
            snprintf(o->bad, sizeof o->bad, "%s", weft__path_below(o->slot[i].p, o->module));
}

static void look_quietly(weft_optim *o)           /* never fails the context */
{
    weft__guard g;
    o->w->dev.k->download(&o->w->dev, &g, o->guard, sizeof g);
    if (o->w->dev.failure[0])
        return;                                  /* the download failed */
    bool news = g.skipped != o->counts[1];
    o->over = g.over;
    o->counts[0] = g.applied;
    o->counts[1] = g.skipped;
    o->counts[2] = g.in_a_row;
    o->counts[3] = g.bad;
    if (news)
        name_bad(o);
}

static void check_counts(weft_optim *o)
{
    look_quietly(o);
    weft__check_faults(o->w, "optim_step");
    if (too_many(o))
        weft__fail(o->w, WEFT_ENUMERIC,
                   "optim_step: %s not finite in %lld steps in a row, first in %s; the rate is %g",
                   o->over ? "gradients were finite, but values after the step" : "gradients were",
                   (long long)o->counts[2], o->bad, (double)o->how.lr);
}

int64_t weft_optim_skipped(weft_optim *o, const char **bad_parameter)
{
    if (holds(o) && !o->w->status)
        check_counts(o);
    if (bad_parameter)
        *bad_parameter = holds(o) ? o->bad : "";
    return holds(o) ? o->counts[1] : 0;
}

/* ---- a step ---- */
static void check_gradients(weft_optim *o)
{
    weft__device *d = &o->w->dev;
    const real *dx = o->module->root->gradients;
    bool start = true;
    weft__run r;
    for (int i = 0; weft__next_run(o->slot, o->n, &i, &r);)
        if (!r.still)
            d->k->guard(d, r.n, dx + r.at, r.from, start, o->guard), start = false;
    if (start)
        d->k->guard(d, 0, NULL, 0, true, o->guard);              /* no parameters: no error */
}

static real *part_from(real *x, int64_t from) { return x ? x + from : NULL; }

static weft__update of_run(const weft_optim *o, const weft__run *r)
{
    weft__update u = o->how;
    u.lr *= r->scale;
    u.decay = r->decay;
    return u;
}

/* Checks that all results will be finite before the first one is written, so that a step changes all or
 * nothing. Mostly this follows from bounds. */
static void check_results(weft_optim *o)
{
    weft__device *d = &o->w->dev;
    const weft_module *root = o->module->root;
    weft__foresight first = { o->how, false };
    real scale = 0;
    for (int i = 0; i < o->n; i++) {
        const weft__slot *s = o->slot + i;
        scale = s->scale > scale ? s->scale : scale;
        first.most.decay = s->decay > first.most.decay ? s->decay : first.most.decay;
        first.anew |= weft__node_of(&s->p->value)->changed > o->then;
    }
    first.most.lr *= scale;
    const weft__foresight *at_first = &first;
    weft__run r;
    for (int i = 0; weft__next_run(o->slot, o->n, &i, &r); at_first = NULL) {
        weft__update u = of_run(o, &r);
        d->k->rehearse(d, r.n, at_first, &u, o->pasts + r.past, !r.still, root->gradients + r.at,
                       part_from(o->m, r.from), part_from(o->v, r.from), part_from(o->a, r.from),
                       root->values + r.at, r.from, o->guard);
    }
}

static void update(weft_optim *o)
{
    weft__device *d = &o->w->dev;
    const weft_module *root = o->module->root;
    weft__run r;
    for (int i = 0; weft__next_run(o->slot, o->n, &i, &r);) {
        weft__update u = of_run(o, &r);
        real *m = part_from(o->m, r.from), *v = part_from(o->v, r.from), *a = part_from(o->a, r.from);
        if (r.still)
            d->k->fill(d, r.n, 0, root->gradients + r.at);
        else
            d->k->update(d, r.n, &u, o->pasts + r.past, o->guard, root->gradients + r.at, m, v, a,
                         root->values + r.at);
    }
}

/* Marks parameters as changed even if the device skipped the step, which the host does not know. */
static void moved(weft_optim *o)
{
    for (int i = 0; i < o->n; i++) {
        if (!o->slot[i].still)
            weft__changed(&o->slot[i].p->value);
        weft__node_of(&o->slot[i].p->value)->given = false;
    }
    o->then = o->w->tape->changes;
}

static bool is_ready(weft_optim *o)
{
    if (!holds(o) || o->w->status || !weft__members_join(o, "optim_step"))
        return false;
    if (o->n == 0)
        weft__fail(o->w, WEFT_EARG,
                   "optim_step: the %s of %s has nothing to train: no parameter is made below it (a tied one "
                   "belongs to where it was made)",
                   o->name, o->module->path);
    return o->n > 0 && weft__groups_fit(o);
}

static bool any_moves(const weft_optim *o)
{
    for (int i = 0; i < o->n; i++)
        if (!o->slot[i].still)
            return true;
    return false;
}

static void take_step(weft_optim *o)
{
    weft__count_update(o->w);
    weft__pasts_part(o);
    if (o->w->check)
        weft__check_gradients_found(o->w, any_moves(o), true, "optim_step");
    check_gradients(o);
    check_results(o);
    update(o);
    moved(o);
    weft__step_end(o);
    weft__check_faults(o->w, "optim_step");
    if (o->w->status)
        return;
    o->steps++;
    if (o->w->check)
        weft__check_stepped(o->w, o);
    if (o->w->dev.k->synchronous)
        check_counts(o);
}

void weft_optim_step(weft_optim *o)
{
    if (!is_ready(o) || !weft__outside_shards(o->w, "optim_step") ||
        (o->w->check && !weft__check_enter(o->w, "optim_step")))
        return;
    take_step(o);
    weft__check_leave(o->w);
}

void weft_optim_set_lr(weft_optim *o, double lr)
{
    real rate = (real)lr;
    if (!holds(o))
        return;
    if (!(rate >= 0) || isinf(rate))
        weft__fail(o->w, WEFT_EARG, "optim_set_lr: %g; 0 or more, and finite, is expected", (double)rate);
    else
        o->how.lr = rate;
}

double weft_optim_lr(const weft_optim *o) { return o ? (double)o->how.lr : 0; }
int64_t weft_optim_steps(const weft_optim *o) { return o ? o->steps : 0; }

/* ---- saving: the guard is stored as numbers of the host ---- */
bool weft__optim_is_of(const weft_optim *o, const weft_module *m)
{
    return !holds(o) || weft__below(o->module, m);
}

static bool joined_quietly(weft_optim *o)        /* the error goes to the file function only */
{
    weft *w = o->w;
    weft__listener *listener = weft__mute_errors(w);
    bool fine = weft__members_join(o, "optimiser");
    weft__unmute_errors(w, listener, !fine);
    return fine;
}

int weft__optim_saved(weft_optim *o, weft__saved *out, int room)
{
    if (!holds(o) || o->w->status || !joined_quietly(o))
        return 0;
    look_quietly(o);
    weft__pasts_read(o);
    o->rule = o->how.rule;
    const weft__saved all[] = {
        { "rule", WEFT_I64, &o->rule, 1, false },    { "steps", WEFT_I64, &o->steps, 1, false },
        { "lr", WEFT_REAL, &o->how.lr, 1, false },   { "guard", WEFT_I64, o->counts, 4, false },
        { "ages", WEFT_I64, o->ages, o->n, false },  { "m", WEFT_REAL, o->m, o->elements, true },
        { "v", WEFT_REAL, o->v, o->elements, true }, { "a", WEFT_REAL, o->a, o->elements, true },
    };
    int n = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all && n < room; i++)
        if (all[i].data && all[i].n)
            out[n++] = all[i];
    return n;
}

/* ---- loading: refuses numbers that no step can produce ---- */
static bool counts_are_possible(const int64_t *count, int64_t from, int64_t end, int64_t low, int64_t high,
                                char *why, size_t size)
{
    for (int64_t i = from; i < end; i++)
        if (count[i] < low || count[i] > high) {
            snprintf(why, size, "number %lld is %lld; %lld .. %lld is expected", (long long)i,
                     (long long)count[i], (long long)low, (long long)high);
            return false;
        }
    return true;
}

static bool numbers_are_possible(const weft__saved *entry, const real *x, bool below_zero, char *why,
                                 size_t size)
{
    for (int64_t i = 0; i < entry->n; i++)
        if (!isfinite(x[i]) || (x[i] < 0 && !below_zero)) {
            snprintf(why, size, "number %lld is %g; a finite number%s is expected", (long long)i,
                     (double)x[i], below_zero ? "" : ", 0 or more,");
            return false;
        }
    return true;
}

bool weft__optim_accepts(const weft_optim *o, const weft__saved *entry, const void *values, char *why,
                         size_t size)
{
    const int64_t most = (int64_t)1 << 53, *count = values;        /* far from overflow */
    if (!strcmp(entry->name, "guard"))           /* the last one is an index */
        return counts_are_possible(count, 0, 3, 0, most, why, size) &&
               counts_are_possible(count, 3, 4, -1, o->elements, why, size);
    if (entry->type == WEFT_I64)
        return counts_are_possible(count, 0, entry->n, 0, most, why, size);
    bool below_zero = !strcmp(entry->name, "m") || !strcmp(entry->name, "a");
    return numbers_are_possible(entry, values, below_zero, why, size);
}

void weft__optim_restored(weft_optim *o)
{
    if (!holds(o) || o->w->status)
        return;
    o->rule = o->how.rule;                       /* io has compared it */
    o->bad[0] = 0;
    /* A program that loads after ten bad steps has already got the error. */
    o->counts[2] = too_many(o) ? 0 : o->counts[2];
    name_bad(o);
    send_guard(o);
    weft__pasts_write(o);
}
