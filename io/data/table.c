/* table.c - stretches of rows with one id, and their rows as ragged data. Rows of equal ids become one
 * sequence, wherever they are in the file. */
#include <stdlib.h>
#include <string.h>
#include "io/data/data.h"

bool weft__table_add_id(weft__table *t, const char *id)
{
    weft__stretch *last = t->n ? &t->run[t->n - 1] : NULL;
    if (last && !strcmp(id, last->id)) {
        last->rows++;
        return true;
    }
    weft__stretch *more = weft__grown(t->run, t->n, sizeof *more);
    if (!more)
        return false;
    t->run = more;
    t->run[t->n] = (weft__stretch){ id, t->rows, 1, t->n };
    t->n++;
    return true;
}

static int order_of(int64_t a, int64_t b) { return (a > b) - (a < b); }

static int by_id(const void *a, const void *b)
{
    const weft__stretch *p = a, *q = b;
    int order = strcmp(p->id, q->id);
    return order ? order : order_of(p->group, q->group);
}

static int by_group(const void *a, const void *b)
{
    const weft__stretch *p = a, *q = b;
    int order = order_of(p->group, q->group);
    return order ? order : order_of(p->first, q->first);
}

static int id_only(const void *key, const void *it) { return strcmp(key, ((const weft__stretch *)it)->id); }

static void sort(weft__table *t, int (*compare)(const void *, const void *))
{
    if (t->n)
        qsort(t->run, (size_t)t->n, sizeof *t->run, compare);
}

const char *weft__table_repeated(weft__table *t)
{
    sort(t, by_id);
    for (int64_t i = 0; i < t->n; i++)
        if (t->run[i].rows > 1 || (i && !strcmp(t->run[i].id, t->run[i - 1].id)))
            return t->run[i].id;
    return NULL;
}

const weft__stretch *weft__table_find(const weft__table *t, const char *id)
{
    return t->n ? bsearch(id, t->run, (size_t)t->n, sizeof *t->run, id_only) : NULL;
}

void weft__table_gather(weft__table *t)
{
    sort(t, by_id);
    for (int64_t i = 1; i < t->n; i++)
        if (!strcmp(t->run[i].id, t->run[i - 1].id))
            t->run[i].group = t->run[i - 1].group;
    sort(t, by_group);
}

void weft__table_end(weft__table *t)
{
    for (int64_t c = 0; t->column && c < t->columns; c++)
        free(t->column[c]);
    free(t->column);
    free(t->origin);
    free(t->run);
    free(t->text);
}

/* ---- ragged data ---- */
/* Copies the rows in the order of their sequences. Returns false if memory is short, or for a sequence of
 * 2^31 rows or more. */
static bool to_dataset(const weft__table *t, weft_dataset *d)
{
    const weft__stretch *run = t->run;
    int64_t rows = 0;
    d->columns = t->columns;
    d->len = malloc(((size_t)t->n + 1) * sizeof *d->len);
    weft_real *to = d->rows = malloc(((size_t)(t->rows * t->columns) + 1) * sizeof *to);
    if (!d->len || !to)
        return false;
    for (int64_t i = 0; i < t->n; i++) {
        for (int64_t r = run[i].first; r < run[i].first + run[i].rows; r++)
            for (int64_t c = 0; c < t->columns; c++)
                *to++ = (weft_real)t->column[c][r];
        rows = i && run[i].group == run[i - 1].group ? rows : 0;
        rows += run[i].rows;
        d->n += rows == run[i].rows;
        d->len[d->n - 1] = (int32_t)rows;
        if (rows > INT32_MAX)
            return false;
    }
    return true;
}

weft_status weft_read_csv(const char *path, const char *id, const char *const *columns, int64_t n,
                          const weft_csv_opts *opts, weft_dataset *out)
{
    weft__table t;
    weft_dataset d = { 0 };
    bool complete = id && columns && n > 0 && n < 1 << 20 && out;
    for (int64_t i = 0; complete && i < n; i++)
        complete = columns[i] != NULL;
    if (out)
        *out = d;
    if (!complete)
        return weft__file_fail(
            WEFT_EARG, "weft_read_csv: expected a name for the id, at least one column and a dataset");
    weft_status status = weft__csv_opts_good("weft_read_csv", opts);
    if (status != WEFT_OK)
        return status;
    status = weft__read_table(&t, path, id, columns, n, opts, true);
    if (status == WEFT_OK && !to_dataset(&t, &d))
        status = weft__file_fail(WEFT_ENOMEM, "%s: out of memory, or a sequence of 2^31 rows", path);
    weft__table_end(&t);
    return weft__end_dataset(&d, status, path, out);
}
