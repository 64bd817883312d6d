/* tables.h - lists the kernel tables that this machine can run: the plain loops, and each instruction tier of
 * the CPU. WEFT_TABLES restricts a run to the tables that it names, e.g. "ref cuda". A GPU or its emulation
 * runs only if named there. */
#ifndef WEFT_TESTS_TABLES_H
#define WEFT_TESTS_TABLES_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif
#include "weft.h"

#define COUNT(array) (int)(sizeof(array) / sizeof(array)[0])

static const struct table { const char *name; weft_device device; bool tier;
} tables[] = {
    { "ref", WEFT_REF, false },
#if defined(__aarch64__)
    { "neon", WEFT_CPU, true },
#else
    { "generic", WEFT_CPU, true },
#endif
    { "avx2", WEFT_CPU, true },
    { "avx512", WEFT_CPU, true }, { "cuda", WEFT_CUDA, false },
};
/* Tables with matrix tiles serve only WEFT_BF16 and, except for the last one, WEFT_TF32. In other precisions
 * they equal avx512, the base of the emulation, or neon. */
enum { TILE_TABLES = 3, TF32_TABLES = 2 };
static inline const char *tile_table(int i)
{
    return i == 0 ? "amx" : i == 1 ? "amx-emulated" : "neon-bf16";
}

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
    if (sizeof(weft_real) == 8 && (!strncmp(name, "amx", 3) || !strcmp(name, "neon-bf16")))
        return false;
#if defined(__aarch64__)
#if defined(__linux__)
    if (!strcmp(name, "neon-bf16"))
        return getauxval(AT_HWCAP2) >> 14 & 1;
#endif
    if (!strcmp(name, "neon"))
        return true;
#endif
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
