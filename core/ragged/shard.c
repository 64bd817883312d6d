/* shard.c - shards: parts of a batch that are computed separately, perhaps on different machines. Random
 * numbers of a shard do not depend on where and in which order the shards run.
 *
 * Dropout masks depend on a sequence's number in the whole batch, so batches without ids get those of the
 * shard. In a shard a named stream uses a key of the shard and counts from 0. When the shard ends, it
 * continues from its earlier count. */
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

bool weft__outside_shards(weft *w, const char *function)
{
    if (w->shard)
        weft__fail(w, WEFT_EARG,
                   "%s: a shard of a batch is at work; call it before weft_parallel_begin or after the last "
                   "shard",
                   function);
    return !w->shard;
}
