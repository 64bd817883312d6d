/* attention_cores.h - tiles of ragged attention on tensor cores: layout in shared memory, products, and
 * handling of numbers that are not finite. Float only.
 *
 * Tensor cores multiply TF32 numbers, with 11 significant bits. EXACT splits a number into a high and a low
 * half and computes three products of halves, which is as exact as fp32. Otherwise the numbers in shared
 * memory are rounded to TF32.
 *
 * A warp computes 16 rows of a product. In each eight columns, the thread of lane 4 group + part has rows
 * group and group + 8 of columns 2 part and 2 part + 1 (ptx.h). The next product uses these results in place
 * as its left operand. The order of its terms is free, so columns 2 part and 2 part + 1 become terms part and
 * part + 4 of the tensor core. */
#ifndef WEFT_ATTENTION_CORES_H
#define WEFT_ATTENTION_CORES_H
#include "cuda/attention.h"
#include "cuda/ptx.h"

enum {
    CORES = 128,                                 /* threads of a block: four warps */
    WIDE = TILE / 8,                             /* a warp's result fragments across a tile */
    STEPS = 2, CHUNK = 8 * STEPS                 /* columns of a head per step and per partial sum */
};
/* Row length of a tile in shared memory. With the + 4 rows and columns are read without bank conflicts. */
enum { LINE = TILE + 4 };
typedef float line[LINE];
/* Selects the kernel with or without dropout, and in the context's precision. */
#define WHICH_CORES(d, kernel)                                                                            \
    ((d)->precision == WEFT_FP32 ? (a->below ? kernel<true, true> : kernel<false, true>) :                 \
                                   (a->below ? kernel<true, false> : kernel<false, false>))
typedef struct lane { int warp, group, part; } lane;
__device__ static inline lane this_lane()
{
    return lane{ (int)threadIdx.x / 32, (int)threadIdx.x % 32 / 4, (int)threadIdx.x % 4 };
}

/* Returns the number to store for x: x itself, or x rounded to TF32. */
template <bool EXACT> __device__ static inline float stored(float x)
{
    return EXACT ? operand(x) : __uint_as_float(to_tf32(operand(x)));
}
/* Returns true if a stored number is NaN, or infinite in TF32. */
__device__ static inline bool is_nonfinite(float x)   { return (to_tf32(x) & 0x7F800000u) == 0x7F800000u; }
/* Splits a stored number. NONFINITE: it may be infinite; then low is 0, so that the score is infinite. */
template <bool EXACT, bool NONFINITE>
__device__ static inline void split(float x, uint32_t &high, uint32_t &low)
{
    high = EXACT ? to_tf32(x) : __float_as_uint(x);
    const float rest = x - __uint_as_float(high);
    low = !EXACT || (NONFINITE && isinf(__uint_as_float(high))) ? 0 : __float_as_uint(rest);
}

