/* fast_recur_tiles.h - the products of a recurrence on matrix tiles: the rows of a run of tokens, split in parts as they come, times
 * weights that are split and packed once a call. Included by fast_recur.h where a table has tiles. */
#ifndef WEFT_FAST_RECUR_TILES_H
#define WEFT_FAST_RECUR_TILES_H
#include "core/fast_gemm.h"

enum {
    RECUR_TILES_WORTH = 64,                      /* the least number of hidden units for which tiles are faster */
    RECUR_TILES_ROWS = 2 * STRIP_ROWS            /* of a block at least: each reads all weights once a step */
};
/* Of each product, as the job has them; parts 0: no tiles. A thread splits its rows into `each` tiles of its own. */
typedef struct recur_tiles { int parts; packed_tiles w[3]; tile *left; int64_t each; } recur_tiles;

static int recur_parts(const weft__device *d, const weft__recurrence *r)
{
    return r->hidden >= RECUR_TILES_WORTH ? parts_in(d->precision) : 0;
}
/* Weights [k, n], or [n, k] if turned. */
static packed_tiles recur_weights(int parts, const real *w, bool turned, int64_t k, int64_t n)
{
    return (packed_tiles){ .from = { w, turned ? 1 : n, turned ? k : 1 }, .k = k, .n = n, .parts = parts };
}
/* Divides memory between `count` products' weights and the threads' rows, up to `rows` of them; NULL: only says how many bytes that is. */
static size_t recur_divide_tiles(recur_tiles *t, int count, int64_t rows, int threads, tile *memory)
{
    int64_t at = 0;
    for (int i = 0; i < count; i++) {
        int64_t left = left_tiles(t->parts, rows, t->w[i].k);
        t->each = left > t->each ? left : t->each;
        t->w[i].at = memory ? memory + at : NULL, at += packed_count(&t->w[i]) * t->parts;
    }
    t->left = memory ? memory + at : NULL;
    return (size_t)(at + threads * t->each) * sizeof(tile);
}
/* y [m, n] += x w, columns from .. to of y. */
static void recur_tile_product(const recur_tiles *t, int i, int64_t from, int64_t to, int64_t m, const real *x, int64_t ldx, real *y, int64_t ldy)
{
    packed_tiles w = some_columns(t->w[i], from, to - from);
    if (w.n > 0)
        multiply_tiles(&w, (view){ x, ldx, 1 }, m, y + from, ldy, true, t->left + weft__worker() * t->each);
}
#endif
