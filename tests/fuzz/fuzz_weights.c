/* fuzz_weights.c - fuzzes the readers of files with weights, of all formats: every array that a file lists
 * can be read as F32 and as I64, and the numbers of an F32 array are those at its strides. Options: 1, as a
 * nested part. */
#include "fuzz.h"
#include "io/weights/weights.h"

#ifndef OPENS
#define OPENS weft__weights_open
#endif

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    return size < 2 ? size : 1 + form_mutate(data + 1, size - 1, most - 1, seed);
}

/* An array may repeat numbers by strides of 0, so its size has no bound. These are small enough to read. */
static bool is_small(const weft__array *a, int64_t *n)
{
    *n = 1;
    for (int i = 0; i < a->kind.rank; i++)
        if (a->kind.size[i] < 0 || __builtin_mul_overflow(*n, a->kind.size[i], n))
            return false;
    return *n < 100000;
}

static void read_all(weft__weights *w)
{
    for (int64_t i = 0, n; i < w->n && !w->status; i++) {
        const weft__array *a = &w->array[i];
        SAME(a->name && strlen(a->name) < 1u << 20 && a->kind.rank >= 0 && a->kind.rank <= WEFT_RANK,
             "array %d", (int)i);
        SAME(!i || strcmp(w->array[i - 1].name, a->name) < 0, "names are not in order: %s", a->name);
        if (!is_small(a, &n))
            continue;
        void *values = malloc((size_t)n * 8 + 1);
        float first;
        if (weft__array_read(w, a, WEFT__F32, values) && n && a->kind.type == WEFT__F32 && a->bytes &&
            !a->gates && !a->set) {
            memcpy(&first, a->bytes, sizeof first);
            SAME(!memcmp(&first, values, sizeof first), "%s: element 0", a->name);
        }
        w->status = w->status == WEFT_EFORMAT ? WEFT_OK : w->status; /* a kind that is not real */
        weft__array_read(w, a, WEFT__I64, values);
        w->status = w->status == WEFT_EFORMAT ? WEFT_OK : w->status;
        free(values);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weft__weights *w;
    if (size < 2)
        return 0;
    const char *path = fuzz_file(data + 1, size - 1);
    fuzz_times = 4;
    fuzz_watch(size - 1);
    weft_status s = OPENS(path, data[0] & 1 ? "model" : NULL, &w);
    SAME(!s == !!w, "status %d, but the weights are %p", s, (void *)w);
    if (w)
        read_all(w);
    weft__weights_close(w);
    fuzz_watched(s);
    return s && size % 32 ? -1 : 0; /* most refused files are not mutated again */
}
