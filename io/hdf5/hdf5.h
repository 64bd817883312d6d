/* hdf5.h - reads and writes HDF5 files for checkpoints, state dicts and data: data sets of numbers and texts,
 * and texts as attributes.
 *
 * A file is an image in memory, or is read page by page. So libhdf5 never meets a full disk, a lock, a pipe
 * or a file that changes while it is read. It parses a checkpoint only after the checksum of the whole file
 * was verified. Its input is still checked first: object headers, hard links, texts of fixed length, a
 * checksum for each data set. libhdf5 finds data sets by name; weft reads their numbers without it.
 *
 * Errors are sticky in a session: after the first one every function does nothing. The process has one
 * session at a time, and other threads wait. So a session is short, and its thread must not begin another. */
#ifndef WEFT_IO_HDF5_H
#define WEFT_IO_HDF5_H
#include "io/numbers.h"

typedef struct weft__h5 weft__h5;

/* ---- memory.c: reads only those pages of a file that libhdf5 and its checks need ---- */
/* A page that was read does not change, so libhdf5 sees the bytes that were checked even if the file changes.
 * After the first failure only those pages are available; status and reason describe it. */
typedef struct weft__page weft__page;
typedef struct weft__paged {
    int file;
    size_t size;
    weft__page *first;
    weft_status status;
    char reason[160];
} weft__paged;
bool weft__paged_read(weft__paged *p, size_t offset, size_t n, void *to);
/* Reads bytes without keeping the page. */
bool weft__paged_pass(weft__paged *p, size_t offset, size_t n, void *to);
/* Frees the pages; the file stays open. */
void weft__paged_end(weft__paged *p);

/* These begin a session. checked: each data set has a checksum next to it, which is written, or verified.
 * path is for messages and must stay valid. Return NULL, with a message, if memory is short. */
/* Begins a new file. */
weft__h5   *weft__h5_new(const char *path, size_t user_block, bool checked);
/* Reads an image, which must stay valid. */
weft__h5   *weft__h5_open(const char *path, unsigned char *image, size_t size, bool checked);
/* Reads a file page by page, without checksums. The end frees the pages, and reports their failure. */
weft__h5   *weft__h5_open_paged(const char *path, weft__paged *paged);
/* Reads a whole file, see weft__read_file, without checksums. */
weft_status weft__h5_open_file(const char *path, weft__h5 **h);
/* These end a session and return its status. */
weft_status weft__h5_end(weft__h5 *h);
/* Stores the image of the new file, to be freed. The first user_block bytes are zero. */
weft_status weft__h5_finish(weft__h5 *h, unsigned char **image, size_t *size);
/* Writes the new file to its path. */
weft_status weft__h5_write_file(weft__h5 *h);
weft_status weft__h5_status(const weft__h5 *h);
void weft__h5_fail(weft__h5 *h, weft_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- paths ---- */
enum { WEFT__H5_PATH = 300 };
/* Writes "group/name" as a path from the root, without empty parts and dots; "", "/" and NULL are the root.
 * Returns false if the path is too long; then it is cut. */
bool weft__h5_join(char path[WEFT__H5_PATH], const char *group, const char *name);
/* Creates the groups along a path. */
void weft__h5_groups(weft__h5 *h, const char *path);

/* ---- writing ---- */
void weft__h5_group(weft__h5 *h, const char *path);
void weft__h5_write(weft__h5 *h, const char *path, const weft__kind *kind, const void *values);
void weft__h5_describe(weft__h5 *h, const char *path, const char *key, const char *text);

/* ---- reading ---- */
/* Returns whether an object exists at a path, by hard links only. */
bool weft__h5_exists(weft__h5 *h, const char *path);
/* Finds the kind of a data set. Returns false if it does not exist, which is not an error. */
bool weft__h5_find(weft__h5 *h, const char *path, weft__kind *kind);
/* Reads a data set of this kind, and converts its numbers to `as`. Floats are rounded to the nearest. Errors:
 * an integer that `as` (for floats: a double) does not hold, with its position in the message; floats where
 * integers are expected. */
void weft__h5_read(weft__h5 *h, const char *path, const weft__kind *kind, weft__number as, void *values);
/* Reads into a new array, to be freed, with a zero after the numbers. Returns NULL if memory is short.
 * origin: see weft__convert. */
void *weft__h5_read_new(weft__h5 *h, const char *path, const weft__kind *kind, weft__number as,
                        int64_t *origin);
/* Finds the data set "group/name" with one axis, of integers or of any numbers. If it does not exist, returns
 * false, and the session has failed. */
bool weft__h5_find_list(weft__h5 *h, const char *group, const char *name, bool integers,
                        char path[WEFT__H5_PATH], weft__kind *kind);
/* Finds the first byte in the file of a set whose numbers are stored end to end. Returns false if they are
 * stored in chunks, and after an error. */
bool weft__h5_place(weft__h5 *h, const char *path, uint64_t *offset);
/* Visits the texts of an attribute, one text or a list of fixed or variable length. They end at no 0, and are
 * valid while the session is open. Each may be long: at most the file's size. take may be NULL. Returns
 * false if the attribute does not exist. The file must be in memory. Errors: a damaged attribute, or one of
 * other types. */
typedef void weft__h5_take(const char *text, size_t n, void *user);
bool weft__h5_texts(weft__h5 *h, const char *path, const char *key, weft__h5_take *take, void *user);
/* Visits the objects of a group by name, at most 100,000. visit returns false to stop. */
typedef bool weft__h5_visit(const char *name, bool is_group, void *user);
void weft__h5_each(weft__h5 *h, const char *path, weft__h5_visit *visit, void *user);
/* Visits the short texts of an object by key, which are all its attributes but the checksum. */
typedef void weft__h5_visit_text(const char *key, const char *text, void *user);
void weft__h5_each_text(weft__h5 *h, const char *path, weft__h5_visit_text *visit, void *user);
#endif
