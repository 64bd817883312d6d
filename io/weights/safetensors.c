/* safetensors.c - reads and writes safetensors files: a length of 8 bytes, a header in JSON, numbers.
 *
 * The header is {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ..}, and "__metadata__"
 * with texts. The parser accepts these objects only. Offsets must cover the numbers without holes and without
 * overlap. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "io/weights/weights.h"

enum { HEADER_LIMIT = 100000000, SHORTEST = 32 }; /* bytes: of a header, of an entry */

/* In Hugging Face's order of writing: larger numbers first, so that all are aligned. */
static const struct { const char *name; weft__number type; int64_t bytes; } dtypes[] = {
    { "U64", WEFT__U64, 8 }, { "I64", WEFT__I64, 8 }, { "F64", WEFT__F64, 8 },
    { "F32", WEFT__F32, 4 }, { "U32", WEFT__U32, 4 }, { "I32", WEFT__I32, 4 },
    { "BF16", WEFT__BF16, 2 }, { "F16", WEFT__F16, 2 }, { "U16", WEFT__U16, 2 }, { "I16", WEFT__I16, 2 },
    { "I8", WEFT__I8, 1 }, { "U8", WEFT__U8, 1 }, { "BOOL", WEFT__U8, 1 },
    { "F8_E5M2", WEFT__ODD, 1 }, { "F8_E4M3", WEFT__ODD, 1 }, { "C64", WEFT__ODD, 8 },
};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

/* ---- JSON: after a failure of the weights, functions change nothing that is used ---- */
typedef struct { int64_t begin, end; } range;
/* The text from `at` to `end`; begin is offset 8 of the file. Texts are decoded in place. */
typedef struct {
    weft__weights *w;
    char *begin, *at, *end;
    const unsigned char *data;   /* of the numbers */
    int64_t bytes;
    range *range;                /* of each array, in the data */
    bool has_metadata;
} parser;

static void wrong(const parser *p, const char *expected)
{
    char found[8] = "the end";
    if (p->at < p->end)
        snprintf(found, sizeof found, "'%c'", *p->at >= ' ' && *p->at < 127 ? *p->at : '?');
    weft__weights_fail(p->w, WEFT_EFORMAT, "header, byte %lld: found %s; expected %s",
                       (long long)(p->at - p->begin) + 8, found, expected);
}

static char peek(parser *p)
{
    while (p->at < p->end && *p->at && strchr(" \t\r\n", *p->at))
        p->at++;
    return p->at < p->end ? *p->at : 0;
}

static bool accept(parser *p, char c)
{
    bool found = !p->w->status && peek(p) == c;
    p->at += found;
    return found;
}

static void expect(parser *p, char c)
{
    if (!accept(p, c))
        wrong(p, (char[]){ '\'', c, '\'', 0 });
}

static int64_t read_number(parser *p)
{
    int64_t n = 0;
    if (!isdigit((unsigned char)peek(p)))
        wrong(p, "a whole number, 0 or more");
    for (; p->at < p->end && isdigit((unsigned char)*p->at); p->at++)
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *p->at - '0', &n)) {
            wrong(p, "a number below 2^63");
            return 0;
        }
    return n;
}

/* Reads the digits of "\u12ab". The header ends with a 0, so a text that is cut short is too short. */
static unsigned read_hex(parser *p)
{
    char digits[5];
    snprintf(digits, sizeof digits, "%.4s", p->at + 2);
    if (strspn(digits, "0123456789abcdefABCDEF") < 4)
        wrong(p, "four hexadecimal digits");
    else
        p->at += 6;
    return (unsigned)strtoul(digits, NULL, 16);
}

