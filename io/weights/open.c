/* open.c - opens a file with weights of any format, and keeps what its reader finds. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "core/os.h"
#include "io/weights/numpy.h"

typedef struct weft__piece {
    struct weft__piece *next;
    uint64_t bytes[];
} piece;

/* ---- for readers ---- */
void weft__weights_fail(weft__weights *w, weft_status status, const char *format, ...)
{
    char text[640];
    if (w->status)
        return;
    va_list list;
    va_start(list, format);
    weft__plain_text(text, sizeof text, format, list);
    va_end(list);
    w->status = weft__file_fail(status, "%.300s: %s: %s", w->path, w->format, text);
}

void *weft__weights_memory(weft__weights *w, size_t bytes)
{
    enum { SPARE = 16 << 20 };
    if (w->status)
        return NULL;
    bool fits =
        bytes <= 2 * w->size + SPARE - (w->used < SPARE + 2 * w->size ? w->used : SPARE + 2 * w->size);
    piece *p = fits ? calloc(1, sizeof *p + bytes) : NULL;
    if (!p) {
        weft__weights_fail(w, WEFT_ENOMEM,
                           fits ? "no memory for %zu bytes" :
                                  "%zu bytes are needed, more than twice the size of the file; "
                                  "the file is damaged",
                           bytes);
        return NULL;
    }
    w->used += bytes;
    p->next = w->memory;
    w->memory = p;
    return p->bytes;
}

/* Returns the length of the UTF-8 character at p, which ends before `end`; 0: none. */
static size_t character(const unsigned char *p, const unsigned char *end)
{
    size_t n = *p < 0x80               ? 1 :
               *p >= 0xC2 && *p < 0xE0 ? 2 :
               *p >= 0xE0 && *p < 0xF0 ? 3 :
               *p >= 0xF0 && *p < 0xF5 ? 4 :
                                         0;
    if (n > (size_t)(end - p) || (*p == 0xE0 && p[1] < 0xA0) || (*p == 0xF0 && p[1] < 0x90))
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    return n;
}

const char *weft__weights_text(weft__weights *w, const void *bytes, size_t n)
{
    const unsigned char *p = bytes, *end = n ? p + n : p;
    char *text = weft__weights_memory(w, n + 1);
    for (size_t k = 1; text && p < end; p += k)
        if (!*p || !(k = character(p, end))) {
            weft__weights_fail(w, WEFT_EFORMAT,
                               "a name is not UTF-8 text, or has a 0 inside; expected a name");
            return NULL;
        }
    if (text && n)
        memcpy(text, bytes, n);
    return text;
}

/* Makes room for one more element. Returns the array, or NULL after a failure. */
static void *grown(weft__weights *w, void *old, int64_t n, int64_t *room, size_t bytes)
{
    if (w->status || n < *room)
        return w->status ? NULL : old;
    int64_t more = *room ? 2 * *room : 32;
    void *larger = weft__weights_memory(w, (size_t)more * bytes);
    if (larger && n)
        memcpy(larger, old, (size_t)n * bytes);
    if (larger)
        *room = more;
    return larger;
}

weft__array *weft__weights_add(weft__weights *w, const weft__array *a)
{
    weft__array *all = grown(w, w->array, w->n, &w->room, sizeof *all);
    for (const unsigned char *c = (const unsigned char *)a->name; *c; c++)
        if (*c < ' ' || *c == 127)
            weft__weights_fail(w, WEFT_EFORMAT,
                               "byte %d in the name of an array; expected a name without control "
                               "characters",
                               *c);
    if (!all || w->status)
        return NULL;
    w->array = all;
    all[w->n] = *a;
    return &all[w->n++];
}

void weft__set_strides(weft__array *a)
{
    int64_t n = 1;
    for (int i = a->kind.rank - 1; i >= 0; i--) {
        a->stride[i] = n;
        if (__builtin_mul_overflow(n, a->kind.size[i], &n))
            n = 0; /* such an array is inside no file */
    }
}

void weft__weights_fact(weft__weights *w, const char *key, const char *format, ...)
{
    char text[256];
    weft__fact *all = grown(w, w->fact, w->facts, &w->fact_room, sizeof *all);
    if (!all)
        return;
    w->fact = all;
    va_list list;
    va_start(list, format);
    weft__plain_text(text, sizeof text, format, list);
    va_end(list);
    char *copy = weft__weights_memory(w, strlen(text) + 1);
    if (copy)
        all[w->facts++] = (weft__fact){ key, memcpy(copy, text, strlen(text) + 1) };
}

/* ---- formats by their first bytes ---- */
static bool begins(const weft__first *f, size_t from, const char *with, size_t n)
{
    return f->n >= from + n && !memcmp(f->at + from, with, n);
}

/* Whether the name of a zip's first member ends with this text. */
static bool zip_with(const weft__first *f, const char *ending)
{
    enum { NAME_SIZE = 26, NAME = 30 };
    size_t n = strlen(ending), name = f->n < NAME ? 0 : f->at[NAME_SIZE] + 256u * f->at[NAME_SIZE + 1];
    return begins(f, 0, "PK\3\4", 4) && name >= n && begins(f, NAME + name - n, ending, n);
}

