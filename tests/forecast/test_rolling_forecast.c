/* test_rolling_forecast.c - tests forecasts of any length against a plain loop over rows, with true values or
 * predictions as their past. Also tests quantiles, constant memory and invalid models. */
#include "series_data.h"

enum { CONTEXT = 5, HORIZON = 3 };

static weft_features *features_of(weft *w, const weft_frame *f, const weft_transform *t, int n)
{
    weft_features_opts o = y_by_u(CONTEXT, HORIZON, t, n);
    o.past = WEFT_NAMES("p");
    weft_features *x = weft_features_new(w, "x", &o);
    weft_features_fit(x, f);
    OK(w);
    return x;
}

/* A model that is a formula: the mean of the past targets, half of the last one, p's last, and the row's
 * own u; quantile q is q more. */
typedef struct { int quantiles; int64_t calls, tape, bytes; bool training; bool pack; } formula;

static double predicted(const double *y, const double *p, int64_t n, double u)
{
    double mean = 0;
    for (int64_t i = 0; i < n; i++)
        mean += y[i] / (double)n;
    return .3 * mean + .5 * y[n - 1] + .1 * p[n - 1] + .2 * u;
}

static weft_tensor *model(weft_series_batch s, void *user)
{
    formula *m = user;
    weft *w = weft_context_of(s.past);
    weft_lengths past = weft_lengths_of(s.past), future = weft_lengths_of(s.future);
    weft_real x[CONTEXT * 3], u[HORIZON], out[HORIZON * 8];
    double y[CONTEXT], p[CONTEXT];
    cr_assert(past.n == 1 && future.n == 1 && past.len[0] <= CONTEXT && future.len[0] <= HORIZON &&
              weft_size(s.past, 1) == 3 && weft_size(s.future, 1) == 1);
    weft_read(s.past, x, (size_t)past.len[0] * 3 * sizeof *x);
    weft_read(s.future, u, (size_t)future.len[0] * sizeof *u);
    for (int i = 0; i < past.len[0]; i++) {
        p[i] = (double)x[3 * i + 1];
        y[i] = (double)x[3 * i + 2];
    }
    for (int i = 0; i < future.len[0]; i++)
        for (int q = 0; q < m->quantiles; q++)
            out[i * m->quantiles + q] =
                (weft_real)(predicted(y, p, past.len[0], (double)u[i]) + q - m->quantiles / 2);
    weft_tensor *t =
        weft_ragged(w, out, m->quantiles, &(weft_lengths){ .n = 1, .len = future.len, .id = future.id });
    for (int i = 0; i < 50; i++)                 /* work that would add up */
        t = weft_add(t, weft_zeros(w, WEFT_SHAPE(1, 1)));
    m->calls++;
    m->tape += weft_usage_of(w).tape;
    m->bytes = weft_usage_of(w).host_bytes;
    m->training |= weft_set_training(w, false);
    return m->pack ? weft_to_layout(t, WEFT_PACKED) : t;
}

/* The same forecast by a loop over rows, of a target with differences taken or not; truth: known ones
 * where they are no NaN. */
static void by_hand(const weft_frame *f, int64_t s, int64_t from, bool truth, bool delta, double *out)
{
    int64_t n = f->start[s + 1] - f->start[s];
    double z[100], raw[100];
    const double *y = weft_frame_column(f, "y") + f->start[s], *u = weft_frame_column(f, "u") + f->start[s],
                 *p = weft_frame_column(f, "p") + f->start[s];
    memcpy(raw, y, (size_t)n * sizeof *raw);
    for (int64_t i = 0; i < n; i++)
        z[i] = delta ? i ? y[i] - y[i - 1] : 0 : y[i];
    for (int64_t at = from; at < n; at += HORIZON) {
        int64_t begin = at > CONTEXT ? at - CONTEXT : 0, end = at + HORIZON < n ? at + HORIZON : n;
        for (int64_t i = at; i < end; i++) {
            double d = (double)(weft_real)predicted(z + begin, p + begin, at - begin, u[i]);
            out[i - from] = delta ? (i == at ? raw[at - 1] : out[i - from - 1]) + d : d;
            if (!truth || isnan(z[i]))
                z[i] = d;
        }
        for (int64_t i = at; i < end; i++)
            if (!truth || isnan(raw[i]))
                raw[i] = out[i - from];
    }
}

