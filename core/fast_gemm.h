/* fast_gemm.h - matrix products by register tiles of MR x NR elements over packed panels (Goto, van de Geijn 2008).
 *
 * Every element of c is computed in one way only, whatever else is computed with it: for each run of KC terms a chain of fused
 * multiplications and additions in the order of k, and the runs' sums added in order; gradients of weights over very many terms by segments
 * (fast_gemm_deep.h). No choice of tiles, blocks, threads or of which operand is packed changes a bit, so those choices may look at m, n, k
 * and the number of threads, and a row has the same bits alone and in any batch.
 *
 * What cannot be packed more cheaply than it is read, is read where it lies: rows of a whose numbers are neighbours, columns of few rows
 * of a^T. While a tile is computed the strips that the next block will read are fetched into the second level of cache, and the rows of c
 * that the tile will write into the first: without that a product of 128 columns waits for memory a sixth of its time.
 *
 * It serves always. GFLOP/s on one core of an EPYC with AVX2 (Zen 3, peak 101), operands not in the caches, other work beside it: 11439 rows,
 * n 128, k 128: 91; n 128, k 256: 93; n 32, k 128: 88; 5176 rows, n 512, k 128: 90; gradients of weights over 11439 rows, 128 x 128: 82, 256 x 128: 81,
 * 512 x 128: 83; 1024 cubed: 87.
 * OpenBLAS is there for who asks for it (blas.c). */
#ifndef WEFT_FAST_GEMM_H
#define WEFT_FAST_GEMM_H
#include <limits.h>
#include "core/loops_products.h"
#include "core/fast_ranges.h"

enum {
    NR = 2 * VLEN, MR = VBYTES == 64 ? 14 : 6,   /* all registers but what the operands need */
    KC = 256,                                    /* terms of a run: a panel of b is 16 KB, in the first level of cache */
    MC = MR * 16, NC = NR * 32                   /* blocks of a and b, for the second level */
};
typedef struct view { const real *at; int64_t row, column; } view;           /* a matrix; the steps to its next row and column */
/* ---- the tile: c (+)= sum over p of a[i][p] b[p][j], `rows` by up to NR, and then a bias for each column, if any, or where columns are not
 * neighbours for each row; b's rows are b_step apart, their numbers neighbours ---- */
ALWAYS void multiply(int rows, int64_t k, view a_at, const real *b, int64_t b_step, vec (*sum)[2])
{
    const real *a = a_at.at;
    UNROLLED for (int i = 0; i < rows; i++)
        sum[i][0] = sum[i][1] = (vec){ 0 };
    for (int64_t p = 0; p < k; p++, a += a_at.column, b += b_step) {
        vec b0 = v_load(b), b1 = v_load(b + VLEN);
        UNROLLED for (int i = 0; i < rows; i++) {
            sum[i][0] = v_fma(v_set(a[i * a_at.row]), b0, sum[i][0]);
            sum[i][1] = v_fma(v_set(a[i * a_at.row]), b1, sum[i][1]);
        }
    }
}
static void put_part(const real *sum, int rows, int64_t columns, real *c, int64_t c_row, int64_t c_column, bool add, const real *bias)
{
    for (int i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            real *to = c + i * c_row + j * c_column, v = add ? *to + sum[i * NR + j] : sum[i * NR + j];
            *to = bias ? v + bias[c_column == 1 ? j : i] : v;
        }
}
ALWAYS void put_vector(vec sum, real *c, bool add, const real *bias)
{
    vec v = add ? v_load(c) + sum : sum;
    v_store(c, bias ? v + v_load(bias) : v);
}
ALWAYS void gemm_tile(int rows, int64_t columns, int64_t k, view a, const real *b, int64_t b_step,
                      real *c, int64_t c_row, int64_t c_column, bool add, const real *bias)
{
    vec sum[MR][2];
    real all[MR * NR];
    UNROLLED for (int i = 0; i < rows; i++)
        __builtin_prefetch(c + i * c_row, 1);
    multiply(rows, k, a, b, b_step, sum);
    if (c_column == 1 && columns == NR) {
        UNROLLED for (int i = 0; i < rows; i++, c += c_row) {
            put_vector(sum[i][0], c, add, bias);
            put_vector(sum[i][1], c + VLEN, add, bias ? bias + VLEN : NULL);
        }
        return;
    }
    UNROLLED for (int i = 0; i < rows; i++) {
        v_store(all + i * NR, sum[i][0]);
        v_store(all + i * NR + VLEN, sum[i][1]);
    }
    put_part(all, rows, columns, c, c_row, c_column, add, bias);
}
typedef void tile_fn(int64_t, int64_t, view, const real *, int64_t, real *, int64_t, int64_t, bool, const real *);
#define TILE(rows)                                                                                                         \
    static void tile_##rows(int64_t columns, int64_t k, view a, const real *b, int64_t b_step, real *c, int64_t c_row,     \
                            int64_t c_column, bool add, const real *bias)                                                  \
    {                                                                                                                      \
        gemm_tile(rows, columns, k, a, b, b_step, c, c_row, c_column, add, bias);                                          \
    }
