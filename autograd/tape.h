/* tape.h - the data that autograd stores with a tensor (its node) and with a context (the tape).
 *
 * An entry of the tape is one call of an operator. Backward passes are numbered, so marks in the nodes need
 * no reset. */
#ifndef WEFT_TAPE_H
#define WEFT_TAPE_H
#include "autograd/api_op.h"
#include "autograd/api_ragged.h"
#include "autograd/api_tape.h"
#include "core/context.h"
#include "core/device.h"
#include "core/ragged.h"

/* Data of autograd for each tensor, stored in the tensor's slot. */
typedef struct __attribute__((may_alias)) weft__node {
    int64_t entry_number; /* 1 + index of the tape entry that made it; 0: not a result */
    weft_tensor *grad; /* gradient in a backward pass; of a parameter: in the root's flat vector */
    uint32_t reached_pass; /* last backward pass in which it depends on a needed tensor */
    uint32_t kept_pass; /* last backward pass that keeps its gradient */
    int16_t class_;                              /* size class of a gradient's buffer */
    bool parameter;
    bool gradient;                               /* is the gradient of a parameter */
    bool frozen;
    bool has_gradient;                           /* got a gradient since the last step or zero_grad */
    bool loss_used;                              /* weft_backward has started from it */
    bool unrecorded;                             /* result of an operator while the tape was off */
    const struct weft__lookup *lookup;           /* see table_rows.c; NULL: not rows of a table */
    const char *path;                            /* path of a parameter or buffer */
    uint64_t version;                            /* tape->version after the last change of its numbers */
    struct weft__packed *packed_copies; /* of a tensor of step 0, see packed_weights.h; or NULL */
    const weft_tensor *base; /* for a view: the tensor of step 0 with the same numbers; or NULL */
    /* For a plain tensor, a ragged tensor with the same order of rows, see row_order.c. NULL: the user's
     * order, or unknown. */
    const weft_tensor *order;
} weft__node;
_Static_assert(sizeof(weft__node) <= sizeof((weft_tensor){ 0 }.slot), "a node fits into a tensor's slot");
static inline weft__node *weft__node_of(const weft_tensor *t) { return (weft__node *)(uintptr_t)t->slot; }

/* Callbacks of weft_backward. on_use: before the pass, for each use of a parameter, in ascending order of
 * entries. on_entry: after each entry. closed: weft_backward is an error. */
typedef struct weft__watch {
    void (*on_use)(void *user, const weft_tensor *parameter, int64_t entry);
    void (*on_entry)(void *user, int64_t entry);
    bool closed;
} weft__watch;

enum { WEFT__CLASSES = 192, WEFT__RESULTS = 6 };

/* An operator on the tape. version: tape->version at the call. consumed: saved numbers are overwritten. */
typedef struct weft__entry { weft_call *call; uint64_t version; bool consumed; } weft__entry;
typedef struct weft__drops { struct weft__drops *next; uint64_t name, calls; } weft__drops;

/* A running raw function, forward or backward, and the host copies of host_mirror.c. free: memory for
 * more copies. notes_begin, notes_end: positions in the arena of notes. */
typedef struct weft__work {
    struct weft__work *outer;
    const weft_call *call; bool back;
    char *free, *free_end; int64_t notes_begin, notes_end; struct weft__copy *copies;
} weft__work;

struct weft__tape {
    weft__entry *entry; int64_t entries, room;
    /* A call that waits, see accumulate.c, and the function that runs it; or NULL. */
    weft_call *deferred; bool (*run)(weft_call *);
    /* unrecorded_pass: an unrecorded backward pass is running. for_parameters: weft_backward started it.
     * pass: number of the last backward pass. */
    bool unrecorded_pass, for_parameters; uint32_t pass;
    bool in_pass; /* a backward pass is running, recorded or not */
    /* While a fused backward runs: a gradient buffer for each ragged input. */
    weft_tensor **ragged_grads;
    /* Gradient buffers: free ones by size class; those returned by weft_gradients, newest first. */
    weft_tensor *free_buffers[WEFT__CLASSES], *lent_buffers;
    uint64_t version;                            /* number of changes of parameters and buffers */
    weft__drops *dropouts;                       /* number of calls of each dropout in this step */
    /* raw_name: operator whose raw function runs. entry_name: operator whose backward runs. Or NULL. */
    const char *raw_name, *entry_name;
    weft__work *work;                            /* running raw function; or NULL */
    const weft__watch *pass_watch; void *pass_user; /* watch may be NULL */
    /* Module of the running layer, for messages, and the function that returns its path. */
    const struct weft_module *scope;
    const char *(*scope_name)(const struct weft_module *);
    /* Callback of weft_on_result. watching: it is running; operators that it calls do not call it. */
    void (*watch)(const weft_tensor *, const char *, void *); void *watch_user; bool watching;
};

/* Returns the tape of the context and makes it at the first call. Without memory returns NULL and fails the
 * context. A context that has applied an operator or made a module has a tape. */
struct weft__tape *weft__tape_of(weft *);
void weft__run_deferred(weft *);                 /* runs the waiting call, if any */
/* Records that the numbers of a parameter or buffer have changed. Operators that read the old numbers then
 * cannot be differentiated, see stale_inputs.c. */
static inline void weft__mark_changed(weft_tensor *kept)
{
    weft__node_of(kept)->version = ++kept->w->tape->version;
}
#endif
