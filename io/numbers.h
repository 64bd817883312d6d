/* numbers.h - the types of numbers in files, and their conversion. */
#ifndef WEFT_IO_NUMBERS_H
#define WEFT_IO_NUMBERS_H
#include "io/io.h"

/* The types of numbers in files. BIG is added to one of several bytes whose bytes are in big-endian order. */
typedef enum {
    WEFT__F16, WEFT__BF16, WEFT__F32, WEFT__F64,
    WEFT__I8, WEFT__I16, WEFT__I32, WEFT__I64,
    WEFT__U8, WEFT__U16, WEFT__U32, WEFT__U64,
    WEFT__CHARS, WEFT__ODD,
    WEFT__BIG = 16
} weft__number;
/* The content of a data set. A text has rank 1 and counts its final 0. An enumeration (h5py's bool) has the
 * type of its integers. ODD: a type that weft neither writes nor reads. */
typedef struct weft__kind { weft__number type; int rank; int64_t size[WEFT_RANK]; } weft__kind;

weft__number weft__number_of(weft_dtype type);
size_t       weft__number_bytes(weft__number type);
bool         weft__number_is_float(weft__number type);
bool         weft__number_is_int(weft__number type);
bool         weft__number_is_any(weft__number type);             /* a float or an integer */
size_t       weft__kind_bytes(const weft__kind *kind);
bool         weft__kind_same(const weft__kind *a, const weft__kind *b);
const char  *weft__kind_text(const weft__kind *kind, char buffer[128]);            /* "float32 [3, 4]" */

/* Converts the numbers of a file to F32, F64, I32 or I64. file and path name them in messages. Floats are
 * rounded to the nearest. origin, if not NULL, points to 0, and `as` is F64: the first integer that a double
 * does not hold becomes *origin, which is subtracted from all numbers.
 * Errors, WEFT_EFORMAT: a number that `as` does not hold (an integer: a double), with its position; with an
 * origin, a difference that a double does not hold. */
weft_status weft__convert(const char *file, const char *path, const weft__kind *kind, weft__number as,
                          int64_t *origin, const unsigned char *raw, void *values);
#endif
