/* api_forecast.h - forecasting models of past and future series and static covariates.
 *
 * Contents: the batch, the six models, shorter series as augmentation, losses and metrics of
 * forecasts.
 *
 * The models are the six of TransformerTF (CERN), with its names of options and parameters, so that
 * its checkpoints load. They predict the whole future in one run: the decoder reads known
 * covariates, and no prediction goes back into the model. Models belong to the context, tensors to
 * the step. An error fails the context, and the function returns an inert object. Tensors that are
 * NULL, stale or of ints are errors. */
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
/* A batch of n series. past and future have n sequences each; sequence i of past and future belongs
 * to row i of fixed. Each may be ragged or plain [n, T, features], independently of the other, and
 * their T and ids may differ. A ragged tensor has its lengths, so its lengths field must be NULL. A
 * plain future has the data first, then pads. Tensors and lengths must last until the call ends. */
typedef struct {
    weft_tensor *past;                   /* [N, past features], or [n, T, past features] */
    weft_tensor *future;                 /* [M, future features], or [n, T, future features] */
    weft_tensor *fixed;                  /* static covariates, plain [n, features]; NULL: none */
    const weft_lengths *past_lengths;    /* of a plain past; NULL: all T steps are data */
    const weft_lengths *future_lengths;  /* of a plain future; NULL: all T steps are data */
    weft_align past_align;               /* of a plain past, otherwise ignored; 0: LEFT */
} weft_series_batch;

/* How close a model is to TransformerTF.
 * EXACT, the default: lengths count everywhere, and numbers in pads are not read. A sequence gives
 * the same result alone and in any batch, except in the TFT family (see weft_tft_new). A step
 * without keys attends to nothing.
 * PADDED, for tests: computes on padded tensors as TransformerTF does, but attention always masks
 * by length. It stores the whole matrix of attention scores.
 * AS_CODED: TransformerTF's numbers with its faults; choose it to compare with TransformerTF. An
 * LSTM stops at the lengths only if they differ enough (weft_should_use_packing). Without lengths,
 * models outside the TFT family mask nothing, not even later steps. PF_TFT masks sequences of
 * length 0 only.
 * PADDED and AS_CODED pad ragged inputs, compute pads like data, and numbers in pads may reach a
 * result. A step without keys attends to all keys evenly. */
typedef enum { WEFT_COMPAT_EXACT, WEFT_COMPAT_PADDED, WEFT_COMPAT_AS_CODED } weft_compat;

typedef struct weft_forecaster weft_forecaster;
typedef struct {
    /* Outputs: [M, output_dim] in the layout of a ragged future; [n, T, output_dim] for a plain
     * future, whose pads are 0 in EXACT, otherwise as computed. */
    weft_tensor *y;
    /* Last state of the LSTM over the past, not projected: h and c, each [layers, n, width]. */
    weft_state encoder;
} weft_forecast;
/* Weights of a forecast; NULL where the model has none. Only the TFT family selects features: the
 * weights of a step, one for each feature of past, future or fixed, sum to 1. */
typedef struct {
    /* Attention weights of the future in the last attention block; keys are past, then future.
     * EXACT: ragged [pairs, heads], a sequence for each future row and a token for each of
     * its keys. Otherwise plain [n, heads, T of the future, T of the past + T of the future]. */
    weft_tensor *attention;
    weft_tensor *past_selection;     /* plain [n, T, past features], always pads first */
    /* EXACT: ragged [M, future features]; otherwise plain [n, T, future features], data first */
    weft_tensor *future_selection;
    weft_tensor *static_selection;   /* plain [n, static features]; without them NULL */
} weft_forecast_maps;
/* Returns the module of the model, which has its parameters; NULL if f is NULL or inert. */
WEFT_API weft_module *weft_forecaster_module(weft_forecaster *f);
/* Runs the model over a batch. maps: NULL, or it receives the weights. A model with static features
 * requires series->fixed, any other requires NULL there; weft_tft_variant has the exceptions.
 * Errors: f NULL or inert; series NULL; widths, lengths or numbers of sequences that do not fit. y
 * and encoder are inert, fields of *maps NULL or inert. Like model(x) of TransformerTF. */
WEFT_API weft_forecast weft_forecast_run(weft_forecaster *f, const weft_series_batch *series,
                                         weft_forecast_maps *maps);

