/* recur.h - a recurrent layer from the kernels of its table: the projection of x is one product over all tokens, then comes the
 * recurrence; backward the recurrence first, then one product or sum over all tokens for each gradient. What every back end does, a GPU
 * too, where it has nothing better.
 *
 * N tokens of the steps at hand, the first of them in row `at`, F inputs, H hidden units, W the width of h, G = gates H rows of the weights,
 * S = slots H columns of the buffer: a GRU's has one slot more, since n's two sides have gradients of their own.
 *
 * Where x is a table and tokens have ids, the projection is one of the table's rows, from which tokens take theirs; backward tokens of the same
 * id add up their gates' gradients, and what is a product or sum over tokens on the side of x is one over rows. */
#ifndef WEFT_SHARED_RECUR_H
#define WEFT_SHARED_RECUR_H
#include <string.h>
#include "core/kernels.h"

static inline int64_t layer_gates(const weft__recur_layer *l) { return l->r.hidden * (l->r.cell == WEFT__LSTM ? 4 : l->r.cell == WEFT__GRU ? 3 : 1); }
static inline int64_t layer_slots(const weft__recur_layer *l) { return l->r.hidden * (l->r.cell < WEFT__GRU ? 1 : 4); }

static inline int64_t layer_first(const weft__recur_layer *l)   { return l->r.start.host[l->r.from]; }
static inline int64_t layer_tokens(const weft__recur_layer *l)  { return l->r.start.host[l->r.to] - layer_first(l); }

/* c [m, n] (+)= op(a) op(b); rows of a and c are lda and ldc long, those of b as long as they must be. */
static inline void layer_product(weft__device *d, bool ta, int64_t m, int64_t n, int64_t k, const real *a, int64_t lda, bool tb, const real *b,
                                 real *c, int64_t ldc, bool add, const weft__finish *then)
{
    weft__product p;
    memset(&p, 0, sizeof p);
    p.ta = ta, p.tb = tb, p.add = add, p.m = m, p.n = n, p.k = k, p.lda = lda, p.ldb = tb ? k : n, p.ldc = ldc, p.batches = 1;
    p.precision = d->precision, p.then = then;
    d->k->gemm(d, &p, a, b, c);
}
/* n rows of S numbers, and their sum. */
static inline weft__grid layer_columns(const weft__recur_layer *l, int64_t n)
{
    weft__grid g;
    memset(&g, 0, sizeof g);
    g.rank = 2, g.size[0] = n, g.size[1] = layer_slots(l), g.step[0][1] = 1;
    return g;
}
static inline const real *layer_b_hn(const weft__recur_layer *l)
{
    return l->b_hh && l->r.cell == WEFT__GRU ? l->b_hh + 2 * l->r.hidden : NULL;
}

/* ---- forward ---- */
/* What is added to the sums, both biases where both apply: of a GRU's n only b_ih, its b_hh belongs to h's side. NULL: none. */
static inline const real *layer_biases(weft__device *d, const weft__recur_layer *l)
{
    const int64_t G = layer_gates(l);
    if (!l->b_ih)
        return NULL;
    d->k->fill(d, layer_slots(l), 0, l->total);
    d->k->scale(d, G, 1, l->b_ih, l->total, true);
    d->k->scale(d, l->r.cell == WEFT__GRU ? 2 * l->r.hidden : G, 1, l->b_hh, l->total, true);
    return l->total;
}
static inline void layer_forward(weft__device *d, const weft__recur_layer *l)
{
    const int64_t N = layer_tokens(l), at = layer_first(l), G = layer_gates(l), S = layer_slots(l), F = l->inputs;
    const weft__finish then = { layer_biases(d, l), WEFT__UNARIES, 0, 0 };
    const real *x = l->ids ? l->x : l->x + at * F;
    real *gates = l->r.gates + at * S;
    layer_product(d, false, l->ids ? l->rows : N, G, F, x, F, true, l->w_ih, l->ids ? l->of_rows : gates, S, false, l->b_ih ? &then : NULL);
    if (l->ids)
        d->k->gather(d, N, S, l->rows, l->of_rows, l->ids + at, 0, gates, false);
    weft__recurrence r = l->r;
    r.b_hn = layer_b_hn(l);
    d->k->recur(d, &r);
}

