/* gpu_link.c - sends gradients directly from GPU to GPU, where a link exists (core/shared/link.h).
 *
 * The pieces and the tree are those of exchange.c, in device memory. A link only moves numbers, and a GPU
 * whose neighbour is gone waits without end. So each rank watches the next one over the transport. The next
 * rank reports there when its own numbers have arrived. */
#include <string.h>
#include "core/shared/link.h"
#include "parallel/parallel.h"

enum { OVER = 5 };                               /* a tag */
static const char joining[] = "joining the GPUs of all ranks";
static const double grace = 2;                   /* seconds for the transport to report a lost rank that
                                                  * the link has noticed earlier */

/* ---- the next rank ---- */
static int neighbour(const weft_parallel *p, int d)
{
    return (p->world.rank + d + p->world.ranks) % p->world.ranks;
}

void weft__link_watch(weft_parallel *p)
{
    int next = neighbour(p, 1);
    p->linked.next = (weft__request){ p->transport->post_recv(next, OVER, &p->linked.received, 1), next };
    p->linked.is_over = false;
}

/* Returns the state of the next rank: WEFT__LOST if it is gone. */
static int next_is(weft_parallel *p)
{
    if (p->linked.next.number < 0)
        return WEFT__LOST;
    int state = p->linked.is_over ? 1 : p->transport->test(p->linked.next.number);
    p->linked.is_over = state == 1;
    return state;
}

/* ---- waiting ---- */
static bool link_failed(weft_parallel *p, const char *operation)
{
    char text[300];
    double deadline = weft__seconds() + grace;
    while (weft__seconds() < deadline)
        if (next_is(p) == WEFT__LOST)
            return weft__is_lost(p, p->linked.next.peer, operation);
    snprintf(text, sizeof text, "%s: %s", operation, p->w->dev.links->why(p->link));
    weft__end_job(p, text);
    return false;
}

/* Returns the final state of the link; 0 if a rank is lost or the context has failed. */
static int has_arrived(weft_parallel *p, const char *operation, int (*state)(weft__link *))
{
    double start = weft__seconds(), deadline = start + p->timeout;
    int result = 0;
    bool ok = !p->ended;
    while (ok && !(result = state(p->link))) {
        if (next_is(p) == WEFT__LOST)
            ok = weft__is_lost(p, p->linked.next.peer, operation);
        else if (weft__seconds() > deadline)
            ok = weft__is_late(p, p->linked.next.peer, operation);
        else
            weft__yield();
    }
    p->waited += weft__seconds() - start;
    return result;
}

static bool wait_for_state(weft_parallel *p, const char *operation, int (*state)(weft__link *))
{
    int result = has_arrived(p, operation, state);
    return result == 1 || (result && link_failed(p, operation));
}

bool weft__link_taken(weft_parallel *p, const char *operation)
{
    return wait_for_state(p, operation, p->w->dev.links->taken);
}

/* Waits until this rank and the next one have ended their part. */
static bool watch_neighbour(weft_parallel *p, const char *operation)
{
    int before = neighbour(p, -1);
    weft__request r[2] = { { p->transport->post_send(before, OVER, &p->linked.sent, 1), before },
                           p->linked.next };
    return weft__await(p, operation, r, p->linked.is_over ? 1 : 2);
}

bool weft__link_done(weft_parallel *p, const char *operation)
{
    return wait_for_state(p, operation, p->w->dev.links->done) && watch_neighbour(p, operation);
}

/* ---- messages ---- */
void weft__link_group(weft_parallel *p, bool begins)
{
    (begins ? p->w->dev.links->begin : p->w->dev.links->end)(p->link);
}

void weft__link_post(weft_parallel *p, bool send, int peer, real *x, int64_t n)
{
    const weft__links *l = p->w->dev.links;
    if (n)
        send ? l->send(p->link, peer, x, n) : l->receive(p->link, peer, x, n);
}

/* ---- two ranks on one GPU share its time and memory: nothing fails, but training is slower ---- */
typedef struct unit { uint64_t gpu; char host[64]; } unit;

/* Returns the first rank before q that uses the same GPU; -1: none. */
static int shares_with(const weft_parallel *p, int q)
{
    const unit *a = weft__words_of(p, q);
    for (int r = 0; a->gpu && r < q; r++) {
        const unit *b = weft__words_of(p, r);
        if (a->gpu == b->gpu && !strcmp(a->host, b->host))
            return r;
    }
    return -1;
}

