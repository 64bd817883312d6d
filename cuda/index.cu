/* index.cu - gathers, scatters and marks rows and elements by index. Index -1 means no row. Another index out
 * of range is reported as a fault and treated as -1. The thread of a row's first column checks its index. */
#include "cuda/groups.h"

__global__ static void gather_each(int64_t rows, int64_t width, int64_t n, const real *x,
                                   const int32_t *index, real fill, real *y, bool add, faults f)
{
    EACH_ROW(r, rows) {
        int64_t i = index[r] < n ? index[r] : -1;
        real *to = y + r * width;
        if (first_column() == 0)
            checked(f, r, index[r], n);
        if (i >= 0)
            MAP_COLUMNS(width, j, to, onto(&to[j], add, x[i * width + j]))
        else
            MAP_COLUMNS(width, j, to, onto(&to[j], add, fill))
    }
}
void K(gather)(weft__device *d, int64_t rows, int64_t width, int64_t n, const real *x, const int32_t *index,
               real fill, real *y, bool add)
{
    LAUNCH_SHAPE(d, gather_each, plane_of(rows, width), rows, width, n, x, index, fill, y, add, faults_of(d));
}
__global__ static void gather_ints_each(int64_t rows, int64_t width, int64_t n, const int32_t *x,
                                        const int32_t *index, int32_t fill, int32_t *y, faults f)
{
    EACH_ROW(r, rows) {
        int64_t i = index[r] < n ? index[r] : -1;
        if (first_column() == 0)
            checked(f, r, index[r], n);
        for (int64_t j = first_column(); j < width; j += column_step())
            y[r * width + j] = i < 0 ? fill : x[i * width + j];
    }
}
void K(gather_ints)(weft__device *d, int64_t rows, int64_t width, int64_t n, const int32_t *x,
                    const int32_t *index, int32_t fill, int32_t *y)
{
    LAUNCH_SHAPE(d, gather_ints_each, plane_of(rows, width), rows, width, n, x, index, fill, y, faults_of(d));
}

__global__ static void ids_used_each(int64_t n, int64_t rows, const int32_t *id, int32_t *row, int32_t *used,
                                     faults f)
{
    for (int64_t i = first_index(); i < n; i += index_step()) {
        int64_t v = checked(f, i, id[i], rows);
        row[i] = (int32_t)(v < 0 ? rows : v);
        if (v >= 0)
            used[v] = (int32_t)v;                /* all threads write the same value */
    }
}
/* One block, for few ids and rows. */
__global__ static void ids_used_few(int64_t n, int64_t rows, const int32_t *id, int32_t *row, int32_t *used,
                                    faults f)
{
    for (int64_t v = threadIdx.x; v <= rows; v += blockDim.x)
        used[v] = -1;
    __syncthreads();
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
        int64_t v = checked(f, i, id[i], rows);
        row[i] = (int32_t)(v < 0 ? rows : v);
        if (v >= 0)
            used[v] = (int32_t)v;
    }
}
void K(ids_used)(weft__device *d, int64_t n, int64_t rows, const int32_t *id, int32_t *row, int32_t *used)
{
    enum { FEW = 4096, TEAM = 512 };
    if (n + rows <= FEW) {
        LAUNCH(d, ids_used_few, 1, TEAM, 0, n, rows, id, row, used, faults_of(d));
        return;
    }
    K(fill_ints)(d, rows + 1, -1, used);
    LAUNCH(d, ids_used_each, blocks_for(n), THREADS, 0, n, rows, id, row, used, faults_of(d));
}
