/* cublas.h - emulates the matrix products of cublasLt: column-major, by an algorithm that the caller selects.
 *
 * The algorithms add in different orders, so their bits differ. They need different alignments and
 * workspaces, and some split the sum over k. As in cublasLt, the sizes determine which one is offered first.
 * WEFT_EMU_BLAS: with "rows" the first one accepts only multiples of eight rows (columns in cuBLAS), with
 * "nobias" none adds a bias, with "room" each needs a workspace. */
#ifndef WEFT_EMU_CUBLAS_H
#define WEFT_EMU_CUBLAS_H
#include "tests/emu/runtime.h"

#define EMU_STATUSES(E)                   \
    E(CUBLAS_STATUS_SUCCESS, 0)           \
    E(CUBLAS_STATUS_ALLOC_FAILED, 3)      \
    E(CUBLAS_STATUS_INVALID_VALUE, 7)     \
    E(CUBLAS_STATUS_EXECUTION_FAILED, 13) \
    E(CUBLAS_STATUS_NOT_SUPPORTED, 15)
enum cublasStatus_t {
#define E(name, number) name = number,
    EMU_STATUSES(E)
#undef E
};
enum cublasOperation_t { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 };
enum cublasComputeType_t {
    CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_32F_PEDANTIC = 69, CUBLAS_COMPUTE_32F_FAST_16BF = 75,
    CUBLAS_COMPUTE_32F_FAST_TF32 = 77, CUBLAS_COMPUTE_64F = 70
};
enum cudaDataType_t { CUDA_R_32F = 0, CUDA_R_64F = 1 };
typedef cudaDataType_t cudaDataType;

enum cublasLtMatmulDescAttributes_t {
    CUBLASLT_MATMUL_DESC_TRANSA = 3, CUBLASLT_MATMUL_DESC_TRANSB = 4, CUBLASLT_MATMUL_DESC_EPILOGUE = 7,
    CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE = 10
};
enum cublasLtMatrixLayoutAttribute_t {
    CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6
};
enum cublasLtMatmulPreferenceAttributes_t {
    CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3,
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6,
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8
};
enum cublasLtReductionScheme_t {
    CUBLASLT_REDUCTION_SCHEME_NONE = 0, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE = 2,
    CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE = 4
};
enum cublasLtEpilogue_t { CUBLASLT_EPILOGUE_DEFAULT = 1, CUBLASLT_EPILOGUE_BIAS = 4 };
enum cublasLtMatmulAlgoConfigAttributes_t { CUBLASLT_ALGO_CONFIG_SPLITK_NUM = 2 };

/* Opaque in cuBLAS. */
struct cublasLtMatmulDescOpaque_t {
    cublasComputeType_t compute; cudaDataType_t scale;
    cublasOperation_t ta, tb; cublasLtEpilogue_t epilogue;
    const void *bias; int64_t to_next_bias;
};
struct cublasLtMatrixLayoutOpaque_t {
    cudaDataType_t type; uint64_t rows, columns; int64_t step; int32_t batches; int64_t to_next;
};
struct cublasLtMatmulPreferenceOpaque_t {
    uint64_t memory; uint32_t reduction, align_a, align_b, align_c, align_d;
};
struct cublasLtMatmulAlgo_t { uint64_t data[8]; };
struct cublasLtMatmulHeuristicResult_t {
    cublasLtMatmulAlgo_t algo; size_t workspaceSize; cublasStatus_t state; float wavesCount; int reserved[4];
};
typedef struct emu_blas *cublasLtHandle_t;
typedef cublasLtMatmulDescOpaque_t *cublasLtMatmulDesc_t;
typedef cublasLtMatrixLayoutOpaque_t *cublasLtMatrixLayout_t;
typedef cublasLtMatmulPreferenceOpaque_t *cublasLtMatmulPreference_t;

cublasStatus_t cublasLtCreate(cublasLtHandle_t *), cublasLtDestroy(cublasLtHandle_t);
const char *cublasLtGetStatusString(cublasStatus_t);
cublasStatus_t cublasLtMatmulDescInit(cublasLtMatmulDesc_t, cublasComputeType_t, cudaDataType_t),
    cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, const void *,
                                   size_t);
cublasStatus_t cublasLtMatrixLayoutInit(cublasLtMatrixLayout_t, cudaDataType, uint64_t rows,
                                        uint64_t columns, int64_t step),
    cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t, const void *,
                                     size_t);
cublasStatus_t cublasLtMatmulPreferenceInit(cublasLtMatmulPreference_t),
    cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
                                         const void *, size_t);
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t, int asked,
                                              cublasLtMatmulHeuristicResult_t *, int *found);
cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *,
                                                    cublasLtMatmulAlgoConfigAttributes_t, void *, size_t,
                                                    size_t *written);
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t, const void *alpha, const void *a,
                              cublasLtMatrixLayout_t, const void *b, cublasLtMatrixLayout_t, const void *beta,
                              const void *c, cublasLtMatrixLayout_t, void *d, cublasLtMatrixLayout_t,
                              const cublasLtMatmulAlgo_t *, void *memory, size_t, cudaStream_t);
#endif