/* ---- the six models ---- *
 * A function makes a model as a module below m and copies opts; both are required. A name has 1 ..
 * 63 bytes, no dots and no slashes, and is unique in m. After an error, such as a field that
 * contradicts its comment, the model is inert.
 * Widths and counts are 1 or more; 0 means the default that the comment names. Dropouts are 0 <= p
 * < 1, between the layers of LSTMs and in gated blocks. Their default is 0, in TransformerTF .1.
 * The models of encoder_decoder_lstm, attention_lstm and transformer_lstm append `fixed` to every
 * step of past and future. With num_static_features 0 `fixed` must be NULL, as in TransformerTF.
 * full_attention: a future step sees all of past and future. Otherwise it sees all of the past and
 * the future steps before it, not itself. */
#define WEFT_NONE (-1)              /* num_transformer_blocks: no blocks */
typedef struct {
    int64_t num_past_features;      /* columns of past, required */
    int64_t num_future_features;    /* columns of future, required */
    int64_t num_static_features;    /* columns of fixed; 0: no `fixed` */
    int64_t d_encoder;              /* width of the encoder's LSTM, 0: 128 */
    int64_t d_decoder;              /* width of the decoder's LSTM, 0: 128 */
    int num_encoder_layers;         /* 0: 2 */
    int num_decoder_layers;         /* 0: 2. Layer k begins with the state of encoder layer k, or of
                                     * the last encoder layer */
    double dropout;                 /* between the layers of an LSTM */
    int num_mlp_hidden;             /* hidden layers of the head; above 0 requires d_mlp_hidden */
    const int64_t *d_mlp_hidden;    /* [num_mlp_hidden] their widths. NULL: the head is one linear
                                     * layer "mlp_head". Not NULL: an MLP "mlp_head.mlp", with
                                     * num_mlp_hidden 0 of its output layer only */
    weft_activation mlp_activation; /* 0: RELU */
    double mlp_dropout;             /* between the layers of the head */
    int64_t output_dim;             /* outputs of a future step, 0: 1 */
    weft_compat compat;             /* 0: EXACT */
} weft_encoder_decoder_lstm_opts;
/* Makes a forecasting model of two LSTMs: an encoder reads the past, a decoder continues from its
 * state over the future, and a head computes the outputs. If d_encoder and d_decoder differ, linear
 * layers "state_projection" project h and c to d_decoder. Like EncoderDecoderLSTM of
 * TransformerTF. */
WEFT_API weft_forecaster *weft_encoder_decoder_lstm_new(weft_module *m, const char *name,
                                                        const weft_encoder_decoder_lstm_opts *opts);

typedef struct {
    int64_t num_past_features;      /* columns of past, required */
    int64_t num_future_features;    /* columns of future, required */
    int64_t num_static_features;    /* columns of fixed; 0: no `fixed` */
    int64_t d_model;                /* default of d_encoder and d_decoder, 0: 128 */
    int64_t d_encoder;              /* width of the encoder's LSTM, 0: d_model */
    int64_t d_decoder;              /* width of the decoder's LSTM and the attention, 0: d_model */
    int num_layers;                 /* layers of each LSTM, 0: 2 */
    double dropout;                 /* in LSTMs, attention and gate */
    int num_heads;                  /* number of heads, divides d_decoder, 0: 4 */
    bool no_gating;                 /* layer_norm(attended + decoder) instead of "gate_add_norm",
                                     * layer_norm(GLU(attended) + decoder) */
    bool trainable_add;             /* "gate_add_norm" multiplies decoder by 2 sigmoid(mask), a
                                     * parameter [d_decoder], 0 at first; ignored with no_gating */
    bool full_attention;            /* a future step also sees itself and later ones */
    int64_t output_dim;             /* outputs of a future step, 0: 1 */
    weft_compat compat;             /* 0: EXACT */
} weft_attention_lstm_opts;
/* Makes a forecasting model of an encoder and a decoder LSTM, with attention from every decoder
 * step to the outputs of both. If d_encoder and d_decoder differ, linear layers project the
 * encoder's states and outputs to d_decoder. Like AttentionLSTM of TransformerTF. */
