/* tables.h - lists the kernel tables that this machine can run: the plain loops, and each instruction tier of
 * the CPU. WEFT_TABLES restricts a run to the tables that it names, e.g. "ref cuda". A GPU or its emulation
 * runs only if named there. */
#ifndef WEFT_TESTS_TABLES_H
#define WEFT_TESTS_TABLES_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "weft.h"

#define COUNT(array) (int)(sizeof(array) / sizeof(array)[0])

static const struct table { const char *name; weft_device device; bool tier;
} tables[] = {
    { "ref", WEFT_REF, false },   { "generic", WEFT_CPU, true }, { "avx2", WEFT_CPU, true },
    { "avx512", WEFT_CPU, true }, { "cuda", WEFT_CUDA, false },
};
/* Tables with matrix tiles serve only WEFT_TF32 and WEFT_BF16. In other precisions they equal avx512 or, when
 * emulated, the base of the emulation. */
enum { TILE_TABLES = 2 };
static inline const char *tile_table(int i) { return i ? "amx-emulated" : "amx"; }

static inline bool machine_says(const char *flag)  /* Looks up a flag in the system's list of CPU features. */
{
    char line[8192] = "";
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && fgets(line, sizeof line, f) && strncmp(line, "flags", 5))
        ;
    if (f)
        fclose(f);
    return strstr(line, flag);
}

static inline bool table_is_here(const char *name)
{
    const char *needed = getenv("WEFT_TABLES");
    if (needed && *needed && !strstr(needed, name))
        return false;
    if (!strcmp(name, "cuda"))
        return needed && *needed;
    /* the double library does not use tiles */
    if (sizeof(weft_real) == 8 && !strncmp(name, "amx", 3))
        return false;
#if defined(__x86_64__)
    if (!strcmp(name, "amx"))
        return machine_says(" amx_tile") && machine_says(" amx_bf16") && __builtin_cpu_supports("avx512bw");
    if (!strcmp(name, "avx2") || !strcmp(name, "amx-emulated"))
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (!strcmp(name, "avx512"))
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
    return !strcmp(name, "ref") || !strcmp(name, "generic") || !strcmp(name, "amx-emulated");
}
#endif
