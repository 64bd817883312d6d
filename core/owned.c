/* owned.c - objects that a context owns until it is closed: modules, optimisers, streams, the tape. Each is a
 * zeroed block after a header with its functions for weft_close and weft_recover. */
#include <string.h>
#include "core/inside.h"

static void *link_in(weft *w, weft__owned *o, size_t bytes, void (*end)(void *), void (*recover)(void *))
{
    if (!o)
        return NULL;
    *o = (weft__owned){ inside(w)->owned, end, recover };
    inside(w)->owned = o;
    return memset(o + 1, 0, bytes);
}

void *weft__own(weft *w, size_t bytes, void (*end)(void *), void (*recover)(void *))
{
    return link_in(w, weft__allocate(w, sizeof(weft__owned) + bytes), bytes, end, recover);
}

void *weft__try_own(weft *w, size_t bytes)
{
    return link_in(w, weft__try_allocate(w, sizeof(weft__owned) + bytes), bytes, NULL, NULL);
}

void *weft__next_owned(const weft *w, void (*end)(void *), const void *after)
{
    const weft__owned *last = after;
    weft__owned *o = last ? last[-1].next : inside(w)->owned;
    while (o && o->end != end)
        o = o->next;
    return o ? o + 1 : NULL;
}

void weft__end_owned(weft *w)
{
    for (weft__owned *o = inside(w)->owned, *next; o; o = next) {
        next = o->next;
        if (o->end)
            o->end(o + 1);
        weft__release(w, o);
    }
}

void weft__recover_owned(weft *w)
{
    for (weft__owned *o = inside(w)->owned; o; o = o->next)
        if (o->recover)
            o->recover(o + 1);
}
