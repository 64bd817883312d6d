/* set.c - reads the description of a data set from its object header: shape, type, and position of the
 * numbers. So libhdf5 opens no data set. See "HDF5 File Format Specification" 3.0, IV.A.2. */
#include "io/hdf5/session.h"

static const char *shape(const weft__h5 *h, const weft__h5_message *m, weft__h5_set *s)
{
    enum { OLD_HEAD = 8, HEAD = 4, MAXIMA = 1, SCALAR = 0, SIMPLE = 1 };
    int version = byte(h, m->offset), rank = byte(h, m->offset + 1),
        class = version == 1 ? SIMPLE : byte(h, m->offset + 3);
    size_t list = version == 1 ? OLD_HEAD : HEAD, axes = 8 * (size_t)rank,
           most = byte(h, m->offset + 2) & MAXIMA ? axes : 0;
    if (m->n < HEAD || version < 1 || version > 2 || class > SIMPLE || (class == SCALAR && rank) ||
        rank > WEFT_RANK || m->n < list + axes + most)
        return "has a shape that cannot be read";
    s->kind.rank = rank;
    for (int i = 0; i < rank; i++) {
        uint64_t size = field(h, m->offset + list + 8 * (size_t)i, 8);
        s->kind.size[i] = size > INT64_MAX ? INT64_MAX : (int64_t)size;
        s->chunks.most[i] = field(h, m->offset + list + most + 8 * (size_t)i, 8);
    }
    return NULL;
}

/* ---- the type ---- */
enum { INTEGER = 0, FLOAT = 1, TEXT = 3, ENUM = 8, BIG = 1, TYPE_HEAD = 8 };

/* Returns the type of a float if it has sign, exponent and mantissa as in IEEE 754. */
static weft__number float_of(const weft__h5 *h, size_t offset, uint64_t size, uint64_t flags)
{
    enum { SIGN = 8, FIRST_BIT_IMPLIED = 0x20, FIELDS = 12 };
    static const struct { weft__number type; uint64_t size, exponent; } known[] = {
        { WEFT__F16, 2, 5 }, { WEFT__BF16, 2, 8 }, { WEFT__F32, 4, 8 }, { WEFT__F64, 8, 11 }
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint64_t e = known[i].exponent, rest = 8 * size - 1 - e, bias = ((uint64_t)1 << (e - 1)) - 1;
        if (size == known[i].size && flags == (FIRST_BIT_IMPLIED | (8 * size - 1) << SIGN) &&
            field(h, offset + FIELDS, 8) == (rest | e << 8 | rest << 24 | bias << 32))
            return known[i].type;
    }
    return WEFT__ODD;
}

/* Returns the type of plain numbers in n bytes; ODD: another type. */
static weft__number number(const weft__h5 *h, size_t offset, size_t n)
{
    enum { SIGNED = 8, OFFSET = 8, PRECISION = 10, INTEGER_BYTES = 12, FLOAT_BYTES = 20, NEWEST = 4 };
    int version = byte(h, offset) >> 4, class = byte(h, offset) & 15;
    uint64_t flags = field(h, offset + 1, 3), size = field(h, offset + 4, 4), other = flags & ~(uint64_t)BIG;
    if (n < (class == FLOAT ? FLOAT_BYTES : INTEGER_BYTES) || version < 1 || version > NEWEST ||
        field(h, offset + OFFSET, 2) || field(h, offset + PRECISION, 2) != 8 * size)
        return WEFT__ODD;
    weft__number type = class == FLOAT ? float_of(h, offset, size, other) : WEFT__ODD;
    for (unsigned k = 0; k < 4 && class == INTEGER; k++)
        if (size == (uint64_t)1 << k && !(other & ~(uint64_t)SIGNED))
            type = (weft__number)((other ? WEFT__I8 : WEFT__U8) + k);
    return type == WEFT__ODD || size == 1 || !(flags & BIG) ? type : (weft__number)(type + WEFT__BIG);
}

/* Reads an enumeration (h5py's bool): an integer type, names with their final 0, and values, all in the
 * message. Returns the type of the integer. */
