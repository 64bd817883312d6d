/* fast_recur_cell.h - the cells of the recurrent layers on one token, VLEN units at a time: what is left of a step when the
 * product with the weights is done. `left` is how many units there are from here on: fewer than VLEN are loaded and stored with
 * a mask. Every unit goes through the same code in every batch, so its bits are its own. */
#ifndef WEFT_FAST_RECUR_CELL_H
#define WEFT_FAST_RECUR_CELL_H
#include "core/vector.h"

/* All pointers are to the token's first unit; what a cell does not have, or backward does not need, is NULL. */
typedef struct recur_token {
    real *gates;                                 /* [slots * hidden] */
    const real *h_before, *c_before;             /* [hidden]; never NULL where they are read: zeros */
    real *c, *h;                                 /* h before a projection */
    const real *dh, *dy;                         /* what arrived at h: their sum (dy may be NULL) */
    const real *dyc;                             /* may be NULL */
    real *dh_before, *dc;                        /* what goes on to the h before by other ways than the weights; dc in and out */
} recur_token;

#define INLINE static inline __attribute__((always_inline))
INLINE vec v_load_any(const real *p, int64_t j, int64_t left)     { return p ? v_load_to(p + j, left) : v_set(0); }
INLINE vec v_slope_of_sigmoid(vec y)                              { return y * (1 - y); }
INLINE vec v_slope_of_tanh(vec y)                                 { return v_fma(-y, y, v_set(1)); }

/* ---- forward ---- */
INLINE void rnn_tanh_units(const recur_token *t, int64_t hidden, int64_t j, int64_t left)
{
    (void)hidden;
    vec y = v_tanh(v_load_to(t->gates + j, left));
    v_store_to(t->gates + j, y, left);
    v_store_to(t->h + j, y, left);
}
INLINE void rnn_relu_units(const recur_token *t, int64_t hidden, int64_t j, int64_t left)
{
    (void)hidden;
    vec y = v_max(v_set(0), v_load_to(t->gates + j, left));       /* in this order NaN stays */
    v_store_to(t->gates + j, y, left);
    v_store_to(t->h + j, y, left);
}
INLINE void gru_gates_units(const recur_token *t, int64_t hidden, int64_t j, int64_t left)
{
    real *r = t->gates + j, *z = r + hidden;
    v_store_to(r, v_sigmoid(v_load_to(r, left)), left);
    v_store_to(z, v_sigmoid(v_load_to(z, left)), left);
}
INLINE void gru_h_units(const recur_token *t, int64_t hidden, int64_t j, int64_t left)
{
    real *r = t->gates + j, *z = r + hidden, *n = z + hidden, *hn = n + hidden;
    vec fresh = v_tanh(v_fma(v_load_to(r, left), v_load_to(hn, left), v_load_to(n, left)));
    v_store_to(n, fresh, left);
    v_store_to(t->h + j, v_fma(v_load_to(z, left), v_load_to(t->h_before + j, left) - fresh, fresh), left);
}
INLINE void lstm_gates_units(const recur_token *t, int64_t hidden, int64_t j, int64_t left)
{
    real *pi = t->gates + j, *pf = pi + hidden, *pg = pf + hidden, *po = pg + hidden;
    vec i = v_sigmoid(v_load_to(pi, left)), f = v_sigmoid(v_load_to(pf, left)), g = v_tanh(v_load_to(pg, left)), new = i * g;
    v_store_to(pi, i, left), v_store_to(pf, f, left), v_store_to(pg, g, left);
    v_store_to(po, v_sigmoid(v_load_to(po, left)), left);
    v_store_to(t->c + j, v_fma(f, v_load_to(t->c_before + j, left), new), left);
}
INLINE void lstm_h_units(const recur_token *t, int64_t hidden, int64_t j, int64_t left)
{
    v_store_to(t->h + j, v_load_to(t->gates + 3 * hidden + j, left) * v_tanh(v_load_to(t->c + j, left)), left);
}

