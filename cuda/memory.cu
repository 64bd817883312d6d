/* memory.cu - allocates device memory: permanent memory, and memory of steps.
 *
 * cudaMalloc and cudaFree synchronise the whole device, for all programs and libraries on it. Arenas grow
 * whenever a batch is larger than all before, so arenas and scratch memory come from a pool. A pool allocates
 * and frees in the order of the context's stream, and the host does not wait. Each context has its own pool.
 * The device's default pool is shared with the host program, so weft could neither set how much memory it
 * keeps nor return memory at weft_close. Permanent memory comes from cudaMalloc, while the model is created.
 * NCCL lets other GPUs read it, which memory of a pool does not allow.
 *
 * A pool that never released memory would keep the sum of all sizes that an arena ever had. So it keeps all
 * memory only until the next wait. Then pool_trim releases unused memory above the size in use + SPARE. */
#include "cuda/gpu.h"

enum { SPARE = 64 << 20 };                       /* bytes that a pool may keep in any case */

/* ---- the pool ---- */
/* Tests an allocation: some virtual GPUs report pools that do not work. */
static bool can_allocate(gpu *g)
{
    void *p = NULL;
    return !refused(cudaMallocFromPoolAsync(&p, ALIGNED, g->pool, g->stream)) &&
           !refused(cudaFreeAsync(p, g->stream));
}
void pool_open(weft__device *d)
{
    gpu *g = gpu_of(d);
    cudaMemPoolProps props = {};
    uint64_t all = UINT64_MAX;
    props.allocType = cudaMemAllocationTypePinned;
    props.handleTypes = cudaMemHandleTypeNone;
    props.location.type = cudaMemLocationTypeDevice;
    props.location.id = d->index;
    if (d->failure[0] || g->managed || !attribute_of(d, cudaDevAttrMemoryPoolsSupported) ||
        refused(cudaMemPoolCreate(&g->pool, &props))) {
        g->pool = NULL;
        return;
    }
    if (refused(cudaMemPoolSetAttribute(g->pool, cudaMemPoolAttrReleaseThreshold, &all)) || !can_allocate(g))
        refused(cudaMemPoolDestroy(g->pool)), g->pool = NULL;
}
void pool_close(weft__device *d)
{
    gpu *g = gpu_of(d);
    K(release)(d, d->workspace, false), K(release)(d, g->counters, false), K(release)(d, g->words, false);
    if (g->stream)
        refused(cudaStreamSynchronize(g->stream));
    if (g->pool)
        refused(cudaMemPoolDestroy(g->pool));
}
void pool_trim(weft__device *d)
{
    gpu *g = gpu_of(d);
    uint64_t held = 0, used = 0;
    if (!g->freed || !g->pool)
        return;
    g->freed = false;
    if (!refused(cudaMemPoolGetAttribute(g->pool, cudaMemPoolAttrReservedMemCurrent, &held)) &&
        !refused(cudaMemPoolGetAttribute(g->pool, cudaMemPoolAttrUsedMemCurrent, &used)) &&
        held > 2 * used + SPARE)
        refused(cudaMemPoolTrimTo(g->pool, used));
}

/* ---- functions of the table ---- */
static cudaError_t allocate(gpu *g, void **p, size_t bytes, bool lasts)
{
    return g->managed        ? cudaMallocManaged(p, bytes) :
           lasts || !g->pool ? cudaMalloc(p, bytes) :
                               cudaMallocFromPoolAsync(p, bytes, g->pool, g->stream);
}
void *K(allocate)(weft__device *d, size_t bytes, bool lasts)
{
    gpu *g = gpu_of(d);
    void *p = NULL;
    stream_of(d);
    cudaError_t error = allocate(g, &p, bytes + 1, lasts);
    if (error == cudaErrorMemoryAllocation && g->pool) {         /* release unused memory, try again */
        refused(error);
        refused(cudaStreamSynchronize(g->stream)), refused(cudaMemPoolTrimTo(g->pool, 0));
        error = allocate(g, &p, bytes + 1, lasts);
    }
    if (!refused(error))
        return p;
    if (error != cudaErrorMemoryAllocation)      /* the caller reports out of memory */
        failed(d, error, __func__);
    return NULL;
}

void K(release)(weft__device *d, void *p, bool lasts)
{
    if (!p || !d->handle)
        return;
    gpu *g = gpu_of(d);
    stream_of(d);                                /* a pending upload may write there */
    if (lasts || !g->pool)
        refused(cudaFree(p));                    /* waits for kernels that read it */
    else
        refused(cudaFreeAsync(p, g->stream)), g->freed = true;
}

/* ---- working memory of kernels ---- */
void *scratch(weft__device *d, size_t bytes)
{
    if (d->failure[0] || bytes <= d->workspace_bytes)
        return d->failure[0] ? NULL : d->workspace;
    size_t all = (bytes + bytes / 4 + (1 << 20)) / ALIGNED * ALIGNED;
    K(release)(d, d->workspace, false);
    d->workspace = K(allocate)(d, all, false);
    d->workspace_bytes = d->workspace ? all : 0;
    if (!d->workspace)
        fail(d, WEFT_ENOMEM, "out of memory on the device: %zu bytes of scratch", all);
    return d->workspace;
}

unsigned *counters_of(weft__device *d)
{
    gpu *g = gpu_of(d);
    const size_t bytes = COUNTERS * sizeof *g->counters;
    if (d->failure[0] || g->counters)
        return d->failure[0] ? NULL : g->counters;
    g->counters = (unsigned *)K(allocate)(d, bytes, false);
    if (!g->counters)
        fail(d, WEFT_ENOMEM, "out of memory on the device: %zu bytes of counters", bytes);
    else
        launched(d, cudaMemsetAsync(g->counters, 0, bytes, stream_of(d)), __func__);
    if (d->failure[0] && g->counters)            /* they are not zero */
        K(release)(d, g->counters, false), g->counters = NULL;
    return g->counters;
}

static bool allocate_words(weft__device *d, size_t words)
{
    gpu *g = gpu_of(d);
    K(release)(d, g->words, false);
    g->words = (uint64_t *)K(allocate)(d, words * sizeof *g->words, false);
    g->word_count = g->words ? words : 0;        /* not zeroed yet */
    g->next_tag = ~0u;
    return g->words || !fail(d, WEFT_ENOMEM, "out of memory on the device: %zu words", words);
}
uint64_t *words_of(weft__device *d, size_t words, unsigned tags, unsigned *first)
{
    gpu *g = gpu_of(d);
    if (d->failure[0] || (words > g->word_count && !allocate_words(d, words)))
        return NULL;
    if (tags > ~0u - g->next_tag) {
        launched(d, cudaMemsetAsync(g->words, 0, g->word_count * sizeof *g->words, stream_of(d)), __func__);
        g->next_tag = 1;
    }
    *first = g->next_tag;
    g->next_tag += tags;
    return d->failure[0] ? NULL : g->words;
}
