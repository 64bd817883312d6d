/* shared_recur.h - a recurrent layer from the kernels of its table: the projection of x is one product over all tokens, then comes the
 * recurrence; backward the recurrence first, then one product or sum over all tokens for each gradient. What every back end does, a GPU
 * too, where it has nothing better.
 *
 * N tokens of the steps at hand, the first of them in row `at`, F inputs, H hidden units, W the width of h, G = gates H rows of the weights,
 * S = slots H columns of the buffer: a GRU's has one slot more, since n's two sides have gradients of their own. */
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
/* Rows [N, S] of the same S numbers, or their sum. */
static inline weft__grid layer_columns(const weft__recur_layer *l)
{
    weft__grid g;
    memset(&g, 0, sizeof g);
    g.rank = 2, g.size[0] = layer_tokens(l), g.size[1] = layer_slots(l), g.step[0][1] = 1;
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
    layer_product(d, false, N, G, F, l->x + at * F, F, true, l->w_ih, l->r.gates + at * S, S, false, l->b_ih ? &then : NULL);
    weft__recurrence r = l->r;
    r.b_hn = layer_b_hn(l);
    d->k->recur(d, &r);
}

/* ---- backward: after the recurrence the gates' buffer holds gradients ---- */
static inline void layer_inputs_back(weft__device *d, const weft__recur_layer *l)
{
    const int64_t N = layer_tokens(l), at = layer_first(l), G = layer_gates(l), S = layer_slots(l), F = l->inputs;
    const real *gates = l->r.gates + at * S;
    if (l->dx.to)
        layer_product(d, false, N, F, G, gates, S, false, l->w_ih, l->dx.to + at * F, F, l->dx.add, NULL);
    if (l->dw_ih.to)
        layer_product(d, true, G, F, N, gates, S, false, l->x + at * F, l->dw_ih.to, F, l->dw_ih.add, NULL);
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
static inline void layer_biases_back(weft__device *d, const weft__recur_layer *l)
{
    const int64_t G = layer_gates(l), H = l->r.hidden;
    const bool gru = l->r.cell == WEFT__GRU;
    const weft__grid g = layer_columns(l);
    if (!l->db_ih.to && !l->db_hh.to)
        return;
    d->k->fill(d, layer_slots(l), 0, l->total);
    d->k->sum(d, &g, l->r.gates + layer_first(l) * layer_slots(l), l->total);
    if (l->db_ih.to)
        d->k->scale(d, G, 1, l->total, l->db_ih.to, l->db_ih.add);
    if (l->db_hh.to)
        d->k->scale(d, gru ? 2 * H : G, 1, l->total, l->db_hh.to, l->db_hh.add);
    if (l->db_hh.to && gru)
        d->k->scale(d, H, 1, l->total + 3 * H, l->db_hh.to + 2 * H, l->db_hh.add);
}
static inline void layer_backward(weft__device *d, const weft__recur_layer *l)
{
    weft__recurrence r = l->r;
    r.b_hn = layer_b_hn(l);
    d->k->recur_back(d, &r);
    layer_inputs_back(d, l);
    layer_weights_back(d, l);
    layer_biases_back(d, l);
}
#endif
