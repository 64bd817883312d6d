/* arx.h - what a network must beat: the last known field, and a linear autoregression with the
 * current as its input (AR-X). */
#ifndef EXAMPLES_ARX_H
#define EXAMPLES_ARX_H
#include "weft.h"

/* B[t] = sum of weights of B[t-1] .. B[t-p], of I[t] .. I[t-q+1], of dI[t] .. dI[t-q+1], and a constant. */
enum { ORDER = 16 };                             /* p and q at most */
typedef struct { int p, q; double ridge, weight[3 * ORDER + 1]; } arx;

/* Least squares over the rows of all training series, one row ahead; then of some orders the weights that are
 * best over whole windows of them, where errors add up. Orders, ridge and which of the two: what forecasts
 * the windows of the validation best. */
arx arx_fit(const weft_frame *training, const weft_windows *to_train, const weft_frame *validation,
            const weft_windows *to_judge);
/* The field in rows from .. from + n - 1 of a series from that before, its own forecasts standing for what is
 * not known. Of the past only `past` rows are looked at; before them all is as in the first of them. */
void arx_forecast(const arx *a, const weft_frame *f, int64_t series, int64_t from, int64_t past, int64_t n,
                  double *out);
/* The root of the mean squared error over all rows of all windows of a frame; a NULL: of persistence. */
double baseline_rmse(const arx *a, const weft_frame *f, const weft_windows *windows);
#endif
