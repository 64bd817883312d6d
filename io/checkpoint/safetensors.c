/* safetensors.c - a checkpoint in safetensors. The names of arrays are their paths. Texts are in
 * "__metadata__", those of the file by key, others as "PATH#KEY". A text array has bytes, and "PATH#type" is
 * "text".
 *
 * The metadata begins with the seal: the CRC-32C of the file with zeros as its own digits. The header is
 * parsed only after the checksum was verified. */
#include <stdlib.h>
#include <string.h>
#include "io/weights/weights.h"

#define HEAD "{\"__metadata__\":{\"crc32c\":\""
enum { FIRST = 8, DIGITS = FIRST + sizeof HEAD - 1, AFTER = DIGITS + 8 };

/* A file that is read (w) or written (list, metadata). */
typedef struct {
    weft__sealed sealed;
    weft__weights w;
    weft__output *list;
    int64_t n;
    FILE *to;                                    /* metadata, in JSON without its braces */
    char *metadata;
    size_t length;
} checkpoint;

static checkpoint *of(weft__sealed *f) { return (checkpoint *)f; }
static weft_status status(const weft__sealed *f) { return ((const checkpoint *)f)->w.status; }

/* Writes the key of a text in the metadata. */
static void name_text(const char *path, const char *key, char name[WEFT__NAMED + 64])
{
    bool file = !strcmp(path, "/");
    snprintf(name, WEFT__NAMED + 64, "%s%s%s", file ? "" : path, file ? "" : "#", key);
}

/* ---- the seal ---- */
bool weft__is_sealed_safetensors(const unsigned char *bytes, size_t n)
{
    return n > AFTER && !memcmp(bytes + FIRST, HEAD, DIGITS - FIRST);
}

static weft_status check_head(const char *path, const unsigned char *head, size_t n, size_t size)
{
    const char *format = weft__weights_format(head, n);
    if (weft__is_sealed_safetensors(head, n))
        return WEFT_OK;
    return weft__file_fail(WEFT_EFORMAT, "%s: %zu bytes, %s%s; expected a checkpoint in safetensors, a file "
                           "of weft_save", path, size, format ? "a file of another program or library: " :
                           "not a checkpoint, or its first bytes are damaged", format ? format : "");
}

static bool is_whole(const weft__image *image)
{
    char digits[9];
    uint32_t crc = weft__crc32c(0, image->bytes, DIGITS);
    crc = weft__crc32c(weft__crc32c(crc, "00000000", 8), image->bytes + AFTER, image->size - AFTER);
    snprintf(digits, sizeof digits, "%08x", (unsigned)crc);
    return !memcmp(digits, image->bytes + DIGITS, 8);
}

/* ---- begin and end ---- */
static weft_status end(weft__sealed *f)
{
    checkpoint *k = of(f);
    weft_status s = f->status;
    for (int64_t i = 0; i < k->n; i++) {
        free((void *)(uintptr_t)k->list[i].name);
        free((void *)(uintptr_t)k->list[i].values);
    }
    free(k->list);
    if (k->to)
        fclose(k->to);
    free(k->metadata);
    weft__pieces_end(&k->w.memory);
    free(k);
    return s;
}

static checkpoint *make(const char *path)
{
    checkpoint *k = calloc(1, sizeof *k);
    if (k)
        *k = (checkpoint){ .sealed = { .format = &weft__sealed_safetensors, .path = path },
                           .w = { .path = path, .format = "checkpoint" } };
    else
        weft__file_fail(WEFT_ENOMEM, "%s: out of memory", path);
    return k;
}

static weft__sealed *begin(const char *path, bool optimiser)
{
    (void)optimiser;
    checkpoint *k = make(path);
    if (!k)
        return NULL;
    k->to = open_memstream(&k->metadata, &k->length);
    if (!k->to) {
        free(k);
        weft__file_fail(WEFT_ENOMEM, "%s: out of memory", path);
        return NULL;
    }
    fprintf(k->to, "\"crc32c\":\"00000000\"");
    return &k->sealed;
}

static weft__sealed *open_image(const char *path, const weft__image *image)
{
    checkpoint *k = make(path);
    if (!k)
        return NULL;
    k->w.image = image->bytes;
    k->w.size = image->size;
    weft__read_safetensors(&k->w);
    weft__weights_sort(&k->w);
    if (k->w.facts)
        qsort(k->w.fact, (size_t)k->w.facts, sizeof *k->w.fact, weft__by_text);
    k->sealed.status = k->w.status;
    return &k->sealed;
}

static weft_status save(weft__sealed *f)
{
    checkpoint *k = of(f);
    bool failed = ferror(k->to);
    if (fclose(k->to) || failed)
        weft__sealed_fail(f, WEFT_ENOMEM, "no memory for the header");
    k->to = NULL;
    if (!f->status)
        f->status = weft__save_safetensors(f->path, k->list, k->n, k->metadata);
    return end(f);
}

