/* downsample.c - reduces rows to every k-th one, or to the mean or median of k rows. It works in place,
 * separately for each column and series of a frame. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "rnn/forecast/series/frame.h"

/* Sums differences from the first value, so a constant stays exact. */
static double mean(const double *a, int64_t k)
{
    double sum = 0, about = isinf(a[0]) ? 0 : a[0];
    for (int64_t i = 0; i < k; i++)
        sum += a[i] - about;
    return about + sum / (double)k;
}

static int by_value(const void *a, const void *b)
{
    double p, q;
    memcpy(&p, a, sizeof p);
    memcpy(&q, b, sizeof q);
    return (p > q) - (p < q);
}

static double median(const double *a, int64_t k, double *spare)
{
    for (int64_t i = 0; i < k; i++)
        if (isnan(a[i]))
            return a[i];                         /* a missing value cannot be ordered */
    memcpy(spare, a, (size_t)k * sizeof *a);
    qsort(spare, (size_t)k, sizeof *spare, by_value);
    double low = spare[(k - 1) / 2], high = spare[k / 2];
    return k % 2 || (isinf(low) && low == high) ? low : low + (high - low) / 2;
}

static int64_t fewer(int64_t rows, int64_t k, weft_downsampling method)
{
    return method == WEFT_DOWN_INTERVAL ? rows / k + (rows % k > 0) : rows / k;
}

static void shrink_column(const weft_frame *f, double *column, int64_t k, weft_downsampling method,
                          double *spare)
{
    double *to = column;                         /* writes never overtake reads */
    for (int64_t s = 0; s < f->n; s++) {
        const double *from = column + f->start[s];
        for (int64_t i = 0, n = fewer(f->start[s + 1] - f->start[s], k, method); i < n; i++, from += k)
            *to++ = method == WEFT_DOWN_MEAN   ? mean(from, k) :
                    method == WEFT_DOWN_MEDIAN ? median(from, k, spare) :
                                                 *from;
    }
}

static void shrink_starts(weft_frame *f, int64_t k, weft_downsampling method)
{
    int64_t rows = 0, begin = 0;
    for (int64_t s = 0; s < f->n; s++) {
        int64_t end = f->start[s + 1];
        rows += fewer(end - begin, k, method);
        begin = end;
        f->start[s + 1] = rows;
    }
    f->rows = rows;
}

weft_status weft_frame_downsample(weft_frame *f, int64_t factor, weft_downsampling method)
{
    weft_status s = weft__check_frame("weft_frame_downsample", f);
    if (s != WEFT_OK)
        return s;
    if (factor < 1 || (int)method < WEFT_DOWN_INTERVAL || method > WEFT_DOWN_MEDIAN)
        return weft__file_fail(
            WEFT_EARG,
            "weft_frame_downsample: factor %lld; expected 1 or more, and a value of weft_downsampling",
            (long long)factor);
    /* A bin has at most f->rows rows. */
    int64_t k = factor < f->rows ? factor : f->rows;
    double *spare = malloc((size_t)(k + 1) * sizeof *spare);
    if (!spare)
        return weft__file_fail(WEFT_ENOMEM, "weft_frame_downsample: out of memory for %lld rows",
                               (long long)k);
    for (int64_t c = 0; c < f->columns; c++)
        shrink_column(f, f->column[c], factor, method, spare);
    shrink_starts(f, factor, method);
    free(spare);
    return WEFT_OK;
}
