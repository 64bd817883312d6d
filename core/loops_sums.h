/* loops_sums.h - plain loops: copies of blocks, broadcasting and its transpose, and the same along runs of rows. */
#ifndef WEFT_LOOPS_SUMS_H
#define WEFT_LOOPS_SUMS_H
#include "core/loops_memory.h"

static void K(block_ints)(weft__device *d, int64_t rows, int64_t width, const int32_t *x, int64_t ldx, int32_t *y, int64_t ldy)
{
    (void)d;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < width; j++)
            y[r * ldy + j] = x[r * ldx + j];
}

/* ---- runs: s runs, row r of a run, column j ---- */
static void K(segment_max)(weft__device *d, const weft__segments *s, const real *x, real *y, int32_t *at)
{
    (void)d;
    for (int64_t run = 0, w = s->inner; run < s->count; run++, y += w, at += w)
        for (int64_t j = 0; j < w; j++) {
            const real *v = x + first_row(s, run) * w + j;
            y[j] = 0, at[j] = -1;
            for (int64_t r = 0; r < run_length(s, run); r++)
                if (at[j] < 0 || v[r * w] > y[j] || (isnan(v[r * w]) && !isnan(y[j])))
                    y[j] = v[r * w], at[j] = (int32_t)r;
        }
}
static void K(segment_place)(weft__device *d, const weft__segments *s, const real *x, const int32_t *at, real *y)
{
    for (int64_t run = 0, w = s->inner; run < s->count; run++)
        for (int64_t j = 0; j < w; j++) {
            int64_t r = checked(d, run, at[run * w + j], run_length(s, run));
            if (r >= 0)
                y[(first_row(s, run) + r) * w + j] += x[run * w + j];
        }
}
static void K(segment_pick)(weft__device *d, const weft__segments *s, const real *x, const int32_t *at, real *y, bool add)
{
    for (int64_t run = 0, w = s->inner; run < s->count; run++)
        for (int64_t j = 0; j < w; j++) {
            int64_t r = checked(d, run, at[run * w + j], run_length(s, run));
            y[run * w + j] = onto(&y[run * w + j], add, r < 0 ? 0 : x[(first_row(s, run) + r) * w + j]);
        }
}
static void K(cumsum)(weft__device *d, const weft__segments *s, bool reverse, const real *x, real *y, bool add)
{
    (void)d;
    for (int64_t run = 0, w = s->inner; run < s->count; run++) {
        int64_t n = run_length(s, run), first = first_row(s, run);
        for (int64_t j = 0; j < w; j++) {
            real sum = 0;
            for (int64_t i = 0; i < n; i++) {
                int64_t at = (first + (reverse ? n - 1 - i : i)) * w + j;
                sum += x[at];
                y[at] = onto(&y[at], add, sum);
            }
        }
    }
}
static void K(flip)(weft__device *d, const weft__segments *s, const real *x, real *y, bool add)
{
    (void)d;
    for (int64_t run = 0, w = s->inner; run < s->count; run++)
        for (int64_t r = 0, n = run_length(s, run); r < n; r++) {
            const real *from = x + (first_row(s, run) + n - 1 - r) * w;
            real *to = y + (first_row(s, run) + r) * w;
            for (int64_t j = 0; j < w; j++)
                to[j] = onto(&to[j], add, from[j]);
        }
}

#ifndef FAST
static void K(block)(weft__device *d, int64_t rows, int64_t width, const real *x, int64_t ldx, real *y, int64_t ldy, bool add)
{
    (void)d;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < width; j++)
            y[r * ldy + j] = onto(&y[r * ldy + j], add, x[r * ldx + j]);
}
static void K(spread)(weft__device *d, const weft__grid *g, const real *x, real *y, bool add)
{
    (void)d;
    for (int64_t r = 0, n = columns(g); r < rows_of(g); r++, y += n)
        for (int64_t j = 0, at = row_at(g, 0, r); j < n; j++)
            y[j] = onto(&y[j], add, x[at + j * stride(g, 0)]);
}
static void K(sum)(weft__device *d, const weft__grid *g, const real *x, real *y)
{
    (void)d;
    for (int64_t r = 0, n = columns(g); r < rows_of(g); r++, x += n)
        for (int64_t j = 0, at = row_at(g, 0, r); j < n; j++)
            y[at + j * stride(g, 0)] += x[j];
}
static void K(segment_sum)(weft__device *d, const weft__segments *s, const real *x, real *y, bool add)
{
    (void)d;
    for (int64_t run = 0, w = s->inner; run < s->count; run++)
        for (int64_t j = 0; j < w; j++) {
            real sum = 0;
            for (int64_t r = 0; r < run_length(s, run); r++)
                sum += x[(first_row(s, run) + r) * w + j];
            y[run * w + j] = onto(&y[run * w + j], add, sum);
        }
}
static void K(segment_spread)(weft__device *d, const weft__segments *s, const real *x, real *y, bool add)
{
    (void)d;
    for (int64_t run = 0, w = s->inner; run < s->count; run++)
        for (int64_t r = 0; r < run_length(s, run); r++) {
            real *to = y + (first_row(s, run) + r) * w;
            for (int64_t j = 0; j < w; j++)
                to[j] = onto(&to[j], add, x[run * w + j]);
        }
}
#endif
#endif
