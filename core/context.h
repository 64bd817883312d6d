/* context.h - what all floors share of a context. core/inside.h has the rest, for core/ alone. */
#ifndef WEFT_CORE_CONTEXT_H
#define WEFT_CORE_CONTEXT_H
#include "core/memory.h"
#include "core/random.h"
#include "core/shard.h"
#include "core/tensor.h"

/* What this floor tells the one above by w->hook. */
typedef enum {
    WEFT__CLEARED, /* the step has ended */
    WEFT__REWOUND, /* with: a weft_mark; later headers and calls are about to end */
    WEFT__READ, /* numbers are about to be read */
    WEFT__FORGOTTEN, /* memory that steps have needed goes */
    WEFT__ENTRIES, /* returns how many entries the tape has */
    WEFT__LAYER /* with: room for 256 bytes, for the path of the layer that
                                                  * runs; returns whether one does */
} weft__event;

struct weft {
    weft__device dev;
    weft_status status;
    const char *running;                         /* the operator or function at work, for messages */
    uint64_t step;
    bool recording;
    bool training;
    bool lean;                                   /* every recurrent layer is */
    bool profiling;                              /* operators are timed, see profile.h */
    bool no_context;                             /* none that was opened: it has failed for good */
    weft__draws random;
    weft_tensor nil;                             /* inert: the result of what has failed */
    const weft__shard *shard;                    /* at work; NULL: none */
    struct weft__check *check;                   /* of WEFT_CHECK, see check.h; NULL: none */
    int64_t kept_bytes;                          /* packed weights */
    int64_t kept_most;                           /* the most of them; 0: any, below 0: none */
    /* The slot of the floor above, and how it hears of events; both NULL until its first use. */
    struct weft__tape *tape;
    int64_t (*hook)(weft *, weft__event, void *with);
};

static inline int64_t weft__tell(weft *w, weft__event event, void *with)
{
    return w->hook ? w->hook(w, event, with) : 0;
}

/* An option as it is meant: 0 is the default, WEFT_ZERO a true 0. */
static inline double weft__or(double given, double by_default)
{
    return given == 0 ? by_default : given == WEFT_ZERO ? 0 : given;
}
static inline int64_t weft__or_count(int64_t given, int64_t by_default) { return given ? given : by_default; }

/* ---- error.c ---- */
#define weft__fail weft_fail                     /* formats "layer: text"; only the first failure counts */
weft *weft__no_context(void);                    /* the context of NULL: always failed */
weft *weft__no_memory(void);                     /* what weft_open returns without memory: always failed */
static inline bool weft__is_no_context(const weft *w) { return w->no_context; }
/* Replaces the message of a context that has failed. */
void  weft__explain(weft *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Between the two, the program's function of weft_on_error hears nothing. forget: what has failed since is
 * no failure of the context. */
typedef void weft__listener(weft_status, const char *, void *);
weft__listener *weft__hush(weft *);
void  weft__unhush(weft *, weft__listener *, bool forget);
/* An index out of range becomes the context's error. */
void  weft__check_faults(weft *, const char *what);

/* ---- callback.c ---- */
/* A function of the program that runs inside a function of the library. depth: how many such functions run,
 * one inside the other; kind and name: for messages. floor: the function around the callback uses the step's
 * memory below it, so weft_rewind inside the callback stops there. An allocator must not use the context at
 * all. */
typedef struct weft__callback {
    int depth;
    bool allocator;
    const char *kind;
    const char *name;
    weft_mark floor;
} weft__callback;
/* Stand around each call of a function of the program. kind: "the step of the cell"; name: of the cell, the
 * operator, .., or NULL. begin returns what end expects, and now what would change nothing. */
weft__callback weft__callback_begin(weft *, const char *kind, const char *name);
weft__callback weft__callback_now(const weft *);
void  weft__callback_end(weft *, weft__callback outer);
/* If a callback runs, the context fails, and the function does nothing. */
bool  weft__callback_refuses(weft *, const char *function);
enum { WEFT__CALLBACK_TEXT = 160 };
const char *weft__callback_text(const weft *, char text[WEFT__CALLBACK_TEXT]);

/* ---- missing_clear.c: counts weft_backward and weft_optim_step, to warn of a forgotten weft_clear ---- */
void  weft__count_walk(weft *);
void  weft__count_update(weft *);
bool  weft__silenced(void);                      /* by WEFT_LOG=0 */
#endif
