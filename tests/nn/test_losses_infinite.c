/* test_losses_infinite.c - tests infinite logits and predictions whose weight, mask or smoothing is 0. Values
 * and gradients equal those of the loss without the term. Targets and variances out of range are errors that
 * name their position. */
#include "core/inside.h"
#include "tests/check.h"

static const weft_real inf = (weft_real)INFINITY, nan_ = (weft_real)NAN;

/* The gradient of the sum by x, unrecorded and recorded, and the value. */
static void holds(const char *name, weft_loss l, weft_tensor *x, double sum, const weft_real *slope)
{
    weft *w = weft_context_of(x);
    weft_real got = weft_item(l.sum), want = (weft_real)sum;
    cr_assert(is_close(name, &got, &want, 1, TOL(1e-12, 3e-6)), "%s on %s", name, weft_device_name(w));
    for (int recorded = 0; recorded < 2; recorded++) {
        weft_tensor *g;
        (recorded ? weft_gradients_recorded : weft_gradients)(l.sum, &x, 1, &g);
        OK(w);
        cr_assert(is_close(name, numbers(g), slope, weft_numel(x), TOL(1e-12, 3e-6)),
                  "gradient of %s, recorded %d, on %s", name, recorded, weft_device_name(w));
    }
}

/* ---- cross entropy: two rows of three classes, one of them excluded ---- */
enum { ROWS = 2, CLASSES = 3 };
typedef struct {
    const char *name;
    weft_real logits[ROWS * CLASSES], weight[CLASSES];
    double smoothing, sum;
    weft_real slope[ROWS * CLASSES];
} entropy;

#define LOG2 0.69314718055994531
/* weights 0 of the forbidden class, with smoothing a: the sum of both rows is that of two classes */
static const entropy entropies[] = {
    { "a forbidden class", { 0, 0, -INFINITY, 0, 0, -INFINITY }, { 1, 1, 1 }, 0, 2 * LOG2,
      { (weft_real)-.5, .5, 0, .5, (weft_real)-.5, 0 } },
    { "its weight 0, smoothing", { 0, 0, -INFINITY, 0, 0, -INFINITY }, { 1, 1, 0 }, .3,
      2 * (.7 + .3 * 2 / 3) * LOG2,
      { (weft_real)-.35, (weft_real).35, 0, (weft_real).35, (weft_real)-.35, 0 } },
    { "a target of weight 0", { -INFINITY, 0, 0, 0, 0, -INFINITY }, { 0, 1, 1 }, 0, LOG2,
      { 0, 0, 0, .5, (weft_real)-.5, 0 } },
    { "smoothing 1, a target of weight 0", { -INFINITY, 0, 0, -INFINITY, 0, 0 }, { 0, 1, 1 }, 1,
      2 * 2 / 3. * LOG2, { 0 } },
    { "nothing but -inf, of weight 0", { -INFINITY, -INFINITY, -INFINITY, 0, 0, -INFINITY }, { 0, 1, 0 }, 0,
      LOG2, { 0, 0, 0, .5, (weft_real)-.5, 0 } },
};

TABLE_TEST(losses_infinite, infinite_logits_give_the_limit, .init = unchecked)
{
    const int32_t classes[] = { 0, 1 };
    for (int i = 0; i < COUNT(entropies); i++) {
        const entropy *e = &entropies[i];
        weft_tensor *x = weft_reals(w, e->logits, WEFT_SHAPE(ROWS, CLASSES));
        weft_cross_entropy_opts o = { .class_weight = weft_reals(w, e->weight, WEFT_SHAPE(CLASSES)),
                                      .label_smoothing = e->smoothing };
        holds(e->name, weft_cross_entropy(x, weft_ints(w, classes, WEFT_SHAPE(ROWS)), &o), x, e->sum,
              e->slope);
        weft_clear(w);
    }
}

/* Many classes, so that vector loops and their remainders run. */
TABLE_TEST(losses_infinite, infinite_logits_work_with_many_classes, .init = unchecked)
{
    enum { MANY = 67 };
    weft_real logits[MANY], weight[MANY], slope[MANY];
    const int32_t class_ = 3;
    for (int k = 0; k < MANY; k++) {
        bool forbidden = k % 5 == 4;
        logits[k] = forbidden ? -inf : 0;
        weight[k] = !forbidden;
        slope[k] = forbidden ? 0 : (weft_real)((.5 + .5 * 54 / MANY) / 54 - .5 / MANY - (k == 3) * .5);
    }
    weft_tensor *x = weft_reals(w, logits, WEFT_SHAPE(1, MANY));
    weft_cross_entropy_opts o = { .class_weight = weft_reals(w, weight, WEFT_SHAPE(MANY)),
                                  .label_smoothing = .5 };
    holds("many", weft_cross_entropy(x, weft_ints(w, &class_, WEFT_SHAPE(1)), &o), x,
          (.5 + .5 * 54 / MANY) * log(54), slope);
}

/* ---- element by element ---- */
TABLE_TEST(losses_infinite, infinite_binary_logits_give_the_limit, .init = unchecked)
{
    weft_tensor *x = weft_reals(w, (weft_real[]){ inf, -inf, 0 }, WEFT_SHAPE(3)),
                *y = weft_reals(w, (weft_real[]){ 1, 0, 1 }, WEFT_SHAPE(3));
    holds("bce", weft_bce_with_logits(x, y, NULL), x, LOG2, (weft_real[]){ 0, 0, (weft_real)-.5 });
    x = weft_reals(w, (weft_real[]){ inf, -inf }, WEFT_SHAPE(2));
    y = weft_reals(w, (weft_real[]){ 0, 1 }, WEFT_SHAPE(2));
    cr_assert_eq(weft_item(weft_bce_with_logits(x, y, NULL).sum), inf);
}

