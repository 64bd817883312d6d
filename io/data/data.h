/* data.h - how the readers of ragged data build a weft_dataset: rows are added, sequences ended, and the
 * arrays grow. */
#ifndef WEFT_IO_DATA_H
#define WEFT_IO_DATA_H
#include "io/hdf5/hdf5.h"

/* first: the row with which the open sequence begins. */
typedef struct { weft_dataset data; int64_t rows, first, row_room, len_room; } weft__growing;

/* Room for one more row, an int32 or data.columns reals; false if there is no memory. */
bool        weft__grow_row(weft__growing *, bool ints);
/* Ends the open sequence with the rows added so far. */
bool        weft__grow_sequence(weft__growing *);
/* Gives the finished data to *out, or frees them if status is not WEFT_OK; returns the status. */
weft_status weft__grown(weft__growing *, weft_status status, const char *path, weft_dataset *out);
/* hdf5.c: lengths and columns of the dataset below a group, and the set that its rows or tokens are; false:
 * an error. */
bool        weft__find_dataset(weft__h5 *h, const char *group, weft_dataset *, char path[WEFT__H5_PATH],
                               weft__kind *kind);
/* batch.c: rows [from, from + n) of a dataset, or ints. Statuses are those of reading a file. */
weft_status weft__dataset_rows(const weft_dataset *, int64_t from, int64_t n, void *to);
/* hdf5_part.c: the same of a file */
weft_status weft__hdf5_rows(const weft_hdf5 *, int64_t from, int64_t n, void *to);
/* A whole file in memory with a 0 behind it, to be freed. */
weft_status weft__slurp(const char *path, char **text, size_t *size);
#endif
