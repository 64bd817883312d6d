/* memory.h - memory of a context: arenas that end with the step, blocks that last, objects that the context
 * owns. */
#ifndef WEFT_CORE_MEMORY_H
#define WEFT_CORE_MEMORY_H
#include "core/api_author.h"

/* ---- arena.c: memory that weft_clear ends ---- */
typedef enum {
    WEFT__IN_HEADS,                                 /* tensor headers, by the parity of the step */
    WEFT__IN_HEADS_ODD,
    WEFT__IN_NOTES,                                 /* calls, and arrays that they need */
    WEFT__IN_KEEP,                                  /* batches */
    WEFT__IN_LASTING,                               /* no weft_rewind ends it */
    WEFT__IN_DATA,                                  /* device: results */
    WEFT__IN_GRADS,                                 /* device: gradients; no weft_rewind ends them */
    WEFT__IN_MAPS,                                  /* device: index arrays */
    WEFT__ARENAS
} weft__arena_id;
enum { WEFT__LINE = 64 };                        /* pieces of an arena begin and end at multiples of it */
static inline int64_t weft__whole_lines(int64_t bytes)
{
    return (bytes + WEFT__LINE - 1) & ~(int64_t)(WEFT__LINE - 1);
}
/* Returns NULL, and the context fails, if there is no memory. */
void   *weft__take(weft *, weft__arena_id, int64_t bytes);
/* The place at which the next piece begins; back_to ends all pieces from a place on. */
int64_t weft__position(const weft *, weft__arena_id);
void    weft__back_to(weft *, weft__arena_id, int64_t position);

/* ---- arena.c: blocks until weft__release ---- */
void   *weft__allocate(weft *, size_t);
/* Returns NULL without memory; the context does not fail. */
void   *weft__try_allocate(weft *, size_t);
void    weft__release(weft *, void *);
void   *weft__device_allocate(weft *, size_t);
void    weft__device_release(weft *, void *);
/* One block that a function leaves to its next call: spare_taken takes it over, which may be NULL, and sets
 * its size; spare_left gives it back. Of two blocks the larger one stays. */
void   *weft__spare_taken(weft *, size_t *bytes);
void    weft__spare_left(weft *, void *, size_t bytes);

/* ---- owned.c: objects until weft_close, zeroed ---- */
/* end is called at the end, recover by weft_recover; both may be NULL. */
void   *weft__own(weft *, size_t bytes, void (*end)(void *), void (*recover)(void *));
/* The same without these functions; returns NULL without memory, and the context does not fail. */
void   *weft__own_if_it_can(weft *, size_t bytes);
/* The next older object with this function for its end; after NULL: the newest one. NULL: no more. */
void   *weft__next_owned(const weft *, void (*end)(void *), const void *after);

/* ---- rewind.c ---- */
enum { WEFT__AT_ENTRIES, WEFT__AT_HEADS };       /* in a mark: entries of the tape, headers */
/* Ends tensors, calls and numbers since the mark; batches and index arrays stay. */
void    weft__rewind_numbers(weft *, weft_mark);
/* *pointer = to, until a rewind ends the memory that it points to. Returns false, and the context fails,
 * without memory. */
bool    weft__linked(weft *, void *pointer, void *to);
#endif
