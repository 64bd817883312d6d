/* session.h - shared by the files of io/hdf5; only they include libhdf5's header. */
#ifndef WEFT_IO_HDF5_SESSION_H
#define WEFT_IO_HDF5_SESSION_H
#define H5_USE_110_API 1                         /* links have addresses, whatever the version */
#include <hdf5.h>
#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif
#include "io/hdf5/hdf5.h"

#define WEFT__CRC "crc32c"                       /* attribute with a data set's checksum */

/* A file that is read, from memory or (bytes NULL) page by page, or one that is written to memory. */
typedef struct weft__h5_image {
    H5FD_t libhdf5_s;                            /* libhdf5's own part */
    unsigned char *bytes;
    bool output;                                 /* the file is written */
    size_t written;                              /* bytes up to the last one written */
    weft__paged *paged;
    size_t size;
    haddr_t end;                                 /* end of the part that libhdf5 uses */
    hid_t driver;
    bool swmr;                                   /* another program may write the file while it is read */
} weft__h5_image;

struct weft__h5 {
    hid_t file;
    const char *path;
    weft_status status;
    weft__h5_image read;
    size_t used;                                 /* bytes up to the end in the superblock; 0: all */
    uint64_t root;                               /* address of the root's header */
    int64_t steps;                               /* steps of searches in heaps of texts so far */
    bool owns;                                   /* the image is freed at the end */
    bool checked;                                /* data sets have checksums */
    int64_t *origin;                             /* see weft__convert; otherwise NULL */
    H5E_auto2_t print;                           /* error output that the program had set */
    void *print_user;
    unsigned plugins;
};

/* memory.c */
/* Copies n bytes of the image. Returns false if they are outside, or cannot be read. */
bool  weft__h5_bytes(const weft__h5_image *image, size_t offset, size_t n, void *to);
/* Returns a number of n bytes, at most 8; 0 if it is outside the image. */
static inline uint64_t field(const weft__h5 *h, size_t offset, size_t n)
{
    unsigned char bytes[8];
    return weft__h5_bytes(&h->read, offset, n, bytes) ? weft__little(bytes, n) : 0;
}
static inline int byte(const weft__h5 *h, size_t offset) { return (int)field(h, offset, 1); }
/* Returns whether the n bytes, at most 8, equal the text. */
bool  weft__h5_has_text(const weft__h5 *h, size_t offset, const char *text, size_t n);
/* Returns whether n bytes at an address, which counts from the superblock, end before byte `end` of the
 * image. Sets *offset, their position in the image. */
bool  weft__h5_inside(const weft__h5 *h, size_t end, uint64_t address, uint64_t n, size_t *offset);
/* checksum.c: computes the checksum of n bytes as libhdf5 does for metadata. Returns false if they cannot be
 * read. */
bool  weft__h5_sum(const weft__h5 *h, size_t offset, size_t n, uint32_t *sum);
/* Opens the image, or creates a file in one that is written, with these properties. Returns a negative number
 * on failure. The image must stay valid while the file is open. */
hid_t weft__h5_open_image(weft__h5_image *image, hid_t creation);
/* header.c */
typedef struct weft__h5_message { size_t offset, n; int count; bool shared; } weft__h5_message;
typedef struct weft__h5_header {
    uint64_t address;
    bool external;                               /* its numbers are in another file */
    /* positions of these messages in the image, and their counts; a layout makes it a data set */
    weft__h5_message space, type, layout, filters;
} weft__h5_header;
/* Reads the object header at an address. Returns false if it is damaged or outside the file. */
bool  weft__h5_read_header(const weft__h5 *h, uint64_t address, weft__h5_header *out);
/* Finds an attribute in the header at an address, not one in a heap. count 0: it does not exist there. */
weft__h5_message weft__h5_attribute(const weft__h5 *h, uint64_t address, const char *key);
/* read.c: finds the header of an object. Returns false if it does not exist, and after an error. */
bool weft__h5_find_header(weft__h5 *h, const char *path, weft__h5_header *out);
/* Checks superblock and root group before libhdf5 opens the file. Returns false if they are damaged. */
bool  weft__h5_root_is_sound(weft__h5 *h);

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
/* The position of a chunk; address HADDR_UNDEF: not stored. skipped: bits of the filters that were not
 * applied. */
typedef struct weft__h5_chunk { uint64_t address, n, skipped; } weft__h5_chunk;
/* chunk_index.c */
/* Returns the number of chunks along an axis. */
uint64_t weft__h5_chunks_along(const weft__h5_chunks *c, int axis);
/* Computes the position of a chunk, in chunks along each axis, from its number, row by row. */
void weft__h5_place_of_chunk(const weft__h5_chunks *c, uint64_t number, uint64_t place[WEFT_RANK]);
/* Lists the chunks of the set, row by row, to be freed. Returns NULL, or the reason of a failure. */
const char *weft__h5_find_chunks(weft__h5 *h, const weft__h5_chunks *c, uint64_t chunks,
                                 weft__h5_chunk **list);
/* set.c */
typedef struct weft__h5_set {
    weft__kind kind;
    bool chunked;
    weft__h5_chunks chunks;
    size_t offset;                               /* if not chunked: its first byte in the image */
    const char *unfit;                           /* NULL, or the reason why the set cannot be read */
} weft__h5_set;
/* Describes the data set of a header. Returns NULL, or the reason why it cannot be read. */
const char *weft__h5_describe_set(const weft__h5 *h, const weft__h5_header *header, weft__h5_set *out);
/* chunks.c: describes the chunks of a set whose kind is known. Returns NULL, or the reason why it cannot be
 * read. */
const char *weft__h5_chunked(const weft__h5 *h, const weft__h5_header *header, weft__h5_set *s);
/* Reads the bytes of the set to `out`, which is zeroed. */
void weft__h5_read_chunks(weft__h5 *h, const char *path, const weft__h5_set *s, unsigned char *out);
/* Closes any object of libhdf5; a negative id is ignored. */
static inline void weft__h5_close(hid_t id)
{
    if (id >= 0)
        H5Idec_ref(id);
}
/* Fails the session. The message ends with libhdf5's innermost reason. */
void  weft__h5_broken(weft__h5 *h, const char *path, const char *problem);
#endif
