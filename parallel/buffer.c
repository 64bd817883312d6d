/* buffer.c - memory that is kept from batch to batch and grows. */
#include "parallel/parallel.h"

char *weft__at_least(weft *w, weft__room_of *r, int64_t bytes)
{
    if (bytes > r->bytes) {
        weft__release(w, r->at);
        r->at = weft__allocate(w, (size_t)bytes);
        r->bytes = r->at ? bytes : 0;
    }
    return r->at;
}
