/* fast_sums.h - copies of blocks, broadcasting and its transpose, the same along runs of rows.
 *
 * Sums over many terms go by parts of PART terms, whose sums are then added in order: nearer to the truth than one long chain,
 * the same for any number of threads, and a function of the terms' number alone. */
#ifndef WEFT_FAST_SUMS_H
#define WEFT_FAST_SUMS_H
#include "core/fast_ranges.h"
#include "core/loops_sums.h"

enum { PART = 256, STRIP = 64 };                 /* terms of a part; columns that a task sums */

/* The sum of n numbers side by side. */
static real total(int64_t n, const real *x)
{
    real all = 0;
    for (int64_t from = 0, end; from < n; from = end) {
        int64_t i = from;
        vec a = v_set(0), b = a;
        end = least(n, from + PART * VLEN);
        for (; i + 2 * VLEN <= end; i += 2 * VLEN)
            a += v_load(x + i), b += v_load(x + i + VLEN);
        for (; i < end; i += VLEN)
            a += v_load_to(x + i, end - i);
        all += v_sum(a + b);
    }
    return all;
}
/* y[j] += the sum of column j, columns from .. to of rows ldx apart. */
static void total_columns(int64_t rows, int64_t from, int64_t to, const real *x, int64_t ldx, real *y)
{
    for (int64_t r = 0; r < rows; r += PART)
        for (int64_t j = from; j < to; j += 4 * VLEN) {
            int64_t n = to - j, end = least(rows, r + PART);
            vec s[4] = { v_set(0), v_set(0), v_set(0), v_set(0) };
            if (n >= 4 * VLEN) {
                for (int64_t i = r; i < end; i++)
                    UNROLLED for (int l = 0; l < 4; l++)
                        s[l] += v_load(x + i * ldx + j + l * VLEN);
                UNROLLED for (int l = 0; l < 4; l++)
                    v_store(y + j + l * VLEN, v_load(y + j + l * VLEN) + s[l]);
                continue;
            }
            for (int64_t l = 0; l < n; l += VLEN) {
                vec t = v_set(0);
                for (int64_t i = r; i < end; i++)
                    t += v_load_to(x + i * ldx + j + l, n - l);
                v_store_to(y + j + l, v_load_to(y + j + l, n - l) + t, n - l);
            }
        }
}
/* y = x or y += x, n numbers */
static inline void move(int64_t n, const real *x, real *y, bool add)
{
    if (!add && n > 0)
        memcpy(y, x, (size_t)n * sizeof *y);
    for (int64_t i = 0; add && i < n; i++)
        y[i] += x[i];
}

