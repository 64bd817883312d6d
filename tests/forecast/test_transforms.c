/* test_transforms.c - tests the transforms of time series: worked numbers, inverses, least squares, refused
 * options, saving and loading. */
#include <float.h>
#include "series_data.h"

static const double knots[] = { -1, 0, 2, 5 }, heights[] = { 3, -1, 0, 4 }, powers[] = { .5, -1, .25 };

static void near(const char *what, const double *got, const double *want, int64_t n, double tol)
{
    for (int64_t i = 0; i < n; i++)
        cr_assert(fabs(got[i] - want[i]) <= tol * fmax(1, fabs(want[i])),
                  "%s: at %lld: %.17g, expected %.17g", what, (long long)i, got[i], want[i]);
}

/* Returns features of y with one transform, fitted on f. */
static weft_features *fitted(weft *w, const weft_frame *f, weft_transform t)
{
    t.column = "y";
    weft_features *x = features_of_y(w, &t, 1);
    weft_features_fit(x, f);
    return x;
}

/* ---- worked numbers ---- */
CPU_TEST(transforms, match_worked_examples)
{
    static const double u[] = { -2, 1, 4 }, y[] = { 1, 2, 6 };
    static const struct { weft_transform t; double want[3];
    } given[] = {
        /* sqrt(14 / 2) */
        { { .kind = WEFT_STANDARD_SCALER },
          { -2 / 2.6457513110645906, -1 / 2.6457513110645906, 3 / 2.6457513110645906 } },
        { { .kind = WEFT_MAX_SCALER }, { 1. / 6, 1. / 3, 1 } },
        { { .kind = WEFT_MAX_SCALER, .max = 3 }, { .5, 1, 3 } },
        { { .kind = WEFT_MIN_MAX_SCALER }, { 0, .2, 1 } },
        { { .kind = WEFT_MIN_MAX_SCALER, .min = -1, .max = 1 }, { -1, -.6, 1 } },
        { { .kind = WEFT_DELTA }, { 0, 1, 4 } },
        { { .kind = WEFT_LOG, .bias = 1 }, { 0.69314718055994531, 1.0986122886681098, 1.9459101490553132 } },
        { { .kind = WEFT_LOG1P }, { 0.69314718055994531, 1.0986122886681098, 1.9459101490553132 } },
        { { .kind = WEFT_LOGISTIC }, { 0.7310585786300049, 0.8807970779778823, 0.9975273768433653 } },
        { { .kind = WEFT_LOGISTIC, .k = 2, .x0 = 1 }, { .5, 0.8807970779778823, 0.9999546021312976 } },
        /* of -1.8, 0, 4.8 */
        { { .kind = WEFT_ADAPTIVE_LOGISTIC, .k = 2, .x0 = 2, .alpha = .1 },
          { 0.14185106490048777, .5, 0.99183742884684012 } },
        { { .kind = WEFT_DIVIDE_BY, .depends_on = "u" }, { -.5, 2, 1.5 } },
        { { .kind = WEFT_POLYNOMIAL, .depends_on = "u", .degree = 0 }, { -2, -1, 3 } },
        { { .kind = WEFT_POLYNOMIAL, .depends_on = "u", .degree = 1 }, { .5, -1, .5 } },
        { { .kind = WEFT_POLYNOMIAL, .depends_on = "u", .degree = 2 }, { 0, 0, 0 } },
        { { .kind = WEFT_FIXED_POLYNOMIAL, .depends_on = "u", .degree = 2, .a = powers },
          { 1 - 3.5, 2 + .25, 6 - .5 } },
        { { .kind = WEFT_DISCRETE_FUNCTION, .depends_on = "u", .a = knots, .b = heights, .points = 4 },
          { 1 - 3, 2.5, 6 - 8. / 3 } },
    };
    scoped_frame f = frame_of_y(u, y, 3);
    for (int i = 0; i < COUNT(given); i++) {
        weft_features *x = fitted(w, &f, given[i].t);
        double out[3], back[3];
        weft_features_transform(x, "y", &f, 0, out);
        OK(w);
        near("worked", out, given[i].want, 3, 1e-12);
        int64_t from = given[i].t.kind == WEFT_DELTA;
        weft_features_inverse_transform(x, "y", &f, 0, from, 3 - from, out + from, back + from);
        OK(w);
        near("back", back + from, y + from, 3 - from, 1e-12);
    }
}

