/* runtime.h - emulates CUDA's runtime on one CPU thread at a time: memory, streams, events, errors.
 *
 * Work is delayed as long as CUDA allows. Launches and copies wait in their stream until a synchronisation.
 * Then WEFT_EMU_SEED decides the order of the streams: 0 runs other streams only when necessary, 1 as early
 * as possible, a larger value at random. Streams are cudaStreamNonBlocking or NULL, and nothing orders them.
 *
 * Device memory starts as NaN. An address is never reused, and an access by the host crashes. */
#ifndef WEFT_EMU_RUNTIME_H
#define WEFT_EMU_RUNTIME_H
#include "tests/emu/launch.h"

const char *cudaGetErrorString(cudaError_t);
cudaError_t cudaGetLastError(), cudaPeekAtLastError();

/* ---- devices ---- */
struct cudaUUID_t { char bytes[16]; };
struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem, sharedMemPerBlockOptin, sharedMemPerMultiprocessor;
    int major, minor, multiProcessorCount, pciDomainID, pciBusID, pciDeviceID;
    cudaUUID_t uuid;
};
enum cudaDeviceAttr {
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97, cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrCooperativeLaunch = 95, cudaDevAttrClockRate = 13, cudaDevAttrMemoryPoolsSupported = 115
};
cudaError_t cudaGetDeviceCount(int *), cudaSetDevice(int),
    cudaGetDeviceProperties(cudaDeviceProp *, int);
cudaError_t cudaDeviceGetAttribute(int *, cudaDeviceAttr, int device);
cudaError_t cudaDeviceSynchronize(), cudaDeviceReset();          /* reset: the state of a new process */
cudaError_t cudaDriverGetVersion(int *), cudaRuntimeGetVersion(int *);

/* ---- the driver's stack of contexts, one per device; cudaGetDevice returns the top ---- */
enum CUresult {
    CUDA_SUCCESS = 0, CUDA_ERROR_OUT_OF_MEMORY = 2, CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_CONTEXT = 201
};
enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess, cudaDriverEntryPointSymbolNotFound };
enum { cudaEnableDefault = 0 };
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version,
                                             unsigned long long, cudaDriverEntryPointQueryResult *);

/* ---- memory ---- */
enum cudaMemcpyKind {
    cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault
};
enum { cudaHostAllocMapped = 2 };
cudaError_t cudaMalloc(void **, size_t), cudaMallocManaged(void **, size_t, unsigned = 1),
    cudaFree(void *);
cudaError_t cudaMallocHost(void **, size_t), cudaHostAlloc(void **, size_t, unsigned), cudaFreeHost(void *);
cudaError_t cudaHostGetDevicePointer(void **, void *host, unsigned);
cudaError_t cudaMemcpy(void *, const void *, size_t, cudaMemcpyKind), cudaMemset(void *, int, size_t);
cudaError_t cudaMemcpyAsync(void *, const void *, size_t, cudaMemcpyKind, cudaStream_t = NULL);
cudaError_t cudaMemcpy2DAsync(void *, size_t to_step, const void *, size_t step, size_t bytes, size_t lines,
                              cudaMemcpyKind, cudaStream_t = NULL);          /* within the device */
cudaError_t cudaMemsetAsync(void *, int, size_t, cudaStream_t = NULL);
template <class T> cudaError_t cudaMalloc(T **p, size_t n) { return cudaMalloc((void **)p, n); }
template <class T> cudaError_t cudaMallocHost(T **p, size_t n) { return cudaMallocHost((void **)p, n); }
template <class T> cudaError_t cudaHostAlloc(T **p, size_t n, unsigned f)
{
    return cudaHostAlloc((void **)p, n, f);
}

/* ---- memory in the order of a stream ---- */
typedef struct emu_pool *cudaMemPool_t;
enum cudaMemAllocationType { cudaMemAllocationTypePinned = 1 };
enum cudaMemAllocationHandleType { cudaMemHandleTypeNone = 0 };
enum cudaMemLocationType { cudaMemLocationTypeDevice = 1 };
struct cudaMemPoolProps {
    cudaMemAllocationType allocType; cudaMemAllocationHandleType handleTypes;
    struct { cudaMemLocationType type; int id; } location;
};
enum cudaMemPoolAttr {
    cudaMemPoolAttrReleaseThreshold = 4, cudaMemPoolAttrReservedMemCurrent = 5,
    cudaMemPoolAttrUsedMemCurrent = 7
};
cudaError_t cudaMemPoolCreate(cudaMemPool_t *, const cudaMemPoolProps *), cudaMemPoolDestroy(cudaMemPool_t);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void *),
    cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr, void *), cudaMemPoolTrimTo(cudaMemPool_t, size_t);
cudaError_t cudaMallocFromPoolAsync(void **, size_t, cudaMemPool_t, cudaStream_t),
    cudaFreeAsync(void *, cudaStream_t);

