/* tiles.h - matrix tiles: the instructions of Intel's AMX that weft uses, in hardware or emulated bit for
 * bit.
 *
 * A tile has 16 rows of 64 bytes: 16 x 16 sums in fp32, or 16 x 16 pairs of bf16. There are eight, 0 .. 7.
 * TILE_DOT(c, a, b) adds to c[i][j] the products of the pairs a[i][p] and b[p][j], p = 0 .. 15. The first
 * numbers of the pairs form one chain of fused multiply-adds in the order of p, the second numbers another,
 * both from 0. The sum of the two is added to c[i][j]. Denormals count as 0 in inputs and results, in any
 * rounding mode.
 *
 * Kernels keep their sums in tiles 0 .. 3, in one of two shapes: two row tiles by two column tiles (a in 4
 * and 5, b in 6 and 7), or one row tile by four (parts of a in 4, 5, 6, b in 7). A thread sets the shape and
 * the rows of the last row tile before it uses tiles, and releases them before its task ends. Any other use
 * is an illegal instruction, also in the emulation.
 *
 * Assembler is used because gcc 12's _tile_loadconfig claims to read 8 of its 64 bytes, and its _tile_loadd
 * none. */
#ifndef WEFT_TILES_H
#define WEFT_TILES_H
#include "core/cpu/vector.h"

/* rows; elements per row; number of tiles */
enum { TILE_ROW = 16, TILE_PAIRS = 2 * TILE_ROW, TILE_NUMBER = 8 };
typedef union tile {
    uint32_t pair[TILE_ROW][TILE_ROW];           /* first number of the pair in the lower half */
    float sum[TILE_ROW][TILE_ROW];
} __attribute__((aligned(64), may_alias)) tile;
typedef uint32_t vecu    __attribute__((vector_size(VBYTES)));
typedef uint32_t vecu_at __attribute__((vector_size(VBYTES), aligned(4), may_alias));

/* ---- the arithmetic ---- */
static inline vec tile_flushed(vec x)            /* NaN is kept */
{
    veci tiny = (veci)(v_abs(x) < V_NORMAL);
    return (vec)((veci)x & (~tiny | (veci)v_set(-(real)0)));
}
static inline vec tile_first(vecu x)         { return tile_flushed((vec)(x << 16)); }
static inline vec tile_second(vecu x)        { return tile_flushed((vec)(x & 0xFFFF0000u)); }
static inline vecu tile_row(const tile *t, int i, int j) { return *(const vecu_at *)&t->pair[i][j]; }
/* Computes TILE_DOT for `rows` rows of c and a. */
static inline void tile_dot_emulated(int rows, tile *c, const tile *a, const tile *b)
{
    for (int j = 0; j < TILE_ROW; j += VLEN) {
        vec b_first[TILE_ROW], b_second[TILE_ROW];
        for (int p = 0; p < TILE_ROW; p++)
            b_first[p] = tile_first(tile_row(b, p, j)), b_second[p] = tile_second(tile_row(b, p, j));
        for (int i = 0; i < rows; i++) {
            vec first = { 0 }, second = { 0 };
            for (int p = 0; p < TILE_ROW; p++) {
                vecu pair = a->pair[i][p] - (vecu){ 0 };
                first = tile_flushed(v_fma(tile_first(pair), b_first[p], first));
                second = tile_flushed(v_fma(tile_second(pair), b_second[p], second));
            }
            vec sum = tile_flushed(v_load(&c->sum[i][j])) + tile_flushed(first + second);
            v_store(&c->sum[i][j], tile_flushed(sum));
        }
    }
}

