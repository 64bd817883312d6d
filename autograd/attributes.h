/* attributes.h - the attributes of operators, for readers of the tape. weft_call.attributes points to the
 * struct of its operator. Operators that are not listed have no attributes, or a weft__form. */
#ifndef WEFT_ATTRIBUTES_H
#define WEFT_ATTRIBUTES_H
#include "autograd/api_autograd.h"
#include "core/tensor.h"

/* sum, broadcast, softmax, cumsum, flip, max and others that work along an axis. tokens: axis 0 of a ragged
 * tensor, taken within each sequence. flag: from the end. sum and broadcast without a describe function have
 * a weft__form instead. */
typedef struct weft__along { weft__form whole; int axis; bool tokens, flag; } weft__along;
/* to_layout */
typedef struct { weft__form to; real fill; } weft__arrangement;
/* permute, transpose. Axis i of the result is axis[i] of the input. one, other: the axes that weft_transpose
 * swaps. */
typedef struct { int axis[WEFT_RANK], one, other; } weft__axis_order;
/* topk */
typedef struct { weft__along along; int64_t k; } weft__top;
/* linear. f, p: function of pointwise.def and its parameter. from, rows: part of the weight's rows and of the
 * bias; rows 0 means all. */
typedef struct { int f; real p; int64_t from, rows; } weft__linear_part_of;
/* matmul */
typedef struct { bool ta, tb; } weft__turns;
/* layer_norm, rms_norm, gate_norm. grouped: gain and shift have a row for each element of the second last
 * axis. rms: x is not centred and has no shift. */
typedef struct { real eps; bool grouped, rms; } weft__norm;
/* Functions of one number. order: of the derivative. p, q: parameters. */
typedef struct { int f, order; real p, q; } weft__curve;
/* slice, inset */
typedef struct { weft__form whole; int axis; int64_t from, to; } weft__part;
/* attention */
typedef struct {
    weft_attention_opts o; real scale; int64_t dk, dv;
    /* Dropout, as in the kernels' record; `below` is 0 outside training. */
    uint32_t below; real kept; uint64_t mask_key;
    weft_batch *pairs;                                           /* batch of the map; NULL: no map */
} weft__attention_of;
/* Inputs of one direction of a recurrent layer. G: gates of the cell (core/cells.def); W: width of h. x
 * [N, F] packed, w_ih [G H, F], w_hh [G H, W], b_ih and b_hh [G H], w_hr [W, H], h0 [n, W] and c0 [n, H] in
 * packed order. Inputs from B_IH on may be NULL: no biases, no projection (then W = H), states of zeros. With
 * a table [V, F] and packed ids [N] of its rows, x is the looked-up tensor in any layout. It is read only if
 * its own gradient is needed. */
enum {
    WEFT__X,
    WEFT__W_IH,
    WEFT__W_HH,
    WEFT__B_IH,
    WEFT__B_HH,
    WEFT__W_HR,
    WEFT__H0,
    WEFT__C0,
    WEFT__IDS,
    WEFT__TABLE,
    WEFT__RNN_INPUTS
};
/* Attributes of one direction. input: index of each input in the call's x, -1 if absent. both: the attributes
 * of the other direction follow. trace: of the layer, or NULL. run: number of this run in the trace. */
typedef struct weft__recurrent_of {
    weft__cell cell; bool reverse, lean, both; int layer; int8_t input[WEFT__RNN_INPUTS];
    struct weft__trace *trace; uint64_t run;
} weft__recurrent_of;
/* Attributes of first_states, for part k, and of last_states. given: whether a first state h, and c, is
 * given. */
enum { WEFT__STATES = 2 };
typedef struct weft__state_move {
    const struct weft__state_map *e; int parts, directions, states, k; bool given[WEFT__STATES];
} weft__state_move;
#endif
