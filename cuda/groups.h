/* groups.h - how the kernels that are not products walk: over planes (rows by columns), loop nests and runs
 * of rows, and how the threads of a group put their results together.
 *
 * A group is the threads that share one result. Either they lie side by side along the numbers of one run,
 * or, where a run has several columns, threads side by side are columns and those below one another share a
 * column. Which it is, and how many they are, follows from sizes alone, and so does the order of every
 * sum. */
#ifndef WEFT_GROUPS_H
#define WEFT_GROUPS_H
#include "cuda/ptx.h"
#include "core/shared/functions.h"
#include "core/shared/nests.h"

typedef struct shape { dim3 grid, threads; } shape;
/* LAUNCH without dynamic shared memory: (d, kernel, shape, arguments...). */
#define LAUNCH_SHAPE(d, kernel, of, ...)                                \
    do {                                                                \
        const shape of_ = (of);                                         \
        LAUNCH(d, kernel, of_.grid, of_.threads, 0, __VA_ARGS__);       \
    } while (0)

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t most(int64_t a, int64_t b)  { return a > b ? a : b; }
static inline int64_t parts(int64_t n, int64_t unit) { return (n + unit - 1) / unit; }
/* The smallest power of two that is not below n, but no more than `limit`. */
static inline int power_for(int64_t n, int limit)
{
    int p = 1;
    while (p < n && p < limit)
        p *= 2;
    return p;
}

/* ---- elements ---- */
/* Y[i] = the last argument, for i = first, first + step .. below n. Four loads are on their way before the
 * first store. */
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
/* Four neighbours, read and written by one instruction if all vectors begin at a multiple of 16 bytes. If one
 * does not, and at the end, they are read and written one by one. The arithmetic is the same, and files that
 * use quads are compiled without fused multiplications and additions (CUDA_UNFUSED in mk/cuda.mk), so an
 * element has the same bits at every position. */
typedef struct __align__(16) quad { real x[4]; } quad;
static inline dim3 blocks_of_quads(int64_t n) { return blocks_for(parts(n, 4)); }
__device__ static inline bool aligned(const real *x) { return (uintptr_t)x % 16 == 0; }
/* Reads elements i to i + 3 of n, `step` apart, with zeros beyond the end. whole: all four exist, aligned and
 * next to each other. */
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
/* Returns f of each, or y + f if `add`. */
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
/* y[i] = f(x[i]...), or += if told, for all n. */
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
/* Threads (columns, rows). A plane without columns has its rows walked all the same: they may hold faults. */
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
/* Where element i of the first `rank` axes is in an operand; the first axis costs no division. */
__device__ static inline int64_t place_in(const weft__grid &g, int rank, int operand, int64_t i)
{
    int64_t offset = 0;
    for (int k = rank - 1; k > 0; i /= g.size[k--])
        offset += i % g.size[k] * g.step[operand][k];
    return rank > 0 ? offset + i * g.step[operand][0] : 0;
}

/* ---- groups ---- */
/* step: from lane to lane, in threads of the block */
typedef struct group { int lane, lanes, step; } group;

/* Threads that share a run of n numbers side by side. Up to a warp: several groups a block; beyond: one. */
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

/* One group for each column of each run; the lengths of ragged runs are not known here. */
enum { RAGGED_LANES = 128 };
static inline shape groups_of(const weft__segments *s)
{
    if (s->inner == 1)
        return groups_along(s->count, s->offset ? RAGGED_LANES : lanes_for(s->length));
    int tx = power_for(s->inner, 32), block = !s->offset && s->length > 1024 ? 1024 : THREADS;
    int ty = s->offset ? block / tx : power_for(parts(s->length, 4), block / tx);
    return { dim3((unsigned)(s->count * parts(s->inner, tx))), dim3((unsigned)tx, (unsigned)ty) };
}
typedef struct seat {                            /* a thread's place in such a launch */
    group g; bool is;                            /* is: there is such a column */
    int64_t run, column, rows, at;               /* rows: 0 if there is none; at: of row 0 */
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

/* ---- what the lanes of a group have, put together by a tree ---- */
/* Every lane gets it. All threads of the block must call. */
enum { SUM, LARGEST, LOWEST };                   /* LARGEST: NaN if there is one */
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

/* A sum of many terms: `sum` is all of them, rounded, and `rest` what the last addition has rounded off
 * (Kahan, Knuth), or 0 if the sum is not finite. So the error does not grow with the number of terms. */
typedef struct exact_sum { real sum, error; } exact_sum;
__device__ static inline void add_exactly(exact_sum &s, real x)
{
    const real y = x + s.error, total = s.sum + y, part = total - s.sum;
    const real lost = (s.sum - (total - part)) + (y - part);
    s.sum = total;
    s.error = lost == lost ? lost : 0;
}
/* Of terms from .. end - 1, which term(i) hands out. */
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
/* Is this the last of so many blocks to be done? Then it sees what the others have written: who counts has
 * a fence before and behind, and barriers hand on to it, and from it, what the block has done. The counter
 * is one of counters_of, and 0 again when all are done. All threads of the block must call. */
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
