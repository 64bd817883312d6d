/* device.cu - opens a context's GPU, copies memory, reports errors.
 *
 * Only download and wait block the host. An upload is copied into a ring of pinned memory and continues
 * asynchronously. Uploads that are adjacent in the ring and on the device become one copy, sent before the
 * next launch, so a batch's index arrays travel together. The ring has PARTS parts. A part is overwritten
 * only after its copies have finished. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cuda/gpu.h"
#include "cuda/recur.h"

/* ---- forks: a CUDA context does not work in a child process ---- */
static int generation;
static void count_fork() { generation++; }
static void watch_forks() { pthread_atfork(NULL, NULL, count_fork); }
static bool is_inherited(const weft__device *d)
{
    return d->handle && ((const gpu *)d->handle)->generation != generation;
}
gpu_context context_of(const weft__device *d)
{
    return d->handle && !is_inherited(d) ? ((const gpu *)d->handle)->context : NULL;
}

/* ---- errors ---- */
static const char *short_name(const char *kernel)
{
    return strncmp(kernel, "weft_cuda_", 10) ? kernel : kernel + 10;
}

bool fail(weft__device *d, weft_status status, const char *format, ...)
{
    if (d->failure[0])
        return true;                             /* keep the first failure */
    va_list list;
    va_start(list, format);
    vsnprintf(d->failure, sizeof d->failure, format, list);
    va_end(list);
    d->status = status;
    /* A rejected call leaves the context usable. After a crash every call returns the crash's error. */
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
    return fail(d, error == cudaErrorMemoryAllocation ? WEFT_ENOMEM : WEFT_EDEVICE, "%s: %s",
                short_name(kernel), cudaGetErrorString(error));
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
                 "CUDA: a forked child cannot use its parent's context; open the context after the fork");
        d->status = WEFT_EDEVICE;
        d->lost = true;
    }
    return true;
}

static void read_faults(weft__device *d)         /* after a wait */
{
    fault_cell *c = gpu_of(d)->fault;
    if (c->timeout != ~0u)
        recur_timed_out(d, c->timeout);
    if (c->launch != ~0ULL && !d->fault.is)
        d->fault = weft__fault{ true, (int64_t)(c->row_value >> 32), (int32_t)(uint32_t)c->row_value,
                                (int64_t)c->limit, short_name((const char *)c->kernel) };
    memset(c, 0xFF, sizeof *c);
}

static bool synchronize(weft__device *d, const char *kernel)
{
    if (failed(d, cudaStreamSynchronize(stream_of(d)), kernel))
        return false;
    read_faults(d);
    pool_trim(d);
    return true;
}

void launched(weft__device *d, cudaError_t error, const char *kernel)
{
    d->launches++;
    if (failed(d, error, kernel) || !gpu_of(d)->sync)
        return;
    if (synchronize(d, kernel))
        d->fault.by = NULL;                      /* it is the kernel that runs now */
}

unsigned *timeout_flag(weft__device *d) { return &gpu_of(d)->device_fault->timeout; }

faults faults_for(weft__device *d, const char *kernel)
{
    gpu *g = gpu_of(d);
    return faults{ g->device_fault, g->launches++, kernel };
}

/* ---- uploads ---- */
static void send(weft__device *d)                /* starts the pending copy from the ring */
{
    gpu *g = gpu_of(d);
    size_t bytes = g->pending_bytes;
    g->pending_bytes = 0;
    if (bytes)
        failed(d, cudaMemcpyAsync(g->pending_to, g->ring + g->pending_offset, bytes, cudaMemcpyHostToDevice,
                                  g->stream), "upload");
}

cudaStream_t stream_of(weft__device *d)
{
    send(d);
    return gpu_of(d)->stream;
}

static void next_part(weft__device *d)           /* waits until the part's earlier copies are done */
{
    gpu *g = gpu_of(d);
    failed(d, cudaEventRecord(g->sent[g->ring_offset / PART], stream_of(d)), "upload");
    g->ring_offset = (g->ring_offset / PART + 1) % PARTS * PART;
    failed(d, cudaEventSynchronize(g->sent[g->ring_offset / PART]), "upload");
}

void K(upload)(weft__device *d, void *to, const void *from_host, size_t bytes)
{
    gpu *g = gpu_of(d);
    const char *from = (const char *)from_host;
    for (char *address = (char *)to; bytes && !d->failure[0];) {
        size_t left = PART - g->ring_offset % PART, n = bytes < left ? bytes : left;
        if (g->pending_bytes && g->pending_to + g->pending_bytes != address)
            send(d);
        if (!g->pending_bytes) {
            g->pending_to = address;
            g->pending_offset = g->ring_offset;
        }
        memcpy(g->ring + g->ring_offset, from, n);
        g->pending_bytes += n;
        from += n;
        address += n;
        bytes -= n;
        if (n == left)
            g->ring_offset += n - 1, next_part(d);
        else
            g->ring_offset += n;
    }
}

