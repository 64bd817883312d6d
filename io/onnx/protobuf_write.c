/* protobuf_write.c - writes protobuf messages. A field is a tag, its number and wire type, and a value: a
 * varint, four bytes, or a length and that many bytes. */
#include "io/onnx/protobuf_write.h"
#include <stdlib.h>
#include <string.h>

enum { VARINT = 0, BYTES = 2, FOUR_BYTES = 5 };

void weft__proto_raw(weft__proto *m, const void *bytes, size_t n)
{
    if (m->failed || n == 0)
        return;
    if (n > m->room - m->n) {
        size_t room = m->n + n < SIZE_MAX / 4 ? 2 * (m->n + n) : 0;
        unsigned char *larger = room ? realloc(m->bytes, room) : NULL;
        if (!larger) {
            m->failed = true;
            return;
        }
        m->bytes = larger, m->room = room;
    }
    memcpy(m->bytes + m->n, bytes, n);
    m->n += n;
}

static void varint(weft__proto *m, uint64_t value)
{
    unsigned char byte[10];
    size_t n = 0;
    for (; value > 127; value >>= 7)
        byte[n++] = (unsigned char)(value | 128);
    byte[n++] = (unsigned char)value;
    weft__proto_raw(m, byte, n);
}
static void tag(weft__proto *m, int field, int wire) { varint(m, (uint64_t)field << 3 | (uint64_t)wire); }

void weft__proto_int(weft__proto *m, int field, int64_t value)
{
    tag(m, field, VARINT);
    varint(m, (uint64_t)value);
}

void weft__proto_float(weft__proto *m, int field, float value)
{
    tag(m, field, FOUR_BYTES);
    weft__proto_raw(m, &value, sizeof value);
}

void weft__proto_begin(weft__proto *m, int field, size_t n)
{
    tag(m, field, BYTES);
    varint(m, n);
}

void weft__proto_bytes(weft__proto *m, int field, const void *bytes, size_t n)
{
    weft__proto_begin(m, field, n);
    weft__proto_raw(m, bytes, n);
}

void weft__proto_text(weft__proto *m, int field, const char *text)
{
    weft__proto_bytes(m, field, text, strlen(text));
}

void weft__proto_message(weft__proto *m, int field, weft__proto *message)
{
    m->failed = m->failed || message->failed;
    weft__proto_bytes(m, field, message->bytes, message->n);
    weft__proto_free(message);
}

void weft__proto_free(weft__proto *m)
{
    free(m->bytes);
    *m = (weft__proto){ 0 };
}