CPU_TEST(transforms, scaler_uses_the_rows_of_all_series)
{
    static const double low[] = { 0, 2 }, high[] = { 10, 12 };
    scoped_frame f = frame_of_y(low, low, 2);
    DOES(weft_frame_add(&f, NULL, WEFT_NAMES("y", "u"), (const double *const[]){ high, high }, 2));
    weft_features *x = fitted(w, &f, (weft_transform){ .kind = WEFT_STANDARD_SCALER });
    double out[2], std = sqrt(104. / 3);         /* without the means' own spread it would be sqrt(2) */
    weft_features_transform(x, "y", &f, 1, out);
    near("pooled", out, (double[]){ 4 / std, 6 / std }, 2, 1e-14);
}

CPU_TEST(transforms, empty_series_has_no_effect)
{
    static const double ten[] = { 10, 10, 10 }, twenty[] = { 20, 20, 20 };
    static const char *const names[] = { "u", "y", "s", NULL };
    const weft_transform log_of = { .column = "s", .kind = WEFT_LOG };
    scoped_frame full = { 0 }, part = { 0 };
    DOES(weft_frame_add(&full, NULL, names, (const double *const[]){ ten, ten, ten }, 3));
    DOES(weft_frame_add(&full, NULL, names, (const double *const[]){ ten, ten, twenty }, 3));
    DOES(weft_frame_add(&part, NULL, names, NULL, 0));
    DOES(weft_frame_add(&part, NULL, names, (const double *const[]){ ten, ten, ten }, 3));
    DOES(weft_frame_add(&part, NULL, names, NULL, 0));
    DOES(weft_frame_add(&part, NULL, names, (const double *const[]){ ten, ten, twenty }, 3));
    for (int n = 0; n < 2; n++) {                /* scaled; logarithm, undefined at 0, scaled */
        weft_features_opts o = y_by_u(1, 1, &log_of, n);
        o.fixed = WEFT_NAMES("s"), o.unscaled = false;
        weft_features *x = weft_features_new(w, "x", &o), *y = weft_features_new(w, "y", &o);
        double of_full, of_part;
        weft_features_fit(x, &full), weft_features_fit(y, &part);
        weft_features_transform(x, "s", &full, 1, &of_full);
        weft_features_transform(y, "s", &part, 3, &of_part);
        OK(w);
        cr_assert(of_full == of_part && of_full > .7, "%.17g %.17g", of_full, of_part);
        weft_window_counts c = weft_windows_counts(weft_windows_new(y, "v", &part, NULL));
        OK(w);
        cr_assert(c.windows == 4 && c.skipped == 2);
    }
}

CPU_TEST(transforms, constant_columns_are_accepted)
{
    static const double u[] = { 1, 2, 3 }, y[] = { .1, .1, .1 };
    static const struct { weft_transform_kind kind; double want; } given[] = {
        { WEFT_STANDARD_SCALER, 0 }, { WEFT_MIN_MAX_SCALER, .5 }, { WEFT_MAX_SCALER, 1 }
    };
    scoped_frame f = frame_of_y(u, y, 3);
    for (int i = 0; i < COUNT(given); i++) {
        weft_features *x = fitted(w, &f, (weft_transform){ .kind = given[i].kind });
        double out[3], back[3];
        weft_features_transform(x, "y", &f, 0, out);
        cr_assert(out[0] == given[i].want && out[1] == out[0] && out[2] == out[0], "%d: %.17g", i, out[0]);
        weft_features_inverse_transform(x, "y", &f, 0, 0, 3, out, back);
        cr_assert(back[0] == .1 && back[2] == .1);
        OK(w);
    }
}

