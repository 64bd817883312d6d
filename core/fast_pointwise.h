/* fast_pointwise.h - pointwise functions, a vector or a short row at a time, in chunks over the threads.
 *
 * Values go through a buffer of BLOCK elements, so that one loop per function serves all: out = value or out += value, times an
 * incoming gradient or not, operands in place, dense, strided or broadcast. */
#include "core/fast_functions.h"
#include "core/fast_random.h"
#include "core/loops_pointwise.h"

enum { BLOCK = 256 };

/* ---- fills and factors ---- */
typedef struct fill_job { real value, *y; } fill_job;
static void fill_range(const void *job, int64_t from, int64_t to)
{
    const fill_job *j = job;
    for (int64_t i = from; i < to; i++)
        j->y[i] = j->value;
}
static void K(fill)(weft__device *d, int64_t n, real value, real *y)
{
    each_range(d, n, CHUNK, fill_range, &(fill_job){ value, y });
}

/* y = v or y += v, n elements */
static inline void deliver(int64_t n, const real *v, real *y, bool add)
{
    if (!add)
        memcpy(y, v, (size_t)n * sizeof *y);
    else
        for (int64_t i = 0; i < n; i++)
            y[i] += v[i];
}
typedef struct scale_job { real factor; const real *x; real *y; bool add; } scale_job;
static void scale_range(const void *job, int64_t from, int64_t to)
{
    const scale_job *j = job;
    const real *x = j->x + from;
    real *y = j->y + from;
    EACH_VECTOR(i, to - from) {
        int64_t n = to - from - i;
        vec v = j->factor * v_load_to(x + i, n);
        v_store_to(y + i, j->add ? v_load_to(y + i, n) + v : v, n);
    }
}
static void K(scale)(weft__device *d, int64_t n, real factor, const real *x, real *y, bool add)
{
    each_range(d, n, CHUNK, scale_range, &(scale_job){ factor, x, y, add });
}
static void K(scale_by)(weft__device *d, int64_t n, const real *factor, bool divide, const real *x, real *y, bool add)
{
    K(scale)(d, n, !divide ? *factor : *factor != 0 ? 1 / *factor : 0, x, y, add);
}

/* ---- functions of one number: a loop for each and for each of its derivatives; those that matter by vectors ---- */
typedef void map_fn(int64_t n, const real *xs, const real *ys, real p, real q, real *restrict out);
#define MAP(name, value)                                                                                                   \
    static void name(int64_t n, const real *xs, const real *ys, real p, real q, real *restrict out)                        \
    {                                                                                                                      \
        (void)p, (void)q;                                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                                  \
            real x = xs[i], y = ys[i];                                                                                     \
            (void)x, (void)y;                                                                                              \
            out[i] = value;                                                                                                \
        }                                                                                                                  \
    }
#define UNARY(name, value, slope, bend, ...) MAP(map_##name, value) MAP(slope_##name, slope) MAP(bend_##name, bend)
#include "core/pointwise.def"

#define VECTORS(name, value)                                                                                               \
    static void vec_##name(int64_t n, const real *xs, const real *ys, real p, real q, real *restrict out)                  \
    {                                                                                                                      \
        (void)p, (void)q;                                                                                                  \
        EACH_VECTOR(i, n) {                                                                                                \
            vec x = v_load_to(xs + i, n - i), y = v_load_to(ys + i, n - i);                                                \
            (void)y;                                                                                                       \
            v_store(out + i, value);                                                                                       \
        }                                                                                                                  \
    }
VECTORS(exp, v_exp(x))
VECTORS(log, v_log(x))
VECTORS(sqrt, v_sqrt(x))
VECTORS(rsqrt, 1 / v_sqrt(x))
VECTORS(abs, v_abs(x))
VECTORS(inverse, v_select((veci)(x == 0), v_set(0), 1 / x))
VECTORS(tanh, v_tanh(x))
VECTORS(sigmoid, v_sigmoid(x))
VECTORS(relu, v_select((veci)(x > 0), x, 0 * x))
VECTORS(slope_relu, v_select((veci)(x > 0), v_set(1), v_set(0)))
VECTORS(leaky, v_select((veci)(x > 0), x, p * x))
VECTORS(slope_leaky, v_select((veci)(x > 0), v_set(1), v_set(p)))
VECTORS(gelu, x * normal_cdf(x))
VECTORS(slope_gelu, normal_cdf(x) + x * normal_pdf(x))
VECTORS(silu, x * v_sigmoid(x))
VECTORS(slope_silu, SILU_D(x, v_sigmoid(x)))
VECTORS(softplus, v_max(v_set(0), x) + log_of_1_and(v_exp(-v_abs(x))))
VECTORS(slope_softplus, v_sigmoid(x))
VECTORS(elu, v_select((veci)(x > 0), x, p * exp_less_1(v_min(v_set(0), x))))
VECTORS(clamp, v_select((veci)(x < p), v_set(p), v_select((veci)(x > q), v_set(q), x)))

