/* stage.c - loading is all or nothing: what was read waits here until everything was read and found good. */
#include <stdlib.h>
#include <string.h>
#include "io/checkpoint/checkpoint.h"

void *weft__hold(weft__stage *s, void *to, size_t bytes, bool device)
{
    if (weft__h5_status(s->h))
        return NULL;
    weft__held *k = bytes < SIZE_MAX - sizeof *k ? calloc(1, sizeof *k + bytes) : NULL;
    if (!k) {
        weft__h5_fail(s->h, WEFT_ENOMEM, "no memory to read %zu bytes", bytes);
        return NULL;
    }
    k->to = to, k->bytes = bytes, k->device = device;
    if (s->last)
        s->last->next = k;
    else
        s->first = k;
    s->last = k;
    return k->values;
}

void weft__hold_set(weft__stage *s, const char *path, const weft__kind *kind, weft__number as, void *to,
                    bool device)
{
    size_t bytes = weft__kind_bytes(kind) / weft__number_bytes(kind->type) * weft__number_bytes(as);
    void *values = weft__hold(s, to, bytes, device);
    if (values)
        weft__h5_read(s->h, path, kind, as, values);
}

void weft__discard(weft__stage *s)
{
    for (weft__held *k = s->first, *next; k; k = next) {
        next = k->next;
        free(k);
    }
    s->first = s->last = NULL;
}

void weft__deliver(weft *w, weft__stage *s)      /* in the order of reading: the later one wins */
{
    for (const weft__held *k = s->first; k; k = k->next) {
        if (!k->bytes)
            continue;
        if (k->device)
            w->dev.k->upload(&w->dev, k->to, k->values, k->bytes);
        else
            memcpy(k->to, k->values, k->bytes);
    }
    weft__discard(s);
}
