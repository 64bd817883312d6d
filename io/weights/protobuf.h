/* protobuf.h - reads the wire format of Protocol Buffers from memory, field by field. */
#ifndef WEFT_IO_PROTOBUF_H
#define WEFT_IO_PROTOBUF_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum { WEFT__PB_VARINT, WEFT__PB_64, WEFT__PB_BYTES, WEFT__PB_32 = 5 } weft__pb_type;
/* A message, or the rest of one that is being read. */
typedef struct weft__pb { const unsigned char *next, *end; } weft__pb;
typedef struct weft__pb_field {
    int number;
    weft__pb_type type;
    uint64_t value; /* VARINT, 64 and 32 */
    weft__pb bytes; /* BYTES: a text, a message or packed numbers */
} weft__pb_field;

/* Reads the next field. Returns false at the end, and at a damaged field; then next is not end. */
bool weft__pb_next(weft__pb *, weft__pb_field *);
/* Reads the next number of a repeated field, packed or not. Begin with a copy of the field. type: that of
 * one number. Returns false at the end, and at a damaged number; then bytes.next is not bytes.end. */
bool weft__pb_number(weft__pb_field *, weft__pb_type type, uint64_t *value);
/* Returns whether a field and all its numbers can be read, and adds their count to *n. */
bool weft__pb_count(const weft__pb_field *, weft__pb_type type, int64_t *n);
/* Returns whether bytes are the text. */
bool weft__pb_is(weft__pb bytes, const char *text);
static inline size_t weft__pb_size(weft__pb bytes) { return (size_t)(bytes.end - bytes.next); }
#endif