static map_fn *const maps[WEFT__UNARIES][3] = {
#define UNARY(name, ...) { map_##name, slope_##name, bend_##name },
#include "core/pointwise.def"
};
static map_fn *vector_map(int f, int order)      /* NULL: there is none */
{
    static map_fn *const by[WEFT__UNARIES][3] = {
        [WEFT__exp] = { vec_exp }, [WEFT__log] = { vec_log }, [WEFT__sqrt] = { vec_sqrt }, [WEFT__rsqrt] = { vec_rsqrt },
        [WEFT__abs] = { vec_abs }, [WEFT__inverse] = { vec_inverse }, [WEFT__tanh] = { vec_tanh }, [WEFT__sigmoid] = { vec_sigmoid },
        [WEFT__relu] = { vec_relu, vec_slope_relu }, [WEFT__leaky_relu] = { vec_leaky, vec_slope_leaky },
        [WEFT__gelu] = { vec_gelu, vec_slope_gelu }, [WEFT__silu] = { vec_silu, vec_slope_silu },
        [WEFT__softplus] = { vec_softplus, vec_slope_softplus }, [WEFT__elu] = { vec_elu },
        [WEFT__clamp] = { vec_clamp },
    };
    return by[f][order];
}
typedef struct unary_job { map_fn *map; real p, q; const real *x, *y, *g; real *out; bool add; } unary_job;
static void unary_range(const void *job, int64_t from, int64_t to)
{
    const unary_job *j = job;
    for (int64_t i = from; i < to; i += BLOCK) {
        int64_t n = least(BLOCK, to - i);
        real v[BLOCK];
        j->map(n, j->x + i, (j->g ? j->y : j->x) + i, j->p, j->q, v);
        for (int64_t l = 0; j->g && l < n; l++)
            v[l] *= j->g[i + l];
        deliver(n, v, j->out + i, j->add);
    }
}
static void K(unary)(weft__device *d, int f, int order, int64_t n, real p, real q, const real *x, const real *y,
                     const real *g, real *out, bool add)
{
    map_fn *fast = vector_map(f, order);
    each_range(d, n, CHUNK, unary_range, &(unary_job){ fast ? fast : maps[f][order], p, q, x, y, order ? g : NULL, out, add });
}

/* ---- gated linear units ---- */
typedef struct glu_job { int64_t width; const real *x, *dy; real *to; bool add; } glu_job;
static void glu_rows(const void *job, int64_t from, int64_t to)
{
    const glu_job *j = job;
    for (int64_t r = from, w = j->width; r < to; r++) {
        const real *a = j->x + 2 * r * w, *b = a + w;
        EACH_VECTOR(i, w)
            v_store_to(j->to + r * w + i, v_load_to(a + i, w - i) * v_sigmoid(v_load_to(b + i, w - i)), w - i);
    }
}
static void K(glu)(weft__device *d, int64_t rows, int64_t width, const real *x, real *y)
{
    each_range(d, rows, rows_a_chunk(4 * width), glu_rows, &(glu_job){ width, x, NULL, y, false });
}
static void glu_back_rows(const void *job, int64_t from, int64_t to)
{
    const glu_job *j = job;
    for (int64_t r = from, w = j->width; r < to; r++) {
        const real *a = j->x + 2 * r * w, *b = a + w, *dy = j->dy + r * w;
        real *da = j->to + 2 * r * w, *db = da + w;
        EACH_VECTOR(i, w) {
            vec s = v_sigmoid(v_load_to(b + i, w - i)), g = v_load_to(dy + i, w - i) * s, h = g * v_load_to(a + i, w - i) * (1 - s);
            v_store_to(da + i, j->add ? v_load_to(da + i, w - i) + g : g, w - i);
            v_store_to(db + i, j->add ? v_load_to(db + i, w - i) + h : h, w - i);
        }
    }
}
static void K(glu_back)(weft__device *d, int64_t rows, int64_t width, const real *x, const real *dy, real *dx, bool add)
{
    each_range(d, rows, rows_a_chunk(8 * width), glu_back_rows, &(glu_job){ width, x, dy, dx, add });
}