/* ---- streams, events ---- */
typedef struct emu_event *cudaEvent_t;
enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2 };
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *, unsigned), cudaStreamDestroy(cudaStream_t),
    cudaStreamSynchronize(cudaStream_t);
cudaError_t cudaStreamQuery(cudaStream_t);
cudaError_t cudaEventCreate(cudaEvent_t *), cudaEventCreateWithFlags(cudaEvent_t *, unsigned),
    cudaEventDestroy(cudaEvent_t);
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t = NULL), cudaEventSynchronize(cudaEvent_t),
    cudaEventQuery(cudaEvent_t);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t, cudaEvent_t);

/* ---- kernels ---- */
enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8, cudaFuncAttributeNonPortableClusterSizeAllowed = 13
};
struct cudaFuncAttributes { int ptxVersion, binaryVersion; };
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *, const void *kernel);
template <class T> cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *a, T *kernel)
{
    return cudaFuncGetAttributes(a, (const void *)kernel);
}
cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute, int);
template <class T> cudaError_t cudaFuncSetAttribute(T *kernel, cudaFuncAttribute a, int v)
{
    return cudaFuncSetAttribute((const void *)kernel, a, v);
}

/* Not part of CUDA: declared by cuda/ptx.h. */
cudaError_t blocks_at_once(int *n, const void *kernel, int threads, size_t shared);
template <class... P>
cudaError_t blocks_at_once(int *n, void (*kernel)(P...), int threads, size_t shared)
{
    return blocks_at_once(n, (const void *)kernel, threads, shared);
}
cudaError_t clusters_at_once(int *n, const void *kernel, int blocks, int threads, size_t shared,
                             cudaStream_t);
template <class... P>
cudaError_t clusters_at_once(int *n, void (*kernel)(P...), int blocks, int threads, size_t shared,
                             cudaStream_t stream)
{
    return clusters_at_once(n, (const void *)kernel, blocks, threads, shared, stream);
}

/* ---- between the files of the emulation ---- */
namespace emu {
struct Locked { Locked(); ~Locked(); };          /* one CPU thread at a time */
struct Open { Open(); ~Open(); };                /* the host may access device memory */
void yield_lock();                               /* releases Locked briefly, for other threads */
cudaError_t note(cudaError_t);                   /* stores the error for cudaGetLastError */
cudaError_t &lost(int device);                   /* the error that every call of a lost device returns */
int  current_device();
/* shared: opt-in bytes of a block; cluster: limit of blocks, 1 without clusters; code: sm_ of the plug-in's
 * code, 0 without code. */
struct Model { int capability, shared, cluster, code; };
Model model();                                   /* from WEFT_EMU_CC and WEFT_EMU_CODE */
bool on_device(const void *), pinned(const void *);
size_t &held(int device), limit();               /* bytes in use; limit in bytes */
/* A piece of pool memory that counts as `all` bytes. piece_of makes it without access, piece_begins gives
 * access in stream order, piece_ends ends it for the host (NULL: unknown address), piece_is_gone in stream
 * order. */
void *piece_of(emu_pool *, size_t bytes, size_t all, int device);
void piece_begins(void *), piece_is_gone(void *);
emu_pool *piece_ends(void *, size_t *bytes, size_t *all);
/* Finds the piece of device or pinned memory that contains the address. */
bool piece_around(const void *, uint64_t *low, uint64_t *high);
cudaError_t drain();                             /* completes all work submitted to this device */
bool is_skipping();                              /* WEFT_EMU_SKIP: execute nothing */
void log_launch(const char *launch);             /* prints to stderr, if WEFT_EMU_SAY */
void enqueue(cudaStream_t, std::function<void()> work);
cudaError_t check_stream(cudaStream_t);          /* fails for another device's stream, or on a lost device */
/* Counts of this process. waits: of the host; queries: of kernel attributes; stalls: calls that stop the
 * whole device, to allocate or free memory or to destroy a cublasLt handle. */
extern struct Counts { long long launches, uploads, waits, queries, stalls; } counts;
}
/* For tests of the plug-in: the counts, and the bytes in use on all devices. */
extern "C" __attribute__((visibility("default"))) void weft_emu_counts(long long out[6]);
/* Sets and returns the device and the last error of the host program's calls in this thread. A negative input
 * leaves the value unchanged. */
extern "C" __attribute__((visibility("default"))) void weft_emu_thread(int *device, int *last_error);
/* For nccl.cpp, a separate library. Adds work that waits for other ranks. A wait for the stream calls `done`
 * until it returns true. */
extern "C" __attribute__((visibility("default"))) void weft_emu_until(cudaStream_t, bool (*done)(void *),
                                                                      void *user);
extern "C" __attribute__((visibility("default"))) bool weft_emu_holds(const void *at, size_t bytes);
#endif
