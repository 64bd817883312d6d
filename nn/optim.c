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

static bool is_open(const weft_optim *o) { return o && o->w; }

/* ---- making ---- */
static void optim_end(void *p)
{
    weft_optim *o = p;
    if (!o->w)
        return;
    weft__free_members(o);
    weft__device_release(o->w, o->guard);
    o->w = NULL;
}

static bool too_many(const weft_optim *o) { return o->counts[2] >= BAD_IN_A_ROW; }

/* Starts the count of bad steps again after their error was reported. Fewer bad steps continue to count,
 * because recovery from another error is not a good step. */
static void optim_recover(void *p)
{
    weft_optim *o = p;
    if (!is_open(o) || !too_many(o)) /* weft_optim_free may have ended it */
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

weft_optim *weft__optim_new(weft_module *m, const weft_optim *how)
{
    static weft_optim inert;
    weft *w = weft__ready(m);
    if (!w)
        return &inert;
    w->running = how->name;
    weft_optim *o = weft__own(w, sizeof *o, optim_end, optim_recover);
    if (!o)
        return &inert;
    *o = *how;
    o->w = w;
    o->module = m;
    o->counts[3] = -1;
    if (o->update.rule != WEFT__MUON) {
        o->others = o->update;
        o->others.lr = 1;
    }
    o->guard = weft__device_allocate(w, sizeof *o->guard);
    if (o->guard)
        send_guard(o);
    return o->guard && weft__add_members(o, o->name) ? o : &inert;
}

void weft_optim_free(weft_optim *o)
{
    if (!o || !o->w)
        return;
    weft__release_members(o);
    optim_end(o);
}

void weft_optim_set_group(weft_optim *o, const char *pattern, double lr_scale, double weight_decay)
{
    weft *w = is_open(o) ? o->w : NULL;
    if (!w || w->status)
        return;
    real scale = (real)lr_scale, decay = (real)weight_decay;
    if (!pattern || !*pattern || !(scale >= 0 && decay >= 0 && isfinite(scale) && isfinite(decay))) {
        weft__fail(w, WEFT_EARG,
                   "optim_set_group: pattern %s%.80s%s, rate times %g, decay %g; expected a pattern of "
                   "paths, and finite numbers of 0 or more",
                   pattern ? "\"" : "", pattern ? pattern : "NULL", pattern ? "\"" : "", (double)scale,
                   (double)decay);
        return;
    }
    weft__add_group(o, pattern, scale, decay, false);
}

void weft_muon_exclude(weft_optim *o, const char *pattern)
{
    weft *w = is_open(o) ? o->w : NULL;
    if (!w || w->status)
        return;
    if (o->update.rule != WEFT__MUON || o->steps || !pattern || !*pattern)
        weft__fail(w, WEFT_EARG,
                   "muon_exclude: pattern %s%.80s%s, %s after %lld steps; expected a pattern of paths, and a "
                   "muon before its first step",
                   pattern ? "\"" : "", pattern ? pattern : "NULL", pattern ? "\"" : "", o->name,
                   (long long)o->steps);
    else
        weft__add_group(o, pattern, 1, 0, true);
}

/* ---- reading the guard ---- */
static void name_bad(weft_optim *o)
{
    for (int i = 0; i < o->n; i++)
        if (o->counts[3] >= o->slot[i].offset && o->counts[3] < o->slot[i].offset + o->slot[i].n)
            snprintf(o->bad_path, sizeof o->bad_path, "%s", weft__path_below(o->slot[i].p, o->module));
}

static void read_guard(weft_optim *o) /* never fails the context */
{
    weft__guard g;
    o->w->dev.k->download(&o->w->dev, &g, o->guard, sizeof g);
    if (o->w->dev.failure[0])
        return;                                  /* the download failed */
    bool news = g.skipped != o->counts[1];
    o->overflow = g.over;
    o->counts[0] = g.applied;
    o->counts[1] = g.skipped;
    o->counts[2] = g.in_a_row;
    o->counts[3] = g.bad;
    if (news)
        name_bad(o);
}

static void check_counts(weft_optim *o)
{
    read_guard(o);
    weft__check_faults(o->w, "optim_step");
    if (too_many(o))
        weft__fail(o->w, WEFT_ENUMERIC,
                   "optim_step: %s not finite in %lld steps in a row, first in %s; the rate is %g. Lower it",
                   o->overflow ? "gradients were finite, but values after the step" : "gradients were",
                   (long long)o->counts[2], o->bad_path, (double)o->update.lr);
}

int64_t weft_optim_skipped(weft_optim *o, const char **bad_parameter)
{
    if (is_open(o) && !o->w->status)
        check_counts(o);
    if (bad_parameter)
        *bad_parameter = is_open(o) ? o->bad_path : "";
    return is_open(o) ? o->counts[1] : 0;
}

/* ---- a step ---- */
static void check_gradients(weft_optim *o)
{
    weft__device *d = &o->w->dev;
    const real *dx = o->module->root->gradients;
    bool start = true;
    weft__run r;
    for (int i = 0; weft__next_run(o->slot, o->n, &i, &r);)
        if (!r.idle)
            d->k->guard(d, r.n, dx + r.begin, r.offset, start, o->guard), start = false;
    if (start)
        d->k->guard(d, 0, NULL, 0, true, o->guard);              /* no parameters: no error */
}

static real *part_from(real *x, int64_t from) { return x ? x + from : NULL; }

static weft__update update_of(const weft_optim *o, const weft__run *r)
{
    weft__update u = r->muon ? o->update : o->others;
    u.lr = o->update.lr * (r->muon ? 1 : o->others.lr) * r->scale;
    u.decay = r->decay;
    return u;
}

/* Checks that all results will be finite before the first one is written, so that a step changes all or
 * nothing. Mostly this follows from bounds. */
static void check_results(weft_optim *o)
{
    weft__device *d = &o->w->dev;
    const weft_module *root = o->module->root;
    weft__foresight first = { o->update, false };
    real scale = 0;
    for (int i = 0; i < o->n; i++) {
        const weft__slot *s = o->slot + i;
        scale = s->scale > scale ? s->scale : scale;
        first.most.decay = s->decay > first.most.decay ? s->decay : first.most.decay;
        first.anew |= weft__node_of(&s->p->value)->version > o->version;
    }
    first.most.lr *= scale;
    const weft__foresight *at_first = &first;
    weft__run r;
    for (int i = 0; weft__next_run(o->slot, o->n, &i, &r); at_first = NULL) {
        weft__update u = update_of(o, &r);
        d->k->rehearse(d, r.n, at_first, &u, o->counters + r.counter, !r.idle,
                       root->gradients + r.begin, part_from(o->m, r.offset), part_from(o->v, r.offset),
                       part_from(o->a, r.offset), root->values + r.begin, r.offset, o->guard);
    }
}

static void update(weft_optim *o)
{
    weft__device *d = &o->w->dev;
    const weft_module *root = o->module->root;
    weft__run r;
    for (int i = 0; weft__next_run(o->slot, o->n, &i, &r);) {
        weft__update u = update_of(o, &r);
        real *m = part_from(o->m, r.offset), *v = part_from(o->v, r.offset), *a = part_from(o->a, r.offset);
        if (r.idle)
            d->k->fill(d, r.n, 0, root->gradients + r.begin);
        else
            d->k->update(d, r.n, &u, o->counters + r.counter, o->guard, root->gradients + r.begin, m, v,
                         a, root->values + r.begin);
    }
}

/* Marks parameters as changed even if the device skipped the step, which the host does not know. */
static void mark_updated(weft_optim *o)
{
    for (int i = 0; i < o->n; i++) {
        if (!o->slot[i].idle)
            weft__mark_changed(&o->slot[i].p->value);
        weft__node_of(&o->slot[i].p->value)->has_gradient = false;
    }
    o->version = o->w->tape->version;
}

static bool is_ready(weft_optim *o)
{
    if (!is_open(o) || o->w->status || !weft__add_members(o, "optim_step"))
        return false;
    if (o->n == 0)
        weft__fail(o->w, WEFT_EARG,
                   "optim_step: the %s of %s has no parameters; expected a parameter made below it (a tied "
                   "one belongs to the module that made it)",
                   o->name, o->module->path);
    return o->n > 0 && weft__groups_fit(o);
}

static bool any_updated(const weft_optim *o)
{
    for (int i = 0; i < o->n; i++)
        if (!o->slot[i].idle)
            return true;
    return false;
}

static void take_step(weft_optim *o)
{
    weft__count_update(o->w);
    weft__split_counters(o);
    if (o->w->check)
        weft__check_gradients_found(o->w, any_updated(o), true, "optim_step");
    check_gradients(o);
    weft__muon_directions(o);
    check_results(o);
    update(o);
    weft__muon_clear(o);
    mark_updated(o);
    weft__count_step(o);
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
    if (!is_ready(o) || !weft__refuse_in_shard(o->w, "optim_step") ||
        (o->w->check && !weft__check_enter(o->w, "optim_step")))
        return;
    take_step(o);
    weft__check_leave(o->w);
}

void weft_optim_set_lr(weft_optim *o, double lr)
{
    real rate = (real)lr;
    if (!is_open(o))
        return;
    if (!(rate >= 0) || isinf(rate))
        weft__fail(o->w, WEFT_EARG, "optim_set_lr: %g; expected a finite number, 0 or more", (double)rate);
    else
        o->update.lr = rate;
}

double weft_optim_lr(const weft_optim *o) { return o ? (double)o->update.lr : 0; }
int64_t weft_optim_steps(const weft_optim *o) { return o ? o->steps : 0; }

/* ---- saving: the guard is stored as numbers of the host ---- */
bool weft__optim_belongs_to(const weft_optim *o, const weft_module *m)
{
    return !is_open(o) || weft__is_below(o->module, m);
}

static bool join_quietly(weft_optim *o) /* the error goes to the file function only */
{
    weft *w = o->w;
    weft__listener *listener = weft__mute_errors(w);
    bool ok = weft__add_members(o, "optimiser");
    weft__unmute_errors(w, listener, !ok);
    return ok;
}

int weft__optim_entries(weft_optim *o, weft__saved *out, int room)
{
    if (!is_open(o) || o->w->status || !join_quietly(o))
        return 0;
    read_guard(o);
    weft__read_counters(o);
    o->rule = o->update.rule;
    const weft__saved all[] = {
        { "rule", WEFT_I64, &o->rule, 1, false },     { "steps", WEFT_I64, &o->steps, 1, false },
        { "lr", WEFT_REAL, &o->update.lr, 1, false }, { "guard", WEFT_I64, o->counts, 4, false },
        { "ages", WEFT_I64, o->ages, o->n, false },   { "m", WEFT_REAL, o->m, o->elements, true },
        { "v", WEFT_REAL, o->v, o->elements, true },  { "a", WEFT_REAL, o->a, o->elements, true },
    };
    int n = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all && n < room; i++)
        if (all[i].data && all[i].n)
            out[n++] = all[i];
    return n;
}

