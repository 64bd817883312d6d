/* sums.c - exchanges the results of all shards: the sums of losses, weights and the program's values, and
 * which parameters got a gradient. */
#include <string.h>
#include "autograd/fused.h"
#include "parallel/parallel.h"

/* Writes one bit for each parameter: whether it got a gradient. set: reads the bits into the model
 * instead. */
static void mark(const weft_module *m, unsigned char *bits, bool set)
{
    int64_t i = 0;
    for (weft__parameter *q = NULL; (q = weft__next_parameter(m, q)); i++) {
        weft__node *node = weft__node_of(&q->value);
        if (set)
            node->has_gradient |= bits[i / 8] >> i % 8 & 1 && !node->frozen;
        else
            bits[i / 8] |= (unsigned char)(node->has_gradient << i % 8);
    }
}

static double sum_over(weft_parallel *p, weft__branch tree, int k)
{
    weft__branch b[WEFT__BRANCHES];
    int64_t ranks = p->world.ranks;
    int q = (int)(((tree.from + 1) * ranks - 1) / p->shards);         /* the rank of the first shard */
    weft__branch shards = weft__shards_of(p->shards, q, p->world.ranks);
    for (int i = 0, n = shards.end < tree.end ? 0 : weft__tree_parts(p->shards, shards, b); i < n; i++)
        if (b[i].from == tree.from && b[i].end == tree.end)
            return ((const double *)weft__words_of(p, q))[i * WEFT__SUMS + k];
    int middle = weft__tree_middle(tree);
    return sum_over(p, (weft__branch){ tree.from, middle }, k) +
           sum_over(p, (weft__branch){ middle, tree.end }, k);
}

/* Bytes that a rank sends: of the sums, and in total. */
typedef struct { int64_t sums, all; } parcel;

static parcel parcel_of(const weft_parallel *p)
{
    weft__branch b[WEFT__BRANCHES];
    int64_t parameters = 0, most = 0;
    for (int q = 0; q < p->world.ranks; q++) {
        int n = weft__tree_parts(p->shards, weft__shards_of(p->shards, q, p->world.ranks), b);
        most = n > most ? n : most;
    }
    for (const weft__parameter *q = NULL; (q = weft__next_parameter(p->module, q));)
        parameters++;
    int64_t sums = most * (int64_t)sizeof p->sums[0];
    return (parcel){ sums, sums + (parameters + 63) / 64 * 8 };
}

bool weft__sums_reserve(weft_parallel *p)
{
    if (!p->transport)
        return true;
    int64_t bytes = parcel_of(p).all;
    return weft__reserve(p->w, &p->outbox, bytes) &&
           weft__reserve(p->w, &p->inbox, bytes * p->world.ranks) && weft__exchange_reserve(p);
}

bool weft__share_sums(weft_parallel *p)
{
    if (!p->transport) {
        memcpy(p->total, p->sums[0], sizeof p->total);
        weft__results_measure(p);
        return true;
    }
    int64_t sums = parcel_of(p).sums, bytes = parcel_of(p).all;
    char *own = p->outbox.at;
    memset(own, 0, (size_t)bytes);
    p->sums[0][WEFT__WAITED] = p->waited;
    p->sums[0][WEFT__PUT] = (double)p->results.n;
    memcpy(own, p->sums, (size_t)p->done * sizeof p->sums[0]);
    mark(p->module, (unsigned char *)own + sums, false);
    bool ok = weft__hand_out(p, "sums of the batch", own, bytes);
    for (int q = 0; ok && q < p->world.ranks; q++)
        mark(p->module, (unsigned char *)(uintptr_t)weft__words_of(p, q) + sums, true);
    for (int k = 0; ok && k < WEFT__SUMS; k++)
        p->total[k] = sum_over(p, (weft__branch){ 0, p->shards }, k);
    if (!ok)
        return false;
    weft__results_measure(p);
    p->waited_by_all = p->total[WEFT__WAITED];
    return true;
}
