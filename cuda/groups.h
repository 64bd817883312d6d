/* groups.h - launch shapes and loops of the pointwise and reduction kernels: over planes (rows by columns),
 * loop nests and runs of rows, and the reduction within a group of threads.
 *
 * A group is the threads that share one result. If a run has one column, they are consecutive threads along
 * the run. Otherwise consecutive threads are columns, and the threads of one column form a group. The layout,
 * the size of a group and the order of every sum follow from sizes only. */
#ifndef WEFT_GROUPS_H
#define WEFT_GROUPS_H
#include "cuda/ptx.h"
#include "core/shared/functions.h"
#include "core/shared/nests.h"

typedef struct shape { dim3 grid, threads; } shape;
/* LAUNCH_SHAPE(d, kernel, shape, arguments...) is LAUNCH without dynamic shared memory. */
#define LAUNCH_SHAPE(d, kernel, of, ...)                                \
    do {                                                                \
        const shape of_ = (of);                                         \
        LAUNCH(d, kernel, of_.grid, of_.threads, 0, __VA_ARGS__);       \
    } while (0)

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t most(int64_t a, int64_t b)  { return a > b ? a : b; }
static inline int64_t parts(int64_t n, int64_t unit) { return (n + unit - 1) / unit; }
/* Returns the smallest power of two that is at least n, limited by `limit`. */
static inline int power_for(int64_t n, int limit)
{
    int p = 1;
    while (p < n && p < limit)
        p *= 2;
    return p;
}

/* ---- elements ---- */
/* Sets y[i] to the last argument for i = first, first + step, .. below n, four loads before the stores. */
#define MAP(first, step, n, i, y, ...)                                                    \
    for (int64_t from_ = (first), by_ = (step), n_ = (n); from_ < n_; from_ += 4 * by_) { \
        real out_[4] = {};                                                                \
        for (int k_ = 0; k_ < 4; k_++) {                                                  \
            int64_t i = from_ + k_ * by_;                                                 \
            if (i < n_)                                                                   \
                out_[k_] = (__VA_ARGS__);                                                 \
        }                                                                                 \
        for (int k_ = 0; k_ < 4; k_++)                                                    \
            if (from_ + k_ * by_ < n_)                                                    \
                (y)[from_ + k_ * by_] = out_[k_];                                         \
    }

/* ---- flat vectors ---- */
/* Four neighbours, read and written by one instruction if all vectors are aligned to 16 bytes, otherwise
 * and at the end one by one. The arithmetic is the same, and files that use quads are compiled without
 * fused multiply-add (CUDA_UNFUSED in mk/cuda.mk), so an element has the same bits at every position. */
typedef struct __align__(16) quad { real x[4]; } quad;
static inline dim3 blocks_of_quads(int64_t n) { return blocks_for(parts(n, 4)); }
__device__ static inline bool aligned(const real *x) { return (uintptr_t)x % 16 == 0; }
/* Reads elements i to i + 3 of n, `step` apart, or zeros. whole: all four exist, aligned and consecutive. */
__device__ static inline quad quad_at(const real *x, int64_t i, int64_t n, bool whole, int64_t step = 1)
{
    quad q = {};
    if (whole)
        q = *(const quad *)(x + i);
    else
        for (int k = 0; k < 4; k++)
            if (i + k < n)
                q.x[k] = x[(i + k) * step];
    return q;
}
__device__ static inline void put_quad(real *y, int64_t i, int64_t n, bool whole, quad q)
{
    if (whole)
        *(quad *)(y + i) = q;
    else
        for (int k = 0; k < 4; k++)
            if (i + k < n)
                y[i + k] = q.x[k];
}
/* Returns f of each element, plus y if `add`. */
template <class F, class... Q>
__device__ static inline quad each_of(bool add, const quad &y, F f, const Q &...q)
{
    quad v;
    for (int k = 0; k < 4; k++)
        v.x[k] = f(q.x[k]...);
    for (int k = 0; add && k < 4; k++)
        v.x[k] += y.x[k];
    return v;
}
#define EACH_QUAD(i, n) for (int64_t i = 4 * first_index(); i < (n); i += 4 * index_step())
/* Sets y[i] = f(x[i]...) for all n, or adds it if `add`. */
template <class F, class... X>
__device__ static inline void map_flat(int64_t n, real *y, bool add, F f, const X *...x)
{
    const bool fit = aligned(y) && (aligned(x) && ...);
    EACH_QUAD(i, n) {
        const bool whole = fit && i + 4 <= n;
        put_quad(y, i, n, whole,
                 each_of(add, add ? quad_at(y, i, n, whole) : quad{}, f, quad_at(x, i, n, whole)...));
    }
}