/* ---- loads into shared memory ---- */
__device__ static inline int clamped(int64_t n, int limit) { return n < limit ? n < 0 ? 0 : (int)n : limit; }
__device__ static inline float4 load_four(const rows &x, int row, int column, bool whole)
{
    const float *from = x.data + row * x.step + column;
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
/* Copies the first n rows of x, a multiple of 32, and TILE columns, padded with zeros. Columns that no
 * product reads are skipped. Returns true if one of this thread's numbers is not finite. */
template <bool EXACT> __device__ static inline bool load_tile(line *to, int n, const rows &x)
{
    /* threads of a row, rows of a pass, loads in flight */
    enum { ONE = TILE / 4, PASS = CORES / ONE, AT_ONCE = 4 };
    const bool whole = !(((uint64_t)(uintptr_t)x.data / sizeof(float) | (uint64_t)(x.step | x.width)) & 3);
    const int column = (int)threadIdx.x % ONE * 4;
    bool nonfinite = false;
    if (column >= (x.width + CHUNK - 1) / CHUNK * CHUNK)
        return false;
    ROLLED for (int row = (int)threadIdx.x / ONE; row < n; row += AT_ONCE * PASS) {
        float4 v[AT_ONCE];
        UNROLLED for (int k = 0; k < AT_ONCE; k++)
            v[k] = load_four(x, row + k * PASS, column, whole);
        UNROLLED for (int k = 0; k < AT_ONCE; k++) {
            const float4 y = { stored<EXACT>(x.factor * v[k].x), stored<EXACT>(x.factor * v[k].y),
                               stored<EXACT>(x.factor * v[k].z), stored<EXACT>(x.factor * v[k].w) };
            *(float4 *)&to[row + k * PASS][column] = y;
            nonfinite |= is_nonfinite(y.x) || is_nonfinite(y.y) || is_nonfinite(y.z) || is_nonfinite(y.w);
        }
    }
    return nonfinite;
}

/* ---- products ---- */
__device__ static inline void add_part(const float (&part)[4], float (&sum)[4])
{
    UNROLLED for (int i = 0; i < 4; i++)
        sum[i] += part[i];
}
/* Two independent products hide their latency. Products with a low half are small and summed apart. */
enum { PAIR = 2 };
typedef struct pair { float high[PAIR][4], small[PAIR][4]; } pair;
template <bool EXACT, bool NONFINITE>
__device__ static inline void add_pair(const uint32_t (&high)[4], const uint32_t (&low)[4],
                                       const float (&b)[PAIR][2], pair &p)
{
    UNROLLED for (int i = 0; i < PAIR; i++) {
        uint32_t b_high[2], b_low[2];
        UNROLLED for (int j = 0; j < 2; j++)
            split<EXACT, NONFINITE>(b[i][j], b_high[j], b_low[j]);
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
/* Adds a b^T over `columns` columns to sum. a: 16 rows from the warp's first row on; b: 8 N rows. */
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
/* Adds x b to sum, for `columns` columns, two fragments of eight columns at a time. x: 16 rows by 32 terms;
 * b: 32 rows. A thread's terms of eight are consecutive rows of b. */
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
/* The same for a result w of 16 rows, as its threads hold it. */
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

/* ---- numbers that are not finite ---- *
 * 0 times such a number is NaN, but a hidden key may not change a query. So these numbers become zeros for
 * the tensor cores, and add_nonfinite adds their terms separately where the weight is not 0. A query gets the
 * same bits whether a hidden key is finite or not. */
__device__ static inline void clean(line *x, int n, int64_t width)
{
    const int column = (int)threadIdx.x % TILE;
    if (column < width)
        for (int row = (int)threadIdx.x / TILE; row < n; row += CORES / TILE)
            x[row][column] = is_nonfinite(x[row][column]) ? 0 : x[row][column];
}
/* Adds the terms of the numbers that clean replaced by 0 in b's first n rows, for columns from `first` on. w:
 * the weight of the thread's first row and of term 0 in shared memory; row and term: distances to the next
 * row and term. */
template <int N>
__device__ static inline void add_nonfinite(const rows &b, int n, const float *w, int row, int term,
                                            int first, float (&sum)[N][4])
{
    for (int k = 0; k < n; k++) {
        const float above = w[k * term], below = w[8 * row + k * term];
        UNROLLED for (int j = 0; j < 2 * N; j++) {
            const int c = first + j / 2 * 8 + (int)threadIdx.x % 4 * 2 + j % 2;
            const float v = k < b.n && c < b.width ? b.factor * b.data[k * b.step + c] : 0;
            if (is_nonfinite(operand(v))) {
                sum[j / 2][j % 2] += above != 0 ? above * v : 0;
                sum[j / 2][2 + j % 2] += below != 0 ? below * v : 0;
            }
        }
    }
}
/* Sets *cell to mark if nonfinite is true, so that the block learns whether any thread has such a number.
 * Each use has its own mark, from 1 on, so the cell is never reset. Barriers separate the uses. */
__device__ static inline void mark_if(unsigned *cell, unsigned mark, bool nonfinite)
{
    if (nonfinite)
        atomicExch(cell, mark);
}

#endif
