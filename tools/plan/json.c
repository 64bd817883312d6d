/* json.c - prints plans as JSON: pieces and figures. Capacity, rows and widths of batches, columns and
 * carries appear only if a reader would infer other values. */
#include <math.h>
#include <stdlib.h>
#include "io/io.h"
#include "plan/plan.h"
#include "tools/plan/verdict.h"

/* Returns whether each row is one piece from its first cell on, so that lists of pieces describe the plan. */
static bool is_one_a_row(const weft_plan *p)
{
    for (int64_t b = 0; b < p->batches; b++)
        for (int64_t i = 0; i < p->batch[b].n; i++) {
            const weft_segment *s = p->segment + p->batch[b].first + i;
            if (s->row != i || s->column)
                return false;
        }
    return true;
}

/* ---- carries ---- */
typedef struct {
    int64_t sequence, end;
    int32_t at;
} piece_end;

static int by_end(const void *a, const void *b)
{
    const piece_end *x = a, *y = b;
    if (x->sequence != y->sequence)
        return x->sequence < y->sequence ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* ends: a buffer for the segments of batch b - 1. */
static void find_carries(const weft_plan *p, int64_t b, piece_end *ends, int32_t *possible)
{
    const weft_plan_batch *batch = p->batch + b, *previous = batch - 1;
    size_t n = 0;
    for (int64_t i = 0; b && i < previous->n; i++) {
        const weft_segment *s = p->segment + previous->first + i;
        if (s->length)
            ends[n++] = (piece_end){ s->sequence, (int64_t)s->offset + s->length, (int32_t)i };
    }
    qsort(ends, n, sizeof *ends, by_end);
    for (int64_t i = batch->first; i < batch->first + batch->n; i++) {
        const weft_segment *s = p->segment + i;
        piece_end key = { s->sequence, s->offset, 0 };
        const piece_end *from = n && s->offset ? bsearch(&key, ends, n, sizeof *ends, by_end) : NULL;
        possible[i] = from ? from->at : -1;
    }
}

int32_t *possible_carries(const weft_plan *p)
{
    SCOPED piece_end *ends = get_memory(weft__plan_most_segments(p), sizeof *ends);
    int32_t *possible = get_memory(p->segments, sizeof *possible);
    for (int64_t b = 0; b < p->batches; b++)
        find_carries(p, b, ends, possible);
    return possible;
}

/* ---- pieces, row after row ---- */
/* Fills order with the pieces of a batch, row after row. */
static void find_order(const weft_plan *p, const weft_plan_batch *b, int64_t *order)
{
    for (int64_t i = 0; i < b->n; i++)
        order[i] = (int64_t)p->segment[b->first + i].row << 32 | i;
    qsort(order, (size_t)b->n, sizeof *order, weft__plan_by_number);
    for (int64_t i = 0; i < b->n; i++)
        order[i] = b->first + (order[i] & UINT32_MAX);
}

static void print_piece(const weft_segment *s)
{
    printf("[%lld, %d, %d]", (long long)s->sequence, (int)s->offset, (int)s->length);
}

static void print_column(const weft_segment *s) { printf("%lld", (long long)s->column); }

/* Prints a list for each row of the plan, with a number or a list for each of its pieces. */
static void print_rows(const weft_plan *p, int64_t *order, void (*print)(const weft_segment *))
{
    bool first = true;
    for (int64_t b = 0; b < p->batches; b++) {
        find_order(p, p->batch + b, order);
        for (int64_t r = 0, i = 0; r < p->batch[b].rows; r++, first = false) {
            printf("%s[", first ? "" : ", ");
            for (bool more = false; i < p->batch[b].n && p->segment[order[i]].row == r; i++, more = true) {
                fputs(more ? ", " : "", stdout);
                print(p->segment + order[i]);
            }
            putchar(']');
        }
    }
}

/* ---- values that a reader would not infer ---- */
/* Prints one number if it holds for all batches, otherwise a list. */
static void print_numbers(const char *key, const weft_plan *p, bool width)
{
    bool same = width || p->batch->rows > 0; /* a common 0 would not give the number of batches */
    for (int64_t b = 1; b < p->batches; b++)
        same = same && (width ? p->batch[b].width == p->batch->width : p->batch[b].rows == p->batch->rows);
    printf(", \"%s\": %s", key, same ? "" : "[");
    for (int64_t b = 0; b < (same ? 1 : p->batches); b++)
        printf("%s%lld", b ? ", " : "", (long long)(width ? p->batch[b].width : p->batch[b].rows));
    fputs(same ? "" : "]", stdout);
}

/* Returns whether a reader would infer the widths, or the rows, of all batches. */
static bool widths_are_inferred(const planned *t, bool rows)
{
    const weft_plan *p = &t->plan;
    for (int64_t b = 0; b < p->batches; b++) {
        int64_t longest = 0;
        for (int64_t i = p->batch[b].first; i < p->batch[b].first + p->batch[b].n; i++) {
            int64_t end = p->segment[i].column + p->segment[i].length;
            longest = end > longest ? end : longest;
        }
        if (p->batch[b].width != (rows && t->opts.capacity ? t->opts.capacity : longest))
            return false;
    }
    return true;
}

static bool rows_are_inferred(const weft_plan *p, bool rows)
{
    if (rows)
        return p->batches < 2 && (!p->batches || p->batch->rows);
    for (int64_t b = 0; b < p->batches; b++)
        if (p->batch[b].rows != p->batch[b].n)
            return false;
    return true;
}

static bool columns_are_inferred(const weft_plan *p, const int64_t *order, const weft_plan_batch *b)
{
    int64_t row = -1, end = 0;
    for (int64_t i = 0; i < b->n; i++) {
        const weft_segment *s = p->segment + order[i];
        end = s->row == row ? end : 0;
        row = s->row;
        if (s->column != end)
            return false;
        end += s->length;
    }
    return true;
}

static void print_columns(const weft_plan *p, int64_t *order)
{
    bool needed = false;
    for (int64_t b = 0; b < p->batches && !needed; b++) {
        find_order(p, p->batch + b, order);
        needed = !columns_are_inferred(p, order, p->batch + b);
    }
    if (!needed)
        return;
    printf(", \"columns\": [");
    print_rows(p, order, print_column);
    putchar(']');
}

static void print_carries(const weft_plan *p, int64_t *order)
{
    bool any = false, all = true, first = true;
    for (int64_t i = 0; i < p->segments; i++)
        any = any || p->segment[i].carry >= 0;
    if (!any)
        return;
    SCOPED int32_t *possible = possible_carries(p);
    for (int64_t i = 0; i < p->segments; i++)
        all = all && (p->segment[i].carry >= 0) == (possible[i] >= 0);
    printf(all ? ", \"carry\": true" : ", \"carry\": [");
    for (int64_t b = 0; b < p->batches && !all; b++) {
        find_order(p, p->batch + b, order);
        for (int64_t i = 0; i < p->batch[b].n; i++, first = false)
            printf("%s%s", first ? "" : ", ", p->segment[order[i]].carry >= 0 ? "true" : "false");
    }
    fputs(all ? "" : "]", stdout);
}

static void print_batches(const planned *t, const int32_t *len)
{
    const weft_plan *p = &t->plan;
    for (int64_t b = 0; b < p->batches; b++) {
        printf("%s[", b ? ", " : "");
        for (int64_t i = p->batch[b].first; i < p->batch[b].first + p->batch[b].n; i++) {
            const weft_segment *s = p->segment + i;
            fputs(i > p->batch[b].first ? ", " : "", stdout);
            if (t->planner.promises & WEFT_PLAN_WHOLE ||
                (!s->offset && s->length == len[s->sequence] && !s->length))
                printf("%lld", (long long)s->sequence);
            else
                print_piece(s);
        }
        putchar(']');
    }
}

static void print_figures(const planned *t)
{
    const weft_plan_figures *f = &t->figures;
    printf(", \"figures\": {\"batches\": %lld, \"rows\": %lld, \"segments\": %lld, \"tokens\": %lld, "
           "\"cells\": %lld, \"fill\": %.9g, \"steps\": %lld, \"runs\": %lld, \"mean_live\": %.9g, "
           "\"segments_per_row\": %.9g, \"eta2\": %.9g, \"empty\": %lld, \"dropped\": %lld, \"cuts\": %lld, "
           "\"imbalance\": %.9g, \"imbalance_squares\": %.9g",
           (long long)f->batches, (long long)f->rows, (long long)f->segments, (long long)f->tokens,
           (long long)f->cells, f->fill, (long long)f->steps, (long long)f->runs, f->mean_live,
           f->segments_per_row, f->eta2, (long long)f->empty, (long long)f->dropped, (long long)f->cuts,
           f->imbalance, f->imbalance_squares);
    if (t->opts.capacity)
        printf(", \"l1\": %lld, \"l2\": %lld", (long long)f->l1, (long long)f->l2);
    printf("}}");
}

/* Prints ", \"capacity\": .." and the fields that a reader could not infer. */
static void print_shape(const planned *t, bool rows, int64_t *order)
{
    const weft_plan *p = &t->plan;
    if (t->opts.capacity)
        printf(", \"capacity\": %lld", (long long)t->opts.capacity);
    if (p->align > 1)
        printf(", \"align\": %d", (int)p->align);
    if (p->dropped)
        printf(", \"dropped\": %lld", (long long)p->dropped);
    if (!rows_are_inferred(p, rows))
        print_numbers("batch_rows", p, false);
    if (!widths_are_inferred(t, rows))
        print_numbers("width", p, true);
    if (rows)
        print_columns(p, order);
    print_carries(p, order);
}

static void print_plan(const planned *t, const int32_t *len)
{
    const weft_plan *p = &t->plan;
    bool rows = p->in_rows || !is_one_a_row(p);
    SCOPED int64_t *order = get_memory(p->segments, sizeof *order);
    printf("{\"planner\": ");
    weft__print_json(stdout, t->text);
    printf(rows ? ", \"rows\": [" : ", \"batches\": [");
    if (rows)
        print_rows(p, order, print_piece);
    else
        print_batches(t, len);
    putchar(']');
    print_shape(t, rows, order);
    print_figures(t);
}

static void print_number(const char *key, double x)
{
    isfinite(x) ? printf(", \"%s\": %.9g", key, x) : printf(", \"%s\": null", key);
}

static void print_sentence(const char *key, const char *text)
{
    printf(", \"%s\": ", key);
    weft__print_json(stdout, text);
}

static void print_verdict(const verdict *v)
{
    static const char *const basis[] = { "cells", "predicted", "measured" };
    printf(",\n\"verdict\": {\"basis\": \"%s\"", basis[v->basis]);
    if (v->chosen >= 0)
        print_sentence("take", v->plan[v->chosen].made->text);
    print_sentence("why", v->why);
    print_sentence("cost", v->cost);
    print_sentence("sure", v->sure);
    print_number("error", v->error);
    printf(", \"plans\": [");
    for (int i = 0; i < v->n; i++) {
        const judged_plan *j = v->plan + i;
        printf(i ? ",\n {\"planner\": " : "\n {\"planner\": ");
        weft__print_json(stdout, j->made->text);
        print_number("ms", j->ms);
        print_number("low_ms", j->low);
        print_number("high_ms", j->high);
        printf(", \"tied\": %s, \"cells_of_largest_batch\": %lld", j->tied ? "true" : "false",
               (long long)j->memory);
        print_number("disturbance", j->by.sum);
        printf("}");
    }
    printf("]}");
}

void print_json(const planned *all, int n, const int32_t *len, const verdict *v)
{
    printf("{\"plans\": [");
    for (int i = 0; i < n; i++) {
        fputs(i ? ",\n " : "", stdout);
        print_plan(all + i, len);
    }
    printf("]");
    if (v)
        print_verdict(v);
    printf("}\n");
}
