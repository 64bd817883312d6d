/* recur.h - a recurrent layer composed of kernels of its back end, for all back ends, including GPUs, that
 * have nothing faster. Forward: one product over all tokens for the input projection, then the recurrence.
 * Backward: the recurrence, then for each gradient one product or sum over all tokens.
 *
 * N: tokens of the current steps; `first`: row of the first of them; F: inputs; H: hidden units; W: width
 * of h; G = gates * H: rows of the weights; S = slots * H: columns of the gates' buffer. Products and sums
 * of one side of the cell (x or h) are done by runs of blocks, see weft__blocks_from.
 *
 * If x is a table and tokens have ids, the rows of the table are projected, and each token copies the row
 * of its id. Backward, the gates' gradients are summed over tokens with the same id, and the products and
 * sums of x's side are over rows of the table. */
#ifndef WEFT_SHARED_RECUR_H
#define WEFT_SHARED_RECUR_H
#include "core/kernels.h"

struct layer_work;
typedef struct layer_kernels {
    weft__gemm_kernel *gemm; weft__blocks_kernel *blocks;
    weft__binary_kernel *binary; weft__sum_kernel *sum;
    weft__gather_kernel *gather;
    weft__scatter_kernel *scatter;
    weft__recur_kernel *recur;
    weft__recur_back_kernel *recur_back;
    weft__gemm_packs_kernel *gemm_packs;
    /* Computes bias gradients from n rows of slots, and r.h_before instead of recur_back. NULL: not used. */
    void (*sums)(const struct layer_work *, int64_t n, const real *gates);
    /* With ids: copies tokens' sums from of_rows, adds biases. NULL: of_rows includes the biases. */
    void (*gather_rows)(const struct layer_work *);
    /* Runs both directions of a layer. NULL: one after the other. */
    void (*recur_both)(weft__device *, const weft__recurrence *both, bool back);
} layer_kernels;
/* A call: the device, the kernels and the layer. */
typedef struct layer_work { weft__device *d; const layer_kernels *k; const weft__recur_layer *l; } layer_work;

static inline int64_t layer_gates(const weft__recur_layer *l) { return weft__gates(l->r.cell) * l->r.hidden; }
static inline int64_t layer_slots(const weft__recur_layer *l) { return weft__slots(l->r.cell) * l->r.hidden; }

/* A run of blocks on one side of a cell: n rows of the weights from row `block`, and columns from `slot`. */
typedef struct layer_run { int64_t block, slot, n; } layer_run;
/* Returns the run at row `block`, or one with n = 0 after the last. */
static inline layer_run layer_run_at(const weft__recur_layer *l, bool of_h, int64_t block)
{
    const int64_t H = l->r.hidden;
    const weft__cell cell = l->r.cell;
    const int b = (int)(block / H);
    layer_run run = { block, 0, 0 };
    if (b < weft__gates(cell))
        run.slot = weft__slot_of(cell, of_h, b) * H, run.n = weft__blocks_from(cell, of_h, b) * H;
    return run;
}
#define EACH_RUN_OF(run, l, of_h) \
    for (layer_run run = layer_run_at(l, of_h, 0); run.n; run = layer_run_at(l, of_h, run.block + run.n))

static inline int64_t layer_first(const weft__recur_layer *l)   { return l->r.start.host[l->r.from]; }
static inline int64_t layer_tokens(const weft__recur_layer *l)
{
    return l->r.start.host[l->r.to] - layer_first(l);
}

/* Returns the product c [m, n] (+)= op(a) op(b). Rows of a and c: lda, ldc numbers; b is contiguous. */
static inline weft__product layer_product_of(const layer_work *w, bool ta, bool tb, int64_t m, int64_t n,
                                             int64_t k, int64_t lda, int64_t ldc)
{
    weft__product p = { 0 };
    p.ta = ta, p.tb = tb, p.m = m, p.n = n, p.k = k, p.lda = lda, p.ldb = tb ? k : n, p.ldc = ldc;
    p.batches = 1;
    p.precision = w->d->precision;
    return p;
}
static inline void layer_product(const layer_work *w, bool ta, int64_t m, int64_t n, int64_t k, const real *a,
                                 int64_t lda, const real *b, real *c, int64_t ldc, bool add)
{
    weft__product p = layer_product_of(w, ta, false, m, n, k, lda, ldc);
    p.add = add;
    p.back = true;
    w->k->gemm(w->d, &p, a, b, c);
}
/* Returns the product of n tokens with the weights of a run, which can be packed. */
static inline weft__product layer_input_product(const layer_work *w, const layer_run *run, int64_t n,
                                                const weft__finish *epilogue)
{
    const int64_t F = w->l->inputs;
    weft__product p = layer_product_of(w, false, true, n, run->n, F, F, layer_slots(w->l));
    p.then = epilogue;
    return p;
}
/* Returns the bytes of these weights in l->packed, in whole cache lines. */
static inline size_t layer_packed_input(const layer_work *w, const layer_run *run)
{
    const weft__product p = layer_input_product(w, run, 1, NULL);
    return (w->k->gemm_packs(w->d, &p) + 63) / 64 * 64;
}
/* Returns the grid of the sum over n rows of S numbers. */
static inline weft__grid layer_columns(const weft__recur_layer *l, int64_t n)
{
    const weft__grid g = { 2, { n, layer_slots(l) }, { { 0, 1 } } };
    return g;
}
/* Returns the recurrence of a layer, with h's bias for the slot without input. */
static inline weft__recurrence layer_recurrence(const weft__recur_layer *l)
{
    const int alone = weft__slot_of_h_alone(l->r.cell);
    weft__recurrence r = l->r;
    r.b_h_alone = l->b_hh && alone >= 0 ? l->b_hh + weft__block_of_h(r.cell, alone) * r.hidden : NULL;
    return r;
}

