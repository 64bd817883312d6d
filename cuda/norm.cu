/* norm.cu - softmax, log softmax and log sum exp of segments, and layer norm. A group of threads owns one
 * column of a segment, or one row.
 *
 * One pass finds the maximum and the sum of exponentials: a new maximum rescales the sum. If all rows of a
 * segment are masked or -infinity, softmax is 0 and log sum exp is -infinity. NaN stays NaN. */
#include "cuda/groups.h"

/* ---- log sum exp: partial result of a lane, then of its group; total: sum of exp(x - most) ---- */
typedef struct exponents { real most; exact_sum total; } exponents;
__device__ static inline exponents empty_sum() { return { -(real)INFINITY, {} }; }
__device__ static inline void add_exponential(exponents *e, real x)
{
    if (x == -(real)INFINITY)
        return;
    if (x <= e->most || e->most != e->most)
        add_exactly(e->total, exp(x - e->most));
    else {
        const real scale = exp(e->most - x);
        e->total.sum *= scale;
        e->total.error *= scale;
        e->most = x;
        add_exactly(e->total, 1);
    }
}
__device__ static exponents of_group(group g, exponents e)
{
    real all = together<LARGEST>(g, e.most);
    return { all,
             { together<SUM>(g, e.most == -(real)INFINITY ? R(0) : e.total.sum * exp(e.most - all)), 0 } };
}

template <weft__softmax WHAT>
__global__ static void softmax_each(weft__segments s, const real *mask, const real *x, real *y)
{
    seat t = seat_of(s);
    exponents e = empty_sum();
    EACH_LANE(r, t.g, t.rows) {
        int64_t at = t.at + r * s.inner;
        if (!mask || mask[at] != 0)
            add_exponential(&e, x[at]);
    }
    e = of_group(t.g, e);
    bool none = e.most == -(real)INFINITY;
    real total = none ? e.most : e.most + log(e.total.sum);
    if (WHAT == WEFT__LOG_SUM && t.is && t.g.lane == 0)
        y[t.run * s.inner + t.column] = total;
    EACH_LANE(r, t.g, WHAT == WEFT__LOG_SUM ? 0 : t.rows) {
        int64_t at = t.at + r * s.inner;
        real v = WHAT == WEFT__LOG_SOFTMAX ? (none ? total : x[at] - total) :
                 none                ? 0 :
                                       exp(x[at] - e.most) / e.total.sum;
        y[at] = mask && mask[at] == 0 ? 0 : v;
    }
}
void K(softmax)(weft__device *d, const weft__segments *s, weft__softmax kind, const real *mask, const real *x,
                real *y)
{
    const auto each = kind == WEFT__SOFTMAX     ? softmax_each<WEFT__SOFTMAX> :
                      kind == WEFT__LOG_SOFTMAX ? softmax_each<WEFT__LOG_SOFTMAX> :
                                                  softmax_each<WEFT__LOG_SUM>;
    LAUNCH_SHAPE(d, each, groups_of(s), *s, mask, x, y);
}
/* dx = y (dy - sum dy y). Where y is 0, as under a mask, dy is ignored, even if it is NaN. */
__global__ static void softmax_back_each(weft__segments s, const real *y, const real *dy, real *dx, bool add)
{
    seat t = seat_of(s);
    real sum = 0;
    EACH_LANE(r, t.g, t.rows) {
        const real g = dy[t.at + r * s.inner], v = y[t.at + r * s.inner];
        sum += v != 0 ? if_given(g, g * v) : 0;
    }
    sum = together<SUM>(t.g, sum);
    EACH_LANE(r, t.g, t.rows) {
        int64_t at = t.at + r * s.inner;
        const real g = dy[at] - sum;
        put(dx + at, y[at] != 0 ? if_given(g, y[at] * g) : 0, add);
    }
}
void K(softmax_back)(weft__device *d, const weft__segments *s, const real *y, const real *dy, real *dx,
                     bool add)
{
    LAUNCH_SHAPE(d, softmax_back_each, groups_of(s), *s, y, dy, dx, add);
}

/* ---- layer norm: y = (s - mean) rstd gain + shift, rstd = 1 / sqrt(mean of (s - mean)^2 + eps). With a
 * gate, s = a sigmoid(b) + x, computed again wherever it is read ---- */
__device__ static inline real sigmoid_of(const weft__layer_norm &n, int64_t row, int64_t j)
{
    return 1 / (1 + exp(-n.gate[(2 * row + 1) * n.width + j]));
}
template <bool gated> __device__ static inline real summand(const weft__layer_norm &n, int64_t row, int64_t j)
{
    const real x = n.x[row * n.width + j];
    return gated ? n.gate[2 * row * n.width + j] * sigmoid_of(n, row, j) + x : x;
}
/* Returns element j of the row's gain or shift. */
__device__ static inline real of_group(const weft__layer_norm &n, const real *gain, int64_t row, int64_t j)
{
    return gain[(n.groups > 1 ? row % n.groups * n.width : 0) + j];
}
template <bool gated> __global__ static void layer_norm_each(weft__layer_norm n)
{
    group g = group_along();
    int64_t row = group_number(), width = row < n.rows ? n.width : 0;
    real *y = n.y + row * n.width, count = n.width ? (real)n.width : 1, mean = 0, v = 0;
    EACH_LANE(j, g, n.rms ? 0 : width)
        mean += summand<gated>(n, row, j);
    mean = together<SUM>(g, mean) / count;
    EACH_LANE(j, g, width) {
        const real s = summand<gated>(n, row, j);
        v += (s - mean) * (s - mean);
    }
    real rstd = 1 / sqrt(together<SUM>(g, v) / count + n.eps);
    EACH_LANE(j, g, width)
        y[j] = (summand<gated>(n, row, j) - mean) * rstd * (n.gain ? of_group(n, n.gain, row, j) : 1) +
               (n.shift ? of_group(n, n.shift, row, j) : 0);
    if (row < n.rows && g.lane == 0) {
        n.mean[row] = mean;
        n.rstd[row] = rstd;
    }
}
void K(layer_norm)(weft__device *d, const weft__layer_norm *n)
{
    shape one = groups_along(n->rows, lanes_for(n->width));
    if (n->gate)
        LAUNCH(d, layer_norm_each<true>, one.grid, one.threads, 0, *n);
    else
        LAUNCH(d, layer_norm_each<false>, one.grid, one.threads, 0, *n);
}