/* ---- backward: the slots become gradients of the sums ---- */
INLINE vec recur_arrived(const recur_token *t, int64_t j, int64_t left)
{
    return v_load_to(t->dh + j, left) + v_load_any(t->dy, j, left);
}
INLINE void rnn_tanh_back_units(const recur_token *t, int64_t hidden, int64_t j, int64_t left)
{
    (void)hidden;
    vec y = v_load_to(t->gates + j, left);
    v_store_to(t->gates + j, recur_arrived(t, j, left) * v_slope_of_tanh(y), left);
    v_store_to(t->dh_before + j, v_set(0), left);
}
INLINE void rnn_relu_back_units(const recur_token *t, int64_t hidden, int64_t j, int64_t left)
{
    (void)hidden;
    vec y = v_load_to(t->gates + j, left);
    v_store_to(t->gates + j, recur_arrived(t, j, left) * v_select((veci)(y > 0), v_set(1), v_set(0)), left);
    v_store_to(t->dh_before + j, v_set(0), left);
}
INLINE void gru_back_units(const recur_token *t, int64_t hidden, int64_t j, int64_t left)
{
    real *r = t->gates + j, *z = r + hidden, *n = z + hidden, *hn = n + hidden;
    vec reset = v_load_to(r, left), keep = v_load_to(z, left), fresh = v_load_to(n, left), dh = recur_arrived(t, j, left);
    vec dn = dh * (1 - keep) * v_slope_of_tanh(fresh), change = v_load_to(t->h_before + j, left) - fresh;
    v_store_to(r, dn * v_load_to(hn, left) * v_slope_of_sigmoid(reset), left);
    v_store_to(z, dh * change * v_slope_of_sigmoid(keep), left);
    v_store_to(n, dn, left), v_store_to(hn, dn * reset, left);
    v_store_to(t->dh_before + j, dh * keep, left);
}
INLINE void lstm_back_units(const recur_token *t, int64_t hidden, int64_t j, int64_t left)
{
    real *pi = t->gates + j, *pf = pi + hidden, *pg = pf + hidden, *po = pg + hidden;
    vec i = v_load_to(pi, left), f = v_load_to(pf, left), g = v_load_to(pg, left), o = v_load_to(po, left);
    vec squashed = v_tanh(v_load_to(t->c + j, left)), dh = recur_arrived(t, j, left);
    vec dc = v_load_to(t->dc + j, left) + v_load_any(t->dyc, j, left);
    dc = v_fma(dh * o, v_slope_of_tanh(squashed), dc);
    v_store_to(t->dc + j, dc * f, left);
    v_store_to(pi, dc * g * v_slope_of_sigmoid(i), left);
    v_store_to(pf, dc * v_load_to(t->c_before + j, left) * v_slope_of_sigmoid(f), left);
    v_store_to(pg, dc * i * v_slope_of_tanh(g), left);
    v_store_to(po, dh * squashed * v_slope_of_sigmoid(o), left);
    if (t->dh_before)
        v_store_to(t->dh_before + j, v_set(0), left);
}

/* ---- all units of a token ---- */
typedef void recur_cell(const recur_token *t, int64_t hidden);
#define CELL(name)                                                                \
    static void name(const recur_token *t, int64_t hidden)                        \
    {                                                                             \
        int64_t j = 0;                                                            \
        for (; j + VLEN <= hidden; j += VLEN)                                     \
            name##_units(t, hidden, j, VLEN);                                     \
        if (j < hidden)                                                           \
            name##_units(t, hidden, j, hidden - j);                               \
    }
/* Two passes over the units where one function waits for another: they overlap better that way. */
#define TWO(name)                                                                 \
    CELL(name##_gates) CELL(name##_h)                                             \
    static void name(const recur_token *t, int64_t hidden)                        \
    {                                                                             \
        name##_gates(t, hidden);                                                  \
        name##_h(t, hidden);                                                      \
    }
CELL(rnn_tanh) CELL(rnn_relu) TWO(gru) TWO(lstm)
CELL(rnn_tanh_back) CELL(rnn_relu_back) CELL(gru_back) CELL(lstm_back)
#undef TWO
#undef CELL
#undef INLINE
#endif
