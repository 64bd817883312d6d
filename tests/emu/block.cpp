/* block.cpp - runs operations of the lanes of a warp, and places the shared variables of a block. */
#include "tests/emu/launch.h"

namespace emu {
/* ---- lanes of a warp ---- */
static bool complete(Warp &w, unsigned group)
{
    if ((w.waiting & group) != group)
        return false;
    for (unsigned i = 0; i < WARP; i++)
        if (group >> i & 1 && (w.lane[i].mask & w.alive) != group)
            launch->failure = "lanes of a warp wait for each other with different masks";
    return true;
}

static void finish(Warp &w, unsigned mask, Finish what)
{
    unsigned group = mask & w.alive;
    if (!group || !complete(w, group))
        return;
    progress();
    what(w, group);
    w.waiting &= ~group;
    for (unsigned i = WARP; i-- > 0;)
        if (group >> i & 1)
            make_ready(w.first + i);
}

void join_lanes(unsigned mask, Finish what)
{
    Quiet quiet;
    Warp &w = warp_of(me);
    Lane &lane = my_lane();
    if (!(mask >> lane_of(me) & 1))
        fail("a lane is not in its own mask");
    lane.mask = mask;
    lane.finish = what;
    w.waiting |= 1u << lane_of(me);
    finish(w, mask, what);
    run_next();
}

void do_nothing(Warp &, unsigned) {}
void fetch(Warp &w, unsigned mask)
{
    for (unsigned i = 0; i < WARP; i++)
        if (mask >> i & 1) {
            unsigned from = w.lane[i].from;
            w.lane[i].result =
                from < WARP && mask >> from & 1 ? w.lane[from].value : (uint64_t)POISON << 32 | POISON;
        }
}
uint64_t exchange(unsigned mask, uint64_t value, unsigned from, Finish what)
{
    Quiet quiet;
    Lane &lane = my_lane();
    lane.value = value;
    lane.from = from;
    join_lanes(mask, what);
    return lane.result;
}

void leave(Warp &w, unsigned lane)
{
    w.alive &= ~(1u << lane);
    for (unsigned i = 0; i < WARP && w.waiting; i++)
        if (w.waiting >> i & 1)
            finish(w, w.lane[i].mask, w.lane[i].finish);
}

/* ---- shared variables ---- */
/* Has the same offset in all blocks, so that blocks of a cluster find each other's variables. */
static size_t place(Launch &l, const void *key, size_t bytes)
{
    for (size_t i = 0; i < l.variables.size(); i++)
        if (l.variables[i].key == key)
            return i;
    size_t offset = l.variables.empty() ? l.dynamic : l.variables.back().offset + l.variables.back().bytes;
    /* AddressSanitizer watches the gap */
    l.variables.push_back(Variable{ key, (offset + 255) / 128 * 128, bytes });
    if (l.variables.back().offset + bytes > SHARED_BYTES - 16 || l.variables.size() > 64)
        fail("too much shared memory");
    return l.variables.size() - 1;
}

void *shared_variable(const void *key, size_t bytes)
{
    Quiet quiet;
    Block &b = *me->block;
    size_t i = place(*launch, key, bytes);
    char *address = b.shared + launch->variables[i].offset;
    if (!(b.touched >> i & 1)) {
        ASAN_UNPOISON_MEMORY_REGION(address, bytes);
        poison(address, bytes);
        b.touched |= 1ull << i;
    }
    return address;
}
} // namespace emu
