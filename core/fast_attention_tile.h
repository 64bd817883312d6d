/* fast_attention_tile.h - the products of attention: c [m, n] = factor a b, or c += a b, where m, n and k are each a block of queries,
 * a block of keys or the width of a head, so that what is packed is used a few dozen times only.
 *
 * a is read where it lies, a number at a time, so it may be transposed for nothing. b comes in panels of NR columns: packed, or
 * in place where so few rows of a pass that packing would cost more than they do. An element of c is one chain of fused
 * multiplications and additions in the order of k, begun with 0 or with what is in c; a product in pieces of k is that chain, too.
 * So no choice of blocks, of tiles or of what is packed changes a bit. */
#ifndef WEFT_FAST_ATTENTION_TILE_H
#define WEFT_FAST_ATTENTION_TILE_H
#include "core/fast_gemm.h"

/* b: row p of panel l begins at at + p * step + l * far; the panel of columns `there` on, if there is one, at rest + p * NR. Every row of
 * a panel has NR numbers that may be read. */
typedef struct in_panels {
    const real *at; int64_t step, far, there; const real *rest;
#ifdef TILES
    packed_tiles tiles; tile *left;              /* instead, if it has parts; left: for rows of a */
#endif
} in_panels;
/* Element (r, p) of a is at r * line + p; transposed, at r + p * line. Where a is a block of scores, or one transposed, query r of it sees
 * its first r + seen keys, and there are zeros at the others: most of them are not multiplied. */
typedef struct in_lines { const real *at; int64_t line; bool transposed; int64_t seen; } in_lines;
static const int64_t all_seen = INT64_MAX / 2;
enum {
    ONCE_PANELS = 4,                             /* the most panels that a tile of few rows takes: a sum waits for the one before it */
    FEW_ROWS = 2 * MR,                           /* so few that b is read where it is */
    FEW_TERMS = 2
};

/* The tile: rows of a by `across` panels. */
#define ARGUMENTS int64_t k, const real *a, int64_t line, const in_panels *b, real *c, int64_t ldc, bool add, real factor
ALWAYS void attention_tile(int rows, int across, bool transposed, ARGUMENTS)
{
    vec sum[MR][2 * ONCE_PANELS], by[2 * ONCE_PANELS];
    const real *from = b->at;
    const int64_t step = b->step, far = b->far;
    UNROLLED for (int r = 0; r < rows; r++)
        UNROLLED for (int v = 0; v < 2 * across; v++)
            sum[r][v] = add ? v_load(c + r * ldc + v * VLEN) : (vec){ 0 };
    for (int64_t p = 0; p < k; p++, from += step, a += transposed ? line : 1) {
        UNROLLED for (int v = 0; v < 2 * across; v++)
            by[v] = v_load(from + v / 2 * far + v % 2 * VLEN);
        UNROLLED for (int r = 0; r < rows; r++) {
            vec x = v_set(a[transposed ? r : r * line]);
            UNROLLED for (int v = 0; v < 2 * across; v++)
                sum[r][v] = v_fma(x, by[v], sum[r][v]);
        }
    }
    UNROLLED for (int r = 0; r < rows; r++)
        UNROLLED for (int v = 0; v < 2 * across; v++)
            v_store(c + r * ldc + v * VLEN, add ? sum[r][v] : factor * sum[r][v]);
}
typedef void attention_tile_fn(ARGUMENTS);
#define ONE(rows, across, way, transposed)                                                                                     \
    static void attend_##rows##_##across##_##way(ARGUMENTS)                                                                    \
    {                                                                                                                          \
        attention_tile(rows, across, transposed, k, a, line, b, c, ldc, add, factor);                                          \
    }
#define TILE(rows, across) ONE(rows, across, as, false) ONE(rows, across, by, true)
#define PAIR(rows, across) { attend_##rows##_##across##_as, attend_##rows##_##across##_by }
TILE(1, 1) TILE(2, 1) TILE(3, 1) TILE(4, 1) TILE(5, 1) TILE(6, 1) TILE(1, 2) TILE(2, 2) TILE(3, 2) TILE(1, 4)
#if VBYTES == 64
TILE(7, 1) TILE(8, 1) TILE(9, 1) TILE(10, 1) TILE(11, 1) TILE(12, 1) TILE(13, 1) TILE(14, 1)
TILE(4, 2) TILE(5, 2) TILE(6, 2) TILE(2, 4) TILE(3, 4)
static attention_tile_fn *const tiles_of_one[][2] = {
    PAIR(1, 1), PAIR(2, 1), PAIR(3, 1), PAIR(4, 1), PAIR(5, 1), PAIR(6, 1), PAIR(7, 1), PAIR(8, 1), PAIR(9, 1), PAIR(10, 1),
    PAIR(11, 1), PAIR(12, 1), PAIR(13, 1), PAIR(14, 1) };
