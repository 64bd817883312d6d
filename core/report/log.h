/* log.h - what WEFT_LOG asks for: which path a context takes, and at its end its memory and its profile. */
#ifndef WEFT_LOG_H
#define WEFT_LOG_H
#include "core/inside.h"

/* log.c */
bool weft__log_level(int *level);                /* what WEFT_LOG says, 0, 1 or 2; false: something else */
const char *weft__precision_of(const weft *);   /* "fp32" */
/* but: why it is not what was looked for first, or "" */
void weft__log_open(weft *, int level, const char *but);
/* Prints what is to be said at the end, if that was asked for. */
void weft__log_close(weft *);
/* Prints "weft: ", a text as printf has it, and a line's end to stderr, with decimal points. */
void weft__warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* environment.c: warns, once in a process, of each variable WEFT_.. that is not known. */
void weft__check_environment(void);
#endif
