/* attention_tile.h - a tile of ragged attention: its products, which tile a block has, what is in a sequence,
 * dropout's marks, and sums over the threads of one row. Included by attention.cu. */
#ifndef WEFT_CUDA_ATTENTION_TILE_H
#define WEFT_CUDA_ATTENTION_TILE_H
#include <math.h>
#include "core/shared/attention.h"
#include "cuda/cuda.h"

enum {
    /* SIDE x SIDE threads, each with EACH x EACH numbers of a tile */
    SIDE = 16, EACH = sizeof(real) == 4 ? 4 : 2,
    TILE = SIDE * EACH, DEPTH = 32               /* of a head's width, at a time */
};
/* Two blocks on a multiprocessor at least, which is 128 registers; for sm_120 that would be a few too few
 * in memory. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1200
#define TILED __launch_bounds__(SIDE * SIDE, 1)
#else
#define TILED __launch_bounds__(SIDE * SIDE, 2)
#endif
typedef struct __align__(16) few { real x[EACH]; } few;          /* neighbours, read at once */
/* of a block, in shared memory; + 1: no two threads of a row in one bank */
typedef struct room {
    union {
        struct { few a[DEPTH][SIDE + 1]; real b[TILE][DEPTH + 1]; } deep;    /* a is turned */
        few weight[TILE][SIDE + 1];              /* turned */
    };
    union {
        real value[TILE][TILE];
        /* of each query of a tile: bit j / 8 of byte j % 8 is the tile's key j */
        uint64_t gone[TILE];
    };
} room;
/* up to TILE are looked at; all times factor */
typedef struct rows { const real *at; int64_t step, n, width; real factor; } rows;

/* Of a tile, a thread has rows row_of(0) .., which are neighbours, in columns column_of(0) .., which its
 * neighbours' lie between. */
__device__ static inline int down()           { return (int)threadIdx.x / SIDE; }
__device__ static inline int across()         { return (int)threadIdx.x % SIDE; }
__device__ static inline int row_of(int i)    { return down() * EACH + i; }
__device__ static inline int column_of(int j) { return across() + j * SIDE; }

__device__ static inline rows from(rows x, int64_t row)          /* those from there on */
{
    x.at += row * x.step, x.n -= row;
    return x;
}

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

/* ---- which tile a block has ---- */
/* Every sequence has places for tiles from place_of on, at least as many as it needs and less than one more
 * than that: so which sequence a place belongs to can be found by halving, and no one has to list tiles. */
__device__ static int64_t place_of(const int32_t *offset, int64_t s)
{
    return (offset[s] - offset[0]) / TILE + s;
}
static int64_t places(const weft__ints &offset, int64_t sequences)
{
    return sequences ? (offset.host[sequences] - offset.host[0]) / TILE + sequences : 0;
}
__device__ static int64_t sequence_at(const int32_t *offset, int64_t sequences, int64_t place)
{
    int64_t first = 0, last = sequences - 1;
    while (first < last) {
        int64_t s = (first + last + 1) / 2;
        if (place_of(offset, s) <= place)
            first = s;
        else
            last = s - 1;
    }
    return first;
}

typedef struct tile {
    int64_t q, queries, k, keys;                 /* of the sequence: its first rows, and how many */
    /* of the result's tile: first row, counted in the sequence; column of the head */
    int64_t head, first, column;
} tile;
/* Number i of all tiles with so many heads and pieces of columns; false: the place is empty. */
__device__ static bool find(const weft__attention &a, const int32_t *offset, int64_t heads, int64_t pieces,
                            int64_t i, tile &t)
{
    const int64_t place = i / pieces / heads, s = sequence_at(offset, a.sequences, place);
    t.q = a.q_offset.device[s], t.queries = a.q_offset.device[s + 1] - t.q;
    t.k = a.k_offset.device[s], t.keys = a.k_offset.device[s + 1] - t.k;
    t.head = i / pieces % heads, t.column = i % pieces * TILE, t.first = (place - place_of(offset, s)) * TILE;
    return t.first < offset[s + 1] - offset[s];
}
static int64_t pieces_of(int64_t width) { return width > TILE ? (width + TILE - 1) / TILE : 1; }
static dim3 grid_of(int64_t tiles)      { return dim3((unsigned)(tiles < INT32_MAX ? tiles : INT32_MAX)); }

