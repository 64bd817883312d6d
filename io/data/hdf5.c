/* hdf5.c - ragged data in HDF5: in a group, the data sets "rows" [N, columns], or "tokens" [N] for ints, and
 * "lengths" [n].
 *
 * A file that stays open has its lengths in memory, and the position of its numbers, which are stored end to
 * end. Sequences are read by this position, without libhdf5, so several threads can read.
 *
 * Opening reads only the pages that it needs. The file is not mapped into memory: if another program
 * shortened it, a mapped page would end this process, and libhdf5 must see the bytes that were checked. */
#include <stdlib.h>
#include <string.h>
#include "io/data/data.h"
#include "io/hdf5/hdf5.h"

/* ---- whole datasets ---- */
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

/* Reads lengths and columns of the dataset below a group, and finds the data set of its rows or tokens.
 * Returns false on failure. */
static bool find_dataset(weft__h5 *h, const char *group, weft_dataset *d, char path[WEFT__H5_PATH],
                         weft__kind *kind)
{
    read_lengths(h, group, d);
    return weft__h5_status(h) == WEFT_OK && find_rows(h, group, d, path, kind);
}

/* Reads the rows or tokens of that data set. */
static void read_dataset(weft__h5 *h, const char *path, const weft__kind *kind, weft_dataset *d)
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
    if (find_dataset(h, group, &d, place, &kind))
        read_dataset(h, place, &kind, &d);
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

/* ---- files that stay open ---- */
enum { PIECE = 1 << 20 };                        /* bytes converted at a time */

struct weft_hdf5 {
    char *path, set[WEFT__H5_PATH];              /* of the file; of the rows or tokens in it */
    int file;
    weft_dataset shape;                          /* has rows or ints only if they are not stored end to end */
    weft__kind kind; uint64_t offset;            /* kind of the set; position of its first byte */
};

static weft__number as_read(const weft_hdf5 *f)
{
    return f->shape.columns ? weft__number_of(WEFT_REAL) : WEFT__I32;
}
static int64_t width(const weft_hdf5 *f) { return f->shape.columns ? f->shape.columns : 1; }

static weft_status open_it(weft_hdf5 *f, const char *group)
{
    weft_dataset d = { 0 };
    weft__paged paged = { 0 };
    weft_status status = weft__open_file(f->path, &f->file, &paged.size);
    paged.file = f->file;
    weft__h5 *h = status ? NULL : weft__h5_open_paged(f->path, &paged);
    if (!h)
        return status ? status : WEFT_ENOMEM;
    bool found = find_dataset(h, group, &d, f->set, &f->kind);
    if (weft__end_dataset(&d, weft__h5_status(h), f->path, &f->shape) != WEFT_OK || !found)
        weft__h5_fail(h, WEFT_ENOMEM, "no memory for %lld lengths", (long long)d.n);
    else if (!weft__h5_place(h, f->set, &f->offset) && weft__h5_status(h) == WEFT_OK)
        read_dataset(h, f->set, &f->kind, &f->shape);
    return weft__h5_end(h);
}

weft_status weft_open_hdf5(const char *path, const char *group, weft_hdf5 **out)
{
    if (out)
        *out = NULL;
    if (!out || !path || !*path)
        return weft__file_fail(WEFT_EARG, "weft_open_hdf5: path or out is NULL; expected a path and a "
                                          "pointer for the file");
    weft_hdf5 *f = calloc(1, sizeof *f);
    char *copy = strdup(path);
    weft_status status = f && copy ? WEFT_OK : weft__file_fail(WEFT_ENOMEM, "%s: out of memory", path);
    if (f)
        *f = (weft_hdf5){ .path = copy, .file = -1 };
    else
        free(copy);
    status = status ? status : open_it(f, group);
    if (status != WEFT_OK)
        weft_close_hdf5(f);
    else
        *out = f;
    return status;
}

void weft_close_hdf5(weft_hdf5 *f)
{
    if (!f)
        return;
    if (f->file >= 0)
        weft__close_file(f->file);
    weft_dataset_free(&f->shape);
    free(f->path);
    free(f);
}

weft_dataset weft_hdf5_shape(const weft_hdf5 *f)
{
    weft_dataset shape = f ? f->shape : (weft_dataset){ 0 };
    shape.rows = NULL;
    shape.ints = NULL;
    shape.file = f;
    return shape;
}

/* ---- parts of them ---- */
static weft_status read_bytes(const weft_hdf5 *f, uint64_t offset, void *bytes, size_t n)
{
    weft__paged p = { .file = f->file };
    if (weft__paged_pass(&p, (size_t)offset, n, bytes))
        return WEFT_OK;
    return weft__file_fail(p.status, "%s: cannot be read: %s", f->path, p.reason);
}

