/* api_cell.h - recurrent layers with other cells, also those of the program.
 *
 * Contents: cells of the library, cells of the program, states, the composed layer, the module. */
#ifndef WEFT_API_CELL_H
#define WEFT_API_CELL_H
#include "api_rnn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- cells of the library; opts is required ---- */
/* Makes an LSTM layer with coupled input and forget gates (CIFG, Greff et al. 2017), i = 1 - f.
 * Errors: opts.relu set. W is weight_ih, U weight_hh, b bias_ih, b' bias_hh, each with the rows of
 * f, g and o in this order. h and c are the states before the token x, h' and c' those after x.
 *     f = sigmoid(W_f x + b_f + U_f h + b'_f), and o likewise
 *     g = tanh(W_g x + b_g + U_g h + b'_g)
 *     c' = f * c + (1 - f) * g
 *     h' = o * tanh(c'), or V (o * tanh(c')) with opts.proj, V being weight_hr */
WEFT_API weft_rnn *weft_cifg_new(weft_module *m, const char *name, const weft_rnn_opts *opts);
/* Makes a layer of minimal gated units (Zhou et al. 2016), with the gate after the product. W is
 * weight_ih, U weight_hh, b bias_ih, b' bias_hh, each with the rows of f and n in this order.
 *     f = sigmoid(W_f x + b_f + U_f h + b'_f)
 *     n = tanh(W_n x + b_n + f * (U_n h + b'_n))
 *     h' = (1 - f) * h + f * n
 * Errors: opts.proj, relu or forget_bias other than 0. */
WEFT_API weft_rnn *weft_mgu_new(weft_module *m, const char *name, const weft_rnn_opts *opts);

/* ---- cells of the program ---- *
 * A cell is the step of a recurrent layer, written in operators. Layers, directions, dropout,
 * ragged batches in every layout, carried states, decoding, checkpoints, second derivatives and
 * GPUs work as in the library's layers, and a sequence has the same bits in every batch.
 * docs/cells.md explains a cell, examples/cells_steps.h has four. */
/* Shape of a parameter. VECTOR: [blocks * hidden]. OF_HIDDEN: [blocks * hidden, hidden]. OF_INPUT:
 * [blocks * hidden, input], where input is the width of this layer's input. */
typedef enum { WEFT_CELL_VECTOR, WEFT_CELL_OF_HIDDEN, WEFT_CELL_OF_INPUT } weft_cell_shape;
/* A further parameter of each layer and direction. Its name gets the suffix _l0, _l0_reverse, .. */
typedef struct {
    const char *name;          /* 1 to 31 bytes, no dots and no slashes */
    weft_cell_shape shape;
    int blocks;                /* 1 .. 64 */
    const weft_init *init;     /* NULL: uniform in +-1/sqrt(hidden) */
} weft_cell_parameter;
/* Input of one step: one row for each active sequence. */
typedef struct {
    int64_t hidden;            /* opts.hidden */
    weft_tensor *x;            /* [rows, gates * hidden]: weight_ih times the layer's input, plus
                                * bias_ih; if gates is 0, the layer's input [rows, input] */
    weft_tensor *h;            /* [rows, hidden] before the step */
    weft_tensor *c;            /* [rows, hidden] before the step; NULL with one state */
    weft_tensor *weight_hh;    /* [gates_h * hidden, hidden]; NULL: none */
    weft_tensor *bias_hh;      /* [gates_h * hidden]; NULL: none */
    weft_tensor *const *own;   /* the parameters of weft_cell.own, in the same order */
    weft_tensor *noise;        /* [rows, hidden] dropout factors, drawn anew for each token: in
                                * training 0 or 1 / (1 - p), p = weft_cell.noise; otherwise 1. NULL
                                * if p is 0 */
} weft_cell_input;
/* Returns the states after the step, plain reals [rows, hidden]; c NULL with one state. in and its
 * tensors are valid during the call only. */
typedef weft_state weft_cell_step(const weft_cell_input *in, void *user);
typedef struct {
    /* Required, 1 to 95 bytes, no dots and no slashes. A checkpoint holds name and gate_names. It
     * does not load into a layer with another name or other gate_names. */
    const char *name;
    const char *gate_names;                      /* up to 95 bytes, such as "i f g o"; or NULL */
    /* gates, 0 .. 64: weight_ih is [gates * hidden, input]; 0: no weight_ih. gates_h: weight_hh is
     * [gates_h * hidden, hidden]; 0: as gates, -1: no weight_hh. Each weight has a bias. */
    int gates;
    int gates_h;
    int states;                                  /* 1 (or 0): h; 2: h and c */
    const weft_cell_parameter *own;              /* [own_count], or NULL */
    int own_count;                               /* up to 16 */
    double noise;                                /* p of weft_cell_input.noise, 0 <= p < 1 */
    weft_cell_step *step;                        /* required */
    void *user;          /* passed to step; valid until the last run. Backward calls no step */
} weft_cell;
/* Makes a layer with that cell. Copies *cell with its texts and parameters. Does not copy what
 * cell->user points to. opts is required; opts.lean changes nothing. Errors: a step that is NULL,
 * another field out of range; opts.proj, opts.relu or opts.forget_bias other than 0. Like RNN(cell)
 * of Keras. */
WEFT_API weft_rnn *weft_rnn_of_cell(weft_module *m, const char *name, const weft_cell *cell,
                                    const weft_rnn_opts *opts);

/* ---- states ---- */
/* Returns a state of n sequences, [layers * directions, n, width]: sequence j is a copy of sequence
 * parent[j] of s. Parents 0 0 1 1 give two beams for each of two sequences. h and c are new
 * tensors, recorded on the tape. A NULL h or c (zeros) stays NULL; if both are NULL, parents are
 * not checked. Errors: a parent out of range; the results are inert. Like h.index_select(1, ..). */
WEFT_API weft_state weft_state_select(weft_state s, const int32_t *parent, int64_t n);

/* ---- the composed layer ---- */
/* Sets whether the layer runs by public operators, step by step, instead of the fused kernel. It
 * computes the same function, slower, to read and as a test oracle. Returns the previous mode,
 * false for a new layer and for NULL. A cell of the program always runs so: returns true. */
WEFT_API bool weft_rnn_set_composed(weft_rnn *r, bool on);

/* ---- the module of a layer ---- */
/* Returns the module of the layer, which has its parameters; NULL if r is NULL or inert. */
WEFT_API weft_module *weft_rnn_module(weft_rnn *r);

#ifdef __cplusplus
}
#endif
#endif
