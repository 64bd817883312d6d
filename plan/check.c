/* check.c - checks the rules that every plan must follow.
 *
 * Planners emit pieces in order, so one pass over the segments nearly always proves a plan right. Otherwise
 * the segments are sorted, and the message names the first fault. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "plan/plan.h"

typedef struct {
    const weft_plan *p;
    const int32_t *len;
    int64_t n;
    unsigned promises;
    const char *function; /* "plan_measure: ", or "" */
} checking;

/* Refuses the plan with a message that describes segment i and gives the reason. */
__attribute__((format(printf, 3, 4))) static weft_status bad_segment(const checking *t, int64_t i,
                                                                     const char *format, ...)
{
    const weft_segment *s = t->p->segment + i;
    char reason[200];
    va_list list;
    va_start(list, format);
    vsnprintf(reason, sizeof reason, format, list);
    va_end(list);
    return weft_plan_refuse(
        WEFT_EFORMAT,
        "%ssegment %lld, %d tokens of sequence %lld from token %d on, in row %d from column "
        "%lld on: %s",
        t->function, (long long)i, (int)s->length, (long long)s->sequence, (int)s->offset, (int)s->row,
        (long long)s->column, reason);
}

/* ---- batches ---- */
static bool is_count(int64_t x) { return x >= 0 && x <= INT32_MAX; }

static weft_status check_shape(const checking *t)
{
    const weft_plan *p = t->p;
    int64_t next = 0, cells = 0, length;
    for (int64_t b = 0; b < p->batches; b++) {
        const weft_plan_batch *batch = p->batch + b;
        if (batch->first != next || batch->n < 0 || batch->n > p->segments - next)
            return weft_plan_refuse(
                WEFT_EFORMAT,
                "%sbatch %lld has %lld segments from segment %lld on; expected 0 .. %lld from %lld on",
                t->function, (long long)b, (long long)batch->n, (long long)batch->first,
                (long long)(p->segments - next), (long long)next);
        if (!is_count(batch->rows) || batch->width < 0 || batch->width > WEFT__PLAN_WIDTH ||
            __builtin_mul_overflow(batch->rows, batch->width, &length) ||
            __builtin_add_overflow(cells, length, &cells))
            return weft_plan_refuse(
                WEFT_EFORMAT,
                "%sbatch %lld has %lld rows of %lld cells; expected 0 .. %d rows of 0 .. %lld cells, and "
                "fewer than 2^63 cells in all batches",
                t->function, (long long)b, (long long)batch->rows, (long long)batch->width, INT32_MAX,
                (long long)WEFT__PLAN_WIDTH);
        next += batch->n;
    }
    if (next != p->segments)
        return weft_plan_refuse(WEFT_EFORMAT, "%s%lld segments are outside all batches; expected all "
                                              "segments in batches", t->function,
                                (long long)(p->segments - next));
    return WEFT_OK;
}

/* Checks the position of a segment, which all formulas rely on. */
static weft_status check_place(const checking *t, const weft_plan_batch *b, int64_t i)
{
    const weft_segment *s = t->p->segment + i;
    if (s->sequence < 0 || s->sequence >= t->n)
        return bad_segment(t, i, "expected a sequence below %lld", (long long)t->n);
    if (s->length >= 0 && s->row >= 0 && s->row < b->rows && s->column >= 0 && s->length <= b->width &&
        s->column <= b->width - s->length)
        return WEFT_OK;
    return bad_segment(t, i, "expected a position in the %lld rows of %lld cells of its batch",
                       (long long)b->rows, (long long)b->width);
}

static weft_status check_segment(const checking *t, const weft_plan_batch *b, int64_t i)
{
    const weft_segment *s = t->p->segment + i;
    weft_status status = check_place(t, b, i);
    if (status != WEFT_OK)
        return status;
    if (s->offset < 0 || s->length > t->len[s->sequence] - s->offset)
        return bad_segment(t, i, "expected tokens of the sequence, which has %d", (int)t->len[s->sequence]);
    if (t->p->align > 1 && (s->column % t->p->align || b->width % t->p->align))
        return bad_segment(t, i, "expected a column and a width, %lld, that are multiples of align, %d",
                           (long long)b->width, (int)t->p->align);
    if ((t->promises & WEFT_PLAN_WHOLE) && s->length != t->len[s->sequence])
        return bad_segment(t, i, "expected all %d tokens, because the planner promises whole sequences",
                           (int)t->len[s->sequence]);
    if ((t->promises & WEFT_PLAN_IN_ORDER) && i && s->sequence < s[-1].sequence)
        return bad_segment(t, i, "expected sequences in order, as the planner promises; sequence %lld comes "
                                 "before it",
                           (long long)s[-1].sequence);
    return WEFT_OK;
}

