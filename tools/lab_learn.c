/* lab_learn.c - a learning run. */
#include "tools/lab_learn.h"
#include <math.h>
#include <time.h>
#include "tools/tools.h"

typedef struct {
    const lab_learn_opts *o;
    const weft_dataset *train, *held_out;
    lab_model model;
    weft_plan plan; /* of the epoch that runs, unless it is always the same */
    lab_learned at;
    int64_t due, pending; /* the next point; tokens that have no update yet */
    lab_learn_fn *each;
    void *user;
} run;

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int64_t tokens_of(const weft_plan *p, int64_t batch)
{
    int64_t n = 0;
    for (int64_t i = p->batch[batch].first; i < p->batch[batch].first + p->batch[batch].n; i++)
        n += p->segment[i].length;
    return n;
}

/* ---- one batch ---- */
static void update(run *r)
{
    const lab_learn_opts *o = r->o;
    int64_t step = (int64_t)r->at.tokens, warmup = o->tokens / 20;
    step = step < o->tokens ? step : o->tokens - 1;
    weft_optim_set_lr(r->model.optim,
                      weft_cosine_warmup(step, o->tokens, o->model.lr, warmup, o->model.lr / 50));
    weft_clip_grad_norm(r->model.m, 1, 2);
    weft_optim_step(r->model.optim);
    r->at.updates++, r->pending = 0;
}

static bool train_batch(run *r, const weft_plan *p, int64_t batch)
{
    const double from = seconds_now();
    const int64_t tokens = tokens_of(p, batch), wanted = r->o->an_update;
    weft_plan_step s = weft_plan_step_of(r->model.w, p, batch);
    weft_loss loss = lab_model_loss(&r->model, &s, r->train);
    weft_backward(wanted ? weft_scale(loss.sum, 1 / (double)wanted) :
                           weft_plan_loss(&s, loss, WEFT_MEAN_OF_PLAN));
    r->pending += tokens, r->at.tokens += (double)tokens;
    if (r->pending >= wanted)
        update(r);
    weft_clear(r->model.w);
    r->at.seconds += seconds_now() - from;
    return weft_ok(r->model.w);
}

static bool is_over(const run *r)
{
    return r->at.tokens >= (double)r->o->tokens || (r->o->stop && *r->o->stop);
}

static bool look(run *r)
{
    if (r->at.tokens < (double)r->due && r->at.tokens < (double)r->o->tokens)
        return true;
    r->due += r->o->tokens / (r->o->points > 0 ? r->o->points : 1);
    r->at.bits = lab_model_bits(&r->model, r->held_out);
    if (isnan(r->at.bits))
        return false;
    r->each(&r->at, r->user);
    return true;
}

/* ---- epochs ---- */
static const weft_plan *plan_epoch(run *r, int64_t epoch)
{
    weft_plan_opts o = r->o->opts;
    if (r->o->fixed)
        return r->o->fixed;
    weft_plan_free(&r->plan);
    o.epoch = epoch;
    if (weft_plan_make(r->o->planner, r->train->len, r->train->n, &o, &r->plan) == WEFT_OK)
        return &r->plan;
    return say_error(FAILED, "lab: %s", weft_plan_message()), NULL;
}

static bool run_epochs(run *r)
{
    for (int64_t epoch = 0; !is_over(r); epoch++) {
        const weft_plan *p = plan_epoch(r, epoch);
        if (!p || !lab_model_carries(&r->model, p))
            return false;
        if (!p->tokens)
            return say_error(FAILED, "lab: there are no tokens to learn from"), false;
        for (int64_t b = 0; b < p->batches && !is_over(r); b++)
            if (!train_batch(r, p, b) || !look(r))
                return false;
    }
    return true;
}

bool lab_learn(const lab_learn_opts *o, const weft_dataset *train, const weft_dataset *held_out,
               lab_learn_fn *each, void *user)
{
    run r = { .o = o,
              .train = train,
              .held_out = held_out,
              .each = each,
              .user = user,
              .due = o->tokens / (o->points > 0 ? o->points : 1) };
    bool good = lab_model_open(&r.model, &o->model) && run_epochs(&r);
    if (!good && !weft_ok(r.model.w))
        say_error(FAILED, "lab: %s", weft_error_message(r.model.w));
    weft_plan_free(&r.plan);
    lab_model_close(&r.model);
    return good;
}
