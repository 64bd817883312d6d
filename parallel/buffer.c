/* buffer.c - buffers on the host or the device that grow and are reused from batch to batch. */
#include "parallel/parallel.h"

static char *enlarge(weft *w, weft__buffer *r, int64_t bytes, void *(*allocate)(weft *, size_t),
                      void (*release)(weft *, void *))
{
    if (bytes > r->bytes) {
        release(w, r->at);
        r->at = allocate(w, (size_t)bytes);
        r->bytes = r->at ? bytes : 0;
    }
    return r->at;
}

char *weft__reserve(weft *w, weft__buffer *r, int64_t bytes)
{
    return enlarge(w, r, bytes, weft__allocate, weft__release);
}

char *weft__device_reserve(weft *w, weft__buffer *r, int64_t bytes)
{
    return enlarge(w, r, bytes, weft__device_allocate, weft__device_release);
}
