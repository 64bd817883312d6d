/* api_forecast.h - forecasting models of past and future series and static covariates.
 *
 * Contents: the batch, the six models, shorter series as augmentation, losses and metrics of
 * forecasts.
 *
 * The models are the six of TransformerTF (CERN), with its names of options and parameters, so that
 * its checkpoints load. They predict the whole future in one run: the decoder reads known
 * covariates, and no prediction goes back into the model. Names, owners, NULL and failure are as in
 * api_layers.h. */
#ifndef WEFT_API_FORECAST_H
#define WEFT_API_FORECAST_H
#include "../../nn/api_forecast_loss.h"
#include "../../nn/api_layers.h"
#include "../../nn/api_metrics.h"
#include "../api_rnn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the batch ---- */
/* past and future are ragged with the same number of sequences, or plain [n, T, features] with
 * their lengths. Numbers beyond the lengths are not read. */
typedef struct {
    weft_tensor *past;                           /* [N, past features] */
    weft_tensor *future;                         /* [M, future features]; plain: data first */
    weft_tensor *fixed;                          /* static covariates [n, features], or NULL */
    const weft_lengths *past_lengths;            /* of a plain past; NULL: every sequence is full */
    const weft_lengths *future_lengths;          /* of a plain future; NULL: every one is full */
    weft_align past_align;                       /* of a plain past */
} weft_series_batch;

/* How close a model is to the original. EXACT, the default: it respects lengths everywhere, a
 * sequence gives the same result alone and in any batch, and a step without keys attends to
 * nothing. (In the TFT family the LSTMs also run over the pads before a short past, so there the
 * longest past of the batch counts.) PADDED: the original's computation on padded tensors with
 * masks and stored scores, with lengths respected; a test oracle. AS_CODED: the original's numbers
 * with its faults: lengths count only where weft_should_use_packing is true, it uses no masks
 * without lengths, and PF-TFT multiplies lengths. PADDED and AS_CODED read pads as data, and a step
 * without keys attends to all of them evenly. */
typedef enum { WEFT_COMPAT_EXACT, WEFT_COMPAT_PADDED, WEFT_COMPAT_AS_CODED } weft_compat;

typedef struct weft_forecaster weft_forecaster;
typedef struct {
    weft_tensor *y;                              /* [M, output_dim], ragged as the future is; plain
                                                  * [n, T, output_dim] with pads 0, in PADDED and
                                                  * AS_CODED with pads as computed */
    weft_state encoder;                          /* last state of the past's LSTM */
} weft_forecast;
/* Weights of a forecast; NULL where the model has none. */
typedef struct {
    weft_tensor *attention;                      /* of the last block that attends to the past, as
                                                  * in weft_attention (keys: past, then future);
                                                  * PADDED and AS_CODED: [n, heads, T, keys] */
    weft_tensor *past_selection;                 /* of variable selection, plain [n, T, features],
                                                  * data last */
    weft_tensor *future_selection;               /* [.., features] */
    weft_tensor *static_selection;               /* [.., features] */
} weft_forecast_maps;
/* Returns the module of the model, which has its parameters; NULL if f is NULL or inert. */
WEFT_API weft_module *weft_forecaster_module(weft_forecaster *f);
/* Runs the model over a batch. maps: NULL, or set to the weights. Errors: widths or numbers of
 * sequences that do not fit, `fixed` NULL where the model has static features (see weft_tft_variant
 * for exceptions); y and the states are inert, maps are NULL. Like model(x) of TransformerTF. */
WEFT_API weft_forecast weft_forecast_run(weft_forecaster *f, const weft_series_batch *series,
                                         weft_forecast_maps *maps);

/* ---- the six models ---- *
 * Widths and counts are 1 or more, 0 where a default is named. Dropouts are 0 <= p < 1, between the
 * layers of LSTMs and in gated blocks; TransformerTF's default is .1. num_static_features of the
 * first three models, which the original does not have, appends `fixed` to every step of past and
 * future. WEFT_NONE: no transformer blocks. opts, num_past_features and num_future_features are
 * required. */
