/* cut.c - a batch in shards of about as many tokens each: the longest sequence first, each to the shard that
 * has the fewest so far (longest processing time first, Graham 1969: at most 4/3 of the best). Ties go to the
 * earlier sequence and to the lower shard, so the cut depends on lengths, order and shards alone. */
#include <string.h>
#include "parallel/parallel.h"

/* ---- the longest first, ties by place: a stable sort by digits, from the lowest one on ---- */
typedef struct { int64_t n; const int32_t *index, *len; } sizes;

static int64_t length_of(const sizes *of, int64_t place)
{
    return of->len ? of->len[of->index ? of->index[place] : place] : 1;
}

/* Moves the places in order [n] by a digit of 8 bits; to [n] is scratch. */
static void move_by_digit(const sizes *of, int shift, int32_t *order, int64_t *to)
{
    int64_t start[257] = { 0 };
    for (int64_t i = 0; i < of->n; i++)
        start[((INT32_MAX - length_of(of, i)) >> shift & 255) + 1]++;
    for (int d = 0; d < 256; d++) {
        if (start[d + 1] == of->n)               /* the same of all */
            return;
        start[d + 1] += start[d];
    }
    for (int64_t i = 0; i < of->n; i++)
        to[start[(INT32_MAX - length_of(of, order[i])) >> shift & 255]++] = order[i];
    for (int64_t i = 0; i < of->n; i++)
        order[i] = (int32_t)to[i];
}

static void sort(const sizes *of, int32_t *order, int64_t *scratch)
{
    for (int64_t i = 0; i < of->n; i++)
        order[i] = (int32_t)i;
    for (int shift = 0; shift < 32; shift += 8)
        move_by_digit(of, shift, order, scratch);
    for (int64_t i = 0; i < of->n; i++)
        scratch[i] = order[i];
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
    const sizes of = { n, index, len };
    sort(&of, order, key);                       /* key: the places, longest first */
    for (int s = 0; s < shards; s++)
        heap[s] = (weft__bin){ 0, s };
    memset(start, 0, (size_t)(shards + 1) * sizeof *start);
    for (int64_t i = 0; i < n; i++) {
        int64_t length = length_of(&of, key[i]), shard = heap[0].shard;
        order[key[i]] = (int32_t)shard;
        start[shard + 1]++;
        heap[0].load += length > 0 ? length : 1;
        sink(heap, shards);
    }
    for (int s = 0; s < shards; s++)
        start[s + 1] += start[s];
    for (int64_t i = 0; i < n; i++)              /* by shard, in each by place */
        key[start[order[i]]++] = i;
    for (int64_t i = 0; i < n; i++)
        order[i] = (int32_t)key[i];
    memmove(start + 1, start, (size_t)shards * sizeof *start);
    start[0] = 0;
}
