/* rules.h - the update rules of optimisers, for one number. dx: its gradient; m, v, a: its state. */
#ifndef WEFT_SHARED_RULES_H
#define WEFT_SHARED_RULES_H
#include <float.h>
#include "core/kernels.h"
#include "core/shared/philox.h"

typedef struct rule {                            /* values of an update that are the same for all elements */
    real rate, root, eps;                        /* Adam: a step is rate m / (sqrt(v) root + eps) */
    bool first;
} rule;
/* Returns whether a step is a ratio of averages, m / sqrt(v). */
WEFT__BOTH bool is_adam(const weft__update *u)
{
    return u->rule == WEFT__ADAM || u->rule == WEFT__ADAMW || u->rule == WEFT__RADAM;
}
/* RAdam (Liu et al. 2020): v averages `length` gradients, in the limit `longest`. Up to 5 the variance of the
 * ratio is unbounded, and a step is rate m. */
WEFT__BOTH void rectify(double b2, double t, double correction, rule *r)
{
    double longest = 2 / (1 - b2) - 1, length = longest - 2 * t * pow(b2, t) / correction;
    if (length > 5) {
        double share = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length);
        r->rate = (real)((double)r->rate * sqrt(share * correction));
        r->root = 1;
    } else {
        r->root = 0;
        r->eps = 1;
    }
}
WEFT__BOTH rule rule_of(const weft__update *u, const weft__guard *g)
{
    double t = (double)g->applied + 1, b2 = (double)u->beta2, correction = 1 - pow(b2, t);
    rule r = { u->lr, 1, u->eps, g->applied == 0 };
    if (is_adam(u)) {
        r.rate = (real)((double)u->lr / (1 - pow((double)u->beta1, t)));
        r.root = (real)(1 / sqrt(correction));
    }
    if (u->rule == WEFT__RADAM)
        rectify(b2, t, correction, &r);
    return r;
}
#define num             real
#define SET(x)          ((real)(x))
#define FMA(a, b, c)    ((a) * (b) + (c))
#define ROOT(x)         sqrt(x)
#define SELECT(c, a, b) ((c) ? (a) : (b))
WEFT__BOTH void step_number(weft__rule which, const weft__update *u, const rule *r, real dx, real *m, real *v,
                            real *a, real *x)
#include "core/shared/rules.def"

/* ---- proof that an update writes only finite numbers ---- *
 * The proof uses upper bounds of the gradients and of the values before. `slack` covers the rounding of a
 * step, and the margin of `limit` covers intermediate results. NaN proves nothing. Adam's step is bounded
 * by |m| / sqrt(v), kept in most.a. With m' = b1 m + (1 - b1) g and v' = b2 v + (1 - b2) g^2, its square is
 * at most b1^2 / b2 times the old one, plus (1 - b1)^2 / (1 - b2) (Cauchy, Schwarz). lost_squares bounds
 * the loss by squares that underflow. */
WEFT__BOTH double lost_squares(double b2)
{
    return 3 * (sizeof(real) == 8 ? DBL_MIN : (double)FLT_MIN) / (1 - b2);
}
WEFT__BOTH double ratio(const weft__update *u, real m, real v)
{
    return fabs((double)m) / sqrt((double)v + lost_squares((double)u->beta2));
}

