/* loops_recur.h - recurrent layers as plain loops over tokens: the specification. Included after K(name) is defined.
 *
 * Row start[t] + s of the packed batch is column s at step t. Its state comes from the same column one step before it in the
 * direction of the recurrence, or from h0 and c0 where a sequence begins. Backward walks the steps the other way round;
 * carry_h[s] and carry_c[s] hold what has arrived at the state of column s from the steps that came after. */
#include <string.h>
#include <tgmath.h>
#include "core/kernels.h"
#include "core/shared_recur.h"

static inline real recur_sigmoid(real x) { return 1 / (1 + exp(-x)); }

/* Where the state of column s comes from at step t: a row before, or the sequence that begins here (-1: neither). */
typedef struct recur_source { int64_t before, sequence; } recur_source;
static recur_source recur_from(const weft__recurrence *r, int64_t t, int64_t s)
{
    int64_t u = r->reverse ? t + 1 : t - 1, begins = r->reset.host ? r->reset.host[r->start.host[t] + s] : WEFT__ON;
    if (begins != WEFT__ON)
        return (recur_source){ -1, begins >= 0 ? begins : -1 };
    bool there = u >= 0 && u < r->steps && s < r->live.host[u];
    return there ? (recur_source){ r->start.host[u] + s, -1 } : (recur_source){ -1, s };
}
static const real *recur_state(const real *rows, const real *first, int64_t width, recur_source from)           /* NULL: zeros */
{
    return from.before >= 0 ? rows + from.before * width : first && from.sequence >= 0 ? first + from.sequence * width : NULL;
}
/* y [n] += w x, w [n, k] */
static void recur_times(int64_t n, int64_t k, const real *w, const real *x, real *y)
{
    for (int64_t i = 0; x && i < n; i++)
        for (int64_t p = 0; p < k; p++)
            y[i] += w[i * k + p] * x[p];
}
/* y [k] += x w, w [n, k] */
static void recur_times_back(int64_t n, int64_t k, const real *w, const real *x, real *y)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t p = 0; p < k; p++)
            y[p] += x[i] * w[i * k + p];
}

/* ---- forward, one token: gates [slots * H] -> gates, h [H] (LSTM: raw if there is a projection) ---- */
static void recur_rnn(const weft__recurrence *r, real *a, const real *before, real *h)
{
    int64_t H = r->hidden;
    recur_times(H, H, r->w_hh, before, a);
    for (int64_t j = 0; j < H; j++)
        h[j] = a[j] = r->cell == WEFT__RNN_TANH ? tanh(a[j]) : a[j] > 0 ? a[j] : 0 * a[j];     /* relu(NaN) is NaN */
}
/* h' = n + z (h - n), n = tanh(W_in x + b_in + r (W_hn h + b_hn)) */
static void recur_gru(const weft__recurrence *r, real *gates, const real *before, real *h)
{
    int64_t H = r->hidden;
    real *reset = gates, *z = reset + H, *n = z + H, *hn = n + H;
    for (int64_t j = 0; j < H; j++)
        hn[j] = r->b_hn ? r->b_hn[j] : 0;
    recur_times(2 * H, H, r->w_hh, before, reset);
    recur_times(H, H, r->w_hh + 2 * H * H, before, hn);
    for (int64_t j = 0; j < H; j++) {
        reset[j] = recur_sigmoid(reset[j]), z[j] = recur_sigmoid(z[j]), n[j] = tanh(n[j] + reset[j] * hn[j]);
        h[j] = n[j] + z[j] * ((before ? before[j] : 0) - n[j]);
    }
}
/* c' = f c + i g, h' = o tanh(c') */
static void recur_lstm(const weft__recurrence *r, real *i, const real *before, const real *c_before, real *c, real *h)
{
    int64_t H = r->hidden;
    real *f = i + H, *g = f + H, *o = g + H;
    recur_times(4 * H, r->width, r->w_hh, before, i);
    for (int64_t j = 0; j < H; j++) {
        i[j] = recur_sigmoid(i[j]), f[j] = recur_sigmoid(f[j]), g[j] = tanh(g[j]), o[j] = recur_sigmoid(o[j]);
        c[j] = f[j] * (c_before ? c_before[j] : 0) + i[j] * g[j];
        h[j] = o[j] * tanh(c[j]);
    }
}
static void recur_token(const weft__recurrence *r, int64_t t, int64_t s)
{
    int64_t row = r->start.host[t] + s, H = r->hidden;
    recur_source from = recur_from(r, t, s);
    const real *h_before = recur_state(r->h, r->h0, r->width, from);
    real *h = r->h + row * r->width;
    if (r->cell == WEFT__GRU)
        recur_gru(r, r->gates + row * 4 * H, h_before, h);
    else if (r->cell != WEFT__LSTM)
        recur_rnn(r, r->gates + row * H, h_before, h);
    else
        recur_lstm(r, r->gates + row * 4 * H, h_before, recur_state(r->c, r->c0, H, from), r->c + row * H,
                   r->w_hr ? r->raw + row * H : h);
    if (!r->w_hr)
        return;
    memset(h, 0, (size_t)r->width * sizeof *h);
    recur_times(r->width, H, r->w_hr, r->raw + row * H, h);
}
static void K(recur)(weft__device *d, const weft__recurrence *r)
{
    (void)d;
    for (int64_t i = 0; i < r->to - r->from; i++)
        for (int64_t s = 0, t = r->reverse ? r->to - 1 - i : r->from + i; s < r->live.host[t]; s++)
            recur_token(r, t, s);
}