/* ---- forward ---- */
/* Copies between blocks and slots: at most one for each of four gates, on each side. */
typedef struct layer_blocks { int64_t n; weft__block_copy of[8]; } layer_blocks;
static inline void layer_add_block(layer_blocks *b, int64_t width, const real *x, real *y, bool add)
{
    const weft__block_copy copy = { 1, width, x, width, y, width, add, NULL, NULL };
    b->of[b->n++] = copy;
}
/* Returns the biases [S] of the sums: for slots with input, the sum of both sides. NULL: no biases. */
static inline const real *layer_biases(const layer_work *w)
{
    const weft__recur_layer *l = w->l;
    const int64_t S = layer_slots(l), alone = weft__slot_of_h_alone(l->r.cell) * l->r.hidden;
    const layer_run first = layer_run_at(l, false, 0), of_h = layer_run_at(l, true, 0);
    layer_blocks b = { 0 };
    if (!l->b_ih)
        return NULL;
    if (first.n == S && of_h.n == S) {
        const weft__grid side_by_side = { 1, { S }, { { 1 }, { 1 } } };
        w->k->binary(w->d, WEFT__add, &side_by_side, l->b_ih, l->b_hh, l->total, false);
        return l->total;
    }
    EACH_RUN_OF(run, l, false)
        layer_add_block(&b, run.n, l->b_ih + run.block, l->total + run.slot, false);
    w->k->blocks(w->d, b.n, b.of);
    b.n = 0;
    EACH_RUN_OF(run, l, true)
        if (run.slot != alone)
            layer_add_block(&b, run.n, l->b_hh + run.block, l->total + run.slot, true);
    w->k->blocks(w->d, b.n, b.of);
    return l->total;
}
/* Projects n rows x [n, F] to sums [n, S]. */
static inline void layer_inputs(const layer_work *w, int64_t n, const real *x, real *sums, const real *biases)
{
    const weft__recur_layer *l = w->l;
    const int64_t F = l->inputs;
    const char *packed = (const char *)l->packed;
    EACH_RUN_OF(run, l, false) {
        const weft__finish epilogue = { biases ? biases + run.slot : NULL, 0, WEFT__UNARIES, 0, 0 };
        weft__product p = layer_input_product(w, &run, n, biases ? &epilogue : NULL);
        p.packed = packed;
        packed += packed ? layer_packed_input(w, &run) : 0;
        w->k->gemm(w->d, &p, x, l->w_ih + run.block * F, sums + run.slot);
    }
}
/* Does everything before the recurrence, and returns the recurrence. */
static inline weft__recurrence layer_projected(const layer_work *w)
{
    const weft__recur_layer *l = w->l;
    const layer_kernels *k = w->k;
    const int64_t N = layer_tokens(l), first = layer_first(l), S = layer_slots(l);
    weft__recurrence r = layer_recurrence(l);
    real *gates = l->r.gates + first * S;
    const char *packed = (const char *)l->packed;
    EACH_RUN_OF(run, l, false)
        packed += packed ? layer_packed_input(w, &run) : 0;
    r.packed = packed;
    if (l->ids && !l->summed)
        layer_inputs(w, l->rows, l->x, l->of_rows, k->gather_rows ? NULL : layer_biases(w));
    else if (!l->ids)
        layer_inputs(w, N, l->x + first * l->inputs, gates, layer_biases(w));
    if (l->ids && k->gather_rows)
        k->gather_rows(w);
    else if (l->ids)
        k->gather(w->d, N, S, l->rows, l->of_rows, l->ids + first, 0, gates, false);
    return r;
}
static inline void layer_forward(weft__device *d, const layer_kernels *k, const weft__recur_layer *l)
{
    weft__recurrence both[2];
    int n = 0;
    for (; l; l = l->beside) {
        const layer_work w = { d, k, l };
        both[n++] = layer_projected(&w);
    }
    if (n == 2 && k->recur_both)
        k->recur_both(d, both, false);
    else
        for (int i = 0; i < n; i++)
            k->recur(d, &both[i]);
}

