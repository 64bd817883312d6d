/* cublas.cpp - the products of cublas.h: operands are rounded as the compute type says, and packed; c is
 * kept in a row of m. */
#include <algorithm>
#include "tests/emu/cublas.h"

struct emu_blas { cudaStream_t stream; cublasMath_t mode; };

namespace {
enum rounding { EXACT, TF32, BF16 };
struct matrix { const void *p; cudaDataType_t type; long long ld, next; };
struct product {
    bool ta, tb;
    int m, n, k, batches;
    double alpha, beta;
    matrix a, b, c;
    rounding how;
};

double get(const void *p, cudaDataType_t type, size_t i)
{
    return type == CUDA_R_64F ? ((const double *)p)[i] : type == CUDA_R_32F ? (double)((const float *)p)[i]
                              : (double)emu::from_bf16(((const uint16_t *)p)[i]);
}

template <class T> T rounded(double v, rounding how)
{
    return how == TF32 ? (T)emu::nearest_tf32((float)v) :
           how == BF16 ? (T)emu::from_bf16(emu::to_bf16((float)v)) :
                         (T)v;
}

template <class T>
void pack(std::vector<T> &to, const matrix &a, int batch, bool transposed, int rows, int columns,
          rounding how)
{
    to.resize((size_t)rows * columns);
    for (int j = 0; j < columns; j++)
        for (int i = 0; i < rows; i++) {
            long long at = batch * a.next + (transposed ? i * a.ld + j : j * a.ld + i);
            to[(size_t)j * rows + i] = rounded<T>(get(a.p, a.type, (size_t)at), how);
        }
}

/* a: m x k; b: k; sum: m */
template <class T> void column(const product &g, const T *a, const T *b, int j, T *sum)
{
    for (int i = 0; i < g.m; i++)
        sum[i] = 0;
    for (int l = 0; l < g.k; l++, a += g.m)
        for (int i = 0; i < g.m; i++)
            sum[i] += a[i] * b[(size_t)j * g.k + l];
}

template <class T> void put(const product &g, int batch, int j, const T *sum)
{
    for (int i = 0; i < g.m; i++) {
        size_t at = (size_t)(batch * g.c.next + j * g.c.ld + i);
        T v = g.alpha == 0 ? 0 : (T)g.alpha * sum[i];
        if (g.beta != 0)                         /* else c may be anything */
            v += (T)g.beta * (T)get(g.c.p, g.c.type, at);
        if (g.c.type == CUDA_R_64F)
            ((double *)g.c.p)[at] = v;
        else
            ((float *)g.c.p)[at] = (float)v;
    }
}

template <class T> void multiply(const product &g)
{
    std::vector<T> a, b, sum((size_t)g.m);
    for (int batch = 0; batch < g.batches; batch++) {
        if (g.alpha != 0) {
            pack(a, g.a, batch, g.ta, g.m, g.k, g.how);
            pack(b, g.b, batch, g.tb, g.k, g.n, g.how);
        }
        for (int j = 0; j < g.n; j++) {
            if (g.alpha != 0)
                column(g, a.data(), b.data(), j, sum.data());
            put(g, batch, j, sum.data());
        }
    }
}

bool wrong(const product &g)
{
    return g.m < 0 || g.n < 0 || g.k < 0 || g.batches < 0 || g.a.ld < std::max(1, g.ta ? g.k : g.m) ||
           g.b.ld < std::max(1, g.tb ? g.n : g.k) || g.c.ld < std::max(1, g.m);
}
} // namespace

cublasStatus_t cublasCreate(cublasHandle_t *h)
{
    return *h = new emu_blas{ NULL, CUBLAS_DEFAULT_MATH }, CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy(cublasHandle_t h) { return delete h, CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetStream(cublasHandle_t h, cudaStream_t s)
{
    return h->stream = s, CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace(cublasHandle_t, void *p, size_t)
{
    return (uintptr_t)p % 256 ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t h, cublasMath_t mode)
{
    return h->mode = mode, CUBLAS_STATUS_SUCCESS;
}

const char *cublasGetStatusString(cublasStatus_t s)
{
    return s == CUBLAS_STATUS_SUCCESS           ? "CUBLAS_STATUS_SUCCESS"
           : s == CUBLAS_STATUS_INVALID_VALUE   ? "CUBLAS_STATUS_INVALID_VALUE"
           : s == CUBLAS_STATUS_NOT_SUPPORTED   ? "CUBLAS_STATUS_NOT_SUPPORTED"
           : s == CUBLAS_STATUS_NOT_INITIALIZED ? "CUBLAS_STATUS_NOT_INITIALIZED"
           : s == CUBLAS_STATUS_ALLOC_FAILED    ? "CUBLAS_STATUS_ALLOC_FAILED"
                                                : "CUBLAS_STATUS_EXECUTION_FAILED";
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m,
                                          int n, int k, const void *alpha, const void *a, cudaDataType_t at,
                                          int lda, long long to_next_a, const void *b, cudaDataType_t bt,
                                          int ldb, long long to_next_b, const void *beta, void *c,
                                          cudaDataType_t ct, int ldc, long long to_next_c, int batches,
                                          cublasComputeType_t compute, cublasGemmAlgo_t)
{
    if (!h)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    bool wide = compute == CUBLAS_COMPUTE_64F || compute == CUBLAS_COMPUTE_64F_PEDANTIC;
    if (at != bt || wide != (at == CUDA_R_64F) || ct != (wide ? CUDA_R_64F : CUDA_R_32F))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    bool tf32 = compute == CUBLAS_COMPUTE_32F_FAST_TF32 ||
                (compute == CUBLAS_COMPUTE_32F && h->mode == CUBLAS_TF32_TENSOR_OP_MATH);
    product g = { ta == CUBLAS_OP_T,
                  tb == CUBLAS_OP_T,
                  m,
                  n,
                  k,
                  batches,
                  get(alpha, ct, 0),
                  get(beta, ct, 0),
                  { a, at, lda, to_next_a },
                  { b, bt, ldb, to_next_b },
                  { c, ct, ldc, to_next_c },
                  tf32                                    ? TF32 :
                  compute == CUBLAS_COMPUTE_32F_FAST_16BF ? BF16 :
                                                            EXACT };
    if (wrong(g))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (emu::usable(h->stream) != cudaSuccess)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    emu::say("gemm");
    if (m && n && batches)
        emu::later(h->stream, [g, wide] {
            if (!emu::skips())
                wide ? multiply<double>(g) : multiply<float>(g);
        });
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                            const void *alpha, const void *a, cudaDataType_t at, int lda, const void *b,
                            cudaDataType_t bt, int ldb, const void *beta, void *c, cudaDataType_t ct, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t algorithm)
{
    return cublasGemmStridedBatchedEx(h, ta, tb, m, n, k, alpha, a, at, lda, 0, b, bt, ldb, 0, beta, c, ct,
                                      ldc, 0, 1, compute, algorithm);
}
