/* core.h - what the library's own files know of each other's insides: arenas, batches, forms, tensors, the
 * context. */
#ifndef WEFT_CORE_H
#define WEFT_CORE_H
#include <sched.h>
#include <sys/types.h>
#include "core/api_core.h"
#include "core/kernels.h"

enum { WEFT__BLOCKS = 48, WEFT__MESSAGE = 512 };

/* ---- memory ---- */
/* grows by blocks; cleared, it becomes one block of what was needed */
typedef struct weft__arena {
    /* left: used of it when the next one was begun */
    struct { char *base; int64_t start, size, left; } block[WEFT__BLOCKS];
    /* used: of block[at]; most: what was ever needed at once, if it were one block; first: size of a first
     * block */
    int n, at; int64_t used, most, first;
    /* blocks are kept and never poisoned: stale headers are looked at */
    bool stays;
    bool device;                                 /* device memory */
} weft__arena;

/* of a device apart */
typedef struct weft__block { struct weft__block *next; void *memory; size_t bytes; bool lasts; } weft__block;

/* ---- ragged batches ---- */
typedef struct weft_batch weft_batch;
typedef struct weft__order {                     /* lengths sorted, the longest first, ties as they came */
    /* [longest], [longest + 1]: how many are longer than t, and their sum over the t before */
    weft__ints live, start;
    int32_t *rank;                               /* [n] the place of each */
} weft__order;
/* rows of a placement as columns of a recurrence, longest first, see fold.c */
typedef struct weft__fold {
    int64_t columns, steps;                      /* columns that are not empty */
    weft__order order;
    weft__ints reset[2];                         /* as in weft__recurrence; forwards, backwards */
} weft__fold;
typedef struct weft__place {
    struct weft__place *next; int64_t rows, width; int32_t *row, *column;
    int64_t cells;                               /* rows of a tensor: rows * width, or those of the fold */
    const struct weft__place *by_time;           /* the same placement, folded; NULL: not asked for yet */
    const weft__fold *fold;                      /* NULL: cells lie row by row; else step by step */
} weft__place;
typedef struct weft__form {                      /* all of a tensor but its numbers: y->f = x->f */
    weft_dtype type; int rank; int64_t size[WEFT_RANK];
    weft_batch *batch; weft_layout layout; weft_align align;     /* batch NULL: a plain tensor */
    const weft__place *place;                    /* of the layout rows */
} weft__form;

typedef struct weft__map { struct weft__map *next; weft__form from, to; weft__ints index; } weft__map;
/* see rewind.c */
typedef struct weft__link { struct weft__link *next; void *pointer, *was; int64_t at; } weft__link;
/* B sequences; equal lengths and ids are one batch within a step */
struct weft_batch {
    /* those of a step are a tree, by two bits of the hash a level */
    weft *w; uint64_t hash; weft_batch *child[4];
    int64_t n, tokens, longest;
    bool own_ids;                                /* ids were given; else 0 .. n-1, or a shard's */
    bool nobody;                                 /* none were, and those of the shard at work do not fit */
    /* [n] as the user gave them, host; before NULL: no sequence has tokens before it */
    int32_t *len; int64_t *id; int32_t *before;
    weft__ints offset;                           /* [n + 1] concat: first row of each sequence */
    weft__ints sorted, unsorted;                 /* [n] packed: longest first, and back */
    /* [longest], [longest + 1] packed: rows of each step, its first row */
    weft__ints live, start;
    weft__map *maps;                             /* every gather between two layouts asked for so far */
    struct weft__rows {
        struct weft__rows *next;
        weft__form f;
        weft__ints sequence, position;
        int64_t *id;
    } * rows;
    weft__place *places;
    struct weft__ends *ends;                     /* of rnn/states.c */
};

