/* exchange.c - from each rank's branches to the sum of all shards, along the one tree, whoever has which
 * shard.
 *
 * Every rank owns a piece of the vector. It gets that piece of all branches that the others have, adds them
 * up as the tree says, and hands the sum out: as many bytes as an all-reduce by reduce-scatter and all-gather
 * takes (Rabenseifner 2004), if each rank's shards are one branch. A short vector goes to all as a whole, and
 * each adds it up by itself. */
#include <string.h>
#include "parallel/parallel.h"

enum { GRADIENTS = 16, SUMS_OUT = 8, ALIGN = 16, SHORT = 8192 };     /* tags; numbers */

typedef struct term { weft__branch branch; real *x; } term;       /* a branch, and its numbers of a piece */

typedef struct exchange {
    weft_parallel *p;
    bool whole;                                  /* every rank's piece is all of it */
    real *sum;                                  /* [n] on the host: this rank's last branch, and the result */
    int terms, requests;
    term *term; weft__request *request;
} exchange;

/* ---- pieces ---- */
static int64_t piece_from(const exchange *x, int rank)
{
    int64_t n = x->p->n, ranks = x->p->world.ranks;
    return x->whole ? 0 : rank == ranks ? n : n * rank / ranks / ALIGN * ALIGN;
}
static int64_t piece_size(const exchange *x, int rank)
{
    return x->whole ? x->p->n : piece_from(x, rank + 1) - piece_from(x, rank);
}

/* ---- memory: terms of others, on a device one's own, too ---- */
static int branches_of(const weft_parallel *p, int rank, weft__branch out[WEFT__BRANCHES])
{
    return weft__tree_parts(p->shards, weft__shards_of(p->shards, rank, p->world.ranks), out);
}

/* bytes of a term of others, of one's own, of the lists of terms and requests */
typedef struct { int64_t size, own, lists, posts; } room;

/* In stage: room for own numbers, for the others' terms, for the lists; NULL without memory. */
static char *take_room(const exchange *x, room *r)
{
    weft_parallel *p = x->p;
    weft__branch b[WEFT__BRANCHES];
    int ranks = p->world.ranks, mine = branches_of(p, p->world.rank, b), others = -mine;
    for (int q = 0; q < ranks; q++)
        others += branches_of(p, q, b);
    bool device = !p->w->dev.k->synchronous;
    *r = (room){ weft__whole_lines(piece_size(x, p->world.rank) * (int64_t)sizeof(real)),
                 device ? weft__whole_lines(p->n * (int64_t)sizeof(real)) : 0,
                 weft__whole_lines((others + mine) * (int64_t)sizeof *x->term),
                 (others + mine * (int64_t)ranks) * (int64_t)sizeof *x->request };
    return weft__at_least(p->w, &p->stage, mine * r->own + others * r->size + r->lists + r->posts);
}

static exchange exchange_of(weft_parallel *p) { return (exchange){ .p = p, .whole = p->n <= SHORT }; }

bool weft__exchange_room(weft_parallel *p)
{
    exchange x = exchange_of(p);
    room r;
    return !p->transport || !p->n || take_room(&x, &r);
}

static bool begin(exchange *x)
{
    weft_parallel *p = x->p;
    weft__branch b[WEFT__BRANCHES];
    room r;
    char *at = take_room(x, &r);
    if (!at)
        return false;
    bool device = r.own;
    x->term = (term *)(void *)at, at += r.lists;
    int ranks = p->world.ranks, mine = branches_of(p, p->world.rank, b);
    for (int i = 0; i < mine; i++, at += r.own) {
        real *there = i + 1 < mine ? p->level[i] : p->module->root->gradients + p->from;
        if (device)
            p->w->dev.k->download(&p->w->dev, at, there, (size_t)p->n * sizeof(real));
        x->term[i] = (term){ b[i], device ? (real *)(void *)at : there };
    }
    x->terms = mine, x->sum = x->term[mine - 1].x;
    for (int q = 0; q < ranks; q++)
        for (int i = 0, n = q == p->world.rank ? 0 : branches_of(p, q, b); i < n; i++, at += r.size)
            x->term[x->terms++] = (term){ b[i], (real *)(void *)at };
    x->request = (weft__request *)(void *)at;
    return !p->w->status;
}

