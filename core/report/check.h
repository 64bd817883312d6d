/* check.h - the checks of WEFT_CHECK=1. Without it w->check is NULL, and a context pays one branch per new
 * tensor, operator and step. */
#ifndef WEFT_REPORT_CHECK_H
#define WEFT_REPORT_CHECK_H
#include <stdatomic.h>
#include "core/inside.h"

enum { WEFT__STEPPED = 8 };
struct weft__check {
    weft_tensor **live; int64_t n, room;         /* valid headers of this step, oldest first */
    /* optimisers that stepped after the last weft_clear */
    const void *stepped[WEFT__STEPPED]; int steps;
    bool given;                                  /* the program's input of this step has a NaN */
    /* set when the warning has been printed, so each appears once per context */
    bool warned_given, warned_clear, warned_step, warned_unchanged, warned_inexact; atomic_bool warned_thread;
    /* thread that uses the context, or 0, and how many nested functions it has entered */
    atomic_uintptr_t thread; int depth;
    real *copy; int64_t elements;                /* host copy of device data that is checked */
};

/* check.c */
bool    weft__check_requested(bool *needed);    /* reads WEFT_CHECK; false: the value is neither 0 nor 1 */
void    weft__check_open(weft *);
void    weft__check_close(weft *);
/* Call these only if w->check is not NULL. */
/* records a header; its memory is not reused until weft_close */
void    weft__check_created(weft *, weft_tensor *);
/* Invalidates headers from index `headers` on, and overwrites data from position `data` on with NaN. */
void    weft__check_rewind(weft *, int64_t headers, int64_t data);
void    weft__check_clear(weft *);
/* Overwrites an arena from position `from` on with NaN. Read as ints it is out of every range. */
void    weft__check_poison(weft *, weft__arena_id, int64_t from);
void    weft__check_stepped(weft *, const void *optimiser);
/* Warns, once, if a step or a function that changes gradients found no gradient. */
void    weft__check_gradients_found(weft *, bool given, bool step, const char *function);
/* Surround a function that uses the context. enter returns false, and fails the context, if another thread
 * uses it. */
bool    weft__check_enter(weft *, const char *function);
void    weft__check_leave(weft *);              /* does nothing without w->check */
#endif