/* ---- backward: after the recurrence the gates' buffer holds gradients ---- */
/* Adds the gradients of x and w_ih from n rows of x and of the slots' gradients. */
static inline void layer_inputs_back(const layer_work *w, int64_t n, const real *gates, const real *x,
                                     real *dx)
{
    const weft__recur_layer *l = w->l;
    const int64_t S = layer_slots(l), F = l->inputs;
    if (dx)
        EACH_RUN_OF(run, l, false)
            layer_product(w, false, n, F, run.n, gates + run.slot, S, l->w_ih + run.block * F, dx, F,
                          l->dx.add || run.block);
    if (l->dw_ih.to)
        EACH_RUN_OF(run, l, false)
            layer_product(w, true, run.n, F, n, gates + run.slot, S, x, l->dw_ih.to + run.block * F, F,
                          l->dw_ih.add);
}
static inline void layer_weights_back(const layer_work *w)
{
    const weft__recur_layer *l = w->l;
    const weft__recurrence *r = &l->r;
    const int64_t N = layer_tokens(l), first = layer_first(l), S = layer_slots(l), H = r->hidden,
                  W = r->width;
    const real *gates = r->gates + first * S, *before = r->h_before + first * W;
    if (l->dw_hh.to)
        EACH_RUN_OF(run, l, true)
            layer_product(w, true, run.n, W, N, gates + run.slot, S, before, l->dw_hh.to + run.block * W, W,
                          l->dw_hh.add);
    if (l->dw_hr.to)
        layer_product(w, true, W, H, N, r->dh + first * W, W, r->raw + first * H, l->dw_hr.to, H,
                      l->dw_hr.add);
}
static inline void layer_biases_back(const layer_work *w, int64_t n, const real *gates)
{
    const weft__recur_layer *l = w->l;
    const weft__grid g = layer_columns(l, n);
    const weft__into into[] = { l->db_ih, l->db_hh };
    layer_blocks b = { 0 };
    if (!l->db_ih.to && !l->db_hh.to)
        return;
    w->k->sum(w->d, &g, gates, l->total, false);
    for (int of_h = 0; of_h < 2; of_h++) {
        if (of_h && into[1].to == into[0].to)    /* tied biases: two blocks with one destination go one
                                                  * after the other */
            w->k->blocks(w->d, b.n, b.of), b.n = 0;
        if (into[of_h].to)
            EACH_RUN_OF(run, l, of_h)
                layer_add_block(&b, run.n, l->total + run.slot, into[of_h].to + run.block, into[of_h].add);
    }
    w->k->blocks(w->d, b.n, b.of);
}
/* Computes the gradients of x's side and of the biases, over tokens or over rows of the table (of_rows). */
static inline void layer_side_of_x(const layer_work *w, int64_t n, const real *gates, const real *x, real *dx)
{
    layer_inputs_back(w, n, gates, x, dx);
    (w->k->sums ? w->k->sums : layer_biases_back)(w, n, gates);
}
static inline void layer_tokens_back(const layer_work *w)
{
    const weft__recur_layer *l = w->l;
    const int64_t first = layer_first(l), F = l->inputs;
    layer_side_of_x(w, layer_tokens(l), l->r.gates + first * layer_slots(l), l->x + first * F,
                    l->dx.to ? l->dx.to + first * F : NULL);
}
static inline void layer_rows_back(const layer_work *w)
{
    const weft__recur_layer *l = w->l;
    layer_side_of_x(w, l->rows, l->of_rows, l->x, l->dx.to);
}
/* Does everything after the recurrence. */
static inline void layer_gradients(const layer_work *w)
{
    const weft__recur_layer *l = w->l;
    const int64_t first = layer_first(l), S = layer_slots(l);
    if (l->ids) {
        w->k->scatter(w->d, layer_tokens(l), S, l->rows, l->r.gates + first * S, l->ids + first, l->of_rows,
                      false);
        layer_rows_back(w);
    } else
        layer_tokens_back(w);
    layer_weights_back(w);
}
static inline void layer_backward(weft__device *d, const layer_kernels *k, const weft__recur_layer *l)
{
    weft__recurrence both[2];
    int n = 0;
    for (const weft__recur_layer *one = l; one; one = one->beside) {
        both[n] = layer_recurrence(one);
        both[n].h_before = k->sums ? NULL : both[n].h_before;
        n++;
    }
    if (n == 2 && k->recur_both)
        k->recur_both(d, both, true);
    else
        for (int i = 0; i < n; i++)
            k->recur_back(d, &both[i]);
    for (; l; l = l->beside) {
        const layer_work w = { d, k, l };
        layer_gradients(&w);
    }
}
#endif
