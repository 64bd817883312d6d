/* pointwise.cu - fills, unary functions, random numbers. Each function of pointwise.def becomes its own
 * kernel, so no loop contains a branch on the function. */
#include "core/shared/normal.h"
#include "cuda/groups.h"

/* ---- fills ---- */
__global__ static void fill_each(int64_t n, real value, real *y)
{
    const bool fit = aligned(y);
    EACH_QUAD(i, n)
        put_quad(y, i, n, fit && i + 4 <= n, quad{ { value, value, value, value } });
}
void K(fill)(weft__device *d, int64_t n, real value, real *y)
{
    LAUNCH(d, fill_each, blocks_of_quads(n), THREADS, 0, n, value, y);
}
__global__ static void fill_ints_each(int64_t n, int32_t value, int32_t *y)
{
    for (int64_t i = first_index(); i < n; i += index_step())
        y[i] = value;
}
void K(fill_ints)(weft__device *d, int64_t n, int32_t value, int32_t *y)
{
    LAUNCH(d, fill_ints_each, blocks_for(n), THREADS, 0, n, value, y);
}
__global__ static void to_reals_each(int64_t n, const int32_t *x, real *y)
{
    for (int64_t i = first_index(); i < n; i += index_step())
        y[i] = (real)x[i];
}
void K(to_reals)(weft__device *d, int64_t n, const int32_t *x, real *y)
{
    LAUNCH(d, to_reals_each, blocks_for(n), THREADS, 0, n, x, y);
}
__global__ static void to_ints_each(int64_t n, const real *x, int32_t *y, faults f)
{
    for (int64_t i = first_index(); i < n; i += index_step()) {
        real whole = nearest_even(x[i]);
        bool fits = whole >= R(-2147483648.) && whole < R(2147483648.);
        y[i] = fits ? (int32_t)whole : (int32_t)(1 + within(f, i, -1, 0, -1));
    }
}
void K(to_ints)(weft__device *d, int64_t n, const real *x, int32_t *y)
{
    LAUNCH(d, to_ints_each, blocks_for(n), THREADS, 0, n, x, y, faults_of(d));
}
__global__ static void one_hot_each(int64_t rows, int64_t classes, const int32_t *class_, real *y, faults f)
{
    EACH_ROW(r, rows) {
        int64_t c = class_[r];
        if (first_column() == 0 && c >= 0)
            checked(f, r, c, classes);
        for (int64_t j = first_column(); j < classes; j += column_step())
            y[r * classes + j] = j == c;
    }
}
void K(one_hot)(weft__device *d, int64_t rows, int64_t classes, const int32_t *class_, real *y)
{
    LAUNCH_SHAPE(d, one_hot_each, plane_of(rows, classes), rows, classes, class_, y, faults_of(d));
}

/* ---- scaling ---- */
/* by: NULL, or device address of a divisor. */
__global__ static void scale_each(int64_t n, real factor, const real *by, const real *x, real *y, bool add)
{
    if (by)
        factor = *by != 0 ? 1 / *by : 0;
    map_flat(n, y, add, [=](real v) { return factor * v; }, x);
}
void K(scale)(weft__device *d, int64_t n, real factor, const real *x, real *y, bool add)
{
    LAUNCH(d, scale_each, blocks_of_quads(n), THREADS, 0, n, factor, (const real *)0, x, y, add);
}
void K(divide)(weft__device *d, int64_t n, const real *by, real *x)
{
    LAUNCH(d, scale_each, blocks_of_quads(n), THREADS, 0, n, (real)0, by, x, x, false);
}

