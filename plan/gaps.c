/* gaps.c - an index of open rows by their gaps. It finds the smallest gap that is large enough, the largest
 * gap, and the lowest row with a gap.
 *
 * A tree of bitmaps, 64 gaps a node, finds the gap. The rows of a gap form a pairing heap (Fredman et al.
 * 1986). */
#include <string.h>
#include "plan/plan.h"

enum { BITS = 6, MASK = 63, LEVELS = 11 };

typedef struct {
    uint64_t occupied;
    int32_t below[64];
} node; /* child nodes, or heaps of rows in a leaf */
struct weft__gaps {
    int levels;
    int32_t *child, *sibling; /* [rows] the heaps; -1: no row */
    node *nodes;
    int64_t n, room, unused; /* unused: a list of free nodes linked by below[0]; -1: empty */
};

/* ---- heaps of rows ---- */
static int32_t meld(weft__gaps *g, int32_t a, int32_t b)
{
    if (a < 0 || b < 0)
        return a < 0 ? b : a;
    int32_t low = a < b ? a : b, high = a < b ? b : a;
    g->sibling[high] = g->child[low];
    g->child[low] = high;
    return low;
}

/* Returns a heap without its lowest row. */
static int32_t rest_of(weft__gaps *g, int32_t lowest)
{
    int32_t pairs = -1, rest = -1;
    for (int32_t a = g->child[lowest]; a >= 0;) {
        int32_t b = g->sibling[a], next = b < 0 ? -1 : g->sibling[b];
        g->sibling[a] = -1;
        if (b >= 0)
            g->sibling[b] = -1;
        a = meld(g, a, b);
        g->sibling[a] = pairs;
        pairs = a;
        a = next;
    }
    while (pairs >= 0) {
        int32_t next = g->sibling[pairs];
        g->sibling[pairs] = -1;
        rest = meld(g, rest, pairs);
        pairs = next;
    }
    return rest;
}

/* ---- the tree ---- */
static int64_t new_node(weft__gaps *g)
{
    int64_t index = g->unused;
    if (index >= 0) {
        g->unused = g->nodes[index].below[0];
    } else {
        if (g->n == g->room) {
            int64_t room = 2 * g->room + 16;
            node *more = weft__plan_memory(room, sizeof *more);
            if (!more)
                return -1;
            g->nodes = g->n ? memcpy(more, g->nodes, (size_t)g->n * sizeof *more) : more;
            g->room = room;
        }
        index = g->n++;
    }
    g->nodes[index].occupied = 0;
    return index;
}

weft__gaps *weft__gaps_new(int64_t rows, int64_t capacity)
{
    weft__gaps *g = weft__plan_memory(1, sizeof *g);
    if (!g)
        return NULL;
    *g = (weft__gaps){ .levels = 1, .unused = -1 };
    while (capacity >> (BITS * g->levels) && g->levels < LEVELS)
        g->levels++;
    g->child = weft__plan_memory(2 * rows, sizeof *g->child);
    g->sibling = g->child ? g->child + rows : NULL;
    return g->child && new_node(g) >= 0 ? g : NULL;
}

static int place(const weft__gaps *g, int level, int64_t gap) /* level 0 is the root */
{
    return (int)(gap >> (BITS * (g->levels - 1 - level)) & MASK);
}

bool weft__gaps_add(weft__gaps *g, int64_t gap, int64_t row)
{
    int64_t index = 0;
    for (int level = 0; level < g->levels - 1; level++) {
        int k = place(g, level, gap);
        if (!(g->nodes[index].occupied >> k & 1)) {
            int64_t below = new_node(g);
            if (below < 0)
                return false;
            g->nodes[index].below[k] = (int32_t)below;
            g->nodes[index].occupied |= (uint64_t)1 << k;
        }
        index = g->nodes[index].below[k];
    }
    node *leaf = g->nodes + index;
    int k = (int)(gap & MASK);
    g->child[row] = g->sibling[row] = -1;
    leaf->below[k] = leaf->occupied >> k & 1 ? meld(g, leaf->below[k], (int32_t)row) : (int32_t)row;
    leaf->occupied |= (uint64_t)1 << k;
    return true;
}

/* Returns the smallest or the largest gap below a node. */
static int64_t outermost(const weft__gaps *g, int64_t index, int level, int64_t gap, bool largest)
{
    for (;; level++) {
        uint64_t occupied = g->nodes[index].occupied;
        int k = largest ? 63 - __builtin_clzll(occupied) : __builtin_ctzll(occupied);
        gap = gap << BITS | k;
        if (level == g->levels - 1)
            return gap;
        index = g->nodes[index].below[k];
    }
}

int64_t weft__gaps_max(const weft__gaps *g) { return g->nodes->occupied ? outermost(g, 0, 0, 0, true) : -1; }

int64_t weft__gaps_at_least(const weft__gaps *g, int64_t least)
{
    int64_t path[LEVELS], index = 0;
    int level = 0;
    if (least >> (BITS * g->levels))
        return -1;
    for (;; level++) { /* down along `least` as far as nodes exist */
        path[level] = index;
        int k = place(g, level, least);
        if (!(g->nodes[index].occupied >> k & 1))
            break;
        if (level == g->levels - 1)
            return least;
        index = g->nodes[index].below[k];
    }
    for (; level >= 0; level--) { /* then the next gap to the right, on the lowest level that has one */
        int k = place(g, level, least);
        uint64_t right = k == MASK ? 0 : g->nodes[path[level]].occupied >> (k + 1) << (k + 1);
        if (!right)
            continue;
        int next = __builtin_ctzll(right);
        int64_t gap = (least >> (BITS * (g->levels - level)) << BITS) | next;
        return level == g->levels - 1 ?
                   gap :
                   outermost(g, g->nodes[path[level]].below[next], level + 1, gap, false);
    }
    return -1;
}

/* Removes an empty gap, and the nodes above it that become empty. */
static void prune(weft__gaps *g, const int64_t *path, int64_t gap)
{
    for (int level = g->levels - 1; level >= 0; level--) {
        node *emptied = g->nodes + path[level];
        emptied->occupied &= ~((uint64_t)1 << place(g, level, gap));
        if (emptied->occupied || !level)
            return;
        emptied->below[0] = (int32_t)g->unused;
        g->unused = path[level];
    }
}

int64_t weft__gaps_take(weft__gaps *g, int64_t gap)
{
    int64_t path[LEVELS], index = 0;
    for (int level = 0; level < g->levels; level++) {
        path[level] = index;
        if (level < g->levels - 1)
            index = g->nodes[index].below[place(g, level, gap)];
    }
    int32_t row = g->nodes[index].below[gap & MASK], rest = rest_of(g, row);
    g->nodes[index].below[gap & MASK] = rest;
    if (rest < 0)
        prune(g, path, gap);
    return row;
}
