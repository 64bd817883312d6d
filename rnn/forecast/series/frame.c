/* frame.c - frames: series end to end, of named columns, in memory; growing, looking up, ending. */
#include <stdlib.h>
#include <string.h>
#include "io/text.h"
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

weft_status weft__names_good(const char *function, const char *const *names)
{
    int64_t n = weft__names(names);
    if (n < 1 || n > 1 << 20)
        return weft__file_fail(WEFT_EARG, "%s: names of columns are expected", function);
    for (int64_t i = 0; i < n; i++)
        if (find_in(names, names[i]) < i || !names[i][0])
            return weft__file_fail(WEFT_EARG, "%s: column %lld, \"%.100s\", has no name of its own", function,
                                   (long long)i, names[i]);
    return WEFT_OK;
}

static char *copied(const char *text)
{
    char *copy = malloc(strlen(text) + 1);
    return copy ? memcpy(copy, text, strlen(text) + 1) : NULL;
}

/* ---- what there is ---- */
static bool sound_outside(const weft_frame *f)   /* quick: asked for each series that is added */
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

static weft_status good_if(bool good, const char *where, const weft_frame *f)
{
    return good ? WEFT_OK : !f ? weft__file_fail(WEFT_EARG, "%s: no frame given", where) :
           weft__file_fail(WEFT_EARG, "%s: the frame is not what weft_frame_add and its kin make", where);
}

weft_status weft__frame_good(const char *where, const weft_frame *f)
{
    return good_if(f && frame_is_sound(f), where, f);
}

weft_status weft__frame_takes(const char *where, const weft_frame *f, const char *const *names)
{
    weft_status s = good_if(f && sound_outside(f), where, f);
    if (s == WEFT_OK)
        s = weft__names_good(where, names);
    if (s != WEFT_OK || !f->columns)
        return s;
    for (int64_t c = 0; c < f->columns; c++)
        if (find_in(names, f->name[c]) < 0)
            return weft__file_fail(
                WEFT_EARG, "%s: the frame has a column \"%.100s\", so every further series must have one",
                where, f->name[c]);
    for (int64_t c = 0; names[c]; c++)
        if (weft__frame_find(f, names[c]) < 0)
            return weft__file_fail(WEFT_EARG, "%s: a column \"%.100s\", which the frame does not have", where,
                                   names[c]);
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
    for (int64_t c = 0; c < f->columns; c++) {
        free(f->name[c]);
        free(f->column[c]);
    }
    free(f->start);
    free(f->id);
    free(f->name);
    free(f->column);
    free(f->origin);
    *f = (weft_frame){ 0 };
}

/* ---- growing: memory first, which changes nothing that can be seen; then what it is for ---- */
static bool lengthen(void *array, int64_t n, size_t element)       /* array: the address of a pointer */
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
    int64_t room = 1;                            /* powers of two: asked for when the number passes one */
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
    f->name[c] = copied(name);
    f->column[c] = f->name[c] ? calloc(room ? (size_t)room : 1, sizeof **f->column) : NULL;
    f->columns += f->column[c] != NULL;
    if (!f->column[c])
        free(f->name[c]);
    f->name[f->columns] = NULL;                  /* lists of names end with NULL, this one, too */
    return f->column[c] != NULL;
}

void weft__frame_drop(weft_frame *f, int64_t from)
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
    return copied(id ? id : text);
}

/* The ids of the new series behind those there are, not counted yet; false: all gone again. */
static bool new_ids(weft_frame *f, const weft__stretch *parts, int64_t n, int64_t *series)
{
    *series = 0;
    for (int64_t i = 0; i < n; i++) {
        if (i && parts[i].group == parts[i - 1].group)
            continue;
        char **to = &f->id[f->n + *series];
        *to = id_of(f, parts[i].id, *series);
        if (!*to) {
            while (*series)
                free(f->id[f->n + --*series]);
            f->id[f->n] = NULL;
            return false;
        }
        ++*series;
    }
    f->id[f->n + *series] = NULL;
    return true;
}

/* Series to be added: columns of numbers less their origin. */
typedef struct {
    const char *const *names;
    const double *const *column;
    const int64_t *origin;
    const weft__stretch *parts;
    int64_t n;
} addition;

/* Numbers less `from` to numbers less `to`; values NULL: only looks. Returns whether doubles hold them. */
static bool move_origins(const double *x, double *values, int64_t rows, int64_t from, int64_t to)
{
    for (int64_t r = 0; from != to && r < rows; r++) {
        double v = x[r];
        if (!weft__move_origin(&v, from, to))
            return false;
        if (values)
            values[r] = v;
    }
    return true;
}

static int64_t origin_of(const addition *a, int64_t k) { return a->origin ? a->origin[k] : 0; }

/* The origin of column c once it has the new numbers, which are column k. */
static int64_t joint_origin(const weft_frame *f, int64_t c, const addition *a, int64_t k)
{
    return f->origin[c] ? f->origin[c] : origin_of(a, k);
}

