/* log.h - output of WEFT_LOG: the choices of a context, and at its end its memory and profile. */
#ifndef WEFT_LOG_H
#define WEFT_LOG_H
#include "core/inside.h"

/* log.c */
bool weft__log_level(int *level);                /* reads WEFT_LOG, 0, 1 or 2; false: another value */
const char *weft__precision_of(const weft *);   /* "fp32" */
/* Prints the device and settings. but: why the preferred device was not used, or "". */
void weft__log_open(weft *, int level, const char *but);
/* Prints memory and profile at the end, if WEFT_LOG requests it. */
void weft__log_close(weft *);
/* Prints "weft: ", a text formatted like printf with a decimal point, and a newline to stderr. */
void weft__warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* environment.c: Warns, once per process, of each unknown variable WEFT_.. */
void weft__check_environment(void);
#endif
