/* array.c - reads the numbers of an array: applies its strides and the order of its gates, and converts its
 * type. */
#include <stdlib.h>
#include <string.h>
#include "io/weights/weights.h"

bool weft__array_is_inside(const weft__array *a, const unsigned char *begin, size_t size)
{
    uint64_t last = 0, part, bytes = weft__number_bytes(a->kind.type);
    size_t all = weft__kind_bytes(&a->kind);
    if (all == SIZE_MAX || a->bytes < begin || a->bytes > begin + size)
        return false;
    for (int i = 0; i < a->kind.rank && all; i++)
        if (a->stride[i] < 0 ||
            __builtin_mul_overflow((uint64_t)a->kind.size[i] - 1, (uint64_t)a->stride[i], &part) ||
            __builtin_add_overflow(last, part, &last))
            return false;
    return !all || (!__builtin_add_overflow(last, 1, &last) && !__builtin_mul_overflow(last, bytes, &last) &&
                    last <= (uint64_t)(begin + size - a->bytes));
}

static bool is_contiguous(const weft__array *a)
{
    weft__array same = *a;
    weft__set_strides(&same);
    for (int i = 0; i < a->kind.rank; i++)
        if (a->kind.size[i] > 1 && a->stride[i] != same.stride[i])
            return false;
    return !a->gates;
}

/* Copies an array's elements, of `bytes` bytes each, in row-major order. */
static void gather(const weft__array *a, const unsigned char *from, size_t bytes, unsigned char *to)
{
    int64_t at[WEFT_RANK] = { 0 }, block = a->gates ? a->kind.size[0] / a->gates : 0;
    for (const unsigned char *end = to + weft__kind_bytes(&a->kind); to < end; to += bytes) {
        int64_t row = block ? a->order[at[0] / block] * block + at[0] % block : at[0];
        int64_t offset = a->kind.rank ? row * a->stride[0] : 0;
        for (int i = 1; i < a->kind.rank; i++)
            offset += at[i] * a->stride[i];
        memcpy(to, from + (size_t)offset * bytes, bytes);
        for (int i = a->kind.rank - 1; i >= 0 && ++at[i] == a->kind.size[i]; i--)
            at[i] = 0;
    }
}

/* Returns the elements in row-major order, to be freed. NULL after a failure. */
static unsigned char *read_ordered(weft__weights *w, const weft__array *a, const unsigned char *from)
{
    size_t bytes = weft__kind_bytes(&a->kind);
    unsigned char *to = malloc(bytes);
    if (to)
        gather(a, from, weft__number_bytes(a->kind.type), to);
    else
        weft__weights_fail(w, WEFT_ENOMEM, "no memory for the %zu bytes of %s", bytes, a->name);
    return to;
}

bool weft__array_read(weft__weights *w, const weft__array *a, weft__number as, void *values)
{
    char text[128];
    size_t bytes = weft__kind_bytes(&a->kind), each = weft__number_bytes(a->kind.type);
    bool whole = weft__number_is_int(as);
    if (bytes == SIZE_MAX)
        weft__weights_fail(w, WEFT_EFORMAT, "%s is %s, which is larger than any memory", a->name,
                           weft__kind_text(&a->kind, text));
    else if (!weft__number_is_any(a->kind.type) || (whole && bytes && !weft__number_is_int(a->kind.type)))
        weft__weights_fail(w, WEFT_EFORMAT, "%s is %s; expected %s", a->name, weft__kind_text(&a->kind, text),
                           whole ? "integers" : "numbers");
    if (w->status || !bytes)
        return !w->status;
    if (!a->bytes && !a->set) {
        memset(values, 0, bytes / each * weft__number_bytes(as));
        return true;
    }
    unsigned char *set = a->set ? w->read_set(w, a->set) : NULL, *ordered = NULL;
    const unsigned char *raw = set ? set + (size_t)a->first * each : a->bytes;
    if (!w->status && !is_contiguous(a))
        raw = ordered = read_ordered(w, a, raw);
    if (!w->status)
        w->status = weft__convert(w->path, a->name, &a->kind, as, NULL, raw, values);
    free(ordered);
    free(set);
    return !w->status;
}
