/* buckets.c - planners whose batches have sequences of similar lengths, between two bounds, or pieces of one
 * length. */
#include <math.h>
#include "plan/planners.h"

/* ---- a batch ends when its bucket is full ---- */
/* The waiting sequences of a bucket, a linked list. */
typedef struct {
    int64_t size, n, first, last;
} bucket;

static weft_status emit(weft_plan *p, const int32_t *len, bucket *b, const int32_t *after)
{
    weft_status s = WEFT_OK;
    for (int64_t i = b->first; b->n && s == WEFT_OK; i = after[i], b->n--)
        s = weft__plan_add_whole(p, len, i);
    return s == WEFT_OK ? weft__plan_end_whole(p) : s;
}

/* bounds [edges], sizes [edges + 1] */
static weft_status deal(const int32_t *len, int64_t n, const int64_t *bounds, const int64_t *sizes,
                        int64_t edges, const weft_plan_opts *o, weft_plan *p)
{
    int32_t *order = weft__plan_random_order(o, n), *after = weft__plan_memory(n, sizeof *after);
    bucket *b = weft__plan_memory(edges + 1, sizeof *b);
    if (!order || !after || !b)
        return WEFT_ENOMEM;
    weft_status s = WEFT_OK;
    for (int64_t i = 0; i <= edges; i++)
        b[i] = (bucket){ .size = sizes[i] };
    for (int64_t k = 0; k < n && s == WEFT_OK; k++) {
        int64_t i = order[k];
        bucket *to = b + weft__plan_count_up_to(bounds, edges, len[i]);
        if (to->n++)
            after[to->last] = (int32_t)i;
        else
            to->first = i;
        to->last = i;
        s = to->n == to->size ? emit(p, len, to, after) : WEFT_OK;
    }
    for (int64_t i = 0; i <= edges && s == WEFT_OK; i++)
        s = b[i].n ? emit(p, len, b + i, after) : WEFT_OK;
    return s == WEFT_OK ? weft__plan_shuffle_batches(o, p) : s;
}

weft_status weft__planner_buckets(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    if (!o->sizes || o->edges < 0 || (o->edges && !o->bounds))
        return weft_plan_refuse(WEFT_EARG, "buckets: bounds and sizes are missing or do not match; expected "
                                           "bounds, and one size more than bounds");
    for (int64_t i = 0; i <= o->edges; i++)
        if (o->sizes[i] < 1 || (i && i < o->edges && o->bounds[i] <= o->bounds[i - 1]))
            return weft_plan_refuse(WEFT_EARG,
                                    "buckets: size %lld, bound %lld; expected bounds that rise and sizes "
                                    "of 1 or more",
                                    (long long)o->sizes[i], (long long)(i < o->edges ? o->bounds[i] : 0));
    return deal(len, n, o->bounds, o->sizes, o->edges, o, p);
}

/* ---- powers of two: batches without padding ---- */
enum { POWERS = 31 };
/* The sequences whose piece of 2^k tokens waits for its batch. */
typedef struct {
    int64_t size, n;
    int32_t *held;
} power;

static weft_status emit_power(weft_plan *p, const int32_t *len, power *b, int k)
{
    weft_status s = WEFT_OK;
    for (int64_t i = 0; i < b->n && s == WEFT_OK; i++) {
        int32_t sequence = b->held[i], offset = len[sequence] >> k >> 1 << k << 1; /* the larger powers come
                                                                                    * first */
        s = weft_plan_add(p, (weft_segment){ sequence, 0, offset, (int32_t)1 << k, (int32_t)i, -1 });
    }
    b->n = 0;
    return s == WEFT_OK ? weft__plan_end_whole(p) : s;
}

static weft_status deal_powers(const int32_t *len, const int32_t *order, int64_t n, power *b, weft_plan *p)
{
    weft_status s = WEFT_OK;
    for (int64_t begin = 0; begin < n; begin++)
        for (int k = POWERS - 1; k >= 0 && s == WEFT_OK; k--) {
            if (!(len[order[begin]] >> k & 1))
                continue;
            b[k].held[b[k].n++] = order[begin];
            s = b[k].n == b[k].size ? emit_power(p, len, b + k, k) : WEFT_OK;
        }
    for (int k = 0; k < POWERS && s == WEFT_OK; k++)
        s = b[k].n ? emit_power(p, len, b + k, k) : WEFT_OK;
    return s;
}

weft_status weft__planner_powers(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    power b[POWERS] = { { 0 } };
    int64_t counts[POWERS] = { 0 };
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < POWERS; k++)
            counts[k] += len[i] >> k & 1;
    int32_t *order = weft__plan_random_order(o, n);
    if (!order)
        return WEFT_ENOMEM;
    for (int k = 0; k < POWERS; k++) {
        b[k].size = o->budget >> k > 1 ? o->budget >> k : 1;
        b[k].held = weft__plan_memory(counts[k] < b[k].size ? counts[k] : b[k].size, sizeof *b[k].held);
        if (!b[k].held)
            return WEFT_ENOMEM;
    }
    weft_status s = deal_powers(len, order, n, b, p);
    return s == WEFT_OK ? weft__plan_shuffle_batches(o, p) : s;
}

