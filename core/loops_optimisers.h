/* loops_optimisers.h - plain loops: norms, clipping, the check for numbers that are not finite, the rules of torch.optim. */
#ifndef WEFT_LOOPS_OPTIMISERS_H
#define WEFT_LOOPS_OPTIMISERS_H
#include "core/loops_memory.h"
#include "core/shared_rules.h"

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

static void K(foresee)(weft__device *d, const weft__update *u, bool anew, weft__guard *g)
{
    (void)d;
    foresee_by(u, anew, g);
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
        g->finite = 1, g->most.g = 0;
    for (int64_t i = 0; g->finite && i < n; i++)
        if (!isfinite(x[i]))
            g->finite = 0, g->bad = from + i;
        else
            g->most.g = larger(g->most.g, x[i]);
}
static void K(rehearse)(weft__device *d, int64_t n, const weft__update *u, const weft__guard *past, bool moves, const real *dx, const real *m, const real *v,
                        const real *a, const real *x, int64_t from, weft__guard *g)
{
    (void)d;
    rule r = rule_of(u, past);
    for (int64_t i = 0; !g->sure && g->finite && i < n; i++)
        if (!rehearse_one(u, &r, moves, i, dx, m, v, a, x, &g->most))
            rehearsed(from + i, g);
}

static void K(update)(weft__device *d, int64_t n, const weft__update *u, const weft__guard *g, const real *dx,
                      real *m, real *v, real *a, real *x)
{
    (void)d;
    rule r = rule_of(u, g);
    for (int64_t i = 0; g->finite && i < n; i++)
        update_one(u, &r, i, dx, m, v, a, x);
}
#endif
#endif
