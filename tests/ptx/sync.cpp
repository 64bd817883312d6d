/* sync.cpp - what lanes, warps and blocks do together: shuffles, barriers, clusters, and stores into other
 * blocks that come when they like. */
#include <string.h>
#include "tests/ptx/ptx.h"

namespace ptx {
void together(Warp &w, const char *what)
{
    if (w.active != w.alive)
        fail("%s by lanes %#x of a warp whose lanes %#x are alive", what, w.active, w.alive);
}

namespace {
Cluster &cluster_of(Warp &w) { return *w.block->cluster; }
uint32_t value(Warp &w, const Operand &o, unsigned lane, const char *what)
{
    need(w, o, what);
    return w.row<uint32_t>(o)[lane];
}

/* ---- a block's barrier ---- */
void bar_sync(Warp &w, const Instruction &i)
{
    together(w, i.name);
    if (value(w, i.operand[0], 0, "a barrier's number") != 0)
        fail("only barrier 0 is known");
    w.state = AT_BARRIER;
    w.block->at_barrier++;
    progress(w);
}
void syncwarp(Warp &w, const Instruction &i)
{
    each(w.active, [&](unsigned l) {
        if ((value(w, i.operand[0], l, "a mask") & w.alive) & ~w.active)
            fail("lanes of its mask are elsewhere");
    });
}
void nothing(Warp &, const Instruction &) {}

/* ---- a cluster's barrier ---- */
void arrives(Warp &w, bool releases)
{
    Cluster &c = cluster_of(w);
    if (w.arrived)
        fail("arrives twice at the cluster's barrier");
    w.arrived = true;
    w.cluster_phase = c.phase;
    for (Mbarrier &b : w.block->barriers)
        if (b.by == w.number && b.fenced && releases)
            b.seen = true;
    c.arrived++;
    progress(w);
}
void cluster_arrive(Warp &w, const Instruction &i) { together(w, i.name), arrives(w, true); }
void cluster_arrive_relaxed(Warp &w, const Instruction &i) { together(w, i.name), arrives(w, false); }
void cluster_wait(Warp &w, const Instruction &i)
{
    together(w, i.name);
    if (!w.arrived)
        fail("waits at the cluster's barrier without having arrived");
    w.arrived = false;
    w.state = AT_CLUSTER;
}
void mapa(Warp &w, const Instruction &i)
{
    const Operand *o = i.operand;
    need(w, o[1], "an address"), need(w, o[2], "a rank");
    each(w.active, [&](unsigned l) {
        uint32_t at = w.row<uint32_t>(o[1])[l], rank = w.row<uint32_t>(o[2])[l];
        if (rank >= cluster_of(w).blocks.size() || at >= RANK)
            fail("maps %#x into block %u of %zu", at, rank, cluster_of(w).blocks.size());
        w.row<uint32_t>(o[0])[l] = (rank + 1) * RANK | at;
    });
    learn(w, o[0], ALL);
}

/* ---- barriers that count bytes ---- */
Mbarrier *barrier_at(Block &b, uint32_t at)
{
    for (Mbarrier &m : b.barriers)
        if (m.at == at)
            return &m;
    return NULL;
}
Mbarrier &barrier_here(Warp &w, uint32_t at)
{
    Mbarrier *m = barrier_at(*w.block, at);
    if (!m)
        fail("there is no barrier at %#x", at);
    return *m;
}
void settle(Mbarrier &m)
{
    if (!m.pending && !m.bytes) {
        m.pending = m.count;
        m.phase ^= 1;
    }
}
void inside(Warp &w, uint32_t at, size_t bytes) /* the block's shared memory */
{
    if (at % bytes || !in_shared(*cluster_of(w).call, at, bytes))
        fail("%zu bytes at %#x of shared memory", bytes, at);
}
void mbarrier_init(Warp &w, const Instruction &i)
{
    const Operand *o = i.operand;
    each(w.active, [&](unsigned l) {
        uint32_t at = value(w, o[0], l, "an address") + (uint32_t)o[0].offset;
        unsigned count = value(w, o[1], l, "a count");
        inside(w, at, 8);
        if (barrier_at(*w.block, at))
            fail("a barrier at %#x is made twice", at);
        w.block->barriers.push_back(Mbarrier{ at, 0, count, count, 0, w.number, false, false, {} });
    });
}
void fence_of_init(Warp &w, const Instruction &)
{
    for (Mbarrier &b : w.block->barriers)
        b.fenced |= b.by == w.number;
}
void arrive_expect(Warp &w, const Instruction &i)
{
    const Operand *o = i.operand;
    each(w.active, [&](unsigned l) {
        Mbarrier &m = barrier_here(w, value(w, o[1], l, "an address") + (uint32_t)o[1].offset);
        if (!m.pending)
            fail("more arrive at a barrier than it was made for");
        m.bytes += value(w, o[2], l, "a number of bytes"), m.pending--;
        settle(m);
    });
    progress(w);
}

/* ---- stores that are on their way ---- */
void deliver(Block &b, Mbarrier &m, const Store &s)
{
    if (!b.living)
        fail("what is sent comes to block %u of the cluster, which has ended", b.rank);
    memcpy(b.shared.data() + s.to, s.value, s.bytes);
    memset(b.shared_known.data() + s.to, 0xFF, s.bytes);
    m.bytes -= s.bytes;
    settle(m);
    b.cluster->polls = 0;
}
/* What was kept back as long as it could be: that barrier is waited for. */
void deliver_to(Warp &w, Mbarrier &m, unsigned parity)
{
    for (; !m.coming.empty() && m.phase == parity; m.coming.pop_front())
        deliver(*w.block, m, m.coming.front());
}
void try_wait(Warp &w, const Instruction &i)
{
    const Operand *o = i.operand;
    uint32_t over = 0, *p = w.row<uint32_t>(o[0]);
    each(w.active, [&](unsigned l) {
        unsigned parity = value(w, o[2], l, "a parity") & 1;
        uint32_t at = value(w, o[1], l, "an address") + (uint32_t)o[1].offset;
        Mbarrier &m = barrier_here(w, at);
        deliver_to(w, m, parity);
        over |= (uint32_t)(m.phase != parity) << l;
    });
    *p = (*p & ~w.active) | over;
    learn(w, o[0], ALL);
    if (over != w.active)
        w.state = POLLS;
}
void st_async(Warp &w, const Instruction &i, unsigned numbers)
{
    const Operand *o = i.operand, &barrier = o[1 + numbers];
    Cluster &c = cluster_of(w);
    for (unsigned n = 0; n < numbers; n++)
        need(w, o[1 + n], "what is stored");
    each(w.active, [&](unsigned l) {
        uint32_t to = value(w, o[0], l, "an address") + (uint32_t)o[0].offset;
        uint32_t counter = value(w, barrier, l, "a barrier's address") + (uint32_t)barrier.offset;
        unsigned rank = to / RANK ? to / RANK - 1 : w.block->rank;
        Store s = { to % RANK, 4 * numbers, {} };
        if ((counter / RANK ? counter / RANK - 1 : w.block->rank) != rank)
            fail("is sent to one block, and counted in another");
        inside(w, s.to, s.bytes);
        Mbarrier *m = rank < c.blocks.size() ? barrier_at(c.blocks[rank], counter % RANK) : NULL;
        if (!m)
            fail("there is no barrier at %#x of block %u", counter % RANK, rank);
        if (!m->seen && rank != w.block->rank)
            fail("block %u has not told of its barrier: a fence, and the cluster's barrier", rank);
        for (unsigned n = 0; n < numbers; n++)
            memcpy(s.value + 4 * n, &w.row<uint32_t>(o[1 + n])[l], 4);
        if (c.call->late && !c.call->lost)
            m->coming.push_back(s);
        else if (!c.call->lost)
            deliver(c.blocks[rank], *m, s);
    });
    progress(w);
}

/* ---- lanes ---- */
enum Way { UP, DOWN, BFLY, IDX };
template <Way WAY, unsigned PREDICATE> void shuffle(Warp &w, const Instruction &i)
{
    const Operand *o = i.operand, *from = o + 1 + PREDICATE;
    for (unsigned n = 1; n < 4; n++)
        need(w, from[n], "an operand");
    uint32_t got[LANES], known = 0, inside = 0;
    each(w.active, [&](unsigned l) {
        uint32_t b = w.row<uint32_t>(from[1])[l] & 31, c = w.row<uint32_t>(from[2])[l];
        uint32_t mask = w.row<uint32_t>(from[3])[l], part = c >> 8 & 31, first = l & part;
        uint32_t last = first | (c & 31 & ~part);
        if (!(mask >> l & 1) || (mask & w.alive & ~w.active))
            fail("lane %u, by mask %#x, of lanes %#x", l, mask, w.active);
        uint32_t j = WAY == UP ? l - b : WAY == DOWN ? l + b : WAY == BFLY ? l ^ b : first | (b & ~part);
        bool in = WAY == UP ? (int32_t)j >= (int32_t)last : j <= last;
        j = in ? j : l;
        got[l] = w.row<uint32_t>(from[0])[j];
        known |= (w.active >> j & w.known[from[0].slot] >> j & 1) << l;
        inside |= (uint32_t)in << l;
    });
    each(w.active, [&](unsigned l) { w.row<uint32_t>(o[0])[l] = got[l]; });
    learn(w, o[0], known);
    if (PREDICATE) {
        uint32_t *p = w.row<uint32_t>(o[1]);
        *p = (*p & ~w.active) | inside;
        learn(w, o[1], ALL);
    }
}
void clock64(Warp &w, const Instruction &i)
{
    each(w.active, [&](unsigned l) { w.row<uint64_t>(i.operand[0])[l] = (uint64_t)cluster_of(w).time; });
    learn(w, i.operand[0], ALL);
}

#define SHUFFLE(name, WAY)                                    \
    { "shfl.sync." name ".b32", "WWWWW", shuffle<WAY, 0> },   \
    {                                                         \
        "shfl.sync." name ".b32|p", "WPWWWW", shuffle<WAY, 1> \
    }
const Meaning table[] = {
    { "bar.sync", "W", bar_sync },
    { "bar.warp.sync", "W", syncwarp },
    { "membar.gl", "", nothing },
    { "membar.cta", "", nothing },
    { "barrier.cluster.arrive.release.aligned", "", cluster_arrive },
    { "barrier.cluster.arrive.relaxed.aligned", "", cluster_arrive_relaxed },
    { "barrier.cluster.wait.acquire.aligned", "", cluster_wait },
    { "mapa.shared::cluster.u32", "WWW", mapa },
    { "mbarrier.init.shared::cta.b64", "WW", mbarrier_init },
    { "fence.mbarrier_init.release.cluster", "", fence_of_init },
    { "mbarrier.arrive.expect_tx.shared::cta.b64", "LWW", arrive_expect },
    { "mbarrier.try_wait.parity.shared::cta.b64", "PWW", try_wait },
    { "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64", "PWW", try_wait },
    { "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.f32", "WWW",
      [](Warp &w, const Instruction &i) { st_async(w, i, 1); } },
    { "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32", "WWWWWW",
      [](Warp &w, const Instruction &i) { st_async(w, i, 4); } },
    SHUFFLE("up", UP),
    SHUFFLE("down", DOWN),
    SHUFFLE("bfly", BFLY),
    SHUFFLE("idx", IDX),
    { "clock64", "L", clock64 },
    { "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "WWWWWWWWWWWWWW", mma_tf32 },
};
} // namespace

const Meaning *synchronising(const std::string &name)
{
    for (const Meaning &m : table)
        if (name == m.name)
            return &m;
    return NULL;
}
} // namespace ptx
