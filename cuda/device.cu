/* device.cu - a context's GPU: opening it, copies, errors.
 *
 * Nothing here waits but download and wait. An upload is copied into a ring of pinned memory and goes on from
 * there by itself; neighbours in the ring that are neighbours on the device become one copy, which is sent
 * before the next launch. So the index arrays of a batch travel together. The ring has parts: a part is
 * written again when its copies are done. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cuda/gpu.h"
#include "cuda/recur.h"

/* ---- forks, which no CUDA context outlives ---- */
static int generation;
static void is_born() { generation++; }
static void watch_forks() { pthread_atfork(NULL, NULL, is_born); }
static bool is_inherited(const weft__device *d)
{
    return d->handle && ((const gpu *)d->handle)->generation != generation;
}
gpu_context context_of(const weft__device *d)
{
    return d->handle && !is_inherited(d) ? ((const gpu *)d->handle)->context : NULL;
}

/* ---- errors ---- */
static const char *plain(const char *kernel)
{
    return strncmp(kernel, "weft_cuda_", 10) ? kernel : kernel + 10;
}

bool fail(weft__device *d, weft_status status, const char *format, ...)
{
    if (d->failure[0])
        return true;                             /* the first is the one that matters */
    va_list list;
    va_start(list, format);
    vsnprintf(d->failure, sizeof d->failure, format, list);
    va_end(list);
    d->status = status;
    /* A call that is refused harms no one; after a crash every call is refused with the crash's error. */
    gpu *g = gpu_of(d);
    cudaError_t now = g && g->stream ? cudaStreamQuery(g->stream) : cudaSuccess;
    d->lost = refused(now) && now != cudaErrorNotReady;
    return true;
}
bool refused(cudaError_t error)
{
    if (error != cudaSuccess)
        cudaGetLastError();
    return error != cudaSuccess;
}
bool failed(weft__device *d, cudaError_t error, const char *kernel)
{
    if (!refused(error))
        return d->failure[0] != 0;
    return fail(d, error == cudaErrorMemoryAllocation ? WEFT_ENOMEM : WEFT_EDEVICE, "%s: %s", plain(kernel),
                cudaGetErrorString(error));
}
bool blas_failed(weft__device *d, cublasStatus_t status, const char *what)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return d->failure[0] != 0;
    return fail(d, status == CUBLAS_STATUS_ALLOC_FAILED ? WEFT_ENOMEM : WEFT_EDEVICE, "%s: %s", what,
                cublasLtGetStatusString(status));
}
bool is_orphan(weft__device *d)
{
    if (!is_inherited(d))
        return false;
    if (!d->failure[0]) {
        snprintf(d->failure, sizeof d->failure,
                 "CUDA: a process opened this context and forked; its child cannot use it: fork first, "
                 "or exec");
        d->status = WEFT_EDEVICE;
        d->lost = true;
    }
    return true;
}

static void look_at_faults(weft__device *d)      /* after a wait */
{
    fault_cell *c = gpu_of(d)->fault;
    if (c->timeout != ~0u)
        recur_timed_out(d, c->timeout);
    if (c->first != ~0ULL && !d->fault.is)
        d->fault = weft__fault{ true, (int64_t)(c->at >> 32), (int32_t)(uint32_t)c->at, (int64_t)c->below,
                                plain((const char *)c->by) };
    memset(c, 0xFF, sizeof *c);
}

static bool waited(weft__device *d, const char *kernel)
{
    if (failed(d, cudaStreamSynchronize(stream_of(d)), kernel))
        return false;
    look_at_faults(d);
    pool_trim(d);
    return true;
}

void launched(weft__device *d, cudaError_t error, const char *kernel)
{
    d->launches++;
    if (failed(d, error, kernel) || !gpu_of(d)->sync)
        return;
    if (waited(d, kernel))
        d->fault.by = NULL;                      /* whoever runs now has done it */
}

unsigned *timeout_flag(weft__device *d) { return &gpu_of(d)->fault_there->timeout; }

faults faults_for(weft__device *d, const char *kernel)
{
    gpu *g = gpu_of(d);
    return faults{ g->fault_there, g->launches++, kernel };
}

