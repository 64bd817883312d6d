/* api_forecast.h - forecasting models of past and future series and static covariates.
 *
 * Contents: the six models, shorter series as augmentation, losses and metrics of
 * forecasts. */
#ifndef WEFT_API_FORECAST_H
#define WEFT_API_FORECAST_H
#include "../../nn/api_layers.h"
#include "../../nn/api_loss.h"
#include "../api_rnn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- forecasting: models of past series, future series and static covariates ---- *
 * TransformerTF's six models (CERN), with its names of options and parameters, so that its
 * checkpoints load. All of a future is known at once: the decoder reads known covariates, nothing
 * is fed back. past [N, past features] and future [M, future features] ragged, of as many
 * sequences; or plain [n, T, features] with their lengths (NULL: every sequence is full). The data
 * of a plain past are first or last, as past_align says; those of a plain future are first. What
 * lies beyond the lengths is never looked at. fixed: static covariates [n, static features], or
 * NULL. */
typedef struct {
    weft_tensor *past, *future, *fixed;
    const weft_lengths *past_lengths, *future_lengths;
    weft_align past_align;
} weft_series_batch;

/* How close to the original. EXACT: lengths are honoured everywhere, a sequence's result is the
 * same alone and in any batch (but for the TFT family, whose LSTMs run over what stands before a
 * short past, and which depends on that), a step without keys attends to nothing. PADDED: as the
 * original computes on padded tensors with masks and all scores in memory, but lengths are
 * honoured: an oracle. AS_CODED: the original's numbers with its quirks: lengths honoured only
 * where weft_should_use_packing says so, no masks at all without lengths, PF-TFT's lengths
 * multiplied. In the last two pads are read as they are, and a step without keys attends to all of
 * them evenly, pads included. */
typedef enum { WEFT_COMPAT_EXACT, WEFT_COMPAT_PADDED, WEFT_COMPAT_AS_CODED } weft_compat;

typedef struct weft_forecaster weft_forecaster;
/* y: [M, output_dim] ragged as the future is, or plain [n, T, output_dim] with 0 in its pads if the
 * future was plain (other than EXACT: with what the computation leaves there). encoder: the last
 * state of the past's LSTM. */
typedef struct { weft_tensor *y; weft_state encoder; } weft_forecast;
/* attention: of the last block that asks about the past, as in weft_attention (keys: past,
 * then future; in the last two modes [n, heads, T, keys]). The weights of variable
 * selection [.., features], of the TFT family; the past's are plain [n, T, features], its data
 * last. NULL: there are none. */
typedef struct {
    weft_tensor *attention, *past_selection, *future_selection, *static_selection;
} weft_forecast_maps;
/* The module of the model, NULL if it could not be made. */
WEFT_API weft_module *weft_forecaster_module(weft_forecaster *f);
/* maps may be NULL. */
WEFT_API weft_forecast weft_forecast_run(weft_forecaster *f, const weft_series_batch *series,
                                         weft_forecast_maps *maps);

/* In all options: widths and counts of 1 or more, 0 where a default is named; dropouts 0 .. 1 (but
 * not 1), where TransformerTF's own default is .1. num_static_features (the first three models; the
 * original has none): fixed is appended to every step of past and future. dropout of LSTMs is
 * between their layers. WEFT_NONE is no transformer block at all. */
#define WEFT_NONE (-1)
typedef struct {
    int64_t num_past_features, num_future_features, num_static_features;
    /* widths of the LSTMs, 0: 128; unlike: h and c go through linear layers "state_projection" */
    int64_t d_encoder, d_decoder;
    /* 0: 2; unlike: decoder layer k begins with the state of encoder layer k, or of the last */
    int num_encoder_layers, num_decoder_layers;
    double dropout;
    /* NULL: the head "mlp_head" is a linear layer; else an MLP */
    int num_mlp_hidden; const int64_t *d_mlp_hidden;
    weft_activation mlp_activation; double mlp_dropout;
    int64_t output_dim;                          /* 0: 1 */
    weft_compat compat;
} weft_encoder_decoder_lstm_opts;
/* An LSTM reads the past, another goes on from its state over the future, a head makes the
 * outputs. */
WEFT_API weft_forecaster *weft_encoder_decoder_lstm_new(weft_module *m, const char *name,
                                                        const weft_encoder_decoder_lstm_opts *opts);

typedef struct {
    int64_t num_past_features, num_future_features, num_static_features;
    /* 0: 128, and d_model; unlike: states and the encoder's outputs are projected */
    int64_t d_model, d_encoder, d_decoder;
    int num_layers;                              /* of both LSTMs, 0: 2 */
    double dropout;
    int num_heads;                               /* divide d_decoder, 0: 4 */
    /* gate_add_norm(attended, decoder), or layer_norm(attended + decoder) */
    bool no_gating, trainable_add;
    /* a step sees all of past and future; else the past and the decoder's steps strictly before
     * it */
    bool full_attention;
    int64_t output_dim;                          /* 0: 1 */
    weft_compat compat;
} weft_attention_lstm_opts;
/* The encoder and decoder LSTMs, and attention of every decoder step to both their outputs. */
WEFT_API weft_forecaster *weft_attention_lstm_new(weft_module *m, const char *name,
                                                  const weft_attention_lstm_opts *opts);

