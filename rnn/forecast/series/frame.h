/* frame.h - builds frames of time series: a table collects rows and is checked, then a frame takes it. */
#ifndef WEFT_FRAME_H
#define WEFT_FRAME_H
#include "io/data/data.h"
#include "rnn/forecast/api_series.h"

/* Returns the number of names before the NULL. */
int64_t weft__names(const char *const *names);
/* Checks that each name occurs once. */
weft_status weft__check_names(const char *function, const char *const *names);
/* Returns the index of the column with a name, or -1. */
int64_t weft__frame_find(const weft_frame *f, const char *name);
/* Checks that f is a frame made by the library. The message begins with `function`. */
weft_status weft__check_frame(const char *function, const weft_frame *f);
/* Checks that series with these columns can be added to f: f is empty or has the same columns. */
weft_status weft__check_series(const char *function, const weft_frame *f, const char *const *names);

/* Writes a number of column c as in its file: an integer in full, or "ORIGIN + x". */
const char *weft__frame_number(const weft_frame *f, int64_t c, int64_t row, char text[64]);
/* Reads the integer in a row of column c, with its origin. Returns false if it is not an int64. */
bool weft__frame_integer(const weft_frame *f, int64_t c, int64_t row, int64_t *integer);
/* Fails if a column with an origin has a number that is not an integer, since it could not be read back.
 * gaps: NaN is allowed. */
weft_status weft__check_integers(const char *function, const weft_frame *f, bool gaps);

/* Removes the columns from `from` on. */
void weft__drop_columns(weft_frame *f, int64_t from);

/* Adds the series of a table to a frame, with columns in the order of the names; origin NULL: all 0. Adjacent
 * stretches of one group form one series. Adds all or nothing. */
weft_status weft__append_table(weft_frame *f, const char *function, const char *const *names,
                               const weft__table *t);
#endif
