/* frame.c - frames in memory: series end to end, with named columns. Appends, searches, frees. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "rnn/forecast/series/frame.h"

/* ---- names ---- */
int64_t weft__names(const char *const *names)
{
    int64_t n = 0;
    while (names && names[n])
        n++;
    return n;
}

static int64_t find_in(const char *const *names, const char *name)
{
    for (int64_t i = 0; names && names[i]; i++)
        if (!strcmp(names[i], name))
            return i;
    return -1;
}

int64_t weft__frame_find(const weft_frame *f, const char *name)
{
    return f->columns ? find_in((const char *const *)f->name, name) : -1;
}

weft_status weft__check_names(const char *function, const char *const *names)
{
    int64_t n = weft__names(names);
    if (n < 1 || n > 1 << 20)
        return weft__file_fail(WEFT_EARG, "%s: names: expected one column or more", function);
    for (int64_t i = 0; i < n; i++)
        if (find_in(names, names[i]) < i || !names[i][0])
            return weft__file_fail(WEFT_EARG, "%s: column %lld, \"%.100s\"; expected a unique name", function,
                                   (long long)i, names[i]);
    return WEFT_OK;
}

/* ---- checks ---- */
static bool sound_outside(const weft_frame *f)   /* fast: called for each added series */
{
    if (f->n < 0 || f->rows < 0 || f->columns < 0 ||
        (f->n && (!f->start || !f->id || f->start[0] != 0 || f->start[f->n] != f->rows)))
        return false;
    return f->columns ? f->column && f->name && f->origin : f->n == 0;
}

static bool frame_is_sound(const weft_frame *f)
{
    if (!sound_outside(f))
        return false;
    for (int64_t s = 0; s < f->n; s++)
        if (f->start[s] > f->start[s + 1] || !f->id[s])
            return false;
    for (int64_t c = 0; c < f->columns; c++)
        if (!f->name[c] || (f->rows && !f->column[c]))
            return false;
    return true;
}

static weft_status good_if(bool ok, const char *function, const weft_frame *f)
{
    return ok ?
               WEFT_OK :
           !f ?
               weft__file_fail(WEFT_EARG, "%s: the frame is NULL", function) :
               weft__file_fail(WEFT_EARG, "%s: invalid frame; expected one made by weft_frame_add", function);
}

weft_status weft__check_frame(const char *function, const weft_frame *f)
{
    return good_if(f && frame_is_sound(f), function, f);
}

weft_status weft__check_series(const char *function, const weft_frame *f, const char *const *names)
{
    weft_status s = good_if(f && sound_outside(f), function, f);
    s = s ? s : weft__check_names(function, names);
    if (s != WEFT_OK || !f->columns)
        return s;
    for (int64_t c = 0; c < f->columns; c++)
        if (find_in(names, f->name[c]) < 0)
            return weft__file_fail(WEFT_EARG, "%s: no column \"%.100s\"; expected all columns of the frame",
                                   function, f->name[c]);
    for (int64_t c = 0; names[c]; c++)
        if (weft__frame_find(f, names[c]) < 0)
            return weft__file_fail(WEFT_EARG, "%s: column \"%.100s\" is new; expected those of the frame",
                                   function, names[c]);
    return WEFT_OK;
}

/* ---- integers beyond a double: the column stores differences from an origin, one of these integers ---- */
bool weft__frame_integer(const weft_frame *f, int64_t c, int64_t row, int64_t *integer)
{
    double v = f->column[c][row];
    return v == trunc(v) && fabs(v) < 0x1p63 && !__builtin_add_overflow((int64_t)v, f->origin[c], integer);
}

const char *weft__frame_number(const weft_frame *f, int64_t c, int64_t row, char text[64])
{
    int64_t integer;
    if (!f->origin[c])
        snprintf(text, 64, "%.17g", f->column[c][row]);
    else if (weft__frame_integer(f, c, row, &integer))
        snprintf(text, 64, "%lld", (long long)integer);
    else
        snprintf(text, 64, "%lld + %.17g", (long long)f->origin[c], f->column[c][row]);
    return text;
}

weft_status weft__check_integers(const char *function, const weft_frame *f, bool gaps)
{
    char text[64];
    int64_t integer;
    for (int64_t c = 0; c < f->columns; c++)
        for (int64_t r = 0; f->origin[c] && r < f->rows; r++)
            if (!weft__frame_integer(f, c, r, &integer) && !(gaps && isnan(f->column[c][r])))
                return weft__file_fail(WEFT_EARG,
                                       "%s: column \"%.100s\", row %lld of all: %s; expected an integer, "
                                       "because the column has an origin",
                                       function, f->name[c], (long long)r, weft__frame_number(f, c, r, text));
    return WEFT_OK;
}

