/* weft_forecast.h - for forecasts of time series.
 *
 * Contents: the six models with their losses and metrics, frames, features and windows, the names
 * of TransformerTF. It also brings functions of weft_op.h (api_author.h, api_ragged.h) and the
 * metrics of weft_lab.h. */
#ifndef WEFT_FORECAST_LEVEL_H
#define WEFT_FORECAST_LEVEL_H
#include "weft.h"
#include "nn/api_forecast_loss.h"
#include "rnn/forecast/api_forecast.h"
#include "rnn/forecast/api_series.h"
#include "rnn/forecast/api_transformertf.h"
#endif
