/* chunk_index.c - finds the chunks of data sets.
 *
 * It reads B-trees of version 1 and the indexes of libhdf5 1.10 and later (layout 4; h5py's libver="latest",
 * and files for SWMR): a single chunk, implicit positions, fixed and extensible arrays, B-trees of version 2.
 * See "HDF5 File Format Specification" 3.0, VII and III.A.
 *
 * Each block of the later indexes has a checksum, which is verified, and must be inside the file. An array
 * has one element for each chunk of the largest shape, row by row, the unlimited axis first. */
#include <stdlib.h>
#include "io/hdf5/session.h"

enum { PREFIX = 14 };                            /* signature, version, client, address of the header */
static const char damaged[] = "has a damaged index of chunks",
                  damaged_tree[] = "has a damaged tree of chunks";

typedef struct {
    weft__h5 *h;
    const weft__h5_chunks *c;
    weft__h5_chunk *list;                        /* by number in the array or the shape */
    uint64_t n, records;                         /* length of the list; records of a tree so far */
    size_t width;                                /* bytes of an element in the file */
} index_of;

/* Returns a list of chunks that are not stored. NULL: memory is short, and the session fails. */
static weft__h5_chunk *new_list(weft__h5 *h, uint64_t n)
{
    weft__h5_chunk *list = malloc((size_t)n * sizeof *list);
    if (!list)
        weft__h5_fail(h, WEFT_ENOMEM, "no memory for an index of chunks");
    for (uint64_t i = 0; list && i < n; i++)
        list[i] = (weft__h5_chunk){ .address = HADDR_UNDEF };
    return list;
}

static uint64_t parts(uint64_t n, uint64_t extent) { return n / extent + (n % extent != 0); }

uint64_t weft__h5_chunks_along(const weft__h5_chunks *c, int axis)
{
    return parts(c->size[axis], c->extent[axis]);
}

void weft__h5_place_of_chunk(const weft__h5_chunks *c, uint64_t number, uint64_t place[WEFT_RANK])
{
    for (int i = c->rank - 1; i >= 0; i--) {
        uint64_t all = weft__h5_chunks_along(c, i);
        place[i] = number % all;
        number /= all;
    }
}

/* Checks a block of n bytes at an address, whose last four are its checksum. Sets *offset, the position in
 * the image. */
static bool block(const index_of *x, uint64_t address, uint64_t n, const char *signature, size_t *offset)
{
    uint32_t sum;
    return weft__h5_inside(x->h, x->h->read.size, address, n, offset) && n >= PREFIX &&
           (!signature || weft__h5_has_text(x->h, *offset, signature, 4)) &&
           weft__h5_sum(x->h, *offset, (size_t)n - 4, &sum) &&
           field(x->h, *offset + (size_t)n - 4, 4) == sum;
}

/* Reads an element: an address, and with filters the bytes of the chunk and the filters it skipped. */
static weft__h5_chunk element(const index_of *x, size_t offset)
{
    weft__h5_chunk chunk = { field(x->h, offset, 8), x->c->bytes, 0 };
    if (x->c->filters) {
        chunk.n = field(x->h, offset + 8, x->width - 12);
        chunk.skipped = field(x->h, offset + x->width - 4, 4);
    }
    return chunk;
}

static void elements(index_of *x, uint64_t first, uint64_t n, size_t offset)
{
    for (uint64_t i = 0; i < n && first + i < x->n; i++)
        x->list[first + i] = element(x, offset + (size_t)i * x->width);
}

/* Stores the width of elements. Returns whether it fits the filters. */
static bool takes_width(index_of *x, uint64_t width)
{
    x->width = (size_t)width;
    return x->c->filters ? width > 12 && width <= 20 : width == 8;
}

/* Checks the header of an array. */
static bool is_array(index_of *x, size_t header)
{
    return field(x->h, header + 4, 1) == 0 && field(x->h, header + 5, 1) == (x->c->filters > 0) &&
           takes_width(x, field(x->h, header + 6, 1));
}

static bool bit(const index_of *x, size_t bits, uint64_t i)      /* the highest bit of a byte comes first */
{
    return field(x->h, bits + (size_t)(i / 8), 1) >> (7 - i % 8) & 1;
}

/* Reads consecutive pages of elements whose bits are set, starting at bit `from`. Each page has its
 * checksum. */
static const char *pages(index_of *x, uint64_t first, uint64_t n, uint64_t page, size_t bits, uint64_t from,
                         uint64_t address)
{
    size_t offset;
    for (uint64_t i = 0; i * page < n && first + i * page < x->n; i++) {
        uint64_t count = n - i * page < page ? n - i * page : page;
        if (!bit(x, bits, from + i))
            continue;
        if (!block(x, address + i * (page * x->width + 4), count * x->width + 4, NULL, &offset))
            return damaged;
        elements(x, first + i * page, count, offset);
    }
    return NULL;
}

