/* blas.c - loads OpenBLAS on request: weft_opts.gemm, WEFT_GEMM=openblas, or the absolute path of a library;
 * and for blas_choice.c. It is loaded at run time for two reasons. weft runs without it, and some versions
 * take a new CPU for one of 2004 ("Prescott") and run at a fifth of its speed (0.3.21). OPENBLAS_CORETYPE
 * prevents this if it is set before loading. */
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

static void *load_library(const char *needed, char *reason, size_t size)
{
    static const char *const names[] = { "libopenblas.so.0", "libopenblas.so" };
    void *library = NULL;
    if (strcmp(needed, "openblas"))
        return weft__open_library(needed, reason, size);
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++)
        library = weft__open_library(names[i], reason, size);
    return library;
}

static weft__blas_gemm *functions_of(void *library, char name[160], char *reason, size_t size)
{
    weft__blas_gemm *gemm = NULL;
    void (*set_threads)(int) = NULL;
    char *(*config)(void) = NULL, *(*core)(void) = NULL;
    const char *symbol = sizeof(real) == sizeof(float) ? "cblas_sgemm" : "cblas_dgemm";
    if (weft__find_function(library, "openblas_set_num_threads", &set_threads))
        set_threads(1);                        /* each thread of the pool calls it for a part of the matrix */
    if (!weft__find_function(library, symbol, &gemm))
        snprintf(reason, size, "it has no %s", symbol);
    if (weft__find_function(library, "openblas_get_config", &config) &&
        weft__find_function(library, "openblas_get_corename", &core))
        snprintf(name, 160, "%.100s for %.50s", config(), core());
    else
        snprintf(name, 160, "no version");
    return gemm;
}

weft__blas_gemm *weft__open_blas(const char *needed, char name[160], char *reason, size_t size)
{
    weft__lock(WEFT__LOADING);
    /* set while the library is loaded, unless the user has set them */
    bool core = weft__set_variable("OPENBLAS_CORETYPE", core_type()),
         threads = weft__set_variable("OPENBLAS_NUM_THREADS", "1");
    void *library = load_library(needed, reason, size);
    if (core)
        weft__unset_variable("OPENBLAS_CORETYPE");
    if (threads)
        weft__unset_variable("OPENBLAS_NUM_THREADS");
    weft__blas_gemm *gemm = library ? functions_of(library, name, reason, size) : NULL;
    weft__unlock(WEFT__LOADING);
    return gemm;
}

weft__blas_gemm *weft__blas(weft_gemm choice, char *reason, size_t size)
{
    const char *setting = weft__variable("WEFT_GEMM");
    bool is_set = setting && *setting;
    const char *from = is_set ? "WEFT_GEMM=" : "opts.gemm: ";
    const char *needed = is_set ? setting : choice == WEFT_OPENBLAS_GEMM ? "openblas" : "own";
    char name[160], error[200] = "";
    *reason = 0;
    if (!strcmp(needed, "own"))
        return NULL;
    if (*needed != '/' && strcmp(needed, "openblas")) {       /* the loader would search for any other name */
        snprintf(reason, size, "WEFT_GEMM=%.100s: expected own, openblas or an absolute path", needed);
        return NULL;
    }
    weft__blas_gemm *gemm = weft__open_blas(needed, name, error, sizeof error);
    if (!gemm)
        snprintf(reason, size, "%s%.100s: %.200s", from, needed, error);
    return gemm;
}