/* ---- tensors ---- */
struct weft_module;
/* What autograd keeps with each tensor. This floor hands it out zeroed and reads nothing of it. */
typedef struct weft__node {
    int64_t born;                                /* the tape entry after it; 0: no operator's result */
    /* during a walk; a parameter's: always, its piece of the flat vector */
    weft_tensor *grad;
    /* by the walk of this number: depends on a needed one; its gradient stays */
    uint32_t reached, kept;
    /* size class of a gradient's buffer; gradient: a parameter's */
    int16_t class_; bool parameter, gradient, frozen;
    /* a gradient has come since the last step of an optimiser or zero_grad */
    bool given;
    bool walked;                                 /* weft_backward has begun here */
    bool unrecorded;                             /* an operator's result while the tape was off */
    const struct weft__lookup *lookup;           /* see autograd/origin.c; NULL: no rows of a table */
    /* of a parameter or buffer: its path, and tape->changes after its numbers changed last */
    const char *path; uint64_t changed;
    struct weft__kept *packed;                   /* of one of step 0: see autograd/kept.h; NULL: nothing */
    /* the one of step 0 whose numbers these are, as a view; NULL: none */
    const weft_tensor *base;
    /* a plain tensor whose rows are stored as those of this ragged one, see autograd/row_order.c; NULL: in
     * the user's order, or unknown */
    const weft_tensor *order;
} weft__node;
struct weft_tensor {
    weft *w; uint64_t step;                      /* step 0: until weft_close */
    weft__form f; real *data;                    /* device memory; int32_t * for WEFT_I32 */
    weft__node node;
};

/* ---- the context ---- */
typedef struct weft__owned {                     /* what lives until weft_close; newest first */
    struct weft__owned *next;
    void (*end)(void *); void (*recover)(void *);
} weft__owned;

/* What autograd keeps with a context lies behind w->tape, and is told by w->hook what happens here; both
 * NULL until its first use. */
typedef enum {
    WEFT__CLEARED,                               /* the step has ended */
    /* with: the weft_mark, whose later headers and calls are about to end */
    WEFT__REWOUND,
    WEFT__READ,                                  /* numbers are about to be read */
    WEFT__FORGOTTEN,                             /* memory that steps have needed goes */
    WEFT__ENTRIES,                               /* returns how many entries the tape has */
    /* with: room for 256 bytes, set to the path of the layer that runs; returns whether one does */
    WEFT__LAYER
} weft__event;
struct weft__tape;

/* outside: the count outside of the shard at work */
struct weft_stream { weft_stream *next; weft *w; char name[48]; uint64_t key, count, outside; };

/* A part of a batch that is worked on by itself, see shard.c and parallel/. id [n]: the sequences' numbers
 * in the whole batch, of the host and of the device; salt: what its streams draw by, 0: as outside; number:
 * 1 + which of several it is, 0: the whole batch */
typedef struct weft__shard {
    int64_t n; const int64_t *id, *device_id; uint64_t salt; int number;
} weft__shard;

/* Who is told how weft_backward gets on: before, of every use of a parameter by an entry of the tape, those
 * of one from the lowest entry on; then of each entry that has been passed. closed: there must be none. */
typedef struct weft__watch {
    void (*used)(void *user, const weft_tensor *parameter, int64_t entry);
    void (*passed)(void *user, int64_t entry);
    bool closed;
} weft__watch;

/* A function of the program that runs inside a function of the library. depth: how many such functions run,
 * one inside the other; kind and name: for messages. floor: the function around the callback uses the step's
 * memory below it, so weft_rewind inside the callback stops there. An allocator must not use the context at
 * all. */
typedef struct weft__callback {
    int depth; bool allocator;
    const char *kind, *name;
    weft_mark floor;
} weft__callback;

