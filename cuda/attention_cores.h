/* attention_cores.h - tiles of ragged attention for tensor cores: how they lie in shared memory, their
 * products in TF32, and what becomes of numbers that are not finite. Float only.
 *
 * A warp has 16 rows of a product, and a thread of it, lane 4 group + part, what ptx.h says of results: of
 * each eight columns rows group and group + 8, columns 2 part and 2 part + 1. A product that follows takes
 * such results as its left operand, as they are: which of its terms is called which is free, so columns
 * 2 part and 2 part + 1 are terms part and part + 4 of the tensor core. */
#ifndef WEFT_ATTENTION_CORES_H
#define WEFT_ATTENTION_CORES_H
#include "cuda/attention.h"
#include "cuda/ptx.h"

enum {
    CORES = 128,                                 /* threads of a block: four warps */
    WIDE = TILE / 8,                             /* a tile's width in results of a warp */
    STEPS = 2, CHUNK = 8 * STEPS                 /* of a head's columns, at a time; folded, too */
};
/* of a tile in shared memory; + 4: what a warp reads lies in 32 banks, along rows and down columns */
enum { LINE = TILE + 4 };
typedef uint32_t line[LINE];
typedef struct __align__(16) four { uint32_t x[4]; } four;
typedef struct lane { int warp, group, part; } lane;
__device__ static inline lane this_lane()
{
    return lane{ (int)threadIdx.x / 32, (int)threadIdx.x % 32 / 4, (int)threadIdx.x % 4 };
}

/* As a tensor core takes it. */
__device__ static inline uint32_t as_taken(float x) { return to_tf32(operand(x)); }
__device__ static inline float rounded(float x)     { return __uint_as_float(as_taken(x)); }
/* not finite */
__device__ static inline bool is_odd(uint32_t x)   { return (x & 0x7F800000u) == 0x7F800000u; }

/* ---- into shared memory ---- */
__device__ static inline int least_of(int64_t n, int limit) { return n < limit ? n < 0 ? 0 : (int)n : limit; }
__device__ static inline float4 four_of(const rows &x, int row, int column, bool whole)
{
    const float *from = x.at + row * x.step + column;
    float4 v = { 0, 0, 0, 0 };
    if (row >= x.n || column >= x.width)
        return v;
    if (whole)
        return *(const float4 *)from;
    v.x = from[0];
    v.y = column + 1 < x.width ? from[1] : 0;
    v.z = column + 2 < x.width ? from[2] : 0;
    v.w = column + 3 < x.width ? from[3] : 0;
    return v;
}
/* The first n rows, a multiple of 32, and TILE columns of x, zeros where it has none; columns that no product
 * looks at are left out. Is a number of this thread's not finite? */
__device__ static inline bool bring(line *to, int n, const rows &x)
{
    /* threads of a row, rows at once, loads at once */
    enum { ONE = TILE / 4, PASS = CORES / ONE, AT_ONCE = 4 };
    const bool whole = !(((uint64_t)(uintptr_t)x.at / sizeof(float) | (uint64_t)(x.step | x.width)) & 3);
    const int column = (int)threadIdx.x % ONE * 4;
    bool odd = false;
    if (column >= (x.width + CHUNK - 1) / CHUNK * CHUNK)
        return false;
    ROLLED for (int row = (int)threadIdx.x / ONE; row < n; row += AT_ONCE * PASS) {
        float4 v[AT_ONCE];
        UNROLLED for (int k = 0; k < AT_ONCE; k++)
            v[k] = four_of(x, row + k * PASS, column, whole);
        UNROLLED for (int k = 0; k < AT_ONCE; k++) {
            const four y = { { as_taken(x.factor * v[k].x), as_taken(x.factor * v[k].y),
                               as_taken(x.factor * v[k].z), as_taken(x.factor * v[k].w) } };
            *(four *)&to[row + k * PASS][column] = y;
            odd |= is_odd(y.x[0]) || is_odd(y.x[1]) || is_odd(y.x[2]) || is_odd(y.x[3]);
        }
    }
    return odd;
}

