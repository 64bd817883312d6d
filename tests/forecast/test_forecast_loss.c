/* test_forecast_loss.c - tests forecast losses against worked examples, padded and ragged, with NaN in the
 * padding. Also tests normalisation, the point prediction and the metrics. */
#include "tests/check.h"

enum { N = 2, T = 4, QUANTILES = 3 };
#define NAN_ (weft_real)NAN
static const weft_lengths lengths = { .n = N, .len = (int32_t[]){ 3, 1 } };
static const weft_real predicted[N * T] = { 1, 2, 3, 4, 0, 1, 5, 9 },
                                     target[N * T] = { 2, 2, 1, 0, 1, 0, 0, 0 },
                                     weights[N * T] = { 2, 1, 1, 1, .5, 1, 1, 1 };
static const weft_real quantiles[QUANTILES] = { (weft_real).1, (weft_real).5, (weft_real).9 };

/* Losses of the original for each kind: over all elements, over real ones, and both with weights. */
static const struct { weft_forecast_kind kind; double all, masked, weighted, both;
} worked[] = {
    { WEFT_FORECAST_MSE, 16.125, 1.5, 16.1875, 1.625 },
    { WEFT_FORECAST_MAE, 2.875, 1, 2.9375, 1.125 },
    { WEFT_FORECAST_HUBER, 2.4375, .625, 2.46875, .6875 },
    { WEFT_FORECAST_QUANTILE, 4.85, 1.9 / 3, 58.9 / 12, 4.15 / 6 },
    { WEFT_FORECAST_SMAPE, 35. / 24, 11. / 12, 17. / 12, 5. / 6 },
};

static bool behind(int i) { return i % T >= lengths.len[i / T]; }
static weft_real at(const weft_real *x, int i, bool poison) { return poison && behind(i) ? NAN_ : x[i]; }

/* One of the arrays as [N, T, 1]; of quantiles [N, T, QUANTILES] with x - 1, x, x + 1; NaN in the pads, if
 * so wished. */
static weft_tensor *plain(weft *w, const weft_real *x, int wide, bool poison)
{
    weft_real v[N * T * QUANTILES];
    for (int i = 0; i < N * T * wide; i++)
        v[i] = at(x, i / wide, poison) + (wide > 1 ? (weft_real)(i % wide - 1) : 0);
    return weft_reals(w, v, WEFT_SHAPE(N, T, wide));
}

typedef struct { weft_tensor *p, *y, *w; weft_forecast_loss_opts o; } input;

static input input_of(weft *w, weft_forecast_kind kind, bool poison, bool weighted, int layout)
{
    int wide = kind == WEFT_FORECAST_QUANTILE ? QUANTILES : 1;
    input in = {
        plain(w, predicted, wide, poison),
        plain(w, target, 1, poison),
        weighted ? plain(w, weights, 1, poison) : NULL,
        { .kind = kind, .quantiles = quantiles, .n = QUANTILES, .per_batch = kind == WEFT_FORECAST_QUANTILE }
    };
    if (layout) {
        in.p = weft_pack_padded_sequence(in.p, &lengths, WEFT_ALIGN_LEFT);
        in.y = weft_to_layout(weft_pack_padded_sequence(in.y, &lengths, WEFT_ALIGN_LEFT), WEFT_CONCAT);
        in.w = weighted ? weft_pack_padded_sequence(in.w, &lengths, WEFT_ALIGN_LEFT) : NULL;
    }
    in.o.weights = in.w;
    return in;
}

static void one_worked(weft *w, int row, bool masked, bool weighted, int layout)
{
    input in = input_of(w, worked[row].kind, masked, weighted, layout);
    in.o.no_loss_masking = !masked;
    weft_tensor *g;
    weft_loss l = weft_forecast_loss(in.p, in.y, &lengths, &in.o);
    weft_real got = weft_item(weft_mean_loss(l));
    weft_real want = (weft_real)(masked   ? weighted ? worked[row].both : worked[row].masked :
                                 weighted ? worked[row].weighted :
                                            worked[row].all);
    cr_assert(is_close("loss", &got, &want, 1, TOL(1e-14, 2e-6)),
              "kind %d, masked %d, weighted %d, layout %d: %s", (int)worked[row].kind, masked, weighted,
              layout, weft_error_message(w));
    weft_gradients(l.sum, &in.p, 1, &g);
    const weft_real *d = numbers(g);
    int64_t wide = weft_size(in.p, -1);
    for (int64_t i = 0; i < weft_numel(g); i++)
        cr_assert(layout || !masked || !behind((int)(i / wide)) ? isfinite(d[i]) : d[i] == 0,
                  "gradient %lld is %g", (long long)i, (double)d[i]);
    weft_clear(w);
}