TABLE_TEST(rolling_forecast, matches_a_plain_loop)
{
    static const weft_transform delta = { .column = "y", .kind = WEFT_DELTA };
    for (int k = 0; k < 24; k++) {
        scoped_frame f = series_random(2, (int64_t[]){ 12, 20 + (int64_t)dice(20) });
        weft_features *x = features_of(w, &f, &delta, k % 2);
        int64_t n = f.start[2] - f.start[1], from = 1 + (int64_t)dice(12);
        bool truth = k / 2 % 2;
        /* the truth is known for a while, and here and there */
        for (int64_t i = from + 4; truth && i < n; i++)
            if (i > from + 9 || dice(3) == 0)
                weft_frame_column(&f, "y")[f.start[1] + i] = (double)NAN;
        for (int64_t i = from; !truth && k % 3 && i < n; i++)         /* existing values are not read */
            weft_frame_column(&f, "y")[f.start[1] + i] = (double)NAN;
        double out[60], want[60];
        formula m = { .quantiles = 1, .pack = k % 3 == 0 };
        weft_rolling_forecast(x, &f, 1, from, model, &m,
                              &(weft_rolling_forecast_opts){ .true_past = truth }, out);
        OK(w);
        by_hand(&f, 1, from, truth, k % 2, want);
        for (int64_t i = 0; i < n - from; i++)
            cr_assert(fabs(out[i] - want[i]) < TOL(1e-10, 1e-4) * fmax(1, fabs(want[i])),
                      "%d: row %lld: %g, expected %g", k, (long long)i, out[i], want[i]);
        cr_assert(m.calls == (n - from + HORIZON - 1) / HORIZON && m.tape == 0 && !m.training);
        cr_assert(weft_set_training(w, true) && weft_set_grad_enabled(w, true));        /* as they were */
    }
}

CPU_TEST(rolling_forecast, rows_can_be_limited_and_quantiles_kept)
{
    scoped_frame f = series_random(1, (int64_t[]){ 40 });
    weft_features *x = features_of(w, &f, NULL, 0);
    double one[40], part[10], point[10], all[30];
    formula m = { .quantiles = 1 }, three = { .quantiles = 3 };
    weft_rolling_forecast(x, &f, 0, 8, model, &m, NULL, one);
    weft_rolling_forecast(x, &f, 0, 8, model, &m, &(weft_rolling_forecast_opts){ .rows = 10 }, part);
    weft_rolling_forecast(x, &f, 0, 8, model, &three,
                          &(weft_rolling_forecast_opts){ .rows = 10, .quantiles = 3, .all = all }, point);
    OK(w);
    for (int i = 0; i < 10; i++)                 /* the middle quantile is fed back */
        cr_assert(part[i] == one[i] && point[i] == one[i] && all[3 * i + 1] == one[i] &&
                  fabs(all[3 * i] - one[i] + 1) < 1e-5 && fabs(all[3 * i + 2] - one[i] - 1) < 1e-5);
    weft_rolling_forecast(x, &f, 0, 40, model, &m, NULL, one);     /* of nothing */
    OK(w);
}

/* Two targets: the first's prediction is its own last value, the second's the mean of both last ones;
 * quantiles one apart. */
static weft_tensor *of_two(weft_series_batch s, void *user)
{
    weft_lengths past = weft_lengths_of(s.past), future = weft_lengths_of(s.future);
    weft_real x[CONTEXT * 3], out[HORIZON * 6];
    weft_read(s.past, x, (size_t)past.len[0] * 3 * sizeof *x);
    const weft_real *last = x + 3 * (past.len[0] - 1);           /* u, y, v */
    for (int i = 0; i < future.len[0]; i++)
        for (int q = 0; q < 3; q++)
            out[6 * i + q] = last[1] + (weft_real)(q - 1),
                        out[6 * i + 3 + q] = (last[1] + last[2]) / 2 + (weft_real)(q - 1);
    return (void)user,
           weft_ragged(weft_context_of(s.past), out, 6, &(weft_lengths){ .n = 1, .len = future.len });
}

