/* api_rnn.h - recurrent layers over ragged batches, one step at a time, decoding.
 *
 * Contents: layers, running them, what goes on inside, states, decoding, a cell of one's own.
 *
 * States are [layers * directions, n, width] in the order in which the user gave the sequences; the
 * reverse direction runs from a sequence's own end. A sequence of length 0 has no output rows, and
 * its last state is its first. Of the layout rows each row is a column of the recurrence, several
 * sequences one after the other; any other layout runs packed. The outputs are the same bits. */
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
    int64_t   input, hidden;
    int       layers;                            /* 1 .. 32; 0 means 1 */
    bool      bidirectional, no_bias;
    /* LSTM, CIFG: width of a projected h, less than hidden; 0 none (Sak et al. 2014) */
    int64_t   proj;
    double dropout;         /* between layers, in training, 0 .. 1 but not 1; of one layer: none */
    bool      relu;                             /* weft_elman_new only: max(0, x) instead of tanh */
    bool      lean;   /* less memory, more time: see weft_opts.lean, which is this for all layers */
    /* LSTM, CIFG: what b_f + b'_f of all layers and directions starts as (WEFT_ZERO: 0 exactly);
     * 0: as the other biases do. 1 for sequences of some length, Jozefowicz et al. 2015 */
    double    forget_bias;
} weft_rnn_opts;
typedef struct { weft_tensor *h, *c; } weft_state;              /* c: of LSTM and CIFG, else NULL */
typedef struct { weft_tensor *y; weft_state last; } weft_rnn_out;
#ifndef __cplusplus
#define WEFT_ZERO_STATE ((weft_state){ NULL, NULL })
#else
#define WEFT_ZERO_STATE (weft_state{ NULL, NULL })
#endif

/* PyTorch's RNN, GRU and LSTM with its parameter names (weight_ih_l0, bias_hh_l1_reverse,
 * weight_hr_l0), gate order (r z n; i f g o), and first values, uniform in +-1/sqrt(hidden).
 *
 * In the equations W is weight_ih, U weight_hh, b bias_ih, b' bias_hh, and a letter behind them the
 * rows of that gate: W_i is rows 0 .. hidden - 1 of W, W_f the next ones. x is a token's input, h
 * and c the states before it, h' and c' those after it; * is elementwise.
 *
 * Elman 1990: h' = tanh(W x + b + U h + b'), or max(0, ..) with .relu. */
WEFT_API weft_rnn *weft_elman_new(weft_module *m, const char *name, const weft_rnn_opts *opts);
/* Cho et al. 2014, with the reset gate after the product, as PyTorch and cuDNN have it:
 *     r = sigmoid(W_r x + b_r + U_r h + b'_r)
 *     z = sigmoid(W_z x + b_z + U_z h + b'_z)
 *     n = tanh(W_n x + b_n + r * (U_n h + b'_n))
 *     h' = (1 - z) * n + z * h */
WEFT_API weft_rnn *weft_gru_new(weft_module *m, const char *name, const weft_rnn_opts *opts);
/* Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al. 2000:
 *     i = sigmoid(W_i x + b_i + U_i h + b'_i)
 *     f = sigmoid(W_f x + b_f + U_f h + b'_f)
 *     g = tanh(W_g x + b_g + U_g h + b'_g)
 *     o = sigmoid(W_o x + b_o + U_o h + b'_o)
 *     c' = f * c + i * g
 *     h' = o * tanh(c'), or V (o * tanh(c')) with .proj, V being weight_hr */
WEFT_API weft_rnn *weft_lstm_new(weft_module *m, const char *name, const weft_rnn_opts *opts);
/* The coupled input and forget gates of Greff et al. 2017: an LSTM of gates f g o with i = 1 - f:
 *     c' = f * c + (1 - f) * g, the rest as above */
WEFT_API weft_rnn *weft_cifg_new(weft_module *m, const char *name, const weft_rnn_opts *opts);
/* The minimal gated unit of Zhou et al. 2016, its gate after the product as in the GRU above:
 *     f = sigmoid(W_f x + b_f + U_f h + b'_f)
 *     n = tanh(W_n x + b_n + f * (U_n h + b'_n))
 *     h' = (1 - f) * h + f * n */
WEFT_API weft_rnn *weft_mgu_new(weft_module *m, const char *name, const weft_rnn_opts *opts);

/* ---- running them ---- */
/* x ragged [N, input]: y ragged [N, directions * width] in x's layout. x plain [n, T, input]: n
 * sequences of length T, y plain. The first state NULL: zeros; a cell with a c takes h and c or
 * neither.
 * weft_gradients of a loss by y counts what the loss takes from each y_t itself, and not what the
 * state h_t does through later tokens, for that way lies inside the layer. Both together are dh of
 * weft_rnn_trace, or come of a loop of weft_rnn_step. */
