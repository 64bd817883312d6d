/* test_losses.c - losses against the formulas in plain loops: plain and ragged, in every layout, masked,
 * weighted, with NaN where the mask is 0; their gradients and second derivatives (double build) against
 * differences. */
#include "tests/check.h"

enum { SEQUENCES = 5, TOKENS = 16, FEATURES = 3, CLASSES = 5 };
static const int32_t len[SEQUENCES] = { 3, 0, 7, 2, 4 };
static const weft_lengths lengths = { SEQUENCES, len, NULL };

typedef enum { MSE, MAE, HUBER, BCE, GAUSSIAN, SMAPE, MAPE, LOSSES } kind;
static const char *const names[] = { "mse", "mae", "huber", "bce", "gaussian_nll", "smape", "mape" };

static weft_loss loss_of(kind k, weft_tensor *p, weft_tensor *y, weft_tensor *v, const weft_loss_opts *o)
{
    switch (k) {
    case MSE:      return weft_mse(p, y, o);
    case MAE:      return weft_mae(p, y, o);
    case HUBER:    return weft_huber(p, y, (weft_real).7, o);
    case BCE:      return weft_bce_with_logits(p, y, o);
    case GAUSSIAN: return weft_gaussian_nll(p, v, y, 0, o);
    case SMAPE:    return weft_smape(p, y, o);
    default:       return weft_mape(p, y, o);
    }
}

static double element(kind k, double p, double y, double v)
{
    double r = fabs(p - y);
    switch (k) {
    case MSE:      return r * r;
    case MAE:      return r;
    case HUBER:    return r <= .7 ? .5 * r * r : .7 * (r - .35);
    case BCE:      return fmax(p, 0) - p * y + log1p(exp(-fabs(p)));
    case GAUSSIAN: return .5 * (log(fmax(v, 1e-6)) + r * r / fmax(v, 1e-6));
    case SMAPE:    return r == 0 ? 0 : 2 * r / (fabs(p) + fabs(y));
    default:       return r == 0 ? 0 : r / fabs(y);
    }
}

/* ---- numbers in the order of the sequences ---- */
/* Mask is [TOKENS, 1] and 0 for a third of the tokens, weights [TOKENS, FEATURES]. */
typedef struct {
    weft_real p[TOKENS * FEATURES], y[TOKENS * FEATURES], v[TOKENS * FEATURES], weights[TOKENS * FEATURES],
        mask[TOKENS];
} data;

static data data_of(kind k)
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