CPU_TEST(rolling_forecast, supports_several_targets)
{
    enum { ROWS = 20, FROM = 6, LEFT = ROWS - FROM };
    const weft_transform t[] = { { .column = "v",
                                   .kind = WEFT_FIXED_POLYNOMIAL,
                                   .degree = 0,
                                   .a = (double[]){ 100 },
                                   .depends_on = "u" } };
    weft_features_opts o = y_by_u(CONTEXT, HORIZON, t, 1);
    o.target = WEFT_NAMES("y", "v");
    scoped_frame f = series_random(1, (int64_t[]){ ROWS });
    weft_features *x = weft_features_new(w, "x", &o);
    weft_features_fit(x, &f);
    double out[2 * LEFT], all[6 * LEFT], y = weft_frame_column(&f, "y")[FROM - 1],
                                         v = weft_frame_column(&f, "v")[FROM - 1] - 100;
    weft_rolling_forecast(x, &f, 0, FROM, of_two, NULL,
                          &(weft_rolling_forecast_opts){ .quantiles = 3, .all = all }, out);
    OK(w);
    for (int i = 0; i < LEFT; i++) {
        v = i % HORIZON ? v : (y + v) / 2;
        cr_assert(fabs(out[2 * i] - y) < 1e-5 && fabs(out[2 * i + 1] - (v + 100)) < 1e-4,
                  "row %d: %g and %g, expected %g and %g", i, out[2 * i], out[2 * i + 1], y, v + 100);
        for (int q = 0; q < 3; q++)
            cr_assert(fabs(all[6 * i + q] - out[2 * i] - (q - 1)) < 1e-4 &&
                      fabs(all[6 * i + 3 + q] - out[2 * i + 1] - (q - 1)) < 1e-4);
    }
    weft_windows *windows = weft_windows_new(x, "v", &f, NULL);
    weft_window_batch b = weft_windows_batch(windows, (int32_t[]){ 1, 0 }, 2, NULL);
    weft_tensor *one = weft_slice(b.target, 1, 0, 1), *other = weft_slice(b.target, 1, 1, 2);
    weft_windows_inverse_transform(windows, weft_concat((weft_tensor *[]){ one, one, other, other }, 4, 1),
                                   all);
    OK(w);
    for (int i = 0; i < 6; i++) {
        int64_t row = weft_window_at(windows, i < 3).origin + i % 3;
        for (int k = 0; k < 4; k++)
            cr_assert(fabs(all[4 * i + k] - weft_frame_column(&f, k < 2 ? "y" : "v")[row]) < 1e-4);
    }
}

CPU_TEST(rolling_forecast, runs_in_constant_memory, .init = unchecked)
{
    scoped_frame f = series_random(1, (int64_t[]){ 90 });
    weft_features *x = features_of(w, &f, NULL, 0);
    double out[90];
    formula m = { .quantiles = 1 }, n = m;
    weft_tensor *before = weft_scalar(w, 3);
    weft_rolling_forecast(x, &f, 0, 5, model, &m, &(weft_rolling_forecast_opts){ .rows = 9 }, out);
    int64_t bytes = weft_usage_of(w).host_bytes;
    weft_rolling_forecast(x, &f, 0, 5, model, &n, NULL, out);
    OK(w);
    cr_assert(n.bytes <= m.bytes && weft_usage_of(w).host_bytes == bytes && weft_item(before) == 3);
}

/* ---- several series ---- */
enum { SERIES = 5 };
typedef struct { weft_forecaster *net; int64_t calls, windows; } learned;
static weft_tensor *by_network(weft_series_batch s, void *user)
{
    learned *l = user;
    l->calls++, l->windows += weft_lengths_of(s.past).n;
    return weft_forecast_run(l->net, &s, NULL).y;
}