#define WEFT_NONE (-1)
typedef struct {
    int64_t num_past_features;      /* required */
    int64_t num_future_features;    /* required */
    int64_t num_static_features;    /* 0: no `fixed` */
    int64_t d_encoder;              /* widths of the LSTMs, 0: 128. If they differ, linear layers */
    int64_t d_decoder;              /* "state_projection" project h and c. */
    int num_encoder_layers;         /* 0: 2. If they differ, decoder layer k begins with the */
    int num_decoder_layers;         /* state of encoder layer k, or of the last one. */
    double dropout;                 /* between the layers of an LSTM */
    int num_mlp_hidden;             /* hidden layers of the head, with d_mlp_hidden */
    const int64_t *d_mlp_hidden;    /* their widths; NULL: the head "mlp_head" is linear, no MLP */
    weft_activation mlp_activation; /* 0: RELU */
    double mlp_dropout;             /* of the head */
    int64_t output_dim;             /* 0: 1 */
    weft_compat compat;             /* 0: EXACT */
} weft_encoder_decoder_lstm_opts;
/* Makes a forecasting model of two LSTMs: one reads the past, another continues from its state over
 * the future, and a head computes the outputs. Like EncoderDecoderLSTM of TransformerTF. */
WEFT_API weft_forecaster *weft_encoder_decoder_lstm_new(weft_module *m, const char *name,
                                                        const weft_encoder_decoder_lstm_opts *opts);

typedef struct {
    int64_t num_past_features;      /* required */
    int64_t num_future_features;    /* required */
    int64_t num_static_features;    /* 0: no `fixed` */
    int64_t d_model;                /* 0: 128 */
    int64_t d_encoder;              /* 0: d_model. If they differ, states and the encoder's */
    int64_t d_decoder;              /* outputs are projected. */
    int num_layers;                 /* of both LSTMs, 0: 2 */
    double dropout;                 /* 0 <= p < 1 */
    int num_heads;                  /* divide d_decoder, 0: 4 */
    bool no_gating;                 /* layer_norm(attended + decoder) instead of gate_add_norm */
    bool trainable_add;             /* gate_add_norm scales the skip by 2 sigmoid of a parameter */
    bool full_attention;            /* a step sees all of past and future, otherwise the past and
                                     * the decoder's steps before it */
    int64_t output_dim;             /* 0: 1 */
    weft_compat compat;             /* 0: EXACT */
} weft_attention_lstm_opts;
/* Makes a forecasting model of an encoder and a decoder LSTM, with attention from every decoder
 * step to the outputs of both. Errors: num_heads that does not divide d_decoder. Like AttentionLSTM
 * of TransformerTF. */
WEFT_API weft_forecaster *weft_attention_lstm_new(weft_module *m, const char *name,
                                                  const weft_attention_lstm_opts *opts);

typedef struct {
    int64_t num_past_features;      /* required */
    int64_t num_future_features;    /* required */
    int64_t num_static_features;    /* 0: no `fixed` */
    int64_t d_model;                /* 0: 128 */
    int num_layers;                 /* of the LSTMs, 0: 2 */
    int num_transformer_blocks;     /* 0: 2; WEFT_NONE: none */
    double dropout;                 /* 0 <= p < 1 */
    int num_heads;                  /* divide d_model, 0: 4 */
    bool full_attention;            /* as in weft_attention_lstm_opts */
    bool share_lstm_weights;        /* one LSTM "encoder" is also the decoder */
    int64_t output_dim;             /* 0: 1 */
    weft_compat compat;             /* 0: EXACT */
} weft_transformer_lstm_opts;
/* Makes a forecasting model of gated residual networks, LSTMs with a residual sum, then blocks with
 * attention of the past to itself and of the future to both. Errors: num_heads that does not divide
 * d_model. Like TransformerLSTM of TransformerTF. */
WEFT_API weft_forecaster *weft_transformer_lstm_new(weft_module *m, const char *name,
                                                    const weft_transformer_lstm_opts *opts);

/* PF_TFT: the model of PyTorch Forecasting: without `fixed` the static feature is length /
 * ctxt_seq_len (with ctxt_seq_len 0, or AS_CODED: / the longest past of the batch). XTFT: no static
 * features: num_static_features and ctxt_seq_len are ignored, and fixed must be NULL. */
typedef enum { WEFT_TFT, WEFT_PF_TFT, WEFT_XTFT } weft_tft_variant;
typedef struct {
    int64_t num_past_features;      /* required */
    int64_t num_future_features;    /* required */
    int64_t num_static_features;    /* 0: static inputs are zeros */
    int64_t d_model;                /* 0: 300 */
    int64_t d_hidden_continuous;    /* of variable selection, 0: 8 */
    int num_heads;                  /* 0: 4 */
    int num_lstm_layers;            /* 0: 2 */
    double dropout;
    bool full_attention;            /* as in weft_attention_lstm_opts */
    int64_t ctxt_seq_len;           /* the longest possible past: without `fixed` the static feature
                                     * is 2 length / ctxt_seq_len - 1 */
    int64_t output_dim;             /* 0: 7, quantiles */
    weft_compat compat;             /* 0: EXACT */
    weft_tft_variant variant;       /* 0: WEFT_TFT */
} weft_tft_opts;
/* Makes a temporal fusion transformer, Lim, Arik, Loeff, Pfister 2021, a forecasting model. It
 * takes the past right-aligned, with pads of 0 first: a ragged one as long as the longest of the
 * batch, a plain one as it is. Like TemporalFusionTransformer of TransformerTF. */