/* These columns are constant except for rounding. Scaling them would turn the rounding into noise of size
 * 1. */
CPU_TEST(transforms, nearly_constant_columns_are_accepted)
{
    enum { N = 1000 };
    static double u[N], y[5][N];
    for (int i = 0; i < N; i++) {
        u[i] = i;
        y[0][i] = i % 2 ? .3 : .1 + .2;
        y[1][i] = 1e8 + (i % 3) * 1e-8;
        y[2][i] = -7e-12 * (1 + (i % 5) * DBL_EPSILON);
        y[3][i] = i * .1;                        /* its differences, and the residual of a line */
        y[4][i] = 1e8 + (i % 2) * 1e-5;          /* has information */
    }
    const weft_transform_kind scalers[] = { WEFT_STANDARD_SCALER, WEFT_MIN_MAX_SCALER };
    for (int k = 0; k < 5; k++)
        for (int chain = 0; chain < (k == 3 ? 4 : 2); chain++) {
            weft_transform t[] = { { .column = "y", .kind = chain < 2 ? WEFT_DELTA : WEFT_POLYNOMIAL,
                                     .depends_on = chain < 2 ? NULL : "u", .degree = chain < 2 ? 0 : 1 },
                                   { .column = "y", .kind = scalers[chain % 2] } };
            scoped_frame f = frame_of_y(u + 1, y[k] + 1, N - 1);
            weft_features *x = features_of_y(w, k == 3 ? t : t + 1, k == 3 ? 2 : 1);
            double out[N], low = 9, high = -9;
            weft_features_fit(x, &f);
            weft_features_transform(x, "y", &f, 0, out);
            OK(w);
            for (int i = 1; i < N - 1; i++)
                low = fmin(low, out[i]), high = fmax(high, out[i]);
            /* a delta begins with 0, so it is not constant */
            cr_assert(k == 4 || (k == 3 && chain < 2) ? high - low < 3 && (k == 3 || high - low > .9) :
                                                      high - low < 1e-7,
                      "column %d, chain %d: %g .. %g", k, chain, low, high);
        }
}

CPU_TEST(transforms, clamp_limits_values_out_of_range)
{
    static const double u[] = { 1, 2, 3 }, y[] = { 1, 2, 6 }, more[] = { 0, 3, 7 };
    scoped_frame f = frame_of_y(u, y, 3), g = frame_of_y(u, more, 3);
    double out[3];
    weft_features *clamped = fitted(w, &f, (weft_transform){ .kind = WEFT_MIN_MAX_SCALER, .clamp = true });
    weft_features_transform(fitted(w, &f, (weft_transform){ .kind = WEFT_MIN_MAX_SCALER }), "y", &g, 0, out);
    near("free", out, (double[]){ -.2, .4, 1.2 }, 3, 1e-14);
    weft_features_transform(clamped, "y", &g, 0, out);
    near("clamped", out, (double[]){ 0, .4, 1 }, 3, 1e-14);
    weft_features_inverse_transform(clamped, "y", &g, 0, 0, 3, (double[]){ -1, .4, 2 }, out);
    near("clamped back", out, (double[]){ 1, 3, 6 }, 3, 1e-14);
    weft_features *s = fitted(w, &f, (weft_transform){ .kind = WEFT_LOGISTIC, .k = .5, .x0 = 3 });
    /* a model may return these; within the range of the function */
    weft_features_inverse_transform(s, "y", &f, 0, 0, 3, (double[]){ -.5, .5, 1.5 }, out);
    cr_assert(out[0] < -60 && isfinite(out[0]) && out[1] == 3 && out[2] > 60 && isfinite(out[2]));
    weft_features *a =
        fitted(w, &f, (weft_transform){ .kind = WEFT_ADAPTIVE_LOGISTIC, .alpha = .05, .x0 = 3 });
    weft_features_inverse_transform(a, "y", &f, 0, 0, 3, (double[]){ 0, .5, 1 }, out);
    near("to the turn", out, (double[]){ 3 - 10, 3, 3 + 10 }, 3, 1e-12);
    OK(w);
}