struct weft {
    weft__device dev; weft_status status; char message[WEFT__MESSAGE];
    void (*on_error)(weft_status, const char *, void *); void *on_error_user;
    /* none that was opened: it has failed for good, and only its `running` is ever written */
    bool no_context;
    bool recording, training;
    bool lean;                                   /* every recurrent layer is */
    bool profiling;                              /* operators are timed, see profile.h */
    int64_t print_limit;                         /* of an axis so many are printed; 0: all */
    uint64_t step, seed, draw;                   /* draw: the number of this step's dropout masks; saved */
    bool counted;                                /* draw has moved on already, after a batch's shards */
    struct weft__tape *tape; int64_t (*hook)(weft *, weft__event, void *with);
    /* host: headers by the step's parity; calls; batches; what no rewind ends */
    weft__arena heads[2], notes, keep, lasting;
    /* device: results; gradients (no rewind ends them); index arrays */
    weft__arena data, grads, maps;
    weft_tensor nil;                             /* inert: the result of what has failed */
    weft_batch *batches; weft__link *links;
    const weft__shard *shard;                    /* at work; NULL: none */
    const weft__watch *watch; void *watch_user;  /* NULL: no one */
    weft__owned *owned; weft_stream *streams; weft__block *blocks;
    weft__callback callback;                     /* the innermost one that runs */
    /* the program's own memory functions; all NULL: malloc and free */
    struct { void *(*allocate)(size_t, void *); void (*release)(void *, void *); void *user; } memory;
    const char *running;                         /* the operator or function at work, for messages */
    uint32_t usual_maps;                             /* see layout.c */
    struct { uint64_t step; int walks, updates; bool told; } unended;      /* see forgotten.c */
    int64_t allocations, host_bytes, device_bytes, host_peak, device_peak;
    int64_t kept_bytes, kept_most;               /* packed weights; the most of them, 0: any, below 0: none */
    void *search; int64_t search_bytes;          /* memory of the last beam search, for the next one */
    struct weft__profile *profile;               /* see profile.h; NULL: none so far */
    int64_t opened;                              /* when, if WEFT_LOG wants the end told; else 0 */
    struct weft__check *check;                   /* of WEFT_CHECK, see check.h; NULL: none */
    char missing[256];                           /* what weft__wrong says of NULL; "": the usual */
};

static inline int64_t weft__tell(weft *w, weft__event event, void *with)
{
    return w->hook ? w->hook(w, event, with) : 0;
}

/* error.c: formats "layer: text"; only the first failure counts. */
#define weft__fail weft_fail
weft *weft__no_context(void);                       /* the context of NULL: always failed */
/* what weft_open returns without memory: always failed, the same in every thread */
weft *weft__no_memory(void);
/* one of those two, of whichever thread */
static inline bool weft__is_no_context(const weft *w) { return w->no_context; }
/* arena.c */
/* what pieces of an arena begin at and end before, in bytes */
enum { WEFT__LINE = 64 };
static inline int64_t weft__whole_lines(int64_t bytes)
{
    return (bytes + WEFT__LINE - 1) & ~(int64_t)(WEFT__LINE - 1);
}
/* Only test programs define it (tests/failing_malloc.c): whether this call of weft__take fails. */
__attribute__((weak, visibility("default"))) bool weft__test_take_fails(const weft *);
/* NULL and a sticky error if there is none */
void   *weft__take(weft *, weft__arena *, int64_t bytes);
void    weft__back_to(weft *, weft__arena *, int64_t position);
int64_t weft__position(const weft__arena *);
void    weft__arena_clear(weft *, weft__arena *);
void    weft__arena_end(weft *, weft__arena *);
void    weft__arena_forget(weft *, weft__arena *);                /* its memory, and how large it was */
void   *weft__allocate(weft *, size_t);          /* host memory until weft__release */
void   *weft__try_allocate(weft *, size_t);      /* NULL, and no error, if there is none */
void    weft__release(weft *, void *);
void   *weft__device_allocate(weft *, size_t);
void    weft__device_release(weft *, void *);
/* forgotten.c: counts a weft_backward or weft_optim_step of this step, and tells the program that it has
 * forgotten weft_clear */
