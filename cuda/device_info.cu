/* device_info.cu - describes a GPU to the user: its code, the kernels of recurrent layers, the cache. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "cuda/recur.h"

typedef struct text_buffer { char *text; size_t size, length; } text_buffer;
static void append(text_buffer *p, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    if (p->length < p->size) {
        const int n = vsnprintf(p->text + p->length, p->size - p->length, format, list);
        p->length += n > 0 ? (size_t)n : 0;
    }
    va_end(list);
}

static void append_device(text_buffer *p, const weft__device *d)
{
    cudaDeviceProp about;
    if (refused(cudaGetDeviceProperties(&about, d->index))) {
        append(p, "GPU %d: the driver reports no properties\n", d->index);
        return;
    }
    append(p,
           "GPU %d: %.96s, sm_%d%d, %d multiprocessors, %d MHz, %.1f GB, %zu KB of shared memory a block\n",
           d->index, about.name, about.major, about.minor, about.multiProcessorCount,
           attribute_of(d, cudaDevAttrClockRate) / 1000, (double)about.totalGlobalMem / 1e9,
           about.sharedMemPerBlockOptin >> 10);
}
/* Returns whether the library has code for sm_N. Otherwise the driver compiled it from PTX. */
static bool has_code_for(int n)
{
#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)
    char name[16];
    snprintf(name, sizeof name, ".%d.", n);
    return strstr(TEXT(WEFT_CUDA_ARCHS), name);              /* .80.90.100.120. */
}
static void append_code(text_buffer *p)
{
    cudaFuncAttributes a;
    if (!code_found(&a))
        append(p, "code: not reported by the driver\n");
    else if (!has_code_for(a.binaryVersion))
        append(p, "code: compiled by the driver from PTX for sm_%d, at the first start\n", a.ptxVersion);
    else
        append(p, "code: compiled for sm_%d\n", a.binaryVersion);
}

/* ---- recurrent layers ---- */
static void append_estimate(text_buffer *p, weft__device *d)
{
    static const int64_t units[] = { 32, 64, 128, 256, 512, 1024 }, sequences[] = { 8, 64, 512 };
    append(p, "recurrent layers: estimated microseconds per forward step, from times of an H100\n"
           "   units  %-28s  %-28s  %s",
           "8 sequences", "64", "512");
    for (int64_t u : units) {
        append(p, "\n%8lld", (long long)u);
        for (int64_t n : sequences) {
            const estimate f = recur_estimate(d, u, n);
            char text[48];
            snprintf(text, sizeof text, "%.1f %s", f.us, name_of(f.kind));
            append(p, "  %-*s", n == 512 ? 0 : 28, text);
        }
    }
    append(p, "\n");
}
static void append_cache(text_buffer *p, weft__device *d)
{
    char folder[4096];
    int right, wrong, timed = 0;
    kernel_kind kind;
    recur_count_checked(d, &right, &wrong);
    for (int i = 0; i < CLASSES; i++)
        if (recur_fastest(d, i, &kind)) {
            const layer_class c = class_of(i);
            append(p, "timed: %s%s, up to %d units and %d sequences, %s%s: %s\n", name_of(c.cell),
                   c.reset ? " in rows" : "", 32 << c.units, SEQUENCES << c.octets,
                   c.back ? "backward" : "forward", c.one_product ? ", tf32" : "", name_of(kind));
            timed++;
        }
    append(p, "checked: %d kernels passed, %d failed; %d classes of layers timed; stored in %s\n", right,
           wrong, timed, cache_folder(folder, sizeof folder) ? folder : "no file");
}

void K(about)(weft__device *d, char *text, size_t size)
{
    text_buffer p = { text, size, 0 };
    if (size)
        *text = 0;
    append_device(&p, d), append_code(&p), append_estimate(&p, d), append_cache(&p, d);
}
