/* exchange.c - adds up the gradients of all shards along one tree, with any number of ranks.
 *
 * The vector is cut into a few chunks, from its end on, because the gradients of late layers are final
 * first. Each rank owns a piece of every chunk. It receives that piece of all branches of the others, adds
 * them in the order of the tree, and sends the sum to all. If the shards of each rank are one branch, this
 * sends the bytes of an all-reduce by reduce-scatter and all-gather (Rabenseifner 2004).
 *
 * A chunk can leave before the backward pass ends, see overlap.c. The cuts depend on the length of the
 * vector and the number of ranks, never on time. A short vector is sent whole to all, and each rank adds it
 * up: one round of messages instead of two, and with two ranks no more bytes. */
#include <string.h>
#include "parallel/parallel.h"

enum { GRADIENTS = 16, SUMS_OUT = 8, ALIGN = 16, SHORT = 16384, PIECE = 32768 };  /* tags; numbers of reals */

/* A branch and its numbers: all of them for a branch of this rank, otherwise the pieces that this rank
 * owns. */
typedef struct weft__term { weft__branch branch; real *x; } term;
typedef weft__transfer transfer;

/* ---- chunks and pieces ---- */
static int64_t cut(int64_t n, int64_t part, int64_t parts)
{
    return part == parts ? n : n / ALIGN * part / parts * ALIGN;
}

static int64_t chunk_from(const transfer *x, int chunk)
{
    return cut(x->n, x->chunks - 1 - chunk, x->chunks);
}
static int64_t chunk_size(const transfer *x, int chunk)
{
    return cut(x->n, x->chunks - chunk, x->chunks) - chunk_from(x, chunk);
}

static int64_t piece_from(const transfer *x, int chunk, int rank)
{
    return chunk_from(x, chunk) + (x->whole ? 0 : cut(chunk_size(x, chunk), rank, x->ranks));
}
static int64_t piece_size(const transfer *x, int chunk, int rank)
{
    int64_t n = chunk_size(x, chunk);
    return x->whole ? n : cut(n, rank + 1, x->ranks) - cut(n, rank, x->ranks);
}

/* Divides p's numbers into chunks, and each chunk into one piece for every rank. Pieces have PIECE numbers or
 * more, so that latency does not dominate a message. A link has one chunk, because a GPU would process chunks
 * one after another. */
static void cut_up(transfer *x, weft_parallel *p)
{
    int ranks = p->world.ranks;
    int64_t most = p->n / ((int64_t)PIECE * ranks);
    *x = (transfer){ .p = p, .n = p->n, .ranks = ranks, .whole = p->n * (ranks - 1) <= SHORT };
    x->chunks = x->whole || p->link || most < 1 ? 1 : most < WEFT__CHUNKS ? (int)most : WEFT__CHUNKS;
    for (int c = 0; c < x->chunks; c++)
        x->offset[c + 1] = x->offset[c] + piece_size(x, c, p->world.rank);
}

/* ---- memory: the terms of other ranks, and on a GPU a copy of this rank's own ---- */
static int branches_of(const weft_parallel *p, int rank, weft__branch out[WEFT__BRANCHES])
{
    return weft__tree_parts(p->shards, weft__shards_of(p->shards, rank, p->world.ranks), out);
}

/* Bytes of a term of another rank, of one of this rank, and of the list of terms; requests of a chunk. */
typedef struct { int64_t size, own, terms; int requests; } room;

/* Reserves `stage` for own numbers, the terms of others, and the lists. With a link the numbers are in device
 * memory. Returns NULL if memory is short. */
static char *take_room(const transfer *x, room *r)
{
    weft_parallel *p = x->p;
    weft__branch b[WEFT__BRANCHES];
    int ranks = p->world.ranks, own = branches_of(p, p->world.rank, b), others = -own;
    for (int q = 0; q < ranks; q++)
        others += branches_of(p, q, b);
    *r = (room){ weft__whole_lines(x->offset[x->chunks] * (int64_t)sizeof(real)),
                 p->w->dev.k->synchronous || p->link ? 0 : weft__whole_lines(p->n * (int64_t)sizeof(real)),
                 weft__whole_lines((others + own) * (int64_t)sizeof(term)), others + own * ranks };
    int64_t received = others * r->size;
    if (p->link && !weft__device_reserve(p->w, &p->linked.terms, received))
        return NULL;
    return weft__reserve(p->w, &p->stage,
                          own * r->own + (p->link ? 0 : received) + r->terms +
                              x->chunks * r->requests * (int64_t)sizeof *x->request);
}