TABLE_TEST(forecast_loss, matches_worked_examples)
{
    for (int row = 0; row < COUNT(worked); row++)
        for (int how = 0; how < 4; how++)
            /* ragged input has no padding to count */
            for (int layout = 0; layout <= (how & 1); layout++)
                one_worked(w, row, how & 1, how & 2, layout);
}

/* The original divides by all elements, and gives NaN as soon as a pad's target is 0; here 3.5 over the 4
 * real ones. */
TABLE_TEST(forecast_loss, mape_matches_a_worked_example)
{
    for (int layout = 0; layout < 2; layout++) {
        input in = input_of(w, WEFT_FORECAST_MAPE, true, false, layout);
        cr_assert(weft_item(weft_mean_loss(weft_forecast_loss(in.p, in.y, layout ? NULL : &lengths,
                                                              &in.o))) == (weft_real).875);
        in = input_of(w, WEFT_FORECAST_MAPE, false, false, 0);
        cr_assert(isinf(weft_item(weft_forecast_loss(in.p, in.y, NULL, &in.o).sum)));
    }
}

/* Divided by real elements, a quantile loss does not depend on how long the sequences are. */
TABLE_TEST(forecast_loss, quantile_weights_match_worked_examples)
{
    for (int layout = 0; layout < 2; layout++) {
        input in = input_of(w, WEFT_FORECAST_QUANTILE, true, false, layout);
        weft_loss batch = weft_forecast_loss(in.p, in.y, &lengths, &in.o);
        in.o.per_batch = false;
        weft_loss mean = weft_forecast_loss(in.p, in.y, &lengths, &in.o);
        cr_assert(weft_item(batch.weight) == N * QUANTILES && weft_item(mean.weight) == 4 * QUANTILES &&
                  weft_item(batch.sum) == weft_item(mean.sum));
    }
    weft_tensor *p = weft_full(w, 1, WEFT_SHAPE(2, 3, 7)), *y = weft_full(w, 3, WEFT_SHAPE(2, 3));
    weft_real usual = weft_item(
        weft_forecast_loss(p, y, NULL, &(weft_forecast_loss_opts){ .kind = WEFT_FORECAST_QUANTILE }).sum);
    weft_real want = (weft_real)(6 * 2 * (.02 + .1 + .25 + .5 + .75 + .9 + .98));
    close_to("the usual quantiles", &usual, &want, 1, TOL(1e-14, 2e-6));
}

static double loss_sum(weft_tensor *p, weft_tensor *y, const weft_lengths *l, weft_forecast_loss_opts o)
{
    return weft_item(weft_forecast_loss(p, y, l, &o).sum);
}

