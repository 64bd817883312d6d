/* cores.cpp - tensor cores, asynchronous copies and counting barriers of cores.h. */
#include <utility>
#include "tests/emu/cores.h"

/* ---- tensor cores: the last lane that comes multiplies for all of them ---- */
namespace {
enum { M = 16, N = 8, HALF = 4 };
typedef float Half __attribute__((vector_size(HALF * sizeof(float)), may_alias)); /* of a row of N */
struct Row { Half half[N / HALF]; float &operator[](unsigned i) { return ((float *)half)[i]; } };

template <int K> void multiply(emu::Warp &w, const float (&a)[M][K], const Row (&b)[K])
{
    for (unsigned row = 0; row < M; row++)
        for (unsigned h = 0; h < N / HALF; h++) {
            emu::Lane *lane = w.lane + row % 8 * 4 + h * 2; /* it and the next have two numbers each */
            float *first = lane[0].d.f + row / 8 * 2, *second = lane[1].d.f + row / 8 * 2;
            Half sum = { first[0], first[1], second[0], second[1] };
            for (unsigned k = 0; k < K; k++)
                sum += a[row][k] * b[k].half[h];
            first[0] = sum[0], first[1] = sum[1], second[0] = sum[2], second[1] = sum[3];
        }
}

float cut_tf32(uint32_t bits) { return emu::bits<float>(bits & ~0x1FFFu); }
float half(uint32_t pair, unsigned which) { return emu::from_bf16((uint16_t)(pair >> 16 * which)); }

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

void bf16(emu::Warp &w, unsigned)
{
    float a[M][16];
    Row b[16];
    for (unsigned l = 0; l < emu::WARP; l++)
        for (unsigned h = 0; h < 2; h++) {
            for (unsigned i = 0; i < 4; i++)
                a[l / 4 + i % 2 * 8][l % 4 * 2 + i / 2 * 8 + h] = half(w.lane[l].a.u[i], h);
            for (unsigned i = 0; i < 2; i++)
                b[l % 4 * 2 + i * 8 + h][l / 4] = half(w.lane[l].b.u[i], h);
        }
    multiply(w, a, b);
}

void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], emu::Finish how)
{
    emu::Quiet quiet;
    emu::Lane &lane = emu::my_lane();
    uint32_t fragment[4] = { a[0], a[1], a[2], a[3] };
    if (emu::warp_of(emu::me).alive != emu::EVERY)
        emu::fail("a matrix product in a warp that has not 32 lanes");
    if (emu::launch->wrong)                      /* two of the four fragments in each other's place */
        std::swap(fragment[1], fragment[2]);
    memcpy(&lane.a, fragment, sizeof fragment), memcpy(&lane.b, b, sizeof b), memcpy(&lane.d, d, sizeof d);
    emu::together(emu::EVERY, how);
    memcpy(d, &lane.d, sizeof d);
}
} // namespace
void mma_tf32(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) { mma(d, a, b, tf32); }
void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) { mma(d, a, b, bf16); }

/* ---- copies ---- */
static void perform(const emu::Copy &c)          /* not Quiet: it is the kernel's reading and writing */
{
    memcpy(c.to, c.from, c.given);
    memset((char *)c.to + c.given, 0, c.bytes - c.given);
}
static bool postponed(const emu::Copy &c)
{
    emu::Quiet quiet;
    if (((uintptr_t)c.to | (uintptr_t)c.from) % c.bytes || c.given > c.bytes)
        emu::fail("cp.async: an address is not a multiple of its size");
    if (emu::launch->late)
        emu::me->copies.push_back(c);
    return emu::launch->late;
}
void emu::copy_async(void *shared, const void *global, size_t bytes, size_t given)
{
    Copy c = { shared, global, bytes, given, me->group };
    if (!postponed(c))
        perform(c);
}
static bool take(emu::Copy &c, unsigned before)  /* the first of the groups before that one */
{
    emu::Quiet quiet;
    std::vector<emu::Copy> &copies = emu::me->copies;
    if (copies.empty() || copies[0].group >= before)
        return false;
    c = copies[0];
    copies.erase(copies.begin());
    return true;
}
void emu::copies_wait(unsigned but)
{
    Copy c;
    while (me->group > but && take(c, me->group - but))
        perform(c);
}

/* ---- barriers that count bytes ---- */
namespace {
struct counter { int32_t bytes; uint16_t pending; uint16_t count : 15, phase : 1; };
static_assert(sizeof(counter) == 8, "it lies in 64 bits of shared memory");

void settle(counter *c)
{
    emu::progress();
    if (c->pending || c->bytes)
        return;
    c->pending = c->count, c->phase ^= 1;
}

void deliver(counter *c)                         /* what was stored late, and is waited for */
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
        emu::fail("mbarrier: more arrive than it was made for");
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
