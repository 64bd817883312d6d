/* series_data.h - the common parts of the tests of time series: frames of random series, and the expected
 * content of a window, by plain loops. */
#ifndef WEFT_TESTS_SERIES_DATA_H
#define WEFT_TESTS_SERIES_DATA_H
#include "tests/io/files.h"

/* A frame that is freed at the end of its block. */
#define scoped_frame __attribute__((cleanup(weft_frame_free))) weft_frame

static const char *const series_names[] = { "t", "u", "v", "p", "y", "s", NULL };

/* `n` series of the lengths given: time t that increases unevenly, known u and v, past p, target y, fixed
 * s. */
UNUSED static weft_frame series_random(int n, const int64_t *rows)
{
    weft_frame f = { 0 };
    for (int i = 0; i < n; i++) {
        double *c[6];
        for (int k = 0; k < 6; k++)
            c[k] = malloc((size_t)(rows[i] + 1) * sizeof **c);
        for (int64_t r = 0; r < rows[i]; r++) {
            c[0][r] = (r ? c[0][r - 1] : 100 * i) + (double)dice_real(.5, 2);
            for (int k = 1; k < 5; k++)
                c[k][r] = (double)dice_real(-1, 3) + k;
            c[5][r] = i + .25;
        }
        DOES(weft_frame_add(&f, NULL, series_names, (const double *const *)c, rows[i]));
        for (int k = 0; k < 6; k++)
            free(c[k]);
    }
    return f;
}

static const weft_features_opts series_features = {
    .context = 7, .horizon = 4, .known = WEFT_NAMES("u", "v"), .past = WEFT_NAMES("p"),
    .target = WEFT_NAMES("y"), .fixed = WEFT_NAMES("s"), .time = "t",
};

/* Options of features of one column y (and u, known) with these transforms and no scaler after them. */
UNUSED static weft_features_opts y_by_u(int64_t context, int64_t horizon, const weft_transform *t, int n)
{
    static const char *const u[] = { "u", NULL }, *const y[] = { "y", NULL };
    return (weft_features_opts){ context, horizon, .known = u, .target = y, .transforms = t, .n = n,
                                 .unscaled = true };
}
UNUSED static weft_features *features_of_y(weft *w, const weft_transform *t, int n)
{
    const weft_features_opts o = y_by_u(3, 2, t, n);
    return weft_features_new(w, "x", &o);
}

UNUSED static weft_frame frame_of_y(const double *u, const double *y, int64_t n)
{
    weft_frame f = { 0 };
    DOES(weft_frame_add(&f, NULL, WEFT_NAMES("u", "y"), (const double *const[]){ u, y }, n));
    return f;
}

/* Mean and unbiased standard deviation of a whole column, in the naive way. */
UNUSED static void series_moments(const weft_frame *f, const char *name, double *mean, double *std)
{
    const double *c = weft_frame_column(f, name);
    *mean = *std = 0;
    for (int64_t i = 0; i < f->rows; i++)
        *mean += c[i] / (double)f->rows;
    for (int64_t i = 0; i < f->rows; i++)
        *std += (c[i] - *mean) * (c[i] - *mean) / (double)(f->rows - 1);
    *std = sqrt(*std);
}
#endif