/* Reads and converts n numbers, starting at number `from`, piece by piece. */
static weft_status read_converted(const weft_hdf5 *f, int64_t from, char *to, int64_t n)
{
    size_t unit = weft__number_bytes(f->kind.type), own = weft__number_bytes(as_read(f));
    int64_t most = PIECE / (int64_t)unit;
    unsigned char *raw = malloc(PIECE);
    weft_status status = raw ? WEFT_OK : weft__file_fail(WEFT_ENOMEM, "%s: out of memory", f->path);
    for (int64_t done = 0; done < n && !status; done += most) {
        weft__kind piece = { f->kind.type, 1, { n - done < most ? n - done : most } };
        char name[WEFT__H5_PATH + 64];
        int64_t first = from + done;
        snprintf(name, sizeof name, "\"%s\" from number %lld on", f->set, (long long)first);
        status = read_bytes(f, f->offset + (uint64_t)first * unit, raw, weft__kind_bytes(&piece));
        if (!status)
            status = weft__convert(f->path, name, &piece, as_read(f), NULL, raw,
                                   to + (size_t)done * own);
    }
    free(raw);
    return status;
}

static weft_status read_rows(const weft_hdf5 *f, int64_t row, int64_t rows, char *to)
{
    size_t unit = weft__number_bytes(as_read(f)), n = (size_t)(rows * width(f));
    const char *small = f->shape.columns ? (char *)f->shape.rows : (char *)f->shape.ints;
    int64_t from = row * width(f);
    if (small) {
        memcpy(to, small + (size_t)from * unit, n * unit);
        return WEFT_OK;
    }
    if (f->kind.type != as_read(f))
        return read_converted(f, from, to, (int64_t)n);
    weft_status status = read_bytes(f, f->offset + (uint64_t)from * unit, to, n * unit);
    if (!status)
        weft__turn(unit, to, n * unit);
    return status;
}

weft_status weft__hdf5_rows(const weft_hdf5 *f, int64_t from, int64_t n, void *to)
{
    int64_t all = f->shape.n ? f->shape.offset[f->shape.n] : 0;
    if (from < 0 || n < 0 || from > all || n > all - from)
        return weft__file_fail(WEFT_EARG, "%s: rows %lld .. %lld; expected rows of \"%s\", which has %lld",
                               f->path, (long long)from, (long long)(from + n - 1), f->set, (long long)all);
    return n ? read_rows(f, from, n, to) : WEFT_OK;
}

/* Allocates lengths and rows, and counts the tokens. */
static weft_status begin(const weft_hdf5 *f, const int32_t *index, weft_dataset *d, int64_t *total)
{
    size_t unit = weft__number_bytes(as_read(f)) * (size_t)width(f);
    d->len = malloc(((size_t)d->n + 1) * sizeof *d->len);
    d->id = malloc(((size_t)d->n + 1) * sizeof *d->id);
    *total = 0;
    for (int64_t i = 0; i < d->n && d->len && d->id; i++) {
        d->len[i] = f->shape.len[index[i]];
        d->id[i] = index[i];
        *total += d->len[i];
    }
    d->columns = f->shape.columns;
    bool fits = d->len && d->id && (uint64_t)*total < SIZE_MAX / unit;
    void *rows = fits ? malloc(((size_t)*total + 1) * unit) : NULL;
    if (d->columns)
        d->rows = rows;
    else
        d->ints = rows;
    return rows ? WEFT_OK :
                  weft__file_fail(WEFT_ENOMEM, "%s: no memory for %lld rows of %lld sequences", f->path,
                                  (long long)*total, (long long)d->n);
}

weft_status weft_read_hdf5_part(const weft_hdf5 *f, const int32_t *index, int64_t n, weft_dataset *out)
{
    weft_dataset d = { .n = n };
    int64_t total;
    if (out)
        *out = (weft_dataset){ 0 };
    if (!f || !out || n < 0 || n >= INT32_MAX || (n && !index))
        return weft__file_fail(WEFT_EARG, "weft_read_hdf5_part: expected an open file, 0 .. 2^31 - 2 "
                                          "indices, and a dataset");
    for (int64_t i = 0; i < n; i++)
        if (index[i] < 0 || index[i] >= f->shape.n)
            return weft__file_fail(
                WEFT_EARG, "weft_read_hdf5_part: %s: index %lld is sequence %d; expected 0 .. %lld",
                f->path, (long long)i, index[i], (long long)f->shape.n - 1);
    weft_status status = begin(f, index, &d, &total);
    const weft_dataset whole = weft_hdf5_shape(f);
    if (!status)
        status = weft__gather(&whole, index, n, d.columns ? (void *)d.rows : (void *)d.ints);
    return weft__end_dataset(&d, status, f->path, out);
}
