/* launch.h - CUDA's language in C++: qualifiers, who a thread is, shared memory, barriers, shuffles, atomics,
 * functions.
 *
 * What the back end must not use is left out, so that it does not compile: atomics on floating point numbers
 * have no fixed order. */
#ifndef WEFT_EMU_LAUNCH_H
#define WEFT_EMU_LAUNCH_H
#include <math.h>
#include <string.h>
#include <tuple>
#include <type_traits>
#include "tests/emu/fibers.h"
#pragma GCC diagnostic ignored "-Wunknown-pragmas"        /* #pragma unroll */

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __restrict__ __restrict
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __grid_constant__

#define threadIdx (emu::me->index)
#define blockIdx (emu::me->block->index)
#define blockDim (emu::launch->threads)
#define gridDim (emu::launch->grid)
static constexpr int warpSize = 32;

/* ---- shared memory: __VA_ARGS__ is a type, perhaps an array's ---- */
namespace emu {
template <class T> T &shared(const void *key) { return *(T *)shared_variable(key, sizeof(T)); }
}
#define SHARED(name, ...)             \
    static const char name##_key = 0; \
    auto &name = emu::shared<__VA_ARGS__>(&name##_key)
#define DYN_SHARED(type, name) type *name = (type *)emu::me->block->shared

/* CUDA's, of the launches below */
enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInvalidMemcpyDirection = 21,
    cudaErrorInsufficientDriver = 35,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorNoKernelImageForDevice = 209,
    cudaErrorUnsupportedPtxVersion = 222,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorNotReady = 600,
    cudaErrorIllegalAddress = 700,
    cudaErrorLaunchOutOfResources = 701,
    cudaErrorLaunchFailure = 719,
    cudaErrorCooperativeLaunchTooLarge = 720,
    cudaErrorNotSupported = 801,
    cudaErrorStreamCaptureUnsupported = 900,
    cudaErrorStreamCaptureInvalidated = 901,
    cudaErrorGraphExecUpdateFailure = 910,
    cudaErrorIllegalState = 401
};

