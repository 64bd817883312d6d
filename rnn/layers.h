/* layers.h - what a recurrent layer is, for what makes it (layers_new.c) and what runs it (layers.c). */
#ifndef WEFT_RNN_LAYERS_H
#define WEFT_RNN_LAYERS_H
#include "rnn/rnn.h"

enum { LAYERS = 32 };                            /* said in the header */

struct weft_rnn {
    weft_module *m;                              /* NULL: a layer that could not be made */
    weft_rnn_opts o; weft__cell cell; bool composed;
    weft_cell own; char own_name[96];            /* step NULL: a cell of core/cells.def */
    weft__own_cell *of_own;                      /* of layer l, direction d as below */
    int gates_x, gates_h; bool has_c;
    weft__traces traces;
    /* of layer l, direction d at l * directions + d; absent ones NULL */
    weft_tensor *weight[2 * LAYERS][WEFT__RNN_WEIGHTS];
};

static inline int directions(const weft_rnn *r)  { return 1 + r->o.bidirectional; }
static inline int stacked(const weft_rnn *r)     { return r->o.layers * directions(r); }
static inline bool is_own(const weft_rnn *r)     { return r->own.step; }
static inline int64_t h_width(const weft_rnn *r) { return r->o.proj ? r->o.proj : r->o.hidden; }
#endif
