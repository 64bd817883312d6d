/* current_device.cu - which GPU the calls of a thread go to. That is the caller's to say: a context's own
 * GPU is put on top of it for as long as a kernel is called, and is taken off again. CUDA's runtime
 * cannot do that: cudaSetDevice makes a context on the GPU that it goes back to, 300 MB of one that
 * perhaps no one uses. So it is the driver's stack of contexts, which the runtime follows. */
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
static CUcontext retained[MOST_GPUS];            /* once each, and never given back: drivers do not like it */

static bool found(const char *name, void *function)
{
    cudaDriverEntryPointQueryResult how;
#if defined(WEFT_EMULATED) || CUDART_VERSION >= 12050
    const cudaError_t error =
        cudaGetDriverEntryPointByVersion(name, (void **)function, 12000, cudaEnableDefault, &how);
#else
    const cudaError_t error = cudaGetDriverEntryPoint(name, (void **)function, cudaEnableDefault, &how);
#endif
    return !refused(error) && how == cudaDriverEntryPointSuccess;
}

static bool ready()
{
    return driver.pop ||
           (found("cuDeviceGet", &driver.device) && found("cuDevicePrimaryCtxRetain", &driver.retain) &&
            found("cuCtxGetCurrent", &driver.current) && found("cuCtxPushCurrent", &driver.push) &&
            found("cuCtxPopCurrent", &driver.pop));
}

gpu_context context_on(weft__device *d)
{
    CUdevice device;
    CUresult result = CUDA_SUCCESS;
    if (d->index >= MOST_GPUS) {
        fail(d, WEFT_EDEVICE, "CUDA: device %d; less than %d is expected", d->index, (int)MOST_GPUS);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    const bool is_ready = ready();
    CUcontext *context = &retained[d->index];
    if (is_ready && !*context && (result = driver.device(&device, d->index)) == CUDA_SUCCESS)
        result = driver.retain(context, device);
    pthread_mutex_unlock(&lock);
    if (!is_ready)
        fail(d, WEFT_EDEVICE, "CUDA: the driver has no stack of contexts");
    else if (result != CUDA_SUCCESS)
        fail(d, result == CUDA_ERROR_OUT_OF_MEMORY ? WEFT_ENOMEM : WEFT_EDEVICE,
             "CUDA: no context on device %d: the driver's error %d", d->index, (int)result);
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
    CUcontext was;
    driver.pop(&was);
}