WEFT_API weft_rnn_out weft_rnn_run(weft_rnn *r, weft_tensor *x, weft_state first);
/* One step of one-directional layers, x plain [n, input] -> y [n, width]: decoding. */
WEFT_API weft_rnn_out weft_rnn_step(weft_rnn *r, weft_tensor *x, weft_state state);
/* What a classifier reads: of the last layer's states h [layers * directions, n, width] (out.last
 * of a run) those of both directions side by side, [n, 2 width], or [n, width] of one; rows in the
 * user's order. The reverse direction's is that of each sequence's first token. */
WEFT_API weft_tensor *weft_final_state(weft_rnn *r, weft_state last);
/* The layer from public operators, step by step, instead of the fused one: the same function,
 * slower; a lesson and an oracle. Returns what it was: always true of a cell of one's own, which
 * has no other way, false of NULL. */
WEFT_API bool weft_rnn_set_composed(weft_rnn *r, bool on);
/* The module of the layer, to freeze it, say; NULL if it could not be made. */
WEFT_API weft_module *weft_rnn_module(weft_rnn *r);

/* ---- what goes on inside ---- */
/* Of one layer and direction, constants of the step, ragged as x was, or plain: gate[k] [N, hidden]
 * by the gates' names in their order (i f g o; r z n; f g o; f n; the one of an Elman cell is h), h
 * [N, width] and c [N, hidden], NULL if the cell has none. Gradients of the loss, NULL until
 * weft_backward or weft_gradients has passed the run (weft_gradients_recorded takes another path):
 * dgate[k] by the sum whose sigmoid or tanh the gate is, dh and dc by h and c, all that arrives
 * there, from later tokens, too. They are the fused layer's own numbers, bit by bit; dc alone is
 * rounded anew. */
typedef struct {
    int gates; char name[4][8];
    weft_tensor *gate[4], *h, *c;
    weft_tensor *dgate[4], *dh, *dc;
} weft_rnn_traced;
/* From now on runs of the layer keep what weft_rnn_trace gives; returns what it was. Outputs and
 * gradients stay the same bits; backward takes longer. A traced run that is lean or composed, and a
 * cell of the program's own, are errors. */
WEFT_API bool weft_rnn_set_traced(weft_rnn *r, bool on);
/* Of the layer's last run, in the same step; layer from 0. A second walk back through the same run
 * changes nothing. After an error all is NULL and gates is 0. */
WEFT_API weft_rnn_traced weft_rnn_trace(weft_rnn *r, int layer, bool reverse);

/* ---- states ---- */
/* The states of the sequences parent[0 .. n-1], in this order: chosen ones for beams, or each
 * twice, 0 0 1 1 .. A state of NULLs, zeros, stays one. */
WEFT_API weft_state weft_state_select(weft_state s, const int32_t *parent, int64_t n);

/* ---- decoding ---- *
 * Sequences are written out a token at a time. A step gets rows: the hypotheses that go on, one a
 * sequence or, in beam search, up to `beams`, those of a sequence together. A sequence that has
 * ended has no row any more. Nothing is recorded, dropout is off, memory is constant: what a step
 * makes ends before the next one, but for its state. */
typedef struct {
    weft_tensor   *tokens;                       /* [n] ints: the last token of each row */
    weft_state     state;     /* [layers, n, width] of each row; the step puts the next one here */
    int64_t        n, step;                      /* rows, which may be fewer each time; 0, 1, .. */
    const int32_t *sequence;                     /* [n] whose row it is, ascending */
    /* [n] the row of the step before that it continues, of step 0 its sequence: so whatever the
     * program knows of a hypothesis, a constraint's state, say, goes with it */
    const int32_t *parent;
    weft_lengths   of;                           /* how many rows each sequence has, 0 or more */
} weft_decode_rows;
/* Returns the scores [n, classes] (logits) of each row's next token. A score of -inf forbids a
 * token; of equal scores the lower token is taken. */
typedef weft_tensor *weft_decode_step_fn(weft_decode_rows *rows, void *user);
/* A tensor of the step's rows [n, ..] as ragged rows of the sequences: queries, which attention
 * puts to the memory of their own sequence. A view. */
