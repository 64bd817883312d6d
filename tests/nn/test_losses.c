/* test_losses.c - tests losses in every layout, masked, weighted, with NaN where the mask is 0.
 * tests/golden/layers.json compares the values of all except two with PyTorch. */
#include "loss_data.h"

static double element(kind k, double p, double y, double v)
{
    if (k == BCE)
        return fmax(p, 0) - p * y + log1p(exp(-fabs(p)));
    return .5 * (log(fmax(v, 1e-6)) + (p - y) * (p - y) / fmax(v, 1e-6));
}

static void by_hand(kind k, const data *d, bool masked, bool weighted, double *sum, double *weight)
{
    *sum = *weight = 0;
    for (int i = 0; i < TOKENS * FEATURES; i++) {
        double m = masked ? (double)d->mask[i / FEATURES] : 1;
        *weight += m;
        if (m != 0)
            *sum += m * (weighted ? (double)d->weights[i] : 1) *
                    element(k, (double)d->p[i], (double)d->y[i], (double)d->v[i]);
    }
}

static void one(weft *w, kind k, const data *d, int how, int layout)
{
    bool masked = how & 1, weighted = how & 2;
    double sum, weight;
    by_hand(k, d, masked, weighted, &sum, &weight);
    /* operands of one batch in several layouts */
    int other = layout ? 1 + (layout + how) % 3 : 0;
    weft_tensor *p = laid(w, d->p, FEATURES, layout), *y = laid(w, d->y, FEATURES, other),
                *v = laid(w, d->v, FEATURES, layout);
    weft_loss_opts o = { masked ? laid(w, d->mask, 1, other) : NULL,
                         weighted ? laid(w, d->weights, FEATURES, layout) : NULL };
    weft_loss l = loss_of(k, p, y, v, masked || weighted ? &o : NULL);
    weft_real got[] = { weft_item(l.sum), weft_item(l.weight), weft_item(weft_mean_loss(l)) };
    weft_real want[] = { (weft_real)sum, (weft_real)weight, (weft_real)(sum / weight) };
    cr_assert(weft_ok(w), "%s: %s", names[k], weft_error_message(w));
    cr_assert(weft_rank(l.sum) == 0 && weft_rank(l.weight) == 0);
    cr_assert(is_close(names[k], got, want, 3, TOL(1e-12, 2e-6)), "%s: how %d, layout %d", names[k], how,
              layout);
    weft_clear(w);
}

TABLE_TEST(losses, match_plain_loops_in_every_layout)
{
    for (int k = BCE; k <= GAUSSIAN; k++)
        for (int how = 0; how < 4; how++)
            for (int layout = 0; layout < 4; layout++) {
                data d = data_of((kind)k);
                if (how & 1)
                    spoil(&d);
                one(w, (kind)k, &d, how, layout);
            }
}

/* Returns the gradients. They are finite, exactly 0 where the mask is 0, and otherwise equal those of data
 * without NaN. */
static weft_real *gradient(weft *w, kind k, const data *d, int layout)
{
    weft_tensor *x[] = { laid(w, d->p, FEATURES, layout), laid(w, d->y, FEATURES, layout),
                         laid(w, d->v, FEATURES, layout) },
                *g[3];
    weft_loss_opts o = { laid(w, d->mask, 1, layout), laid(w, d->weights, FEATURES, layout) };
    weft_gradients(loss_of(k, x[0], x[1], x[2], &o).sum, x, 3, g);
    for (int i = 0; i < 3; i++)
        g[i] = layout ? weft_plain(weft_to_layout(g[i], WEFT_CONCAT)) : g[i];
    return numbers(weft_concat(g, 3, 0));
}

TABLE_TEST(losses, ignore_nan_where_the_mask_is_zero)
{
    for (int k = 0; k < LOSSES; k++)
        for (int layout = 0; layout < 4; layout++) {
            data d = data_of((kind)k), bad = d;
            spoil(&bad);
            weft_real *want = gradient(w, (kind)k, &d, layout), *got = gradient(w, (kind)k, &bad, layout);
            OK(w);
            same_bits(names[k], got, want, 3 * TOKENS * FEATURES);
            for (int i = 0; i < 3 * TOKENS * FEATURES; i++)
                cr_assert(d.mask[i / FEATURES % TOKENS] != 0 || got[i] == 0);
            weft_clear(w);
        }
}

