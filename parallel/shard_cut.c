/* shard_cut.c - assigns the sequences of a batch to shards of about equally many tokens.
 *
 * Each sequence goes to the shard with the fewest tokens so far, longest first (Graham 1969: at most 4/3 of
 * the best). Ties go to the earlier sequence and to the lower shard, so the cut depends only on lengths,
 * order and number of shards. weft_plan_split cuts a batch of plans: the same rows go to the same shard in
 * every batch, so that the states of rows stay on their rank. */
#include <string.h>
#include "parallel/parallel.h"

void weft__cut(int64_t n, const int32_t *index, const int32_t *len, int shards, int32_t *order,
               int64_t *start, weft__bin *heap, int32_t *scratch)
{
    int32_t *length = scratch, *shard = scratch + n;
    for (int64_t i = 0; i < n; i++) {
        length[i] = len ? len[index ? index[i] : i] : 1;
        order[i] = (int32_t)i;
    }
    weft__plan_sort_in(length, order, n, true, shard);
    weft__bins_begin(heap, shards);
    memset(start, 0, (size_t)(shards + 1) * sizeof *start);
    for (int64_t i = 0; i < n; i++) {
        int32_t place = order[i];
        shard[place] = (int32_t)weft__bins_add(heap, shards, length[place] > 0 ? length[place] : 1);
        start[shard[place] + 1]++;
    }
    for (int s = 0; s < shards; s++)
        start[s + 1] += start[s];
    for (int64_t i = 0; i < n; i++)
        order[start[shard[i]]++] = (int32_t)i;
    memmove(start + 1, start, (size_t)shards * sizeof *start);
    start[0] = 0;
}

/* ---- batches of plans, one plan for each shard ---- */
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
                   "parallel_begin_plan: plan %d is of shard %d (-1: of none); expected that of shard %d "
                   "of %d, as weft_plan_split gives it",
                   s, part->shard - 1, shard - 1, p->shards);
    else if (batch < 0 || batch >= part->batches)
        weft__fail(p->w, WEFT_EARG, "parallel_begin_plan: batch %lld; expected one of the plan of shard %d, "
                                    "which has %lld",
                   (long long)batch, s, (long long)part->batches);
    return !p->w->status;
}

int64_t weft__parts_count(weft_parallel *p, const weft_plan *parts, int64_t batch)
{
    int64_t n = 0;
    if (!parts)
        weft__fail(p->w, WEFT_EARG, "parallel_begin_plan: expected a plan for each of %d shards", p->shards);
    for (int s = 0; s < p->shards && !p->w->status; s++)
        n += is_part(p, parts + s, s, batch) ? parts[s].batch[batch].n : 0;
    if (p->w->status)
        return 0;
    /* another call may have lost a rank after the last batch */
    bool moved = p->state == WEFT__IDLE && weft__update_place(p);
    if (moved && weft__parts_carry(parts, p->shards, batch, batch))
        weft__fail(p->w, WEFT_EDEVICE,
                   "parallel_begin_plan: lost a rank, with the carried states of its rows; load the last "
                   "checkpoint");
    return p->w->status ? 0 : n;
}

void weft__deal(weft_parallel *p, const weft_plan *parts, int64_t batch)
{
    weft__portion *b = &p->batch;
    int64_t next = 0;
    for (int s = 0; s < p->shards; s++) {
        const weft_plan_batch *piece = parts[s].batch + batch;
        b->start[s] = next;
        for (int64_t i = 0; i < piece->n; i++, next++) {
            b->index[next] = (int32_t)parts[s].segment[piece->first + i].sequence;
            b->place[next] = (int32_t)next;
        }
    }
    b->start[p->shards] = next;
}
