/* blas.c - OpenBLAS, for those who ask for it: WEFT_GEMM=openblas, or the absolute path of such a library. It
 * is opened by hand, not linked, for two reasons: weft runs without it, and some versions take a new CPU for
 * one of 2004 and then run at a fifth of its speed (0.3.21 and "Prescott"), which OPENBLAS_CORETYPE prevents
 * if it is set before the library is loaded. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "core/core.h"

static weft__blas_gemm *gemm;
static char failure[320];                        /* why what was asked for is not there */

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

/* For the time of the loading only, unless the user has set it; true: take it back afterwards. */
static bool lend(const char *name, const char *value)
{
    return value && !secure_getenv(name) && !setenv(name, value, 0);
}

static void open_library(const char *needed)
{
    bool core = lend("OPENBLAS_CORETYPE", core_type()), threads = lend("OPENBLAS_NUM_THREADS", "1");
    void *library = load_library(needed);        /* stays for the life of the process */
    if (core)
        unsetenv("OPENBLAS_CORETYPE");
    if (threads)
        unsetenv("OPENBLAS_NUM_THREADS");
    if (!library) {
        const char *why = dlerror();
        snprintf(failure, sizeof failure, "WEFT_GEMM=%.100s: %.200s", needed, why ? why : "no such library");
        return;
    }
    void (*set_threads)(int) = NULL;
    *(void **)&set_threads = dlsym(library, "openblas_set_num_threads");
    if (set_threads)
        set_threads(1);                          /* the pool's threads call it, each for a piece of its own */
    *(void **)&gemm = dlsym(library, sizeof(real) == sizeof(float) ? "cblas_sgemm" : "cblas_dgemm");
    if (!gemm)
        snprintf(failure, sizeof failure, "WEFT_GEMM=%.100s: it has no cblas_%cgemm", needed,
                 sizeof(real) == sizeof(float) ? 's' : 'd');
}

static void open_what_is_wanted(void)
{
    const char *needed = secure_getenv("WEFT_GEMM");
    if (!needed || !*needed || !strcmp(needed, "own"))
        return;
    if (*needed != '/' && strcmp(needed, "openblas")) {           /* else the loader would search for it */
        snprintf(failure, sizeof failure, "WEFT_GEMM=%.100s: own, openblas or an absolute path is expected",
                 needed);
        return;
    }
    weft__lock(WEFT__LOADING);
    open_library(needed);
    weft__unlock(WEFT__LOADING);
}

weft__blas_gemm *weft__blas(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_what_is_wanted);
    return gemm;
}

const char *weft__blas_failure(void) { return weft__blas() ? "" : failure; }
