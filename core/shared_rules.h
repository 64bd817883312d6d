/* shared_rules.h - the rules of torch.optim, for one number: dx its gradient; m, v, a its state. */
#ifndef WEFT_SHARED_RULES_H
#define WEFT_SHARED_RULES_H
#include "core/kernels.h"
#include "core/philox.h"

typedef struct rule {                            /* an update's numbers that do not depend on the element */
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
    real spread = square - mean * mean;          /* of equal gradients 0, and below it by rounding */
    real step = g / (sqrt(spread < 0 ? 0 : spread) + u->eps);
    if (u->beta1 != 0)
        step = *m = u->beta1 * *m + step;
    *x -= u->lr * step;
}
WEFT__BOTH void adam(const weft__update *u, const rule *r, real dx, real *m, real *v, real *x)
{
    bool apart = u->rule == WEFT__ADAMW;
    real old = *x, g = apart ? dx : dx + u->decay * old, was = apart ? old - u->lr * u->decay * old : old;
    real mean = u->beta1 * *m + (1 - u->beta1) * g, square = u->beta2 * *v + (1 - u->beta2) * g * g;
    *m = mean, *v = square;
    *x = was - r->rate * mean / (sqrt(square) / r->correct + u->eps);
}
/* By the update's rule: element i. */
WEFT__BOTH void update_one(const weft__update *u, const rule *r, int64_t i, const real *dx, real *m, real *v, real *a, real *x)
{
    if (u->rule == WEFT__SGD)
        sgd(u, r, dx[i], m ? m + i : NULL, x + i);
    else if (u->rule == WEFT__RMSPROP)
        rmsprop(u, dx[i], m ? m + i : NULL, v + i, a ? a + i : NULL, x + i);
    else
        adam(u, r, dx[i], m + i, v + i, x + i);
}
#endif
