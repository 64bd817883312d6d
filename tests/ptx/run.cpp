/* run.cpp - executes a launch: one cluster after another, or all blocks at the same time. A warp runs until
 * it waits, then another one continues. WEFT_EMU_ORDER decides the order of warps, blocks and diverged paths,
 * as in tests/emu/fibers.h. */
#include <string.h>
#include <algorithm>
#include "tests/ptx/ptx.h"

namespace ptx {
namespace {
/* polls without progress that count as a deadlock */
enum : unsigned { PATIENCE = 300000 };
unsigned random_state;

unsigned random_below(unsigned n)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % n;
}

/* ---- a warp ---- */
/* Register file and local memory of a warp, reused by later warps. */
struct Memory {
    std::vector<char> file, local;
    std::vector<uint32_t> known;
    std::vector<uint8_t> local_known;
};
typedef std::deque<Memory> Memories;

template <class T> void fill(Warp &w, uint32_t at, T value)
{
    T *row = (T *)(w.file + at);
    for (unsigned l = 0; l < LANES; l++)
        row[l] = value;
}
void write_constants(const Kernel &k, Warp &w)
{
    for (const Constant &c : k.constants) {
        if (c.width == 'P')
            *(uint32_t *)(w.file + c.row) = c.value ? (uint32_t)ALL : 0;
        else if (c.width == 'W')
            fill(w, c.row, (uint32_t)c.value);
        else
            fill(w, c.row, c.value);
        w.known[c.slot] = ALL;
    }
}
void write_specials(const Call &call, const Block &b, Warp &w)
{
    const Kernel &k = *call.kernel;
    const Size &t = call.threads, &g = call.grid;
    const uint32_t same[SPECIALS] = { 0,           0,         0,   t.x, t.y, t.z, b.index.x,
                                      b.index.y,   b.index.z, g.x, g.y, g.z, 0,   b.rank % call.cluster,
                                      call.cluster };
    for (unsigned s = 0; s < SPECIALS; s++) {
        if (k.special[s].row == NOWHERE)
            continue;
        w.known[k.special[s].slot] = ALL;
        uint32_t *row = (uint32_t *)(w.file + k.special[s].row);
        for (unsigned l = 0; l < LANES; l++) {
            unsigned n = w.number * LANES + l;
            row[l] = s == TID_X  ? n % t.x :
                     s == TID_Y  ? n / t.x % t.y :
                     s == TID_Z  ? n / t.x / t.y :
                     s == LANEID ? l :
                                   same[s];
        }
    }
}
void begin(const Call &call, Block &b, Warp &w)
{
    const Kernel &k = *call.kernel;
    unsigned left = call.threads.x * call.threads.y * call.threads.z - w.number * LANES;
    w.block = &b;
    w.alive = left < LANES ? (1u << left) - 1 : (unsigned)ALL;
    w.active = w.alive;
    w.state = READY;
    w.arrived = false;
    w.low = w.high = 0;
    w.paths.assign(1, Path{ 0, NOWHERE, w.alive });
    memset(w.known, 0, k.slots * sizeof *w.known);
    if (k.local)
        memset(w.local_known, 0, k.local * LANES);
    write_constants(k, w), write_specials(call, b, w);
}
void finish(Warp &w) /* all its lanes have returned: no warp waits for it */
{
    Block &b = *w.block;
    if (w.arrived)
        b.cluster->arrived--;
    w.state = DONE, b.live--, b.cluster->live--;
    progress(w);
}

void branch(Warp &w, const Instruction &i, uint32_t taken)
{
    Path &path = w.paths.back();
    uint32_t fall_through = path.lanes & ~taken, next = path.pc + 1;
    const Path jumps = { i.target, i.join, taken }, continues = { next, i.join, fall_through };
    if (!taken || !fall_through) {
        path.pc = taken ? i.target : next;
        return;
    }
    /* lanes that have reached the join wait in the path below */
    if (path.join == i.join && i.join != NOWHERE)
        w.paths.pop_back();
    else
        path.pc = i.join;
    int order = w.block->cluster->call->order;
    bool first = order == 0 || (order == 2 && random_below(2));
    w.paths.push_back(first ? continues : jumps);
    w.paths.push_back(first ? jumps : continues);
}

void execute(Warp &w, const Instruction &i)
{
    Path &path = w.paths.back();
    switch (i.kind) {
    case PLAIN:
        path.pc++;
        if (w.active)
            i.run(w, i);
        break;
    case BRANCH:
        branch(w, i, w.active);
        break;
    case RETURN:
        path.pc++;
        w.alive &= ~w.active;
        break;
    case TRAP:
        path.pc++;
        if (w.active)
            fail("trap");
        break;
    }
}

void step(Warp &w)
{
    const Kernel &k = *w.block->cluster->call->kernel;
    Path &path = w.paths.back();
    path.lanes &= w.alive;
    if (!path.lanes || path.pc == path.join) {
        w.paths.pop_back();
        return;
    }
    const Instruction &i = k.code[path.pc];
    w.active = path.lanes;
    try {
        if (i.guard) {
            require_known(w, *i.guard, "a guard");
            uint32_t yes = *w.row<uint32_t>(*i.guard);
            w.active &= i.unless ? ~yes : yes;
        }
        execute(w, i);
    } catch (const Failure &f) {
        const Size &b = w.block->index;
        fail("%s:%u: %s: block (%u, %u, %u), warp %u: %s", k.text->path.c_str(), i.line, i.name, b.x, b.y,
             b.z, w.number, f.message.c_str());
    }
}

void run_until_wait(Warp &w) /* until it waits or ends */
{
    while (w.state == READY && !w.paths.empty())
        step(w);
    if (w.paths.empty())
        finish(w);
}

/* ---- turns ---- */
void open_barriers(Cluster &c)
{
    for (Block &b : c.blocks)
        if (b.at_barrier && b.at_barrier == b.live) {
            b.at_barrier = 0;
            for (Warp &w : b.warps)
                if (w.state == AT_BARRIER)
                    w.state = READY;
        }
    if (c.arrived && c.arrived == c.live)
        c.arrived = 0, c.phase++;
    for (Block &b : c.blocks)
        for (Warp &w : b.warps)
            if (w.state == AT_CLUSTER && w.cluster_phase != c.phase)
                w.state = READY;
}

Warp *choose(Cluster &c, State state)
{
    std::vector<Warp *> can;
    for (Block &b : c.blocks)
        for (Warp &w : b.warps)
            if (w.state == state)
                can.push_back(&w);
    if (can.empty())
        return NULL;
    size_t n = can.size();
    return state == POLLS ? can[c.polls % n] :
                            can[c.call->order == 0 ? 0 :
                                c.call->order == 1 ? n - 1 :
                                                     random_below((unsigned)n)];
}

Warp *choose_poller(Cluster &c)
{
    Warp *w = choose(c, POLLS);
    if (!w || c.polls > PATIENCE)
        fail("deadlock: a barrier that not all threads reach, or bytes that no thread sends");
    if (++c.polls > 2 * c.live * LANES)
        c.time += 1 << 26;
    return w;
}

void run_cluster(Cluster &c)
{
    for (open_barriers(c); c.live; open_barriers(c)) {
        Warp *w = choose(c, READY);
        if (!w)
            w = choose_poller(c);
        w->state = READY;
        run_until_wait(*w);
    }
    for (Block &b : c.blocks)
        for (Mbarrier &m : b.barriers)
            if (!m.in_flight.empty())
                fail("a block has ended before all data sent to it arrived");
}

/* ---- blocks ---- */
void begin(const Call &call, Cluster &c, unsigned first, Memories &memories)
{
    unsigned warps = (call.threads.x * call.threads.y * call.threads.z + LANES - 1) / LANES, i = 0;
    c.live = 0;
    c.arrived = c.phase = 0;
    c.polls = 0;
    for (Block &b : c.blocks) {
        unsigned id = first + b.rank;
        b.index = Size{ id % call.grid.x, id / call.grid.x % call.grid.y, id / call.grid.x / call.grid.y };
        b.live = warps;
        b.at_barrier = 0;
        c.live += warps;
        b.barriers.clear();
        memset(b.shared_known.data(), call.lost ? 0xFF : 0, b.shared_known.size());
        if (call.lost) /* as if left by an earlier kernel */
            memset(b.shared.data(), 0x3E, b.shared.size());
        for (Warp &w : b.warps) {
            Memory &m = memories[i++];
            w.file = m.file.data();
            w.known = m.known.data();
            w.local = m.local.data();
            w.local_known = m.local_known.data();
            w.number = (unsigned)(&w - b.warps.data());
            begin(call, b, w);
        }
    }
}

void allocate(const Call &call, Cluster &c, unsigned blocks, Memories &memories)
{
    const Kernel &k = *call.kernel;
    unsigned warps = (call.threads.x * call.threads.y * call.threads.z + LANES - 1) / LANES;
    c.call = &call;
    c.time = 0;
    c.blocks.resize(blocks);
    for (Block &b : c.blocks) {
        b.rank = (unsigned)(&b - c.blocks.data());
        b.cluster = &c;
        b.warps.resize(warps);
        b.shared.resize(DYNAMIC_PART + call.dynamic), b.shared_known.resize(b.shared.size());
    }
    if (memories.size() < blocks * warps)
        memories.resize(blocks * warps);
    for (unsigned i = 0; i < blocks * warps; i++) {
        Memory &m = memories[i];
        m.file.resize(std::max<size_t>(m.file.size(), k.bytes));
        m.known.resize(std::max<size_t>(m.known.size(), k.slots));
        m.local.resize(std::max(m.local.size(), k.local * LANES));
        m.local_known.resize(m.local.size());
    }
}

unsigned cluster_at(int order, unsigned i, unsigned n, unsigned from)
{
    /* a prime that does not divide n, so each block is visited once */
    unsigned long stride = n % 7919 ? 7919 : 1;
    return order == 0 ? i : order == 1 ? n - 1 - i : (unsigned)((from + i * stride) % n);
}
} // namespace

void run(const Call &call)
{
    Cluster c;
    static Memories &memories = *new Memories;
    unsigned all = call.grid.x * call.grid.y * call.grid.z, set = call.cooperative ? all : call.cluster;
    random_state = call.seed + 12345;
    allocate(call, c, set, memories);
    for (unsigned i = 0, from = random_state % (all / set); i < all / set; i++) {
        begin(call, c, cluster_at(call.order, i, all / set, from) * set, memories);
        run_cluster(c);
    }
}
} // namespace ptx
