/* cut.c - a batch in shards of about as many tokens each: the longest sequence first, each to the shard that
 * has the fewest so far (longest processing time first, Graham 1969: at most 4/3 of the best). Ties go to the
 * earlier sequence and to the lower shard, so the cut depends on lengths, order and shards alone. */
#include <stdlib.h>
#include <string.h>
#include "parallel/parallel.h"

/* length and place as one number that sorts longest first, ties by place */
static int64_t key_of(int64_t length, int64_t place) { return (INT32_MAX - length) << 32 | place; }
static int64_t length_in(int64_t key) { return INT32_MAX - (key >> 32); }
static int64_t place_in(int64_t key)  { return key & INT32_MAX; }

static int by_key(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* ---- the shard with the least load on top: a heap of shards, ties by their number ---- */
static bool before(const weft__bin *a, const weft__bin *b)
{
    return a->load < b->load || (a->load == b->load && a->shard < b->shard);
}

static void sink(weft__bin *heap, int n)         /* the top, whose load has grown */
{
    weft__bin top = heap[0];
    int at = 0;
    for (int child; (child = 2 * at + 1) < n; at = child) {
        child += child + 1 < n && before(&heap[child + 1], &heap[child]);
        if (!before(&heap[child], &top))
            break;
        heap[at] = heap[child];
    }
    heap[at] = top;
}

void weft__cut(int64_t n, const int32_t *index, const int32_t *len, int shards, int32_t *order,
               int64_t *start, weft__bin *heap, int64_t *key)
{
    for (int s = 0; s < shards; s++)
        heap[s] = (weft__bin){ 0, s };
    for (int64_t i = 0; i < n; i++)
        key[i] = key_of(len ? len[index ? index[i] : i] : 1, i);
    qsort(key, (size_t)n, sizeof *key, by_key);
    memset(start, 0, (size_t)(shards + 1) * sizeof *start);
    for (int64_t i = 0; i < n; i++) {
        int64_t length = length_in(key[i]), shard = heap[0].shard;
        key[i] = place_in(key[i]) << 32 | shard;             /* next: by place, and its shard */
        start[shard + 1]++;
        heap[0].load += length > 0 ? length : 1;
        sink(heap, shards);
    }
    for (int s = 0; s < shards; s++)
        start[s + 1] += start[s];
    qsort(key, (size_t)n, sizeof *key, by_key);
    for (int64_t i = 0; i < n; i++)
        order[start[key[i] & INT32_MAX]++] = (int32_t)(key[i] >> 32);
    memmove(start + 1, start, (size_t)shards * sizeof *start);
    start[0] = 0;
}