/* ---- uploads ---- */
static void send(weft__device *d)                /* what waits in the ring */
{
    gpu *g = gpu_of(d);
    size_t bytes = g->waiting;
    g->waiting = 0;
    if (bytes)
        failed(d, cudaMemcpyAsync(g->to, g->ring + g->from, bytes, cudaMemcpyHostToDevice, g->stream),
               "upload");
}

cudaStream_t stream_of(weft__device *d)
{
    send(d);
    return gpu_of(d)->stream;
}

static void next_part(weft__device *d)           /* its copies of the round before must be done */
{
    gpu *g = gpu_of(d);
    failed(d, cudaEventRecord(g->sent[g->at / PART], stream_of(d)), "upload");
    g->at = (g->at / PART + 1) % PARTS * PART;
    failed(d, cudaEventSynchronize(g->sent[g->at / PART]), "upload");
}

void K(upload)(weft__device *d, void *to, const void *from_host, size_t bytes)
{
    gpu *g = gpu_of(d);
    const char *from = (const char *)from_host;
    for (char *there = (char *)to; bytes && !d->failure[0];) {
        size_t left = PART - g->at % PART, n = bytes < left ? bytes : left;
        if (g->waiting && g->to + g->waiting != there)
            send(d);
        if (!g->waiting) {
            g->to = there;
            g->from = g->at;
        }
        memcpy(g->ring + g->at, from, n);
        g->waiting += n;
        from += n;
        there += n;
        bytes -= n;
        if (n == left)
            g->at += n - 1, next_part(d);
        else
            g->at += n;
    }
}

void K(download)(weft__device *d, void *to_host, const void *from, size_t bytes)
{
    if (bytes &&
        !failed(d, cudaMemcpyAsync(to_host, from, bytes, cudaMemcpyDeviceToHost, stream_of(d)), __func__))
        waited(d, __func__);
}

void K(copy)(weft__device *d, void *to, const void *from, size_t bytes)
{
    if (!bytes || d->failure[0])
        return;
    launched(d, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_of(d)), __func__);
}

void K(wait)(weft__device *d)
{
    if (d->handle)
        waited(d, __func__);
}

/* ---- opening and closing ---- */
static bool answers(weft__device *d, int *count) /* the driver */
{
    int knows = 0, made_with = 0;
    const cudaError_t error = cudaGetDeviceCount(count);
    if (error != cudaErrorInsufficientDriver)
        return !failed(d, error, "CUDA");
    refused(error), refused(cudaDriverGetVersion(&knows)), refused(cudaRuntimeGetVersion(&made_with));
    return !fail(d, WEFT_EDEVICE,
                 "CUDA: the driver is too old: it knows CUDA %d.%d, and libweft_cuda.so was made with %d.%d",
                 knows / 1000, knows % 1000 / 10, made_with / 1000, made_with % 1000 / 10);
}

static bool usable(weft__device *d, cudaDeviceProp *about)       /* is there such a GPU? */
{
    int count = 0;
    if (!answers(d, &count))
        return false;
    if (d->by_rank && count > 0)
        d->index %= count;
    if (d->index < 0 || d->index >= count)
        fail(d, WEFT_EDEVICE, "CUDA: no device %d, there are %d", d->index, count);
    else if (!failed(d, cudaGetDeviceProperties(about, d->index), "CUDA") && about->major < 8)
        fail(d, WEFT_EDEVICE, "CUDA: %.64s has compute capability %d.%d; 8.0 is expected", about->name,
             about->major, about->minor);
    return !d->failure[0];
}

/* The same for two processes that count their devices in other ways. */
static uint64_t unit_of(const cudaDeviceProp *about)
{
    uint64_t unit = (uint64_t)about->pciDomainID << 16 | (uint64_t)about->pciBusID << 8 |
                    (uint64_t)about->pciDeviceID;
    for (char byte : about->uuid.bytes)
        unit = unit * 0x100000001B3u ^ (unsigned char)byte;
    return unit | (uint64_t)1 << 63;
}

/* A kernel is loaded before anybody needs one, and with it the code for this GPU, from the library or from
 * the driver's translation. Where there is code for this one there must be for all, so it is compiled for
 * each architecture: it asks for it. */
