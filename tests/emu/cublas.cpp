/* cublas.cpp - computes the products of cublas.h. It rounds operands to the compute type and packs them.
 * Each partial sum of an algorithm is a row of m. */
#include <algorithm>
#include <cstring>
#include "tests/emu/cublas.h"

struct emu_blas { int products; };

namespace {
/* sums: number of interleaved partial sums over k; parts: contiguous parts of k, in separate memory; STREAM:
 * the number of parts depends on the columns and is not reported; vector: required alignment in bytes; rows:
 * n must be a multiple of it */
struct variant { int sums, parts, vector, rows; uint32_t reduction; };
enum { NEEDS_ROWS = 5, STREAM = 100 };
const variant variants[] = { { 1, 1, 4, 1, CUBLASLT_REDUCTION_SCHEME_NONE },
                             { 2, 1, 16, 1, CUBLASLT_REDUCTION_SCHEME_NONE },
                             { 4, 1, 8, 1, CUBLASLT_REDUCTION_SCHEME_NONE },
                             { 1, 3, 4, 1, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE },
                             { 1, STREAM, 4, 1, CUBLASLT_REDUCTION_SCHEME_NONE },
                             { 3, 1, 4, 8, CUBLASLT_REDUCTION_SCHEME_NONE },
                             { 3, 1, 4, 1, CUBLASLT_REDUCTION_SCHEME_NONE } };
enum { VARIANTS = sizeof variants / sizeof *variants, BYTES_OF_A_PART = 4096 };

enum rounding { EXACT, TF32, BF16 };
struct matrix { const void *p; cublasLtMatrixLayoutOpaque_t as; };
struct product {
    cublasLtMatmulDescOpaque_t desc;
    int m, n, k;
    double alpha, beta;
    matrix a, b, c;
    void *d;
    rounding round;
    variant v;
};
bool is_wide(const product &g) { return g.c.as.type == CUDA_R_64F; }

double get(const void *p, cudaDataType_t type, int64_t i)
{
    return type == CUDA_R_64F ? ((const double *)p)[i] : (double)((const float *)p)[i];
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
            const int64_t at = batch * a.as.to_next + (transposed ? i * a.as.step + j : j * a.as.step + i);
            to[(size_t)j * rows + i] = rounded<T>(get(a.p, a.as.type, at), how);
        }
}

/* sum[m] = a[m, k] b[k], for k from k0 to k1 in steps of `step`. */
template <class T>
void add_up(const product &g, const T *a, const T *b, int k0, int k1, int step, std::vector<T> &sum)
{
    sum.assign((size_t)g.m, 0);
    for (int l = k0; l < k1; l += step)
        for (int i = 0; i < g.m; i++)
            sum[(size_t)i] += a[(size_t)l * g.m + i] * b[l];
}
template <class T> void column(const product &g, const T *a, const T *b, std::vector<T> &sum)
{
    const int parts = g.v.parts == STREAM ? 1 + g.n % 3 : g.v.parts;
    const int pieces = g.v.parts > 1 ? parts : g.v.sums;
    const int part = (g.k + pieces - 1) / pieces;
    std::vector<T> piece;
    sum.assign((size_t)g.m, 0);
    for (int p = 0; p < pieces; p++) {
        if (g.v.parts > 1)
            add_up(g, a, b, std::min(p * part, g.k), std::min((p + 1) * part, g.k), 1, piece);
        else
            add_up(g, a, b, p, g.k, pieces, piece);
        for (int i = 0; i < g.m; i++)
            sum[(size_t)i] += piece[(size_t)i];
    }
}

template <class T> void put(const product &g, int batch, int j, const T *sum)
{
    const cudaDataType_t type = g.c.as.type;
    for (int i = 0; i < g.m; i++) {
        const int64_t at = batch * g.c.as.to_next + j * g.c.as.step + i;
        T v = (T)g.alpha * sum[i];
        if (g.beta != 0)                         /* with beta 0, c may contain anything */
            v += (T)g.beta * (T)get(g.c.p, type, at);
        if (g.desc.epilogue == CUBLASLT_EPILOGUE_BIAS)
            v += (T)get(g.desc.bias, type, batch * g.desc.to_next_bias + i);
        ((T *)g.d)[at] = v;
    }
}

template <class T> void multiply(const product &g)
{
    std::vector<T> a, b, sum;
    for (int batch = 0; batch < g.c.as.batches; batch++) {
        pack(a, g.a, batch, g.desc.ta == CUBLAS_OP_T, g.m, g.k, g.round);
        pack(b, g.b, batch, g.desc.tb == CUBLAS_OP_T, g.k, g.n, g.round);
        for (int j = 0; j < g.n; j++) {
            column(g, a.data(), b.data() + (size_t)j * g.k, sum);
            put(g, batch, j, sum.data());
        }
    }
}