/* ---- there and back ---- */
#define ON_U .depends_on = "u"
static const struct { int n; weft_transform t[4];
} chains[] = {
    { 1, { { .kind = WEFT_STANDARD_SCALER } } },
    { 2, { { .kind = WEFT_LOG, .bias = 3 }, { .kind = WEFT_STANDARD_SCALER } } },
    { 3,
      { { .kind = WEFT_LOG1P },
        { .kind = WEFT_DELTA },
        { .kind = WEFT_MIN_MAX_SCALER, .min = -1, .max = 1 } } },
    { 4,
      { { .kind = WEFT_DELTA },
        { .kind = WEFT_DELTA },
        { .kind = WEFT_DELTA },
        { .kind = WEFT_STANDARD_SCALER } } },
    { 3,
      { { .kind = WEFT_POLYNOMIAL, ON_U, .degree = 3 },
        { .kind = WEFT_DELTA },
        { .kind = WEFT_MAX_SCALER, .max = 2 } } },
    { 3, { { .kind = WEFT_DELTA }, { .kind = WEFT_POLYNOMIAL, ON_U, .degree = 1 }, { .kind = WEFT_DELTA } } },
    { 3,
      { { .kind = WEFT_DIVIDE_BY, ON_U },
        { .kind = WEFT_LOGISTIC, .k = -.5, .x0 = 1 },
        { .kind = WEFT_STANDARD_SCALER } } },
    { 2,
      { { .kind = WEFT_FIXED_POLYNOMIAL, ON_U, .degree = 2, .a = powers },
        { .kind = WEFT_ADAPTIVE_LOGISTIC, .k = .3, .alpha = .01, .x0 = 2 } } },
    { 2,
      { { .kind = WEFT_DISCRETE_FUNCTION, ON_U, .a = knots, .b = heights, .points = 4 },
        { .kind = WEFT_MIN_MAX_SCALER, .clamp = true } } },
};

static int chain_of(int i, weft_transform to[4])
{
    for (int k = 0; k < chains[i].n; k++) {
        to[k] = chains[i].t[k];
        to[k].column = "y";
    }
    return chains[i].n;
}

CPU_TEST(transforms, inverse_restores_values)
{
    for (int i = 0; i < COUNT(chains); i++)
        for (int k = 0; k < rounds(20, 200); k++) {
            weft_transform t[4];
            int n = chain_of(i, t);
            scoped_frame f = series_random(2, (int64_t[]){ 12, 25 });
            for (int64_t r = 0; r < f.rows; r++)
                /* y / u stays where a logistic is not flat to all digits */
                weft_frame_column(&f, "u")[r] += .5;
            weft_features *x = features_of_y(w, t, n);
            weft_features_fit(x, &f);
            double z[25], back[25];
            weft_features_transform(x, "y", &f, 1, z);
            OK(w);
            const double *y = weft_frame_column(&f, "y") + f.start[1];
            int64_t from = 1 + (int64_t)dice(24), rows = (int64_t)dice((uint64_t)(25 - from) + 1);
            double kept[25];
            memcpy(kept, y, sizeof kept);
            for (int64_t r = from; r < 25; r++)  /* values ahead are not read */
                weft_frame_column(&f, "y")[f.start[1] + r] = (double)NAN;
            weft_features_inverse_transform(x, "y", &f, 1, from, rows, z + from, back);
            OK(w);
            near("back", back, kept + from, rows, 1e-9);
        }
}

