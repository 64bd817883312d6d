/* hdf5_session.h - what hdf5.c and hdf5_read.c share; they alone know libhdf5's header. */
#ifndef WEFT_IO_HDF5_SESSION_H
#define WEFT_IO_HDF5_SESSION_H
#include <hdf5.h>
#include "io/hdf5.h"

#define WEFT__CRC "crc32c"                       /* the attribute of a data set with the checksum of its numbers */

struct weft__h5 {
    hid_t file; const char *path; weft_status status;
    unsigned char *image; size_t size;           /* grows: all of it is ours; else the caller's */
    unsigned char *spare; size_t spare_size;     /* what it grows into next, see hdf5.c */
    bool grows, checked;
    H5E_auto2_t print; void *print_user; unsigned plugins;        /* as the program had set them */
};

hid_t weft__h5_type(weft__number type, size_t text);
void  weft__h5_close(hid_t id);                  /* anything, or nothing */
void  weft__h5_broken(weft__h5 *h, const char *path, const char *what);   /* fails with libhdf5's innermost reason behind it */
#endif
