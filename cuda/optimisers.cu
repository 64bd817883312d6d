/* optimisers.cu - norms, clipping, the check for numbers that are not finite, the rules of torch.optim. What
 * a step depends on (weft__guard) stays on the device and is read there. Sums over a vector go by fixed
 * pieces, a block each, then by one block. */
#include "cuda/groups.h"
#include "core/shared/rules.h"

enum { PIECES = 1024 };
static int64_t piece_of(int64_t n) { return most(4096, parts(n, PIECES)); }

/* ---- norms ---- */
/* power 1, 2: a sum; any other: the largest. */
__device__ static inline bool adds(real power) { return power == 1 || power == 2; }
__device__ static inline double joined(real power, double a, double b)
{
    return adds(power) ? a + b : merged<LARGEST>(b, a);
}
__device__ static double of_block(real power, double v)
{
    return adds(power) ? together<SUM>(group_along(), v) : together<LARGEST>(group_along(), v);
}
__global__ static void norm_pieces(int64_t n, int64_t piece, real power, const real *x, double *pieces)
{
    int64_t from = blockIdx.x * piece, end = from + piece < n ? from + piece : n;
    double s = 0;
    for (int64_t i = from + threadIdx.x; i < end; i += THREADS) {
        double v = fabs((double)x[i]);
        s = joined(power, s, power == 2 ? v * v : v);
    }
    s = of_block(power, s);
    if (threadIdx.x == 0)
        pieces[blockIdx.x] = s;
}
__global__ static void norm_join(int64_t n, real power, const double *pieces, bool start, weft__guard *g)
{
    double s = 0;
    for (int64_t i = threadIdx.x; i < n; i += THREADS)
        s = joined(power, s, pieces[i]);
    s = of_block(power, s);
    if (threadIdx.x == 0)
        g->norm = joined(power, start ? 0 : g->norm, s);
}
void K(norm)(weft__device *d, int64_t n, real power, const real *x, bool start, weft__guard *g)
{
    double *pieces = (double *)scratch(d, PIECES * sizeof *pieces);
    if (!pieces)
        return;
    LAUNCH(d, norm_pieces, dim3((unsigned)parts(n, piece_of(n))), THREADS, 0, n, piece_of(n), power, x,
           pieces);
    LAUNCH(d, norm_join, 1, THREADS, 0, parts(n, piece_of(n)), power, pieces, start, g);
}
__global__ static void norm_root(real power, weft__guard *g, real *y)
{
    g->norm = power == 2 ? sqrt(g->norm) : g->norm;
    if (y)
        *y = (real)g->norm;
}
void K(norm_end)(weft__device *d, real power, weft__guard *g, real *y)
{
    LAUNCH(d, norm_root, 1, 1, 0, power, g, y);
}

__global__ static void clip_each(int64_t n, real limit, const weft__guard *g, real *x)
{
    double factor = (double)limit / (g->norm + 1e-6);
    if (factor < 1)
        map_flat(n, x, false, [=](real v) { return v * (real)factor; }, x);
}
void K(clip)(weft__device *d, int64_t n, real limit, const weft__guard *g, real *x)
{
    LAUNCH(d, clip_each, blocks_of_quads(n), THREADS, 0, n, limit, g, x);
}

/* ---- what is not finite ---- */
/* by a block: the first bad element, n if there is none, and sizes */
typedef struct found { int64_t bad; weft__most most; } found;
__device__ static double of_block(double v) { return together<LARGEST>(group_along(), v); }

__global__ static void guard_pieces(int64_t n, int64_t piece, const real *x, found *pieces)
{
    int64_t from = blockIdx.x * piece, end = from + piece < n ? from + piece : n, bad = n;
    double most = 0;
    for (int64_t i = from + threadIdx.x; i < end; i += THREADS) {
        most = larger(most, x[i]);
        if (!(x[i] - x[i] == 0) && i < bad)
            bad = i;
    }
    bad = together<LOWEST>(group_along(), bad);
    most = of_block(most);
    if (threadIdx.x == 0)
        pieces[blockIdx.x] = { bad, { most, 0, 0, 0, 0 } };
}
__global__ static void guard_join(int64_t n, int64_t count, const found *pieces, int64_t from, bool start,
                                  weft__guard *g)
{
    int64_t bad = n;
    double most = 0;
    for (int64_t i = threadIdx.x; i < count; i += THREADS) {
        bad = merged<LOWEST>(bad, pieces[i].bad);
        most = merged<LARGEST>(most, pieces[i].most.g);
    }
    bad = together<LOWEST>(group_along(), bad);
    most = of_block(most);
    if (threadIdx.x)
        return;
    if (start)
        g->finite = 1, g->most.g = 0;
    if (g->finite)
        g->most.g = merged<LARGEST>(g->most.g, most);
    if (g->finite && bad < n)
        g->finite = 0, g->bad = from + bad;
}
void K(guard)(weft__device *d, int64_t n, const real *x, int64_t from, bool start, weft__guard *g)
{
    found *pieces = (found *)scratch(d, PIECES * sizeof *pieces);
    if (!pieces)
        return;
    LAUNCH(d, guard_pieces, dim3((unsigned)parts(n, piece_of(n))), THREADS, 0, n, piece_of(n), x, pieces);
    LAUNCH(d, guard_join, 1, THREADS, 0, n, parts(n, piece_of(n)), pieces, from, start, g);
}
__global__ static void foresee_alone(weft__update u, bool anew, weft__guard *g) { foresee_by(&u, anew, g); }
void K(foresee)(weft__device *d, const weft__update *u, bool anew, weft__guard *g)
{
    LAUNCH(d, foresee_alone, 1, 1, 0, *u, anew, g);
}

