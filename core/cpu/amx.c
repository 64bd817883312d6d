/* amx.c - the fast kernels for AVX-512 with matrix tiles (AMX). cpu.c uses them only if the CPU has tiles and
 * their results agree with the emulation of tiles.h. A compiler without these instructions builds a table
 * that is never chosen. */
#if defined(__x86_64__) && !defined(WEFT_DOUBLE)
#if !defined(__AVX512F__) || !defined(__AVX512DQ__)
#error "amx.c: compile it with -march=x86-64-v4"
#endif
#define TILES
#if !(defined(__AMX_TILE__) && defined(__AMX_BF16__)) && \
    !(defined(__AMXTILE__) && defined(__AMXBF16__)) /* names of gcc and of clang */
#define TILES_EMULATED
#endif
#define K(name)    amx_##name
#define TABLE      weft__amx
#define TABLE_NAME "amx"
#include "core/cpu/tier.h"

#ifdef TILES_EMULATED
bool weft__amx_agrees(void) { return false; }
#else
/* Fills a tile with bf16 numbers of both signs and many magnitudes, including denormals. */
static void fill_pairs(tile *t, uint32_t seed)
{
    for (int i = 0; i < TILE_ROW * TILE_ROW; i++) {
        seed = seed * 1664525u + 1013904223u;
        t->pair[i / TILE_ROW][i % TILE_ROW] = i % 29 == 0 ? 0x007F8001u : (seed & 0x87FF87FFu) + 0x3C003C00u;
    }
}
bool weft__amx_agrees(void)
{
    tile a, b, chip, expected;
    fill_pairs(&a, 1), fill_pairs(&b, 2);
    memset(&chip, 0, sizeof chip), memset(&expected, 0, sizeof expected);
    tiles_set(tile_shape_of(1, TILE_ROW));
    TILE_LOAD(4, &a);
    TILE_LOAD(7, &b);
    TILE_LOAD(0, &chip);
    for (int i = 0; i < 2; i++)
        TILE_DOT(0, 4, 7);
    TILE_STORE(0, &chip);
    tiles_release();
    for (int i = 0; i < 2; i++)
        tile_dot_emulated(TILE_ROW, &expected, &a, &b);
    return !memcmp(&chip, &expected, sizeof chip);
}
#endif
#else
typedef int weft__no_amx;
#endif