/* A mask [FEATURES] or of rank 0 broadcasts, and the weight is its sum over all elements. */
REF_TEST(losses, broadcast_the_mask)
{
    data d = data_of(MSE);
    const weft_real few[FEATURES] = { 1, 0, .5 };
    double sum = 0;
    for (int i = 0; i < TOKENS * FEATURES; i++)
        sum += (double)few[i % FEATURES] * (double)((d.p[i] - d.y[i]) * (d.p[i] - d.y[i]));
    for (int layout = 0; layout < 4; layout++) {
        weft_loss_opts o = { .mask = weft_reals(w, few, WEFT_SHAPE(FEATURES)) };
        weft_loss l = weft_mse_loss(laid(w, d.p, FEATURES, layout), laid(w, d.y, FEATURES, layout), &o);
        weft_loss_opts half = { .mask = weft_scalar(w, (weft_real).5) };
        weft_loss h = weft_mse_loss(laid(w, d.p, FEATURES, layout), laid(w, d.y, FEATURES, layout), &half);
        weft_real got[] = { weft_item(l.sum), weft_item(l.weight), weft_item(h.weight) };
        close_to("mask", got, ((weft_real[]){ (weft_real)sum, TOKENS * 1.5, TOKENS * FEATURES / 2. }), 3,
                 TOL(1e-12, 2e-6));
    }
}

REF_TEST(losses, are_zero_without_weight)
{
    weft_tensor *none = weft_zeros(w, WEFT_SHAPE(0, 2)), *two = weft_full(w, 2, WEFT_SHAPE(3)),
                *zero = weft_zeros(w, WEFT_SHAPE(3));
    weft_loss empty = weft_mse_loss(none, none, NULL),
              hidden = weft_mse_loss(two, zero, &(weft_loss_opts){ .mask = zero });
    cr_assert_eq(weft_item(weft_mean_loss(empty)), 0);
    cr_assert_eq(weft_item(weft_mean_loss(hidden)), 0);
    cr_assert_eq(weft_item(hidden.weight), 0);
}

/* For a target of 0, a prediction of 0 has loss 0 and gradient 0. Any other prediction has loss 2 in smape
 * and an infinite loss in mape. */
REF_TEST(losses, smape_and_mape_are_defined_at_target_zero)
{
    weft_tensor *x = weft_reals(w, (weft_real[]){ 0, 3, 1 }, WEFT_SHAPE(3)),
                *y = weft_reals(w, (weft_real[]){ 0, 3, 2 }, WEFT_SHAPE(3)), *g;
    weft_loss l[] = { weft_smape(x, y, NULL), weft_mape(x, y, NULL) };
    const double want[] = { 2. / 3, .5 }, slope[] = { -8. / 9, -.5 };
    for (int i = 0; i < 2; i++) {
        cr_assert_float_eq((double)weft_item(l[i].sum), want[i], 1e-6);
        weft_gradients(l[i].sum, &x, 1, &g);
        close_to("gradient", numbers(g), ((weft_real[]){ 0, 0, (weft_real)slope[i] }), 3, 1e-6);
    }
    weft_tensor *one_ = weft_scalar(w, 1), *none = weft_scalar(w, 0);
    cr_assert_eq(weft_item(weft_smape(one_, none, NULL).sum), 2);
    cr_assert(isinf(weft_item(weft_mape(one_, none, NULL).sum)));
}

/* Large logits lose no precision. The gradient at logit 0 is sigmoid(0) - y. */
REF_TEST(losses, bce_is_accurate_for_large_logits)
{
    weft_tensor *x = weft_reals(w, (weft_real[]){ 80, -80, 80, 0 }, WEFT_SHAPE(4)), *g;
    weft_tensor *y = weft_reals(w, (weft_real[]){ 1, 0, 0, 1 }, WEFT_SHAPE(4));
    weft_loss l = weft_bce_with_logits(x, y, NULL);
    weft_gradients(l.sum, &x, 1, &g);
    cr_assert_float_eq((double)weft_item(l.sum), 80 + log(2), 1e-4);
    close_to("gradient", numbers(g), ((weft_real[]){ 0, 0, 1, (weft_real)-.5 }), 4, 1e-6);
    weft_tensor *sure = weft_scalar(w, 80), *one_ = weft_scalar(w, 1);
    cr_assert_float_eq((double)weft_item(weft_bce_with_logits(sure, one_, NULL).sum) / exp(-80), 1, 1e-4);
}

