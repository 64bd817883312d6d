/* blas.cu - matrix products through cublasLt, and which of its algorithms a product takes.
 *
 * Left to itself cuBLAS chooses by the number of rows, and a sequence's bits would depend on its company. So
 * it is asked once for each kind of product, of a number of rows that is not the batch's, and what it answers
 * serves any number of rows. The sum over k is not to be divided (no split-K; nothing that wants memory of
 * its own, such as a stream of tiles): then one block takes the whole sum of a number, in the order of its
 * tile. Rows that the algorithm refuses get company that is thrown away; another one is never taken.
 *
 * A gradient of weights (a is transposed) is a sum over the batch's tokens, and nobody's row. Its k is that
 * of the next power of two, so that ragged batches do not ask anew, and its sum is divided where that is
 * faster: the parts lie in memory and are added by a second kernel, in one order. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "cuda/blas.h"

enum {
    ROOM = 32 << 20,                             /* bytes for the parts of divided sums */
    BATCHES = 16,                                /* what is asked of several products at once */
    MORE_ROWS = 64,                              /* what is refused gets rows to a multiple of this */
    VECTOR = 16,                                 /* bytes: no kernel moves more at once */
    ANSWERS = 16,
    MOST_KINDS = 4096                            /* then they are forgotten, and asked for anew */
};

/* What is asked for. a, b, c: bytes at whose multiples their lines begin, at most a vector's. */
typedef struct kind {
    int64_t m, n, k;
    uint8_t ta, tb, several, bias, precision, a, b, c;
} kind;
typedef struct algorithm {
    kind of;
    enum { UNKNOWN, FOUND, NONE } state;
    cublasLtMatmulAlgo_t how; size_t room;
} algorithm;

struct blas {
    cublasLtHandle_t handle;
    void *room;                                  /* made when the first algorithm wants some */
    char *more; size_t more_bytes;               /* for rows and the company that they get */
    algorithm *table; int64_t places, taken;     /* places: a power of two, or 0 */
};

