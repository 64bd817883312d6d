/* collective.c - lets all ranks agree at the start of a common call.
 *
 * Each rank sends the call that it is in, the status of its context, and fingerprints of data that must be
 * equal. So a rank that makes another call gets an error. It neither hangs nor adds unrelated numbers.
 *
 * The words of each rank reach all in log2(ranks) rounds (Bruck et al. 1997). In round d a rank has the
 * words of d ranks, beginning with its own, and receives those of the next d ranks from rank + d. */
#include <signal.h>
#include <string.h>
#include "parallel/parallel.h"

enum { WORDS = 1, PAYLOAD = 2 };                 /* tags */

typedef struct word {
    int64_t call;                                /* number of common calls before */
    char operation[32];
    int32_t status, stopping, posted;            /* posted: chunks of gradients have been sent */
    uint64_t print[WEFT__PRINTS];
    char text[480];                              /* message of status */
} word;

/* ---- signals: a batch system sends SIGTERM before it kills, and can send SIGUSR1 earlier ---- */
static volatile sig_atomic_t came;

static void note(int number)
{
    (void)number;
    came = 1;
}

void weft__signals_watch(void) { weft__on_stop_signals(note); }

/* ---- all-gather ---- */
const void *weft__words_of(const weft_parallel *p, int rank)
{
    int ranks = p->world.ranks;
    return p->inbox.at + (rank - p->world.rank + ranks) % ranks * p->inbox_bytes;
}

void weft__end_texts(weft_parallel *p, size_t offset, size_t size)
{
    for (int q = 0; q < p->world.ranks; q++)
        ((char *)(uintptr_t)weft__words_of(p, q))[offset + size - 1] = 0;
}

bool weft__all_gather(weft_parallel *p, const char *operation, int tag, const void *bytes, int64_t n)
{
    int rank = p->world.rank, ranks = p->world.ranks;
    char *received = weft__reserve(p->w, &p->inbox, n * ranks);
    if (!received)
        return false;
    p->inbox_bytes = n;
    memcpy(received, bytes, (size_t)n);
    for (int d = 1; d < ranks; d *= 2) {
        int to = (rank - d + ranks) % ranks, from = (rank + d) % ranks,
            blocks = d < ranks - d ? d : ranks - d;
        size_t size = (size_t)(blocks * n);
        weft__request r[2] = { { p->transport->post_recv(from, tag, received + d * n, size), from },
                               { p->transport->post_send(to, tag, received, size), to } };
        if (!weft__await(p, operation, r, 2))
            return false;
    }
    return true;
}

bool weft__hand_out(weft_parallel *p, const char *operation, const void *bytes, int64_t n)
{
    return weft__all_gather(p, operation, PAYLOAD, bytes, n);
}

/* ---- comparing the words ---- */
static bool same_call(weft_parallel *p)
{
    const word *a = weft__words_of(p, 0);
    for (int q = 1; q < p->world.ranks; q++) {
        const word *b = weft__words_of(p, q);
        if (a->call == b->call && !strcmp(a->operation, b->operation))
            continue;
        weft__fail(p->w, WEFT_EARG,
                   "rank 0 is in %s (common call %lld), rank %d in %s (common call %lld); expected the same "
                   "calls in the same order on all ranks",
                   a->operation, (long long)a->call, q, b->operation, (long long)b->call);
        return false;
    }
    return true;
}

/* Takes over the failure of the first rank that has failed. This rank's own message then also gets the rank's
 * number. */
static bool none_has_failed(weft_parallel *p)
{
    for (int q = 0; q < p->world.ranks; q++) {
        const word *b = weft__words_of(p, q);
        if (!b->status)
            continue;
        if (p->w->status)
            weft__explain(p->w, "rank %d: %s", q, b->text);
        weft__fail(p->w, (weft_status)b->status, "rank %d: %s", q, b->text);
        return false;
    }
    return true;
}

static bool prints_agree(weft_parallel *p, const char *operation, const weft__fingerprint *prints, int n)
{
    const word *a = weft__words_of(p, 0);
    for (int q = 1; q < p->world.ranks; q++) {
        const word *b = weft__words_of(p, q);
        for (int i = 0; i < n; i++)
            if (a->print[i] != b->print[i]) {
                p->differs = prints[i].name;
                weft__fail(p->w, WEFT_EARG, "%s: ranks 0 and %d differ in %s", operation, q, prints[i].name);
                return false;
            }
    }
    return true;
}

bool weft__agree(weft_parallel *p, const char *operation, const weft__fingerprint *prints, int n)
{
    weft *w = p->w;
    p->differs = NULL;
    word own = { .call = p->call, .status = w->status, .stopping = came, .posted = p->transfer.posted };
    snprintf(own.operation, sizeof own.operation, "%s", operation);
    snprintf(own.text, sizeof own.text, "%.479s", w->status ? weft_error_message(w) : "");
    for (int i = 0; i < n; i++)
        own.print[i] = prints[i].value;
    if (!p->transport) {
        p->stopping |= own.stopping;
        return !w->status;
    }
    if (!weft__all_gather(p, operation, WORDS, &own, sizeof own))
        return false;
    weft__end_texts(p, offsetof(word, operation), sizeof own.operation);
    weft__end_texts(p, offsetof(word, text), sizeof own.text);
    bool ok = same_call(p) && none_has_failed(p) && prints_agree(p, operation, prints, n), posted = false;
    for (int q = 0; q < p->world.ranks; q++) {
        const word *its = weft__words_of(p, q);
        p->stopping |= its->stopping && ok;
        posted |= its->posted;
    }
    p->drain |= !ok && posted;
    return ok;
}
