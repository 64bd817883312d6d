/* tape.h - what autograd keeps with a context: the tape, the walk back along it, the layer at work.
 * core/core.h has weft__node, what it keeps with a tensor. */
#ifndef WEFT_TAPE_H
#define WEFT_TAPE_H
#include "autograd/api_op.h"
#include "core/core.h"

enum { WEFT__CLASSES = 192, WEFT__RESULTS = 6 };

/* then: tape->changes when it ran */
typedef struct weft__entry { weft_call *call; uint64_t then; bool spent; } weft__entry;
typedef struct weft__drops { struct weft__drops *next; uint64_t name, calls; } weft__drops;

/* a raw function at work: of which call, forwards or back; host.c's copies and their room */
typedef struct weft__work {
    struct weft__work *before;
    const weft_call *call; bool back;
    char *at, *end; int64_t from, to; struct weft__copy *copies;      /* from, to: in the notes */
} weft__work;

struct weft__tape {
    weft__entry *entry; int64_t entries, room;
    /* a call not yet run, see accumulate.c, and what runs it */
    weft_call *deferred; bool (*run)(weft_call *);
    /* a walk that is not recorded is at work; by weft_backward; its number */
    bool walking, to_parameters; uint32_t walk;
    bool in_walk;                                /* any walk is at work, recorded or not */
    /* while a fused backward runs: what it gives to each of its ragged inputs */
    weft_tensor **apart;
    /* buffers of gradients: free ones; what weft_gradients has handed out, newest first */
    weft_tensor *spare[WEFT__CLASSES], *given;
    uint64_t changes;                            /* of parameters and buffers, so far */
    weft__drops *drops;                          /* calls of each dropout in this step */
    /* the operator whose raw function is at work; whose entry a walk passes */
    const char *raw, *passing;
    weft__work *work;                            /* the raw function at work; NULL: none */
    /* the layer that is running, for messages; set with the function that tells its path */
    const struct weft_module *scope;
    const char *(*scope_name)(const struct weft_module *, char *buffer, size_t);
    /* watching: it is at work, and what it applies itself is no result to it */
    void (*watch)(const weft_tensor *, const char *, void *); void *watch_user; bool watching;
};

/* The context's, made at the first call; NULL and a sticky error without memory. What applies operators or
 * makes modules has it. */
struct weft__tape *weft__tape_of(weft *);
void weft__run_deferred(weft *);                 /* runs the call that waits, if there is one */
/* The numbers of a parameter or a buffer have changed: what has read them before no longer agrees with
 * them, see versions.c. */
static inline void weft__changed(weft_tensor *kept) { kept->node.changed = ++kept->w->tape->changes; }
#endif