/* ---- backward: after the recurrence the gates' buffer holds gradients ---- */
/* Of n rows of x and the gradients of the sums that they are in. */
static inline void layer_inputs_back(weft__device *d, const weft__recur_layer *l, int64_t n, const real *gates, const real *x, real *dx)
{
    const int64_t G = layer_gates(l), S = layer_slots(l), F = l->inputs;
    if (dx)
        layer_product(d, false, n, F, G, gates, S, false, l->w_ih, dx, F, l->dx.add, NULL);
    if (l->dw_ih.to)
        layer_product(d, true, G, F, n, gates, S, false, x, l->dw_ih.to, F, l->dw_ih.add, NULL);
}
static inline void layer_weights_back(weft__device *d, const weft__recur_layer *l)
{
    const weft__recurrence *r = &l->r;
    const int64_t N = layer_tokens(l), at = layer_first(l), G = layer_gates(l), S = layer_slots(l), H = r->hidden, W = r->width;
    const int64_t both = r->cell == WEFT__GRU ? 2 * H : G;        /* rows whose two sides have the same gradient */
    const real *gates = r->gates + at * S, *before = r->h_before + at * W;
    if (l->dw_hh.to)
        layer_product(d, true, both, W, N, gates, S, false, before, l->dw_hh.to, W, l->dw_hh.add, NULL);
    if (l->dw_hh.to && both < G)
        layer_product(d, true, H, W, N, gates + 3 * H, S, false, before, l->dw_hh.to + both * W, W, l->dw_hh.add, NULL);
    if (l->dw_hr.to)
        layer_product(d, true, W, H, N, r->dh + at * W, W, false, r->raw + at * H, l->dw_hr.to, H, l->dw_hr.add, NULL);
}
static inline void layer_biases_back(weft__device *d, const weft__recur_layer *l, int64_t n, const real *gates)
{
    const int64_t G = layer_gates(l), H = l->r.hidden;
    const bool gru = l->r.cell == WEFT__GRU;
    const weft__grid g = layer_columns(l, n);
    if (!l->db_ih.to && !l->db_hh.to)
        return;
    d->k->fill(d, layer_slots(l), 0, l->total);
    d->k->sum(d, &g, gates, l->total);
    if (l->db_ih.to)
        d->k->scale(d, G, 1, l->total, l->db_ih.to, l->db_ih.add);
    if (l->db_hh.to)
        d->k->scale(d, gru ? 2 * H : G, 1, l->total, l->db_hh.to, l->db_hh.add);
    if (l->db_hh.to && gru)
        d->k->scale(d, H, 1, l->total + 3 * H, l->db_hh.to + 2 * H, l->db_hh.add);
}
/* The side of x, by its tokens or, where of_rows has the sums over them, by the table's rows. */
static inline void layer_tokens_back(weft__device *d, const weft__recur_layer *l)
{
    const int64_t N = layer_tokens(l), at = layer_first(l), F = l->inputs;
    const real *gates = l->r.gates + at * layer_slots(l);
    layer_inputs_back(d, l, N, gates, l->x + at * F, l->dx.to ? l->dx.to + at * F : NULL);
    layer_biases_back(d, l, N, gates);
}
static inline void layer_rows_back(weft__device *d, const weft__recur_layer *l)
{
    layer_inputs_back(d, l, l->rows, l->of_rows, l->x, l->dx.to);
    layer_biases_back(d, l, l->rows, l->of_rows);
}
static inline void layer_add_by_id(weft__device *d, const weft__recur_layer *l)
{
    const int64_t at = layer_first(l), S = layer_slots(l);
    d->k->fill(d, l->rows * S, 0, l->of_rows);
    d->k->scatter(d, layer_tokens(l), S, l->rows, l->r.gates + at * S, l->ids + at, l->of_rows);
}
static inline void layer_backward(weft__device *d, const weft__recur_layer *l)
{
    weft__recurrence r = l->r;
    r.b_hn = layer_b_hn(l);
    d->k->recur_back(d, &r);
    if (l->ids) {
        layer_add_by_id(d, l);
        layer_rows_back(d, l);
    } else
        layer_tokens_back(d, l);
    layer_weights_back(d, l);
}
#endif