double *weft_frame_column(const weft_frame *f, const char *name)
{
    int64_t c = f && name && sound_outside(f) ? weft__frame_find(f, name) : -1;
    return c < 0 ? NULL : f->column[c];
}

void weft_frame_free(weft_frame *f)
{
    if (!f)
        return;
    for (int64_t s = 0; f->id && s < f->n; s++)
        free(f->id[s]);
    weft__drop_columns(f, 0);
    free(f->start);
    free(f->id);
    free(f->name);
    free(f->column);
    free(f->origin);
    *f = (weft_frame){ 0 };
}

/* ---- growing: allocates first, which has no visible effect, and then fills ---- */
static bool lengthen(void *array, int64_t n, size_t element)       /* array: address of a pointer */
{
    void *old;
    memcpy(&old, array, sizeof old);
    void *bigger = (uint64_t)n >= SIZE_MAX / 2 / element ? NULL : realloc(old, (size_t)(n ? n : 1) * element);
    if (bigger)
        memcpy(array, &bigger, sizeof bigger);
    return bigger != NULL;
}

static bool room_for_rows(weft_frame *f, int64_t rows)
{
    if (rows <= f->room)
        return true;
    int64_t room = rows < 2 * f->room ? 2 * f->room : rows;
    for (int64_t c = 0; c < f->columns; c++)
        if (!lengthen(&f->column[c], room, sizeof **f->column))
            return false;
    f->room = room;
    return true;
}

static bool room_for_series(weft_frame *f, int64_t n)
{
    int64_t room = 1;                            /* capacities are powers of 2 */
    while (room < n + 1)
        room *= 2;
    if (!lengthen(&f->start, room, sizeof *f->start))
        return false;
    f->start[0] = 0;
    if (!lengthen(&f->id, room, sizeof *f->id))
        return false;
    f->id[f->n] = NULL;
    return true;
}

static bool add_name(weft_frame *f, const char *name, int64_t room)
{
    int64_t c = f->columns;
    if (!lengthen(&f->name, c + 2, sizeof *f->name) || !lengthen(&f->column, c + 1, sizeof *f->column) ||
        !lengthen(&f->origin, c + 1, sizeof *f->origin))
        return false;
    f->origin[c] = 0;
    f->name[c] = strdup(name);
    f->column[c] = f->name[c] ? calloc(room ? (size_t)room : 1, sizeof **f->column) : NULL;
    f->columns += f->column[c] != NULL;
    if (!f->column[c])
        free(f->name[c]);
    f->name[f->columns] = NULL;                  /* lists of names end with NULL */
    return f->column[c] != NULL;
}

void weft__drop_columns(weft_frame *f, int64_t from)
{
    while (f->columns > from) {
        f->columns--;
        free(f->name[f->columns]);
        free(f->column[f->columns]);
        f->name[f->columns] = NULL;
    }
}

/* ---- series ---- */
static char *id_of(const weft_frame *f, const char *id, int64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)f->n + number);
    return strdup(id ? id : text);
}

/* Appends the ids of the new series, not counted yet. Returns false after removing them again. */
static bool new_ids(weft_frame *f, const weft__stretch *parts, int64_t n)
{
    char **new = f->id + f->n;
    int64_t series = 0;
    for (int64_t i = 0; i < n; i++) {
        if (i && parts[i].group == parts[i - 1].group)
            continue;
        new[series] = id_of(f, parts[i].id, series);
        if (!new[series]) {
            while (series)
                free(new[--series]);
            new[0] = NULL;
            return false;
        }
        series++;
    }
    new[series] = NULL;
    return true;
}

/* Changes the origin of numbers from `from` to `to`; look: only checks. Returns whether they fit doubles. */
static bool move_origins(double *x, int64_t rows, int64_t from, int64_t to, bool look)
{
    for (int64_t r = 0; from != to && r < rows; r++) {
        double v = x[r];
        if (!weft__move_origin(&v, from, to))
            return false;
        x[r] = look ? x[r] : v;
    }
    return true;
}

/* Returns the origin of column c after it gets column k of the new numbers. */
static int64_t joint_origin(const weft_frame *f, int64_t c, const weft__table *t, int64_t k)
{
    return f->origin[c] || !t->origin ? f->origin[c] : t->origin[k];
}