static void spoil(data *d)                       /* NaN wherever the mask is 0 */
{
    for (int i = 0; i < TOKENS * FEATURES; i++)
        if (d->mask[i / FEATURES] == 0)
            d->p[i] = d->y[i] = d->v[i] = d->weights[i] = (weft_real)NAN;
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

/* 0: plain, 1 .. 3: packed, concat, rows */
static weft_tensor *laid(weft *w, const weft_real *x, int64_t width, int layout)
{
    static const int32_t row[SEQUENCES] = { 0, 0, 1, 0, 2 }, column[SEQUENCES] = { 0, 3, 0, 3, 1 };
    static const weft_placement place = { 3, 8, row, column };
    if (layout == 0)
        return weft_reals(w, x, WEFT_SHAPE(TOKENS, width));
    weft_tensor *y = weft_ragged(w, x, width, &lengths);
    return layout == 1 ? weft_to_layout(y, WEFT_PACKED) : layout == 2 ? y : weft_to_rows(y, &place);
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

Test(losses, formulas)
{
    FOR_DEVICES(w)
        for (int k = 0; k < LOSSES; k++)
            for (int how = 0; how < 4; how++)
                for (int layout = 0; layout < 4; layout++) {
                    data d = data_of((kind)k);
                    if (how & 1)
                        spoil(&d);
                    one(w, (kind)k, &d, how, layout);
                }
}

/* Gradients: finite everywhere, exactly 0 where the mask is 0, and elsewhere those of the data without
 * NaN. */
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

Test(losses, nan_under_the_mask)
{
    FOR_DEVICES(w)
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

/* A mask may be lower in rank, [FEATURES], or one number for all; the weight counts it for every element. */
Test(losses, masks_broadcast)
{
    weft *w = open_on(WEFT_REF);
    data d = data_of(MSE);
    const weft_real few[FEATURES] = { 1, 0, .5 };
    double sum = 0;
    for (int i = 0; i < TOKENS * FEATURES; i++)
        sum += (double)few[i % FEATURES] * element(MSE, (double)d.p[i], (double)d.y[i], 1);
    for (int layout = 0; layout < 4; layout++) {
        weft_loss_opts o = { .mask = weft_reals(w, few, WEFT_SHAPE(FEATURES)) };
        weft_loss l = weft_mse(laid(w, d.p, FEATURES, layout), laid(w, d.y, FEATURES, layout), &o);
        weft_loss_opts half = { .mask = weft_scalar(w, (weft_real).5) };
        weft_loss h = weft_mse(laid(w, d.p, FEATURES, layout), laid(w, d.y, FEATURES, layout), &half);
        weft_real got[] = { weft_item(l.sum), weft_item(l.weight), weft_item(h.weight) };
        close_to("mask", got, ((weft_real[]){ (weft_real)sum, TOKENS * 1.5, TOKENS * FEATURES / 2. }), 3,
                 TOL(1e-12, 2e-6));
    }
    CLEAN(w);
}

Test(losses, nothing_and_sums)
{
    weft *w = open_on(WEFT_REF);
    weft_tensor *none = weft_zeros(w, WEFT_SHAPE(0, 2)), *two = weft_full(w, 2, WEFT_SHAPE(3)),
                *zero = weft_zeros(w, WEFT_SHAPE(3));
    weft_loss empty = weft_mse(none, none, NULL),
              hidden = weft_mse(two, zero, &(weft_loss_opts){ .mask = zero });
    cr_assert_eq(weft_item(weft_mean_loss(empty)), 0);
    cr_assert_eq(weft_item(weft_mean_loss(hidden)), 0);
    cr_assert_eq(weft_item(hidden.weight), 0);
    cr_assert_eq(weft_item(weft_mean_loss(weft_add_losses(empty, weft_mse(two, zero, NULL)))), 4);
    CLEAN(w);
}

/* 0 / 0 is 0 with gradient 0; a miss of a target of 0 is infinite in mape and 2 in smape. */
Test(losses, zero_by_zero)
{
    weft *w = open_on(WEFT_REF);
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
    CLEAN(w);
}

/* Large logits lose nothing, and the gradient at 0 is sigmoid(0) - y. */
Test(losses, bce_is_stable)
{
    weft *w = open_on(WEFT_REF);
    weft_tensor *x = weft_reals(w, (weft_real[]){ 80, -80, 80, 0 }, WEFT_SHAPE(4)), *g;
    weft_tensor *y = weft_reals(w, (weft_real[]){ 1, 0, 0, 1 }, WEFT_SHAPE(4));
    weft_loss l = weft_bce_with_logits(x, y, NULL);
    weft_gradients(l.sum, &x, 1, &g);
    cr_assert_float_eq((double)weft_item(l.sum), 80 + log(2), 1e-4);
    close_to("gradient", numbers(g), ((weft_real[]){ 0, 0, 1, (weft_real)-.5 }), 4, 1e-6);
    weft_tensor *sure = weft_scalar(w, 80), *one_ = weft_scalar(w, 1);
    cr_assert_float_eq((double)weft_item(weft_bce_with_logits(sure, one_, NULL).sum) / exp(-80), 1, 1e-4);
    CLEAN(w);
}

/* ---- quantiles ---- */
static const weft_real quantiles[FEATURES] = { (weft_real).1, (weft_real).5, (weft_real).9 };

static double pinball(const data *d, bool masked, bool weighted)
{
    double sum = 0;
    for (int i = 0; i < TOKENS * FEATURES; i++) {
        int t = i / FEATURES;
        double q = (double)quantiles[i % FEATURES], m = masked ? (double)d->mask[t] : 1;
        double r =
            m == 0 ? 0 : ((double)d->y[t] - (double)d->p[i]) * m * (weighted ? (double)d->weights[t] : 1);
        sum += fmax((q - 1) * r, q * r);
    }
    return sum;
}

static void one_quantile(weft *w, const data *d, int how, int layout)
{
    bool masked = how & 1, weighted = how & 2, column = how & 4;
    weft_loss_opts o = { masked ? laid(w, d->mask, 1, layout) : NULL,
                         weighted ? laid(w, d->weights, 1, layout) : NULL };
    weft_tensor *p = laid(w, d->p, FEATURES, layout), *y = laid(w, d->y, 1, layout ? 1 + how % 3 : 0);
    if (!column)
        y = weft_sum(y, 1);                      /* [TOKENS] */
    weft_loss a = weft_quantile_loss(p, y, quantiles, FEATURES, false, &o),
              b = weft_quantile_loss(p, y, quantiles, FEATURES, true, &o);
    double weight = 0, sum = pinball(d, masked, weighted);
    for (int t = 0; t < TOKENS; t++)
        weight += FEATURES * (masked ? (double)d->mask[t] : 1);
    weft_real got[] = { weft_item(a.sum), weft_item(b.sum), weft_item(a.weight), weft_item(b.weight) };
    weft_real want[] = { (weft_real)sum, (weft_real)sum, (weft_real)weight,
                         (weft_real)((layout ? SEQUENCES : TOKENS) * FEATURES) };
    cr_assert(is_close("quantile", got, want, 4, TOL(1e-12, 2e-6)), "how %d, layout %d: %s", how, layout,
              weft_error_message(w));
    weft_clear(w);
}

Test(losses, quantile)
{
    FOR_DEVICES(w)
        for (int how = 0; how < 8; how++)
            for (int layout = 0; layout < 4; layout++) {
                data d = data_of(MSE);
                for (int t = 0; t < TOKENS && how & 1; t++)
                    if (d.mask[t] == 0)
                        d.p[t * FEATURES] = d.y[t] = d.weights[t] = (weft_real)NAN;
                one_quantile(w, &d, how, layout);
            }
}

/* ---- cross entropy ---- */
typedef struct { bool weighted, masked, ignored; double smoothing; } ce;
typedef struct {
    weft_real logits[TOKENS * CLASSES], weight[CLASSES], mask[TOKENS];
    int32_t target[TOKENS];
} ce_data;

static ce ce_of(int how) { return (ce){ how & 1, how & 2, how & 4, how & 8 ? .2 : 0 }; }

static ce_data ce_data_of(ce c)
{
    ce_data d;
    dice_fill(d.logits, TOKENS * CLASSES, -3, 3);
    dice_fill(d.weight, CLASSES, .5, 2);
    for (int t = 0; t < TOKENS; t++) {
        d.target[t] = (int32_t)dice(CLASSES);
        d.mask[t] = t % 4 == 1 ? 0 : t % 4 == 2 ? (weft_real).25 : 1;
        if (c.ignored && t % 5 == 0)
            d.target[t] = -100;
        if (c.masked && d.mask[t] == 0) {        /* neither is looked at */
            d.target[t] = 77;
            d.logits[t * CLASSES + 1] = (weft_real)NAN;
        }
    }
    return d;
}

/* The loss, the weight, and the gradient of the loss by the logits. */
static void ce_by_hand(ce c, const ce_data *d, double *sum, double *weight, weft_real *g)
{
    *sum = *weight = 0;
    for (int t = 0; t < TOKENS; t++) {
        const weft_real *x = d->logits + t * CLASSES;
        double m = c.masked ? (double)d->mask[t] : 1, z = 0, all = 0;
        bool out = m == 0 || (c.ignored && d->target[t] == -100);
        double q[CLASSES] = { 0 };
        for (int j = 0; j < CLASSES && !out; j++) {
            double w = c.weighted ? (double)d->weight[j] : 1;
            z += exp((double)x[j]);
            q[j] = m * (c.smoothing / CLASSES * w + (j == d->target[t] ? (1 - c.smoothing) * w : 0));
            all += q[j];
            *weight += j == d->target[t] ? m * w : 0;
        }
        for (int j = 0; j < CLASSES; j++) {
            double log_p = out ? 0 : (double)x[j] - log(z);
            *sum -= out ? 0 : q[j] * log_p;
            g[t * CLASSES + j] = out ? 0 : (weft_real)(all * exp(log_p) - q[j]);
        }
    }
}

static weft_ce_opts ce_opts(weft *w, ce c, const ce_data *d, int layout)
{
    weft_tensor *mask = !c.masked ? NULL :
                        layout    ? weft_to_layout(weft_ragged(w, d->mask, 0, &lengths),
                                                layout == 1 ? WEFT_CONCAT : WEFT_PACKED) :
                                    weft_reals(w, d->mask, WEFT_SHAPE(TOKENS));
    return (weft_ce_opts){ mask, c.weighted ? weft_reals(w, d->weight, WEFT_SHAPE(CLASSES)) : NULL,
                           (weft_real)c.smoothing, -100, c.ignored };
}

static void one_entropy(weft *w, ce c, const ce_data *d, int layout)
{
    double sum, weight;
    weft_real g[TOKENS * CLASSES];
    ce_by_hand(c, d, &sum, &weight, g);
    weft_tensor *x = laid(w, d->logits, CLASSES, layout), *dx;
    weft_tensor *y =
        layout ? weft_ragged_ints(w, d->target, &lengths) : weft_ints(w, d->target, WEFT_SHAPE(TOKENS));
    weft_ce_opts o = ce_opts(w, c, d, layout);
    weft_loss l = weft_cross_entropy(x, y, &o);
    weft_real got[] = { weft_item(l.sum), weft_item(l.weight) },
              want[] = { (weft_real)sum, (weft_real)weight };
    close_to("cross entropy", got, want, 2, TOL(1e-12, 2e-6));
    for (int recorded = 0; recorded < 2; recorded++) {           /* fused, composed */
        bool was = weft_set_grad_enabled(w, recorded);
        weft_gradients(l.sum, &x, 1, &dx);
        weft_set_grad_enabled(w, was);
        weft_tensor *flat = layout ? weft_plain(weft_to_layout(dx, WEFT_CONCAT)) : dx;
        close_to(recorded ? "composed gradient" : "fused gradient", numbers(flat), g, TOKENS * CLASSES,
                 TOL(1e-12, 2e-6));
    }
    weft_clear(w);
}

Test(losses, cross_entropy)
{
    FOR_DEVICES(w)
        for (int how = 0; how < 16; how++)
            for (int layout = 0; layout < 4; layout++) {
                ce_data d = ce_data_of(ce_of(how));
                one_entropy(w, ce_of(how), &d, layout);
            }
}

/* More axes before the classes are more rows; a class may be the one to ignore, 0 too; all ignored is 0 of
 * 0. */
Test(losses, cross_entropy_shapes)
{
    weft *w = open_on(WEFT_REF);
    ce_data d = ce_data_of(ce_of(0));
    weft_tensor *flat = weft_reals(w, d.logits, WEFT_SHAPE(TOKENS, CLASSES)),
                *y = weft_ints(w, d.target, WEFT_SHAPE(TOKENS));
    weft_tensor *cube = weft_reals(w, d.logits, WEFT_SHAPE(2, TOKENS / 2, CLASSES)),
                *z = weft_ints(w, d.target, WEFT_SHAPE(2, TOKENS / 2));
    cr_assert_eq(weft_item(weft_cross_entropy(flat, y, NULL).sum),
                 weft_item(weft_cross_entropy(cube, z, NULL).sum));
    weft_ce_opts zero = { .has_ignore = true, .ignore = 0 };
    weft_tensor *all = weft_ints(w, NULL, WEFT_SHAPE(TOKENS));
    weft_loss l = weft_cross_entropy(flat, all, &zero);
    cr_assert(weft_item(l.sum) == 0 && weft_item(l.weight) == 0 && weft_item(weft_mean_loss(l)) == 0);
    CLEAN(w);
}

Test(losses, cross_entropy_errors)
{
    setenv("WEFT_SYNC", "1", 1);                 /* else a GPU tells at the next wait, of an earlier kernel */
    FOR_DEVICES(w) {
        ce_data d = ce_data_of(ce_of(0));
        weft_parameter(weft_module_new(w, "m"), "p", WEFT_SHAPE(2), (weft_init){ .kind = WEFT_INIT_ZERO });
        for (int bad = -1; bad <= CLASSES; bad += CLASSES + 1)
            for (int layout = 0; layout < 3; layout++) {
                d.target[5] = bad;               /* token 2 of sequence 2 */
                weft_tensor *y = layout ? weft_ragged_ints(w, d.target, &lengths) :
                                          weft_ints(w, d.target, WEFT_SHAPE(TOKENS));
                weft_cross_entropy(laid(w, d.logits, CLASSES, layout), y, NULL);
                FAILS(w, WEFT_EARG, layout ? "token 2 of sequence 2; 0 .. 4" : "row 5; 0 .. 4");
            }
        weft_tensor *x = weft_zeros(w, WEFT_SHAPE(4, 3)), *y = weft_ints(w, NULL, WEFT_SHAPE(4)), *g[2];
        weft_tensor *constant = weft_full(w, 1, WEFT_SHAPE(3));
        weft_loss l = weft_cross_entropy(x, y, &(weft_ce_opts){ .class_weight = constant });
        weft_set_grad_enabled(w, false);
        weft_gradients(l.sum, (weft_tensor *[]){ x, constant }, 2, g);
        weft_set_grad_enabled(w, true);
        FAILS(w, WEFT_EARG, "constants");
    }
}

Test(losses, refusals)
{
    weft *w = open_on(WEFT_REF);
#define BAD(status, part, call)                                                              \
    do {                                                                                     \
        weft_tensor *x = weft_zeros(w, WEFT_SHAPE(4, 3)), *y = weft_zeros(w, WEFT_SHAPE(4)), \
                    *i = weft_ints(w, NULL, WEFT_SHAPE(4));                                  \
        weft_tensor *r = laid(w, data_of(MSE).p, FEATURES, 1);                               \
        (void)x, (void)y, (void)i, (void)r;                                                  \
        call;                                                                                \
        FAILS(w, status, part);                                                              \
    } while (0)
    BAD(WEFT_ESHAPE, "mse: predicted [4, 3], target [4]", weft_mse(x, y, NULL));
    BAD(WEFT_ESHAPE, "both ragged or both plain",
        weft_mse(r, weft_zeros(w, WEFT_SHAPE(TOKENS, FEATURES)), NULL));
    BAD(WEFT_ESHAPE, "mask [4] does not broadcast", weft_mae(x, x, &(weft_loss_opts){ .mask = y }));
    BAD(WEFT_ESHAPE, "weights [4] does not broadcast", weft_mae(x, x, &(weft_loss_opts){ .weights = y }));
    BAD(WEFT_ESHAPE, "does not broadcast",
        weft_mae(r, r, &(weft_loss_opts){ .mask = weft_zeros(w, WEFT_SHAPE(TOKENS, 1)) }));
    BAD(WEFT_ESHAPE, "does not broadcast",
        weft_mae(weft_plain(r), weft_plain(r), &(weft_loss_opts){ .mask = r }));
    BAD(WEFT_ESHAPE, "target is of ints", weft_mae(y, i, NULL));
    BAD(WEFT_EARG, "target is NULL", weft_bce_with_logits(y, NULL, NULL));
    BAD(WEFT_EARG, "delta 0", weft_huber(x, x, 0, NULL));
    BAD(WEFT_EARG, "eps -1", weft_gaussian_nll(x, x, x, -1, NULL));
    BAD(WEFT_ESHAPE, "variance [4]", weft_gaussian_nll(x, y, x, 0, NULL));
    BAD(WEFT_ESHAPE, "for 2 quantiles", weft_quantile_loss(x, y, quantiles, 2, false, NULL));
    BAD(WEFT_ESHAPE, "last extent only",
        weft_quantile_loss(x, weft_zeros(w, WEFT_SHAPE(3)), quantiles, 3, false, NULL));
    BAD(WEFT_EARG, "number 1 is 1",
        weft_quantile_loss(x, y, ((weft_real[]){ (weft_real).5, 1, (weft_real).5 }), 3, false, NULL));
    BAD(WEFT_EARG, "smoothing 2", weft_cross_entropy(x, i, &(weft_ce_opts){ .smoothing = 2 }));
    BAD(WEFT_ESHAPE, "classes are ints", weft_cross_entropy(x, y, NULL));
    BAD(WEFT_ESHAPE, "logits [.., classes]", weft_cross_entropy(y, i, NULL));
    BAD(WEFT_ESHAPE, "class_weight is [4]; a plain [3] of reals",
        weft_cross_entropy(x, i, &(weft_ce_opts){ .class_weight = y }));
    BAD(WEFT_ESHAPE, "the mask is [4, 3]; reals of the classes' shape",
        weft_cross_entropy(x, i, &(weft_ce_opts){ .mask = x }));
    cr_assert_not_null(weft_mse(NULL, NULL, NULL).sum);
    cr_assert_not_null(weft_cross_entropy(NULL, NULL, NULL).sum);
    CLEAN(w);
}

/* ---- derivatives; the inputs are kept away from the corners of abs, huber and max ---- */
typedef struct {
    kind k;
    int layout;
    bool quantile, spare;
    const weft_ce_opts *entropy;
    weft_tensor *classes, *mask;
} case_;

static weft_tensor *value(weft_tensor *const *x, void *user)
{
    const case_ *c = user;
    weft_loss_opts o = { c->mask, x[2] };
    weft_loss l =
        c->entropy  ? weft_cross_entropy(x[0], c->classes, c->entropy) :
        c->quantile ? weft_quantile_loss(x[0], weft_slice(x[1], 1, 0, 1), quantiles, FEATURES, c->spare, &o) :
                      loss_of(c->k, x[0], x[1],
                              weft_add(weft_square(x[1]), weft_scalar(weft_context_of(x[1]), (weft_real).1)),
                              &o);
    return weft_mean_loss(l);
}

static void derivatives(weft *w, const char *name, case_ *c, weft_tensor *const *x, int n)
{
    double first = weft_gradcheck(value, x, n, c), second = weft_gradcheck2(value, x, n, c);
    OK(w);
    cr_assert(first < 1e-7, "%s in layout %d: first derivative off by %g", name, c->layout, first);
    cr_assert(second < 1e-6, "%s in layout %d: second derivative off by %g", name, c->layout, second);
    weft_clear(w);
}

static void apart(data *d, kind k)               /* no |difference| near 0 or 0.7, no number near 0 */
{
    for (int i = 0; i < TOKENS * FEATURES; i++) {
        d->y[i] = dice_real(.3, .9) * (k != BCE && dice(2) ? -1 : 1);
        d->p[i] = d->y[i] + (dice(2) ? dice_real(.1, .2) : dice_real(1, 1.5)) * (dice(2) ? -1 : 1);
        if (fabs((double)d->p[i]) < .02)
            d->p[i] = d->y[i] + (weft_real)1.2;
    }
}

Test(losses, derivatives, .timeout = 60)
{
    if (sizeof(weft_real) != 8)
        return;                                  /* differences of floats prove nothing */
    weft *w = open_on(WEFT_CPU);
    for (int k = 0; k <= LOSSES + 1; k++)
        for (int layout = 0; layout < 3; layout++) {
            data d = data_of(MSE);
            apart(&d, (kind)k);
            for (int i = 0; i < TOKENS; i++)
                for (int j = 1; j < FEATURES && k >= LOSSES; j++)
                    d.p[i * FEATURES + j] = d.y[i * FEATURES] + (j == 1 ? (weft_real).4 : (weft_real)-.6);
            case_ c = { .k = (kind)k, .layout = layout, .quantile = k >= LOSSES, .spare = k > LOSSES };
            weft_tensor *x[] = { laid(w, d.p, FEATURES, layout), laid(w, d.y, FEATURES, layout),
                                 laid(w, d.weights, FEATURES, layout) };
            c.mask = laid(w, d.mask, 1, layout);
            derivatives(w, k < LOSSES ? names[k] : "quantile", &c, x, 3);
        }
    CLEAN(w);
}

Test(losses, derivatives_of_entropy, .timeout = 60)
{
    if (sizeof(weft_real) != 8)
        return;
    weft *w = open_on(WEFT_CPU);
    for (int how = 0; how < 16; how++)
        for (int layout = 0; layout < 3; layout++) {
            ce_data d = ce_data_of(ce_of(how));
            for (int i = 0; i < TOKENS * CLASSES; i++)
                d.logits[i] = isnan(d.logits[i]) ? 1 : d.logits[i];
            weft_ce_opts o = ce_opts(w, ce_of(how), &d, layout);
            case_ c = { .layout = layout, .entropy = &o };
            c.classes =
                layout ? weft_ragged_ints(w, d.target, &lengths) : weft_ints(w, d.target, WEFT_SHAPE(TOKENS));
            weft_tensor *x[] = { laid(w, d.logits, CLASSES, layout), c.classes, c.classes };
            derivatives(w, "cross entropy", &c, x, 1);
        }
    CLEAN(w);
}
