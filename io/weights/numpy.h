/* numpy.h - reads and writes NumPy's .npy format, and reads archives of it (.npz). */
#ifndef WEFT_IO_NUMPY_H
#define WEFT_IO_NUMPY_H
#include "io/weights/weights.h"

/* Reads the header of a .npy file in memory: sets kind, stride and bytes of *a. Returns NULL, or the reason
 * if it is not an array that weft reads: "has Python objects ..". */
const char *weft__npy_read(const unsigned char *bytes, size_t size, weft__array *a);
/* Writes the header of a .npy file with numbers of this kind: float32, float64, int32 or int64. Row-major
 * numbers follow it. Returns its length; 0 for other types. */
enum { WEFT__NPY_HEADER = 256 };
size_t weft__npy_header(const weft__kind *kind, char header[WEFT__NPY_HEADER]);
/* Lists the array of a lone .npy file, as "array". */
void weft__read_npy(weft__weights *);
#endif
