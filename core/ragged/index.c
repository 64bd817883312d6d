/* index.c - index arrays of ragged batches, filled on the host and sent to the device if it has its own
 * memory. */
#include "core/inside.h"

weft__ints weft__index(weft *w, int64_t n)
{
    int32_t *host = weft__take(w, WEFT__ARENA_BATCHES, n * (int64_t)sizeof *host), *device = host;
    if (host && !w->dev.k->synchronous)
        device = weft__take(w, WEFT__ARENA_MAPS, n * (int64_t)sizeof *device);
    return device ? (weft__ints){ host, device } : (weft__ints){ NULL, NULL };
}

/* Sends whole cache lines, including unused bytes at the end, so that adjacent arrays are sent in one
 * copy. */
void weft__upload_index(weft *w, weft__ints *index, int64_t n)
{
    if (index->host && index->device != index->host && n)
        w->dev.k->upload(&w->dev, (void *)(uintptr_t)index->device, index->host,
                         (size_t)weft__whole_lines(n * (int64_t)sizeof *index->host));
}