/* ---- loading: refuses numbers that no step can produce ---- */
static bool counts_are_possible(const int64_t *count, int64_t from, int64_t end, int64_t low, int64_t high,
                                char *reason, size_t size)
{
    for (int64_t i = from; i < end; i++)
        if (count[i] < low || count[i] > high) {
            snprintf(reason, size, "number %lld is %lld; expected %lld .. %lld", (long long)i,
                     (long long)count[i], (long long)low, (long long)high);
            return false;
        }
    return true;
}

static bool numbers_are_possible(const weft__saved *entry, const real *x, bool below_zero, char *reason,
                                 size_t size)
{
    for (int64_t i = 0; i < entry->n; i++)
        if (!isfinite(x[i]) || (x[i] < 0 && !below_zero)) {
            snprintf(reason, size, "number %lld is %g; expected a finite number%s", (long long)i,
                     (double)x[i], below_zero ? "" : ", 0 or more");
            return false;
        }
    return true;
}

bool weft__optim_accepts(const weft_optim *o, const weft__saved *entry, const void *values, char *reason,
                         size_t size)
{
    const int64_t most = (int64_t)1 << 53, *count = values;        /* far from overflow */
    if (!strcmp(entry->name, "guard"))           /* the last one is an index */
        return counts_are_possible(count, 0, 3, 0, most, reason, size) &&
               counts_are_possible(count, 3, 4, -1, o->elements, reason, size);
    if (entry->type == WEFT_I64)
        return counts_are_possible(count, 0, entry->n, 0, most, reason, size);
    bool below_zero = !strcmp(entry->name, "m") || !strcmp(entry->name, "a");
    return numbers_are_possible(entry, values, below_zero, reason, size);
}

void weft__optim_after_load(weft_optim *o)
{
    if (!is_open(o) || o->w->status)
        return;
    o->rule = o->update.rule; /* io has compared it */
    o->bad_path[0] = 0;
    /* A program that loads after ten bad steps has already got the error. */
    o->counts[2] = too_many(o) ? 0 : o->counts[2];
    name_bad(o);
    send_guard(o);
    weft__write_counters(o);
}