/* In one call each series has the bits of a single run, with the fewest model calls. */
TABLE_TEST(rolling_forecast, series_in_a_batch_match_single_runs)
{
    scoped_frame f = series_random(SERIES, (int64_t[]){ 12, 30, 9, 25, 20 });
    weft_features *x = features_of(w, &f, NULL, 0);
    learned l = { .net = weft_encoder_decoder_lstm_new(
                      weft_module_new(w, "m"), "net",
                      &(weft_encoder_decoder_lstm_opts){ .num_past_features = 3,
                                                         .num_future_features = 1,
                                                         .d_encoder = 9,
                                                         .d_decoder = 9,
                                                         .output_dim = 3 }) };
    static const int64_t order[SERIES] = { 3, 0, 4, 1, 2 }, from[SERIES] = { 2, 7, 9, 1, 8 },
                         some[SERIES] = { 0, 2, 0, 7, 0 };
    double alone[SERIES][30], together[SERIES][30], alone_all[90], all[90];
    weft_rolling_series of[SERIES];
    for (int i = 0; i < SERIES; i++) {
        of[i] = (weft_rolling_series){ order[i], from[i], some[i], together[i], i == 1 ? all : NULL };
        weft_rolling_forecast(x, &f, order[i], from[i], by_network, &l,
                              &(weft_rolling_forecast_opts){
                                  .rows = some[i], .quantiles = 3, .all = i == 1 ? alone_all : NULL },
                              alone[i]);
    }
    int64_t windows = l.windows;
    l.calls = l.windows = 0;
    weft_rolling_forecasts(x, &f, of, SERIES, by_network, &l,
                           &(weft_rolling_forecast_opts){ .quantiles = 3 });
    OK(w);
    cr_assert(l.windows == windows && l.calls == (25 - 2 + HORIZON - 1) / HORIZON);
    for (int i = 0; i < SERIES; i++) {
        int64_t rows = some[i] ? some[i] : f.start[order[i] + 1] - f.start[order[i]] - from[i];
        for (int64_t k = 0; k < rows; k++)
            cr_assert(together[i][k] == alone[i][k], "series %d, row %d: %g, alone %g", (int)order[i], (int)k,
                      together[i][k], alone[i][k]);
    }
    cr_assert(!memcmp(all, alone_all, 6 * sizeof *all));
    weft_rolling_forecasts(x, &f, NULL, 0, by_network, &l, NULL); /* no series */
    OK(w);
    of[2].from = 0;
    weft_rolling_forecasts(x, &f, of, SERIES, by_network, &l, NULL);
    FAILS(w, WEFT_EARG, "rolling_forecast: series 4 has 20 rows");
    weft_rolling_forecasts(x, &f, of, 2, by_network, &l, &(weft_rolling_forecast_opts){ .rows = 2 });
    FAILS(w, WEFT_EARG, "rolling_forecasts: rows or all in the options; expected them in each series");
}

/* ---- refused calls ---- */
static weft_tensor *too_few(weft_series_batch s, void *user)
{
    return (void)user, weft_slice(weft_plain(s.future), 0, 0, 1);
}
static weft_tensor *nothing(weft_series_batch s, void *user)  { return (void)s, (void)user, NULL; }
static weft_tensor *clears(weft_series_batch s, void *user)
{
    weft_clear(weft_context_of(s.past));
    return (void)user, s.future;
}
static weft_tensor *not_finite(weft_series_batch s, void *user)
{
    return (void)user, weft_log(weft_neg(weft_square(s.future)));
}
static weft_tensor *fails(weft_series_batch s, void *user)
{
    return (void)user, weft_matmul(s.past, s.future);
}
static weft_tensor *plain(weft_series_batch s, void *user)    { return (void)user, weft_plain(s.future); }

CPU_TEST(rolling_forecast, invalid_models_are_refused, .init = unchecked)
{
    static const struct { weft_forecast_model_fn *model; weft_status kind; const char *says;
    } bad[] = {
        { too_few, WEFT_ESHAPE, "rolling_forecast: row 5: the model returned" },
        { nothing, WEFT_EARG, "the model's tensor is NULL" },
        { clears, WEFT_EARG, "clear: called inside the model of \"rolling_forecast\"" },
        { not_finite, WEFT_ENUMERIC, "row 5, column \"y\": the model predicted" },
        { fails, WEFT_ESHAPE, "matmul" },
    };
    scoped_frame f = series_random(1, (int64_t[]){ 12 });
    weft_features *x = features_of(w, &f, NULL, 0);
    double out[12];
    for (int i = 0; i < COUNT(bad); i++) {
        weft_rolling_forecast(x, &f, 0, 5, bad[i].model, NULL, NULL, out);
        FAILS(w, bad[i].kind, bad[i].says);
        cr_assert(isnan(out[0]) && isnan(out[6]) && weft_set_training(w, true) &&
                  weft_set_grad_enabled(w, true));
    }
    weft_rolling_forecast(x, &f, 0, 5, plain, NULL, NULL, out);
    OK(w);
    cr_assert(out[2] == (double)(weft_real)weft_frame_column(&f, "u")[7]);
}

