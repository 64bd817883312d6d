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
    weft_status sound = weft__plan_is_sound(plan, INT64_MAX, "plan_batch_sizes: ");
    if (sound != WEFT_OK)
        return sound;
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

/* Adds the steps of one batch where k rows are live to steps[k]: between two of the sorted begins and ends
 * nothing changes. begin [pieces] and end [pieces] are scratch. False: more than `most` rows are live, so
 * segments overlap. */
static bool count_batch(const weft_plan *p, const weft_plan_batch *b, int64_t *begin, int64_t *end,
                        int64_t *steps, int64_t most)
{
    int64_t n = 0, at = 0, live = 0;
    for (int64_t i = b->first; i < b->first + b->n; i++) {
        const weft_segment *s = p->segment + i;
        if (s->length)
            begin[n] = s->column, end[n++] = s->column + s->length;
    }
    qsort(begin, (size_t)n, sizeof *begin, by_number), qsort(end, (size_t)n, sizeof *end, by_number);
    for (int64_t i = 0, k = 0; k < n;) {
        int64_t next = i < n && begin[i] < end[k] ? begin[i] : end[k];
        steps[live] += next - at, at = next;
        for (; k < n && end[k] == at; k++)
            live--;
        for (; i < n && begin[i] == at; i++)
            live++;
        if (live > most)
            return false;
    }
    steps[0] += b->width - at;
    return true;
}

/* steps [most + 1], most at least the rows that are live in any batch. */
weft_status weft__plan_live(const weft_plan *p, int64_t *steps, int64_t most, const char *function)
{
    int64_t pieces = 0;
    for (int64_t b = 0; b < p->batches; b++)
        pieces = p->batch[b].n > pieces ? p->batch[b].n : pieces;
    int64_t *room = weft__plan_memory(2 * pieces, sizeof *room);
    weft_status s = room ? WEFT_OK : WEFT_ENOMEM;
    memset(steps, 0, (size_t)(most + 1) * sizeof *steps);
    for (int64_t b = 0; b < p->batches && s == WEFT_OK; b++)
        if (!count_batch(p, p->batch + b, room, room + pieces, steps, most))
            s = weft_plan_refuse(WEFT_EFORMAT,
                                 "%sin batch %lld segments overlap: more than %lld rows are live", function,
                                 (long long)b, (long long)most);
    free(room);
    return s;
}

weft_status weft_plan_live_rows(const weft_plan *plan, int64_t *steps, int64_t n)
{
    int64_t rows = 0;
    weft_status sound = plan ? weft__plan_is_sound(plan, INT64_MAX, "plan_live_rows: ") : WEFT_OK;
    if (sound != WEFT_OK)
        return sound;
    for (int64_t b = 0; plan && b < plan->batches; b++)
        rows = plan->batch[b].rows > rows ? plan->batch[b].rows : rows;
    if (!plan || !steps || n != rows + 1)
        return weft_plan_refuse(WEFT_EARG,
                                "plan_live_rows: a plan and room for %lld numbers, one more than rows of a "
                                "batch, are expected",
                                (long long)rows + 1);
    return weft__plan_live(plan, steps, rows, "plan_live_rows: ");
}
