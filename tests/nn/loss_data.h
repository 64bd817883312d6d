/* loss_data.h - the common parts of the tests of losses: kinds, data in the order of the sequences,
 * layouts. */
#ifndef WEFT_LOSS_DATA_H
#define WEFT_LOSS_DATA_H
#include "tests/check.h"

enum { SEQUENCES = 5, TOKENS = 16, FEATURES = 3, CLASSES = 5 };
UNUSED static const int32_t len[SEQUENCES] = { 3, 0, 7, 2, 4 };
UNUSED static const weft_lengths lengths = { .n = SEQUENCES, .len = len };

typedef enum { MSE, MAE, HUBER, BCE, GAUSSIAN, SMAPE, MAPE, LOSSES } kind;
UNUSED static const char *const names[] = { "mse", "mae", "huber", "bce", "gaussian_nll", "smape", "mape" };

UNUSED static weft_loss loss_of(kind k, weft_tensor *p, weft_tensor *y, weft_tensor *v,
                                const weft_loss_opts *o)
{
    switch (k) {
    case MSE:      return weft_mse_loss(p, y, o);
    case MAE:      return weft_l1_loss(p, y, o);
    case HUBER:    return weft_huber_loss(p, y, (weft_real).7, o);
    case BCE:      return weft_bce_with_logits(p, y, o);
    case GAUSSIAN: return weft_gaussian_nll_loss(p, y, v, 0, o);
    case SMAPE:    return weft_smape(p, y, o);
    default:       return weft_mape(p, y, o);
    }
}

/* ---- numbers in the order of the sequences ---- */
/* Mask is [TOKENS, 1] and 0 for a third of the tokens, weights [TOKENS, FEATURES]. */
typedef struct {
    weft_real p[TOKENS * FEATURES], y[TOKENS * FEATURES], v[TOKENS * FEATURES], weights[TOKENS * FEATURES],
        mask[TOKENS];
} data;

UNUSED static data data_of(kind k)
{
    data d;
    dice_fill(d.p, TOKENS * FEATURES, -2, 2);
    dice_fill(d.y, TOKENS * FEATURES, k == BCE ? 0 : -2, k == BCE ? 1 : 2);
    dice_fill(d.v, TOKENS * FEATURES, .3, 2);
    dice_fill(d.weights, TOKENS * FEATURES, .5, 1.5);
    for (int t = 0; t < TOKENS; t++)
        d.mask[t] = t % 3 == 1 ? 0 : t % 3 == 2 ? (weft_real).5 : 1;
    return d;
}

UNUSED static void spoil(data *d)                       /* Puts NaN wherever the mask is 0. */
{
    for (int i = 0; i < TOKENS * FEATURES; i++)
        if (d->mask[i / FEATURES] == 0)
            d->p[i] = d->y[i] = d->v[i] = d->weights[i] = (weft_real)NAN;
}

UNUSED static weft_tensor *laid(weft *w, const weft_real *x, int64_t width, int layout)
{
    if (layout == WEFT_PLAIN)
        return weft_reals(w, x, WEFT_SHAPE(TOKENS, width));
    return laid_out(weft_ragged(w, x, width, &lengths), layout);
}

/* ---- quantiles, cross entropy ---- */
UNUSED static const weft_real quantiles[FEATURES] = { (weft_real).1, (weft_real).5, (weft_real).9 };

typedef struct { bool weighted, masked, ignored; double smoothing; } ce;
typedef struct {
    weft_real logits[TOKENS * CLASSES], weight[CLASSES], mask[TOKENS];
    int32_t target[TOKENS];
} ce_data;

UNUSED static ce ce_of(int how) { return (ce){ how & 1, how & 2, how & 4, how & 8 ? .2 : 0 }; }

UNUSED static ce_data ce_data_of(ce c)
{
    ce_data d;
    dice_fill(d.logits, TOKENS * CLASSES, -3, 3);
    dice_fill(d.weight, CLASSES, .5, 2);
    for (int t = 0; t < TOKENS; t++) {
        d.target[t] = (int32_t)dice(CLASSES);
        d.mask[t] = t % 4 == 1 ? 0 : t % 4 == 2 ? (weft_real).25 : 1;
        if (c.ignored && t % 5 == 0)
            d.target[t] = -100;
        if (c.masked && d.mask[t] == 0) {        /* neither is read */
            d.target[t] = 77;
            d.logits[t * CLASSES + 1] = (weft_real)NAN;
        }
    }
    return d;
}

UNUSED static weft_cross_entropy_opts ce_opts(weft *w, ce c, const ce_data *d, int layout)
{
    weft_tensor *mask = !c.masked ? NULL :
                        layout    ? weft_to_layout(weft_ragged(w, d->mask, 0, &lengths),
                                                layout == 1 ? WEFT_CONCAT : WEFT_PACKED) :
                                    weft_reals(w, d->mask, WEFT_SHAPE(TOKENS));
    return (weft_cross_entropy_opts){ mask, c.weighted ? weft_reals(w, d->weight, WEFT_SHAPE(CLASSES)) : NULL,
                           (weft_real)c.smoothing, -100, c.ignored };
}
#endif
