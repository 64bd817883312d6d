/* cpu.c - selects a table of CPU kernels: the best of this machine for a precision, or the one that WEFT_ISA
 * names. Tables with matrix tiles are used only for the precisions that tiles support. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "core/cpu/cpu.h"
#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum { ALIGNED = 64, ROOM = 1 << 16 };

#if defined(__x86_64__)
static bool has_avx2(void)                       /* x86-64-v3 */
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
}
static bool has_avx512(void)                     /* x86-64-v4 */
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}
#ifndef WEFT_DOUBLE
/* Checks the instructions, the system's support for tiles of a thread, the permission (for all threads of the
 * process) and the expected bits. The result is cached. */
static bool find_amx(void)
{
    enum {
        SAVES = 1 << 27,
        AMX_BF16 = 1 << 22,
        AMX_TILE = 1 << 24,
        TILE_STATE = 3 << 17
    };
    unsigned a, b, c, d, low, high;
    if (!has_avx512() || !__get_cpuid(1, &a, &b, &c, &d) || !(c & SAVES))
        return false;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & AMX_BF16) && (d & AMX_TILE) &&
           (low & TILE_STATE) == TILE_STATE && weft__allow_tiles() && weft__amx_agrees();
}
static bool has_amx(void)
{
    static atomic_int known;                     /* 0: unknown */
    if (!atomic_load(&known))
        atomic_store(&known, find_amx() ? 1 : -1);
    return atomic_load(&known) > 0;
}
#endif
#endif
#if defined(__aarch64__) && !defined(WEFT_DOUBLE)
static bool has_bf16(void) { return weft__bf16_is_compiled() && weft__has_arm_bf16(); }
#endif
static bool always(void) { return true; }

/* vectors: the table without matrix tiles, for precisions that do not use them; NULL: k itself. tf32: tiles
 * serve WEFT_TF32 too, not only WEFT_BF16. */
static const struct tier {
    const weft__kernels *k;
    bool (*here)(void);
    const weft__kernels *vectors;
    bool tf32;
} tiers[] = {                                    /* best first */
#if defined(__x86_64__)
#ifndef WEFT_DOUBLE
    { &weft__amx, has_amx, &weft__avx512, true },
#endif
    { &weft__avx512, has_avx512, NULL, false }, { &weft__avx2, has_avx2, NULL, false },
#elif defined(__aarch64__) && !defined(WEFT_DOUBLE)
    { &weft__neon_bf16, has_bf16, &weft__generic, false },
#endif
    { &weft__generic, always, NULL, false }, { &weft__ref, always, NULL, false },
#if defined(WEFT_DOUBLE) || defined(WEFT_IO_NONE)      /* a table for tests alone */
#elif defined(__x86_64__)
    { &weft__amx_emulated, has_avx2, &weft__avx2, true },
#else
    { &weft__amx_emulated, always, &weft__generic, true },
#endif
};
enum { TIERS = sizeof tiers / sizeof *tiers };

const weft__kernels *weft__cpu_kernels(weft_device device, weft_precision precision, char *reason,
                                       size_t size)
{
    const char *name = device == WEFT_REF ? "ref" : weft__variable("WEFT_ISA");
    int i = 0;
    if (!name || !*name)
        while (!tiers[i].here())
            i++;
    else
        while (i < TIERS && strcmp(name, tiers[i].k->name) &&
               (tiers[i].k != &weft__generic || strcmp(name, "generic")))
            i++;
    if (i < TIERS && tiers[i].here()) {
        const struct tier *t = &tiers[i];
        bool tiles = precision == WEFT_BF16 || (precision == WEFT_TF32 && t->tf32);
        return tiles || !t->vectors ? t->k : t->vectors;
    }
    snprintf(reason, size, i < TIERS ? "WEFT_ISA=%s: this machine does not have those instructions" :
             "WEFT_ISA=%s: expected ref, generic, avx2, avx512, neon or, in the float library, amx or "
             "neon-bf16", name);
    return NULL;
}

void *weft__scratch(weft__device *d, size_t bytes)
{
    if (bytes + ALIGNED > d->workspace_bytes) {
        /* extra space, so that slowly growing sizes do not allocate each time */
        size_t all = bytes + bytes / 4 + ROOM;
        if (d->workspace)
            d->release(d->workspace, d->user);
        d->workspace = d->allocate(all, d->user);
        d->workspace_bytes = d->workspace ? all : 0;
        if (!d->workspace && !d->failure[0])
            d->status = WEFT_ENOMEM,
            snprintf(d->failure, sizeof d->failure, "out of memory: %zu bytes of scratch", all);
    }
    uintptr_t address = (uintptr_t)d->workspace;
    return d->workspace ? (char *)d->workspace + (ALIGNED - address % ALIGNED) % ALIGNED : NULL;
}
