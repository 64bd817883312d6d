/* attention_tile.h - a tile of ragged attention in fp32 or double: products, dropout, and reductions over the
 * threads of a row. Included by attention.cu. */
#ifndef WEFT_CUDA_ATTENTION_TILE_H
#define WEFT_CUDA_ATTENTION_TILE_H
#include "cuda/attention.h"
#include "cuda/ptx.h"

enum {
    /* SIDE x SIDE threads compute EACH x EACH elements each */
    SIDE = 16, EACH = TILE / SIDE, DEPTH = 32    /* columns of a head per step */
};
/* At least two blocks per multiprocessor, so at most 128 registers per thread. On sm_120 this would spill a
 * few registers. */
#define TILED __launch_bounds__(SIDE * SIDE, ARCH >= 120 ? 1 : 2)
typedef struct __align__(16) vec { real x[EACH]; } vec; /* consecutive numbers, read by one instruction */
/* A block's shared memory. The + 1 avoids bank conflicts between the threads of a row. */
typedef struct smem {
    union {
        struct { vec a[DEPTH][SIDE + 1]; real b[TILE][DEPTH + 1]; } deep;    /* a is transposed */
        vec weight[TILE][SIDE + 1];              /* transposed */
    };
    union {
        real value[TILE][TILE];
        uint64_t dropped[TILE];                  /* one entry per query of the tile */
    };
} smem;

/* A thread has EACH consecutive rows of a tile, and EACH columns that are SIDE apart. */
__device__ static inline int thread_row()           { return (int)threadIdx.x / SIDE; }
__device__ static inline int thread_column()         { return (int)threadIdx.x % SIDE; }
__device__ static inline int row_of(int i)    { return thread_row() * EACH + i; }
__device__ static inline int column_of(int j) { return thread_column() + j * SIDE; }

/* ---- products of tiles ---- */
__device__ static inline real number(const rows &x, int row, int64_t column)
{
    return row < x.n && column < x.width ? x.factor * x.data[row * x.step + column] : 0;
}
/* A warp reads eight columns of four rows, so that its stores hit 32 different banks. */
__device__ static void load_turned(vec (*to)[SIDE + 1], const rows &x, int64_t column)
{
    for (int i = (int)threadIdx.x; i < TILE * DEPTH; i += SIDE * SIDE) {
        const int r = i / (4 * DEPTH) * 4 + i / 8 % 4, c = i / 32 * 8 % DEPTH + i % 8;
        to[c][r / EACH].x[r % EACH] = number(x, r, column + c);
    }
}
__device__ static void load(real (*to)[DEPTH + 1], const rows &x, int64_t column)
{
    for (int i = (int)threadIdx.x; i < TILE * DEPTH; i += SIDE * SIDE)
        to[i / DEPTH][i % DEPTH] = number(x, i / DEPTH, column + i % DEPTH);
}
/* Computes sum = a b^T. Terms are added in order, across tiles too, so the tiling does not change bits. */
__device__ static void dots(smem &m, const rows &a, const rows &b, real (&sum)[EACH][EACH])
{
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < EACH; j++)
            sum[i][j] = 0;
    for (int64_t column = 0; column < a.width; column += DEPTH) {
        const int n = a.width - column < DEPTH ? (int)(a.width - column) : (int)DEPTH;
        __syncthreads();
        load_turned(m.deep.a, a, column);
        load(m.deep.b, b, column);
        __syncthreads();
        for (int e = 0; e < n; e++) {
            const vec x = m.deep.a[e][thread_row()];
            for (int j = 0; j < EACH; j++) {
                const real y = m.deep.b[column_of(j)][e];
                for (int i = 0; i < EACH; i++)
                    sum[i][j] += x.x[i] * y;
            }
        }
    }
}
/* all: all rows use all n rows of v. Otherwise v is skipped where the weight is 0, because it may be NaN or
 * infinite. */
template <bool all>
__device__ static void add_rows(const smem &m, int n, real (&sum)[EACH][EACH])
{
    for (int k = 0; k < n; k++) {
        const vec weight = m.weight[k][thread_row()];
        for (int j = 0; j < EACH; j++) {
            const real v = m.value[k][column_of(j)];
            for (int i = 0; i < EACH; i++)
                sum[i][j] = all || weight.x[i] != 0 ? sum[i][j] + weight.x[i] * v : sum[i][j];
        }
    }
}
/* Computes sum += w v for the first TILE columns of v. */
__device__ static void add_products(smem &m, const real (&w)[EACH][EACH], const rows &v, bool all,
                                    real (&sum)[EACH][EACH])
{
    const int n = v.n < TILE ? (int)v.n : (int)TILE;
    __syncthreads();
    for (int j = 0; j < EACH; j++) {
        vec x;
        for (int i = 0; i < EACH; i++)
            x.x[i] = w[i][j];
        m.weight[column_of(j)][thread_row()] = x;
    }
    for (int i = (int)threadIdx.x; i < TILE * TILE; i += SIDE * SIDE)
        m.value[i / TILE][i % TILE] =
            i / TILE < n && i % TILE < v.width ? v.data[i / TILE * v.step + i % TILE] : 0;
    __syncthreads();
    if (all)
        add_rows<true>(m, n, sum);
    else
        add_rows<false>(m, n, sum);
}

/* ---- visible keys, and dropout ---- */
/* Returns true if all queries from `query` on see all keys of the tile. The first query sees fewest. */
__device__ static inline bool sees_all(const weft__attention &a, const tile &t, int64_t query, int64_t key)
{
    return seen_by(a, t, query) >= (key + TILE < t.keys ? key + TILE : t.keys);
}
/* Applies dropout to a thread's weights, or to their gradients, for queries from `query` on and keys from
 * `key` on. turned: rows are keys. A query's marks stay in one integer; separate variables would make the
 * gradient kernels spill. */
template <bool turned>
__device__ static void drop(smem &m, const weft__attention &a, const tile &t, int64_t query, int64_t key,
                            real (&w)[EACH][EACH])
{
    draw<TILE, SIDE * SIDE>(m.dropped, a, t, query, key);
    /* first key, and distance between the thread's keys in marks */
    const int first = turned ? row_of(0) : column_of(0), next = turned ? 8 : SIDE / 8;
    for (int q = 0; q < EACH; q++) {
        const uint32_t dropped =
            (uint32_t)(m.dropped[turned ? column_of(q) : row_of(q)] >> (first % 8 * 8 + first / 8));
        for (int k = 0; k < EACH; k++) {
            real &x = turned ? w[k][q] : w[q][k];
            x = dropped >> next * k & 1 ? 0 : x * a.kept;
        }
    }
}

/* ---- reductions over the threads of one row ---- */
__device__ static real row_max(real x)
{
    for (int distance = SIDE / 2; distance; distance /= 2)
        x = larger(__shfl_xor_sync(~0u, x, distance), x);
    return x;
}
__device__ static real row_sum(real x)
{
    for (int distance = SIDE / 2; distance; distance /= 2)
        x += __shfl_xor_sync(~0u, x, distance);
    return x;
}
#endif
