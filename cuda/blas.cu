/* blas.cu - matrix products through cublasLt, and the choice of its algorithms.
 *
 * cuBLAS chooses algorithms by the number of rows, so the bits of a sequence would depend on its batch. This
 * file therefore requests one algorithm for each kind of product, with a fixed number of rows, and uses it
 * for any number of rows. The sum over k may not be split (no split-K, and no algorithm with a workspace,
 * such as stream-K). Then one block sums each element, in the order of its tile. If an algorithm rejects a
 * number of rows, rows are padded and the additional results dropped. Another algorithm is never used.
 *
 * A gradient of weights (a is transposed) sums over the batch's tokens, so no row of a sequence depends on
 * its order. Its k is rounded up to a power of two, so that ragged batches reuse an algorithm. Its sum may be
 * split where that is faster: a second kernel adds the parts in a fixed order. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "cuda/blas.h"

enum {
    WORKSPACE = 32 << 20,                        /* bytes of workspace, for split sums */
    BATCHES = 16,                                /* number of products in a request for several */
    PADDED_ROWS = 64,                            /* rejected products get a multiple of these rows */
    VECTOR = 16,                                 /* bytes; no kernel loads more at a time */
    CANDIDATES = 16,
    MOST_KINDS = 4096                            /* a full table is emptied */
};

/* Key of the table. a, b, c: alignment of their rows in bytes, at most VECTOR. */
typedef struct kind {
    int64_t m, n, k;
    uint8_t ta, tb, several, bias, precision, a, b, c;
} kind;
typedef struct algorithm {
    kind key;
    enum { UNKNOWN, FOUND, NONE } state;
    cublasLtMatmulAlgo_t config; size_t workspace;
} algorithm;

struct blas {
    cublasLtHandle_t handle;
    void *workspace;                             /* allocated at first use */
    char *padding; size_t padding_bytes;         /* for padded rows */
    algorithm *table; int64_t slots, used;       /* slots: 0 or a power of two */
};

/* ---- a product as cublasLt sees it: column-major, so its matrices are our transposes ---- */
typedef struct call {
    cublasLtMatmulDescOpaque_t config;
    cublasLtMatrixLayoutOpaque_t a, b, c;
    cublasStatus_t status;                       /* first failure */
} call;

static void note(call *q, cublasStatus_t status)
{
    if (q->status == CUBLAS_STATUS_SUCCESS)
        q->status = status;
}
static cudaDataType_t type_of_reals() { return sizeof(real) == sizeof(double) ? CUDA_R_64F : CUDA_R_32F; }
static cublasComputeType_t arithmetic(int precision)
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
/* Describes a matrix of `lines` rows of `length` numbers, `step` apart. cuBLAS requires step >= length even
 * for one row. */
