/* from.c - reads plans from JSON for `--from`: one plan a line, or the output of `--json`. Each is checked
 * like any plan. */
#include <errno.h>
#include <jansson.h>
#include <string.h>
#include "plan/plan.h"
#include "tools/corpora/corpora.h"
#include "tools/plan/plan.h"

enum { SPARE = 1 << 24 }; /* limit of a batch's rows without a piece */

/* where: file and line, for messages. whole: all pieces so far were written as whole sequences. */
typedef struct {
    char where[300];
    const int32_t *len;
    int64_t n, cells;
    json_t *columns;
    bool in_rows, whole;
    planned *to;
} reading;

static bool refuse(const reading *r, const char *reason) { return say_failure("%s: %s", r->where, reason); }

/* Reads a whole number in 0 .. limit. name: used in messages. */
static bool number(const reading *r, const json_t *object, int64_t limit, const char *name, int64_t *out)
{
    *out = object && json_is_integer(object) ? json_integer_value(object) : -1;
    if (*out >= 0 && *out <= limit)
        return true;
    return say_failure("%s: %s is %s; expected a whole number in 0 .. %lld", r->where, name,
                       !object                 ? "missing" :
                       json_is_integer(object) ? "out of range" :
                                                 "not a whole number",
                       (long long)limit);
}

/* Reads the number of batch b: one number for all batches, or an element of a list. */
static bool number_of_batch(const reading *r, const json_t *object, int64_t b, const char *name, int64_t *out)
{
    return number(r, json_is_array(object) ? json_array_get(object, (size_t)b) : object, INT32_MAX, name,
                  out);
}

/* ---- pieces ---- */
static bool add_piece(reading *r, const json_t *object, weft_segment s)
{
    int64_t value[3] = { 0 };
    bool triple = json_is_array(object) && json_array_size(object) == 3;
    if (!triple && !json_is_integer(object))
        return refuse(r, "expected a piece as a sequence's number or [sequence, from, count]");
    if (!number(r, triple ? json_array_get(object, 0) : object, r->n - 1, "a piece's sequence", value))
        return false;
    for (size_t i = 1; i < 3 && triple; i++)
        if (!number(r, json_array_get(object, i), INT32_MAX,
                    i == 1 ? "a piece's first token" : "a piece's count", value + i))
            return false;
    r->whole = r->whole && !triple;
    s.sequence = value[0];
    s.offset = (int32_t)value[1];
    s.length = triple ? (int32_t)value[2] : r->len[value[0]];
    return weft_plan_add(&r->to->plan, s) == WEFT_OK || refuse(r, weft_plan_message());
}

/* Reads the pieces of a row. "columns" gives where each begins; the default is the end of the one before. */
static bool add_row(reading *r, const json_t *row, int64_t index, int32_t in_batch, int64_t *longest)
{
    const json_t *columns = r->columns ? json_array_get(r->columns, (size_t)index) : NULL;
    int64_t end = 0;
    if (!json_is_array(row))
        return refuse(r, "\"rows\": expected a list of rows, each a list of pieces");
    if (r->columns && json_array_size(columns) != json_array_size(row))
        return refuse(r, "\"columns\": expected a list for each row, with a number for each of its pieces");
    for (size_t i = 0; i < json_array_size(row); i++) {
        int64_t column = end;
        if (columns && !number(r, json_array_get(columns, i), INT32_MAX, "a column", &column))
            return false;
        if (!add_piece(r, json_array_get(row, i),
                       (weft_segment){ .row = in_batch, .column = column, .carry = -1 }))
            return false;
        end = column + r->to->plan.segment[r->to->plan.segments - 1].length;
        *longest = end > *longest ? end : *longest;
    }
    return true;
}

/* ---- batches ---- */
static bool end_batch(reading *r, const json_t *width, int64_t rows, int64_t longest)
{
    int64_t capacity = r->in_rows && r->to->opts.capacity ? r->to->opts.capacity : longest;
    if (width && !number_of_batch(r, width, r->to->plan.batches, "\"width\" of a batch", &capacity))
        return false;
    if (r->to->opts.capacity && capacity > r->to->opts.capacity)
        return refuse(r, "a row is wider than \"capacity\"");
    int64_t cells;
    if (__builtin_mul_overflow(rows, capacity, &cells) || __builtin_add_overflow(r->cells, cells, &r->cells))
        return refuse(r, "the number of cells overflows 64 bits");
    return weft_plan_end_batch(&r->to->plan, rows, capacity) == WEFT_OK || refuse(r, weft_plan_message());
}

