/* sync.cpp - shuffles, barriers, clusters, and asynchronous stores into other blocks. */
#include <string.h>
#include "tests/ptx/ptx.h"

namespace ptx {
void require_whole_warp(Warp &w, const char *what)
{
    if (w.active != w.alive)
        fail("%s by lanes %#x; expected all live lanes, %#x", what, w.active, w.alive);
}

namespace {
Cluster &cluster_of(Warp &w) { return *w.block->cluster; }
uint32_t value(Warp &w, const Operand &o, unsigned lane, const char *what)
{
    require_known(w, o, what);
    return w.row<uint32_t>(o)[lane];
}

/* ---- a block's barrier ---- */
void bar_sync(Warp &w, const Instruction &i)
{
    require_whole_warp(w, i.name);
    if (value(w, i.operand[0], 0, "a barrier's number") != 0)
        fail("only barrier 0 is supported");
    w.state = AT_BARRIER;
    w.block->at_barrier++;
    progress(w);
}
void syncwarp(Warp &w, const Instruction &i)
{
    each(w.active, [&](unsigned l) {
        if ((value(w, i.operand[0], l, "a mask") & w.alive) & ~w.active)
            fail("some lanes of the mask are not active");
    });
}
void do_nothing(Warp &, const Instruction &) {}

/* ---- a cluster's barrier ---- */
template <bool RELEASES> void arrive(Warp &w, const Instruction &i)
{
    Cluster &c = cluster_of(w);
    require_whole_warp(w, i.name);
    if (w.arrived)
        fail("arrives twice at the cluster's barrier");
    w.arrived = true;
    w.cluster_phase = c.phase;
    for (Mbarrier &b : w.block->barriers)
        if (b.creator == w.number && b.fenced && RELEASES)
            b.published = true;
    c.arrived++;
    progress(w);
}
void cluster_wait(Warp &w, const Instruction &i)
{
    require_whole_warp(w, i.name);
    if (!w.arrived)
        fail("waits at the cluster's barrier without arriving");
    w.arrived = false;
    w.state = AT_CLUSTER;
}
void mapa(Warp &w, const Instruction &i)
{
    const Operand *o = i.operand;
    require_known(w, o[1], "an address"), require_known(w, o[2], "a rank");
    each(w.active, [&](unsigned l) {
        uint32_t at = w.row<uint32_t>(o[1])[l], rank = w.row<uint32_t>(o[2])[l];
        if (rank >= cluster_of(w).blocks.size() || at >= RANK)
            fail("maps %#x into block %u of %zu", at, rank, cluster_of(w).blocks.size());
        w.row<uint32_t>(o[0])[l] = (rank + 1) * RANK | at;
    });
    set_known(w, o[0], ALL);
}

/* ---- barriers that count bytes ---- */
Mbarrier *barrier_at(Block &b, uint32_t at)
{
    for (Mbarrier &m : b.barriers)
        if (m.address == at)
            return &m;
    return NULL;
}
Mbarrier &own_barrier(Warp &w, uint32_t at)
{
    Mbarrier *m = barrier_at(*w.block, at);
    if (!m)
        fail("no barrier at %#x", at);
    return *m;
}
void end_phase_if_complete(Mbarrier &m)
{
    if (!m.pending && !m.bytes) {
        m.pending = m.count;
        m.phase ^= 1;
    }
}
void check_shared(Warp &w, uint32_t at, size_t bytes) /* in the block's shared memory */
{
    if (at % bytes || !in_shared(*cluster_of(w).call, at, bytes))
        fail("%zu bytes at %#x: not aligned or outside shared memory", bytes, at);
}
void mbarrier_init(Warp &w, const Instruction &i)
{
    const Operand *o = i.operand;
    each(w.active, [&](unsigned l) {
        uint32_t at = value(w, o[0], l, "an address") + (uint32_t)o[0].offset;
        unsigned count = value(w, o[1], l, "a count");
        check_shared(w, at, 8);
        if (barrier_at(*w.block, at))
            fail("a barrier at %#x is initialised twice", at);
        w.block->barriers.push_back(Mbarrier{ at, 0, count, count, 0, w.number, false, false, {} });
    });
}
void fence_of_init(Warp &w, const Instruction &)
{
    for (Mbarrier &b : w.block->barriers)
        b.fenced |= b.creator == w.number;
}
void arrive_expect(Warp &w, const Instruction &i)
{
    const Operand *o = i.operand;
    each(w.active, [&](unsigned l) {
        Mbarrier &m = own_barrier(w, value(w, o[1], l, "an address") + (uint32_t)o[1].offset);
        if (!m.pending)
            fail("more arrivals at a barrier than its count");
        m.bytes += value(w, o[2], l, "a number of bytes"), m.pending--;
        end_phase_if_complete(m);
    });
    progress(w);
}

/* ---- stores in flight ---- */
void deliver(Block &b, Mbarrier &m, const Store &s)
{
    if (!b.live)
        fail("data sent to block %u of the cluster, which has ended", b.rank);
    memcpy(b.shared.data() + s.to, s.value, s.bytes);
    memset(b.shared_known.data() + s.to, 0xFF, s.bytes);
    m.bytes -= s.bytes;
    end_phase_if_complete(m);
    b.cluster->polls = 0;
}
/* Delivers delayed stores when a warp waits for their barrier. */
void deliver_to(Warp &w, Mbarrier &m, unsigned parity)
{
    for (; !m.in_flight.empty() && m.phase == parity; m.in_flight.pop_front())
        deliver(*w.block, m, m.in_flight.front());
}
void try_wait(Warp &w, const Instruction &i)
{
    const Operand *o = i.operand;
    uint32_t over = 0, *p = w.row<uint32_t>(o[0]);
    each(w.active, [&](unsigned l) {
        unsigned parity = value(w, o[2], l, "a parity") & 1;
        uint32_t at = value(w, o[1], l, "an address") + (uint32_t)o[1].offset;
        Mbarrier &m = own_barrier(w, at);
        deliver_to(w, m, parity);
        over |= (uint32_t)(m.phase != parity) << l;
    });
    *p = (*p & ~w.active) | over;
    set_known(w, o[0], ALL);
    if (over != w.active)
        w.state = POLLS;
}
void st_async(Warp &w, const Instruction &i, unsigned numbers)
{
    const Operand *o = i.operand, &barrier = o[1 + numbers];
    Cluster &c = cluster_of(w);
    for (unsigned n = 0; n < numbers; n++)
        require_known(w, o[1 + n], "the stored value");
    each(w.active, [&](unsigned l) {
        uint32_t to = value(w, o[0], l, "an address") + (uint32_t)o[0].offset;
        uint32_t counter = value(w, barrier, l, "a barrier's address") + (uint32_t)barrier.offset;
        unsigned rank = to / RANK ? to / RANK - 1 : w.block->rank;
        Store s = { to % RANK, 4 * numbers, {} };
        if ((counter / RANK ? counter / RANK - 1 : w.block->rank) != rank)
            fail("data goes to one block, its barrier is in another");
        check_shared(w, s.to, s.bytes);
        Mbarrier *m = rank < c.blocks.size() ? barrier_at(c.blocks[rank], counter % RANK) : NULL;
        if (!m)
            fail("no barrier at %#x of block %u", counter % RANK, rank);
        if (!m->published && rank != w.block->rank)
            fail("block %u has not published its barrier by a fence and the cluster's barrier", rank);
        for (unsigned n = 0; n < numbers; n++)
            memcpy(s.value + 4 * n, &w.row<uint32_t>(o[1 + n])[l], 4);
        if (c.call->late && !c.call->lost)
            m->in_flight.push_back(s);
        else if (!c.call->lost)
            deliver(c.blocks[rank], *m, s);
    });
    progress(w);
}

/* ---- lanes ---- */
enum Mode { UP, DOWN, BFLY, IDX };
template <Mode MODE, unsigned PREDICATE> void shuffle(Warp &w, const Instruction &i)
{
    const Operand *o = i.operand, *from = o + 1 + PREDICATE;
    for (unsigned n = 1; n < 4; n++)
        require_known(w, from[n], "an operand");
    uint32_t result[LANES], known = 0, inside = 0;
    each(w.active, [&](unsigned l) {
        uint32_t b = w.row<uint32_t>(from[1])[l] & 31, c = w.row<uint32_t>(from[2])[l];
        uint32_t mask = w.row<uint32_t>(from[3])[l], part = c >> 8 & 31, first = l & part;
        uint32_t last = first | (c & 31 & ~part);
        if (!(mask >> l & 1) || (mask & w.alive & ~w.active))
            fail("lane %u, mask %#x, active lanes %#x", l, mask, w.active);
        uint32_t j = MODE == UP ? l - b : MODE == DOWN ? l + b : MODE == BFLY ? l ^ b : first | (b & ~part);
        bool in = MODE == UP ? (int32_t)j >= (int32_t)last : j <= last;
        j = in ? j : l;
        result[l] = w.row<uint32_t>(from[0])[j];
        known |= (w.active >> j & w.known[from[0].slot] >> j & 1) << l;
        inside |= (uint32_t)in << l;
    });
    each(w.active, [&](unsigned l) { w.row<uint32_t>(o[0])[l] = result[l]; });
    set_known(w, o[0], known);
    if (PREDICATE) {
        uint32_t *p = w.row<uint32_t>(o[1]);
        *p = (*p & ~w.active) | inside;
        set_known(w, o[1], ALL);
    }
}
void clock64(Warp &w, const Instruction &i)
{
    each(w.active, [&](unsigned l) { w.row<uint64_t>(i.operand[0])[l] = (uint64_t)cluster_of(w).time; });
    set_known(w, i.operand[0], ALL);
}

#define SHUFFLE(name, MODE)                                  \
    { "shfl.sync." name ".b32", "WWWWW", shuffle<MODE, 0> }, \
    { "shfl.sync." name ".b32|p", "WPWWWW", shuffle<MODE, 1> },
const Implementation table[] = {
    { "bar.sync", "W", bar_sync },
    { "bar.warp.sync", "W", syncwarp },
    { "membar.gl", "", do_nothing },
    { "membar.cta", "", do_nothing },
    { "barrier.cluster.arrive.release.aligned", "", arrive<true> },
    { "barrier.cluster.arrive.relaxed.aligned", "", arrive<false> },
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
    SHUFFLE("up", UP) SHUFFLE("down", DOWN) SHUFFLE("bfly", BFLY) SHUFFLE("idx", IDX)
    { "clock64", "L", clock64 },
    { "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "WWWWWWWWWWWWWW", mma_tf32 },
};
} // namespace

const Implementation *find_sync(const std::string &name)
{
    for (const Implementation &m : table)
        if (name == m.name)
            return &m;
    return NULL;
}
} // namespace ptx