/* ---- writing ---- */
/* Names and texts of JSON are UTF-8. Readers refuse control characters in names. */
static bool is_text(weft__sealed *f, const char *text, bool name)
{
    const char *at = text;
    for (int n; (n = weft__utf8_character(at)) && !(name && ((unsigned char)*at < ' ' || *at == 127));)
        at += n;
    if (*at)
        weft__sealed_fail(f, WEFT_EARG, "byte %d of \"%.200s\" is %d; expected UTF-8%s; HDF5 (a path that "
                          "ends in .h5) takes other bytes", (int)(at - text), text, (unsigned char)*at,
                          name ? " without control characters" : "");
    return !*at;
}

static void describe(weft__sealed *f, const char *path, const char *key, const char *text)
{
    checkpoint *k = of(f);
    char name[WEFT__NAMED + 64];
    name_text(path, key, name);
    if (!is_text(f, name, true) || !is_text(f, text, false))
        return;
    fprintf(k->to, ",");
    weft__print_json(k->to, name);
    fprintf(k->to, ":");
    weft__print_json(k->to, text);
}

static void put(weft__sealed *f, const char *path, const weft__kind *kind, const void *values)
{
    checkpoint *k = of(f);
    size_t bytes = weft__kind_bytes(kind);
    if (!is_text(f, path, true))
        return;
    weft__output *larger = weft__grown(k->list, k->n, sizeof *larger);
    char *name = strdup(path);
    void *copy = bytes < SIZE_MAX ? malloc(bytes + 1) : NULL;
    k->list = larger ? larger : k->list;
    if (!larger || !name || !copy) {
        weft__sealed_fail(f, WEFT_ENOMEM, "no memory for %s, %zu bytes", path, bytes);
        free(name);
        free(copy);
        return;
    }
    if (bytes)
        memcpy(copy, values, bytes);
    k->list[k->n] = (weft__output){ name, *kind, copy };
    if (kind->type == WEFT__CHARS) {
        k->list[k->n].kind.type = WEFT__U8;
        describe(f, path, "type", "text");
    }
    k->n++;
}

/* ---- reading ---- */
static void each_text(weft__sealed *f, const char *path, weft__visit_text *visit, void *user)
{
    const weft__weights *w = &of(f)->w;
    char name[WEFT__NAMED + 64];
    name_text(path, "", name);                   /* "PATH#", or "" */
    size_t n = strlen(name);
    int64_t low = 0, high = w->facts;
    while (low < high) {                         /* the first fact of this path */
        int64_t middle = (low + high) / 2;
        if (strcmp(w->fact[middle].key, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (const weft__fact *t = w->fact + low; t < w->fact + w->facts && !strncmp(t->key, name, n); t++)
        visit(t->key + n, t->value, user);
}

static bool find(weft__sealed *f, const char *path, weft__kind *kind)
{
    const weft__weights *w = &of(f)->w;
    const weft__array *a = weft__weights_find(w, path);
    char name[WEFT__NAMED + 64];
    const weft__fact key = { name, NULL }, *type = NULL;
    name_text(path, "type", name);
    if (a)
        *kind = a->kind;
    if (a && w->facts)
        type = bsearch(&key, w->fact, (size_t)w->facts, sizeof key, weft__by_text);
    if (type && !strcmp(type->value, "text"))
        kind->type = WEFT__CHARS;
    return a;
}

static void get(weft__sealed *f, const char *path, const weft__kind *kind, void *values)
{
    char is[128], expected[128];
    weft__kind found;
    const weft__array *a = weft__weights_find(&of(f)->w, path);
    if (!find(f, path, &found))
        weft__sealed_fail(f, WEFT_EFORMAT, "%s is not in the file", path);
    else if (!weft__kind_same(&found, kind))
        weft__sealed_fail(f, WEFT_EFORMAT, "%s is %s; expected %s", path, weft__kind_text(&found, is),
                          weft__kind_text(kind, expected));
    else
        f->status = weft__convert(f->path, path, kind, kind->type, NULL, a->bytes, values);
}

static void each(weft__sealed *f, const char *group, weft__visit_name *visit, void *user)
{
    const weft__weights *w = &of(f)->w;
    size_t n = strlen(group);
    for (int64_t i = 0; i < w->n; i++)
        if (!strncmp(w->array[i].name, group, n) && w->array[i].name[n] == '/' &&
            !visit(w->array[i].name + n + 1, false, user))
            return;
}

const weft__sealed_format weft__sealed_safetensors = {
    check_head, is_whole, begin, open_image, save, end, status, put, describe, find, get, each_text, each
};
