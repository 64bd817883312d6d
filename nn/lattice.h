/* lattice.h - the forward algorithm over ragged batches in public operators, for CTC and CRF. */
#ifndef WEFT_LATTICE_H
#define WEFT_LATTICE_H
#include "autograd/fused.h"

typedef struct weft__lattice {
    void *user;
    /* Returns the states of `rows` sequences after step t, whose tokens are rows from .. of the packed
     * batch. alpha: the states before it, plain [rows, ..]; NULL at t = 0. */
    weft_tensor *(*step)(void *user, weft_tensor *alpha, int64_t t, int64_t from, int64_t rows);
    /* Returns the result [m] of the final states of the first m sequences in packed order. */
    weft_tensor *(*finish)(void *user, weft_tensor *alpha, int64_t m);
} weft__lattice;
/* Returns the results [n] in the user's order; 0 for sequences without tokens. */
weft_tensor *weft__run_lattice(weft *, weft_batch *, const weft__lattice *);
/* A shape function: an int for each token of x[0]. */
bool weft__path_shape(weft_call *);
#endif
