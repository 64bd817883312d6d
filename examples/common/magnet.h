/* magnet.h - data and baselines for examples/forecast.c: cycles of a magnet's current, and its field from a
 * model of hysteresis.
 *
 * Columns of a frame: "I" the current, "dI" its change since the row before (both are programmed, so known in
 * advance), and "B" the field. */
#ifndef EXAMPLES_MAGNET_H
#define EXAMPLES_MAGNET_H
#include "weft_forecast.h"

typedef enum { TRAIN, VALIDATION, TEST } part;
/* noise: standard deviation of the measured field, in the unit of B */
typedef struct {
    int64_t series, seed;
    double noise;
} field_opts;

/* Makes the series of a part: opts->series for training, an eighth of that (4 or more) for the others. Series
 * number i of a part has the same numbers for any count, on every machine. End it by weft_frame_free. */
weft_frame field_series(part p, const field_opts *opts);
/* Returns the rows of a series, and its field from a row on. */
int64_t series_rows(const weft_frame *f, int64_t series);
const double *field_from(const weft_frame *f, int64_t series, int64_t row);
/* ---- baselines: the last known field, and a linear autoregression with the current as input (AR-X) ---- */
/* B[t] = sum of weights of B[t-1] .. B[t-p], of I[t] .. I[t-q+1], of dI[t] .. dI[t-q+1], and a constant. */
enum { ORDER = 16, WIDTH = 3 * ORDER + 1 };      /* ORDER: p and q at most */
typedef struct {
    int p, q;
    double ridge, weight[WIDTH];
} arx;

/* Fits by least squares, one row ahead, over all training series. For some orders it also fits over whole
 * windows, where errors add up. Returns the fit, over all orders and ridges, that forecasts the validation
 * windows best. */
arx arx_fit(const weft_frame *training, const weft_windows *to_train, const weft_frame *validation,
            const weft_windows *to_judge);
/* Forecasts rows from .. from + n - 1 of a series from the `past` rows before them and its own forecasts.
 * Earlier rows count as the first of these. */
void arx_forecast(const arx *a, const weft_frame *f, int64_t series, int64_t from, int64_t past, int64_t n,
                  double *out);
/* Returns the root of the mean squared error over all rows of all windows; a NULL: of persistence. */
double baseline_rmse(const arx *a, const weft_frame *f, const weft_windows *windows);
#endif
