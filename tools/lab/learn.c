/* learn.c - measures learning curves. Every update has the same number of tokens for all planners, so that a
 * planner with smaller batches does not get more updates. */
#include <math.h>
#include "plan/plan.h"
#include "tools/lab/run.h"

enum { RISE = 100 }; /* updates of warm-up; a tenth of all updates if that is less */

/* A run of one planner and seed. update, total: tokens of an update, of all epochs. reached: the target. */
typedef struct {
    lab_run *lab;
    lab_model m;
    int planner, seed;
    int64_t update, gathered, tokens, updates, total;
    double seconds;
    bool reached;
} run;

static int64_t at_least(double x, int64_t least) { return x > (double)least ? (int64_t)llround(x) : least; }

/* Returns options that give batches of about `update` tokens. */
static weft_plan_opts resize(const lab_run *r, const planned *t, int64_t update)
{
    weft_plan_opts o = t->opts;
    double tokens = (double)r->train.offset[r->train.n], u = (double)update;
    if (o.capacity)
        o.rows = at_least(u / (double)o.capacity, 1);
    o.count = o.count ? at_least(u * (double)r->train.n / tokens, 1) : 0;
    o.tokens = o.tokens ? update : 0;
    o.budget = o.budget ? at_least(u, weft__plan_longest(r->train.len, r->train.n)) : 0;
    if (o.window && o.slots)
        o.slots = at_least(u / (double)o.window, 1);
    return o;
}

/* Plans an epoch. For a foreign planner it is always the one plan that it made. */
static bool plan_epoch(const run *u, int epoch, weft_plan *out, bool *own)
{
    const lab_run *r = u->lab;
    const planned *t = r->made + u->planner;
    *own = t->planner.plan;
    *out = t->plan;
    if (!*own)
        return true;
    weft_plan_opts o = resize(r, t, u->update);
    o.seed = (uint64_t)u->seed + 1;
    o.epoch = epoch;
    if (weft_plan_make(&t->planner, r->train.len, r->train.n, &o, out) == WEFT_OK)
        return true;
    lab_end_progress();
    say_error(FAILED, "lab: %s: %s", t->text, weft_plan_message());
    return *own = false;
}

static void add_point(run *u)
{
    lab_run *r = u->lab;
    lab_curve *c = r->curve[u->planner] + u->seed;
    double bits = lab_model_bits(&u->m, &r->held), loss = bits * log(2);
    r->point[u->planner][u->seed][c->n++] =
        (lab_point){ (double)u->tokens, (double)u->updates, u->seconds, loss };
    NOTE(r, "learning", r->made[u->planner].text, { "seed", u->seed + 1 }, { "tokens", (double)u->tokens },
         { "updates", (double)u->updates }, { "seconds", u->seconds }, { "loss", loss }, { "bits", bits });
    u->reached = bits <= r->asked.target;
}

/* Sets the learning rate: a linear warm-up, then a half cosine over all epochs down to a tenth. */
static void step(run *u)
{
    double lr = u->lab->asked.lr;
    int64_t total = u->total / u->update + 1, rise = total / 10 < RISE ? total / 10 : RISE;
    weft_optim_set_lr(u->m.optim, weft_cosine_schedule(u->updates, total, lr, rise, lr / 10));
    weft_tensor *divisor = weft_full(u->m.w, (double)u->update, WEFT_SHAPE(1));
    weft_divide_grad(u->m.m, divisor);
    weft_clip_grad_norm(u->m.m, 1, 2);
    weft_optim_step(u->m.optim);
    weft_clear(u->m.w);
    u->gathered = 0;
    u->updates++;
}

/* Batches are gathered until their tokens are closest to a multiple of `update`, so that all planners make
 * the same number of updates. The divisor is constant: all tokens weigh the same, those of a last small batch
 * included. */
static bool is_due(const run *u, int64_t next, bool last)
{
    return u->gathered && (last || u->tokens + next / 2 >= (u->updates + 1) * u->update);
}

