/* frame_hdf5.c - frames in HDF5: below a group one data set [N] for each column, and where there are several
 * series "lengths" [n] and "ids", a text of as many lines. */
#include <stdlib.h>
#include <string.h>
#include "rnn/forecast/series/frame.h"
#include "io/hdf5/hdf5.h"

/* ---- reading ---- */
typedef struct {
    weft__h5 *h;
    const char *group, *path;
    double **column;
    int64_t *origin;                             /* [columns] */
    int64_t columns, rows, n;
    weft__stretch *parts;
    char *ids;
} reader;

static void read_column(reader *r, const char *name)
{
    char path[WEFT__H5_PATH];
    weft__kind kind;
    if (!weft__h5_find_list(r->h, r->group, name, false, path, &kind))
        return;
    if (r->columns && kind.size[0] != r->rows) {
        weft__h5_fail(r->h, WEFT_EFORMAT, "\"%s\" has %lld rows, other columns have %lld", path,
                      (long long)kind.size[0], (long long)r->rows);
        return;
    }
    r->rows = kind.size[0];
    r->column[r->columns] = weft__h5_read_new(r->h, path, &kind, WEFT__F64, &r->origin[r->columns]);
    r->columns++;
}

static void fill_parts(reader *r, const int64_t *len)
{
    int64_t total = 0;
    for (int64_t i = 0; i < r->n; i++) {
        if (len[i] < 0 || len[i] > r->rows - total) {
            weft__h5_fail(r->h, WEFT_EFORMAT, "series %lld has length %lld, %lld of %lld rows are left",
                          (long long)i, (long long)len[i], (long long)(r->rows - total), (long long)r->rows);
            return;
        }
        r->parts[i] = (weft__stretch){ NULL, total, len[i], i };
        total += len[i];
    }
    if (total != r->rows)
        weft__h5_fail(r->h, WEFT_EFORMAT, "there are %lld rows, the lengths add up to %lld",
                      (long long)r->rows, (long long)total);
}

static void read_parts(reader *r)
{
    char path[WEFT__H5_PATH];
    weft__kind kind = { WEFT__I64, 1, { 1 } };
    bool several = weft__h5_join(path, r->group, "lengths") && weft__h5_is(r->h, path);
    if (weft__h5_status(r->h) != WEFT_OK ||
        (several && !weft__h5_find_list(r->h, r->group, "lengths", true, path, &kind)))
        return;
    r->n = kind.size[0];
    int64_t *len = several ? weft__h5_read_new(r->h, path, &kind, WEFT__I64, NULL) : NULL;
    r->parts = calloc((size_t)r->n + 1, sizeof *r->parts);
    if (!r->parts)
        weft__h5_fail(r->h, WEFT_ENOMEM, "no memory for %lld series", (long long)r->n);
    if (weft__h5_status(r->h) == WEFT_OK)
        fill_parts(r, several ? len : &r->rows);
    if (!several && r->parts)
        r->parts[0].id = r->path;
    free(len);
}

/* If there is such a text; the lines become the parts' ids where they stand. Numbers of that name are a
 * column's. */
static void read_ids(reader *r)
{
    char path[WEFT__H5_PATH];
    weft__kind kind;
    if (!weft__h5_join(path, r->group, "ids") || !weft__h5_find(r->h, path, &kind) ||
        weft__number_is_any(kind.type))
        return;
    if (kind.type != WEFT__CHARS) {
        weft__h5_fail(
            r->h, WEFT_EFORMAT,
            "\"%s\" is no text of fixed length with a line for each series, as h5py writes numpy.bytes_",
            path);
        return;
    }
    char *at = r->ids = weft__h5_read_new(r->h, path, &kind, WEFT__CHARS, NULL);
    for (int64_t i = 0; i < r->n && weft__h5_status(r->h) == WEFT_OK; i++) {
        size_t n = strcspn(at, "\n");
        bool last = !at[n];                      /* it may do without a line end */
        if (last && !n) {
            weft__h5_fail(r->h, WEFT_EFORMAT, "\"%s\" has %lld lines, there are %lld series", path,
                          (long long)i, (long long)r->n);
            return;
        }
        at[n] = 0;
        r->parts[i].id = at;
        at += n + !last;
    }
    if (weft__h5_status(r->h) == WEFT_OK && at[strspn(at, " ")])      /* Fortran pads with blanks */
        weft__h5_fail(r->h, WEFT_EFORMAT, "\"%s\" has more lines than there are series, %lld", path,
                      (long long)r->n);
}

