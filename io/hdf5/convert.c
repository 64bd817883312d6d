/* convert.c - numbers of other programs' files to ours: of either byte order, of two, four and eight
 * bytes. */
#include <math.h>
#include <string.h>
#include "io/hdf5/session.h"

enum { NAME = 256 };

/* "weight[2, 1]": where number `at` of a set lies. */
static void name_element(const char *path, const weft__kind *k, int64_t at, char text[2 * NAME])
{
    char places[160] = "";
    for (int i = k->rank - 1; i >= 0; i--) {     /* the last axis runs fastest */
        char behind[sizeof places];
        memcpy(behind, places, sizeof behind);
        snprintf(places, sizeof places, "%lld%s%.120s", (long long)(at % k->size[i]), *behind ? ", " : "",
                 behind);
        at /= k->size[i];
    }
    snprintf(text, 2 * NAME, "%.320s[%s]", path, places);
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

static double of_float(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

static double of_double(uint64_t bits)
{
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

static double number_at(weft__number type, const unsigned char *at)
{
    bool turned =
        type == WEFT__F32_BE || type == WEFT__F64_BE || type == WEFT__F16_BE || type == WEFT__BF16_BE;
    size_t n = weft__number_bytes(type);
    uint64_t bits = 0;
    for (size_t i = 0; i < n; i++)
        bits |= (uint64_t)at[turned ? n - 1 - i : i] << 8 * i;
    switch (type) {
    case WEFT__F16:
    case WEFT__F16_BE:  return of_half(bits);
    case WEFT__BF16:
    case WEFT__BF16_BE: return of_float((uint32_t)bits << 16);   /* the upper half of a float32 */
    case WEFT__F32:
    case WEFT__F32_BE:  return of_float((uint32_t)bits);
    default:            return of_double(bits);
    }
}

/* A number that a float32 does not hold would be infinity from here on. What is infinite or NaN in the file
 * is so here, too. */
void weft__h5_convert(weft__h5 *h, const char *path, const weft__kind *k, weft__number as,
                      const unsigned char *raw, void *values)
{
    char place[2 * NAME];
    size_t bytes = weft__number_bytes(k->type);
    int64_t n = (int64_t)(weft__kind_bytes(k) / bytes);
    if (k->type == as)
        memcpy(values, raw, (size_t)n * bytes);
    for (int64_t i = 0; k->type != as && i < n && !h->status; i++) {
        double wide = number_at(k->type, raw + (size_t)i * bytes);
        if (as == WEFT__F64) {
            ((double *)values)[i] = wide;
            continue;
        }
        float narrow = (float)wide;
        ((float *)values)[i] = narrow;
        if (isinf(narrow) && isfinite(wide)) {
            name_element(path, k, i, place);
            weft__h5_fail(h, WEFT_EFORMAT, "%s is %g, which is too large for float32", place, wide);
        }
    }
}

weft_status weft__h5_part(const char *file, const char *path, const weft__kind *k, weft__number as,
                          const unsigned char *raw, void *values)
{
    weft__h5 h = { .path = file };
    weft__h5_convert(&h, path, k, as, raw, values);
    return h.status;
}
