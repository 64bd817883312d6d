/* pairs.c - a transport for tests between processes of one machine, with a socketpair for each two ranks.
 *
 * ranks.c starts them. WEFT_PAIRS holds the rank, the number of ranks and the sockets. A message is its tag,
 * its size and its bytes. WEFT_PAIRS_FAULT=kill:2:17 kills rank 2 when it sends its 17th message; stop stops
 * it, drop omits the message, delay waits 0.1 s, damage changes the bytes; commas separate several faults.
 * With WEFT_PAIRS_SHRINK the others continue without a lost rank, like MPI with ULFM. With WEFT_PAIRS_FILLS
 * the name and the error text have no terminating 0. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "parallel/transport.h"
#include "clock.h"

enum { MOST = 64, FAULTS = 4, ALL = -1, LEFT = -2, FROM_ROOT = 1 << 20 };     /* LEFT, FROM_ROOT: tags */

typedef struct message {
    struct message *next;
    struct { int64_t tag, size; } head;
    char *bytes; bool own;
    size_t done;                                 /* bytes done, of head and body */
    int request;                                 /* -1: not yet awaited */
} message;

typedef struct peer {
    int socket; bool gone;
    message *out, *posted, *early;               /* to send; expected; received before the request */
    message in; message *into;                   /* being received; into: its request */
    struct { int64_t epoch; uint64_t set; } left; /* ranks left, by its report */
} peer;

static weft__world world;
/* initial rank and number of ranks; initial rank of each current rank */
static int me, everyone, member[MOST];
static peer peers[MOST];
static int64_t epoch;                            /* number of shrinks */
static uint64_t agreed;                          /* ranks left after a shrink; 0: not yet known */
static bool revoked;
static struct { char kind[8]; int rank; long at; } fault[FAULTS];
static int faults; static long sent;
/* by request: done or not; its peer, or ALL; number of messages left */
static signed char *state; static int *of_peer, *messages, requests, room;

/* ---- lists ---- */
static int64_t key_of(int tag) { return epoch << 32 | tag; }

static void append(message **list, message *m)
{
    while (*list)
        list = &(*list)->next;
    *list = m;
}

static message *taken(message **list, int64_t tag)
{
    for (; *list; list = &(*list)->next)
        if ((*list)->head.tag == tag) {
            message *m = *list;
            *list = m->next, m->next = NULL;
            return m;
        }
    return NULL;
}

static int new_request(int of)
{
    if (requests == room) {
        room = room ? 2 * room : 64;
        state = realloc(state, (size_t)room), of_peer = realloc(of_peer, (size_t)room * sizeof *of_peer);
        messages = realloc(messages, (size_t)room * sizeof *messages);
    }
    state[requests] = 0, of_peer[requests] = of, messages[requests] = 1;
    return requests++;
}

static void one_less(int request) { state[request] = --messages[request] == 0; }

static void over(message *m)
{
    if (m->request >= 0)
        one_less(m->request);
    if (m->own)
        free(m->bytes);
    free(m);
}

/* ---- moving bytes ---- */
static bool moved(peer *p, ssize_t n, size_t *done)
{
    if (n > 0)
        *done += (size_t)n;
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        p->gone = true;
    return n > 0;
}

static void push(peer *p)
{
    for (message *m; !p->gone && (m = p->out);) {
        const char *head = (const char *)&m->head;
        size_t heads = sizeof m->head, all = heads + (size_t)m->head.size;
        bool in_head = m->done < heads;
        const char *from = in_head ? head + m->done : m->bytes + (m->done - heads);
        if (!moved(p, write(p->socket, from, (in_head ? heads : all) - m->done), &m->done))
            return;
        if (m->done == all)
            p->out = m->next, over(m);
    }
}

static void begin_payload(peer *p)
{
    p->into = p->in.head.tag < 0 ? NULL : taken(&p->posted, p->in.head.tag);
    if (p->into && p->into->head.size != p->in.head.size) {
        fprintf(stderr, "pairs: %lld bytes where %lld are awaited\n", (long long)p->in.head.size,
                (long long)p->into->head.size);
        p->gone = true;
        return;
    }
    if (p->into)
        return;
    message *m = calloc(1, sizeof *m);
    m->head = p->in.head, m->request = -1;
    m->bytes = malloc((size_t)m->head.size + 1);
    p->into = m;
}

/* Hands over an early message whose head arrived before the request. */
static void hand_over(peer *p, message *m)
{
    message *waits = taken(&p->posted, m->head.tag);
    if (!waits) {
        append(&p->early, m);
        return;
    }
    memcpy(waits->bytes, m->bytes, (size_t)m->head.size);
    over(waits);
    free(m->bytes), free(m);
}

static void drop(message *m) { free(m->bytes), free(m); }

/* Records a status message of another rank. */
static void note(peer *p, const message *m)
{
    memcpy(&p->left, m->bytes, sizeof p->left);
    revoked |= p->left.epoch > epoch || (agreed && p->left.epoch == epoch && p->left.set != agreed);
}