static weft_status each_segment(const checking *t,
                                weft_status (*check)(const checking *, const weft_plan_batch *, int64_t))
{
    weft_status s = WEFT_OK;
    for (int64_t b = 0; b < t->p->batches && s == WEFT_OK; b++) {
        const weft_plan_batch *batch = t->p->batch + b;
        for (int64_t i = batch->first; i < batch->first + batch->n && s == WEFT_OK; i++)
            s = check(t, batch, i);
    }
    return s;
}

/* ---- rows ---- */
static _Thread_local const weft_segment *sorted; /* the array that the comparisons below read */

static int in_order(int64_t x, int64_t y) { return (x > y) - (x < y); }

static int by_place(const void *a, const void *b)
{
    const weft_segment *x = sorted + *(const int32_t *)a, *y = sorted + *(const int32_t *)b;
    int order = in_order(x->row, y->row);
    order = order ? order : in_order(x->column, y->column);
    return order ? order : in_order(x->length, y->length);
}

/* Sorts the segments of a batch by position, and looks for overlaps. */
static weft_status check_places(const checking *t, const weft_plan_batch *b)
{
    int32_t *order = weft__plan_order(b->n);
    weft_status s = WEFT_OK;
    const weft_segment *pieces = t->p->segment + b->first, *previous = NULL;
    if (!order)
        return WEFT_ENOMEM;
    sorted = pieces;
    qsort(order, (size_t)b->n, sizeof *order, by_place);
    for (int64_t k = 0; k < b->n && s == WEFT_OK; k++) {
        const weft_segment *piece = pieces + order[k];
        if (!piece->length)
            continue;
        const int64_t end = previous ? previous->column + previous->length : 0;
        if (previous && previous->row == piece->row && piece->column < end)
            s = bad_segment(t, b->first + order[k], "another segment ends at column %lld of the row; "
                                                    "expected no overlap",
                            (long long)end);
        previous = piece;
    }
    return s;
}

/* fill: the end of each row so far. A plan may claim far more rows than it has segments. Memory for those
 * rows may not exist, so such batches are sorted instead. */
static bool has_few_rows(const weft_plan_batch *b) { return b->rows / 8 <= b->n + 64; }

static bool rows_rise(const checking *t, const weft_plan_batch *b, int64_t *fill)
{
    memset(fill, 0, (size_t)b->rows * sizeof *fill);
    for (int64_t i = b->first; i < b->first + b->n; i++) {
        const weft_segment *s = t->p->segment + i;
        if (s->length && s->column < fill[s->row])
            return false;
        if (s->length)
            fill[s->row] = s->column + s->length;
    }
    return true;
}

static weft_status check_rows(const checking *t)
{
    int64_t most = 0;
    for (int64_t b = 0; b < t->p->batches; b++)
        most = has_few_rows(t->p->batch + b) && t->p->batch[b].rows > most ? t->p->batch[b].rows : most;
    int64_t *fill = weft__plan_memory(most, sizeof *fill);
    weft_status s = fill ? WEFT_OK : WEFT_ENOMEM;
    for (int64_t b = 0; b < t->p->batches && s == WEFT_OK; b++)
        if (!has_few_rows(t->p->batch + b) || !rows_rise(t, t->p->batch + b, fill))
            s = check_places(t, t->p->batch + b);
    return s;
}

/* ---- tokens ---- */
static int by_token(const void *a, const void *b)
{
    const weft_segment *x = sorted + *(const int32_t *)a, *y = sorted + *(const int32_t *)b;
    int order = in_order(x->sequence, y->sequence);
    order = order ? order : in_order(x->offset, y->offset);
    return order ? order : in_order(x->length, y->length);
}

/* Groups the segments by sequence, sorted by first token. Those of sequence i are order[end[i - 1]] ..
 * order[end[i] - 1]. */