TILE(1) TILE(2) TILE(3) TILE(4) TILE(5) TILE(6)
#if VBYTES == 64
TILE(7) TILE(8) TILE(9) TILE(10) TILE(11) TILE(12) TILE(13) TILE(14)
#endif
static tile_fn *const gemm_tiles[MR] = {
    tile_1, tile_2, tile_3, tile_4, tile_5, tile_6,
#if VBYTES == 64
    tile_7, tile_8, tile_9, tile_10, tile_11, tile_12, tile_13, tile_14,
#endif
};
#undef TILE

/* ---- packing: lines of k numbers side by side, [k][width], in panels of `width`; lines that are not there are 0 ---- */
/* Lines whose numbers are neighbours. Whole vectors are stored, also where a panel is narrower: from the right to the left, so
 * that what was written too much is overwritten. After the last panel there must be room for a vector. */
ALWAYS void pack_lines(int width, int64_t lines, int64_t k, const real *x, int64_t line, real *to)
{
    for (int left = (width - 1) / VLEN * VLEN; left >= 0; left -= VLEN)
        for (int64_t p = 0; p < k; p += VLEN) {
            vec r[VLEN];
            UNROLLED for (int i = 0; i < VLEN; i++)
                r[i] = left + i >= lines ? (vec){ 0 } : v_load_to(x + (left + i) * line + p, k - p);
            v_transpose(r);
            for (int i = 0; i < VLEN && p + i < k; i++)
                v_store(to + (p + i) * width + left, r[i]);
        }
}
/* Lines whose first numbers are neighbours, then their second, and so on. What a vector is too wide for a panel is overwritten here, too,
 * by the next step. */
ALWAYS void pack_steps(int width, int64_t lines, int64_t k, const real *x, int64_t step, real *to)
{
    const int64_t whole = lines >= up(width, VLEN) ? k - 1 : 0;  /* steps of whole vectors */
    for (int64_t p = 0; p < whole; p++)
        UNROLLED for (int left = 0; left < width; left += VLEN)
            v_store(to + p * width + left, v_load(x + p * step + left));
    for (int64_t p = whole; p < k; p++)
        for (int left = 0; left < width; left += VLEN) {
            vec v = left < lines ? v_load_to(x + p * step + left, lines - left) : v_set(0);
            v_store_to(to + p * width + left, v, p + 1 < k ? VLEN : width - left);
        }
}
ALWAYS void pack(int width, int64_t lines, int64_t k, const real *x, int64_t line, int64_t step, bool bf16, real *to)
{
    enum { SOME = 16 };                          /* steps at a time, so that what a panel leaves of a line of the cache the next one finds */
    if (line == 1)
        for (int64_t p = 0; p < k; p += SOME)
            for (int64_t i = 0; i < lines; i += width)
                pack_steps(width, lines - i, least(SOME, k - p), x + i + p * step, step, to + i * k + p * width);
    else
        for (int64_t i = 0; i < lines; i += width)
            pack_lines(width, least(width, lines - i), k, x + i * line, line, to + i * k);
    for (int64_t p = 0; bf16 && p < up(lines, width) * k; p++)
        to[p] = rounded(to[p]);
}

/* ---- what becomes of complete sums: m x n of them, the first one in that column, with their biases already or not; while they are in a
 * cache ---- */