static const char *fixed_array(index_of *x)
{
    enum { HEADER = 28, BITS = 30 };
    size_t offset, data;
    if (!block(x, x->c->index, HEADER, "FAHD", &offset) || !is_array(x, offset))
        return damaged;
    uint64_t bits = field(x->h, offset + 7, 1), n = field(x->h, offset + 8, 8),
             to = field(x->h, offset + 16, 8), page = (uint64_t)1 << (bits & 31),
             sheets = n / page + (n % page != 0);
    if (bits > BITS || n > x->h->read.size || n < x->n)
        return damaged;
    if (to == HADDR_UNDEF)
        return NULL;
    uint64_t map = n > page ? (sheets + 7) / 8 : n * x->width;
    if (!block(x, to, PREFIX + map + 4, "FADB", &data))
        return damaged;
    if (n > page)
        return pages(x, 0, n, page, data + PREFIX, 0, to + PREFIX + map + 4);
    elements(x, 0, n, data + PREFIX);
    return NULL;
}

/* ---- extensible arrays ---- */
typedef struct { uint64_t first, blocks, each, page; size_t offset; } level;      /* of data blocks */

/* Reads the data blocks of a level, whose addresses are at `list`. bits: those of their pages; 0: none. */
static const char *data_blocks(index_of *x, const level *l, size_t list, size_t bits)
{
    size_t offset, head = PREFIX + l->offset;
    bool paged = l->each > l->page;
    const char *reason = NULL;
    for (uint64_t i = 0, first = l->first; i < l->blocks && first < x->n && !reason; i++, first += l->each) {
        uint64_t to = field(x->h, list + 8 * (size_t)i, 8);
        if (to == HADDR_UNDEF)
            continue;
        if ((paged && !bits) || !block(x, to, head + (paged ? 0 : l->each * x->width) + 4, "EADB", &offset))
            return damaged;
        if (paged)
            reason = pages(x, first, l->each, l->page, bits, i * (l->each / l->page), to + head + 4);
        else
            elements(x, first, l->each, offset + head);
    }
    return reason;
}

/* Reads the data blocks of a level, whose addresses are in a separate block. */
static const char *super_block(index_of *x, const level *l, uint64_t address)
{
    size_t offset;
    uint64_t map = l->each > l->page ? (l->each / l->page + 7) / 8 : 0;
    if (address == HADDR_UNDEF)
        return NULL;
    if (!block(x, address, PREFIX + l->offset + l->blocks * (map + 8) + 4, "EASB", &offset))
        return damaged;
    size_t bits = offset + PREFIX + l->offset, list = bits + (size_t)(l->blocks * map);
    return data_blocks(x, l, list, map ? bits : 0);
}

static int log_of(uint64_t v) { return v ? 63 - __builtin_clzll(v) : -1; }
static bool is_power(uint64_t v) { return v && !(v & (v - 1)); }

/* Reads the levels of data blocks: those of the index block at `list`, then one super block for each
 * level. */
static const char *levels(index_of *x, size_t list, int in_index, int all, uint64_t least, level l)
{
    const char *reason = NULL;
    for (int s = 0; s < all && !reason && l.first < x->n; s++, l.first += l.blocks * l.each) {
        l.blocks = (uint64_t)1 << s / 2;
        l.each = least << (s + 1) / 2;
        reason = s < in_index ? data_blocks(x, &l, list, 0) : super_block(x, &l, field(x->h, list, 8));
        list += s < in_index ? 8 * (size_t)l.blocks : 8;
    }
    return reason;
}

static const char *extensible_array(index_of *x)
{
    enum { HEADER = 72, BITS = 48, PAGE = 30 };
    size_t offset, data;
    if (!block(x, x->c->index, HEADER, "EAHD", &offset) || !is_array(x, offset))
        return damaged;
    uint64_t bits = field(x->h, offset + 7, 1), own = field(x->h, offset + 8, 1),
             least = field(x->h, offset + 9, 1), pointers = field(x->h, offset + 10, 1),
             page = field(x->h, offset + 11, 1), end = field(x->h, offset + 44, 8),
             to = field(x->h, offset + 60, 8);
    int all = 1 + (int)bits - log_of(least), in_index = 2 * log_of(pointers);
    if (!is_power(least) || !is_power(pointers) || bits > BITS || page > PAGE || all < in_index)
        return damaged;
    x->n = to == HADDR_UNDEF ? 0 : end < x->n ? end : x->n;      /* chunks after the end are not stored */
    if (!x->n)
        return NULL;
    uint64_t addresses = 2 * (pointers - 1) + (uint64_t)(all - in_index), n = own * x->width + 8 * addresses;
    if (!block(x, to, PREFIX + n + 4, "EAIB", &data))
        return damaged;
    elements(x, 0, own, data + PREFIX);
    level l = { .first = own, .page = (uint64_t)1 << page, .offset = (size_t)(bits + 7) / 8 };
    return levels(x, data + PREFIX + (size_t)own * x->width, in_index, all, least, l);
}

