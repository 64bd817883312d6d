/* file.c - the file of a checkpoint: HDF5 after a seal of 512 bytes, HDF5's own "user block", which every
 * reader skips.
 *
 * The seal is text: the format's version, the number of bytes after it, and their CRC-32C. It is checked
 * before libhdf5 reads the file, so damaged numbers, attributes, names or structures of libhdf5 are never
 * parsed. The seal is a function of the other bytes, so damage to the seal is also detected. */
#include <stdlib.h>
#include <string.h>
#include "io/checkpoint/checkpoint.h"

#define FORMAT  "weft checkpoint"
#define VERSION "1"

static void seal(char out[WEFT__SEAL], const unsigned char *body, size_t size)
{
    memset(out, 0, WEFT__SEAL);
    snprintf(out, WEFT__SEAL, WEFT__MAGIC VERSION "\nbytes %zu\ncrc32c %08x\nHDF5 begins at byte %d\n", size,
             (unsigned)weft__crc32c(0, body, size), WEFT__SEAL);
}

/* ---- writing ---- */
weft__h5 *weft__sealed_new(const char *path)
{
    weft__h5 *h = weft__h5_new(path, WEFT__SEAL, true);
    if (!h)
        return NULL;
    weft__h5_describe(h, "/", "format", FORMAT);
    weft__h5_describe(h, "/", "format_version", VERSION);
    weft__h5_describe(h, "/", "library_version", weft_version());
    weft__h5_describe(h, "/", "real", sizeof(real) == 4 ? "float32" : "float64");
    return h;
}

weft_status weft__sealed_write(weft__h5 *h, const char *path)
{
    unsigned char *image;
    size_t size;
    char head[WEFT__SEAL];
    weft_status s = weft__h5_finish(h, &image, &size);
    if (s)
        return s;
    seal(head, image + WEFT__SEAL, size - WEFT__SEAL);
    s = weft__write_file(
        path, (weft__span[]){ { head, WEFT__SEAL }, { image + WEFT__SEAL, size - WEFT__SEAL } }, 2);
    free(image);
    return s;
}

/* ---- reading ---- */
/* before the rest is read */
static weft_status check_head(const char *path, const unsigned char *head, size_t n, size_t size)
{
    static const char magic[] = WEFT__MAGIC, now[] = WEFT__MAGIC VERSION "\nbytes ";
    const char *text = (const char *)head, *version = text + sizeof magic - 1;       /* a 0 ends the head */
    const char *format = weft__weights_format(head, n);
    if (format)
        return weft__file_fail(WEFT_EFORMAT,
                               "%s: a file of another program (%s); expected a checkpoint of weft; "
                               "weft_load_weights reads weights of other programs",
                               path, format);
    if (n < WEFT__SEAL)
        return weft__file_fail(WEFT_EFORMAT, "%s: %zu bytes; expected a checkpoint, which has %d or more",
                               path, size, WEFT__SEAL);
    if (memcmp(head, magic, sizeof magic - 1))
        return weft__file_fail(WEFT_EFORMAT, "%s: not a checkpoint, or its first bytes are damaged; expected "
                                             "a file of weft_save", path);
    size_t length = strcspn(version, "\n");
    if (memcmp(head, now, sizeof now - 1))
        return weft__file_fail(WEFT_EFORMAT,
                               "%s: a checkpoint of version %.*s; expected version " VERSION,
                               path, length < 15 ? (int)length : 15, version);
    unsigned long long bytes = strtoull(text + sizeof now - 1, NULL, 10);
    if (bytes != size - WEFT__SEAL)
        return weft__file_fail(WEFT_EFORMAT,
                               "%s: damaged: %zu bytes after the first %d; expected %llu; load an earlier "
                               "checkpoint",
                               path, size - WEFT__SEAL, WEFT__SEAL, bytes);
    return WEFT_OK;
}

static void expect_attribute(weft__h5 *h, const char *key, const char *value)
{
    char text[64];
    if (!weft__h5_text(h, "/", key, text, sizeof text) || strcmp(text, value))
        weft__h5_fail(h, WEFT_EFORMAT, "%s is \"%s\"; expected \"%s\"; load it with the library that saved "
                                       "it", key, text, value);
}

weft_status weft__check_seal(const char *path, const weft__image *image)
{
    char head[WEFT__SEAL + 1] = "";
    size_t n = image->size < WEFT__SEAL ? image->size : WEFT__SEAL;
    memcpy(head, image->bytes, n);
    weft_status status = check_head(path, (const unsigned char *)head, n, image->size);
    if (status)
        return status;
    seal(head, image->bytes + WEFT__SEAL, image->size - WEFT__SEAL);
    if (!memcmp(head, image->bytes, WEFT__SEAL))
        return WEFT_OK;
    return weft__file_fail(
        WEFT_EFORMAT, "%s: damaged, or changed by another program: its checksum is wrong; load an earlier "
                      "checkpoint", path);
}

weft_status weft__read_checkpoint(const char *path, weft__image *out)
{
    *out = (weft__image){ 0 };
    weft_status status = weft__read_file(path, check_head, &out->bytes, &out->size);
    if (!status)
        status = weft__check_seal(path, out);
    if (!status)
        return WEFT_OK;
    free(out->bytes);
    *out = (weft__image){ 0 };
    return status;
}

weft_status weft__sealed_open(const char *path, const weft__image *image, weft__h5 **h)
{
    weft__image own = { 0 };
    *h = NULL;
    weft_status status = image ? WEFT_OK : weft__read_checkpoint(path, &own);
    if (status)
        return status;
    const weft__image *it = image ? image : &own;
    *h = weft__h5_open(path, it->bytes, it->size, true);
    if (!*h) {
        free(own.bytes);
        return WEFT_ENOMEM;
    }
    if (!image)
        weft__h5_take_image(*h);
    expect_attribute(*h, "format", FORMAT);
    expect_attribute(*h, "format_version", VERSION);
    expect_attribute(*h, "real", sizeof(real) == 4 ? "float32" : "float64");
    return WEFT_OK;
}
