/* frame.h - how frames of time series are built: rows wait in a store of columns until all are good, then
 * a frame takes them over. */
#ifndef WEFT_FRAME_H
#define WEFT_FRAME_H
#include "io/data/csv.h"
#include "rnn/forecast/api_series.h"

/* How many names there are before the NULL. */
int64_t weft__names(const char *const *names);
/* Whether each name is there once; else a status and a message. */
weft_status weft__names_good(const char *function, const char *const *names);
/* Its column, -1 if there is none. */
int64_t weft__find_name(char *const *names, int64_t n, const char *name);
/* Whether f is one that the library could have made; `where` begins the message. */
weft_status weft__frame_good(const char *where, const weft_frame *f);
/* Whether series of these columns can be added to f: the same, or the first. */
weft_status weft__frame_takes(const char *where, const weft_frame *f, const char *const *names);

/* Columns `from` and on go. */
void weft__frame_drop(weft_frame *f, int64_t from);

/* Adds series to a frame, rows of columns in the order of the names. Stretches of one group, next to each
 * other, are one series. All or nothing. */
weft_status weft__frame_take(weft_frame *f, const char *where, const char *const *names,
                             const double *const *columns, const weft__stretch *parts, int64_t n);
#endif
