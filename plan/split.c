/* split.c - splits a plan by rows into one plan for each shard, with the same number of batches. So the
 * states of a row stay in its shard. */
#include <stdlib.h>
#include "plan/plan.h"

typedef struct {
    const weft_plan *p;
    int64_t shards, rows;                        /* rows: the largest number of a batch */
    int32_t *local;                              /* [segments] number in the batch of its shard */
    weft_plan *out;
} split;

/* Neighbouring rows share a shard, as evenly as possible. */
static int64_t shard_of(const split *t, int64_t row) { return row * t->shards / t->rows; }
static int64_t first_row(const split *t, int64_t shard)
{
    return (shard * t->rows + t->shards - 1) / t->shards;
}

/* Returns the number of rows of a batch in a shard. */
static int64_t rows_of(const split *t, int64_t batch, int64_t shard)
{
    int64_t rows = t->p->batch[batch].rows, from = first_row(t, shard), end = first_row(t, shard + 1);
    end = end < rows ? end : rows;
    return end > from ? end - from : 0;
}

/* Translates the carry of segment i into its shard's numbers; *carry is -1 if it carries no state. */
static weft_status carry_of(const split *t, int64_t batch, int64_t i, int32_t *carry)
{
    const weft_segment *s = t->p->segment + i, *from;
    *carry = -1;
    if (s->carry < 0)
        return WEFT_OK;
    const weft_plan_batch *before = batch ? t->p->batch + batch - 1 : NULL;
    if (!before || s->carry >= before->n)
        return weft_plan_refuse(WEFT_EFORMAT,
                                "plan_split: batch %lld, row %d carries the state of segment %d of the batch "
                                "before; expected a segment below %lld",
                                (long long)batch, (int)s->row, (int)s->carry,
                                (long long)(before ? before->n : 0));
    from = t->p->segment + before->first + s->carry;
    if (shard_of(t, from->row) != shard_of(t, s->row))
        return weft_plan_refuse(WEFT_EARG,
                                "plan_split: batch %lld, row %d, in shard %lld, carries the state of row %d "
                                "of the batch before, in shard %lld; expected both rows in one shard",
                                (long long)batch, (int)s->row, (long long)shard_of(t, s->row),
                                (int)from->row, (long long)shard_of(t, from->row));
    *carry = t->local[before->first + s->carry];
    return WEFT_OK;
}

static weft_status add_segment(const split *t, int64_t batch, int64_t i)
{
    weft_segment s = t->p->segment[i];
    int64_t shard = shard_of(t, s.row);
    weft_plan *to = t->out + shard;
    weft_status status = carry_of(t, batch, i, &s.carry);
    s.row -= (int32_t)first_row(t, shard);
    status = status == WEFT_OK ? weft_plan_add(to, s) : status;
    t->local[i] = (int32_t)(weft__plan_open(to) - 1);
    return status;
}

static weft_status add_batch(const split *t, int64_t batch)
{
    const weft_plan_batch *b = t->p->batch + batch;
    weft_status s = WEFT_OK;
    for (int64_t i = b->first; i < b->first + b->n && s == WEFT_OK; i++)
        s = add_segment(t, batch, i);
    for (int64_t k = 0; k < t->shards && s == WEFT_OK; k++)
        s = t->p->in_rows ? weft_plan_end_batch(t->out + k, rows_of(t, batch, k), b->width) :
                            weft__plan_end_whole(t->out + k);
    return s;
}

/* Tokens of other shards count as dropped. */
static void count(const split *t, int64_t shard)
{
    weft_plan *o = t->out + shard;
    int64_t size = 0;
    for (int64_t i = 0; i < o->segments; i++)
        size += o->segment[i].length;
    o->sequences = t->p->sequences;
    o->tokens = t->p->tokens;
    o->not_empty = t->p->not_empty;
    o->dropped = t->p->tokens - size;
    o->empty = t->p->empty;
    o->shard = t->shards > 1 ? (int)shard + 1 : 0;
}

static weft_status deal(const split *t)
{
    weft_status s = WEFT_OK;
    for (int64_t k = 0; k < t->shards; k++)
        t->out[k].in_rows = t->p->in_rows;
    for (int64_t b = 0; b < t->p->batches && s == WEFT_OK; b++)
        s = add_batch(t, b);
    for (int64_t k = 0; k < t->shards; k++)
        if (s == WEFT_OK)
            count(t, k);
        else
            weft_plan_free(t->out + k);
    return s;
}

weft_status weft_plan_split(const weft_plan *plan, int shards, weft_plan *out)
{
    for (int k = 0; out && k < shards; k++)
        out[k] = (weft_plan){ 0 };
    if (!plan || !out || shards < 1 || plan->shard)
        return weft_plan_refuse(WEFT_EARG, "plan_split: expected a whole plan, 1 shard or more and an array "
                                           "for their plans%s",
                                plan && plan->shard ? "; this one is of a shard" : "");
    weft_status s = weft__plan_is_sound(plan, INT64_MAX, "plan_split: ");
    if (s != WEFT_OK)
        return s;
    int64_t rows = weft__plan_most_rows(plan);
    split t = { .p = plan, .shards = shards, .rows = rows ? rows : 1, .out = out };
    weft__plan_scope *scope = weft__plan_scope_open();
    t.local = weft__plan_memory(plan->segments, sizeof *t.local);
    s = t.local ? deal(&t) : WEFT_ENOMEM;
    weft__plan_scope_close(scope);
    return s;
}
