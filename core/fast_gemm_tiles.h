/* fast_gemm_tiles.h - matrix products on matrix tiles (tiles.h) by operands split in parts (fast_split.h).
 *
 * Every element of c is computed in one way only: for each run of 512 k's, from 0, tile after tile of 32, the products of parts in the
 * order of fast_split.h; the runs' sums added in order. So its bits are those of its row of a and its column of b. Where a run's sum is not
 * finite (infinity is NaN when it is split, large numbers overflow in another order), that sum of that element is computed again as
 * a chain of fused multiplications and additions in the order of k, and is then what fp32 gives.
 *
 * Right operands, the weights as a rule, are packed once for all threads; left operands by the thread that multiplies them. Whether tiles
 * are used at all is asked of the weights' shape alone, never of the number of rows. */
#ifndef WEFT_FAST_GEMM_TILES_H
#define WEFT_FAST_GEMM_TILES_H
#include "core/fast_split.h"

enum {
    RUN_TILES = 16, RUN = RUN_TILES * TILE_PAIRS,            /* k's of a run */
    LEFT_ROWS = 256,                                         /* rows packed at a time: with three parts 768 KB, in the second cache */
    RIGHT_BYTES = 1 << 24,                                   /* of packed right operands at a time, if it is more than a run */
    STRIP_ROWS = 2 * TILE_ROW,
    TILES_WORTH = 32                                         /* the least extent of weights for which tiles are faster */
};
/* How many parts the operands of a product have in this precision; 0: no tiles. */
static inline int parts_in(weft_precision p)
{
    static const int parts[] = { [WEFT_FP32] = 3, [WEFT_STRICT_FP32] = 0, [WEFT_TF32] = 2, [WEFT_BF16] = 1 };
    return parts[p];
}

/* ---- sums 0 .. 3 += tiles of a by tiles of b, k tiles; one order of the products of parts everywhere ---- */
#define A_2(p) TILE_LOAD(4, a + (p)); TILE_LOAD(5, a + a_next + (p));
#define B_2(p) TILE_LOAD(6, b + (p)); TILE_LOAD(7, b + b_next + (p));
#define DOT_4  TILE_DOT(0, 4, 6); TILE_DOT(1, 4, 7); TILE_DOT(2, 5, 6); TILE_DOT(3, 5, 7);
ALWAYS void dots_2_by_2(int parts, const tile *a, int64_t a_next, const tile *b, int64_t b_next, int64_t k)
{
    for (; k; k--, a += parts, b += parts) {
        if (parts == 3) {
            B_2(1) A_2(1) DOT_4 B_2(0) DOT_4 A_2(2) DOT_4 A_2(0) DOT_4 B_2(1) DOT_4 B_2(2) DOT_4
        } else if (parts == 2) {
            B_2(0) A_2(1) DOT_4 A_2(0) DOT_4 B_2(1) DOT_4
        } else {
            A_2(0) B_2(0) DOT_4
        }
    }
}
#define COLUMN(c)                                                                                               \
    if (parts == 3) {                                                                                           \
        TILE_LOAD(7, b + (c) * b_next + 1); TILE_DOT(c, 5, 7);                                                  \
        TILE_LOAD(7, b + (c) * b_next); TILE_DOT(c, 5, 7); TILE_DOT(c, 6, 7); TILE_DOT(c, 4, 7);                \
        TILE_LOAD(7, b + (c) * b_next + 1); TILE_DOT(c, 4, 7);                                                  \
        TILE_LOAD(7, b + (c) * b_next + 2); TILE_DOT(c, 4, 7);                                                  \
    } else if (parts == 2) {                                                                                    \
        TILE_LOAD(7, b + (c) * b_next); TILE_DOT(c, 5, 7); TILE_DOT(c, 4, 7);                                   \
        TILE_LOAD(7, b + (c) * b_next + 1); TILE_DOT(c, 4, 7);                                                  \
    } else {                                                                                                    \
        TILE_LOAD(7, b + (c) * b_next); TILE_DOT(c, 4, 7);                                                      \
    }
