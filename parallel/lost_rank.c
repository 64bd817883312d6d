/* lost_rank.c - repeats a common call after a rank is lost in it.
 *
 * This requires a transport that survives a loss (MPI with ULFM). Every common call ends with a barrier. A
 * rank that has passed it knows that all ranks have done the call, and may use its results. After a loss the
 * remaining ranks shrink the world and compare their positions. If they are in different calls, or all have
 * done this one, there is nothing to repeat. If one rank has not done it, no rank has passed the barrier,
 * and all repeat the call with the shards of the lost rank. The bits stay the same. */
#include <string.h>
#include "parallel/parallel.h"

enum { PASS = 3, WHERE = 4 };                    /* tags */

/* The state of this thread, which is one rank, for all its trainings. first, ranks: its number and the number
 * of ranks at the launch. */
static _Thread_local struct { int64_t calls; int losses, first, ranks; weft__world world; } here;

void weft__begin_call(weft_parallel *p)
{
    if (!p->again)
        p->call = here.calls++;
    p->lost = false;
}

bool weft__update_place(weft_parallel *p)
{
    if (p->losses == here.losses)
        return false;
    p->losses = here.losses;
    p->world = here.world;
    weft__link_down(p);  /* the next transfer would otherwise wait for a lost rank without end */
    p->own_shards = weft__shards_of(p->shards, p->world.rank, p->world.ranks);
    return true;
}

static bool pass(weft_parallel *p)                /* the barrier */
{
    char here_too = 0;
    return weft__all_gather(p, "the end of a common call", PASS, &here_too, 1);
}

/* ---- after a loss ---- */
static bool shrink(weft_parallel *p)
{
    /* a transport waits for all remaining ranks, without a time limit of its own */
    weft__alarm((unsigned)p->timeout + 1,
                "weft: lost a rank and timed out waiting for the others; exiting\n");
    here.world = p->world;
    bool ok = p->transport->shrink(&here.world);
    weft__no_alarm();
    if (!ok)
        weft__end_job(p, "lost a rank, and the transport cannot continue without it");
    here.losses++;
    return ok;
}

typedef struct { int64_t call; int32_t done, first; } where;

static void name_the_lost(weft_parallel *p)
{
    char text[200] = "";
    for (int q = 0, i = 0; q < here.ranks; q++) {
        if (i < p->world.ranks && ((const where *)weft__words_of(p, i))->first == q) {
            i++;
            continue;
        }
        size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, "%srank %d", length ? ", " : "", q);
    }
    fprintf(stderr, "weft: update %lld: lost %s of %d ranks; continuing with %d, which take all shards\n",
            (long long)p->updates, text, here.ranks, p->world.ranks);
}

/* Exchanges the positions of the remaining ranks. Returns false if another rank is lost meanwhile. */
static bool exchange_positions(weft_parallel *p, bool done)
{
    where own = { p->call, done, here.first };
    p->lost = false;
    if (!weft__all_gather(p, "a call after a loss", WHERE, &own, sizeof own))
        return false;
    int64_t last = p->call;
    bool all_done = true;
    for (int q = 0; q < p->world.ranks; q++) {
        const where *position = weft__words_of(p, q);
        last = position->call > last ? position->call : last;
        all_done &= position->done != 0;
    }
    p->again = p->call == last && !all_done;
    if (p->world.rank == 0)
        name_the_lost(p);
    return true;
}

bool weft__repeat_call(weft_parallel *p)
{
    if (p->drain)
        weft__overlap_drain(p);
    bool done = !p->lost;
    p->again = false;
    if (!p->transport || !p->transport->shrink || p->ended || (done && pass(p)))
        return false;
    if (!here.losses) {
        here.first = p->world.rank;
        here.ranks = p->world.ranks;
    }
    do {
        if (!shrink(p))
            return p->lost = false;
        weft__update_place(p);
    } while (!exchange_positions(p, done) && p->lost);
    return p->again && !p->ended;
}