/* ---- shapes: `down` row tiles by 4 / down column tiles, the last row tile with `rows` rows ---- */
/* operand of ldtilecfg */
typedef struct tile_shape {
    uint8_t palette, start, none[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} tile_shape;
static inline tile_shape tile_shape_of(int down, int rows)
{
    tile_shape s = { .palette = 1 };
    for (int t = 0; t < TILE_NUMBER; t++) {
        bool last = down == 1 ? t < 7 : t == 2 || t == 3 || t == 5;
        s.bytes[t] = 64;
        s.rows[t] = (uint8_t)(last ? rows : TILE_ROW);
    }
    return s;
}

#ifdef TILES_BFMMLA
/* ---- ARM: bfmmla adds a [2, 4] b [4, 2] to c [2, 2] ---- *
 * It adds the products of a pair, and that sum to c, each rounded to odd, pair after pair, whatever the
 * rounding mode. An operand of 16 bytes holds two rows, or columns, of two pairs. Packing ends by arranging
 * tiles in operands: of a, for two rows all pairs; of b, for two pairs all columns. */
static _Thread_local struct {
    const tile *in[TILE_NUMBER];
    int rows[TILE_NUMBER];
    float32x4_t sum[4][TILE_ROW / 2][TILE_ROW / 2];          /* two rows by two columns each */
} tiles_;
static inline void tiles_set(tile_shape s)
{
    for (int t = 0; t < TILE_NUMBER; t++)
        tiles_.rows[t] = s.rows[t];
}
static inline void tiles_release(void)            { }
static inline void tile_zero(int t)               { memset(tiles_.sum[t], 0, sizeof tiles_.sum[t]); }
static inline void tile_store(int t, tile *to)
{
    for (int i = 0; i < tiles_.rows[t]; i += 2)
        for (int j = 0; j < TILE_ROW; j += 2) {
            float32x4_t sum = tiles_.sum[t][i / 2][j / 2];
            vst1_f32(&to->sum[i][j], vget_low_f32(sum)), vst1_f32(&to->sum[i + 1][j], vget_high_f32(sum));
        }
}
static inline void tile_arrange_left(tile *t, int rows)
{
    for (int i = 0; i < rows; i += 2) {
        uint64x2_t x[2][4];
        for (int k = 0; k < 4; k++)
            for (int r = 0; r < 2; r++)
                x[r][k] = vreinterpretq_u64_u32(vld1q_u32(&t->pair[i + r][4 * k]));
        uint32_t *to = (uint32_t *)t + i * TILE_ROW;
        for (int k = 0; k < 4; k++, to += 8) {
            vst1q_u32(to, vreinterpretq_u32_u64(vzip1q_u64(x[0][k], x[1][k])));
            vst1q_u32(to + 4, vreinterpretq_u32_u64(vzip2q_u64(x[0][k], x[1][k])));
        }
    }
}
static inline void tile_arrange_right(tile *t)
{
    for (int p = 0; p < TILE_ROW; p += 2) {
        uint32x4_t x[2][4];
        for (int k = 0; k < 4; k++)
            for (int r = 0; r < 2; r++)
                x[r][k] = vld1q_u32(&t->pair[p + r][4 * k]);
        uint32_t *to = (uint32_t *)t + p * TILE_ROW;
        for (int k = 0; k < 4; k++, to += 8)
            vst1q_u32(to, vzip1q_u32(x[0][k], x[1][k])), vst1q_u32(to + 4, vzip2q_u32(x[0][k], x[1][k]));
    }
}
#define OPERAND_(t, i, j) \
    vreinterpretq_bf16_u32(vld1q_u32((const uint32_t *)(t) + ((i) * TILE_ROW / 2 + (j)) * 4))
/* Adds to `down` by `across` sums of two rows by two columns. */
INLINE void tile_dot_part(int down, int across, int i, int j, float32x4_t (*c)[TILE_ROW / 2], const tile *a,
                          const tile *b)
{
    float32x4_t sum[TILE_ROW / 2][TILE_ROW / 2];
    UNROLLED for (int r = 0; r < down; r++)
        UNROLLED for (int s = 0; s < across; s++)
            sum[r][s] = c[i + r][j + s];
    for (int p = 0; p < TILE_ROW / 2; p++)
        UNROLLED for (int r = 0; r < down; r++)
            UNROLLED for (int s = 0; s < across; s++)
                sum[r][s] = vbfmmlaq_f32(sum[r][s], OPERAND_(a, i + r, p), OPERAND_(b, p, j + s));
    UNROLLED for (int r = 0; r < down; r++)
        UNROLLED for (int s = 0; s < across; s++)
            c[i + r][j + s] = sum[r][s];
}
static void tile_dot(int t, const tile *a, const tile *b)
{
    enum { PAIRS = TILE_ROW / 2, PART = 4 };
    int i = 0, rows = (tiles_.rows[t] + 1) / 2;
    for (; i + PART <= rows; i += PART)
        for (int j = 0; j < PAIRS; j += PART)
            tile_dot_part(PART, PART, i, j, tiles_.sum[t], a, b);
    for (; i < rows; i++)
        tile_dot_part(1, PAIRS, i, 0, tiles_.sum[t], a, b);
}
#define TILE_ZERO(t)      tile_zero(t)
#define TILE_LOAD(t, p)   (tiles_.in[t] = (p))
#define TILE_STORE(t, p)  tile_store(t, p)
#define TILE_DOT(c, a, b) tile_dot(c, tiles_.in[a], tiles_.in[b])
#elif defined TILES_EMULATED
/* The eight tiles of a thread, and the rows of each (0: not set). */
static _Thread_local struct { tile t[TILE_NUMBER]; int rows[TILE_NUMBER]; } tiles_;
static inline void tiles_must(bool good)
{
    if (!good)
        __builtin_trap();
}
static inline void tiles_set(tile_shape s)
{
    memset(&tiles_, 0, sizeof tiles_);
    for (int t = 0; t < TILE_NUMBER; t++)
        tiles_.rows[t] = s.rows[t];
}
static inline void tiles_release(void)           { memset(&tiles_, 0, sizeof tiles_); }
static inline void tile_zero(int t)
{
    tiles_must(tiles_.rows[t]);
    memset(&tiles_.t[t], 0, sizeof(tile));
}
static inline void tile_load(int t, const tile *p)
{
    tile_zero(t);
    memcpy(&tiles_.t[t], p, (size_t)tiles_.rows[t] * 64);
}
static inline void tile_store(int t, tile *p)
{
    tiles_must(tiles_.rows[t]);
    memcpy(p, &tiles_.t[t], (size_t)tiles_.rows[t] * 64);
}
static inline void tile_dot(int c, int a, int b)
{
    tiles_must(tiles_.rows[c] && tiles_.rows[c] == tiles_.rows[a] && tiles_.rows[b] == TILE_ROW);
    tile_dot_emulated(tiles_.rows[c], &tiles_.t[c], &tiles_.t[a], &tiles_.t[b]);
}
#define TILE_ZERO(t)      tile_zero(t)
#define TILE_LOAD(t, p)   tile_load(t, p)
#define TILE_STORE(t, p)  tile_store(t, p)
#define TILE_DOT(c, a, b) tile_dot(c, a, b)
#else
static inline void tiles_set(tile_shape s)       { __asm__ volatile("ldtilecfg %0" : : "m"(s)); }
static inline void tiles_release(void)           { __asm__ volatile("tilerelease" : :); }
#define TILE_ZERO(t)      __asm__ volatile("tilezero %%tmm" #t : :)
#define TILE_LOAD(t, p) \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t : : "r"(p), "r"((int64_t)64), "m"(*(const tile *)(p)))
#define TILE_STORE(t, p) \
    __asm__ volatile("tilestored %%tmm" #t ", (%1,%2,1)" : "+m"(*(tile *)(p)) : "r"(p), "r"((int64_t)64))
#define TILE_DOT(c, a, b) __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #c : :)
#endif
#ifndef TILES_BFMMLA
static inline void tile_arrange_left(tile *t, int rows)  { (void)t, (void)rows; }
static inline void tile_arrange_right(tile *t)           { (void)t; }
#endif
#endif
