/* context.h - the part of a context that all levels share. core/inside.h has the rest, for core/ only. */
#ifndef WEFT_CORE_CONTEXT_H
#define WEFT_CORE_CONTEXT_H
#include "core/memory.h"
#include "core/random.h"
#include "core/shard.h"
#include "core/tensor.h"

/* Events that core/ reports to the level above, by w->hook. Some pass data in `with`. */
typedef enum {
    WEFT__CLEARED, /* the step has ended */
    WEFT__REWOUND, /* with: a weft_mark; later headers and calls are about to end */
    WEFT__READ, /* a tensor is about to be read */
    WEFT__MEMORY_RELEASED, /* memory kept for steps is released */
    WEFT__ENTRIES, /* returns the number of entries of the tape */
    WEFT__LAYER /* with: 256 bytes for the path of the running layer; returns whether a layer runs */
} weft__event;

struct weft {
    weft__device dev;
    weft_status status;
    const char *running;                         /* running operator or function, for messages */
    uint64_t step;
    bool recording;
    bool training;
    bool lean;                            /* all recurrent layers recompute their gates, see weft_opts.lean */
    bool profiling;                              /* operators are timed, see profile.h */
    bool no_context;                       /* context of NULL or of a failed weft_open */
    weft__draws random;
    weft_tensor nil;                             /* inert tensor, the result of a failed operator */
    const weft__shard *shard;                    /* shard that is being computed, or NULL */
    struct weft__check *check;                   /* state of WEFT_CHECK=1, see check.h, or NULL */
    int64_t kept_bytes;                          /* cached packed weights */
    int64_t kept_limit;                          /* limit of kept_bytes; 0: none; negative: no cache */
    /* State and event handler of the level above. Both are NULL until its first use. */
    struct weft__tape *tape;
    int64_t (*hook)(weft *, weft__event, void *with);
};

static inline int64_t weft__notify(weft *w, weft__event event, void *with)
{
    return w->hook ? w->hook(w, event, with) : 0;
}

/* Returns the value that an option means: 0 is the default, WEFT_ZERO the number 0. */
static inline double weft__or(double given, double by_default)
{
    return given == 0 ? by_default : given == WEFT_ZERO ? 0 : given;
}
static inline int64_t weft__or_count(int64_t given, int64_t by_default) { return given ? given : by_default; }

/* ---- error.c ---- */
#define weft__fail weft_fail                     /* formats "layer: text"; later failures are ignored */
weft *weft__no_context(void);                    /* the context of NULL: always failed */
weft *weft__no_memory(void);                     /* returned by weft_open without memory: always failed */
static inline bool weft__is_no_context(const weft *w) { return w->no_context; }
/* Replaces the message of a context that has failed. */
void  weft__explain(weft *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* weft__mute_errors disables the callback of weft_on_error and returns it. weft__unmute_errors enables it
 * again. forget: also removes the failure that occurred in between. */
typedef void weft__listener(weft_status, const char *, void *);
weft__listener *weft__mute_errors(weft *);
void  weft__unmute_errors(weft *, weft__listener *, bool forget);
/* Turns a fault of a kernel, such as an index out of range, into the context's error. */
void  weft__check_faults(weft *, const char *source);

/* ---- callback.c ---- */
/* A function of the program that runs inside a function of the library. depth: number of nested callbacks.
 * kind, name: for messages. floor: the function around the callback uses the step's memory below this mark,
 * so weft_rewind stops there. allocator: the callback is an allocator and must not use the context. */
typedef struct weft__callback {
    int depth;
    bool allocator;
    const char *kind;
    const char *name;
    weft_mark floor;
} weft__callback;
/* Surround each call of a function of the program. kind: "the step of the cell". name: of the cell or
 * operator, or NULL. begin returns the value that end requires. now returns a value that changes nothing. */
weft__callback weft__callback_begin(weft *, const char *kind, const char *name);
weft__callback weft__callback_current(const weft *);
void  weft__callback_end(weft *, weft__callback outer);
/* Returns true, and fails the context, if a callback runs. */
bool  weft__callback_refuses(weft *, const char *function);
enum { WEFT__CALLBACK_TEXT = 160 };
const char *weft__callback_text(const weft *, char text[WEFT__CALLBACK_TEXT]);

/* ---- missing_clear.c: counts weft_backward and weft_optim_step, to warn of a missing weft_clear ---- */
void  weft__count_backward(weft *);
void  weft__count_update(weft *);
bool  weft__log_is_off(void);                      /* whether WEFT_LOG is 0 */
#endif