/* Return the step before its rate, and update the bounds. */
WEFT__BOTH double sgd_most(const weft__update *u, double g, weft__most *most)
{
    double b1 = (double)u->beta1;
    if (b1 == 0)
        return g;
    most->m = b1 * most->m + (1 + fabs((double)u->beta2)) * g;
    return u->nesterov ? g + b1 * most->m : most->m;
}
/* If centered, equal gradients have spread 0 and the divisor is eps. */
WEFT__BOTH double rmsprop_most(const weft__update *u, double g, weft__most *most)
{
    double b2 = (double)u->beta2, eps = (double)u->eps, step = g / eps,
           equal_step = (1 + sqrt(lost_squares(b2)) / eps) / sqrt(1 - b2);
    if (!u->centered && equal_step < step)
        step = equal_step;
    most->v = b2 * most->v + g * g;
    most->a = most->a > g ? most->a : g;
    if (u->beta1 != 0)
        step = most->m = (double)u->beta1 * most->m + step;
    return step;
}
WEFT__BOTH double adam_most(const weft__update *u, double g, weft__most *most)
{
    double b1 = (double)u->beta1, b2 = (double)u->beta2;
    most->m = b1 * most->m + g;
    most->v = b2 * most->v + g * g;
    most->a = sqrt((b2 > 0 ? b1 * b1 / b2 :
                    b1 > 0 ? HUGE_VAL :
                             0) *
                       most->a * most->a +
                   (1 - b1) * (1 - b1) / (1 - b2));
    return most->a * (1 + sqrt(lost_squares(b2)) / (double)u->eps);
}
/* Lion's step is a sign. */
WEFT__BOTH double lion_most(const weft__update *u, double g, weft__most *most)
{
    most->m = (double)u->beta2 * most->m + g;
    return 1;
}
/* Without the second average, a step of RAdam is m. For Muon nothing is proved: it is always rehearsed. */
WEFT__BOTH double step_most(const weft__update *u, double g, weft__most *most)
{
    double step = u->rule == WEFT__SGD     ? sgd_most(u, g, most) :
                  u->rule == WEFT__RMSPROP ? rmsprop_most(u, g, most) :
                  u->rule == WEFT__LION    ? lion_most(u, g, most) :
                  u->rule == WEFT__MUON    ? (double)HUGE_VAL :
                                             adam_most(u, g, most);
    return u->rule == WEFT__RADAM && most->m > step ? most->m : step;
}
WEFT__BOTH bool stays_finite(const weft__update *u, weft__most *most)
{
    const double limit = (sizeof(real) == 8 ? DBL_MAX : (double)FLT_MAX) * 1e-4, slack = 1 + 1e-6;
    weft__most next = *most;
    double shrunk = (double)u->lr * (double)u->decay,
           g = next.g + (u->decoupled ? 0 : (double)u->decay * next.x);
    double rate = is_adam(u) ? (double)u->lr / (1 - (double)u->beta1) : (double)u->lr;
    double step = step_most(u, g, &next);
    next.x = next.x * (u->decoupled && shrunk > 2 ? shrunk : 1) + rate * step;
    if (!(g <= limit && next.m <= limit && next.v <= limit && next.a * next.a <= limit && step <= limit &&
          next.x <= limit && rate <= limit && rate * next.m <= limit && shrunk <= limit))
        return false;
    most->x = next.x * slack;
    most->m = next.m * slack;
    most->v = next.v * slack;
    most->a = next.a * slack;
    return true;
}
WEFT__BOTH void foresee_by(const weft__update *u, bool anew, weft__guard *g)
{
    g->over = 0;
    g->known = g->known && !anew;
    g->sure = g->finite && g->known && stays_finite(u, &g->most);
    if (g->finite && !g->sure) {                 /* the update is then rehearsed, which sets the bounds */
        g->known = 1;
        g->most.x = g->most.m = g->most.v = g->most.a = 0;
    }
}
WEFT__BOTH double norm_of_sum(double sum, real power) { return power == 2 ? sqrt(sum) : sum; }
WEFT__BOTH void count_step(weft__guard *g, bool finite)
{
    if (finite)
        g->applied++, g->in_a_row = 0;
    else
        g->skipped++, g->in_a_row++;
}
/* Records that the update would not be finite, first at element `bad`. */
WEFT__BOTH void rehearsed(int64_t bad, weft__guard *g)
{
    g->finite = g->known = 0;
    g->over = 1;
    g->bad = bad;
}
WEFT__BOTH double larger(double most, real x)
{
    return x - x == 0 && fabs((double)x) > most ? fabs((double)x) : most;
}

/* Updates the bound of |m| / sqrt(v) for Adam, if m and v are finite. */
WEFT__BOTH void ratios(const weft__update *u, real m, real v, weft__most *most)
{
    double r = is_adam(u) ? ratio(u, m, v) : 0;
    most->a = r > most->a && m - m == 0 && v - v == 0 ? r : most->a;
}

/* Updates element i. A rule reads only the state vectors that it has. */
WEFT__BOTH void update_one(const weft__update *u, const rule *r, int64_t i, const real *dx, real *m, real *v,
                           real *a, real *x)
{
    step_number(u->rule, u, r, dx[i], m ? m + i : NULL, v ? v + i : NULL, a ? a + i : NULL, x + i);
}
/* Returns whether the finite numbers of element i stay finite. Writes only the bounds, to `most`. */
WEFT__BOTH bool rehearse_one(const weft__update *u, const rule *r, bool moves, int64_t i, const real *dx,
                             const real *m, const real *v, const real *a, const real *x, weft__most *most)
{
    const real before[4] = { x[i], m ? m[i] : 0, v ? v[i] : 0, a ? a[i] : 0 };
    real after[4] = { before[0], before[1], before[2], before[3] };
    bool stays = true;
    if (moves)
        update_one(u, r, 0, dx + i, after + 1, after + 2, after + 3, after);
    for (int k = 0; k < 4; k++)
        stays = stays && (after[k] - after[k] == 0 || before[k] - before[k] != 0);
    most->x = larger(larger(most->x, before[0]), after[0]),
    most->m = larger(larger(most->m, before[1]), after[1]);
    most->v = larger(larger(most->v, before[2]), after[2]),
    most->a = larger(larger(most->a, before[3]), after[3]);
    ratios(u, before[1], before[2], most), ratios(u, after[1], after[2], most);
    return stays;
}
#endif