bool weft__exchange_reserve(weft_parallel *p)
{
    transfer x;
    room r;
    if (!p->transport || !p->n || p->transfer.begun)
        return true;
    cut_up(&x, p);
    return take_room(&x, &r);
}

/* Advances the exchange of gradients while a rank waits for something else. */
static bool advance(weft_parallel *p)
{
    bool open = weft__transfer_is_open(p);
    if (open)
        weft__transfer_step(p, false);
    return open;
}

bool weft__transfer_begin(weft_parallel *p)
{
    transfer *x = &p->transfer;
    weft__branch b[WEFT__BRANCHES];
    room r;
    if (x->begun)
        return true;
    cut_up(x, p);
    char *memory = take_room(x, &r);
    if (!memory)
        return false;
    p->meanwhile = advance;
    x->base = p->module->root->gradients + p->from;
    x->term = (term *)(void *)memory;
    memory += r.terms;
    int ranks = p->world.ranks, own = branches_of(p, p->world.rank, b);
    for (int i = 0; i < own; i++, memory += r.own) {
        real *buffer = i + 1 < own && p->level[i] ? p->level[i] : x->base;     /* a level is missing only if
                                                                                * all ranks have failed */
        if (r.own)
            p->w->dev.k->download(&p->w->dev, memory, buffer, (size_t)p->n * sizeof(real));
        x->term[i] = (term){ b[i], r.own ? (real *)(void *)memory : buffer };
    }
    x->terms = x->own_terms = own;
    x->sum = x->term[own - 1].x;
    char *buffer = p->link ? p->linked.terms.at : memory;
    for (int q = 0; q < ranks; q++)
        for (int i = 0, n = q == p->world.rank ? 0 : branches_of(p, q, b); i < n; i++, buffer += r.size)
            x->term[x->terms++] = (term){ b[i], (real *)(void *)buffer };
    x->request = (weft__request *)(void *)(p->link ? memory : buffer);
    x->room = r.requests;
    return x->begun = true;                      /* also in a failed context, because the others wait */
}

/* ---- messages ---- */
static void post(transfer *x, int chunk, bool send, int peer, int tag, real *numbers, int64_t n)
{
    if (x->p->link) {
        weft__link_post(x->p, send, peer, numbers, n);
        return;
    }
    const weft__transport *t = x->p->transport;
    size_t bytes = (size_t)n * sizeof *numbers;
    int number = send ? t->post_send(peer, tag, numbers, bytes) : t->post_recv(peer, tag, numbers, bytes);
    x->request[chunk * x->room + x->requests[chunk]++] = (weft__request){ number, peer };
}

/* On a link, the posts between the two calls form one group. */
static void group(transfer *x, bool begins)
{
    if (x->p->link)
        weft__link_group(x->p, begins);
}

/* Sends every term of this rank's next chunk to the owners of the pieces, neighbours first. */
void weft__transfer_post(weft_parallel *p)
{
    transfer *x = &p->transfer;
    weft__branch b[WEFT__BRANCHES];
    int rank = p->world.rank, ranks = p->world.ranks, chunk = x->posted++;
    term *received = x->term + x->own_terms;
    group(x, true);
    for (int q = 0; q < ranks; q++)
        for (int i = 0, n = q == rank ? 0 : branches_of(p, q, b); i < n; i++)
            post(x, chunk, false, q, GRADIENTS + i, (received++)->x + x->offset[chunk],
                 piece_size(x, chunk, rank));
    for (int d = 1; d < ranks; d++)
        for (int i = 0, q = (rank + d) % ranks; i < x->own_terms; i++)
            post(x, chunk, true, q, GRADIENTS + i, x->term[i].x + piece_from(x, chunk, q),
                 piece_size(x, chunk, q));
    group(x, false);
}

static void hand_out(transfer *x, int chunk)
{
    int rank = x->p->world.rank, ranks = x->p->world.ranks;
    group(x, true);
    for (int d = 1; d < ranks; d++) {
        int q = (rank + ranks - d) % ranks;
        post(x, chunk, false, q, SUMS_OUT, x->sum + piece_from(x, chunk, q),
             piece_size(x, chunk, q));
    }
    for (int d = 1; d < ranks; d++)
        post(x, chunk, true, (rank + d) % ranks, SUMS_OUT, x->sum + piece_from(x, chunk, rank),
             piece_size(x, chunk, rank));
    group(x, false);
}