static void finish(const weft__product *p, int64_t column, bool biased, int64_t m, int64_t n, real *c)
{
    const weft__finish *f = p->then;
    const real *bias = biased ? NULL : f->bias;
    map_fn *fast = f->f < WEFT__UNARIES ? vector_map(f->f, 0) : NULL, *map = fast || f->f >= WEFT__UNARIES ? fast : maps[f->f][0];
    for (int64_t i = 0; (bias || map) && i < m; i++, c += p->ldc)
        for (int64_t j = 0, some; j < n; j += some) {
            real value[BLOCK];
            some = least(BLOCK, n - j);
            EACH_VECTOR(l, bias ? some : 0)
                v_store_to(c + j + l, v_load_to(c + j + l, some - l) + v_load_to(bias + column + j + l, some - l), some - l);
            if (map)
                map(some, c + j, c + j, f->p, f->q, value), memcpy(c + j, value, (size_t)some * sizeof *c);
        }
}
static void finish_all(const weft__product *p, real *c)
{
    for (int64_t l = 0; p->then && l < p->batches; l++)
        finish(p, 0, false, p->m, p->n, c + l * p->stride_c);
}

/* What will be packed or read next: strips of so many numbers side by side, to be in the second level of cache by then. */
typedef struct ahead { const real *at; int64_t step, strips, length; } ahead;
static void fetch(ahead *f, int64_t strips)
{
    for (; strips > 0 && f->strips > 0; strips--, f->strips--, f->at += f->step)
        for (int64_t i = 0; i < f->length; i += 64 / (int64_t)sizeof *f->at)
            __builtin_prefetch(f->at + i, 0, 2);
}

/* ---- a product ---- */
typedef struct gemm_job {                            /* c (+)= a b for each of some products, cut into blocks */
    const weft__product *p; view a, b; real *c; int64_t c_row, c_column;
    int64_t m, n, k, step_a, step_b; bool add, bf16, finish, turned;
    int64_t block_m, block_n, across, blocks;    /* across: blocks side by side; blocks: of one product */
    real *scratch; int64_t of_a, each;           /* packed panels: those of b begin at of_a; of each thread */
    weft__blas_gemm *blas;
} gemm_job;

/* The part of a matrix from row i and column j on, m x n. */
static ahead strips_of(const view *v, const real *first, int64_t i, int64_t j, int64_t m, int64_t n)
{
    const real *at = first + i * v->row + j * v->column;
    return v->column == 1 ? (ahead){ at, v->row, m, n } : (ahead){ at, v->column, n, m };
}

/* One run of terms: up to NC columns of b, the first `there` of them where they are, the others packed. bias: after the last run. */
typedef struct gemm_run { int64_t k, n, there; const real *b, *packed, *bias; bool add; ahead next; } gemm_run;
static void run_rows(const gemm_job *w, gemm_run *r, int64_t m, view a, real *c, ahead next)
{
    int64_t tiles = parts(m, MR) * parts(r->n, NR), of_a = parts(next.strips, tiles), of_b = parts(r->next.strips, tiles);
    bool packed = a.column == 0;                 /* in panels of MR */
    for (int64_t j = 0; j < r->n; j += NR)
        for (int64_t i = 0; i < m; i += MR) {
            view rows = packed ? (view){ a.at + i * r->k, 1, MR } : (view){ a.at + i * a.row, a.row, a.column };
            fetch(&next, of_a);
            fetch(&r->next, of_b);
            gemm_tiles[least(MR, m - i) - 1](least(NR, r->n - j), r->k, rows, j < r->there ? r->b + j : r->packed + (j - r->there) * r->k,
                j < r->there ? w->b.row : NR, c + i * w->c_row + j * w->c_column, w->c_row, w->c_column, r->add, r->bias ? r->bias + (w->turned ? i : j) : NULL);
        }
}

/* May rows of a be read where they are? Not if they, or the steps of a^T, lie so far apart that the first level of cache has but few
 * places for them, or the pages are too many; and where there are many columns packing costs nothing. */
