/* session.h - shared by the files of io/hdf5; only they include libhdf5's header. */
#ifndef WEFT_IO_HDF5_SESSION_H
#define WEFT_IO_HDF5_SESSION_H
#define H5_USE_110_API 1                         /* links have addresses, whatever the version */
#include <hdf5.h>
#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif
#include "io/hdf5/hdf5.h"

#define WEFT__CRC "crc32c"                       /* the attribute of a data set with its checksum */

/* A file that is read, from memory or (bytes NULL) page by page; or one that is written. */
typedef struct weft__h5_image {
    H5FD_t libhdf5_s;                            /* libhdf5's own part */
    const unsigned char *bytes;
    unsigned char *to;                           /* the same memory if the file is written, otherwise NULL */
    size_t written;                              /* bytes up to the last one written */
    weft__paged *paged;
    size_t size;
    haddr_t end;                                 /* of the part that libhdf5 uses */
    hid_t driver;
    bool swmr;                                   /* a program writes the file, and lets others read it */
} weft__h5_image;

struct weft__h5 {
    hid_t file;
    const char *path;
    weft_status status;
    unsigned char *image;
    size_t size;
    weft__h5_image read;
    size_t used;                                 /* bytes up to the end that the superblock names; 0: all */
    bool owns;                                   /* the image is freed at the end */
    bool checked;                                /* data sets have checksums */
    int64_t *origin;                             /* of weft__h5_read_new; otherwise NULL */
    H5E_auto2_t print;                           /* these as the program had set them */
    void *print_user;
    unsigned plugins;
};

/* memory.c */
/* Copies n bytes of the image. Returns false if they are not in it, or cannot be read. */
bool  weft__h5_bytes(const weft__h5_image *image, size_t at, size_t n, void *to);
/* Returns a number of n bytes, 8 at most; 0 if it is not in the image. */
uint64_t weft__h5_field(const weft__h5_image *image, size_t at, size_t n);
/* Whether n bytes, 8 at most, are these. */
bool  weft__h5_says(const weft__h5_image *image, size_t at, const char *text, size_t n);
/* Whether n bytes at an address, which counts from the superblock, end before byte `end` of the image; *at:
 * their place in the image. */
bool  weft__h5_inside(const weft__h5_image *image, size_t end, uint64_t address, uint64_t n, size_t *at);
/* checksum.c: gives the checksum of n bytes, as libhdf5 has it for metadata. Returns false if they cannot be
 * read. */
bool  weft__h5_sum(const weft__h5_image *image, size_t at, size_t n, uint32_t *sum);
/* Opens the image, or makes a file in one that is written, with these properties. Less than 0: an error. The
 * image must stay as long as the file is open. */
hid_t weft__h5_open_image(weft__h5_image *image, hid_t creation);
/* Ends the driver. To be called after H5Fclose, which calls the driver after it has closed the file. */
void  weft__h5_end_image(weft__h5_image *image);
/* header.c */
typedef struct weft__h5_message { size_t at, n; int count; bool shared; } weft__h5_message;
typedef struct weft__h5_header {
    bool external;                               /* its numbers are in another file */
    /* places of these messages in the image, and their counts; with a layout it is a data set */
    weft__h5_message space, type, layout, filters;
} weft__h5_header;
/* Reads the object header at an address. Returns false if it is damaged or is not inside the file. */
bool  weft__h5_look(const weft__h5 *h, uint64_t address, weft__h5_header *out);
/* Checks superblock and root group before libhdf5 opens the file. Returns false if they are damaged. */
bool  weft__h5_root_is_sound(weft__h5 *h);

/* numbers.c */
/* Returns libhdf5's type for one that is written, to be closed; text: bytes of a text. */
hid_t weft__h5_type(weft__number type, size_t text);

/* chunks.c: reads sets in chunks without libhdf5. */
/* The kinds of indexes: numbers of the format, and 0 for the tree of version 1. */
typedef enum {
    WEFT__OLD_TREE, WEFT__ONE_CHUNK, WEFT__IMPLICIT, WEFT__FIXED_ARRAY, WEFT__EXTENSIBLE_ARRAY, WEFT__NEW_TREE
} weft__h5_index;
typedef struct weft__h5_chunks {
    int rank;
    uint64_t size[WEFT_RANK], most[WEFT_RANK];   /* extents of the set, now and at most */
    uint64_t extent[WEFT_RANK];                  /* of a chunk */
    weft__h5_index kind;
    uint64_t index;                              /* address of the index */
    uint64_t stored, skipped;                    /* bytes of a single chunk with filters, filters skipped */
    size_t element, bytes;                       /* bytes of a number, of a chunk */
    int filters;                                 /* their number */
    int shuffle, deflate;                        /* their places in the pipeline, -1: none */
} weft__h5_chunks;
/* The place of a chunk; an address of HADDR_UNDEF: it has none. skipped: bits of the filters not applied. */
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
/* set.c */
typedef struct weft__h5_set {
    weft__kind kind;
    uint64_t most[WEFT_RANK];                    /* extents that it may grow to */
    bool chunked;
    weft__h5_chunks chunks;
    size_t at;                                   /* else its first byte in the image, */
    const char *unfit;                           /* and why there is none; NULL: there is */
} weft__h5_set;
/* Describes the data set of a header. Returns NULL, or why it is not read. */
const char *weft__h5_describe_set(const weft__h5 *h, const weft__h5_header *header, weft__h5_set *out);
/* chunks.c: describes the chunks of a set whose kind is known. Returns NULL, or why it is not read. */
const char *weft__h5_chunked(const weft__h5 *h, const weft__h5_header *header, weft__h5_set *s);
/* Reads the bytes of the set to `out`, which is zeroed. */
void weft__h5_read_chunks(weft__h5 *h, const char *path, const weft__h5_set *s, unsigned char *out);
bool weft__number_is_signed(weft__number type);
/* convert.c: converts numbers of a file to F32, F64, I32 or I64. Errors: see weft__h5_read. */
void weft__h5_convert(weft__h5 *h, const char *path, const weft__kind *kind, weft__number as,
                      const unsigned char *raw, void *values);
/* Closes any object of libhdf5's; below 0: nothing. */
static inline void weft__h5_close(hid_t id)
{
    if (id >= 0)
        H5Idec_ref(id);
}
/* Fails the session; the message ends with libhdf5's innermost reason. */
void  weft__h5_broken(weft__h5 *h, const char *path, const char *what);
#endif