static void end_payload(peer *p)
{
    message *m = p->into;
    p->into = NULL, p->in.done = 0;
    if (m->head.tag < 0)
        note(p, m), drop(m);
    else if (m->request >= 0)
        over(m);
    else if (m->head.tag >> 32 < epoch)
        drop(m);
    else
        hand_over(p, m);
}

static void pull(peer *p)
{
    size_t heads = sizeof p->in.head;
    while (!p->gone) {
        if (p->in.done < heads &&
            !moved(p, read(p->socket, (char *)&p->in.head + p->in.done, heads - p->in.done), &p->in.done))
            return;
        if (p->in.done < heads)
            continue;
        if (!p->into)
            begin_payload(p);
        size_t left = p->gone ? 0 : heads + (size_t)p->in.head.size - p->in.done;
        if (left && !moved(p, read(p->socket, p->into->bytes + (p->in.done - heads), left), &p->in.done))
            return;
        if (!p->gone && p->in.done == heads + (size_t)p->in.head.size)
            end_payload(p);
    }
}

static void progress(int milliseconds)
{
    struct pollfd at[MOST];
    int n = 0, of[MOST];
    for (int q = 0; q < everyone; q++)
        if (q != me && !peers[q].gone)
            of[n] = q,
            at[n++] = (struct pollfd){ peers[q].socket, (short)(POLLIN | (peers[q].out ? POLLOUT : 0)), 0 };
    if (poll(at, (nfds_t)n, milliseconds) <= 0)
        return;
    for (int i = 0; i < n; i++) {
        if (at[i].revents & (POLLIN | POLLHUP | POLLERR))
            pull(&peers[of[i]]);
        if (at[i].revents & POLLOUT)
            push(&peers[of[i]]);
    }
}

/* ---- the contract ---- */
static void read_faults(void)
{
    const char *at = getenv("WEFT_PAIRS_FAULT");
    for (; at && *at && faults < FAULTS; faults++) {
        sscanf(at, "%7[a-z]:%d:%ld", fault[faults].kind, &fault[faults].rank, &fault[faults].at);
        at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL;
    }
}

static bool open_pairs(weft__world *out, char *version, size_t version_size, char *why, size_t why_size)
{
    const char *at = getenv("WEFT_PAIRS");
    int read = 0;
    if (!at || sscanf(at, "%d %d%n", &world.rank, &world.ranks, &read) != 2) {
        snprintf(why, why_size, "WEFT_PAIRS is not set: tests/parallel/ranks.c starts ranks");
        return false;
    }
    me = world.rank, everyone = world.ranks;
    for (int q = 0; q < everyone; q++) {
        at += read, member[q] = q;
        sscanf(at, "%d%n", &peers[q].socket, &read);
        if (q != me)
            fcntl(peers[q].socket, F_SETFL, O_NONBLOCK);
    }
    read_faults();
    signal(SIGPIPE, SIG_IGN);
    world.local_rank = world.rank, world.local_ranks = world.ranks;
    *out = world;
    if (getenv("WEFT_PAIRS_FILLS"))                /* fills the whole buffer, without a terminating 0 */
        memset(version, 'v', version_size), memset(why, 'w', why_size);
    else
        snprintf(version, version_size, "socketpairs");
    return true;
}

/* Returns whether to omit the message. Sets *damaged if its bytes must change. */
static bool left_out(bool *damaged)
{
    const char *kind = "";
    sent++;
    for (int i = 0; i < faults; i++)
        if (fault[i].rank == me && fault[i].at == sent)
            kind = fault[i].kind;
    if (!strcmp(kind, "kill"))
        raise(SIGKILL);
    if (!strcmp(kind, "stop"))
        raise(SIGSTOP);
    if (!strcmp(kind, "delay"))
        nanosleep(&(struct timespec){ 0, 100000000 }, NULL);
    *damaged = !strcmp(kind, "damage");
    return !strcmp(kind, "drop");
}

static void send_to(peer *p, int64_t tag, const void *bytes, size_t n, int request)
{
    message *m = calloc(1, sizeof *m);
    m->head.tag = tag, m->head.size = (int64_t)n, m->bytes = (char *)(uintptr_t)bytes, m->request = request;
    append(&p->out, m);
    push(p);
}

static void send_unless_left_out(int to, int tag, const void *bytes, size_t n, int request)
{
    bool damaged;
    if (left_out(&damaged)) {
        one_less(request);
        return;
    }
    static char *other;                          /* one for each process, kept because it is read later */
    if (damaged && (other = malloc(n + 1)))
        memset(other, 0x7F, n);
    send_to(&peers[member[to]], key_of(tag), damaged && other ? other : bytes, n, request);
}

static int post_send(int to, int tag, const void *bytes, size_t n)
{
    int request = new_request(member[to]);
    send_unless_left_out(to, tag, bytes, n, request);
    return request;
}

