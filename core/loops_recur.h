/* loops_recur.h - recurrent layers as plain loops over tokens: the specification. Included after K(name) is defined.
 *
 * Row start[t] + s of the packed batch is sequence s at step t. Its state comes from the same sequence one step before it in
 * the direction of the recurrence, or from h0 and c0 where there is none. Backward walks the steps the other way round;
 * carry_h[s] and carry_c[s] hold what has arrived at the state of sequence s from the steps that came after. */
#include <string.h>
#include <tgmath.h>
#include "core/kernels.h"

static inline real recur_sigmoid(real x) { return 1 / (1 + exp(-x)); }

/* The row before that of sequence s at step t; -1: it starts there. */
static int64_t recur_before(const weft__recurrence *r, int64_t t, int64_t s)
{
    int64_t u = r->reverse ? t + 1 : t - 1;
    return u >= 0 && u < r->steps && s < r->live.host[u] ? r->start.host[u] + s : -1;
}
static const real *recur_state(const real *rows, const real *first, int64_t width, int64_t before, int64_t s)   /* NULL: zeros */
{
    return before >= 0 ? rows + before * width : first ? first + s * width : NULL;
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
    int64_t row = r->start.host[t] + s, before = recur_before(r, t, s), H = r->hidden;
    const real *h_before = recur_state(r->h, r->h0, r->width, before, s);
    real *h = r->h + row * r->width;
    if (r->cell == WEFT__GRU)
        recur_gru(r, r->gates + row * 4 * H, h_before, h);
    else if (r->cell != WEFT__LSTM)
        recur_rnn(r, r->gates + row * H, h_before, h);
    else
        recur_lstm(r, r->gates + row * 4 * H, h_before, recur_state(r->c, r->c0, H, before, s), r->c + row * H,
                   r->w_hr ? r->raw + row * H : h);
    if (!r->w_hr)
        return;
    memset(h, 0, (size_t)r->width * sizeof *h);
    recur_times(r->width, H, r->w_hr, r->raw + row * H, h);
}
static void K(recur)(weft__device *d, const weft__recurrence *r)
{
    (void)d;
    for (int64_t i = 0; i < r->steps; i++)
        for (int64_t s = 0, t = r->reverse ? r->steps - 1 - i : i; s < r->live.host[t]; s++)
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
static void recur_token_back(const weft__recurrence *r, int64_t t, int64_t s)
{
    int64_t row = r->start.host[t] + s, before = recur_before(r, t, s), H = r->hidden, W = r->width;
    const real *h_before = recur_state(r->h, r->h0, W, before, s);
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
        recur_lstm_back(r, r->gates + row * 4 * H, recur_state(r->c, r->c0, H, before, s), r->c + row * H, dh, dc);
    for (int64_t j = 0; r->h_before && j < W; j++)
        r->h_before[row * W + j] = h_before ? h_before[j] : 0;
    if (before >= 0)
        return;
    recur_plus(W, dh, r->dh0 ? r->dh0 + s * W : NULL);
    recur_plus(H, dc, r->dc0 ? r->dc0 + s * H : NULL);
}
static void K(recur_back)(weft__device *d, const weft__recurrence *r)
{
    (void)d;
    for (int64_t i = 0; i < r->steps; i++)
        for (int64_t s = 0, t = r->reverse ? i : r->steps - 1 - i; s < r->live.host[t]; s++)
            recur_token_back(r, t, s);
}
