/* shard.c - begins and ends a shard, a part of a batch that is computed separately. A shard draws the same
 * random numbers on every machine and in every order of the shards.
 *
 * Dropout masks depend on a sequence's number in the whole batch, so a batch without ids gets the shard's
 * ids. Named streams use a key of the shard and count from 0. After the shard they continue from their
 * earlier count. */
#include "core/inside.h"

void weft__shard_begin(weft *w, const weft__shard *shard)
{
    w->shard = shard;
    for (weft_stream *s = shard->salt ? w->random.streams : NULL; s; s = s->next)
        s->key ^= shard->salt, s->outside = s->count, s->count = 0;
}

void weft__shard_end(weft *w)
{
    for (weft_stream *s = w->shard && w->shard->salt ? w->random.streams : NULL; s; s = s->next)
        s->key ^= w->shard->salt, s->count = s->outside;
    w->shard = NULL;
}

bool weft__refuse_in_shard(weft *w, const char *function)
{
    if (w->shard)
        weft__fail(w, WEFT_EARG,
                   "%s: a shard of a batch is at work; call it before weft_parallel_begin or after the last "
                   "shard",
                   function);
    return !w->shard;
}
