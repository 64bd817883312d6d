/* arx.h - baselines for examples/forecast.c: the last known field, and a linear autoregression with the
 * current as its input (AR-X). */
#ifndef EXAMPLES_ARX_H
#define EXAMPLES_ARX_H
#include "weft.h"

/* B[t] = sum of weights of B[t-1] .. B[t-p], of I[t] .. I[t-q+1], of dI[t] .. dI[t-q+1], and a constant. */
enum { ORDER = 16, WIDTH = 3 * ORDER + 1 };      /* ORDER: p and q at most */
typedef struct {
    int p, q;
    double ridge, weight[WIDTH];
} arx;

/* Fits by least squares over the rows of all training series, one row ahead; then for some orders the weights
 * that are best over whole windows, where errors add up. Of all orders, ridges and both ways it returns the
 * one that forecasts the windows of the validation best. */
arx arx_fit(const weft_frame *training, const weft_windows *to_train, const weft_frame *validation,
            const weft_windows *to_judge);
/* Forecasts rows from .. from + n - 1 of a series from the `past` rows before them and its own forecasts.
 * Earlier rows count as the first of these. */
void arx_forecast(const arx *a, const weft_frame *f, int64_t series, int64_t from, int64_t past, int64_t n,
                  double *out);
/* Returns the root of the mean squared error over all rows of all windows; a NULL: of persistence. */
double baseline_rmse(const arx *a, const weft_frame *f, const weft_windows *windows);
#endif