CPU_TEST(rolling_forecast, invalid_rows_are_refused)
{
    scoped_frame f = series_random(2, (int64_t[]){ 12, 0 });
    weft_features *x = features_of(w, &f, NULL, 0);
    double out[12];
    formula m = { .quantiles = 1 };
    static const struct { int64_t series, from; weft_rolling_forecast_opts o; const char *says;
    } bad[] = {
        { 2, 1, { 0 }, "series 2; expected a number from 0, below 2" },
        { 0, 0, { 0 }, "expected rows from row 1 or later" },
        { 0, 13, { 0 }, "has 12 rows" },
        { 1, 1, { 0 }, "has 0 rows" },
        { 0, 5, { .rows = 8 }, "not 8 from row 5 on" },
        { 0, 5, { .rows = -1 }, "not -1" },
        { 0, 5, { .quantiles = -1 }, "quantiles: expected 1 .. 2^20" },
    };
    for (int i = 0; i < COUNT(bad); i++) {
        weft_rolling_forecast(x, &f, bad[i].series, bad[i].from, model, &m, &bad[i].o, out);
        FAILS(w, WEFT_EARG, bad[i].says);
    }
    FAILS_AT(w, weft_rolling_forecast(x, &f, 0, 5, NULL, &m, NULL, out), WEFT_EARG, "the model is NULL");
    FAILS_AT(w, weft_rolling_forecast(x, &f, 0, 5, model, &m, NULL, NULL), WEFT_EARG, "out is NULL");
    FAILS_AT(w, weft_rolling_forecast(x, NULL, 0, 5, model, &m, NULL, out), WEFT_EARG, "the frame is NULL");
    weft_rolling_forecast(NULL, &f, 0, 5, model, &m, NULL, out);
    double *p = weft_frame_column(&f, "p"), *u = weft_frame_column(&f, "u"), *y = weft_frame_column(&f, "y"),
           kept = p[8];
    /* known only of the past: missing when the third window has it there */
    p[8] = (double)NAN;
    weft_rolling_forecast(x, &f, 0, 5, model, &m, NULL, out);
    FAILS(w, WEFT_ENUMERIC, "row 8, column \"p\": it is missing, but a window has it in its past");
    p[8] = kept;
    p[11] = (double)NAN;
    weft_rolling_forecast(x, &f, 0, 5, model, &m, NULL, out);
    OK(w);
    u[10] = (double)NAN;
    weft_rolling_forecast(x, &f, 0, 5, model, &m, NULL, out);
    FAILS(w, WEFT_ENUMERIC, "row 10, column \"u\": it is missing, but a window has it in its future");
    y[4] = (double)NAN;
    weft_rolling_forecast(x, &f, 0, 5, model, &m, NULL, out);
    FAILS(w, WEFT_ENUMERIC, "row 4, column \"y\": it is missing, but a window has it in its past");
}

/* ---- memory of the context that runs out ---- */
static void all_of_it(weft *w, const weft_frame *f)
{
    double out[40];
    formula m = { .quantiles = 1 };
    const weft_transform t = { .column = "y", .kind = WEFT_POLYNOMIAL, .degree = 2, .depends_on = "u" };
    weft_features_opts o = series_features;
    o.context = CONTEXT;
    o.horizon = HORIZON;
    o.transforms = &t;
    o.n = 1;
    weft_features *x = weft_features_new(w, "x", &o);
    weft_features_fit(x, f);
    weft_windows *v =
        weft_windows_new(x, "v", f, &(weft_windows_opts){ .stride = 1, .shorten = true, .past_noise = .1 });
    weft_window_batch b = weft_windows_batch(v, (int32_t[]){ 0, 5, 3 }, 3, NULL),
                      p = weft_windows_batch(v, (int32_t[]){ 1, 2 }, 2,
                                             &(weft_windows_batch_opts){ true, WEFT_ALIGN_RIGHT });
    weft_windows_inverse_transform(v, b.target, out);
    o = y_by_u(CONTEXT, HORIZON, NULL, 0);
    o.past = WEFT_NAMES("p"), o.unscaled = false;
    weft_features *plainly = weft_features_new(w, "z", &o);
    weft_features_fit(plainly, f);
    (void)p;
    if (weft_ok(w))
        weft_rolling_forecast(plainly, f, 0, 10, model, &m, NULL, out);
}

Test(rolling_forecast, survives_failure_of_each_allocation)
{
    scoped_frame f = series_random(2, (int64_t[]){ 20, 15 });
    weft *w = open_on(WEFT_CPU);
    int64_t before = allocations(w);
    all_of_it(w, &f);
    OK(w);
    int64_t n = allocations(w) - before;
    CLEAN(w);
    cr_assert_gt(n, 20);
    for (int64_t i = 1; i <= n; i++) {
        w = open_on(WEFT_CPU);
        fail_in(w, i);
        all_of_it(w, &f);
        cr_assert_eq(weft_error_code(w), WEFT_ENOMEM, "allocation %lld of %lld: %s: %s", (long long)i,
                     (long long)n, weft_status_name(weft_error_code(w)), weft_error_message(w));
        fail_in(w, 0);
        weft_recover(w);
        CLEAN(w);
    }
}
