/* halves.h - creates libhdf5 types for 16-bit floats, for tests and seeds of fuzzing. */
#ifndef WEFT_TESTS_HALVES_H
#define WEFT_TESTS_HALVES_H
#include <hdf5.h>
#include <stdbool.h>

/* Creates float16 or bfloat16. The caller closes it. */
static inline hid_t half_type(bool bfloat, bool big)
{
    size_t exponent = bfloat ? 8 : 5;
    hid_t t = H5Tcopy(big ? H5T_IEEE_F32BE : H5T_IEEE_F32LE);
    H5Tset_fields(t, 15, 15 - exponent, exponent, 0, 15 - exponent);
    H5Tset_size(t, 2);
    H5Tset_ebias(t, bfloat ? 127 : 15);
    return t;
}
#endif
