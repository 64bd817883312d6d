/* rnn.h - one direction of a recurrent layer over a packed batch, as a fused operator and composed from
 * public operators. layers.c stacks layers and directions. */
#ifndef WEFT_RNN_H
#define WEFT_RNN_H
#include "autograd/attributes.h"
#include "nn/nn.h"
#include "rnn/api_cell.h"
#include "rnn/api_linear_rnn.h"
#include "rnn/api_trace.h"

enum { WEFT__RNN_WEIGHTS = WEFT__W_HR };         /* number of weights from W_IH on */

/* own_cell.c: A cell of the program, its parameters of this layer and direction, its dropout's name. */
enum { WEFT__OWN = 16 };
typedef struct weft__own_cell {
    const weft_cell *cell;
    weft_tensor *own[WEFT__OWN];
    char noise[WEFT__PATH + 32];
} weft__own_cell;

/* layers_new.c: Return the gates as in core/cells.def, "i f g o", and the index of a letter, or -1. */
const char *weft__gate_names(weft__cell);
int         weft__gate_of(weft__cell, char letter);

/* trace.c: Data that a run of one direction stores for weft_rnn_trace. h, c, gates: packed results of the
 * operator. Backward fills a copy of the gates, the gradients of their pre-activations, the gradient of h,
 * and the direct gradient of c. run: number of runs so far, 0 before the first. has_gradients: backward has
 * run. */
typedef struct weft__trace {
    uint64_t run, step;
    bool has_gradients;
    weft__cell cell; int64_t hidden;
    weft_tensor *h, *c, *gates, *w_hr, *saved_gates, *dgates, *dh, *dc;
} weft__trace;
/* Traces of all layers and directions, indexed as in weft_rnn; `trace` is NULL unless requested. form: of the
 * ragged x of the last run. plain_form: of a plain x, rank 0 if it was ragged. */
typedef struct weft__traces {
    weft *w;
    weft__trace *trace; bool on, own;            /* own: a cell of the program */
    int layers, directions;
    weft__form form, plain_form;
} weft__traces;
weft__traces *weft__traces_of(weft_rnn *);       /* layers_new.c; NULL without a layer */

typedef struct weft__direction {
    weft__trace *trace;                          /* NULL: not traced */
    weft__cell cell; const weft__own_cell *own;  /* own NULL: a cell of core/cells.def */
    bool has_c, reverse, lean; int layer; int64_t hidden;
    weft_tensor *in[WEFT__RNN_INPUTS];
} weft__direction;

/* linear_rnn.c: A layer whose states depend linearly on the states before. window: tokens that the gates of a
 * QRNN see. past: numbers of earlier tokens in its state c, after `hidden` numbers. */
typedef struct weft__linear_rnn { weft_linear_rnn_kind kind; int window; int64_t past; } weft__linear_rnn;
/* Runs one direction over x in the layout CONCAT, with first states in the user's order. */
weft_state weft__linear_direction(const weft__direction *, const weft__linear_rnn *);

const char *weft__cell_fault(const weft_cell *); /* the reason why a cell is invalid; or NULL */
void weft__own_parameters(weft_module *m, weft__own_cell *, int64_t hidden, int64_t input, int layer,
                          bool reverse);
/* own_noise returns the noise for all tokens of x, in its layout; NULL for a cell without noise. own_step
 * runs the cell's step function and checks its result. If that does not fit, it fails the context. */
weft_tensor *weft__own_noise(const weft__direction *, weft_tensor *x);
weft_state weft__own_step(const weft__direction *, weft_tensor *x, weft_tensor *noise, weft_state before);

/* Runs one direction. Returns h [N, W] and, for a cell with two states, c [N, H] of every token, packed.
 * Otherwise c is NULL. */
