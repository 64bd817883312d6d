/* loops_index.h - plain loops: rows and elements by index. -1 is "none"; anything else out of range is a fault and none. */
#ifndef WEFT_LOOPS_INDEX_H
#define WEFT_LOOPS_INDEX_H
#include "core/loops_memory.h"

static void K(ids_used)(weft__device *d, int64_t n, int64_t rows, const int32_t *id, int32_t *row, int32_t *used)
{
    for (int64_t v = 0; v <= rows; v++)
        used[v] = -1;
    for (int64_t i = 0; i < n; i++) {
        int64_t v = checked(d, i, id[i], rows);
        row[i] = (int32_t)(v < 0 ? rows : v);
        if (v >= 0)
            used[v] = (int32_t)v;
    }
}
static void K(pick)(weft__device *d, int64_t rows, int64_t width, const real *x, const int32_t *column, real *y, bool add)
{
    for (int64_t r = 0; r < rows; r++) {
        int64_t j = checked(d, r, column[r], width);
        y[r] = onto(&y[r], add, j < 0 ? 0 : x[r * width + j]);
    }
}
static void K(place)(weft__device *d, int64_t rows, int64_t width, const real *x, const int32_t *column, real *y)
{
    for (int64_t r = 0; r < rows; r++) {
        int64_t j = checked(d, r, column[r], width);
        if (j >= 0)
            y[r * width + j] += x[r];
    }
}

#ifndef FAST
static void K(gather_ints)(weft__device *d, int64_t rows, int64_t width, int64_t n, const int32_t *x, const int32_t *index,
                           int32_t fill, int32_t *y)
{
    for (int64_t r = 0; r < rows; r++) {
        int64_t i = checked(d, r, index[r], n);
        for (int64_t j = 0; j < width; j++)
            y[r * width + j] = i < 0 ? fill : x[i * width + j];
    }
}
static void K(gather)(weft__device *d, int64_t rows, int64_t width, int64_t n, const real *x, const int32_t *index, real fill,
                      real *y, bool add)
{
    for (int64_t r = 0; r < rows; r++) {
        int64_t i = checked(d, r, index[r], n);
        for (int64_t j = 0; j < width; j++)
            y[r * width + j] = onto(&y[r * width + j], add, i < 0 ? fill : x[i * width + j]);
    }
}
static void K(scatter)(weft__device *d, int64_t rows, int64_t width, int64_t n, const real *x, const int32_t *index, real *y)
{
    for (int64_t r = 0; r < rows; r++) {
        int64_t i = checked(d, r, index[r], n);
        for (int64_t j = 0; i >= 0 && j < width; j++)
            y[i * width + j] += x[r * width + j];
    }
}
#endif
#endif
