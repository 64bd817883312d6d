/* measures_live.c - how many rows of a plan have a token at a step. */
#include <stdlib.h>
#include <string.h>
#include "plan/plan.h"

/* ---- of one batch, step by step ---- */
weft_status weft_plan_batch_sizes(const weft_plan *plan, int64_t batch, int64_t *sizes, int64_t n)
{
    if (!plan || batch < 0 || batch >= plan->batches || n != plan->batch[batch].width || (n && !sizes))
        return weft_plan_refuse(WEFT_EARG,
                                "plan_batch_sizes: a plan, one of its batches and room for a number "
                                "for each of its steps are expected");
    const weft_plan_batch *b = plan->batch + batch;
    memset(sizes, 0, (size_t)n * sizeof *sizes);
    for (int64_t i = b->first; i < b->first + b->n; i++) {
        const weft_segment *s = plan->segment + i;
        if (s->length)
            sizes[s->column]++;
        if (s->length && s->column + s->length < n)
            sizes[s->column + s->length]--;
    }
    for (int64_t t = 1; t < n; t++)
        sizes[t] += sizes[t - 1];
    return WEFT_OK;
}

/* ---- of all, counted ---- */
static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Between two of the sorted begins and ends nothing changes. */
void weft__plan_count_live(const weft_plan *p, const weft_plan_batch *b, int64_t *room, int64_t *steps)
{
    int64_t n = 0, at = 0, live = 0, *begin = room, *end = room + b->n;
    for (int64_t i = b->first; i < b->first + b->n; i++) {
        const weft_segment *s = p->segment + i;
        if (s->length)
            begin[n] = s->column, end[n++] = s->column + s->length;
    }
    qsort(begin, (size_t)n, sizeof *begin, by_number), qsort(end, (size_t)n, sizeof *end, by_number);
    for (int64_t i = 0, k = 0; k < n;) {
        int64_t next = i < n && begin[i] < end[k] ? begin[i] : end[k];
        steps[live] += next - at, at = next;
        for (; i < n && begin[i] == at; i++)
            live++;
        for (; k < n && end[k] == at; k++)
            live--;
    }
    steps[0] += b->width - at;
}

weft_status weft_plan_live_rows(const weft_plan *plan, int64_t *steps, int64_t n)
{
    int64_t rows = 0, pieces = 0;
    for (int64_t b = 0; plan && b < plan->batches; b++) {
        rows = plan->batch[b].rows > rows ? plan->batch[b].rows : rows;
        pieces = plan->batch[b].n > pieces ? plan->batch[b].n : pieces;
    }
    if (!plan || !steps || n != rows + 1)
        return weft_plan_refuse(WEFT_EARG,
                                "plan_live_rows: a plan and room for %lld numbers, one more than rows of a "
                                "batch, are expected",
                                (long long)rows + 1);
    int64_t *room = weft__plan_memory(2 * pieces, sizeof *room);
    if (!room)
        return WEFT_ENOMEM;
    memset(steps, 0, (size_t)n * sizeof *steps);
    for (int64_t b = 0; b < plan->batches; b++)
        weft__plan_count_live(plan, plan->batch + b, room, steps);
    free(room);
    return WEFT_OK;
}
