/* gather.c - what has come of each sequence, bytes of any length, from the rank that has it to all, in the
 * batch's order.
 *
 * A rank's results are one piece of memory, entry after entry, each with the place in the batch. All ranks
 * hand out as much as the one that has most. What that takes is reserved before it is agreed on, so one
 * without memory tells the others; and a rank keeps its results until the next batch, so it can hand them out
 * again. */
#include <string.h>
#include "parallel/parallel.h"

static const char its_results[] = "results of the batch";

typedef struct entry { int64_t place, n; } entry;                 /* and n bytes, up to a whole entry */

static int64_t size_of(int64_t n)
{
    int64_t unit = sizeof(entry);
    return unit + (n + unit - 1) / unit * unit;
}

/* ---- this rank's ---- */
void weft__results_begin(weft_parallel *p)
{
    p->results.n = 0;
    p->results.known = false;
}

/* Behind what is there, room for more; NULL: no memory, and the context has failed. */
static char *behind(weft_parallel *p, int64_t more)
{
    weft__results *r = &p->results;
    if (r->n + more > r->put.bytes) {
        weft__room_of larger = { 0 };
        if (!weft__at_least(p->w, &larger, 2 * r->n + more))
            return NULL;
        if (r->n)
            memcpy(larger.at, r->put.at, (size_t)r->n);
        weft__release(p->w, r->put.at);
        r->put = larger;
    }
    return r->put.at + r->n;
}

/* Whether the sequence has a result, by its place; NULL without memory. */
static char *mark_of(weft_parallel *p, int64_t place)
{
    weft__results *r = &p->results;
    char *marks = weft__at_least(p->w, &r->marks, p->batch.n);
    if (marks && !r->n)
        memset(marks, 0, (size_t)p->batch.n);
    return marks ? marks + place : NULL;
}

/* Its place; -1: none, and the context has failed. */
static int64_t place_of(weft_parallel *p, int64_t i, const void *bytes, int64_t n)
{
    const weft__portion *b = &p->batch;
    bool at_work = p->state == WEFT__AT_SHARD || p->state == WEFT__ADDED;
    int64_t from = at_work ? b->start[p->at] : 0, all = at_work ? b->start[p->at + 1] - from : 0;
    if (!at_work)
        weft__fail(p->w, WEFT_EARG,
                   "parallel_put: no shard is at work; its results are put between two calls of "
                   "weft_parallel_next");
    else if (i < 0 || i >= all)
        weft__fail(p->w, WEFT_EARG, "parallel_put: sequence %lld of the shard; 0 .. %lld are expected",
                   (long long)i, (long long)all - 1);
    else if (n < 0 || n > INT32_MAX || (n && !bytes))
        weft__fail(p->w, WEFT_EARG, "parallel_put: %lld bytes%s of sequence %lld; 0 .. 2^31 - 1 are expected",
                   (long long)n, bytes ? "" : ", NULL,", (long long)i);
    return p->w->status ? -1 : b->place[from + i];
}

void weft_parallel_put(weft_parallel *p, int64_t i, const void *bytes, int64_t n)
{
    if (!p || !p->w || p->w->status)
        return;
    int64_t place = place_of(p, i, bytes, n);
    char *mark = place < 0 ? NULL : mark_of(p, place);
    if (mark && *mark)
        weft__fail(p->w, WEFT_EARG, "parallel_put: sequence %lld of the shard has a result already",
                   (long long)i);
    char *to = mark && !*mark ? behind(p, size_of(n)) : NULL;
    if (!to)
        return;
    *mark = 1;
    memset(to, 0, (size_t)size_of(n));
    memcpy(to, &(entry){ place, n }, sizeof(entry));
    if (n)
        memcpy(to + sizeof(entry), bytes, (size_t)n);
    p->results.n += size_of(n);
}

/* ---- of all ranks ---- */
void weft__results_said(weft_parallel *p)
{
    weft__results *r = &p->results;
    r->most = r->n;
    for (int q = 0; p->transport && q < p->world.ranks; q++) {
        int64_t n = (int64_t)((const double *)weft__said(p, q))[WEFT__PUT];
        r->most = n > r->most ? n : r->most;
    }
}

/* The entries of one rank, n bytes at most, of a batch of `all` sequences. False: they are damaged. */
static bool list(weft_parallel_result *table, int64_t all, const char *at, int64_t n)
{
    entry e;
    for (int64_t left = n; left >= (int64_t)sizeof e; left -= size_of(e.n), at += size_of(e.n)) {
        memcpy(&e, at, sizeof e);
        if (e.place < 0)
            return true;
        if (e.place >= all || e.n < 0 || e.n > left - (int64_t)sizeof e)
            return false;
        table[e.place] = (weft_parallel_result){ at + sizeof e, e.n };
    }
    return true;
}

static bool reserve(weft_parallel *p)
{
    weft__results *r = &p->results;
    int64_t all = r->most * p->world.ranks;
    bool fine = behind(p, r->most - r->n) &&
                weft__at_least(p->w, &r->table, p->batch.n * (int64_t)sizeof(weft_parallel_result));
    return fine && (!p->transport ||
                    (weft__at_least(p->w, &r->all, all) && weft__at_least(p->w, &p->said, all)));
}

bool weft__share_results(weft_parallel *p)
{
    weft__results *r = &p->results;
    weft_parallel_result *table;
    if (!r->most)
        return true;
    if (reserve(p))
        memset(r->put.at + r->n, 0xFF, (size_t)(r->most - r->n));         /* no entry has place -1 */
    if (!weft__agree(p, its_results, NULL, 0))
        return false;
    table = memset(r->table.at, 0, (size_t)p->batch.n * sizeof *table);
    if (!p->transport)
        list(table, p->batch.n, r->put.at, r->n);
    else if (!weft__hand_out(p, its_results, r->put.at, r->most))
        return false;
    for (int q = 0; p->transport && q < p->world.ranks; q++) {
        char *there = r->all.at + q * r->most;
        if (!list(table, p->batch.n, memcpy(there, weft__said(p, q), (size_t)r->most), r->most)) {
            weft__fail(p->w, WEFT_EFORMAT, "%s: those of rank %d are damaged", its_results, q);
            return false;
        }
    }
    return r->known = true;
}

const weft_parallel_result *weft_parallel_gathered(const weft_parallel *p, int64_t *n)
{
    bool known = p && p->w && p->results.known;
    if (n)
        *n = known ? p->batch.n : 0;
    return known ? (const weft_parallel_result *)(const void *)p->results.table.at : NULL;
}

void weft__results_end(weft_parallel *p)
{
    weft__results *r = &p->results;
    void *const all[] = { r->put.at, r->marks.at, r->all.at, r->table.at };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        weft__release(p->w, all[i]);
}