/* Copies the new numbers of each column after the old ones, relative to the joint origin. */
static weft_status append_columns(weft_frame *f, const char *function, const char *const *names,
                                  const weft__table *t)
{
    for (int64_t c = 0; c < f->columns; c++) {
        int64_t k = find_in(names, f->name[c]), to = joint_origin(f, c, t, k), rows = f->rows;
        for (int64_t i = 0; i < t->n; rows += t->run[i++].rows)
            if (t->run[i].rows)
                memcpy(f->column[c] + rows, t->column[k] + t->run[i].first,
                       (size_t)t->run[i].rows * sizeof **f->column);
        if (!move_origins(f->column[c], f->rows, f->origin[c], to, true) ||
            !move_origins(f->column[c] + f->rows, rows - f->rows, t->origin ? t->origin[k] : 0, to, false))
            return weft__file_fail(WEFT_EARG,
                                   "%s: column \"%.100s\" counts from %lld, and a double cannot hold all "
                                   "differences from it, old and new; expected integers nearer to it",
                                   function, f->name[c], (long long)to);
    }
    return WEFT_OK;
}

static weft_status no_memory(const char *function, int64_t rows)
{
    return weft__file_fail(WEFT_ENOMEM, "%s: out of memory for %lld rows", function, (long long)rows);
}

/* Adds the appended series to the counts. */
static void accept_series(weft_frame *f, const char *const *names, const weft__table *t)
{
    for (int64_t c = 0; c < f->columns; c++) {
        int64_t to = joint_origin(f, c, t, find_in(names, f->name[c]));
        move_origins(f->column[c], f->rows, f->origin[c], to, false);
        f->origin[c] = to;
    }
    for (int64_t i = 0; i < t->n; i++) {
        f->rows += t->run[i].rows;
        f->n += !i || t->run[i].group != t->run[i - 1].group;
        f->start[f->n] = f->rows;
    }
}

weft_status weft__append_table(weft_frame *f, const char *function, const char *const *names,
                               const weft__table *t)
{
    weft_status s = weft__check_series(function, f, names);
    if (s != WEFT_OK)
        return s;
    int64_t rows = f->rows, before = f->columns;
    for (int64_t i = 0; i < t->n; i++)
        rows += t->run[i].rows;
    bool ok = true;
    for (int64_t c = 0; ok && !before && names[c]; c++)
        ok = add_name(f, names[c], f->room);
    if (!ok || !room_for_rows(f, rows) || !room_for_series(f, f->n + t->n))
        s = no_memory(function, rows);
    s = s ? s : append_columns(f, function, names, t);
    if (s == WEFT_OK && !new_ids(f, t->run, t->n))
        s = no_memory(function, rows);
    if (s == WEFT_OK) {
        accept_series(f, names, t);
        return WEFT_OK;
    }
    weft__drop_columns(f, before);
    f->room = before ? f->room : 0;
    return s;
}

weft_status weft_frame_add(weft_frame *f, const char *id, const char *const *names,
                           const double *const *columns, int64_t rows)
{
    const char *function = "weft_frame_add";
    weft_status s = weft__check_series(function, f, names);
    if (s != WEFT_OK)
        return s;
    if (rows < 0 || (rows && !columns))
        return weft__file_fail(WEFT_EARG, "%s: %lld rows%s; expected 0 or more, with columns", function,
                               (long long)rows, columns ? "" : ", columns is NULL");
    for (int64_t c = 0; rows && names[c]; c++)
        if (!columns[c])
            return weft__file_fail(WEFT_EARG, "%s: column \"%.100s\" is NULL", function, names[c]);
    const weft__table t = { .column = (double **)(uintptr_t)columns,
                            .run = &(weft__stretch){ id, 0, rows, 0 },
                            .n = 1 };
    return weft__append_table(f, function, names, &t);
}

/* ---- columns ---- */
static void fill_column(const weft_frame *f, double *column, const double *values, weft_column_values which)
{
    if (which == WEFT_PER_ROW && f->rows)
        memcpy(column, values, (size_t)f->rows * sizeof *values);
    for (int64_t i = 0; which == WEFT_PER_SERIES && i < f->n; i++)
        for (int64_t r = f->start[i]; r < f->start[i + 1]; r++)
            column[r] = values[i];
}

weft_status weft_frame_add_column(weft_frame *f, const char *name, const double *values,
                                  weft_column_values which)
{
    const char *function = "weft_frame_add_column";
    weft_status s = weft__check_frame(function, f);
    if (s != WEFT_OK)
        return s;
    if (!name || !*name || !f->columns || weft__frame_find(f, name) >= 0)
        return weft__file_fail(WEFT_EARG,
                               "%s: \"%.100s\": expected a new name, and a frame that has a column", function,
                               name ? name : "");
    if (which != WEFT_PER_ROW && (which != WEFT_PER_SERIES || (f->n && !values)))
        return weft__file_fail(WEFT_EARG, "%s: \"%.100s\": %s", function, name,
                               which == WEFT_PER_SERIES ? "values is NULL; expected one for each series" :
                                                          "expected WEFT_PER_ROW or WEFT_PER_SERIES");
    if (!add_name(f, name, f->room))
        return no_memory(function, f->rows);
    if (values)
        fill_column(f, f->column[f->columns - 1], values, which);
    return WEFT_OK;
}
