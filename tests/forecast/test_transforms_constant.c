/* test_transforms_constant.c - scalers fitted to columns that are constant except for rounding. */
#include <float.h>
#include "series_data.h"

/* Constant but for rounding: scaled by their noise, these columns would be noise of size 1. */
Test(transforms_constant, but_for_rounding)
{
    enum { N = 1000 };
    static double u[N], y[5][N];
    for (int i = 0; i < N; i++) {
        u[i] = i;
        y[0][i] = i % 2 ? .3 : .1 + .2;
        y[1][i] = 1e8 + (i % 3) * 1e-8;
        y[2][i] = -7e-12 * (1 + (i % 5) * DBL_EPSILON);
        y[3][i] = i * .1;                        /* its differences, and what a line leaves of it */
        y[4][i] = 1e8 + (i % 2) * 1e-5;          /* has information */
    }
    const weft_transform_kind scalers[] = { WEFT_STANDARD_SCALER, WEFT_MIN_MAX_SCALER };
    weft *w = open_on(WEFT_REF);
    for (int k = 0; k < 5; k++)
        for (int way = 0; way < (k == 3 ? 4 : 2); way++) {
            weft_transform t[] = { { .column = "y", .kind = way < 2 ? WEFT_DELTA : WEFT_POLYNOMIAL,
                                     .depends_on = way < 2 ? NULL : "u", .degree = way < 2 ? 0 : 1 },
                                   { .column = "y", .kind = scalers[way % 2] } };
            weft_frame f = frame_of_y(u + 1, y[k] + 1, N - 1);
            weft_features *x = features_of_y(w, k == 3 ? t : t + 1, k == 3 ? 2 : 1);
            double out[N], low = 9, high = -9;
            weft_features_fit(x, &f);
            weft_features_transform(x, "y", &f, 0, out);
            OK(w);
            for (int i = 1; i < N - 1; i++)
                low = fmin(low, out[i]), high = fmax(high, out[i]);
            /* a delta has 0 in its first row, so it is not constant */
            cr_assert(k == 4 || (k == 3 && way < 2) ? high - low < 3 && (k == 3 || high - low > .9) :
                                                      high - low < 1e-7,
                      "column %d, way %d: %g .. %g", k, way, low, high);
            weft_frame_free(&f);
        }
    CLEAN(w);
}
