/* layers.h - the struct of a recurrent layer, which layers_new.c makes and layers.c runs. */
#ifndef WEFT_RNN_LAYERS_H
#define WEFT_RNN_LAYERS_H
#include "rnn/rnn.h"

enum { LAYERS = 32 };                            /* documented in api_rnn.h */

struct weft_rnn {
    weft_module *m;                              /* NULL: the layer could not be made */
    weft_rnn_opts opts; weft__cell cell; bool composed;
    /* own.name NULL: a cell of core/cells.def. linear: a layer of linear_rnn.c, with own.step NULL. */
    weft_cell own; char own_name[96]; weft__linear_rnn linear;
    weft__own_cell *own_cells;                   /* [layers * directions], ordered as weight */
    int gates_x, gates_h; bool has_c;
    weft__traces traces;
    /* Weights of layer l and direction d at index l * directions + d; NULL if absent. */
    weft_tensor *weight[2 * LAYERS][WEFT__RNN_WEIGHTS];
};

static inline int directions(const weft_rnn *r)  { return 1 + r->opts.bidirectional; }
static inline int stacked(const weft_rnn *r)     { return r->opts.layers * directions(r); }
static inline bool is_own(const weft_rnn *r)     { return r->own.name; }
static inline bool is_linear(const weft_rnn *r)  { return is_own(r) && !r->own.step; }
static inline int64_t h_width(const weft_rnn *r) { return r->opts.proj ? r->opts.proj : r->opts.hidden; }
static inline int64_t c_width(const weft_rnn *r) { return r->opts.hidden + r->linear.past; }
/* layers_new.c: Makes a layer. kind: a layer with only the cell's fields set. weft__rnn_none: the result of a
 * constructor that fails. */
extern weft_rnn weft__rnn_none;
weft_rnn *weft__rnn_new(weft_module *parent, const char *name, const char *function, const weft_rnn *kind,
                        const weft_rnn_opts *);
#endif
