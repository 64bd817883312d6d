/* header.c - checks object headers before libhdf5 reads them, because libhdf5 trusts them.
 *
 * It allocates a continuation of any length, divides by extents of chunks that may be 0, and cannot close a
 * file after reading half of a header. */
#include <string.h>
#include "io/hdf5/session.h"

enum {                                           /* types of messages */
    SPACE = 1, LINKS, TYPE, OLD_FILL, FILL, LINK, EXTERNAL, LAYOUT,
    FILTERS = 11, ATTRIBUTE, CONTINUATION = 16, NAMES, ATTRIBUTES = 21
};
enum { PARTS = 64 };
typedef struct {
    const weft__h5 *h;
    size_t size, base;
    bool old, ordered;
    int parts;
    weft__h5_header *out;
    const char *key;                             /* name of an attribute to be noted; or NULL */
    weft__h5_message attribute;
} walk;

static bool inside(const walk *w, uint64_t address, uint64_t n)
{
    size_t offset;
    return weft__h5_inside(w->h, w->size, address, n, &offset);
}

/* Many links or attributes are stored in a heap. libhdf5 closes one that claims a tree of huge objects by
 * deleting that tree, even if it is empty. The deletion fails, the file can never be closed, and the process
 * crashes at its end. No link and no attribute that weft reads is huge. libhdf5 allocates memory by the sizes
 * of blocks, but itself writes no block above 64 KiB. */
static bool heap_is_plain(const walk *w, uint64_t address)
{
    enum { HEAP_HEADER = 146, HUGE_TREE = 22, HUGE_OBJECTS = 86, WIDTH = 110, FIRST = 112, LARGEST = 120 };
    enum { BLOCK = 1 << 16 };
    if (address == UINT64_MAX)
        return true;
    if (!inside(w, address, HEAP_HEADER))
        return false;
    size_t offset = w->base + (size_t)address;
    uint64_t first = field(w->h, offset + FIRST, 8), largest = field(w->h, offset + LARGEST, 8);
    return weft__h5_has_text(w->h, offset, "FRHP", 4) &&
           field(w->h, offset + HUGE_TREE, 8) == UINT64_MAX && field(w->h, offset + HUGE_OBJECTS, 8) == 0 &&
           field(w->h, offset + WIDTH, 2) && first && first <= largest && largest <= BLOCK;
}

/* A tree holds their order. libhdf5 reads the checksum at the end of a node, however short the node is. */
static bool tree_is_plain(const walk *w, uint64_t address, int kind)
{
    enum { TREE_HEADER = 38, KIND = 5, NODE = 6, RECORD = 10, ROOT = 16, RECORDS = 24, AROUND = 10 };
    if (address == UINT64_MAX)
        return true;
    if (!inside(w, address, TREE_HEADER))
        return false;
    size_t offset = w->base + (size_t)address;
    uint64_t node = field(w->h, offset + NODE, 4), record = field(w->h, offset + RECORD, 2),
             root = field(w->h, offset + ROOT, 8), records = field(w->h, offset + RECORDS, 2);
    return weft__h5_has_text(w->h, offset, "BTHD", 4) && byte(w->h, offset + KIND) == kind && record &&
           node >= 2 * record + AROUND && records * record + AROUND <= node &&
           (root == UINT64_MAX || inside(w, root, node));
}

/* Checks a message with the addresses of the heap and of the trees by name and by age, after an optional
 * counter. */
static bool dense_is_sound(const walk *w, int type, size_t offset, size_t n)
{
    enum { LINK_NAMES = 5, ATTRIBUTE_NAMES = 8 };  /* kinds of trees; trees by age have the next number */
    size_t counter = type == LINKS ? 8 : 2;
    int kind = type == LINKS ? LINK_NAMES : ATTRIBUTE_NAMES;
    size_t heap = n < 2 ? n : (size_t)2 + (byte(w->h, offset + 1) & 1 ? counter : 0),
           end = heap + (n >= 2 && byte(w->h, offset + 1) & 2 ? 24 : 16);
    bool ok = end <= n && heap_is_plain(w, field(w->h, offset + heap, 8));
    for (size_t tree = heap + 8; ok && tree < end; tree += 8)
        ok = tree_is_plain(w, field(w->h, offset + tree, 8), kind++);
    return ok;
}

