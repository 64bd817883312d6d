/* numbers.c - the types of numbers: their names and bytes, and libhdf5's types for them. */
#include <string.h>
#include "io/hdf5/session.h"

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
    [WEFT__ODD] = { "something else than plain numbers", 0, 0 },
};

weft__number weft__number_of(weft_dtype type)
{
    static const weft__number of[] = {
        sizeof(real) == 4 ? WEFT__F32 : WEFT__F64, WEFT__I32, WEFT__I64, WEFT__F64, WEFT__CHARS, WEFT__U8
    };
    return (unsigned)type < sizeof of / sizeof *of ? of[type] : WEFT__ODD;
}

size_t weft__number_bytes(weft__number t)   { return number[t & TYPE].bytes; }
static char class_of(weft__number t)        { return number[t & TYPE].class; }
bool weft__number_is_float(weft__number t)  { return class_of(t) == 'f'; }
bool weft__number_is_signed(weft__number t) { return class_of(t) == 'i'; }
bool weft__number_is_int(weft__number t)    { return class_of(t) == 'i' || class_of(t) == 'u'; }
bool weft__number_is_any(weft__number t)    { return weft__number_is_float(t) || weft__number_is_int(t); }

size_t weft__kind_bytes(const weft__kind *k)     /* SIZE_MAX if that is no number */
{
    size_t n = weft__number_bytes(k->type);
    for (int i = 0; i < k->rank; i++)
        if (__builtin_mul_overflow(n, (size_t)k->size[i], &n))
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
    int at = snprintf(buffer, 128, "%s%s [", k->type & WEFT__BIG ? "big-endian " : "",
                      number[k->type & TYPE].name);
    for (int i = 0; i < k->rank && at < 128; i++)
        at += snprintf(buffer + at, 128 - (size_t)at, i ? ", %lld" : "%lld", (long long)k->size[i]);
    if (at < 128)                                /* else it is cut: only nonsense is as large */
        snprintf(buffer + at, 128 - (size_t)at, "]");
    return buffer;
}

/* of two bytes: a sign, bits of exponent, the rest */
static hid_t half_type(hid_t like, size_t exponent, size_t bias)
{
    hid_t t = H5Tcopy(like);
    if (t >= 0 && H5Tset_fields(t, 15, 15 - exponent, exponent, 0, 15 - exponent) >= 0 &&
        H5Tset_size(t, 2) >= 0 && H5Tset_ebias(t, bias) >= 0)
        return t;
    weft__h5_close(t);
    return H5I_INVALID_HID;
}

static hid_t integer_type(weft__number type)
{
    hid_t t = H5Tcopy(H5T_STD_I8LE);
    if (t >= 0 && H5Tset_precision(t, 8 * weft__number_bytes(type)) >= 0 &&
        H5Tset_order(t, type & WEFT__BIG ? H5T_ORDER_BE : H5T_ORDER_LE) >= 0 &&
        H5Tset_sign(t, weft__number_is_signed(type) ? H5T_SGN_2 : H5T_SGN_NONE) >= 0)
        return t;
    weft__h5_close(t);
    return H5I_INVALID_HID;
}

hid_t weft__h5_type(weft__number type, size_t text)               /* in a file; to be closed */
{
    hid_t like = type & WEFT__BIG ? H5T_IEEE_F32BE : H5T_IEEE_F32LE;
    switch (type & TYPE) {
    case WEFT__F16:    return half_type(like, 5, 15);
    case WEFT__BF16:   return half_type(like, 8, 127);
    case WEFT__F32:    return H5Tcopy(like);
    case WEFT__F64:    return H5Tcopy(type & WEFT__BIG ? H5T_IEEE_F64BE : H5T_IEEE_F64LE);
    case WEFT__CHARS:  break;
    case WEFT__ODD:    return H5I_INVALID_HID;
    default:           return integer_type(type);
    }
    hid_t t = H5Tcopy(H5T_C_S1);
    if (t < 0 || (H5Tset_size(t, text) >= 0 && H5Tset_cset(t, H5T_CSET_UTF8) >= 0))
        return t;
    H5Tclose(t);
    return H5I_INVALID_HID;
}

weft__number weft__h5_number(hid_t type)
{
    weft__number is = WEFT__ODD;
    H5T_class_t class = type < 0 ? H5T_NO_CLASS : H5Tget_class(type);
    if (class == H5T_ENUM) {
        hid_t integers = H5Tget_super(type);
        is = weft__h5_number(integers);
        weft__h5_close(integers);
    }
    hid_t copy = type < 0 ? type : H5Tcopy(type);
    if (class == H5T_INTEGER && H5Tget_size(copy) == 1)
        H5Tset_order(copy, H5T_ORDER_LE);        /* one byte has no order */
    for (int k = 0; k < 2 * WEFT__CHARS && is == WEFT__ODD; k++) {
        weft__number t = (weft__number)(k / 2 + (k % 2 ? WEFT__BIG : 0));
        bool may_be = class == (weft__number_is_float(t) ? H5T_FLOAT : H5T_INTEGER) &&
                      H5Tget_size(type) == weft__number_bytes(t);
        hid_t known = may_be ? weft__h5_type(t, 0) : H5I_INVALID_HID;
        if (known >= 0 && H5Tequal(copy, known) > 0)
            is = t;
        weft__h5_close(known);
    }
    weft__h5_close(copy);
    return is;
}
