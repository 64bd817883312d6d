/* attention.h - shared parts of the attention kernels: which tile a block computes, rows of a sequence,
 * dropout. attention.cu multiplies in fp32, attention_cores.cu on tensor cores. */
#ifndef WEFT_CUDA_ATTENTION_H
#define WEFT_CUDA_ATTENTION_H
#include <math.h>
#include "core/shared/attention.h"
#include "cuda/cuda.h"

enum { TILE = sizeof(real) == 4 ? 64 : 32 };     /* queries, keys and columns of a tile */

/* Attention and its gradients on tensor cores. attend_by_cores does not compute the mean over heads. */
void attend_by_cores(weft__device *, const weft__attention *);
void attend_back_by_cores(weft__device *, const weft__attention *);

/* a matrix whose elements are multiplied by factor; a tile reads at most TILE rows */
typedef struct rows { const real *data; int64_t step, n, width; real factor; } rows;
__device__ static inline rows from(rows x, int64_t row)          /* from `row` on */
{
    x.data += row * x.step;
    x.n -= row;
    return x;
}

/* ---- tiles of blocks ---- */
/* Sequence s has slots for tiles from slot_of(s) on: the number that it needs, or one more. So a bisection
 * finds the sequence of a slot, and no list of tiles is needed. */
template <int UNIT> __device__ static inline int64_t slot_of(const int32_t *offset, int64_t s)
{
    return (offset[s] - offset[0]) / UNIT + s;
}
template <int UNIT = TILE> static inline int64_t slots(const weft__ints &offset, int64_t sequences)
{
    return sequences ? (offset.host[sequences] - offset.host[0]) / UNIT + sequences : 0;
}
template <int UNIT>
__device__ static int64_t sequence_at(const int32_t *offset, int64_t sequences, int64_t slot)
{
    int64_t first = 0, last = sequences - 1;
    while (first < last) {
        int64_t s = (first + last + 1) / 2;
        if (slot_of<UNIT>(offset, s) <= slot)
            first = s;
        else
            last = s - 1;
    }
    return first;
}

typedef struct tile {
    int64_t q, queries, k, keys;                 /* the sequence's first rows and lengths */
    /* of the result: head, first row within the sequence, first column within the head */
    int64_t head, first, column;
} tile;
/* Finds tile i of all sequences, heads and pieces of columns. Returns false if the slot is empty. */
template <int UNIT>
__device__ static bool find(const weft__attention &a, const int32_t *offset, int64_t heads, int64_t pieces,
                            int64_t i, tile &t)
{
    const int64_t slot = i / pieces / heads, s = sequence_at<UNIT>(offset, a.sequences, slot);
    t.q = a.q_offset.device[s];
    t.queries = a.q_offset.device[s + 1] - t.q;
    t.k = a.k_offset.device[s];
    t.keys = a.k_offset.device[s + 1] - t.k;
    t.head = i / pieces % heads;
    t.column = i % pieces * TILE;
    t.first = (slot - slot_of<UNIT>(offset, s)) * UNIT;
    return t.first < offset[s + 1] - offset[s];
}
static inline int64_t pieces_of(int64_t width) { return width > TILE ? (width + TILE - 1) / TILE : 1; }
static inline dim3 grid_of(int64_t tiles) { return dim3((unsigned)(tiles < INT32_MAX ? tiles : INT32_MAX)); }

#define EACH_TILE(a, offset, heads, pieces, tiles, t) EACH_RUN(TILE, a, offset, heads, pieces, tiles, t)
/* Tiles of `unit` rows; unit is a multiple of TILE. */
#define EACH_RUN(unit, a, offset, heads, pieces, tiles, t)                \
    tile t;                                                               \
    for (int64_t tile_ = blockIdx.x; tile_ < (tiles); tile_ += gridDim.x) \
        if (find<unit>(a, (offset).device, heads, pieces, tile_, t))

/* ---- rows of a sequence ---- */
/* multiplied by scale, so that scores are plain sums */
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
    x.data += column;
    x.width -= column;
    return x;
}

/* Returns how many keys query i sees. It sees the first ones. */
__device__ static inline int64_t seen_by(const weft__attention &a, const tile &t, int64_t i)
{
    return i >= t.queries ? 0 : weft__keys_seen(a.causal, i, t.queries, t.keys);
}
/* Returns how many keys a tile's queries see. The last query sees most. */
__device__ static inline int64_t seen_by_tile(const weft__attention &a, const tile &t)
{
    const int64_t last = t.first + TILE - 1;
    return seen_by(a, t, last < t.queries ? last : t.queries - 1);
}
__device__ static inline int64_t of_query(const weft__attention &a, const tile &t, int64_t i)
{
    return (t.q + i) * a.heads + t.head;
}

/* ---- dropout ---- *
 * One Philox counter (philox.h) gives the marks of 8 keys, so 64 keys of a query take 8 counters. A tile
 * never crosses a multiple of 64 keys. The block draws a tile's marks once, for all its threads: bit j / 8 of
 * a query's byte j % 8 is key j of the tile. Kernels without dropout compile without this code. */
enum { MARKS = 8 };
#define WHICH(kernel) (a->below ? kernel<true> : kernel<false>)
/* For QUERIES queries from `query` on, by a block of WIDE threads. */
template <int QUERIES, int WIDE>
__device__ static inline void draw(uint64_t *dropped, const weft__attention &a, const tile &t, int64_t query,
                                   int64_t key)
{
    const uint64_t philox = weft__head_key(a.mask_key, t.head);
    /* needed for heads of width 0, which have had no barrier since the values were read */
    __syncthreads();
    for (int i = (int)threadIdx.x; i < QUERIES * MARKS && query + i / MARKS < t.queries; i += WIDE) {
        const int64_t q = query + i / MARKS;
        const uint64_t id = (uint64_t)a.id[t.q + q];
        const uint32_t counter[4] = { (uint32_t)(key / 64 * 8 + i % MARKS), (uint32_t)a.position[t.q + q],
                                      (uint32_t)id, (uint32_t)(id >> 32) };
        uint32_t out[4], bits = 0;
        weft__philox(philox, counter, out);
        for (int j = 0; j < 8; j++)
            bits |= (uint32_t)((out[j / 2] >> 16 * (j % 2) & 0xFFFF) < a.below) << j;
        ((uint8_t *)dropped)[i] = (uint8_t)(bits >> key / 8 % 8);
    }
    __syncthreads();
}

/* Sums x [rows, heads, dv] over heads, in order: y is their mean, or their sum is added to y. */
template <bool mean>
static __global__ void sum_heads(weft__attention a, const real *x, int64_t first, int64_t rows, real *y)
{
    for (int64_t i = first * a.dv + first_index(); i < (first + rows) * a.dv; i += index_step()) {
        const int64_t row = i / a.dv, c = i % a.dv;
        real sum = 0;
        for (int64_t h = 0; h < a.heads; h++)
            sum += x[(row * a.heads + h) * a.dv + c];
        y[i] = mean ? sum / (real)a.heads : y[i] + sum;
    }
}

/* The largest score of a query so far, and the sum of exp(score - max). */
typedef struct running { real largest, sum; } running;
/* Returns the logarithm of the sum of exp(score), NaN if all scores are -inf. */
__device__ static inline real log_of(const running &r, int64_t seen)
{
    if (!seen)
        return -(real)INFINITY;
    return r.sum == 0 ? r.sum / r.sum : r.largest + log(r.sum);
}
__device__ static inline real larger(real a, real b) { return a > b || isnan(a) ? a : b; }
#endif
