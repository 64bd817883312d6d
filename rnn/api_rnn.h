/* api_rnn.h - recurrent layers over ragged batches, one step at a time, decoding.
 *
 * States are [layers * directions, n, width] in the order in which the user gave the sequences; the reverse direction runs from a
 * sequence's own end. A sequence of length 0 has no output rows, and its last state is its first. Of the layout rows each row is a
 * column of the recurrence, several sequences one after the other; any other layout runs packed. The outputs are the same bits. */
#ifndef WEFT_API_RNN_H
#define WEFT_API_RNN_H
#include "nn/api_nn.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_rnn weft_rnn;
typedef struct {
    int64_t   input, hidden;
    int       layers;                            /* 1 .. 32; 0 means 1 */
    bool      bidirectional, no_bias;
    int64_t   proj;                              /* LSTM: width of a projected h, less than hidden; 0 none (Sak et al. 2014) */
    weft_real dropout;                           /* between layers, in training, 0 .. 1 */
    bool      relu;                              /* weft_rnn_new only: max(0, x) instead of tanh */
    bool      lean;                              /* less memory, more time: see weft_opts.lean, which is this for all layers */
} weft_rnn_opts;
typedef struct { weft_tensor *h, *c; } weft_state;                /* c: LSTM only, else NULL */
typedef struct { weft_tensor *y; weft_state last; } weft_rnn_out;
#define WEFT_ZERO_STATE ((weft_state){ NULL, NULL })

/* PyTorch's RNN, GRU and LSTM with its parameter names (weight_ih_l0, bias_hh_l1_reverse, weight_hr_l0), gate order (r z n; i f g o),
 * and first values, uniform in +-1/sqrt(hidden). */
WEFT_API weft_rnn *weft_rnn_new(weft_module *m, const char *name, const weft_rnn_opts *opts);
WEFT_API weft_rnn *weft_gru_new(weft_module *m, const char *name, const weft_rnn_opts *opts);
WEFT_API weft_rnn *weft_lstm_new(weft_module *m, const char *name, const weft_rnn_opts *opts);
/* x ragged [N, input]: y ragged [N, directions * width] in x's layout. x plain [n, T, input]: n sequences of length T, y plain. The
 * first state NULL: zeros; an LSTM takes h and c or neither. */
WEFT_API weft_rnn_out weft_rnn_run(weft_rnn *r, weft_tensor *x, weft_state first);
/* One step of one-directional layers, x plain [n, input] -> y [n, width]: decoding. */
WEFT_API weft_rnn_out weft_rnn_step(weft_rnn *r, weft_tensor *x, weft_state state);
/* The layer from public operators, step by step, instead of the fused one: the same function, slower; a lesson and an oracle. */
WEFT_API void weft_rnn_composed(weft_rnn *r, bool on);
/* The module of the layer, to freeze it, say; NULL if it could not be made. */
WEFT_API weft_module *weft_rnn_module(weft_rnn *r);
/* The states of the sequences parent[0 .. n-1], for beams; those in which every sequence stands `times` times in a row. A state of
 * NULLs, zeros, stays one. */
WEFT_API weft_state weft_state_select(weft_state s, const int32_t *parent, int64_t n);
WEFT_API weft_state weft_state_repeat(weft_state s, int64_t times);

/* ---- decoding ---- *
 * step: from the last tokens [rows] ints and the state the scores [rows, classes] (logits) of the next; it replaces *state by the next
 * one, of the same shapes each time. Row r belongs to sequence r / beams (beams = 1 but for beam search). Nothing is recorded, dropout
 * is off, memory is constant: what a step makes ends before the next one, but for its state. Sequences that have ended are still
 * given to step. A score of -inf forbids a token; of equal scores the lower token is taken. */
