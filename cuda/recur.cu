/* recur.cu - recurrent layers of any size: every step is a product with the weights, through cuBLAS, and one kernel for all that
 * is pointwise in it. The loop over steps runs on the host and never waits.
 *
 * Rows of a step are its live sequences, the longest first. Those that have a step before are on top, and their states of then
 * lie beside each other like the rows themselves: so one product serves them all. The others start here, from h0 or from zero.
 * Backward, what goes on to the state before is gathered in carry_h and carry_c, one row a sequence; a sequence that has passed
 * its first step leaves its row alone, so that dh0 and dc0 take all rows at the end. */
#include <math.h>
#include "cuda/cuda.h"

typedef struct step {                            /* of the recurrence: rows row .. row + live, of which `going` have a row before */
    int64_t row, live, before, going;
} step;

static step step_at(const weft__recurrence *r, int64_t t)
{
    int64_t u = r->reverse ? t + 1 : t - 1, live = r->live.host[t];
    bool is = u >= 0 && u < r->steps;
    int64_t going = is ? r->live.host[u] : 0;
    return step{ r->start.host[t], live, is ? r->start.host[u] : 0, going < live ? going : live };
}
static int64_t slots_of(const weft__recurrence *r) { return r->cell < WEFT__GRU ? 1 : 4; }
static int64_t sums_of(const weft__recurrence *r)  { return r->cell == WEFT__GRU ? 2 : slots_of(r); }   /* slots, in front, that h's product adds to */

/* c [rows, n] (+)= a [rows, k] w [k, n], or w [n, k] transposed. */
static void times(weft__device *d, int64_t rows, const real *a, int64_t lda, const real *w, bool transposed, int64_t n, int64_t k,
                  real *c, int64_t ldc, bool add)
{
    weft__product p = { false, transposed, add, rows, n, k, lda, transposed ? k : n, ldc, 1, 0, 0, 0, d->precision };
    K(gemm)(d, &p, a, w, c);
}

/* ---- one unit of one token ---- */
__device__ static inline real sigmoid(real x) { return 1 / (1 + exp(-x)); }

/* Number j of what sequence s brings into this step. */
__device__ static inline real state_before(const real *rows, const real *first, int64_t width, const step &at, int64_t s, int64_t j)
{
    return s < at.going ? rows[(at.before + s) * width + j] : first ? first[s * width + j] : 0;
}

__device__ static real rnn_unit(const weft__recurrence &r, real *a)
{
    return *a = r.cell == WEFT__RNN_TANH ? tanh(*a) : *a > 0 ? *a : 0 * *a;          /* relu(NaN) is NaN */
}
/* hn: W_hn h is there already if there is a state before. */
__device__ static real gru_unit(const weft__recurrence &r, real *slot, int64_t j, bool any, real h)
{
    const int64_t H = r.hidden;
    real hn = (any ? slot[3 * H] : 0) + (r.b_hn ? r.b_hn[j] : 0), reset = sigmoid(slot[0]), z = sigmoid(slot[H]);
    real n = tanh(slot[2 * H] + reset * hn);
    slot[0] = reset, slot[H] = z, slot[2 * H] = n, slot[3 * H] = hn;
    return n + z * (h - n);
}
__device__ static real lstm_unit(const weft__recurrence &r, real *slot, real c_before, real *c)
{
    const int64_t H = r.hidden;
    real i = sigmoid(slot[0]), f = sigmoid(slot[H]), g = tanh(slot[2 * H]), o = sigmoid(slot[3 * H]);
    slot[0] = i, slot[H] = f, slot[2 * H] = g, slot[3 * H] = o;
    *c = f * c_before + i * g;
    return o * tanh(*c);
}

