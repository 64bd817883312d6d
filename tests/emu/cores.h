/* cores.h - the twins of the PTX in cuda/ptx.h, where each is explained. What hardware does by itself, copies
 * and stores, is done at once (WEFT_EMU_ASYNC=0) or not before somebody waits for it (1): who forgets to
 * wait, reads what was there before. */
#ifndef WEFT_EMU_CORES_H
#define WEFT_EMU_CORES_H
#include "tests/emu/launch.h"

inline uint32_t pack_bf16(float low, float high)
{
    return emu::to_bf16(low) | (uint32_t)emu::to_bf16(high) << 16;
}
inline void made_anew(float &) {}
inline void made_anew(double &) {}
inline void made_anew(float4 &) {}
void mma_tf32(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);
void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);

namespace emu {
void copy_async(void *shared, const void *global, size_t bytes, size_t given);
void copies_wait(unsigned but);
void store_async(void *mine, uint64_t *barrier, unsigned rank, const void *v, size_t bytes);
}
inline void cp_async16(void *shared, const void *global, unsigned given = 16)
{
    emu::copy_async(shared, global, 16, given);
}
inline void cp_async4(void *shared, const void *global, unsigned given = 4)
{
    emu::copy_async(shared, global, 4, given);
}
inline void cp_async_commit()
{
    emu::Quiet quiet;
    emu::me->group++;
}
template <int N> void cp_async_wait() { emu::copies_wait(N); }

void mbarrier_init(uint64_t *, unsigned count);
void mbarrier_arrive_expect(uint64_t *, unsigned bytes);
bool mbarrier_try_wait(uint64_t *, unsigned parity);
inline void mbarrier_arrive(uint64_t *b) { mbarrier_arrive_expect(b, 0); }
inline void mbarrier_init_done() {}

inline unsigned cluster_rank() { return emu::me->block->rank; }
inline unsigned cluster_size() { return emu::launch->cluster; }
/* instructions of that: on an older GPU they are a failure */
namespace emu { void sm90(); }
inline void cluster_arrive()
{
    emu::Quiet quiet;
    emu::sm90();
    emu::me->cluster_phase = emu::me->block->cluster->barrier.phase;
    emu::arrive(emu::me->block->cluster->barrier);
}
inline void cluster_wait()
{
    emu::Quiet quiet;
    emu::await(emu::me->block->cluster->barrier, emu::me->cluster_phase);
}
inline void cluster_sync() { emu::sm90(), emu::sync(emu::me->block->cluster->barrier); }
template <class T> T *cluster_map(T *mine, unsigned rank)
{
    emu::Block *b = emu::me->block;
    return (T *)((char *)mine - b->shared + b->cluster->first[rank].shared);
}
inline void mbarrier_arrive_at(uint64_t *mine, unsigned rank) { mbarrier_arrive(cluster_map(mine, rank)); }
inline void st_async(float *mine, uint64_t *barrier, unsigned rank, float v)
{
    emu::store_async(mine, barrier, rank, &v, sizeof v);
}
inline void st_async(float4 *mine, uint64_t *barrier, unsigned rank, float4 v)
{
    emu::store_async(mine, barrier, rank, &v, sizeof v);
}

inline unsigned load_acquire(const unsigned *p)
{
    emu::yield();
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

inline void store_word(uint64_t *p, uint64_t v)
{
    if (!emu::launch->lost)
        __atomic_store_n(p, v, __ATOMIC_RELAXED);
    emu::progress();
}
inline uint64_t load_word(const uint64_t *p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }
inline void look_again() { emu::yield(); }
#endif
