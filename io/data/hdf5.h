/* hdf5.h - shared by the readers of ragged data in HDF5. */
#ifndef WEFT_IO_DATA_HDF5_H
#define WEFT_IO_DATA_HDF5_H
#include "io/data/data.h"
#include "io/hdf5/hdf5.h"

/* Reads lengths and columns of the dataset below a group, and finds the data set of its rows or tokens.
 * Returns false on failure. */
bool        weft__find_dataset(weft__h5 *h, const char *group, weft_dataset *, char path[WEFT__H5_PATH],
                               weft__kind *kind);
/* Reads the rows or tokens of that data set. */
void weft__read_dataset(weft__h5 *h, const char *path, const weft__kind *kind, weft_dataset *);
#endif