void    weft__count_walk(weft *), weft__count_update(weft *);
bool    weft__silenced(void);                    /* by WEFT_LOG=0 */
/* owned.c */
/* zeroed, until the context ends; end and recover may be NULL */
void   *weft__own(weft *, size_t bytes, void (*end)(void *), void (*recover)(void *));
/* the same, with nothing to do at the end; NULL, and no error, if there is no memory */
void   *weft__own_if_it_can(weft *, size_t bytes);
void    weft__end_owned(weft *), weft__recover_owned(weft *);
/* rewind.c */
enum { WEFT__AT_ENTRIES, WEFT__AT_HEADS };       /* in a mark: entries of the tape, headers */
/* ends tensors, calls and numbers since the mark; batches and index arrays stay, as a walk wants them */
void    weft__rewind_numbers(weft *, weft_mark);
/* *pointer = to, until a rewind ends what it points to; false and a sticky error if there is no memory */
bool    weft__linked(weft *, void *pointer, void *to);
/* callback.c: stand around each call of a function of the program. kind: "the step of the cell"; name: of the
 * cell, the operator, .., or NULL. begin returns what end expects. */
weft__callback weft__callback_begin(weft *, const char *kind, const char *name);
void    weft__callback_end(weft *, weft__callback outer);
/* If a callback runs, the context fails, and the function does nothing. */
bool    weft__callback_refuses(weft *, const char *function);
enum { WEFT__CALLBACK_TEXT = 160 };
const char *weft__callback_text(const weft *, char text[WEFT__CALLBACK_TEXT]);
/* memory by the program's allocator; context: the weft */
void   *weft__allocate_by_program(size_t, void *context);
void    weft__release_by_program(void *, void *context);
/* tensor.c */
weft_tensor *weft__header(weft *, const weft__form *);
/* NULL: zeros; never NULL itself */
weft_tensor *weft__tensor(weft *, const weft__form *, const void *host_values);
/* numbers still to be written */
weft_tensor *weft__empty(weft *, const weft__form *);
weft__form   weft__plain(weft_dtype, int rank, const int64_t *shape);
/* An option as it is meant: 0 is the default, WEFT_ZERO a true 0. */
static inline double weft__or(double given, double by_default)
{
    return given == 0 ? by_default : given == WEFT_ZERO ? 0 : given;
}
static inline int64_t weft__or_count(int64_t given, int64_t by_default) { return given ? given : by_default; }
/* rows: all but the last axis */
int64_t      weft__elements(const weft__form *), weft__rows(const weft__form *);
int64_t      weft__bytes(const weft__form *);
/* bytes to take for it: ints that are read as reals by mistake lie in memory of ours, in doubles, too */
int64_t      weft__room(const weft__form *);
/* else a sticky error: negative extents, too many elements */
bool         weft__possible(weft *, const weft__form *);
/* type, shape, batch and layout */
bool         weft__same(const weft__form *, const weft__form *);
const char  *weft__text(const weft__form *, char buffer[128]);
/* for a message of a layer that expects reals: what makes reals of ints, if it got ints; else "" */
static inline const char *weft__of_ids(const weft__form *f)
{
    return f->type == WEFT_I32 ? " (ids: weft_embedding_run; numbers: weft_to_reals)" : "";
}
/* weft_read, and the context's error */
weft_status  weft__read(const weft_tensor *, void *out, size_t bytes);
/* why the handle is no good; NULL if it is */
const char  *weft__wrong(const weft *, const weft_tensor *);
/* an index out of range becomes the sticky error */
void         weft__check_faults(weft *, const char *what);
/* batch.c */
/* NULL and a sticky error if they are wrong */
weft_batch    *weft__batch(weft *, const weft_lengths *, const char *function);
void           weft__difference(const weft_batch *, const weft_batch *, char *text, size_t);
/* A stable counting sort. next: [longest + 1] of scratch. */
void           weft__rank(int64_t n, const int32_t *len, int64_t longest, weft__order *, int32_t *next);
/* index.c: host part to be filled, then weft__sent */
weft__ints     weft__index(weft *, int64_t n);
static inline int32_t *weft__filled(weft__ints index) { return (int32_t *)(uintptr_t)index.host; }
void           weft__sent(weft *, weft__ints *, int64_t n);                       /* makes the device copy */
/* layout.c */
weft__ints     weft__map_between(weft_batch *, const weft__form *from, const weft__form *to);
weft__form weft__laid(weft__form, weft_batch *, weft_layout, int64_t total, weft_align, const weft__place *);
/* sequence, position, id of each row; NULL on failure */
const struct weft__rows *weft__rows_of(weft_batch *, const weft__form *);
const weft__place *weft__placed(weft_batch *, const weft_placement *);
/* makes the index arrays that batches before were asked for */
void           weft__make_usual_maps(weft_batch *);
/* fold.c; NULL and a sticky error if there is no memory */
const weft__place *weft__by_time(weft_batch *, const weft__place *);
int64_t        weft__row_of(const weft_batch *, const weft__form *, int64_t sequence, int64_t position);
/* rows that the batch's layout takes in all */
int64_t        weft__layout_rows(const weft__form *);
/* ragged/shard.c */
void           weft__shard_begin(weft *, const weft__shard *), weft__shard_end(weft *);
/* false, and the context fails, if one is at work: the function is one of whole batches */
bool           weft__outside_shards(weft *, const char *function);
/* random.c */
uint64_t weft__hash(uint64_t seed, const char *text);
double   weft__standard_normal(uint64_t draw);
/* The largest span that is not above the one given and for which from + span is at most to. */
real     weft__span_within(real from, real to, real span);
/* threads.c */
typedef void weft__task(void *argument, int64_t index);
/* threads start at the first parallel call */
struct weft__pool *weft__pool_new(weft__device *, int threads);
void           weft__pool_end(weft__device *, struct weft__pool *);
int            weft__pool_threads(const struct weft__pool *);
size_t         weft__pool_bytes(const struct weft__pool *);
/* all done when it returns; task order free */
void           weft__parallel(weft__device *, int64_t tasks, weft__task *, void *argument);
/* cpu.c: which table serves this machine (and the environment) */
const weft__kernels *weft__cpu_kernels(weft_device, weft_precision, char *why, size_t);
/* driver.c: has this process an NVIDIA GPU? Opens no more than the driver's own library. */
bool weft__driver_has_gpu(char *why, size_t);
/* launcher.c: the cores that this process may use, its share of them if it is one of several ranks; the
 * processors that it is bound to; its number among the ranks of this machine, and among all, 0 if it is
 * alone */