static const char signature[] = "\x89HDF\r\n\x1a\n";
static bool is_hdf5(const weft__first *f) { return begins(f, 0, signature, 8); }
static bool is_zip(const weft__first *f) { return begins(f, 0, "PK\3\4", 4) || begins(f, 0, "PK\5\6", 4); }
static bool is_npz(const weft__first *f) { return zip_with(f, ".npy") || begins(f, 0, "PK\5\6", 4); }
static bool is_keras(const weft__first *f)
{
    return zip_with(f, "metadata.json") || zip_with(f, "config.json") || zip_with(f, "model.weights.h5");
}
static bool is_npy(const weft__first *f) { return begins(f, 0, "\x93NUMPY", 6); }
static bool is_safetensors(const weft__first *f) { return f->n > 8 && f->at[8] == '{'; }
static bool is_old_torch(const weft__first *f)
{
    return begins(f, 0, "\x80\2\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.", 15);
}
static bool is_pickle(const weft__first *f)
{
    return f->n > 2 && f->at[0] == 0x80 && f->at[1] >= 2 && f->at[1] < 6;
}
/* A protobuf: field 1, ir_version, then the producer, a domain, the graph or opsets. */
static bool is_onnx(const weft__first *f)
{
    return f->n > 4 && f->at[0] == 0x08 && f->at[1] && f->at[1] < 64 && f->at[2] &&
           strchr("\x12\x1a\x22\x2a\x3a\x42", f->at[2]);
}

static const struct {
    bool (*detect)(const weft__first *);
    const char *name;
    void (*read)(weft__weights *);
    const char *advice; /* if weft does not read it */
} formats[] = {
    { is_hdf5, "HDF5", weft__read_hdf5_weights, NULL },
    { is_npz, "NumPy", weft__read_npz, NULL },
    { is_npy, "NumPy", weft__read_npy, NULL },
    { is_keras, "Keras", weft__read_keras_zip, NULL },
    { is_zip, "PyTorch", weft__read_torch, NULL },
    { is_safetensors, "safetensors", weft__read_safetensors, NULL },
    { is_old_torch, "PyTorch before 1.6", NULL,
      "its format is not read; in Python: import torch; torch.save(torch.load(path, map_location='cpu'), "
      "path)" },
    { is_pickle, "Python pickle", NULL,
      "a pickle can run any code, so it is not read; save the arrays by numpy.savez or safetensors" },
    { is_onnx, "ONNX", weft__read_onnx_weights, NULL },
};
enum { FORMATS = sizeof formats / sizeof *formats };

static int format_of(const weft__first *f) /* -1: none of them */
{
    int i = 0;
    while (i < FORMATS && !formats[i].detect(f))
        i++;
    return i < FORMATS ? i : -1;
}

const char *weft__weights_format(const unsigned char *bytes, size_t n, size_t size)
{
    int i = format_of(&(weft__first){ bytes, n, size });
    return i < 0 ? NULL : formats[i].name;
}

/* HDF5 may follow a user block, such as that of a checkpoint. */
static bool has_user_block(const weft__weights *w)
{
    for (size_t base = 512; base < w->size - 8 && w->size > 8; base *= 2)
        if (!memcmp(w->image + base, signature, 8))
            return true;
    return w->size >= sizeof WEFT__MAGIC - 1 && !memcmp(w->image, WEFT__MAGIC, sizeof WEFT__MAGIC - 1);
}

static void read_weights(weft__weights *w)
{
    weft__first f = { w->image, w->size < 4096 ? w->size : 4096, w->size };
    int i = format_of(&f);
    if (i >= 0) {
        w->format = formats[i].name;
        if (formats[i].read)
            formats[i].read(w);
        else
            weft__weights_fail(w, WEFT_EFORMAT, "%s", formats[i].advice);
    } else if (has_user_block(w)) {
        w->format = "HDF5";
        weft__read_hdf5_weights(w);
    } else
        weft__weights_fail(w, WEFT_EFORMAT,
                           "%s; expected HDF5, safetensors, PyTorch (.pt), NumPy (.npz), Keras or ONNX",
                           w->size ? "its first bytes are of no known format" : "the file is empty");
}

weft_status weft__weights_open(const char *path, const char *part, weft__weights **out)
{
    *out = NULL;
    weft__weights *w = calloc(1, sizeof *w);
    if (!w)
        return weft__file_fail(WEFT_ENOMEM, "%s: out of memory", path ? path : "weights");
    w->path = path;
    w->part = part;
    w->format = "weights";
    w->status = weft__read_file(path, NULL, &w->image, &w->size);
    if (!w->status)
        read_weights(w);
    if (!w->status)
        weft__weights_sort(w);
    weft_status s = w->status;
    if (s)
        weft__weights_close(w);
    else
        *out = w;
    return s;
}

void weft__weights_close(weft__weights *w)
{
    if (!w)
        return;
    if (w->h)
        weft__h5_end(w->h);
    for (piece *p = w->memory, *next; p; p = next) {
        next = p->next;
        free(p);
    }
    free(w->image);
    free(w);
}
