/* current_device.cu - makes a context's GPU current for a call, and then restores the caller's.
 * cudaSetDevice cannot do this. To return, it would create a context on the caller's GPU, 300 MB on a GPU
 * that may be unused. So this file uses the driver's stack of contexts, which the runtime respects. */
#include <pthread.h>
#include "cuda/cuda.h"
#ifndef WEFT_EMULATED
#include <cuda.h>
#endif

static struct {
    CUresult (*device)(CUdevice *, int), (*retain)(CUcontext *, CUdevice);
    CUresult (*current)(CUcontext *), (*push)(CUcontext), (*pop)(CUcontext *);
} driver;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* primary contexts, retained once, never released: drivers dislike that */
static CUcontext retained[MOST_GPUS];

static bool lookup(const char *name, void *function)
{
    cudaDriverEntryPointQueryResult query;
#if defined(WEFT_EMULATED) || CUDART_VERSION >= 12050
    const cudaError_t error =
        cudaGetDriverEntryPointByVersion(name, (void **)function, 12000, cudaEnableDefault, &query);
#else
    const cudaError_t error = cudaGetDriverEntryPoint(name, (void **)function, cudaEnableDefault, &query);
#endif
    return !refused(error) && query == cudaDriverEntryPointSuccess;
}

static bool load_functions()
{
    return driver.pop ||
           (lookup("cuDeviceGet", &driver.device) && lookup("cuDevicePrimaryCtxRetain", &driver.retain) &&
            lookup("cuCtxGetCurrent", &driver.current) && lookup("cuCtxPushCurrent", &driver.push) &&
            lookup("cuCtxPopCurrent", &driver.pop));
}

gpu_context context_on(weft__device *d)
{
    CUdevice device;
    CUresult result = CUDA_SUCCESS;
    if (d->index >= MOST_GPUS) {
        fail(d, WEFT_EDEVICE, "CUDA: device %d; expected a number below %d", d->index, (int)MOST_GPUS);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    const bool is_ready = load_functions();
    CUcontext *context = &retained[d->index];
    if (is_ready && !*context && (result = driver.device(&device, d->index)) == CUDA_SUCCESS)
        result = driver.retain(context, device);
    pthread_mutex_unlock(&lock);
    if (!is_ready)
        fail(d, WEFT_EDEVICE, "CUDA: the driver lacks cuCtxPushCurrent or a related function; update it");
    else if (result != CUDA_SUCCESS)
        fail(d, result == CUDA_ERROR_OUT_OF_MEMORY ? WEFT_ENOMEM : WEFT_EDEVICE,
             "CUDA: device %d: cannot get its context: driver error %d", d->index, (int)result);
    return *context;
}

bool enter(gpu_context context)
{
    CUcontext now = NULL;
    if (!context || (driver.current(&now) == CUDA_SUCCESS && now == context))
        return false;
    return driver.push(context) == CUDA_SUCCESS;
}
void leave()
{
    CUcontext previous;
    driver.pop(&previous);
}
