/* hdf5.c - ragged data in HDF5: in a group, the data sets "rows" [N, columns], or "tokens" [N] for ints, and
 * "lengths" [n]. */
#include <stdlib.h>
#include "io/data/hdf5.h"

/* ---- reading ---- */
static void read_lengths(weft__h5 *h, const char *group, weft_dataset *d)
{
    char path[WEFT__H5_PATH];
    weft__kind kind;
    if (!weft__h5_find_list(h, group, "lengths", true, path, &kind))
        return;
    d->n = kind.size[0];
    int64_t *len = weft__h5_read_new(h, path, &kind, WEFT__I64, NULL);
    d->len = calloc((size_t)d->n + 1, sizeof *d->len);
    if (!d->len)
        weft__h5_fail(h, WEFT_ENOMEM, "no memory for %lld lengths", (long long)d->n);
    for (int64_t i = 0; i < d->n && weft__h5_status(h) == WEFT_OK; i++) {
        if (len[i] < 0 || len[i] > INT32_MAX)
            weft__h5_fail(h, WEFT_EFORMAT, "\"%s\": sequence %lld has length %lld; expected 0 .. 2^31 - 1",
                          path, (long long)i, (long long)len[i]);
        else
            d->len[i] = (int32_t)len[i];
    }
    free(len);
}

/* Checks that the set has the rows that the lengths require. */
static bool set_fits(weft__h5 *h, const char *path, const weft__kind *kind, const weft_dataset *d)
{
    int64_t total = 0;
    for (int64_t i = 0; i < d->n; i++)
        total += d->len[i];
    if (total != kind->size[0])
        weft__h5_fail(h, WEFT_EFORMAT, "\"%s\" has %lld rows; expected %lld, the sum of the lengths", path,
                      (long long)kind->size[0], (long long)total);
    return total == kind->size[0];
}

/* Finds the data set of the rows or tokens. Returns false on failure. */
static bool find_rows(weft__h5 *h, const char *group, weft_dataset *d, char path[WEFT__H5_PATH],
                      weft__kind *kind)
{
    char text[128];
    bool tokens = false, found = weft__h5_join(path, group, "rows") && weft__h5_find(h, path, kind);
    if (!found)
        tokens = found = weft__h5_join(path, group, "tokens") && weft__h5_find(h, path, kind);
    if (!found || weft__h5_status(h) != WEFT_OK)
        weft__h5_fail(h, WEFT_EFORMAT, "group \"%s\" has neither \"rows\" nor \"tokens\"; expected one of "
                                       "them",
                      group ? group : "/");
    else if (tokens ? kind->rank != 1 || !weft__number_is_int(kind->type) :
                      kind->rank != 2 || !weft__number_is_any(kind->type) || kind->size[1] < 1)
        weft__h5_fail(h, WEFT_EFORMAT, "\"%s\" is %s; expected %s", path, weft__kind_text(kind, text),
                      tokens ? "integers [N]" : "numbers [N, columns]");
    else
        d->columns = tokens ? 0 : kind->size[1];
    return weft__h5_status(h) == WEFT_OK && set_fits(h, path, kind, d);
}

bool weft__find_dataset(weft__h5 *h, const char *group, weft_dataset *d, char path[WEFT__H5_PATH],
                        weft__kind *kind)
{
    read_lengths(h, group, d);
    return weft__h5_status(h) == WEFT_OK && find_rows(h, group, d, path, kind);
}

void weft__read_dataset(weft__h5 *h, const char *path, const weft__kind *kind, weft_dataset *d)
{
    if (d->columns)
        d->rows = weft__h5_read_new(h, path, kind, weft__number_of(WEFT_REAL), NULL);
    else
        d->ints = weft__h5_read_new(h, path, kind, WEFT__I32, NULL);
}

weft_status weft_read_hdf5(const char *path, const char *group, weft_dataset *out)
{
    if (!out)
        return weft__file_fail(WEFT_EARG, "weft_read_hdf5: out is NULL; expected a dataset");
    *out = (weft_dataset){ 0 };
    char place[WEFT__H5_PATH];
    weft__kind kind;
    weft__h5 *h;
    weft_dataset d = { 0 };
    weft_status status = weft__h5_open_file(path, &h);
    if (status != WEFT_OK)
        return status;
    if (weft__find_dataset(h, group, &d, place, &kind))
        weft__read_dataset(h, place, &kind, &d);
    return weft__end_dataset(&d, weft__h5_end(h), path, out);
}

/* ---- writing ---- */
static bool consistent(const weft_dataset *d)
{
    if (!d || d->n < 0 || (d->n && !d->len) || d->columns < 0 || (d->rows && !d->columns))
        return false;
    for (int64_t i = 0; i < d->n; i++)
        if (d->len[i] < 0 || (d->len[i] && !d->rows && !d->ints))
            return false;
    return true;
}

static void write_dataset(weft__h5 *h, const char *group, const weft_dataset *d)
{
    char path[WEFT__H5_PATH];
    int64_t total = 0;
    for (int64_t i = 0; i < d->n; i++)
        total += d->len[i];
    weft__h5_join(path, group, "lengths");
    weft__h5_groups(h, path);
    weft__h5_write(h, path, &(weft__kind){ WEFT__I32, 1, { d->n } }, d->len);
    bool tokens = d->ints || !d->columns;
    weft__h5_join(path, group, tokens ? "tokens" : "rows");
    weft__kind ints = { WEFT__I32, 1, { total } },
               rows = { weft__number_of(WEFT_REAL), 2, { total, d->columns } };
    weft__h5_write(h, path, tokens ? &ints : &rows, tokens ? (const void *)d->ints : (const void *)d->rows);
}

weft_status weft_write_hdf5(const weft_dataset *data, const char *path, const char *group)
{
    char place[WEFT__H5_PATH];
    if (!path || !consistent(data) || !weft__h5_join(place, group, "lengths"))
        return weft__file_fail(WEFT_EARG,
                               "weft_write_hdf5: expected a path, a group of at most %d bytes, and a "
                               "dataset with lengths from 0 on",
                               WEFT__H5_PATH - 16);
    weft__h5 *h = weft__h5_new(path, 0, false);
    if (!h)
        return WEFT_ENOMEM;
    write_dataset(h, group, data);
    return weft__h5_write_file(h);
}
