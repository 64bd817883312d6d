/* cuda_emulated.h - functions of the GPU emulation that its tests use in addition to CUDA. */
#ifndef CUDA_EMULATED_H
#define CUDA_EMULATED_H
#include <dlfcn.h>
#include "cuda_net.h"

/* Returns a function of the emulation, or NULL with a real back end. */
static void *hook_if_any(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/libweft_cuda.so", getenv("WEFT_BACKEND_PATH"));
    void *library = dlopen(path, RTLD_NOW);
    return library ? dlsym(library, name) : NULL;
}
static void *hook(const char *name)
{
    void *symbol = hook_if_any(name);
    cr_assert_not_null(symbol, "the plug-in is not the emulation");
    return symbol;
}
UNUSED static bool is_emulated(void) { return hook_if_any("weft_emu_counts"); }

/* STALLS: calls that stop the whole device; BYTES: in use on all devices */
enum { LAUNCHES, UPLOADS, WAITS, QUERIES, STALLS, BYTES, COUNTS };
UNUSED static void counts(long long out[COUNTS])        /* of the emulation, since it was loaded */
{
    static void (*fn)(long long *);
    void *symbol = fn ? NULL : hook("weft_emu_counts");
    if (!fn)
        memcpy(&fn, &symbol, sizeof fn);
    fn(out);
}

/* Counts at begin_counting; a real GPU counts nothing. */
static long long counts_before[COUNTS];
UNUSED static void begin_counting(void)
{
    if (is_emulated())
        counts(counts_before);
}
UNUSED static long long counted(int what)
{
    long long now[COUNTS];
    counts(now);
    return now[what] - counts_before[what];
}

/* Sets the device and the last error of the host program's CUDA calls in this thread, and returns both. */
static void thread_state(int *device, int *error)
{
    static void (*fn)(int *, int *);
    void *symbol = fn ? NULL : hook("weft_emu_thread");
    if (!fn)
        memcpy(&fn, &symbol, sizeof fn);
    fn(device, error);
}
UNUSED static void set_thread(int device, int error) { thread_state(&device, &error); }
UNUSED static void check_thread(int device, int error, const char *after)
{
    int d = -1, e = -1;
    thread_state(&d, &e);
    cr_assert(d == device && e == error, "after %s: device %d, error %d; expected %d, %d", after, d, e,
              device, error);
}
#endif
