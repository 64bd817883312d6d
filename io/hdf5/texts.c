/* texts.c - reads attributes that are texts or lists of texts without libhdf5, which trusts the sizes in
 * heaps of texts. h5py writes both fixed and variable length. "HDF5 File Format Specification" 3.0, III.E
 * and IV.A.2.m describe them. */
#include <string.h>
#include "io/hdf5/session.h"

/* The values of an attribute: n elements of `bytes` bytes each at an offset. */
typedef struct { size_t offset, bytes; uint64_t n; bool variable; } list;

/* Reads the number of elements from a description of extents of n bytes. Returns false for more than one
 * axis. */
static bool count(const weft__h5 *h, size_t offset, size_t n, uint64_t *out)
{
    enum { OLD_HEAD = 8, HEAD = 4, NONE = 2 };
    uint64_t version = field(h, offset, 1), rank = field(h, offset + 1, 1);
    size_t head = version == 1 ? OLD_HEAD : HEAD;
    *out = rank ? field(h, offset + head, 8) : version != 1 && field(h, offset + 3, 1) == NONE ? 0 : 1;
    return n >= head + 8 * (size_t)rank && rank <= 1 && version >= 1 && version <= 2;
}

/* Parses a message. Returns false if it is damaged, or no text. */
static bool parse(const weft__h5 *h, const weft__h5_message *m, list *out)
{
    enum { HEAD = 8, TEXT = 3, VARIABLE = 9, REFERENCE = 16 };
    uint64_t version = field(h, m->offset, 1), round = version == 1 ? 7 : 0;
    size_t type = m->offset + HEAD + (version == 3) + (size_t)((field(h, m->offset + 2, 2) + round) & ~round),
           types = (size_t)field(h, m->offset + 4, 2), spaces = (size_t)field(h, m->offset + 6, 2),
           space = type + (size_t)((types + round) & ~round);
    out->offset = space + (size_t)((spaces + round) & ~round);
    size_t end = m->offset + m->n;
    if (m->n < HEAD || version < 1 || version > 3 || (version > 1 && field(h, m->offset + 1, 1)) ||
        m->shared || types < 8 || out->offset > end || !count(h, space, spaces, &out->n))
        return false;
    uint64_t class = field(h, type, 1) & 15;
    out->bytes = (size_t)field(h, type + 4, 4);
    out->variable = class == VARIABLE && (field(h, type + 1, 1) & 15) == 1 && out->bytes == REFERENCE;
    return !out->n ||
           ((out->variable || class == TEXT) && out->bytes && out->n <= (end - out->offset) / out->bytes);
}

/* Finds a text of variable length in its heap. Returns its position, 0: the heap is damaged. */
static size_t find_in_heap(weft__h5 *h, uint64_t address, uint64_t index, size_t *n)
{
    enum { HEAD = 16, OBJECT = 16, STEPS = 1 << 22 };
    size_t heap, at, end = h->used ? h->used : h->read.size;
    if (!weft__h5_inside(h, end, address, HEAD, &heap) || !weft__h5_has_text(h, heap, "GCOL", 4))
        return 0;
    uint64_t size = field(h, heap + 8, 8), bytes;
    if (!weft__h5_inside(h, end, address, size, &heap))
        return 0;
    for (at = heap + HEAD, end = heap + (size_t)size; at <= end && end - at >= OBJECT;) {
        uint64_t number = field(h, at, 2);
        bytes = field(h, at + 8, 8);
        if (!number || bytes > end - at - OBJECT || h->steps++ > STEPS)
            return 0;
        at += OBJECT;
        if (number == index) {
            *n = (size_t)bytes;
            return at;
        }
        at += (size_t)((bytes + 7) & ~(uint64_t)7);
    }
    return 0;
}

bool weft__h5_texts(weft__h5 *h, const char *path, const char *key, weft__h5_take *take, void *user)
{
    weft__h5_header header;
    list l;
    weft__h5_message m = { 0 };
    if (weft__h5_find_header(h, path, &header))
        m = weft__h5_attribute(h, header.address, key);
    if (!m.count || h->status)
        return false;
    bool valid = h->read.bytes && m.count == 1 && parse(h, &m, &l);
    for (uint64_t i = 0; valid && i < l.n && !h->status; i++) {
        size_t at = l.offset + (size_t)i * l.bytes, n = l.bytes, length;
        if (l.variable) {
            length = (size_t)field(h, at, 4);
            at = length ? find_in_heap(h, field(h, at + 4, 8), field(h, at + 12, 4), &n) : at;
            valid = at && length <= n;
            n = length;
        }
        if (valid && take)
            take((const char *)h->read.bytes + at, strnlen((const char *)h->read.bytes + at, n), user);
    }
    if (!valid)
        weft__h5_fail(h, WEFT_EFORMAT, "%s: its attribute %s is damaged, or is not text", path, key);
    return valid && !h->status;
}
