/* frame_csv.c - reads and writes frames as CSV: rows of an id in any position, and tables with one row for
 * each series. Written files have a column "id" and the frame's columns, and read back to the same bits. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "rnn/forecast/series/frame.h"

weft_status weft_frame_read_csv(weft_frame *f, const char *path, const char *id, const char *const *names,
                                const weft_csv_opts *opts)
{
    weft__table t = { 0 };
    weft_status s = weft__check_series("weft_frame_read_csv", f, names);
    s = s ? s : weft__csv_opts_good("weft_frame_read_csv", opts);
    s = s ? s : weft__read_table(&t, path, id, names, weft__names(names), opts, false);
    s = s ? s : weft__append_table(f, path, names, &t);
    weft__table_end(&t);
    return s;
}

/* ---- a table with one row for each series ---- */
/* Fills values [n] from a column, by the row of each series' id, which must be in the file. */
static weft_status match_column(const weft_frame *f, const char *path, const weft__table *t, int64_t column,
                                double *values)
{
    for (int64_t s = 0; s < f->n; s++) {
        const weft__stretch *found = weft__table_find(t, f->id[s]);
        if (!found)
            return weft__file_fail(WEFT_EFORMAT, "%s: no row of \"%.100s\"; expected one for each series",
                                   path, f->id[s]);
        values[s] = t->column[column][found->first];
    }
    return WEFT_OK;
}

/* Adds the columns of a table, all or none. */
static weft_status add_matched(weft_frame *f, const char *path, const char *const *names, weft__table *t)
{
    const char *duplicate = weft__table_repeated(t);
    if (duplicate)
        return weft__file_fail(WEFT_EFORMAT, "%s: two rows of \"%.100s\"; expected one for each series", path,
                               duplicate);
    double *values = malloc(((size_t)f->n + 1) * sizeof *values);
    weft_status s = values ? WEFT_OK : weft__file_fail(WEFT_ENOMEM, "%s: out of memory", path);
    int64_t before = f->columns;
    for (int64_t c = 0; s == WEFT_OK && c < t->columns; c++) {
        s = match_column(f, path, t, c, values);
        s = s ? s : weft_frame_add_column(f, names[c], values, WEFT_PER_SERIES);
        if (s == WEFT_OK)
            f->origin[f->columns - 1] = t->origin[c];
    }
    if (s != WEFT_OK)
        weft__drop_columns(f, before);
    free(values);
    return s;
}

weft_status weft_frame_add_static_csv(weft_frame *f, const char *path, const char *id,
                                      const char *const *names, const weft_csv_opts *opts)
{
    const char *function = "weft_frame_add_static_csv";
    weft__table t = { 0 };
    weft_status s = weft__check_frame(function, f);
    s = s ? s : weft__check_names(function, names);
    s = s ? s : weft__csv_opts_good(function, opts);
    if (s == WEFT_OK && !id)
        s = weft__file_fail(WEFT_EARG, "%s: id is NULL; expected the name of the column of ids", function);
    s = s ? s : weft__read_table(&t, path, id, names, weft__names(names), opts, false);
    s = s ? s : add_matched(f, path, names, &t);
    weft__table_end(&t);
    return s;
}

/* ---- writing ---- */
static const char id_column[] = "id";

/* Writes a field, in quotes if necessary. */
static void write_field(FILE *to, const char *field)
{
    if (!strpbrk(field, ",\"\r\n")) {
        fputs(field, to);
        return;
    }
    fputc('"', to);
    for (const char *p = field; *p; p++)
        fputs(*p == '"' ? "\"\"" : (char[]){ *p, 0 }, to);
    fputc('"', to);
}

static void write_number(FILE *to, const weft_frame *f, int64_t c, int64_t row)
{
    char digits[64];
    double value = f->column[c][row];
    if (isnan(value))
        fprintf(to, ",%snan", signbit(value) ? "-" : "");
    else if (f->origin[c])
        fprintf(to, ",%s", weft__frame_number(f, c, row, digits));
    else
        fprintf(to, ",%.*s", weft__shortest(digits, value), digits);
}

static void write_all(FILE *to, const weft_frame *f)
{
    write_field(to, id_column);
    for (int64_t c = 0; c < f->columns; c++) {
        fputc(',', to);
        write_field(to, f->name[c]);
    }
    for (int64_t s = 0; s < f->n; s++)
        for (int64_t r = f->start[s]; r < f->start[s + 1] && !ferror(to); r++) {
            fputc('\n', to);
            write_field(to, f->id[s]);
            for (int64_t c = 0; c < f->columns; c++)
                write_number(to, f, c, r);
        }
    fputc('\n', to);
}

/* ---- frames that a file of rows cannot represent ---- */
static weft_status ids_differ(const char *function, const weft_frame *f)
{
    weft__table t = { 0 };
    bool ok = true;
    for (int64_t s = 0; s < f->n && ok; s++)
        ok = weft__table_add_id(&t, f->id[s]);
    const char *duplicate = ok ? weft__table_repeated(&t) : NULL;
    weft_status s = WEFT_OK;
    if (!ok)
        s = weft__file_fail(WEFT_ENOMEM, "%s: out of memory for %lld ids", function, (long long)f->n);
    else if (duplicate)
        s = weft__file_fail(WEFT_EARG, "%s: two series have the id \"%.100s\"; expected different ids",
                            function, duplicate);
    weft__table_end(&t);
    return s;
}

static weft_status can_be_written(const char *function, const weft_frame *f)
{
    if (!f->columns)
        return weft__file_fail(WEFT_EARG, "%s: the frame has no column; expected one or more", function);
    if (weft__frame_find(f, id_column) >= 0)
        return weft__file_fail(WEFT_EARG, "%s: column \"%s\"; expected another name, because the ids have it",
                               function, id_column);
    for (int64_t s = 0; s < f->n; s++)
        if (f->start[s] == f->start[s + 1])
            return weft__file_fail(
                WEFT_EARG, "%s: series %lld, \"%.100s\", has no row; expected one (or weft_frame_write_hdf5)",
                function, (long long)s, f->id[s]);
    weft_status s = weft__check_integers(function, f, true);
    return s == WEFT_OK ? ids_differ(function, f) : s;
}

weft_status weft_frame_write_csv(const weft_frame *f, const char *path)
{
    const char *function = "weft_frame_write_csv";
    weft_status s = weft__check_frame(function, f);
    if (s == WEFT_OK && !path)
        s = weft__file_fail(WEFT_EARG, "%s: path is NULL", function);
    s = s ? s : can_be_written(function, f);
    if (s != WEFT_OK)
        return s;
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    void *before = weft__plain_locale();
    if (to)
        write_all(to, f);
    weft__plain_locale_end(before);
    bool lost = !to || ferror(to);
    lost = (to && fclose(to)) || lost;
    s = lost ? weft__file_fail(WEFT_ENOMEM, "%s: no memory for the text of %lld rows", path,
                               (long long)f->rows) :
               weft__write_file(path, &(weft__span){ text, size }, 1);
    free(text);
    return s;
}
