/* zip.c - lists the members of a zip archive in memory.
 *
 * The central directory describes all members. Each local header must agree with it, and no two members may
 * share bytes, so that an archive has one meaning for every reader and cannot unpack the same bytes twice. */
#define ZLIB_CONST
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "io/weights/weights.h"

enum { LOCAL = 30, CENTRAL = 46, END = 22, LOCATOR = 20, END64 = 56, COMMENT = 65535 };
enum { SPARE = 12 << 20 };                       /* bytes that members may unpack to, above twice the file */
enum { ENCRYPTED = 0x2061, LATER = 8 };          /* flags. LATER: crc and sizes follow the data */

typedef struct { uint64_t n, size, offset; } directory;
typedef struct {
    const unsigned char *name, *bytes;           /* bytes: as stored, perhaps deflated */
    uint64_t packed, size, offset;
    uint32_t crc;
    unsigned flags, method, name_bytes;
} entry;
typedef struct { weft__weights *w; directory d; entry *all; uint64_t unpacked; } archive;

static unsigned two(const unsigned char *p)   { return (unsigned)weft__little(p, 2); }
static uint64_t four(const unsigned char *p)  { return weft__little(p, 4); }
static uint64_t eight(const unsigned char *p) { return weft__little(p, 8); }

static bool damaged(weft__weights *w, const char *what)
{
    weft__weights_fail(w, WEFT_EFORMAT, "%s; the zip archive is damaged or incomplete: copy or save it again",
                       what);
    return false;
}

/* ---- the end of the archive ---- */
static const unsigned char *find_end(const weft__weights *w)
{
    for (size_t comment = 0; comment <= COMMENT && comment + END <= w->size; comment++) {
        const unsigned char *p = w->image + w->size - END - comment;
        if (!memcmp(p, "PK\5\6", 4) && two(p + 20) == comment)
            return p;
    }
    return NULL;
}

static bool find_directory(weft__weights *w, directory *d)
{
    const unsigned char *end = find_end(w), *p;
    uint64_t stop, before = end ? (uint64_t)(end - w->image) : 0;
    if (!end)
        return damaged(w, "the directory at the end of the archive is missing");
    *d = (directory){ two(end + 10), four(end + 12), four(end + 16) };
    if (before >= LOCATOR + END64 && !memcmp(p = end - LOCATOR, "PK\6\7", 4)) {
        before = eight(p + 8) <= before - LOCATOR - END64 ? eight(p + 8) : 0;
        p = w->image + before;
        if (memcmp(p, "PK\6\6", 4))
            return damaged(w, "the position of the zip64 directory is wrong");
        *d = (directory){ eight(p + 32), eight(p + 40), eight(p + 48) };
    }
    if (__builtin_add_overflow(d->offset, d->size, &stop) || stop != before || d->n > d->size / CENTRAL)
        return damaged(w, "the position of its directory is wrong");
    return true;
}

/* ---- headers ---- */
/* Replaces fields with all ones by those of the zip64 extra field. Returns false if they are missing. */
static bool widen(const unsigned char *extra, size_t left, uint64_t *const *field, int fields)
{
    size_t n = 0;
    while (left >= 4 && (n = two(extra + 2)) <= left - 4 && two(extra) != 1) {
        extra += 4 + n;
        left -= 4 + n;
    }
    if (left < 4 || n > left - 4)
        n = 0;
    for (extra += 4; fields--; field++)
        if (**field == 0xFFFFFFFF) {
            if (n < 8)
                return false;
            **field = eight(extra);
            extra += 8;
            n -= 8;
        }
    return true;
}

/* Returns the size of the central header at p; 0 after a failure. */
static size_t read_central(weft__weights *w, const unsigned char *p, size_t left, entry *e)
{
    size_t n = left < CENTRAL ? 0 : CENTRAL + two(p + 28) + two(p + 30) + two(p + 32);
    if (!n || n > left || memcmp(p, "PK\1\2", 4))
        return damaged(w, "a header of its directory is wrong");
    *e = (entry){ .name = p + CENTRAL, .packed = four(p + 20), .size = four(p + 24), .offset = four(p + 42),
                  .crc = (uint32_t)four(p + 16), .flags = two(p + 8), .method = two(p + 10),
                  .name_bytes = two(p + 28) };
    if (!widen(e->name + e->name_bytes, two(p + 30), (uint64_t *[]){ &e->size, &e->packed, &e->offset }, 3))
        return damaged(w, "a zip64 field is missing");
    if (e->flags & ENCRYPTED || two(p + 34))
        return damaged(w, "a member is encrypted or on another volume; expected plain members");
    if (e->method ? e->method != Z_DEFLATED : e->packed != e->size)
        return damaged(w, "a member is compressed by another method; expected stored or deflated members");
    return n;
}

static bool agree(const entry *e, uint64_t here, uint64_t there)
{
    return here == there || (!here && e->flags & LATER);
}

