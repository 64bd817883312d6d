/* api_rnn.h - recurrent layers over ragged batches, one step at a time, decoding.
 *
 * Contents: layers, running them, decoding.
 *
 * N is the number of tokens, n the number of sequences. width is opts.proj if set, otherwise
 * hidden. directions is 2 for a bidirectional layer, otherwise 1. A state has h, plain [layers *
 * directions, n, width]. An LSTM or CIFG also has c, plain [layers * directions, n, hidden]. Axis 1
 * has the user's order of sequences. Axis 0 has layer by layer, forward before reverse. The reverse
 * direction runs from the last token of each sequence to the first. A sequence of length 0 has no
 * output rows, and its last state is its first. The layout of x does not change a bit of a token's
 * output. In ROWS the sequences of a row run one after the other; other layouts run packed. */
#ifndef WEFT_API_RNN_H
#define WEFT_API_RNN_H
#include "../nn/api_layers.h"
#include "../nn/api_loss.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- layers ---- */
typedef struct weft_rnn weft_rnn;
typedef struct {
    int64_t input;       /* width of x; required */
    int64_t hidden;      /* number of units; required */
    int     layers;      /* 1 .. 32; 0 means 1 */
    bool    bidirectional;       /* also runs from the last token to the first */
    bool    no_bias;     /* leaves out bias_ih and bias_hh */
    /* LSTM, CIFG (api_cell.h): width of h after a projection, below hidden; 0: none. Sak 2014. */
    int64_t proj;
    double  dropout;     /* of y of each layer except the last, while training; 0 <= p < 1 */
    /* One dropout mask for all tokens of a sequence, as in weft_dropout with per_sequence: Gal &
     * Ghahramani 2016. false: another mask for each token. */
    bool    variational;
    /* Dropout of the elements of each weight_hh while training, one mask for a whole run, 0 <= p <
     * 1: Merity et al. 2017. weft_rnn_step draws a mask for each token. 0: none. */
    double  weight_drop;
    bool    relu;        /* weft_elman_new only: max(0, x) instead of tanh */
    bool    lean;        /* less memory, more time; weft_opts.lean sets it for all layers */
    /* LSTM and CIFG with biases: first value of the forget gate in bias_ih; bias_hh is then 0
     * there. WEFT_ZERO means the value 0. 0: both are drawn as the other biases. 1 helps with long
     * sequences, Jozefowicz et al. 2015. */
    double  forget_bias;
} weft_rnn_opts;
typedef struct {
    weft_tensor *h;      /* [layers * directions, n, width]; NULL: zeros */
    weft_tensor *c;      /* [layers * directions, n, hidden]; NULL if h is NULL: zeros. Always
                          * NULL for a layer without c */
} weft_state;
typedef struct {
    weft_tensor *y;      /* h of the last layer for each token, both directions side by side */
    weft_state last;     /* state after the last token; reverse direction: after the first token */
} weft_rnn_out;
#ifndef __cplusplus
#define WEFT_ZERO_STATE ((weft_state){ NULL, NULL })
#else
#define WEFT_ZERO_STATE (weft_state{ NULL, NULL })
#endif

/* Each function makes a layer as a module below m. The context owns it until weft_close. opts is
 * required and copied. The name is copied: 1 .. 63 bytes without dots and slashes, unique in m.
 * Errors: m or opts NULL, a bad name or option. The context then fails, and the layer is inert,
 * never NULL: its results are inert too.
 *
 * Parameter names (weight_ih_l0, bias_hh_l1_reverse, weight_hr_l0), gate order (r z n; i f g o) and
 * first values, uniform in +-1/sqrt(hidden), are PyTorch's. In the equations W is weight_ih, U
 * weight_hh, b bias_ih and b' bias_hh. An index selects the rows of a gate: W_i is rows 0 .. hidden
 * - 1 of W, W_f the next ones. x is the input of a token, h and c are the states before it, h' and
 * c' those after it; * is elementwise. */

/* Makes an Elman RNN (1990): h' = tanh(W x + b + U h + b'), or max(0, ..) with .relu. Like
 * torch.nn.RNN. */
