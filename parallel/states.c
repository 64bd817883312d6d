/* states.c - sends the states that shards carry from batch to batch to all ranks, for a checkpoint.
 *
 * Each such buffer of the model belongs to one shard, and is valid only on the rank of that shard. */
#include <string.h>
#include "autograd/fused.h"
#include "parallel/parallel.h"

static int64_t bytes_of(const weft__parameter *q) { return weft__bytes(&q->value.f); }

/* Returns the next buffer of a rank's shards. */
static weft__parameter *next_state(const weft_parallel *p, int rank, const weft__parameter *after)
{
    const weft__branch shards = weft__shards_of(p->shards, rank, p->world.ranks);
    weft__parameter *q = weft__next_parameter(p->module->root, after);
    while (q && (q->shard <= shards.from || q->shard > shards.end))
        q = weft__next_parameter(p->module->root, q);
    return q;
}

/* Returns the bytes of the rank that has most. */
static int64_t most_bytes(const weft_parallel *p)
{
    int64_t most = 0;
    for (int q = 0; q < p->world.ranks; q++) {
        int64_t bytes = 0;
        for (const weft__parameter *x = NULL; (x = next_state(p, q, x));)
            bytes += bytes_of(x);
        most = bytes > most ? bytes : most;
    }
    return most;
}

uint64_t weft__fingerprint_of_states(const weft_parallel *p)
{
    uint64_t h = 4;
    for (const weft__parameter *q = NULL; (q = weft__next_parameter(p->module->root, q));)
        if (q->shard)
            h = weft__hash_mix(weft__hash_mix(h, (uint64_t)q->shard), (uint64_t)bytes_of(q));
    return h;
}

bool weft__states_reserve(weft_parallel *p)
{
    int64_t n = p->transport ? most_bytes(p) : 0;
    return !n || (weft__reserve(p->w, &p->outbox, n) && weft__reserve(p->w, &p->inbox, n * p->world.ranks));
}

bool weft__share_states(weft_parallel *p, const char *operation)
{
    int64_t n = p->transport ? most_bytes(p) : 0;
    if (!n)
        return true;
    weft__device *d = &p->w->dev;
    char *to = p->outbox.at;
    memset(to, 0, (size_t)n);
    for (const weft__parameter *x = NULL; (x = next_state(p, p->world.rank, x)); to += bytes_of(x))
        d->k->download(d, to, x->value.data, (size_t)bytes_of(x));
    if (!weft__hand_out(p, operation, p->outbox.at, n))
        return false;
    for (int q = 0; q < p->world.ranks; q++) {
        const char *from = weft__words_of(p, q);
        if (q == p->world.rank)
            continue;
        for (weft__parameter *x = NULL; (x = next_state(p, q, x)); from += bytes_of(x)) {
            d->k->upload(d, x->value.data, from, (size_t)bytes_of(x));
            weft__mark_changed(&x->value);
        }
    }
    return true;
}