static bool find_data(const archive *a, entry *e)
{
    uint64_t left = e->offset < a->d.offset ? a->d.offset - e->offset : 0;
    const unsigned char *p = a->w->image + (left ? e->offset : 0);
    size_t n = left < LOCAL ? 0 : LOCAL + two(p + 26) + two(p + 28);
    if (!n || n > left || memcmp(p, "PK\3\4", 4) || e->packed > left - n)
        return damaged(a->w, "a member is outside the archive, or lacks its header");
    uint64_t packed = four(p + 18), size = four(p + 22);
    if (two(p + 26) != e->name_bytes || memcmp(p + LOCAL, e->name, e->name_bytes) ||
        two(p + 8) != e->method || (two(p + 6) ^ e->flags) & (ENCRYPTED | LATER) ||
        !widen(p + LOCAL + e->name_bytes, two(p + 28), (uint64_t *[]){ &size, &packed }, 2) ||
        !agree(e, four(p + 14), e->crc) || !agree(e, size, e->size) || !agree(e, packed, e->packed))
        return damaged(a->w, "the header of a member and the directory differ");
    e->bytes = p + n;
    return true;
}

static int by_offset(const void *a, const void *b)
{
    uint64_t x = ((const entry *)a)->offset, y = ((const entry *)b)->offset;
    return (x > y) - (x < y);
}

static bool read_headers(archive *a)
{
    const unsigned char *p = a->w->image + a->d.offset;
    size_t left = (size_t)a->d.size, n;
    for (uint64_t i = 0; i < a->d.n; i++, p += n, left -= n)
        if (!(n = read_central(a->w, p, left, &a->all[i])) || !find_data(a, &a->all[i]))
            return false;
    if (left)
        return damaged(a->w, "its directory has more bytes than members");
    qsort(a->all, (size_t)a->d.n, sizeof *a->all, by_offset);
    for (uint64_t i = 1; i < a->d.n; i++)
        if (a->all[i - 1].bytes + a->all[i - 1].packed > a->w->image + a->all[i].offset)
            return damaged(a->w, "two of its members overlap");
    return true;
}

/* ---- the bytes of members ---- */
static uInt piece(uint64_t n) { return n < 1u << 30 ? (uInt)n : 1u << 30; }

static bool inflate_all(weft__weights *w, const entry *e, unsigned char *to)
{
    z_stream z = { .next_in = e->bytes, .next_out = to };
    int rc = inflateInit2(&z, -MAX_WBITS);
    while (rc == Z_OK) {
        z.avail_in = piece(e->packed - z.total_in);
        z.avail_out = piece(e->size - z.total_out);
        rc = inflate(&z, Z_NO_FLUSH);
    }
    inflateEnd(&z);
    if (rc == Z_MEM_ERROR)
        weft__weights_fail(w, WEFT_ENOMEM, "no memory to inflate a member");
    return rc == Z_STREAM_END && z.total_in == e->packed && z.total_out == e->size;
}

static bool unpack(archive *a, const entry *e, weft__member *m)
{
    weft__weights *w = a->w;
    *m = (weft__member){ weft__weights_text(w, e->name, e->name_bytes), e->bytes, (size_t)e->size };
    if (e->method && e->size > 2 * w->size + SPARE - a->unpacked)
        weft__weights_fail(w, WEFT_EFORMAT, "%.200s has %zu bytes, and all members more than twice the size "
                           "of the file; save the arrays without compression", m->name, m->size);
    if (e->method && !w->status) {
        unsigned char *to = weft__weights_memory(w, m->size + 1);
        m->bytes = to;
        a->unpacked += e->size;
        if (to && !inflate_all(w, e, to))
            weft__weights_fail(w, WEFT_EFORMAT, "%.200s is damaged: it cannot be inflated to its %zu bytes",
                               m->name, m->size);
    }
    if (!w->status && crc32_z(0, m->bytes, m->size) != e->crc)
        weft__weights_fail(w, WEFT_EFORMAT, "%.200s is damaged: its checksum is wrong", m->name);
    return !w->status;
}

bool weft__zip_list(weft__weights *w, weft__zip *zip)
{
    archive a = { .w = w };
    *zip = (weft__zip){ NULL, 0 };
    if (!find_directory(w, &a.d) || !(a.all = weft__weights_memory(w, (size_t)a.d.n * sizeof *a.all)) ||
        !read_headers(&a) || !(zip->member = weft__weights_memory(w, (size_t)a.d.n * sizeof *zip->member)))
        return false;
    for (; (uint64_t)zip->n < a.d.n; zip->n++)
        if (!unpack(&a, &a.all[zip->n], &zip->member[zip->n]))
            return false;
    qsort(zip->member, (size_t)zip->n, sizeof *zip->member, weft__by_text);
    for (int64_t i = 1; i < zip->n; i++)
        if (!weft__by_text(&zip->member[i - 1], &zip->member[i]))
            weft__weights_fail(w, WEFT_EFORMAT, "two members have the name %.200s; expected different names",
                               zip->member[i].name);
    return !w->status;
}

const weft__member *weft__zip_find(const weft__zip *zip, const char *name)
{
    weft__member key = { name, NULL, 0 };
    return bsearch(&key, zip->member, (size_t)zip->n, sizeof key, weft__by_text);
}
