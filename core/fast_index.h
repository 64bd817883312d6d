/* fast_index.h - rows by index. The indices are looked over before the rows are moved, so that the threads find no fault. */
#include "core/fast_sums.h"
#include "core/loops_index.h"

typedef struct index_job { int64_t rows, width, n; const real *x; const int32_t *index; real fill, *y; bool add; } index_job;

static inline int64_t good(const index_job *j, int64_t r)
{
    int32_t i = j->index[r];
    return i < j->n ? i : -1;
}
static bool all_good(int64_t rows, int64_t n, const int32_t *index)
{
    const int32_t end = (int32_t)least(n, INT32_MAX);
    int32_t bad = 0;
    for (int64_t r = 0; r < rows; r++)
        bad |= (index[r] < -1) | (index[r] >= end);
    return !bad;
}
static void look_over(weft__device *d, int64_t rows, int64_t n, const int32_t *index)
{
    for (int64_t r = 0, end = all_good(rows, n, index) ? 0 : rows; r < end; r++)
        checked(d, r, index[r], n);
}
static void gather_rows(const void *job, int64_t from, int64_t to)
{
    const index_job *j = job;
    for (int64_t r = from, w = j->width; r < to; r++) {
        int64_t i = good(j, r);
        real *y = j->y + r * w;
        if (i >= 0)
            move(w, j->x + i * w, y, j->add);
        else
            for (int64_t c = 0; c < w; c++)
                y[c] = onto(&y[c], j->add, j->fill);
    }
}
static void K(gather)(weft__device *d, int64_t rows, int64_t width, int64_t n, const real *x, const int32_t *index, real fill,
                      real *y, bool add)
{
    look_over(d, rows, n, index);
    each_range(d, rows, rows_a_chunk(width), gather_rows, &(index_job){ rows, width, n, x, index, fill, y, add });
}

typedef struct ints_job { int64_t width, n; const int32_t *x, *index; int32_t fill, *y; } ints_job;
static void gather_int_rows(const void *job, int64_t from, int64_t to)
{
    const ints_job *j = job;
    for (int64_t r = from, w = j->width; r < to; r++) {
        const int64_t i = j->index[r];
        for (int64_t c = 0; c < w; c++)
            j->y[r * w + c] = i >= 0 && i < j->n ? j->x[i * w + c] : j->fill;
    }
}
static void K(gather_ints)(weft__device *d, int64_t rows, int64_t width, int64_t n, const int32_t *x, const int32_t *index, int32_t fill, int32_t *y)
{
    look_over(d, rows, n, index);
    each_range(d, rows, rows_a_chunk(width), gather_int_rows, &(ints_job){ width, n, x, index, fill, y });
}

/* Each thread adds all rows in order, to columns of its own. */
static void scatter_columns(const void *job, int64_t from, int64_t to)
{
    const index_job *j = job;
    for (int64_t r = 0, w = j->width; r < j->rows; r++) {
        int64_t i = good(j, r);
        if (i >= 0)
            move(to - from, j->x + r * w + from, j->y + i * w + from, true);
    }
}
static void K(scatter)(weft__device *d, int64_t rows, int64_t width, int64_t n, const real *x, const int32_t *index, real *y)
{
    look_over(d, rows, n, index);
    each_range(d, width, rows * width < CHUNK ? width : STRIP, scatter_columns, &(index_job){ rows, width, n, x, index, 0, y, true });
}
