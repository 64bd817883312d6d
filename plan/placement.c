/* placement.c - rows for a batch in the user's order, by the planner first_fit. */
#include <string.h>
#include "plan/plan.h"

/* Sequences of length 0 take no cell: they lie at the beginning of the first row. */
static int64_t place(const weft_plan *p, int64_t n, int32_t *row, int32_t *column)
{
    for (int64_t i = 0; i < n; i++)
        row[i] = column[i] = 0;
    for (int64_t i = 0; i < p->segments; i++) {
        const weft_segment *s = p->segment + i;
        row[s->sequence] = s->row;
        column[s->sequence] = (int32_t)s->column;
    }
    return p->batches ? p->batch[0].rows : n > 0;
}

weft_status weft_first_fit(const weft_lengths *l, int64_t width, int32_t *row, int32_t *column, int64_t *rows)
{
    if (!l || !rows || l->n < 0 || width < 0 || width > INT32_MAX || (l->n && (!l->len || !row || !column)))
        return weft_plan_refuse(WEFT_EARG, "first_fit: lengths, a width in 0 .. 2^31 - 1, and room for rows "
                                           "and columns are expected");
    weft_plan p;
    weft_status s = weft_plan_make(weft_planner_named("first_fit"), l->len, l->n,
                                   &(weft_plan_opts){ .capacity = width ? width : 1 }, &p);
    if (s == WEFT_OK && p.tokens && !width)
        s = weft_plan_refuse(WEFT_EARG, "first_fit: there are %lld tokens for rows of width 0",
                             (long long)p.tokens);
    if (s == WEFT_OK)
        *rows = place(&p, l->n, row, column);
    weft_plan_free(&p);
    return s;
}