__global__ static void guard_count(weft__guard *g)
{
    if (g->finite)
        g->applied++, g->in_a_row = 0;
    else
        g->skipped++, g->in_a_row++;
}
void K(guard_end)(weft__device *d, weft__guard *g) { LAUNCH(d, guard_count, 1, 1, 0, g); }

/* ---- updates ---- */
/* of what a rule may do without */
__device__ static inline quad quad_if(const real *x, int64_t i, int64_t n, bool whole)
{
    return x ? quad_at(x, i, n, whole) : quad{};
}
__device__ static inline void put_if(real *y, int64_t i, int64_t n, bool whole, const quad &q)
{
    if (y)
        put_quad(y, i, n, whole, q);
}
__global__ static void update_each(int64_t n, weft__update u, const weft__guard *guard, const real *dx,
                                   real *m, real *v, real *a, real *x)
{
    SHARED(r, rule[1]);
    if (!guard->finite)
        return;
    if (threadIdx.x == 0)
        r[0] = rule_of(&u, guard);
    __syncthreads();
    const bool fit = aligned(dx) && aligned(m) && aligned(v) && aligned(a) && aligned(x);
    EACH_QUAD(i, n) {
        const bool whole = fit && i + 4 <= n;
        const quad g = quad_at(dx, i, n, whole);
        quad of_m = quad_if(m, i, n, whole), of_v = quad_if(v, i, n, whole), of_a = quad_if(a, i, n, whole),
             of_x = quad_at(x, i, n, whole);
        for (int k = 0; k < 4; k++)
            update_one(&u, r, k, g.x, m ? of_m.x : NULL, v ? of_v.x : NULL, a ? of_a.x : NULL, of_x.x);
        put_if(m, i, n, whole, of_m), put_if(v, i, n, whole, of_v), put_if(a, i, n, whole, of_a);
        put_quad(x, i, n, whole, of_x);
    }
}
void K(update)(weft__device *d, int64_t n, const weft__update *u, const weft__guard *g, const real *dx,
               real *m, real *v, real *a, real *x)
{
    LAUNCH(d, update_each, blocks_of_quads(n), THREADS, 0, n, *u, g, dx, m, v, a, x);
}

/* ---- the same without writing, where only sizes do not prove that what is finite stays so ---- */
static __global__ void __launch_bounds__(THREADS, 4)
    rehearse_pieces(int64_t n, int64_t piece, weft__update u, const weft__guard *past, bool moves,
                    const real *dx, const real *m, const real *v, const real *a, const real *x,
                    const weft__guard *g, found *pieces)
{
    if (g->sure || !g->finite)
        return;
    int64_t from = blockIdx.x * piece, end = from + piece < n ? from + piece : n, bad = n;
    rule r = rule_of(&u, past);
    weft__most most = {};
    for (int64_t i = from + threadIdx.x; i < end; i += THREADS)
        if (!rehearse_one(&u, &r, moves, i, dx, m, v, a, x, &most) && i < bad)
            bad = i;
    bad = together<LOWEST>(group_along(), bad);
    most = { 0, of_block(most.x), of_block(most.m), of_block(most.v), of_block(most.a) };
    if (threadIdx.x == 0)
        pieces[blockIdx.x] = { bad, most };
}
__global__ static void rehearse_join(int64_t n, int64_t count, const found *pieces, int64_t from,
                                     weft__guard *g)
{
    if (threadIdx.x || g->sure || !g->finite)
        return;
    weft__most *most = &g->most;
    int64_t bad = n;
    for (int64_t i = 0; i < count; i++) {
        bad = merged<LOWEST>(bad, pieces[i].bad);
        most->x = merged<LARGEST>(most->x, pieces[i].most.x),
        most->m = merged<LARGEST>(most->m, pieces[i].most.m);
        most->v = merged<LARGEST>(most->v, pieces[i].most.v),
        most->a = merged<LARGEST>(most->a, pieces[i].most.a);
    }
    if (bad < n)
        rehearsed(from + bad, g);
}
void K(rehearse)(weft__device *d, int64_t n, const weft__update *u, const weft__guard *past, bool moves,
                 const real *dx, const real *m, const real *v, const real *a, const real *x, int64_t from,
                 weft__guard *g)
{
    found *pieces = (found *)scratch(d, PIECES * sizeof *pieces);
    if (!pieces)
        return;
    LAUNCH(d, rehearse_pieces, dim3((unsigned)parts(n, piece_of(n))), THREADS, 0, n, piece_of(n), *u, past,
           moves, dx, m, v, a, x, g, pieces);
    LAUNCH(d, rehearse_join, 1, 1, 0, n, parts(n, piece_of(n)), pieces, from, g);
}