/* A group of the oldest kind has the names of its links in a heap. libhdf5 trusts the size of the heap, and
 * follows the list of its free blocks, each with its length, to any address. */
static bool names_are_sound(const walk *w, size_t offset, size_t n)
{
    enum { HEAP = 8, SIZE = 8, FREE = 16, DATA = 24, HEAD = 32, PLACE = 16, NONE = 1 };
    uint64_t heap = field(w->h, offset + HEAP, 8);
    size_t head = w->base + (size_t)heap;
    if (n < 16 || !inside(w, heap, HEAD) || !weft__h5_has_text(w->h, head, "HEAP", 5))
        return false;
    uint64_t size = field(w->h, head + SIZE, 8), place = field(w->h, head + FREE, 8),
             data = field(w->h, head + DATA, 8);
    if (!inside(w, data, size))
        return false;
    for (uint64_t steps = size / PLACE; place != NONE; steps--) {
        size_t free_block = w->base + (size_t)data + (size_t)place;
        if (!steps || size < PLACE || place > size - PLACE || field(w->h, free_block + 8, 8) > size - place)
            return false;
        place = field(w->h, free_block, 8);
    }
    return true;
}

/* A few links are stored in the header, one message each. If libhdf5 cannot read one, it frees links that it
 * has not read yet. */
static bool link_is_plain(const walk *w, size_t offset, size_t n)
{
    enum { VERSION = 1, WIDTH = 3, AGE = 4, KIND = 8, LETTERS = 16, FLAGS = 31 };
    enum { HARD = 0, SOFT = 1, UTF8 = 1, USERS = 64 };
    if (n < 2 || byte(w->h, offset) != VERSION || byte(w->h, offset + 1) > FLAGS)
        return false;
    int flags = byte(w->h, offset + 1), width = 1 << (flags & WIDTH);
    size_t letters = (size_t)2 + (flags & KIND ? 1 : 0) + (flags & AGE ? 8 : 0),
           length = letters + (flags & LETTERS ? 1 : 0);
    size_t name = length + (size_t)width;
    uint64_t bytes = field(w->h, offset + length, (size_t)width);
    if (n < name || !bytes || bytes > n - name || (flags & LETTERS && byte(w->h, offset + letters) > UTF8))
        return false;
    size_t end = name + (size_t)bytes, rest = n - end;
    int type = flags & KIND ? byte(w->h, offset + 2) : HARD;
    if (type == HARD)
        return rest >= 8;
    uint64_t to = field(w->h, offset + end, 2);         /* bytes of the target of a soft or external link */
    return (type == SOFT || type >= USERS) && rest >= 2 && to && to <= rest - 2;
}

/* Checks the fill value, whose size libhdf5 trusts. In versions 1 and 2 a negative size means no value. */
static bool fill_is_sound(const walk *w, int type, size_t offset, size_t n)
{
    enum { VALUE = 0x20 };
    int version = type == OLD_FILL || !n ? 0 : byte(w->h, offset);
    size_t head = version == 0 ? 0 : version < 3 ? 4 : 2;
    if (n < head || version > 3 || (type == FILL && version == 0))
        return false;
    if ((version == 2 && !byte(w->h, offset + 3)) || (version == 3 && !(byte(w->h, offset + 1) & VALUE)))
        return true;
    uint64_t size = field(w->h, offset + head, 4);
    bool none = head == 4 && size > INT32_MAX;
    return n >= head + 4 && (none || size <= n - head - 4);
}