CPU_TEST(transforms, polynomials_fit_least_squares)
{
    for (int k = 0; k < rounds(40, 400); k++) {
        enum { N = 60 };
        double u[N], y[N], z[N], offset = k % 3 ? 0 : 1e6, width = k % 2 ? 1 : 1e-3;
        int degree = (int)dice(7);
        for (int i = 0; i < N; i++) {
            double s = (double)dice_real(-1, 1), p = 0;
            u[i] = offset + width * s;
            s = (u[i] - offset) / width;         /* as it was rounded */
            for (int j = degree; j >= 0; j--)
                p = p * s + (j + 1);
            y[i] = k % 5 ? (double)dice_real(-1, 1) : p;
        }
        scoped_frame f = frame_of_y(u, y, N);
        weft_features *x =
            fitted(w, &f, (weft_transform){ .kind = WEFT_POLYNOMIAL, .degree = degree, ON_U });
        weft_features_transform(x, "y", &f, 0, z);
        OK(w);
        for (int j = 0; j <= degree; j++) {      /* the residual contains none of the powers */
            double sum = 0;
            for (int i = 0; i < N; i++)
                sum += z[i] * pow((u[i] - offset) / width, j);
            cr_assert(fabs(sum) < 1e-7, "degree %d, power %d: %g", degree, j, sum);
        }
        for (int i = 0; i < N && k % 5 == 0; i++)
            cr_assert(fabs(z[i]) < 1e-7, "the residual of a polynomial is %g", z[i]);
    }
}

/* ---- refused options ---- */
CPU_TEST(transforms, invalid_descriptions_are_refused)
{
    static const double falling[] = { 1, 1 }, bad[] = { 1, NAN, 2 };
    static const struct { weft_transform t; const char *says;
    } given[] = {
        { { .column = "z" }, "\"z\": no such column" },
        { { .column = NULL }, "no such column" },
        { { .column = "y", .kind = WEFT_TRANSFORMS }, "kind: expected a value" },
        { { .column = "y", .kind = WEFT_LOG, ON_U }, "depends_on: expected NULL" },
        { { .column = "y", .kind = WEFT_DIVIDE_BY }, "depends_on: expected a column" },
        { { .column = "y", .kind = WEFT_MIN_MAX_SCALER, .min = 2, .max = 2 }, "max: expected more than min" },
        { { .column = "y", .kind = WEFT_MIN_MAX_SCALER, .min = 2 }, "max: expected more than min" },
        { { .column = "y", .kind = WEFT_MAX_SCALER, .max = -2 }, "max: expected more than 0" },
        { { .column = "y", .kind = WEFT_ADAPTIVE_LOGISTIC, .alpha = -1 }, "alpha: expected 0" },
        { { .column = "y", .kind = WEFT_LOGISTIC, .k = INFINITY }, "expected finite numbers" },
        { { .column = "y", .kind = WEFT_POLYNOMIAL, ON_U, .degree = 16 }, "degree: expected 0 .. 15" },
        { { .column = "y", .kind = WEFT_POLYNOMIAL, ON_U, .degree = -1 }, "degree: expected 0 .. 15" },
        { { .column = "y", .kind = WEFT_FIXED_POLYNOMIAL, ON_U, .degree = 1 }, "degree + 1 finite numbers" },
        { { .column = "y", .kind = WEFT_FIXED_POLYNOMIAL, ON_U, .degree = 2, .a = bad },
          "degree + 1 finite numbers" },
        { { .column = "y", .kind = WEFT_DISCRETE_FUNCTION, ON_U, .a = knots, .b = heights },
          "points: expected 1 or more" },
        { { .column = "y", .kind = WEFT_DISCRETE_FUNCTION, ON_U, .a = falling, .b = heights, .points = 2 },
          "a: expected ascending points" },
    };
    for (int i = 0; i < COUNT(given); i++) {
        FAILS_AT(w, features_of_y(w, &given[i].t, 1), WEFT_EARG, given[i].says);
    }
    FAILS_AT(w, features_of_y(w, NULL, 1), WEFT_EARG, "expected n transforms");
    weft_transform many[17];
    for (int i = 0; i < 17; i++)
        many[i] = (weft_transform){ .column = "y", .kind = WEFT_DELTA };
    FAILS_AT(w, features_of_y(w, many, 17), WEFT_EARG, "too many transforms; expected at most 16");
    weft_features_opts o = series_features;
    o.transforms = &(weft_transform){ .column = "s", .kind = WEFT_DELTA }, o.n = 1;
    FAILS_AT(w, weft_features_new(w, "x", &o), WEFT_EARG, "\"s\": a fixed column has no rows");
    o.transforms = &(weft_transform){ .column = "t", .kind = WEFT_DELTA };
    FAILS_AT(w, weft_features_new(w, "x", &o), WEFT_EARG,
             "\"t\": no such column, or the time");
}