#define EACH_TILE(a, offset, heads, pieces, tiles, t)                                     \
    tile t;                                                                               \
    for (int64_t tile_ = blockIdx.x; tile_ < (tiles); tile_ += gridDim.x)                 \
        if (find(a, (offset).device, heads, pieces, tile_, t))

/* ---- what is in a sequence: all from row 0 on ---- */
/* times scale, so that scores are sums only */
__device__ static inline rows queries_of(const weft__attention &a, const tile &t)
{
    const int64_t step = a.heads * a.dk;
    return rows{ a.q + t.q * step + t.head * a.dk, step, t.queries, a.dk, a.scale };
}
__device__ static inline rows keys_of(const weft__attention &a, const tile &t)
{
    const int64_t step = a.heads * a.dk;
    return rows{ a.k + t.k * step + t.head * a.dk, step, t.keys, a.dk, 1 };
}
__device__ static inline rows values_of(const weft__attention &a, const tile &t)
{
    const int64_t step = a.shared_values ? a.dv : a.heads * a.dv;
    return rows{ a.v + t.k * step + (a.shared_values ? 0 : t.head * a.dv), step, t.keys, a.dv, 1 };
}
__device__ static inline rows gradients_of(const weft__attention &a, const tile &t)    /* of the results */
{
    const int64_t step = a.heads * a.dv;
    return rows{ a.dy + t.q * step + t.head * a.dv, step, t.queries, a.dv, 1 };
}
__device__ static inline rows columns(rows x, int64_t column)
{
    x.at += column, x.width -= column;
    return x;
}

/* How many keys query i sees: the first ones. */
__device__ static int64_t seen_by(const weft__attention &a, const tile &t, int64_t i)
{
    return i >= t.queries ? 0 : weft__keys_seen(a.causal, i, t.queries, t.keys);
}
/* How many keys the queries of a tile see; the last of them sees most. */
__device__ static int64_t seen_by_tile(const weft__attention &a, const tile &t)
{
    const int64_t last = t.first + TILE - 1;
    return seen_by(a, t, last < t.queries ? last : t.queries - 1);
}
/* Do the queries from there on see all keys of a tile? The first of them sees least. */
__device__ static bool sees_all(const weft__attention &a, const tile &t, int64_t query, int64_t key)
{
    return seen_by(a, t, query) >= (key + TILE < t.keys ? key + TILE : t.keys);
}
__device__ static inline int64_t of_query(const weft__attention &a, const tile &t, int64_t i)
{
    return (t.q + i) * a.heads + t.head;
}

/* ---- dropout ---- *
 * 64 keys of a query are eight counters of philox.h, and a tile lies within 64: so a counter makes a byte of
 * marks, drawn once for all threads, whichever of them has which weight. Kernels without dropout are compiled
 * without all this. */
enum { MARKS = 8 };
#define WHICH(kernel) (a->below ? kernel<true> : kernel<false>)
__device__ static void draw(room &m, const weft__attention &a, const tile &t, int64_t query, int64_t key)
{
    const uint64_t philox = weft__head_key(a.mask_key, t.head);
    /* for heads of width 0: they have not waited since the values were read */
    __syncthreads();
    for (int i = (int)threadIdx.x; i < TILE * MARKS && query + i / MARKS < t.queries; i += SIDE * SIDE) {
        const int64_t q = query + i / MARKS;
        const uint64_t id = (uint64_t)a.id[t.q + q];
        const uint32_t counter[4] = { (uint32_t)(key / 64 * 8 + i % MARKS), (uint32_t)a.position[t.q + q],
                                      (uint32_t)id, (uint32_t)(id >> 32) };
        uint32_t out[4], bits = 0;
        weft__philox(philox, counter, out);
        for (int j = 0; j < 8; j++)
            bits |= (uint32_t)((out[j / 2] >> 16 * (j % 2) & 0xFFFF) < a.below) << j;
        ((uint8_t *)m.gone)[i] = (uint8_t)(bits >> key / 8 % 8);
    }
    __syncthreads();
}
/* What dropout makes of a thread's weights, or of their gradients, of queries from `query` and keys from
 * `key` on; turned: rows are keys. The marks that a thread wants of a query are one number, for with one each
 * the kernels of the gradients would spill. */
template <bool turned>
__device__ static void drop(room &m, const weft__attention &a, const tile &t, int64_t query, int64_t key,
                            real (&w)[EACH][EACH])
{
    draw(m, a, t, query, key);
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
__device__ static inline real larger(real a, real b) { return a > b || isnan(a) ? a : b; }
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
