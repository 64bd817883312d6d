/* chunks.c - reads data sets in chunks, plain or compressed by gzip (deflate), shuffled or not, as h5py
 * writes them.
 *
 * It does not use libhdf5, which trusts the file and inflates a chunk to any size. Here each chunk must exist
 * once, be inside the file, and give exactly the bytes of a chunk, and no chunk is longer than the set. zlib
 * inflates into a buffer of one chunk. */
#define ZLIB_CONST
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "io/hdf5/session.h"

enum { DEFLATE = 1, SHUFFLE = 2, LARGER = 1 << 24 };

typedef struct {
    weft__h5 *h;
    const char *path;                            /* of the data set */
    const weft__h5_chunks *c;
    unsigned char *out;                          /* the whole set */
    unsigned char *chunk, *turned;               /* one chunk, and its bytes before unshuffling */
    unsigned char *stored; size_t room;          /* bytes of a chunk, if the file is not in memory */
    z_stream z;                                  /* used if chunks are compressed */
} reading;

/* ---- the header ---- */
static const char *extents(const weft__h5_set *s, weft__h5_chunks *c)
{
    c->rank = s->kind.rank;
    if (c->rank < 1)
        return "has chunks and rank 0; expected rank 1 or more";
    for (int i = 0; i < c->rank; i++) {
        c->size[i] = (uint64_t)s->kind.size[i];
        if (c->most[i] < c->size[i])
            return "is damaged: its shape exceeds its largest shape";
    }
    return NULL;
}

/* Reads the extents of a chunk, each of `width` bytes, then the bytes of a number. */
static const char *chunk_extents(const weft__h5 *h, size_t offset, size_t width, weft__h5_chunks *c)
{
    uint64_t bytes = c->element = (size_t)field(h, offset + width * (size_t)c->rank, width);
    bool larger = false;                         /* larger than the set, which may still grow */
    for (int i = 0; i < c->rank; i++) {
        c->extent[i] = field(h, offset + width * (size_t)i, width);
        if (!c->extent[i] || (c->size[i] && c->extent[i] > c->most[i]))
            return "has chunks that are empty, or larger than its shape";
        larger = larger || (c->size[i] && c->extent[i] > c->size[i]);
        if (__builtin_mul_overflow(bytes, c->extent[i], &bytes) || !bytes || bytes > UINT32_MAX)
            return "has chunks of 0 bytes, or of 4 GiB or more";
    }
    c->bytes = (size_t)bytes;
    return larger && bytes > LARGER ? "has chunks larger than its shape, and of more than 16 MiB" : NULL;
}

static const char unknown[] = "has chunks in an unsupported format; expected those of libver=\"earliest\"";

/* Reads layout 4, of libhdf5 1.10: the kind of index, its parameters, its address. */
static const char *new_layout(const weft__h5 *h, const weft__h5_header *header, weft__h5_chunks *c)
{
    enum { HEAD = 5, PARTIAL = 1, FILTERED = 2 };
    static const size_t more[] = { 0, 0, 0, 1, 5, 6 };           /* bytes of each kind */
    size_t offset = header->layout.offset, n = header->layout.n;
    int flags = byte(h, offset + 2), axes = byte(h, offset + 3), width = byte(h, offset + 4);
    if (axes != c->rank + 1 || width < 1 || width > 8 || n < HEAD + (size_t)(axes * width) + 1)
        return "has chunks of another rank than its shape";
    size_t kind = HEAD + (size_t)(axes * width), head = kind + 1;
    c->kind = (weft__h5_index)byte(h, offset + kind);
    if (c->kind < WEFT__ONE_CHUNK || c->kind > WEFT__NEW_TREE || flags & PARTIAL)
        return unknown;
    size_t body = c->kind == WEFT__ONE_CHUNK && flags & FILTERED ? 12 : more[c->kind];
    if (n < head + body + 8)
        return unknown;
    if (body == 12)
        c->stored = field(h, offset + head, 8);
    if (body == 12)
        c->skipped = field(h, offset + head + 8, 4);
    c->index = field(h, offset + head + body, 8);
    return chunk_extents(h, offset + HEAD, (size_t)width, c);
}

static const char *layout(const weft__h5 *h, const weft__h5_header *header, weft__h5_chunks *c)
{
    enum { OLD = 3, NEW = 4, CHUNKED = 2, HEAD = 11 };
    size_t offset = header->layout.offset;
    if (header->layout.n < HEAD || (byte(h, offset) != OLD && byte(h, offset) != NEW))
        return unknown;
    if (byte(h, offset + 1) != CHUNKED)
        return "has an unsupported layout; expected a plain array or chunks";
    if (byte(h, offset) == NEW)
        return new_layout(h, header, c);
    int n = byte(h, offset + 2);
    if (n != c->rank + 1 || header->layout.n < HEAD + 4 * (size_t)n)
        return "has chunks of another rank than its shape";
    c->index = field(h, offset + 3, 8);
    return chunk_extents(h, offset + HEAD, 4, c);
}