/* ---- valid products ---- */
bool fits(const cublasLtMatrixLayoutOpaque_t &l, bool transposed, int rows, int columns, int batches)
{
    return (int)l.rows == (transposed ? columns : rows) && (int)l.columns == (transposed ? rows : columns) &&
           l.step >= (int64_t)l.rows && l.batches == batches;
}
bool same(const cublasLtMatrixLayoutOpaque_t &a, const cublasLtMatrixLayoutOpaque_t &b)
{
    return a.type == b.type && a.rows == b.rows && a.columns == b.columns && a.step == b.step &&
           a.batches == b.batches && a.to_next == b.to_next;
}
/* Checks that sizes and types agree. */
bool is_valid(const product &g)
{
    const bool ta = g.desc.ta == CUBLAS_OP_T, tb = g.desc.tb == CUBLAS_OP_T;
    const cudaDataType_t type = g.c.as.type;
    const bool wide = g.desc.compute == CUBLAS_COMPUTE_64F;
    return g.m > 0 && g.n > 0 && g.k > 0 && fits(g.a.as, ta, g.m, g.k, g.c.as.batches) &&
           fits(g.b.as, tb, g.k, g.n, g.c.as.batches) && fits(g.c.as, false, g.m, g.n, g.c.as.batches) &&
           g.a.as.type == type && g.b.as.type == type && g.desc.scale == type && wide == (type == CUDA_R_64F);
}
product product_of(const cublasLtMatmulDescOpaque_t *how, const matrix &a, const matrix &b, const matrix &c)
{
    product g = { *how, (int)c.as.rows, (int)c.as.columns,
                  (int)(how->ta == CUBLAS_OP_T ? a.as.rows : a.as.columns), 1, 0, a, b, c, NULL, EXACT, {} };
    g.round = how->compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? TF32 :
              how->compute == CUBLAS_COMPUTE_32F_FAST_16BF ? BF16 :
                                                             EXACT;
    return g;
}
/* Checks that each line begins at a multiple of `vector` bytes. */
bool is_aligned(const matrix &a, uint64_t vector)
{
    const uint64_t size = a.as.type == CUDA_R_64F ? 8 : 4,
                   bits = ((uint64_t)a.as.step | (a.as.batches > 1 ? (uint64_t)a.as.to_next : 0)) * size;
    return ((uint64_t)(uintptr_t)a.p | bits) % vector == 0;
}
bool supports(const product &g, const variant &w)
{
    const uint64_t vector = (uint64_t)std::max(w.vector, is_wide(g) ? 8 : 4);
    return is_aligned(g.a, vector) && is_aligned(g.b, vector) && is_aligned(g.c, vector) &&
           g.n % w.rows == 0 && (uintptr_t)g.desc.bias % vector == 0;
}
bool has_mode(const char *what)
{
    const char *mode = getenv("WEFT_EMU_BLAS");
    return mode && !strcmp(mode, what);
}
/* Returns the algorithms, the best first. The order depends on the columns; for a long sum, algorithms that
 * divide it come first. */
std::vector<int> order_for(const product &g)
{
    std::vector<int> order;
    if (has_mode("rows"))
        order.push_back(NEEDS_ROWS);
    if (g.k > 64 || g.k > 4 * g.n)
        order.insert(order.end(), { 4, 3 });
    if (g.n < 8)
        order.insert(order.end(), { 0, 2, 6, 1 });
    else if (g.n % 32 == 8)
        order.insert(order.end(), { 2, 6, 1, 0 });
    else
        order.insert(order.end(), { 1, 2, 6, 0 });
    return order;
}
/* Encodes the kind of product that an algorithm was offered for. */
uint64_t kind_of(const product &g)
{
    return (uint64_t)g.desc.compute << 8 | (uint64_t)g.desc.ta << 7 | (uint64_t)g.desc.tb << 6 |
           (uint64_t)g.desc.epilogue << 2 | (uint64_t)is_wide(g) << 1 | (g.c.as.batches > 1);
}
template <class T> cublasStatus_t store(T &to, const void *value, size_t bytes)
{
    if (bytes != sizeof to)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(&to, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}
} // namespace