static weft_status read_all(reader *r, const char *const *names)
{
    size_t columns = (size_t)weft__names(names);
    weft_status s = weft__h5_open_file(r->path, weft__h5_signature, &r->h);
    if (s != WEFT_OK)
        return s;
    r->column = calloc(columns, sizeof *r->column);
    r->origin = calloc(columns, sizeof *r->origin);
    if (!r->column || !r->origin)
        weft__h5_fail(r->h, WEFT_ENOMEM, "out of memory");
    for (int64_t c = 0; names[c] && weft__h5_status(r->h) == WEFT_OK; c++)
        read_column(r, names[c]);
    if (weft__h5_status(r->h) == WEFT_OK)
        read_parts(r);
    if (weft__h5_status(r->h) == WEFT_OK)
        read_ids(r);
    return weft__h5_end(r->h);
}

weft_status weft_frame_read_hdf5(weft_frame *f, const char *path, const char *group, const char *const *names)
{
    weft_status s = weft__frame_takes("weft_frame_read_hdf5", f, names);
    if (s != WEFT_OK)
        return s;
    reader r = { .path = path, .group = group };
    s = read_all(&r, names);
    if (s == WEFT_OK)
        s = weft__frame_take(f, path, names, (const double *const *)r.column, r.origin, r.parts, r.n);
    for (int64_t c = 0; c < r.columns; c++)
        free(r.column[c]);
    free(r.column);
    free(r.origin);
    free(r.parts);
    free(r.ids);
    return s;
}

/* ---- writing ---- */
static weft_status can_be_written(const weft_frame *f, const char *group)
{
    char place[WEFT__H5_PATH];
    for (int64_t c = 0; c < f->columns; c++) {
        const char *name = f->name[c];
        if (strchr(name, '/') || !strcmp(name, ".") || !strcmp(name, "..") || !strcmp(name, "lengths") ||
            !strcmp(name, "ids") || !weft__h5_join(place, group, name))
            return weft__file_fail(WEFT_EARG,
                                   "weft_frame_write_hdf5: \"%.100s\" is no name for a data set here", name);
    }
    for (int64_t s = 0; s < f->n; s++)
        if (strchr(f->id[s], '\n'))
            return weft__file_fail(WEFT_EARG,
                                   "weft_frame_write_hdf5: the id of series %lld has more than one line",
                                   (long long)s);
    return weft__h5_join(place, group, "lengths") ?
               WEFT_OK :
               weft__file_fail(WEFT_EARG, "weft_frame_write_hdf5: the group's name is too long");
}

static char *lines_of(const weft_frame *f)
{
    size_t n = 1;
    for (int64_t s = 0; s < f->n; s++)
        n += strlen(f->id[s]) + 1;
    char *text = malloc(n), *at = text;
    for (int64_t s = 0; text && s < f->n; s++) {
        size_t bytes = strlen(f->id[s]);
        memcpy(at, f->id[s], bytes);
        at[bytes] = '\n';
        at += bytes + 1;
    }
    if (text)
        *at = 0;
    return text;
}

static void write_frame(weft__h5 *h, const char *group, const weft_frame *f, int64_t *len, int64_t *integers,
                        const char *ids)
{
    char path[WEFT__H5_PATH];
    weft__h5_join(path, group, "lengths");
    weft__h5_groups(h, path);
    for (int64_t s = 0; s < f->n; s++)
        len[s] = f->start[s + 1] - f->start[s];
    weft__h5_write(h, path, &(weft__kind){ WEFT__I64, 1, { f->n } }, len);
    weft__h5_join(path, group, "ids");
    weft__h5_write(h, path, &(weft__kind){ WEFT__CHARS, 1, { (int64_t)strlen(ids) + 1 } }, ids);
    for (int64_t c = 0; c < f->columns; c++) {
        weft__h5_join(path, group, f->name[c]);
        for (int64_t r = 0; f->origin[c] && r < f->rows; r++)
            weft__frame_integer(f, c, r, &integers[r]);
        weft__h5_write(h, path, &(weft__kind){ f->origin[c] ? WEFT__I64 : WEFT__F64, 1, { f->rows } },
                       f->origin[c] ? (const void *)integers : f->column[c]);
    }
}

weft_status weft_frame_write_hdf5(const weft_frame *f, const char *path, const char *group)
{
    weft_status s = weft__frame_good("weft_frame_write_hdf5", f);
    if (s == WEFT_OK && !path)
        s = weft__file_fail(WEFT_EARG, "weft_frame_write_hdf5: no path given");
    if (s == WEFT_OK)
        s = can_be_written(f, group);
    if (s == WEFT_OK)
        s = weft__frame_integers("weft_frame_write_hdf5", f, false);
    int64_t *len = s == WEFT_OK ? malloc((size_t)(f->n + 1 + f->rows) * sizeof *len) : NULL;
    char *ids = len ? lines_of(f) : NULL;
    weft__h5 *h = ids ? weft__h5_new(path, 0, false) : NULL;
    if (s == WEFT_OK && !h)
        s = weft__file_fail(WEFT_ENOMEM, "%s: out of memory", path);
    if (h) {
        write_frame(h, group, f, len, len + f->n + 1, ids);
        s = weft__h5_write_file(h);
    }
    free(len);
    free(ids);
    return s;
}
