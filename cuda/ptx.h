/* ptx.h - instructions that the persistent kernels need and CUDA C++ does not name: tensor cores, barriers
 * that count bytes, clusters. Those from mbarriers to clusters exist on sm_90 and
 * later. On older GPUs they trap, but such kernels are not started there. tests/emu/cores.cpp does the same
 * without a GPU. */
#ifndef WEFT_PTX_H
#define WEFT_PTX_H
#include "cuda/cuda.h"

#ifdef WEFT_EMULATED
#define UNROLLED
#define ROLLED
#define UNROLLED_BY(n)
#else
#define PRAGMA(...)    _Pragma(#__VA_ARGS__)
#define UNROLLED       _Pragma("unroll")         /* registers have no index */
#define ROLLED         _Pragma("unroll 1")       /* loads in advance take registers */
#define UNROLLED_BY(n) PRAGMA(unroll n)
#endif

/* ---- numbers for tensor cores ---- */
/* To nearest, ties away from zero, where the tensor core would cut off: cvt.rna.tf32.f32, which is five
 * instructions from sm_90 on, but that a NaN whose bits are all ones becomes a zero. */
__device__ static __forceinline__ uint32_t to_tf32(float x)
{
    return (__float_as_uint(x) + 0x1000) & ~0x1FFFu;
}
/* A number from memory, as to_tf32 may have it: a NaN is one that stays so. */
__device__ static __forceinline__ float operand(float x) { return x == x ? x : __uint_as_float(0x7FC00000); }
/* The same for what a GPU has computed, whose only NaN is 0x7FFFFFFF: a register less. */
__device__ static __forceinline__ float computed_operand(float x)
{
    return __int_as_float(min(__float_as_int(x), 0x7FC00000));
}
/* Tensor cores cut what they add up, where an addition rounds, so a long sum is not theirs to keep: of 512
 * numbers of one sign it would lose 2e-6. What they have of so many steps of eight terms goes into a sum of
 * the thread's own. */
enum { FOLDED = 4 };

#ifndef WEFT_EMULATED                            /* tests/emu/cores.h has the same names */
#define PTX __device__ static __forceinline__

/* ---- launches of blocks that wait for each other ---- */
/* LAUNCH_RAW with the size of a cluster, or of a grid that runs all at once. */
template <class... P>
static inline cudaError_t launch_with(cudaLaunchAttribute as, void (*kernel)(P...), dim3 grid, dim3 threads,
                                      size_t shared, cudaStream_t stream,
                                      typename same_<P>::type... arguments)
{
    return launch_as(&as, 1, kernel, grid, threads, shared, stream, arguments...);
}
static inline cudaLaunchAttribute as_cluster(unsigned blocks)
{
    cudaLaunchAttribute a = {};
    a.id = cudaLaunchAttributeClusterDimension;
    a.val.clusterDim.x = blocks;
    a.val.clusterDim.y = a.val.clusterDim.z = 1;
    return a;
}
static inline cudaLaunchAttribute as_cooperative()
{
    cudaLaunchAttribute a = {};
    a.id = cudaLaunchAttributeCooperative;
    a.val.cooperative = 1;
    return a;
}
/* How many such clusters the GPU can run at the same time. */
template <class... P>
static inline cudaError_t clusters_at_once(int *n, void (*kernel)(P...), int blocks, int threads,
                                           size_t shared, cudaStream_t stream)
{
    cudaLaunchAttribute as = as_cluster((unsigned)blocks);
    const dim3 grid((unsigned)blocks), each((unsigned)threads);
    const cudaLaunchConfig_t how = { grid, each, shared, stream, &as, 1 };
    return cudaOccupancyMaxActiveClusters(n, kernel, &how);
}
/* How many such blocks a multiprocessor has room for. */
template <class... P>
static inline cudaError_t blocks_at_once(int *n, void (*kernel)(P...), int threads, size_t shared)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(n, kernel, threads, shared);
}
#define LAUNCH_CLUSTER_RAW(kernel, grid, threads, shared, stream, cluster, ...) \
    launch_with(as_cluster(cluster), kernel, grid, threads, shared, stream, __VA_ARGS__)
#define LAUNCH_COOP_RAW(kernel, grid, threads, shared, stream, ...) \
    launch_with(as_cooperative(), kernel, grid, threads, shared, stream, __VA_ARGS__)

