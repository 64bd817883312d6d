/* chunk.c - planners that cut sequences to fill rows. */
#include "plan/planners.h"

/* ---- all sequences in one text, cut every `capacity` tokens ---- */
/* carry: the text is divided among the rows of a batch, and each row continues in the same row of the next
 * batch. */
typedef struct {
    int64_t chunks, rows, batches;
    bool carry;
} cut;

/* The text: its sequences in order, and start [n + 1], where each begins. */
typedef struct {
    int64_t n, *start;
    int32_t *order;
} text;

/* carry: in, the segment at the end of this row in the last batch; out, that of this batch; -1 if the text
 * ends there. */
static weft_status add_chunk(weft_plan *p, const text *t, int64_t from, int64_t to, int32_t row,
                             int64_t first, int32_t *carry)
{
    weft_status s = WEFT_OK;
    int64_t i = from < to ? weft__plan_count_up_to(t->start, t->n, from) - 1 : 0;
    for (int64_t position = from; position < to && s == WEFT_OK; i++) {
        int64_t begin = t->start[i], end = t->start[i + 1] < to ? t->start[i + 1] : to;
        if (end == position)
            continue;
        s = weft_plan_add(p, (weft_segment){ .sequence = t->order[i],
                                             .column = position - from,
                                             .offset = (int32_t)(position - begin),
                                             .length = (int32_t)(end - position),
                                             .row = row,
                                             .carry = carry && position > begin ? *carry : -1 });
        if (carry)
            *carry = end < t->start[i + 1] ? (int32_t)(p->segments - 1 - first) : -1;
        position = end;
    }
    return s;
}

static weft_status add_batch(weft_plan *p, const text *t, const cut *c, int64_t batch, int64_t capacity,
                             int32_t *carry)
{
    weft_status s = WEFT_OK;
    int64_t first = p->segments, rows = 0, tokens = t->start[t->n];
    for (int64_t row = 0; row < c->rows && s == WEFT_OK; row++) {
        int64_t chunk = c->carry ? row * c->batches + batch : batch * c->rows + row;
        int64_t from = chunk * capacity, to = from + capacity;
        if (chunk >= c->chunks) /* beyond the last token */
            continue;
        rows = row + 1;
        s = add_chunk(p, t, from, to < tokens ? to : tokens, (int32_t)row, first, carry ? carry + row : NULL);
    }
    return s == WEFT_OK ? weft_plan_end_batch(p, rows, capacity) : s;
}

static weft_status cut_text(const text *t, const weft_plan_opts *o, weft_plan *p)
{
    cut c = { .chunks = (t->start[t->n] + o->capacity - 1) / o->capacity, .carry = o->carry };
    c.rows = o->rows && o->rows < c.chunks ? o->rows : c.chunks ? c.chunks : 1;
    c.batches = (c.chunks + c.rows - 1) / c.rows;
    int32_t *carry = o->carry ? weft__plan_memory(c.rows, sizeof *carry) : NULL;
    weft_status s = WEFT_OK;
    if (o->carry && !carry)
        return WEFT_ENOMEM;
    for (int64_t i = 0; carry && i < c.rows; i++)
        carry[i] = -1;
    p->in_rows = true;
    for (int64_t b = 0; b < c.batches && s == WEFT_OK; b++)
        s = add_batch(p, t, &c, b, o->capacity, carry);
    return s;
}

weft_status weft__planner_chunk(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    text t = { n, weft__plan_memory(n + 1, sizeof *t.start), weft__plan_random_order(o, n) };
    if (!t.start || !t.order)
        return WEFT_ENOMEM;
    t.start[0] = 0;
    for (int64_t i = 0; i < n; i++)
        t.start[i + 1] = t.start[i] + len[t.order[i]];
    return cut_text(&t, o, p);
}

/* ---- only sequences longer than a row are cut ---- */
weft_status weft__planner_best_fit_split(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    weft_plan_opts split = *o;
    split.longer = WEFT_LONGER_SPLIT;
    return weft__plan_in_room(weft__planner_best_fit_decreasing, "longer", len, n, &split, p);
}