WEFT_API weft_rnn *weft_elman_new(weft_module *m, const char *name, const weft_rnn_opts *opts);
/* Makes a GRU (Cho et al. 2014) with the reset gate after the product, as in PyTorch and cuDNN:
 *     r = sigmoid(W_r x + b_r + U_r h + b'_r)
 *     z = sigmoid(W_z x + b_z + U_z h + b'_z)
 *     n = tanh(W_n x + b_n + r * (U_n h + b'_n))
 *     h' = (1 - z) * n + z * h
 * Like torch.nn.GRU. */
WEFT_API weft_rnn *weft_gru_new(weft_module *m, const char *name, const weft_rnn_opts *opts);
/* Makes an LSTM (Hochreiter & Schmidhuber 1997) with the forget gate of Gers et al. 2000:
 *     i = sigmoid(W_i x + b_i + U_i h + b'_i)
 *     f = sigmoid(W_f x + b_f + U_f h + b'_f)
 *     g = tanh(W_g x + b_g + U_g h + b'_g)
 *     o = sigmoid(W_o x + b_o + U_o h + b'_o)
 *     c' = f * c + i * g
 *     h' = o * tanh(c'), or V (o * tanh(c')) with .proj, V being weight_hr
 * Like torch.nn.LSTM. */
WEFT_API weft_rnn *weft_lstm_new(weft_module *m, const char *name, const weft_rnn_opts *opts);

/* ---- running them ---- */
/* Runs the layer over x, reals: ragged [N, input], or plain [n, T, input] with n sequences of
 * length T. y has x's form, and its layout if ragged, with the width directions * width. first: the
 * states before the first token that each direction reads; WEFT_ZERO_STATE means zeros. Errors:
 * other shapes, r or x NULL; only one of h and c for a layer with a c, a c for a layer without; all
 * results are inert. weft_gradients of a loss by y gives the direct derivative only, without the
 * effect of h_t on later tokens. weft_rnn_trace records the sum of both. Like lstm(x, (h, c)). */
WEFT_API weft_rnn_out weft_rnn_run(weft_rnn *r, weft_tensor *x, weft_state first);
/* Runs one token of each sequence through a layer of one direction: x plain [n, input] gives y
 * plain [n, width]. state: the states before the step, WEFT_ZERO_STATE means zeros; .last has those
 * after it. Errors: a bidirectional layer; otherwise as weft_rnn_run. Like torch.nn.LSTMCell. */
WEFT_API weft_rnn_out weft_rnn_step(weft_rnn *r, weft_tensor *x, weft_state state);
/* Returns the final h of the last layer, in the user's order of sequences: the usual input of a
 * classifier. It is plain [n, width], or [n, 2 width] with forward, then reverse direction side by
 * side; reverse: h after the first token. last: out.last of a run of r. Like h_n. */
WEFT_API weft_tensor *weft_final_state(weft_rnn *r, weft_state last);

/* ---- decoding ---- *
 * Sequences are generated token by token. A row is one hypothesis: the step function gets one row
 * for each sequence or, in beam search, up to `beams` adjacent rows. A sequence that has ended has
 * no row. Nothing is recorded, dropout is off, and memory is constant: tensors of a step end before
 * the next step, except its state. */
/* Input of one step, valid until the function returns. */
typedef struct {
    weft_tensor   *tokens;      /* [n] ints: last token of each row; at step 0 .begin or prompt */
    /* States before this step, [layers, n, width]; at step 0 `first` of weft_decode. The step
     * function replaces them by the states after the step, as in rows->state = out.last. weft
     * copies these, and reorders them by .parent for the next step. Between steps only n changes in
     * their shape. A model without a recurrent state leaves h and c NULL. */
    weft_state     state;
    int64_t        n;           /* number of rows in this step */
    int64_t        step;        /* number of this step, from 0 */
    const int32_t *sequence;    /* [n] number of each row's sequence, ascending */
    /* [n] row i continues row parent[i] of the previous step; at step 0 parent[i] is sequence[i].
     * Reorder your own data of rows by it, such as the states of a grammar, but not .state. */
    const int32_t *parent;
    weft_lengths   of;          /* .len: rows of every sequence in this step; 0 if it has ended */
} weft_decode_rows;
/* Returns the scores of each row's next token: logits, plain reals [rows->n, classes], with the
 * same classes in all steps. A score of -inf forbids a token. If scores are equal, the lower token
 * wins. The decoding fails for NULL, another shape, a NaN, or a row of only -inf. */
