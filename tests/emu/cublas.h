/* cublas.h - matrix products as cuBLAS calls them: column-major, every element's sum taken in the order of
 * k. */
#ifndef WEFT_EMU_CUBLAS_H
#define WEFT_EMU_CUBLAS_H
#include "tests/emu/runtime.h"

typedef struct emu_blas *cublasHandle_t;
enum cublasStatus_t {
    CUBLAS_STATUS_SUCCESS = 0,
    CUBLAS_STATUS_NOT_INITIALIZED = 1,
    CUBLAS_STATUS_ALLOC_FAILED = 3,
    CUBLAS_STATUS_INVALID_VALUE = 7,
    CUBLAS_STATUS_EXECUTION_FAILED = 13,
    CUBLAS_STATUS_NOT_SUPPORTED = 15
};
enum cublasOperation_t { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 };
enum cublasMath_t { CUBLAS_DEFAULT_MATH = 0, CUBLAS_PEDANTIC_MATH = 2, CUBLAS_TF32_TENSOR_OP_MATH = 3 };
enum cublasComputeType_t {
    CUBLAS_COMPUTE_32F = 68,
    CUBLAS_COMPUTE_32F_PEDANTIC = 69,
    CUBLAS_COMPUTE_32F_FAST_16BF = 75,
    CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
    CUBLAS_COMPUTE_64F = 70,
    CUBLAS_COMPUTE_64F_PEDANTIC = 71
};
enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT = -1, CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99 };
enum cudaDataType_t { CUDA_R_32F = 0, CUDA_R_64F = 1, CUDA_R_16BF = 14 };
typedef cudaDataType_t cudaDataType;

cublasStatus_t cublasCreate(cublasHandle_t *), cublasDestroy(cublasHandle_t),
    cublasSetStream(cublasHandle_t, cudaStream_t);
cublasStatus_t cublasSetWorkspace(cublasHandle_t, void *, size_t),
    cublasSetMathMode(cublasHandle_t, cublasMath_t);
const char *cublasGetStatusString(cublasStatus_t);
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m,
                                          int n, int k, const void *alpha, const void *a, cudaDataType_t,
                                          int lda, long long to_next_a, const void *b, cudaDataType_t,
                                          int ldb, long long to_next_b, const void *beta, void *c,
                                          cudaDataType_t, int ldc, long long to_next_c, int batches,
                                          cublasComputeType_t, cublasGemmAlgo_t);
cublasStatus_t cublasGemmEx(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                            const void *alpha, const void *a, cudaDataType_t, int lda, const void *b,
                            cudaDataType_t, int ldb, const void *beta, void *c, cudaDataType_t, int ldc,
                            cublasComputeType_t, cublasGemmAlgo_t);
#endif
