/* csv.h - rows of numbers from a CSV file, in columns, for ragged data and for frames. */
#ifndef WEFT_IO_CSV_H
#define WEFT_IO_CSV_H
#include "io/data/data.h"

/* Rows first .. first + rows - 1 of one id; stretches of one group are one sequence. */
typedef struct weft__stretch {
    const char *id;
    int64_t first;
    int64_t rows;
    int64_t group;
} weft__stretch;

typedef struct weft__table {
    int64_t columns, rows, room;
    double **column;                             /* [columns] of [rows] */
    int64_t *origin;                             /* [columns] numbers are less it */
    weft__stretch *run;                          /* [n] by group; without ids all rows are one */
    int64_t n, run_room;
    char *text;                                  /* ids point into it */
} weft__table;

/* csv.c: reads these columns and the one with the ids (NULL: none). reals: numbers must fit a weft_real, and
 * an integer that a double does not hold is an error. Otherwise the first such integer of a column becomes
 * its origin, and all numbers of the column are less it. weft__table_end frees *t after any status. */
weft_status weft__read_table(weft__table *t, const char *path, const char *id, const char *const *names,
                             int64_t columns, const weft_csv_opts *opts, bool reals);
/* Returns whether opts, which may be NULL, make sense; `function` begins the message. */
weft_status weft__csv_opts_good(const char *function, const weft_csv_opts *opts);

/* table.c */
/* Makes room for one more row. Returns false without memory. */
bool weft__table_room(weft__table *t);
/* Adds a row to the stretches. Returns false without memory. */
bool weft__table_add_id(weft__table *t, const char *id);
/* Brings stretches of one id together, at the place of the first. */
void weft__table_gather(weft__table *t);
/* Sorts the rows by id. Returns an id of several rows, NULL: each has one. */
const char *weft__table_repeated(weft__table *t);
/* Finds the stretch of an id in a table that is sorted so. NULL: there is none. */
const weft__stretch *weft__table_find(const weft__table *t, const char *id);
void weft__table_end(weft__table *t);
#endif