int weft__cores(void), weft__cpus(void), weft__local_rank(void), weft__launched_rank(void);
/* Who has bound the ranks, or not: the nearest process that was not told that it is one, whatever scripts
 * stand between. */
pid_t weft__launcher(void);
/* Of the launcher's processors, if it has mine: an even share, and not more than mine. */
int weft__share_of_cores(const cpu_set_t *mine, const cpu_set_t *launcher, int ranks);
/* lock.c: of the process, not of a context; a fork waits for them */
/* libraries that are opened; libhdf5 */
typedef enum { WEFT__LOADING, WEFT__FILES, WEFT__LOCKS } weft__lock_of;
void weft__lock(weft__lock_of), weft__unlock(weft__lock_of);
/* plugin.c: the table of libweft_cuda.so; NULL: why there is none */
const weft__kernels *weft__cuda_kernels(char *why, size_t);
/* A file from where plug-ins lie, by dlopen; NULL: why not. wanted: asked of the machine before; NULL:
 * nothing. The caller holds WEFT__LOADING. */
typedef bool weft__wanted(char *why, size_t);
void *weft__open_plugin(const char *file, weft__wanted *, char *why, size_t);
/* blas.c: OpenBLAS, opened by ourselves, or what WEFT_GEMM says instead; NULL: our own kernels multiply, or,
 * if `why` is not "" then, what is wanted is not there. */
weft__blas_gemm *weft__blas(weft_gemm wanted, char *why, size_t);
#endif
