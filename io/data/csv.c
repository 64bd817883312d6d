/* csv.c - reads CSV as in RFC 4180: quoted fields, doubled quotes, line ends within quotes. Messages name
 * file and line.
 *
 * The file is read whole. A field is terminated in place, because unquoting only shortens it. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "io/data/data.h"

typedef struct { char *text; int64_t size; } field;
typedef struct {
    const char *path;
    char *at, *end;
    int64_t line, next_line;                     /* of the last record and of the next one, from 1 */
    field *fields; int n, most;                  /* of this record, of the longest one */
    weft__table *t;                              /* receives the numbers and the ids */
    const char *id, *const *names;
    bool reals;                                  /* see weft__read_table */
    int *where;                                  /* [1 + columns] positions in a record, the id's first */
    weft_csv_opts o;                             /* the delimiter is set */
    weft_status status;
} csv;

/* Fails with a format error whose message begins with file and line. Returns false. */
static bool __attribute__((format(printf, 2, 3))) fail(csv *c, const char *format, ...)
{
    char reason[1000];
    WEFT__PLAIN_TEXT(reason, sizeof reason, format);
    c->status = weft__file_fail(WEFT_EFORMAT, "%s:%lld: %s", c->path, (long long)c->line, reason);
    return false;
}

static bool no_memory(csv *c)
{
    c->status = weft__file_fail(WEFT_ENOMEM, "%s:%lld: out of memory", c->path, (long long)c->line);
    return false;
}

/* ---- records ---- */
static bool add_field(csv *c, char *text, char *end)
{
    if (c->n == c->most) {
        field *all = c->n > INT32_MAX / 64 ? NULL : weft__grown(c->fields, c->n, sizeof *all);
        if (!all)
            return no_memory(c);
        c->fields = all;
        c->most++;
    }
    c->fields[c->n++] = (field){ text, end - text };
    return true;
}

static bool is_end(const csv *c)                 /* end of a field */
{
    return c->at == c->end || *c->at == c->o.delimiter || *c->at == '\n' ||
           (*c->at == '\r' && c->at + 1 < c->end && c->at[1] == '\n');
}

static bool quoted(csv *c, char **stop)
{
    char *to = c->at++;
    for (; c->at < c->end; c->at++) {
        if (*c->at == '"' && (c->at + 1 == c->end || c->at[1] != '"')) {
            c->at++;
            *stop = to;
            return is_end(c) || fail(c, "text after a closing quote; expected the end of the field; write a "
                                        "quote inside a field twice");
        }
        c->at += *c->at == '"';
        c->next_line += *c->at == '\n';
        *to++ = *c->at;
    }
    return fail(c, "a quote is never closed; expected a closing quote");
}

/* Reads one field; *more: another one follows on the line. The final 0 is set only after the separator was
 * read. */
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
    *more = c->at < c->end && *c->at == c->o.delimiter;
    if (c->at < c->end && !*more) {
        c->at += *c->at == '\r';
        c->next_line++;
    }
    c->at += c->at < c->end;
    /* the byte after the text: a separator, a quote, or the 0 at the end of the file */
    *stop = 0;
    return add_field(c, text, stop);
}

/* Reads the fields of the next line that is not empty. Returns false at the end and on errors. */
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
/* Reports a missing column. If one column of the header contains all names, the file has another
 * delimiter. */
static void no_column(csv *c, const char *name)
{
    char reason[900];
    int length = snprintf(reason, sizeof reason, "no column is named \"%.100s\"; expected%s", name,
                          c->n > 1 ? " one of" : " another .delimiter, or the only column");
    for (int i = 0; i < c->n && length < 700; i++)
        length += snprintf(reason + length, sizeof reason - (size_t)length, "%s \"%.100s\"", i ? "," : "",
                           c->fields[i].text);
    snprintf(reason + length, sizeof reason - (size_t)length, "%s", length < 700 ? "" : ", ..");
    fail(c, "%s", reason);
}

