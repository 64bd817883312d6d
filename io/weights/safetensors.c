/* safetensors.c - reads safetensors files: a length of 8 bytes, a header in JSON, numbers.
 *
 * The header is {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ..}, and "__metadata__"
 * with texts. The parser accepts these objects only. Offsets must cover the numbers without holes and without
 * overlap. */
#include <stdlib.h>
#include <string.h>
#include "io/weights/weights.h"

enum { HEADER_LIMIT = 100000000 };

/* The text from `at` to `end`; begin is offset 8 of the file. */
typedef struct {
    weft__weights *w;
    const char *begin, *at, *end;
    const unsigned char *data; /* of the numbers */
    size_t bytes;
} parser;
typedef struct {
    uint64_t begin, end;
} range;

/* ---- JSON ---- */
static bool wrong(const parser *p, const char *expected)
{
    char found[8] = "the end";
    if (p->at < p->end)
        snprintf(found, sizeof found, "'%c'", *p->at >= ' ' && *p->at < 127 ? *p->at : '?');
    weft__weights_fail(p->w, WEFT_EFORMAT, "header, byte %lld: found %s; expected %s",
                       (long long)(p->at - p->begin) + 8, found, expected);
    return false;
}

static char peek(parser *p)
{
    while (p->at < p->end && *p->at && strchr(" \t\r\n", *p->at))
        p->at++;
    return p->at < p->end ? *p->at : 0;
}

static bool accept(parser *p, char c)
{
    bool found = peek(p) == c;
    p->at += found;
    return found;
}

static bool expect(parser *p, char c) { return accept(p, c) || wrong(p, (char[]){ '\'', c, '\'', 0 }); }

static bool read_number(parser *p, uint64_t *n)
{
    *n = 0;
    if (peek(p) < '0' || *p->at > '9')
        return wrong(p, "a whole number, 0 or more");
    for (; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++)
        if (__builtin_mul_overflow(*n, 10, n) || __builtin_add_overflow(*n, (uint64_t)(*p->at - '0'), n) ||
            *n > INT64_MAX)
            return wrong(p, "a number below 2^63");
    return true;
}

/* Appends a code point as UTF-8. */
static char *put_character(char *to, unsigned c)
{
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xC0 | c >> 6);
        *to++ = (char)(0x80 | (c & 63));
    } else {
        if (c >= 0x10000) {
            *to++ = (char)(0xF0 | c >> 18);
            *to++ = (char)(0x80 | (c >> 12 & 63));
        } else {
            *to++ = (char)(0xE0 | c >> 12);
        }
        *to++ = (char)(0x80 | (c >> 6 & 63));
        *to++ = (char)(0x80 | (c & 63));
    }
    return to;
}

static bool read_hex(parser *p, unsigned *c)
{
    *c = 0;
    for (int i = 0; i < 4; i++, p->at++) {
        const char *digits = "0123456789abcdefABCDEF",
                   *d = p->at < p->end && *p->at ? strchr(digits, *p->at) : NULL;
        if (!d)
            return wrong(p, "four hexadecimal digits");
        *c = *c << 4 | (unsigned)(d - digits < 16 ? d - digits : d - digits - 6);
    }
    return true;
}

