/* recur_choice.cu - which way a recurrent layer takes: a kernel a step (recur.cu), or one for all steps, in single blocks or in
 * clusters of them. The table is data: what was measured to be faster. */
#include <stdlib.h>
#include <string.h>
#include "cuda/ptx.h"
#include "cuda/recur.h"

#ifdef WEFT_DOUBLE
bool recur_persistent(weft__device *, const weft__recurrence *, bool) { return false; }
#else
/* Layers of up to so many units: up to how many sequences blocks are the fastest way, else up to how many clusters are, else a kernel
 * a step is. Nothing has been measured yet. */
static const struct { int units; int64_t blocks, clusters; } recur_choice[] = { { 32, 0, 0 }, { 64, 0, 0 }, { 128, 0, 0 }, { 256, 0, 0 }, { 512, 0, 0 } };
enum { SIZES = sizeof recur_choice / sizeof *recur_choice };

typedef enum { GENERAL, BLOCKS, CLUSTERS } kind;
static kind chosen(const weft__device *d, const weft__recurrence *r)
{
    const char *asked = secure_getenv("WEFT_RECUR");    /* "general", "block" or "cluster" */
    if (asked && *asked)
        return !strcmp(asked, "block") ? BLOCKS : !strcmp(asked, "cluster") ? CLUSTERS : GENERAL;
    int size = 0;
    while (size < SIZES && r->hidden > recur_choice[size].units)
        size++;
    if (size == SIZES)
        return GENERAL;
    const int64_t n = d->deterministic ? 1 : r->live.host[0];     /* deterministic: by the units alone */
    return n <= recur_choice[size].blocks ? BLOCKS : n <= recur_choice[size].clusters ? CLUSTERS : GENERAL;
}

/* Has the GPU what it takes: clusters, shared memory? Beyond 48 KB, and beyond eight blocks, it must be asked for. */
static bool possible(weft__device *d, const way *w, cudaStream_t stream)
{
    int major = 0, most = 0, clusters = 0;
    const char *here = "recur";
    if (failed(d, cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, d->index), here) ||
        failed(d, cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, d->index), here))
        return false;
    if (w->bytes > (size_t)most || (w->blocks > 1 && major < 9))
        return false;
    if (w->bytes > 48 << 10 && failed(d, cudaFuncSetAttribute(w->kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)w->bytes), here))
        return false;
    if (w->blocks > 8 && failed(d, cudaFuncSetAttribute(w->kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1), here))
        return false;
    return w->blocks == 1 || (!failed(d, clusters_at_once(&clusters, w->kernel, w->blocks, w->threads, w->bytes, stream), here) && clusters > 0);
}

bool recur_persistent(weft__device *d, const weft__recurrence *r, bool back)
{
    if (r->hidden == 0 || r->steps == 0 || r->from > 0 || r->to < r->steps || r->w_hr || d->precision == WEFT_STRICT_FP32)
        return false;
    const kind which = chosen(d, r);
    const way w = which == BLOCKS ? block_way(r, back) : which == CLUSTERS ? cluster_way(r, back) : way{};
    if (!w.kernel || !possible(d, &w, stream_of(d)))
        return false;
    const unsigned eights = (unsigned)((r->live.host[0] + SEQUENCES - 1) / SEQUENCES);
    if (w.blocks == 1)
        LAUNCH(d, w.kernel, dim3(eights), (unsigned)w.threads, w.bytes, *r);
    else
        LAUNCH_CLUSTER(d, w.kernel, dim3(eights * (unsigned)w.blocks), (unsigned)w.threads, w.bytes, (unsigned)w.blocks, *r);
    return true;
}
#endif