WEFT_API weft_forecaster *weft_attention_lstm_new(weft_module *m, const char *name,
                                                  const weft_attention_lstm_opts *opts);

typedef struct {
    int64_t num_past_features;      /* columns of past, required */
    int64_t num_future_features;    /* columns of future, required */
    int64_t num_static_features;    /* columns of fixed; 0: no `fixed` */
    int64_t d_model;                /* width of all layers, 0: 128 */
    int num_layers;                 /* layers of each LSTM, 0: 2 */
    int num_transformer_blocks;     /* number of blocks, 0: 2; WEFT_NONE: no blocks */
    double dropout;                 /* in LSTMs, gated networks and attention */
    int num_heads;                  /* number of heads, divides d_model, 0: 4 */
    bool full_attention;            /* a future step also sees itself and later ones */
    bool share_lstm_weights;        /* one LSTM "encoder" is also the decoder */
    int64_t output_dim;             /* outputs of a future step, 0: 1 */
    weft_compat compat;             /* 0: EXACT */
} weft_transformer_lstm_opts;
/* Makes a forecasting model of gated residual networks, LSTMs with a residual sum, then blocks. In
 * a block the past attends to itself, the future to past and future. Like TransformerLSTM of
 * TransformerTF. */
WEFT_API weft_forecaster *weft_transformer_lstm_new(weft_module *m, const char *name,
                                                    const weft_transformer_lstm_opts *opts);

/* The variants of the TFT differ in their static inputs.
 * TFT and PF_TFT: with num_static_features 0 static inputs are zeros, and `fixed` must be NULL.
 * With 1 and `fixed` NULL the feature is computed from the length of each past. With 2 or more
 * `fixed` is required.
 * The computed feature of TFT is 2 length / ctxt_seq_len - 1; weft_forecast_run fails if it must
 * compute the feature and ctxt_seq_len is 0; weft_tft_new does not. The computed feature of
 * PF_TFT, the model of PyTorch Forecasting, is length / ctxt_seq_len; with ctxt_seq_len 0, or in
 * AS_CODED, length / the longest past of the batch.
 * XTFT has no static inputs: it ignores num_static_features and ctxt_seq_len, and `fixed` must be
 * NULL. */
typedef enum { WEFT_TFT, WEFT_PF_TFT, WEFT_XTFT } weft_tft_variant;
typedef struct {
    int64_t num_past_features;      /* columns of past, required */
    int64_t num_future_features;    /* columns of future, required */
    int64_t num_static_features;    /* columns of fixed, see weft_tft_variant */
    int64_t d_model;                /* width of all layers, 0: 300 */
    int64_t d_hidden_continuous;    /* width of each feature in variable selection, 0: 8 */
    int num_heads;                  /* 0: 4; a head has d_model / num_heads columns, rounded down */
    int num_lstm_layers;            /* layers of each LSTM, 0: 2 */
    double dropout;                 /* in LSTMs, gated networks and attention */
    bool full_attention;            /* a future step also sees itself and later ones */
    int64_t ctxt_seq_len;           /* divisor of the computed feature; a past may be longer */
    int64_t output_dim;             /* outputs of a future step, 0: 7 quantiles */
    weft_compat compat;             /* 0: EXACT */
    weft_tft_variant variant;       /* 0: WEFT_TFT */
} weft_tft_opts;
/* Makes a temporal fusion transformer, Lim, Arik, Loeff, Pfister 2021, a forecasting model. Inside
 * it the past has zeros first, then data. Its length is T, or the longest of a ragged batch; a
 * plain past may have either past_align. The LSTM also runs over these zeros, so results depend on
 * that length. Like TemporalFusionTransformer of TransformerTF. */
WEFT_API weft_forecaster *weft_tft_new(weft_module *m, const char *name, const weft_tft_opts *opts);