WEFT_API weft_tensor *weft_decode_ragged(const weft_decode_rows *rows, weft_tensor *x);
typedef struct {
    /* The tokens that start and finish a sequence. begin -1: its prompt starts it. end -1: only the
     * limit finishes it. Both 0 is an error, since both may have been left out: if token 0 is meant
     * set has_begin or has_end. */
    int32_t  begin, end;
    int64_t  limit;             /* tokens at most, 1 or more, end and prompt not counted */
    int      beams;       /* more than 1: beam search, hypotheses kept for each sequence; 0 is 1 */
    /* beams: score / length^penalty, end counted (Wu et al. 2016 without the constant); 0: none */
    double   length_penalty;
    int      best;               /* beams: hypotheses given of each sequence, 1 .. beams; 0 is 1 */
    bool     sample;                             /* each token is drawn; not together with beams */
    /* sample: logits / temperature (0: 1) among the k best (0: all), and of these among the fewest
     * whose probabilities come to top_p (0: 1; Holtzman et al. 2020) */
    double   temperature; int64_t top_k; double top_p;
    const char *stream;                          /* sample: the random stream, NULL: "decode" */
    /* the tokens that follow begin, of all sequences end to end, and how many each has: they are
     * read, not chosen, and neither scored nor given back; NULL: none */
    const int32_t *prompt, *prompt_len;
    /* the step gives log probabilities, 0 or less, that are added up as they are (of several
     * models together, say), instead of logits */
    bool     log_probabilities;
    bool     has_begin, has_end;                 /* token 0 is meant by begin, by end */
} weft_decode_opts;
/* tokens [n, best, limit] without end, len and score [n, best]; of each sequence the best one
 * first. score: log probability by the model, end included (what the limit has cut has none). Of a
 * hypothesis that there is not len is -1 and score -inf. */
typedef struct { int64_t n, best, limit; int32_t *tokens, *len; double *score; } weft_decoded;
/* Writes out n sequences, from their first states [layers * directions, n, width]: by beam search
 * (opts.beams > 1), by sampling (opts.sample), else greedily, the likeliest token each time. An
 * option of a way that is not taken is an error. The caller frees the result by weft_decoded_free;
 * on error n is 0 and the context has failed. */
WEFT_API weft_decoded weft_decode(weft *w, int64_t n, weft_state first, weft_decode_step_fn *step,
                                  void *user, const weft_decode_opts *opts);
WEFT_API void weft_decoded_free(weft_decoded *d);

/* ---- a cell of one's own ---- *
 * The step of a recurrent layer, from operators. Layers, directions, dropout, ragged batches in
 * every layout, carried states, decoding, checkpoints, second derivatives and GPUs are as in the
 * layers above, and a sequence's bits do not depend on its neighbours. docs/cells.md explains one,
 * examples/cells_steps.h has four. */
typedef enum { WEFT_CELL_VECTOR, WEFT_CELL_OF_HIDDEN, WEFT_CELL_OF_INPUT } weft_cell_shape;
/* A parameter beside the weights and biases, for each layer and direction: [blocks * hidden], or
 * [blocks * hidden, hidden] or [.., input]; its name gets _l0, _l0_reverse, .. behind it. init
 * NULL: uniform in +-1/sqrt(hidden). */
typedef struct {
    const char *name; weft_cell_shape shape; int blocks; const weft_init *init;
} weft_cell_parameter;
/* What a step gets, of the sequences that take part in it, one a row. */
typedef struct {
    int64_t hidden;
    weft_tensor *x;   /* [rows, gates * hidden]: weight_ih x + bias_ih; [rows, input]: of 0 gates */
    weft_tensor *h, *c;                  /* [rows, hidden] the states before; c NULL of one state */
    weft_tensor *weight_hh, *bias_hh;   /* [gates_h * hidden, hidden], [..]; NULL: there are none */
    weft_tensor *const *own;                     /* the cell's own parameters, in their order */
    weft_tensor *noise;          /* [rows, hidden] of ones under dropout; NULL if cell.noise is 0 */
} weft_cell_input;
/* The states after it, [rows, hidden] each; c NULL of one state. */
typedef weft_state weft_cell_step(const weft_cell_input *in, void *user);
typedef struct {
    const char *name, *gate_names;            /* as checkpoints keep them; gate_names may be NULL */
    /* blocks of hidden rows of weight_ih; of weight_hh, 0: as many, -1: there is none */
    int gates, gates_h;
    int states;                                  /* 1 (or 0): h; 2: h and c */
    const weft_cell_parameter *own; int own_count;               /* up to 16 */
    double noise;                            /* 0 .. 1: the probability of the dropout of `noise` */
    weft_cell_step *step; void *user;            /* user must live as long as the layer is run */
} weft_cell;
/* A layer of that cell: opts.proj and relu are errors, lean changes nothing. cell and its name
 * are copied. */
WEFT_API weft_rnn *weft_rnn_of_cell(weft_module *m, const char *name, const weft_cell *cell,
                                    const weft_rnn_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
