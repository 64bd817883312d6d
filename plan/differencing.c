/* differencing.c - balances k ranks by the differencing of Karmarkar & Karp (1982).
 *
 * It merges the two partial deals with the largest differences between ranks, the largest rank of one with
 * the smallest of the other, until one deal remains. */
#include "plan/plan.h"

/* Sequences are numbered by cost here, the highest first, so that those which are merged together are
 * adjacent in memory. Without other costs, a sequence costs its tokens.
 *
 * A part is a list of sequences: load is their cost, last the last sequence, and `after` links them. A part
 * is named by its first sequence. A deal is a list of parts, largest first, linked by next. A deal is named
 * by one of its sequences, whose `parts` is its first part. Empty ranks are not in the list, so all deals
 * together have at most n parts. -1 ends a list. */
typedef struct {
    int64_t load;
    int32_t last, next, after, parts;
} node;
/* nodes [n]; order [n]: the user's number of each sequence; place [n]: its inverse. Sequences `single` ..
 * `singles` - 1 are deals of one sequence that wait; heap has the other waiting deals. one, other, both [k]:
 * the parts of a merge. */
typedef struct {
    int64_t k, single, singles, heap_size;
    node *nodes;
    int32_t *order, *place, *one, *other, *both;
    uint64_t *heap;
    const int32_t *len, *cost;
} deals;

/* ---- the next deal: the largest difference between two ranks; ties: the earliest deal ---- */
/* Smaller keys come first. A difference is at most the highest cost. Ties follow the user's order. */
static uint64_t key_of(const deals *t, int64_t difference, int64_t deal)
{
    return (uint64_t)(INT32_MAX - difference) << 32 | (uint32_t)t->order[deal];
}

static void push(deals *t, uint64_t key)
{
    int64_t i = t->heap_size++;
    for (; i && key < t->heap[(i - 1) / 2]; i = (i - 1) / 2)
        t->heap[i] = t->heap[(i - 1) / 2];
    t->heap[i] = key;
}

static uint64_t pop_heap(deals *t)
{
    uint64_t top = t->heap[0], key = t->heap[--t->heap_size];
    int64_t i = 0;
    for (int64_t below; (below = 2 * i + 1) < t->heap_size; i = below) {
        below += below + 1 < t->heap_size && t->heap[below + 1] < t->heap[below];
        if (key <= t->heap[below])
            break;
        t->heap[i] = t->heap[below];
    }
    t->heap[i] = key;
    return top;
}

static bool is_single_next(const deals *t)
{
    if (t->single == t->singles || !t->heap_size)
        return !t->heap_size;
    return key_of(t, t->k > 1 ? t->nodes[t->single].load : 0, t->single) < t->heap[0];
}

static int32_t pop(deals *t)
{
    return is_single_next(t) ? (int32_t)t->single++ : t->place[(uint32_t)pop_heap(t)];
}

/* ---- merging two deals ---- */
static int64_t list_parts(const deals *t, int32_t deal, int32_t *part)
{
    int64_t n = 0;
    for (int32_t i = t->nodes[deal].parts; i >= 0; i = t->nodes[i].next)
        part[n++] = i;
    return n;
}

static int32_t join(deals *t, int32_t a, int32_t b)
{
    t->nodes[t->nodes[a].last].after = b;
    t->nodes[a].last = t->nodes[b].last;
    t->nodes[a].load += t->nodes[b].load;
    return a;
}

static void sort_parts(const deals *t, int32_t *part, int64_t n) /* largest first, stable */
{
    for (int64_t i = 1; i < n; i++) {
        int32_t value = part[i];
        int64_t j = i;
        for (; j && t->nodes[part[j - 1]].load < t->nodes[value].load; j--)
            part[j] = part[j - 1];
        part[j] = value;
    }
}

/* Merges rank i of one deal with rank k - 1 - i of the other; either may be empty. */
static void merge(deals *t)
{
    int32_t deal = pop(t), with = pop(t);
    int64_t a = list_parts(t, deal, t->one), b = list_parts(t, with, t->other), n = 0, k = t->k;
    for (int64_t i = 0; i < a; i++)
        t->both[n++] = k - 1 - i < b ? join(t, t->one[i], t->other[k - 1 - i]) : t->one[i];
    for (int64_t i = a > k - b ? a : k - b; i < k; i++)
        t->both[n++] = t->other[k - 1 - i];
    sort_parts(t, t->both, n);
    t->nodes[deal].parts = t->both[0];
    for (int64_t i = 0; i < n; i++)
        t->nodes[t->both[i]].next = i + 1 < n ? t->both[i + 1] : -1;
    push(t, key_of(t, t->nodes[t->both[0]].load - (n == k ? t->nodes[t->both[n - 1]].load : 0), deal));
}

/* ---- the whole ---- */
static bool make_room(deals *t, int64_t n)
{
    int64_t parts = t->k < n ? t->k : n;
    t->nodes = weft__plan_memory(n, sizeof *t->nodes);
    t->order = weft__plan_order(n);
    t->place = weft__plan_memory(n, sizeof *t->place);
    t->heap = weft__plan_memory(n / 2 + 1, sizeof *t->heap);
    t->one = weft__plan_memory(3 * parts, sizeof *t->one);
    t->other = t->one + parts;
    t->both = t->other + parts;
    return t->nodes && t->order && t->place && t->heap && t->one &&
           weft__plan_sort(t->cost, t->order, n, true, 0);
}

static void begin(deals *t, int64_t n)
{
    for (int32_t i = 0; i < n; i++) {
        int32_t cost = t->cost[t->order[i]];
        t->nodes[i] = (node){ .load = cost, .last = i, .next = -1, .after = -1, .parts = i };
        t->place[t->order[i]] = i;
        t->singles += cost > 0; /* sequences of length 0 come last */
    }
}

static weft_status emit(const deals *t, int32_t part, weft_plan *p)
{
    weft_status s = WEFT_OK;
    int64_t width = 0;
    int32_t row = 0;
    p->in_rows = true;
    for (; part >= 0; part = t->nodes[part].next, row++) {
        int64_t column = 0;
        for (int32_t i = part; i >= 0 && s == WEFT_OK; i = t->nodes[i].after) {
            int32_t sequence = t->order[i], length = t->len[sequence];
            s = weft_plan_add(p, (weft_segment){ sequence, column, 0, length, row, -1 });
            column += length;
        }
        width = column > width ? column : width;
    }
    return s == WEFT_OK ? weft_plan_end_batch(p, t->k, width) : s;
}

weft_status weft__plan_differencing(const int32_t *len, const int32_t *cost, int64_t n,
                                    const weft_plan_opts *o, weft_plan *p)
{
    deals t = { .k = o->ranks, .len = len, .cost = cost };
    if (!make_room(&t, n))
        return WEFT_ENOMEM;
    begin(&t, n);
    while (t.singles - t.single + t.heap_size > 1)
        merge(&t);
    return emit(&t, t.singles ? t.nodes[pop(&t)].parts : -1, p);
}