CPU_TEST(transforms, numbers_outside_the_domain_are_refused)
{
    static const double u[] = { 1, 0, 3, 3 }, y[] = { 1, 2, -1, 6 };
    static const struct { weft_transform t; weft_status kind; const char *says;
    } given[] = {
        { { .kind = WEFT_LOG, .bias = 1 },
          WEFT_ENUMERIC,
          "series 0 (\"0\"), row 2, column \"y\": outside the domain of transform 0" },
        { { .kind = WEFT_LOG1P }, WEFT_ENUMERIC, "row 2, column \"y\": outside" },
        { { .kind = WEFT_DIVIDE_BY, ON_U }, WEFT_ENUMERIC, "row 1, column \"y\": outside" },
        { { .kind = WEFT_ADAPTIVE_LOGISTIC, .alpha = .1, .x0 = 1 },
          WEFT_ENUMERIC,
          "row 3, column \"y\": outside" },
        { { .kind = WEFT_POLYNOMIAL, ON_U, .degree = 3 },
          WEFT_EARG,
          "column \"y\": transform 0: depends_on: the column has too few different values" },
    };
    weft_frame f = frame_of_y(u, y, 4);
    for (int i = 0; i < COUNT(given); i++) {
        weft_transform t = given[i].t;
        t.column = "y";
        weft_features *x = features_of_y(w, &t, 1);
        OK(w);
        FAILS_AT(w, weft_features_fit(x, &f), given[i].kind, given[i].says);
        cr_assert(!weft_features_counts(x).fitted);
    }
    weft_frame_column(&f, "u")[1] = (double)NAN;
    weft_features *x = features_of_y(w, &(weft_transform){ .column = "y", .kind = WEFT_DIVIDE_BY, ON_U }, 1);
    FAILS_AT(w, weft_features_fit(x, &f), WEFT_ENUMERIC, "row 1, column \"u\": the value is nan");
    weft_frame_column(&f, "u")[1] = 1;
    weft_frame_column(&f, "y")[3] = (double)-INFINITY;
    FAILS_AT(w, weft_features_fit(x, &f), WEFT_ENUMERIC, "row 3, column \"y\": the value is -inf");
    weft_frame_free(&f);
    f = frame_of_y(u, y, 0);
    x = features_of_y(w, &(weft_transform){ .column = "y" }, 1);
    FAILS_AT(w, weft_features_fit(x, &f), WEFT_EARG, "no rows; expected one or more to fit it");
    weft_frame_free(&f);
}

