/* optimisers.cu - gradient norms, clipping, checks for nonfinite numbers, and the update rules of
 * torch.optim. weft__guard, which decides about a step, stays in device memory and is read there. For a sum,
 * each block sums one piece of fixed size, and the last block to finish adds the pieces. */
#include "cuda/groups.h"
#include "core/shared/rules.h"

enum { PIECES = 1024 };
static int64_t piece_of(int64_t n) { return most(4096, parts(n, PIECES)); }

/* ---- norms ---- */
/* Powers 1 and 2 add; any other takes the maximum. */
__device__ static inline bool adds(real power) { return power == 1 || power == 2; }
__device__ static inline double joined(real power, double a, double b)
{
    return adds(power) ? a + b : merged<LARGEST>(b, a);
}
__device__ static double of_block(real power, double v)
{
    return adds(power) ? together<SUM>(group_along(), v) : together<LARGEST>(group_along(), v);
}
/* Each block computes a piece; the last one to finish combines all pieces. */
__global__ static void norm_pieces(int64_t n, int64_t piece, real power, const real *x, bool start,
                                   double *pieces, unsigned *counter, weft__guard *g)
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
    if (!is_last(counter, gridDim.x))
        return;
    s = 0;
    for (int64_t i = threadIdx.x; i < gridDim.x; i += THREADS)
        s = joined(power, s, __ldcg(pieces + i));
    s = of_block(power, s);
    if (threadIdx.x == 0)
        g->norm = joined(power, start ? 0 : g->norm, s);
}
/* at least one block, which handles `start` */
static dim3 blocks_of(int64_t n) { return dim3((unsigned)most(1, parts(n, piece_of(n)))); }
void K(norm)(weft__device *d, int64_t n, real power, const real *x, bool start, weft__guard *g)
{
    double *pieces = (double *)scratch(d, PIECES * sizeof *pieces);
    unsigned *counter = counters_of(d);
    if (pieces && counter)
        LAUNCH(d, norm_pieces, blocks_of(n), THREADS, 0, n, piece_of(n), power, x, start, pieces, counter, g);
}
__global__ static void clip_each(int64_t n, real power, real limit, const weft__guard *g, real *x, real *y)
{
    const double norm = norm_of_sum(g->norm, power), factor = (double)limit / (norm + 1e-6);
    if (y && first_index() == 0)
        *y = (real)norm;
    if (factor < 1)
        map_flat(n, x, false, [=](real v) { return v * (real)factor; }, x);
}
void K(clip)(weft__device *d, int64_t n, real power, real limit, const weft__guard *g, real *x, real *y)
{
    LAUNCH(d, clip_each, blocks_of_quads(most(n, 1)), THREADS, 0, n, power, limit, g, x, y);
}

/* ---- nonfinite numbers ---- */
/* result of a block: index of the first nonfinite element, or n; largest magnitudes */
typedef struct piece_result { int64_t bad; weft__most most; } piece_result;
__device__ static double of_block(double v) { return together<LARGEST>(group_along(), v); }

/* Reads a piece that another block has written. */
__device__ static piece_result load_piece(const piece_result *p)
{
    return { __ldcg(&p->bad),
             { __ldcg(&p->most.g), __ldcg(&p->most.x), __ldcg(&p->most.m), __ldcg(&p->most.v),
               __ldcg(&p->most.a) } };
}
__global__ static void guard_pieces(int64_t n, int64_t piece, const real *x, int64_t at, bool start,
                                    piece_result *pieces, unsigned *counter, weft__guard *g)
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
    if (!is_last(counter, gridDim.x))
        return;
    bad = n;
    most = 0;
    for (int64_t i = threadIdx.x; i < gridDim.x; i += THREADS) {
        const piece_result one = load_piece(pieces + i);
        bad = merged<LOWEST>(bad, one.bad);
        most = merged<LARGEST>(most, one.most.g);
    }
    bad = together<LOWEST>(group_along(), bad);
    most = of_block(most);
    if (threadIdx.x)
        return;
    if (start) {
        g->finite = 1;
        g->most.g = 0;
    }
    if (g->finite)
        g->most.g = merged<LARGEST>(g->most.g, most);
    if (g->finite && bad < n) {
        g->finite = 0;
        g->bad = at + bad;
    }
}
void K(guard)(weft__device *d, int64_t n, const real *x, int64_t from, bool start, weft__guard *g)
{
    piece_result *pieces = (piece_result *)scratch(d, PIECES * sizeof *pieces);
    unsigned *counter = counters_of(d);
    if (pieces && counter)
        LAUNCH(d, guard_pieces, blocks_of(n), THREADS, 0, n, piece_of(n), x, from, start, pieces, counter, g);
}

__global__ static void guard_count(weft__guard *past, weft__guard *g, bool last)
{
    if (past)
        count_step(past, g->finite);
    if (last)
        count_step(g, g->finite);
}
void K(guard_end)(weft__device *d, weft__guard *past, weft__guard *g, bool last)
{
    LAUNCH(d, guard_count, 1, 1, 0, past, g, last);
}