typedef weft_tensor *weft_decode_step_fn(weft_decode_rows *rows, void *user);
/* Returns a ragged view of x, so that each row attends to the memory of its own sequence. x: plain
 * [rows->n, ..], reals or ints. The view has the n sequences of weft_decode, each with its rows of
 * this step. The memory must have these n sequences in the same order; its ids may differ.
 *     weft_attention_query(layer, weft_decode_ragged(rows, out.y), memory, WEFT_ALL_KEYS, NULL)
 * Errors: rows or x NULL, x ragged or with another number of rows; the result is inert. */
WEFT_API weft_tensor *weft_decode_ragged(const weft_decode_rows *rows, weft_tensor *x);
typedef struct {
    int32_t  begin;             /* first input token; -1: the prompt's first, so an empty prompt
                                 * or prompt NULL is then an error */
    int32_t  end;               /* end token; -1: only `limit` ends a sequence */
    int64_t  limit;             /* most tokens of a result, without end and prompt; required */
    int      beams;             /* above 1: beam search with that many hypotheses; 0 means 1 */
    /* Beams: results are ranked by score / length^penalty, those cut by limit together with those
     * that ended; length counts the end token. During the search hypotheses compete by score. The
     * search of a sequence ends when no unfinished hypothesis can become one of the `best`. Below 0
     * favours short results. 0: none. Wu et al. 2016 without the constant. */
    double   length_penalty;
    int      best;              /* beams: hypotheses returned for each sequence, 1 .. beams; 0: 1 */
    bool     sample;            /* draws each token by its probability; not with beams */
    double   temperature;       /* sample: divides the logits before the draw; 0 means 1 */
    int64_t  top_k;             /* sample: draws among the k most probable tokens; 0: all */
    /* Sample: draws from the smallest set of most probable tokens whose probabilities sum to top_p
     * or more, after temperature and top_k; 0 .. 1. 0 means 1: all. Holtzman et al. 2020. */
    double   top_p;
    const char *stream;         /* sample: name of the random stream; NULL means "decode" */
    /* Prompts of all sequences end to end; NULL: no prompts. The model reads a prompt after begin,
     * one token a step. Its tokens are neither scored nor returned, and do not count in limit. */
    const int32_t *prompt;
    const int32_t *prompt_len;  /* [n] tokens of each prompt, 0 or more; required with prompt */
    /* Any mode: the step function returns log probabilities, such as a mean over several models.
     * The decoder adds them as they are, without a softmax. A number above 0 (by more than 1e-4) is
     * an error; with .sample only if it is drawn. Sampling still renormalises for the draw. */
    bool     log_probabilities;
    /* Set one of them if begin and end are both token 0. Without a flag that is an error, because
     * both were probably forgotten. */
    bool     has_begin, has_end;
} weft_decode_opts;
typedef struct {
    int64_t n;                  /* number of sequences */
    int64_t best;               /* hypotheses of each sequence */
    int64_t limit;              /* opts.limit */
    int32_t *tokens;            /* [n, best, limit], best first, without end; 0 from len on */
    int32_t *len;               /* [n, best] tokens of each hypothesis; -1 if it does not exist */
    /* [n, best] sum of the model's log probabilities, with that of the end token. Temperature,
     * top_k, top_p and length_penalty do not change it. -inf if len is -1. */
    double *score;
} weft_decoded;
/* Generates n sequences: by beam search (opts->beams above 1), by sampling (opts->sample),
 * otherwise the most probable token each time. first: the states of step 0, [layers, n, width], or
 * WEFT_ZERO_STATE, which leaves rows->state NULL at step 0. step gets user unchanged. The caller
 * frees the result by weft_decoded_free. On error n is 0, its arrays are NULL, and the context has
 * failed. Errors: step or opts NULL, limit below 1, an option of another mode; a failed step. Like
 * generate of Transformers. */
WEFT_API weft_decoded weft_decode(weft *w, int64_t n, weft_state first, weft_decode_step_fn *step,
                                  void *user, const weft_decode_opts *opts);
/* Frees a result of weft_decode and zeroes it. NULL is allowed. */
WEFT_API void weft_decoded_free(weft_decoded *d);

#ifdef __cplusplus
}
#endif
#endif
