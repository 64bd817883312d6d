/* io.h - shared by the files of io/: this thread's message, reading and writing whole files, texts, numbers,
 * checkpoints in memory. */
#ifndef WEFT_IO_H
#define WEFT_IO_H
#include <stdio.h>
#include <stdlib.h>
#include "core/os.h"
#include "nn/nn.h"
#include "io/api_io.h"
#include "io/api_pictures.h"
#include "io/api_records.h"

/* ---- file.c ---- */
/* Keeps the text of a failure for weft_file_message. Returns the status. */
weft_status weft__file_fail(weft_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Returns whether a path ends so, in either letter case, after at least one character. */
bool weft__ends_in(const char *path, const char *ending);

/* Writes n spans end to end as the file `path`, atomically: after a failure the old file is unchanged. */
weft_status weft__write_file(const char *path, const weft__span *spans, int n);
/* Reads a regular file to *bytes, to be freed, and appends a 0. head, if not NULL, gets the first bytes, at
 * most WEFT__HEAD, and a 0. If it returns an error the rest is not read, so that a large file of another kind
 * costs nothing. */
enum { WEFT__HEAD = 512 };
typedef weft_status weft__head(const char *path, const unsigned char *bytes, size_t head, size_t size);
weft_status weft__read_file(const char *path, weft__head *head, unsigned char **bytes, size_t *size);
/* Opens a regular file for reading, and stores its size. weft__close_file closes *file; it is -1 after a
 * failure. */
weft_status weft__open_file(const char *path, int *file, size_t *size);

/* ---- text.c: checked UTF-8, numbers that read back the same, JSON ---- */
/* Returns the number of bytes of the UTF-8 character at s; 0 at the final 0, or if it is malformed (overlong,
 * surrogate, cut short). */
int weft__utf8_character(const char *s);
/* Returns the number of bytes of s before its final 0, or before the first malformed character. */
size_t weft__utf8_valid(const char *s);
/* Counts the characters of s as a reader would; a malformed byte counts as one. */
int weft__utf8_length(const char *s);
/* Writes the fewest digits, 15 to 17, that read back as the same number, which must not be NaN. Returns the
 * number of bytes. In the "C" locale. */
int weft__shortest(char text[40], double value);
/* Prints a text with its quotes, as JSON. Malformed UTF-8 becomes U+FFFD. */
void weft__print_json(FILE *to, const char *text);
/* Changes a number that is relative to the integer `from` into one relative to `to`. Returns false, and
 * leaves it unchanged, if it is not an integer or a double does not hold the result. NaN and infinity
 * stay. */
bool weft__move_origin(double *value, int64_t from, int64_t to);

/* ---- other files ---- */
/* checkpoint/: reads the bytes of a checkpoint to memory, to be freed, and checks the seal; then weft_load
 * from memory, where path is for messages. Used if one rank reads for all. */
typedef struct weft__image { unsigned char *bytes; size_t size; } weft__image;
weft_status weft__read_checkpoint(const char *path, weft__image *out);
weft_status weft__load_image(const char *path, const weft__image *image, weft_module *m, weft_optim *o,
                             const weft_checkpoint_item *items, int64_t n);

/* crc32c.c: returns the CRC-32C (Castagnoli et al. 1993; used by iSCSI and ext4) of n bytes after bytes with
 * the checksum `before` (0: none). "123456789" gives E3069283. */
uint32_t weft__crc32c(uint32_t before, const void *bytes, size_t n);

/* Returns a list of malloc with room for element n: it grows at 0, and at powers of two from 32 on. NULL:
 * memory is short, and the list is as before. */
static inline void *weft__grown(void *list, int64_t n, size_t each)
{
    bool full = n ? n >= 32 && !(n & (n - 1)) : !list;
    return full ? realloc(list, (size_t)(n ? 2 * n : 32) * each) : list;
}

/* Files hold numbers in little-endian order. */
#define WEFT__LITTLE (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
/* Turns numbers of `each` bytes from the machine's order to that of files, or back. */
static inline void weft__turn(size_t each, void *numbers, size_t bytes)
{
    unsigned char *at = numbers;
    for (size_t i = 0; i < bytes && !WEFT__LITTLE; i += each)
        for (size_t low = 0, high = each - 1; low < high; low++, high--) {
            unsigned char b = at[i + low];
            at[i + low] = at[i + high], at[i + high] = b;
        }
}

/* Returns the number that n bytes, at most 8, have in the order of files. */
static inline uint64_t weft__little(const unsigned char *bytes, size_t n)
{
    uint64_t number = 0;
    while (n--)
        number = number << 8 | bytes[n];
    return number;
}

/* weights/open.c: returns the format of a file of another program, such as "PyTorch", by its first n bytes;
 * NULL: another file. */
const char *weft__weights_format(const unsigned char *bytes, size_t n);
#endif
