/* forecast_model.h - one of the six forecasting models, twice: the one that is trained, and the best that
 * it has been so far. */
#ifndef FORECAST_MODEL_H
#define FORECAST_MODEL_H
#include "forecast_options.h"
#include "weft.h"

enum { ENCODER_DECODER_LSTM, ATTENTION_LSTM, TRANSFORMER_LSTM, TFT, PF_TFT, XTFT, MODELS };
extern const char *const model_names[MODELS + 1];                 /* NULL at the end */

/* What is forecast of each row: these quantiles. The one in the middle is the forecast, the outermost are
 * the band. */
enum { QUANTILES = 5, MEDIAN = QUANTILES / 2 };
extern const weft_real quantiles[QUANTILES];

typedef struct {
    weft *w;
    weft_features   *features;
    weft_module     *all, *trained;              /* all: net and best; trained: net */
    weft_forecaster *net, *best;
    weft_ema    *average;                    /* of net, NULL: none */
    weft_parallel *ranks;                    /* which judge together */
} model;

model        model_new(weft *w, const settings *s);
/* The net as it is, averaged, becomes the best. */
void         model_keep(const model *m);
/* [rows of the future, QUANTILES]. maps: NULL, or what the model looks at. */
weft_tensor *model_run(weft_forecaster *f, const weft_series_batch *series, weft_forecast_maps *maps);
weft_loss    model_loss(weft_tensor *predicted, weft_tensor *target);
/* The windows for judging over a frame: all rows but the first few are forecast, most of them twice, from
 * pasts of all lengths. For training: shortened. */
weft_windows *windows_to_judge(const model *m, const settings *s, const char *name, const weft_frame *f);
weft_windows *windows_to_train(const model *m, const settings *s, const weft_frame *f);
#endif