/* ---- planes ---- */
/* Threads are (columns, rows). Rows without columns are visited: they may hold invalid indices. */
static inline shape plane_of(int64_t rows, int64_t width)
{
    int tx = power_for(width, 32), ty = THREADS / tx;
    int64_t gx = least(parts(most(width, 1), 4 * tx), MOST_BLOCKS),
            gy = least(parts(rows, ty), most(1, MOST_BLOCKS / gx));
    return { dim3((unsigned)gx, (unsigned)gy), dim3((unsigned)tx, (unsigned)ty) };
}
__device__ static inline int64_t first_column() { return (int64_t)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ static inline int64_t column_step()  { return (int64_t)gridDim.x * blockDim.x; }
#define EACH_ROW(r, rows)                                                        \
    for (int64_t r = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; r < (rows); \
         r += (int64_t)gridDim.y * blockDim.y)
#define MAP_COLUMNS(n, j, y, ...) MAP(first_column(), column_step(), n, j, y, __VA_ARGS__)

/* ---- loop nests ---- */
static inline int64_t elements_of(const weft__grid *g)
{
    int64_t n = 1;
    for (int i = 0; i < g->rank; i++)
        n *= g->size[i];
    return n;
}
/* Returns the offset of element i of the first `rank` axes in an operand, without dividing for the first. */
__device__ static inline int64_t place_in(const weft__grid &g, int rank, int operand, int64_t i)
{
    int64_t offset = 0;
    for (int k = rank - 1; k > 0; i /= g.size[k--])
        offset += i % g.size[k] * g.step[operand][k];
    return rank > 0 ? offset + i * g.step[operand][0] : 0;
}

/* ---- groups ---- */
/* step: distance of two lanes, in threads of the block */
typedef struct group { int lane, lanes, step; } group;

/* Lanes for a run of n numbers. A block has several groups of up to a warp, or one larger group. */
static inline int lanes_for(int64_t n) { return n <= 1024 ? power_for(n, 32) : n <= 16384 ? 256 : 1024; }
static inline shape groups_along(int64_t count, int lanes)
{
    int groups = lanes <= 32 ? THREADS / lanes : 1;
    return { dim3((unsigned)parts(count, groups)), dim3((unsigned)lanes, (unsigned)groups) };
}
__device__ static inline int64_t group_number() { return (int64_t)blockIdx.x * blockDim.y + threadIdx.y; }
__device__ static inline group group_along()    { return { (int)threadIdx.x, (int)blockDim.x, 1 }; }
__device__ static inline group group_below()
{
    return { (int)threadIdx.y, (int)blockDim.y, (int)blockDim.x };
}

/* One group for each column of each run. The host does not know the lengths of ragged runs. */
enum { RAGGED_LANES = 128 };
static inline shape groups_of(const weft__segments *s)
{
    if (s->inner == 1)
        return groups_along(s->count, s->offset ? RAGGED_LANES : lanes_for(s->length));
    int tx = power_for(s->inner, 32), block = !s->offset && s->length > 1024 ? 1024 : THREADS;
    int ty = s->offset ? block / tx : power_for(parts(s->length, 4), block / tx);
    return { dim3((unsigned)(s->count * parts(s->inner, tx))), dim3((unsigned)tx, (unsigned)ty) };
}
typedef struct seat {                            /* a thread's position in such a launch */
    group g; bool is;                            /* is: the column exists */
    int64_t run, column, rows, at;               /* rows: 0 if it does not; at: offset of row 0 */
} seat;
__device__ static inline seat seat_of(const weft__segments &s)
{
    bool along = s.inner == 1;
    int64_t tiles = along ? 1 : (s.inner + blockDim.x - 1) / blockDim.x;
    int64_t run = along ? group_number() : blockIdx.x / tiles,
            column = along ? 0 : blockIdx.x % tiles * blockDim.x + threadIdx.x;
    bool is = run < s.count && column < s.inner;
    return { along ? group_along() : group_below(), is, run, column, is ? run_length(&s, run) : 0,
             is ? first_row(&s, run) * s.inner + column : 0 };
}
#define EACH_LANE(r, g, n) for (int64_t r = (g).lane; r < (n); r += (g).lanes)

/* ---- reduction within a group, as a tree ---- */
/* Returns the result in every lane. All threads of the block must call it. */
enum { SUM, LARGEST, LOWEST };                   /* LARGEST: NaN if any value is NaN */
template <int WHAT, class T> __device__ static inline T merged(T a, T b)
{
    return WHAT == SUM ? a + b : WHAT == LARGEST ? (a > b || a != a ? a : b) : (a < b ? a : b);
}
template <int WHAT, class T> __device__ static T together(group g, T v)
{
    SHARED(part, T[1024]);
    int me = threadIdx.y * blockDim.x + threadIdx.x;
    if (g.step == 1) {
        for (int m = (g.lanes < 32 ? g.lanes : 32) / 2; m > 0; m /= 2)
            v = merged<WHAT>(v, __shfl_xor_sync(~0u, v, m));
        if (g.lanes <= 32)
            return v;
    }
    part[me] = v;
    __syncthreads();
    for (int half = g.lanes / 2, least = g.step == 1 ? 32 : 1; half >= least; half /= 2) {
        if (g.lane < half)
            part[me] = merged<WHAT>(part[me], part[me + half * g.step]);
        __syncthreads();
    }
    v = part[me - g.lane * g.step];
    __syncthreads();
    return v;
}

/* A compensated sum (Kahan, Knuth): the rounded sum, and the rounding error of the last addition, or 0 if
 * the sum is not finite. So the error does not grow with the number of terms. */
typedef struct exact_sum { real sum, error; } exact_sum;
__device__ static inline void add_exactly(exact_sum &s, real x)
{
    const real y = x + s.error, total = s.sum + y, part = total - s.sum;
    const real lost = (s.sum - (total - part)) + (y - part);
    s.sum = total;
    s.error = lost == lost ? lost : 0;
}
/* Returns the sum of term(i) for i = from .. end - 1. */
template <class Term> __device__ static inline real sum_of(group g, int64_t from, int64_t end, Term term)
{
    exact_sum all = {};
    for (int64_t i = from + g.lane; i < end; i += 4 * g.lanes) {
        real x[4] = {};
        for (int k = 0; k < 4; k++)
            if (i + k * g.lanes < end)
                x[k] = term(i + k * g.lanes);
        add_exactly(all, (x[0] + x[1]) + (x[2] + x[3]));
    }
    return together<SUM>(g, all.sum);
}

/* ---- blocks that share outputs ---- */
/* Returns true in the last of `blocks` blocks that calls it, which then sees all writes of the others. The
 * counting thread has a fence before and after; barriers extend it to the whole block. counter: one of
 * counters_of; the last block sets it to 0. All threads of the block must call it. */
__device__ static inline bool is_last(unsigned *counter, unsigned blocks)
{
    SHARED(last, bool);
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0) {
        __threadfence();
        last = atomicAdd(counter, 1u) == blocks - 1;
        __threadfence();
        if (last)
            *counter = 0;
    }
    __syncthreads();
    return last;
}
#endif
