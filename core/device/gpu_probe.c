/* gpu_probe.c - asks NVIDIA's driver whether this process has a GPU, before the plug-in is loaded. The
 * plug-in loads cuBLAS, 150 MB, which a machine without a GPU should not pay.
 *
 * The loader finds the driver as libcuda.so.1, as CUDA's runtime does: on Linux, in WSL (without
 * /dev/nvidia0), on Jetson and in containers. Device files are unreliable: their numbers vary, and the first
 * program that uses the GPU may create them. If the library exists without a GPU, as in a container without
 * access, it reports none. */
#include <stdio.h>
#include "core/inside.h"

/* Declarations of cuda.h: CUresult is an enum, and 0 is success. */
typedef struct driver {
    int (*init)(unsigned), (*count)(int *), (*text)(int, const char **);
} driver;

static bool set_reason(const driver *d, const char *call, int error, char *reason, size_t size)
{
    const char *text = NULL;
    if (d->text(error, &text) || !text)
        text = "an error without a text";
    snprintf(reason, size, "the NVIDIA driver failed in %s: %s (%d)", call, text, error);
    return false;
}

bool weft__driver_has_gpu(char *reason, size_t size)
{
    driver d;
    int error, count = 0;
    char text[200];
    void *library = weft__open_library("libcuda.so.1", text, sizeof text);
    if (!library)
        return snprintf(reason, size, "no NVIDIA driver: %s", text), false;
    if (!weft__find_function(library, "cuInit", &d.init) ||
        !weft__find_function(library, "cuDeviceGetCount", &d.count) ||
        !weft__find_function(library, "cuGetErrorString", &d.text))
        return snprintf(reason, size, "libcuda.so.1 is not NVIDIA's driver: it has no cuInit"), false;
    if ((error = d.init(0)))
        return set_reason(&d, "cuInit", error, reason, size);
    if ((error = d.count(&count)))
        return set_reason(&d, "cuDeviceGetCount", error, reason, size);
    if (count < 1)
        snprintf(reason, size, "the NVIDIA driver has no GPU for this process");
    return count > 0;
}