/* ---- backward, one token: dh [width] is all that arrived at h, and becomes what goes on to the h before ---- */
static void recur_rnn_back(const weft__recurrence *r, real *a, real *dh)
{
    int64_t H = r->hidden;
    for (int64_t j = 0; j < H; j++) {
        a[j] = dh[j] * (r->cell == WEFT__RNN_TANH ? 1 - a[j] * a[j] : (real)(a[j] > 0));
        dh[j] = 0;
    }
    recur_times_back(H, H, r->w_hh, a, dh);
}
static void recur_gru_back(const weft__recurrence *r, real *gates, const real *before, real *dh)
{
    int64_t H = r->hidden;
    real *reset = gates, *z = reset + H, *n = z + H, *hn = n + H;
    for (int64_t j = 0; j < H; j++) {
        real dn = dh[j] * (1 - z[j]) * (1 - n[j] * n[j]), keep = reset[j];
        real dz = dh[j] * ((before ? before[j] : 0) - n[j]) * z[j] * (1 - z[j]);
        dh[j] *= z[j];
        reset[j] = dn * hn[j] * keep * (1 - keep), z[j] = dz, n[j] = dn, hn[j] = dn * keep;
    }
    recur_times_back(2 * H, H, r->w_hh, reset, dh);
    recur_times_back(H, H, r->w_hh + 2 * H * H, hn, dh);
}
static real recur_arrived(const weft__recurrence *r, const real *dh, int64_t j)      /* at h before the projection */
{
    real sum = 0;
    for (int64_t p = 0; r->w_hr && p < r->width; p++)
        sum += dh[p] * r->w_hr[p * r->hidden + j];
    return r->w_hr ? sum : dh[j];
}
static void recur_lstm_back(const weft__recurrence *r, real *i, const real *c_before, const real *c, real *dh, real *dc)
{
    int64_t H = r->hidden;
    real *f = i + H, *g = f + H, *o = g + H;
    for (int64_t j = 0; j < H; j++) {
        real at = recur_arrived(r, dh, j), squashed = tanh(c[j]), in = i[j], fresh = g[j];
        real all = dc[j] + at * o[j] * (1 - squashed * squashed);
        dc[j] = all * f[j];
        o[j] = at * squashed * o[j] * (1 - o[j]);
        f[j] = all * (c_before ? c_before[j] : 0) * f[j] * (1 - f[j]);
        i[j] = all * fresh * in * (1 - in);
        g[j] = all * in * (1 - fresh * fresh);
    }
    memset(dh, 0, (size_t)r->width * sizeof *dh);
    recur_times_back(4 * H, r->width, r->w_hh, i, dh);
}
static void recur_plus(int64_t n, const real *x, real *y)                            /* where both are wanted */
{
    for (int64_t j = 0; x && y && j < n; j++)
        y[j] += x[j];
}
/* What has arrived at a first state is its gradient; the column's next sequence finds zeros. */
static void recur_handed_over(int64_t n, int64_t sequence, real *carry, real *first)
{
    if (sequence >= 0)
        recur_plus(n, carry, first ? first + sequence * n : NULL);
    memset(carry, 0, (size_t)n * sizeof *carry);
}
static void recur_token_back(const weft__recurrence *r, int64_t t, int64_t s)
{
    int64_t row = r->start.host[t] + s, H = r->hidden, W = r->width;
    recur_source from = recur_from(r, t, s);
    const real *h_before = recur_state(r->h, r->h0, W, from);
    real *dh = r->carry_h + s * W, *dc = r->cell == WEFT__LSTM ? r->carry_c + s * H : NULL;
    recur_plus(W, r->dy ? r->dy + row * W : NULL, dh);
    recur_plus(H, r->dyc ? r->dyc + row * H : NULL, dc);
    if (r->w_hr)
        memcpy(r->dh + row * W, dh, (size_t)W * sizeof *dh);
    if (r->cell == WEFT__GRU)
        recur_gru_back(r, r->gates + row * 4 * H, h_before, dh);
    else if (r->cell != WEFT__LSTM)
        recur_rnn_back(r, r->gates + row * H, dh);
    else
        recur_lstm_back(r, r->gates + row * 4 * H, recur_state(r->c, r->c0, H, from), r->c + row * H, dh, dc);
    for (int64_t j = 0; r->h_before && j < W; j++)
        r->h_before[row * W + j] = h_before ? h_before[j] : 0;
    if (from.before >= 0)
        return;
    recur_handed_over(W, from.sequence, dh, r->dh0);
    if (dc)
        recur_handed_over(H, from.sequence, dc, r->dc0);
}
static void K(recur_back)(weft__device *d, const weft__recurrence *r)
{
    (void)d;
    for (int64_t i = 0; i < r->to - r->from; i++)
        for (int64_t s = 0, t = r->reverse ? r->from + i : r->to - 1 - i; s < r->live.host[t]; s++)
            recur_token_back(r, t, s);
}

/* ---- the whole layer ---- */
static void K(recur_layer)(weft__device *d, const weft__recur_layer *l)      { layer_forward(d, l); }
static void K(recur_layer_back)(weft__device *d, const weft__recur_layer *l) { layer_backward(d, l); }