__device__ static void gate_back(const weft__layer_norm &n, int64_t row, int64_t j, real ds)
{
    const int64_t at = 2 * row * n.width + j;
    const real s = sigmoid_of(n, row, j);
    if (n.dx)
        put(n.dx + row * n.width + j, ds, n.add_x);
    if (n.dgate)
        put(n.dgate + at, if_given(ds, ds * s), n.add_gate),
            put(n.dgate + at + n.width, if_given(ds, ds * n.gate[at] * s * (1 - s)), n.add_gate);
}
/* With h = (s - mean) rstd, g = dy gain: ds = rstd (g - mean of g - h mean of g h). */
template <bool gated> __global__ static void layer_norm_back_each(weft__layer_norm n)
{
    group g = group_along();
    int64_t row = group_number(), width = row < n.rows ? n.width : 0;
    const real *dy = n.dy + row * n.width;
    real mean = width ? n.mean[row] : 0, rstd = width ? n.rstd[row] : 0, a = 0,
         b = 0;
    EACH_LANE(j, g, width) {
        real v = dy[j] * (n.gain ? of_group(n, n.gain, row, j) : 1);
        a += v;
        b += if_given(v, v * ((summand<gated>(n, row, j) - mean) * rstd));
    }
    a = n.rms ? 0 : together<SUM>(g, a) / (real)n.width;
    b = together<SUM>(g, b) / (real)n.width;
    EACH_LANE(j, g, width) {
        const real difference = dy[j] * (n.gain ? of_group(n, n.gain, row, j) : 1) - a -
                           if_given(b, (summand<gated>(n, row, j) - mean) * rstd * b);
        const real ds = if_given(difference, rstd * difference);
        if (gated)
            gate_back(n, row, j, ds);
        else
            put(n.dx + row * n.width + j, ds, n.add_x);
    }
}
/* Sums dy h and dy over a chunk of tokens, for each column of each group, into parts[chunk]. The last block
 * of a column adds the chunks. */
template <bool gated>
__global__ static void column_sums(weft__layer_norm n, int64_t chunk, real *parts, unsigned *counters)
{
    group g = group_below();
    const int64_t j = first_index(), wide = n.groups * n.width, tokens = n.rows / n.groups;
    const int64_t of_group = j / n.width;
    int64_t from = blockIdx.y * chunk, end = from + chunk < tokens ? from + chunk : tokens;
    exact_sum of_gain = {}, of_shift = {};
    for (int64_t t = from + g.lane; j < wide && t < end; t += g.lanes) {
        const int64_t r = t * n.groups + of_group;
        real dy = n.dy[t * wide + j];
        const real h = (summand<gated>(n, r, j - of_group * n.width) - n.mean[r]) * n.rstd[r];
        add_exactly(of_gain, if_given(dy, dy * h));
        add_exactly(of_shift, dy);
    }
    real a = together<SUM>(g, of_gain.sum), b = together<SUM>(g, of_shift.sum);
    if (gridDim.y > 1) {
        if (j < wide && g.lane == 0) {
            parts[blockIdx.y * 2 * wide + j] = a;
            parts[(blockIdx.y * 2 + 1) * wide + j] = b;
        }
        if (!is_last(counters + blockIdx.x, gridDim.y))
            return;
        a = b = 0;
        for (int64_t c = g.lane; j < wide && c < gridDim.y; c += g.lanes) {
            a += __ldcg(parts + c * 2 * wide + j);
            b += __ldcg(parts + (c * 2 + 1) * wide + j);
        }
        a = together<SUM>(g, a);
        b = together<SUM>(g, b);
    }
    if (n.dgain && j < wide && g.lane == 0)
        put(n.dgain + j, a, n.add_gain);
    if (n.dshift && j < wide && g.lane == 0)
        put(n.dshift + j, b, n.add_shift);
}
template <bool gated> static void layer_back(weft__device *d, const weft__layer_norm *n)
{
    const int64_t tokens = n->rows / n->groups, wide = n->groups * n->width;
    shape one = groups_along(n->rows, lanes_for(n->width));
    if (n->dx || n->dgate)
        LAUNCH(d, layer_norm_back_each<gated>, one.grid, one.threads, 0, *n);
    if (!(n->dgain || n->dshift) || !wide)
        return;
    int tx = power_for(wide, 32), ty = THREADS / tx;
    int64_t tiles = parts(wide, tx), chunk = most(8 * ty, parts(tokens, most(1, COUNTERS / tiles))),
            chunks = most(1, parts(tokens, chunk));
    real *partial = (real *)scratch(d, (size_t)(chunks * 2 * wide) * sizeof *partial);
    unsigned *counters = counters_of(d);
    if (partial && counters)
        LAUNCH(d, column_sums<gated>, dim3((unsigned)tiles, (unsigned)chunks), dim3(tx, ty), 0, *n, chunk,
               partial, counters);
}
void K(layer_norm_back)(weft__device *d, const weft__layer_norm *n)
{
    if (n->gate)
        layer_back<true>(d, n);
    else
        layer_back<false>(d, n);
}
