/* csv.c - CSV as in RFC 4180: quoted fields, doubled quotes, line ends within quotes; every complaint names
 * file and line.
 *
 * The file is read whole and cut in place: a field becomes a 0-terminated string where it stands, since
 * unquoting only shortens. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "io/data/csv.h"
#include "io/text.h"

typedef struct { char *text; int64_t size; } field;
typedef struct {
    const char *path;
    char *at, *end;
    int64_t line, next_line;                     /* of the record just read, of the one after it; from 1 */
    field *fields; int n, room;
    weft__csv_want want;                         /* what the caller wants of a record */
    int *where; double *row;                     /* places of its columns, the id's first; their numbers */
    char delimiter; bool empty_is_nan;
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
    return c->at == c->end || *c->at == c->delimiter || *c->at == '\n' ||
           (*c->at == '\r' && c->at + 1 < c->end && c->at[1] == '\n');
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

/* One field; *more: another follows on the line. Its terminating 0 is set only after the separator was
 * looked at. */
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
    *more = c->at < c->end && *c->at == c->delimiter;
    if (c->at < c->end && !*more) {
        c->at += *c->at == '\r';
        c->next_line++;
    }
    c->at += c->at < c->end;
    /* the byte behind the text: a separator, a quote, or the 0 behind the file */
    *stop = 0;
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
/* A column that is not there: the header has others, and one column that holds them all is a file with
 * another delimiter. */
static void no_column(csv *c, const char *name)
{
    char why[900];
    int at = snprintf(why, sizeof why, "no column is named \"%.100s\", but%s", name,
                      c->n > 1 ? "" : " all of it is");
    for (int i = 0; i < c->n && at < 700; i++)
        at += snprintf(why + at, sizeof why - (size_t)at, "%s \"%.100s\"", i ? "," : "", c->fields[i].text);
    snprintf(why + at, sizeof why - (size_t)at, "%s", at < 700 ? "" : ", ..");
    fail(c, WEFT_EFORMAT, why);
}

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
    if (found < 0)
        no_column(c, name);
    return found;
}

static bool read_header(csv *c)
{
    if (c->end - c->at >= 3 && !memcmp(c->at, "\xEF\xBB\xBF", 3))
        c->at += 3;
    if (!next_record(c))
        return c->status == WEFT_OK ? fail(c, WEFT_EFORMAT, "a header line was expected, the file is empty") :
                                      false;
    for (int i = !c->want.id; i <= c->want.n; i++) {
        c->where[i] = find_column(c, i ? c->want.columns[i - 1] : c->want.id);
        if (c->where[i] < 0)
            return false;
    }
    return true;
}

/* Whether a text is an integer that a double does not hold: one of 2^53 or more whose digits do not come
 * back. */
static bool is_rounded(const char *text, double value)
{
    char digits[400];
    text += strspn(text, " \t");
    text += *text == '+' || *text == '-';
    text += strspn(text, "0");
    size_t n = strspn(text, "0123456789");
    if (!(fabs(value) >= 0x1p53) || isinf(value) || text[n + strspn(text + n, " \t")])
        return false;
    snprintf(digits, sizeof digits, "%.0f", fabs(value));
    return strlen(digits) != n || memcmp(digits, text, n) != 0;
}

/* Takes the column's origin off a number, which becomes the origin itself if there is none and a double
 * does not hold it. */
