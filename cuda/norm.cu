/* norm.cu - softmax and its kin over runs of rows, layer norm. A group of threads owns a run's column, or a
 * row.
 *
 * The largest number and the sum of exponents are found in one pass: a sum is scaled whenever something
 * larger turns up. A run without an unmasked row, or with none above -infinity, has nothing: 0, and -infinity
 * as its log sum. NaN stays NaN. */
#include "cuda/groups.h"

/* ---- log sum exp: of one lane so far, then of its group. sum of exp(x - most) ---- */
typedef struct exponents { real most, sum; } exponents;
__device__ static inline exponents no_exponents() { return { -(real)INFINITY, 0 }; }
__device__ static inline void take(exponents *e, real x)
{
    if (x == -(real)INFINITY)
        return;
    if (x <= e->most || e->most != e->most)
        e->sum += exp(x - e->most);
    else
        e->sum = e->sum * exp(e->most - x) + 1, e->most = x;
}
__device__ static exponents of_group(group g, exponents e)
{
    real all = together<LARGEST>(g, e.most);
    return { all, together<SUM>(g, e.most == -(real)INFINITY ? R(0) : e.sum * exp(e.most - all)) };
}

enum { SOFTMAX, LOG_SOFTMAX, LOG_SUM };
template <int WHAT>
__global__ static void softmax_each(weft__segments s, const real *mask, const real *x, real *y)
{
    seat t = seat_of(s);
    exponents e = no_exponents();
    EACH_LANE(r, t.g, t.rows) {
        int64_t at = t.at + r * s.inner;
        if (!mask || mask[at] != 0)
            take(&e, x[at]);
    }
    e = of_group(t.g, e);
    bool none = e.most == -(real)INFINITY;
    real total = none ? e.most : e.most + log(e.sum);
    if (WHAT == LOG_SUM && t.is && t.g.lane == 0)
        y[t.run * s.inner + t.column] = total;
    EACH_LANE(r, t.g, WHAT == LOG_SUM ? 0 : t.rows) {
        int64_t at = t.at + r * s.inner;
        real v = WHAT == LOG_SOFTMAX ? (none ? total : x[at] - total) :
                 none                ? 0 :
                                       exp(x[at] - e.most) / e.sum;
        y[at] = mask && mask[at] == 0 ? 0 : v;
    }
}
void K(softmax)(weft__device *d, const weft__segments *s, const real *mask, const real *x, real *y)
{
    shape one = groups_of(s);
    LAUNCH(d, softmax_each<SOFTMAX>, one.grid, one.threads, 0, *s, mask, x, y);
}
void K(log_softmax)(weft__device *d, const weft__segments *s, const real *mask, const real *x, real *y)
{
    shape one = groups_of(s);
    LAUNCH(d, softmax_each<LOG_SOFTMAX>, one.grid, one.threads, 0, *s, mask, x, y);
}
void K(logsumexp)(weft__device *d, const weft__segments *s, const real *mask, const real *x, real *y)
{
    shape one = groups_of(s);
    LAUNCH(d, softmax_each<LOG_SUM>, one.grid, one.threads, 0, *s, mask, x, y);
}
/* dx = y (dy - sum dy y) */
__global__ static void softmax_back_each(weft__segments s, const real *y, const real *dy, real *dx, bool add)
{
    seat t = seat_of(s);
    real sum = 0;
    EACH_LANE(r, t.g, t.rows)
        sum += dy[t.at + r * s.inner] * y[t.at + r * s.inner];
    sum = together<SUM>(t.g, sum);
    EACH_LANE(r, t.g, t.rows) {
        int64_t at = t.at + r * s.inner;
        put(dx + at, y[at] * (dy[at] - sum), add);
    }
}
void K(softmax_back)(weft__device *d, const weft__segments *s, const real *y, const real *dy, real *dx,
                     bool add)
{
    shape one = groups_of(s);
    LAUNCH(d, softmax_back_each, one.grid, one.threads, 0, *s, y, dy, dx, add);
}