CPU_TEST(transforms, rows_without_an_inverse_are_refused)
{
    static const double u[] = { 1, 2, 3 }, y[] = { 1, 2, 4 };
    scoped_frame f = frame_of_y(u, y, 3);
    weft_features *x = features_of_y(w, &(weft_transform){ .column = "y", .kind = WEFT_DELTA }, 1);
    double out[3] = { 0 };
    weft_features_inverse_transform(x, "y", &f, 0, 1, 1, u, out);
    FAILS(w, WEFT_EARG, "features_inverse_transform: features \"x\" are not fitted");
    weft_features_fit(x, &f);
    weft_features_inverse_transform(x, "y", &f, 0, 0, 3, u, out);
    FAILS(w, WEFT_EARG, "\"y\" is a chain with differences");
    weft_features_inverse_transform(x, "y", &f, 0, 2, 2, u, out);
    FAILS(w, WEFT_EARG, "has 3 rows, not 2 from row 2 on");
    FAILS_AT(w, weft_features_inverse_transform(x, "y", &f, 1, 1, 1, u, out), WEFT_EARG, "series 1;");
    FAILS_AT(w, weft_features_inverse_transform(x, "q", &f, 0, 1, 1, u, out), WEFT_EARG, "no column \"q\"");
    weft_features_inverse_transform(x, "y", &f, 0, 1, 1, NULL, out);
    FAILS(w, WEFT_EARG, "values or out is NULL");
    weft_features_inverse_transform(x, "y", &f, 0, 1, 1, (double[]){ NAN }, out);
    FAILS(w, WEFT_ENUMERIC, "row 1, column \"y\"");
    FAILS_AT(w, weft_features_transform(x, "y", &f, 0, NULL), WEFT_EARG, "out is NULL");
    FAILS_AT(w, weft_features_transform(x, NULL, &f, 0, out), WEFT_EARG, "no column");
    weft_features_inverse_transform(x, "y", &f, 0, 1, 2, (double[]){ 10, 20 }, out);
    OK(w);
    cr_assert(out[0] == 11 && out[1] == 31);
}

CPU_TEST(transforms, are_saved_and_loaded, .fini = end_folder)
{
    const char *path = in_folder("features.h5");
    weft_module *m = weft_module_new(w, "model");
    weft_linear_new(m, "out", &(weft_linear_opts){ .in = 2, .out = 2 });
    scoped_frame f = series_random(2, (int64_t[]){ 12, 25 });
    weft_transform t[] = { { .column = "y", .kind = WEFT_POLYNOMIAL, .degree = 2, ON_U },
                           { .column = "y", .kind = WEFT_LOGISTIC, .k = .1 } };
    weft_features *a = features_of_y(w, t, 2), *b = features_of_y(w, t, 2), *c = features_of_y(w, t, 1),
                  *one = features_of_y(w, (t[1].k = .2, t), 2);
    weft_checkpoint_item items[WEFT_FEATURES_ITEMS];
    weft_features_fit(a, &f);
    OK(w);
    weft_features_state(a, items);
    DOES(weft_save(path, m, NULL, items, WEFT_FEATURES_ITEMS));
    double za[25], zb[25];
    FAILS_AT(w, weft_features_transform(b, "y", &f, 1, zb), WEFT_EARG, "not fitted");
    weft_features_state(b, items);
    DOES(weft_load(path, m, NULL, items, WEFT_FEATURES_ITEMS));
    cr_assert(weft_features_counts(a).fitted && weft_features_counts(b).fitted);
    weft_features_transform(a, "y", &f, 1, za);
    weft_features_transform(b, "y", &f, 1, zb);
    OK(w);
    cr_assert(!memcmp(za, zb, sizeof za));
    weft_features_state(one, items);             /* the same size, another slope: only the text differs */
    DOES(weft_load(path, m, NULL, items, WEFT_FEATURES_ITEMS));
    cr_assert(!weft_features_counts(one).fitted);
    weft_features_transform(one, "y", &f, 1, zb);
    FAILS(w, WEFT_EFORMAT,
          "belongs to other features: it has target \"y\": polynomial of degree 2, on \"u\"; logistic, k "
          "0.1");
    weft_features_fit(one, &f);                  /* its own again */
    weft_features_transform(one, "y", &f, 1, zb);
    OK(w);
    weft_features_state(c, items);               /* more numbers than needed */
    if (weft_load(path, m, NULL, items, WEFT_FEATURES_ITEMS) == WEFT_OK) {
        FAILS_AT(w, weft_features_transform(c, "y", &f, 1, zb), WEFT_EFORMAT, "other features");
    }
    cr_assert(!weft_features_counts(c).fitted);
    weft_features_state(NULL, items);
    cr_assert_null(items[0].name);
}