/* Reads one filter of the pipeline, whose message ends at `end`, and advances *offset. */
static bool filter(const weft__h5 *h, size_t *offset, size_t end, bool old, weft__h5_chunks *c, int number)
{
    size_t head = old ? 8 : 6, p = *offset;
    if (head > end - p)
        return false;
    uint64_t id = field(h, p, 2), name = old ? field(h, p + 2, 2) : 0, values = field(h, p + head - 2, 2);
    size_t more = (size_t)(name + 4 * values + (old && values % 2 ? 4 : 0));
    if ((id != DEFLATE && id != SHUFFLE) || values != 1 || more > end - p - head)
        return false;
    uint64_t value = field(h, p + head + (size_t)name, 4);
    *offset = p + head + more;
    if (id == DEFLATE)
        c->deflate = number;
    else
        c->shuffle = number;
    return id == DEFLATE || value == c->element;
}

static const char *filters(const weft__h5 *h, const weft__h5_header *header, weft__h5_chunks *c)
{
    const weft__h5_message *m = &header->filters;
    static const char other[] = "has unsupported filters; expected none, gzip, shuffle, or shuffle then gzip";
    c->shuffle = c->deflate = -1;
    if (!m->count)
        return NULL;
    if (m->n < 2 || byte(h, m->offset) < 1 || byte(h, m->offset) > 2)
        return other;
    bool old = byte(h, m->offset) == 1;
    c->filters = byte(h, m->offset + 1);
    size_t offset = m->offset + (old ? 8 : 2), end = m->offset + m->n;
    if (c->filters > 2 || offset > end)
        return other;
    for (int i = 0; i < c->filters; i++)
        if (!filter(h, &offset, end, old, c, i))
            return other;
    bool each_once = (c->shuffle >= 0) + (c->deflate >= 0) == c->filters;
    return each_once && (c->shuffle < 1) ? NULL : other;
}

const char *weft__h5_chunked(const weft__h5 *h, const weft__h5_header *header, weft__h5_set *s)
{
    const char *reason = header->external ? "is stored in another file; expected it in this one" :
                                            extents(s, &s->chunks);
    reason = reason ? reason : layout(h, header, &s->chunks);
    return reason ? reason : filters(h, header, &s->chunks);
}

/* ---- a chunk ---- */
/* Returns n bytes of the image, valid until the next call; NULL: they cannot be read. */
static const unsigned char *bytes_at(reading *r, size_t offset, size_t n)
{
    if (r->h->read.bytes)
        return r->h->read.bytes + offset;
    unsigned char *more = n > r->room ? realloc(r->stored, n) : r->stored;
    if (n > r->room && !more) {
        weft__h5_fail(r->h, WEFT_ENOMEM, "%s: no memory for a chunk of %zu bytes", r->path, n);
        return NULL;
    }
    r->room = n > r->room ? n : r->room;
    r->stored = more;
    return weft__paged_pass(r->h->read.paged, offset, n, more) ? more : NULL;
}

/* Allocates for zlib; the session fails if memory is short. */
static void *give_memory(void *user, unsigned n, unsigned size)
{
    reading *r = user;
    void *memory = calloc(n, size);
    if (!memory)
        weft__h5_fail(r->h, WEFT_ENOMEM, "%s: no memory to inflate a chunk", r->path);
    return memory;
}

static void take_memory_back(void *user, void *memory)
{
    (void)user;
    free(memory);
}

/* Inflates a zlib stream of n bytes. Returns false if it does not give exactly the bytes of a chunk. */
static bool inflate_chunk(reading *r, const unsigned char *from, size_t n, unsigned char *to)
{
    r->z.next_in = from;
    r->z.avail_in = (uInt)n;                     /* take: 4 bytes */
    r->z.next_out = to;
    r->z.avail_out = (uInt)r->c->bytes;
    return inflateReset(&r->z) == Z_OK && inflate(&r->z, Z_FINISH) == Z_STREAM_END && !r->z.avail_in &&
           !r->z.avail_out;
}

/* Shuffled bytes are grouped by their position in the number. */
static void unshuffle(const unsigned char *from, size_t bytes, size_t element, unsigned char *to)
{
    size_t n = bytes / element;
    for (size_t k = 0; k < element; k++)
        for (size_t i = 0; i < n; i++)
            to[i * element + k] = from[k * n + i];
}