static bool take_origin(csv *c, int column, const char *text, double *value)
{
    int64_t none = 0, *origin = c->want.origin ? &c->want.origin[column] : &none, integer;
    char why[300];
    bool rounded = is_rounded(text, *value), good = true;
    if (!rounded) {
        good = weft__move_origin(value, 0, *origin);
    } else {
        errno = 0;
        integer = strtoll(text, NULL, 10);
        good = c->want.origin && !errno;
        *origin = good && !*origin ? integer : *origin;
        *value = 0;
        good = good && weft__move_origin(value, integer, *origin);
    }
    if (good)
        return true;
    if (*origin)
        snprintf(why, sizeof why,
                 "column \"%.60s\": a double does not hold %.40s less the column's first large integer, "
                 "%lld; integers nearer to it are expected",
                 c->want.columns[column], text, (long long)*origin);
    else
        snprintf(why, sizeof why,
                 "column \"%.60s\": a double does not hold the integer %.40s; write it from a later origin, "
                 "or in a larger unit (seconds, not nanoseconds)",
                 c->want.columns[column], text);
    return fail(c, WEFT_EFORMAT, why);
}

static bool read_number(csv *c, int column, double *out)
{
    const field *f = &c->fields[c->where[column + 1]];
    const char *name = c->want.columns[column];
    char *end, why[300];
    if (f->size == 0 && c->empty_is_nan) {
        *out = (double)NAN;
        return true;
    }
    errno = 0;
    double value = strtod(f->text, &end);
    /* before what follows is skipped: blanks only are no number */
    bool none = end == f->text;
    while (*end == ' ' || *end == '\t')
        end++;
    if (none || end != f->text + f->size) {
        snprintf(why, sizeof why, "column \"%.100s\": a number was expected, not \"%.100s\"", name, f->text);
        return fail(c, WEFT_EFORMAT, why);
    }
    *out = value;
    if ((errno == ERANGE && fabs(value) > 1) ||
        (c->want.narrow && isfinite(value) && !isfinite((weft_real)value))) {
        snprintf(why, sizeof why, "column \"%.100s\": \"%.100s\" is too large", name, f->text);
        return fail(c, WEFT_EFORMAT, why);
    }
    return take_origin(c, column, f->text, out);
}

/* ---- the file ---- */
static bool read_record(csv *c, weft__csv_row *take, void *user, int width)
{
    char why[100];
    if (c->n != width) {
        snprintf(why, sizeof why, "%d fields, the header has %d", c->n, width);
        return fail(c, WEFT_EFORMAT, why);
    }
    for (int i = 0; i < c->want.n; i++)
        if (!read_number(c, i, &c->row[i]))
            return false;
    return take(user, c->want.id ? c->fields[c->where[0]].text : NULL, c->row) ||
           fail(c, WEFT_ENOMEM, "out of memory, or a sequence of 2^31 rows");
}

/* Texts end with a 0 here, so one in a field would cut it, silently; and UTF-16 is full of them. Lines
 * that end with \r alone would be one header. */
static bool is_text(csv *c, const char *text, size_t size)
{
    const char *zero = memchr(text, 0, size), *end = memchr(text, '\r', size);
    if (end && !memchr(text, '\n', size) && end + 1 < text + size)
        return fail(c, WEFT_EFORMAT,
                    "lines end with \\r alone; tr '\\r' '\\n' <FILE >NEW makes lines that are read");
    for (const char *at = text; zero && at < zero; at++)
        c->line += *at == '\n';
    return !zero || fail(c, WEFT_EFORMAT, "there is a zero byte; a CSV file in UTF-8 has none");
}