static bool read_rows(reading *r, const json_t *rows, const json_t *each, const json_t *width)
{
    int64_t n = (int64_t)json_array_size(rows), column = 0, take = n;
    for (int64_t b = 0; column < n || (each && json_is_array(each) && b < (int64_t)json_array_size(each));
         b++) {
        int64_t longest = 0;
        if (each && !number_of_batch(r, each, b, "\"batch_rows\" of a batch", &take))
            return false;
        if (json_is_integer(each) && take > n - column)
            take = n - column;
        if (take > n - column || (take == 0 && !json_is_array(each)))
            return refuse(r, "\"batch_rows\" and the number of rows differ");
        for (int64_t k = 0; k < take; k++, column++)
            if (!add_row(r, json_array_get(rows, (size_t)column), column, (int32_t)k, &longest))
                return false;
        if (!end_batch(r, width, take, longest))
            return false;
    }
    return true;
}

static bool read_batches(reading *r, const json_t *batches, const json_t *each, const json_t *width)
{
    for (size_t b = 0; b < json_array_size(batches); b++) {
        const json_t *batch = json_array_get(batches, b);
        int64_t longest = 0, n = (int64_t)json_array_size(batch), rows = n;
        if (!json_is_array(batch))
            return refuse(r, "\"batches\": expected a list of batches, each a list of pieces");
        for (int64_t i = 0; i < n; i++) {
            if (!add_piece(r, json_array_get(batch, (size_t)i),
                           (weft_segment){ .row = (int32_t)i, .carry = -1 }))
                return false;
            int32_t length = r->to->plan.segment[r->to->plan.segments - 1].length;
            longest = length > longest ? length : longest;
        }
        if (each && !number_of_batch(r, each, (int64_t)b, "\"batch_rows\" of a batch", &rows))
            return false;
        if (rows < n || rows > n + SPARE)
            return refuse(r, "\"batch_rows\" of a batch is less than its pieces, or far more");
        if (!end_batch(r, width, rows, longest))
            return false;
    }
    return true;
}

/* ---- carries ---- */
/* carry: true carries every state that can be carried; a list has one value for each piece. */
static bool read_carries(reading *r, const json_t *carry)
{
    weft_plan *p = &r->to->plan;
    if (!carry || json_is_false(carry))
        return true;
    if (!json_is_true(carry) && (!json_is_array(carry) || (int64_t)json_array_size(carry) != p->segments))
        return refuse(r, "\"carry\": expected true, or a list of true or false for each piece");
    SCOPED int32_t *possible = possible_carries(p);
    bool ok = true;
    for (int64_t i = 0; i < p->segments && ok; i++) {
        const json_t *value = json_is_array(carry) ? json_array_get(carry, (size_t)i) : carry;
        ok = json_is_boolean(value) || refuse(r, "\"carry\": expected only true and false");
        if (ok && json_is_array(carry) && json_is_true(value) && possible[i] < 0)
            ok = refuse(r, "\"carry\" is true for a piece, but no piece of the batch before ends where "
                           "it begins");
        if (ok && json_is_true(value))
            p->segment[i].carry = possible[i];
    }
    return ok;
}

static bool read_shape(reading *r, const json_t *object)
{
    const json_t *rows = json_object_get(object, "rows"), *batches = json_object_get(object, "batches"),
                 *each = json_object_get(object, "batch_rows"), *width = json_object_get(object, "width");
    weft_plan *p = &r->to->plan;
    if (!json_is_array(rows ? rows : batches) || (rows && batches))
        return refuse(r, "expected a list \"batches\" or \"rows\"");
    r->columns = json_object_get(object, "columns");
    if (r->columns && (!rows || !json_is_array(r->columns)))
        return refuse(r, "expected \"columns\" to be a list, next to \"rows\"");
    p->in_rows = r->in_rows = rows != NULL;
    weft__plan_set_counts(p, r->len, r->n);
    if (!(rows ? read_rows(r, rows, each, width) : read_batches(r, batches, each, width)))
        return false;
    if ((json_is_array(each) && (int64_t)json_array_size(each) != p->batches) ||
        (json_is_array(width) && (int64_t)json_array_size(width) != p->batches) ||
        (r->columns && json_array_size(r->columns) != json_array_size(rows)))
        return refuse(r,
                      "expected a number for each batch in \"batch_rows\" and \"width\", and a list for each "
                      "row in \"columns\"");
    for (int64_t i = 0; i < p->segments; i++)
        p->empty -= !p->segment[i].length;
    return read_carries(r, json_object_get(object, "carry"));
}