/* ---- trees ---- */
typedef struct { uint64_t record, most, total; size_t count, totals; } tree_level;
enum { DEPTH = 8, NODE = 10 };                   /* bytes of a node: signature, version, type, checksum */

static const char *record(index_of *x, size_t offset)
{
    const weft__h5_chunks *c = x->c;
    uint64_t number = 0;
    for (int i = 0; i < c->rank; i++) {
        uint64_t place = field(x->h, offset + x->width + 8 * (size_t)i, 8), all = weft__h5_chunks_along(c, i);
        if (place >= all)
            return "has a chunk outside its shape";
        number = number * all + place;
    }
    if (x->records++ >= x->n || x->list[number].address != HADDR_UNDEF)
        return "has a chunk twice";
    x->list[number] = element(x, offset);
    return NULL;
}

static const char *tree_node(index_of *x, const tree_level *l, int depth, uint64_t address, uint64_t n)
{
    size_t offset, pointer = 8 + l->count + (depth > 1 ? l[depth - 1].totals : 0);
    uint64_t record_bytes = l->record, links = depth ? (n + 1) * pointer : 0;
    if (!n || n > l[depth].most ||
        !block(x, address, NODE + n * record_bytes + links, depth ? "BTIN" : "BTLF", &offset))
        return damaged;
    const char *reason = NULL;
    for (uint64_t i = 0; i < n && !reason; i++)
        reason = record(x, offset + 6 + (size_t)(i * record_bytes));
    size_t list = offset + 6 + (size_t)(n * record_bytes);
    for (uint64_t i = 0; depth && i <= n && !reason; i++, list += pointer)
        reason = tree_node(x, l, depth - 1, field(x->h, list, 8), field(x->h, list + 8, l->count));
    return reason;
}

static size_t bytes_for(uint64_t limit) { return (size_t)log_of(limit) / 8 + 1; }

static const char *tree(index_of *x)
{
    enum { HEADER = 38, PLAIN = 10, FILTERED = 11 };
    size_t offset;
    if (!block(x, x->c->index, HEADER, "BTHD", &offset))
        return damaged;
    uint64_t size = field(x->h, offset + 6, 4), bytes = field(x->h, offset + 10, 2),
             depth = field(x->h, offset + 12, 2), places = 8 * (uint64_t)x->c->rank;
    if (field(x->h, offset + 5, 1) != (x->c->filters ? FILTERED : PLAIN) || depth >= DEPTH ||
        bytes <= places || !takes_width(x, bytes - places) || size < NODE + bytes)
        return damaged;
    tree_level l[DEPTH] = { { .record = bytes, .most = (size - NODE) / bytes } };
    l[0].total = l[0].most;
    l[0].count = bytes_for(l[0].most);
    for (uint64_t d = 1; d <= depth; d++) {
        uint64_t pointer = 8 + l[0].count + l[d - 1].totals;
        if (size < NODE + pointer + bytes)
            return damaged;
        l[d].most = (size - NODE - pointer) / (bytes + pointer);
        l[d].total = (l[d].most + 1) * l[d - 1].total + l[d].most;
        l[d].totals = bytes_for(l[d].total);
    }
    uint64_t root = field(x->h, offset + 16, 8), n = field(x->h, offset + 24, 2);
    return root == HADDR_UNDEF || !n ? NULL : tree_node(x, l, (int)depth, root, n);
}

/* ---- the tree of version 1: nodes are not empty, chunks are in order ---- */
/* Returns whether the key at a is less than the one at b. Other readers search by this order. */
static bool before(const index_of *x, size_t a, size_t b)
{
    for (int i = 0; i <= x->c->rank; i++) {      /* the last one is within a number */
        uint64_t p = field(x->h, a + 8 + 8 * (size_t)i, 8), q = field(x->h, b + 8 + 8 * (size_t)i, 8);
        if (p != q)
            return p < q;
    }
    return false;
}