/* ---- forward ---- */
static __global__ void forward_units(weft__recurrence r, step at, int64_t slots)
{
    const int64_t H = r.hidden;
    for (int64_t s = blockIdx.y; s < at.live; s += gridDim.y)
        for (int64_t j = first_index(); j < H; j += index_step()) {
            const int64_t row = at.row + s;
            real *slot = r.gates + row * slots * H + j, *h = (r.w_hr ? r.raw : r.h) + row * H + j;
            if (r.cell == WEFT__GRU)
                *h = gru_unit(r, slot, j, s < at.going || r.h0, state_before(r.h, r.h0, H, at, s, j));
            else if (r.cell == WEFT__LSTM)
                *h = lstm_unit(r, slot, state_before(r.c, r.c0, H, at, s, j), r.c + row * H + j);
            else
                *h = rnn_unit(r, slot);
        }
}

/* One row of a grid has the units of a sequence. */
static unsigned unit_threads(int64_t units) { return units < THREADS ? (unsigned)((units + 31) / 32 * 32) : (unsigned)THREADS; }
static dim3 unit_grid(int64_t units, int64_t rows)
{
    const int64_t most = 65535, across = (units + THREADS - 1) / THREADS;
    return dim3((unsigned)(across < most ? across : most), (unsigned)(rows < most ? rows : most));
}

/* The slots of some rows += their states before times the weights; a GRU's hidden side of n has a slot of its own. */
static void add_products(weft__device *d, const weft__recurrence *r, int64_t row, int64_t rows, const real *h)
{
    const int64_t H = r->hidden, W = r->width, sums = sums_of(r), ld = slots_of(r) * H;
    times(d, rows, h, W, r->w_hh, true, sums * H, W, r->gates + row * ld, ld, true);
    if (r->cell == WEFT__GRU)
        times(d, rows, h, W, r->w_hh + 2 * H * W, true, H, W, r->gates + row * ld + 3 * H, ld, false);
}
static void recur_step(weft__device *d, const weft__recurrence *r, const step *at)
{
    const int64_t H = r->hidden, W = r->width;
    add_products(d, r, at->row, at->going, r->h + at->before * W);
    if (r->h0)
        add_products(d, r, at->row + at->going, at->live - at->going, r->h0 + at->going * W);
    LAUNCH(d, forward_units, unit_grid(H, at->live), unit_threads(H), 0, *r, *at, slots_of(r));
    if (r->w_hr)
        times(d, at->live, r->raw + at->row * H, H, r->w_hr, true, W, H, r->h + at->row * W, W, false);
}
void K(recur)(weft__device *d, const weft__recurrence *r)
{
    for (int64_t i = 0; i < r->steps; i++) {
        step at = step_at(r, r->reverse ? r->steps - 1 - i : i);
        recur_step(d, r, &at);
    }
}

/* ---- backward ---- */
/* dh is all that arrived at h; what goes on to h's state before by other ways than the weights is returned. */
__device__ static real rnn_unit_back(const weft__recurrence &r, real *a, real dh)
{
    *a = dh * (r.cell == WEFT__RNN_TANH ? 1 - *a * *a : (real)(*a > 0));
    return 0;
}
__device__ static real gru_unit_back(const weft__recurrence &r, real *slot, real h, real dh)
{
    const int64_t H = r.hidden;
    real reset = slot[0], z = slot[H], n = slot[2 * H], hn = slot[3 * H];
    real dn = dh * (1 - z) * (1 - n * n);
    slot[0] = dn * hn * reset * (1 - reset), slot[H] = dh * (h - n) * z * (1 - z);
    slot[2 * H] = dn, slot[3 * H] = dn * reset;
    return dh * z;
}
__device__ static real lstm_unit_back(const weft__recurrence &r, real *slot, real c_before, real c, real dh, real *dc)
{
    const int64_t H = r.hidden;
    real i = slot[0], f = slot[H], g = slot[2 * H], o = slot[3 * H], squashed = tanh(c);
    real all = *dc + dh * o * (1 - squashed * squashed);
    *dc = all * f;
    slot[0] = all * g * i * (1 - i), slot[H] = all * c_before * f * (1 - f);
    slot[2 * H] = all * i * (1 - g * g), slot[3 * H] = dh * squashed * o * (1 - o);
    return 0;
}