typedef weft_tensor *weft_decode_step(weft_tensor *tokens, weft_state *state, int64_t beams, void *user);
typedef struct {
    int32_t  begin, end;                         /* tokens that start and finish a sequence; end -1: only the limit does */
    int64_t  limit;                              /* tokens at most, 1 or more, end not counted */
    int      beams;                              /* beam search: hypotheses kept for each sequence, 0 means 1 */
    double   length_penalty;                     /* beams: score / length^penalty, end counted (Wu et al. 2016 without the constant); 0: none */
    double   temperature; int64_t top_k;         /* sampling: logits / temperature (0: 1) among the k best (0: all) */
    const char *stream;                          /* sampling: the random stream, NULL: "decode" */
} weft_decode_opts;
/* tokens [n, limit] without end; score: log probability by the model, end included (what the limit has cut has none). */
typedef struct { int64_t n, limit; int32_t *tokens, *len; double *score; } weft_decoded;
/* The caller gives the state of n sequences and frees the result by weft_decoded_end; on error n is 0 and the context has failed. */
WEFT_API weft_decoded weft_decode_greedy(weft *w, int64_t n, weft_state first, weft_decode_step *step, void *user, const weft_decode_opts *opts);
WEFT_API weft_decoded weft_decode_sampled(weft *w, int64_t n, weft_state first, weft_decode_step *step, void *user, const weft_decode_opts *opts);
WEFT_API weft_decoded weft_decode_beam(weft *w, int64_t n, weft_state first, weft_decode_step *step, void *user, const weft_decode_opts *opts);
WEFT_API void weft_decoded_end(weft_decoded *d);

/* ---- the sequence helpers of TransformerTF ---- *
 * Its names (antolu/transformertf, utils/sequence.py) for this library's functions. Padded tensors are plain [n, T, ..] with n lengths of
 * 0 .. T; LEFT: data first. Unlike there, how the data lie is said, never guessed from zeros, and bad lengths are errors that name the sequence. */
/* That library's rule, a pure function: all equal, none or NULL: no; else if the lengths differ by more than a tenth of the longest, or
 * there are 8 sequences or more. It is advice about time: nothing here asks it, and ragged tensors are right with either answer. */
WEFT_API bool weft_should_use_packing(const weft_lengths *lengths);
/* The data of each sequence moved from one side of its row to the other, [n, T, ..] -> [n, T, ..]; pads become 0 (weft_realign). */
WEFT_API weft_tensor *weft_align_encoder_sequences(weft_tensor *padded, const weft_lengths *lengths, weft_align from, weft_align to);
/* [n, T, ..] -> packed, data where align says; of a decoder's, first (weft_pack_padded). Sequences need no order. */
WEFT_API weft_tensor *weft_pack_encoder_sequences(weft_tensor *padded, const weft_lengths *lengths, weft_align align);
WEFT_API weft_tensor *weft_pack_decoder_sequences(weft_tensor *padded, const weft_lengths *lengths);
/* Ragged -> [n, total, ..], data first, then 0; total 0: the longest. lengths, if not NULL, is set to those of the sequences, owned by the step. */
WEFT_API weft_tensor *weft_unpack_to_fixed_length(weft_tensor *ragged, int64_t total, weft_lengths *lengths);
/* Whether all that lies beside the data is 0 (NaN is not); if not the context fails, naming sequence and step. NULL lengths: true. Waits for the
 * device and reads the whole tensor: a check of a first batch. */
WEFT_API bool weft_validate_encoder_alignment(weft_tensor *padded, const weft_lengths *lengths, weft_align align);
/* [n, size]: 1 where there is a pad, else 0; inverse: 1 where the data are. A constant. */
WEFT_API weft_tensor *weft_create_mask(weft *w, int64_t size, const weft_lengths *lengths, weft_align align, bool inverse);
typedef struct { bool not_causal; weft_align encoder_align, decoder_align; } weft_attention_mask_opts;
/* [n, future, past + future]: 1 where query i of the decoder may not look, else 0. Keys are the encoder's steps, forbidden in pads, then the
 * decoder's: forbidden from i itself on (strictly past), or, not_causal, in pads. decoder NULL: every sequence is full; opts NULL: zeros. A
 * constant; weft_softmax_masked wants the opposite, 1 where a key takes part. */
