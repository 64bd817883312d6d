/* flow.cpp - where lanes that part at a branch meet again: at the first place that every path from there to
 * the end goes through, the branch's nearest post-dominator (Cooper, Harvey and Kennedy, A Simple, Fast
 * Dominance Algorithm). ptxas has them meet there, too. */
#include <algorithm>
#include "tests/ptx/ptx.h"

namespace ptx {
namespace {
/* Of straight runs of instructions; the last block is the kernel's end. */
struct Graph {
    std::vector<uint32_t> first, block_of; /* first instruction of a block, block of an instruction */
    std::vector<std::vector<uint32_t>> after, before;
    std::vector<uint32_t> turn; /* of a block in a walk from the end; 0: not reached */
    std::vector<uint32_t> nearest; /* post-dominator */
};

bool ends_block(const Instruction &i) { return i.kind != PLAIN; }

void cut(const Kernel &k, Graph &g)
{
    std::vector<bool> leads(k.code.size() + 1, false);
    leads[0] = true;
    for (size_t i = 0; i < k.code.size(); i++)
        if (ends_block(k.code[i])) {
            leads[i + 1] = true;
            if (k.code[i].kind == BRANCH)
                leads[k.code[i].target] = true;
        }
    for (uint32_t i = 0; i < k.code.size(); i++) {
        if (leads[i])
            g.first.push_back(i);
        g.block_of.push_back((uint32_t)g.first.size() - 1);
    }
}

void connect(const Kernel &k, Graph &g)
{
    const uint32_t end = (uint32_t)g.first.size(), code = (uint32_t)k.code.size();
    g.after.resize(end + 1), g.before.resize(end + 1);
    auto edge = [&](uint32_t from, uint32_t to) {
        g.after[from].push_back(to), g.before[to].push_back(from);
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

/* The blocks from which the end is reached, last first. */
std::vector<uint32_t> walk(Graph &g)
{
    const uint32_t end = (uint32_t)g.first.size();
    std::vector<uint32_t> order, next(end + 1, 0), stack{ end };
    std::vector<bool> seen(end + 1, false);
    g.turn.assign(end + 1, 0);
    seen[end] = true;
    while (!stack.empty()) {
        uint32_t b = stack.back();
        if (next[b] < g.before[b].size()) {
            uint32_t to = g.before[b][next[b]++];
            if (!seen[to])
                seen[to] = true, stack.push_back(to);
        } else {
            stack.pop_back();
            order.push_back(b);
            g.turn[b] = (uint32_t)order.size();
        }
    }
    std::reverse(order.begin(), order.end());
    return order;
}

uint32_t common(const Graph &g, uint32_t a, uint32_t b)
{
    while (a != b) {
        while (g.turn[a] < g.turn[b])
            a = g.nearest[a];
        while (g.turn[b] < g.turn[a])
            b = g.nearest[b];
    }
    return a;
}

void dominate(Graph &g)
{
    const std::vector<uint32_t> order = walk(g);
    const uint32_t end = (uint32_t)g.first.size();
    g.nearest.assign(end + 1, NOWHERE);
    g.nearest[end] = end;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b : order) {
            if (b == end)
                continue;
            uint32_t best = NOWHERE;
            for (uint32_t to : g.after[b])
                if (g.turn[to] && g.nearest[to] != NOWHERE)
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
    cut(k, g);
    connect(k, g);
    dominate(g);
    for (size_t i = 0; i < k.code.size(); i++)
        if (k.code[i].kind == BRANCH && k.code[i].guard) {
            uint32_t block = g.nearest[g.block_of[i]];
            k.code[i].join = block < g.first.size() ? g.first[block] : NOWHERE;
        }
}
} // namespace ptx