bool weft__find_shared_devices(weft_parallel *p)
{
    unit own = { .gpu = p->w->dev.unit };
    weft__host_name(own.host, sizeof own.host);
    if (!weft__hand_out(p, "weft_parallel_new", &own, sizeof own))
        return false;
    weft__end_texts(p, offsetof(unit, host), sizeof own.host);
    int many = 0, first = 0, second = 0;
    for (int q = p->world.ranks; q-- > 0;)
        if (shares_with(p, q) >= 0) {
            many++;
            second = q;
            first = shares_with(p, q);
        }
    p->linked.shared = many;
    if (many && p->world.rank == 0 && !weft__log_is_off())
        fprintf(stderr,
                "weft: ranks %d and %d share one GPU of %s%s; expected one rank for each GPU; WEFT_LOG=0 "
                "silences this\n",
                first, second, ((const unit *)weft__words_of(p, first))->host,
                many > 1 ? ", and so do others" : "");
    return true;
}

/* ---- opening and closing ---- */
typedef struct { char id[WEFT__LINK_ID], name[64], reason[256]; int32_t fails; } hello;

void weft__link_down(weft_parallel *p)
{
    if (p->link)
        p->w->dev.links->close(p->link);
    p->link = NULL;
    p->linked.tried = false;
}

/* Returns whether no rank fails. If one does, `reason` is that of the first; it stays empty if a rank is
 * lost. */
static bool all_ranks_can(weft_parallel *p, const hello *own, char *reason, size_t size)
{
    if (!weft__hand_out(p, joining, own, sizeof *own))
        return false;
    weft__end_texts(p, offsetof(hello, name), sizeof own->name);
    weft__end_texts(p, offsetof(hello, reason), sizeof own->reason);
    for (int q = 0; q < p->world.ranks; q++) {
        const hello *its = weft__words_of(p, q);
        if (its->fails) {
            snprintf(reason, size, "rank %d: %s", q, its->reason);
            return false;
        }
    }
    return true;
}

static void begin_world(weft_parallel *p, hello *own)
{
    const weft__links *l = p->w->dev.links;
    char *id = p->world.rank == 0 ? own->id : NULL;
    own->fails = !l || !l->begin_world(&p->w->dev, id, own->name, own->reason, sizeof own->reason);
    if (!l)
        snprintf(own->reason, sizeof own->reason, "libweft_cuda.so was built without nccl.h");
}

/* Opens the link on all ranks or on none. */
static bool joined(weft_parallel *p, hello *own, char *reason, size_t size)
{
    weft__device *d = &p->w->dev;
    weft__link_watch(p);
    p->cut_off = weft__link_down;
    p->link = d->links->open(d, own->id, p->world.rank, p->world.ranks, own->reason, sizeof own->reason);
    own->fails = !p->link;
    if (!all_ranks_can(p, own, reason, size)) {
        if (*reason)
            watch_neighbour(p, joining);
        return false;
    }
    int result = has_arrived(p, joining, d->links->taken);
    own->fails = result != 1;
    if (result && result != 1)
        snprintf(own->reason, sizeof own->reason, "%s", d->links->why(p->link));
    return result && watch_neighbour(p, joining) && all_ranks_can(p, own, reason, size);
}

static bool linked(weft_parallel *p, hello *own, char *reason, size_t size)
{
    if (p->linked.shared)                        /* NCCL refuses shared GPUs */
        return false;
    begin_world(p, own);
    if (!all_ranks_can(p, own, reason, size))
        return false;
    *own = *(const hello *)weft__words_of(p, 0);
    return joined(p, own, reason, size);
}

bool weft__link_up(weft_parallel *p)
{
    hello own = { 0 };
    char reason[300] = "";
    if (!p->transport || p->w->dev.k->synchronous || p->world.ranks == 1 || p->linked.tried)
        return true;
    bool ok = linked(p, &own, reason, sizeof reason);
    if (!ok)
        weft__link_down(p);
    if (p->lost || p->w->status)
        return false;
    p->linked.tried = true;
    bool meant = p->linked.shared || strstr(reason, "WEFT_NCCL=off");
    if (ok && p->w->dev.log && p->world.rank == 0)
        fprintf(stderr, "weft: gradients go from GPU to GPU by %s\n", own.name);
    else if (!ok && !meant && p->world.rank == 0 && !weft__log_is_off())
        fprintf(stderr,
                "weft: gradients pass through host memory: %s; WEFT_NCCL=off chooses this, WEFT_LOG=0 "
                "silences this message\n",
                reason);
    return true;
}