/* Unpacks a chunk to r->chunk. Returns false if it does not give the bytes of a chunk. */
static bool unpack(reading *r, const unsigned char *from, size_t n, uint64_t skipped)
{
    const weft__h5_chunks *c = r->c;
    bool inflates = c->deflate >= 0 && !(skipped >> c->deflate & 1),
         turns = c->shuffle >= 0 && !(skipped >> c->shuffle & 1);
    unsigned char *to = turns ? r->turned : r->chunk;
    if (skipped >> c->filters || (inflates ? !inflate_chunk(r, from, n, to) : n != c->bytes))
        return false;
    if (!inflates)
        memcpy(to, from, n);
    if (turns)
        unshuffle(r->turned, c->bytes, c->element, r->chunk);
    return true;
}

/* Copies the rows of the chunk that are inside the set. */
static void place_chunk(reading *r, const uint64_t *first)
{
    const weft__h5_chunks *c = r->c;
    uint64_t offset[WEFT_RANK] = { 0 }, most[WEFT_RANK];
    int last = c->rank - 1, axis;
    for (int i = 0; i < c->rank; i++)
        most[i] = c->size[i] - first[i] < c->extent[i] ? c->size[i] - first[i] : c->extent[i];
    do {
        uint64_t from = 0, to = 0;
        for (int i = 0; i < c->rank; i++) {
            from = from * c->extent[i] + offset[i];
            to = to * c->size[i] + first[i] + offset[i];
        }
        memcpy(r->out + to * c->element, r->chunk + from * c->element, (size_t)most[last] * c->element);
        for (axis = last - 1; axis >= 0 && ++offset[axis] == most[axis]; axis--)
            offset[axis] = 0;
    } while (axis >= 0);
}

/* Reads the chunk that begins at the position `first`. */
static const char *take(reading *r, const uint64_t *first, const weft__h5_chunk *chunk)
{
    size_t offset;
    if (chunk->n > UINT32_MAX || !weft__h5_inside(r->h, r->h->read.size, chunk->address, chunk->n, &offset))
        return "has a chunk beyond the file";
    const unsigned char *from = bytes_at(r, offset, (size_t)chunk->n);
    if (!from)
        return "has a chunk that cannot be read";
    if (!unpack(r, from, (size_t)chunk->n, chunk->skipped))
        return "has a damaged chunk, with a wrong number of bytes";
    place_chunk(r, first);
    return NULL;
}

/* Reads the chunks of the set, row by row. */
static const char *all_chunks(reading *r, uint64_t chunks)
{
    static const char incomplete[] = "lacks some of its chunks";
    if (chunks > r->h->read.size)
        return incomplete;
    weft__h5_chunk *list;
    const char *reason = weft__h5_find_chunks(r->h, r->c, chunks, &list);
    for (uint64_t i = 0; i < chunks && !reason; i++) {
        uint64_t first[WEFT_RANK];
        weft__h5_place_of_chunk(r->c, i, first);
        for (int k = 0; k < r->c->rank; k++)
            first[k] *= r->c->extent[k];
        reason = list[i].address == HADDR_UNDEF ? incomplete : take(r, first, &list[i]);
    }
    free(list);
    return reason;
}

void weft__h5_read_chunks(weft__h5 *h, const char *path, const weft__h5_set *s, unsigned char *out)
{
    const weft__h5_chunks *c = &s->chunks;
    uint64_t chunks = 1;
    for (int i = 0; i < c->rank; i++)
        chunks *= weft__h5_chunks_along(c, i);             /* at most one for each number */
    if (c->element != weft__number_bytes(s->kind.type))
        weft__h5_fail(h, WEFT_EFORMAT, "%s is damaged: its chunks have another type", path);
    if (h->status || !chunks)
        return;
    reading r = { .h = h, .path = path, .c = c, .out = out, .chunk = malloc(c->bytes),
                  .turned = malloc(c->bytes) };
    r.z = (z_stream){ .zalloc = give_memory, .zfree = take_memory_back, .opaque = &r };
    bool begun = r.chunk && r.turned && (c->deflate < 0 || inflateInit(&r.z) == Z_OK);
    const char *reason = begun ? all_chunks(&r, chunks) : NULL;
    if (!begun)
        weft__h5_fail(h, WEFT_ENOMEM, "%s: no memory for a chunk of %zu bytes", path, c->bytes);
    else if (reason)
        weft__h5_fail(h, WEFT_EFORMAT, "%s %s", path, reason);
    inflateEnd(&r.z);                            /* does nothing if not begun */
    free(r.chunk);
    free(r.turned);
    free(r.stored);
}
