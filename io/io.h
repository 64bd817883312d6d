/* io.h - what io's own files share: this thread's message, whole files read and written, and the numbers
 * that a file holds. */
#ifndef WEFT_IO_H
#define WEFT_IO_H
#include "nn/nn.h"
#include "io/api_io.h"
#include "io/api_pictures.h"
#include "io/api_records.h"

/* file.c: keeps the text of a failure for weft_file_message. Returns the status. */
weft_status weft__file_fail(weft_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* file_write.c */
/* How many bytes were written; fewer than size: errno says why. A limit of the file's size is an error
 * like any other, and no signal. */
size_t weft__write_all(int file, const void *bytes, size_t size);
typedef struct weft__span { const void *bytes; size_t size; } weft__span;
/* Writes n spans end to end as the file `path`: all of it on disk and in its place, or the old file as it
 * was. */
weft_status weft__write_file(const char *path, const weft__span *spans, int n);
/* file.c */
/* Reads a regular file to *bytes, to be freed, and adds a 0. head (NULL: none) gets its first bytes,
 * WEFT__HEAD at most, and a 0, and may refuse the rest by a status of its own, so that no large file of
 * another kind is read. */
enum { WEFT__HEAD = 512 };
typedef weft_status weft__head(const char *path, const unsigned char *bytes, size_t head, size_t size);
weft_status weft__read_file(const char *path, weft__head *head, unsigned char **bytes, size_t *size);
/* Opens a regular file to be read, and gives its size. *file is to be closed; -1 after a failure. */
weft_status weft__open_file(const char *path, int *file, size_t *size);

/* checkpoint/: the bytes of a checkpoint in memory, to be freed, their seal compared; and weft_load of them,
 * where path is for messages. For ranks of which one reads. */
typedef struct weft__image { unsigned char *bytes; size_t size; } weft__image;
weft_status weft__read_checkpoint(const char *path, weft__image *out);
weft_status weft__load_image(const char *path, const weft__image *image, weft_module *m, weft_optim *o,
                             const weft_checkpoint_item *items, int64_t n);

/* hdf5/path.c, a weft__head: an error if the file has no HDF5 signature, at byte 0, 512, 1024 and so on. */
weft_status weft__h5_signature(const char *path, const unsigned char *bytes, size_t head, size_t size);

/* crc32c.c: the CRC-32C (Castagnoli et al. 1993), as in iSCSI and ext4, of n bytes that follow those with
 * checksum `before` (0: none). "123456789" gives E3069283. */
uint32_t weft__crc32c(uint32_t before, const void *bytes, size_t n);
/* foreign.c: an error that says what it is and how to convert it, if the file begins as one of PyTorch,
 * NumPy, safetensors or ONNX does. */
weft_status weft__foreign(const char *path, const unsigned char *bytes, size_t head, size_t size);
#endif