/* ---- products ---- */
__device__ static inline void add_part(const float (&part)[4], float (&sum)[4])
{
    UNROLLED for (int i = 0; i < 4; i++)
        sum[i] += part[i];
}
/* sum += a b^T over so many columns: 16 rows of a, from the warp's on, and 8 N of b. */
template <int N>
__device__ static inline void add_dots(const line *a, const line *b, int columns, const lane &me,
                                       float (&sum)[N][4])
{
    const uint32_t *of_a = &a[me.group][me.part], *of_b = &b[me.group][me.part];
    ROLLED for (int from = 0; from < columns; from += CHUNK) {
        uint32_t x[STEPS][4];
        UNROLLED for (int s = 0; s < STEPS; s++) {
            const uint32_t *p = of_a + from + 8 * s, *q = p + 8 * LINE;
            x[s][0] = p[0];
            x[s][1] = q[0];
            x[s][2] = p[4];
            x[s][3] = q[4];
        }
        UNROLLED for (int n = 0; n < N; n++) {
            float part[4] = { 0, 0, 0, 0 };
            UNROLLED for (int s = 0; s < STEPS; s++) {
                const uint32_t *p = of_b + 8 * n * LINE + from + 8 * s, y[2] = { p[0], p[4] };
                mma_tf32(part, x[s], y);
            }
            add_part(part, sum[n]);
        }
    }
}
/* sum += x b for so many columns of b, from `b` on, two tiles of eight at a time: x is 16 rows by 32 terms,
 * b as many rows. A thread's terms of eight are neighbours. */
template <int N>
__device__ static inline void add_terms(const uint32_t (&x)[FOLDED][4], const uint32_t *b, int columns,
                                        const lane &me, float (&sum)[N][4])
{
    const uint32_t *p = b + 2 * me.part * LINE + me.group;
    UNROLLED for (int c = 0; c < N; c += 2) {
        if (8 * c >= columns)
            break;
        UNROLLED for (int d = c; d < c + 2; d++) {
            float part[4] = { 0, 0, 0, 0 };
            UNROLLED for (int k = 0; k < FOLDED; k++) {
                const uint32_t y[2] = { p[8 * k * LINE + 8 * d], p[(8 * k + 1) * LINE + 8 * d] };
                mma_tf32(part, x[k], y);
            }
            add_part(part, sum[d]);
        }
    }
}
/* ... w is rounded results of 16 rows. */
__device__ static inline void add_products(const float (&w)[FOLDED][4], const line *b, int columns,
                                           const lane &me, float (&sum)[WIDE][4])
{
    uint32_t x[FOLDED][4];
    UNROLLED for (int k = 0; k < FOLDED; k++) {
        x[k][0] = __float_as_uint(w[k][0]);
        x[k][1] = __float_as_uint(w[k][2]);
        x[k][2] = __float_as_uint(w[k][1]);
        x[k][3] = __float_as_uint(w[k][3]);
    }
    add_terms(x, b[0], columns, me, sum);
}

/* ---- what is not finite ---- *
 * 0 times it is NaN, but a query may not know of a key that it does not see. So where such numbers are, they
 * become zeros for the tensor cores, and what they add is added apart, if the weight is not 0. A query has
 * the same bits, whether a key that it does not see is finite or not. */
__device__ static inline void clean(line *x, int n, int64_t width)
{
    const int column = (int)threadIdx.x % TILE;
    if (column < width)
        for (int row = (int)threadIdx.x / TILE; row < n; row += CORES / TILE)
            x[row][column] = is_odd(x[row][column]) ? 0 : x[row][column];
}
/* The terms of b's first n rows that were taken for 0. w: the weight of the thread's first row and of term 0
 * in shared memory; from there to the next row, and to the next term. Columns from `first` on. */
template <int N>
__device__ static inline void add_odd(const rows &b, int n, const float *w, int row, int term, int first,
                                      float (&sum)[N][4])
{
    for (int k = 0; k < n; k++) {
        const float above = w[k * term], below = w[8 * row + k * term];
        UNROLLED for (int j = 0; j < 2 * N; j++) {
            const int c = first + j / 2 * 8 + (int)threadIdx.x % 4 * 2 + j % 2;
            const float v = k < b.n && c < b.width ? b.factor * b.at[k * b.step + c] : 0;
            if (is_odd(as_taken(v))) {
                sum[j / 2][j % 2] += above != 0 ? above * v : 0;
                sum[j / 2][2 + j % 2] += below != 0 ? below * v : 0;
            }
        }
    }
}
/* Has any thread of the block such a number? A mark of its own for each question, from 1 on, so that nobody
 * has to take one back; there is a barrier between them. */
__device__ static inline void mark_if(unsigned *cell, unsigned mark, bool odd)
{
    if (odd)
        atomicExch(cell, mark);
}

#endif