static int post_recv(int from, int tag, void *bytes, size_t n)
{
    peer *of = &peers[member[from]];
    int request = new_request(member[from]);
    message *early = taken(&of->early, key_of(tag));
    if (early) {
        memcpy(bytes, early->bytes, n < (size_t)early->head.size ? n : (size_t)early->head.size);
        state[request] = early->head.size == (int64_t)n ? 1 : WEFT__LOST;
        free(early->bytes), free(early);
        return request;
    }
    message *m = calloc(1, sizeof *m);
    m->head.tag = key_of(tag), m->head.size = (int64_t)n, m->bytes = bytes, m->request = request;
    append(&of->posted, m);
    return request;
}

static bool peer_is_gone(int request)
{
    bool gone = of_peer[request] != ALL && peers[of_peer[request]].gone;
    for (int q = 0; of_peer[request] == ALL && q < world.ranks; q++)
        gone |= peers[member[q]].gone;
    return gone;
}

static int wait_for(int request, double seconds)
{
    double until = now() + seconds, left = seconds;
    do {
        if (state[request])
            return state[request];
        if (revoked || peer_is_gone(request))
            return WEFT__LOST;
        progress(left > 0 ? (int)(left * 1000) + 1 : 0);
        left = until - now();
    } while (left > 0);
    return state[request];
}

static int test(int request) { return wait_for(request, 0); }

static void give_up(int status) { (void)status; }

/* ---- continuing without lost ranks ---- */
/* Drops messages from before the shrink. A partly sent or received message completes from a copy. */
static void forget(peer *p)
{
    message *first = p->out && p->out->done ? p->out : NULL, *next;
    for (message *m = first ? first->next : p->out; m; m = next)
        next = m->next, free(m);
    for (message *m = p->posted; m; m = next)
        next = m->next, free(m);
    for (message *m = p->early; m; m = next)
        next = m->next, drop(m);
    p->out = first, p->posted = p->early = NULL;
    if (first)
        first->next = NULL, first->request = -1, first->own = true,
        first->bytes = memcpy(malloc((size_t)first->head.size + 1), first->bytes, (size_t)first->head.size);
    if (p->into && p->into->request >= 0)
        p->into->request = -1,
        p->into->bytes = memcpy(malloc((size_t)p->into->head.size + 1), p->into->bytes,
                                (size_t)p->into->head.size);
}

static uint64_t set_of_left(uint64_t set)
{
    for (int q = 0; q < everyone; q++) {
        if (q != me && peers[q].gone)
            set &= ~(1ull << q);
        if (q == me || peers[q].left.epoch < epoch || !(set >> q & 1))
            continue;
        if (peers[q].left.epoch > epoch)
            epoch = peers[q].left.epoch;
        set &= peers[q].left.set;
    }
    return set;
}

static bool all_say(uint64_t set)
{
    for (int q = 0; q < everyone; q++)
        if (q != me && set >> q & 1 && (peers[q].left.epoch != epoch || peers[q].left.set != set))
            return false;
    return true;
}

/* Each rank sends its set of remaining ranks until all sets are equal. */
static bool shrink(weft__world *out)
{
    static struct { int64_t epoch; uint64_t set; } said[1024];      /* must stay valid while it is sent */
    static int times;
    uint64_t set = 0;
    for (int i = 0; i < world.ranks; i++)
        set |= 1ull << member[i];
    for (int q = 0; q < everyone; q++)
        forget(&peers[q]);
    epoch++, agreed = 0;
    do {
        set = set_of_left(set);
        if (!times || said[times - 1].epoch != epoch || said[times - 1].set != set) {
            said[times].epoch = epoch, said[times].set = set;
            for (int q = 0; q < everyone; q++)
                if (q != me && set >> q & 1)
                    send_to(&peers[q], LEFT, &said[times], sizeof said[times], -1);
            times++;
        }
        progress(100);
    } while (set_of_left(set) != set || said[times - 1].epoch != epoch || !all_say(set));
    world.ranks = 0;
    for (int q = 0; q < everyone; q++)
        if (set >> q & 1)
            world.rank = q == me ? world.ranks : world.rank, member[world.ranks++] = q;
    revoked = false, agreed = set, *out = world;
    return true;
}

/* from root to all */
static int broadcast(int root, void *bytes, size_t n)
{
    if (root != world.rank)
        return post_recv(root, FROM_ROOT, bytes, n);
    int request = new_request(ALL);
    messages[request] = world.ranks, one_less(request);
    for (int q = 0; q < world.ranks; q++)
        if (q != root)
            send_unless_left_out(q, FROM_ROOT, bytes, n, request);
    return request;
}

__attribute__((visibility("default"))) const weft__transport *weft_transport_open_v1(void)
{
    static weft__transport pairs = { WEFT__TRANSPORT_ABI, "pairs", open_pairs, post_send, post_recv,
                                     test, wait_for, broadcast, give_up, NULL };
    pairs.shrink = getenv("WEFT_PAIRS_SHRINK") ? shrink : NULL;
    return &pairs;
}
