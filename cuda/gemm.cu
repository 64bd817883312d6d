/* gemm.cu - matrix products through cuBLAS. Its matrices are column-major, so that a row-major c is its
 * transpose to it: what is computed is c^T = op(b)^T op(a)^T, and no number moves. cuBLAS adds in one order
 * as long as shapes, stream and workspace stay. */
#include <limits.h>
#include "cuda/groups.h"

static cublasComputeType_t arithmetic(weft_precision precision)
{
    if (sizeof(real) == sizeof(double))
        return CUBLAS_COMPUTE_64F;
    switch (precision) {
    case WEFT_STRICT_FP32: return CUBLAS_COMPUTE_32F_PEDANTIC;
    case WEFT_TF32:        return CUBLAS_COMPUTE_32F_FAST_TF32;
    case WEFT_BF16:        return CUBLAS_COMPUTE_32F_FAST_16BF;
    default:               return CUBLAS_COMPUTE_32F;
    }
}

static bool fits(weft__device *d, const weft__product *p)         /* into cuBLAS's integers */
{
    const int64_t size[] = { p->m, p->n, p->k, p->lda, p->ldb, p->ldc, p->batches };
    for (int64_t n : size)
        if (n > INT_MAX)
            fail(d, WEFT_ESHAPE, "gemm: a matrix of %lld x %lld by %lld x %lld is too large for cuBLAS",
                 (long long)p->m, (long long)p->k, (long long)p->k, (long long)p->n);
    return !d->failure[0];
}

/* The step between lines of `length` numbers; of a single line it is not looked at, but cuBLAS wants it to
 * be long enough. */
static int leading(int64_t step, int64_t lines, int64_t length)
{
    return (int)(lines > 1 || step > length ? step : length);
}

static void multiply(weft__device *d, const weft__product *p, int64_t batches, const real *a, const real *b,
                     real *c)
{
    const cudaDataType_t type = sizeof(real) == sizeof(double) ? CUDA_R_64F : CUDA_R_32F;
    const cublasOperation_t ta = p->ta ? CUBLAS_OP_T : CUBLAS_OP_N, tb = p->tb ? CUBLAS_OP_T : CUBLAS_OP_N;
    const real one = 1, beta = p->add;
    const int m = (int)p->m, n = (int)p->n, k = (int)p->k, ldc = leading(p->ldc, p->m, p->n);
    const int lda = p->ta ? leading(p->lda, p->k, p->m) : leading(p->lda, p->m, p->k);
    const int ldb = p->tb ? leading(p->ldb, p->n, p->k) : leading(p->ldb, p->k, p->n);
    cublasHandle_t blas = blas_of(d);
    cublasStatus_t status;
    if (d->failure[0])
        return;
    if (batches == 1)
        status = cublasGemmEx(blas, tb, ta, n, m, k, &one, b, type, ldb, a, type, lda, &beta, c, type, ldc,
                              arithmetic(p->precision), CUBLAS_GEMM_DEFAULT);
    else
        status = cublasGemmStridedBatchedEx(blas, tb, ta, n, m, k, &one, b, type, ldb, p->stride_b, a, type,
                                            lda, p->stride_a, &beta, c, type, ldc, p->stride_c, (int)batches,
                                            arithmetic(p->precision), CUBLAS_GEMM_DEFAULT);
    if (!blas_failed(d, status, "gemm"))
        launched(d, cudaSuccess, "gemm");
}

static __global__ void zero_matrices(weft__product p, real *c)
{
    for (int64_t i = first_index(), of_one = p.m * p.n; i < p.batches * of_one; i += index_step())
        c[i / of_one * p.stride_c + i % of_one / p.n * p.ldc + i % p.n] = 0;
}

/* ---- what becomes of complete sums ---- */
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
    for (int64_t i = first_index(), of_one = p.m * p.n; i < p.batches * of_one; i += index_step()) {
        real *to = c + i / of_one * p.stride_c + i % of_one / p.n * p.ldc + i % p.n;
        *to = finished(f, *to + (f.bias ? f.bias[i / of_one * f.stride + i % p.n] : 0));
    }
}

static void product(weft__device *d, const weft__product *p, const real *a, const real *b, real *c)
{
    const int64_t numbers = p->batches * p->m * p->n;
    if (p->k == 0 && p->add)
        return;
    if (p->k == 0)
        LAUNCH(d, zero_matrices, blocks_for(numbers), THREADS, 0, *p, c);
    else if (!fits(d, p))
        return;
    else if (p->stride_c || p->batches == 1)
        multiply(d, p, p->batches, a, b, c);
    else                                         /* all products into one matrix, one after the other */
        for (int64_t i = 0; i < p->batches; i++)
            multiply(d, p, 1, a + i * p->stride_a, b + i * p->stride_b, c);
}

void K(gemm)(weft__device *d, const weft__product *p, const real *a, const real *b, real *c)
{
    const int64_t numbers = p->batches * p->m * p->n;
    if (numbers == 0)
        return;
    product(d, p, a, b, c);
    if (p->then)
        LAUNCH(d, finish_each, blocks_for(numbers), THREADS, 0, *p, *p->then, c);
}

/* cuBLAS reads b where it is. */
size_t K(gemm_packs)(weft__device *, const weft__product *)                    { return 0; }
void K(gemm_pack)(weft__device *, const weft__product *, const real *, void *) {}
