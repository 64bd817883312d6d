/* hdf5.c - a checkpoint in HDF5: the file after a seal of 512 bytes, HDF5's own "user block", which every
 * reader skips.
 *
 * The seal is text: the format's version, the number of bytes after it, and their CRC-32C. It is checked
 * before libhdf5 reads the file, so damaged numbers, attributes, names or structures of libhdf5 are never
 * parsed. The seal is a function of the other bytes, so damage to the seal is also detected. */
#include <stdlib.h>
#include <string.h>
#include "io/checkpoint/checkpoint.h"
#include "io/hdf5/hdf5.h"

typedef struct { weft__sealed sealed; weft__h5 *h; } checkpoint;
static weft__h5 *of(const weft__sealed *f) { return ((const checkpoint *)f)->h; }

/* ---- the seal ---- */
static void seal(char out[WEFT__SEAL], const unsigned char *body, size_t size)
{
    memset(out, 0, WEFT__SEAL);
    snprintf(out, WEFT__SEAL, WEFT__MAGIC WEFT__VERSION "\nbytes %zu\ncrc32c %08x\nHDF5 begins at byte %d\n",
             size, (unsigned)weft__crc32c(0, body, size), WEFT__SEAL);
}

static weft_status check_head(const char *path, const unsigned char *head, size_t n, size_t size)
{
    static const char now[] = WEFT__MAGIC WEFT__VERSION "\nbytes ";
    const char *text = (const char *)head;       /* a 0 ends it */
    const char *version = text + strlen(WEFT__MAGIC);
    const char *format = weft__weights_format(head, n);
    if (format)
        return weft__file_fail(WEFT_EFORMAT,
                               "%s: a file of another program (%s); expected a checkpoint of weft; "
                               "weft_load_weights reads weights of other programs",
                               path, format);
    if (n < WEFT__SEAL)
        return weft__file_fail(WEFT_EFORMAT, "%s: %zu bytes; expected a checkpoint, which has %d or more",
                               path, size, WEFT__SEAL);
    if (memcmp(head, WEFT__MAGIC, strlen(WEFT__MAGIC)))
        return weft__file_fail(WEFT_EFORMAT, "%s: not a checkpoint, or its first bytes are damaged; expected "
                                             "a file of weft_save", path);
    size_t length = strcspn(version, "\n");
    if (memcmp(head, now, sizeof now - 1))
        return weft__file_fail(WEFT_EFORMAT,
                               "%s: a checkpoint of version %.*s; expected version " WEFT__VERSION,
                               path, length < 15 ? (int)length : 15, version);
    unsigned long long bytes = strtoull(text + sizeof now - 1, NULL, 10);
    if (bytes != size - WEFT__SEAL)
        return weft__file_fail(WEFT_EFORMAT,
                               "%s: damaged: %zu bytes after the first %d; expected %llu; load an earlier "
                               "checkpoint",
                               path, size - WEFT__SEAL, WEFT__SEAL, bytes);
    return WEFT_OK;
}

static bool is_whole(const weft__image *image)
{
    char head[WEFT__SEAL];
    seal(head, image->bytes + WEFT__SEAL, image->size - WEFT__SEAL);
    return !memcmp(head, image->bytes, WEFT__SEAL);
}

weft_status weft__seal_hdf5(weft__h5 *h, const char *path)
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

/* ---- begin and end ---- */
static weft__sealed *make(const char *path, weft__h5 *h)
{
    checkpoint *k = h ? calloc(1, sizeof *k) : NULL;
    if (k)
        *k = (checkpoint){ { .format = &weft__sealed_hdf5, .path = path }, h };
    else if (h) {
        weft__h5_end(h);
        weft__file_fail(WEFT_ENOMEM, "%s: out of memory", path);
    }
    return k ? &k->sealed : NULL;
}

static weft__sealed *begin(const char *path, bool optimiser)
{
    static const char *const groups[] = { "parameters", "buffers", "optimizer", "streams", "items" };
    weft__h5 *h = weft__h5_new(path, WEFT__SEAL, true);
    for (size_t i = 0; h && i < sizeof groups / sizeof *groups; i++)
        if (optimiser || i != 2)
            weft__h5_group(h, groups[i]);
    return make(path, h);
}

static weft__sealed *open_image(const char *path, const weft__image *image)
{
    return make(path, weft__h5_open(path, image->bytes, image->size, true));
}

static weft_status end(weft__sealed *f)
{
    weft_status s = weft__h5_end(of(f));
    s = f->status ? f->status : s;
    free(f);
    return s;
}

static weft_status save(weft__sealed *f)
{
    if (f->status)
        return end(f);
    weft_status s = weft__seal_hdf5(of(f), f->path);
    free(f);
    return s;
}

/* ---- arrays and texts ---- */
static weft_status status(const weft__sealed *f) { return weft__h5_status(of(f)); }

static void put(weft__sealed *f, const char *path, const weft__kind *kind, const void *values)
{
    weft__h5_write(of(f), path, kind, values);
}

static void describe(weft__sealed *f, const char *path, const char *key, const char *text)
{
    weft__h5_describe(of(f), path, key, text);
}

static bool find(weft__sealed *f, const char *path, weft__kind *kind)
{
    return weft__h5_find(of(f), path, kind);
}

static void get(weft__sealed *f, const char *path, const weft__kind *kind, void *values)
{
    weft__h5_read(of(f), path, kind, kind->type, values);
}

static void each_text(weft__sealed *f, const char *path, weft__visit_text *visit, void *user)
{
    weft__h5_each_text(of(f), path, visit, user);
}

static void each(weft__sealed *f, const char *group, weft__visit_name *visit, void *user)
{
    weft__h5_each(of(f), group, visit, user);
}

const weft__sealed_format weft__sealed_hdf5 = {
    check_head, is_whole, begin, open_image, save, end, status, put, describe, find, get, each_text, each
};
