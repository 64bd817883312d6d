/* numbers.c - the types of numbers in files, and their conversion to those in memory: integers and floats of
 * one to eight bytes, in either byte order. */
#include <math.h>
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

/* ---- conversion ---- */
enum { NAME = 256 };

/* Writes the position of number `index` of a set: "weight[2, 1]". */
static void name_element(const char *path, const weft__kind *k, int64_t index, char text[2 * NAME])
{
    int64_t block = (int64_t)(weft__kind_bytes(k) / weft__number_bytes(k->type));
    int n = snprintf(text, 2 * NAME, "%.320s[", path);
    for (int i = 0; i < k->rank; i++) {          /* the last axis runs fastest */
        block /= k->size[i];
        n += snprintf(text + n, 2 * NAME - (size_t)n, i ? ", %lld" : "%lld",
                      (long long)(index / block % k->size[i]));
    }
    snprintf(text + n, 2 * NAME - (size_t)n, "]");
}

/* IEEE 754's binary16 */
static double of_half(uint64_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double size = exponent == 31 ? fraction ? (double)NAN : (double)INFINITY :
                  exponent       ? ldexp(1024 + fraction, exponent - 25) :
                                   ldexp(fraction, -24);
    return bits >> 15 ? -size : size;
}

static uint64_t bits_at(weft__number type, const unsigned char *bytes)
{
    size_t n = weft__number_bytes(type);
    uint64_t bits = 0;
    for (size_t i = 0; i < n; i++)
        bits |= (uint64_t)bytes[type & WEFT__BIG ? n - 1 - i : i] << 8 * i;
    return bits;
}

static double real_of(weft__number type, uint64_t bits)
{
    unsigned plain = type & TYPE;
    unsigned upper = plain == WEFT__BF16 ? 16 : 0;       /* bfloat16 is the upper half of a float32 */
    const union { uint64_t bits; double number; } wide = { bits };
    const union { uint32_t bits; float number; } narrow = { (uint32_t)bits << upper };
    return plain == WEFT__F16 ? of_half(bits) : plain == WEFT__F64 ? wide.number : (double)narrow.number;
}

/* An integer as a sign and a size, so that all of int64 and uint64 fit. */
typedef struct { bool negative; uint64_t size; } whole;

static whole whole_of(weft__number type, uint64_t bits)
{
    unsigned unused = 64 - 8 * (unsigned)weft__number_bytes(type);
    if (class_of(type) != 'i' || !(bits << unused >> 63))
        return (whole){ false, bits };
    return (whole){ true, (~bits + 1) << unused >> unused };
}

static bool to_integer(whole v, weft__number as, void *to)
{
    uint64_t most = (as == WEFT__I32 ? (uint64_t)INT32_MAX : (uint64_t)INT64_MAX) + v.negative;
    int64_t value = (int64_t)(v.negative ? ~v.size + 1 : v.size);
    if (as == WEFT__I32)
        *(int32_t *)to = (int32_t)value;
    else
        *(int64_t *)to = value;
    return v.size <= most;
}

static double to_double(whole v, bool *exact)
{
    double d = (double)v.size;
    *exact = d < 0x1p64 && (uint64_t)d == v.size;
    return v.negative ? -d : d;
}

/* Returns false for a finite number that a float32 does not hold. Infinity and NaN stay. */
static bool to_real(double wide, weft__number as, void *to)
{
    if (as == WEFT__F64)
        *(double *)to = wide;
    else
        *(float *)to = (float)wide;
    return as == WEFT__F64 || !isfinite(wide) || isfinite((float)wide);
}

/* Subtracts the set's origin from an integer. The first integer that a double does not hold becomes the
 * origin. Returns false if a double does not hold the difference. */
static bool subtract_origin(int64_t *origin, whole v, double *to)
{
    int64_t integer;
    if (!to_integer(v, WEFT__I64, &integer))
        return false;
    *origin = *origin ? *origin : integer;
    *to = 0;
    return weft__move_origin(to, integer, *origin);
}

/* Numbers of a file that are converted. */
typedef struct {
    const char *file, *path;
    const weft__kind *kind;
    weft__number as;
    int64_t *origin;                             /* see weft__convert */
    weft_status status;
} conversion;

static void convert_integer(conversion *c, int64_t i, whole v, void *to)
{
    char place[2 * NAME];
    bool exact = true, reals = weft__number_is_float(c->as),
         fits = reals ? to_real(to_double(v, &exact), c->as, to) : to_integer(v, c->as, to);
    if (c->origin && (*c->origin || !exact))
        exact = subtract_origin(c->origin, v, to);
    if (fits && exact)
        return;
    const char *reason = c->as == WEFT__I32 ? "a number that an int32 holds" :
                         !reals             ? "a number that an int64 holds" :
                                  "an integer that a double holds; store it from a later origin, or in "
                                  "a larger unit (seconds, not nanoseconds)";
    name_element(c->path, c->kind, i, place);
    if (c->origin && *c->origin)
        c->status = weft__file_fail(
            WEFT_EFORMAT, "%s: %s is %s%llu; a double does not hold that less the first large integer, %lld; "
                          "expected integers nearer to it",
            c->file, place, v.negative ? "-" : "", (unsigned long long)v.size, (long long)*c->origin);
    else
        c->status = weft__file_fail(WEFT_EFORMAT, "%s: %s is %s%llu; expected %s", c->file, place,
                                    v.negative ? "-" : "", (unsigned long long)v.size, reason);
}

static void convert_real(conversion *c, int64_t i, double wide, void *to)
{
    char place[2 * NAME];
    if (to_real(wide, c->as, to))
        return;
    name_element(c->path, c->kind, i, place);
    c->status = weft__file_fail(WEFT_EFORMAT, "%s: %s is %g; expected a number that a float32 holds", c->file,
                                place, wide);
}

weft_status weft__convert(const char *file, const char *path, const weft__kind *k, weft__number as,
                          int64_t *origin, const unsigned char *raw, void *values)
{
    conversion c = { file, path, k, as, origin, WEFT_OK };
    size_t bytes = weft__number_bytes(k->type), own = weft__number_bytes(as);
    int64_t n = (int64_t)(weft__kind_bytes(k) / bytes);
    bool whole_numbers = weft__number_is_int(k->type);
    if (k->type == as) {
        memcpy(values, raw, (size_t)n * bytes);
        weft__turn(bytes, values, (size_t)n * bytes);
        return WEFT_OK;
    }
    int64_t before = 0;                          /* if an origin was found, all numbers are converted again */
    for (int64_t i = 0; i < n && !c.status; i++) {
        uint64_t bits = bits_at(k->type, raw + (size_t)i * bytes);
        char *to = (char *)values + (size_t)i * own;
        if (whole_numbers)
            convert_integer(&c, i, whole_of(k->type, bits), to);
        else
            convert_real(&c, i, real_of(k->type, bits), to);
        if (origin && *origin != before) {
            before = *origin;
            i = -1;
        }
    }
    return c.status;
}
