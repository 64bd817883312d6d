/* length_files.c - lengths of sequences in texts, JSON, tables and arrays. */
#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "io/data/data.h"
#include "io/weights/weights.h"
#include "tools/corpora/corpora.h"

/* Where a number is, for messages: "PATH:LINE", or "PATH: NAME: element NUMBER". */
typedef struct {
    char text[400];
    const length_opts *how;
    corpus_builder *to;
} place;

static bool refuse(const place *at, const char *found, const char *expected)
{
    return say_failure("%s: found %s; expected %s", at->text, found, expected);
}

static bool add_number(const place *at, double length)
{
    char found[40];
    snprintf(found, sizeof found, "%.17g", length);
    if (!corpus_is_length(length))
        return refuse(at, found, "a length, a whole number in 0 .. 2^31 - 2");
    return corpus_length(at->to, length);
}

/* ---- texts ---- */
/* Adds the bytes or words of a text, which may not have a 0 inside. */
static bool add_counted(const place *at, const char *text, size_t n)
{
    bool inside = false;
    size_t words = 0;
    for (size_t i = 0, k; i < n; i += k) {
        k = (unsigned char)text[i] < 128 ? text[i] != 0 : (size_t)weft__utf8_character(text + i);
        if (!k || k > n - i)
            return refuse(at, "a byte that is not UTF-8 text", "UTF-8; convert the file with iconv");
        bool blank = isspace((unsigned char)text[i]);
        words += !blank && !inside;
        inside = !blank;
    }
    return add_number(at, (double)(at->how->unit == UNIT_WORDS ? words : n));
}

bool add_text_lengths(const char *path, char *text, size_t n, length_unit unit, corpus_builder *b)
{
    const bool paragraphs = unit == UNIT_LINES;
    place at = { .how = &(length_opts){ .unit = paragraphs ? UNIT_BYTES : unit }, .to = b };
    int64_t lines = 0;
    long long line = 1;
    for (char *next = text, *end; next < text + n; next = end + 1, line++) {
        end = memchr(next, '\n', (size_t)(text + n - next));
        end = end ? end : text + n;
        size_t size = (size_t)(end - next) - (end > next && end[-1] == '\r');
        snprintf(at.text, sizeof at.text, "%.300s:%lld", path, line);
        if (!add_counted(&at, next, size))
            return false;
        if (!paragraphs)
            continue;
        b->data.n--; /* the line is checked; its paragraph counts */
        if (!size && lines && !add_number(&at, (double)lines))
            return false;
        lines = size ? lines + 1 : 0;
    }
    return !lines || add_number(&at, (double)lines);
}

/* ---- JSON: objects with the usual keys, one after another or in a list ---- */
static const char *const keys[] = { "length", "lengths", "num_tokens", "input_ids", "ids" };
enum { KEYS = sizeof keys / sizeof *keys, LENGTH_KEYS = 3 };

/* Adds a value: a length, a text, a list of tokens, or a list of these. lengths: numbers are lengths. */
static bool add_value(const place *at, const json_t *value, bool lengths)
{
    if (json_is_integer(value) && lengths)
        return add_number(at, (double)json_integer_value(value));
    if (json_is_string(value) && (at->how->unit == UNIT_BYTES || at->how->unit == UNIT_WORDS))
        return add_counted(at, json_string_value(value), json_string_length(value));
    if (json_is_string(value))
        return refuse(at, "a text", "--unit bytes or --unit words for it");
    if (!json_is_array(value))
        return refuse(at, json_is_real(value) ? "a number with a point" : "another value",
                      lengths ? "a length, a whole number, or a list of them" : "a list of tokens");
    const json_t *first = json_array_get(value, 0);
    if (!lengths && !json_is_array(first))
        return add_number(at, (double)json_array_size(value));
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!add_value(at, json_array_get(value, i), lengths && !json_is_array(first)))
            return false;
    return true;
}

/* Adds an object with one of the keys, or a list of objects or of lists of tokens. */
static bool add_json(const place *at, const json_t *value)
{
    const char *column = at->how->column;
    const json_t *found = column ? json_object_get(value, column) : NULL;
    length_unit unit = at->how->unit;
    for (int i = 0; i < KEYS && !column && !found; i++)
        if ((found = json_object_get(value, keys[i])))
            return add_value(at, found, unit != UNIT_TOKENS && i < LENGTH_KEYS);
    if (found) {
        int i = 0;
        while (i < LENGTH_KEYS && strcmp(column, keys[i]))
            i++;
        return add_value(at, found,
                         unit == UNIT_LENGTH || (unit != UNIT_TOKENS && i < LENGTH_KEYS) ||
                             json_is_integer(found));
    }
    if (json_is_object(value) && !(value = json_object_get(value, "encodings")))
        return refuse(at, column ? "no such key" : "no key length, num_tokens, input_ids or ids",
                      "one, or --column KEY");
    const json_t *first = json_array_get(value, 0);
    if (json_is_array(value) && first && !json_is_object(first) && !json_is_array(first)) {
        if (unit != UNIT_TOKENS && unit != UNIT_LENGTH)
            return refuse(at, "a list without a key",
                          "--unit tokens if it is one sequence, --unit length if it has lengths");
        return add_value(at, value, unit == UNIT_LENGTH);
    }
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *each = json_array_get(value, i);
        if (!(json_is_object(each) ? add_json(at, each) : add_value(at, each, false)))
            return false;
    }
    return json_is_array(value) || refuse(at, "another value", "an object or a list");
}

