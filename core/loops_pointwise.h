/* loops_pointwise.h - plain loops: fills, pointwise functions, random numbers. */
#ifndef WEFT_LOOPS_POINTWISE_H
#define WEFT_LOOPS_POINTWISE_H
#include "core/loops_memory.h"
#include "core/philox.h"
#include "core/shared_functions.h"

static void K(fill_ints)(weft__device *d, int64_t n, int32_t value, int32_t *y)
{
    (void)d;
    for (int64_t i = 0; i < n; i++)
        y[i] = value;
}
static void K(to_reals)(weft__device *d, int64_t n, const int32_t *x, real *y)
{
    (void)d;
    for (int64_t i = 0; i < n; i++)
        y[i] = (real)x[i];
}
static void K(one_hot)(weft__device *d, int64_t rows, int64_t classes, const int32_t *class_, real *y)
{
    for (int64_t r = 0; r < rows; r++) {
        int64_t c = class_[r] < 0 ? -1 : checked(d, r, class_[r], classes);
        for (int64_t j = 0; j < classes; j++)
            y[r * classes + j] = j == c;
    }
}
static void K(random)(weft__device *d, int64_t n, uint64_t key, uint64_t from, bool normal, real a, real b, real *y)
{
    (void)d;
    weft__random(n, key, from, normal, a, b, y);
}

#ifndef FAST
/* y = a s, s = sigmoid(b); da = dy s, db = dy a s (1 - s) */
static void K(glu)(weft__device *d, int64_t rows, int64_t width, const real *x, real *y)
{
    (void)d;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < width; j++)
            y[r * width + j] = x[2 * r * width + j] * SIGMOID(x[(2 * r + 1) * width + j]);
}
static void K(glu_back)(weft__device *d, int64_t rows, int64_t width, const real *x, const real *dy, real *dx, bool add)
{
    (void)d;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < width; j++) {
            int64_t a = 2 * r * width + j, b = a + width;
            real s = SIGMOID(x[b]), g = dy[r * width + j];
            dx[a] = onto(&dx[a], add, g * s), dx[b] = onto(&dx[b], add, g * x[a] * s * (1 - s));
        }
}
static void K(fill)(weft__device *d, int64_t n, real value, real *y)
{
    (void)d;
    for (int64_t i = 0; i < n; i++)
        y[i] = value;
}
static void K(scale)(weft__device *d, int64_t n, real factor, const real *x, real *y, bool add)
{
    (void)d;
    for (int64_t i = 0; i < n; i++)
        y[i] = onto(&y[i], add, factor * x[i]);
}
static void K(scale_by)(weft__device *d, int64_t n, const real *factor, bool divide, const real *x, real *y, bool add)
{
    K(scale)(d, n, !divide ? *factor : *factor != 0 ? 1 / *factor : 0, x, y, add);
}

/* y = f(x), f'(x), f''(x) by order. */
static real function(int f, int order, real x, real y, real p, real q)
{
    switch (3 * f + order) {
#define UNARY(name, value, slope, bend, ...)                                                                               \
    case 3 * WEFT__##name:     return value;                                                                               \
    case 3 * WEFT__##name + 1: return slope;                                                                               \
    case 3 * WEFT__##name + 2: return bend;
#include "core/pointwise.def"
    }
    return 0;
}
static void K(unary)(weft__device *d, int f, int order, int64_t n, real p, real q, const real *x, const real *y,
                     const real *g, real *out, bool add)
{
    (void)d;
    for (int64_t i = 0; i < n; i++) {
        real v = order ? g[i] * function(f, order, x[i], y[i], p, q) : function(f, 0, x[i], 0, p, q);
        out[i] = onto(&out[i], add, v);
    }
}

static real operation(int f, real a, real b)
{
    switch (f) {
#define BINARY(name, value, ...) case WEFT__##name: return value;
#include "core/pointwise.def"
    }
    return 0;
}
static void K(binary)(weft__device *d, int f, const weft__grid *g, const real *a, const real *b, real *y, bool add)
{
    (void)d;
    for (int64_t r = 0, n = columns(g); r < rows_of(g); r++, y += n) {
        const real *u = a + row_at(g, 0, r), *v = b + row_at(g, 1, r);
        for (int64_t j = 0; j < n; j++)
            y[j] = onto(&y[j], add, operation(f, u[j * stride(g, 0)], v[j * stride(g, 1)]));
    }
}
static void K(select)(weft__device *d, const weft__grid *g, const real *condition, const real *a, const real *b,
                      real *y, bool add)
{
    (void)d;
    for (int64_t r = 0, n = columns(g); r < rows_of(g); r++, y += n) {
        const real *c = condition + row_at(g, 0, r), *u = a + row_at(g, 1, r), *v = b + row_at(g, 2, r);
        for (int64_t j = 0; j < n; j++)
            y[j] = onto(&y[j], add, c[j * stride(g, 0)] != 0 ? u[j * stride(g, 1)] : v[j * stride(g, 2)]);
    }
}

static void K(dropout)(weft__device *d, int64_t rows, int64_t width, real p, uint64_t key, const int64_t *id, const int32_t *position,
                       const real *x, real *y, bool add)
{
    uint32_t below = weft__threshold((double)p);
    (void)d;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < width; j++) {
            uint32_t draw = weft__philox_mask(key, id ? id[r] : r, position ? position[r] : 0, j);
            real kept = draw < below ? 0 : x[r * width + j] * (1 / (1 - p));
            y[r * width + j] = onto(&y[r * width + j], add, kept);
        }
}
#endif
#endif