__device__ static void keep_before(const weft__recurrence &r, const step &at, int64_t s, int64_t j)
{
    if (r.h_before)
        r.h_before[(at.row + s) * r.width + j] = state_before(r.h, r.h0, r.width, at, s, j);
}
/* arrived [live, H]: of a projection, gradients of h before it. Else they are carry_h and dy, and carry_h takes what goes on. */
static __global__ void backward_units(weft__recurrence r, step at, int64_t slots, const real *arrived)
{
    const int64_t H = r.hidden;
    for (int64_t s = blockIdx.y; s < at.live; s += gridDim.y)
        for (int64_t j = first_index(); j < H; j += index_step()) {
            const int64_t row = at.row + s, i = s * H + j, k = row * H + j;
            real *slot = r.gates + row * slots * H + j, on = 0;
            real dh = arrived ? arrived[i] : r.carry_h[i] + (r.dy ? r.dy[k] : 0);
            if (r.cell == WEFT__GRU)
                on = gru_unit_back(r, slot, state_before(r.h, r.h0, H, at, s, j), dh);
            else if (r.cell == WEFT__LSTM) {
                r.carry_c[i] += r.dyc ? r.dyc[k] : 0;
                on = lstm_unit_back(r, slot, state_before(r.c, r.c0, H, at, s, j), r.c[k], dh, &r.carry_c[i]);
            } else
                on = rnn_unit_back(r, slot, dh);
            if (arrived)
                continue;
            r.carry_h[i] = on;
            keep_before(r, at, s, j);
        }
}
/* Of a projection, what is as wide as h. */
static __global__ void backward_width(weft__recurrence r, step at)
{
    const int64_t W = r.width;
    for (int64_t s = blockIdx.y; s < at.live; s += gridDim.y)
        for (int64_t j = first_index(); j < W; j += index_step()) {
            const int64_t k = (at.row + s) * W + j;
            r.dh[k] = r.carry_h[s * W + j] + (r.dy ? r.dy[k] : 0);
            keep_before(r, at, s, j);
        }
}
static void recur_step_back(weft__device *d, const weft__recurrence *r, const step *at, real *arrived)
{
    const int64_t H = r->hidden, W = r->width, slots = slots_of(r), sums = sums_of(r), wanted = r->dh0 ? at->live : at->going;
    if (r->w_hr) {
        LAUNCH(d, backward_width, unit_grid(W, at->live), unit_threads(W), 0, *r, *at);
        times(d, at->live, r->dh + at->row * W, W, r->w_hr, false, H, W, arrived, H, false);
    }
    LAUNCH(d, backward_units, unit_grid(H, at->live), unit_threads(H), 0, *r, *at, slots, arrived);
    const real *gates = r->gates + at->row * slots * H;
    times(d, wanted, gates, slots * H, r->w_hh, false, W, sums * H, r->carry_h, W, r->cell == WEFT__GRU);
    if (r->cell == WEFT__GRU)
        times(d, wanted, gates + 3 * H, slots * H, r->w_hh + 2 * H * W, false, W, H, r->carry_h, W, true);
}
void K(recur_back)(weft__device *d, const weft__recurrence *r)
{
    const int64_t live = r->steps ? r->live.host[0] : 0;
    real *arrived = r->w_hr ? (real *)scratch(d, (size_t)(live * r->hidden) * sizeof(real)) : NULL;
    for (int64_t i = 0; i < r->steps && !d->failure[0]; i++) {
        step at = step_at(r, r->reverse ? i : r->steps - 1 - i);
        recur_step_back(d, r, &at, arrived);
    }
    if (r->dh0)
        K(scale)(d, live * r->width, 1, r->carry_h, r->dh0, true);
    if (r->dc0)
        K(scale)(d, live * r->hidden, 1, r->carry_c, r->dc0, true);
}