WEFT_API weft_forecaster *weft_tft_new(weft_module *m, const char *name, const weft_tft_opts *opts);

/* ---- shorter series, as augmentation ---- */
typedef struct {
    int32_t past_least;             /* shortest new past; both past fields 0: it stays whole */
    int32_t past_most;              /* longest new past */
    int32_t future_least;           /* shortest new future; both future fields 0: it stays whole */
    int32_t future_most;            /* longest new future */
} weft_shorten_opts;
/* Returns a series of random shorter lengths: it keeps the newest rows of the past and the first
 * rows of the future. A new length is the smaller of the sequence's length and a draw, uniform in
 * least .. most, both included: one draw for each sequence, the past first. A side with the range 0
 * .. 0 stays whole, as both do with opts NULL. A plain side keeps its shape and alignment; dropped
 * rows are 0, and its new lengths belong to the step. Shorten the target by weft_split_sequences.
 * Errors: stream NULL, a range that is negative or descends. */
WEFT_API weft_series_batch weft_shorten_series(weft_series_batch series, weft_stream *stream,
                                               const weft_shorten_opts *opts);

/* ---- losses and metrics of forecasts ---- */
typedef enum {
    WEFT_FORECAST_MSE,
    WEFT_FORECAST_MAE,
    WEFT_FORECAST_HUBER,
    WEFT_FORECAST_QUANTILE,
    WEFT_FORECAST_SMAPE,
    WEFT_FORECAST_MAPE
} weft_forecast_kind;
typedef struct {
    weft_forecast_kind kind;        /* 0: MSE */
    double delta;                   /* HUBER: 0 means 1 */
    const weft_real *quantiles;     /* QUANTILE: [n], one for each output, not descending */
    int n;                          /* 0: the seven .02 .1 .25 .5 .75 .9 .98 */
    bool per_batch;                 /* QUANTILE: divides by sequences * n, as TransformerTF */
    bool no_loss_masking;           /* plain: pads also count; lengths are still checked */
    weft_tensor *weights;           /* factors of the elements, not in the divisor; [n, 1]: one for
                                     * each sequence; NULL: 1 */
} weft_forecast_loss_opts;
/* Computes the loss of forecasts of opts->kind, by weft_mse_loss, weft_l1_loss, weft_huber_loss,
 * weft_quantile_loss, weft_smape or weft_mape; opts NULL: MSE. predicted is ragged [M, outputs], or
 * plain [n, T, outputs] with the decoder's lengths, data first. Pads of a plain one do not count,
 * may be NaN, and get a gradient of 0. lengths NULL: all T steps count; for a ragged one they must
 * be its own. target and weights have the same layout; a last axis of 1 may be missing. The loss's
 * weight is the number of real elements. Errors: other shapes or lengths; sum and weight are
 * inert. */
WEFT_API weft_loss weft_forecast_loss(weft_tensor *predicted, weft_tensor *target,
                                      const weft_lengths *lengths,
                                      const weft_forecast_loss_opts *opts);
/* Returns the median of quantiles: the column with index quantiles / 2, rounded down, [..,
 * quantiles] -> [.., 1]. With an even number that is the upper of the two in the middle. A ragged
 * one stays ragged, and gradients flow. Errors: a last axis that is not `quantiles`; returns an
 * inert tensor. */
WEFT_API weft_tensor *weft_point_prediction(weft_tensor *predicted, int quantiles);
/* Running metrics of point predictions over real elements. Plain data, zeros at first; read each by
 * weft_meter_mean. The rmse is sqrt(weft_meter_mean(&meters.mse)). One wrong forecast of a target
 * of 0 makes mape infinite. */
typedef struct {
    weft_meter mse;
    weft_meter mae;
    weft_meter smape;
    weft_meter mape;
} weft_forecast_meters;
/* Adds a batch to the metrics; point, target and lengths as in weft_forecast_loss. Not recorded.
 * Waits for the device. meters NULL: only checks. Errors: those of weft_forecast_loss; adds
 * nothing. */
WEFT_API void weft_forecast_meters_add(weft_forecast_meters *meters, weft_tensor *point,
                                       weft_tensor *target, const weft_lengths *lengths);

#ifdef __cplusplus
}
#endif
#endif