/* ---- messages ---- */
static void post(exchange *x, bool send, int peer, int tag, real *at, int64_t n)
{
    const weft__transport *t = x->p->transport;
    size_t bytes = (size_t)n * sizeof *at;
    int number = send ? t->post_send(peer, tag, at, bytes) : t->post_recv(peer, tag, at, bytes);
    x->request[x->requests++] = (weft__request){ number, peer };
}

static bool finish(exchange *x, const char *what)
{
    bool fine = weft__await(x->p, what, x->request, x->requests);
    x->requests = 0;
    return fine;
}

/* Every rank's terms to the owners of their pieces, neighbours first. */
static bool hand_in(exchange *x)
{
    weft_parallel *p = x->p;
    weft__branch b[WEFT__BRANCHES];
    int here = p->world.rank, ranks = p->world.ranks, mine = p->done;
    term *theirs = x->term + mine;
    for (int q = 0; q < ranks; q++)
        for (int i = 0, n = q == here ? 0 : branches_of(p, q, b); i < n; i++)
            post(x, false, q, GRADIENTS + i, (theirs++)->x, piece_size(x, here));
    for (int d = 1; d < ranks; d++)
        for (int i = 0, q = (here + d) % ranks; i < mine; i++)
            post(x, true, q, GRADIENTS + i, x->term[i].x + piece_from(x, q), piece_size(x, q));
    return finish(x, "gradients of the batch");
}

static bool hand_out(exchange *x)
{
    weft_parallel *p = x->p;
    int here = p->world.rank, ranks = p->world.ranks;
    for (int d = 1; d < ranks; d++) {
        int q = (here + ranks - d) % ranks;
        post(x, false, q, SUMS_OUT, x->sum + piece_from(x, q), piece_size(x, q));
    }
    for (int d = 1; d < ranks; d++)
        post(x, true, (here + d) % ranks, SUMS_OUT, x->sum + piece_from(x, here), piece_size(x, here));
    return finish(x, "sums of the batch");
}

/* ---- the tree ---- */
static real *sum_of(exchange *x, weft__branch tree, int64_t n)
{
    for (int i = 0; i < x->terms; i++)
        if (x->term[i].branch.from == tree.from && x->term[i].branch.end == tree.end)
            return x->term[i].x;
    int middle = weft__tree_middle(tree);
    real *left = sum_of(x, (weft__branch){ tree.from, middle }, n);
    weft__add(n, left, sum_of(x, (weft__branch){ middle, tree.end }, n));
    return left;
}

static void add_up(exchange *x)
{
    const weft_parallel *p = x->p;
    int64_t from = piece_from(x, p->world.rank), n = piece_size(x, p->world.rank);
    for (int i = 0; i < p->done; i++)
        x->term[i].x += from;                    /* of one's own the whole is there */
    real *sum = sum_of(x, (weft__branch){ 0, p->shards }, n), *to = x->sum + from;
    if (sum != to)
        memcpy(to, sum, (size_t)n * sizeof *to);
}

bool weft__exchange(weft_parallel *p)
{
    exchange x = exchange_of(p);
    if (!p->transport || !p->n)
        return true;
    if (!begin(&x) || !hand_in(&x))
        return false;
    add_up(&x);
    if (!x.whole && !hand_out(&x))
        return false;
    weft__device *d = &p->w->dev;
    if (!d->k->synchronous)
        d->k->upload(d, p->module->root->gradients + p->from, x.sum, (size_t)p->n * sizeof(real));
    return true;
}
