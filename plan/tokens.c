/* tokens.c - batches by a budget of padded cells. */
#include <stdlib.h>
#include <string.h>
#include "plan/planners.h"

typedef struct {
    weft_plan *p;
    const int32_t *len;
    int32_t *held;
    int64_t n;
    int64_t longest;
} batch;

/* Emits the first `count` of the batch that is held, and keeps the rest. */
static weft_status emit(batch *b, int64_t count)
{
    weft_status s = WEFT_OK;
    for (int64_t i = 0; i < count && s == WEFT_OK; i++)
        s = weft__plan_add_whole(b->p, b->len, b->held[i]);
    b->held += count, b->n -= count; /* what is held lies in the order itself */
    b->longest = 0;
    for (int64_t i = 0; i < b->n; i++)
        b->longest = b->len[b->held[i]] > b->longest ? b->len[b->held[i]] : b->longest;
    return s == WEFT_OK ? weft__plan_end_whole(b->p) : s;
}

static weft_status join(batch *b, const weft_plan_opts *o)
{
    int64_t length = b->len[b->held[b->n]], multiple = o->multiple ? o->multiple : 1;
    weft_status s = WEFT_OK;
    if (length > o->budget)
        return weft_plan_refuse(WEFT_EARG, "tokens: sequence %lld has %lld tokens; budget is %lld",
                                (long long)b->held[b->n], (long long)length, (long long)o->budget);
    while (s == WEFT_OK && b->n && (b->n + 1) * (length > b->longest ? length : b->longest) > o->budget) {
        int64_t whole = multiple * (b->n / multiple), rest = b->n % multiple;
        s = emit(b, whole > rest ? whole : rest);
    }
    b->n++, b->longest = length > b->longest ? length : b->longest;
    return s;
}

static weft_status plan_tokens(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    int32_t *order = weft__plan_drawn(o, n);
    weft_status s = order && (o->keep_order || weft__plan_sort(len, order, n, false, o->lookahead)) ?
                        WEFT_OK :
                        WEFT_ENOMEM;
    batch b = { p, len, order, 0, 0 };
    for (int64_t i = 0; i < n && s == WEFT_OK; i++)
        s = join(&b, o);
    if (s == WEFT_OK && b.n)
        s = emit(&b, b.n);
    free(order);
    return s == WEFT_OK ? weft__plan_shuffle_batches(o, p) : s;
}
const weft_planner weft__planner_tokens = { .name = "tokens",
                                            .source = "fairseq's batch_by_size",
                                            .about = "as many as a budget of padded cells holds",
                                            .options = "budget multiple sort shuffle lookahead",
                                            .promises = WEFT_PLAN_WHOLE,
                                            .plan = plan_tokens };
