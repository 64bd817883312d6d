/* profile.h - how long each operator took, and how much it computed: what weft_profile_of tells and
 * WEFT_LOG=2 prints. A context that is not profiling pays one branch an operator; kernels are counted by a
 * table of their own, so without a profile they are called as ever. */
#ifndef WEFT_PROFILE_H
#define WEFT_PROFILE_H
#include "core/inside.h"

enum { WEFT__TIMED_ROWS = 256, WEFT__TIMED_NAME = 32 };
/* of an operator, forward or back; times are without what it has called in turn */
typedef struct weft__timed {
    char name[WEFT__TIMED_NAME]; bool back;
    int64_t calls, ns, launches;
    /* of its kernels that are products; of its inputs and results */
    double flops, bytes;
} weft__timed;

struct weft__profile {
    /* the device's own table; `counting` is the same but for products */
    const weft__kernels *plain;
    weft__kernels counting;
    weft__timed row[WEFT__TIMED_ROWS], *now;     /* row[0]: what is no operator. now: whose time it is */
    int64_t since, launched;                     /* what the clock, and the device's count, said then */
    weft_profile_row told[WEFT__TIMED_ROWS];     /* what weft_profile_of has handed out last */
};

/* profile.c */
int64_t weft__now(void);                         /* nanoseconds of a clock that is never set */
/* If w->profiling only: */
/* returns whose time it was, for weft__profile_leave */
weft__timed *weft__profile_enter(weft *, const char *name, bool back);
void weft__profile_leave(weft *, weft__timed *before);
void weft__profile_bytes(weft *, int64_t bytes);
/* The profile, if there is one, and its memory. */
void weft__profile_end(weft *);
#endif
