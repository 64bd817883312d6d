/* frame_hdf5.c - frames in HDF5: a group has one data set [N] for each column. With several series it also
 * has "lengths" [n] and "ids", a text with one line for each series. */
#include <stdlib.h>
#include <string.h>
#include "rnn/forecast/series/frame.h"
#include "io/hdf5/hdf5.h"

/* ---- reading ---- */
static void read_columns(weft__h5 *h, const char *group, const char *const *names, weft__table *t)
{
    char path[WEFT__H5_PATH];
    weft__kind kind;
    t->columns = weft__names(names);
    t->column = calloc((size_t)t->columns, sizeof *t->column);
    t->origin = calloc((size_t)t->columns, sizeof *t->origin);
    if (!t->column || !t->origin)
        weft__h5_fail(h, WEFT_ENOMEM, "out of memory");
    for (int64_t c = 0; c < t->columns && weft__h5_status(h) == WEFT_OK; c++) {
        if (!weft__h5_find_list(h, group, names[c], false, path, &kind))
            return;
        if (c && kind.size[0] != t->rows)
            weft__h5_fail(h, WEFT_EFORMAT, "\"%s\" has %lld rows; expected %lld, as in the other columns",
                          path, (long long)kind.size[0], (long long)t->rows);
        else
            t->column[c] = weft__h5_read_new(h, path, &kind, WEFT__F64, &t->origin[c]);
        t->rows = kind.size[0];
    }
}

static void fill_runs(weft__h5 *h, weft__table *t, const int64_t *len)
{
    int64_t total = 0;
    for (int64_t i = 0; i < t->n; i++) {
        if (len[i] < 0 || len[i] > t->rows - total) {
            weft__h5_fail(h, WEFT_EFORMAT, "series %lld has length %lld; expected at most %lld of %lld rows",
                          (long long)i, (long long)len[i], (long long)(t->rows - total), (long long)t->rows);
            return;
        }
        t->run[i] = (weft__stretch){ NULL, total, len[i], i };
        total += len[i];
    }
    if (total != t->rows)
        weft__h5_fail(h, WEFT_EFORMAT, "%lld rows, lengths add up to %lld; expected equal numbers",
                      (long long)t->rows, (long long)total);
}

/* Without lengths all rows are one series, whose id is the file's path. */
static void read_lengths(weft__h5 *h, const char *group, const char *file, weft__table *t)
{
    char path[WEFT__H5_PATH];
    weft__kind kind = { WEFT__I64, 1, { 1 } };
    bool several = weft__h5_join(path, group, "lengths") && weft__h5_exists(h, path);
    if (weft__h5_status(h) != WEFT_OK ||
        (several && !weft__h5_find_list(h, group, "lengths", true, path, &kind)))
        return;
    int64_t *len = several ? weft__h5_read_new(h, path, &kind, WEFT__I64, NULL) : NULL;
    t->n = kind.size[0];
    t->run = calloc((size_t)t->n + 1, sizeof *t->run);
    if (!t->run)
        weft__h5_fail(h, WEFT_ENOMEM, "no memory for %lld series", (long long)t->n);
    if (weft__h5_status(h) == WEFT_OK)
        fill_runs(h, t, several ? len : &t->rows);
    if (!several && t->run)
        t->run[0].id = file;
    free(len);
}

/* Splits the text into the ids of the series, in place. If the data set has numbers, it is a column. */
static void read_ids(weft__h5 *h, const char *group, weft__table *t)
{
    char path[WEFT__H5_PATH];
    weft__kind kind;
    if (!weft__h5_join(path, group, "ids") || !weft__h5_find(h, path, &kind) ||
        weft__number_is_any(kind.type))
        return;
    if (kind.type != WEFT__CHARS) {
        weft__h5_fail(h, WEFT_EFORMAT,
                      "\"%s\" is not a text of fixed length; expected a line for each series, as h5py writes "
                      "numpy.bytes_",
                      path);
        return;
    }
    char *text = t->text = weft__h5_read_new(h, path, &kind, WEFT__CHARS, NULL);
    for (int64_t i = 0; i < t->n && weft__h5_status(h) == WEFT_OK; i++) {
        size_t n = strcspn(text, "\n");
        bool last = !text[n];                      /* the last line may lack a line end */
        if (last && !n) {
            weft__h5_fail(h, WEFT_EFORMAT, "\"%s\" has %lld lines; expected %lld, one for each series", path,
                          (long long)i, (long long)t->n);
            return;
        }
        text[n] = 0;
        t->run[i].id = text;
        text += n + !last;
    }
    if (weft__h5_status(h) == WEFT_OK && text[strspn(text, " ")])      /* Fortran pads with blanks */
        weft__h5_fail(h, WEFT_EFORMAT, "\"%s\" has more lines than series; expected %lld", path,
                      (long long)t->n);
}

weft_status weft_frame_read_hdf5(weft_frame *f, const char *path, const char *group, const char *const *names)
{
    weft__h5 *h;
    weft__table t = { 0 };
    weft_status s = weft__check_series("weft_frame_read_hdf5", f, names);
    s = s ? s : weft__h5_open_file(path, &h);
    if (s != WEFT_OK)
        return s;
    read_columns(h, group, names, &t);
    if (weft__h5_status(h) == WEFT_OK)
        read_lengths(h, group, path, &t);
    if (weft__h5_status(h) == WEFT_OK)
        read_ids(h, group, &t);
    s = weft__h5_end(h);
    s = s ? s : weft__append_table(f, path, names, &t);
    weft__table_end(&t);
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
                                   "weft_frame_write_hdf5: \"%.100s\"; expected a name of a data set", name);
    }
    for (int64_t s = 0; s < f->n; s++)
        if (strchr(f->id[s], '\n'))
            return weft__file_fail(
                WEFT_EARG, "weft_frame_write_hdf5: the id of series %lld has a line break; expected one line",
                (long long)s);
    return weft__h5_join(place, group, "lengths") ?
               WEFT_OK :
               weft__file_fail(WEFT_EARG, "weft_frame_write_hdf5: group: the name is too long");
}

static char *lines_of(const weft_frame *f)
{
    size_t n = 1;
    for (int64_t s = 0; s < f->n; s++)
        n += strlen(f->id[s]) + 1;
    char *text = calloc(n, 1), *next = text;
    for (int64_t s = 0; text && s < f->n; s++)
        next = stpcpy(stpcpy(next, f->id[s]), "\n");
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
    weft_status s = weft__check_frame("weft_frame_write_hdf5", f);
    if (s == WEFT_OK && !path)
        s = weft__file_fail(WEFT_EARG, "weft_frame_write_hdf5: path is NULL");
    s = s ? s : can_be_written(f, group);
    s = s ? s : weft__check_integers("weft_frame_write_hdf5", f, false);
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
