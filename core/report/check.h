/* check.h - what WEFT_CHECK=1 looks for. A context without it has w->check NULL and pays a branch where a
 * tensor is made, an operator has run, and a step ends. */
#ifndef WEFT_CHECK_H_
#define WEFT_CHECK_H_
#include <stdatomic.h>
#include "core/inside.h"

enum { WEFT__STEPPED = 8 };
struct weft__check {
    weft_tensor **live; int64_t n, room;         /* headers of this step that have not ended, oldest first */
    /* optimisers that have stepped since weft_clear */
    const void *stepped[WEFT__STEPPED]; int steps;
    bool given;                                  /* in this step a NaN came from the program */
    /* lines that are printed once in a context */
    bool told_given, told_clear, told_step, told_unchanged, told_inexact; atomic_bool told_thread;
    /* the thread inside a function of the context, 0: none; how many functions it is in */
    atomic_uintptr_t thread; int depth;
    real *copy; int64_t elements;                /* of a device's numbers, to be looked at */
};

/* check.c */
bool    weft__check_asked(bool *needed);        /* what WEFT_CHECK says; false: neither 0 nor 1 */
void    weft__check_open(weft *);
void    weft__check_close(weft *);
/* If w->check only: */
void    weft__check_made(weft *, weft_tensor *); /* a header: its place is no one else's until weft_close */
/* ends headers from that number on, and numbers from that place on */
void    weft__check_rewind(weft *, int64_t headers, int64_t data);
void    weft__check_clear(weft *);
/* what was taken from there on becomes NaN, and ints out of every range */
void    weft__check_spoil(weft *, weft__arena_id, int64_t from);
void    weft__check_stepped(weft *, const void *optimiser);
/* Prints a line, once, if no gradient was given for a step, or for a function that changes gradients. */
void    weft__check_given(weft *, bool given, bool step, const char *function);
/* Around a function that uses the context: false, and the context fails, if another thread is in one. */
bool    weft__check_enter(weft *, const char *function);
void    weft__check_leave(weft *);              /* nothing without w->check */
#endif