static bool note(weft__h5_message *m, size_t offset, size_t n, bool shared)
{
    *m = (weft__h5_message){ offset, n, m->count + 1, m->shared || shared };
    return true;
}

/* A header of the newer kind ends with its checksum. If it is wrong, libhdf5 1.10 leaks memory, and reports
 * that at the end of the process. */
static bool sum_is_right(const walk *w, size_t offset, size_t end)
{
    uint32_t sum;
    return w->size - end >= 4 && weft__h5_sum(w->h, offset, end - offset, &sum) &&
           field(w->h, end, 4) == sum;
}

static bool messages(walk *w, size_t offset, size_t end);

static bool continued(walk *w, size_t offset)
{
    uint64_t address = field(w->h, offset, 8), n = field(w->h, offset + 8, 8);
    if (++w->parts > PARTS || n < 8 || !inside(w, address, n))
        return false;
    size_t from = w->base + (size_t)address, to = from + (size_t)n;
    if (w->old)
        return messages(w, from, to);
    return weft__h5_has_text(w->h, from, "OCHK", 4) && sum_is_right(w, from, to - 4) &&
           messages(w, from + 4, to - 4);
}

/* Returns whether a message is the attribute that is searched for. Its name counts its final 0. */
static bool is_wanted(const walk *w, size_t offset, size_t n)
{
    enum { HEAD = 8, ENCODED = 3 };
    char name[64];
    size_t head = HEAD + (byte(w->h, offset) >= ENCODED), length = (size_t)field(w->h, offset + 2, 2);
    return w->key && n >= head && length <= n - head && length <= sizeof name &&
           length == strlen(w->key) + 1 && weft__h5_bytes(&w->h->read, offset + head, length, name) &&
           !memcmp(name, w->key, length);
}

/* Checks a message, and notes the properties of a data set. */
static bool message(walk *w, int type, bool shared, size_t offset, size_t n)
{
    switch (type) {
    case SPACE:
        return note(&w->out->space, offset, n, shared);
    case TYPE:
        return note(&w->out->type, offset, n, shared);
    case OLD_FILL:
    case FILL:
        return shared || fill_is_sound(w, type, offset, n);
    case LAYOUT:
        return note(&w->out->layout, offset, n, shared);
    case FILTERS:
        return note(&w->out->filters, offset, n, shared);
    case ATTRIBUTE:
        return !is_wanted(w, offset, n) || note(&w->attribute, offset, n, shared);
    case EXTERNAL:
        return w->out->external = true;
    case LINKS:
    case ATTRIBUTES:
        return dense_is_sound(w, type, offset, n);
    case LINK:
        return !shared && link_is_plain(w, offset, n);
    case NAMES:
        return !shared && names_are_sound(w, offset, n);
    case CONTINUATION:
        return n >= 16 && continued(w, offset);
    default:
        return true;
    }
}

static bool messages(walk *w, size_t offset, size_t end)
{
    size_t head = w->old ? 8 : w->ordered ? 6 : 4;
    while (offset + head <= end) {
        int type = (int)field(w->h, offset, w->old ? 2 : 1);
        size_t n = (size_t)field(w->h, offset + (w->old ? 2 : 1), 2);
        bool shared = field(w->h, offset + (w->old ? 4 : 3), 1) & 2;
        offset += head;
        if (n > end - offset || !message(w, type, shared, offset, n))
            return false;
        offset += n;
    }
    return true;
}

