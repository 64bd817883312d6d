/* attention.h - what all kernels of ragged attention share: which tile a block has, what is in a sequence,
 * dropout's marks. attention.cu multiplies as fp32 does, attention_cores.cu by tensor cores. */
#ifndef WEFT_CUDA_ATTENTION_H
#define WEFT_CUDA_ATTENTION_H
#include <math.h>
#include "core/shared/attention.h"
#include "cuda/cuda.h"

enum { TILE = sizeof(real) == 4 ? 64 : 32 };     /* queries, keys and columns of a tile */

/* Attention and its gradients on tensor cores; forward not the mean of the heads. */
void attend_by_cores(weft__device *, const weft__attention *);
void attend_back_by_cores(weft__device *, const weft__attention *);

/* up to TILE are looked at; all times factor */
typedef struct rows { const real *at; int64_t step, n, width; real factor; } rows;
__device__ static inline rows from(rows x, int64_t row)          /* those from there on */
{
    x.at += row * x.step;
    x.n -= row;
    return x;
}

/* ---- which tile a block has ---- */
/* Every sequence has places for tiles from place_of on, at least as many as it needs and less than one more
 * than that: so which sequence a place belongs to can be found by halving, and no one has to list tiles. */
template <int UNIT> __device__ static inline int64_t place_of(const int32_t *offset, int64_t s)
{
    return (offset[s] - offset[0]) / UNIT + s;
}
template <int UNIT = TILE> static inline int64_t places(const weft__ints &offset, int64_t sequences)
{
    return sequences ? (offset.host[sequences] - offset.host[0]) / UNIT + sequences : 0;
}
template <int UNIT>
__device__ static int64_t sequence_at(const int32_t *offset, int64_t sequences, int64_t place)
{
    int64_t first = 0, last = sequences - 1;
    while (first < last) {
        int64_t s = (first + last + 1) / 2;
        if (place_of<UNIT>(offset, s) <= place)
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
template <int UNIT>
__device__ static bool find(const weft__attention &a, const int32_t *offset, int64_t heads, int64_t pieces,
                            int64_t i, tile &t)
{
    const int64_t place = i / pieces / heads, s = sequence_at<UNIT>(offset, a.sequences, place);
    t.q = a.q_offset.device[s];
    t.queries = a.q_offset.device[s + 1] - t.q;
    t.k = a.k_offset.device[s];
    t.keys = a.k_offset.device[s + 1] - t.k;
    t.head = i / pieces % heads;
    t.column = i % pieces * TILE;
    t.first = (place - place_of<UNIT>(offset, s)) * UNIT;
    return t.first < offset[s + 1] - offset[s];
}
static inline int64_t pieces_of(int64_t width) { return width > TILE ? (width + TILE - 1) / TILE : 1; }
static inline dim3 grid_of(int64_t tiles) { return dim3((unsigned)(tiles < INT32_MAX ? tiles : INT32_MAX)); }

#define EACH_TILE(a, offset, heads, pieces, tiles, t) EACH_RUN(TILE, a, offset, heads, pieces, tiles, t)
/* of `unit` rows each, which is a multiple of TILE */
#define EACH_RUN(unit, a, offset, heads, pieces, tiles, t)                \
    tile t;                                                               \
    for (int64_t tile_ = blockIdx.x; tile_ < (tiles); tile_ += gridDim.x) \
        if (find<unit>(a, (offset).device, heads, pieces, tile_, t))

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
    x.at += column;
    x.width -= column;
    return x;
}

/* How many keys query i sees: the first ones. */
__device__ static inline int64_t seen_by(const weft__attention &a, const tile &t, int64_t i)
{
    return i >= t.queries ? 0 : weft__keys_seen(a.causal, i, t.queries, t.keys);
}
/* How many keys the queries of a tile see; the last of them sees most. */
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
 * 64 keys of a query are eight counters of philox.h, and a tile lies within 64: so a counter makes a byte of
 * marks, drawn once for all threads, whichever of them has which weight: of each query, bit j / 8 of byte j %
 * 8 is the tile's key j. Kernels without dropout are compiled without all this. */
enum { MARKS = 8 };
#define WHICH(kernel) (a->below ? kernel<true> : kernel<false>)
/* of so many queries from `query` on, by a block of so many threads */
template <int QUERIES, int WIDE>
__device__ static inline void draw(uint64_t *gone, const weft__attention &a, const tile &t, int64_t query,
                                   int64_t key)
{
    const uint64_t philox = weft__head_key(a.mask_key, t.head);
    /* for heads of width 0: they have not waited since the values were read */
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
        ((uint8_t *)gone)[i] = (uint8_t)(bits >> key / 8 % 8);
    }
    __syncthreads();
}

/* The largest score of a query so far, and the sum of exp(score - most). */
typedef struct running { real most, sum; } running;
/* Returns the logarithm of the sum of exp(score). If all scores are -inf it is NaN. */
__device__ static inline real log_of(const running &r, int64_t seen)
{
    if (!seen)
        return -(real)INFINITY;
    return r.sum == 0 ? r.sum / r.sum : r.most + log(r.sum);
}
__device__ static inline real larger(real a, real b) { return a > b || isnan(a) ? a : b; }
#endif
