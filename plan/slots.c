/* slots.c - planners of slots, rows that take the next sequence as soon as they are free. */
#include <stdlib.h>
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

/* Fills row [n] with the slot of each sequence, in this order. Returns the tokens of the fullest slot. */
static int64_t deal_slots(const int32_t *len, const int32_t *order, int64_t n, weft__bin *heap, int64_t slots,
                          int32_t *row)
{
    int64_t most = 0;
    weft__bins_begin(heap, slots);
    for (int64_t k = 0; k < n; k++)
        row[order[k]] = len[order[k]] ? (int32_t)weft__bins_add(heap, slots, len[order[k]]) : -1;
    for (int64_t i = 0; i < slots; i++)
        most = heap[i].load > most ? heap[i].load : most;
    return most;
}

static weft_status deal(const int32_t *len, int64_t n, int64_t slots, bool longest_first,
                        const weft_plan_opts *o, weft_plan *p)
{
    int32_t *order = longest_first ? weft__plan_sorted(o, len, n, true) : weft__plan_random_order(o, n),
            *row = weft__plan_memory(n, sizeof *row);
    weft__bin *heap = weft__plan_memory(slots, sizeof *heap);
    if (!order || !row || !heap)
        return WEFT_ENOMEM;
    int64_t width = deal_slots(len, order, n, heap, slots, row);
    return weft__plan_rows(p, &(weft__pieces){ n, NULL, NULL, len }, order, row, slots, width,
                           &(weft_plan_opts){ 0 });
}

weft_status weft__planner_refill(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    return deal(len, n, o->slots, o->longest_first, o, p);
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
weft_status weft__planner_balance(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    return o->method == WEFT_BALANCE_KK ? weft__plan_differencing(len, n, o, p) :
                                          deal(len, n, o->ranks, true, o, p);
}