/* Returns 1 / x, correct to one unit in the last place: one instruction, where a division takes ten. */
PTX float reciprocal(float x)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
PTX double reciprocal(double x) { return 1 / x; }

/* ---- tensor cores ---- */
/* D += a b for a warp: d 16 x 8, a 16 x 8, b 8 x 8. With g = lane / 4 and t = lane % 4, a lane has
 * d: (g, 2t), (g, 2t+1), (g+8, 2t), (g+8, 2t+1); a: (g, t), (g+8, t), (g, t+4), (g+8, t+4);
 * b: (t, g), (t+4, g). */
PTX void mma_tf32(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
/* May be another number from here on, for all that the compiler knows: what follows from it is not
 * computed ahead and kept. */
PTX void made_anew(float &x) { asm("" : "+f"(x)); }
PTX void made_anew(double &x) { asm("" : "+d"(x)); }
PTX void made_anew(float4 &v) { asm volatile("" : "+f"(v.x), "+f"(v.y), "+f"(v.z), "+f"(v.w)); }

PTX uint32_t shared_address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

#ifndef WEFT_ONCE                                /* of sm_90 and later */
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define SM90(...) asm volatile(__VA_ARGS__)
#else
#define SM90(...) __trap()
#endif
/* ---- barriers in shared memory ---- */
/* A phase is over when `count` have arrived and as many bytes as were expected have come. */
PTX void mbarrier_init(uint64_t *b, unsigned count)
{
    SM90("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(shared_address(b)), "r"(count) : "memory");
}
/* Before the cluster_sync that tells the others. */
PTX void mbarrier_init_done() { SM90("fence.mbarrier_init.release.cluster;" ::: "memory"); }
PTX void mbarrier_arrive_expect(uint64_t *b, unsigned bytes)
{
    SM90("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(b)), "r"(bytes)
         : "memory");
}
/* Returns true if the phase of that parity is over; the first phase has parity 0. Waits for it as long as the
 * hardware chooses. It acquires for the block only, since the data arrives in the block's own shared memory,
 * and to acquire for the cluster would empty L1 in each step. That a peer's next store comes after this
 * block's reads of the place rests on the hardware: a store to shared memory does not overtake a read that
 * has returned. */
PTX bool mbarrier_try_wait(uint64_t *b, unsigned parity)
{
    uint32_t over = 1;
    SM90("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, "
         "1, 0, p; }"
         : "=r"(over)
         : "r"(shared_address(b)), "r"(parity)
         : "memory");
    return over;
}

/* ---- clusters ---- */
PTX unsigned cluster_rank()
{
    uint32_t r = 0;
    SM90("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}
PTX unsigned cluster_size()
{
    uint32_t r = 1;
    SM90("mov.u32 %0, %%cluster_nctarank;" : "=r"(r));
    return r;
}
PTX void cluster_sync()
{
    SM90("barrier.cluster.arrive.release.aligned;" ::: "memory");
    SM90("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
/* The address of the same variable in another block of the cluster. That block must have begun and must not
 * have ended, so call cluster_sync before and after. */
PTX uint32_t cluster_address(const void *mine, unsigned rank)
{
    uint32_t there = 0;
    SM90("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(mine)), "r"(rank));
    return there;
}
/* Into the block of that rank, in the place of `mine`; its barrier counts the bytes. */
PTX void st_async(float4 *mine, uint64_t *barrier, unsigned rank, float4 v)
{
    SM90("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1,%2,%3,%4}, [%5];" ::"r"(
             cluster_address(mine, rank)),
         "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w), "r"(cluster_address(barrier, rank))
         : "memory");
}
#undef SM90
#endif

/* ---- polling ---- */
PTX unsigned load_acquire(const unsigned *p)
{
    unsigned v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

/* ---- words of 64 bits that blocks leave each other in the GPU's memory ---- */
/* One is there as a whole or not at all, for all blocks; nothing else is ordered by it. */
PTX void store_word(uint64_t *p, uint64_t v)
{
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}
PTX uint64_t load_word(const uint64_t *p)
{
    uint64_t v;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}
/* between two looks at a word that has not come */
PTX void look_again() {}
#undef PTX
#endif

#endif
