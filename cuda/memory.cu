/* memory.cu - a device's memory: what lasts, and what belongs to steps.
 *
 * cudaMalloc and cudaFree stop the whole device, for every program and library on it. Arenas grow whenever a
 * batch is larger than all before, so they, and scratch memory, come from a pool: it gives and takes in the
 * order of the context's stream, and nobody waits. The pool is the context's own. The device's own pool is
 * everybody's in this process: how much it keeps would not be ours to say, and at weft_close there would be
 * nothing to give back. What lasts is plain memory: it is taken while a model is made, and other GPUs may
 * read it, NCCL's way, which they may not with a pool's.
 *
 * A pool that kept all it ever had would keep the sum of all sizes of an arena: so it is told to keep
 * everything, as long as nobody waits, and after a wait to keep no more than twice what is in use. */
#include "cuda/gpu.h"

enum { SPARE = 64 << 20 };                       /* bytes that a pool may always keep */

/* ---- the pool ---- */
/* Whether it gives memory at all: some virtual GPUs have pools only by name. */
static bool gives(gpu *g)
{
    void *p = NULL;
    return !refused(cudaMallocFromPoolAsync(&p, ALIGNED, g->pool, g->stream)) &&
           !refused(cudaFreeAsync(p, g->stream));
}
void pool_open(weft__device *d)
{
    gpu *g = gpu_of(d);
    cudaMemPoolProps of = {};
    uint64_t all = UINT64_MAX;
    of.allocType = cudaMemAllocationTypePinned;
    of.handleTypes = cudaMemHandleTypeNone;
    of.location.type = cudaMemLocationTypeDevice;
    of.location.id = d->index;
    if (d->failure[0] || g->managed || !attribute_of(d, cudaDevAttrMemoryPoolsSupported) ||
        refused(cudaMemPoolCreate(&g->pool, &of))) {
        g->pool = NULL;
        return;
    }
    if (refused(cudaMemPoolSetAttribute(g->pool, cudaMemPoolAttrReleaseThreshold, &all)) || !gives(g))
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
    if (!g->gave_back || !g->pool)
        return;
    g->gave_back = false;
    if (!refused(cudaMemPoolGetAttribute(g->pool, cudaMemPoolAttrReservedMemCurrent, &held)) &&
        !refused(cudaMemPoolGetAttribute(g->pool, cudaMemPoolAttrUsedMemCurrent, &used)) &&
        held > 2 * used + SPARE)
        refused(cudaMemPoolTrimTo(g->pool, used));
}

/* ---- of the table ---- */
static cudaError_t taken(gpu *g, void **p, size_t bytes, bool lasts)
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
    cudaError_t error = taken(g, &p, bytes + 1, lasts);
    if (error == cudaErrorMemoryAllocation && g->pool) {         /* what it keeps is needed now */
        refused(error);
        refused(cudaStreamSynchronize(g->stream)), refused(cudaMemPoolTrimTo(g->pool, 0));
        error = taken(g, &p, bytes + 1, lasts);
    }
    if (!refused(error))
        return p;
    if (error != cudaErrorMemoryAllocation)      /* which is the caller's to tell */
        failed(d, error, __func__);
    return NULL;
}

void K(release)(weft__device *d, void *p, bool lasts)
{
    if (!p || !d->handle)
        return;
    gpu *g = gpu_of(d);
    stream_of(d);                                /* an upload that waits may go there */
    if (lasts || !g->pool)
        refused(cudaFree(p));                    /* which waits for whoever still reads it */
    else
        refused(cudaFreeAsync(p, g->stream)), g->gave_back = true;
}

/* ---- what kernels need for themselves ---- */
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
    if (d->failure[0] && g->counters)            /* they are no zeros */
        K(release)(d, g->counters, false), g->counters = NULL;
    return g->counters;
}

static bool make_words(weft__device *d, size_t words)
{
    gpu *g = gpu_of(d);
    K(release)(d, g->words, false);
    g->words = (uint64_t *)K(allocate)(d, words * sizeof *g->words, false);
    g->word_count = g->words ? words : 0;        /* they are no zeros yet */
    g->next_tag = ~0u;
    return g->words || !fail(d, WEFT_ENOMEM, "out of memory on the device: %zu words", words);
}
uint64_t *words_of(weft__device *d, size_t words, unsigned tags, unsigned *first)
{
    gpu *g = gpu_of(d);
    if (d->failure[0] || (words > g->word_count && !make_words(d, words)))
        return NULL;
    if (tags > ~0u - g->next_tag) {
        launched(d, cudaMemsetAsync(g->words, 0, g->word_count * sizeof *g->words, stream_of(d)), __func__);
        g->next_tag = 1;
    }
    *first = g->next_tag;
    g->next_tag += tags;
    return d->failure[0] ? NULL : g->words;
}
