/* api_rnn.h - recurrent layers over ragged batches, one step at a time, decoding.
 *
 * Contents: layers, running them, decoding.
 *
 * N is the number of tokens, n that of sequences; width is opts.proj if set, otherwise hidden;
 * directions is 2 for a bidirectional layer, otherwise 1. A state h is plain [layers * directions,
 * n, width], a state c [layers * directions, n, hidden], with the sequences in the user's order.
 * The reverse direction runs from the end of each sequence. A sequence of length 0 has no output
 * rows, and its last state is its first. In the layout ROWS each row is one column of the
 * recurrence, several sequences one after the other; other layouts run packed. The outputs have the
 * same bits.
 *
 * Names, owners, NULL and failure are as in api_layers.h. */
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
    int64_t input;                               /* width of x; required */
    int64_t hidden;                              /* number of units; required */
    int     layers;                              /* 1 .. 32; 0 means 1 */
    bool    bidirectional;                       /* also from the end of each sequence */
    bool    no_bias;                             /* without b and b' */
    int64_t proj;       /* LSTM, CIFG: width of a projected h, below hidden (Sak et al. 2014); 0:
                         * none */
    double  dropout;    /* between layers while training, 0 <= p < 1 */
    bool    relu;       /* weft_elman_new only: max(0, x) instead of tanh */
    bool    lean;       /* less memory, more time; weft_opts.lean sets it for all layers */
    /* LSTM, CIFG: first value of b_f + b'_f (WEFT_ZERO: 0); 0: uniform as the other biases. 1 helps
     * with long sequences, Jozefowicz et al. 2015. */
    double  forget_bias;
} weft_rnn_opts;
typedef struct {
    weft_tensor *h;                              /* [.., n, width]; NULL: zeros */
    weft_tensor *c;                              /* LSTM, CIFG; otherwise NULL */
} weft_state;
typedef struct {
    weft_tensor *y;                              /* output of the last layer for each token */
    weft_state last;                             /* last states; reverse: at the first token */
} weft_rnn_out;
#ifndef __cplusplus
#define WEFT_ZERO_STATE ((weft_state){ NULL, NULL })
#else
#define WEFT_ZERO_STATE (weft_state{ NULL, NULL })
#endif

/* Parameter names (weight_ih_l0, bias_hh_l1_reverse, weight_hr_l0), gate order (r z n; i f g o) and
 * first values, uniform in +-1/sqrt(hidden), are PyTorch's.
 *
 * In the equations W is weight_ih, U weight_hh, b bias_ih and b' bias_hh. An index selects the rows
 * of a gate: W_i is rows 0 .. hidden - 1 of W, W_f the next ones. x is the input of a token, h and
 * c are the states before it, h' and c' those after it; * is elementwise. opts is required. */

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
/* Runs the layer. x is of reals: ragged [N, input] gives y ragged [N, directions * width] in x's
 * layout; plain [n, T, input] is n sequences of length T and gives y plain. first: the first
 * states, WEFT_ZERO_STATE for zeros; a cell with a c takes h and c, or neither. Errors: other
 * shapes; all results are inert.
 * weft_gradients of a loss by y gives the direct derivative by each y_t. It does not include the
 * effect of h_t on later tokens, which stays inside the layer; weft_rnn_trace (dh) has both. Like
 * lstm(x, (h, c)). */
WEFT_API weft_rnn_out weft_rnn_run(weft_rnn *r, weft_tensor *x, weft_state first);
/* Runs one step of one-directional layers, x plain [n, input] -> y [n, width], from `state` to
 * .last. Errors: a layer of two directions; otherwise as weft_rnn_run. Like torch.nn.LSTMCell. */
WEFT_API weft_rnn_out weft_rnn_step(weft_rnn *r, weft_tensor *x, weft_state state);
/* Returns the final h of the last layer with both directions side by side, [n, 2 width], or [n,
 * width] with one direction, in the user's order: the usual input of a classifier. last: out.last
 * of a run of r. The reverse direction's h is that of the first token. Like h_n. */
WEFT_API weft_tensor *weft_final_state(weft_rnn *r, weft_state last);

