/* states.c - what shards carry from batch to batch: each such buffer of the model is its shard's, and right
 * only where that shard is worked on. For a checkpoint all ranks get all of them. */
#include <string.h>
#include "autograd/fused.h"
#include "parallel/parallel.h"

/* The buffers of one rank's shards, one after the other: where the next one is. */
typedef struct { weft__branch of; char *at; int64_t bytes; } walk;

static bool is_mine(const walk *k, const weft__parameter *q)
{
    return q->shard && q->shard - 1 >= k->of.from && q->shard - 1 < k->of.end;
}
static int64_t bytes_of(const weft__parameter *q) { return weft__bytes(&q->value.f); }

static bool add_up(weft__parameter *q, void *user)
{
    walk *k = user;
    k->bytes += is_mine(k, q) ? bytes_of(q) : 0;
    return true;
}

static bool take(weft__parameter *q, void *user)
{
    walk *k = user;
    if (!is_mine(k, q))
        return true;
    weft__device *d = &q->value.w->dev;
    d->k->download(d, k->at, q->value.data, (size_t)bytes_of(q));
    k->at += bytes_of(q);
    return true;
}

static bool put(weft__parameter *q, void *user)
{
    walk *k = user;
    if (!is_mine(k, q))
        return true;
    weft__device *d = &q->value.w->dev;
    d->k->upload(d, q->value.data, k->at, (size_t)bytes_of(q));
    weft__changed(&q->value);
    k->at += bytes_of(q);
    return true;
}

static walk walk_of(const weft_parallel *p, int rank, const void *at)
{
    return (walk){ weft__shards_of(p->shards, rank, p->world.ranks), (char *)(uintptr_t)at, 0 };
}

/* of the rank that has most */
static int64_t most_bytes(const weft_parallel *p)
{
    int64_t most = 0;
    for (int q = 0; q < p->world.ranks; q++) {
        walk k = walk_of(p, q, NULL);
        weft__each_parameter(p->module->root, add_up, &k);
        most = k.bytes > most ? k.bytes : most;
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
    walk mine = walk_of(p, p->world.rank, p->own.at);
    memset(p->own.at, 0, (size_t)n);
    weft__each_parameter(p->module->root, take, &mine);
    if (!weft__hand_out(p, what, p->own.at, n))
        return false;
    for (int q = 0; q < p->world.ranks; q++) {
        walk k = walk_of(p, q, weft__said(p, q));
        if (q != p->world.rank)
            weft__each_parameter(p->module->root, put, &k);
    }
    return true;
}
