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
    k->to = to;
    k->bytes = bytes;
    k->device = device;
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

static void deliver(weft *w, const weft__held *k)
{
    if (k->device && k->bytes)
        w->dev.k->upload(&w->dev, k->to, k->values, k->bytes);
    else if (k->bytes)
        memcpy(k->to, k->values, k->bytes);
}

weft_status weft__stage_end(weft__stage *s, const weft_module *m)
{
    weft *w = m ? m->w : NULL;
    weft_status status = weft__h5_end(s->h);
    for (weft__held *k = s->first, *next; k; k = next) {          /* in the order of reading: the last wins */
        next = k->next;
        if (!status)
            deliver(w, k);
        free(k);
    }
    if (!status && m)
        weft__all_changed(m->root);
    if (!status && w && w->dev.failure[0])
        status = weft__file_fail(WEFT_EDEVICE, "the numbers read did not reach the device: %s",
                                 w->dev.failure);
    return status;
}
