/* gemm.cu - matrix products: special cases, bias and activation, and cublasLt (blas.cu) for the rest.
 * cublasLt is column-major, so a row-major c is c^T. It computes c^T = op(b)^T op(a)^T. No data moves. */
#include <limits.h>
#include "cuda/blas.h"
#include "cuda/groups.h"

static bool fits(weft__device *d, const weft__product *p)         /* into cuBLAS's integers */
{
    const int64_t size[] = { p->m, p->n, p->k, p->lda, p->ldb, p->ldc, p->batches };
    for (int64_t n : size)
        if (n > INT_MAX)
            fail(d, WEFT_ESHAPE, "gemm: [%lld, %lld] by [%lld, %lld]; expected sizes that fit into an int",
                 (long long)p->m, (long long)p->k, (long long)p->k, (long long)p->n);
    return !d->failure[0];
}

static __global__ void zero_matrices(weft__product p, real *c)
{
    for (int64_t i = first_index(), of_one = p.m * p.n; i < p.batches * of_one; i += index_step())
        c[i / of_one * p.stride_c + i % of_one / p.n * p.ldc + i % p.n] = 0;
}

/* ---- finishing complete sums ---- */
__device__ static inline real finished(const weft__finish &f, real x)
{
    const real y = 0, p = f.p, q = f.q;
    (void)y, (void)p, (void)q;
    switch (f.f) {
#define UNARY(name, value, ...) case WEFT__##name: return value;
#include "core/shared/pointwise.def"
    }
    return x;
}
static __global__ void finish_each(weft__product p, weft__finish f, real *c)
{
    EACH_ROW(r, p.batches * p.m) {
        /* avoids a division, about a hundred instructions */
        const int64_t batch = p.batches == 1 ? 0 : r / p.m;
        real *to = c + batch * p.stride_c + (r - batch * p.m) * p.ldc;
        for (int64_t j = first_column(); j < p.n; j += column_step())
            to[j] = finished(f, to[j] + (f.bias ? f.bias[batch * f.stride + j] : 0));
    }
}

/* Returns true if it also added the bias of p->then. */
static bool product(weft__device *d, const weft__product *p, int64_t rows, const real *a, const real *b,
                    real *c)
{
    const int64_t numbers = p->batches * p->m * p->n;
    const real *bias = p->then && p->then->f == WEFT__UNARIES && !p->ta ? p->then->bias : NULL;
    if (p->k == 0 && p->add)
        return false;
    if (p->k == 0)
        LAUNCH(d, zero_matrices, blocks_for(numbers), THREADS, 0, *p, c);
    else if (fits(d, p) && (p->stride_c || p->batches == 1))
        return multiply(d, p, rows, a, b, c, bias, bias ? p->then->stride : 0);
    else                                         /* all products add into one matrix, so run them in order */
        for (int64_t i = 0; i < p->batches && !d->failure[0]; i++) {
            weft__product one = *p;
            one.batches = 1;
            multiply(d, &one, rows, a + i * p->stride_a, b + i * p->stride_b, c, NULL, 0);
        }
    return false;
}

void gemm_of_rows(weft__device *d, const weft__product *p, int64_t rows, const real *a, const real *b,
                  real *c)
{
    const int64_t numbers = p->batches * p->m * p->n;
    if (numbers == 0 || product(d, p, rows, a, b, c) || !p->then)
        return;
    /* cublasLt's activations are unused: its ReLU leaves NaN undefined, and its GELU is the tanh version. */
    if (p->then->bias || p->then->f != WEFT__UNARIES)
        LAUNCH_SHAPE(d, finish_each, plane_of(p->batches * p->m, p->n), *p, *p->then, c);
}
void K(gemm)(weft__device *d, const weft__product *p, const real *a, const real *b, real *c)
{
    gemm_of_rows(d, p, ROWS, a, b, c);
}

/* cuBLAS reads b in place. */
size_t K(gemm_packs)(weft__device *, const weft__product *)                    { return 0; }
bool K(gemm_gathers)(weft__device *, const weft__product *)                    { return false; }
void K(gemm_pack)(weft__device *, const weft__product *, const real *, void *) {}
