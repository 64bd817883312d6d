/* data_csv.c - CSV as in RFC 4180: quoted fields, doubled quotes, line ends within quotes; every complaint names file and line.
 *
 * The file is read whole and cut in place: a field becomes a 0-terminated string where it stands, since unquoting only shortens. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "io/frame.h"
#include "io/text.h"

typedef struct { char *text; int64_t size; } field;
typedef struct {
    const char *path;
    char *at, *end;
    int64_t line, next_line;                     /* of the record just read, of the one after it; from 1 */
    field *fields; int n, room;
    const char *id, *const *columns; int wanted; /* what the caller wants of a record */
    int *where; double *row; bool narrow;        /* their places, the id's first; their numbers */
    weft_status status;
} csv;

static bool fail(csv *c, weft_status status, const char *why)
{
    c->status = weft__file_fail(status, "%s:%lld: %s", c->path, (long long)c->line, why);
    return false;
}

/* ---- records ---- */
static bool add_field(csv *c, char *text, char *end)
{
    if (c->n == c->room) {
        int room = c->room ? 2 * c->room : 16;
        field *more = c->room > INT32_MAX / 64 ? NULL : realloc(c->fields, (size_t)room * sizeof *more);
        if (!more)
            return fail(c, WEFT_ENOMEM, "out of memory");
        c->fields = more;
        c->room = room;
    }
    c->fields[c->n++] = (field){ text, end - text };
    return true;
}

static bool is_end(const csv *c)                 /* of a field */
{
    return c->at == c->end || *c->at == ',' || *c->at == '\n' || (*c->at == '\r' && c->at + 1 < c->end && c->at[1] == '\n');
}

static bool quoted(csv *c, char **stop)
{
    char *to = c->at++;
    for (; c->at < c->end; c->at++) {
        if (*c->at == '"' && (c->at + 1 == c->end || c->at[1] != '"')) {
            c->at++;
            *stop = to;
            return is_end(c) || fail(c, WEFT_EFORMAT, "text behind a closing quote");
        }
        c->at += *c->at == '"';
        c->next_line += *c->at == '\n';
        *to++ = *c->at;
    }
    return fail(c, WEFT_EFORMAT, "a quote that is never closed");
}

/* One field; *more: another follows on the line. Its terminating 0 is set only after the separator was looked at. */
static bool next_field(csv *c, bool *more)
{
    char *text = c->at, *stop = NULL;
    if (c->at < c->end && *c->at == '"') {
        if (!quoted(c, &stop))
            return false;
    } else {
        while (!is_end(c))
            c->at++;
        stop = c->at;
    }
    *more = c->at < c->end && *c->at == ',';
    if (c->at < c->end && !*more) {
        c->at += *c->at == '\r';
        c->next_line++;
    }
    c->at += c->at < c->end;
    *stop = 0;                                   /* the byte behind the text: a separator, a quote, or the 0 behind the file */
    return add_field(c, text, stop);
}

/* The fields of the next line that is not empty; false at the end and on errors. */
static bool next_record(csv *c)
{
    bool empty = true;
    while (empty && c->at < c->end) {
        bool more = true;
        c->line = c->next_line;
        for (c->n = 0; more;)
            if (!next_field(c, &more))
                return false;
        empty = c->n == 1 && c->fields[0].size == 0;
    }
    return !empty;
}

/* ---- columns ---- */
static int find_column(csv *c, const char *name)
{
    int found = -1;
    char why[200];
    for (int i = 0; i < c->n; i++) {
        if (strcmp(c->fields[i].text, name))
            continue;
        if (found >= 0) {
            snprintf(why, sizeof why, "two columns are named \"%.100s\"", name);
            fail(c, WEFT_EFORMAT, why);
            return -1;
        }
        found = i;
    }
    if (found < 0) {
        snprintf(why, sizeof why, "no column is named \"%.100s\"", name);
        fail(c, WEFT_EFORMAT, why);
    }
    return found;
}

static bool read_header(csv *c)
{
    if (c->end - c->at >= 3 && !memcmp(c->at, "\xEF\xBB\xBF", 3))
        c->at += 3;
    if (!next_record(c))
        return c->status == WEFT_OK ? fail(c, WEFT_EFORMAT, "a header line was expected, the file is empty") : false;
    for (int i = !c->id; i <= c->wanted; i++) {
        c->where[i] = find_column(c, i ? c->columns[i - 1] : c->id);
        if (c->where[i] < 0)
            return false;
    }
    return true;
}

