/* frame_split.c - splits a frame in two: by series, or into first rows of each series and the rest. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "rnn/forecast/series/frame.h"

enum { FIRST, REST };                            /* the parts */
/* The frame, and the rows of each part, one stretch for each series. */
typedef struct { const weft_frame *f; weft__stretch *stretch[2]; int64_t n[2]; } cut;
static const char function[] = "weft_frame_split";

/* Checks the frames and empties the parts. The caller frees stretch[FIRST]. */
static weft_status begin_cut(cut *c, const weft_frame *f, weft_frame *first, weft_frame *rest)
{
    *c = (cut){ .f = f };
    if (first && first != f)
        *first = (weft_frame){ 0 };
    if (rest && rest != f)
        *rest = (weft_frame){ 0 };
    if (!first || !rest || first == rest || first == f || rest == f)
        return weft__file_fail(WEFT_EARG, "%s: parts: expected two other frames than the one to split",
                               function);
    weft_status s = weft__check_frame(function, f);
    if (s != WEFT_OK)
        return s;
    c->stretch[FIRST] = malloc(2 * ((size_t)f->n + 1) * sizeof *c->stretch[FIRST]);
    if (!c->stretch[FIRST])
        return weft__file_fail(WEFT_ENOMEM, "%s: out of memory for %lld series", function, (long long)f->n);
    c->stretch[REST] = c->stretch[FIRST] + f->n + 1;
    return WEFT_OK;
}

/* Appends rows first .. end - 1 of the frame, all of one series, to a part. */
static void append_rows(cut *c, int to, int64_t series, int64_t first, int64_t end)
{
    c->stretch[to][c->n[to]] = (weft__stretch){ c->f->id[series], first, end - first, c->n[to] };
    c->n[to]++;
}

static weft_status fill_part(const cut *c, int part, weft_frame *to)
{
    if (!c->f->columns)                          /* an empty frame has empty parts */
        return WEFT_OK;
    const weft__table t = {
        .column = c->f->column, .origin = c->f->origin, .run = c->stretch[part], .n = c->n[part]
    };
    return weft__append_table(to, function, (const char *const *)c->f->name, &t);
}

/* ---- by series ---- */
static weft_status check_permutation(const weft_frame *f, const int32_t *order)
{
    char *seen = order ? calloc((size_t)f->n + 1, 1) : NULL;
    if (order && !seen)
        return weft__file_fail(WEFT_ENOMEM, "%s: out of memory for %lld series", function, (long long)f->n);
    weft_status s = WEFT_OK;
    for (int64_t i = 0; order && i < f->n && s == WEFT_OK; i++)
        if (order[i] < 0 || order[i] >= f->n || seen[order[i]]++)
            s = weft__file_fail(WEFT_EARG,
                                "%s: order[%lld] is %d; expected each of the series 0 .. %lld once", function,
                                (long long)i, (int)order[i], (long long)f->n - 1);
    free(seen);
    return s;
}

static weft_status split_by_series(cut *c, const weft_frame_split_opts *o)
{
    const weft_frame *f = c->f;
    if (o->series < 0 || o->series > f->n)
        return weft__file_fail(WEFT_EARG, "%s: %lld of %lld series; expected 1 .. %lld", function,
                               (long long)o->series, (long long)f->n, (long long)f->n);
    weft_status s = check_permutation(f, o->order);
    for (int64_t i = 0; i < f->n && s == WEFT_OK; i++) {
        int64_t series = o->order ? o->order[i] : i;
        append_rows(c, i < o->series ? FIRST : REST, series, f->start[series], f->start[series + 1]);
    }
    return s;
}

/* ---- by rows ---- */
/* Cuts series s before `row`, counted from the first series. */
static void append_to_both(cut *c, int64_t s, int64_t row)
{
    append_rows(c, FIRST, s, c->f->start[s], row);
    append_rows(c, REST, s, row, c->f->start[s + 1]);
}

