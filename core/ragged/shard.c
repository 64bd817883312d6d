/* shard.c - a part of a batch that is worked on by itself, as a shard of many machines' batch is: what is
 * drawn there must not depend on which other parts were worked on before, or where.
 *
 * Masks are drawn by a sequence's number in the whole batch: batches without ids get those of the shard. A
 * named stream draws by a key of the shard and counts from 0 there; when the shard ends it goes on as if
 * nothing had been drawn. */
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
                   "%s: a shard of a batch is at work; between weft_parallel_begin and the end of its shards "
                   "this cannot be",
                   function);
    return !w->shard;
}
