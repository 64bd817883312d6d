/* loops_optimisers.h - plain loops: norms, clipping, the check for numbers that are not finite, the rules of torch.optim. */
#ifndef WEFT_LOOPS_OPTIMISERS_H
#define WEFT_LOOPS_OPTIMISERS_H
#include "core/loops_memory.h"

static void K(norm_end)(weft__device *d, real power, weft__guard *g, real *y)
{
    (void)d;
    g->norm = power == 2 ? sqrt(g->norm) : g->norm;
    if (y)
        *y = (real)g->norm;
}
static void K(guard_end)(weft__device *d, weft__guard *g)
{
    (void)d;
    if (g->finite)
        g->applied++, g->in_a_row = 0;
    else
        g->skipped++, g->in_a_row++;
}

typedef struct rule {                            /* an update's numbers that do not depend on the element */
    real rate, correct;                          /* Adam: lr / (1 - beta1^t), sqrt(1 - beta2^t) */
    bool first;
} rule;
static rule rule_of(const weft__update *u, const weft__guard *g)
{
    double t = (double)g->applied + 1;
    bool adam = u->rule == WEFT__ADAM || u->rule == WEFT__ADAMW;
    return (rule){ .first = g->applied == 0, .rate = adam ? (real)((double)u->lr / (1 - pow((double)u->beta1, t))) : u->lr,
                   .correct = adam ? (real)sqrt(1 - pow((double)u->beta2, t)) : 1 };
}

#ifndef FAST
static void K(norm)(weft__device *d, int64_t n, real power, const real *x, bool start, weft__guard *g)
{
    (void)d;
    double s = start ? 0 : g->norm;
    for (int64_t i = 0; i < n; i++) {
        double v = fabs((double)x[i]);
        if (power == 1 || power == 2)
            s += power == 1 ? v : v * v;
        else
            s = v > s || isnan(v) ? v : s;       /* a NaN that is there stays: nothing is larger */
    }
    g->norm = s;
}
static void K(clip)(weft__device *d, int64_t n, real limit, const weft__guard *g, real *x)
{
    (void)d;
    double factor = (double)limit / (g->norm + 1e-6);
    for (int64_t i = 0; factor < 1 && i < n; i++)
        x[i] *= (real)factor;
}
static void K(guard)(weft__device *d, int64_t n, const real *x, int64_t from, bool start, weft__guard *g)
{
    (void)d;
    if (start)
        g->finite = 1;
    for (int64_t i = 0; g->finite && i < n; i++)
        if (!isfinite(x[i]))
            g->finite = 0, g->bad = from + i;
}

static void sgd(const weft__update *u, bool first, real dx, real *m, real *x)
{
    real g = dx + u->decay * *x;
    if (u->beta1 != 0) {
        *m = first ? g : u->beta1 * *m + (1 - u->beta2) * g;
        g = u->nesterov ? g + u->beta1 * *m : *m;
    }
    *x -= u->lr * g;
}
static void rmsprop(const weft__update *u, real dx, real *m, real *v, real *a, real *x)
{
    real g = dx + u->decay * *x, mean = 0;
    *v = u->beta2 * *v + (1 - u->beta2) * g * g;
    if (u->centered)
        mean = *a = u->beta2 * *a + (1 - u->beta2) * g;
    real step = g / (sqrt(*v - mean * mean) + u->eps);
    if (u->beta1 != 0)
        step = *m = u->beta1 * *m + step;
    *x -= u->lr * step;
}
static void adam(const weft__update *u, const rule *r, real dx, real *m, real *v, real *x)
{
    bool apart = u->rule == WEFT__ADAMW;
    real g = apart ? dx : dx + u->decay * *x;
    if (apart)
        *x -= u->lr * u->decay * *x;
    *m = u->beta1 * *m + (1 - u->beta1) * g;
    *v = u->beta2 * *v + (1 - u->beta2) * g * g;
    *x -= r->rate * *m / (sqrt(*v) / r->correct + u->eps);
}
static void K(update)(weft__device *d, int64_t n, const weft__update *u, const weft__guard *g, const real *dx,
                      real *m, real *v, real *a, real *x)
{
    (void)d;
    rule r = rule_of(u, g);
    for (int64_t i = 0; g->finite && i < n; i++)
        if (u->rule == WEFT__SGD)
            sgd(u, r.first, dx[i], m ? m + i : NULL, x + i);
        else if (u->rule == WEFT__RMSPROP)
            rmsprop(u, dx[i], m ? m + i : NULL, v + i, a ? a + i : NULL, x + i);
        else
            adam(u, &r, dx[i], m + i, v + i, x + i);
}
#endif
#endif