static void read_rows(csv *c, weft__csv_row *take, void *user)
{
    c->where = malloc(((size_t)c->want.n + 1) * sizeof *c->where);
    c->row = malloc((size_t)c->want.n * sizeof *c->row);
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

weft_status weft__csv_opts_good(const char *function, const weft_csv_opts *opts)
{
    unsigned char d = (unsigned char)(opts ? opts->delimiter : 0);
    if (!d || d == '\t' || (d >= ' ' && d < 127 && !isalnum(d) && !strchr("\"+-.", d)))
        return WEFT_OK;
    return weft__file_fail(WEFT_EARG,
                           "%s: the delimiter is byte %d; a character that can neither be in a number nor "
                           "quote or end a field is expected",
                           function, d);
}

weft_status weft__read_csv_rows(const char *path, char **text, const weft__csv_want *want,
                                weft__csv_row *take, void *user)
{
    size_t size;
    *text = NULL;
    weft_status status = weft__slurp(path, text, &size);
    if (status != WEFT_OK)
        return status;
    const weft_csv_opts o = want->opts ? *want->opts : (weft_csv_opts){ 0 };
    csv c = { .path = path,
              .at = *text,
              .end = *text + size,
              .line = 1,
              .next_line = 1,
              .want = *want,
              .delimiter = ',',
              .empty_is_nan = o.empty_is_nan };
    if (o.delimiter)
        c.delimiter = o.delimiter;
    locale_t before = weft__plain_locale();
    if (is_text(&c, *text, size))
        read_rows(&c, take, user);
    weft__plain_locale_end(before);
    free(c.where);
    free(c.row);
    free(c.fields);
    return c.status;
}

/* ---- ragged data ---- */
typedef struct { weft__growing g; weft__runs runs; } ragged;

static bool append_row(void *user, const char *id, const double *values)
{
    ragged *r = user;
    weft__growing *g = &r->g;
    if (!weft__runs_add(&r->runs, id, g->rows) || !weft__grow_row(g, false))
        return false;
    weft_real *row = g->data.rows + (g->rows - 1) * g->data.columns;
    for (int64_t i = 0; i < g->data.columns; i++)
        row[i] = (weft_real)values[i];
    return true;
}

/* Puts the rows of one id next to each other; false without memory. */
static bool reorder(ragged *r)
{
    size_t row = (size_t)r->g.data.columns * sizeof *r->g.data.rows;
    char *rows = malloc((size_t)r->g.rows * row), *to = rows;
    if (!rows)
        return false;
    for (int64_t i = 0; i < r->runs.n; i++) {
        size_t bytes = (size_t)r->runs.run[i].rows * row;
        memcpy(to, (char *)r->g.data.rows + (size_t)r->runs.run[i].first * row, bytes);
        to += bytes;
    }
    free(r->g.data.rows);
    r->g.data.rows = (weft_real *)(void *)rows;
    return true;
}

/* False: out of memory, or a sequence of 2^31 rows. */
static bool end_sequences(ragged *r)
{
    const weft__stretch *run = r->runs.run;
    bool good = !weft__runs_gather(&r->runs) || reorder(r);
    r->g.rows = r->g.first = 0;
    for (int64_t i = 0; i < r->runs.n && good; i++) {
        r->g.rows += run[i].rows;
        if (i + 1 == r->runs.n || run[i + 1].group != run[i].group)
            good = weft__grow_sequence(&r->g);
    }
    return good;
}

static bool arguments_are_complete(const char *id, const char *const *columns, int64_t n,
                                   const weft_dataset *out)
{
    bool good = id && columns && n > 0 && n < 1 << 20 && out;
    for (int64_t i = 0; good && i < n; i++)
        good = columns[i] != NULL;
    return good;
}

weft_status weft_read_csv(const char *path, const char *id, const char *const *columns, int64_t n,
                          const weft_csv_opts *opts, weft_dataset *out)
{
    if (out)
        *out = (weft_dataset){ 0 };
    if (!arguments_are_complete(id, columns, n, out))
        return weft__file_fail(
            WEFT_EARG, "weft_read_csv: a name for the id, at least one column and a dataset are expected");
    weft_status status = weft__csv_opts_good("weft_read_csv", opts);
    if (status != WEFT_OK)
        return status;
    ragged r = { .g = { .data = { .columns = n } } };
    char *text;
    status = weft__read_csv_rows(path, &text, &(weft__csv_want){ id, columns, (int)n, true, opts, NULL },
                                 append_row, &r);
    if (status == WEFT_OK && !end_sequences(&r))
        status = weft__file_fail(WEFT_ENOMEM, "%s: out of memory, or a sequence of 2^31 rows", path);
    free(text);
    free(r.runs.run);
    return weft__grown(&r.g, status, path, out);
}