static bool lies_well(const gemm_job *w, int64_t n)
{
    int64_t bytes = (w->a.column == 1 ? w->a.row : w->a.column) * (int64_t)sizeof(real);
    return !w->bf16 && (w->a.column == 1 ? n < NC && bytes % 4096 : bytes <= 1024);
}
static void block(const gemm_job *w, const real *a, const real *b, real *c, int64_t m, int64_t n, const real *bias, real *pa)
{
    real *pb = pa + w->of_a;
    bool in_place = w->b.column == 1 && m <= 2 * MR && !w->bf16, straight = lies_well(w, n);
    int64_t high = straight && w->a.column != 1 ? 3 * MC : MC;
    for (int64_t jc = 0; jc < n; jc += NC)
        for (int64_t pc = 0; pc < w->k; pc += KC) {
            gemm_run r = { .k = least(KC, w->k - pc), .n = least(NC, n - jc), .b = b + pc * w->b.row + jc * w->b.column, .packed = pb, .add = w->add || pc };
            int64_t then = least(KC, w->k - pc - r.k);                   /* terms of the next run */
            r.there = in_place ? r.n / NR * NR : 0;                      /* few rows: whole panels are read where they are */
            r.next = strips_of(&w->b, b, pc + r.k, jc, then, r.n);
            pack(NR, r.n - r.there, r.k, r.b + r.there * w->b.column, w->b.column, w->b.row, w->bf16, pb);
            for (int64_t ic = 0, mc; ic < m; ic += mc) {
                view rows = { a + ic * w->a.row + pc * w->a.column, w->a.row, w->a.column };
                mc = least(high, m - ic);
                if (!straight) {
                    pack(MR, mc, r.k, rows.at, w->a.row, w->a.column, w->bf16, pa);
                    rows = (view){ pa, 0, 0 };
                }
                r.bias = bias && then == 0 ? bias + (w->turned ? ic : jc) : NULL;
                run_rows(w, &r, mc, rows, c + ic * w->c_row + jc * w->c_column, ic + mc < m
                    ? strips_of(&w->a, a, ic + mc, pc, least(high, m - ic - mc), r.k) : strips_of(&w->a, a, 0, pc + r.k, least(high, m), then));
                if (w->finish && !w->turned && then == 0)
                    finish(w->p, 0, true, mc, r.n, c + ic * w->c_row + jc);
            }
        }
}
static void block_task(void *argument, int64_t index)
{
    const gemm_job *w = argument;
    int64_t l = index / w->blocks, i = index % w->blocks / w->across * w->block_m, j = index % w->blocks % w->across * w->block_n;
    int64_t m = least(w->block_m, w->m - i), n = least(w->block_n, w->n - j);
    const real *a = w->a.at + l * w->step_a + i * w->a.row, *b = w->b.at + l * w->step_b + j * w->b.column;
    real *c = w->c + l * w->p->stride_c + i * w->c_row + j * w->c_column;
    if (w->blas) {
        w->blas(101, w->p->ta ? 112 : 111, w->p->tb ? 112 : 111,             /* CblasRowMajor, CblasTrans, CblasNoTrans */
                (int)m, (int)n, (int)w->k, 1, a, (int)w->p->lda, b, (int)w->p->ldb, w->p->add, c, (int)w->p->ldc);
        if (w->finish)
            finish(w->p, j, false, m, n, c);
        return;
    }
    bool in_tiles = w->finish && w->p->then->bias && !(w->turned && w->c_column == 1);
    block(w, a, b, c, m, n, in_tiles ? w->p->then->bias + (w->turned ? i : j) : NULL, w->scratch + weft__worker() * w->each);
    if (w->finish && w->turned)
        finish(w->p, i, in_tiles, n, m, c);      /* its rows are c's columns */
}

/* About four blocks a thread, but none that is not worth dealing out, and one a thread while packing (each block packs its own panels)
 * would cost more than what evens out. */