/* ---- blocks, broadcasting ---- */
typedef struct move_job { const weft__grid *g; int64_t width, ldx, ldy; const real *x; real *y; bool add; } move_job;
static void block_rows(const void *job, int64_t from, int64_t to)
{
    const move_job *j = job;
    for (int64_t r = from; r < to; r++)
        move(j->width, j->x + r * j->ldx, j->y + r * j->ldy, j->add);
}
static void K(block)(weft__device *d, int64_t rows, int64_t width, const real *x, int64_t ldx, real *y, int64_t ldy, bool add)
{
    each_range(d, rows, rows_a_chunk(width), block_rows, &(move_job){ NULL, width, ldx, ldy, x, y, add });
}
static void spread_row(const void *job, int64_t n, int64_t dense, const int64_t *at)
{
    const move_job *j = job;
    const real *x = j->x + at[0];
    real *y = j->y + dense;
    int64_t step = stride(j->g, 0);
    if (step == 1) {
        move(n, x, y, j->add);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        y[i] = onto(&y[i], j->add, x[i * step]);
}
static void spread_range(const void *job, int64_t from, int64_t to)
{
    each_row(((const move_job *)job)->g, 1, from, to, spread_row, job);
}
static void K(spread)(weft__device *d, const weft__grid *grid, const real *x, real *y, bool add)
{
    weft__grid g = collapsed(grid, 1);
    each_range(d, rows_of(&g) * columns(&g), CHUNK, spread_range, &(move_job){ &g, 0, 0, 0, x, y, add });
}

/* ---- sums: the last axes by vectors, the axes before them one after the other ---- */
typedef struct sum_job { int64_t rows, width, part; const real *x; real *y; int64_t step; } sum_job;
static void sum_strips(const void *job, int64_t from, int64_t to)             /* [rows, width] to [width] */
{
    const sum_job *j = job;
    total_columns(j->rows, from, to, j->x, j->width, j->y);
}
static void sum_rows(const void *job, int64_t from, int64_t to)               /* [rows, width] to [rows], step apart */
{
    const sum_job *j = job;
    for (int64_t r = from; r < to; r++)
        j->y[r * j->step] += total(j->width, j->x + r * j->width);
}
static void sum_parts(const void *job, int64_t from, int64_t to)              /* all of [width] to y[number of the part] */
{
    const sum_job *j = job;
    j->y[from / j->part] = total(to - from, j->x + from);
}
static void sum_all(weft__device *d, int64_t n, const real *x, real *y)
{
    enum { PARTS = 512 };
    real parts[PARTS];
    int64_t part = up(n / PARTS + 1, CHUNK);
    each_range(d, n, part, sum_parts, &(sum_job){ .part = part, .x = x, .y = parts });
    *y += total((n + part - 1) / part, parts);
}
/* The last two axes [rows, width]; their steps in y. */
static void sum_plane(weft__device *d, int64_t rows, int64_t width, int64_t row_step, int64_t step, const real *x, real *y)
{
    if (row_step == 0 && step == 1)
        each_range(d, width, STRIP, sum_strips, &(sum_job){ .rows = rows, .width = width, .x = x, .y = y });
    else if (row_step == 0 && step == 0)
        for (int64_t r = 0; r < rows; r++)
            sum_all(d, width, x + r * width, y);
    else if (step == 0)
        each_range(d, rows, rows_a_chunk(width), sum_rows, &(sum_job){ .width = width, .x = x, .y = y, .step = row_step });
    else
        for (int64_t r = 0; r < rows; r++)
            for (int64_t j = 0; j < width; j++)
                y[r * row_step + j * step] += x[r * width + j];
}
static void K(sum)(weft__device *d, const weft__grid *grid, const real *x, real *y)
{
    weft__grid g = collapsed(grid, 1), outer = g;
    int64_t rows = g.rank > 1 ? g.size[g.rank - 2] : 1, row_step = g.rank > 1 ? g.step[0][g.rank - 2] : 0, width = columns(&g);
    if (rows_of(&g) * width == 0)
        return;
    outer.rank = g.rank > 1 ? g.rank - 1 : 0;    /* its rows' first elements are where the planes begin */
    for (int64_t p = 0; p < rows_of(&outer); p++)
        sum_plane(d, rows, width, row_step, stride(&g, 0), x + p * rows * width, y + row_at(&outer, 0, p));
}

/* ---- runs ---- */
typedef struct run_job { const weft__segments *s; int64_t strips; const real *x; real *y; bool add; } run_job;
static void sum_run(void *argument, int64_t task)
{
    const run_job *j = argument;
    int64_t run = task / j->strips, w = j->s->inner, from = task % j->strips * STRIP, to = least(w, from + STRIP);
    const real *x = j->x + first_row(j->s, run) * w;
    real *y = j->y + run * w;
    if (w == 1) {
        *y = onto(y, j->add, total(run_length(j->s, run), x));
        return;
    }
    for (int64_t i = from; !j->add && i < to; i++)
        y[i] = 0;
    total_columns(run_length(j->s, run), from, to, x, w, y);
}
static void K(segment_sum)(weft__device *d, const weft__segments *s, const real *x, real *y, bool add)
{
    int64_t strips = (s->inner + STRIP - 1) / STRIP, end = s->offset ? s->offset[s->count] : s->count * s->length;
    run_job j = { s, strips, x, y, add };
    if (end * s->inner >= CHUNK)
        weft__parallel(d, s->count * strips, sum_run, &j);
    else
        for (int64_t i = 0; i < s->count * strips; i++)
            sum_run(&j, i);
}
static void spread_runs(const void *job, int64_t from, int64_t to)
{
    const run_job *j = job;
    for (int64_t run = from, w = j->s->inner; run < to; run++)
        for (int64_t r = 0, first = first_row(j->s, run); r < run_length(j->s, run); r++)
            move(w, j->x + run * w, j->y + (first + r) * w, j->add);
}
static void K(segment_spread)(weft__device *d, const weft__segments *s, const real *x, real *y, bool add)
{
    int64_t all = s->offset ? s->offset[s->count] : s->count * s->length, average = all / (s->count ? s->count : 1) + 1;
    each_range(d, s->count, rows_a_chunk(average * s->inner), spread_runs, &(run_job){ s, 0, x, y, add });
}
#endif
