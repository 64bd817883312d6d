/* data.h - shared by the readers of ragged data. */
#ifndef WEFT_IO_DATA_H
#define WEFT_IO_DATA_H
#include "io/io.h"

/* dataset.c */
/* Fills the offsets of *d and moves it to *out, or frees its arrays if status is not WEFT_OK. Returns the
 * status. */
weft_status weft__end_dataset(weft_dataset *d, weft_status status, const char *path, weft_dataset *out);

/* batch.c: copies rows [from, from + n) of a dataset, or ints. Returns the statuses of reading a file. */
weft_status weft__dataset_rows(const weft_dataset *, int64_t from, int64_t n, void *to);
/* Copies whole sequences, end to end. Neighbouring ones are read by one call. */
weft_status weft__gather(const weft_dataset *, const int32_t *index, int64_t n, void *to);
/* hdf5.c: copies rows from a file. */
weft_status weft__hdf5_rows(const struct weft_hdf5 *, int64_t from, int64_t n, void *to);
#endif