/* ---- quantiles: values are in tests/golden/layers.json ---- */
/* A target [TOKENS] is one of [TOKENS, 1]; per batch the weight counts sequences. */
TABLE_TEST(losses, quantile_loss_matches_plain_loops)
{
    for (int layout = 0; layout < 4; layout++) {
        data d = data_of(MSE);
        weft_tensor *p = laid(w, d.p, FEATURES, layout), *y = laid(w, d.y, 1, layout ? 1 + layout % 3 : 0);
        weft_loss a = weft_quantile_loss(p, y, quantiles, FEATURES, false, NULL),
                  b = weft_quantile_loss(p, weft_sum(y, 1), quantiles, FEATURES, true, NULL);
        cr_assert(weft_item(a.sum) == weft_item(b.sum) && weft_item(a.weight) == TOKENS * FEATURES &&
                  weft_item(b.weight) == (layout ? SEQUENCES : TOKENS) * FEATURES);
    }
}

REF_TEST(losses, refuse_invalid_arguments)
{
#define BAD(status, part, call)                                                              \
    do {                                                                                     \
        weft_tensor *x = weft_zeros(w, WEFT_SHAPE(4, 3)), *y = weft_zeros(w, WEFT_SHAPE(4)), \
                    *i = weft_ints(w, NULL, WEFT_SHAPE(4));                                  \
        weft_tensor *r = laid(w, data_of(MSE).p, FEATURES, 1);                               \
        (void)x, (void)y, (void)i, (void)r;                                                  \
        call;                                                                                \
        FAILS(w, status, part);                                                              \
    } while (0)
    BAD(WEFT_ESHAPE, "mse_loss: predicted [4, 3], target [4]", weft_mse_loss(x, y, NULL));
    BAD(WEFT_ESHAPE, "both ragged or both plain",
        weft_mse_loss(r, weft_zeros(w, WEFT_SHAPE(TOKENS, FEATURES)), NULL));
    BAD(WEFT_ESHAPE, "mask [4]; expected a shape", weft_l1_loss(x, x, &(weft_loss_opts){ .mask = y }));
    BAD(WEFT_ESHAPE, "weights [4]; expected a shape", weft_l1_loss(x, x, &(weft_loss_opts){ .weights = y }));
    BAD(WEFT_ESHAPE, "expected a shape that broadcasts",
        weft_l1_loss(r, r, &(weft_loss_opts){ .mask = weft_zeros(w, WEFT_SHAPE(TOKENS, 1)) }));
    BAD(WEFT_ESHAPE, "expected a shape that broadcasts",
        weft_l1_loss(weft_plain(r), weft_plain(r), &(weft_loss_opts){ .mask = r }));
    BAD(WEFT_ESHAPE, "l1_loss: target is of ints; expected reals (weft_to_reals)", weft_l1_loss(y, i, NULL));
    BAD(WEFT_EARG, "target is NULL", weft_bce_with_logits(y, NULL, NULL));
    BAD(WEFT_EARG, "delta 0", weft_huber_loss(x, x, WEFT_ZERO, NULL));
    BAD(WEFT_EARG, "eps -1", weft_gaussian_nll_loss(x, x, x, -1, NULL));
    BAD(WEFT_ESHAPE, "variance [4]", weft_gaussian_nll_loss(x, x, y, 0, NULL));
    BAD(WEFT_ESHAPE, ", 2 quantiles", weft_quantile_loss(x, y, quantiles, 2, false, NULL));
    BAD(WEFT_ESHAPE, "differ only in the last extent",
        weft_quantile_loss(x, weft_zeros(w, WEFT_SHAPE(3)), quantiles, 3, false, NULL));
    BAD(WEFT_EARG, "quantile 1 is 1",
        weft_quantile_loss(x, y, ((weft_real[]){ (weft_real).5, 1, (weft_real).5 }), 3, false, NULL));
    BAD(WEFT_EARG, "label_smoothing 2",
        weft_cross_entropy(x, i, &(weft_cross_entropy_opts){ .label_smoothing = 2 }));
    BAD(WEFT_ESHAPE, "classes are reals; expected ints (weft_to_ints)",
        weft_cross_entropy(x, y, NULL));
    BAD(WEFT_ESHAPE, "logits [.., classes]", weft_cross_entropy(y, i, NULL));
    BAD(WEFT_ESHAPE, "class_weight is [4]; expected plain [3] of reals",
        weft_cross_entropy(x, i, &(weft_cross_entropy_opts){ .class_weight = y }));
    BAD(WEFT_ESHAPE, "the mask is [4, 3]; expected reals with the shape",
        weft_cross_entropy(x, i, &(weft_cross_entropy_opts){ .mask = x }));
    cr_assert_not_null(weft_mse_loss(NULL, NULL, NULL).sum);
    cr_assert_not_null(weft_cross_entropy(NULL, NULL, NULL).sum);
}