static void sort_by_token(const checking *t, int32_t *end, int32_t *order)
{
    memset(end, 0, (size_t)(t->n + 1) * sizeof *end);
    for (int64_t i = 0; i < t->p->segments; i++)
        end[t->p->segment[i].sequence + 1]++;
    for (int64_t i = 0; i < t->n; i++)
        end[i + 1] += end[i];
    for (int64_t i = 0; i < t->p->segments; i++)
        order[end[t->p->segment[i].sequence]++] = (int32_t)i;
    sorted = t->p->segment;
    for (int64_t i = 0, first = 0; i < t->n; first = end[i++])
        for (int64_t k = first + 1; k < end[i]; k++)
            if (by_token(order + k - 1, order + k) > 0) {
                qsort(order + first, (size_t)(end[i] - first), sizeof *order, by_token);
                break;
            }
}

/* Counts the planned tokens of each sequence into done [n], for pieces in any order. */
static weft_status count_tokens(const checking *t, int32_t *done)
{
    int32_t *order = weft__plan_memory(t->p->segments + t->n + 1, sizeof *order);
    weft_status s = WEFT_OK;
    const weft_segment *previous = NULL;
    if (!order)
        return WEFT_ENOMEM;
    memset(done, 0, (size_t)t->n * sizeof *done);
    sort_by_token(t, order + t->p->segments, order);
    for (int64_t k = 0; k < t->p->segments && s == WEFT_OK; k++) {
        const weft_segment *piece = t->p->segment + order[k];
        if (previous && previous->sequence == piece->sequence &&
            (piece->offset < previous->offset + previous->length || !t->len[piece->sequence]))
            s = bad_segment(t, order[k], "its first token is in two segments; expected one");
        done[piece->sequence] += piece->length;
        previous = piece;
    }
    return s;
}

/* Returns whether the pieces of each sequence follow each other, as planners make them. Counts their tokens
 * into done; for an empty sequence, its segments. */
static bool pieces_follow(const checking *t, int32_t *done)
{
    memset(done, 0, (size_t)t->n * sizeof *done);
    for (int64_t i = 0; i < t->p->segments; i++) {
        const weft_segment *s = t->p->segment + i;
        if (s->offset != done[s->sequence])
            return false;
        done[s->sequence] += t->len[s->sequence] ? s->length : 1;
    }
    return true;
}

static weft_status check_tokens(const checking *t)
{
    int32_t *done = weft__plan_memory(t->n, sizeof *done);
    weft_status s = !done ? WEFT_ENOMEM : pieces_follow(t, done) ? WEFT_OK : count_tokens(t, done);
    int64_t missing = 0, first = -1;
    for (int64_t i = 0; i < t->n && s == WEFT_OK; i++) {
        int32_t lacks = t->len[i] ? t->len[i] - done[i] : 0;
        missing += lacks;
        first = first < 0 && lacks ? i : first;
    }
    if (s == WEFT_OK && missing != t->p->dropped)
        s = weft_plan_refuse(WEFT_EFORMAT,
                             "%lld tokens are missing, the first in sequence %lld; expected %lld, the plan's "
                             "number of dropped tokens",
                             (long long)missing, (long long)first, (long long)t->p->dropped);
    return s;
}

/* ---- carries ---- */
static weft_status check_carry(const checking *t, int64_t b, int64_t i, bool *taken)
{
    const weft_segment *s = t->p->segment + i, *from;
    const weft_plan_batch *previous = b ? t->p->batch + b - 1 : NULL;
    if (s->carry < 0)
        return s->offset && (t->promises & WEFT_PLAN_CARRIES) ?
                   bad_segment(t, i, "it carries no state; expected one, as the planner promises") :
                   WEFT_OK;
    if (!previous || s->carry >= previous->n)
        return bad_segment(t, i, "it carries the state of segment %d of the batch before; expected a segment "
                                 "below %lld",
                           (int)s->carry, (long long)(previous ? previous->n : 0));
    from = t->p->segment + previous->first + s->carry;
    if (from->sequence != s->sequence || from->offset + from->length != s->offset || taken[s->carry])
        return bad_segment(t, i,
                           "it carries the state of a segment that ends before token %d of sequence %lld%s; "
                           "expected the end just before its first token",
                           (int)(from->offset + from->length), (long long)from->sequence,
                           taken[s->carry] ? ", as another segment does" : "");
    taken[s->carry] = true;
    return WEFT_OK;
}

