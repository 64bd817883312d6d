/* pairs.c - a transport for tests: ranks are processes of one machine, a socketpair between each two, started
 * by ranks.c, which says in WEFT_PAIRS which rank this is, of how many, and the socket to each. Every message
 * is its tag, its size, its bytes. WEFT_PAIRS_FAULT=kill:2:17 lets rank 2 die when it sends its 17th message;
 * stop stops it, drop leaves that message out, delay waits a tenth of a second. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "parallel/transport.h"

enum { MOST = 64 };

typedef struct message {
    struct message *next;
    struct { int64_t tag, size; } head;
    char *bytes;
    size_t done;                                 /* of head and bytes */
    int request;                                 /* -1: no one waits for it yet */
} message;

typedef struct peer {
    int socket; bool gone;
    message *out, *posted, *early;               /* to be sent; awaited; came before it was */
    message in; message *into;                   /* under way; into: the one that waits for it */
} peer;

static weft__world world;
static peer peers[MOST];
static struct { char kind[8]; int rank; long at, sent; } fault;
static signed char *state; static int *of_peer, requests, room;   /* by request: over or not; its peer */

/* ---- lists ---- */
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
    }
    state[requests] = 0, of_peer[requests] = of;
    return requests++;
}

static void over(message *m)
{
    if (m->request >= 0)
        state[m->request] = 1;
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
    p->into = taken(&p->posted, p->in.head.tag);
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

/* An early one, of which the head had come before someone asked for it. */
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

static void end_payload(peer *p)
{
    if (p->into->request < 0)
        hand_over(p, p->into);
    else
        over(p->into);
    p->into = NULL, p->in.done = 0;
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
    struct pollfd all[MOST];
    int n = 0, of[MOST];
    for (int q = 0; q < world.ranks; q++)
        if (q != world.rank && !peers[q].gone)
            of[n] = q,
            all[n++] = (struct pollfd){ peers[q].socket, (short)(POLLIN | (peers[q].out ? POLLOUT : 0)), 0 };
    if (poll(all, (nfds_t)n, milliseconds) <= 0)
        return;
    for (int i = 0; i < n; i++) {
        if (all[i].revents & (POLLIN | POLLHUP | POLLERR))
            pull(&peers[of[i]]);
        if (all[i].revents & POLLOUT)
            push(&peers[of[i]]);
    }
}

/* ---- the contract ---- */
static bool open_pairs(weft__world *out, char *version, char *why, size_t size)
{
    const char *at = getenv("WEFT_PAIRS"), *wanted = getenv("WEFT_PAIRS_FAULT");
    int read = 0;
    if (!at || sscanf(at, "%d %d%n", &world.rank, &world.ranks, &read) != 2) {
        snprintf(why, size, "WEFT_PAIRS is not set: tests/parallel/ranks.c starts ranks");
        return false;
    }
    for (int q = 0; q < world.ranks; q++) {
        at += read;
        sscanf(at, "%d%n", &peers[q].socket, &read);
        if (q != world.rank)
            fcntl(peers[q].socket, F_SETFL, O_NONBLOCK);
    }
    if (wanted)
        sscanf(wanted, "%7[a-z]:%d:%ld", fault.kind, &fault.rank, &fault.at);
    signal(SIGPIPE, SIG_IGN);
    world.local_rank = world.rank, world.local_ranks = world.ranks;
    *out = world;
    strcpy(version, "socketpairs");
    return true;
}

static bool left_out(void)
{
    if (++fault.sent != fault.at || fault.rank != world.rank)
        return false;
    if (!strcmp(fault.kind, "kill"))
        raise(SIGKILL);
    if (!strcmp(fault.kind, "stop"))
        raise(SIGSTOP);
    if (!strcmp(fault.kind, "delay"))
        nanosleep(&(struct timespec){ 0, 100000000 }, NULL);
    return !strcmp(fault.kind, "drop");
}

static int post_send(int to, int tag, const void *bytes, size_t n)
{
    int request = new_request(to);
    if (left_out()) {
        state[request] = 1;
        return request;
    }
    message *m = calloc(1, sizeof *m);
    m->head.tag = tag, m->head.size = (int64_t)n, m->bytes = (char *)(uintptr_t)bytes, m->request = request;
    append(&peers[to].out, m);
    push(&peers[to]);
    return request;
}

static int post_recv(int from, int tag, void *bytes, size_t n)
{
    int request = new_request(from);
    message *early = taken(&peers[from].early, tag);
    if (early) {
        memcpy(bytes, early->bytes, n < (size_t)early->head.size ? n : (size_t)early->head.size);
        state[request] = early->head.size == (int64_t)n ? 1 : WEFT__LOST;
        free(early->bytes), free(early);
        return request;
    }
    message *m = calloc(1, sizeof *m);
    m->head.tag = tag, m->head.size = (int64_t)n, m->bytes = bytes, m->request = request;
    append(&peers[from].posted, m);
    return request;
}

static int wait_for(int request, double seconds)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double until = (double)now.tv_sec + (double)now.tv_nsec * 1e-9 + seconds, left = seconds;
    do {
        if (state[request])
            return state[request];
        if (peers[of_peer[request]].gone)
            return WEFT__LOST;
        progress(left > 0 ? (int)(left * 1000) + 1 : 0);
        clock_gettime(CLOCK_MONOTONIC, &now);
        left = until - ((double)now.tv_sec + (double)now.tv_nsec * 1e-9);
    } while (left > 0);
    return state[request];
}

static int test(int request) { return wait_for(request, 0); }

static void give_up(int status) { (void)status; }

/* Not needed: the library broadcasts by messages. */
static int broadcast(int root, void *bytes, size_t n) { (void)root, (void)bytes, (void)n; return -1; }

__attribute__((visibility("default"))) const weft__transport *weft_transport_open_v1(void)
{
    static const weft__transport pairs = { WEFT__TRANSPORT_ABI, "pairs", open_pairs, post_send, post_recv,
                                           test, wait_for, broadcast, give_up, NULL };
    return &pairs;
}
