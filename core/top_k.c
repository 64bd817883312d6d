/* top_k.c - selects the k best of many scores with a bounded heap (Williams 1964); the worst is on top. */
#include <stdbool.h>
#include "core/top_k.h"

static bool worse(weft__scored a, weft__scored b)
{
    return a.score < b.score || (a.score == b.score && a.id > b.id);
}

static void sift_down(weft__scored *heap, int64_t n, int64_t i, weft__scored x)
{
    for (int64_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && worse(heap[child + 1], heap[child]))
            child++;
        if (!worse(heap[child], x))
            break;
        heap[i] = heap[child];
    }
    heap[i] = x;
}

void weft__best_offer(weft__best *b, double score, int64_t id)
{
    weft__scored x = { score, id };
    if (b->n == b->k) {
        if (b->k && worse(b->heap[0], x))
            sift_down(b->heap, b->n, 0, x);
        return;
    }
    int64_t i = b->n++;
    for (; i > 0 && worse(x, b->heap[(i - 1) / 2]); i = (i - 1) / 2)
        b->heap[i] = b->heap[(i - 1) / 2];
    b->heap[i] = x;
}

void weft__best_sort(weft__best *b)              /* moves the worst to the end, again and again */
{
    for (int64_t n = b->n; n-- > 1;) {
        weft__scored worst = b->heap[0], x = b->heap[n];
        sift_down(b->heap, n, 0, x);
        b->heap[n] = worst;
    }
}