weft_state weft__recurrent(const weft__direction *);
/* Runs two directions over the same x as one entry of the tape. Neither may be lean, traced or projected. */
void weft__recurrent_both(const weft__direction *, weft_state *);
weft_state weft__recurrent_composed(const weft__direction *);
/* recurrent_run.c: Run a call of the operator, forward, and backward with the saved gates. */
void weft__recurrent_run(weft_call *);
void weft__recurrent_back(const weft_call *);
/* Returns the cached packed weights of a layer, and packs them if they have changed; NULL: not packed. */
const void *weft__pack_layer(const weft_call *, weft_tensor *const *weights, const weft__recur_layer *);

/* trace.c: traces_can checks that a layer may be traced in this mode, or fails the context. trace_begin is
 * called after the run. trace_back is called in backward before the gates are overwritten. r: the recurrence
 * with its forward data. columns: the largest number of rows in a step. */
bool weft__trace_allowed(const weft__traces *, const char *function, bool composed, bool lean);
void weft__trace_begin(weft__trace *, const weft__direction *, const weft_call *);
void weft__trace_back(const weft_call *, weft__trace *, uint64_t run, weft__recurrence r, int64_t columns);

/* layers_new.c: Shapes of a layer's states, [stacked, n, h] and [stacked, n, c]. c is 0 for a cell without c.
 * All fields are 0 for NULL or a layer that could not be made. */
typedef struct weft__state_form { int64_t stacked, h, c; bool two_ways; } weft__state_form;
weft__state_form weft__state_form_of(const weft_rnn *);

/* step.c: weft_rnn_step for layers of one direction and a cell of core/cells.def. x is [n, input] and the
 * states fit. can_step returns whether this path is possible: nothing is recorded, on a CPU. */
typedef struct weft__layers {
    weft__cell cell; int layers; int64_t input, hidden, width; bool lean;
    weft_tensor *const (*weight)[WEFT__RNN_WEIGHTS];
} weft__layers;
bool         weft__can_step(const weft_tensor *x);
weft_rnn_out weft__run_step(const weft__layers *, weft_tensor *x, weft_state before);

/* lookup.c: Returns the ids of the table rows in x, and the table followed by a row of zeros for id -1. The
 * ids are packed, or step by step as `order` requires. Both are NULL if x is not looked up or the layer would
 * not be faster. */
enum { WEFT__FEW_ROWS = 256 };                   /* maximum rows of a table that is projected as a whole */
typedef struct weft__ids { weft_tensor *ids, *table; } weft__ids;
weft__ids weft__ids_of(weft_tensor *x, const weft__form *order);

/* states.c: Index arrays between the user's stacked states [stacked, n, width] and packed rows. They are made
 * once for a batch and end with it. An empty batch needs no special case. */
typedef struct weft__state_map {
    struct weft__state_map *next;
    const weft_batch *batch;
    weft_layout layout;
    const weft__place *place;                    /* of rows that hold several sequences */
    /* stacked: number of parts of order and empty. stride: distance between parts. */
    int64_t stacked, stride;
    /* Rows of the stack as [stacked * n, width]. order: in packed order. empty: of empty sequences, or -1. */
    weft__ints order, empty;
    /* Row of each sequence's last token, forward and in reverse; -1 for an empty sequence. */
    weft__ints last[2];
} weft__state_map;

/* Returns NULL and fails the context if memory runs out. */
const weft__state_map *weft__state_map_of(const weft__form *x, int stacked);
/* Returns the stack as [stacked * n, width]. */
weft_tensor *weft__rows_of_stack(weft_tensor *stack);
/* Gathers n rows by a part of an index array of a batch; -1 gives zeros. */
weft_tensor *weft__select_rows(weft_tensor *rows, weft__ints index, int64_t from, int64_t n);
/* state_rows.c: Returns part k of the stacks in packed order. NULL stays NULL. */
weft_state weft__first_states(const weft__state_map *, weft_state stack, int k);
/* Returns stacks in the user's order. h, c: results of each part's operator; c is NULL for a cell without c.
 * first: stacks, or NULLs. */
weft_state weft__last_states(const weft__state_map *, weft_tensor *const *h, weft_tensor *const *c,
                             int parts, int directions, weft_state first);
#endif