/* ---- updates ---- */
/* for optional vectors of a rule */
__device__ static inline quad quad_if(const real *x, int64_t i, int64_t n, bool whole)
{
    return x ? quad_at(x, i, n, whole) : quad{};
}
__device__ static inline void put_if(real *y, int64_t i, int64_t n, bool whole, const quad &q)
{
    if (y)
        put_quad(y, i, n, whole, q);
}
__global__ static void update_each(int64_t n, weft__update u, const weft__guard *past,
                                   const weft__guard *guard, real *dx, real *m, real *v, real *a, real *x)
{
    SHARED(r, rule[1]);
    const bool finite = guard->finite;
    if (finite && threadIdx.x == 0)
        r[0] = rule_of(&u, past);
    __syncthreads();
    const bool fit = aligned(dx) && aligned(m) && aligned(v) && aligned(a) && aligned(x);
    EACH_QUAD(i, n) {
        const bool whole = fit && i + 4 <= n;
        if (finite) {
            const quad g = quad_at(dx, i, n, whole);
            quad of_m = quad_if(m, i, n, whole), of_v = quad_if(v, i, n, whole),
                 of_a = quad_if(a, i, n, whole), of_x = quad_at(x, i, n, whole);
            for (int k = 0; k < 4; k++)
                update_one(&u, r, k, g.x, of_m.x, of_v.x, of_a.x, of_x.x);
            put_if(m, i, n, whole, of_m), put_if(v, i, n, whole, of_v), put_if(a, i, n, whole, of_a);
            put_quad(x, i, n, whole, of_x);
        }
        put_quad(dx, i, n, whole, quad{});
    }
}
void K(update)(weft__device *d, int64_t n, const weft__update *u, const weft__guard *past,
               const weft__guard *g, real *dx, real *m, real *v, real *a, real *x)
{
    LAUNCH(d, update_each, blocks_of_quads(n), THREADS, 0, n, *u, past, g, dx, m, v, a, x);
}

/* ---- trial updates that write no parameter, if magnitudes do not prove that the step is finite ---- */
/* The last block combines all pieces. */
__device__ static void join_pieces(int64_t n, const piece_result *pieces, int64_t at, weft__guard *g)
{
    piece_result all = { n, g->most };
    for (int64_t i = threadIdx.x; i < gridDim.x; i += THREADS) {
        const piece_result one = load_piece(pieces + i);
        all.bad = merged<LOWEST>(all.bad, one.bad);
        all.most.x = merged<LARGEST>(all.most.x, one.most.x);
        all.most.m = merged<LARGEST>(all.most.m, one.most.m);
        all.most.v = merged<LARGEST>(all.most.v, one.most.v);
        all.most.a = merged<LARGEST>(all.most.a, one.most.a);
    }
    all.bad = together<LOWEST>(group_along(), all.bad);
    all.most = { all.most.g, of_block(all.most.x), of_block(all.most.m), of_block(all.most.v),
                 of_block(all.most.a) };
    if (threadIdx.x)
        return;
    g->most = all.most;
    if (all.bad < n)
        rehearsed(at + all.bad, g);
}
/* Each block computes the prediction for itself, and the last one stores it. */
static __global__ void __launch_bounds__(THREADS, 4)
    rehearse_pieces(int64_t n, int64_t piece, weft__foresight first, bool predicts, weft__update u,
                    const weft__guard *past, bool moves, const real *dx, const real *m, const real *v,
                    const real *a, const real *x, int64_t at, piece_result *pieces, unsigned *counter,
                    weft__guard *g)
{
    SHARED(now, weft__guard[1]);
    if (threadIdx.x == 0) {
        now[0] = *g;
        if (predicts)
            foresee_by(&first.most, first.anew, now);
    }
    __syncthreads();
    const bool checks = !now->sure && now->finite;
    if (checks) {
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
    if (!(checks || predicts) || !is_last(counter, gridDim.x))
        return;
    if (threadIdx.x == 0)
        *g = now[0];
    __syncthreads();
    if (checks)
        join_pieces(n, pieces, at, g);
}
void K(rehearse)(weft__device *d, int64_t n, const weft__foresight *first, const weft__update *u,
                 const weft__guard *past, bool moves, const real *dx, const real *m, const real *v,
                 const real *a, const real *x, int64_t from, weft__guard *g)
{
    piece_result *pieces = (piece_result *)scratch(d, PIECES * sizeof *pieces);
    unsigned *counter = counters_of(d);
    const weft__foresight none = {};
    if (pieces && counter)
        LAUNCH(d, rehearse_pieces, blocks_of(n), THREADS, 0, n, piece_of(n), first ? *first : none,
               first != NULL, *u, past, moves, dx, m, v, a, x, from, pieces, counter, g);
}