/* ---- functions of two ---- */
typedef void pair_fn(int64_t n, const real *as, const real *bs, real *out);
#define BINARY(name, value, ...)                                                                                           \
    static void pair_##name(int64_t n, const real *as, const real *bs, real *out)                                          \
    {                                                                                                                      \
        ELEMENTWISE for (int64_t i = 0; i < n; i++) {                                                                      \
            real a = as[i], b = bs[i];                                                                                     \
            out[i] = value;                                                                                                \
        }                                                                                                                  \
    }
#include "core/pointwise.def"
static pair_fn *const pairs[WEFT__BINARIES] = {
#define BINARY(name, ...) pair_##name,
#include "core/pointwise.def"
};

/* An operand's next n elements side by side: where they are, or in the buffer. */
static inline const real *lined_up(int64_t n, const real *x, int64_t step, real *buffer)
{
    if (step == 1)
        return x;
    for (int64_t i = 0; i < n; i++)
        buffer[i] = x[i * step];
    return buffer;
}
typedef struct binary_job { const weft__grid *g; pair_fn *pair; const real *a, *b, *c; real *y; bool add; } binary_job;
static void binary_row(const void *job, int64_t n, int64_t dense, const int64_t *at)
{
    const binary_job *j = job;
    int64_t sa = stride(j->g, 0), sb = stride(j->g, 1);
    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t m = least(BLOCK, n - i);
        real u[BLOCK], v[BLOCK], w[BLOCK], *y = j->y + dense + i;
        j->pair(m, lined_up(m, j->a + at[0] + i * sa, sa, u), lined_up(m, j->b + at[1] + i * sb, sb, v), j->add ? w : y);
        if (j->add)
            deliver(m, w, y, true);
    }
}
static void binary_range(const void *job, int64_t from, int64_t to)
{
    each_row(((const binary_job *)job)->g, 2, from, to, binary_row, job);
}
static void K(binary)(weft__device *d, int f, const weft__grid *grid, const real *a, const real *b, real *y, bool add)
{
    weft__grid g = collapsed(grid, 2);
    each_range(d, rows_of(&g) * columns(&g), CHUNK, binary_range, &(binary_job){ &g, pairs[f], a, b, NULL, y, add });
}

static void select_row(const void *job, int64_t n, int64_t dense, const int64_t *at)
{
    const binary_job *j = job;
    const real *a = j->a + at[1], *b = j->b + at[2], *c = j->c + at[0];
    int64_t sa = stride(j->g, 1), sb = stride(j->g, 2), sc = stride(j->g, 0);
    real *y = j->y + dense;
    for (int64_t i = 0; i < n; i++)
        y[i] = onto(&y[i], j->add, c[i * sc] != 0 ? a[i * sa] : b[i * sb]);
}
static void select_range(const void *job, int64_t from, int64_t to)
{
    each_row(((const binary_job *)job)->g, 3, from, to, select_row, job);
}
static void K(select)(weft__device *d, const weft__grid *grid, const real *condition, const real *a, const real *b,
                      real *y, bool add)
{
    weft__grid g = collapsed(grid, 3);
    each_range(d, rows_of(&g) * columns(&g), CHUNK, select_range, &(binary_job){ &g, NULL, a, b, condition, y, add });
}

/* ---- dropout ---- */
typedef struct dropout_job {
    int64_t width; real p; uint64_t key;
    const int64_t *id; const int32_t *position;
    const real *x; real *y; bool add;
} dropout_job;
static void dropout_rows(const void *job, int64_t from, int64_t to)
{
    const dropout_job *j = job;
    real factor = 1 / (1 - j->p);
    uint32_t below = weft__threshold((double)j->p);
    for (int64_t r = from; r < to; r++)
        for (int64_t c = 0; c < j->width; c += DRAWS) {
            real kept[DRAWS];
            int64_t n = least(DRAWS, j->width - c);
            draw_kept(j->key, j->id ? j->id[r] : r, j->position ? j->position[r] : 0, c, n, below, factor, kept);
            keep(n, kept, j->x + r * j->width + c, kept);
            deliver(n, kept, j->y + r * j->width + c, j->add);
        }
}
static void K(dropout)(weft__device *d, int64_t rows, int64_t width, real p, uint64_t key, const int64_t *id, const int32_t *position,
                       const real *x, real *y, bool add)
{
    each_range(d, rows, rows_a_chunk(4 * width), dropout_rows, &(dropout_job){ width, p, key, id, position, x, y, add });
}
