/* rules.h - the update rules of torch.optim, for one number. dx: its gradient; m, v, a: its state. */
#ifndef WEFT_SHARED_RULES_H
#define WEFT_SHARED_RULES_H
#include <float.h>
#include "core/kernels.h"
#include "core/shared/philox.h"

typedef struct rule {                            /* values of an update that are the same for all elements */
    real rate, correct;                          /* Adam: lr / (1 - beta1^t), sqrt(1 - beta2^t) */
    bool first;
} rule;
WEFT__BOTH rule rule_of(const weft__update *u, const weft__guard *g)
{
    double t = (double)g->applied + 1;
    rule r = { u->lr, 1, g->applied == 0 };
    if (u->rule == WEFT__ADAM || u->rule == WEFT__ADAMW) {
        r.rate = (real)((double)u->lr / (1 - pow((double)u->beta1, t)));
        r.correct = (real)sqrt(1 - pow((double)u->beta2, t));
    }
    return r;
}
WEFT__BOTH void sgd(const weft__update *u, const rule *r, real dx, real *m, real *x)
{
    real g = dx + u->decay * *x;
    if (u->beta1 != 0) {
        real mean = r->first ? g : u->beta1 * *m + (1 - u->beta2) * g;
        *m = mean;
        g = u->nesterov ? g + u->beta1 * mean : mean;
    }
    *x -= u->lr * g;
}
WEFT__BOTH void rmsprop(const weft__update *u, real dx, real *m, real *v, real *a, real *x)
{
    real g = dx + u->decay * *x, square = u->beta2 * *v + (1 - u->beta2) * g * g, mean = 0;
    *v = square;
    if (u->centered)
        mean = *a = u->beta2 * *a + (1 - u->beta2) * g;
    real spread = square - mean * mean;          /* 0 for equal gradients, or below by rounding */
    real step = g / (sqrt(spread < 0 ? 0 : spread) + u->eps);
    if (u->beta1 != 0)
        step = *m = u->beta1 * *m + step;
    *x -= u->lr * step;
}
WEFT__BOTH void adam(const weft__update *u, const rule *r, real dx, real *m, real *v, real *x)
{
    bool decoupled = u->rule == WEFT__ADAMW;
    real old = *x, g = decoupled ? dx : dx + u->decay * old,
         decayed = decoupled ? old - u->lr * u->decay * old : old;
    real mean = u->beta1 * *m + (1 - u->beta1) * g, square = u->beta2 * *v + (1 - u->beta2) * g * g;
    *m = mean, *v = square;
    *x = decayed - r->rate * mean / (sqrt(square) / r->correct + u->eps);
}
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
WEFT__BOTH bool stays_finite(const weft__update *u, weft__most *most)
{
    const double limit = (sizeof(real) == 8 ? DBL_MAX : (double)FLT_MAX) * 1e-4, slack = 1 + 1e-6;
    bool adam = u->rule == WEFT__ADAM || u->rule == WEFT__ADAMW, decoupled = u->rule == WEFT__ADAMW;
    weft__most next = *most;
    double shrunk = (double)u->lr * (double)u->decay,
           g = next.g + (decoupled ? 0 : (double)u->decay * next.x);
    double rate = adam ? (double)u->lr / (1 - (double)u->beta1) : (double)u->lr;
    double step = u->rule == WEFT__SGD     ? sgd_most(u, g, &next) :
                  u->rule == WEFT__RMSPROP ? rmsprop_most(u, g, &next) :
                                             adam_most(u, g, &next);
    next.x = next.x * (decoupled && shrunk > 2 ? shrunk : 1) + rate * step;
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
    double r = u->rule == WEFT__ADAM || u->rule == WEFT__ADAMW ? ratio(u, m, v) : 0;
    most->a = r > most->a && m - m == 0 && v - v == 0 ? r : most->a;
}

/* Updates element i. A rule reads only the state vectors that it has. */
WEFT__BOTH void update_one(const weft__update *u, const rule *r, int64_t i, const real *dx, real *m, real *v,
                           real *a, real *x)
{
    if (u->rule == WEFT__SGD)
        sgd(u, r, dx[i], m ? m + i : NULL, x + i);
    else if (u->rule == WEFT__RMSPROP)
        rmsprop(u, dx[i], m ? m + i : NULL, v + i, a ? a + i : NULL, x + i);
    else
        adam(u, r, dx[i], m + i, v + i, x + i);
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
