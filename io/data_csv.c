/* data_csv.c - CSV as in RFC 4180: quoted fields, doubled quotes, line ends within quotes; every complaint names file and line.
 *
 * The file is read whole and cut in place: a field becomes a 0-terminated string where it stands, since unquoting only shortens. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "io/data.h"
#include "io/text.h"

typedef struct { char *text; int64_t size; } field;
typedef struct {
    const char *path;
    char *at, *end;
    int64_t line, next_line;                     /* of the record just read, of the one after it; from 1 */
    field *fields; int n, room;
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

/* where [0]: the id's column, then the others'. */
static bool read_header(csv *c, const char *id, const char *const *columns, int n, int *where)
{
    if (c->end - c->at >= 3 && !memcmp(c->at, "\xEF\xBB\xBF", 3))
        c->at += 3;
    if (!next_record(c))
        return c->status == WEFT_OK ? fail(c, WEFT_EFORMAT, "a header line was expected, the file is empty") : false;
    for (int i = 0; i <= n; i++) {
        where[i] = find_column(c, i ? columns[i - 1] : id);
        if (where[i] < 0)
            return false;
    }
    return true;
}

static bool number(csv *c, int column, const char *name, weft_real *out)
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
    *out = (weft_real)value;
    if ((errno == ERANGE && fabs(value) > 1) || (isfinite(value) && !isfinite(*out))) {
        snprintf(why, sizeof why, "column \"%.100s\": \"%.100s\" is too large", name, f->text);
        return fail(c, WEFT_EFORMAT, why);
    }
    return true;
}

static bool add_record(csv *c, weft__growing *g, const char *const *columns, int n, const int *where)
{
    if (!weft__grow_row(g, false))
        return fail(c, WEFT_ENOMEM, "out of memory");
    weft_real *row = g->data.rows + (g->rows - 1) * n;
    for (int i = 0; i < n; i++)
        if (!number(c, where[i + 1], columns[i], &row[i]))
            return false;
    return true;
}

/* ---- the file ---- */
static bool end_sequence(csv *c, weft__growing *g)
{
    return g->rows == g->first || weft__grow_sequence(g) || fail(c, WEFT_ENOMEM, "out of memory, or a sequence of 2^31 rows");
}

static void read_rows(csv *c, const char *const *columns, int n, const int *where, weft__growing *g)
{
    int width = c->n;
    const char *id = NULL;                       /* of the open sequence: stays where it is in the file's text */
    while (next_record(c)) {
        if (c->n != width) {
            char why[100];
            snprintf(why, sizeof why, "%d fields, the header has %d", c->n, width);
            fail(c, WEFT_EFORMAT, why);
            return;
        }
        const char *now = c->fields[where[0]].text;
        if (id && strcmp(id, now) && !end_sequence(c, g))
            return;
        id = now;
        if (!add_record(c, g, columns, n, where))
            return;
    }
    if (c->status == WEFT_OK)
        end_sequence(c, g);
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
    char *text;
    size_t size;
    weft_status status = weft__slurp(path, &text, &size);
    if (status != WEFT_OK)
        return status;
    csv c = { .path = path, .at = text, .end = text + size, .line = 1, .next_line = 1 };
    weft__growing g = { .data = { .columns = n } };
    int *where = malloc(((size_t)n + 1) * sizeof *where);
    locale_t before = weft__plain_locale();
    if (!where)
        fail(&c, WEFT_ENOMEM, "out of memory");
    else if (read_header(&c, id, columns, n, where))
        read_rows(&c, columns, n, where, &g);
    weft__plain_locale_end(before);
    free(where);
    free(c.fields);
    free(text);
    return weft__grown(&g, c.status, path, out);
}