ALWAYS void dots_1_by(int columns, int parts, const tile *a, const tile *b, int64_t b_next, int64_t k)
{
    for (; k; k--, a += parts, b += parts) {
        TILE_LOAD(4, a);
        if (parts > 1)
            TILE_LOAD(5, a + 1);
        if (parts > 2)
            TILE_LOAD(6, a + 2);
        COLUMN(0) COLUMN(1)
        if (columns == 4) {
            COLUMN(2) COLUMN(3)
        }
    }
}
#undef A_2
#undef B_2
#undef DOT_4
#undef COLUMN
/* The sums of `down` row tiles by so many column tiles, row by row. */
ALWAYS void dots(int down, int columns, int parts, const tile *a, int64_t a_next, const tile *b, int64_t b_next, int64_t k, tile sum[4])
{
    TILE_ZERO(0); TILE_ZERO(1); TILE_ZERO(2); TILE_ZERO(3);
    if (down == 2)
        dots_2_by_2(parts, a, a_next, b, b_next, k);
    else
        dots_1_by(columns, parts, a, b, b_next, k);
    TILE_STORE(0, sum); TILE_STORE(1, sum + 1);
    if (down * columns == 4) {
        TILE_STORE(2, sum + 2); TILE_STORE(3, sum + 3);
    }
}
#define DOTS(parts)                                                                                                     \
    static void dots_of_##parts(int down, int columns, const tile *a, int64_t a_next, const tile *b, int64_t b_next,    \
                                int64_t k, tile *sum)                                                                   \
    {                                                                                                                   \
        if (down == 2)                                                                                                  \
            dots(2, 2, parts, a, a_next, b, b_next, k, sum);                                                            \
        else if (columns == 4)                                                                                          \
            dots(1, 4, parts, a, a_next, b, b_next, k, sum);                                                            \
        else                                                                                                            \
            dots(1, 2, parts, a, a_next, b, b_next, k, sum);                                                            \
    }
DOTS(1) DOTS(2) DOTS(3)
#undef DOTS

/* ---- rows times packed columns ---- */
/* A right operand [k, n], packed: column tile j, an even number of them, has its tiles of k, of `parts` tiles each, one after the other. */
typedef struct packed_tiles { tile *at; view from; int64_t k, n; int parts; } packed_tiles;
static inline int64_t k_tiles(int64_t k)                       { return parts(k, TILE_PAIRS); }
static inline int64_t column_tiles(int64_t n)                  { return 2 * parts(n, 2 * TILE_ROW); }
static inline int64_t packed_count(const packed_tiles *w)      { return column_tiles(w->n) * k_tiles(w->k); }      /* of all parts */
static inline int64_t left_tiles(int count, int64_t rows, int64_t k)  /* for packing so many rows of a left operand */
{
    return parts(least(rows, LEFT_ROWS), TILE_ROW) * least(k_tiles(k), RUN_TILES) * count;
}
static void pack_columns(const void *job, int64_t i, int64_t to)
{
    const packed_tiles *w = job;
    for (; i < to; i++) {
        int64_t j = i / k_tiles(w->k) * TILE_ROW, p = i % k_tiles(w->k) * TILE_PAIRS;
        patch b = { w->from.at + p * w->from.row + j * w->from.column, w->from.row, w->from.column, w->k - p, w->n - j };
        pack_right(w->parts, b, w->at + i * w->parts);
    }
}
static void pack_for_all(weft__device *d, const packed_tiles *w)
{
    each_range(d, packed_count(w), CHUNK / (TILE_ROW * TILE_PAIRS), pack_columns, w);
}

/* Columns from .. from + n of w, as far as there are any; from: a whole number of tiles. */
static packed_tiles some_columns(packed_tiles w, int64_t from, int64_t n)
{
    w.at += from / TILE_ROW * k_tiles(w.k) * w.parts, w.from.at += from * w.from.column, w.n = least(n, w.n - from);
    return w;
}

/* Some rows of a times w, or a run of that: c [m, n] (+)= . */
typedef struct { const packed_tiles *w; view a; int64_t m, from, k; real *c; int64_t c_row; bool add; } tile_rows;

