/* local_tree.c - adds up the shards of one rank: a new shard is added to the finished branches, as a binary
 * counter carries.
 *
 * Between shards each level of the tree has at most one vector of gradients. With one shard for
 * each rank there is only the root's own. */
#include <string.h>
#include "parallel/parallel.h"

/* Adds b to a in the memory that holds the terms: that of the device, or of a GPU's host if there is no
 * link. */
void weft__add(weft_parallel *p, int64_t n, real *a, const real *b)
{
    char reason[128];
    weft__device *d = &p->w->dev, host = { 0 };
    if (!d->k->synchronous && !p->link) {
        host.k = weft__cpu_kernels(WEFT_CPU, WEFT_FP32, reason, sizeof reason);
        host.k = host.k ? host.k : weft__cpu_kernels(WEFT_REF, WEFT_FP32, reason, sizeof reason);
        d = &host;
    }
    d->k->scale(d, n, 1, b, a, true);
}

static int branches_before(const weft_parallel *p, int shard, weft__branch out[WEFT__BRANCHES])
{
    return weft__tree_parts(p->shards, (weft__branch){ p->own_shards.from, shard }, out);
}

/* ---- gradients ---- */
void weft__release_levels(weft_parallel *p)
{
    for (int i = 0; i < WEFT__BRANCHES; i++) {
        weft__device_release(p->w, p->level[i]);
        p->level[i] = NULL;
    }
    p->level_room = 0;
}

/* Returns the memory of a waiting branch; NULL and a sticky error if memory is short. */
static real *level_of(weft_parallel *p, int i)
{
    if (p->level_room < p->n) {
        weft__release_levels(p);                 /* the model has grown between two batches */
        p->level_room = p->n;
    }
    if (!p->level[i])
        p->level[i] = weft__device_allocate(p->w, (size_t)(p->n + 1) * sizeof(real));
    return p->level[i];
}

static void add_waiting(weft_parallel *p, int before, int after, int64_t from)
{
    weft__device *d = &p->w->dev;
    real *g = p->module->root->gradients + p->from;
    for (int i = before; i-- >= after;)
        d->k->scale(d, p->unfolded - from, 1, p->level[i] + from, g + from, true);
    p->unfolded = from;
}

void weft__fold_early(weft_parallel *p, int64_t from)
{
    weft__branch out[WEFT__BRANCHES];
    int before = branches_before(p, p->current, out),
        after = branches_before(p, p->current + 1, out);
    add_waiting(p, before, after, from);
}

static void fold_gradients(weft_parallel *p, int before, int after)
{
    weft__device *d = &p->w->dev;
    real *g = p->module->root->gradients + p->from;
    add_waiting(p, before, after, 0);
    p->unfolded = p->n;
    if (p->current + 1 == p->own_shards.end)
        return;
    real *waits = level_of(p, after - 1);
    if (waits)
        d->k->copy(d, waits, g, (size_t)p->n * sizeof(real));
    d->k->fill(d, p->n, 0, g);
}

/* ---- sums ---- */
/* Adds n sums of a shard, starting at `first`, to those of the branches that end with it. */
static void fold_sums(weft_parallel *p, int before, int after, int first, int n, const double *leaf)
{
    for (int k = 0; k < n; k++) {
        double sum = leaf[k];
        for (int i = before; i-- >= after;)
            sum = p->sums[i][first + k] + sum;
        p->sums[after - 1][first + k] = sum;
    }
}

static int64_t losses(const weft_parallel *p)
{
    return 2 * (int64_t)(p->own_shards.end - p->own_shards.from);
}

bool weft__losses_begin(weft_parallel *p)
{
    weft__device *d = &p->w->dev;
    int64_t n = losses(p), bytes = n * (int64_t)sizeof(real);
    if (!weft__device_reserve(p->w, &p->shard_losses.device, bytes) ||
        !weft__reserve(p->w, &p->shard_losses.host, bytes))
        return false;
    d->k->fill(d, n, 0, (real *)(void *)p->shard_losses.device.at);
    return true;
}

static void keep(weft_parallel *p, const weft_tensor *x, int64_t index)
{
    weft__device *d = &p->w->dev;
    real *to = (real *)(void *)p->shard_losses.device.at + index;
    if (p->w->status)
        return;
    if (!x || weft__handle_error(p->w, x) || weft__elements(&x->f) != 1 || x->f.type != WEFT_REAL) {
        real value = (real)weft_item(x);         /* weft_item reports the error */
        d->k->upload(d, to, &value, sizeof value);
        return;
    }
    weft__notify(p->w, WEFT__READ, NULL);
    d->k->copy(d, to, x->data, sizeof(real));
}

void weft__keep_loss(weft_parallel *p, weft_loss loss)
{
    int64_t index = 2 * (int64_t)(p->current - p->own_shards.from);
    keep(p, loss.sum, index);
    keep(p, loss.weight, index + 1);
}

void weft__fold_losses(weft_parallel *p)
{
    weft__branch out[WEFT__BRANCHES];
    weft__device *d = &p->w->dev;
    const real *x = (const real *)(void *)p->shard_losses.host.at;
    if (p->w->status)
        return;
    d->k->download(d, p->shard_losses.host.at, p->shard_losses.device.at, (size_t)losses(p) * sizeof *x);
    weft__check_faults(p->w, "an update");
    for (int s = p->own_shards.from; s < p->own_shards.end; s++, x += 2) {
        int before = branches_before(p, s, out), after = branches_before(p, s + 1, out);
        fold_sums(p, before, after, WEFT__LOSS, 2, (const double[]){ (double)x[0], (double)x[1] });
    }
}

void weft__fold_shard(weft_parallel *p)
{
    weft__branch out[WEFT__BRANCHES];
    int before = branches_before(p, p->current, out),
        after = branches_before(p, p->current + 1, out);
    if (p->batch.learns && p->n)
        fold_gradients(p, before, after);
    fold_sums(p, before, after, 0, WEFT__SUMS, p->leaf);
    memset(p->leaf, 0, sizeof p->leaf);
    p->done = after;
}