static weft_status check_carries(const checking *t)
{
    bool any = t->promises & WEFT_PLAN_CARRIES;
    for (int64_t i = 0; i < t->p->segments && !any; i++)
        any = t->p->segment[i].carry >= 0;
    if (!any)
        return WEFT_OK;
    bool *taken = weft__plan_memory(weft__plan_most_segments(t->p), sizeof *taken);
    weft_status s = taken ? WEFT_OK : WEFT_ENOMEM;
    for (int64_t b = 0; b < t->p->batches && s == WEFT_OK; b++) {
        const weft_plan_batch *batch = t->p->batch + b;
        memset(taken, 0, (size_t)(b ? batch[-1].n : 0) * sizeof *taken);
        for (int64_t i = batch->first; i < batch->first + batch->n && s == WEFT_OK; i++)
            s = check_carry(t, b, i, taken);
    }
    return s;
}

/* ---- counts, which the divisors of losses use ---- */
static weft_status check_counts(const checking *t)
{
    int64_t empty = weft__plan_without_segment(t->p, t->len, t->n);
    weft_plan all = { 0 };
    weft__plan_set_counts(&all, t->len, t->n);
    /* a shard does not know the lengths of sequences outside it */
    if (t->p->shard ? t->p->empty < 0 || t->p->empty > empty : t->p->empty != empty)
        return weft_plan_refuse(WEFT_EFORMAT,
                                "the plan counts %lld sequences of length 0 without a segment; expected %lld",
                                (long long)t->p->empty, (long long)empty);
    if (t->p->sequences == t->n && t->p->tokens == all.tokens && t->p->not_empty == all.not_empty)
        return WEFT_OK;
    return weft_plan_refuse(WEFT_EFORMAT,
                            "the plan counts %lld of %lld sequences as not empty, with %lld tokens; expected "
                            "%lld of %lld, with %lld tokens",
                            (long long)t->p->not_empty, (long long)t->p->sequences, (long long)t->p->tokens,
                            (long long)all.not_empty, (long long)t->n, (long long)all.tokens);
}

void weft__plan_set_counts(weft_plan *p, const int32_t *len, int64_t n)
{
    p->sequences = n;
    p->tokens = p->not_empty = 0;
    for (int64_t i = 0; i < n; i++) {
        p->tokens += len[i];
        p->not_empty += len[i] > 0;
    }
    p->empty = n - p->not_empty;
}

int64_t weft__plan_without_segment(const weft_plan *p, const int32_t *len, int64_t n)
{
    int64_t empty = 0;
    for (int64_t i = 0; i < n; i++)
        empty += !len[i];
    for (int64_t i = 0; i < p->segments; i++) {
        const weft_segment *s = p->segment + i;
        empty -= !s->length && s->sequence >= 0 && s->sequence < n && !len[s->sequence];
    }
    return empty;
}

static bool has_arrays(const weft_plan *p)
{
    return p && is_count(p->sequences) && p->tokens >= 0 && is_count(p->segments) && p->align >= 0 &&
           p->batches >= 0 && (!p->segments || p->segment) && (!p->batches || p->batch);
}

weft_status weft__plan_is_sound(const weft_plan *plan, int64_t sequences, const char *function)
{
    checking t = { .p = plan, .n = sequences, .function = function };
    if (!has_arrays(plan))
        return weft_plan_refuse(WEFT_EARG,
                                "%sthe plan is NULL or incomplete; expected at most %d sequences and "
                                "segments, 0 or more tokens, align of 0 or more, and its arrays",
                                function, INT32_MAX);
    weft_status s = check_shape(&t);
    return s == WEFT_OK ? each_segment(&t, check_place) : s;
}

weft_status weft_plan_check(const weft_plan *plan, const int32_t *len, int64_t n, unsigned promises)
{
    checking t = { plan, len, n, promises, "" };
    if (!has_arrays(plan) || n < 0 || (n && !len))
        return weft_plan_refuse(
            WEFT_EARG, "plan_check: the plan or len is NULL or incomplete; expected a plan of at most %d "
                       "segments, and lengths", INT32_MAX);
    WEFT__PLAN_SCOPE;
    weft_status s = check_shape(&t);
    s = s == WEFT_OK ? each_segment(&t, check_segment) : s;
    s = s == WEFT_OK ? check_rows(&t) : s;
    s = s == WEFT_OK ? check_tokens(&t) : s;
    s = s == WEFT_OK ? check_carries(&t) : s;
    return s == WEFT_OK ? check_counts(&t) : s;
}
