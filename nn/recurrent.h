/* recurrent.h - a call of the fused recurrent layer: its inputs, results and sizes, for rnn/recurrent.c,
 * which defines the operator, rnn/recurrent_run.c, which runs it, and readers of the tape.
 *
 * N tokens, n sequences, F inputs, H hidden units, W the width of h, G = gates H rows of the weights, S =
 * slots H columns of the buffer. core/cells.def defines the cells. */
#ifndef WEFT_RECURRENT_H
#define WEFT_RECURRENT_H
#include "autograd/attributes.h"
#include "autograd/fused.h"

typedef weft__recurrent_of attributes;
typedef struct { int64_t N, n, F, H, W, G, S; } extents;

static inline const attributes *how(const weft_call *c) { return c->attributes; }
/* The directions of a call as separate calls. All functions below take one of them. */
typedef struct { int n; weft_call of[2]; } direction_calls;
static inline direction_calls calls_of(const weft_call *c)
{
    direction_calls all = { how(c)->both ? 2 : 1, { *c, *c } };
    const int m = c->m / all.n;
    for (int d = 0; d < all.n; d++) {
        all.of[d].attributes = how(c) + d;
        all.of[d].m = m;
        all.of[d].y = c->y + d * m;
    }
    return all;
}
static inline weft_tensor *input_of(const weft_call *c, int k)
{
    return how(c)->input[k] < 0 ? NULL : c->x[how(c)->input[k]];
}
static inline real *numbers_of(const weft_call *c, int k)
{
    return input_of(c, k) ? input_of(c, k)->data : NULL;
}

/* Results: the states, h and perhaps c; unless lean the gates; with a projection h before it. */
static inline bool has_c(const weft_call *c)    { return weft__states(how(c)->cell) == 2; }
static inline int  at_gates(const weft_call *c) { return weft__states(how(c)->cell); }
static inline bool is_lean(const weft_call *c)  { return c->m == at_gates(c); }

/* Returns the form of the packed input: ids if the call has them, otherwise x. */
static inline const weft__form *packed(const weft_call *c)
{
    return &(input_of(c, WEFT__IDS) ? input_of(c, WEFT__IDS) : c->x[WEFT__X])->f;
}

static inline extents sizes(const weft_call *c)
{
    const weft__form *x = packed(c);
    const weft_tensor *projection = input_of(c, WEFT__W_HR);
    int64_t W = width(input_of(c, WEFT__W_HH)), H = projection ? width(projection) : W;
    return (extents){ x->size[0],
                      x->batch->n,
                      width(c->x[WEFT__X]),
                      H,
                      W,
                      weft__gates(how(c)->cell) * H,
                      weft__slots(how(c)->cell) * H };
}

/* Returns the fold of rows that hold several sequences; NULL if packed. */
static inline const weft__fold *fold(const weft_call *c)
{
    const weft__form *x = packed(c);
    return x->layout == WEFT_ROWS ? x->place->fold : NULL;
}
#endif
