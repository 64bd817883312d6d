/* data.h - shared by the readers of ragged data: datasets, and columns of CSV, also for frames. */
#ifndef WEFT_IO_DATA_H
#define WEFT_IO_DATA_H
#include "io/io.h"

/* dataset.c */
/* Fills the offsets of *d and moves it to *out, or frees its arrays if status is not WEFT_OK. Returns the
 * status. */
weft_status weft__end_dataset(weft_dataset *d, weft_status status, const char *path, weft_dataset *out);

/* Copies rows [from, from + n) of a dataset, or ints. Returns the statuses of reading a file. */
weft_status weft__dataset_rows(const weft_dataset *, int64_t from, int64_t n, void *to);
/* Copies whole sequences, end to end. Neighbouring ones are read by one call. */
weft_status weft__gather(const weft_dataset *, const int32_t *index, int64_t n, void *to);
/* hdf5.c: copies rows from a file. */
weft_status weft__hdf5_rows(const struct weft_hdf5 *, int64_t from, int64_t n, void *to);

/* ---- columns of a CSV file ---- */
/* Rows first .. first + rows - 1, all of one id. Stretches of one group form one sequence. */
typedef struct weft__stretch {
    const char *id;
    int64_t first;
    int64_t rows;
    int64_t group;
} weft__stretch;

typedef struct weft__table {
    int64_t columns, rows;
    double **column;                             /* [columns], each [rows] */
    int64_t *origin;  /* [columns] the number that was subtracted from the column */
    weft__stretch *run;  /* [n] sorted by group; without ids all rows are one stretch */
    int64_t n;
    char *text;                                  /* ids point into it */
} weft__table;

/* csv.c: reads these columns, and the column of ids (NULL: none). reals: numbers must fit a weft_real, and an
 * integer that a double does not hold is an error. Otherwise the first such integer of a column becomes its
 * origin, which is subtracted from all numbers of the column. weft__table_end frees *t, also after an
 * error. */
weft_status weft__read_table(weft__table *t, const char *path, const char *id, const char *const *names,
                             int64_t columns, const weft_csv_opts *opts, bool reals);
/* Checks opts, which may be NULL; `function` begins the message. */
weft_status weft__csv_opts_good(const char *function, const weft_csv_opts *opts);

/* table.c */
/* Adds a row to the stretches. Returns false if memory is short. */
bool weft__table_add_id(weft__table *t, const char *id);
/* Moves stretches of one id together, to the position of the first. */
void weft__table_gather(weft__table *t);
/* Sorts the rows by id. Returns an id that has several rows; NULL if each has one. */
const char *weft__table_repeated(weft__table *t);
/* Finds the stretch of an id in a sorted table. NULL: not found. */
const weft__stretch *weft__table_find(const weft__table *t, const char *id);
void weft__table_end(weft__table *t);
#endif
