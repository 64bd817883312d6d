/* batches.c - planners of whole sequences with a limit on sequences, tokens or padded cells: in order,
 * sorted, random, in pools. */
#include "plan/planners.h"

enum { POOL = 50 }; /* batches of a pool by default, as in the loader */

/* ---- limits ---- */
typedef struct {
    const weft_plan_opts *o;
    const int32_t *len;
    int64_t count, tokens;
} batch;

/* Adds a sequence. Returns true if it starts a new batch, because the old one would exceed a limit. */
static bool begins(batch *b, int32_t sequence)
{
    int64_t length = b->len[sequence];
    bool full = b->count && ((b->o->count && b->count + 1 > b->o->count) ||
                             (b->o->tokens && b->tokens + length > b->o->tokens));
    b->count = full ? 1 : b->count + 1;
    b->tokens = full ? length : b->tokens + length;
    return full;
}

/* Cuts an order into batches within the limits. order NULL: memory was short. */
static weft_status cut_at_limits(weft_plan *p, const weft_plan_opts *o, const int32_t *len,
                                 const int32_t *order, int64_t n)
{
    batch b = { o, len, 0, 0 };
    weft_status s = order ? WEFT_OK : WEFT_ENOMEM;
    for (int64_t i = 0; i < n && s == WEFT_OK; i++) {
        s = begins(&b, order[i]) ? weft__plan_end_whole(p) : WEFT_OK;
        s = s == WEFT_OK ? weft__plan_add_whole(p, len, order[i]) : s;
    }
    return s == WEFT_OK && n ? weft__plan_end_whole(p) : s;
}

static weft_status check_limits(const weft_plan_opts *o, const char *planner)
{
    return o->count || o->tokens ?
               WEFT_OK :
               weft_plan_refuse(WEFT_EARG, "%s: count and tokens are missing; expected one of them", planner);
}

/* ---- in one order ---- */
weft_status weft__planner_order(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    weft_status s = check_limits(o, "order");
    if (s != WEFT_OK)
        return s;
    s = cut_at_limits(p, o, len, weft__plan_order(n), n);
    return s == WEFT_OK ? weft__plan_shuffle_batches(o, p) : s;
}

weft_status weft__planner_sorted(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    weft_status s = cut_at_limits(p, o, len, weft__plan_sorted(o, len, n, false), n);
    return s == WEFT_OK ? weft__plan_shuffle_batches(o, p) : s;
}

weft_status weft__planner_random(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    int32_t *order = weft__plan_order(n);
    if (order)
        weft_stream_permutation(o->stream, n, order);
    return cut_at_limits(p, o, len, order, n);
}

/* ---- pools ---- */
/* Returns the end of the pool that begins at `from`: the first sequence of the next pool. */
static int64_t end_of_pool(const weft_plan_opts *o, const int32_t *len, const int32_t *order, int64_t from,
                           int64_t n)
{
    batch b = { o, len, 0, 0 };
    int64_t batches = 0, end = from, most = o->pool ? o->pool : POOL;
    while (end < n && (batches += begins(&b, order[end])) < most)
        end++;
    return end;
}

weft_status weft__planner_pool(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    weft_status s = check_limits(o, "pool");
    if (s != WEFT_OK)
        return s;
    int32_t *order = weft__plan_random_order(o, n);
    s = order ? WEFT_OK : WEFT_ENOMEM;
    for (int64_t from = 0, to; from < n && s == WEFT_OK; from = to) {
        to = end_of_pool(o, len, order, from, n);
        s = weft__plan_sort(len, order + from, to - from, false, 0) ? WEFT_OK : WEFT_ENOMEM;
        s = s == WEFT_OK ? cut_at_limits(p, o, len, order + from, to - from) : s;
    }
    return s == WEFT_OK ? weft__plan_shuffle_batches(o, p) : s;
}

/* Sorts in blocks, which are the pools, and reverses every other pool. */
weft_status weft__planner_laplace(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    int64_t batches = o->pool ? o->pool : POOL, pool = batches <= n / o->count ? batches * o->count : n;
    int32_t *order = weft__plan_random_order(o, n);
    if (!order || !weft__plan_sort(len, order, n, false, pool))
        return WEFT_ENOMEM;
    for (int64_t first = pool; first < n; first += 2 * pool)
        for (int64_t i = first, last = (first + pool < n ? first + pool : n) - 1; i < last; i++, last--) {
            int32_t index = order[i];
            order[i] = order[last];
            order[last] = index;
        }
    return cut_at_limits(p, o, len, order, n);
}

/* ---- a budget of padded cells ---- */
/* held: the n sequences of the current batch, a part of the order. */
typedef struct {
    weft_plan *p;
    const int32_t *len, *held;
    int64_t n, longest;
} padded;

/* Ends a batch with the first `count` sequences, and keeps the rest. */
static weft_status emit(padded *b, int64_t count)
{
    weft_status s = WEFT_OK;
    for (int64_t i = 0; i < count && s == WEFT_OK; i++)
        s = weft__plan_add_whole(b->p, b->len, b->held[i]);
    b->held += count;
    b->n -= count;
    b->longest = 0;
    for (int64_t i = 0; i < b->n; i++)
        b->longest = b->len[b->held[i]] > b->longest ? b->len[b->held[i]] : b->longest;
    return s == WEFT_OK ? weft__plan_end_whole(b->p) : s;
}

static weft_status add_to_batch(padded *b, const weft_plan_opts *o)
{
    int64_t length = b->len[b->held[b->n]], multiple = o->multiple ? o->multiple : 1;
    weft_status s = WEFT_OK;
    if (length > o->budget)
        return weft_plan_refuse(WEFT_EARG, "tokens: sequence %lld has %lld tokens; expected at most the "
                                           "budget, %lld",
                                (long long)b->held[b->n], (long long)length, (long long)o->budget);
    while (s == WEFT_OK && b->n && (b->n + 1) * (length > b->longest ? length : b->longest) > o->budget) {
        int64_t whole = multiple * (b->n / multiple), rest = b->n % multiple;
        s = emit(b, whole > rest ? whole : rest);
    }
    b->n++;
    b->longest = length > b->longest ? length : b->longest;
    return s;
}

weft_status weft__planner_tokens(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    int32_t *order = o->keep_order ? weft__plan_random_order(o, n) : weft__plan_sorted(o, len, n, false);
    weft_status s = order ? WEFT_OK : WEFT_ENOMEM;
    padded b = { p, len, order, 0, 0 };
    for (int64_t i = 0; i < n && s == WEFT_OK; i++)
        s = add_to_batch(&b, o);
    if (s == WEFT_OK && b.n)
        s = emit(&b, b.n);
    return s == WEFT_OK ? weft__plan_shuffle_batches(o, p) : s;
}