void K(download)(weft__device *d, void *to_host, const void *from, size_t bytes)
{
    if (bytes &&
        !failed(d, cudaMemcpyAsync(to_host, from, bytes, cudaMemcpyDeviceToHost, stream_of(d)), __func__))
        synchronize(d, __func__);
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
        synchronize(d, __func__);
}

/* ---- opening and closing ---- */
static bool count_devices(weft__device *d, int *count)           /* also tests the driver */
{
    int driver = 0, runtime = 0;
    const cudaError_t error = cudaGetDeviceCount(count);
    if (error != cudaErrorInsufficientDriver)
        return !failed(d, error, "CUDA");
    refused(error), refused(cudaDriverGetVersion(&driver)), refused(cudaRuntimeGetVersion(&runtime));
    return !fail(d, WEFT_EDEVICE,
                 "CUDA: driver for CUDA %d.%d; expected %d.%d, as libweft_cuda.so; update the driver",
                 driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
}

static bool usable(weft__device *d, cudaDeviceProp *about)       /* exists, with sm_80 or later */
{
    int count = 0;
    if (!count_devices(d, &count))
        return false;
    if (d->by_rank && count > 0)
        d->index %= count;
    if (d->index < 0 || d->index >= count)
        fail(d, WEFT_EDEVICE, "CUDA: no device %d; found %d", d->index, count);
    else if (!failed(d, cudaGetDeviceProperties(about, d->index), "CUDA") && about->major < 8)
        fail(d, WEFT_EDEVICE, "CUDA: %.64s: compute capability %d.%d; expected 8.0 or later", about->name,
             about->major, about->minor);
    return !d->failure[0];
}

/* Returns an id of the GPU that is equal in processes that number their devices differently. */
static uint64_t unit_of(const cudaDeviceProp *about)
{
    uint64_t unit = (uint64_t)about->pciDomainID << 16 | (uint64_t)about->pciBusID << 8 |
                    (uint64_t)about->pciDeviceID;
    for (char byte : about->uuid.bytes)
        unit = unit * 0x100000001B3u ^ (unsigned char)byte;
    return unit | (uint64_t)1 << 63;
}

/* Asks the runtime for this kernel, which loads the code for this GPU: from the library, or compiled by the
 * driver from PTX. It uses ARCH, so it is compiled for each architecture. If it loads, all other kernels have
 * code too. */
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
                     "CUDA: libweft_cuda.so has no code for %.48s; compile it with CUDA_ARCHS=%d%d",
                     about->name, about->major, about->minor);
    return !fail(d, WEFT_EDEVICE, "CUDA: libweft_cuda.so does not load on %.48s (sm_%d%d): %s", about->name,
                 about->major, about->minor, cudaGetErrorString(error));
}

static void create_objects(weft__device *d, gpu *g)
{
    void *address = NULL;
    failed(d, cudaStreamCreateWithFlags(&g->stream, cudaStreamNonBlocking), "CUDA");
    failed(d, cudaMallocHost((void **)&g->ring, (size_t)PART * PARTS), "CUDA");
    failed(d, cudaHostAlloc((void **)&g->fault, sizeof *g->fault, cudaHostAllocMapped), "CUDA");
    if (!d->failure[0])
        failed(d, cudaHostGetDevicePointer(&address, g->fault, 0), "CUDA");
    for (int i = 0; i < PARTS && !d->failure[0]; i++)
        failed(d, cudaEventCreateWithFlags(&g->sent[i], cudaEventDisableTiming), "CUDA");
    if (!d->failure[0])
        g->device_fault = (fault_cell *)address, memset(g->fault, 0xFF, sizeof *g->fault);
}

static bool is_set(const char *variable)
{
    const char *value = secure_getenv(variable);
    return value && *value && *value != '0';
}

bool K(open)(weft__device *d)
{
    cudaDeviceProp about;
    const gpu_context context = usable(d, &about) ? context_on(d) : NULL;
    const device_scope scope(context);
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
    g->sync = is_set("WEFT_SYNC");
    g->managed = is_set("WEFT_MANAGED");
    d->handle = g;
    d->unit = unit_of(&about);
    d->links = links_of_gpus();
    create_objects(d, g);
    pool_open(d);
    d->stream = g->stream;
    if (d->failure[0])
        K(close)(d);
    return !d->failure[0];
}

static void reset(weft__device *d)
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
    if (is_inherited(d)) {                       /* the GPU's objects belong to the parent process */
        d->release(g, d->user);
        reset(d);
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
        cudaGetLastError();                      /* clears the error of a lost device */
    d->release(g, d->user);
    reset(d);
}

blas *blas_of(weft__device *d)
{
    gpu *g = gpu_of(d);
    if (!g->products && !d->failure[0])
        g->products = blas_open(d);
    return g->products;
}
