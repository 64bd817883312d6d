/* cores.cpp - emulates tensor cores, stores between blocks and barriers that count bytes (cores.h). */
#include <utility>
#include "tests/emu/cores.h"

/* ---- tensor cores: the last lane to arrive multiplies for all ---- */
namespace {
enum { M = 16, N = 8, HALF = 4 };
typedef float Half __attribute__((vector_size(HALF * sizeof(float)), may_alias)); /* of a row of N */
struct Row { Half half[N / HALF]; float &operator[](unsigned i) { return ((float *)half)[i]; } };

void multiply(emu::Warp &w, const float (&a)[M][8], const Row (&b)[8])
{
    for (unsigned row = 0; row < M; row++)
        for (unsigned h = 0; h < N / HALF; h++) {
            emu::Lane *lane = w.lane + row % 8 * 4 + h * 2; /* it and the next have two numbers each */
            float *first = lane[0].d.f + row / 8 * 2, *second = lane[1].d.f + row / 8 * 2;
            Half sum = { first[0], first[1], second[0], second[1] };
            for (unsigned k = 0; k < 8; k++)
                sum += a[row][k] * b[k].half[h];
            first[0] = sum[0];
            first[1] = sum[1];
            second[0] = sum[2];
            second[1] = sum[3];
        }
}

float cut_tf32(uint32_t bits) { return emu::bits<float>(bits & ~0x1FFFu); }

void tf32(emu::Warp &w, unsigned)
{
    float a[M][8];
    Row b[8];
    for (unsigned l = 0; l < emu::WARP; l++) {
        for (unsigned i = 0; i < 4; i++)
            a[l / 4 + i % 2 * 8][l % 4 + i / 2 * 4] = cut_tf32(w.lane[l].a.u[i]);
        for (unsigned i = 0; i < 2; i++)
            b[l % 4 + i * 4][l / 4] = cut_tf32(w.lane[l].b.u[i]);
    }
    multiply(w, a, b);
}

} // namespace
void mma_tf32(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
    emu::Quiet quiet;
    emu::Lane &lane = emu::my_lane();
    uint32_t fragment[4] = { a[0], a[1], a[2], a[3] };
    if (emu::warp_of(emu::me).alive != emu::EVERY)
        emu::fail("a matrix product in a warp of less than 32 lanes");
    if (emu::launch->wrong)                      /* exchanges two of the four fragments */
        std::swap(fragment[1], fragment[2]);
    memcpy(&lane.a, fragment, sizeof fragment), memcpy(&lane.b, b, sizeof b), memcpy(&lane.d, d, sizeof d);
    emu::join_lanes(emu::EVERY, tf32);
    memcpy(d, &lane.d, sizeof d);
}

/* ---- barriers that count bytes ---- */
namespace {
struct counter { int32_t bytes; uint16_t pending; uint16_t count : 15, phase : 1; };
static_assert(sizeof(counter) == 8, "it takes 64 bits of shared memory");

void settle(counter *c)
{
    emu::progress();
    if (c->pending || c->bytes)
        return;
    c->pending = c->count;
    c->phase ^= 1;
}

void deliver(counter *c)                         /* completes pending stores at their wait */
{
    auto found = emu::launch->stores.find(c);
    if (found == emu::launch->stores.end())
        return;
    for (const emu::Store &s : found->second) {
        memcpy(s.to, s.bytes, s.size);
        c->bytes -= (int32_t)s.size;
        settle(c);
    }
    emu::launch->stores.erase(found);
}
} // namespace
void emu::sm90()
{
    if (launch->capability < 90)
        fail("an instruction of sm_90 on an older GPU");
}
void mbarrier_init(uint64_t *b, unsigned count)
{
    emu::sm90();
    counter c = { 0, (uint16_t)count, (uint16_t)(count & 0x7FFF), 0 };
    memcpy(b, &c, sizeof c);
}
void mbarrier_arrive_expect(uint64_t *b, unsigned bytes)
{
    emu::Quiet quiet;
    counter *c = (counter *)b;
    emu::release(b);
    if (!c->pending)
        emu::fail("mbarrier: more arrivals than its count");
    c->pending--, c->bytes += (int32_t)bytes;
    settle(c);
}
bool mbarrier_try_wait(uint64_t *b, unsigned parity)
{
    emu::Quiet quiet;
    counter *c = (counter *)b;
    if (c->phase == (parity & 1))
        deliver(c);
    if (c->phase == (parity & 1))
        emu::yield();
    if (c->phase == (parity & 1))
        return false;
    emu::acquire(b);
    return true;
}
/* Returns the same variable in another block of the cluster. */
template <class T> static T *cluster_map(T *mine, unsigned rank)
{
    emu::Block *b = emu::me->block;
    return (T *)((char *)mine - b->shared + b->cluster->first[rank].shared);
}
void emu::store_async(void *mine, uint64_t *barrier, unsigned rank, const void *v, size_t bytes)
{
    Quiet quiet;
    Store s = { cluster_map((char *)mine, rank), cluster_map(barrier, rank), bytes, {} };
    memcpy(s.bytes, v, bytes);
    release(s.barrier);
    if (launch->lost)
        return;
    launch->stores[s.barrier].push_back(s);
    if (!launch->late)
        deliver((counter *)s.barrier);
}
