/* numbers.c - the types of numbers in files: their names and bytes. */
#include <string.h>
#include "io/numbers.h"

enum { TYPE = WEFT__BIG - 1 };                   /* a type without its byte order */
/* class: f floats, i integers, u unsigned ones, t texts */
static const struct { const char *name; size_t bytes; char class; } number[] = {
    [WEFT__F16] = { "float16", 2, 'f' },
    [WEFT__BF16] = { "bfloat16", 2, 'f' },
    [WEFT__F32] = { "float32", 4, 'f' },
    [WEFT__F64] = { "float64", 8, 'f' },
    [WEFT__I8] = { "int8", 1, 'i' },
    [WEFT__I16] = { "int16", 2, 'i' },
    [WEFT__I32] = { "int32", 4, 'i' },
    [WEFT__I64] = { "int64", 8, 'i' },
    [WEFT__U8] = { "bytes", 1, 'u' },
    [WEFT__U16] = { "uint16", 2, 'u' },
    [WEFT__U32] = { "uint32", 4, 'u' },
    [WEFT__U64] = { "uint64", 8, 'u' },
    [WEFT__CHARS] = { "text", 1, 't' },
    [WEFT__ODD] = { "not plain numbers", 0, 0 },
};

weft__number weft__number_of(weft_dtype type)
{
    static const weft__number numbers[] = {
        sizeof(real) == 4 ? WEFT__F32 : WEFT__F64, WEFT__I32, WEFT__I64, WEFT__F64, WEFT__CHARS, WEFT__U8
    };
    return (unsigned)type < sizeof numbers / sizeof *numbers ? numbers[type] : WEFT__ODD;
}

size_t weft__number_bytes(weft__number t)   { return number[t & TYPE].bytes; }
static char class_of(weft__number t)        { return number[t & TYPE].class; }
bool weft__number_is_float(weft__number t)  { return class_of(t) == 'f'; }
bool weft__number_is_signed(weft__number t) { return class_of(t) == 'i'; }
bool weft__number_is_int(weft__number t)    { return class_of(t) == 'i' || class_of(t) == 'u'; }
bool weft__number_is_any(weft__number t)    { return weft__number_is_float(t) || weft__number_is_int(t); }

size_t weft__kind_bytes(const weft__kind *k)     /* SIZE_MAX if it overflows */
{
    size_t n = weft__number_bytes(k->type);
    for (int i = 0; i < k->rank; i++)
        if (__builtin_mul_overflow(n, (uint64_t)k->size[i], &n))
            return SIZE_MAX;
    return n;
}

bool weft__kind_same(const weft__kind *a, const weft__kind *b)
{
    return a->type == b->type && a->rank == b->rank &&
           !memcmp(a->size, b->size, (size_t)a->rank * sizeof *a->size);
}

const char *weft__kind_text(const weft__kind *k, char buffer[128])
{
    int length = snprintf(buffer, 128, "%s%s [", k->type & WEFT__BIG ? "big-endian " : "",
                          number[k->type & TYPE].name);
    for (int i = 0; i < k->rank && length < 128; i++)
        length +=
            snprintf(buffer + length, 128 - (size_t)length, i ? ", %lld" : "%lld", (long long)k->size[i]);
    if (length < 128)                                /* a longer text is cut; only damaged files have one */
        snprintf(buffer + length, 128 - (size_t)length, "]");
    return buffer;
}