/* Returns whether the messages of the chunk have arrived; wait: waits for them. */
static bool await_chunk(transfer *x, int chunk, const char *operation, bool wait)
{
    if (x->p->link)
        return wait && weft__link_taken(x->p, operation);
    weft__request *r = x->request + chunk * x->room;
    int n = x->requests[chunk], *over = &x->ended[chunk];
    if (wait && !weft__await(x->p, operation, r + *over, n - *over))
        return false;
    for (; !wait && *over < n; ++*over) {
        int state = r[*over].number < 0 ? WEFT__LOST : x->p->transport->test(r[*over].number);
        if (state < 0) {
            x->broken = true;
            x->lost_rank = r[*over].peer;
        }
        if (state != 1)
            return false;
    }
    x->requests[chunk] = *over = 0;
    return true;
}

/* ---- the tree ---- */
static real *numbers(const transfer *x, int i, int chunk)
{
    return x->term[i].x +
           (i < x->own_terms ? piece_from(x, chunk, x->p->world.rank) : x->offset[chunk]);
}

/* Adds the terms of a tree and returns the place of the sum. A sum is written over its left term, or over
 * `to` if that is one of the two; the bits are the same. */
static real *sum_of(transfer *x, int chunk, weft__branch tree, int64_t n, const real *to)
{
    for (int i = 0; i < x->terms; i++)
        if (x->term[i].branch.from == tree.from && x->term[i].branch.end == tree.end)
            return numbers(x, i, chunk);
    int middle = weft__tree_middle(tree);
    real *left = sum_of(x, chunk, (weft__branch){ tree.from, middle }, n, to),
         *right = sum_of(x, chunk, (weft__branch){ middle, tree.end }, n, to),
         *into = right == to ? right : left;
    weft__add(x->p, n, into, into == left ? right : left);
    return into;
}

/* Adds up the next chunk. Returns false if its numbers have not arrived, or never will. */
bool weft__transfer_step(weft_parallel *p, bool wait)
{
    transfer *x = &p->transfer;
    int chunk = x->summed;
    if (chunk == x->posted || x->broken || !await_chunk(x, chunk, "gradients of the batch", wait))
        return false;
    int64_t n = piece_size(x, chunk, p->world.rank);
    real *to = x->sum + piece_from(x, chunk, p->world.rank),
         *sum = sum_of(x, chunk, (weft__branch){ 0, p->shards }, n, to);
    weft__device *d = &p->w->dev;
    if (sum != to && p->link)
        d->k->copy(d, to, sum, (size_t)n * sizeof *to);
    else if (sum != to)
        memcpy(to, sum, (size_t)n * sizeof *to);
    if (!x->whole)
        hand_out(x, chunk);
    x->summed++;
    return true;
}

/* Sends all pieces to their owners, and all sums back. */
static bool exchange_pieces(weft_parallel *p)
{
    transfer *x = &p->transfer;
    while (x->posted < x->chunks)
        weft__transfer_post(p);
    x->blocked = true;
    while (x->summed < x->chunks)
        if (!weft__transfer_step(p, true))
            return false;
    for (int c = 0; c < x->chunks; c++)
        if (!await_chunk(x, c, "sums of the batch", true))
            return false;
    return true;
}

bool weft__exchange(weft_parallel *p)
{
    transfer *x = &p->transfer;
    weft__device *d = &p->w->dev;
    if (!p->transport || !p->n)
        return true;
    if (!weft__transfer_begin(p)) {  /* all ranks have agreed, so the others would wait without end */
        weft__end_job(p, "gradients of the batch");
        return false;
    }
    if (p->link)
        weft__link_watch(p);
    if (!(weft__can_halve(p) ? weft__exchange_halves(p) : exchange_pieces(p)))
        return false;
    if (p->link && !weft__link_done(p, "sums of the batch"))
        return false;
    if (!d->k->synchronous && !p->link)
        d->k->upload(d, p->module->root->gradients + p->from, x->sum, (size_t)p->n * sizeof(real));
    x->begun = false;
    return true;
}

int64_t weft__chunk_of(const weft_parallel *p, int64_t index)      /* the chunk that contains a number */
{
    const transfer *x = &p->transfer;
    int chunk = 0;
    while (chunk + 1 < x->chunks && index < chunk_from(x, chunk))
        chunk++;
    return chunk;
}
int64_t weft__chunk_from(const weft_parallel *p, int chunk) { return chunk_from(&p->transfer, chunk); }
