/* tree.c - the tree along which shards are added up.
 *
 * It depends only on the number n of shards. The left half has the greatest power of two below n, so halves
 * are as even as possible, and neighbours are added first. A rank has adjacent shards, so it has a few whole
 * branches. */
#include "parallel/parallel.h"

int weft__tree_middle(weft__branch b)
{
    int n = b.end - b.from, half = 1;
    while (half < n - half)
        half *= 2;
    return b.from + half;
}

static int parts(weft__branch tree, weft__branch range, weft__branch *out)
{
    if (tree.from >= range.end || tree.end <= range.from)
        return 0;
    if (tree.from >= range.from && tree.end <= range.end) {
        *out = tree;
        return 1;
    }
    int middle = weft__tree_middle(tree);
    int n = parts((weft__branch){ tree.from, middle }, range, out);
    return n + parts((weft__branch){ middle, tree.end }, range, out + n);
}

int weft__tree_parts(int n, weft__branch range, weft__branch out[WEFT__BRANCHES])
{
    return parts((weft__branch){ 0, n }, range, out);
}

weft__branch weft__shards_of(int shards, int rank, int ranks)
{
    int64_t n = shards;
    return (weft__branch){ (int)(rank * n / ranks), (int)((rank + 1) * n / ranks) };
}