TABLE_TEST(forecast_loss, axes_of_extent_one_are_optional)
{
    weft_lengths l = { .n = N, .len = (int32_t[]){ 3, 0 } };
    weft_tensor *p = weft_reals(w, predicted, WEFT_SHAPE(N, T)), *p1 = weft_reshape(p, WEFT_SHAPE(N, T, 1)),
                *y = weft_reals(w, target, WEFT_SHAPE(N, T));
    weft_tensor *y1 = weft_reshape(y, WEFT_SHAPE(N, T, 1)), *f = weft_reals(w, weights, WEFT_SHAPE(N, T)),
                *per = weft_reals(w, (weft_real[]){ 3, 5 }, WEFT_SHAPE(N, 1));
    weft_tensor *forms[][2] = { { p, y }, { p1, y }, { p, y1 }, { p1, y1 } };
    for (int i = 0; i < 4; i++) {
        weft_loss loss = weft_forecast_loss(forms[i][0], forms[i][1], &l, NULL);
        cr_assert(weft_item(loss.sum) == 5 && weft_item(loss.weight) == 3, "form %d: %s", i,
                  weft_error_message(w));
        cr_assert_eq(loss_sum(forms[i][0], forms[i][1], &l, (weft_forecast_loss_opts){ .weights = f }), 6);
        cr_assert_eq(loss_sum(forms[i][0], forms[i][1], &l, (weft_forecast_loss_opts){ .weights = per }), 15);
    }
    weft_tensor *r = weft_pack_padded_sequence(p, &l, WEFT_ALIGN_LEFT),
                *r1 = weft_pack_padded_sequence(p1, &l, WEFT_ALIGN_LEFT),
                *of_y = weft_pack_padded_sequence(y, &l, WEFT_ALIGN_LEFT);
    cr_assert(weft_item(weft_forecast_loss(r, of_y, NULL, NULL).sum) == 5 &&
              weft_item(weft_forecast_loss(r1, of_y, &l, NULL).weight) == 3);
    weft_tensor *of_f = weft_pack_padded_sequence(f, &l, WEFT_ALIGN_LEFT);
    cr_assert_eq(loss_sum(r1, of_y, NULL, (weft_forecast_loss_opts){ .weights = of_f }), 6);
    l.len = (int32_t[]){ 0, 0 };
    weft_loss nothing = weft_forecast_loss(p, y, &l, NULL);
    cr_assert(weft_item(nothing.sum) == 0 && weft_item(nothing.weight) == 0 &&
              weft_item(weft_mean_loss(nothing)) == 0);
    cr_assert(weft_item(weft_forecast_loss(p, y, NULL, NULL).weight) == N * T, "every step counts");
    weft_tensor *two = weft_zeros(w, WEFT_SHAPE(N, T, 2)), *twos = weft_full(w, 2, WEFT_SHAPE(N, T, 2));
    cr_assert(weft_item(weft_forecast_loss(two, twos, &lengths, NULL).weight) == 8, "every output counts");
    const weft_forecast_loss_opts huber = { .kind = WEFT_FORECAST_HUBER, .delta = 4 };
    cr_assert_eq(loss_sum(two, twos, &lengths, huber), 16);
}

TABLE_TEST(forecast_loss, invalid_arguments_are_refused)
{
    weft_lengths bad = { .n = N, .len = (int32_t[]){ 3, 5 } }, few = { .n = 1, .len = (int32_t[]){ 3 } },
                 other = { .n = N, .len = (int32_t[]){ 3, 2 } };
    weft_real falling[] = { (weft_real).5, (weft_real).5, (weft_real).1 };
#define REFUSED(status, part, change)                                             \
    do {                                                                          \
        input in = input_of(w, WEFT_FORECAST_QUANTILE, false, true, 0);           \
        const weft_lengths *l = &lengths;                                         \
        change;                                                                   \
        cr_assert(weft_numel(weft_forecast_loss(in.p, in.y, l, &in.o).sum) == 0); \
        FAILS(w, status, part);                                                   \
    } while (0)
    REFUSED(WEFT_ESHAPE, "forecast_loss: sequence 1 has length 5; expected 0 .. 4", l = &bad);
    REFUSED(WEFT_ESHAPE, "forecast_loss: sequence 1 has length 5", (l = &bad, in.o.no_loss_masking = true));
    REFUSED(WEFT_ESHAPE, "forecast_loss: 1 lengths for 2 sequences", l = &few);
    REFUSED(WEFT_ESHAPE, "forecast_loss: sequence 1 of predicted has length 1; expected 2",
            (in = input_of(w, WEFT_FORECAST_MSE, false, false, 1), l = &other));
    REFUSED(WEFT_EARG, "forecast_loss: quantile 2 is 0.1, after 0.5", in.o.quantiles = falling);
    REFUSED(WEFT_ESHAPE, ", 2 quantiles", in.o.n = 2);
    REFUSED(WEFT_ESHAPE, ", 7 quantiles", in.o.n = 0);
    REFUSED(WEFT_ESHAPE, ", 3 quantiles", in.o.quantiles = NULL);
    REFUSED(WEFT_EARG, "forecast_loss: kind 6", in.o.kind = (weft_forecast_kind)6);
    REFUSED(WEFT_EARG, "huber_loss: delta -1",
            (in = input_of(w, WEFT_FORECAST_HUBER, false, false, 0), in.o.delta = -1));
    REFUSED(WEFT_EARG, "forecast_loss: target is NULL", in.y = NULL);
    REFUSED(WEFT_EARG, "forecast_loss: predicted is NULL", in.p = NULL);
    REFUSED(WEFT_ESHAPE, "forecast_loss: predicted [2]", in.p = weft_zeros(w, WEFT_SHAPE(2)));
    REFUSED(WEFT_ESHAPE, "forecast_loss: target [2, 4, 1, 1]", in.y = weft_zeros(w, WEFT_SHAPE(2, 4, 1, 1)));
    REFUSED(WEFT_ESHAPE, "weights [3, 1, 1]; expected a shape that broadcasts",
            in.o.weights = weft_zeros(w, WEFT_SHAPE(3, 1)));
    REFUSED(WEFT_ESHAPE, "both ragged or both plain",
            in.p = weft_pack_padded_sequence(in.p, l, WEFT_ALIGN_LEFT));
    weft_point_prediction(weft_zeros(w, WEFT_SHAPE(2, 3)), 2);
    FAILS(w, WEFT_ESHAPE, "point_prediction: [2, 3]: expected [.., 2], a column for each quantile");
    cr_assert_not_null(weft_forecast_loss(NULL, NULL, NULL, NULL).sum);
    cr_assert_not_null(weft_point_prediction(NULL, 1));
}