/* ---- layer norm: y = (x - mean) rstd gain + shift, rstd = 1 / sqrt(mean of (x - mean)^2 + eps); of a gate:
 * x is a sigmoid(b) + skip, made anew wherever it is read ---- */
typedef struct layer {
    int64_t rows, width; real eps;
    const real *x, *gain, *shift, *dy; real *y, *mean, *rstd, *dx;
    const real *gate; real *dgate; bool add;     /* x: the skip */
} layer;

__device__ static inline real sigmoid_of(const layer &l, int64_t row, int64_t j)
{
    return 1 / (1 + exp(-l.gate[(2 * row + 1) * l.width + j]));
}
template <bool gated> __device__ static inline real x_of(const layer &l, int64_t row, int64_t j)
{
    const real x = l.x[row * l.width + j];
    return gated ? l.gate[2 * row * l.width + j] * sigmoid_of(l, row, j) + x : x;
}
template <bool gated> __global__ static void layer_norm_each(layer l)
{
    group g = group_along();
    int64_t row = group_number(), width = row < l.rows ? l.width : 0;
    real *y = l.y + row * l.width, n = l.width ? (real)l.width : 1, mean = 0, v = 0;
    EACH_LANE(j, g, width)
        mean += x_of<gated>(l, row, j);
    mean = together<SUM>(g, mean) / n;
    EACH_LANE(j, g, width) {
        const real x = x_of<gated>(l, row, j);
        v += (x - mean) * (x - mean);
    }
    real rstd = 1 / sqrt(together<SUM>(g, v) / n + l.eps);
    EACH_LANE(j, g, width)
        y[j] = (x_of<gated>(l, row, j) - mean) * rstd * (l.gain ? l.gain[j] : 1) + (l.shift ? l.shift[j] : 0);
    if (row < l.rows && g.lane == 0)
        l.mean[row] = mean, l.rstd[row] = rstd;
}
void K(layer_norm)(weft__device *d, int64_t rows, int64_t width, real eps, const real *x, const real *gain,
                   const real *shift, real *y, real *mean, real *rstd)
{
    layer l = { rows, width, eps, x, gain, shift, NULL, y, mean, rstd, NULL };
    shape one = groups_along(rows, lanes_for(width));
    LAUNCH(d, layer_norm_each<false>, one.grid, one.threads, 0, l);
}
static layer of_gate(const weft__gate_norm *g)
{
    return layer{ g->rows, g->width, g->eps,  g->skip, g->gain, g->shift, g->dy,
                  g->y,    g->mean,  g->rstd, g->dskip, g->gate, g->dgate, g->add };
}
void K(gate_norm)(weft__device *d, const weft__gate_norm *g)
{
    shape one = groups_along(g->rows, lanes_for(g->width));
    LAUNCH(d, layer_norm_each<true>, one.grid, one.threads, 0, of_gate(g));
}

