/* inside.h - all of a context, for core/ alone. */
#ifndef WEFT_CORE_INSIDE_H
#define WEFT_CORE_INSIDE_H
#include "core/context.h"
#include "core/device.h"
#include "core/ragged.h"

enum { WEFT__BLOCKS = 48, WEFT__MESSAGE = 512 };

/* Grows by blocks. Cleared, it becomes one block of what was needed. left: used of a block when the next one
 * was begun. */
typedef struct weft__arena {
    struct { char *base; int64_t start, size, left; } block[WEFT__BLOCKS];
    int n;
    int at;
    int64_t used;                                /* of block[at] */
    int64_t most;                                /* ever needed at once, if it were one block */
    int64_t first;                               /* size of a first block */
    bool stays; /* blocks are kept and never poisoned: stale headers are read */
    bool device;
} weft__arena;
/* A block on a device with memory of its own. */
typedef struct weft__block {
    struct weft__block *next;
    void *memory;
    size_t bytes;
    bool lasts;
} weft__block;
typedef struct weft__link {                      /* see rewind.c */
    struct weft__link *next;
    void *pointer;
    void *was;
    int64_t at;
} weft__link;
typedef struct weft__owned {                     /* lives until weft_close; newest first */
    struct weft__owned *next;
    void (*end)(void *);
    void (*recover)(void *);
} weft__owned;

typedef struct weft__inside {
    weft w;                                      /* first: a weft * is a weft__inside * */
    char message[WEFT__MESSAGE];
    weft__listener *on_error;
    void *on_error_user;
    int64_t print_limit;                         /* of an axis so many are printed; 0: all */
    weft__arena arena[WEFT__ARENAS];
    weft_batch *batches;
    weft__link *links;
    weft__owned *owned;
    weft__block *blocks;
    weft__callback callback;                     /* the innermost one that runs */
    /* the program's memory functions; all NULL: malloc and free */
    struct { void *(*allocate)(size_t, void *); void (*release)(void *, void *); void *user; } memory;
    uint32_t usual_maps;                         /* see layout.c */
    struct { uint64_t step; int walks, updates; bool told; } unended;      /* see missing_clear.c */
    int64_t allocations;
    int64_t host_bytes;
    int64_t host_peak;
    int64_t device_bytes;
    int64_t device_peak;
    void *spare;                                 /* see weft__spare_taken */
    size_t spare_bytes;
    struct weft__profile *profile;               /* see profile.h; NULL: none so far */
    int64_t opened;                              /* when, if WEFT_LOG wants the end reported; else 0 */
    char missing[256];                           /* what weft__wrong says of NULL; "": the usual */
} weft__inside;
static inline weft__inside *inside(const weft *w) { return (weft__inside *)(uintptr_t)w; }

/* ---- arena.c ---- */
/* Only test programs define it (tests/failing_malloc.c): whether this call of weft__take fails. */
__attribute__((weak, visibility("default"))) bool weft__test_take_fails(const weft *);
int64_t weft__arena_position(const weft__arena *);
void    weft__arena_back(weft *, weft__arena *, int64_t position);
void    weft__arena_clear(weft *, weft__arena *);
void    weft__arena_end(weft *, weft__arena *);
void    weft__arena_forget(weft *, weft__arena *);         /* its memory, and how large it was */
static inline weft__arena *weft__heads(const weft *w)
{
    return &inside(w)->arena[WEFT__IN_HEADS + (w->step & 1)];
}
/* ---- callback.c: memory by the program's allocator; context: the weft ---- */
void   *weft__allocate_by_program(size_t, void *context);
void    weft__release_by_program(void *, void *context);
/* ---- owned.c ---- */
void    weft__end_owned(weft *);
void    weft__recover_owned(weft *);
#endif
