/* csv.h - rows of numbers from a CSV file, for ragged data and for frames. */
#ifndef WEFT_IO_CSV_H
#define WEFT_IO_CSV_H
#include "io/data/data.h"

/* Rows of numbers as they come; id is the text of the id's column (NULL without one) and stays until *text is
 * freed, by the caller in any case. take returns false if there is no memory. narrow: numbers must be
 * weft_reals. origin [n], zeros, or NULL: an integer that a double does not hold is an error. Else the first
 * one of a column becomes its origin, and from that row on the column's numbers are less it. */
typedef bool weft__csv_row(void *user, const char *id, const double *values);
typedef struct weft__csv_want {
    const char *id, *const *columns;
    int n;
    bool narrow;
    const weft_csv_opts *opts;
    int64_t *origin;
} weft__csv_want;
weft_status weft__read_csv_rows(const char *path, char **text, const weft__csv_want *want,
                                weft__csv_row *take, void *user);
/* Rows first .. first + rows - 1 of one id; stretches of one group are one sequence. */
typedef struct weft__stretch { const char *id; int64_t first, rows, group; } weft__stretch;
/* runs.c: stretches as they come in a file. To be freed: run. */
typedef struct weft__runs { weft__stretch *run; int64_t n, room; } weft__runs;
/* Adds a row, which continues the last run if its id is the same or NULL. Returns false without memory. */
bool weft__runs_add(weft__runs *r, const char *id, int64_t row);
/* Sorts by id, and runs of one id by their place. */
void weft__runs_by_id(weft__runs *r);
/* Brings runs of one id together, one group at the place of the first. Returns whether any were joined. */
bool weft__runs_gather(weft__runs *r);
/* Whether opts, which may be NULL, can be meant; `function` begins the message. */
weft_status weft__csv_opts_good(const char *function, const weft_csv_opts *opts);
#endif
