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
    const hid_t plain[] = {
        [WEFT__F32] = H5T_IEEE_F32LE, [WEFT__F64] = H5T_IEEE_F64LE, [WEFT__I8] = H5T_STD_I8LE,
        [WEFT__I16] = H5T_STD_I16LE,  [WEFT__I32] = H5T_STD_I32LE,  [WEFT__I64] = H5T_STD_I64LE,
        [WEFT__U8] = H5T_STD_U8LE,    [WEFT__U16] = H5T_STD_U16LE,  [WEFT__U32] = H5T_STD_U32LE,
        [WEFT__U64] = H5T_STD_U64LE
    };
    if (type == WEFT__F16 || type == WEFT__BF16)
        return short_float(type == WEFT__F16 ? 10 : 7);
    if (type < WEFT__CHARS)
        return H5Tcopy(plain[type]);
    hid_t t = type == WEFT__CHARS ? H5Tcopy(H5T_C_S1) : H5I_INVALID_HID;
    if (t < 0 || (H5Tset_size(t, text) >= 0 && H5Tset_cset(t, H5T_CSET_UTF8) >= 0))
        return t;
    H5Tclose(t);
    return H5I_INVALID_HID;
}
