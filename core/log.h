/* log.h - what WEFT_LOG asks for: which path a context takes, and how long each operator took. A context
 * without a log has NULL and pays one branch an operator; kernels are counted by a table of their own, so
 * without a log they are called as ever. */
#ifndef WEFT_LOG_H
#define WEFT_LOG_H
#include "core/core.h"

enum { WEFT__LOG_ROWS = 256, WEFT__LOG_NAME = 32 };
/* of an operator, forward or back; times are without what it has called in turn */
typedef struct weft__log_row {
    char name[WEFT__LOG_NAME]; bool back;
    int64_t calls, ns;
    /* of its kernels that are products; of its inputs and results */
    double flops, bytes;
} weft__log_row;

struct weft__log {
    /* the device's own table; `counting` is the same but for products */
    const weft__kernels *plain;
    weft__kernels counting;
    weft__log_row row[WEFT__LOG_ROWS], *now;     /* row[0]: what is no operator. now: whose time it is */
    int64_t opened, since;
};

/* log.c */
bool weft__log_level(int *level);                /* what WEFT_LOG says, 0, 1 or 2; false: something else */
/* but: why it is not what was looked for first, or "" */
void weft__log_open(weft *, int level, const char *but);
/* If w->logging only: */
/* returns whose time it was, for weft__log_leave */
weft__log_row *weft__log_enter(weft *, const char *name, bool back);
void weft__log_leave(weft *, weft__log_row *before);
void weft__log_bytes(weft *, int64_t bytes);
/* Prints what is to be said at the end, and ends the log, if there is one: */
void weft__log_close(weft *);
#endif
