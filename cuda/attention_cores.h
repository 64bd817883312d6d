/* attention_cores.h - tiles of ragged attention on tensor cores: their layout in shared memory, their
 * products and the numbers that are not finite. Float only.
 *
 * Tensor cores multiply TF32 numbers, of 11 bits. EXACT: a number is split into a high and a low half, and
 * three products of halves replace each product, which is as exact as fp32. Otherwise the numbers in shared
 * memory are rounded to TF32.
 *
 * A warp computes 16 rows of a product. The thread with lane 4 group + part has, of each eight columns, rows
 * group and group + 8 of columns 2 part and 2 part + 1 (ptx.h). The next product uses these results as its
 * left operand in place: the order of its terms is free, so columns 2 part and 2 part + 1 become terms part
 * and part + 4 of the tensor core. */
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
typedef float line[LINE];
/* The kernel with or without dropout, and as exact as the context requires. */
#define WHICH_CORES(d, kernel)                                                                            \
    ((d)->precision == WEFT_FP32 ? (a->below ? kernel<true, true> : kernel<false, true>) :                 \
                                   (a->below ? kernel<true, false> : kernel<false, false>))
typedef struct lane { int warp, group, part; } lane;
__device__ static inline lane this_lane()
{
    return lane{ (int)threadIdx.x / 32, (int)threadIdx.x % 32 / 4, (int)threadIdx.x % 4 };
}

/* Returns the number that is stored for x: itself, or x rounded to TF32. */
template <bool EXACT> __device__ static inline float stored(float x)
{
    return EXACT ? operand(x) : __uint_as_float(to_tf32(operand(x)));
}
/* Is a stored number infinite in TF32, or NaN? */
__device__ static inline bool is_odd(float x)   { return (to_tf32(x) & 0x7F800000u) == 0x7F800000u; }
/* Splits a stored number. ODD: it may be infinite. Then its low half is 0, so that a score is infinite. */
template <bool EXACT, bool ODD> __device__ static inline void split(float x, uint32_t &high, uint32_t &low)
{
    high = EXACT ? to_tf32(x) : __float_as_uint(x);
    const float rest = x - __uint_as_float(high);
    low = !EXACT || (ODD && isinf(__uint_as_float(high))) ? 0 : __float_as_uint(rest);
}

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
/* Copies the first n rows, a multiple of 32, and TILE columns of x, with zeros where x has none, except
 * columns that no product reads. Returns true if a number of this thread is not finite. */
template <bool EXACT> __device__ static inline bool bring(line *to, int n, const rows &x)
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
            const float4 y = { stored<EXACT>(x.factor * v[k].x), stored<EXACT>(x.factor * v[k].y),
                               stored<EXACT>(x.factor * v[k].z), stored<EXACT>(x.factor * v[k].w) };
            *(float4 *)&to[row + k * PASS][column] = y;
            odd |= is_odd(y.x) || is_odd(y.y) || is_odd(y.z) || is_odd(y.w);
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
/* Two products run side by side, because each waits for the one before it. The products with a low half are
 * small and have a sum of their own. */
enum { PAIR = 2 };
typedef struct pair { float high[PAIR][4], small[PAIR][4]; } pair;
template <bool EXACT, bool ODD>
__device__ static inline void add_pair(const uint32_t (&high)[4], const uint32_t (&low)[4],
                                       const float (&b)[PAIR][2], pair &p)
{
    UNROLLED for (int i = 0; i < PAIR; i++) {
        uint32_t b_high[2], b_low[2];
        UNROLLED for (int j = 0; j < 2; j++)
            split<EXACT, ODD>(b[i][j], b_high[j], b_low[j]);
        if (EXACT)
            mma_tf32(p.small[i], low, b_high);
        mma_tf32(p.high[i], high, b_high);
        if (EXACT)
            mma_tf32(p.small[i], high, b_low);
    }
}
template <bool EXACT> __device__ static inline void add_part(const pair &p, int i, float (&sum)[4])
{
    UNROLLED for (int j = 0; j < 4; j++)
        sum[j] += EXACT ? p.small[i][j] + p.high[i][j] : p.high[i][j];
}
/* Adds a b^T over `columns` columns to sum: 16 rows of a, from the warp's first on, and 8 N rows of b. */
template <bool EXACT, int N>
__device__ static inline void add_dots(const line *a, const line *b, int columns, const lane &me,
                                       float (&sum)[N][4])
{
    const float *of_a = &a[me.group][me.part], *of_b = &b[me.group][me.part];
    ROLLED for (int from = 0; from < columns; from += CHUNK) {
        uint32_t high[STEPS][4], low[STEPS][4];
        UNROLLED for (int s = 0; s < STEPS; s++)
            UNROLLED for (int j = 0; j < 4; j++)
                split<EXACT, true>(of_a[from + 8 * s + j % 2 * 8 * LINE + j / 2 * 4], high[s][j], low[s][j]);
        UNROLLED for (int n = 0; n < N; n += PAIR) {
            pair p = {};
            UNROLLED for (int s = 0; s < STEPS; s++) {
                float y[PAIR][2];
                UNROLLED for (int i = 0; i < 2 * PAIR; i++)
                    y[i / 2][i % 2] = of_b[8 * (n + i / 2) * LINE + from + 8 * s + i % 2 * 4];
                add_pair<EXACT, true>(high[s], low[s], y, p);
            }
            UNROLLED for (int i = 0; i < PAIR; i++)
                add_part<EXACT>(p, i, sum[n + i]);
        }
    }
}
/* Adds x b to sum, for `columns` columns of b from `b` on, in steps of two tiles of eight: x is 16 rows by 32
 * terms, b has as many rows. A thread's terms of eight are neighbours. */
template <bool EXACT, int N>
__device__ static inline void add_terms(const float (&x)[FOLDED][4], const float *b, int columns,
                                        const lane &me, float (&sum)[N][4])
{
    const float *p = b + 2 * me.part * LINE + me.group;
    uint32_t high[FOLDED][4], low[FOLDED][4];
    UNROLLED for (int k = 0; k < 4 * FOLDED; k++)
        split<EXACT, false>(x[k / 4][k % 4], high[k / 4][k % 4], low[k / 4][k % 4]);
    UNROLLED for (int c = 0; c < N; c += PAIR) {
        pair sums = {};
        if (8 * c >= columns)
            break;
        UNROLLED for (int k = 0; k < FOLDED; k++) {
            float y[PAIR][2];
            UNROLLED for (int i = 0; i < 2 * PAIR; i++)
                y[i / 2][i % 2] = p[(8 * k + i % 2) * LINE + 8 * (c + i / 2)];
            add_pair<EXACT, false>(high[k], low[k], y, sums);
        }
        UNROLLED for (int i = 0; i < PAIR; i++)
            add_part<EXACT>(sums, i, sum[c + i]);
    }
}
/* The same; w: results of 16 rows, as they are stored. */
template <bool EXACT>
__device__ static inline void add_products(const float (&w)[FOLDED][4], const line *b, int columns,
                                           const lane &me, float (&sum)[WIDE][4])
{
    float x[FOLDED][4];
    UNROLLED for (int k = 0; k < FOLDED; k++)
        UNROLLED for (int j = 0; j < 4; j++)
            x[k][j] = w[k][j % 2 * 2 + j / 2];
    add_terms<EXACT>(x, b[0], columns, me, sum);
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
            if (is_odd(operand(v))) {
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