/* ---- a product as cublasLt has it: column-major, so that its matrices are the transposes of ours ---- */
typedef struct call {
    cublasLtMatmulDescOpaque_t how;
    cublasLtMatrixLayoutOpaque_t a, b, c;
    cublasStatus_t status;                       /* the first that was no success */
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
/* `lines` of `length` numbers, `step` apart. Of a single line the step is not looked at, but cuBLAS wants it
 * to be long enough. */
static void lay(call *q, cublasLtMatrixLayoutOpaque_t *l, int64_t lines, int64_t length, int64_t step,
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
    note(q, cublasLtMatmulDescSetAttribute(&q->how, what, value, bytes));
}
/* bias: device memory, or NULL. */
static void describe(call *q, const weft__product *p, const real *bias, int64_t to_next_bias)
{
    const cublasOperation_t ta = p->ta ? CUBLAS_OP_T : CUBLAS_OP_N, tb = p->tb ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasLtEpilogue_t then = CUBLASLT_EPILOGUE_BIAS;
    q->status = CUBLAS_STATUS_SUCCESS;
    note(q, cublasLtMatmulDescInit(&q->how, arithmetic(p->precision), type_of_reals()));
    set(q, CUBLASLT_MATMUL_DESC_TRANSA, &tb, sizeof tb);
    set(q, CUBLASLT_MATMUL_DESC_TRANSB, &ta, sizeof ta);
    if (bias) {
        set(q, CUBLASLT_MATMUL_DESC_EPILOGUE, &then, sizeof then);
        set(q, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
        if (p->batches > 1)
            set(q, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, &to_next_bias, sizeof to_next_bias);
    }
    lay(q, &q->a, p->ta ? p->k : p->m, p->ta ? p->m : p->k, p->lda, p->batches, p->stride_a);
    lay(q, &q->b, p->tb ? p->n : p->k, p->tb ? p->k : p->n, p->ldb, p->batches, p->stride_b);
    lay(q, &q->c, p->m, p->n, p->ldc, p->batches, p->stride_c);
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
/* Steps of at least `length` numbers, aligned just so. */
static int64_t step_for(int64_t length, int64_t bytes)
{
    const int64_t size = sizeof(real), each = bytes / size;
    const int64_t step = (length + each - 1) / each * each;
    return bytes < VECTOR && step * size % (2 * bytes) == 0 ? step + each : step;
}
/* A product of that kind, of the numbers of rows and of products that are asked for. */
static weft__product example_of(const kind *of)
{
    const int64_t lda = step_for(of->ta ? of->m : of->k, of->a);
    const int64_t ldb = step_for(of->tb ? of->k : of->n, of->b), ldc = step_for(of->n, of->c);
    return weft__product{ of->ta != 0, of->tb != 0, false, of->m, of->n, of->k, lda, ldb, ldc,
                          of->several ? BATCHES : 1,
                          step_for((of->ta ? of->k : of->m) * lda, of->a),
                          step_for((of->tb ? of->n : of->k) * ldb, of->b),
                          step_for(of->m * ldc, of->c),
                          (weft_precision)of->precision };
}

/* ---- asking ---- */
typedef struct wishes {
    cublasLtMatmulPreferenceOpaque_t all;
    cublasStatus_t status;
} wishes;
template <class T> static void wish(wishes *w, cublasLtMatmulPreferenceAttributes_t what, T value)
{
    const cublasStatus_t status = cublasLtMatmulPreferenceSetAttribute(&w->all, what, &value, sizeof value);
    w->status = w->status == CUBLAS_STATUS_SUCCESS ? status : w->status;
}
static wishes wishes_of(const kind *of, size_t room)
{
    wishes w;
    w.status = cublasLtMatmulPreferenceInit(&w.all);
    const uint32_t divided = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
    wish<uint64_t>(&w, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, room);
    wish<uint32_t>(&w, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                   of->ta ? divided : (uint32_t)CUBLASLT_REDUCTION_SCHEME_NONE);
    wish<uint32_t>(&w, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, of->b);         /* its a is our b */
    wish<uint32_t>(&w, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, of->a);
    wish<uint32_t>(&w, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, of->c);
    wish<uint32_t>(&w, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, of->c);
    return w;
}
/* Takes a sum in one piece, as far as it says. */
static bool is_whole(const cublasLtMatmulHeuristicResult_t *answer)
{
    int32_t parts = 0;
    size_t written;
    const cublasStatus_t status = cublasLtMatmulAlgoConfigGetAttribute(
        &answer->algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &parts, sizeof parts, &written);
    return status == CUBLAS_STATUS_SUCCESS && parts <= 1;
}
/* The first that will do for the example with so much memory; NONE: there is none. */
static algorithm ask_with(blas *s, const kind *of, const weft__product *example, size_t room)
{
    cublasLtMatmulHeuristicResult_t answers[ANSWERS];
    algorithm made = { *of, algorithm::NONE, {}, 0 };
    wishes w = wishes_of(of, room);
    call q;
    int count = 0;
    describe(&q, example, of->bias ? (const real *)(uintptr_t)of->c : NULL, 0);  /* its alignment counts */
    if (w.status != CUBLAS_STATUS_SUCCESS || q.status != CUBLAS_STATUS_SUCCESS ||
        cublasLtMatmulAlgoGetHeuristic(s->handle, &q.how, &q.b, &q.a, &q.c, &q.c, &w.all, ANSWERS, answers,
                                       &count) != CUBLAS_STATUS_SUCCESS)
        return made;
    for (int i = 0; i < count; i++)
        if (answers[i].state == CUBLAS_STATUS_SUCCESS && (of->ta || is_whole(&answers[i]))) {
            made.state = algorithm::FOUND;
            made.how = answers[i].algo;
            made.room = answers[i].workspaceSize;
            break;
        }
    return made;
}
/* If there is none without memory, one that wants some is better than no product, and the log says so: what
 * it does with it is its own affair. */
static algorithm ask(weft__device *d, blas *s, const kind *of, const weft__product *example)
{
    const algorithm made = ask_with(s, of, example, of->ta ? ROOM : 0);
    if (made.state == algorithm::FOUND || of->ta || of->bias)
        return made;
    if (d->log > 0)
        fprintf(stderr,
                "weft: GPU %d: cuBLAS has no product without memory of its own for n %lld, k %lld; a row's "
                "last bits may depend on the others\n",
                d->index, (long long)of->n, (long long)of->k);
    return ask_with(s, of, example, ROOM);
}

/* ---- what was answered ---- */
static algorithm *place_of(const blas *s, const kind *of)
{
    const uint64_t hash = hash_of(of, sizeof *of);
    uint64_t i = (hash ^ hash >> 32) & (uint64_t)(s->places - 1);
    while (s->table[i].state != algorithm::UNKNOWN && memcmp(&s->table[i].of, of, sizeof *of))
        i = (i + 1) & (uint64_t)(s->places - 1);
    return &s->table[i];
}
/* At least half of the table is free after it. */
static bool make_places(weft__device *d, blas *s)
{
    if (s->taken < s->places / 2)
        return true;
    const blas old = *s;
    const int64_t places = old.places == 2 * MOST_KINDS ? old.places : old.places ? 2 * old.places : 64;
    algorithm *table = (algorithm *)d->allocate((size_t)places * sizeof *table, d->user);
    if (!table)
        return !fail(d, WEFT_ENOMEM, "gemm: out of memory");
    memset(table, 0, (size_t)places * sizeof *table);
    s->table = table;
    s->places = places;
    s->taken = 0;
    for (int64_t i = 0; i < old.places && places > old.places; i++)
        if (old.table[i].state != algorithm::UNKNOWN)
            *place_of(s, &old.table[i].of) = old.table[i], s->taken++;
    d->release(old.table, d->user);
    return true;
}
/* NULL: no memory, and d->failure says so. */
static const algorithm *algorithm_for(weft__device *d, blas *s, const kind *of)
{
    if (!make_places(d, s))
        return NULL;
    algorithm *at = place_of(s, of);
    if (at->state == algorithm::UNKNOWN) {
        const weft__product example = example_of(of);
        *at = ask(d, s, of, &example), s->taken++;
    }
    return at;
}

/* ---- multiplying ---- */
static bool has_room(weft__device *d, blas *s, const algorithm *with)
{
    if (with->room && !s->room && !(s->room = K(allocate)(d, ROOM, false)))
        return !fail(d, WEFT_ENOMEM, "out of memory on the device: %d bytes for cuBLAS", (int)ROOM);
    return true;
}
static cublasStatus_t run(weft__device *d, blas *s, const weft__product *p, const algorithm *with,
                          const real *a, const real *b, real *c, const real *bias, int64_t to_next_bias)
{
    const real one = 1, beta = p->add;
    call q;
    describe(&q, p, bias, to_next_bias);
    if (q.status != CUBLAS_STATUS_SUCCESS || !has_room(d, s, with))
        return q.status;
    const cublasStatus_t status = cublasLtMatmul(s->handle, &q.how, &one, b, &q.b, a, &q.a, &beta, c, &q.c, c,
                                                 &q.c, &with->how, with->room ? s->room : NULL, with->room,
                                                 stream_of(d));
    if (status == CUBLAS_STATUS_SUCCESS)
        launched(d, cudaSuccess, "gemm");
    return status;
}
static bool is_refusal(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE;
}

static char *more_room(weft__device *d, blas *s, size_t bytes)
{
    if (bytes > s->more_bytes) {
        K(release)(d, s->more, false);
        s->more = (char *)K(allocate)(d, bytes, false);
        s->more_bytes = s->more ? bytes : 0;
        if (!s->more)
            fail(d, WEFT_ENOMEM, "out of memory on the device: %zu bytes for a product", bytes);
    }
    return s->more;
}
/* `lines` of `length` numbers. */
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
/* With rows up to a multiple of MORE_ROWS, whose numbers are anything. */
static cublasStatus_t run_with_more_rows(weft__device *d, blas *s, const weft__product *p,
                                         const algorithm *with, const real *a, const real *b, real *c,
                                         const real *bias, int64_t to_next_bias)
{
    const kind *of = &with->of;
    weft__product q = *p;
    q.m = (p->m + MORE_ROWS - 1) / MORE_ROWS * MORE_ROWS;
    q.lda = step_for(p->k, of->a);
    q.ldc = step_for(p->n, of->c);
    q.stride_a = step_for(q.m * q.lda, of->a);
    q.stride_c = step_for(q.m * q.ldc, of->c);
    const size_t of_a = (size_t)(q.stride_a * q.batches) * sizeof(real) / 256 * 256 + 256;
    char *room = more_room(d, s, of_a + (size_t)(q.stride_c * q.batches) * sizeof(real));
    if (!room)
        return CUBLAS_STATUS_SUCCESS;
    real *more_a = (real *)room, *more_c = (real *)(room + of_a);
    for (int64_t i = 0; i < p->batches; i++) {
        copy_lines(d, more_a + i * q.stride_a, q.lda, a + i * p->stride_a, p->lda, p->m, p->k);
        if (p->add)
            copy_lines(d, more_c + i * q.stride_c, q.ldc, c + i * p->stride_c, p->ldc, p->m, p->n);
    }
    const cublasStatus_t status = run(d, s, &q, with, more_a, b, more_c, bias, to_next_bias);
    for (int64_t i = 0; i < p->batches && status == CUBLAS_STATUS_SUCCESS; i++)
        copy_lines(d, c + i * p->stride_c, p->ldc, more_c + i * q.stride_c, q.ldc, p->m, p->n);
    return status;
}
/* Of a gradient of weights: what does not take this number of tokens gives way to what does. */
static cublasStatus_t run_another(weft__device *d, blas *s, const weft__product *p, const kind *of,
                                  const real *a, const real *b, real *c)
{
    const algorithm other = ask(d, s, of, p);
    return other.state == algorithm::FOUND ? run(d, s, p, &other, a, b, c, NULL, 0)
                                           : CUBLAS_STATUS_NOT_SUPPORTED;
}

bool multiply(weft__device *d, const weft__product *p, int64_t rows, const real *a, const real *b, real *c,
              const real *bias, int64_t to_next_bias)
{
    blas *s = blas_of(d);
    const kind of = kind_of(p, rows, a, b, c, bias);
    const algorithm *with = s ? algorithm_for(d, s, &of) : NULL;
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
        status = run_another(d, s, p, &of, a, b, c);
    else if (is_refusal(status) && with->state == algorithm::FOUND && p->m % MORE_ROWS)
        status = run_with_more_rows(d, s, p, with, a, b, c, bias, to_next_bias);
    return !blas_failed(d, status, "gemm") && bias;
}

/* ---- of a context ---- */
/* One for each GPU, which any thread may use. It is never given back: cublasLtDestroy waits for the whole
 * device, also for the streams of other contexts and libraries. */
static cublasStatus_t handle_on(int index, cublasLtHandle_t *handle)
{
    static cublasLtHandle_t made[MOST_GPUS];
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    const cublasStatus_t status = made[index] ? CUBLAS_STATUS_SUCCESS : cublasLtCreate(&made[index]);
    *handle = made[index];
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
    K(release)(d, s->room, false), K(release)(d, s->more, false);
    d->release(s->table, d->user), d->release(s, d->user);
}