static bool read_escape(parser *p, char **to)
{
    static const char letters[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    unsigned c, low;
    const char *k = p->at < p->end && *p->at ? strchr(letters, *p->at) : NULL;
    if (k) {
        *(*to)++ = means[k - letters];
        p->at++;
        return true;
    }
    if (p->at == p->end || *p->at++ != 'u' || !read_hex(p, &c))
        return wrong(p, "an escape of JSON");
    if (c >= 0xD800 && c < 0xDC00 && p->end - p->at >= 6 && p->at[0] == '\\' && p->at[1] == 'u') {
        p->at += 2;
        if (!read_hex(p, &low))
            return false;
        c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
        c = low < 0xDC00 || low > 0xDFFF ? 0xD800 : c;
    }
    if (!c || (c >= 0xD800 && c < 0xE000))
        return wrong(p, "a character, not 0 or half of a pair");
    *to = put_character(*to, c);
    return true;
}

/* Returns a text of the weights; NULL after a failure. */
static const char *read_text(parser *p)
{
    if (!expect(p, '"'))
        return NULL;
    const char *from = p->at;
    while (p->at < p->end && *p->at != '"')
        p->at += *p->at == '\\' && p->end - p->at > 1 ? 2 : 1;
    if (p->at == p->end)
        return wrong(p, "the end of a text"), NULL;
    char *text = malloc((size_t)(p->at - from) + 1), *to = text;
    const char *stop = p->at;
    if (!text)
        weft__weights_fail(p->w, WEFT_ENOMEM, "out of memory");
    for (p->at = from; text && p->at < stop && !p->w->status;)
        if (*p->at == '\\')
            p->at++, read_escape(p, &to);
        else if ((unsigned char)*p->at < ' ')
            wrong(p, "a text without control characters");
        else
            *to++ = *p->at++;
    const char *copy = p->w->status ? NULL : weft__weights_text(p->w, text, (size_t)(to - text));
    free(text);
    p->at = stop + 1;
    return copy;
}

/* ---- entries ---- */
static const struct {
    const char *name;
    weft__number type;
    size_t bytes;
} dtypes[] = {
    { "F64", WEFT__F64, 8 },   { "F32", WEFT__F32, 4 },     { "F16", WEFT__F16, 2 },
    { "BF16", WEFT__BF16, 2 }, { "I64", WEFT__I64, 8 },     { "I32", WEFT__I32, 4 },
    { "I16", WEFT__I16, 2 },   { "I8", WEFT__I8, 1 },       { "U64", WEFT__U64, 8 },
    { "U32", WEFT__U32, 4 },   { "U16", WEFT__U16, 2 },     { "U8", WEFT__U8, 1 },
    { "BOOL", WEFT__U8, 1 },   { "F8_E5M2", WEFT__ODD, 1 }, { "F8_E4M3", WEFT__ODD, 1 },
    { "C64", WEFT__ODD, 8 },
};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

/* Reads a list of at most `most` numbers. */
static bool read_numbers(parser *p, uint64_t *to, int most, int *n)
{
    if (!expect(p, '['))
        return false;
    for (*n = 0; *n || !accept(p, ']');) {
        if (*n == most)
            return wrong(p, most == 2 ? "two offsets" : "at most 6 extents");
        if (!read_number(p, &to[(*n)++]))
            return false;
        if (accept(p, ']'))
            break;
        if (!expect(p, ','))
            return false;
    }
    return true;
}

typedef struct {
    int dtype, rank, offsets;
    bool has_shape;
    uint64_t size[WEFT_RANK], at[2];
} entry;

static bool read_field(parser *p, entry *e)
{
    const char *key = read_text(p);
    if (!key || !expect(p, ':'))
        return false;
    if (!strcmp(key, "dtype") && e->dtype < 0) {
        const char *name = read_text(p);
        for (int i = 0; name && i < DTYPES; i++)
            if (!strcmp(name, dtypes[i].name))
                e->dtype = i;
        return name && (e->dtype >= 0 || wrong(p, "a dtype such as F32, F16, BF16 or I64"));
    }
    if (!strcmp(key, "shape") && !e->has_shape) {
        e->has_shape = true;
        return read_numbers(p, e->size, WEFT_RANK, &e->rank);
    }
    if (!strcmp(key, "data_offsets") && !e->offsets)
        return read_numbers(p, e->at, 2, &e->offsets) && (e->offsets == 2 || wrong(p, "two offsets"));
    return wrong(p, "dtype, shape and data_offsets, once each");
}

static bool read_entry(parser *p, const char *name)
{
    entry e = { .dtype = -1 };
    if (!expect(p, '{'))
        return false;
    do
        if (!read_field(p, &e))
            return false;
    while (accept(p, ','));
    if (!expect(p, '}'))
        return false;
    if (e.dtype < 0 || !e.has_shape || !e.offsets)
        return wrong(p, "an entry with dtype, shape and data_offsets");
    weft__array a = { .name = name, .kind = { dtypes[e.dtype].type, e.rank, { 0 } }, .layer = -1 };
    uint64_t bytes = dtypes[e.dtype].bytes;
    bool fits = e.at[0] <= e.at[1] && e.at[1] <= p->bytes;
    for (int i = 0; i < e.rank; i++) {
        a.kind.size[i] = (int64_t)e.size[i];
        fits = fits && !__builtin_mul_overflow(bytes, e.size[i], &bytes);
    }
    if (!fits || bytes != e.at[1] - e.at[0]) {
        weft__weights_fail(p->w, WEFT_EFORMAT,
                           "%.200s: data_offsets are %llu and %llu; expected %llu bytes for its "
                           "shape, inside the %zu bytes after the header",
                           name, (unsigned long long)e.at[0], (unsigned long long)e.at[1],
                           (unsigned long long)bytes, p->bytes);
        return false;
    }
    a.bytes = p->data + e.at[0];
    a.stored = (int64_t)(e.at[1] - e.at[0]); /* in bytes, for check_cover */
    weft__set_strides(&a);
    return weft__weights_add(p->w, &a);
}

static bool read_metadata(parser *p)
{
    if (!expect(p, '{'))
        return false;
    if (accept(p, '}'))
        return true;
    do {
        const char *key = read_text(p), *value = key && expect(p, ':') ? read_text(p) : NULL;
        if (!value)
            return false;
        weft__weights_fact(p->w, key, "%s", value);
    } while (accept(p, ','));
    return expect(p, '}');
}

static bool read_header(parser *p)
{
    bool metadata = false;
    if (!expect(p, '{'))
        return false;
    if (peek(p) != '}')
        do {
            const char *name = read_text(p);
            bool meta = name && !strcmp(name, "__metadata__");
            if (!name || !expect(p, ':') || (meta && metadata && !wrong(p, "__metadata__ once")) ||
                !(meta ? read_metadata(p) : read_entry(p, name)))
                return false;
            metadata = metadata || meta;
        } while (accept(p, ','));
    return expect(p, '}') && (!peek(p) || wrong(p, "blanks after the header"));
}

/* ---- the whole ---- */
static int by_offset(const void *a, const void *b)
{
    const range *x = a, *y = b;
    return x->begin != y->begin ? x->begin < y->begin ? -1 : 1 : (x->end > y->end) - (x->end < y->end);
}

static void check_cover(parser *p)
{
    weft__weights *w = p->w;
    range *all = weft__weights_memory(w, (size_t)w->n * sizeof *all);
    uint64_t end = 0;
    for (int64_t i = 0; all && i < w->n; i++) {
        all[i].begin = (uint64_t)(w->array[i].bytes - p->data);
        all[i].end = all[i].begin + (uint64_t)w->array[i].stored;
        w->array[i].stored = 0;
    }
    if (all && w->n)
        qsort(all, (size_t)w->n, sizeof *all, by_offset);
    for (int64_t i = 0; all && i < w->n && !w->status; end = all[i++].end)
        if (all[i].begin != end)
            weft__weights_fail(w, WEFT_EFORMAT, "numbers begin at offset %llu; expected %llu, without %s",
                               (unsigned long long)all[i].begin, (unsigned long long)end,
                               all[i].begin < end ? "an overlap" : "a hole");
    if (all && !w->status && end != p->bytes)
        weft__weights_fail(w, WEFT_EFORMAT, "%zu bytes follow the header; expected %llu, as its offsets say",
                           p->bytes, (unsigned long long)end);
}

void weft__read_safetensors(weft__weights *w)
{
    uint64_t n = 0;
    for (int i = 7; i >= 0; i--)
        n = n << 8 | w->image[i];
    if (n > HEADER_LIMIT || n > w->size - 8) {
        weft__weights_fail(w, WEFT_EFORMAT, "the header has %llu bytes; expected at most %zu",
                           (unsigned long long)n,
                           w->size - 8 < HEADER_LIMIT ? w->size - 8 : (size_t)HEADER_LIMIT);
        return;
    }
    const char *text = (const char *)w->image + 8;
    parser p = { w, text, text, text + n, w->image + 8 + n, w->size - 8 - (size_t)n };
    if (read_header(&p))
        check_cover(&p);
}
