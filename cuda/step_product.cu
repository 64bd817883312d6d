/* step_product.cu - multiplies a step of a recurrent layer by its weights.
 *
 * A step has few rows, so a long sum over k occupies few multiprocessors. It is computed in parts of k, as
 * one batched product, and a kernel adds the parts in order. The number of parts depends on k only, so a
 * row has the same bits in every batch. On an H100 this halves the time of a backward step of 1024 units.
 * Below MIN_K the additional launch costs more than it saves. */
#include "cuda/blas.h"
#include "cuda/groups.h"

enum { MAX_PARTS = 16, MIN_PART = 256, MIN_K = 2048, MAX_ROWS = 1024 };
static int64_t parts_of(int64_t k)
{
    int64_t p = k < MIN_K ? 1 : least(MAX_PARTS, k / MIN_PART);
    while (k % p)
        p--;
    return p;
}
/* Returns the row length of the parts, with the same alignment for all. */
static int64_t part_stride(int64_t n) { return parts(n, 16) * 16; }
int64_t reals_of_parts(int64_t rows, int64_t k, int64_t n)
{
    const int64_t p = parts_of(k);
    return p == 1 ? 0 : p * least(rows, MAX_ROWS) * part_stride(n);
}
static __global__ void add_parts(int64_t rows, int64_t n, int64_t count, const real *part, int64_t ld,
                                 real *c, int64_t ldc, bool add)
{
    EACH_ROW(r, rows)
        for (int64_t j = first_column(); j < n; j += column_step()) {
            real sum = part[r * ld + j];
            for (int64_t i = 1; i < count; i++)
                sum += part[(i * rows + r) * ld + j];
            put(&c[r * ldc + j], sum, add);
        }
}
void step_product(weft__device *d, int64_t rows, const real *a, int64_t lda, const real *w, bool transposed,
                  int64_t n, int64_t k, real *c, int64_t ldc, bool add, real *part)
{
    const int64_t count = parts_of(k), part_k = k / count, ld = part_stride(n), ldw = transposed ? k : n;
    if (count == 1) {
        const weft__product p = { false, transposed, add, rows, n, k,           lda, ldw,
                                  ldc,   1,          0,   0,    0, d->precision };
        gemm_of_rows(d, &p, ROWS_OF_A_STEP, a, w, c);
        return;
    }
    for (int64_t first = 0; first < rows && !d->failure[0]; first += MAX_ROWS) {
        const int64_t n_rows = least(MAX_ROWS, rows - first);
        const weft__product p = { false, transposed, false, n_rows, n, part_k, lda, ldw, ld, count, part_k,
                                  transposed ? part_k : part_k * n, n_rows * ld, d->precision };
        gemm_of_rows(d, &p, ROWS_OF_A_STEP, a + first * lda, w, part);
        LAUNCH_SHAPE(d, add_parts, plane_of(n_rows, n), n_rows, n, count, part, ld, c + first * ldc, ldc,
                     add);
    }
}
