/* about.cu - what a GPU will do, for its user to read: which code runs on it, which ways recurrent layers
 * take, and where what was found out is kept. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "cuda/recur.h"

typedef struct page { char *text; size_t size, at; } page;
static void say(page *p, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    if (p->at < p->size) {
        const int n = vsnprintf(p->text + p->at, p->size - p->at, format, list);
        p->at += n > 0 ? (size_t)n : 0;
    }
    va_end(list);
}

static int attribute(const weft__device *d, cudaDeviceAttr which)               /* 0 if it does not say */
{
    int value = 0;
    return refused(cudaDeviceGetAttribute(&value, which, d->index)) ? 0 : value;
}
static void say_device(page *p, const weft__device *d)
{
    cudaDeviceProp about;
    if (refused(cudaGetDeviceProperties(&about, d->index))) {
        say(p, "GPU %d: the driver does not describe it\n", d->index);
        return;
    }
    say(p, "GPU %d: %.96s, sm_%d%d, %d multiprocessors, %d MHz, %.1f GB, %zu KB of shared memory a block\n",
        d->index, about.name, about.major, about.minor, about.multiProcessorCount,
        attribute(d, cudaDevAttrClockRate) / 1000, (double)about.totalGlobalMem / 1e9,
        about.sharedMemPerBlockOptin >> 10);
}
static void say_code(page *p, const weft__device *d)
{
    cudaFuncAttributes a;
    const int capability = 10 * attribute(d, cudaDevAttrComputeCapabilityMajor) +
                           attribute(d, cudaDevAttrComputeCapabilityMinor);
    if (!code_found(&a))
        say(p, "code: the driver does not say which\n");
    else if (a.binaryVersion / 10 != capability / 10 || a.binaryVersion > capability)
        say(p, "code: of sm_%d\n", a.binaryVersion);
    else if (a.ptxVersion < a.binaryVersion)
        say(p, "code: the driver's translation of PTX of sm_%d, made at the first start\n", a.ptxVersion);
    else
        say(p, "code: made for sm_%d\n", a.binaryVersion);
}

/* ---- recurrent layers ---- */
static void say_way(page *p, weft__device *d, int64_t units, int64_t n, bool last)
{
    static const char *const names[] = { "a kernel a step", "blocks", "clusters" };
    const foresight f = recur_foreseen(d, WEFT__lstm, units, n);
    char text[48];
    if (f.timed)
        snprintf(text, sizeof text, "%s, timed", names[f.way]);
    else
        snprintf(text, sizeof text, "%s, %.1f us", names[f.way], f.us);
    say(p, "  %-*s", last ? 0 : 26, text);
}
static void say_ways(page *p, weft__device *d)
{
    static const int64_t units[] = { 32, 64, 128, 256, 512, 1024 }, sequences[] = { 8, 64, 512 };
    static const char *const precisions[] = { "fp32", "strict fp32", "tf32", "bf16" };
    say(p, "precision: %s\n", sizeof(real) == 8 ? "double" : precisions[d->precision]);
    say(p, "a step of an LSTM forward, by its units and the number of sequences, as it is chosen now\n"
           "(microseconds are an estimate from an H100's figures, not measured):\n"
           "%8s  %-26lld  %-26lld  %lld",
        "", (long long)sequences[0], (long long)sequences[1], (long long)sequences[2]);
    for (int64_t u : units) {
        say(p, "\n%8lld", (long long)u);
        for (int64_t n : sequences)
            say_way(p, d, u, n, n == sequences[2]);
    }
    say(p, "\n");
    recur_kept(d, p->at < p->size ? p->text + p->at : NULL, p->at < p->size ? p->size - p->at : 0);
}

void K(about)(weft__device *d, char *text, size_t size)
{
    page p = { text, size, 0 };
    if (!size)
        return;
    *text = 0;
    say_device(&p, d), say_code(&p, d), say_ways(&p, d);
}
