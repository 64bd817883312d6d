/* lost_rank.c - a call that all ranks make together, and what becomes of it when one of them is lost in it.
 *
 * Where the transport can go on without it (MPI with ULFM), the others shrink, and look where each of them
 * is. Every common call closes with a barrier: whoever has passed it knows that all have done the call, and
 * may work with what came of it. So of two ranks that are at different calls, or both at this one and done,
 * none has to do anything again; and if one has not done it, no rank has passed, and all do it once more,
 * with the shards of the one that is gone. Nothing is lost, and the bits are as they would have been. */
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include "parallel/parallel.h"

enum { PASS = 3, WHERE = 4 };                    /* tags */

/* of this thread, which is this rank, for all that it trains: first, ranks: as the launcher has it */
static _Thread_local struct { int64_t calls; int losses, first, ranks; weft__world world; } here;

void weft__common(weft_parallel *p)
{
    if (!p->again)
        p->call = here.calls++;
    p->lost = false;
}

bool weft__take_place(weft_parallel *p)
{
    if (p->losses == here.losses)
        return false;
    p->losses = here.losses;
    p->world = here.world;
    weft__link_down(p);                          /* else what comes next waits for what never will */
    p->mine = weft__shards_of(p->shards, p->world.rank, p->world.ranks);
    return true;
}

static bool pass(weft_parallel *p)                /* the barrier: nobody passes before all have said so */
{
    char here_too = 0;
    return weft__all_gather(p, "the end of a common call", PASS, &here_too, 1);
}

/* ---- after a loss ---- */
/* Transports wait for all that are left, and cannot be told for how long. */
static void too_long(int number)
{
    static const char text[] = "weft: a rank was lost, and not all of the others have come; this one ends\n";
    ssize_t n = write(STDERR_FILENO, text, sizeof text - 1);
    (void)n;
    raise(number);                               /* which ends the process: SA_RESETHAND */
}

static bool shrink(weft_parallel *p)
{
    struct sigaction end = { .sa_handler = too_long, .sa_flags = (int)SA_RESETHAND }, before;
    sigemptyset(&end.sa_mask);
    sigaction(SIGALRM, &end, &before);
    alarm((unsigned)p->timeout + 1);
    here.world = p->world;
    bool fine = p->transport->shrink(&here.world);
    alarm(0);
    sigaction(SIGALRM, &before, NULL);
    if (!fine)
        weft__give_up(p, "a rank is gone, and the transport cannot go on without it");
    here.losses++;
    return fine;
}

typedef struct { int64_t call; int32_t done, first; } where;

static void name_the_lost(weft_parallel *p)
{
    char text[200] = "";
    for (int q = 0, i = 0; q < here.ranks; q++) {
        if (i < p->world.ranks && ((const where *)weft__said(p, i))->first == q) {
            i++;
            continue;
        }
        size_t at = strlen(text);
        snprintf(text + at, sizeof text - at, "%srank %d", at ? ", " : "", q);
    }
    fprintf(stderr, "weft: gone of %d ranks, by update %lld: %s; the others, %d, go on with all shards\n",
            here.ranks, (long long)p->updates, text, p->world.ranks);
}

/* Where each of those that are left is: false if another is lost meanwhile. */
static bool look_round(weft_parallel *p, bool done)
{
    where mine = { p->call, done, here.first };
    p->lost = false;
    if (!weft__all_gather(p, "a call after a loss", WHERE, &mine, sizeof mine))
        return false;
    int64_t last = p->call;
    bool all_done = true;
    for (int q = 0; q < p->world.ranks; q++) {
        const where *at = weft__said(p, q);
        last = at->call > last ? at->call : last;
        all_done &= at->done != 0;
    }
    p->again = p->call == last && !all_done;
    if (p->world.rank == 0)
        name_the_lost(p);
    return true;
}

bool weft__again(weft_parallel *p)
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
        weft__take_place(p);
    } while (!look_round(p, done) && p->lost);
    return p->again && !p->ended;
}