WEFT_API weft_tensor *weft_get_attention_mask(weft *w, const weft_lengths *encoder, int64_t past, const weft_lengths *decoder, int64_t future,
                                              const weft_attention_mask_opts *opts);
/* Random shorter lengths, as augmentation: into out [n], which may be lengths->len itself, the lesser of each sequence's length and a draw,
 * uniform in least .. most, both included; one draw a sequence. WEFT_EARG, and nothing drawn, of NULLs or of a range that is none. */
WEFT_API weft_status weft_draw_lengths(weft_stream *stream, const weft_lengths *lengths, int32_t least, int32_t most, int32_t *out);
/* The first, or newest: the last, shorter->len[s] rows of each sequence of a ragged tensor; ids stay. Reals or ints; an error: longer ones. */
WEFT_API weft_tensor *weft_shorten(weft_tensor *ragged, const weft_lengths *shorter, bool newest);

/* ---- forecasting: models of past series, future series and static covariates ---- *
 * TransformerTF's six models (CERN), with its names of options and parameters, so that its checkpoints load. All of a future is known at once: the
 * decoder reads known covariates, nothing is fed back. past [N, past features] and future [M, future features] ragged, of as many
 * sequences; or plain [n, T, features] with their lengths (NULL: every sequence is full). The data of a plain past are first or last, as
 * past_align says; those of a plain future are first. What lies beyond the lengths is never looked at. fixed: static covariates [n, static features], or NULL. */
typedef struct {
    weft_tensor *past, *future, *fixed;
    const weft_lengths *past_lengths, *future_lengths;
    weft_align past_align;
} weft_series;

/* A series of random shorter lengths: of past the newest rows stay, of future the first, so that they still meet. Lengths are drawn by
 * weft_draw_lengths, those of past before those of future; a side whose range is 0 .. 0 stays whole. Ragged stays ragged; a plain side keeps
 * its shape and alignment, what is dropped is 0, and its new lengths are the step's. The target goes the way of the future: shorten it
 * to the lengths of the result's. */
typedef struct { int32_t past_least, past_most, future_least, future_most; } weft_shorten_opts;
WEFT_API weft_series weft_shorten_series(weft_series series, weft_stream *stream, const weft_shorten_opts *opts);
/* How close to the original. EXACT: lengths are honoured everywhere, a sequence's result is the same alone and in any batch (but for the TFT family, whose
 * LSTMs run over what stands before a short past, and which depends on that), a step without keys attends to nothing. PADDED: as the original computes
 * on padded tensors with masks and all scores in memory, but lengths are honoured: an oracle. AS_CODED: the original's numbers with its quirks:
 * lengths honoured only where weft_should_use_packing says so, no masks at all without lengths, PF-TFT's lengths multiplied.
 * In the last two pads are read as they are, and a step without keys attends to all of them evenly, pads included. */
typedef enum { WEFT_COMPAT_EXACT, WEFT_COMPAT_PADDED, WEFT_COMPAT_AS_CODED } weft_compat;

typedef struct weft_forecaster weft_forecaster;
/* y: [M, output_dim] ragged as the future is, or plain [n, T, output_dim] with 0 in its pads if the future was plain (other than EXACT: with what the
 * computation leaves there). encoder: the last state of the past's LSTM. */
typedef struct { weft_tensor *y; weft_state encoder; } weft_forecast;
/* attention: of the last block that asks about the past, as in weft_interpretable_run (keys: past, then future; in the last two modes [n, heads, T, keys]).
 * The weights of variable selection [.., features], of the TFT family; the past's are plain [n, T, features], its data last. NULL: there are none. */
typedef struct { weft_tensor *attention, *past_selection, *future_selection, *static_selection; } weft_forecast_maps;
/* The module of the model, NULL if it could not be made. */
WEFT_API weft_module *weft_forecaster_module(weft_forecaster *f);
/* maps may be NULL. */
WEFT_API weft_forecast weft_forecast_run(weft_forecaster *f, const weft_series *series, weft_forecast_maps *maps);