static bool read_header(const weft__h5 *h, uint64_t address, walk *w)
{
    w->h = h;
    w->size = h->used ? h->used : h->read.size;
    w->base = (size_t)h->read.libhdf5_s.base_addr;
    *w->out = (weft__h5_header){ .address = address };
    if (w->base > w->size || !inside(w, address, 16))
        return false;
    size_t offset = w->base + (size_t)address, first = offset + 16;
    uint64_t n = field(w->h, offset + 8, 4);
    w->old = !weft__h5_has_text(w->h, offset, "OHDR", 4);
    if (!w->old) {
        int flags = byte(w->h, offset + 5), width = 1 << (flags & 3);
        first = offset + 6 + (flags & 0x20 ? 16 : 0) + (flags & 0x10 ? 4 : 0);
        n = field(w->h, first, (size_t)width);
        first += (size_t)width;
        w->ordered = flags & 4;
    }
    return first <= w->size && n <= w->size - first &&
           (w->old || sum_is_right(w, offset, first + (size_t)n)) && messages(w, first, first + (size_t)n);
}

bool weft__h5_read_header(const weft__h5 *h, uint64_t address, weft__h5_header *out)
{
    return read_header(h, address, &(walk){ .out = out });
}

weft__h5_message weft__h5_attribute(const weft__h5 *h, uint64_t address, const char *key)
{
    weft__h5_header header;
    walk w = { .out = &header, .key = key };
    bool sound = read_header(h, address, &w);
    return sound ? w.attribute : (weft__h5_message){ 0 };
}

/* Returns the position of the superblock: 0, 512, 1024 and so on; the image's size if the file has no
 * superblock. */
static size_t superblock(const walk *w)
{
    size_t base = 0;
    while (base + 96 <= w->size && !weft__h5_has_text(w->h, base, "\211HDF\r\n\032\n", 8))
        base = base ? 2 * base : 512;
    return base + 96 > w->size ? w->size : base;
}

/* Checks the extension of a superblock of version 2 or 3, a header that libhdf5 reads immediately. */
static bool extension_is_sound(weft__h5 *h, const walk *w)
{
    enum { EXTENSION = 20 };
    weft__h5_header header;
    uint64_t offset = field(w->h, w->base + EXTENSION, 8);
    return offset == UINT64_MAX || weft__h5_read_header(h, offset, &header);
}

/* Fails, and returns false, if a program has the file open for writing, or was killed while it had. */
static bool is_closed(weft__h5 *h, const walk *w)
{
    enum { FLAGS = 11, WRITING = 1, SWMR = 4 };
    int flags = byte(w->h, w->base + FLAGS);
    h->read.swmr = (flags & (WRITING | SWMR)) == (WRITING | SWMR);
    if (flags & WRITING && !h->read.swmr)
        weft__h5_fail(h, WEFT_EFORMAT,
                      "the file is open in a program that writes it, or its writer was killed; close it "
                      "there, or run h5clear -s FILE");
    return !h->status;
}

/* Checks the root's header, which the superblock names, before libhdf5 opens the file. */
bool weft__h5_root_is_sound(weft__h5 *h)
{
    weft__h5_header root;
    walk w = { .h = h, .size = h->read.size };
    size_t base = w.base = superblock(&w);
    if (base == h->read.size) {
        weft__h5_fail(h, WEFT_EFORMAT, "not an HDF5 file; expected its signature at byte 0, 512, 1024, 2048 "
                                       "..");
        return false;
    }
    enum { EIGHT_BYTES = 0x0808 };               /* the widths of addresses and of lengths */
    int version = byte(h, base + 8);
    uint64_t end = field(h, base + (version == 0 ? 40 : version == 1 ? 44 : 28), 8),
             to = field(h, base + (version == 0 ? 64 : version == 1 ? 68 : 36), 8);
    if (version == 3 && !is_closed(h, &w))
        return false;
    h->read.libhdf5_s.base_addr = base;
    h->root = to;
    h->used = end < h->read.size ? (size_t)end + !end : h->read.size; /* libhdf5 fails on later headers */
    bool ok = field(h, base + (version < 2 ? 13 : 9), 2) == EIGHT_BYTES &&
              weft__h5_read_header(h, to, &root) && (version < 2 || extension_is_sound(h, &w));
    h->read.libhdf5_s.base_addr = 0;
    return ok;
}
