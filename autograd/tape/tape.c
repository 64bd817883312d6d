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

static void clear_tape(struct weft__tape *t)
{
    memset(t->free_buffers, 0, sizeof t->free_buffers);
    t->entries = 0;
    t->lent_buffers = NULL;
    t->deferred = NULL;
    t->dropouts = NULL;
    t->scope = NULL;
    t->raw_name = t->entry_name = NULL;
    t->unrecorded_pass = t->in_pass = t->for_parameters = false;
}

static void rewind_tape(struct weft__tape *t, const weft_mark *m)
{
    const int64_t end = m->at[WEFT__MARK_HEADERS];
    /* Returns buffers of weft_gradients to the free lists when their tensors end. */
    for (weft_tensor *s; (s = t->lent_buffers) && weft__node_of(s)->entry_number >= end;) {
        t->lent_buffers = weft__node_of(s)->grad;
        weft__node_of(s)->grad = t->free_buffers[weft__node_of(s)->class_];
        t->free_buffers[weft__node_of(s)->class_] = s;
    }
    t->entries = m->at[WEFT__MARK_ENTRIES];
    t->deferred = NULL;
}

static void free_entries(weft *w, struct weft__tape *t)
{
    weft__release(w, t->entry);
    t->entry = NULL;
    t->entries = t->room = 0;
}

static bool layer_path(const struct weft__tape *t, char *path)
{
    if (t->scope)
        snprintf(path, 256, "%s", t->scope_name(t->scope));
    return t->scope;
}

static int64_t on_event(weft *w, weft__event event, void *with)
{
    struct weft__tape *t = w->tape;
    switch (event) {
    case WEFT__CLEARED:   clear_tape(t); break;
    case WEFT__REWOUND:   rewind_tape(t, with); break;
    case WEFT__READ:      weft__run_deferred(w); break;
    case WEFT__MEMORY_RELEASED: free_entries(w, t); break;
    case WEFT__ENTRIES:   return t->entries;
    case WEFT__LAYER:     return layer_path(t, with);
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
