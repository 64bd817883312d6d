/* protobuf_write.h - writes protobuf messages to a growing buffer. */
#ifndef WEFT_PROTOBUF_WRITE_H
#define WEFT_PROTOBUF_WRITE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A message, or a part of one. failed: memory ran out; further calls then do nothing. */
typedef struct weft__proto { unsigned char *bytes; size_t n, room; bool failed; } weft__proto;

void weft__proto_raw(weft__proto *, const void *bytes, size_t n);
void weft__proto_int(weft__proto *, int field, int64_t value);
void weft__proto_float(weft__proto *, int field, float value);
void weft__proto_bytes(weft__proto *, int field, const void *bytes, size_t n);
void weft__proto_text(weft__proto *, int field, const char *text);
/* Writes tag and length of a field whose n bytes the caller writes next. */
void weft__proto_begin(weft__proto *, int field, size_t n);
/* Writes a message as a field, and frees the message. */
void weft__proto_message(weft__proto *, int field, weft__proto *message);
void weft__proto_free(weft__proto *);
#endif
