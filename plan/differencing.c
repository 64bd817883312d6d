/* differencing.c - Karmarkar & Karp 1982 over k ranks: the two partial deals whose ranks differ most become
 * one, the largest rank of one with the smallest of the other, until one deal is left. */
#include <stdlib.h>
#include <string.h>
#include "plan/plan.h"

/* A rank of a deal: its tokens, and its sequences as a list. */
typedef struct {
    int64_t load;
    int32_t first, last;
} part;
/* The deals that wait, a heap of the largest spread, of equals the earliest; of deal d the parts [k],
 * largest first. */
typedef struct {
    int64_t spread, deal;
} waiting;
typedef struct {
    int64_t k, n;
    part *parts;
    waiting *heap;
    int32_t *after;
} deals;

static bool before(waiting a, waiting b)
{
    return a.spread > b.spread || (a.spread == b.spread && a.deal < b.deal);
}

static void sift_down(deals *t)
{
    waiting is = t->heap[0];
    int64_t at = 0;
    for (int64_t below; (below = 2 * at + 1) < t->n; at = below) {
        below += below + 1 < t->n && before(t->heap[below + 1], t->heap[below]);
        if (!before(t->heap[below], is))
            break;
        t->heap[at] = t->heap[below];
    }
    t->heap[at] = is;
}

static void push(deals *t, waiting is)
{
    int64_t at = t->n++;
    for (; at && before(is, t->heap[(at - 1) / 2]); at = (at - 1) / 2)
        t->heap[at] = t->heap[(at - 1) / 2];
    t->heap[at] = is;
}

static int64_t pop(deals *t)
{
    int64_t deal = t->heap[0].deal;
    t->heap[0] = t->heap[--t->n];
    sift_down(t);
    return deal;
}

static void join(deals *t, part *a, const part *b)
{
    a->load += b->load;
    if (b->first < 0)
        return;
    if (a->first < 0)
        a->first = b->first;
    else
        t->after[a->last] = b->first;
    a->last = b->last;
}

static void sort_parts(part *a, int64_t k) /* largest first, stable; they are nearly sorted */
{
    for (int64_t i = 1; i < k; i++) {
        part is = a[i];
        int64_t at = i;
        for (; at && a[at - 1].load < is.load; at--)
            a[at] = a[at - 1];
        a[at] = is;
    }
}

static void merge(deals *t)
{
    int64_t one = pop(t), other = pop(t);
    part *a = t->parts + one * t->k, *b = t->parts + other * t->k;
    for (int64_t i = 0; i < t->k; i++)
        join(t, a + i, b + t->k - 1 - i);
    sort_parts(a, t->k);
    push(t, (waiting){ a[0].load - a[t->k - 1].load, one });
}

static void begin(deals *t, const int32_t *len, int64_t n)
{
    for (int64_t i = 0, d = 0; i < n; i++) {
        t->after[i] = -1;
        if (!len[i])
            continue;
        for (int64_t r = 0; r < t->k; r++)
            t->parts[d * t->k + r] = (part){ 0, -1, -1 };
        t->parts[d * t->k] = (part){ len[i], (int32_t)i, (int32_t)i };
        push(t, (waiting){ t->k > 1 ? len[i] : 0, d++ });
    }
}

static weft_status emit(const deals *t, const int32_t *len, const part *of, weft_plan *p)
{
    weft_status s = WEFT_OK;
    int64_t width = 0;
    p->in_rows = true;
    for (int64_t r = 0; r < t->k; r++) {
        int64_t column = 0;
        for (int32_t i = of ? of[r].first : -1; i >= 0 && s == WEFT_OK; i = t->after[i]) {
            s = weft_plan_add(p, (weft_segment){ i, column, 0, len[i], (int32_t)r, -1 });
            column += len[i];
        }
        width = column > width ? column : width;
    }
    return s == WEFT_OK ? weft_plan_end_batch(p, t->k, width) : s;
}

weft_status weft__plan_differencing(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    deals t = { .k = o->ranks };
    if (o->ranks > INT64_MAX / (n + 1))
        return weft_plan_refuse(WEFT_ENOMEM, "balance: no memory for %lld ranks", (long long)o->ranks);
    t.parts = weft__plan_memory(n * t.k, sizeof *t.parts);
    t.heap = t.parts ? weft__plan_memory(n, sizeof *t.heap) : NULL;
    t.after = t.heap ? weft__plan_memory(n, sizeof *t.after) : NULL;
    weft_status s = WEFT_ENOMEM;
    if (t.after) {
        begin(&t, len, n);
        while (t.n > 1)
            merge(&t);
        s = emit(&t, len, t.n ? t.parts + t.heap[0].deal * t.k : NULL, p);
    }
    free(t.parts), free(t.heap), free(t.after);
    return s;
}