static attention_tile_fn *const tiles_of_two[][2] = { PAIR(1, 2), PAIR(2, 2), PAIR(3, 2), PAIR(4, 2), PAIR(5, 2), PAIR(6, 2) };
static attention_tile_fn *const tiles_of_four[][2] = { PAIR(1, 4), PAIR(2, 4), PAIR(3, 4) };
#else
static attention_tile_fn *const tiles_of_one[][2] = { PAIR(1, 1), PAIR(2, 1), PAIR(3, 1), PAIR(4, 1), PAIR(5, 1), PAIR(6, 1) };
static attention_tile_fn *const tiles_of_two[][2] = { PAIR(1, 2), PAIR(2, 2), PAIR(3, 2) };
static attention_tile_fn *const tiles_of_four[][2] = { PAIR(1, 4) };
#endif
/* As many as a tile of that height has registers for, of those that are left. */
static inline int panels_at_once(int64_t rows, int64_t left)
{
    return rows <= (int64_t)(sizeof tiles_of_four / sizeof *tiles_of_four) && left >= 4 ? 4
         : rows <= (int64_t)(sizeof tiles_of_two / sizeof *tiles_of_two) && left >= 2 ? 2 : 1;
}
#undef PAIR
#undef TILE
#undef ONE
#undef ARGUMENTS

/* A panel of which c has only the first columns: by way of a copy. */
static void attention_edge(attention_tile_fn *run, int64_t rows, int64_t columns, int64_t k, const real *a, int64_t line, const in_panels *b,
                           real *c, int64_t ldc, bool add, real factor)
{
    real copy[MR * NR] = { 0 };
    for (int64_t r = 0; add && r < rows; r++)
        memcpy(copy + r * NR, c + r * ldc, (size_t)columns * sizeof *c);
    run(k, a, line, b, copy, NR, add, factor);
    for (int64_t r = 0; r < rows; r++)
        memcpy(c + r * ldc, copy + r * NR, (size_t)columns * sizeof *c);
}
/* All rows of some panels; the tiles are of about equal height. */
static void attention_strip(int64_t m, int64_t tallest, int64_t columns, int at_once, int64_t k, in_lines a, const in_panels *b,
                            real *c, int64_t ldc, bool add, real factor)
{
    attention_tile_fn *const (*of)[2] = at_once == 1 ? tiles_of_one : at_once == 2 ? tiles_of_two : tiles_of_four;
    for (int64_t tiles = parts(m, tallest), rows; tiles; tiles--, m -= rows, a.at += rows * (a.transposed ? 1 : a.line), c += rows * ldc) {
        rows = parts(m, tiles);
        attention_tile_fn *run = of[rows - 1][a.transposed];
        if (columns < NR)
            attention_edge(run, rows, columns, k, a.at, a.line, b, c, ldc, add, factor);
        else
            run(k, a.at, a.line, b, c, ldc, add, factor);
    }
}
/* The same where not all is needed: tile by tile, of k terms those that are not 0 in its rows of a; of row r of c, counted from its first
 * column here, the first r + wanted. */