/* ---- bounds that grow by a ratio ---- */
static int64_t next_bound(int64_t b, double ratio)
{
    double next = floor((double)b * ratio);
    return next > INT32_MAX ? (int64_t)INT32_MAX + 1 : next > (double)b ? (int64_t)next : b + 1;
}

weft_status weft__planner_geometric(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    int32_t longest = weft__plan_longest(len, n);
    int64_t edges = 1;
    if (!(o->ratio > 1))
        return weft_plan_refuse(WEFT_EARG, "geometric: ratio is %g; expected more than 1", o->ratio);
    for (int64_t b = o->least; b <= longest; b = next_bound(b, o->ratio))
        edges++;
    int64_t *bounds = weft__plan_memory(2 * edges, sizeof *bounds), *sizes = bounds + edges;
    if (!bounds)
        return WEFT_ENOMEM;
    for (int64_t i = 0; i < edges; i++) {
        bounds[i] = i ? next_bound(bounds[i - 1], o->ratio) : o->least;
        sizes[i] = o->budget / bounds[i] > 1 ? o->budget / bounds[i] : 1;
    }
    return deal(len, n, bounds, sizes, edges - 1, o, p); /* the last bound exceeds every length */
}

/* ---- the k intervals with the least padding ---- */
/* cost[e]: the least padding of the first e distinct lengths in j intervals; before: in j - 1. from[j * (d +
 * 1) + e]: the start of the last interval in that solution; ties: the lowest. count, sum: sequences and
 * tokens of the first e lengths. */
typedef struct {
    int64_t d, k;
    int64_t *length, *count, *sum;
    double *cost, *before;
    int32_t *from;
} search;

static double padding(const search *t, int64_t from, int64_t to)
{
    return (double)t->length[to - 1] * (double)(t->count[to] - t->count[from]) -
           (double)(t->sum[to] - t->sum[from]);
}

static void add_interval(search *t, int64_t j)
{
    double *old = t->cost;
    t->cost = t->before;
    t->before = old;
    for (int64_t e = 0; e <= t->d; e++) {
        int32_t *from = t->from + j * (t->d + 1) + e;
        t->cost[e] = (double)INFINITY;
        *from = 0;
        for (int64_t b = 0; b < e; b++)
            if (t->before[b] + padding(t, b, e) < t->cost[e]) {
                t->cost[e] = t->before[b] + padding(t, b, e);
                *from = (int32_t)b;
            }
    }
}

/* Fills bounds [k]: one more than the longest length of each interval. */
static void find_intervals(search *t, int64_t *bounds)
{
    for (int64_t e = 0; e <= t->d; e++)
        t->cost[e] = e ? (double)INFINITY : 0;
    for (int64_t j = 1; j <= t->k; j++)
        add_interval(t, j);
    int64_t end = t->d;
    for (int64_t j = t->k; j; j--) {
        bounds[j - 1] = t->length[end - 1] + 1;
        end = t->from[j * (t->d + 1) + end];
    }
}

/* Lists the distinct lengths, ascending, with the number and the tokens of all sequences up to each. */
static void list_lengths(search *t, const int32_t *len, const int32_t *order, int64_t n)
{
    t->count[0] = t->sum[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!i || len[order[i]] != t->length[t->d - 1]) {
            t->length[t->d++] = len[order[i]];
            t->count[t->d] = t->count[t->d - 1];
            t->sum[t->d] = t->sum[t->d - 1];
        }
        t->count[t->d]++;
        t->sum[t->d] += len[order[i]];
    }
}

static weft_status deal_best(const int32_t *len, int64_t n, const weft_plan_opts *o, search *t, weft_plan *p)
{
    t->k = o->k < t->d ? o->k : t->d;
    int64_t *bounds = weft__plan_memory(2 * t->k, sizeof *bounds), *sizes = bounds + t->k;
    t->cost = weft__plan_memory(2 * (t->d + 1), sizeof *t->cost);
    t->from = weft__plan_memory((t->k + 1) * (t->d + 1), sizeof *t->from);
    if (!bounds || !t->cost || !t->from)
        return WEFT_ENOMEM;
    if (!t->d)
        return WEFT_OK;
    t->before = t->cost + t->d + 1;
    find_intervals(t, bounds);
    for (int64_t i = 0; i < t->k; i++)
        sizes[i] = o->count;
    return deal(len, n, bounds, sizes, t->k - 1, o, p);
}

weft_status weft__planner_optimal_buckets(const int32_t *len, int64_t n, const weft_plan_opts *o,
                                          weft_plan *p)
{
    int32_t *order = weft__plan_order(n);
    int64_t *all = weft__plan_memory(3 * (n + 1), sizeof *all);
    if (!order || !all || !weft__plan_sort(len, order, n, false, 0))
        return WEFT_ENOMEM;
    search t = { .length = all, .count = all + n + 1, .sum = all + 2 * (n + 1) };
    list_lengths(&t, len, order, n);
    return deal_best(len, n, o, &t, p);
}