static weft_status split_by_fraction(cut *c, const weft_frame_split_opts *o)
{
    double fraction = weft__or(o->fraction, 0);
    if (!(fraction >= 0 && fraction <= 1))
        return weft__file_fail(WEFT_EARG, "%s: fraction %g; expected 0 .. 1", function, fraction);
    for (int64_t i = 0; i < c->f->n; i++)
        append_to_both(c, i, c->f->start[i] +
                                 llround(fraction * (double)(c->f->start[i + 1] - c->f->start[i])));
    return WEFT_OK;
}

/* ---- by time ---- */
/* Sets *row to the first row of series s that is not before `limit`. */
static weft_status find_row(const weft_frame *f, int64_t s, int64_t column, double limit, int64_t *row)
{
    const double *time = f->column[column];
    char now[64], before[64];
    *row = f->start[s];
    for (int64_t r = f->start[s]; r < f->start[s + 1]; r++) {
        if (isnan(time[r]) || (r > f->start[s] && !(time[r] > time[r - 1])))
            return weft__file_fail(
                WEFT_EARG, "%s: series \"%.100s\", row %lld: the time is %s; expected a time after %s",
                function, f->id[s], (long long)(r - f->start[s]), weft__frame_number(f, column, r, now),
                r > f->start[s] ? weft__frame_number(f, column, r - 1, before) : "-inf");
        *row = time[r] < limit ? r + 1 : *row;
    }
    return WEFT_OK;
}

/* Returns limit - origin; the whole part is subtracted without rounding. */
static double subtract_origin(double limit, int64_t origin)
{
    double whole = trunc(limit), rest = limit - whole;
    if (!origin || !(fabs(limit) < 0x1p63))
        return limit;
    return weft__move_origin(&whole, 0, origin) ? whole + rest : limit - (double)origin;
}

static weft_status split_by_time(cut *c, const weft_frame_split_opts *o)
{
    int64_t column = weft__frame_find(c->f, o->time);
    if (column < 0 || isnan(o->limit))
        return weft__file_fail(WEFT_EARG, "%s: %s\"%.100s\", limit %g; expected a column and a number",
                               function, column < 0 ? "no column " : "", o->time, o->limit);
    weft_status s = WEFT_OK;
    double limit = subtract_origin(o->limit, c->f->origin[column]);
    for (int64_t i = 0, row; i < c->f->n && s == WEFT_OK; i++) {
        s = find_row(c->f, i, column, limit, &row);
        if (s == WEFT_OK)
            append_to_both(c, i, row);
    }
    return s;
}

/* ---- choosing the split ---- */
static weft_status check_way(const weft_frame_split_opts *o)
{
    bool time = o->time != NULL;
    if ((o->series != 0) + (o->fraction != 0) + time != 1)
        return weft__file_fail(WEFT_EARG,
                               "%s: series %lld, fraction %g, time %s%.100s%s; expected exactly one of "
                               "series, fraction and time",
                               function, (long long)o->series, o->fraction, time ? "\"" : "",
                               time ? o->time : "NULL", time ? "\"" : "");
    if ((o->order && !o->series) || (o->limit != 0 && !time))
        return weft__file_fail(WEFT_EARG, "%s: %s", function,
                               o->order && !o->series ? "order without series; expected both" :
                                                        "limit without time; expected both");
    return WEFT_OK;
}

weft_status weft_frame_split(const weft_frame *f, const weft_frame_split_opts *opts, weft_frame *first,
                             weft_frame *rest)
{
    cut c;
    weft_frame_split_opts o = opts ? *opts : (weft_frame_split_opts){ 0 };
    weft_status s = begin_cut(&c, f, first, rest);
    s = s ? s : check_way(&o);
    if (s == WEFT_OK)
        s = o.series ? split_by_series(&c, &o) : o.time ? split_by_time(&c, &o) : split_by_fraction(&c, &o);
    s = s ? s : fill_part(&c, FIRST, first);
    s = s ? s : fill_part(&c, REST, rest);
    free(c.stretch[FIRST]);
    if (s != WEFT_OK && first && first != f)
        weft_frame_free(first);
    return s;
}
