/* inside.h - the complete context, for core/ only. */
#ifndef WEFT_CORE_INSIDE_H
#define WEFT_CORE_INSIDE_H
#include "core/context.h"
#include "core/device.h"
#include "core/ragged.h"

enum { WEFT__BLOCKS = 48, WEFT__MESSAGE = 512 };

/* Memory that grows block by block. Clearing replaces the blocks by one of the size that was needed. */
typedef struct weft__arena {
    struct { char *base; int64_t start, size, filled; } block[WEFT__BLOCKS];
    int n;
    int current;
    int64_t used;                                /* bytes used of block[current] */
    int64_t peak;                                /* largest number of bytes in use at one time */
    int64_t first;                               /* size of the first block */
    bool permanent; /* for headers: blocks are neither freed nor poisoned, because stale headers are read */
    bool device;
} weft__arena;
/* One block of memory on a device with its own memory. */
typedef struct weft__block {
    struct weft__block *next;
    void *memory;
    size_t bytes;
    bool lasts;
} weft__block;
typedef struct weft__undo {                      /* Undo record of a pointer, see rewind.c. */
    struct weft__undo *next;
    void *pointer;
    void *old;
    int64_t position;
} weft__undo;
typedef struct weft__owned {     /* An object that lives until weft_close. The list begins with the newest. */
    struct weft__owned *next;
    void (*end)(void *);
    void (*recover)(void *);
} weft__owned;

typedef struct weft__inside {
    weft w;                                      /* first member, so a weft * is a weft__inside * */
    char message[WEFT__MESSAGE];
    weft__listener *on_error;
    void *on_error_user;
    int64_t print_limit;                         /* elements printed of each axis; 0: all */
    weft__arena arena[WEFT__ARENAS];
    weft_batch *batches;
    weft__undo *links;
    weft__owned *owned;
    weft__block *blocks;
    weft__callback callback;                     /* the innermost running callback */
    /* memory functions of the program; all NULL: malloc and free */
    struct { void *(*allocate)(size_t, void *); void (*release)(void *, void *); void *user; } memory;
    uint32_t usual_maps;                         /* see layout.c */
    struct { uint64_t step; int backwards, updates; bool warned; } missing_clear;  /* see missing_clear.c */
    int64_t allocations;
    int64_t host_bytes;
    int64_t host_peak;
    int64_t device_bytes;
    int64_t device_peak;
    void *spare;                                 /* see weft__take_spare */
    size_t spare_bytes;
    struct weft__profile *profile;               /* see profile.h; NULL until profiling begins */
    int64_t opened;                              /* time of weft_open if WEFT_LOG is 1 or 2; otherwise 0 */
    char missing[256]; /* text of weft__handle_error for a NULL tensor; "": the usual text */
} weft__inside;
static inline weft__inside *inside(const weft *w) { return (weft__inside *)(uintptr_t)w; }

/* ---- arena.c ---- */
/* Only tests set it: call number `left` of weft__take in this context fails, counted from 1. */
extern struct weft__failing_take { const weft *w; int64_t left; } weft__failing_take;
void    weft__arena_clear(weft *, weft__arena_id);
void    weft__arena_end(weft *, weft__arena_id);
void    weft__arena_forget(weft *, weft__arena_id);       /* Frees the memory and resets the recorded size. */
static inline weft__arena_id weft__header_arena(const weft *w) { return WEFT__ARENA_HEADERS + (w->step & 1); }
/* ---- callback.c: memory from the program's allocator; context: the weft ---- */
void   *weft__allocate_by_program(size_t, void *context);
void    weft__release_by_program(void *, void *context);
/* ---- owned.c ---- */
void    weft__end_owned(weft *);
void    weft__recover_owned(weft *);
#endif
