/* tape.h - what autograd keeps with a tensor (its node) and with a context (the tape, the walk back along it,
 * the layer at work). */
#ifndef WEFT_TAPE_H
#define WEFT_TAPE_H
#include "autograd/api_op.h"
#include "autograd/api_ragged.h"
#include "autograd/api_tape.h"
#include "core/context.h"
#include "core/device.h"
#include "core/ragged.h"

/* What autograd keeps with each tensor, in its slot. */
typedef struct __attribute__((may_alias)) weft__node {
    int64_t born;                                /* the tape entry after it; 0: no operator's result */
    weft_tensor *grad; /* during a walk; a parameter's: its piece of the flat vector */
    uint32_t reached;                            /* by the walk of this number: depends on a needed one */
    uint32_t kept;                               /* by the walk of this number: its gradient stays */
    int16_t class_;                              /* size class of a gradient's buffer */
    bool parameter;
    bool gradient;                               /* a parameter's gradient */
    bool frozen;
    bool given;                                  /* a gradient has come since the last step or zero_grad */
    bool walked;                                 /* weft_backward has begun here */
    bool unrecorded;                             /* an operator's result while the tape was off */
    const struct weft__lookup *lookup;           /* see table_rows.c; NULL: no rows of a table */
    const char *path;                            /* of a parameter or buffer */
    uint64_t changed;                            /* tape->changes after its numbers changed last */
    struct weft__kept *packed;                   /* of one of step 0: see packed_weights.h; NULL: nothing */
    const weft_tensor *base; /* the one of step 0 whose numbers these are, as a view; or NULL */
    /* a plain tensor whose rows are stored as those of this ragged one, see row_order.c; NULL: in the user's
     * order, or unknown */
    const weft_tensor *order;
} weft__node;
_Static_assert(sizeof(weft__node) <= sizeof((weft_tensor){ 0 }.slot), "a node fits into a tensor's slot");
static inline weft__node *weft__node_of(const weft_tensor *t) { return (weft__node *)(uintptr_t)t->slot; }

/* Who is told how weft_backward gets on: before, of every use of a parameter by an entry of the tape, those
 * of one from the lowest entry on; then of each entry that has been passed. closed: there must be none. */
typedef struct weft__watch {
    void (*used)(void *user, const weft_tensor *parameter, int64_t entry);
    void (*passed)(void *user, int64_t entry);
    bool closed;
} weft__watch;

enum { WEFT__CLASSES = 192, WEFT__RESULTS = 6 };

/* then: tape->changes when it ran */
typedef struct weft__entry { weft_call *call; uint64_t then; bool spent; } weft__entry;
typedef struct weft__drops { struct weft__drops *next; uint64_t name, calls; } weft__drops;

/* a raw function at work: of which call, forwards or back; host_mirror.c's copies and their room */
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
    const weft__watch *walk_watch; void *walk_user;        /* NULL: no one */
    /* the layer that is running, for messages; set with the function that tells its path */
    const struct weft_module *scope;
    const char *(*scope_name)(const struct weft_module *);
    /* watching: it is at work, and what it applies itself is no result to it */
    void (*watch)(const weft_tensor *, const char *, void *); void *watch_user; bool watching;
};

/* The context's, made at the first call; NULL and a sticky error without memory. What applies operators or
 * makes modules has it. */
struct weft__tape *weft__tape_of(weft *);
void weft__run_deferred(weft *);                 /* runs the call that waits, if there is one */
/* The numbers of a parameter or a buffer have changed: what has read them before no longer agrees with
 * them, see stale_inputs.c. */
static inline void weft__changed(weft_tensor *kept)
{
    weft__node_of(kept)->changed = ++kept->w->tape->changes;
}
#endif
