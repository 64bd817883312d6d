/* fast_split.h - fp32 numbers as sums of bf16 numbers, packed into tiles (tiles.h).
 *
 * x = x1 + x2 + x3 is exact with 8 bits each. A product of split numbers keeps, in this order, of
 *   three parts (x6)  x2y2 x2y1 x3y1 x1y1 x1y2 x1y3     as accurate as fp32 products
 *   two parts   (x3)  x2y1 x1y1 x1y2                    16 bits of each operand
 *   one part          x1y1                              WEFT_BF16
 * x, the left operand, is cut off when it is split, and y rounded, so that what is dropped has a factor of mean zero; the last of two
 * parts and an only part are rounded on both sides, to the nearest, ties to even. Infinity becomes infinity and NaN, and so does a
 * number that rounds beyond the largest; NaN stays NaN. Parts below 2^-126 count as 0 (tiles.h).
 *
 * Tile q of an operand holds k = 32 q .. 32 q + 31, its pair i is (32 q + i, 32 q + 16 + i). So 16 numbers of two vectors become a
 * row of a tile by a shift and a mask, be it of the left operand (a row of it has one row of a, two runs of 16 k) or of the right one (it
 * has 16 columns of b, two k's). The parts of a tile lie one after the other. */
#ifndef WEFT_FAST_SPLIT_H
#define WEFT_FAST_SPLIT_H
#include "core/fast_ranges.h"
#include "core/tiles.h"

/* The bf16 number above or nearest to x, as an fp32 number. */
ALWAYS vecu upper_part(bool nearest, vec x)
{
    vecu bits = (vecu)x, nan = (vecu)(x != x);
    if (nearest)
        bits = (nan & (bits | 0x400000u)) | (~nan & (bits + 0x7FFFu + (bits >> 16 & 1)));
    return bits & 0xFFFF0000u;
}
/* The pairs (x, y) to `to`, their next part a tile further. */
ALWAYS void split(int parts, bool nearest, vec x, vec y, uint32_t *to)
{
    UNROLLED for (int p = 0; p < parts; p++) {
        bool rounds = p < 2 && (nearest || p == parts - 1);  /* what two parts have left of 24 bits has 8 */
        vecu u = upper_part(rounds, x), v = upper_part(rounds, y);
        *(vecu_at *)(to + p * TILE_ROW * TILE_ROW) = u >> 16 | v;
        x -= (vec)u, y -= (vec)v;
    }
}

/* 16 x 16 of a matrix of which rows x columns are there (or more, or none); the rest are zeros. One of the steps is 1. */
typedef struct patch { const real *at; int64_t row, column, rows, columns; } patch;

ALWAYS vec patch_row(const patch *s, int64_t i, int64_t j)       /* where columns are neighbours */
{
    return i < s->rows && j < s->columns ? v_load_to(s->at + i * s->row + j, s->columns - j) : v_set(0);
}
static void turn_patch(const patch *s, real to[TILE_ROW][TILE_ROW])     /* where rows are */
{
    for (int64_t i = 0; i < TILE_ROW; i += VLEN)
        for (int64_t j = 0; j < TILE_ROW; j += VLEN) {
            vec x[VLEN];
            for (int l = 0; l < VLEN; l++)
                x[l] = i < s->rows && j + l < s->columns ? v_load_to(s->at + i + (j + l) * s->column, s->rows - i) : v_set(0);
            v_transpose(x);
            for (int l = 0; l < VLEN; l++)
                v_store(&to[i + l][j], x[l]);
        }
}
ALWAYS void pack_patches(int parts, bool nearest, const patch *x, const patch *y, tile *to)
{
    real turned[2][TILE_ROW][TILE_ROW];
    patch u = *x, v = *y;
    if (x->column != 1) {
        turn_patch(x, turned[0]), turn_patch(y, turned[1]);
        u = (patch){ turned[0][0], TILE_ROW, 1, TILE_ROW, TILE_ROW }, v = (patch){ turned[1][0], TILE_ROW, 1, TILE_ROW, TILE_ROW };
    }
    for (int i = 0; i < TILE_ROW; i++)
        for (int j = 0; j < TILE_ROW; j += VLEN)
            split(parts, nearest, patch_row(&u, i, j), patch_row(&v, i, j), &to->pair[i][j]);
}
static void pack_tile(int parts, bool nearest, const patch *x, const patch *y, tile *to)      /* all parts of one, in code for so many */
{
    switch (parts) {
    case 1:  pack_patches(1, nearest, x, y, to); break;
    case 2:  pack_patches(2, nearest, x, y, to); break;
    default: pack_patches(3, nearest, x, y, to);
    }
}
/* Rows of a, 32 k's of it; or 32 k's of b by 16 columns of it. */
static void pack_left(int parts, patch a, tile *to)
{
    patch next = a;
    next.at += TILE_ROW * a.column, next.columns -= TILE_ROW;
    pack_tile(parts, false, &a, &next, to);
}
static void pack_right(int parts, patch b, tile *to)
{
    patch next = b;
    next.at += TILE_ROW * b.row, next.rows -= TILE_ROW;
    pack_tile(parts, true, &b, &next, to);
}
#endif