/* The sums of row i that are not finite, as fp32 has them. */
static void sum_again(const tile_rows *r, int64_t row, int64_t column, int64_t columns, float *sum)
{
    const view *a = &r->a, *b = &r->w->from;
    for (int64_t j = 0; j < columns; j++) {
        const real *x = a->at + row * a->row + r->from * a->column, *y = b->at + r->from * b->row + (column + j) * b->column;
        real again = 0;
        for (int64_t p = 0; p < r->k && !isfinite(sum[j]); p++, x += a->column, y += b->row)
            again = r->w->parts == 1 ? fma(rounded(*x), rounded(*y), again) : fma(*x, *y, again);
        sum[j] = isfinite(sum[j]) ? sum[j] : again;
    }
}
static bool all_finite(const tile *t, int64_t rows)          /* infinity and NaN times 0 are NaN */
{
    vec zero = { 0 };
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < TILE_ROW; j += VLEN)
            zero = v_fma(v_load(&t->sum[i][j]), v_set(0), zero);
    return v_sum(zero) == 0;
}
/* To rows row .., columns column .. of c, as far as they are there. */
static void put_sums(const tile_rows *r, tile *t, int64_t row, int64_t column)
{
    int64_t rows = least(TILE_ROW, r->m - row), n = least(TILE_ROW, r->w->n - column);
    bool finite = all_finite(t, rows);
    for (int64_t i = 0; i < rows; i++) {
        real *to = r->c + (row + i) * r->c_row + column;
        if (!finite)
            sum_again(r, row + i, column, n, t->sum[i]);
        for (int64_t j = 0; j < n; j += VLEN) {
            vec sum = v_load(&t->sum[i][j]);
            v_store_to(to + j, r->add ? v_load_to(to + j, n - j) + sum : sum, n - j);
        }
    }
}
/* Rows from `row` on, two row tiles or one, times column tiles j .. end. */
static void multiply_strip(const tile_rows *r, int64_t row, const tile *a, int64_t j, int64_t end)
{
    static void (*const dots_of[])(int, int, const tile *, int64_t, const tile *, int64_t, int64_t, tile *) = {
        NULL, dots_of_1, dots_of_2, dots_of_3 };
    const packed_tiles *w = r->w;
    tile sum[4];
    int down = r->m - row > TILE_ROW ? 2 : 1, across = down == 2 ? 2 : (int)(end - j);
    int64_t a_next = k_tiles(r->k) * w->parts, b_next = k_tiles(w->k) * w->parts;
    for (; j < end; j += across) {
        dots_of[w->parts](down, across, a, a_next, w->at + j * b_next + r->from / TILE_PAIRS * w->parts, b_next, k_tiles(r->k), sum);
        for (int t = 0; t < down * across; t++)
            if ((j + t % across) * TILE_ROW < w->n)
                put_sums(r, sum + t, row + t / across * TILE_ROW, (j + t % across) * TILE_ROW);
    }
}
static void pack_rows(const tile_rows *r, tile *to)
{
    for (int64_t i = 0; i < r->m; i += TILE_ROW)
        for (int64_t p = r->from, end = p + r->k; p < end; p += TILE_PAIRS, to += r->w->parts)
            pack_left(r->w->parts, (patch){ r->a.at + i * r->a.row + p * r->a.column, r->a.row, r->a.column, r->m - i, end - p }, to);
}
/* Four column tiles by all rows at a time, so that they are read from the second cache. */
static void multiply_run(const tile_rows *r, tile *pack)
{
    int set = 0;
    pack_rows(r, pack);
    for (int64_t all = column_tiles(r->w->n), j = 0; j < all; j += 4)
        for (int64_t i = 0; i < r->m; i += 2 * TILE_ROW) {
            int rows = (int)least(2 * TILE_ROW, r->m - i), down = rows > TILE_ROW ? 2 : 1;
            if (rows != set)                     /* all strips but the last have one shape */
                tiles_set(tile_shape_of(down, rows - (down - 1) * TILE_ROW));
            set = rows;
            multiply_strip(r, i, pack + i / TILE_ROW * k_tiles(r->k) * r->w->parts, j, least(all, j + 4));
        }
}
/* c [m, n] (+)= a w: the thread's tiles are set here, and are the caller's to release. pack: left_tiles. */
static void multiply_tiles(const packed_tiles *w, view a, int64_t m, real *c, int64_t c_row, bool add, tile *pack)
{
    for (int64_t i = 0; i < m; i += LEFT_ROWS)
        for (int64_t p = 0; p < w->k; p += RUN)
            multiply_run(&(tile_rows){ w, { a.at + i * a.row, a.row, a.column }, least(LEFT_ROWS, m - i), p, least(RUN, w->k - p),
                c + i * c_row, c_row, add || p }, pack);
}

