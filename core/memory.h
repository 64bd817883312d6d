/* memory.h - memory of a context: arenas that end with the step, permanent blocks, owned objects. */
#ifndef WEFT_CORE_MEMORY_H
#define WEFT_CORE_MEMORY_H
#include "core/api_author.h"

/* ---- arena.c: memory that weft_clear ends ---- */
typedef enum {
    WEFT__ARENA_HEADERS,                        /* tensor headers, one arena for even and one for odd steps */
    WEFT__ARENA_HEADERS_ODD,
    WEFT__ARENA_CALLS,                              /* calls and their arrays */
    WEFT__ARENA_BATCHES,                            /* batches */
    WEFT__ARENA_STEP,                               /* host memory that weft_rewind keeps */
    WEFT__ARENA_DATA,                               /* device: results */
    WEFT__ARENA_GRADS,                              /* device: gradients; weft_rewind keeps them */
    WEFT__ARENA_MAPS,                               /* device: index arrays */
    WEFT__ARENAS
} weft__arena_id;
enum { WEFT__LINE = 64 };                        /* alignment of all pieces of an arena */
static inline int64_t weft__whole_lines(int64_t bytes)
{
    return (bytes + WEFT__LINE - 1) & ~(int64_t)(WEFT__LINE - 1);
}
/* Returns memory that ends with the step. Without memory it fails the context and returns NULL. */
void   *weft__take(weft *, weft__arena_id, int64_t bytes);
/* weft__position returns the offset of the next piece. weft__rewind_to ends all pieces from an offset on. */
int64_t weft__position(const weft *, weft__arena_id);
void    weft__rewind_to(weft *, weft__arena_id, int64_t position);

/* ---- arena.c: blocks until weft__release ---- */
void   *weft__allocate(weft *, size_t);
/* Without memory it returns NULL and does not fail the context. */
void   *weft__try_allocate(weft *, size_t);
void    weft__release(weft *, void *);
void   *weft__device_allocate(weft *, size_t);
void    weft__device_release(weft *, void *);
/* A scratch block that the context keeps between calls. weft__take_spare returns it and its size, or NULL.
 * weft__return_spare gives a block back; the context keeps the larger of two. */
void   *weft__take_spare(weft *, size_t *bytes);
void    weft__return_spare(weft *, void *, size_t bytes);

/* ---- owned.c: objects that live until weft_close ---- */
/* Returns zeroed memory. weft_close calls end, weft_recover calls recover. Both may be NULL. */
void   *weft__own(weft *, size_t bytes, void (*end)(void *), void (*recover)(void *));
/* Like weft__own without functions. Without memory it returns NULL and does not fail the context. */
void   *weft__try_own(weft *, size_t bytes);
/* Returns the next older object with this `end`, the newest if after is NULL, and NULL after the last. */
void   *weft__next_owned(const weft *, void (*end)(void *), const void *after);

/* ---- rewind.c ---- */
enum { WEFT__MARK_ENTRIES, WEFT__MARK_HEADERS }; /* indices of weft_mark.at: entries of the tape, headers */
/* Ends tensors, calls and data made after the mark. Batches and index arrays stay. */
void    weft__rewind_numbers(weft *, weft_mark);
/* Sets *pointer to `to` and records its old value, which a rewind of that memory restores. Without memory it
 * fails the context and returns false. */
bool    weft__set_undoable(weft *, void *pointer, void *to);
#endif
