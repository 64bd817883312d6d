/* batches.c - planners of whole sequences by number: as they come, sorted, drawn, in pools. */
#include <stdlib.h>
#include <string.h>
#include "plan/planners.h"

enum { POOL = 50 }; /* batches of a pool, if nothing is said: as the loader has it */

/* The order of all sequences, which ends here, cut by count. */
static weft_status cut_order(const int32_t *len, int64_t n, const weft_plan_opts *o, int32_t *order,
                             weft_plan *p)
{
    weft_status s = order ? weft__plan_cut(p, len, order, n, o->count) : WEFT_ENOMEM;
    free(order);
    return s;
}

/* ---- limits ---- */
typedef struct {
    const weft_plan_opts *o;
    const int32_t *len;
    int64_t count, tokens;
} batch;

/* Adds a sequence; true if it begins another batch, since this one would be above a limit. */
static bool begins(batch *b, int32_t sequence)
{
    int64_t length = b->len[sequence];
    bool full = b->count && ((b->o->count && b->count + 1 > b->o->count) ||
                             (b->o->tokens && b->tokens + length > b->o->tokens));
    b->count = full ? 1 : b->count + 1, b->tokens = full ? length : b->tokens + length;
    return full;
}

/* An order cut where a batch would be above a limit. */
static weft_status cut_at_limits(weft_plan *p, const weft_plan_opts *o, const int32_t *len,
                                 const int32_t *order, int64_t n)
{
    batch b = { o, len, 0, 0 };
    weft_status s = WEFT_OK;
    for (int64_t i = 0; i < n && s == WEFT_OK; i++) {
        s = begins(&b, order[i]) ? weft__plan_end_whole(p) : WEFT_OK;
        s = s == WEFT_OK ? weft__plan_add_whole(p, len, order[i]) : s;
    }
    return s == WEFT_OK && n ? weft__plan_end_whole(p) : s;
}

static weft_status refuse_no_limit(const weft_planner *planner)
{
    return weft_plan_refuse(WEFT_EARG, "%s: count or tokens of a batch must be given", planner->name);
}

/* ---- in one order ---- */
static weft_status plan_order(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    int32_t *order = o->count || o->tokens ? weft__plan_order(n) : NULL;
    if (!o->count && !o->tokens)
        return refuse_no_limit(&weft__planner_order);
    weft_status s = order ? cut_at_limits(p, o, len, order, n) : WEFT_ENOMEM;
    free(order);
    return s == WEFT_OK ? weft__plan_shuffle_batches(o, p) : s;
}
const weft_planner weft__planner_order = { .name = "order",
                                           .source = "-",
                                           .about = "as they come",
                                           .options = "count tokens shuffle",
                                           .promises = WEFT_PLAN_WHOLE | WEFT_PLAN_IN_ORDER,
                                           .plan = plan_order };

static weft_status plan_sorted(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    int32_t *order = weft__plan_drawn(o, n);
    if (order && !weft__plan_sort(len, order, n, false, o->lookahead))
        free(order), order = NULL;
    weft_status s = cut_order(len, n, o, order, p);
    return s == WEFT_OK ? weft__plan_shuffle_batches(o, p) : s;
}
const weft_planner weft__planner_sorted = { .name = "sorted",
                                            .source = "-",
                                            .about = "shortest first",
                                            .options = "count shuffle lookahead",
                                            .promises = WEFT_PLAN_WHOLE,
                                            .plan = plan_sorted };

static weft_status plan_random(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    int32_t *order = weft__plan_order(n);
    if (order)
        weft_stream_permutation(o->stream, n, order);
    return cut_order(len, n, o, order, p);
}
const weft_planner weft__planner_random = { .name = "random",
                                            .source = "-",
                                            .about = "a drawn order",
                                            .options = "count",
                                            .promises = WEFT_PLAN_WHOLE,
                                            .plan = plan_random };

/* ---- pools ---- */
/* Where the pool that begins at `from` ends: before the sequence that would begin one batch more. */
static int64_t end_of_pool(const weft_plan_opts *o, const int32_t *len, const int32_t *order, int64_t from,
                           int64_t n)
{
    batch b = { o, len, 0, 0 };
    int64_t batches = 0, at = from, most = o->pool ? o->pool : POOL;
    while (at < n && (batches += begins(&b, order[at])) < most)
        at++;
    return at;
}

static weft_status plan_pool(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    int32_t *order = o->count || o->tokens ? weft__plan_order(n) : NULL;
    if (!o->count && !o->tokens)
        return refuse_no_limit(&weft__planner_pool);
    weft_status s = order ? WEFT_OK : WEFT_ENOMEM;
    if (order)
        weft__plan_shuffle(o, order, n);
    for (int64_t from = 0, to; from < n && s == WEFT_OK; from = to) {
        to = end_of_pool(o, len, order, from, n);
        s = weft__plan_sort(len, order + from, to - from, false, 0) ? WEFT_OK : WEFT_ENOMEM;
        s = s == WEFT_OK ? cut_at_limits(p, o, len, order + from, to - from) : s;
    }
    free(order);
    return s == WEFT_OK ? weft__plan_shuffle_batches(o, p) : s;
}
const weft_planner weft__planner_pool = { .name = "pool",
                                          .source = "torchtext's BucketIterator",
                                          .about = "sorted within pools of batches",
                                          .options = "count tokens pool shuffle",
                                          .promises = WEFT_PLAN_WHOLE,
                                          .plan = plan_pool };

static void reverse(int32_t *order, int64_t n)
{
    for (int64_t i = 0; i < n / 2; i++) {
        int32_t is = order[i];
        order[i] = order[n - 1 - i], order[n - 1 - i] = is;
    }
}

static weft_status plan_laplace(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    int64_t pool = (o->pool ? o->pool : POOL) <= n / o->count ? (o->pool ? o->pool : POOL) * o->count : n;
    int32_t *order = weft__plan_order(n);
    if (order)
        weft__plan_shuffle(o, order, n);
    for (int64_t i = 0; order && i < n; i += pool) {
        int64_t here = n - i < pool ? n - i : pool;
        if (!weft__plan_sort(len, order + i, here, false, 0))
            free(order), order = NULL;
        else if (i / pool % 2)
            reverse(order + i, here);
    }
    return cut_order(len, n, o, order, p);
}
const weft_planner weft__planner_laplace = { .name = "laplace",
                                             .source = "Doetsch et al. 2017, RETURNN",
                                             .about = "pools that rise and fall by turns",
                                             .options = "count pool shuffle",
                                             .promises = WEFT_PLAN_WHOLE,
                                             .plan = plan_laplace };
