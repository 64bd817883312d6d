/* cores.h - emulates the PTX functions of cuda/ptx.h, which explains them. A store into another block arrives
 * immediately (WEFT_EMU_ASYNC=0) or at the wait for it (1). Then a kernel without the wait reads the old
 * value. */
#ifndef WEFT_EMU_CORES_H
#define WEFT_EMU_CORES_H
#include "tests/emu/launch.h"

inline float reciprocal(float x)   { return 1 / x; }
inline double reciprocal(double x) { return 1 / x; }
inline void made_anew(float &) {}
inline void made_anew(double &) {}
inline void made_anew(float4 &) {}
void mma_tf32(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);

namespace emu {
void store_async(void *mine, uint64_t *barrier, unsigned rank, const void *v, size_t bytes);
}
void mbarrier_init(uint64_t *, unsigned count);
void mbarrier_arrive_expect(uint64_t *, unsigned bytes);
bool mbarrier_try_wait(uint64_t *, unsigned parity);
inline void mbarrier_init_done() {}

inline unsigned cluster_rank() { return emu::me->block->rank; }
inline unsigned cluster_size() { return emu::launch->cluster; }
/* Fails on a GPU older than sm_90. */
namespace emu { void sm90(); }
inline void cluster_sync() { emu::sm90(), emu::sync(emu::me->block->cluster->barrier); }
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