static void attention_stairs(int64_t m, int64_t tallest, int64_t columns, int at_once, int64_t k, in_lines a, const in_panels *b,
                             real *c, int64_t ldc, bool add, real factor, int64_t wanted)
{
    for (int64_t row = 0, rows, tiles = parts(m, tallest); tiles; tiles--, row += rows) {
        rows = parts(m - row, tiles);
        int64_t last = row + rows - 1, from = a.transposed && row >= a.seen ? row - a.seen + 1 : 0, end = a.transposed ? k : least(k, last + a.seen);
        if (last + wanted <= 0 || (add && end <= from))
            continue;
        in_lines left = a;
        in_panels right = *b;
        left.at += a.transposed ? row + from * a.line : row * a.line + from, right.at += from * b->step;
        attention_strip(rows, tallest, columns, at_once, end > from ? end - from : 0, left, &right, c + row * ldc, ldc, add, factor);
    }
}
#ifdef TILES
/* A sum over k in pieces is then one of pieces, so these must not depend on other sequences, nor on the threads. */
static void attention_on_tiles(int64_t m, int64_t n, int64_t k, in_lines a, const in_panels *b, real *c, int64_t ldc, bool add, real factor)
{
    packed_tiles w = b->tiles;
    view rows = { a.at, a.transposed ? 1 : a.line, a.transposed ? a.line : 1 };
    w.n = least(n, w.n);
    for (int64_t p = 0; p < k; p += RUN)
        multiply_run(&(tile_rows){ &w, rows, m, p, least(RUN, k - p), c, ldc, add || p }, b->left);
    for (int64_t r = 0; !add && factor != 1 && r < m; r++)
        EACH_VECTOR(i, w.n)
            v_store_to(c + r * ldc + i, factor * v_load_to(c + r * ldc + i, w.n - i), w.n - i);
}
#endif
/* add: c += a b, else c = factor a b. Few terms are a walk over c, by whole rows. wanted: of row r of c the first r + wanted columns. */
static void attention_product(int64_t m, int64_t n, int64_t k, in_lines a, in_panels b, real *c, int64_t ldc, bool add, real factor, int64_t wanted)
{
    int64_t tallest = k <= FEW_TERMS && n >= 4 * NR ? 1 : MR;
    int at_once;
#ifdef TILES
    if (b.tiles.parts) {
        attention_on_tiles(m, n, k, a, &b, c, ldc, add, factor);
        return;
    }
#endif
    for (int64_t j = 0; j < n; j += at_once * NR, b.at += at_once * b.far) {
        at_once = panels_at_once(least(m, tallest), (least(n, b.there) - j) / NR);
        if (j >= b.there)
            b.at = b.rest, b.step = NR;
        if (a.seen == all_seen && wanted == all_seen)
            attention_strip(m, tallest, n - j, at_once, k, a, &b, c + j, ldc, add, factor);
        else
            attention_stairs(m, tallest, n - j, at_once, k, a, &b, c + j, ldc, add, factor, wanted - j);
    }
}

/* VLEN lines from x on, `some` of which are there, side by side: numbers p of all of them at to + p * NR. */
static void turn_lines(int64_t some, int64_t width, const real *x, int64_t line, real *to)
{
    for (int64_t p = 0; p < width; p += VLEN, to += VLEN * NR) {
        vec r[VLEN];
        int64_t n = least(VLEN, width - p);
        bool whole = some >= VLEN && n == VLEN;
        UNROLLED for (int i = 0; i < VLEN; i++)
            r[i] = whole ? v_load(x + i * line + p) : i < some ? v_load_to(x + i * line + p, n) : v_set(0);
        v_transpose(r);
        if (n == VLEN)
            UNROLLED for (int i = 0; i < VLEN; i++)
                v_store(to + i * NR, r[i]);
        else
            for (int i = 0; i < n; i++)
                v_store(to + i * NR, r[i]);
    }
}
/* n rows of `width` numbers as columns of b, whose k is `width`. What is beyond them stays as it was, and c's columns there are rubbish.
 * Room for up(n, NR) * width numbers. */
static in_panels packed_lines(int64_t n, int64_t width, const real *x, int64_t line, real *to)
{
    for (int64_t i = 0; i < n; i += VLEN)
        turn_lines(n - i, width, x + i * line, line, to + i / NR * NR * width + i % NR);
    return (in_panels){ .at = to, .step = NR, .far = width * NR, .there = up(n, NR) };
}
/* n rows of `width` numbers as rows of b, whose k is n. For `few` rows of a whole panels stay where they are. Room for n * up(width, NR)
 * numbers. */
static in_panels packed_rows(bool few, int64_t n, int64_t width, const real *x, int64_t line, real *to)
{
    int64_t there = few ? width / NR * NR : 0;
    pack(NR, width - there, n, x + there, 1, line, false, to);
    return few ? (in_panels){ .at = x, .step = line, .far = NR, .there = there, .rest = to }
               : (in_panels){ .at = to, .step = NR, .far = n * NR, .there = width };
}
#ifdef TILES
/* A right operand [k, n] on tiles. Room for up(k, 32) * up(n, 32) numbers of so many parts. */
static in_panels packed_for_tiles(int count, view from, int64_t k, int64_t n, real *to, real *left)
{
    in_panels b = { .tiles = { (tile *)to, from, k, n, count }, .left = (tile *)left };
    pack_columns(&b.tiles, 0, packed_count(&b.tiles));
    return b;
}
#endif
/* How many parts the numbers have; the widths of heads decide, not the lengths of sequences. */
static int attention_parts(const weft__device *d, const weft__attention *a)
{
#ifdef TILES
    return a->dk >= TILES_WORTH && a->dv >= TILES_WORTH ? parts_in(d->precision) : 0;
#else
    return (void)d, (void)a, 0;
#endif
}
#endif
