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
/* Returns the number of the column with a name; -1: the frame has none. */
int64_t weft__frame_find(const weft_frame *f, const char *name);
/* Whether f is one that the library could have made; `where` begins the message. */
weft_status weft__frame_good(const char *where, const weft_frame *f);
/* Whether series of these columns can be added to f: the same, or the first. */
weft_status weft__frame_takes(const char *where, const weft_frame *f, const char *const *names);

/* A number of column c as its file has it: an integer in full, or "ORIGIN + x". */
const char *weft__frame_number(const weft_frame *f, int64_t c, int64_t row, char text[64]);
/* The integer in a row of column c, its origin added. Returns false if there is none that int64 holds. */
bool weft__frame_integer(const weft_frame *f, int64_t c, int64_t row, int64_t *integer);
/* An error if a column with an origin has a number that is no integer (gaps: nor NaN), since it could not be
 * read back. */
weft_status weft__frame_integers(const char *where, const weft_frame *f, bool gaps);

/* Columns `from` and on go. */
void weft__frame_drop(weft_frame *f, int64_t from);

/* Adds the series of a table to a frame, its columns in the order of the names; origin NULL: all 0. Stretches
 * of one group, next to each other, are one series. All or nothing. */
weft_status weft__frame_take(weft_frame *f, const char *where, const char *const *names,
                             const weft__table *t);
#endif
