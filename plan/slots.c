/* slots.c - planners of slots, rows that take the next sequence as soon as they are free. */
#include <math.h>
#include <string.h>
#include "plan/planners.h"

/* ---- each slot continues when it is free ---- */
static bool earlier(weft__bin a, weft__bin b)
{
    return a.load < b.load || (a.load == b.load && a.slot < b.slot);
}

int64_t weft__bins_add(weft__bin *heap, int64_t n, int64_t tokens)
{
    weft__bin bin = heap[0];
    int64_t i = 0;
    bin.load += tokens;
    for (int64_t below; (below = 2 * i + 1) < n; i = below) {
        below += below + 1 < n && earlier(heap[below + 1], heap[below]);
        if (!earlier(heap[below], bin))
            break;
        heap[i] = heap[below];
    }
    heap[i] = bin;
    return bin.slot;
}

void weft__bins_begin(weft__bin *heap, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        heap[i] = (weft__bin){ 0, i };
}

/* Fills row [n] with the slot of each sequence, in this order. cells [slots]: scratch. Returns the tokens of
 * the fullest slot. */
static int64_t deal_slots(const int32_t *len, const int32_t *cost, const int32_t *order, int64_t n,
                          weft__bin *heap, int64_t *cells, int64_t slots, int32_t *row)
{
    int64_t most = 0;
    weft__bins_begin(heap, slots);
    memset(cells, 0, (size_t)slots * sizeof *cells);
    for (int64_t k = 0; k < n; k++) {
        int64_t i = order[k];
        row[i] = len[i] ? (int32_t)weft__bins_add(heap, slots, cost[i]) : -1;
        if (len[i])
            most = (cells[row[i]] += len[i]) > most ? cells[row[i]] : most;
    }
    return most;
}

/* cost [n]: of each sequence, in the unit of the slots' loads. */
static weft_status deal(const int32_t *len, const int32_t *cost, int64_t n, int64_t slots, bool longest_first,
                        const weft_plan_opts *o, weft_plan *p)
{
    int32_t *order = longest_first ? weft__plan_sorted(o, cost, n, true) : weft__plan_random_order(o, n),
            *row = weft__plan_memory(n, sizeof *row);
    weft__bin *heap = weft__plan_memory(slots, sizeof *heap);
    int64_t *cells = weft__plan_memory(slots, sizeof *cells);
    if (!order || !row || !heap || !cells)
        return WEFT_ENOMEM;
    int64_t width = deal_slots(len, cost, order, n, heap, cells, slots, row);
    return weft__plan_rows(p, len, n, order, row, slots, width, &(weft_plan_opts){ 0 });
}

weft_status weft__planner_refill(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    return deal(len, len, n, o->slots, o->longest_first, o, p);
}

/* ---- all slots stop after every window ---- */
typedef struct {
    int64_t sequence;
    int32_t done, carry;
} reader; /* sequence -1: the slot is empty */

static weft_status read_window(const int32_t *len, const int32_t *order, int64_t n, const weft_plan_opts *o,
                               reader *r, int64_t *next, weft_plan *p)
{
    weft_status s = WEFT_OK;
    int32_t taken = 0;
    for (int64_t k = 0; k < o->slots && s == WEFT_OK; k++) {
        while (r[k].sequence < 0 && *next < n) {
            int32_t i = order[(*next)++];
            r[k] = (reader){ len[i] ? i : -1, 0, -1 };
        }
        if (r[k].sequence < 0)
            continue;
        int64_t rest = len[r[k].sequence] - r[k].done, takes = rest < o->window ? rest : o->window;
        s = weft_plan_add(
            p, (weft_segment){ r[k].sequence, 0, r[k].done, (int32_t)takes, (int32_t)k, r[k].carry });
        r[k].done += (int32_t)takes;
        r[k].carry = taken++;
        if (takes == rest)
            r[k].sequence = -1;
    }
    return s == WEFT_OK && taken ? weft_plan_end_batch(p, o->slots, o->window) : s;
}

weft_status weft__planner_streams(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    int32_t *order = weft__plan_random_order(o, n);
    reader *r = weft__plan_memory(o->slots, sizeof *r);
    int64_t next = 0, before = -1;
    weft_status s = WEFT_OK;
    if (!order || !r)
        return WEFT_ENOMEM;
    for (int64_t k = 0; k < o->slots; k++)
        r[k].sequence = -1;
    p->in_rows = true;
    while (s == WEFT_OK && before != p->segments) {
        before = p->segments;
        s = read_window(len, order, n, o, r, &next, p);
    }
    return s;
}

/* ---- balanced ranks ---- */
static double cost_of(const int32_t *len, int64_t i, const weft_plan_opts *o)
{
    return !len[i] ? 0 : o->cost ? o->cost[i] : len[i] + o->per_square * len[i] * len[i];
}

/* Returns the costs as whole numbers, in the largest power of 2 as unit that keeps 31 bits; at least 1 for a
 * sequence with a token. NULL, with a message, if a cost is bad or memory is short. */
static const int32_t *whole_costs(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_status *s)
{
    double most = 0;
    int exponent;
    int32_t *whole = weft__plan_memory(n, sizeof *whole);
    *s = whole ? WEFT_OK : WEFT_ENOMEM;
    if (whole && o->cost && o->per_square != 0)
        *s = weft_plan_refuse(WEFT_EARG, "balance: expected cost or per_square, not both");
    for (int64_t i = 0; i < n && *s == WEFT_OK; i++) {
        double cost = cost_of(len, i, o);
        if (!(cost >= 0) || !isfinite(cost) || o->per_square < 0)
            *s = weft_plan_refuse(WEFT_EARG, "balance: %s: sequence %lld costs %g; expected a finite number, "
                                             "0 or more",
                                  o->cost ? "cost" : "per_square", (long long)i, cost);
        most = cost > most ? cost : most;
    }
    frexp(most, &exponent);
    for (int64_t i = 0; i < n && *s == WEFT_OK; i++) {
        double cost = floor(ldexp(cost_of(len, i, o), 31 - exponent) + .5);
        whole[i] = cost > INT32_MAX ? INT32_MAX : cost < 1 && len[i] ? 1 : (int32_t)cost;
    }
    return *s == WEFT_OK ? whole : NULL;
}

weft_status weft__planner_balance(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    weft_status s = WEFT_OK;
    const int32_t *cost = o->cost || o->per_square != 0 ? whole_costs(len, n, o, &s) : len;
    if (!cost)
        return s;
    return o->method == WEFT_BALANCE_KK ? weft__plan_differencing(len, cost, n, o, p) :
                                          deal(len, cost, n, o->ranks, true, o, p);
}