static void init_layout(call *q, cublasLtMatrixLayoutOpaque_t *l, int64_t lines, int64_t length, int64_t step,
                        int64_t batches, int64_t to_next)
{
    const int32_t count = (int32_t)batches;
    if (lines == 1 && step < length)
        step = length;
    note(q, cublasLtMatrixLayoutInit(l, type_of_reals(), (uint64_t)length, (uint64_t)lines, step));
    if (batches == 1)
        return;
    note(q, cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
    note(q, cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &to_next,
                                             sizeof to_next));
}
static void set(call *q, cublasLtMatmulDescAttributes_t what, const void *value, size_t bytes)
{
    note(q, cublasLtMatmulDescSetAttribute(&q->config, what, value, bytes));
}
/* bias: device memory, or NULL. */
static void describe(call *q, const weft__product *p, const real *bias, int64_t to_next_bias)
{
    const cublasOperation_t ta = p->ta ? CUBLAS_OP_T : CUBLAS_OP_N, tb = p->tb ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasLtEpilogue_t then = CUBLASLT_EPILOGUE_BIAS;
    q->status = CUBLAS_STATUS_SUCCESS;
    note(q, cublasLtMatmulDescInit(&q->config, arithmetic(p->precision), type_of_reals()));
    set(q, CUBLASLT_MATMUL_DESC_TRANSA, &tb, sizeof tb);
    set(q, CUBLASLT_MATMUL_DESC_TRANSB, &ta, sizeof ta);
    if (bias) {
        set(q, CUBLASLT_MATMUL_DESC_EPILOGUE, &then, sizeof then);
        set(q, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
        if (p->batches > 1)
            set(q, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, &to_next_bias, sizeof to_next_bias);
    }
    init_layout(q, &q->a, p->ta ? p->k : p->m, p->ta ? p->m : p->k, p->lda, p->batches, p->stride_a);
    init_layout(q, &q->b, p->tb ? p->n : p->k, p->tb ? p->k : p->n, p->ldb, p->batches, p->stride_b);
    init_layout(q, &q->c, p->m, p->n, p->ldc, p->batches, p->stride_c);
}

/* ---- kinds ---- */
static uint8_t aligned(const void *p, int64_t step, int64_t to_next)
{
    const uint64_t bits = (uint64_t)(uintptr_t)p | (uint64_t)(step | to_next) * sizeof(real) | VECTOR;
    return (uint8_t)(bits & -bits);
}
static int64_t power_of_two(int64_t n)
{
    int64_t p = 32;
    while (p < n)
        p *= 2;
    return p;
}
static kind kind_of(const weft__product *p, int64_t rows, const real *a, const real *b, const real *c,
                    const real *bias)
{
    static_assert(sizeof(kind) == 3 * sizeof(int64_t) + 8, "all bytes of a kind count");
    const bool many = p->batches > 1;
    const uint8_t of_c = aligned(c, p->ldc, many ? p->stride_c : 0), of_bias = aligned(bias, 0, 0);
    return kind{ p->ta ? p->m : rows, p->n, p->ta ? power_of_two(p->k) : p->k, p->ta, p->tb, many,
                 bias != NULL, (uint8_t)p->precision, aligned(a, p->lda, many ? p->stride_a : 0),
                 aligned(b, p->ldb, many ? p->stride_b : 0), bias && of_bias < of_c ? of_bias : of_c };
}
/* Returns a row step of at least `length` numbers with exactly this alignment. */
static int64_t step_for(int64_t length, int64_t bytes)
{
    const int64_t size = sizeof(real), each = bytes / size;
    const int64_t step = (length + each - 1) / each * each;
    return bytes < VECTOR && step * size % (2 * bytes) == 0 ? step + each : step;
}
/* Returns a product of this kind, with the requested numbers of rows and products. */
static weft__product example_of(const kind *key)
{
    const int64_t lda = step_for(key->ta ? key->m : key->k, key->a);
    const int64_t ldb = step_for(key->tb ? key->k : key->n, key->b), ldc = step_for(key->n, key->c);
    return weft__product{ key->ta != 0, key->tb != 0, false, key->m, key->n, key->k, lda, ldb, ldc,
                          key->several ? BATCHES : 1,
                          step_for((key->ta ? key->k : key->m) * lda, key->a),
                          step_for((key->tb ? key->n : key->k) * ldb, key->b),
                          step_for(key->m * ldc, key->c),
                          (weft_precision)key->precision };
}

/* ---- requesting algorithms ---- */
typedef struct preferences {
    cublasLtMatmulPreferenceOpaque_t all;
    cublasStatus_t status;
} preferences;
template <class T> static void prefer(preferences *w, cublasLtMatmulPreferenceAttributes_t what, T value)
{
    const cublasStatus_t status = cublasLtMatmulPreferenceSetAttribute(&w->all, what, &value, sizeof value);
    w->status = w->status == CUBLAS_STATUS_SUCCESS ? status : w->status;
}
static preferences preferences_for(const kind *key, size_t workspace)
{
    preferences w;
    w.status = cublasLtMatmulPreferenceInit(&w.all);
    const uint32_t divided = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
    prefer<uint64_t>(&w, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace);
    prefer<uint32_t>(&w, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                     key->ta ? divided : (uint32_t)CUBLASLT_REDUCTION_SCHEME_NONE);
    prefer<uint32_t>(&w, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, key->b);      /* cublasLt's a is our b */
    prefer<uint32_t>(&w, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key->a);
    prefer<uint32_t>(&w, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, key->c);
    prefer<uint32_t>(&w, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, key->c);
    return w;
}
/* Returns true if the algorithm does not split the sum, as far as cublasLt reports. */
static bool is_whole(const cublasLtMatmulHeuristicResult_t *candidate)
{
    int32_t parts = 0;
    size_t written;
    const cublasStatus_t status = cublasLtMatmulAlgoConfigGetAttribute(
        &candidate->algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &parts, sizeof parts, &written);
    return status == CUBLAS_STATUS_SUCCESS && parts <= 1;
}
/* Returns the first algorithm that fits the example and workspace; its state is NONE if all are rejected. */
static algorithm request_with(blas *s, const kind *key, const weft__product *example, size_t workspace)
{
    cublasLtMatmulHeuristicResult_t candidates[CANDIDATES];
    algorithm result = { *key, algorithm::NONE, {}, 0 };
    preferences w = preferences_for(key, workspace);
    call q;
    int count = 0;
    /* only its alignment matters */
    describe(&q, example, key->bias ? (const real *)(uintptr_t)key->c : NULL, 0);
    if (w.status != CUBLAS_STATUS_SUCCESS || q.status != CUBLAS_STATUS_SUCCESS ||
        cublasLtMatmulAlgoGetHeuristic(s->handle, &q.config, &q.b, &q.a, &q.c, &q.c, &w.all, CANDIDATES,
                                       candidates, &count) != CUBLAS_STATUS_SUCCESS)
        return result;
    for (int i = 0; i < count; i++)
        if (candidates[i].state == CUBLAS_STATUS_SUCCESS && (key->ta || is_whole(&candidates[i]))) {
            result.state = algorithm::FOUND;
            result.config = candidates[i].algo;
            result.workspace = candidates[i].workspaceSize;
            break;
        }
    return result;
}
/* If all algorithms need a workspace, uses one and logs it: a row's bits may then depend on other rows. */
static algorithm request(weft__device *d, blas *s, const kind *key, const weft__product *example)
{
    const algorithm result = request_with(s, key, example, key->ta ? WORKSPACE : 0);
    if (result.state == algorithm::FOUND || key->ta || key->bias)
        return result;
    if (d->log > 0)
        fprintf(stderr,
                "weft: GPU %d: cuBLAS has no algorithm without a workspace for n %lld, k %lld; a row's last "
                "bits may depend on other rows\n",
                d->index, (long long)key->n, (long long)key->k);
    return request_with(s, key, example, WORKSPACE);
}

/* ---- the table of algorithms ---- */
static algorithm *slot_of(const blas *s, const kind *key)
{
    const uint64_t hash = hash_of(key, sizeof *key);
    uint64_t i = (hash ^ hash >> 32) & (uint64_t)(s->slots - 1);
    while (s->table[i].state != algorithm::UNKNOWN && memcmp(&s->table[i].key, key, sizeof *key))
        i = (i + 1) & (uint64_t)(s->slots - 1);
    return &s->table[i];
}
/* Grows or empties the table so that at least half of it is free. */
static bool make_slots(weft__device *d, blas *s)
{
    if (s->used < s->slots / 2)
        return true;
    const blas old = *s;
    const int64_t slots = old.slots == 2 * MOST_KINDS ? old.slots : old.slots ? 2 * old.slots : 64;
    algorithm *table = (algorithm *)d->allocate((size_t)slots * sizeof *table, d->user);
    if (!table)
        return !fail(d, WEFT_ENOMEM, "gemm: out of memory");
    memset(table, 0, (size_t)slots * sizeof *table);
    s->table = table;
    s->slots = slots;
    s->used = 0;
    for (int64_t i = 0; i < old.slots && slots > old.slots; i++)
        if (old.table[i].state != algorithm::UNKNOWN)
            *slot_of(s, &old.table[i].key) = old.table[i], s->used++;
    d->release(old.table, d->user);
    return true;
}
/* On failure sets d->failure and returns NULL. */
static const algorithm *algorithm_for(weft__device *d, blas *s, const kind *key)
{
    if (!make_slots(d, s))
        return NULL;
    algorithm *slot = slot_of(s, key);
    if (slot->state == algorithm::UNKNOWN) {
        const weft__product example = example_of(key);
        *slot = request(d, s, key, &example), s->used++;
    }
    return slot;
}

/* ---- running products ---- */
static bool has_workspace(weft__device *d, blas *s, const algorithm *with)
{
    if (with->workspace && !s->workspace && !(s->workspace = K(allocate)(d, WORKSPACE, false)))
        return !fail(d, WEFT_ENOMEM, "out of memory on the device: %d bytes for cuBLAS", (int)WORKSPACE);
    return true;
}
static cublasStatus_t run(weft__device *d, blas *s, const weft__product *p, const algorithm *with,
                          const real *a, const real *b, real *c, const real *bias, int64_t to_next_bias)
{
    const real one = 1, beta = p->add;
    call q;
    describe(&q, p, bias, to_next_bias);
    if (q.status != CUBLAS_STATUS_SUCCESS || !has_workspace(d, s, with))
        return q.status;
    const cublasStatus_t status =
        cublasLtMatmul(s->handle, &q.config, &one, b, &q.b, a, &q.a, &beta, c, &q.c, c, &q.c, &with->config,
                       with->workspace ? s->workspace : NULL, with->workspace, stream_of(d));
    if (status == CUBLAS_STATUS_SUCCESS)
        launched(d, cudaSuccess, "gemm");
    return status;
}
static bool is_refusal(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE;
}

static char *grow_padding(weft__device *d, blas *s, size_t bytes)
{
    if (bytes > s->padding_bytes) {
        K(release)(d, s->padding, false);
        s->padding = (char *)K(allocate)(d, bytes, false);
        s->padding_bytes = s->padding ? bytes : 0;
        if (!s->padding)
            fail(d, WEFT_ENOMEM, "out of memory on the device: %zu bytes for a product", bytes);
    }
    return s->padding;
}
/* Copies `lines` rows of `length` numbers. */
static void copy_lines(weft__device *d, real *to, int64_t to_step, const real *from, int64_t step,
                       int64_t lines, int64_t length)
{
    const size_t size = sizeof(real);
    if (!d->failure[0])
        launched(d, cudaMemcpy2DAsync(to, (size_t)to_step * size, from, (size_t)step * size,
                                      (size_t)length * size, (size_t)lines, cudaMemcpyDeviceToDevice,
                                      stream_of(d)),
                 "gemm");
}
/* Pads rows to a multiple of PADDED_ROWS; the padding is not initialised. */
static cublasStatus_t run_padded(weft__device *d, blas *s, const weft__product *p, const algorithm *with,
                                 const real *a, const real *b, real *c, const real *bias,
                                 int64_t to_next_bias)
{
    const kind *key = &with->key;
    weft__product q = *p;
    q.m = (p->m + PADDED_ROWS - 1) / PADDED_ROWS * PADDED_ROWS;
    q.lda = step_for(p->k, key->a);
    q.ldc = step_for(p->n, key->c);
    q.stride_a = step_for(q.m * q.lda, key->a);
    q.stride_c = step_for(q.m * q.ldc, key->c);
    const size_t of_a = (size_t)(q.stride_a * q.batches) * sizeof(real) / 256 * 256 + 256;
    char *workspace = grow_padding(d, s, of_a + (size_t)(q.stride_c * q.batches) * sizeof(real));
    if (!workspace)
        return CUBLAS_STATUS_SUCCESS;
    real *padded_a = (real *)workspace, *padded_c = (real *)(workspace + of_a);
    for (int64_t i = 0; i < p->batches; i++) {
        copy_lines(d, padded_a + i * q.stride_a, q.lda, a + i * p->stride_a, p->lda, p->m, p->k);
        if (p->add)
            copy_lines(d, padded_c + i * q.stride_c, q.ldc, c + i * p->stride_c, p->ldc, p->m, p->n);
    }
    const cublasStatus_t status = run(d, s, &q, with, padded_a, b, padded_c, bias, to_next_bias);
    for (int64_t i = 0; i < p->batches && status == CUBLAS_STATUS_SUCCESS; i++)
        copy_lines(d, c + i * p->stride_c, p->ldc, padded_c + i * q.stride_c, q.ldc, p->m, p->n);
    return status;
}
/* For a gradient of weights whose number of tokens the algorithm rejects: requests one for this product. */
static cublasStatus_t run_exact(weft__device *d, blas *s, const weft__product *p, const kind *key,
                                const real *a, const real *b, real *c)
{
    const algorithm other = request(d, s, key, p);
    return other.state == algorithm::FOUND ? run(d, s, p, &other, a, b, c, NULL, 0)
                                           : CUBLAS_STATUS_NOT_SUPPORTED;
}

bool multiply(weft__device *d, const weft__product *p, int64_t rows, const real *a, const real *b, real *c,
              const real *bias, int64_t to_next_bias)
{
    blas *s = blas_of(d);
    const kind key = kind_of(p, rows, a, b, c, bias);
    const algorithm *with = s ? algorithm_for(d, s, &key) : NULL;
    if (!with)
        return false;
    if (with->state == algorithm::NONE && bias) {
        multiply(d, p, rows, a, b, c, NULL, 0);
        return false;
    }
    cublasStatus_t status = CUBLAS_STATUS_NOT_SUPPORTED;
    if (with->state == algorithm::FOUND)
        status = run(d, s, p, with, a, b, c, bias, to_next_bias);
    if (is_refusal(status) && p->ta)
        status = run_exact(d, s, p, &key, a, b, c);
    else if (is_refusal(status) && with->state == algorithm::FOUND && p->m % PADDED_ROWS)
        status = run_padded(d, s, p, with, a, b, c, bias, to_next_bias);
    return !blas_failed(d, status, "gemm") && bias;
}

/* ---- handles of contexts ---- */
/* One handle per GPU, for all threads. It is never destroyed: cublasLtDestroy waits for the whole device,
 * including the streams of other contexts and libraries. */
static cublasStatus_t handle_on(int index, cublasLtHandle_t *handle)
{
    static cublasLtHandle_t handles[MOST_GPUS];
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    const cublasStatus_t status = handles[index] ? CUBLAS_STATUS_SUCCESS : cublasLtCreate(&handles[index]);
    *handle = handles[index];
    pthread_mutex_unlock(&lock);
    return status;
}
blas *blas_open(weft__device *d)
{
    blas *s = (blas *)d->allocate(sizeof *s, d->user);
    if (!s)
        return fail(d, WEFT_ENOMEM, "cuBLAS: out of memory"), (blas *)NULL;
    memset(s, 0, sizeof *s);
    if (!blas_failed(d, handle_on(d->index, &s->handle), "cuBLAS"))
        return s;
    d->release(s, d->user);
    return NULL;
}
void blas_close(weft__device *d, blas *s)
{
    if (!s)
        return;
    K(release)(d, s->workspace, false), K(release)(d, s->padding, false);
    d->release(s->table, d->user), d->release(s, d->user);
}