/* In all options: widths and counts of 1 or more, dropouts 0 .. 1 (but not 1). num_static_features (the first three models; the original has none):
 * fixed is appended to every step of past and future. dropout of LSTMs is between their layers. */
typedef struct {
    int64_t num_past_features, num_future_features, num_static_features;
    int64_t d_encoder, d_decoder;                /* widths of the LSTMs; unlike: h and c go through linear layers "state_projection" */
    int num_encoder_layers, num_decoder_layers;  /* unlike: decoder layer k begins with the state of encoder layer k, or of the last */
    weft_real dropout;
    int num_mlp_hidden; const int64_t *d_mlp_hidden;             /* NULL: the head "mlp_head" is a linear layer; else an MLP */
    weft_activation mlp_activation; weft_real mlp_dropout;
    int64_t output_dim;
    weft_compat compat;
} weft_encoder_decoder_lstm_opts;
#define WEFT_ENCODER_DECODER_LSTM_DEFAULTS { .d_encoder = 128, .d_decoder = 128, .num_encoder_layers = 2, .num_decoder_layers = 2, \
    .dropout = (weft_real).1, .mlp_activation = WEFT_RELU, .mlp_dropout = (weft_real).1, .output_dim = 1 }
/* An LSTM reads the past, another goes on from its state over the future, a head makes the outputs. */
WEFT_API weft_forecaster *weft_encoder_decoder_lstm_new(weft_module *m, const char *name, const weft_encoder_decoder_lstm_opts *opts);

typedef struct {
    int64_t num_past_features, num_future_features, num_static_features;
    int64_t d_model, d_encoder, d_decoder;       /* the last two 0: d_model; unlike: states and the encoder's outputs are projected */
    int num_layers;                              /* of both LSTMs */
    weft_real dropout;
    int num_heads;                               /* divide d_decoder */
    bool use_gating, trainable_add;              /* gate_add_norm(attended, decoder), or layer_norm(attended + decoder) */
    bool causal_attention;                       /* a step sees the past and the decoder's steps strictly before it; else all of both */
    int64_t output_dim;
    weft_compat compat;
} weft_attention_lstm_opts;
#define WEFT_ATTENTION_LSTM_DEFAULTS { .d_model = 128, .num_layers = 2, .dropout = (weft_real).1, .num_heads = 4, .use_gating = true, \
    .causal_attention = true, .output_dim = 1 }
/* The encoder and decoder LSTMs, and attention of every decoder step to both their outputs. */
WEFT_API weft_forecaster *weft_attention_lstm_new(weft_module *m, const char *name, const weft_attention_lstm_opts *opts);

typedef struct {
    int64_t num_past_features, num_future_features, num_static_features;
    int64_t d_model; int num_layers, num_transformer_blocks; weft_real dropout; int num_heads;      /* heads divide d_model */
    bool causal_attention, share_lstm_weights;   /* share: one LSTM "encoder", which is the decoder, too */
    int64_t output_dim;
    weft_compat compat;
} weft_transformer_lstm_opts;
#define WEFT_TRANSFORMER_LSTM_DEFAULTS { .d_model = 128, .num_layers = 2, .num_transformer_blocks = 2, .dropout = (weft_real).1, .num_heads = 4, \
    .causal_attention = true, .output_dim = 1 }
/* GRNs, LSTMs with a residual sum, then blocks in which the past attends to itself and the future to both. */
WEFT_API weft_forecaster *weft_transformer_lstm_new(weft_module *m, const char *name, const weft_transformer_lstm_opts *opts);

