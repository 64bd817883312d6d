/* open.c - opens a file with weights of any format, and keeps what its reader finds. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "io/weights/weights.h"

/* ---- for readers ---- */
void *weft__piece_new(weft__piece **list, size_t bytes)
{
    weft__piece *p = bytes < SIZE_MAX / 2 ? calloc(1, sizeof *p + bytes) : NULL;
    if (!p)
        return NULL;
    p->next = *list;
    *list = p;
    return p->bytes;
}

void weft__pieces_end(weft__piece **list)
{
    for (weft__piece *p; (p = *list); free(p))
        *list = p->next;
}

void weft__weights_fail(weft__weights *w, weft_status status, const char *format, ...)
{
    char text[640];
    if (w->status)
        return;
    WEFT__PLAIN_TEXT(text, sizeof text, format);
    w->status = weft__file_fail(status, "%.300s: %s: %s", w->path, w->format, text);
}

void *weft__weights_memory(weft__weights *w, size_t bytes)
{
    const size_t most = 2 * w->size + (16 << 20);
    if (bytes > most - w->used)
        weft__weights_fail(w, WEFT_ENOMEM, "%zu bytes are needed, more than twice the size of the file; the "
                                           "file is damaged", bytes);
    void *p = w->status ? NULL : weft__piece_new(&w->memory, bytes);
    if (p)
        w->used += bytes;
    else
        weft__weights_fail(w, WEFT_ENOMEM, "no memory for %zu bytes", bytes);
    return p;
}

const char *weft__weights_text(weft__weights *w, const void *bytes, size_t n)
{
    char *text = weft__weights_memory(w, n + 1);
    if (!text)
        return NULL;
    if (n)
        memcpy(text, bytes, n);
    if (weft__utf8_valid(text) == n)
        return text;
    weft__weights_fail(w, WEFT_EFORMAT, "a name is not UTF-8 text, or has a 0 inside; expected a name");
    return NULL;
}

static const char *print(weft__weights *w, const char *format, va_list list)
{
    va_list again;
    va_copy(again, list);
    int n = weft__plain_text(NULL, 0, format, again);
    size_t size = n < 0 ? 1 : (size_t)n + 1;
    char *text = weft__weights_memory(w, size);
    if (text)
        weft__plain_text(text, size, format, list);
    va_end(again);
    return text ? text : "";
}

const char *weft__weights_print(weft__weights *w, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const char *text = print(w, format, list);
    va_end(list);
    return text;
}

void *weft__weights_grown(weft__weights *w, void *list, int64_t n, size_t bytes)
{
    if (w->status || n & (n - 1) || (n && n < 32))
        return w->status ? NULL : list;
    void *larger = weft__weights_memory(w, (size_t)(n ? 2 * n : 32) * bytes);
    return larger && n ? memcpy(larger, list, (size_t)n * bytes) : larger;
}

weft__array *weft__weights_add(weft__weights *w, const weft__array *a)
{
    for (const unsigned char *c = (const unsigned char *)a->name; *c; c++)
        if (*c < ' ' || *c == 127)
            weft__weights_fail(w, WEFT_EFORMAT, "byte %d in the name of an array; expected a name without "
                               "control characters", *c);
    weft__array *all = weft__weights_grown(w, w->array, w->n, sizeof *all);
    if (!all)
        return NULL;
    w->array = all;
    all[w->n] = *a;
    all[w->n].place = a->place ? a->place : a->name;
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
    weft__fact *all = weft__weights_grown(w, w->fact, w->facts, sizeof *all);
    if (!all)
        return;
    w->fact = all;
    va_list list;
    va_start(list, format);
    all[w->facts++] = (weft__fact){ key, print(w, format, list) };
    va_end(list);
}

/* ---- formats by their first bytes ---- */
typedef struct { const unsigned char *at; size_t n; } head;

static bool begins(const head *f, size_t from, const char *with, size_t n)
{
    return f->n >= from + n && !memcmp(f->at + from, with, n);
}

/* Whether the name of a zip's first member ends with this text. */
static bool has_member(const head *f, const char *ending)
{
    enum { NAME_SIZE = 26, NAME = 30 };
    size_t n = strlen(ending), name = f->n < NAME ? 0 : f->at[NAME_SIZE] + 256u * f->at[NAME_SIZE + 1];
    return name >= n && begins(f, NAME + name - n, ending, n);
}

