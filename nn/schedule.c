/* schedule.c - learning rates as functions of the step, reduction on a plateau, and early stopping. Their
 * state is plain structs, so a resumed run needs only the step number and these structs. */
#include <math.h>
#include "core/context.h"
#include "nn/api_optim_more.h"

static const double pi = 3.14159265358979323846;

static bool is_rate(double x) { return x >= 0 && isfinite(x); }

static double cosine(double from, double to, double part)
{
    return to + (from - to) / 2 * (1 + cos(pi * part));
}

double weft_cosine_schedule(int64_t step, int64_t total, double lr, int64_t warmup, double last)
{
    if (step < 0 || total < 1 || warmup < 0 || warmup > total || !is_rate(lr) || !is_rate(last))
        return (double)NAN;
    if (step < warmup)
        return lr * ((double)(step + 1) / (double)warmup);
    return step >= total ? last : cosine(lr, last, (double)(step - warmup) / (double)(total - warmup));
}

double weft_warmup_stable_decay_schedule(int64_t step, int64_t total, double lr, int64_t warmup,
                                         int64_t decay, double last)
{
    if (step < 0 || total < 1 || warmup < 0 || warmup > total || decay < 0 || decay > total - warmup ||
        !is_rate(lr) || !is_rate(last))
        return (double)NAN;
    if (step < warmup)
        return lr * ((double)(step + 1) / (double)warmup);
    double part = step <= total - decay ? 0 : (double)(step - (total - decay)) / (double)decay;
    return step >= total ? last : lr + (last - lr) * part;
}

double weft_linear_schedule(int64_t step, int64_t total, double lr, int64_t warmup, double last)
{
    int64_t decay = warmup >= 0 && warmup <= total ? total - warmup : 0;
    return weft_warmup_stable_decay_schedule(step, total, lr, warmup, decay, last);
}

double weft_inverse_sqrt_schedule(int64_t step, double lr, int64_t warmup)
{
    if (step < 0 || warmup < 1 || !is_rate(lr))
        return (double)NAN;
    double now = (double)step + 1, rise = (double)warmup;
    return lr * (now < rise ? now / rise : sqrt(rise / now));
}

double weft_step_schedule(int64_t step, int64_t every, double lr, double factor)
{
    bool sound = step >= 0 && every >= 1 && is_rate(lr) && is_rate(factor);
    double rate = sound ? lr * pow(factor, (double)(step / every)) : (double)NAN;
    return is_rate(rate) ? rate : (double)NAN; /* it may overflow */
}

/* Two phases: up until step rise * total - 1, down until total - 1. */
double weft_one_cycle_schedule(int64_t step, int64_t total, double lr, double rise, double start, double end)
{
    if (step < 0 || total < 1 || !is_rate(lr) || !(rise >= 0 && rise <= 1) || !(start > 0) || !(end > 0) ||
        isinf(start) || isinf(end))
        return (double)NAN;
    double top = rise * (double)total - 1, bottom = (double)total - 1, now = (double)step;
    double first = lr / start, last = first / end;
    if (!is_rate(first) || !is_rate(last))
        return (double)NAN;
    if (now <= top && top > 0)
        return cosine(first, lr, now / top);
    return now >= bottom ? last : cosine(lr, last, (now - top) / (bottom - top));
}

/* Adds 1, without overflow for a damaged saved state. */
static int64_t one_more(int64_t n) { return n < INT64_MAX ? n + 1 : n; }

/* Returns whether more than `patience` values in a row were not better, for plateau and early stopping. */
static bool too_many(int64_t bad, int64_t patience) { return bad > 0 && bad > patience; }

/* Sets best to the worst value at the first call, so that NaN cannot be best, and if it is damaged. */
static void start_best(double *best, int64_t seen, bool larger_is_better)
{
    if (!seen || isnan(*best))
        *best = larger_is_better ? -(double)INFINITY : (double)INFINITY;
}

/* Returns whether value is better than best by more than threshold times the size of best. */
static bool is_better(double value, double best, bool larger_is_better, double threshold)
{
    double bound = best * ((best > 0) == larger_is_better ? 1 + threshold : 1 - threshold);
    return larger_is_better ? value > bound : value < bound;
}

double weft_plateau_step(weft_plateau *p, double value)
{
    const double threshold = 1e-4, least_change = 1e-8;
    double factor = p ? weft__or(p->factor, .1) : (double)NAN, least = p ? weft__or(p->least, 0) : 0;
    if (!(factor >= 0 && factor < 1) || !is_rate(least))
        return (double)NAN;
    start_best(&p->best, p->seen, p->larger_is_better);
    p->seen = one_more(p->seen);
    if (is_better(value, p->best, p->larger_is_better, threshold)) {
        p->best = value;
        p->bad = 0;
    } else
        p->bad = one_more(p->bad);
    if (too_many(p->bad, p->patience)) {
        double lr = fmax(p->lr * factor, least);
        p->lr = p->lr - lr > least_change ? lr : p->lr;
        p->bad = 0;
    }
    return p->lr;
}

bool weft_early_stopping_step(weft_early_stopping *s, double value, bool *is_best)
{
    if (is_best)
        *is_best = false;
    if (!s)
        return false;
    start_best(&s->best, s->seen, s->larger_is_better);
    s->seen = one_more(s->seen);
    bool better = s->larger_is_better ? value > s->best + s->min_delta : value < s->best - s->min_delta;
    s->bad = better ? 0 : one_more(s->bad);
    if (better)
        s->best = value;
    if (is_best)
        *is_best = better;
    return too_many(s->bad, s->patience);
}
