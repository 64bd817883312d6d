/* test_losses_entropy.c - tests cross entropy against plain loops, and in the double build gradients and
 * second derivatives of every loss against differences. */
#include "loss_data.h"

/* ---- cross entropy ---- */
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

static void one_entropy(weft *w, ce c, const ce_data *d, int layout)
{
    double sum, weight;
    weft_real g[TOKENS * CLASSES];
    ce_by_hand(c, d, &sum, &weight, g);
    weft_tensor *x = laid(w, d->logits, CLASSES, layout), *dx;
    weft_tensor *y =
        layout ? weft_ragged_ints(w, d->target, &lengths) : weft_ints(w, d->target, WEFT_SHAPE(TOKENS));
    weft_cross_entropy_opts o = ce_opts(w, c, d, layout);
    weft_loss l = weft_cross_entropy(x, y, &o);
    weft_real got[] = { weft_item(l.sum), weft_item(l.weight) },
              want[] = { (weft_real)sum, (weft_real)weight };
    close_to("cross entropy", got, want, 2, TOL(1e-12, 2e-6));
    for (int recorded = 0; recorded < 2; recorded++) {           /* fused, composed */
        (recorded ? weft_gradients_recorded : weft_gradients)(l.sum, &x, 1, &dx);
        weft_tensor *flat = layout ? weft_plain(weft_to_layout(dx, WEFT_CONCAT)) : dx;
        close_to(recorded ? "composed gradient" : "fused gradient", numbers(flat), g, TOKENS * CLASSES,
                 TOL(1e-12, 2e-6));
    }
    weft_clear(w);
}

TABLE_TEST(losses_entropy, matches_plain_loops)
{
    for (int how = 0; how < 16; how++)
        for (int layout = 0; layout < 4; layout++) {
            ce_data d = ce_data_of(ce_of(how));
            one_entropy(w, ce_of(how), &d, layout);
        }
}

/* More axes before the classes are more rows. Any class may be ignored, also 0. If all are ignored, sum and
 * weight are 0. */
REF_TEST(losses_entropy, accepts_each_shape)
{
    ce_data d = ce_data_of(ce_of(0));
    weft_tensor *flat = weft_reals(w, d.logits, WEFT_SHAPE(TOKENS, CLASSES)),
                *y = weft_ints(w, d.target, WEFT_SHAPE(TOKENS));
    weft_tensor *cube = weft_reals(w, d.logits, WEFT_SHAPE(2, TOKENS / 2, CLASSES)),
                *z = weft_ints(w, d.target, WEFT_SHAPE(2, TOKENS / 2));
    cr_assert_eq(weft_item(weft_cross_entropy(flat, y, NULL).sum),
                 weft_item(weft_cross_entropy(cube, z, NULL).sum));
    weft_cross_entropy_opts zero = { .has_ignore_index = true, .ignore_index = 0 };
    weft_tensor *all = weft_ints(w, NULL, WEFT_SHAPE(TOKENS));
    weft_loss l = weft_cross_entropy(flat, all, &zero);
    cr_assert(weft_item(l.sum) == 0 && weft_item(l.weight) == 0 && weft_item(weft_mean_loss(l)) == 0);
}

TABLE_TEST(losses_entropy, refuses_invalid_arguments, .init = synchronised)
{
    ce_data d = ce_data_of(ce_of(0));
    weft_parameter(weft_module_new(w, "m"), "p", WEFT_SHAPE(2), (weft_init){ .kind = WEFT_INIT_ZERO });
    for (int bad = -1; bad <= CLASSES; bad += CLASSES + 1)
        for (int layout = 0; layout < 3; layout++) {
            d.target[5] = bad;               /* token 2 of sequence 2 */
            weft_tensor *y = layout ? weft_ragged_ints(w, d.target, &lengths) :
                                      weft_ints(w, d.target, WEFT_SHAPE(TOKENS));
            weft_cross_entropy(laid(w, d.logits, CLASSES, layout), y, NULL);
            FAILS(w, WEFT_EARG, layout ? "token 2 of sequence 2; expected 0" : "row 5; expected 0 .. 4");
        }
    weft_tensor *x = weft_zeros(w, WEFT_SHAPE(4, 3)), *y = weft_ints(w, NULL, WEFT_SHAPE(4)), *g[2];
    weft_tensor *constant = weft_full(w, 1, WEFT_SHAPE(3));
    weft_loss l = weft_cross_entropy(x, y, &(weft_cross_entropy_opts){ .class_weight = constant });
    weft_set_grad_enabled(w, false);
    weft_gradients(l.sum, (weft_tensor *[]){ x, constant }, 2, g);
    weft_set_grad_enabled(w, true);
    FAILS(w, WEFT_EARG, "constants");
}

/* ---- derivatives; the inputs are kept away from the corners of abs, huber and max ---- */
typedef struct {
    kind k;
    int layout;
    bool quantile, spare;
    const weft_cross_entropy_opts *entropy;
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
    double first = weft_gradcheck(value, x, n, 1, c), second = weft_gradcheck(value, x, n, 2, c);
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

CPU_TEST(losses_entropy, gradients_match_central_differences, .timeout = 60)
{
    if (sizeof(weft_real) != 8)
        return;                                  /* differences of floats prove nothing */
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
}

CPU_TEST(losses_entropy, entropy_gradients_match_central_differences, .timeout = 60)
{
    if (sizeof(weft_real) != 8)
        return;
    for (int how = 0; how < 16; how++)
        for (int layout = 0; layout < 3; layout++) {
            ce_data d = ce_data_of(ce_of(how));
            for (int i = 0; i < TOKENS * CLASSES; i++)
                d.logits[i] = isnan(d.logits[i]) ? 1 : d.logits[i];
            weft_cross_entropy_opts o = ce_opts(w, ce_of(how), &d, layout);
            case_ c = { .layout = layout, .entropy = &o };
            c.classes =
                layout ? weft_ragged_ints(w, d.target, &lengths) : weft_ints(w, d.target, WEFT_SHAPE(TOKENS));
            weft_tensor *x[] = { laid(w, d.logits, CLASSES, layout), c.classes, c.classes };
            derivatives(w, "cross entropy", &c, x, 1);
        }
}