/* ---- shorter series, as augmentation ---- */
typedef struct {
    int32_t past_least;             /* shortest new past; both past fields 0: it stays whole */
    int32_t past_most;              /* longest new past */
    int32_t future_least;           /* shortest new future; both future fields 0: it stays whole */
    int32_t future_most;            /* longest new future */
} weft_shorten_opts;
/* Returns a series of random shorter lengths: it keeps the last rows of each past, which are the
 * newest, and the first rows of each future. opts NULL: both stay whole. For each sequence it draws
 * a length, uniform in least .. most, both included: first for all pasts, then for all futures. A
 * sequence that is not longer than its draw stays whole.
 * A plain past or future keeps its shape and alignment. Its dropped rows are 0, and its new lengths
 * belong to the step. Shorten a ragged target by weft_split_sequences, with the lengths
 * weft_lengths_of(result.future). A plain target stays: give result.future_lengths to
 * weft_forecast_loss.
 * Errors: stream NULL, a range that is negative or descends; that past or future is inert. */
WEFT_API weft_series_batch weft_shorten_series(weft_series_batch series, weft_stream *stream,
                                               const weft_shorten_opts *opts);

/* ---- losses and metrics of forecasts ---- */
typedef enum {
    WEFT_FORECAST_MSE, WEFT_FORECAST_MAE, WEFT_FORECAST_HUBER, WEFT_FORECAST_QUANTILE,
    WEFT_FORECAST_SMAPE, WEFT_FORECAST_MAPE
} weft_forecast_kind;
typedef struct {
    weft_forecast_kind kind;        /* 0: MSE */
    double delta;                   /* HUBER: 0 means 1 */
    const weft_real *quantiles;     /* QUANTILE: [n], not descending; read and required if n > 0 */
    int n;                          /* one quantile for each output; 0: .02 .1 .25 .5 .75 .9 .98 */
    bool per_batch;                 /* QUANTILE: weight = sequences * quantiles, as TransformerTF */
    bool no_loss_masking;           /* plain: pads also count; lengths are still checked */
    weft_tensor *weights;           /* factors, without effect on the loss's weight; NULL: 1. For a
                                     * plain predicted plain [n or 1, T or 1, outputs or 1], for a
                                     * ragged one ragged [M, outputs or 1]. A last 1 may be left
                                     * out: plain [n, 1] has one factor a sequence. For ragged data
                                     * make that by weft_broadcast_to_tokens */
} weft_forecast_loss_opts;
/* Computes the loss of forecasts of opts->kind, by weft_mse_loss, weft_l1_loss, weft_huber_loss,
 * weft_quantile_loss, weft_smape or weft_mape; opts NULL: MSE. predicted is ragged [M, outputs], or
 * plain [n, T, outputs] with the data first. target has the layout and shape of predicted; for
 * QUANTILE target has one column. Either tensor may lack a last axis of 1, so that target is [M] or
 * [n, T].
 * lengths of a plain predicted: steps beyond them do not count, may be NaN, and get a gradient of
 * 0. NULL: all T steps count. lengths of a ragged predicted: NULL, or equal to its own.
 * The loss's weight is the number of elements of predicted that count; for QUANTILE that is steps *
 * quantiles. Errors: other shapes or lengths; sum and weight are inert. */
WEFT_API weft_loss weft_forecast_loss(weft_tensor *predicted, weft_tensor *target,
                                      const weft_lengths *lengths,
                                      const weft_forecast_loss_opts *opts);
/* Returns the median of `quantiles` quantiles: [.., quantiles] -> [.., 1], the column with index
 * quantiles / 2, rounded down. An even number gives the upper of the two in the middle. A ragged
 * tensor stays ragged, and gradients flow. Errors: another last axis; the result is inert. */
WEFT_API weft_tensor *weft_point_prediction(weft_tensor *predicted, int quantiles);
/* Running metrics of point predictions over elements that are not pads. Plain data, zeros at first;
 * read each by weft_meter_mean. The rmse is sqrt(weft_meter_mean(&meters.mse)). */
typedef struct {
    weft_meter mse;
    weft_meter mae;
    weft_meter smape;               /* 0 .. 2, not percent */
    weft_meter mape;                /* 1 is 100 %; a wrong forecast of a 0 makes it infinite */
} weft_forecast_meters;
/* Adds a batch to the metrics, or nothing on an error. point, target, lengths and errors are those
 * of weft_forecast_loss, with point as predicted. Not recorded. Waits for the device. meters NULL:
 * only checks the arguments. */
WEFT_API void weft_forecast_meters_add(weft_forecast_meters *meters, weft_tensor *point,
                                       weft_tensor *target, const weft_lengths *lengths);

#ifdef __cplusplus
}
#endif
#endif
