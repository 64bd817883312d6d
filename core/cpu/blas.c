/* blas.c - loads OpenBLAS on request: weft_opts.gemm, WEFT_GEMM=openblas, or the absolute path of a library.
 * It is loaded at run time for two reasons. weft runs without it, and some versions take a new CPU for one of
 * 2004 ("Prescott") and run at a fifth of its speed (0.3.21). OPENBLAS_CORETYPE prevents this if it is set
 * before loading. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include "core/device.h"

static const char *core_type(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return "SkylakeX";
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return __builtin_cpu_is("amd") ? "Zen" : "Haswell";
#endif
    return NULL;
}

static void *load_library(const char *needed)
{
    static const char *const names[] = { "libopenblas.so.0", "libopenblas.so" };
    void *library = NULL;
    if (strcmp(needed, "openblas"))
        return dlopen(needed, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

/* Sets an environment variable while the library is loaded, unless the user has set it. Returns true if it
 * must be unset afterwards. */
static bool set_temporarily(const char *name, const char *value)
{
    return value && !secure_getenv(name) && !setenv(name, value, 0);
}

/* from: source of the request, for messages */
static weft__blas_gemm *open_library(const char *from, const char *needed, char *reason, size_t size)
{
    bool core = set_temporarily("OPENBLAS_CORETYPE", core_type()),
         threads = set_temporarily("OPENBLAS_NUM_THREADS", "1");
    void *library = load_library(needed);        /* stays loaded until the process ends */
    weft__blas_gemm *gemm = NULL;
    if (core)
        unsetenv("OPENBLAS_CORETYPE");
    if (threads)
        unsetenv("OPENBLAS_NUM_THREADS");
    if (!library) {
        const char *error = dlerror();
        snprintf(reason, size, "%s%.100s: %.200s", from, needed, error ? error : "no such library");
        return NULL;
    }
    void (*set_threads)(int) = NULL;
    *(void **)&set_threads = dlsym(library, "openblas_set_num_threads");
    if (set_threads)
        set_threads(1);                        /* each thread of the pool calls it for a part of the matrix */
    *(void **)&gemm = dlsym(library, sizeof(real) == sizeof(float) ? "cblas_sgemm" : "cblas_dgemm");
    if (!gemm)
        snprintf(reason, size, "%s%.100s: it has no cblas_%cgemm", from, needed,
                 sizeof(real) == sizeof(float) ? 's' : 'd');
    return gemm;
}

weft__blas_gemm *weft__blas(weft_gemm choice, char *reason, size_t size)
{
    const char *name = secure_getenv("WEFT_GEMM"), *from = name && *name ? "WEFT_GEMM=" : "opts.gemm: ";
    const char *needed = name && *name ? name : choice == WEFT_OPENBLAS_GEMM ? "openblas" : "own";
    weft__blas_gemm *gemm = NULL;
    *reason = 0;
    if (!strcmp(needed, "own"))
        return NULL;
    if (*needed != '/' && strcmp(needed, "openblas")) {       /* the loader would search for any other name */
        snprintf(reason, size, "WEFT_GEMM=%.100s: expected own, openblas or an absolute path", needed);
        return NULL;
    }
    weft__lock(WEFT__LOADING);
    gemm = open_library(from, needed, reason, size);
    weft__unlock(WEFT__LOADING);
    return gemm;
}