typedef struct {
    int64_t num_past_features, num_future_features, num_static_features;         /* no static ones: what is made of them is made of 0 */
    int64_t d_model, d_hidden_continuous; int num_heads, num_lstm_layers;        /* d_hidden_continuous: of variable selection */
    weft_real dropout;
    bool causal_attention;
    int64_t ctxt_seq_len;                        /* the longest past there can be: without fixed the one static feature is 2 length / that - 1 */
    int64_t output_dim;
    weft_compat compat;
} weft_tft_opts;
#define WEFT_TFT_DEFAULTS { .num_static_features = 1, .d_model = 300, .d_hidden_continuous = 8, .num_heads = 4, .num_lstm_layers = 2, \
    .dropout = (weft_real).1, .causal_attention = true, .output_dim = 7 }
/* Lim, Arik, Loeff, Pfister 2021. The past is taken right-aligned, a ragged one as long as the longest of the batch, a plain one as
 * long as it is: pads of 0 come first. */
WEFT_API weft_forecaster *weft_temporal_fusion_transformer_new(weft_module *m, const char *name, const weft_tft_opts *opts);
/* The same, but that without fixed the static feature is length / ctxt_seq_len (ctxt_seq_len 0, or AS_CODED: / the longest past of the batch). */
WEFT_API weft_forecaster *weft_pf_temporal_fusion_transformer_new(weft_module *m, const char *name, const weft_tft_opts *opts);
/* The same without anything static: num_static_features and ctxt_seq_len are not looked at, fixed must be NULL. */
WEFT_API weft_forecaster *weft_xtft_new(weft_module *m, const char *name, const weft_tft_opts *opts);

/* ---- losses and metrics of forecasts ---- *
 * predicted: ragged [M, outputs]; or plain [n, T, outputs] with the lengths of the decoder, data first: what lies behind them then counts
 * nothing, may be NaN, and has a gradient of 0. lengths NULL: all T steps count; beside ragged ones they must be its own. target and
 * weights are of the same layout; a last axis of 1 may be missing from any of them. */
typedef enum { WEFT_FORECAST_MSE, WEFT_FORECAST_MAE, WEFT_FORECAST_HUBER, WEFT_FORECAST_QUANTILE, WEFT_FORECAST_SMAPE, WEFT_FORECAST_MAPE } weft_forecast_kind;
typedef struct {
    weft_forecast_kind kind;
    weft_real delta;                             /* HUBER: 0 means 1 */
    const weft_real *quantiles; int n;           /* QUANTILE: one for each output, none less than the one before; n 0: .02 .1 .25 .5 .75 .9 .98 */
    bool per_batch;                              /* QUANTILE: divided by sequences * n, as TransformerTF has it */
    bool no_loss_masking;                        /* plain: pads count, too; lengths are checked all the same */
    weft_tensor *weights;                        /* factors of the elements, not in the divisor; [n, 1] is one for each sequence; NULL: 1 */
} weft_forecast_loss_opts;
/* The losses of nn by those names; opts NULL: MSE. To be divided by the number of real elements (outputs of real steps; SMAPE and MAPE as well). */
WEFT_API weft_loss weft_forecast_loss(weft_tensor *predicted, weft_tensor *target, const weft_lengths *lengths, const weft_forecast_loss_opts *opts);
/* [.., quantiles] -> [.., 1]: column quantiles / 2, of an odd number of quantiles the one in the middle. */
WEFT_API weft_tensor *weft_point_prediction(weft_tensor *predicted, int quantiles);
/* Running metrics of point predictions over real elements; plain data, zeros at first, each read by weft_meter_mean; a NULL one swallows all.
 * One wrong forecast of a target of 0 makes mape infinite. */
typedef struct { weft_meter mse, mae, smape, mape; } weft_forecast_meters;
/* Adds a batch's sums and their weight; point, target and lengths as in weft_forecast_loss. Not recorded; waits. Nothing is added on error. */
WEFT_API void weft_forecast_meters_add(weft_forecast_meters *meters, weft_tensor *point, weft_tensor *target, const weft_lengths *lengths);
/* The root of mse's mean: over all that was added, not a mean of the batches' roots. NaN if nothing was. */
WEFT_API double weft_forecast_rmse(const weft_forecast_meters *meters);

#ifdef __cplusplus
}
#endif
#endif
