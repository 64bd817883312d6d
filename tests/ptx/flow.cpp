/* flow.cpp - finds where lanes that diverge at a branch reconverge: at the branch's nearest post-dominator,
 * the first instruction on all paths to the end (Cooper, Harvey and Kennedy, A Simple, Fast Dominance
 * Algorithm). ptxas also reconverges there. */
#include <algorithm>
#include "tests/ptx/ptx.h"

namespace ptx {
namespace {
/* Graph of basic blocks. The last block is the kernel's end. */
struct Graph {
    std::vector<uint32_t> first, block_of; /* first instruction of a block; block of an instruction */
    std::vector<std::vector<uint32_t>> successors, predecessors;
    std::vector<uint32_t> postorder; /* number of a block in a postorder walk from the end; 0: unreachable */
    std::vector<uint32_t> nearest; /* nearest post-dominator */
};

void find_blocks(const Kernel &k, Graph &g)
{
    std::vector<bool> starts_block(k.code.size() + 1, false);
    starts_block[0] = true;
    for (size_t i = 0; i < k.code.size(); i++)
        if (k.code[i].kind != PLAIN) {
            starts_block[i + 1] = true;
            if (k.code[i].kind == BRANCH)
                starts_block[k.code[i].target] = true;
        }
    for (uint32_t i = 0; i < k.code.size(); i++) {
        if (starts_block[i])
            g.first.push_back(i);
        g.block_of.push_back((uint32_t)g.first.size() - 1);
    }
}

void connect(const Kernel &k, Graph &g)
{
    const uint32_t end = (uint32_t)g.first.size(), code = (uint32_t)k.code.size();
    g.successors.resize(end + 1), g.predecessors.resize(end + 1);
    auto edge = [&](uint32_t from, uint32_t to) {
        g.successors[from].push_back(to), g.predecessors[to].push_back(from);
    };
    for (uint32_t b = 0; b < end; b++) {
        uint32_t last = (b + 1 < end ? g.first[b + 1] : code) - 1;
        const Instruction &i = k.code[last];
        if (i.kind == BRANCH)
            edge(b, g.block_of[i.target]);
        else if (i.kind != PLAIN)
            edge(b, end);
        if (i.kind == PLAIN || i.guard)
            edge(b, last + 1 < code ? g.block_of[last + 1] : end);
    }
}

/* Returns the blocks that reach the end, in reverse postorder. */
std::vector<uint32_t> reverse_postorder(Graph &g)
{
    const uint32_t end = (uint32_t)g.first.size();
    std::vector<uint32_t> order, next(end + 1, 0), stack{ end };
    std::vector<bool> seen(end + 1, false);
    g.postorder.assign(end + 1, 0);
    seen[end] = true;
    while (!stack.empty()) {
        uint32_t b = stack.back();
        if (next[b] < g.predecessors[b].size()) {
            uint32_t to = g.predecessors[b][next[b]++];
            if (!seen[to])
                seen[to] = true, stack.push_back(to);
        } else {
            stack.pop_back();
            order.push_back(b);
            g.postorder[b] = (uint32_t)order.size();
        }
    }
    std::reverse(order.begin(), order.end());
    return order;
}

uint32_t common(const Graph &g, uint32_t a, uint32_t b)
{
    while (a != b) {
        while (g.postorder[a] < g.postorder[b])
            a = g.nearest[a];
        while (g.postorder[b] < g.postorder[a])
            b = g.nearest[b];
    }
    return a;
}

void find_post_dominators(Graph &g)
{
    const std::vector<uint32_t> order = reverse_postorder(g);
    const uint32_t end = (uint32_t)g.first.size();
    g.nearest.assign(end + 1, NOWHERE);
    g.nearest[end] = end;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b : order) {
            if (b == end)
                continue;
            uint32_t best = NOWHERE;
            for (uint32_t to : g.successors[b])
                if (g.postorder[to] && g.nearest[to] != NOWHERE)
                    best = best == NOWHERE ? to : common(g, best, to);
            if (g.nearest[b] != best) {
                g.nearest[b] = best;
                changed = true;
            }
        }
    }
}
} // namespace

void find_joins(Kernel &k)
{
    Graph g;
    find_blocks(k, g);
    connect(k, g);
    find_post_dominators(g);
    for (size_t i = 0; i < k.code.size(); i++)
        if (k.code[i].kind == BRANCH && k.code[i].guard) {
            uint32_t block = g.nearest[g.block_of[i]];
            k.code[i].join = block < g.first.size() ? g.first[block] : NOWHERE;
        }
}
} // namespace ptx
