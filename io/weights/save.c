/* save.c - weft_save_weights: writes weights as safetensors or HDF5, the same bytes for the same weights. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "io/weights/weights.h"

/* ---- safetensors ---- */
/* A text that grows; failed: memory was short. */
typedef struct {
    char *at;
    size_t n, room;
    bool failed;
} text;

static void put(text *t, const char *bytes, size_t n)
{
    if (!t->failed && t->n + n > t->room) {
        char *larger = realloc(t->at, 2 * (t->n + n) + 256);
        t->failed = !larger;
        t->at = larger ? larger : t->at;
        t->room = larger ? 2 * (t->n + n) + 256 : t->room;
    }
    if (!t->failed)
        memcpy(t->at + t->n, bytes, n);
    t->n += t->failed ? 0 : n;
}

static void put_name(text *t, const char *name)
{
    for (const char *c = name; *c; c++) {
        char escape[8];
        if (*c == '"' || *c == '\\')
            put(t, (char[]){ '\\', *c }, 2);
        else if ((unsigned char)*c < ' ')
            put(t, escape, (size_t)snprintf(escape, sizeof escape, "\\u%04x", (unsigned)*c));
        else
            put(t, c, 1);
    }
}

static const char *dtype_of(weft__number type)
{
    switch ((int)type) {
    case WEFT__F64:
        return "F64";
    case WEFT__F32:
        return "F32";
    case WEFT__F16:
        return "F16";
    case WEFT__BF16:
        return "BF16";
    case WEFT__I64:
        return "I64";
    case WEFT__I32:
        return "I32";
    case WEFT__I16:
        return "I16";
    case WEFT__I8:
        return "I8";
    case WEFT__U64:
        return "U64";
    case WEFT__U32:
        return "U32";
    case WEFT__U16:
        return "U16";
    case WEFT__U8:
        return "U8";
    default:
        return NULL;
    }
}

/* Hugging Face's order: larger numbers first, so that all are aligned, then by name. */
static int by_alignment(const void *a, const void *b)
{
    static const weft__number order[] = { WEFT__U64,  WEFT__I64, WEFT__F64, WEFT__F32, WEFT__U32, WEFT__I32,
                                          WEFT__BF16, WEFT__F16, WEFT__U16, WEFT__I16, WEFT__I8,  WEFT__U8 };
    const weft__output *x = a, *y = b;
    for (size_t i = 0; x->kind.type != y->kind.type && i < sizeof order / sizeof *order; i++)
        if (x->kind.type == order[i] || y->kind.type == order[i])
            return x->kind.type == order[i] ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void put_entry(text *t, const weft__output *o, uint64_t from)
{
    char number[64];
    uint64_t to = from + weft__kind_bytes(&o->kind);
    put(t, ",\"", 2);
    put_name(t, o->name);
    put(t, number,
        (size_t)snprintf(number, sizeof number, "\":{\"dtype\":\"%s\",\"shape\":[", dtype_of(o->kind.type)));
    for (int i = 0; i < o->kind.rank; i++)
        put(t, number,
            (size_t)snprintf(number, sizeof number, i ? ",%lld" : "%lld", (long long)o->kind.size[i]));
    put(t, number,
        (size_t)snprintf(number, sizeof number, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)from,
                         (unsigned long long)to));
}

/* Turns all values, on a big-endian machine, to the order of files and back. */
static void turn(const weft__output *list, int64_t n)
{
    for (int64_t i = 0; i < n && !WEFT__LITTLE; i++)
        weft__turn(weft__number_bytes(list[i].kind.type), (void *)(uintptr_t)list[i].values,
                   weft__kind_bytes(&list[i].kind));
}

