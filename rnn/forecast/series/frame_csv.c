/* frame_csv.c - frames from CSV: rows of an id wherever they are, and tables of one row for each series. */
#include <stdlib.h>
#include <string.h>
#include "rnn/forecast/series/frame.h"

weft_status weft_frame_read_csv(weft_frame *f, const char *path, const char *id, const char *const *names,
                                const weft_csv_opts *opts)
{
    weft_status s = weft__frame_takes("weft_frame_read_csv", f, names);
    if (s == WEFT_OK)
        s = weft__csv_opts_good("weft_frame_read_csv", opts);
    if (s != WEFT_OK)
        return s;
    weft__table t;
    s = weft__read_table(&t, path, id, names, weft__names(names), opts, false);
    const weft__stretch whole = { path, 0, t.rows, 0 };  /* an empty file is an empty series */
    if (s == WEFT_OK)
        s = weft__frame_take(f, path, names, (const double *const *)t.column, t.origin, id ? t.run : &whole,
                             id ? t.n : 1);
    weft__table_end(&t);
    return s;
}

/* ---- a table of one row a series ---- */
/* Finds the row of each series of f: each id of the file is there once, and each of the frame. */
static weft_status match(const weft_frame *f, const char *path, weft__table *t, int64_t *to)
{
    const char *twice = weft__table_repeated(t);
    if (twice)
        return weft__file_fail(WEFT_EFORMAT,
                               "%s: there are two rows of \"%.100s\", one for each series is expected", path,
                               twice);
    for (int64_t s = 0; s < f->n; s++) {
        const weft__stretch *found = weft__table_find(t, f->id[s]);
        if (!found)
            return weft__file_fail(WEFT_EFORMAT, "%s: there is no row of the series \"%.100s\"", path,
                                   f->id[s]);
        to[s] = found->first;
    }
    return WEFT_OK;
}

static weft_status fix_all(weft_frame *f, const char *const *names, const weft__table *t, const int64_t *row,
                           double *values)
{
    weft_status s = WEFT_OK;
    int64_t before = f->columns;
    for (int64_t c = 0; s == WEFT_OK && c < t->columns; c++) {
        for (int64_t i = 0; i < f->n; i++)
            values[i] = t->column[c][row[i]];
        s = weft_frame_add_column(f, names[c], values, WEFT_PER_SERIES);
        if (s == WEFT_OK)
            f->origin[f->columns - 1] = t->origin[c];
    }
    if (s != WEFT_OK)                            /* all or none */
        weft__frame_drop(f, before);
    return s;
}

weft_status weft_frame_add_static_csv(weft_frame *f, const char *path, const char *id,
                                      const char *const *names, const weft_csv_opts *opts)
{
    weft_status s = weft__frame_good("weft_frame_add_static_csv", f);
    if (s == WEFT_OK)
        s = weft__names_good("weft_frame_add_static_csv", names);
    if (s == WEFT_OK)
        s = weft__csv_opts_good("weft_frame_add_static_csv", opts);
    if (s == WEFT_OK && !id)
        s = weft__file_fail(
            WEFT_EARG, "weft_frame_add_static_csv: the name of the column with the series' ids is expected");
    if (s != WEFT_OK)
        return s;
    weft__table t;
    size_t n = f->n ? (size_t)f->n : 1;
    int64_t *row = malloc(n * sizeof *row);
    double *values = malloc(n * sizeof *values);
    s = weft__read_table(&t, path, id, names, weft__names(names), opts, false);
    if (s == WEFT_OK && (!row || !values))
        s = weft__file_fail(WEFT_ENOMEM, "%s: out of memory", path);
    if (s == WEFT_OK)
        s = match(f, path, &t, row);
    if (s == WEFT_OK)
        s = fix_all(f, names, &t, row, values);
    free(row);
    free(values);
    weft__table_end(&t);
    return s;
}
