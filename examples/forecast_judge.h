/* forecast_judge.h - how good a model is on windows that it was not trained on, and over whole series. */
#ifndef FORECAST_JUDGE_H
#define FORECAST_JUDGE_H
#include "forecast_arx.h"
#include "forecast_model.h"

/* loss: in the model's numbers; rmse: of the median, in B's unit; inside: the share of rows where the
 * truth is in the band. */
typedef struct { double loss, rmse, inside; } score;
score judge(const model *m, weft_forecaster *f, weft_windows *windows, const weft_frame *frame);

/* Row from and on to the end of a series, each hop of the horizon from the forecast before it: all [rows,
 * QUANTILES], out [rows]. */
int64_t rolling_from(const settings *s, const weft_frame *frame, int64_t series);
void rolling(const model *m, const weft_frame *frame, int64_t series, int64_t from, double *all, double *out);
/* The root of the mean squared error of such forecasts of all series, by the model and by AR-X. path: NULL,
 * or a file of all of them that the first rank writes. */
double rolling_rmse(const model *m, const settings *s, const weft_frame *frame, const char *path);
double arx_rolling_rmse(const arx *a, const settings *s, const weft_frame *frame);
#endif