typedef struct {
    int64_t num_past_features, num_future_features, num_static_features;
    /* 0: 128, 2, 2 (WEFT_NONE: no blocks), 4 heads, which divide d_model */
    int64_t d_model; int num_layers, num_transformer_blocks; double dropout; int num_heads;
    /* full: as in AttentionLSTM; share: one LSTM "encoder", which is the decoder, too */
    bool full_attention, share_lstm_weights;
    int64_t output_dim;                          /* 0: 1 */
    weft_compat compat;
} weft_transformer_lstm_opts;
/* GRNs, LSTMs with a residual sum, then blocks in which the past attends to itself and the
 * future to both. */
WEFT_API weft_forecaster *weft_transformer_lstm_new(weft_module *m, const char *name,
                                                    const weft_transformer_lstm_opts *opts);

/* Which model of the family. PF_TFT: that of PyTorch Forecasting, the same but that without fixed
 * the static feature is length / ctxt_seq_len (ctxt_seq_len 0, or AS_CODED: / the longest past of
 * the batch). XTFT: without anything static: num_static_features and ctxt_seq_len are not looked
 * at, fixed must be NULL. */
typedef enum { WEFT_TFT, WEFT_PF_TFT, WEFT_XTFT } weft_tft_variant;
typedef struct {
    /* no static ones: what is made of them is made of 0 */
    int64_t num_past_features, num_future_features, num_static_features;
    /* 0: 300, 8 (of variable selection), 4, 2 */
    int64_t d_model, d_hidden_continuous; int num_heads, num_lstm_layers;
    double dropout;
    bool full_attention;                         /* as in AttentionLSTM */
    /* the longest past there can be: without fixed the one static feature is 2 length / that - 1 */
    int64_t ctxt_seq_len;
    int64_t output_dim;                          /* 0: 7, quantiles */
    weft_compat compat;
    weft_tft_variant variant;
} weft_tft_opts;
/* Lim, Arik, Loeff, Pfister 2021. The past is taken right-aligned, a ragged one as long as the
 * longest of the batch, a plain one as long as it is: pads of 0 come first. */
WEFT_API weft_forecaster *weft_tft_new(weft_module *m, const char *name, const weft_tft_opts *opts);

/* ---- shorter series, as augmentation ---- */
/* Returns a series of random shorter lengths: the newest rows of the past and the first rows of
 * the future are kept, so that they still meet. A new length is the lesser of the sequence's own
 * and a draw, uniform in least .. most, both included; one draw per sequence, the past first. A
 * side whose range is 0 .. 0 stays whole. Ragged stays ragged; a plain side keeps its shape and
 * alignment, what is dropped is 0, and its new lengths belong to the step. Shorten the target to
 * the lengths of the result's future by weft_split_sequences. */
typedef struct { int32_t past_least, past_most, future_least, future_most; } weft_shorten_opts;
WEFT_API weft_series_batch weft_shorten_series(weft_series_batch series, weft_stream *stream,
                                               const weft_shorten_opts *opts);
/* ---- losses and metrics of forecasts ---- *
 * predicted: ragged [M, outputs]; or plain [n, T, outputs] with the lengths of the decoder, data
 * first: what lies behind them then counts nothing, may be NaN, and has a gradient of 0. lengths
 * NULL: all T steps count; beside ragged ones they must be its own. target and weights are of the
 * same layout; a last axis of 1 may be missing from any of them. */
typedef enum {
    WEFT_FORECAST_MSE,
    WEFT_FORECAST_MAE,
    WEFT_FORECAST_HUBER,
    WEFT_FORECAST_QUANTILE,
    WEFT_FORECAST_SMAPE,
    WEFT_FORECAST_MAPE
} weft_forecast_kind;
typedef struct {
    weft_forecast_kind kind;
    double delta;                             /* HUBER: 0 means 1 */
    /* QUANTILE: one for each output, none less than the one before; n 0: .02 .1 .25 .5 .75 .9
     * .98 */
    const weft_real *quantiles; int n;
    bool per_batch;                /* QUANTILE: divided by sequences * n, as TransformerTF has it */
    bool no_loss_masking;             /* plain: pads count, too; lengths are checked all the same */
    /* factors of the elements, not in the divisor; [n, 1] is one for each sequence; NULL: 1 */
    weft_tensor *weights;
} weft_forecast_loss_opts;
/* The losses of nn by those names; opts NULL: MSE. To be divided by the number of real elements
 * (outputs of real steps; SMAPE and MAPE as well). */
WEFT_API weft_loss weft_forecast_loss(weft_tensor *predicted, weft_tensor *target,
                                      const weft_lengths *lengths,
                                      const weft_forecast_loss_opts *opts);
/* [.., quantiles] -> [.., 1]: column quantiles / 2, of an odd number of quantiles the one in the
 * middle. */
WEFT_API weft_tensor *weft_point_prediction(weft_tensor *predicted, int quantiles);
/* Running metrics of point predictions over real elements; plain data, zeros at first, each read by
 * weft_meter_mean; a NULL one swallows all. One wrong forecast of a target of 0 makes mape
 * infinite. */
typedef struct { weft_meter mse, mae, smape, mape; } weft_forecast_meters;
/* The rmse of all that was added is sqrt(weft_meter_mean(&meters.mse)), no mean of roots. */
/* Adds a batch's sums and their weight; point, target and lengths as in weft_forecast_loss. Not
 * recorded; waits. Nothing is added on error. */
WEFT_API void weft_forecast_meters_add(weft_forecast_meters *meters, weft_tensor *point,
                                       weft_tensor *target, const weft_lengths *lengths);

#ifdef __cplusplus
}
#endif
#endif