/* ---- functions ---- */
/* Returns f(x), f'(x) or f''(x), by order. */
template <int F, int ORDER> __device__ static inline real function(real x, real y, real p, real q)
{
    (void)x, (void)y, (void)p, (void)q;
    switch (3 * F + ORDER) {
#define UNARY(name, value, slope, bend, ...) \
    case 3 * WEFT__##name:                   \
        return value;                        \
    case 3 * WEFT__##name + 1:               \
        return slope;                        \
    case 3 * WEFT__##name + 2:               \
        return bend;
#include "core/shared/pointwise.def"
    }
    return 0;
}
template <int F, int ORDER>
__global__ static void unary_each(int64_t n, real p, real q, const real *x, const real *y, const real *g,
                                  real *out, bool add)
{
    if (ORDER == 0)
        map_flat(n, out, add, [=](real a) { return function<F, 0>(a, 0, p, q); }, x);
    else
        map_flat(
            n, out, add,
            [=](real a, real b, real c) { return if_given(c, c * function<F, ORDER>(a, b, p, q)); }, x, y, g);
}
typedef void unary_kernel(int64_t, real, real, const real *, const real *, const real *, real *, bool);
static unary_kernel *const unaries[][3] = {
#define UNARY(name, ...) \
    { unary_each<WEFT__##name, 0>, unary_each<WEFT__##name, 1>, unary_each<WEFT__##name, 2> },
#include "core/shared/pointwise.def"
};
void K(unary)(weft__device *d, int f, int order, int64_t n, real p, real q, const real *x, const real *y,
              const real *g, real *out, bool add)
{
    LAUNCH(d, unaries[f][order], blocks_of_quads(n), THREADS, 0, n, p, q, x, y, g, out, add);
}

/* ---- gated linear units ---- */
__global__ static void glu_each(int64_t n, int64_t width, const real *x, real *y)
{
    for (int64_t i = first_index(); i < n; i += index_step()) {
        int64_t a = 2 * (i - i % width) + i % width;
        y[i] = x[a] * SIGMOID(x[a + width]);
    }
}
void K(glu)(weft__device *d, int64_t rows, int64_t width, const real *x, real *y)
{
    LAUNCH(d, glu_each, blocks_for(rows * width), THREADS, 0, rows * width, width, x, y);
}
__global__ static void glu_back_each(int64_t n, int64_t width, const real *x, const real *dy, real *dx,
                                     bool add)
{
    for (int64_t i = first_index(); i < n; i += index_step()) {
        int64_t a = 2 * (i - i % width) + i % width;
        real s = SIGMOID(x[a + width]), g = dy[i] * s;
        put(dx + a, if_given(dy[i], g), add);
        put(dx + a + width, if_given(dy[i], g * x[a] * (1 - s)), add);
    }
}
void K(glu_back)(weft__device *d, int64_t rows, int64_t width, const real *x, const real *dy, real *dx,
                 bool add)
{
    LAUNCH(d, glu_back_each, blocks_for(rows * width), THREADS, 0, rows * width, width, x, dy, dx, add);
}

/* ---- random numbers ---- */
/* A thread uses one whole Philox counter: eight columns, eight apart, of a group of 64. */
__global__ static void dropout_each(int64_t rows, int64_t width, uint32_t below, real scale, uint64_t key,
                                    const int64_t *id, const int32_t *position, const real *x, real *y,
                                    bool add)
{
    EACH_ROW(r, rows)
        for (int64_t c = first_column(); c < (width + 63) / 64 * 8; c += column_step()) {
            uint64_t token = (uint64_t)(id ? id[r] : r);
            uint32_t counter[4] = { (uint32_t)c, (uint32_t)(position ? position[r] : 0), (uint32_t)token,
                                    (uint32_t)(token >> 32) };
            uint32_t out[4];
            weft__philox(key, counter, out);
            for (int k = 0; k < 8; k++) {
                int64_t j = c / 8 * 64 + k * 8 + c % 8;
                bool dropped = (out[k / 2] >> 16 * (k % 2) & 0xFFFF) < below;
                if (j < width)
                    put(y + r * width + j, dropped ? 0 : x[r * width + j] * scale, add);
            }
        }
}
void K(dropout)(weft__device *d, int64_t rows, int64_t width, real p, uint64_t key, const int64_t *id,
                const int32_t *position, const real *x, real *y, bool add)
{
    LAUNCH_SHAPE(d, dropout_each, plane_of(rows, parts(width, 64) * 8), rows, width,
                 weft__threshold((double)p), 1 / (1 - p), key, id, position, x, y, add);
}
__global__ static void random_each(int64_t n, uint64_t key, uint64_t from, bool normal, real a, real b,
                                   real *y)
{
    for (int64_t i = first_index(); i < n; i += index_step()) {
        uint64_t draw = weft__philox_draw(key, from + (uint64_t)i);
        y[i] = sizeof(real) == sizeof(float) ? (real)weft__random_float(draw, normal, (float)a, (float)b)
                                             : (real)weft__random_double(draw, normal, a, b);
    }
}
void K(random)(weft__device *d, int64_t n, uint64_t key, uint64_t from, bool normal, real a, real b, real *y)
{
    LAUNCH(d, random_each, blocks_for(n), THREADS, 0, n, key, from, normal, a, b, y);
}
