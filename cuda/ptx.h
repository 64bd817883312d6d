/* ptx.h - PTX instructions that CUDA C++ does not offer: tensor cores, barriers that count bytes, clusters.
 * Sections from mbarriers to clusters need sm_90. On older GPUs they trap; kernels that use them are not
 * started there. tests/emu/cores.cpp emulates them without a GPU. */
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
#define ROLLED         _Pragma("unroll 1")       /* preloaded values take registers */
#define UNROLLED_BY(n) PRAGMA(unroll n)
#endif

/* ---- numbers for tensor cores ---- */
/* Rounds to the nearest, ties away from zero, where the tensor core would truncate. Equals cvt.rna.tf32.f32,
 * which takes five instructions on sm_90 and later, except that a NaN with all bits set becomes 0. */
__device__ static __forceinline__ uint32_t to_tf32(float x)
{
    return (__float_as_uint(x) + 0x1000) & ~0x1FFFu;
}
/* Makes a number from memory safe for to_tf32: replaces a NaN by one that stays NaN. */
__device__ static __forceinline__ float operand(float x) { return x == x ? x : __uint_as_float(0x7FC00000); }
/* The same for results of the GPU, whose only NaN is 0x7FFFFFFF. Saves a register. */
__device__ static __forceinline__ float computed_operand(float x)
{
    return __int_as_float(min(__float_as_int(x), 0x7FC00000));
}
/* Tensor cores truncate where an addition rounds: a sum of 512 numbers of one sign would lose 2e-6. After
 * FOLDED steps of eight terms the partial sum is therefore added to a sum in registers. */
enum { FOLDED = 4 };

#ifndef WEFT_EMULATED                            /* tests/emu/cores.h defines the same names */
#define PTX __device__ static __forceinline__

/* ---- launches whose blocks wait for each other ---- */
/* LAUNCH_RAW with a cluster size, or as a cooperative grid. */
template <class... P>
static inline cudaError_t launch_with(cudaLaunchAttribute attrs, void (*kernel)(P...), dim3 grid,
                                      dim3 threads, size_t shared, cudaStream_t stream,
                                      typename same_<P>::type... arguments)
{
    return launch_as(&attrs, 1, kernel, grid, threads, shared, stream, arguments...);
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
/* Sets *n to the number of clusters that the GPU can run at the same time. */
template <class... P>
static inline cudaError_t clusters_at_once(int *n, void (*kernel)(P...), int blocks, int threads,
                                           size_t shared, cudaStream_t stream)
{
    cudaLaunchAttribute attrs = as_cluster((unsigned)blocks);
    const dim3 grid((unsigned)blocks), each((unsigned)threads);
    const cudaLaunchConfig_t config = { grid, each, shared, stream, &attrs, 1 };
    return cudaOccupancyMaxActiveClusters(n, kernel, &config);
}
/* Sets *n to the number of blocks that fit on a multiprocessor. */
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
/* Makes the compiler treat x as modified, so that it does not compute values from x early and keep them. */
PTX void made_anew(float &x) { asm("" : "+f"(x)); }
PTX void made_anew(double &x) { asm("" : "+d"(x)); }
PTX void made_anew(float4 &v) { asm volatile("" : "+f"(v.x), "+f"(v.y), "+f"(v.z), "+f"(v.w)); }

PTX uint32_t shared_address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

#ifndef WEFT_ONCE                                /* for sm_90 and later */
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define SM90(...) asm volatile(__VA_ARGS__)
#else
#define SM90(...) __trap()
#endif
/* ---- barriers in shared memory ---- */
/* A phase ends after `count` arrivals, and after all expected bytes have arrived. */
PTX void mbarrier_init(uint64_t *b, unsigned count)
{
    SM90("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(shared_address(b)), "r"(count) : "memory");
}
/* Makes the barriers visible to other blocks. Call before the cluster_sync that publishes them. */
PTX void mbarrier_init_done() { SM90("fence.mbarrier_init.release.cluster;" ::: "memory"); }
PTX void mbarrier_arrive_expect(uint64_t *b, unsigned bytes)
{
    SM90("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(b)), "r"(bytes)
         : "memory");
}
/* Returns true if the phase of that parity is over; the first phase has parity 0. Waits as long as the
 * hardware chooses. It acquires for the block only, because the data arrives in the block's own shared
 * memory, and an acquire for the cluster would empty L1 in each step. A peer's next store must come after
 * this block's reads of the same place. The hardware ensures it: a store to shared memory does not overtake a
 * read that has returned. */
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
/* Returns the address of the same variable in another block of the cluster. That block must run, so call
 * cluster_sync before and after. */
PTX uint32_t cluster_address(const void *mine, unsigned rank)
{
    uint32_t address = 0;
    SM90("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared_address(mine)), "r"(rank));
    return address;
}
/* Stores v in the block of that rank, at the place of `mine`; that block's barrier counts the bytes. */
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

/* ---- 64-bit words with which blocks exchange data in device memory ---- */
/* A word arrives as a whole. It orders no other access. */
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
/* between two reads of a word that has not arrived */
PTX void look_again() {}
#undef PTX
#endif

#endif