static void cut(gemm_job *w, int threads)
{
    enum { WORTH = 1 << 19, EVEN = 1 << 27 };    /* terms: some 10 microseconds, some 3 milliseconds */
    double terms = (double)w->m * (double)w->n * (double)w->k * (double)w->p->batches;
    int64_t most = terms < EVEN ? threads : 4 * threads, wanted = threads < 2 ? 1 : terms > (double)most * WORTH ? most : (int64_t)(terms / WORTH);
    w->block_m = w->m, w->block_n = w->n, w->across = w->blocks = 1;
    while (w->blocks * w->p->batches < wanted) {
        if (w->block_m >= w->block_n && w->block_m > 2 * MR)
            w->block_m = up((w->block_m + 1) / 2, MR);
        else if (w->block_n > 2 * NR)
            w->block_n = up((w->block_n + 1) / 2, NR);
        else
            break;
        w->across = parts(w->n, w->block_n);
        w->blocks = w->across * parts(w->m, w->block_m);
    }
}
/* Where there are fewer columns than half a tile has, they become its rows: the transposed product has the same bits. But not where many
 * rows of a can be read as they lie: packing them would cost more than idle columns do. */
static void turn(gemm_job *w)
{
    if (w->n > NR / 2 || w->m <= w->n || (w->a.column == 1 && w->m > 2 * MR))
        return;
    const gemm_job v = *w;
    w->a = (view){ v.b.at, v.b.column, v.b.row }, w->b = (view){ v.a.at, v.a.column, v.a.row };
    w->m = v.n, w->n = v.m, w->step_a = v.step_b, w->step_b = v.step_a;
    w->c_row = v.c_column, w->c_column = v.c_row, w->turned = true;
}
static void by_blas(weft__device *d, gemm_job *w)    /* in fixed blocks: its bits do depend on the shape */
{
    w->block_m = 256, w->block_n = 512;
    w->across = parts(w->n, w->block_n);
    w->blocks = w->across * parts(w->m, w->block_m);
    weft__parallel(d, w->blocks * w->p->batches, block_task, w);
}
static gemm_job job_of(const weft__product *p, const real *a, const real *b, real *c)
{
    return (gemm_job){ .p = p, .a = { a, p->ta ? 1 : p->lda, p->ta ? p->lda : 1 }, .b = { b, p->tb ? 1 : p->ldb, p->tb ? p->ldb : 1 },
        .c = c, .c_row = p->ldc, .c_column = 1, .m = p->m, .n = p->n, .k = p->k, .step_a = p->stride_a, .step_b = p->stride_b,
        .add = p->add, .bf16 = rounds(p), .finish = p->then };
}
/* By tiles of registers; c NULL: into as many numbers of scratch, where c will point. False: there is no memory. */
static bool run_tiles(weft__device *d, gemm_job *w, int64_t results)
{
    int threads = weft__pool_threads(d->pool);
    turn(w);
    cut(w, threads);
    int64_t kc = least(KC, w->k);
    w->of_a = up(up(least(MC, w->block_m), MR) * kc + VLEN, 16);
    w->each = w->of_a + up(up(least(NC, w->block_n), NR) * kc + VLEN, 16);
    real *scratch = weft__scratch(d, (size_t)(results + w->each * threads) * sizeof(real));
    if (!scratch)
        return false;
    w->c = w->c ? w->c : scratch, w->scratch = scratch + results;
    weft__parallel(d, w->blocks * w->p->batches, block_task, w);
    return true;
}
#include "core/fast_gemm_deep.h"
#ifdef TILES
#include "core/fast_gemm_tiles.h"
#endif
static void K(gemm)(weft__device *d, const weft__product *p, const real *a, const real *b, real *c)
{
    if (p->k == 0 && !p->add)
        for (int64_t i = 0; i < p->batches * p->m; i++)
            for (int64_t j = 0; j < p->n; j++)
                c[i / p->m * p->stride_c + i % p->m * p->ldc + j] = 0;
    if (p->k == 0)
        finish_all(p, c);
    if (p->m == 0 || p->n == 0 || p->k == 0 || p->batches == 0)
        return;
    gemm_job w = job_of(p, a, b, c);
    bool fits = p->k <= INT_MAX && p->lda <= INT_MAX && p->ldb <= INT_MAX && p->ldc <= INT_MAX;
    if (!w.bf16 && fits && (w.blas = weft__blas()))
        by_blas(d, &w);
#ifdef TILES
    else if (tiles_for(&w))
        by_matrix_tiles(d, &w);
#endif
    else if (is_deep(p))
        by_segments(d, p, a, b, c);
    else
        run_tiles(d, &w, 0);
}
#endif