/* ---- metrics ---- */
TABLE_TEST(forecast_loss, point_prediction_takes_the_middle_quantile)
{
    for (int layout = 0; layout < 2; layout++) {
        input in = input_of(w, WEFT_FORECAST_QUANTILE, false, false, layout);
        weft_tensor *x = weft_point_prediction(in.p, QUANTILES),
                    *even = weft_point_prediction(weft_slice(in.p, -1, 0, 2), 2);
        weft_tensor *want = plain(w, predicted, 1, false);
        want = layout ? weft_pack_padded_sequence(want, &lengths, WEFT_ALIGN_LEFT) : want;
        cr_assert(weft_size(x, -1) == 1 && weft_rank(x) == weft_rank(want));
        same_bits("middle", numbers(x), numbers(want), weft_numel(want));
        same_bits("upper middle", numbers(even), numbers(want), weft_numel(want));
    }
}

/* Two batches of unlike size: every real element counts the same, and pads nothing. */
TABLE_TEST(forecast_loss, meters_match_worked_examples)
{
    for (int layout = 0; layout < 2; layout++) {
        weft_forecast_meters m = { 0 };
        cr_assert(isnan(weft_meter_mean(&m.mse)));
        input in = input_of(w, WEFT_FORECAST_MSE, true, false, layout);
        int64_t tape = weft_usage_of(w).tape;
        weft_forecast_meters_add(&m, in.p, in.y, &lengths);
        weft_forecast_meters_add(&m, weft_full(w, 2, WEFT_SHAPE(1, 1)), weft_full(w, 5, WEFT_SHAPE(1, 1)),
                                 NULL);
        weft_forecast_meters_add(NULL, in.p, in.y, &lengths);
        cr_assert(weft_usage_of(w).tape == tape, "metrics are not recorded");
        double got[] = { sqrt(weft_meter_mean(&m.mse)), weft_meter_mean(&m.mae),
                         weft_meter_mean(&m.smape), weft_meter_mean(&m.mape) };
        double want[] = { sqrt((6 + 9) / 5.), (4 + 3) / 5., (11. / 3 + 6. / 7) / 5, (3.5 + .6) / 5 };
        for (int i = 0; i < 4; i++)
            cr_assert(fabs(got[i] - want[i]) < TOL(1e-14, 1e-6), "metric %d is %.9g, expected %.9g", i,
                      got[i], want[i]);
        weft_forecast_meters_add(&m, in.p, NULL, NULL);
        FAILS(w, WEFT_EARG, "target is NULL");
        cr_assert(sqrt(weft_meter_mean(&m.mse)) == got[0], "nothing is added on error");
        weft_clear(w);
    }
}
