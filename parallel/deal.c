/* deal.c - a batch of plans, one for each shard: weft_plan_split has cut it, the same rows to the same shard
 * in every batch, so that the states that rows carry on stay on their rank. */
#include "parallel/parallel.h"

bool weft__parts_carry(const weft_plan *parts, int shards, int64_t from, int64_t last)
{
    for (int s = 0; s < shards; s++)
        for (int64_t b = from; b <= last && b < parts[s].batches; b++)
            for (int64_t i = 0; i < parts[s].batch[b].n; i++)
                if (parts[s].segment[parts[s].batch[b].first + i].carry >= 0)
                    return true;
    return false;
}

static bool is_part(weft_parallel *p, const weft_plan *part, int s, int64_t batch)
{
    int shard = p->shards > 1 ? s + 1 : 0;
    if (part->shard != shard)
        weft__fail(p->w, WEFT_EARG,
                   "parallel_begin_plan: plan %d is of shard %d (-1: of none); that of shard %d of %d is "
                   "expected, as weft_plan_split gives it",
                   s, part->shard - 1, shard - 1, p->shards);
    else if (batch < 0 || batch >= part->batches)
        weft__fail(p->w, WEFT_EARG, "parallel_begin_plan: batch %lld; the plan of shard %d has %lld",
                   (long long)batch, s, (long long)part->batches);
    return !p->w->status;
}

int64_t weft__parts_count(weft_parallel *p, const weft_plan *parts, int64_t batch)
{
    int64_t n = 0;
    if (!parts)
        weft__fail(p->w, WEFT_EARG, "parallel_begin_plan: a plan for each of %d shards is expected",
                   p->shards);
    for (int s = 0; s < p->shards && !p->w->status; s++)
        n += is_part(p, parts + s, s, batch) ? parts[s].batch[batch].n : 0;
    if (p->w->status)
        return 0;
    /* another call has lost a rank since the batch before */
    bool moved = p->state == WEFT__IDLE && weft__take_place(p);
    if (moved && weft__parts_carry(parts, p->shards, batch, batch))
        weft__fail(p->w, WEFT_EDEVICE,
                   "parallel_begin_plan: a rank was lost, and the states that its rows carried; the last "
                   "file has them");
    return p->w->status ? 0 : n;
}

void weft__deal(weft_parallel *p, const weft_plan *parts, int64_t batch)
{
    weft__portion *b = &p->batch;
    int64_t at = 0;
    for (int s = 0; s < p->shards; s++) {
        const weft_plan_batch *of = parts[s].batch + batch;
        b->start[s] = at;
        for (int64_t i = 0; i < of->n; i++, at++)
            b->index[at] = (int32_t)parts[s].segment[of->first + i].sequence, b->place[at] = (int32_t)at;
    }
    b->start[p->shards] = at;
}