static weft_status save_safetensors(const char *path, weft__output *list, int64_t n)
{
    text t = { 0 };
    uint64_t at = 0;
    unsigned char length[8];
    weft__span *span = calloc((size_t)n + 2, sizeof *span);
    qsort(list, (size_t)n, sizeof *list, by_alignment);
    put(&t, "{\"__metadata__\":{\"format\":\"pt\"}", 31);
    for (int64_t i = 0; i < n; at += weft__kind_bytes(&list[i++].kind))
        put_entry(&t, &list[i], at);
    put(&t, "}", 1);
    while (t.n % 8 && !t.failed)
        put(&t, " ", 1);
    weft_status s =
        t.failed || !span ? weft__file_fail(WEFT_ENOMEM, "%s: no memory for the header", path) : WEFT_OK;
    if (!s) {
        for (int i = 0; i < 8; i++)
            length[i] = (unsigned char)((uint64_t)t.n >> 8 * i);
        span[0] = (weft__span){ length, 8 };
        span[1] = (weft__span){ t.at, t.n };
        for (int64_t i = 0; i < n; i++)
            span[i + 2] = (weft__span){ list[i].values, weft__kind_bytes(&list[i].kind) };
        turn(list, n);
        s = weft__write_file(path, span, (int)n + 2);
        turn(list, n);
    }
    free(span);
    free(t.at);
    return s;
}

/* ---- HDF5 ---- */
static int by_name(const void *a, const void *b)
{
    return strcmp(((const weft__output *)a)->name, ((const weft__output *)b)->name);
}

static weft_status save_hdf5(const char *path, weft__output *list, int64_t n)
{
    weft__h5 *h = weft__h5_new(path, 0, false);
    if (!h)
        return WEFT_ENOMEM;
    qsort(list, (size_t)n, sizeof *list, by_name);
    for (int64_t i = 0; i < n; i++) {
        if (strchr(list[i].name, '/') || !*list[i].name || !strcmp(list[i].name, "."))
            weft__h5_fail(h, WEFT_EFORMAT, "\"%.200s\" cannot be a name in HDF5; expected one without /",
                          list[i].name);
        weft__h5_write(h, list[i].name, &list[i].kind, list[i].values);
    }
    return weft__h5_write_file(h);
}

/* ---- both ---- */
static bool ends_in(const char *path, const char *ending)
{
    size_t n = strlen(path), k = strlen(ending);
    return n > k && !strcasecmp(path + n - k, ending);
}

weft_status weft__weights_save(const char *path, weft__output *list, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!dtype_of(list[i].kind.type))
            return weft__file_fail(WEFT_EFORMAT,
                                   "%s: %s has numbers that cannot be written; expected integers, or "
                                   "floats of 16 to 64 bits",
                                   path, list[i].name);
    if (ends_in(path, ".safetensors"))
        return save_safetensors(path, list, n);
    if (ends_in(path, ".h5") || ends_in(path, ".hdf5"))
        return save_hdf5(path, list, n);
    return weft__file_fail(WEFT_EARG,
                           "%s: unknown ending, which selects the format; expected .safetensors, .h5 or "
                           ".hdf5",
                           path);
}

/* ---- the module ---- */
/* Copies the numbers of p to the host, to be freed. */
static weft_status download(const char *path, const weft_module *m, const weft__parameter *p, weft__output *o)
{
    const weft_tensor *x = &weft__numbers_of(p)->value;
    weft *w = m->w;
    *o = (weft__output){ weft__path_in(m, p), weft__kind_of(x), NULL };
    size_t bytes = weft__kind_bytes(&o->kind);
    void *values = malloc(bytes + 1);
    o->values = values;
    if (!values)
        return weft__file_fail(WEFT_ENOMEM, "%s: no memory for %s, %zu bytes", path, o->name, bytes);
    if (bytes)
        w->dev.k->download(&w->dev, values, x->data, bytes);
    return w->dev.failure[0] ? weft__file_fail(WEFT_EDEVICE, "%s: %s: %s", path, o->name, w->dev.failure) :
                               WEFT_OK;
}

weft_status weft_save_weights(const char *path, const weft_module *m)
{
    weft_status s = weft__check_storable(m, "weft_save_weights", path);
    if (s)
        return s;
    int64_t n = 0, k = 0;
    for (const weft__parameter *p = NULL; (p = weft__next_name(m, p));)
        n++;
    weft__output *list = calloc((size_t)n + 1, sizeof *list);
    if (!list)
        return weft__file_fail(WEFT_ENOMEM, "%s: no memory for %lld names", path, (long long)n);
    for (const weft__parameter *p = NULL; !s && (p = weft__next_name(m, p));)
        s = download(path, m, p, &list[k++]);
    if (!s)
        s = weft__weights_save(path, list, n);
    for (int64_t i = 0; i < k; i++)
        free((void *)(uintptr_t)list[i].values);
    free(list);
    return s;
}
