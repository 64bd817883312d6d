/* session.h - what hdf5.c and read.c share; they alone know libhdf5's header. */
#ifndef WEFT_IO_HDF5_SESSION_H
#define WEFT_IO_HDF5_SESSION_H
#define H5_USE_110_API 1                         /* links have addresses, whatever the version */
#include <hdf5.h>
#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif
#include "io/hdf5/hdf5.h"

#define WEFT__CRC "crc32c" /* the attribute of a data set with the checksum of its numbers */

/* A file in memory that is read; the first member is libhdf5's own. */
typedef struct weft__h5_image {
    H5FD_t libhdf5_s;
    const unsigned char *bytes;
    size_t size;
    haddr_t end;
    hid_t driver;
} weft__h5_image;

struct weft__h5 {
    hid_t file; const char *path; weft_status status;
    unsigned char *image; size_t size;           /* grows: all of it is ours; else the caller's */
    weft__h5_image read;                         /* what is read */
    unsigned char *spare; size_t spare_size;     /* what it grows into next, see hdf5.c */
    bool grows, checked;
    H5E_auto2_t print; void *print_user; unsigned plugins;        /* as the program had set them */
};

/* memory.c: less than 0: the image is no file. It must stay as long as the file is open. */
hid_t weft__h5_open_image(weft__h5_image *image);
/* Behind H5Fclose, which gives the driver up before it calls it for the last time. */
void  weft__h5_end_image(weft__h5_image *image);
/* header.c: false, if the object header at an address (of what is read) is not one that lies within the
 * file. */
typedef struct weft__h5_header {
    bool set;                                    /* a data set; else a group, if anything */
    /* in chunks or elsewhere in the file; with filters; in another file */
    bool chunked, filtered, external;
    /* of a type that is neither numbers nor a text of fixed length */
    bool odd;
} weft__h5_header;
bool  weft__h5_look(const weft__h5 *h, uint64_t address, weft__h5_header *out);
bool  weft__h5_root_is_sound(weft__h5 *h);
hid_t weft__h5_type(weft__number type, size_t text);
static inline void weft__h5_close(hid_t id)      /* anything, or nothing */
{
    if (id >= 0)
        H5Idec_ref(id);
}
/* fails with libhdf5's innermost reason behind it */
void  weft__h5_broken(weft__h5 *h, const char *path, const char *what);
#endif