bool add_json_lengths(const char *path, const char *text, size_t n, const length_opts *how, corpus_builder *b)
{
    static const char space[] = " \t\r\n";
    place at = { .how = how, .to = b };
    const char *counted = text;
    long long line = 1;
    bool ok = true;
    for (const char *c = text; ok && (c += strspn(c, space)) < text + n;) {
        json_error_t e;
        for (; counted < c; counted++)
            line += *counted == '\n';
        json_auto_t *value = json_loadb(c, (size_t)(text + n - c), JSON_DISABLE_EOF_CHECK, &e);
        snprintf(at.text, sizeof at.text, "%.300s:%lld", path, value ? line : line + e.line - 1);
        ok = value ? add_json(&at, value) : say_failure("%s: %s; expected JSON", at.text, e.text);
        c += value ? e.position : 0;
    }
    return ok;
}

/* ---- tables ---- */
static int by_first(const void *a, const void *b)
{
    int64_t x = ((const weft__stretch *)a)->first, y = ((const weft__stretch *)b)->first;
    return (x > y) - (x < y);
}

/* Adds the lengths of the texts of a column, row after row. */
static bool add_cells(place *at, const char *path, weft__table *t)
{
    if (t->n)
        qsort(t->run, (size_t)t->n, sizeof *t->run, by_first);
    for (int64_t i = 0; i < t->n; i++)
        for (int64_t r = 0; r < t->run[i].rows; r++) {
            snprintf(at->text, sizeof at->text, "%.300s: row %lld", path, (long long)(t->run[i].first + r));
            if (!add_counted(at, t->run[i].id, strlen(t->run[i].id)))
                return false;
        }
    return true;
}

/* Adds the number of rows of each text. Stretches of one text follow each other. */
static bool add_groups(const place *at, const weft__table *t)
{
    for (int64_t i = 0, end; i < t->n; i = end) {
        int64_t rows = 0;
        for (end = i; end < t->n && t->run[end].group == t->run[i].group; end++)
            rows += t->run[end].rows;
        if (!add_number(at, (double)rows))
            return false;
    }
    return true;
}

bool add_table_lengths(const char *path, const length_opts *how, corpus_builder *b)
{
    const char *column = how->column ? how->column : keys[0];
    bool numbers = how->unit == UNIT_ANY || how->unit == UNIT_LENGTH;
    place at = { .how = how, .to = b };
    weft__table t;
    weft_csv_opts opts = { .delimiter = weft__ends_in(path, ".tsv") ? '\t' : ',' };
    bool ok =
        weft__read_table(&t, path, numbers ? NULL : column, &column, numbers, &opts, false) == WEFT_OK ||
        say_failure("%s", weft_file_message());
    if (ok && !numbers)
        ok = how->unit == UNIT_ROWS ? add_groups(&at, &t) : add_cells(&at, path, &t);
    for (int64_t i = 0; ok && numbers && i < t.rows; i++) {
        snprintf(at.text, sizeof at.text, "%.300s: row %lld", path, (long long)i);
        ok = add_number(&at, t.column[0][i] + (double)t.origin[0]);
    }
    weft__table_end(&t);
    return ok;
}

/* ---- arrays: NumPy, safetensors, HDF5 ---- */
/* Returns the array of a name, or of a usual name, or the only one. NULL after a printed error. */
static const weft__array *find_array(const char *path, const weft__weights *w, const char *name)
{
    static const char *const usual[] = {
        "lengths", "length", "num_tokens", "offsets", "offset", "cu_seqlens"
    };
    const weft__array *a = name ? weft__weights_find(w, name) : w->n == 1 ? w->array : NULL;
    for (size_t i = 0; !name && !a && i < sizeof usual / sizeof *usual; i++)
        a = weft__weights_find(w, usual[i]);
    if (!a)
        say_error(FAILED,
                  "%s: found %lld arrays, none named %s; expected --column NAME of those that weft list "
                  "prints",
                  path, (long long)w->n, name ? name : "lengths or offsets");
    else if (a->kind.rank != 1 || !weft__number_is_any(a->kind.type))
        say_error(FAILED, "%s: %s has %d axes, or no numbers; expected one axis of numbers", path, a->name,
                  a->kind.rank);
    return a && a->kind.rank == 1 && weft__number_is_any(a->kind.type) ? a : NULL;
}

bool add_array_lengths(const char *path, const length_opts *how, corpus_builder *b)
{
    weft__weights *w;
    place at = { .how = how, .to = b };
    if (weft__weights_open(path, NULL, &w) != WEFT_OK)
        return say_failure("%s", weft_file_message());
    const weft__array *a = find_array(path, w, how->column);
    int64_t n = a ? a->kind.size[0] : 0;
    SCOPED double *x = get_memory(n, sizeof *x);
    bool ok = a && (weft__array_read(w, a, WEFT__F64, x) || say_failure("%s", weft_file_message()));
    bool offsets =
        ok && (how->unit == UNIT_OFFSETS ||
               (how->unit == UNIT_ANY && (!strncmp(a->name, "offset", 6) || !strcmp(a->name, "cu_seqlens"))));
    for (int64_t i = offsets; ok && i < n; i++) {
        double length = offsets ? x[i] - x[i - 1] : x[i];
        if (!corpus_is_length(length)) /* a text for each number would take most of the time */
            snprintf(at.text, sizeof at.text, "%.200s: %.150s[%lld]", path, a->name, (long long)i);
        ok = add_number(&at, length);
    }
    weft__weights_close(w);
    return ok;
}