static bool is_safetensors(const head *f) { return f->n > 8 && f->at[8] == '{'; }
static bool is_checkpoint(const head *f) { return weft__is_sealed_safetensors(f->at, f->n); }
static bool is_pickle(const head *f) { return f->n > 2 && f->at[0] == 0x80 && f->at[1] >= 2 && f->at[1] < 6; }
/* A protobuf: field 1, ir_version, then the producer, a domain, the graph or opsets. */
static bool is_onnx(const head *f)
{
    return f->n > 4 && f->at[0] == 0x08 && f->at[1] && f->at[1] < 64 && f->at[2] &&
           strchr("\x12\x1a\x22\x2a\x3a\x42", f->at[2]);
}

#define HDF5 "\x89HDF\r\n\x1a\n"
#define ZIP "PK\3\4"
#ifdef WEFT_IO_NONE
#define READER(read) NULL, "this library (make IO=none) reads safetensors; `weft convert` of another converts"
#else
#define READER(read) read, NULL
#endif
#define OLD_TORCH "\x80\2\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19."
/* A file has the first format whose signature, member and test it has. */
static const struct {
    const char *name, *signature, *member;
    bool (*test)(const head *);
    void (*read)(weft__weights *);
    const char *advice; /* if weft does not read it */
} formats[] = {
    { "HDF5", HDF5, NULL, NULL, READER(weft__read_hdf5_weights) },
    { "NumPy", ZIP, ".npy", NULL, READER(weft__read_npz) },
    { "NumPy", "PK\5\6", NULL, NULL, READER(weft__read_npz) },
    { "NumPy", "\x93NUMPY", NULL, NULL, READER(weft__read_npy) },
    { "Keras", ZIP, "metadata.json", NULL, READER(weft__read_keras_zip) },
    { "Keras", ZIP, "config.json", NULL, READER(weft__read_keras_zip) },
    { "Keras", ZIP, "model.weights.h5", NULL, READER(weft__read_keras_zip) },
    { "PyTorch", ZIP, NULL, NULL, READER(weft__read_torch) },
    { "weft checkpoint", "", NULL, is_checkpoint, weft__read_checkpoint_weights, NULL },
    { "safetensors", "", NULL, is_safetensors, weft__read_safetensors, NULL },
    { "PyTorch before 1.6", OLD_TORCH, NULL, NULL, NULL,
      "its format is not read; in Python: import torch; torch.save(torch.load(path, map_location='cpu'), "
      "path)" },
    { "Python pickle", "", NULL, is_pickle, NULL,
      "a pickle can run any code, so it is not read; save the arrays by numpy.savez or safetensors" },
    { "ONNX", "", NULL, is_onnx, READER(weft__read_onnx_weights) },
};
enum { FORMATS = sizeof formats / sizeof *formats };

static int format_of(const unsigned char *bytes, size_t n) /* FORMATS: none of them */
{
    const head f = { bytes, n };
    int i = 0;
    while (i < FORMATS && !(begins(&f, 0, formats[i].signature, strlen(formats[i].signature)) &&
                            (!formats[i].member || has_member(&f, formats[i].member)) &&
                            (!formats[i].test || formats[i].test(&f))))
        i++;
    return i;
}

const char *weft__weights_format(const unsigned char *bytes, size_t n)
{
    int i = format_of(bytes, n);
    return i < FORMATS ? formats[i].name : NULL;
}

/* HDF5 may follow a user block, such as that of a checkpoint. */
static bool has_user_block(const weft__weights *w)
{
    const head f = { w->image, w->size };
    for (size_t base = 512; base < w->size; base *= 2)
        if (begins(&f, base, HDF5, strlen(HDF5)))
            return true;
    return begins(&f, 0, WEFT__MAGIC, strlen(WEFT__MAGIC));
}

static void read_weights(weft__weights *w)
{
    int i = format_of(w->image, w->size);
    i = i == FORMATS && has_user_block(w) ? 0 : i;
    w->format = i < FORMATS ? formats[i].name : w->format;
    if (i == FORMATS)
        weft__weights_fail(w, WEFT_EFORMAT,
                           "%s; expected HDF5, safetensors, PyTorch (.pt), NumPy (.npz), Keras or ONNX",
                           w->size ? "its first bytes are of no known format" : "the file is empty");
    else if (formats[i].read)
        formats[i].read(w);
    else
        weft__weights_fail(w, WEFT_EFORMAT, "%s", formats[i].advice);
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
    weft__pieces_end(&w->memory);
    free(w->image);
    free(w);
}