/* Reads a key and the address of its chunk: bytes, skipped filters, first position along each axis. */
static const char *old_chunk(index_of *x, size_t key, uint64_t address)
{
    const weft__h5_chunks *c = x->c;
    uint64_t number = 0;
    for (int i = 0; i < c->rank; i++) {
        uint64_t first = field(x->h, key + 8 + 8 * (size_t)i, 8);
        if (first % c->extent[i] || first >= c->size[i])
            return "has a chunk outside its shape";
        number = number * weft__h5_chunks_along(c, i) + first / c->extent[i];
    }
    if (number != x->records++)
        return "has a repeated, missing or misplaced chunk";
    x->list[number] = (weft__h5_chunk){ address, field(x->h, key, 4), field(x->h, key + 4, 4) };
    return NULL;
}

static const char *old_node(index_of *x, uint64_t address, int height)
{
    enum { HEAD = 24, LEVELS = 16 };
    size_t offset, key = 8 + 8 * ((size_t)x->c->rank + 1);
    if (!weft__h5_inside(x->h, x->h->read.size, address, HEAD, &offset) ||
        !weft__h5_has_text(x->h, offset, "TREE\1", 5))
        return damaged_tree;
    int depth = (int)field(x->h, offset + 5, 1);
    uint64_t entries = field(x->h, offset + 6, 2);
    if (depth >= LEVELS || (height >= 0 && depth != height) || !entries ||
        !weft__h5_inside(x->h, x->h->read.size, address, HEAD + entries * (key + 8) + key, &offset))
        return damaged_tree;
    const char *reason = NULL;
    for (uint64_t i = 0; i < entries && !reason; i++) {
        size_t place = offset + HEAD + (size_t)i * (key + 8);
        uint64_t to = field(x->h, place + key, 8);
        if (!before(x, place, place + key + 8))
            reason = damaged_tree;
        else
            reason = depth ? old_node(x, to, depth - 1) : old_chunk(x, place, to);
    }
    return reason;
}

/* ---- all kinds ---- */
/* Computes the number of the element of a chunk at these positions. Returns false if it has no number. */
static bool number_in(const weft__h5_chunks *c, const uint64_t *place, uint64_t *number)
{
    int first = 0;                               /* extensible arrays begin with the unlimited axis */
    while (c->kind == WEFT__EXTENSIBLE_ARRAY && first + 1 < c->rank && c->most[first] != UINT64_MAX)
        first++;
    *number = place[first];
    for (int i = 0; i < c->rank; i++)
        if (i != (c->kind == WEFT__EXTENSIBLE_ARRAY ? first : 0) &&
            (__builtin_mul_overflow(*number, parts(c->most[i], c->extent[i]), number) ||
             __builtin_add_overflow(*number, place[i], number)))
            return false;
    return true;
}

/* Moves the elements of an array to the chunks of the shape. */
static const char *take_from_array(index_of *x, const char *(*read)(index_of *), weft__h5_chunk *out,
                                   uint64_t chunks)
{
    uint64_t place[WEFT_RANK], number;
    weft__h5_place_of_chunk(x->c, chunks - 1, place);
    if (!number_in(x->c, place, &number) || number > x->h->read.size / 8)
        return damaged;
    x->n = number + 1;                           /* the last chunk has the largest number */
    x->list = new_list(x->h, x->n);
    const char *reason = x->list ? read(x) : damaged;    /* the first failure counts */
    for (uint64_t i = 0; i < chunks && !reason; i++) {
        weft__h5_place_of_chunk(x->c, i, place);
        if (number_in(x->c, place, &number) && number < x->n)
            out[i] = x->list[number];
    }
    free(x->list);
    return reason;
}

static const char *implicit(index_of *x)
{
    for (uint64_t i = 0; i < x->n; i++)
        if (x->c->index != HADDR_UNDEF)
            x->list[i] = (weft__h5_chunk){ x->c->index + i * x->c->bytes, x->c->bytes, 0 };
    return NULL;
}

const char *weft__h5_find_chunks(weft__h5 *h, const weft__h5_chunks *c, uint64_t chunks,
                                 weft__h5_chunk **list)
{
    weft__h5_chunk *out = *list = new_list(h, chunks);
    index_of x = { .h = h, .c = c, .list = out, .n = chunks };
    if (!out)
        return damaged;
    if (c->kind == WEFT__OLD_TREE)
        return old_node(&x, c->index, -1);
    if (c->index == HADDR_UNDEF)
        return NULL;
    switch (c->kind) {
    case WEFT__ONE_CHUNK:
        if (chunks != 1)
            return damaged;
        out[0] = (weft__h5_chunk){ c->index, c->filters ? c->stored : c->bytes, c->skipped };
        return NULL;
    case WEFT__IMPLICIT:         return c->filters ? damaged : take_from_array(&x, implicit, out, chunks);
    case WEFT__FIXED_ARRAY:      return take_from_array(&x, fixed_array, out, chunks);
    case WEFT__EXTENSIBLE_ARRAY: return take_from_array(&x, extensible_array, out, chunks);
    default:                     return tree(&x);
    }
}