static int find_column(csv *c, const char *name)
{
    int found = -1;
    for (int i = 0; i < c->n; i++) {
        if (strcmp(c->fields[i].text, name))
            continue;
        if (found >= 0) {
            fail(c, "two columns are named \"%.100s\"; expected unique names", name);
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
        return c->status == WEFT_OK ? fail(c, "the file is empty; expected a header line") : false;
    for (int64_t i = !c->id; i <= c->t->columns; i++) {
        c->where[i] = find_column(c, i ? c->names[i - 1] : c->id);
        if (c->where[i] < 0)
            return false;
    }
    return true;
}

/* Returns whether a text is an integer that a double does not hold: 2^53 or more, and its digits do not read
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

/* Makes an integer the column's origin, and subtracts it from the earlier rows. */
static bool set_origin(csv *c, int64_t column, int64_t origin)
{
    double *before = c->t->column[column];
    c->t->origin[column] = origin;
    for (int64_t r = 0; r < c->t->rows; r++)
        if (!weft__move_origin(&before[r], 0, origin))
            return fail(c,
                        "column \"%.60s\": a double does not hold the number of row %lld, %.17g, less the "
                        "column's first large integer, %lld; expected integers nearer to it",
                        c->names[column], (long long)r, before[r], (long long)origin);
    return true;
}

/* Subtracts the column's origin from a number. Without an origin, a number that a double does not hold
 * becomes the origin. */
static bool take_origin(csv *c, int64_t column, const char *text, double *value)
{
    int64_t *origin = &c->t->origin[column], integer;
    bool ok = true;
    if (!is_rounded(text, *value)) {
        ok = weft__move_origin(value, 0, *origin);
    } else {
        errno = 0;
        integer = strtoll(text, NULL, 10);
        ok = !c->reals && !errno;
        if (ok && !*origin && !set_origin(c, column, integer))
            return false;
        *value = 0;
        ok = ok && weft__move_origin(value, integer, *origin);
    }
    if (ok)
        return true;
    if (*origin)
        return fail(c,
                    "column \"%.60s\": a double does not hold %.40s less the column's first large integer, "
                    "%lld; expected integers nearer to it",
                    c->names[column], text, (long long)*origin);
    return fail(c,
                "column \"%.60s\": a double does not hold the integer %.40s; write it from a later origin, "
                "or in a larger unit (seconds, not nanoseconds)",
                c->names[column], text);
}

static bool read_number(csv *c, int64_t column, double *out)
{
    const field *f = &c->fields[c->where[column + 1]];
    const char *name = c->names[column];
    char *end;
    if (f->size == 0 && c->o.empty_is_nan) {
        *out = (double)NAN;
        return take_origin(c, column, f->text, out);
    }
    errno = 0;
    double value = strtod(f->text, &end);
    /* before blanks are skipped, because blanks alone are not a number */
    bool empty = end == f->text;
    while (*end == ' ' || *end == '\t')
        end++;
    if (empty || end != f->text + f->size)
        return fail(c, "column \"%.100s\": \"%.100s\"; expected a number", name, f->text);
    *out = value;
    if ((errno == ERANGE && fabs(value) > 1) || (c->reals && isfinite(value) && !isfinite((weft_real)value)))
        return fail(c, "column \"%.100s\": \"%.100s\" is too large; expected a smaller number", name,
                    f->text);
    return take_origin(c, column, f->text, out);
}

/* ---- the file ---- */
static bool read_record(csv *c, int width)
{
    weft__table *t = c->t;
    if (c->n != width)
        return fail(c, "%d fields; expected %d, as in the header", c->n, width);
    for (int64_t i = 0; i < t->columns; i++) {
        double *all = weft__grown(t->column[i], t->rows, sizeof *all);
        if (!all)
            return no_memory(c);
        t->column[i] = all;
        if (!read_number(c, i, &all[t->rows]))
            return false;
    }
    if (c->id && !weft__table_add_id(t, c->fields[c->where[0]].text))
        return no_memory(c);
    t->rows++;
    return true;
}

/* Refuses a text with a 0 byte, which would cut a field without an error; UTF-16 has many. Also refuses lines
 * that end with \\r alone, because they would form one header. */
static bool is_text(csv *c, const char *text, size_t size)
{
    const char *zero = memchr(text, 0, size), *end = memchr(text, '\r', size);
    if (end && !memchr(text, '\n', size) && end + 1 < text + size)
        return fail(c, "lines end with \\r; expected \\n; convert them with tr '\\r' '\\n' <FILE >NEW");
    for (const char *found = text; zero && found < zero; found++)
        c->line += *found == '\n';
    return !zero || fail(c, "a zero byte; expected text in UTF-8");
}

static void read_rows(csv *c)
{
    size_t columns = (size_t)c->t->columns;
    c->where = malloc((columns + 1) * sizeof *c->where);
    c->t->column = calloc(columns, sizeof *c->t->column);
    c->t->origin = calloc(columns, sizeof *c->t->origin);
    bool room = (c->where && c->t->column && c->t->origin) || no_memory(c);
    if (!room || !read_header(c))
        return;
    int width = c->n;
    while (next_record(c) && read_record(c, width))
        ;
    if (c->status)
        return;
    if (!c->id && !weft__table_add_id(c->t, c->path))
        no_memory(c);
    else if (!c->id)
        c->t->run[0] = (weft__stretch){ c->path, 0, c->t->rows, 0 };  /* a file without rows is an empty
                                                                       * series */
}

weft_status weft__csv_opts_good(const char *function, const weft_csv_opts *opts)
{
    unsigned char d = (unsigned char)(opts ? opts->delimiter : 0);
    if (!d || d == '\t' || (d >= ' ' && d < 127 && !isalnum(d) && !strchr("\"+-.", d)))
        return WEFT_OK;
    return weft__file_fail(WEFT_EARG,
                           "%s: the delimiter is byte %d; expected a character that can neither be in a "
                           "number nor quote or end a field",
                           function, d);
}

weft_status weft__read_table(weft__table *t, const char *path, const char *id, const char *const *names,
                             int64_t columns, const weft_csv_opts *opts, bool reals)
{
    unsigned char *text;
    size_t size;
    *t = (weft__table){ .columns = columns };
    weft_status status = weft__read_file(path, NULL, &text, &size);
    if (status != WEFT_OK)
        return status;
    t->text = (char *)text;
    csv c = { .path = path, .at = t->text, .end = t->text + size, .line = 1, .next_line = 1, .t = t, .id = id,
              .names = names, .reals = reals, .o = opts ? *opts : (weft_csv_opts){ 0 } };
    c.o.delimiter = c.o.delimiter ? c.o.delimiter : ',';
    void *before = weft__plain_locale();
    if (is_text(&c, t->text, size))
        read_rows(&c);
    weft__plain_locale_end(before);
    weft__table_gather(t);
    free(c.where);
    free(c.fields);
    return c.status;
}