static weft__number of_enum(const weft__h5 *h, size_t offset, size_t n)
{
    enum { MEMBERS = 1, LISTS = 20, PADDED = 3 };
    bool plain = n >= LISTS && (byte(h, offset + TYPE_HEAD) & 15) == INTEGER;
    weft__number type = plain ? number(h, offset + TYPE_HEAD, LISTS - TYPE_HEAD) : WEFT__ODD;
    size_t end = LISTS, size = weft__number_bytes(type), members = (size_t)field(h, offset + MEMBERS, 2);
    for (size_t i = 0; i < members; i++) {
        size_t name = end;
        while (end < n && byte(h, offset + end))
            end++;
        end += byte(h, offset) >> 4 < PADDED ? 8 - (end - name) % 8 : 1;
        if (end > n)
            return WEFT__ODD;
    }
    return members && size == field(h, offset + 4, 4) && members * size <= n - end ? type : WEFT__ODD;
}

static void type(const weft__h5 *h, const weft__h5_message *m, weft__kind *k)
{
    int class = m->n < TYPE_HEAD ? INTEGER : byte(h, m->offset) & 15;
    uint64_t size = field(h, m->offset + 4, 4);
    k->type = m->shared     ? WEFT__ODD :
              class == ENUM ? of_enum(h, m->offset, m->n) :
                              number(h, m->offset, m->n);
    if (class == TEXT && !m->shared && !k->rank && size)         /* of fixed length */
        *k = (weft__kind){ WEFT__CHARS, 1, { (int64_t)size } };
}

/* ---- the position of the numbers ---- */
static const char not_plain[] = "is stored in chunks; expected a plain array",
                  few_bytes[] = "is incomplete: the file lacks bytes of its shape";

/* Numbers that were never written have no position. libhdf5 refuses some reads beyond the superblock's end of
 * the file, depending on its buffer; weft refuses all. */
static const char *unfit_reason(const weft__h5 *h, weft__h5_set *s, uint64_t address, uint64_t stored)
{
    uint64_t bytes = weft__kind_bytes(&s->kind);
    if (bytes > h->read.size || stored != bytes || (bytes && address == HADDR_UNDEF))
        return few_bytes;
    if (bytes && !weft__h5_inside(h, (size_t)h->read.end, address, bytes, &s->offset))
        return "is damaged: it is stored beyond the end of the file";
    return NULL;
}

static const char *place(const weft__h5 *h, const weft__h5_header *header, weft__h5_set *s)
{
    enum { COMPACT = 0, CHUNKED = 2, OLD_HEAD = 8 };
    const weft__h5_message *m = &header->layout;
    bool old = byte(h, m->offset) < 3;
    int version = byte(h, m->offset), class = byte(h, m->offset + (old ? 2 : 1));
    size_t head = m->offset + (old ? OLD_HEAD : 2), width = old ? 4 : 2, end = m->offset + m->n,
           bytes = weft__kind_bytes(&s->kind);
    s->chunked = class >= CHUNKED;
    if (m->n < 4 || version < 1 || version > 4)
        return "has an unsupported layout; expected a plain array or chunks";
    if (s->chunked)
        return h->checked ? not_plain : weft__h5_chunked(h, header, s);
    if (header->filters.count || header->external)
        return "has filters or is stored in another file; expected a plain array in this one";
    if (class != COMPACT && end >= head + (old ? 8 : 16)) {
        s->unfit = unfit_reason(h, s, field(h, head, 8), old ? bytes : field(h, head + 8, 8));
        return NULL;
    }
    head += class == COMPACT && old ? 4 * (size_t)byte(h, m->offset + 1) : 0;
    uint64_t stored = field(h, head, width);
    if (class != COMPACT || end < head + width || stored > end - head - width)
        return "has a damaged layout";
    s->offset = head + width;
    s->unfit = h->checked ? not_plain : stored != bytes ? few_bytes : NULL;
    return NULL;
}

const char *weft__h5_describe_set(const weft__h5 *h, const weft__h5_header *header, weft__h5_set *s)
{
    *s = (weft__h5_set){ .kind = { .type = WEFT__ODD } };
    if (!header->layout.count)
        return "is not a data set";
    if (header->space.count != 1 || header->type.count != 1 || header->layout.count != 1 ||
        header->filters.count > 1 || header->space.shared || header->layout.shared || header->filters.shared)
        return "is damaged: its header is not that of a data set";
    const char *reason = shape(h, &header->space, s);
    if (reason)
        return reason;
    type(h, &header->type, &s->kind);
    return place(h, header, s);
}
