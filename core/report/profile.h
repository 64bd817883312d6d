/* profile.h - time and arithmetic of each operator, for weft_profile_of and WEFT_LOG=2. Without profiling a
 * context executes one more branch per operator, and its kernels are unchanged. */
#ifndef WEFT_PROFILE_H
#define WEFT_PROFILE_H
#include "core/inside.h"
#include "core/report/api_report.h"

enum { WEFT__TIMED_ROWS = 256, WEFT__TIMED_NAME = 32 };
/* An operator, forward or backward. Times exclude the operators that it calls. */
typedef struct weft__timed {
    char name[WEFT__TIMED_NAME]; bool back;
    int64_t calls, ns, launches;
    /* flops: of its products; bytes: of its inputs and results */
    double flops, bytes;
} weft__timed;

struct weft__profile {
    /* table of the device; `counting` differs in the counted kernels */
    const weft__kernels *plain;
    weft__kernels counting;
    /* row[0]: time outside operators; now: row that is being timed */
    weft__timed row[WEFT__TIMED_ROWS], *now;
    int64_t since, launched;                     /* clock and launch count at the last switch */
    weft_profile_row result[WEFT__TIMED_ROWS];     /* last result of weft_profile_of */
};

/* profile.c */
/* Call these only if w->profiling. */
/* Starts a row and returns the previous one, for weft__profile_leave. */
weft__timed *weft__profile_enter(weft *, const char *name, bool back);
void weft__profile_leave(weft *, weft__timed *before);
void weft__profile_bytes(weft *, int64_t bytes);
/* Stops profiling and frees its memory. Does nothing without a profile. */
void weft__profile_end(weft *);
#endif