cublasStatus_t cublasLtCreate(cublasLtHandle_t *h) { return *h = new emu_blas{ 0 }, CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtDestroy(cublasLtHandle_t h)
{
    cudaDeviceSynchronize();                     /* as documented */
    emu::counts.stalls++;
    return delete h, CUBLAS_STATUS_SUCCESS;
}
const char *cublasLtGetStatusString(cublasStatus_t s)
{
    switch (s) {
#define E(name, number) \
    case name: return #name;
        EMU_STATUSES(E)
#undef E
    }
    return "an unknown status";
}

/* ---- descriptions ---- */
cublasStatus_t cublasLtMatmulDescInit(cublasLtMatmulDesc_t q, cublasComputeType_t compute,
                                      cudaDataType_t scale)
{
    *q = { compute, scale, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, NULL, 0 };
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t q, cublasLtMatmulDescAttributes_t what,
                                              const void *value, size_t bytes)
{
    switch (what) {
    case CUBLASLT_MATMUL_DESC_TRANSA:            return store(q->ta, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:            return store(q->tb, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:          return store(q->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:      return store(q->bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE: return store(q->to_next_bias, value, bytes);
    default:                                     return CUBLAS_STATUS_INVALID_VALUE;
    }
}
cublasStatus_t cublasLtMatrixLayoutInit(cublasLtMatrixLayout_t l, cudaDataType type, uint64_t rows,
                                        uint64_t columns, int64_t step)
{
    *l = { type, rows, columns, step, 1, 0 };
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l,
                                                cublasLtMatrixLayoutAttribute_t what, const void *value,
                                                size_t bytes)
{
    return what == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT ? store(l->batches, value, bytes)
                                                      : store(l->to_next, value, bytes);
}
cublasStatus_t cublasLtMatmulPreferenceInit(cublasLtMatmulPreference_t p)
{
    *p = { 0, 7, 256, 256, 256, 256 };
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
                                                    cublasLtMatmulPreferenceAttributes_t what,
                                                    const void *value, size_t bytes)
{
    switch (what) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:   return store(p->memory, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK: return store(p->reduction, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: return store(p->align_a, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES: return store(p->align_b, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES: return store(p->align_c, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: return store(p->align_d, value, bytes);
    default:                                         return CUBLAS_STATUS_INVALID_VALUE;
    }
}

/* ---- algorithms ---- */
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t h, cublasLtMatmulDesc_t how,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t *results, int *found)
{
    const auto at = [](uint64_t bytes) { return (const void *)(uintptr_t)bytes; };
    const product g = product_of(how, { at(preference->align_a), *a }, { at(preference->align_b), *b },
                                 { at(std::min(preference->align_c, preference->align_d)), *c });
    const bool bias = how->epilogue == CUBLASLT_EPILOGUE_BIAS;
    *found = 0;
    if (!h || !is_valid(g) || !same(*c, *d))
        return CUBLAS_STATUS_INVALID_VALUE;
    for (int number : order_for(g)) {
        const variant &w = variants[number];
        const size_t memory = w.parts > 1 || has_mode("room") ? (size_t)w.parts * BYTES_OF_A_PART : 0;
        if (*found == requested || !supports(g, w) || memory > preference->memory ||
            (w.reduction & ~preference->reduction) ||
            (bias && (w.parts > 1 || is_wide(g) || has_mode("nobias"))))
            continue;
        results[(*found)++] = { { { (uint64_t)number, kind_of(g) } }, memory, CUBLAS_STATUS_SUCCESS, 1, {} };
    }
    return *found ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}
cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t, void *to,
                                                    size_t bytes, size_t *written)
{
    const int32_t reported = variants[algorithm->data[0]].parts, parts = reported == STREAM ? 1 : reported;
    if (bytes != sizeof parts)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, &parts, bytes), *written = bytes;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t h, cublasLtMatmulDesc_t how, const void *alpha, const void *a,
                              cublasLtMatrixLayout_t as, const void *b, cublasLtMatrixLayout_t bs,
                              const void *beta, const void *c, cublasLtMatrixLayout_t cs, void *d,
                              cublasLtMatrixLayout_t ds, const cublasLtMatmulAlgo_t *algorithm, void *memory,
                              size_t bytes, cudaStream_t stream)
{
    product g = product_of(how, { a, *as }, { b, *bs }, { c, *cs });
    if (!h || !algorithm || algorithm->data[0] >= VARIANTS || !is_valid(g) || !same(*cs, *ds) || c != d)
        return CUBLAS_STATUS_INVALID_VALUE;
    g.v = variants[algorithm->data[0]];
    g.d = d;
    g.alpha = get(alpha, how->scale, 0);
    g.beta = get(beta, how->scale, 0);
    if (algorithm->data[1] != kind_of(g) || !supports(g, g.v))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (g.v.parts > 1 && (!memory || bytes < (size_t)g.v.parts * BYTES_OF_A_PART || (uintptr_t)memory % 256))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (emu::check_stream(stream) != cudaSuccess)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    emu::log_launch("gemm");
    emu::enqueue(stream, [g] {
        if (!emu::is_skipping())
            is_wide(g) ? multiply<double>(g) : multiply<float>(g);
    });
    return CUBLAS_STATUS_SUCCESS;
}
