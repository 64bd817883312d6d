/* order.c - orders of sequences: as given, by length, shuffled. A radix sort orders ten million lengths in a
 * fraction of a second. */
#include <string.h>
#include "plan/plan.h"

int32_t weft__plan_longest(const int32_t *len, int64_t n)
{
    int32_t longest = 0;
    for (int64_t i = 0; i < n; i++)
        longest = len[i] > longest ? len[i] : longest;
    return longest;
}

int64_t weft__plan_count_up_to(const int64_t *number, int64_t n, int64_t value)
{
    int64_t low = 0, high = n;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (number[middle] <= value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int64_t weft__plan_first_up_to(const int32_t *len, const int32_t *order, int64_t n, int64_t length)
{
    int64_t low = 0, high = n;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (len[order[middle]] > length)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int32_t *weft__plan_order(int64_t n)
{
    int32_t *order = weft__plan_memory(n, sizeof *order);
    for (int64_t i = 0; order && i < n; i++)
        order[i] = (int32_t)i;
    return order;
}

/* ---- by length ---- */
enum { BITS = 11, DIGITS = 1 << BITS };

static uint32_t key(const int32_t *len, int32_t sequence, int32_t longest, bool descending)
{
    return (uint32_t)(descending ? longest - len[sequence] : len[sequence]);
}

/* Sorts by one digit of the keys, stable. */
static void sort_by_digit(const int32_t *len, const int32_t *from, int64_t n, int32_t longest,
                          bool descending, int shift, int32_t *to)
{
    int64_t next[DIGITS + 1] = { 0 };
    for (int64_t i = 0; i < n; i++)
        next[(key(len, from[i], longest, descending) >> shift & (DIGITS - 1)) + 1]++;
    for (int d = 0; d < DIGITS; d++)
        next[d + 1] += next[d];
    for (int64_t i = 0; i < n; i++)
        to[next[key(len, from[i], longest, descending) >> shift & (DIGITS - 1)]++] = from[i];
}

static void insert_sort(const int32_t *len, int32_t *order, int64_t n, bool descending)
{
    for (int64_t i = 1; i < n; i++) {
        int32_t index = order[i];
        int64_t k = i;
        for (; k && (descending ? len[order[k - 1]] < len[index] : len[order[k - 1]] > len[index]); k--)
            order[k] = order[k - 1];
        order[k] = index;
    }
}

static void sort_digits(const int32_t *len, int32_t *order, int64_t n, bool descending, int32_t *scratch)
{
    int32_t longest = 0;
    for (int64_t i = 0; i < n; i++)
        longest = len[order[i]] > longest ? len[order[i]] : longest;
    for (int shift = 0; shift < 32 && (uint32_t)longest >> shift; shift += BITS) {
        sort_by_digit(len, order, n, longest, descending, shift, scratch);
        memcpy(order, scratch, (size_t)n * sizeof *order);
    }
}

void weft__plan_sort_in(const int32_t *len, int32_t *order, int64_t n, bool descending, int32_t *scratch)
{
    enum { FEW = 32 };
    if (n <= FEW)
        insert_sort(len, order, n, descending);
    else
        sort_digits(len, order, n, descending, scratch);
}

bool weft__plan_sort(const int32_t *len, int32_t *order, int64_t n, bool descending, int64_t lookahead)
{
    int64_t block = lookahead > 0 && lookahead < n ? lookahead : n;
    WEFT__PLAN_SCOPE;
    int32_t *scratch = weft__plan_memory(block, sizeof *scratch);
    for (int64_t i = 0; scratch && i < n; i += block)
        weft__plan_sort_in(len, order + i, n - i < block ? n - i : block, descending, scratch);
    return scratch;
}

/* ---- shuffled ---- */
void weft__plan_shuffle(const weft_plan_opts *o, int32_t *order, int64_t n)
{
    if (o->shuffle)
        weft_stream_permutation(o->stream, n, order);
}

int32_t *weft__plan_random_order(const weft_plan_opts *o, int64_t n)
{
    int32_t *order = weft__plan_order(n);
    if (order)
        weft__plan_shuffle(o, order, n);
    return order;
}

int32_t *weft__plan_sorted(const weft_plan_opts *o, const int32_t *len, int64_t n, bool descending)
{
    int32_t *order = weft__plan_random_order(o, n);
    return order && weft__plan_sort(len, order, n, descending, o->lookahead) ? order : NULL;
}