static weft_loss nll(weft_tensor *x, weft_tensor *y, const weft_loss_opts *o)
{
    return weft_gaussian_nll_loss(
        x, y, weft_reals(weft_context_of(x), (weft_real[]){ 1, 1, inf, 0 }, WEFT_SHAPE(4)), 0, o);
}
static weft_loss huber(weft_tensor *x, weft_tensor *y, const weft_loss_opts *o)
{
    return weft_huber_loss(x, y, 1, o);
}
static weft_loss quantile(weft_tensor *x, weft_tensor *y, const weft_loss_opts *o)
{
    static const weft_real half[] = { .5 };
    weft_loss_opts columns = { NULL, weft_reshape(o->weights, WEFT_SHAPE(4, 1)) };
    return weft_quantile_loss(weft_reshape(x, WEFT_SHAPE(4, 1)), y, half, 1, false, &columns);
}

TABLE_TEST(losses_infinite, weight_0_hides_infinity, .init = unchecked)
{
    const struct {
        const char *name;
        weft_loss (*of)(weft_tensor *, weft_tensor *, const weft_loss_opts *);
    } kinds[] = { { "mse", weft_mse_loss },        { "mae", weft_l1_loss }, { "huber", huber },
                  { "bce", weft_bce_with_logits }, { "gaussian_nll", nll }, { "smape", weft_smape },
                  { "mape", weft_mape },           { "quantile", quantile } };
    for (int i = 0; i < COUNT(kinds); i++) {
        weft_tensor *x = weft_reals(w, (weft_real[]){ 3, inf, -inf, nan_ }, WEFT_SHAPE(4)),
                    *y = weft_reals(w, (weft_real[]){ 1, inf, 0, 1 }, WEFT_SHAPE(4)), *g;
        weft_loss_opts o = { .weights = weft_reals(w, (weft_real[]){ 1, 0, 0, 0 }, WEFT_SHAPE(4)) };
        weft_loss l = kinds[i].of(x, y, &o);
        cr_assert(isfinite(weft_item(l.sum)), "%s on %s: %g", kinds[i].name, weft_device_name(w),
                  (double)weft_item(l.sum));
        for (int recorded = 0; recorded < 2; recorded++) {
            (recorded ? weft_gradients_recorded : weft_gradients)(l.sum, &x, 1, &g);
            const weft_real *v = numbers(g);
            cr_assert(isfinite(v[0]) && v[1] == 0 && v[2] == 0 && v[3] == 0, "%s on %s: %g %g %g %g",
                      kinds[i].name, weft_device_name(w), (double)v[0], (double)v[1], (double)v[2],
                      (double)v[3]);
        }
        OK(w);
        weft_clear(w);
    }
}

/* ---- out of range ---- */
TABLE_TEST(losses_infinite, negative_variance_is_refused)
{
    weft_tensor *x = weft_zeros(w, WEFT_SHAPE(4)),
                *v = weft_reals(w, (weft_real[]){ 1, 0, (weft_real)-.5, -2 }, WEFT_SHAPE(4));
    weft_gaussian_nll_loss(x, x, v, 0, NULL);
    weft_synchronize(w);
    cr_assert_eq(weft_error_code(w), WEFT_EARG);
    if (w->dev.k->synchronous)
        cr_assert(strstr(weft_error_message(w), "variance: element 2 is -0.5; expected 0 .. inf"),
                  "%s", weft_error_message(w));
    weft_recover(w);
}

TABLE_TEST(losses_infinite, binary_target_outside_0_and_1_is_refused)
{
    for (int i = 0; i < 2; i++) {
        weft_lengths l = { .n = 2, .len = (int32_t[]){ 1, 3 } };
        weft_real target[] = { 0, 1, i ? 2 : (weft_real)-.25, 1 };
        weft_tensor *x = weft_to_layout(weft_ragged(w, target, 1, &l), WEFT_PACKED);
        weft_bce_with_logits(weft_ragged(w, (weft_real[4]){ 0 }, 1, &l), x, NULL);
        weft_synchronize(w);
        cr_assert_eq(weft_error_code(w), WEFT_EARG);
        const char *found = strstr(weft_error_message(w), i ? " (sequence 1, position 1) is 2; expected" :
                                                              " (sequence 1, position 1) is -0.25; expected");
        cr_assert(found || !w->dev.k->synchronous, "%s", weft_error_message(w));
        weft_recover(w);
    }
}

TABLE_TEST(losses_infinite, limits_and_masked_targets_are_accepted)
{
    weft_real target[] = { 0, 1, 7, (weft_real).5 }, variance[] = { 1, 0, -3, 2 };
    weft_loss_opts o = { .mask = weft_reals(w, (weft_real[]){ 1, 1, 0, 1 }, WEFT_SHAPE(4)) };
    weft_tensor *x = weft_zeros(w, WEFT_SHAPE(4));
    weft_loss l = weft_bce_with_logits(x, weft_reals(w, target, WEFT_SHAPE(4)), &o);
    cr_assert(fabs(weft_item(l.sum) - 3 * log(2)) < 1e-5 && weft_item(l.weight) == 3);
    l = weft_gaussian_nll_loss(x, x, weft_reals(w, variance, WEFT_SHAPE(4)), 0, &o);
    cr_assert(isfinite(weft_item(l.sum)) && weft_ok(w), "%s", weft_error_message(w));
}
