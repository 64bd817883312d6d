/* archives.h - the common parts of tests of files with weights: they are opened and compared, damaged byte by
 * byte, and written as zip archives. */
#ifndef TESTS_ARCHIVES_H
#define TESTS_ARCHIVES_H
#include <zlib.h>
#include "io/weights/numpy.h"
#include "files.h"

/* ---- files of other programs ---- */
UNUSED static const char *foreign(const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "interchange/%s", name);
    return golden_path(path);
}

UNUSED static weft__weights *open_weights(const char *path, const char *part)
{
    weft__weights *w;
    DOES(weft__weights_open(path, part, &w));
    return w;
}
#define REFUSES_WEIGHTS(path, part, text)                                   \
    do {                                                                    \
        weft__weights *none;                                                \
        REFUSES(weft__weights_open(path, part, &none), WEFT_EFORMAT, text); \
        cr_assert_null(none);                                               \
    } while (0)

UNUSED static const weft__array *array_of(const weft__weights *w, const char *name)
{
    for (int64_t i = 0; i < w->n; i++)
        if (!strcmp(w->array[i].name, name))
            return &w->array[i];
    cr_assert(false, "%s is not in %s", name, w->path);
    return NULL;
}

/* The array has this kind, such as "float32 [2, 3]", and these numbers. */
UNUSED static void has_numbers(weft__weights *w, const char *name, const char *kind, const double *want)
{
    char text[128];
    double is[64];
    const weft__array *a = array_of(w, name);
    cr_assert_str_eq(weft__kind_text(&a->kind, text), kind, "%s", name);
    cr_assert(weft__array_read(w, a, WEFT__F64, is), "%s", weft_file_message());
    size_t n = weft__kind_bytes(&a->kind) / weft__number_bytes(a->kind.type);
    for (size_t i = 0; i < n; i++)
        cr_assert_eq(is[i], want[i], "%s: element %zu is %g; expected %g", name, i, is[i], want[i]);
}

UNUSED static const char *fact_of(const weft__weights *w, const char *key)
{
    for (int64_t i = 0; i < w->facts; i++)
        if (!strcmp(w->fact[i].key, key))
            return w->fact[i].value;
    return "";
}

/* ---- damage ---- */
/* Opens the bytes as a file and reads all arrays. Returns whether it could be opened. */
UNUSED static bool opens(const char *path, const void *bytes, size_t n)
{
    weft__weights *w;
    double start = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    write_bytes(path, bytes, n);
    weft_status s = weft__weights_open(path, NULL, &w);
    for (int64_t i = 0; !s && i < w->n; i++) {
        size_t size = weft__kind_bytes(&w->array[i].kind);
        void *values = w->array[i].kind.type == WEFT__ODD || size > 1 << 16 ? NULL : malloc(8 * size + 8);
        if (values)
            weft__array_read(w, &w->array[i], WEFT__F64, values);
        free(values);
    }
    cr_assert(!s || *weft_file_message());
    if (!s)
        weft__weights_close(w);
    cr_assert(seconds_of(CLOCK_THREAD_CPUTIME_ID) - start < 1);
    return !s;
}

/* No prefix of a file can be opened. With one byte changed to each of three values it may, but nothing
 * crashes. */
UNUSED static void survives_damage(const char *golden)
{
    const char *path = in_folder("damaged");
    content b = read_bytes(golden);
    for (size_t n = 0; n < b.n; n++)
        cr_assert_not(opens(path, b.at, n), "%s: the first %zu bytes", golden, n);
    for (size_t i = 0; i < b.n; i++) {
        unsigned char was = b.at[i], other[] = { was ^ (unsigned char)(1 << i % 8), 0xFF, was + 1 };
        for (int k = 0; k < COUNT(other); k++) {
            b.at[i] = other[k];
            opens(path, b.at, b.n);
        }
        b.at[i] = was;
    }
    free(b.at);
}

/* ---- archives ---- */
typedef struct {
    const char *name;
    const void *bytes;
    size_t n;
    bool deflated;
} member;

UNUSED static unsigned char *number(unsigned char *to, uint64_t n, int bytes)
{
    for (int i = 0; i < bytes; i++, n >>= 8)
        *to++ = (unsigned char)n;
    return to;
}

/* The common fields of both headers of a member. */
static unsigned char *fields(unsigned char *to, const member *m, size_t packed)
{
    to = number(number(number(to, 20, 4), m->deflated ? 8 : 0, 6), crc32_z(0, m->bytes, m->n), 4);
    return number(number(number(to, packed, 4), m->n, 4), strlen(m->name), 4);
}

static size_t put_data(unsigned char *to, const member *m)
{
    if (!m->deflated)
        return memcpy(to, m->bytes, m->n) ? m->n : 0;
    z_stream z = {
        .next_in = (unsigned char *)m->bytes, .avail_in = (uInt)m->n, .next_out = to, .avail_out = 1 << 18
    };
    cr_assert_eq(deflateInit2(&z, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
    cr_assert(deflate(&z, Z_FINISH) == Z_STREAM_END && deflateEnd(&z) == Z_OK);
    return z.total_out;
}

/* The caller frees the archive. */
UNUSED static content new_zip(const member *m, int n)
{
    content zip = { calloc(1 << 20, 1), 0 };
    unsigned char *p = zip.at, *central = malloc(1 << 16), *c = central;
    for (int i = 0; i < n; i++) {
        size_t offset = (size_t)(p - zip.at), length = strlen(m[i].name), head = 30 + length,
               packed = put_data(p + head, &m[i]);
        memcpy(fields(number(p, 0x04034B50, 4), &m[i], packed), m[i].name, length);
        p += head + packed;
        c = number(number(fields(number(c, 0x1402014B50, 6), &m[i], packed), 0, 10), offset, 4);
        memcpy(c, m[i].name, length);
        c += length;
    }
    size_t offset = (size_t)(p - zip.at), size = (size_t)(c - central);
    memcpy(p, central, size);
    p = number(number(number(p + size, 0x06054B50, 8), (uint64_t)n << 16 | (uint64_t)n, 4), size, 4);
    zip.n = (size_t)(number(p, offset, 6) - zip.at);
    free(central);
    return zip;
}

UNUSED static const char *put_zip(const char *name, const member *m, int n)
{
    content zip = new_zip(m, n);
    const char *path = put_bytes(name, zip.at, zip.n);
    free(zip.at);
    return path;
}
#endif
