/* frame_csv_write.c - frames to CSV, as weft_frame_read_csv takes it back to the bit: a column "id", then the
 * frame's own. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "io/text.h"
#include "rnn/forecast/series/frame.h"

static const char id_column[] = "id";

/* ---- a text that grows ---- */
typedef struct { char *at; size_t n, room; bool lost; } text;

static void add(text *t, const char *bytes, size_t n)
{
    if (n > t->room - t->n && !t->lost) {
        size_t room = 2 * t->room + n + 4096;
        char *more = room < SIZE_MAX / 4 ? realloc(t->at, room) : NULL;
        t->lost = !more;
        t->at = more ? more : t->at;
        t->room = more ? room : t->room;
    }
    if (t->lost)
        return;
    memcpy(t->at + t->n, bytes, n);
    t->n += n;
}

/* In quotes where it must be. */
static void write_field(text *t, const char *field)
{
    if (!strpbrk(field, ",\"\r\n")) {
        add(t, field, strlen(field));
        return;
    }
    add(t, "\"", 1);
    for (const char *at = field; *at; at++)
        add(t, *at == '"' ? "\"\"" : at, *at == '"' ? 2 : 1);
    add(t, "\"", 1);
}

static void add_number(text *t, double value)
{
    char digits[40];
    int n = isnan(value) ? snprintf(digits, sizeof digits, "%snan", signbit(value) ? "-" : "") :
                           weft__shortest(digits, value);
    add(t, digits, (size_t)n);
}

static void add_cell(text *t, const weft_frame *f, int64_t c, int64_t row)
{
    char digits[64];
    double value = f->column[c][row];
    if (f->origin[c] && !isnan(value))
        add(t, digits, strlen(weft__frame_number(f, c, row, digits)));
    else
        add_number(t, value);
}

static void write_rows(text *t, const weft_frame *f, int64_t series)
{
    for (int64_t r = f->start[series]; r < f->start[series + 1] && !t->lost; r++) {
        write_field(t, f->id[series]);
        for (int64_t c = 0; c < f->columns; c++) {
            add(t, ",", 1);
            add_cell(t, f, c, r);
        }
        add(t, "\n", 1);
    }
}

static void add_all(text *t, const weft_frame *f)
{
    write_field(t, id_column);
    for (int64_t c = 0; c < f->columns; c++) {
        add(t, ",", 1);
        write_field(t, f->name[c]);
    }
    add(t, "\n", 1);
    for (int64_t s = 0; s < f->n; s++)
        write_rows(t, f, s);
}

/* ---- what a file of rows cannot hold ---- */
static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static weft_status ids_differ(const char *me, const weft_frame *f)
{
    char **sorted = malloc((size_t)(f->n + 1) * sizeof *sorted);
    if (!sorted)
        return weft__file_fail(WEFT_ENOMEM, "%s: out of memory for %lld ids", me, (long long)f->n);
    weft_status s = WEFT_OK;
    for (int64_t i = 0; i < f->n; i++)
        sorted[i] = f->id[i];
    if (f->n)
        qsort(sorted, (size_t)f->n, sizeof *sorted, by_text);
    for (int64_t i = 1; i < f->n && s == WEFT_OK; i++)
        if (!strcmp(sorted[i], sorted[i - 1]))
            s = weft__file_fail(WEFT_EARG, "%s: two series have the id \"%.100s\"; they would be read as one",
                                me, sorted[i]);
    free(sorted);
    return s;
}

static weft_status can_be_written(const char *me, const weft_frame *f)
{
    if (!f->columns)
        return weft__file_fail(WEFT_EARG, "%s: the frame has no column", me);
    if (weft__find_name(f->name, f->columns, id_column) >= 0)
        return weft__file_fail(
            WEFT_EARG, "%s: a column has the name \"%s\", which is that of the series' ids", me, id_column);
    for (int64_t s = 0; s < f->n; s++)
        if (f->start[s] == f->start[s + 1])
            return weft__file_fail(
                WEFT_EARG, "%s: series %lld, \"%.100s\", has no row; weft_frame_write_hdf5 writes such ones",
                me, (long long)s, f->id[s]);
    weft_status s = weft__frame_integers(me, f, true);
    return s == WEFT_OK ? ids_differ(me, f) : s;
}

weft_status weft_frame_write_csv(const weft_frame *f, const char *path)
{
    const char *me = "weft_frame_write_csv";
    weft_status s = weft__frame_good(me, f);
    if (s == WEFT_OK && !path)
        s = weft__file_fail(WEFT_EARG, "%s: no path given", me);
    if (s == WEFT_OK)
        s = can_be_written(me, f);
    if (s != WEFT_OK)
        return s;
    text t = { 0 };
    locale_t before = weft__plain_locale();
    add_all(&t, f);
    weft__plain_locale_end(before);
    s = t.lost ? weft__file_fail(WEFT_ENOMEM, "%s: no memory for the text of %lld rows", path,
                                 (long long)f->rows) :
                 weft__write_file(path, &(weft__span){ t.at, t.n }, 1);
    free(t.at);
    return s;
}