static __global__ void empty_kernel() { (void)ARCH; }
int attribute_of(const weft__device *d, cudaDeviceAttr which)
{
    int value = 0;
    return refused(cudaDeviceGetAttribute(&value, which, d->index)) ? 0 : value;
}
bool code_found(cudaFuncAttributes *kernel) { return !refused(cudaFuncGetAttributes(kernel, empty_kernel)); }
static bool loads(weft__device *d, const cudaDeviceProp *about)
{
    cudaFuncAttributes kernel;
    const cudaError_t error = cudaFuncGetAttributes(&kernel, empty_kernel);
    if (!refused(error))
        return true;
    if (error == cudaErrorNoKernelImageForDevice)
        return !fail(d, WEFT_EDEVICE,
                     "CUDA: libweft_cuda.so has no code for %.48s; it is to be made with CUDA_ARCHS=%d%d",
                     about->name, about->major, about->minor);
    return !fail(d, WEFT_EDEVICE, "CUDA: libweft_cuda.so does not load on %.48s (sm_%d%d): %s", about->name,
                 about->major, about->minor, cudaGetErrorString(error));
}

static void make(weft__device *d, gpu *g)
{
    void *there = NULL;
    failed(d, cudaStreamCreateWithFlags(&g->stream, cudaStreamNonBlocking), "CUDA");
    failed(d, cudaMallocHost((void **)&g->ring, (size_t)PART * PARTS), "CUDA");
    failed(d, cudaHostAlloc((void **)&g->fault, sizeof *g->fault, cudaHostAllocMapped), "CUDA");
    if (!d->failure[0])
        failed(d, cudaHostGetDevicePointer(&there, g->fault, 0), "CUDA");
    for (int i = 0; i < PARTS && !d->failure[0]; i++)
        failed(d, cudaEventCreateWithFlags(&g->sent[i], cudaEventDisableTiming), "CUDA");
    if (!d->failure[0])
        g->fault_there = (fault_cell *)there, memset(g->fault, 0xFF, sizeof *g->fault);
}

static bool asked(const char *variable)
{
    const char *value = secure_getenv(variable);
    return value && *value && *value != '0';
}

bool K(open)(weft__device *d)
{
    cudaDeviceProp about;
    const gpu_context context = usable(d, &about) ? context_on(d) : NULL;
    const visit here(context);
    if (!context || !loads(d, &about))
        return false;
    gpu *g = (gpu *)d->allocate(sizeof *g, d->user);
    if (!g)
        return !fail(d, WEFT_ENOMEM, "CUDA: out of memory");
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    memset(g, 0, sizeof *g);
    g->context = context;
    g->generation = generation;
    g->sync = asked("WEFT_SYNC");
    g->managed = asked("WEFT_MANAGED");
    d->handle = g;
    d->unit = unit_of(&about);
    d->links = links_of_gpus();
    make(d, g);
    pool_open(d);
    d->stream = g->stream;
    if (d->failure[0])
        K(close)(d);
    return !d->failure[0];
}

static void forget(weft__device *d)
{
    d->handle = d->stream = d->workspace = NULL;
    d->workspace_bytes = 0;
    d->links = NULL;
}
void K(close)(weft__device *d)
{
    gpu *g = gpu_of(d);
    if (!g)
        return;
    if (is_inherited(d)) {                       /* what it has is the parent's */
        d->release(g, d->user);
        forget(d);
        return;
    }
    const bool clean = cudaPeekAtLastError() == cudaSuccess;
    blas_close(d, g->products);
    pool_close(d);
    for (int i = 0; i < PARTS; i++)
        if (g->sent[i])
            cudaEventDestroy(g->sent[i]);
    if (g->stream)
        cudaStreamDestroy(g->stream);
    cudaFreeHost(g->ring), cudaFreeHost(g->fault);
    if (clean)
        cudaGetLastError();                      /* of a device that was lost */
    d->release(g, d->user);
    forget(d);
}

blas *blas_of(weft__device *d)
{
    gpu *g = gpu_of(d);
    if (!g->products && !d->failure[0])
        g->products = blas_open(d);
    return g->products;
}
