/* gather.c - sends the result of each sequence, bytes of any length, to all ranks, in the batch's order.
 *
 * The results of a rank are entries in one buffer, each with its place in the batch. Each rank sends
 * the size of the largest of these buffers. The memory is reserved before the ranks agree, so a rank without
 * memory can report it. A rank keeps its results until the next batch, so it can send them again after a
 * loss. */
#include <string.h>
#include "parallel/parallel.h"

static const char its_results[] = "results of the batch";

typedef struct entry { int64_t place, n; } entry;  /* followed by n bytes, rounded up to whole entries */

static int64_t size_of(int64_t n)
{
    int64_t unit = sizeof(entry);
    return unit + (n + unit - 1) / unit * unit;
}

/* ---- the results of this rank ---- */
/* Reserves `more` bytes after the results stored so far. NULL: memory is short, and the context has
 * failed. */
static char *reserve_after(weft_parallel *p, int64_t more)
{
    weft__results *r = &p->results;
    if (r->n + more > r->put.bytes) {
        weft__buffer larger = { 0 };
        if (!weft__reserve(p->w, &larger, 2 * r->n + more))
            return NULL;
        if (r->n)
            memcpy(larger.at, r->put.at, (size_t)r->n);
        weft__release(p->w, r->put.at);
        r->put = larger;
    }
    return r->put.at + r->n;
}

/* Returns the mark of a place: whether it has a result. NULL if memory is short. */
static char *mark_of(weft_parallel *p, int64_t place)
{
    weft__results *r = &p->results;
    char *marks = weft__reserve(p->w, &r->marks, p->batch.n);
    if (marks && !r->n)
        memset(marks, 0, (size_t)p->batch.n);
    return marks ? marks + place : NULL;
}

/* Returns the place of sequence i of the shard; -1 and a failed context if an argument is wrong. */
static int64_t place_of(weft_parallel *p, int64_t i, const void *bytes, int64_t n)
{
    const weft__portion *b = &p->batch;
    bool at_work = p->state == WEFT__AT_SHARD || p->state == WEFT__ADDED;
    int64_t from = at_work ? b->start[p->current] : 0, all = at_work ? b->start[p->current + 1] - from : 0;
    if (!at_work)
        weft__fail(p->w, WEFT_EARG,
                   "parallel_put: no shard is in progress; expected a call between two calls of "
                   "weft_parallel_next");
    else if (i < 0 || i >= all)
        weft__fail(p->w, WEFT_EARG, "parallel_put: sequence %lld of the shard; expected 0 .. %lld",
                   (long long)i, (long long)all - 1);
    else if (n < 0 || n > INT32_MAX || (n && !bytes))
        weft__fail(p->w, WEFT_EARG, "parallel_put: %lld bytes%s of sequence %lld; expected 0 .. 2^31 - 1",
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
        weft__fail(p->w, WEFT_EARG, "parallel_put: sequence %lld of the shard already has a result; expected "
                                    "one for each sequence",
                   (long long)i);
    char *to = mark && !*mark ? reserve_after(p, size_of(n)) : NULL;
    if (!to)
        return;
    *mark = 1;
    memset(to, 0, (size_t)size_of(n));
    memcpy(to, &(entry){ place, n }, sizeof(entry));
    if (n)
        memcpy(to + sizeof(entry), bytes, (size_t)n);
    p->results.n += size_of(n);
}

/* ---- the results of all ranks ---- */
void weft__results_measure(weft_parallel *p)
{
    weft__results *r = &p->results;
    r->part_size = r->n;
    for (int q = 0; p->transport && q < p->world.ranks; q++) {
        int64_t n = (int64_t)((const double *)weft__words_of(p, q))[WEFT__PUT];
        r->part_size = n > r->part_size ? n : r->part_size;
    }
}

/* Enters the results of one rank, at most n bytes, into the table of `all` sequences. Returns false if they
 * are damaged. */
static bool list(weft_parallel_result *table, int64_t all, const char *bytes, int64_t n)
{
    entry e;
    for (int64_t remaining = n; remaining >= (int64_t)sizeof e;
         remaining -= size_of(e.n), bytes += size_of(e.n)) {
        memcpy(&e, bytes, sizeof e);
        if (e.place < 0)
            return true;
        if (e.place >= all || e.n < 0 || e.n > remaining - (int64_t)sizeof e)
            return false;
        table[e.place] = (weft_parallel_result){ bytes + sizeof e, e.n };
    }
    return true;
}

static bool reserve(weft_parallel *p)
{
    weft__results *r = &p->results;
    int64_t all = r->part_size * p->world.ranks;
    bool ok = reserve_after(p, r->part_size - r->n) &&
              weft__reserve(p->w, &r->table, p->batch.n * (int64_t)sizeof(weft_parallel_result));
    return ok && (!p->transport ||
                  (weft__reserve(p->w, &r->gathered, all) && weft__reserve(p->w, &p->inbox, all)));
}

bool weft__share_results(weft_parallel *p)
{
    weft__results *r = &p->results;
    weft_parallel_result *table;
    if (!r->part_size)
        return true;
    if (reserve(p))
        memset(r->put.at + r->n, 0xFF, (size_t)(r->part_size - r->n));  /* fills the rest with place
                                                                         * -1, which ends the list */
    if (!weft__agree(p, its_results, NULL, 0))
        return false;
    table = memset(r->table.at, 0, (size_t)p->batch.n * sizeof *table);
    if (!p->transport)
        list(table, p->batch.n, r->put.at, r->n);
    else if (!weft__hand_out(p, its_results, r->put.at, r->part_size))
        return false;
    for (int q = 0; p->transport && q < p->world.ranks; q++) {
        char *part = r->gathered.at + q * r->part_size;
        if (!list(table, p->batch.n, memcpy(part, weft__words_of(p, q), (size_t)r->part_size),
                  r->part_size)) {
            weft__fail(p->w, WEFT_EFORMAT, "%s: the data of rank %d are damaged", its_results, q);
            return false;
        }
    }
    return r->complete = true;
}

const weft_parallel_result *weft_parallel_gathered(const weft_parallel *p, int64_t *n)
{
    bool known = p && p->w && p->results.complete;
    if (n)
        *n = known ? p->batch.n : 0;
    return known ? (const weft_parallel_result *)(const void *)p->results.table.at : NULL;
}
