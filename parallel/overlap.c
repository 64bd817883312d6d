/* overlap.c - sends chunks of gradients while the backward pass of this rank's last shard still runs.
 *
 * The gradients of earlier shards wait for that shard. A chunk can leave when no remaining entry of the tape
 * uses one of its parameters. Then the gradients of earlier shards are added to it, and it is sent.
 *
 * So gradients travel before all ranks have agreed that they belong together. If they do not, the transfer
 * is still completed, so that no message stays open. */
#include <string.h>
#include "autograd/fused.h"
#include "parallel/parallel.h"

static const double look_pause = 20e-6;          /* seconds between two checks for arrived messages */

/* ---- callbacks of the backward pass ---- */
static void note_use(void *user, const weft_tensor *parameter, int64_t entry)
{
    weft_parallel *p = user;
    const real *g = weft__node_of(parameter)->grad ? weft__node_of(parameter)->grad->data : NULL;
    int64_t begin = g ? g - p->transfer.base : -1, end = begin + weft__elements(&parameter->f);
    if (begin < 0 || end > p->n)
        return;
    for (int64_t c = weft__chunk_of(p, end - 1), last = weft__chunk_of(p, begin); c <= last; c++)
        if (entry < p->least[c])
            p->least[c] = entry;
}

static void send_what_is_final(weft_parallel *p, int64_t entry)
{
    weft__transfer *x = &p->transfer;
    while (x->posted < x->chunks && p->least[x->posted] >= entry && !p->w->status) {
        weft__fold_early(p, weft__chunk_from(p, x->posted));
        weft__transfer_post(p);
    }
}

static void after_entry(void *user, int64_t entry)
{
    weft_parallel *p = user;
    send_what_is_final(p, entry);
    if (!weft__transfer_is_open(p) || weft__seconds() < p->looked + look_pause)
        return;
    while (weft__transfer_step(p, false))
        ;
    p->looked = weft__seconds();
}

/* ---- on and off ---- */
void weft__overlap_begin(weft_parallel *p)
{
    static const weft__watch all = { note_use, after_entry, false };
    bool fits = p->transport && p->w->dev.k->synchronous && p->current + 1 == p->own_shards.end &&
                p->agreed.n == p->n && p->agreed.from == p->from && !p->transfer.begun;
    const char *setting = fits ? weft__variable("WEFT_PARALLEL_OVERLAP") : NULL;
    if (!fits || (setting && !strcmp(setting, "off")) || !weft__transfer_begin(p) || p->transfer.chunks == 1)
        return;
    for (int c = 0; c < WEFT__CHUNKS; c++)
        p->least[c] = INT64_MAX;
    p->w->tape->pass_watch = &all;
    p->w->tape->pass_user = p;
}

void weft__overlap_end(weft_parallel *p)
{
    static const weft__watch closed = { .closed = true };
    p->w->tape->pass_watch = &closed;
    p->w->tape->pass_user = NULL;
}

/* Completes a transfer if some ranks have sent chunks before all failed. */
void weft__overlap_drain(weft_parallel *p)
{
    p->drain = false;
    if (!p->transfer.begun) {
        p->n = p->agreed.n;
        p->from = p->agreed.from;
    }
    weft__exchange(p);
    p->transfer = (weft__transfer){ 0 };
}
