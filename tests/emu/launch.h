/* launch.h - emulates CUDA's language in C++: qualifiers, thread indices, shared memory, barriers, shuffles,
 * atomics, functions.
 *
 * Functions that the back end must not use are missing, so a use does not compile: atomics on floating-point
 * numbers have no fixed order. */
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
#define __forceinline__ inline
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __grid_constant__

#define threadIdx (emu::me->index)
#define blockIdx (emu::me->block->index)
#define blockDim (emu::launch->threads)
#define gridDim (emu::launch->grid)

/* ---- shared memory: __VA_ARGS__ is a type, perhaps an array's ---- */
namespace emu {
template <class T> T &shared(const void *key) { return *(T *)shared_variable(key, sizeof(T)); }
}
#define SHARED(name, ...)             \
    static const char name##_key = 0; \
    auto &name = emu::shared<__VA_ARGS__>(&name##_key)
#define DYN_SHARED(type, name) type *name = (type *)emu::me->block->shared

/* ---- CUDA's errors: name, number, text ---- */
#define EMU_ERRORS(E)                                                                                   \
    E(cudaSuccess, 0, "no error")                                                                       \
    E(cudaErrorInvalidValue, 1, "invalid argument")                                                     \
    E(cudaErrorMemoryAllocation, 2, "out of memory")                                                    \
    E(cudaErrorInvalidConfiguration, 9, "invalid configuration argument")                               \
    E(cudaErrorInsufficientDriver, 35, "CUDA driver version is insufficient for CUDA runtime version")  \
    E(cudaErrorNoDevice, 100, "no CUDA-capable device is detected")                                     \
    E(cudaErrorInvalidDevice, 101, "invalid device ordinal")                                            \
    E(cudaErrorNoKernelImageForDevice, 209,                                                             \
      "no kernel image is available for execution on the device")                                       \
    E(cudaErrorInvalidResourceHandle, 400, "invalid resource handle")                                   \
    E(cudaErrorNotReady, 600, "device not ready")                                                       \
    E(cudaErrorIllegalAddress, 700, "an illegal memory access was encountered")                         \
    E(cudaErrorLaunchOutOfResources, 701, "too many resources requested for launch")                    \
    E(cudaErrorLaunchFailure, 719, "unspecified launch failure")                                        \
    E(cudaErrorCooperativeLaunchTooLarge, 720, "too many blocks in cooperative launch")                 \
    E(cudaErrorNotSupported, 801, "operation not supported")
enum cudaError_t {
#define E(name, number, text) name = number,
    EMU_ERRORS(E)
#undef E
};

/* ---- launches ---- */
/* (kernel, grid, threads, bytes of shared memory, stream, [blocks of a cluster,] arguments...). */
typedef struct emu_stream *cudaStream_t;
namespace emu {
enum cudaError_t submit(Launch, cudaStream_t);
inline void store_argument(Launch &l, const void *argument, size_t bytes, size_t align)
{
    size_t at = (l.arguments.size() + align - 1) / align * align;
    l.arguments.resize(at + bytes);
    memcpy(l.arguments.data() + at, argument, bytes);
    l.offsets.push_back(at);
}
template <class T> struct as_is { typedef T type; };
template <class... P>
cudaError_t start(Launch l, cudaStream_t stream, void (*kernel)(P...), typename as_is<P>::type... arguments)
{
    std::tuple<P...> values(arguments...);
    l.body = [kernel, values] { std::apply(kernel, values); };
    l.kernel = (const void *)kernel;
    (store_argument(l, &arguments, sizeof arguments, alignof(P)), ...);
    return submit(l, stream);
}
inline Launch shape(const char *name, dim3 grid, dim3 threads, size_t shared, unsigned cluster,
                    bool cooperative)
{
    return Launch{ name, grid, threads, shared, cluster, cooperative };
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
/* For ThreadSanitizer: the atomics below order nothing without a fence. */
inline void __threadfence() { emu::fence(); }
inline long long clock64() { return emu::ticks(); }

/* ---- lanes ---- */
namespace emu {
/* result = value of lane `from`; poison from lanes outside of the mask */
void fetch(Warp &, unsigned mask);
void do_nothing(Warp &, unsigned mask);
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
    emu::join_lanes(mask, emu::do_nothing);
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

/* ---- atomics, for CUDA's types except floating point ---- */
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
EMU_ATOMIC(atomicMin, v < old ? v : old)
EMU_ATOMIC(atomicExch, v)
#undef EMU_ATOMIC

/* ---- functions missing in <math.h>, vectors, bits ---- */
template <class A, class B> typename std::common_type<A, B>::type min(A a, B b) { return b < a ? b : a; }
template <class A, class B> typename std::common_type<A, B>::type max(A a, B b) { return a < b ? b : a; }
template <class T> T __ldcg(const T *p) { return *p; }
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

struct alignas(16) float4 { float x, y, z, w; };
inline float4 make_float4(float x, float y, float z, float w) { return float4{ x, y, z, w }; }

/* ---- numbers as tensor cores round them ---- */
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
#endif
