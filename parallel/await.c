/* await.c - waits for other ranks, with a time limit.
 *
 * MPI waits without end for a rank that has stopped. weft names that rank after the timeout and ends the
 * job. A rank may wait for one that waits itself. So after the timeout each rank sends a sign of life to all
 * others, and the message names those that stay silent. */
#include <string.h>
#include "parallel/parallel.h"

enum { ALIVE = 32767, LAST = 10 };  /* a tag; seconds until the alarm that ends a hanging abort */
/* Seconds of one wait without and with other work, and seconds that a roll call takes. */
static const double slice = .1, glance = 20e-6, answer = 2;

/* ---- the end of a job ---- */
static void end_all(weft_parallel *p)
{
    p->ended = true;
    fprintf(stderr, "weft: rank %d: %s\n", p->world.rank, weft_error_message(p->w));
    fflush(stderr);
    weft__alarm(LAST, NULL);                     /* in case that the transport hangs */
    if (p->cut_off)
        p->cut_off(p);  /* without this the end of the context waits for its GPU without end */
    p->transport->abort(1);
}

void weft__end_job(weft_parallel *p, const char *operation)
{
    weft__fail(p->w, WEFT_EDEVICE, "%s, in update %lld", operation, (long long)p->updates);
    end_all(p);
}

bool weft__is_lost(weft_parallel *p, int peer, const char *operation)
{
    char text[100];
    snprintf(text, sizeof text, "%s: lost rank %d%s", operation, peer,
             p->batch.carries && p->transport->shrink ? ", with the carried states of its rows" : "");
    if (!(p->lost = p->transport->shrink && !p->batch.carries))
        weft__end_job(p, text);
    p->transfer.broken = false;                  /* the loss is known now, and the transfer is over */
    p->transfer.blocked = true;
    return false;
}

/* ---- who does not answer ---- */
typedef struct call { int request; char received, sent; } call;

bool weft__await_reserve(weft_parallel *p)
{
    return !p->transport || weft__reserve(p->w, &p->roll, p->world.ranks * (int64_t)sizeof(call));
}

static int list_silent(weft_parallel *p, char *text, size_t size)  /* returns their number */
{
    enum { NAMED = 8 };
    const weft__transport *t = p->transport;
    int rank = p->world.rank, ranks = p->world.ranks, silent = 0;
    call *roll = (call *)(void *)p->roll.at;
    for (int q = 0; q < ranks; q++)
        if (q != rank) {
            roll[q].request = t->post_recv(q, ALIVE, &roll[q].received, 1);
            t->post_send(q, ALIVE, &roll[q].sent, 1);
        }
    *text = 0;
    double deadline = weft__seconds() + answer;
    for (int q = 0; q < ranks; q++) {
        double remaining = deadline - weft__seconds();
        if (q == rank || t->wait(roll[q].request, remaining > 0 ? remaining : 0) == 1)
            continue;
        if (silent++ < NAMED)
            snprintf(text + strlen(text), size - strlen(text), "%srank %d", *text ? ", " : "", q);
    }
    if (silent > NAMED)
        snprintf(text + strlen(text), size - strlen(text), " and %d more", silent - NAMED);
    return silent;
}

bool weft__is_late(weft_parallel *p, int peer, const char *operation)
{
    char silent[128];
    int n = list_silent(p, silent, sizeof silent);
    if (n)
        weft__fail(p->w, WEFT_EDEVICE,
                   "%s: %s %s not answered for %g s, in update %lld; expected an answer within the timeout. "
                   "It stopped, does work that the others do not do (evaluates or saves alone), or has a "
                   "longer batch than weft_parallel_opts.timeout allows",
                   operation, silent, n == 1 ? "has" : "have", p->timeout, (long long)p->updates);
    else
        weft__fail(p->w, WEFT_EDEVICE,
                   "%s: rank %d answers but has sent no data for %g s, in update %lld; expected the same "
                   "calls in the same order on all ranks",
                   operation, peer, p->timeout, (long long)p->updates);
    end_all(p);
    return false;
}

/* ---- waiting ---- */
/* Waits for a request, for a short time if there is other work. */
static int wait_a_slice(weft_parallel *p, int request)
{
    bool works = p->meanwhile && p->meanwhile(p);
    return p->transport->wait(request, works ? glance : slice);
}

static bool wait_for_all(weft_parallel *p, const char *operation, weft__request *r, int n)
{
    double deadline = weft__seconds() + p->timeout;
    if (p->ended)                                /* the transport is still ending this process */
        return false;
    if (p->transfer.broken)                      /* found during the backward pass */
        return weft__is_lost(p, p->transfer.lost_rank, operation);
    for (int i = 0; i < n; i++) {
        int over = r[i].number < 0 ? WEFT__LOST : wait_a_slice(p, r[i].number);
        while (!over) {
            if (p->transfer.broken)
                return weft__is_lost(p, p->transfer.lost_rank, operation);
            if (weft__seconds() > deadline)
                return weft__is_late(p, r[i].peer, operation);
            over = wait_a_slice(p, r[i].number);
        }
        if (over < 0)
            return weft__is_lost(p, r[i].peer, operation);
    }
    return true;
}

bool weft__await(weft_parallel *p, const char *operation, weft__request *r, int n)
{
    double from = weft__seconds();
    bool ok = wait_for_all(p, operation, r, n);
    p->waited += weft__seconds() - from;
    return ok;
}