static bool read_plan(reading *r, json_t *object)
{
    const json_t *name = json_object_get(object, "planner"), *capacity = json_object_get(object, "capacity"),
                 *dropped = json_object_get(object, "dropped"), *align = json_object_get(object, "align");
    planned *to = r->to;
    static const char keys[] = " planner batches rows capacity batch_rows width columns carry dropped align "
                               "figures ";
    char word[50];
    if (!json_is_object(object))
        return refuse(r, "expected a plan, {\"planner\": .., \"batches\" or \"rows\": ..}");
    if (name && !json_is_string(name))
        return refuse(r, "\"planner\": expected a string");
    to->text = to->memory = strdup(name ? json_string_value(name) : r->where);
    for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i)) {
        snprintf(word, sizeof word, " %.40s ", json_object_iter_key(i));
        if (!strstr(keys, word)) /* a misspelt key must not change the plan in silence */
            return say_failure("%s: unknown key \"%.40s\"; expected one of%s", r->where,
                               json_object_iter_key(i), keys);
    }
    r->whole = true;
    r->cells = 0;
    if ((capacity && !number(r, capacity, INT32_MAX, "\"capacity\"", &to->opts.capacity)) ||
        (align && !number(r, align, INT32_MAX, "\"align\"", &to->opts.align)) ||
        (dropped && !number(r, dropped, INT64_MAX, "\"dropped\"", &to->plan.dropped)) ||
        !read_shape(r, object))
        return false;
    to->plan.align = (int32_t)to->opts.align;
    to->planner = (weft_planner){ .name = to->text, .promises = r->whole ? WEFT_PLAN_WHOLE : 0 };
    return weft_plan_check(&to->plan, r->len, r->n, to->planner.promises) == WEFT_OK ||
           refuse(r, weft_plan_message());
}

static bool add_plan(reading *r, json_t *object, planned **all, int *count)
{
    *all = get_more(*all, *count + 1, sizeof **all);
    r->to = *all + *count;
    *r->to = (planned){ 0 };
    ++*count; /* even if it fails, so that it is freed */
    return read_plan(r, object);
}

/* ---- a file ---- */
/* Reads the output of `--json`, one object with all plans. */
static bool read_document(reading *r, const char *path, const char *text, size_t size, planned **all,
                          int *count)
{
    json_error_t e;
    json_auto_t *document = json_loadb(text, size, JSON_REJECT_DUPLICATES, &e);
    json_t *plans = json_object_get(document, "plans");
    bool ok = json_is_array(plans);
    if (!document)
        say_error(FAILED, "%s:%d: %s; expected JSON", path, e.line, e.text);
    else if (!ok)
        say_error(FAILED, "%s: \"plans\": expected a list", path);
    for (size_t i = 0; ok && i < json_array_size(plans); i++) {
        snprintf(r->where, sizeof r->where, "%s: plan %zu", path, i + 1);
        ok = add_plan(r, json_array_get(plans, i), all, count);
    }
    return ok;
}

static bool read_line(reading *r, const char *text, size_t size, planned **all, int *count)
{
    json_error_t e;
    json_auto_t *document = json_loadb(text, size, JSON_REJECT_DUPLICATES, &e);
    return document ? add_plan(r, document, all, count) :
                      say_failure("%s: column %d: %s; expected a plan as JSON", r->where, e.column, e.text);
}

static bool is_document(const char *text)
{
    text += strspn(text, " \t\r\n");
    text += *text == '{';
    text += strspn(text, " \t\r\n");
    return !strncmp(text, "\"plans\"", 7);
}

bool read_plans(const char *path, const int32_t *len, int64_t n, planned **all, int *count)
{
    size_t size = 0, offset = 0;
    int before = *count;
    SCOPED char *text = corpus_file(path, &size);
    reading r = { .len = len, .n = n };
    bool ok = text != NULL, document = text && is_document(text);
    if (!text && errno == ENOENT)
        say_error(FAILED, "--from %s: %s", path, strerror(errno));
    if (document)
        ok = read_document(&r, path, text, size, all, count);
    for (int64_t line = 1; ok && !document && offset < size; line++) {
        const char *end = memchr(text + offset, '\n', size - offset);
        size_t length = end ? (size_t)(end - text) - offset : size - offset;
        snprintf(r.where, sizeof r.where, "%s:%lld", path, (long long)line);
        if (strspn(text + offset, " \t\r") < length)
            ok = read_line(&r, text + offset, length, all, count);
        offset += length + 1;
    }
    return ok && (*count > before || say_failure("%s: found no plan; expected one a line", path));
}
