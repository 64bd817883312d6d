/* gpu_probe.c - is there a GPU at all? NVIDIA's driver is asked, before a plug-in is looked for: that
 * one brings cuBLAS along, 150 MB of it, which a machine without a GPU should not load to find that
 * out.
 *
 * The driver is libcuda.so.1, found by the loader under that name, which is also how CUDA's runtime
 * finds it: on Linux, in WSL (where there is no /dev/nvidia0), on Jetson and in containers. Device
 * files tell less: they may have other numbers, or be made by the first program that asks. Where
 * the library is there but no GPU, as in a container that was given none, its own answer is no. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include "core/inside.h"

/* Of cuda.h: CUresult is an enum, 0 is success. */
typedef struct driver {
    int (*init)(unsigned), (*count)(int *), (*text)(int, const char **);
} driver;

static bool has(void *library, const char *name, void *function, size_t size)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, size);             /* POSIX says that this works, C does not */
    return symbol;
}

static bool say_why(const driver *d, const char *call, int error, char *why, size_t size)
{
    const char *text = NULL;
    if (d->text(error, &text) || !text)
        text = "an error without a text";
    snprintf(why, size, "the NVIDIA driver says in %s: %s (%d)", call, text, error);
    return false;
}

bool weft__driver_has_gpu(char *why, size_t size)
{
    driver d;
    int error, count = 0;
    /* never closed: drivers do not like it */
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return snprintf(why, size, "no NVIDIA driver: %s", dlerror()), false;
    if (!has(library, "cuInit", &d.init, sizeof d.init) ||
        !has(library, "cuDeviceGetCount", &d.count, sizeof d.count) ||
        !has(library, "cuGetErrorString", &d.text, sizeof d.text))
        return snprintf(why, size, "libcuda.so.1 is not NVIDIA's driver: %s", dlerror()), false;
    if ((error = d.init(0)))
        return say_why(&d, "cuInit", error, why, size);
    if ((error = d.count(&count)))
        return say_why(&d, "cuDeviceGetCount", error, why, size);
    if (count < 1)
        snprintf(why, size, "the NVIDIA driver has no GPU for this process");
    return count > 0;
}
