/* tape.c - creates the tape at its first use, and ends its data with the context's steps and rewinds. */
#include <string.h>
#include "autograd/tape.h"

void weft__run_deferred(weft *w)
{
    weft_call *deferred = w->tape->deferred;
    w->tape->deferred = NULL;
    if (deferred)
        w->tape->run(deferred);
}

static void cleared(struct weft__tape *t)
{
    memset(t->spare, 0, sizeof t->spare);
    t->entries = 0;
    t->given = NULL;
    t->deferred = NULL;
    t->drops = NULL;
    t->scope = NULL;
    t->raw = t->passing = NULL;
    t->walking = t->in_walk = t->to_parameters = false;
}

static void rewound(struct weft__tape *t, const weft_mark *m)
{
    /* Returns buffers of weft_gradients to the free lists when their tensors end. */
    for (weft_tensor *s; (s = t->given) && weft__node_of(s)->born >= m->at[WEFT__MARK_HEADERS];) {
        t->given = weft__node_of(s)->grad;
        weft__node_of(s)->grad = t->spare[weft__node_of(s)->class_], t->spare[weft__node_of(s)->class_] = s;
    }
    t->entries = m->at[WEFT__MARK_ENTRIES];
    t->deferred = NULL;
}

static void forgotten(weft *w, struct weft__tape *t)
{
    weft__release(w, t->entry);
    t->entry = NULL;
    t->entries = t->room = 0;
}

static bool layer(const struct weft__tape *t, char *path)
{
    if (t->scope)
        snprintf(path, 256, "%s", t->scope_name(t->scope));
    return t->scope;
}

static int64_t on_event(weft *w, weft__event event, void *with)
{
    struct weft__tape *t = w->tape;
    switch (event) {
    case WEFT__CLEARED:   cleared(t); break;
    case WEFT__REWOUND:   rewound(t, with); break;
    case WEFT__READ:      weft__run_deferred(w); break;
    case WEFT__MEMORY_RELEASED: forgotten(w, t); break;
    case WEFT__ENTRIES:   return t->entries;
    case WEFT__LAYER:     return layer(t, with);
    }
    return 0;
}

typedef struct { weft *w; struct weft__tape tape; } owned;

static void end_tape(void *p)
{
    owned *o = p;
    weft__release(o->w, o->tape.entry);
    o->w->tape = NULL;
    o->w->hook = NULL;
}

struct weft__tape *weft__tape_of(weft *w)
{
    owned *o = w->tape ? NULL : weft__own(w, sizeof *o, end_tape, NULL);
    if (o) {
        o->w = w;
        w->tape = &o->tape;
        w->hook = on_event;
    }
    return w->tape;
}
