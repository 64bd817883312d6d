/* cpu.c - which of the CPU's kernel tables serves: the best that this machine has, or the one that WEFT_ISA names. */
#include <stdlib.h>
#include <string.h>
#include "core/cpu.h"

enum { ALIGNED = 64, ROOM = 1 << 16 };

#if defined(__x86_64__)
static bool has_avx2(void)                       /* x86-64-v3 */
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
}
static bool has_avx512(void)                     /* x86-64-v4 */
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd")
        && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif
static bool always(void) { return true; }

static const struct tier { const weft__kernels *k; bool (*here)(void); } tiers[] = {   /* the best first */
#if defined(__x86_64__)
    { &weft__avx512, has_avx512 }, { &weft__avx2, has_avx2 },
#endif
    { &weft__generic, always }, { &weft__ref, always },
};
enum { TIERS = sizeof tiers / sizeof *tiers };

const weft__kernels *weft__cpu_kernels(weft_device device, char *why, size_t size)
{
    const char *want = device == WEFT_REF ? "ref" : getenv("WEFT_ISA");
    int i = 0;
    if (!want || !*want)
        while (!tiers[i].here())
            i++;
    else
        while (i < TIERS && strcmp(want, tiers[i].k->name))
            i++;
    if (i < TIERS && tiers[i].here())
        return tiers[i].k;
    snprintf(why, size, i < TIERS ? "WEFT_ISA=%s: this machine does not have those instructions" :
             "WEFT_ISA=%s: ref, generic, avx2 or avx512 is wanted", want);
    return NULL;
}

void *weft__scratch(weft__device *d, size_t bytes)
{
    if (bytes + ALIGNED > d->workspace_bytes) {
        size_t all = bytes + bytes / 4 + ROOM;   /* some more, so that a slowly growing need does not ask each time */
        if (d->workspace)
            d->release(d->workspace, d->user);
        d->workspace = d->allocate(all, d->user);
        d->workspace_bytes = d->workspace ? all : 0;
    }
    uintptr_t at = (uintptr_t)d->workspace;
    return d->workspace ? (char *)d->workspace + (ALIGNED - at % ALIGNED) % ALIGNED : NULL;
}
