/* attention_tile.h - a tile of ragged attention in fp32: its products, what dropout makes of its weights, and
 * sums over the threads of one row. Included by attention.cu. */
#ifndef WEFT_CUDA_ATTENTION_TILE_H
#define WEFT_CUDA_ATTENTION_TILE_H
#include "cuda/attention.h"
#include "cuda/ptx.h"

enum {
    /* SIDE x SIDE threads, each with EACH x EACH numbers of a tile */
    SIDE = 16, EACH = TILE / SIDE, DEPTH = 32    /* of a head's width, at a time */
};
/* Two blocks on a multiprocessor at least, which is 128 registers; for sm_120 that would be a few too few
 * in memory. */
#define TILED __launch_bounds__(SIDE * SIDE, ARCH >= 120 ? 1 : 2)
typedef struct __align__(16) few { real x[EACH]; } few;          /* neighbours, read at once */
/* of a block, in shared memory; + 1: no two threads of a row in one bank */
typedef struct room {
    union {
        struct { few a[DEPTH][SIDE + 1]; real b[TILE][DEPTH + 1]; } deep;    /* a is turned */
        few weight[TILE][SIDE + 1];              /* turned */
    };
    union {
        real value[TILE][TILE];
        uint64_t gone[TILE];                     /* of each query of a tile */
    };
} room;

/* Of a tile, a thread has rows row_of(0) .., which are neighbours, in columns column_of(0) .., which its
 * neighbours' lie between. */
__device__ static inline int down()           { return (int)threadIdx.x / SIDE; }
__device__ static inline int across()         { return (int)threadIdx.x % SIDE; }
__device__ static inline int row_of(int i)    { return down() * EACH + i; }
__device__ static inline int column_of(int j) { return across() + j * SIDE; }

/* ---- products of tiles ---- */
__device__ static inline real number(const rows &x, int row, int64_t column)
{
    return row < x.n && column < x.width ? x.factor * x.at[row * x.step + column] : 0;
}
/* Eight columns of four rows are a warp's: 32 banks on the way in. */
__device__ static void load_turned(few (*to)[SIDE + 1], const rows &x, int64_t column)
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
/* sum = a b^T: rows of a down, rows of b across. The terms are added in their order, whichever tile they
 * are in. */
__device__ static void dots(room &m, const rows &a, const rows &b, real (&sum)[EACH][EACH])
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
            const few x = m.deep.a[e][down()];
            for (int j = 0; j < EACH; j++) {
                const real y = m.deep.b[column_of(j)][e];
                for (int i = 0; i < EACH; i++)
                    sum[i][j] += x.x[i] * y;
            }
        }
    }
}
/* `all`: every row has something to do with all n rows of v; else v is not looked at where the weight is
 * 0, for it may be anything. */
template <bool all>
__device__ static void add_rows(const room &m, int n, real (&sum)[EACH][EACH])
{
    for (int k = 0; k < n; k++) {
        const few weight = m.weight[k][down()];
        for (int j = 0; j < EACH; j++) {
            const real v = m.value[k][column_of(j)];
            for (int i = 0; i < EACH; i++)
                sum[i][j] = all || weight.x[i] != 0 ? sum[i][j] + weight.x[i] * v : sum[i][j];
        }
    }
}
/* sum += w v for the first columns of v. */
__device__ static void add_products(room &m, const real (&w)[EACH][EACH], const rows &v, bool all,
                                    real (&sum)[EACH][EACH])
{
    const int n = v.n < TILE ? (int)v.n : (int)TILE;
    __syncthreads();
    for (int j = 0; j < EACH; j++) {
        few x;
        for (int i = 0; i < EACH; i++)
            x.x[i] = w[i][j];
        m.weight[column_of(j)][down()] = x;
    }
    for (int i = (int)threadIdx.x; i < TILE * TILE; i += SIDE * SIDE)
        m.value[i / TILE][i % TILE] =
            i / TILE < n && i % TILE < v.width ? v.at[i / TILE * v.step + i % TILE] : 0;
    __syncthreads();
    if (all)
        add_rows<true>(m, n, sum);
    else
        add_rows<false>(m, n, sum);
}

/* ---- what queries see, and dropout ---- */
/* Do the queries from there on see all keys of a tile? The first of them sees least. */
__device__ static inline bool sees_all(const weft__attention &a, const tile &t, int64_t query, int64_t key)
{
    return seen_by(a, t, query) >= (key + TILE < t.keys ? key + TILE : t.keys);
}
/* What dropout makes of a thread's weights, or of their gradients, of queries from `query` and keys from
 * `key` on; turned: rows are keys. The marks that a thread wants of a query are one number, for with one each
 * the kernels of the gradients would spill. */
template <bool turned>
__device__ static void drop(room &m, const weft__attention &a, const tile &t, int64_t query, int64_t key,
                            real (&w)[EACH][EACH])
{
    draw<TILE, SIDE * SIDE>(m.gone, a, t, query, key);
    /* keys, and how far their marks are apart */
    const int first = turned ? row_of(0) : column_of(0), next = turned ? 8 : SIDE / 8;
    for (int q = 0; q < EACH; q++) {
        const uint32_t gone =
            (uint32_t)(m.gone[turned ? column_of(q) : row_of(q)] >> (first % 8 * 8 + first / 8));
        for (int k = 0; k < EACH; k++) {
            real &x = turned ? w[k][q] : w[q][k];
            x = gone >> next * k & 1 ? 0 : x * a.kept;
        }
    }
}

/* ---- over the threads that have one row ---- */
__device__ static real row_max(real x)
{
    for (int far = SIDE / 2; far; far /= 2)
        x = larger(__shfl_xor_sync(~0u, x, far), x);
    return x;
}
__device__ static real row_sum(real x)
{
    for (int far = SIDE / 2; far; far /= 2)
        x += __shfl_xor_sync(~0u, x, far);
    return x;
}
#endif