static weft_status origins_join(const weft_frame *f, const char *where, const addition *a)
{
    for (int64_t c = 0; c < f->columns; c++) {
        int64_t k = find_in(a->names, f->name[c]), to = joint_origin(f, c, a, k);
        bool good = move_origins(f->column[c], NULL, f->rows, f->origin[c], to);
        for (int64_t i = 0; i < a->n && good; i++)
            good = !a->parts[i].rows || move_origins(a->column[k] + a->parts[i].first, NULL, a->parts[i].rows,
                                                     origin_of(a, k), to);
        if (!good)
            return weft__file_fail(WEFT_EARG,
                                   "%s: column \"%.100s\" counts from %lld, and a double does not hold all "
                                   "its numbers less that, old and new; integers nearer to it are expected",
                                   where, f->name[c], (long long)to);
    }
    return WEFT_OK;
}

/* All numbers of a column, old and new, count from one origin now. */
static void join_origins(weft_frame *f, const addition *a)
{
    for (int64_t c = 0; c < f->columns; c++) {
        int64_t to = joint_origin(f, c, a, find_in(a->names, f->name[c]));
        move_origins(f->column[c], f->column[c], f->rows, f->origin[c], to);
        f->origin[c] = to;
    }
}

static void copy_stretch(weft_frame *f, const addition *a, const weft__stretch *p)
{
    for (int64_t c = 0; c < f->columns; c++) {
        int64_t k = find_in(a->names, f->name[c]);
        double *to = f->column[c] + f->rows;
        if (p->rows)
            memcpy(to, a->column[k] + p->first, (size_t)p->rows * sizeof *to);
        move_origins(to, to, p->rows, origin_of(a, k), f->origin[c]);
    }
    f->rows += p->rows;
}

static weft_status no_memory(const char *where, int64_t rows)
{
    return weft__file_fail(WEFT_ENOMEM, "%s: out of memory for %lld rows", where, (long long)rows);
}

weft_status weft__frame_take(weft_frame *f, const char *where, const char *const *names,
                             const double *const *columns, const int64_t *origin, const weft__stretch *parts,
                             int64_t n)
{
    const addition a = { names, columns, origin, parts, n };
    weft_status s = weft__frame_takes(where, f, names);
    if (s != WEFT_OK)
        return s;
    int64_t rows = f->rows, before = f->columns, series;
    for (int64_t i = 0; i < n; i++)
        rows += parts[i].rows;
    bool good = true;
    for (int64_t c = 0; good && !before && names[c]; c++)
        good = add_name(f, names[c], f->room);
    if (!good || !room_for_rows(f, rows) || !room_for_series(f, f->n + n))
        s = no_memory(where, rows);
    if (s == WEFT_OK)
        s = origins_join(f, where, &a);
    if (s == WEFT_OK && !new_ids(f, parts, n, &series))
        s = no_memory(where, rows);
    if (s != WEFT_OK) {
        weft__frame_drop(f, before);
        f->room = before ? f->room : 0;
        return s;
    }
    join_origins(f, &a);
    for (int64_t i = 0; i < n; i++) {
        copy_stretch(f, &a, &parts[i]);
        f->n += !i || parts[i].group != parts[i - 1].group;
        f->start[f->n] = f->rows;
    }
    return WEFT_OK;
}

weft_status weft_frame_add(weft_frame *f, const char *id, const char *const *names,
                           const double *const *columns, int64_t rows)
{
    const char *me = "weft_frame_add";
    weft_status s = weft__frame_takes(me, f, names);
    if (s != WEFT_OK)
        return s;
    if (rows < 0 || (rows && !columns))
        return weft__file_fail(WEFT_EARG, "%s: %lld rows%s; 0 or more, with numbers, are expected", me,
                               (long long)rows, columns ? "" : " without columns");
    for (int64_t c = 0; rows && names[c]; c++)
        if (!columns[c])
            return weft__file_fail(WEFT_EARG, "%s: column \"%.100s\" is NULL", me, names[c]);
    return weft__frame_take(f, me, names, columns, NULL, &(weft__stretch){ id, 0, rows, 0 }, 1);
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
    const char *me = "weft_frame_add_column";
    weft_status s = weft__frame_good(me, f);
    if (s != WEFT_OK)
        return s;
    if (!name || !*name || !f->columns || weft__frame_find(f, name) >= 0)
        return weft__file_fail(WEFT_EARG,
                               "%s: \"%.100s\": a new name is expected, and a frame that has a column", me,
                               name ? name : "");
    if (which != WEFT_PER_ROW && (which != WEFT_PER_SERIES || (f->n && !values)))
        return weft__file_fail(WEFT_EARG, "%s: \"%.100s\": %s", me, name,
                               which == WEFT_PER_SERIES ? "no values given, one a series is expected" :
                                                          "WEFT_PER_ROW or WEFT_PER_SERIES is expected");
    if (!add_name(f, name, f->room))
        return no_memory(me, f->rows);
    if (values)
        fill_column(f, f->column[f->columns - 1], values, which);
    return WEFT_OK;
}