/* ---- decoding ---- *
 * Sequences are generated token by token. The step function gets one row for each hypothesis: one
 * for each sequence or, in beam search, up to `beams`, those of a sequence together. A sequence
 * that has ended has no row. Nothing is recorded, dropout is off, and memory is constant: tensors
 * of a step end before the next step, except its state. */
/* Input of one step, valid until the function returns. */
typedef struct {
    weft_tensor   *tokens;                       /* [n] ints: the last token of each row */
    weft_state     state;                        /* [layers, n, width]; the function updates it */
    int64_t        n;                            /* rows, which may be fewer each time */
    int64_t        step;                         /* 0, 1, .. */
    const int32_t *sequence;                     /* [n] the sequence of each row, ascending */
    /* [n] the row of the step before that a row continues, at step 0 its sequence: the program
     * reorders its own data of hypotheses by it, such as the states of a constraint. */
    const int32_t *parent;
    weft_lengths   of;                           /* rows of each sequence, 0 or more */
} weft_decode_rows;
/* Returns the scores of each row's next token, plain reals [n, classes] (logits), each time for the
 * same classes. A score of -inf forbids a token. Of equal scores the lower token wins. NaN, or only
 * -inf, fails the decoding. */
typedef weft_tensor *weft_decode_step_fn(weft_decode_rows *rows, void *user);
/* Returns a view of x, plain [n, ..] with the rows of a decoding step, as a ragged tensor, so that
 * a query attends to the memory of its own sequence. Errors: another number of rows. */
WEFT_API weft_tensor *weft_decode_ragged(const weft_decode_rows *rows, weft_tensor *x);
typedef struct {
    int32_t  begin;             /* the first token; -1: the prompt is first */
    int32_t  end;               /* the last token; -1: only the limit ends a sequence */
    int64_t  limit;             /* most tokens, 1 or more, without end and prompt */
    int      beams;             /* above 1: beam search, the number of hypotheses; 0 means 1 */
    double   length_penalty;    /* beams: score / length^penalty, end counted (Wu et al. 2016
                                 * without the constant); 0: none */
    int      best;              /* beams: hypotheses returned for a sequence, up to beams; 0: 1 */
    bool     sample;            /* draw each token; not with beams */
    double   temperature;       /* sample: divides the logits; 0 means 1 */
    int64_t  top_k;             /* sample: among the k most probable; 0: all */
    double   top_p;             /* sample: among the fewest of these with that probability together;
                                 * 0 means 1; Holtzman et al. 2020 */
    const char *stream;         /* sample: the random stream; NULL: "decode" */
    /* Tokens after begin, of all sequences end to end, and their number for each; NULL: none. The
     * model reads them; they are neither scored nor returned. */
    const int32_t *prompt;
    const int32_t *prompt_len;  /* [n] */
    /* The function returns log probabilities, 0 or less, which are summed without a softmax, for
     * example of several models together. */
    bool     log_probabilities;
    bool     has_begin;         /* begin is token 0. begin = end = 0 without a flag is an error. */
    bool     has_end;           /* end is token 0 */
} weft_decode_opts;
typedef struct {
    int64_t n;                  /* sequences */
    int64_t best;               /* hypotheses of each sequence */
    int64_t limit;              /* opts.limit */
    int32_t *tokens;            /* [n, best, limit] without end, the best hypothesis first */
    int32_t *len;               /* [n, best] numbers of tokens; unused entries: -1 */
    double *score;              /* [n, best] log probability, with the end token if there is one;
                                 * unused entries: -inf */
} weft_decoded;
/* Generates n sequences from their first states [layers * directions, n, width]: by beam search
 * (opts.beams above 1), by sampling (opts.sample), otherwise the most probable token each time.
 * step gets user unchanged. The caller frees the result by weft_decoded_free. On error n is 0, its
 * arrays are NULL, and the context has failed. Errors: opts NULL, limit below 1, options of another
 * decoding mode. Like generate of Transformers. */
WEFT_API weft_decoded weft_decode(weft *w, int64_t n, weft_state first, weft_decode_step_fn *step,
                                  void *user, const weft_decode_opts *opts);
/* Frees a result of weft_decode and zeroes it. NULL is allowed. */
WEFT_API void weft_decoded_free(weft_decoded *d);

#ifdef __cplusplus
}
#endif
#endif
