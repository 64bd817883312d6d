/* session.h - what hdf5.c and read.c share; only they know libhdf5's header. */
#ifndef WEFT_IO_HDF5_SESSION_H
#define WEFT_IO_HDF5_SESSION_H
#define H5_USE_110_API 1                         /* links have addresses, whatever the version */
#include <hdf5.h>
#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif
#include "io/hdf5/hdf5.h"

#define WEFT__CRC "crc32c" /* the attribute of a data set with the checksum of its numbers */

/* A file that is read, in memory or, bytes NULL, page by page; or one that is written. The first member is
 * libhdf5's own. */
typedef struct weft__h5_image {
    H5FD_t libhdf5_s;
    const unsigned char *bytes;
    unsigned char *to;                           /* the same memory, if it is written; else NULL */
    size_t written;                              /* bytes of it that were */
    weft__paged *paged;
    size_t size;
    haddr_t end;
    hid_t driver;
    bool swmr;                                   /* a program writes it, and lets others read */
} weft__h5_image;

struct weft__h5 {
    hid_t file; const char *path; weft_status status;
    unsigned char *image; size_t size;
    weft__h5_image read;                         /* what is read */
    size_t used;                                 /* of it, up to the end that the superblock names; 0: all */
    bool owns, checked;                          /* the image is freed at the end; checksums */
    int64_t *origin;                             /* of weft__h5_read_new; else NULL */
    H5E_auto2_t print; void *print_user; unsigned plugins;        /* as the program had set them */
};

/* memory.c */
/* Copies n bytes of the image. Returns false if they are not in it, or cannot be read. */
bool  weft__h5_bytes(const weft__h5_image *image, size_t at, size_t n, void *to);
/* Returns a number of n bytes, 8 at most; 0 if it is not in the image. */
uint64_t weft__h5_field(const weft__h5_image *image, size_t at, size_t n);
/* Whether n bytes, 8 at most, are these. */
bool  weft__h5_says(const weft__h5_image *image, size_t at, const char *text, size_t n);
/* Whether n bytes at an address, which counts from the superblock, lie before byte `end` of the image; *at:
 * their place in the image. */
bool  weft__h5_inside(const weft__h5_image *image, size_t end, uint64_t address, uint64_t n, size_t *at);
/* checksum.c: of n bytes of the image, as libhdf5 sums up metadata; false as above. */
bool  weft__h5_sum(const weft__h5_image *image, size_t at, size_t n, uint32_t *sum);
/* Opens the image, or makes a file in one that is written, with these properties. Less than 0: an error. The
 * image must stay as long as the file is open. */
hid_t weft__h5_open_image(weft__h5_image *image, hid_t creation);
/* Behind H5Fclose, which gives the driver up before it calls it for the last time. */
void  weft__h5_end_image(weft__h5_image *image);
/* header.c: false, if the object header at an address (of what is read) is not one that lies within the
 * file. */
typedef struct weft__h5_message { size_t at, n; int count; bool shared; } weft__h5_message;
typedef struct weft__h5_header {
    bool set;                                    /* a data set; else a group, if anything */
    /* in chunks or elsewhere in the file; with filters; in another file */
    bool chunked, filtered, external;
    /* of a type that is neither numbers nor a text of fixed length */
    bool odd;
    /* where its messages with extents, layout and filters lie in the image, and how many of each there are */
    weft__h5_message space, layout, filters;
} weft__h5_header;
bool  weft__h5_look(const weft__h5 *h, uint64_t address, weft__h5_header *out);
bool  weft__h5_root_is_sound(weft__h5 *h);
hid_t weft__h5_type(weft__number type, size_t text);
/* Which of the numbers that are read a type is; an enumeration is its integers. */
weft__number weft__h5_number(hid_t type);

/* chunks.c: sets in chunks, by our own reading only. */
/* What finds the chunks: numbers of the format, and 0 for the tree of version 1. */
typedef enum {
    WEFT__OLD_TREE, WEFT__ONE_CHUNK, WEFT__IMPLICIT, WEFT__FIXED_ARRAY, WEFT__EXTENSIBLE_ARRAY, WEFT__NEW_TREE
} weft__h5_index;
typedef struct weft__h5_chunks {
    int rank;
    uint64_t size[WEFT_RANK], most[WEFT_RANK];   /* of the set, and at most */
    uint64_t extent[WEFT_RANK];                  /* of a chunk */
    weft__h5_index kind;
    uint64_t index;                              /* address of what finds the chunks */
    uint64_t stored, skipped;                    /* of one chunk with filters: its bytes, filters skipped */
    size_t element, bytes;                       /* of a number, of a chunk */
    int filters, shuffle, deflate;               /* how many; which is it, -1: none */
} weft__h5_chunks;
/* Where a chunk lies; an address of HADDR_UNDEF: nowhere. skipped: bits of the filters not applied. */
typedef struct weft__h5_chunk { uint64_t address, n, skipped; } weft__h5_chunk;
/* chunk_index.c */
/* Returns the number of chunks along an axis. */
uint64_t weft__h5_chunks_along(const weft__h5_chunks *c, int axis);
/* Gives the place of a chunk, in chunks along each axis, by its number, row by row. */
void weft__h5_place_of_chunk(const weft__h5_chunks *c, uint64_t number, uint64_t place[WEFT_RANK]);
/* Fails the session, and returns a text to return. */
const char *weft__h5_no_index_memory(weft__h5 *h);
/* Finds the chunks of the set, row by row. Returns NULL, or why it cannot. */
const char *weft__h5_find_chunks(weft__h5 *h, const weft__h5_chunks *c, weft__h5_chunk *out,
                                 uint64_t chunks);
/* Why the set with this header is not read; NULL if all that its header says of chunks is sound. */
const char *weft__h5_chunked(const weft__h5 *h, const weft__h5_header *header, weft__h5_chunks *out);
/* The numbers of the set as they are in the file, weft__kind_bytes(kind) of them, which are zeros. */
void weft__h5_read_chunks(weft__h5 *h, const char *path, const weft__h5_chunks *c, const weft__kind *kind,
                          unsigned char *out);
bool weft__number_is_signed(weft__number type);
/* convert.c: numbers as they are in the file to F32, F64, I32 or I64. One that does not fit fails, see
 * weft__h5_read. */
void weft__h5_convert(weft__h5 *h, const char *path, const weft__kind *kind, weft__number as,
                      const unsigned char *raw, void *values);
static inline void weft__h5_close(hid_t id)      /* anything, or nothing */
{
    if (id >= 0)
        H5Idec_ref(id);
}
/* fails with libhdf5's innermost reason behind it */
void  weft__h5_broken(weft__h5 *h, const char *path, const char *what);
#endif
