/* zips.h - writes zip archives for tests and fuzz programs, with correct lengths and checksums. */
#ifndef TESTS_ZIPS_H
#define TESTS_ZIPS_H
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

typedef struct { unsigned char *at; size_t n; } content; /* which the caller frees */
typedef struct { const char *name; const void *bytes; size_t n; bool deflated; } member;
enum { ZIP_LOCAL = 30, ZIP_CENTRAL = 46, ZIP_END = 22 }; /* bytes of the headers, before their names */

static inline uint8_t *zip_number(uint8_t *to, uint64_t n, int bytes)
{
    for (int i = 0; i < bytes; i++, n >>= 8)
        *to++ = (uint8_t)n;
    return to;
}

/* The common fields of both headers of a member. */
static inline uint8_t *zip_fields(uint8_t *to, const member *m, size_t packed)
{
    to = zip_number(zip_number(to, 20, 4), m->deflated ? Z_DEFLATED : 0, 6);
    to = zip_number(zip_number(to, crc32_z(0, m->bytes, m->n), 4), packed, 4);
    return zip_number(zip_number(to, m->n, 4), strlen(m->name), 4);
}

static inline size_t zip_data(uint8_t *to, const member *m)
{
    z_stream z = { .next_in = (uint8_t *)(uintptr_t)m->bytes, .avail_in = (uInt)m->n, .next_out = to,
                   .avail_out = UINT32_MAX };
    if (!m->deflated && m->n)
        memcpy(to, m->bytes, m->n);
    if (!m->deflated)
        return m->n;
    if (deflateInit2(&z, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) ||
        deflate(&z, Z_FINISH) != Z_STREAM_END || deflateEnd(&z))
        abort();
    return z.total_out;
}

static inline content zip_new(const member *m, int n)
{
    size_t room = ZIP_END, names = 0;
    for (int i = 0; i < n; i++) {
        names += ZIP_CENTRAL + strlen(m[i].name);
        room += ZIP_LOCAL + strlen(m[i].name) + m[i].n + m[i].n / 1000 + 32;
    }
    uint8_t *zip = calloc(room + names, 1), *p = zip, *central = malloc(names + 1), *c = central;
    for (int i = 0; i < n; i++) {
        size_t offset = (size_t)(p - zip), length = strlen(m[i].name), head = ZIP_LOCAL + length,
               packed = zip_data(p + head, &m[i]);
        memcpy(zip_fields(zip_number(p, 0x04034B50, 4), &m[i], packed), m[i].name, length);
        p += head + packed;
        c = zip_fields(zip_number(c, 0x1402014B50, 6), &m[i], packed);
        c = zip_number(zip_number(c, 0, 10), offset, 4);
        memcpy(c, m[i].name, length);
        c += length;
    }
    size_t offset = (size_t)(p - zip), size = (size_t)(c - central);
    memcpy(p, central, size);
    free(central);
    p = zip_number(zip_number(p + size, 0x06054B50, 8), (uint64_t)n << 16 | (uint64_t)n, 4);
    return (content){ zip, (size_t)(zip_number(zip_number(p, size, 4), offset, 6) - zip) };
}
#endif
