/* states.c - what shards carry from batch to batch: each such buffer of the model is its shard's, and right
 * only where that shard is worked on. For a checkpoint all ranks get all of them. */
#include <string.h>
#include "autograd/fused.h"
#include "parallel/parallel.h"

/* A walk over the buffers of one rank's shards, one after the other in memory: to count their bytes, to read
 * them or to write them. at: the place of the next one. */
typedef struct {
    enum { COUNT, READ, WRITE } what;
    weft__branch of;
    char *at;
    int64_t bytes;
} walk;

static int64_t bytes_of(const weft__parameter *q) { return weft__bytes(&q->value.f); }

static bool visit(weft__parameter *q, void *user)
{
    walk *k = user;
    weft__device *d = &q->value.w->dev;
    int64_t bytes = bytes_of(q);
    if (!q->shard || q->shard - 1 < k->of.from || q->shard - 1 >= k->of.end)
        return true;
    if (k->what == READ)
        d->k->download(d, k->at + k->bytes, q->value.data, (size_t)bytes);
    if (k->what == WRITE) {
        d->k->upload(d, q->value.data, k->at + k->bytes, (size_t)bytes);
        weft__changed(&q->value);
    }
    k->bytes += bytes;
    return true;
}

/* Walks over the buffers of a rank. Returns their bytes. */
static int64_t walk_over(const weft_parallel *p, int what, int rank, const void *at)
{
    walk k = { what, weft__shards_of(p->shards, rank, p->world.ranks), (char *)(uintptr_t)at, 0 };
    weft__each_parameter(p->module->root, visit, &k);
    return k.bytes;
}

/* The bytes of the rank that has most. */
static int64_t most_bytes(const weft_parallel *p)
{
    int64_t most = 0;
    for (int q = 0; q < p->world.ranks; q++) {
        int64_t bytes = walk_over(p, COUNT, q, NULL);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static bool mix_state(weft__parameter *q, void *user)
{
    uint64_t *h = user;
    if (q->shard)
        *h = weft__mixed(weft__mixed(*h, (uint64_t)q->shard), (uint64_t)bytes_of(q));
    return true;
}

uint64_t weft__print_of_states(const weft_parallel *p)
{
    uint64_t h = 4;
    weft__each_parameter(p->module->root, mix_state, &h);
    return h;
}

bool weft__states_room(weft_parallel *p)
{
    int64_t n = p->transport ? most_bytes(p) : 0;
    return !n || (weft__at_least(p->w, &p->own, n) && weft__at_least(p->w, &p->said, n * p->world.ranks));
}

bool weft__share_states(weft_parallel *p, const char *what)
{
    int64_t n = p->transport ? most_bytes(p) : 0;
    if (!n)
        return true;
    memset(p->own.at, 0, (size_t)n);
    walk_over(p, READ, p->world.rank, p->own.at);
    if (!weft__hand_out(p, what, p->own.at, n))
        return false;
    for (int q = 0; q < p->world.ranks; q++)
        if (q != p->world.rank)
            walk_over(p, WRITE, q, weft__said(p, q));
    return true;
}