/* ---- launches ---- */
/* (kernel, grid, threads, bytes of shared memory, stream, [blocks of a cluster,] arguments...). */
typedef struct emu_stream *cudaStream_t;
namespace emu {
enum cudaError_t submit(Launch, cudaStream_t);
inline void keep(Launch &l, const void *argument, size_t bytes, size_t align)
{
    size_t at = (l.arguments.size() + align - 1) / align * align;
    l.arguments.resize(at + bytes);
    memcpy(l.arguments.data() + at, argument, bytes);
    l.places.push_back(at);
}
template <class T> struct as_is { typedef T type; };
template <class... P>
cudaError_t start(Launch l, cudaStream_t stream, void (*kernel)(P...), typename as_is<P>::type... arguments)
{
    std::tuple<P...> kept(arguments...);
    l.body = [kernel, kept] { std::apply(kernel, kept); };
    l.kernel = (const void *)kernel;
    (keep(l, &arguments, sizeof arguments, alignof(P)), ...);
    return submit(l, stream);
}
inline Launch shape(const char *name, dim3 grid, dim3 threads, size_t shared, unsigned cluster, bool together)
{
    Launch l = {};
    l.name = name, l.grid = grid, l.threads = threads, l.dynamic = shared, l.cluster = cluster,
    l.together = together;
    return l;
}
} // namespace emu
#define LAUNCH_RAW(kernel, grid, threads, shared, stream, ...) \
    emu::start(emu::shape(#kernel, grid, threads, shared, 1, false), stream, kernel, ##__VA_ARGS__)
#define LAUNCH_COOP_RAW(kernel, grid, threads, shared, stream, ...) \
    emu::start(emu::shape(#kernel, grid, threads, shared, 1, true), stream, kernel, ##__VA_ARGS__)
#define LAUNCH_CLUSTER_RAW(kernel, grid, threads, shared, stream, cluster, ...) \
    emu::start(emu::shape(#kernel, grid, threads, shared, cluster, false), stream, kernel, ##__VA_ARGS__)

/* ---- barriers and fences ---- */
inline void __syncthreads() { emu::sync(emu::me->block->barrier); }
/* the CPU sees all in order; for ThreadSanitizer the atomics below order nothing without a fence */
inline void __threadfence() { emu::fence(); }
inline void __threadfence_block() { __threadfence(); }
inline void __threadfence_system() { __threadfence(); }
inline void __nanosleep(unsigned) { emu::yield(); }
inline long long clock64() { return emu::ticks(); }

/* ---- lanes ---- */
namespace emu {
/* got = value of lane `from`; poison from lanes outside of the mask */
void fetch(Warp &, unsigned mask);
void vote(Warp &, unsigned mask);                /* got = bits of the lanes whose value is not 0 */
void nothing(Warp &, unsigned mask);
uint64_t exchange(unsigned mask, uint64_t value, unsigned from, Finish);
template <class T> T shuffle(unsigned mask, T value, unsigned from)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a shuffle moves 4 or 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = exchange(mask, bits, from, fetch);
    memcpy(&value, &bits, sizeof value);
    return value;
}
} // namespace emu
inline void __syncwarp(unsigned mask = emu::EVERY)
{
    emu::Warp &w = emu::warp_of(emu::me);
    emu::release(w.mark);
    emu::together(mask, emu::nothing);
    emu::acquire(w.mark);
}
template <class T> T __shfl_sync(unsigned mask, T value, int from, int width = 32)
{
    unsigned lane = emu::lane_of(emu::me), w = (unsigned)width;
    return emu::shuffle(mask, value, (lane & ~(w - 1)) | ((unsigned)from & (w - 1)));
}
template <class T> T __shfl_xor_sync(unsigned mask, T value, int flip, int width = 32)
{
    unsigned lane = emu::lane_of(emu::me), from = lane ^ (unsigned)flip, w = (unsigned)width;
    return emu::shuffle(mask, value, (from & ~(w - 1)) > (lane & ~(w - 1)) ? lane : from);
}
template <class T> T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32)
{
    unsigned lane = emu::lane_of(emu::me), w = (unsigned)width;
    return emu::shuffle(mask, value, (lane & (w - 1)) + by < w ? lane + by : lane);
}
template <class T> T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32)
{
    unsigned lane = emu::lane_of(emu::me);
    return emu::shuffle(mask, value, (lane & ((unsigned)width - 1)) >= by ? lane - by : lane);
}
inline unsigned __ballot_sync(unsigned mask, int yes)
{
    return (unsigned)emu::exchange(mask, yes != 0, 0, emu::vote);
}
inline int __any_sync(unsigned mask, int yes) { return __ballot_sync(mask, yes) != 0; }
inline int __all_sync(unsigned mask, int yes) { return __ballot_sync(mask, !yes) == 0; }

/* ---- atomics: for the types that CUDA has them for, but no floating point ---- */
namespace emu {
template <class T> struct atomic {
    static_assert(std::is_same<T, int>::value || std::is_same<T, unsigned>::value ||
                      std::is_same<T, long long>::value || std::is_same<T, unsigned long long>::value,
                  "CUDA has no such atomic, or one without a fixed order");
    typedef T type;
};
template <class T, class F> T change(T *p, F f)
{
    publish((void *)p);
    T old = __atomic_load_n(p, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(p, &old, f(old), false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
    witness((void *)p);
    progress();
    return old;
}
} // namespace emu
#define EMU_ATOMIC(name, formula)                                    \
    template <class T> T name(T *p, typename emu::atomic<T>::type v) \
    {                                                                \
        return emu::change(p, [v](T old) -> T {                      \
            (void)old;                                               \
            return formula;                                          \
        });                                                          \
    }
EMU_ATOMIC(atomicAdd, old + v)
EMU_ATOMIC(atomicSub, old - v)
EMU_ATOMIC(atomicMin, v < old ? v : old)
EMU_ATOMIC(atomicMax, v > old ? v : old)
EMU_ATOMIC(atomicAnd, old & v)
EMU_ATOMIC(atomicOr, old | v)
EMU_ATOMIC(atomicXor, old ^ v)
EMU_ATOMIC(atomicExch, v)
#undef EMU_ATOMIC
template <class T> T atomicCAS(T *p, typename emu::atomic<T>::type expected, typename emu::atomic<T>::type v)
{
    return emu::change(p, [=](T old) { return old == expected ? v : old; });
}

/* ---- functions that <math.h> has not, vectors, bits ---- */
inline float  rsqrt(float x) { return 1 / sqrt(x); }
inline double rsqrt(double x) { return 1 / sqrt(x); }
inline float  rsqrtf(float x) { return rsqrt(x); }
inline float  __expf(float x) { return exp(x); }
inline float  __logf(float x) { return log(x); }
inline float  __fdividef(float a, float b) { return a / b; }
inline float  __saturatef(float x) { return x > 0 ? x < 1 ? x : 1 : 0; }
inline float  __fmul_rn(float a, float b) { return a * b; }
inline float  __fadd_rn(float a, float b) { return a + b; }
template <class A, class B> typename std::common_type<A, B>::type min(A a, B b) { return b < a ? b : a; }
template <class A, class B> typename std::common_type<A, B>::type max(A a, B b) { return a < b ? b : a; }
template <class T> T __ldg(const T *p) { return *p; }
template <class T> T __ldcg(const T *p) { return *p; }
template <class T> T __ldcs(const T *p) { return *p; }
template <class T> void __stcs(T *p, T v) { *p = v; }
namespace emu {
template <class To, class From> To bits(From v)
{
    static_assert(sizeof(To) == sizeof(From), "");
    To to;
    memcpy(&to, &v, sizeof to);
    return to;
}
} // namespace emu
inline int       __float_as_int(float x) { return emu::bits<int>(x); }
inline unsigned  __float_as_uint(float x) { return emu::bits<unsigned>(x); }
inline float     __int_as_float(int x) { return emu::bits<float>(x); }
inline float     __uint_as_float(unsigned x) { return emu::bits<float>(x); }
inline long long __double_as_longlong(double x) { return emu::bits<long long>(x); }
inline double    __longlong_as_double(long long x) { return emu::bits<double>(x); }
inline int       __popc(unsigned x) { return __builtin_popcount(x); }
inline int       __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int       __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int       __ffs(int x) { return __builtin_ffs(x); }
inline unsigned  __umulhi(unsigned a, unsigned b) { return (unsigned)((uint64_t)a * b >> 32); }

#define EMU_VECTORS(type, name, bytes)                                                    \
    struct alignas(2 * bytes) name##2 { type x, y; };                                     \
    struct name##3 { type x, y, z; };                                                     \
    struct alignas(4 * bytes > 16 ? 16 : 4 * bytes) name##4 { type x, y, z, w; };         \
    inline name##2 make_##name##2(type x, type y) { return name##2 { x, y }; }            \
    inline name##3 make_##name##3(type x, type y, type z) { return name##3 { x, y, z }; } \
    inline name##4 make_##name##4(type x, type y, type z, type w) { return name##4 { x, y, z, w }; }
EMU_VECTORS(float, float, 4)
EMU_VECTORS(double, double, 8)
EMU_VECTORS(int, int, 4)
EMU_VECTORS(unsigned, uint, 4)
#undef EMU_VECTORS

/* ---- bf16: the upper half of a float, rounded to even when it is stored ---- */
struct __nv_bfloat16 { uint16_t bits; };
typedef __nv_bfloat16 nv_bfloat16;
namespace emu {
inline uint16_t to_bf16(float x)
{
    uint32_t u = bits<uint32_t>(x);
    return x != x ? 0x7FFF : (uint16_t)((u + 0x7FFF + (u >> 16 & 1)) >> 16);
}
inline float nearest_tf32(float x)               /* to nearest, ties away from zero, as cvt.rna does */
{
    uint32_t u = bits<uint32_t>(x);
    return bits<float>((u >> 23 & 0xFF) == 0xFF ? u : (u + 0x1000) & ~0x1FFFu);
}
inline float from_bf16(uint16_t h) { return bits<float>((uint32_t)h << 16); }
} // namespace emu
inline __nv_bfloat16 __float2bfloat16(float x) { return __nv_bfloat16{ emu::to_bf16(x) }; }
inline __nv_bfloat16 __float2bfloat16_rn(float x) { return __float2bfloat16(x); }
inline float __bfloat162float(__nv_bfloat16 h) { return emu::from_bf16(h.bits); }
#endif
