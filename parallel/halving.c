/* halving.c - the exchange between GPUs by recursive halving and doubling (Rabenseifner 2004), neighbours
 * first.
 *
 * It requires a power of two ranks, each of whose shards form one branch. Then the halves are those of the
 * tree, so the bits are the same as in exchange.c. It takes 2 log2(ranks) messages for each rank, because a
 * rank adds up numbers before it sends them. */
#include "parallel/parallel.h"

typedef struct { int64_t from, n; } part;

/* Returns whether the halves of the ranks, and their halves, are those of the tree. */
static bool is_their_tree(const weft_parallel *p, int from, int end)
{
    int middle = from + (end - from) / 2, ranks = p->world.ranks;
    weft__branch both = { weft__shards_of(p->shards, from, ranks).from,
                          weft__shards_of(p->shards, end - 1, ranks).end };
    if (end - from == 1)
        return true;
    return weft__tree_middle(both) == weft__shards_of(p->shards, middle, ranks).from &&
           is_their_tree(p, from, middle) && is_their_tree(p, middle, end);
}

bool weft__can_halve(const weft_parallel *p)
{
    weft__branch b[WEFT__BRANCHES];
    int ranks = p->world.ranks;
    bool ok = p->link && !p->transfer.whole && !(ranks & (ranks - 1));
    for (int q = 0; q < ranks && ok; q++)
        ok = weft__tree_parts(p->shards, weft__shards_of(p->shards, q, ranks), b) == 1;
    return ok && is_their_tree(p, 0, ranks);
}

/* Returns the half of a part that this rank keeps (`keep`) or sends to its partner, in the round of distance
 * d. */
static part half_of(part whole, int rank, int d, bool keep)
{
    int64_t lower = whole.n / 32 * 16;           /* whole cache lines, as in all pieces */
    bool upper = ((rank & d) != 0) == keep;
    return upper ? (part){ whole.from + lower, whole.n - lower } : (part){ whole.from, lower };
}

static bool exchange_with(weft_parallel *p, const char *operation, int peer, part out, real *to, int64_t n)
{
    weft__link_group(p, true);
    weft__link_post(p, true, peer, p->transfer.base + out.from, out.n);
    weft__link_post(p, false, peer, to, n);
    weft__link_group(p, false);
    return weft__link_taken(p, operation);
}

bool weft__exchange_halves(weft_parallel *p)
{
    weft__device *d = &p->w->dev;
    int rank = p->world.rank, ranks = p->world.ranks, round = 0;
    real *x = p->transfer.base, *received = (real *)(void *)p->linked.terms.at;
    part range[WEFT__DEPTH] = { { 0, p->n } };
    for (int far = 1; far < ranks; far *= 2, round++) {
        part keeps = half_of(range[round], rank, far, true), gives = half_of(range[round], rank, far, false);
        if (!exchange_with(p, "gradients of the batch", rank ^ far, gives, received, keeps.n))
            return false;
        d->k->scale(d, keeps.n, 1, received, x + keeps.from, true);
        range[round + 1] = keeps;
    }
    for (int far = ranks / 2; far; far /= 2) {
        part lacks = half_of(range[--round], rank, far, false);
        if (!exchange_with(p, "sums of the batch", rank ^ far, range[round + 1], x + lacks.from, lacks.n))
            return false;
    }
    return true;
}