/* Decodes an escape to UTF-8, and returns the end. */
static char *read_escape(parser *p, char *to)
{
    static const char letters[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    const char *k = memchr(letters, p->at[1], sizeof letters - 1);
    if (k) {
        *to = means[k - letters];
        p->at += 2;
        return to + 1;
    }
    if (p->at[1] != 'u') {
        wrong(p, "an escape of JSON");
        return to;
    }
    unsigned c = read_hex(p);
    if (c >= 0xD800 && c < 0xDC00 && p->at[0] == '\\' && p->at[1] == 'u') {
        unsigned low = read_hex(p);
        c = low < 0xDC00 || low > 0xDFFF ? 0xD800 : 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
    }
    if (!c || (c >= 0xD800 && c < 0xE000))
        wrong(p, "a character, not 0 or half of a pair");
    int more = (c >= 0x80) + (c >= 0x800) + (c >= 0x10000);
    *to++ = (char)(more ? 0xFF00 >> (more + 1) | c >> 6 * more : c);
    while (more--)
        *to++ = (char)(0x80 | (c >> 6 * more & 63));
    return to;
}

/* Returns a text of the weights; "" after a failure. */
static const char *read_text(parser *p)
{
    expect(p, '"');
    char *text = p->at, *to = text;
    while (!p->w->status && p->at < p->end && *p->at != '"')
        if ((unsigned char)*p->at < ' ')
            wrong(p, "a text without control characters");
        else if (*p->at == '\\')
            to = read_escape(p, to);
        else
            *to++ = *p->at++;
    expect(p, '"');
    const char *copy = p->w->status ? NULL : weft__weights_text(p->w, text, (size_t)(to - text));
    return copy ? copy : "";
}

/* Reads a list of at most `most` numbers, and returns their count. */
static int read_numbers(parser *p, int64_t *to, int most, const char *expected)
{
    int n = 0;
    expect(p, '[');
    if (accept(p, ']'))
        return 0;
    do {
        if (n == most)
            wrong(p, expected);
        else
            to[n++] = read_number(p);
    } while (accept(p, ','));
    expect(p, ']');
    return n;
}

static void read_object(parser *p, void (*read)(parser *, const char *key, void *), void *user)
{
    expect(p, '{');
    if (accept(p, '}'))
        return;
    do {
        const char *key = read_text(p);
        expect(p, ':');
        read(p, key, user);
    } while (accept(p, ','));
    expect(p, '}');
}

/* ---- entries ---- */
/* An entry; -1: not seen so far. */
typedef struct { int dtype, rank, offsets; int64_t size[WEFT_RANK], at[2]; } entry;

static void read_field(parser *p, const char *key, void *user)
{
    entry *e = user;
    if (!strcmp(key, "dtype") && e->dtype < 0) {
        const char *name = read_text(p);
        for (e->dtype = 0; e->dtype < DTYPES && strcmp(name, dtypes[e->dtype].name);)
            e->dtype++;
        if (e->dtype == DTYPES)
            wrong(p, "a dtype such as F32, F16, BF16 or I64");
    } else if (!strcmp(key, "shape") && e->rank < 0)
        e->rank = read_numbers(p, e->size, WEFT_RANK, "at most 6 extents");
    else if (!strcmp(key, "data_offsets") && e->offsets < 0)
        e->offsets = read_numbers(p, e->at, 2, "two offsets");
    else
        wrong(p, "dtype, shape and data_offsets, once each");
}

static void read_metadata(parser *p, const char *key, void *user)
{
    (void)user;
    weft__weights_fact(p->w, key, "%s", read_text(p));
}

static void add_array(parser *p, const char *name, const entry *e)
{
    weft__array a = { .name = name, .kind = { dtypes[e->dtype].type, e->rank, { 0 } }, .layer = -1 };
    int64_t bytes = dtypes[e->dtype].bytes;
    bool fits = e->at[0] <= e->at[1] && e->at[1] <= p->bytes;
    for (int i = 0; i < e->rank; i++)
        fits = fits && !__builtin_mul_overflow(bytes, e->size[i], &bytes);
    if (!fits || bytes != e->at[1] - e->at[0]) {
        weft__weights_fail(p->w, WEFT_EFORMAT, "%.200s: data_offsets are %lld and %lld; expected %lld bytes "
                           "for its shape, inside the %lld bytes after the header", name, (long long)e->at[0],
                           (long long)e->at[1], (long long)bytes, (long long)p->bytes);
        return;
    }
    memcpy(a.kind.size, e->size, sizeof a.kind.size);
    a.bytes = p->data + e->at[0];
    p->range[p->w->n] = (range){ e->at[0], e->at[1] };
    weft__set_strides(&a);
    weft__weights_add(p->w, &a);
}

static void read_entry(parser *p, const char *name, void *user)
{
    entry e = { .dtype = -1, .rank = -1, .offsets = -1 };
    (void)user;
    if (strcmp(name, "__metadata__")) {
        read_object(p, read_field, &e);
        if (e.dtype < 0 || e.rank < 0 || e.offsets != 2)
            wrong(p, "an entry with dtype, shape and two data_offsets");
        if (!p->w->status)
            add_array(p, name, &e);
        return;
    }
    if (p->has_metadata)
        wrong(p, "__metadata__ once");
    p->has_metadata = true;
    read_object(p, read_metadata, NULL);
}

/* ---- reading ---- */
static int by_offset(const void *a, const void *b)
{
    const range *x = a, *y = b;
    return x->begin != y->begin ? (x->begin > y->begin) - (x->begin < y->begin) :
                                  (x->end > y->end) - (x->end < y->end);
}

static void check_cover(parser *p)
{
    int64_t end = 0;
    qsort(p->range, (size_t)p->w->n, sizeof *p->range, by_offset);
    for (const range *r = p->range; r < p->range + p->w->n; end = r++->end)
        if (r->begin != end)
            weft__weights_fail(p->w, WEFT_EFORMAT, "numbers begin at offset %lld; expected %lld, without %s",
                               (long long)r->begin, (long long)end, r->begin < end ? "an overlap" : "a hole");
    if (end != p->bytes)
        weft__weights_fail(p->w, WEFT_EFORMAT, "%lld bytes follow the header; expected %lld, as its offsets "
                                               "say", (long long)p->bytes, (long long)end);
}

void weft__read_safetensors(weft__weights *w)
{
    uint64_t bytes = weft__little(w->image, 8),
             most = w->size - 8 < HEADER_LIMIT ? w->size - 8 : HEADER_LIMIT;
    if (bytes > most) {
        weft__weights_fail(w, WEFT_EFORMAT, "the header has %llu bytes; expected at most %llu",
                           (unsigned long long)bytes, (unsigned long long)most);
        return;
    }
    size_t n = (size_t)bytes;
    char *text = weft__weights_memory(w, n + 1);         /* texts are decoded in it */
    if (!text)
        return;
    memcpy(text, w->image + 8, n);
    parser p = { w, text, text, text + n, w->image + 8 + n, (int64_t)(w->size - 8 - n), NULL, false };
    p.range = weft__weights_memory(w, (n / SHORTEST + 1) * sizeof *p.range);
    read_object(&p, read_entry, NULL);
    if (peek(&p))
        wrong(&p, "blanks after the header");
    if (!w->status)
        check_cover(&p);
}

/* ---- writing ---- */
static int dtype_of(const weft__output *o)
{
    int i = 0;
    while (dtypes[i].type != o->kind.type)
        i++;
    return i;
}

static int by_alignment(const void *a, const void *b)
{
    int x = dtype_of(a), y = dtype_of(b);
    return x != y ? x - y : strcmp(((const weft__output *)a)->name, ((const weft__output *)b)->name);
}

static void print_entry(FILE *to, const weft__output *o, size_t offset)
{
    fprintf(to, ",");
    weft__print_json(to, o->name);
    fprintf(to, ":{\"dtype\":\"%s\",\"shape\":[", dtypes[dtype_of(o)].name);
    for (int i = 0; i < o->kind.rank; i++)
        fprintf(to, i ? ",%lld" : "%lld", (long long)o->kind.size[i]);
    fprintf(to, "],\"data_offsets\":[%zu,%zu]}", offset, offset + weft__kind_bytes(&o->kind));
}

/* Returns the header, to be freed; NULL: memory is short. */
static char *print_header(const weft__output *list, int64_t n, const char *metadata, size_t *length)
{
    char *text = NULL;
    size_t offset = 0;
    FILE *to = open_memstream(&text, length);
    if (!to)
        return NULL;
    fprintf(to, "{\"__metadata__\":{%s}", metadata ? metadata : "\"format\":\"pt\"");
    for (int64_t i = 0; i < n; offset += weft__kind_bytes(&list[i++].kind))
        print_entry(to, &list[i], offset);
    fprintf(to, "}%*s", (int)(7 - ftello(to) % 8), "");      /* its length is a multiple of 8 */
    bool failed = ferror(to);
    if (!fclose(to) && !failed)
        return text;
    free(text);
    return NULL;
}

/* Turns all values, on a big-endian machine, to the order of files and back. */
static void turn(const weft__output *list, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        weft__turn(weft__number_bytes(list[i].kind.type), (void *)(uintptr_t)list[i].values,
                   weft__kind_bytes(&list[i].kind));
}

/* Puts the checksum of all bytes, with zeros in its place, into the metadata. */
static void seal(weft__span *span, int n)
{
    char *digits = strstr((char *)(uintptr_t)span[1].bytes, "00000000"), text[9];
    uint32_t crc = 0;
    for (int i = 0; i < n; i++)
        crc = weft__crc32c(crc, span[i].bytes, span[i].size);
    snprintf(text, sizeof text, "%08x", (unsigned)crc);
    memcpy(digits, text, 8);
}

weft_status weft__save_safetensors(const char *path, weft__output *list, int64_t n, const char *metadata)
{
    size_t length = 0;
    if (n)
        qsort(list, (size_t)n, sizeof *list, by_alignment);
    char *text = print_header(list, n, metadata, &length);
    weft__span *span = calloc((size_t)n + 2, sizeof *span);
    weft_status s = WEFT_OK;
    uint64_t before = length;
    weft__turn(sizeof before, &before, sizeof before);
    if (!text || !span)
        s = weft__file_fail(WEFT_ENOMEM, "%s: no memory for the header", path);
    for (int64_t i = 0; i < n && !s; i++)
        span[i + 2] = (weft__span){ list[i].values, weft__kind_bytes(&list[i].kind) };
    if (!s) {
        span[0] = (weft__span){ &before, sizeof before };
        span[1] = (weft__span){ text, length };
        turn(list, n);
        if (metadata)
            seal(span, (int)n + 2);
        s = weft__write_file(path, span, (int)n + 2);
        turn(list, n);
    }
    free(span);
    free(text);
    return s;
}
