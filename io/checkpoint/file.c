/* file.c - the file of a checkpoint: chooses its format, and checks its seal before anything is parsed. */
#include <stdlib.h>
#include <string.h>
#include "io/checkpoint/checkpoint.h"

#define FORMAT  "weft checkpoint"
#define REAL    (sizeof(real) == 4 ? "float32" : "float64")

/* The format for paths with another ending, and for messages about other files. */
#ifdef WEFT_IO_NONE
#define DEFAULT weft__sealed_safetensors
#else
#define DEFAULT weft__sealed_hdf5
#endif

static const weft__sealed_format *format_of(const unsigned char *bytes, size_t n)
{
    return weft__is_sealed_safetensors(bytes, n) ? &weft__sealed_safetensors : &DEFAULT;
}

/* ---- the functions of every format ---- */
void weft__sealed_fail(weft__sealed *f, weft_status status, const char *format, ...)
{
    char text[512];
    if (f->status)
        return;
    WEFT__PLAIN_TEXT(text, sizeof text, format);
    f->status = weft__file_fail(status, "%s: %s", f->path, text);
}

/* Takes a failure of the format. Returns result. */
static bool keep(weft__sealed *f, bool result)
{
    f->status = f->status ? f->status : f->format->status(f);
    return result;
}

weft_status weft__sealed_save(weft__sealed *f) { return f->format->save(f); }
weft_status weft__sealed_end(weft__sealed *f)
{
    unsigned char *image = f->own;
    weft_status status = f->format->end(f);
    free(image);
    return status;
}

void weft__sealed_write(weft__sealed *f, const char *path, const weft__kind *kind, const void *values)
{
    if (!f->status)
        f->format->write(f, path, kind, values);
    keep(f, true);
}

void weft__sealed_describe(weft__sealed *f, const char *path, const char *key, const char *text)
{
    if (!f->status)
        f->format->describe(f, path, key, text);
    keep(f, true);
}

bool weft__sealed_find(weft__sealed *f, const char *path, weft__kind *kind)
{
    return keep(f, !f->status && f->format->find(f, path, kind));
}

void weft__sealed_read(weft__sealed *f, const char *path, const weft__kind *kind, void *values)
{
    size_t bytes = weft__kind_bytes(kind);
    if (!f->status)
        f->format->read(f, path, kind, values);
    keep(f, true);
    if (!f->status && kind->type == WEFT__CHARS && (!bytes || ((const char *)values)[bytes - 1]))
        weft__sealed_fail(f, WEFT_EFORMAT, "%s is a text without a final 0", path);
}

/* Texts that are read: the one of a key, or without a key all of them. */
typedef struct { const char *key; char *text; size_t size, length; bool found; } reading;

static void take_text(const char *key, const char *text, void *user)
{
    reading *r = user;
    bool is_first = !r->found;
    if (r->length >= r->size || (r->key && strcmp(key, r->key)))
        return;
    r->found = true;
    r->length += r->key ? (size_t)snprintf(r->text, r->size, "%s", text) :
                          (size_t)snprintf(r->text + r->length, r->size - r->length, "%s%s %s",
                                           is_first ? "" : ", ", key, text);
}

static bool read_texts(weft__sealed *f, const char *path, reading *r)
{
    *r->text = 0;
    if (!f->status)
        f->format->each_text(f, path, take_text, r);
    return keep(f, r->found) && !f->status;
}

bool weft__sealed_text(weft__sealed *f, const char *path, const char *key, char *text, size_t size)
{
    reading r = { .key = key, .text = text, .size = size };
    bool found = read_texts(f, path, &r);
    if (r.length >= size)
        weft__sealed_fail(f, WEFT_EFORMAT, "%s: its %s is not a short text", path, key);
    return found && !f->status;
}

void weft__sealed_notes(weft__sealed *f, const char *path, char *text, size_t size)
{
    reading r = { .text = text, .size = size };
    read_texts(f, path, &r);
    if (r.length >= size)
        weft__sealed_fail(f, WEFT_EFORMAT, "%s has too many texts", path);
}

void weft__sealed_each(weft__sealed *f, const char *group, weft__visit_name *visit, void *user)
{
    if (!f->status)
        f->format->each(f, group, visit, user);
    keep(f, true);
}

weft_status weft__sealed_new(const char *path, bool optimiser, weft__sealed **f)
{
    const weft__sealed_format *format = weft__ends_in(path, ".safetensors") ? &weft__sealed_safetensors :
                                                                              &DEFAULT;
#ifdef WEFT_IO_NONE
    if (weft__ends_in(path, ".h5") || weft__ends_in(path, ".hdf5"))
        return weft__file_fail(WEFT_EARG, "%s: this library was built without HDF5 (make IO=none); expected "
                                          "a path that ends in .safetensors", path);
#endif
    *f = format->begin(path, optimiser);
    if (!*f)
        return WEFT_ENOMEM;
    weft__sealed_describe(*f, "/", "format", FORMAT);
    weft__sealed_describe(*f, "/", "format_version", WEFT__VERSION);
    weft__sealed_describe(*f, "/", "library_version", weft_version());
    weft__sealed_describe(*f, "/", "real", REAL);
    return WEFT_OK;
}

/* ---- reading ---- */
static weft_status check_head(const char *path, const unsigned char *head, size_t n, size_t size)
{
    return format_of(head, n)->check_head(path, head, n, size);
}

weft_status weft__check_seal(const char *path, const weft__image *image)
{
    unsigned char head[WEFT__HEAD + 1] = "";
    size_t n = image->size < WEFT__HEAD ? image->size : WEFT__HEAD;
    memcpy(head, image->bytes, n);
    weft_status status = check_head(path, head, n, image->size);
    if (status || format_of(image->bytes, image->size)->is_whole(image))
        return status;
    return weft__file_fail(WEFT_EFORMAT, "%s: damaged, or changed by another program: its checksum is wrong; "
                                         "load an earlier checkpoint", path);
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

static void expect_text(weft__sealed *f, const char *key, const char *value)
{
    char text[64];
    if (!weft__sealed_text(f, "/", key, text, sizeof text) || strcmp(text, value))
        weft__sealed_fail(f, WEFT_EFORMAT, "%s is \"%s\"; expected \"%s\"; load it with the library that "
                                           "saved it", key, text, value);
}

weft__sealed *weft__sealed_look(const char *path, const weft__image *image)
{
    return format_of(image->bytes, image->size)->open(path, image);
}

weft_status weft__sealed_open(const char *path, const weft__image *image, weft__sealed **f)
{
    weft__image own = { 0 };
    *f = NULL;
    weft_status status = image ? WEFT_OK : weft__read_checkpoint(path, &own);
    if (status)
        return status;
    *f = weft__sealed_look(path, image ? image : &own);
    if (!*f) {
        free(own.bytes);
        return WEFT_ENOMEM;
    }
    (*f)->own = own.bytes;
    expect_text(*f, "format", FORMAT);
    expect_text(*f, "format_version", WEFT__VERSION);
    expect_text(*f, "real", REAL);
    return WEFT_OK;
}
