/* frame_csv.c - frames from CSV: rows gathered by id whatever their order, and tables of one row a series. */
#include <stdlib.h>
#include <string.h>
#include "io/text.h"
#include "rnn/forecast/series/frame.h"

/* ---- rows as they come: columns that grow, and runs of rows with the same id ---- */
typedef struct {
    double **column;
    int64_t *origin, *from;                      /* [columns]; the first row that is less the origin */
    int64_t columns, rows, room;
    weft__runs runs;
} store;

static bool grow_columns(store *t)
{
    int64_t room = t->room ? 2 * t->room : 256;
    for (int64_t c = 0; c < t->columns; c++) {
        double *more = realloc(t->column[c], (size_t)room * sizeof *more);
        if (!more)
            return false;
        t->column[c] = more;
    }
    t->room = room;
    return true;
}

static bool store_row(void *user, const char *id, const double *values)
{
    store *t = user;
    if (t->rows == t->room && !grow_columns(t))
        return false;
    if (!weft__runs_add(&t->runs, id, t->rows))
        return false;
    for (int64_t c = 0; c < t->columns; c++) {
        t->column[c][t->rows] = values[c];
        if (!t->origin[c])
            t->from[c] = t->rows + 1;
    }
    t->rows++;
    return true;
}

/* Takes the origin off the rows before the one that gave it. */
static weft_status finish_origins(store *t, const char *path, const char *const *names)
{
    for (int64_t c = 0; c < t->columns; c++)
        for (int64_t r = 0; t->origin[c] && r < t->from[c]; r++)
            if (!weft__move_origin(&t->column[c][r], 0, t->origin[c]))
                return weft__file_fail(
                    WEFT_EFORMAT,
                    "%s: column \"%.60s\": a double does not hold the number of row %lld, %.17g, less the "
                    "column's first large integer, %lld; integers nearer to it are expected",
                    path, names[c], (long long)r, t->column[c][r], (long long)t->origin[c]);
    return WEFT_OK;
}

static void end_store(store *t)
{
    for (int64_t c = 0; t->column && c < t->columns; c++)
        free(t->column[c]);
    free(t->column);
    free(t->origin);
    free(t->from);
    free(t->runs.run);
}

static weft_status read(const char *path, const char *id, const char *const *names, const weft_csv_opts *opts,
                        char **text, store *t)
{
    *text = NULL;
    *t = (store){ .columns = weft__names(names) };
    t->column = calloc((size_t)t->columns, sizeof *t->column);
    t->origin = calloc((size_t)t->columns, sizeof *t->origin);
    t->from = calloc((size_t)t->columns, sizeof *t->from);
    if (!t->column || !t->origin || !t->from)
        return weft__file_fail(WEFT_ENOMEM, "%s: out of memory", path);
    const weft__csv_want want = { id, names, (int)t->columns, false, opts, t->origin };
    weft_status s = weft__read_csv_rows(path, text, &want, store_row, t);
    return s == WEFT_OK ? finish_origins(t, path, names) : s;
}

weft_status weft_frame_read_csv(weft_frame *f, const char *path, const char *id, const char *const *names,
                                const weft_csv_opts *opts)
{
    weft_status s = weft__frame_takes("weft_frame_read_csv", f, names);
    if (s == WEFT_OK)
        s = weft__csv_opts_good("weft_frame_read_csv", opts);
    if (s != WEFT_OK)
        return s;
    store t;
    char *text;
    s = read(path, id, names, opts, &text, &t);
    if (s == WEFT_OK && !id) {                   /* an empty file is an empty series, too */
        const weft__stretch whole = { path, 0, t.rows, 0 };
        s = weft__frame_take(f, path, names, (const double *const *)t.column, t.origin, &whole, 1);
    } else if (s == WEFT_OK) {
        weft__runs_gather(&t.runs);
        s = weft__frame_take(f, path, names, (const double *const *)t.column, t.origin, t.runs.run,
                             t.runs.n);
    }
    end_store(&t);
    free(text);
    return s;
}

/* ---- a table of one row a series ---- */
/* to [series of f] the row of each; each id of the file once, each of the frame there. */
static weft_status match(const weft_frame *f, const char *path, store *t, int64_t *to)
{
    weft__runs_by_id(&t->runs);
    const weft__stretch *run = t->runs.run;
    for (int64_t i = 0; i < t->runs.n; i++)
        if (run[i].rows > 1 || (i && !strcmp(run[i].id, run[i - 1].id)))
            return weft__file_fail(WEFT_EFORMAT,
                                   "%s: there are two rows of \"%.100s\", one for each series is expected",
                                   path, run[i].id);
    for (int64_t s = 0; s < f->n; s++) {
        const weft__stretch key = { .id = f->id[s] };
        int64_t low = 0, high = t->runs.n;
        while (low < high) {
            int64_t middle = (low + high) / 2;
            if (strcmp(run[middle].id, key.id) < 0)
                low = middle + 1;
            else
                high = middle;
        }
        if (low == t->runs.n || strcmp(run[low].id, key.id))
            return weft__file_fail(WEFT_EFORMAT, "%s: there is no row of the series \"%.100s\"", path,
                                   key.id);
        to[s] = run[low].first;
    }
    return WEFT_OK;
}

static weft_status fix_all(weft_frame *f, const char *const *names, const store *t, const int64_t *row,
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
    store t;
    char *text;
    size_t n = f->n ? (size_t)f->n : 1;
    int64_t *row = malloc(n * sizeof *row);
    double *values = malloc(n * sizeof *values);
    s = read(path, id, names, opts, &text, &t);
    if (s == WEFT_OK && (!row || !values))
        s = weft__file_fail(WEFT_ENOMEM, "%s: out of memory", path);
    if (s == WEFT_OK)
        s = match(f, path, &t, row);
    if (s == WEFT_OK)
        s = fix_all(f, names, &t, row, values);
    free(row);
    free(values);
    end_store(&t);
    free(text);
    return s;
}
