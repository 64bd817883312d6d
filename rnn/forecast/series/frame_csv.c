/* frame_csv.c - frames from CSV: rows gathered by id whatever their order, and tables of one row a series. */
#include <stdlib.h>
#include <string.h>
#include "rnn/forecast/series/frame.h"

/* ---- rows as they come: columns that grow, and runs of rows with the same id ---- */
typedef struct {
    double **column;
    int64_t columns, rows, room;
    weft__stretch *runs;
    int64_t n, run_room;
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

static bool new_run(store *t, const char *id)
{
    if (t->n == t->run_room) {
        int64_t room = t->run_room ? 2 * t->run_room : 64;
        weft__stretch *more = realloc(t->runs, (size_t)room * sizeof *more);
        if (!more)
            return false;
        t->runs = more;
        t->run_room = room;
    }
    t->runs[t->n] = (weft__stretch){ id, t->rows, 0, t->n };
    t->n++;
    return true;
}

static bool store_row(void *user, const char *id, const double *values)
{
    store *t = user;
    if (t->rows == t->room && !grow_columns(t))
        return false;
    if ((!t->n || (id && strcmp(id, t->runs[t->n - 1].id))) && !new_run(t, id))
        return false;
    for (int64_t c = 0; c < t->columns; c++)
        t->column[c][t->rows] = values[c];
    t->rows++;
    t->runs[t->n - 1].rows++;
    return true;
}

static void end_store(store *t)
{
    for (int64_t c = 0; t->column && c < t->columns; c++)
        free(t->column[c]);
    free(t->column);
    free(t->runs);
}

/* ---- runs of one id, wherever they stand, become one series at the place of the first ---- */
static int by_id(const void *a, const void *b)
{
    const weft__stretch *p = a, *q = b;
    int order = strcmp(p->id, q->id);
    return order ? order : (p->group > q->group) - (p->group < q->group);
}

static int by_group(const void *a, const void *b)
{
    const weft__stretch *p = a, *q = b;
    int order = (p->group > q->group) - (p->group < q->group);
    return order ? order : (p->first > q->first) - (p->first < q->first);
}

static void gather_frame(store *t)
{
    if (t->n < 2)
        return;
    qsort(t->runs, (size_t)t->n, sizeof *t->runs, by_id);
    for (int64_t i = 1; i < t->n; i++)
        if (!strcmp(t->runs[i].id, t->runs[i - 1].id))
            t->runs[i].group = t->runs[i - 1].group;
    qsort(t->runs, (size_t)t->n, sizeof *t->runs, by_group);
}

static weft_status read(const char *path, const char *id, const char *const *names, const weft_csv_opts *opts,
                        char **text, store *t)
{
    *text = NULL;
    *t = (store){ .columns = weft__names(names) };
    t->column = calloc((size_t)t->columns, sizeof *t->column);
    if (!t->column)
        return weft__file_fail(WEFT_ENOMEM, "%s: out of memory", path);
    return weft__read_csv_rows(path, text, &(weft__csv_want){ id, names, (int)t->columns, false, opts },
                               store_row, t);
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
    /* without ids an empty file is an empty series */
    if (s == WEFT_OK && !id && !t.n && !new_run(&t, NULL))
        s = weft__file_fail(WEFT_ENOMEM, "%s: out of memory", path);
    if (s == WEFT_OK) {
        gather_frame(&t);
        if (!id)
            t.runs[0].id = path;
        s = weft__frame_take(f, path, names, (const double *const *)t.column, t.runs, t.n);
    }
    end_store(&t);
    free(text);
    return s;
}

/* ---- a table of one row a series ---- */
/* to [series of f] the row of each; each id of the file once, each of the frame there. */
static weft_status match(const weft_frame *f, const char *path, store *t, int64_t *to)
{
    /* else there is no array, and qsort wants one even for nothing */
    if (t->n)
        qsort(t->runs, (size_t)t->n, sizeof *t->runs, by_id);
    for (int64_t i = 0; i < t->n; i++)
        if (t->runs[i].rows > 1 || (i && !strcmp(t->runs[i].id, t->runs[i - 1].id)))
            return weft__file_fail(WEFT_EFORMAT,
                                   "%s: there are two rows of \"%.100s\", one for each series is expected",
                                   path, t->runs[i].id);
    for (int64_t s = 0; s < f->n; s++) {
        const weft__stretch key = { .id = f->id[s] };
        int64_t low = 0, high = t->n;
        while (low < high) {
            int64_t middle = (low + high) / 2;
            if (strcmp(t->runs[middle].id, key.id) < 0)
                low = middle + 1;
            else
                high = middle;
        }
        if (low == t->n || strcmp(t->runs[low].id, key.id))
            return weft__file_fail(WEFT_EFORMAT, "%s: there is no row of the series \"%.100s\"", path,
                                   key.id);
        to[s] = t->runs[low].first;
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
