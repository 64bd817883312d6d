/* types.c - libhdf5's types for the numbers that weft writes. */
#include "io/hdf5/session.h"

/* A float of 16 bits, as h5py writes it: float16 has 10 bits of fraction, bfloat16 has 7. */
static hid_t short_float(size_t fraction)
{
    hid_t t = H5Tcopy(H5T_IEEE_F32LE);
    size_t exponent = 15 - fraction;
    if (t >= 0 && (H5Tset_fields(t, 15, fraction, exponent, 0, fraction) < 0 ||
                   H5Tset_ebias(t, ((size_t)1 << (exponent - 1)) - 1) < 0 || H5Tset_size(t, 2) < 0)) {
        H5Tclose(t);
        t = H5I_INVALID_HID;
    }
    return t;
}

hid_t weft__h5_type(weft__number type, size_t text)
{
    switch (type) {
    case WEFT__F16:
        return short_float(10);
    case WEFT__BF16:
        return short_float(7);
    case WEFT__F32:   return H5Tcopy(H5T_IEEE_F32LE);
    case WEFT__F64:   return H5Tcopy(H5T_IEEE_F64LE);
    case WEFT__I32:   return H5Tcopy(H5T_STD_I32LE);
    case WEFT__I64:   return H5Tcopy(H5T_STD_I64LE);
    case WEFT__I8:
        return H5Tcopy(H5T_STD_I8LE);
    case WEFT__I16:
        return H5Tcopy(H5T_STD_I16LE);
    case WEFT__U8:    return H5Tcopy(H5T_STD_U8LE);
    case WEFT__U16:
        return H5Tcopy(H5T_STD_U16LE);
    case WEFT__U32:
        return H5Tcopy(H5T_STD_U32LE);
    case WEFT__U64:
        return H5Tcopy(H5T_STD_U64LE);
    case WEFT__CHARS: break;
    default:          return H5I_INVALID_HID;
    }
    hid_t t = H5Tcopy(H5T_C_S1);
    if (t < 0 || (H5Tset_size(t, text) >= 0 && H5Tset_cset(t, H5T_CSET_UTF8) >= 0))
        return t;
    H5Tclose(t);
    return H5I_INVALID_HID;
}