/* With h = (x - mean) rstd, g = dy gain: dx += rstd (g - mean of g - h mean of g h). */
__device__ static void gate_back(const layer &l, int64_t row, int64_t j, real ds)
{
    const int64_t at = 2 * row * l.width + j;
    const real s = sigmoid_of(l, row, j);
    if (l.dx)
        l.dx[row * l.width + j] += ds;
    if (l.dgate)
        put(l.dgate + at, ds * s, l.add), put(l.dgate + at + l.width, ds * l.gate[at] * s * (1 - s), l.add);
}
template <bool gated> __global__ static void layer_norm_back_each(layer l)
{
    group g = group_along();
    int64_t row = group_number(), width = row < l.rows ? l.width : 0;
    const real *dy = l.dy + row * l.width;
    real mean = width ? l.mean[row] : 0, rstd = width ? l.rstd[row] : 0, a = 0,
         b = 0;
    EACH_LANE(j, g, width) {
        real v = dy[j] * (l.gain ? l.gain[j] : 1);
        a += v, b += v * ((x_of<gated>(l, row, j) - mean) * rstd);
    }
    a = together<SUM>(g, a) / (real)l.width, b = together<SUM>(g, b) / (real)l.width;
    EACH_LANE(j, g, width) {
        const real ds = rstd * (dy[j] * (l.gain ? l.gain[j] : 1) - a -
                                (x_of<gated>(l, row, j) - mean) * rstd * b);
        if (gated)
            gate_back(l, row, j, ds);
        else
            l.dx[row * l.width + j] += ds;
    }
}
/* parts[chunk]: sum dy h and sum dy of a chunk of rows, for each column. */
template <bool gated> __global__ static void column_parts(layer l, int64_t chunk, real *parts)
{
    group g = group_below();
    int64_t j = first_index(), from = blockIdx.y * chunk, end = from + chunk < l.rows ? from + chunk : l.rows;
    real a = 0, b = 0;
    for (int64_t r = from + g.lane; j < l.width && r < end; r += g.lanes) {
        real dy = l.dy[r * l.width + j];
        a += dy * ((x_of<gated>(l, r, j) - l.mean[r]) * l.rstd[r]), b += dy;
    }
    a = together<SUM>(g, a), b = together<SUM>(g, b);
    if (j < l.width && g.lane == 0)
        parts[blockIdx.y * 2 * l.width + j] = a, parts[(blockIdx.y * 2 + 1) * l.width + j] = b;
}
__global__ static void sum_parts(int64_t width, int64_t chunks, const real *parts, real *dgain, real *dshift)
{
    group g = group_below();
    int64_t j = first_index();
    real a = 0, b = 0;
    for (int64_t c = g.lane; j < width && c < chunks; c += g.lanes)
        a += parts[c * 2 * width + j], b += parts[(c * 2 + 1) * width + j];
    a = together<SUM>(g, a), b = together<SUM>(g, b);
    if (dgain && j < width && g.lane == 0)
        dgain[j] += a;
    if (dshift && j < width && g.lane == 0)
        dshift[j] += b;
}
template <bool gated> static void layer_back(weft__device *d, const layer &l, real *dgain, real *dshift)
{
    const int64_t rows = l.rows, width = l.width;
    shape one = groups_along(rows, lanes_for(width));
    if (l.dx || l.dgate)
        LAUNCH(d, layer_norm_back_each<gated>, one.grid, one.threads, 0, l);
    if (!(dgain || dshift) || !rows || !width)
        return;
    int tx = power_for(width, 32), ty = THREADS / tx;
    int64_t tiles = parts(width, tx), chunk = most(8 * ty, parts(rows, most(1, 1024 / tiles))),
            chunks = parts(rows, chunk);
    real *partial = (real *)scratch(d, (size_t)(chunks * 2 * width) * sizeof *partial);
    if (!partial)
        return;
    LAUNCH(d, column_parts<gated>, dim3((unsigned)tiles, (unsigned)chunks), dim3(tx, ty), 0, l, chunk,
           partial);
    LAUNCH(d, sum_parts, dim3((unsigned)tiles), dim3(tx, ty), 0, width, chunks, partial, dgain, dshift);
}
void K(layer_norm_back)(weft__device *d, int64_t rows, int64_t width, const real *x, const real *gain,
                        const real *mean, const real *rstd, const real *dy, real *dx, real *dgain,
                        real *dshift)
{
    layer l = { rows, width, 0, x, gain, NULL, dy, NULL, (real *)mean, (real *)rstd, dx };
    layer_back<false>(d, l, dgain, dshift);
}
void K(gate_norm_back)(weft__device *d, const weft__gate_norm *g)
{
    layer_back<true>(d, of_gate(g), g->dgain, g->dshift);
}
