/* protobuf.c - reads the wire format of Protocol Buffers from memory, field by field. Each length is checked
 * before it is used. */
#include <string.h>
#include "io/io.h"
#include "io/weights/protobuf.h"

static bool varint(weft__pb *p, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 64 && p->next < p->end; shift += 7) {
        unsigned char byte = *p->next++;
        *value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return shift < 63 || byte < 2;
    }
    return false;
}

static bool number(weft__pb *p, weft__pb_type type, uint64_t *value)
{
    size_t bytes = type == WEFT__PB_64 ? 8 : 4;
    if (type == WEFT__PB_VARINT)
        return varint(p, value);
    if (weft__pb_size(*p) < bytes)
        return false;
    *value = weft__little(p->next, bytes);
    p->next += bytes;
    return true;
}

bool weft__pb_next(weft__pb *p, weft__pb_field *f)
{
    const unsigned char *begin = p->next;
    uint64_t tag = 0, size;
    *f = (weft__pb_field){ 0 };
    bool good = begin < p->end && varint(p, &tag) && tag >> 3 && tag >> 3 <= 0x1FFFFFFF;
    f->number = (int)(tag >> 3);
    f->type = (weft__pb_type)(tag & 7);
    if (good && f->type == WEFT__PB_BYTES) {
        good = varint(p, &size) && size <= weft__pb_size(*p);
        f->bytes = (weft__pb){ p->next, p->next + (good ? size : 0) };
        p->next = f->bytes.end;
    } else
        good = good && (f->type <= WEFT__PB_64 || f->type == WEFT__PB_32) && number(p, f->type, &f->value);
    if (!good)
        p->next = begin;
    return good;
}

bool weft__pb_number(weft__pb_field *f, weft__pb_type type, uint64_t *value)
{
    const unsigned char *begin = f->bytes.next;
    bool read = f->type == type;
    if (f->type != WEFT__PB_BYTES)
        *value = f->value;
    else if (!(read = begin < f->bytes.end && number(&f->bytes, type, value)))
        f->bytes.next = begin;
    f->type = WEFT__PB_BYTES; /* of a single number, bytes are empty: the end */
    return read;
}

bool weft__pb_count(const weft__pb_field *field, weft__pb_type type, int64_t *n)
{
    weft__pb_field f = *field;
    bool good = f.type == WEFT__PB_BYTES || f.type == type;
    for (uint64_t value; weft__pb_number(&f, type, &value);)
        ++*n;
    return good && f.bytes.next == f.bytes.end;
}

bool weft__pb_is(weft__pb bytes, const char *text)
{
    return weft__pb_size(bytes) == strlen(text) && !memcmp(bytes.next, text, strlen(text));
}