/* ---- a product of matrices ---- */
typedef struct tile_job { const gemm_job *w; packed_tiles right; int64_t from, block_n; tile *scratch; int64_t each; } tile_job;

static void tile_task(void *argument, int64_t index)
{
    const tile_job *j = argument;
    const gemm_job *w = j->w;
    int64_t l = index / w->blocks, i = index % w->blocks / w->across * w->block_m, at = index % w->blocks % w->across * w->block_n;
    view a = { w->a.at + l * w->step_a + i * w->a.row + j->from * w->a.column, w->a.row, w->a.column };
    packed_tiles part = some_columns(j->right, at, w->block_n);
    real *c = w->c + l * w->p->stride_c + i * w->c_row + at;
    int64_t m = least(w->block_m, w->m - i);
    multiply_tiles(&part, a, m, c, w->c_row, w->add || j->from, j->scratch + weft__worker() * j->each);
    if (w->finish && j->from + part.k == w->k)
        finish(w->p, at, false, m, part.n, c);
    tiles_release();
}
/* Rows first, in whole strips; then columns, for which the rows are packed more than once. */
static void cut_in_strips(gemm_job *w, int threads)
{
    int64_t wanted = (double)w->m * (double)w->n * (double)w->k * (double)w->p->batches < 1 << 20 ? 1 : threads;
    w->block_m = up(least(LEFT_ROWS, w->m), STRIP_ROWS), w->block_n = up(w->n, STRIP_ROWS);
    while (parts(w->m, w->block_m) * parts(w->n, w->block_n) * w->p->batches < wanted) {
        if (w->block_m > STRIP_ROWS)
            w->block_m = up(w->block_m / 2, STRIP_ROWS);
        else if (w->block_n > STRIP_ROWS)
            w->block_n = up(w->block_n / 2, STRIP_ROWS);
        else
            break;
    }
    w->across = parts(w->n, w->block_n);
    w->blocks = w->across * parts(w->m, w->block_m);
}
/* Products over tokens: the weights are b, [k, n]; or the result, [m, n], if a is transposed and the k's are the tokens. Where b is
 * not the same for all of a batch of products, there are no weights, and any extent may be the length of a sequence. */
static bool tiles_for(const gemm_job *w)
{
    return parts_in(w->p->precision) && (w->p->batches == 1 || w->p->stride_b == 0) && w->n >= TILES_WORTH
        && (w->p->ta ? w->m : w->k) >= TILES_WORTH;
}
static void by_matrix_tiles(weft__device *d, gemm_job *w)
{
    int threads = weft__pool_threads(d->pool), count = parts_in(w->p->precision);
    int64_t a_run = column_tiles(w->n) * RUN_TILES * count * (int64_t)sizeof(tile), deep = RUN * (1 + RIGHT_BYTES / a_run);
    cut_in_strips(w, threads);
    tile_job j = { .w = w, .each = left_tiles(count, w->block_m, w->k) };
    int64_t right = column_tiles(w->n) * k_tiles(least(deep, w->k)) * count;
    tile *memory = weft__scratch(d, (size_t)(right + threads * j.each) * sizeof(tile));
    if (!memory)
        return;
    j.scratch = memory + right;
    for (; j.from < w->k; j.from += deep) {
        j.right = (packed_tiles){ memory, { w->b.at + j.from * w->b.row, w->b.row, w->b.column }, least(deep, w->k - j.from), w->n, count };
        pack_for_all(d, &j.right);
        weft__parallel(d, w->blocks * w->p->batches, tile_task, &j);
    }
}
#endif