static bool number(csv *c, int column, const char *name, double *out)
{
    const field *f = &c->fields[column];
    char *end, why[300];
    errno = 0;
    double value = strtod(f->text, &end);
    while (*end == ' ' || *end == '\t')
        end++;
    if (f->size == 0 || end != f->text + f->size || end == f->text) {
        snprintf(why, sizeof why, "column \"%.100s\": a number was expected, not \"%.100s\"", name, f->text);
        return fail(c, WEFT_EFORMAT, why);
    }
    *out = value;
    if ((errno == ERANGE && fabs(value) > 1) || (c->narrow && isfinite(value) && !isfinite((weft_real)value))) {
        snprintf(why, sizeof why, "column \"%.100s\": \"%.100s\" is too large", name, f->text);
        return fail(c, WEFT_EFORMAT, why);
    }
    return true;
}

/* ---- the file ---- */
static bool read_record(csv *c, weft__csv_row *take, void *user, int width)
{
    char why[100];
    if (c->n != width) {
        snprintf(why, sizeof why, "%d fields, the header has %d", c->n, width);
        return fail(c, WEFT_EFORMAT, why);
    }
    for (int i = 0; i < c->wanted; i++)
        if (!number(c, c->where[i + 1], c->columns[i], &c->row[i]))
            return false;
    return take(user, c->id ? c->fields[c->where[0]].text : NULL, c->row) || fail(c, WEFT_ENOMEM, "out of memory, or a sequence of 2^31 rows");
}

static void read_all(csv *c, weft__csv_row *take, void *user)
{
    c->where = malloc(((size_t)c->wanted + 1) * sizeof *c->where);
    c->row = malloc((size_t)c->wanted * sizeof *c->row);
    if (!c->where || !c->row) {
        fail(c, WEFT_ENOMEM, "out of memory");
        return;
    }
    if (!read_header(c))
        return;
    int width = c->n;
    while (next_record(c) && read_record(c, take, user, width))
        ;
}

weft_status weft__read_csv_rows(const char *path, char **text, const char *id, const char *const *columns, int n, bool narrow, weft__csv_row *take, void *user)
{
    size_t size;
    *text = NULL;
    weft_status status = weft__slurp(path, text, &size);
    if (status != WEFT_OK)
        return status;
    csv c = { .path = path, .at = *text, .end = *text + size, .line = 1, .next_line = 1, .id = id, .columns = columns, .wanted = n, .narrow = narrow };
    locale_t before = weft__plain_locale();
    read_all(&c, take, user);
    weft__plain_locale_end(before);
    free(c.where);
    free(c.row);
    free(c.fields);
    return c.status;
}

/* ---- ragged data ---- */
typedef struct { weft__growing g; const char *id; } ragged;      /* id: of the open sequence */

static bool add_row(void *user, const char *id, const double *values)
{
    ragged *r = user;
    weft__growing *g = &r->g;
    if (r->id && strcmp(r->id, id) && g->rows > g->first && !weft__grow_sequence(g))
        return false;
    r->id = id;
    if (!weft__grow_row(g, false))
        return false;
    weft_real *row = g->data.rows + (g->rows - 1) * g->data.columns;
    for (int64_t i = 0; i < g->data.columns; i++)
        row[i] = (weft_real)values[i];
    return true;
}

static bool complete(const char *id, const char *const *columns, int n, const weft_dataset *out)
{
    bool good = id && columns && n > 0 && n < 1 << 20 && out;
    for (int i = 0; good && i < n; i++)
        good = columns[i] != NULL;
    return good;
}

weft_status weft_read_csv(const char *path, const char *id, const char *const *columns, int n, weft_dataset *out)
{
    if (out)
        *out = (weft_dataset){ 0 };
    if (!complete(id, columns, n, out))
        return weft__file_fail(WEFT_EARG, "weft_read_csv: a name for the id, at least one column and a dataset are needed");
    ragged r = { .g = { .data = { .columns = n } } };
    char *text;
    weft_status status = weft__read_csv_rows(path, &text, id, columns, n, true, add_row, &r);
    if (status == WEFT_OK && r.g.rows > r.g.first && !weft__grow_sequence(&r.g))
        status = weft__file_fail(WEFT_ENOMEM, "%s: out of memory, or a sequence of 2^31 rows", path);
    free(text);
    return weft__grown(&r.g, status, path, out);
}
