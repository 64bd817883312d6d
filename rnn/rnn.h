/* rnn.h - one direction of one recurrent layer over a packed batch: a fused operator, and the same function
 * from public operators. Around them layers.c stacks layers and directions. */
#ifndef WEFT_RNN_H
#define WEFT_RNN_H
#include "nn/nn.h"
#include "rnn/api_cell.h"
#include "rnn/api_trace.h"

/* Inputs of one direction, G gates of the cell (core/cells.def), W the width of h: x [N, F] packed, w_ih [G
 * H, F], w_hh [G H, W], b_ih and b_hh [G H], w_hr [W, H], h0 [n, W] and c0 [n, H] in packed order. From B_IH
 * on they may be absent, NULL: no biases, no projection (then W = H), a state of zeros. With a table [V, F]
 * and ids [N], packed, of its rows, x is what it was looked up as, in any layout: no one reads it, unless its
 * own gradient is asked for. */
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
enum { WEFT__RNN_WEIGHTS = WEFT__W_HR };         /* as many in a row, from W_IH */

/* own_cell.c: a cell of the program's. own: its parameters of this layer and direction; noise: the name of
 * its dropout. */
enum { WEFT__OWN = 16 };
typedef struct weft__own_cell {
    const weft_cell *is;
    weft_tensor *own[WEFT__OWN];
    char noise[WEFT__PATH + 32];
} weft__own_cell;

/* layers_new.c: "i f g o", as core/cells.def has them; which of them a letter is, -1: none of them. */
const char *weft__gate_names(weft__cell);
int         weft__gate_of(weft__cell, char letter);

/* trace.c: what a run of one direction leaves for weft_rnn_trace: results of its operator, packed, and room
 * that the walk back fills: the gates as they were, the gradients of their sums, what arrived at h, and what
 * arrived at c by its own way. run: how many there were, 0: none; passed: the walk back has been here. */
typedef struct weft__trace {
    uint64_t run, step;
    bool passed;
    weft__cell cell; int64_t hidden;
    weft_tensor *h, *c, *gates, *w_hr, *kept, *dgates, *dh, *dc;
} weft__trace;
/* Of all layers and directions, as in weft_rnn; of NULL: not asked for. as: the form of the ragged x of the
 * last run; plain: of the plain one, rank 0: there was none. */
typedef struct weft__traces {
    weft *w;
    weft__trace *of; bool on, own;               /* own: the cell is the program's */
    int layers, directions;
    weft__form as, plain;
} weft__traces;
weft__traces *weft__traces_of(weft_rnn *);       /* layers_new.c; NULL: no layer */

typedef struct weft__direction {
    weft__trace *trace;                          /* NULL: not asked for */
    weft__cell cell; const weft__own_cell *own;  /* own NULL: one of core/cells.def */
    bool has_c, reverse, lean; int layer; int64_t hidden;
    weft_tensor *in[WEFT__RNN_INPUTS];
} weft__direction;

const char *weft__cell_is_wrong(const weft_cell *);              /* why it cannot be used; NULL if it can */
void weft__own_parameters(weft_module *m, weft__own_cell *, int64_t hidden, int64_t input, int layer,
                          bool reverse);
/* For all tokens of x, as it lies; NULL: none. What a step of rows begins with, and whether what comes of
 * it fits; else the context fails. */
weft_tensor *weft__own_noise(const weft__direction *, weft_tensor *x);
weft_state weft__own_step(const weft__direction *, weft_tensor *x, weft_tensor *noise, weft_state before);

/* h [N, W] and, of a cell of two states, c [N, H] (else NULL) of every token, packed. */
weft_state weft__recurrent(const weft__direction *);
/* Two directions over the same x, neither lean, traced nor with a projection, as one entry of the tape. */
void weft__recurrent_both(const weft__direction *, weft_state *);
weft_state weft__recurrent_composed(const weft__direction *);

/* trace.c: whether a layer may run so, else the context fails; after the call has run; on its way back,
 * before the gates are destroyed. r: the recurrence with all that it has forwards, columns: the most of a
 * step. */
bool weft__traces_can(const weft__traces *, const char *function, bool composed, bool lean);
void weft__trace_begin(weft__trace *, const weft__direction *, const weft_call *);
void weft__trace_back(const weft_call *, weft__trace *, uint64_t run, weft__recurrence r, int64_t columns);

/* layers_new.c: of a layer's states, [stacked, n, h] and [stacked, n, c]; c 0: there is none; all 0: of NULL,
 * and of what could not be made. */
typedef struct weft__state_form { int64_t stacked, h, c; bool two_ways; } weft__state_form;
weft__state_form weft__state_form_of(const weft_rnn *);

/* step.c: layers of one direction and a cell of core/cells.def as weft_rnn_step needs them, x [n, input] and
 * states that fit; whether they can go that way: nothing is recorded, and it is no GPU. */
typedef struct weft__layers {
    weft__cell cell; int layers; int64_t input, hidden, width; bool lean;
    weft_tensor *const (*weight)[WEFT__RNN_WEIGHTS];
} weft__layers;
bool         weft__can_step(const weft_tensor *x);
weft_rnn_out weft__step(const weft__layers *, weft_tensor *x, weft_state before);

/* lookup.c: ids of the rows of a table that x is, packed or step by step as `order` says, if the layer does
 * better with them, and that table, with a row of zeros behind its own for the id -1. Else NULL. */
enum { WEFT__FEW_ROWS = 256 };                   /* of a table that is projected as a whole, at most */
typedef struct weft__ids { weft_tensor *ids, *table; } weft__ids;
weft__ids weft__ids_of(weft_tensor *x, const weft__form *order);

/* states.c: between the user's stacks of states [stacked, n, width] and the packed rows of one batch; index
 * arrays are made once for a batch, and end with it. None of an empty batch is a special case. */
typedef struct weft__ends {
    struct weft__ends *next;
    const weft_batch *batch;
    const weft__place *place;                    /* of rows of several sequences; NULL: packed */
    /* parts of order, of none; between the parts of order, of none */
    int64_t stacked, stride;
    /* rows of the stack seen as [stacked * n, width]: in packed order; of empty sequences, else -1 */
    weft__ints order, none;
    /* the row of each sequence's last token, forwards and backwards; -1: it has none */
    weft__ints last[2];
} weft__ends;

/* NULL and a sticky error if there is no memory */
const weft__ends *weft__ends_of(const weft__form *x, int stacked);
/* [stacked * n, width] */
weft_tensor *weft__rows_of_stack(weft_tensor *stack);
/* n rows by a part of an index array of a batch; zeros where it is -1 */
weft_tensor *weft__select_rows(weft_tensor *rows, weft__ints index, int64_t from, int64_t n);
/* state_rows.c: part k of the stacks, in packed order; what is NULL stays NULL */
weft_state   weft__first_states(const weft__ends *, weft_state stack, int k);
/* stacks in the user's order; h, c: of each part, as its operator has made them; c NULL: it has none; first:
 * stacks, or NULL */
weft_state   weft__last_states(const weft__ends *, weft_tensor *const *h, weft_tensor *const *c, int parts,
                               int directions, weft_state first);
#endif