static bool learn_epoch(run *u, const weft_plan *p, bool last)
{
    lab_curve *c = u->lab->curve[u->planner] + u->seed;
    for (int64_t b = 0; b < p->batches && !u->reached && !lab_stops(u->lab); b++) {
        bool at_end = last && b + 1 == p->batches;
        int64_t n = weft__plan_tokens_of(p, b),
                next = b + 1 < p->batches ? weft__plan_tokens_of(p, b + 1) : 0;
        double start = seconds_now();
        if (n) {
            weft_plan_step s = weft_plan_step_of(u->m.w, p, b);
            weft_backward(lab_model_loss(&u->m, &s, &u->lab->train, NULL).sum);
        }
        u->gathered += n;
        u->tokens += n;
        if (is_due(u, next, at_end))
            step(u);
        weft_clear(u->m.w);
        u->seconds += seconds_now() - start;
        lab_progress_at(u->lab, (double)u->tokens / (double)u->total);
        if (!weft_ok(u->m.w))
            return lab_refuse(u->lab->made[u->planner].text, u->m.w);
        if (at_end ? c->n <= POINTS :
                     c->n < POINTS && (double)u->tokens * POINTS >= (double)c->n * (double)u->total)
            add_point(u);
    }
    return weft_ok(u->m.w) || lab_refuse(u->lab->made[u->planner].text, u->m.w);
}

/* The batches are larger than two updates, so learning is not comparable. The page reports the reason. */
static void refuse_curve(const run *u, const weft_plan *p)
{
    char *reason = u->lab->no_curve[u->planner];
    snprintf(reason, sizeof u->lab->no_curve[0],
             "found a batch of %lld tokens for updates of %lld; expected smaller batches or a larger "
             "--update",
             (long long)(p->batches ? p->tokens / p->batches : 0), (long long)u->update);
    u->lab->page.plan[u->planner].no_curve = reason;
    lab_end_progress();
    fprintf(stderr, "weft: lab: %s: no learning curve: %s\n", u->lab->made[u->planner].text, reason);
}

static bool learn(run *u)
{
    lab_run *r = u->lab;
    bool fits = true, padded = r->asked.padded[u->planner];
    bool ok = lab_model_open(&u->m, r, (uint64_t)u->seed + 1, r->asked.dropout, padded) ||
              lab_refuse(r->made[u->planner].text, u->m.w);
    for (int e = 0; e < r->asked.epochs && ok && fits && !u->reached && !lab_stops(r); e++) {
        weft_plan p;
        bool own;
        ok = plan_epoch(u, e, &p, &own);
        fits = ok && p.batches && p.tokens / p.batches <= 2 * u->update;
        if (ok && !fits && !u->seed)
            refuse_curve(u, &p);
        u->total = r->asked.epochs * (ok ? p.tokens - p.dropped : 0);
        ok = ok && (!fits || lab_model_carries(&u->m, &p) || lab_refuse(r->made[u->planner].text, u->m.w));
        if (ok && fits && !e)
            add_point(u);
        ok = ok && (!fits || learn_epoch(u, &p, e + 1 == r->asked.epochs));
        if (own)
            weft_plan_free(&p);
    }
    weft_close(u->m.w);
    return ok;
}

bool lab_learn(lab_run *r)
{
    bool ok = true;
    r->curve = get_memory(r->asked.planners, sizeof *r->curve);
    r->point = get_memory(r->asked.planners, sizeof *r->point);
    for (int i = 0; i < r->asked.planners; i++) {
        r->page.plan[i].curve = r->curve[i];
        for (int s = 0; s < SEEDS; s++)
            r->curve[i][s].point = r->point[i][s];
    }
    for (int s = 0; s < r->asked.seeds && ok; s++)
        for (int i = 0; i < r->asked.planners && ok && !lab_stops(r); i++) {
            lab_progress(r, "learning, seed %d of %d: %s", s + 1, (int)r->asked.seeds, r->made[i].text);
            run u = { .lab = r, .planner = i, .seed = s, .update = r->asked.update };
            ok = learn(&u);
            r->page.plan[i].curves = r->curve[i][s].n ? s + 1 : r->page.plan[i].curves;
        }
    return ok;
}
