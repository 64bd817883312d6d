/* chunk.c - planners that cut sequences so that rows are full. */
#include <stdlib.h>
#include "plan/planners.h"

/* ---- all sequences end to end, cut every `capacity` tokens ---- */
/* With carry the rows of a batch are as many texts, each going on in the same row of the next batch. */
typedef struct {
    int64_t chunks, rows, batches;
    bool carry;
} cut;

/* Where the chunk begins that is row `row` of a batch; chunks beyond the last have no tokens. */
static int64_t chunk_of(const cut *c, int64_t batch, int64_t row)
{
    return c->carry ? row * c->batches + batch : batch * c->rows + row;
}

/* The sequence in which token `at` of all lies: start [n + 1]. */
static int64_t sequence_of(const int64_t *start, int64_t n, int64_t at)
{
    int64_t low = 0, high = n;
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (start[middle] <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The text: sequences in this order, start [n + 1] where each begins. */
typedef struct {
    int64_t n, *start;
    int32_t *order;
} text;

/* carry: the segment of this row's end in the batch before, set to that of this one, -1 if the text ends
 * there. */
static weft_status add_chunk(weft_plan *p, const text *t, int64_t from, int64_t to, int32_t row,
                             int64_t first, int32_t *carry)
{
    weft_status s = WEFT_OK;
    int64_t i = from < to ? sequence_of(t->start, t->n, from) : 0;
    for (int64_t at = from; at < to && s == WEFT_OK; i++) {
        int64_t begin = t->start[i], end = t->start[i + 1] < to ? t->start[i + 1] : to;
        if (end == at)
            continue;
        s = weft_plan_add(p, (weft_segment){ .sequence = t->order[i],
                                             .column = at - from,
                                             .offset = (int32_t)(at - begin),
                                             .length = (int32_t)(end - at),
                                             .row = row,
                                             .carry = carry && at > begin ? *carry : -1 });
        if (carry)
            *carry = end < t->start[i + 1] ? (int32_t)(p->segments - 1 - first) : -1;
        at = end;
    }
    return s;
}

static weft_status add_batch(weft_plan *p, const text *t, const cut *c, int64_t batch, int64_t capacity,
                             int32_t *carry)
{
    weft_status s = WEFT_OK;
    int64_t first = p->segments, rows = 0, tokens = t->start[t->n];
    for (int64_t row = 0; row < c->rows && s == WEFT_OK; row++) {
        int64_t chunk = chunk_of(c, batch, row), from = chunk * capacity, to = from + capacity;
        if (chunk >= c->chunks)
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
    weft_status s = o->carry && !carry ? WEFT_ENOMEM : WEFT_OK;
    for (int64_t i = 0; carry && i < c.rows; i++)
        carry[i] = -1;
    p->in_rows = true;
    for (int64_t b = 0; b < c.batches && s == WEFT_OK; b++)
        s = add_batch(p, t, &c, b, o->capacity, carry);
    free(carry);
    return s;
}

static weft_status plan_chunk(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    text t = { .n = n, .order = weft__plan_drawn(o, n) };
    t.start = t.order ? weft__plan_memory(n + 1, sizeof *t.start) : NULL;
    weft_status s = WEFT_ENOMEM;
    if (t.start) {
        t.start[0] = 0;
        for (int64_t i = 0; i < n; i++)
            t.start[i + 1] = t.start[i] + len[t.order[i]];
        s = cut_text(&t, o, p);
    }
    free(t.order), free(t.start);
    return s;
}
const weft_planner weft__planner_chunk = { .name = "chunk",
                                           .source = "GPT; TRL's wrapped",
                                           .about = "end to end, cut every row",
                                           .options = "capacity rows carry shuffle",
                                           .promises = 0,
                                           .plan = plan_chunk };

/* ---- only what is longer than a row is cut ---- */
typedef struct {
    int32_t *sequence, *offset, *length;
} parts;

static void cut_long(const int32_t *len, int64_t n, int64_t capacity, parts to)
{
    int64_t k = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t at = 0; at < len[i]; at += capacity, k++) {
            to.sequence[k] = (int32_t)i, to.offset[k] = (int32_t)at;
            to.length[k] = (int32_t)(len[i] - at < capacity ? len[i] - at : capacity);
        }
}

static weft_status plan_best_fit_split(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    int64_t pieces = 0, rows = -1;
    for (int64_t i = 0; i < n; i++)
        pieces += (len[i] + o->capacity - 1) / o->capacity;
    if (pieces > INT32_MAX)
        return weft_plan_refuse(WEFT_EARG, "best_fit_split: %lld pieces; at most %d are expected",
                                (long long)pieces, INT32_MAX);
    int32_t *all = weft__plan_memory(3 * pieces, sizeof *all),
            *order = all ? weft__plan_drawn(o, pieces) : NULL,
            *row = order ? weft__plan_memory(pieces, sizeof *row) : NULL;
    parts to = { all, all ? all + pieces : NULL, all ? all + 2 * pieces : NULL };
    if (row) {
        cut_long(len, n, o->capacity, to);
        if (weft__plan_sort(to.length, order, pieces, true, 0))
            rows = weft__plan_fit(WEFT__BEST_FIT, to.length, order, pieces, o->capacity, o, row);
    }
    weft_status s = rows < 0 ?
                        WEFT_ENOMEM :
                        weft__plan_rows(p, &(weft__pieces){ pieces, to.sequence, to.offset, to.length },
                                        order, row, rows, o->capacity, o);
    free(all), free(order), free(row);
    return s;
}
const weft_planner weft__planner_best_fit_split = { .name = "best_fit_split",
                                                    .source = "Ding et al. 2024; TRL's bfd_split",
                                                    .about = "cut only what is longer than a row",
                                                    .options = "capacity limit rows shuffle",
                                                    .promises = 0,
                                                    .plan = plan_best_fit_split };
