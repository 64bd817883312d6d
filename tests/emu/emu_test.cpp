/* emu_test.cpp - tests that the emulation computes a GPU's results and detects planted mistakes.
 * A child process runs each part that crashes or that a sanitizer ends. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <functional>
#include <string>
#include "cuda/ptx.h"

/* ---- kernels ---- */
enum { ALL = 256 };                              /* threads of most kernels */

static __global__ void add_one(float *y, const float *x, int64_t n)
{
    for (int64_t i = first_index(); i < n; i += index_step())
        y[i] = x[i] + 1;
}

__device__ static float block_total(float v, float *part, bool waits)
{
    for (int d = 16; d; d /= 2)
        v += __shfl_xor_sync(~0u, v, d);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = v;
    if (waits)
        __syncthreads();
    v = 0;
    for (unsigned i = 0; i < blockDim.x / 32; i++)
        v += part[i];
    return v;
}
/* a block's total, in each thread */
template <bool WAITS> static __global__ void totals(float *y, const float *x)
{
    SHARED(part, float[8]);
    size_t i = (size_t)first_index();
    y[i] = block_total(x[i], part, WAITS);
}

static __global__ void lanes(double *y)          /* 4 rows of 32 */
{
    int lane = threadIdx.x;
    y[lane] = __shfl_sync(~0u, (double)lane, 5);
    y[32 + lane] = (double)__shfl_xor_sync(~0u, (long long)lane << 40, 3, 8);
    y[64 + lane] = lane < 8 ? __shfl_sync(0xFFu, (float)lane, 7) : 0;
    /* from a lane outside the mask */
    y[96 + lane] = lane < 8 ? __shfl_sync(0xFFu, (float)lane, 9) : 0;
}
static __global__ void half_waits()
{
    if (threadIdx.x % 2)
        __syncthreads();
    else
        __syncwarp();
}
static __global__ void other_masks() { __syncwarp(threadIdx.x < 16 ? ~0u : 0xFFFF0001u); }
static __global__ void beyond_shared(int i)
{
    SHARED(a, float[8]);
    DYN_SHARED(float, b);
    (i < 8 ? b : a)[i] = 1;
}
static __global__ void unwritten_shared(float *y)
{
    SHARED(a, float[32]);
    DYN_SHARED(float, b);
    y[threadIdx.x] = a[threadIdx.x];
    y[32 + threadIdx.x] = b[threadIdx.x];
}
static __global__ void touch(float *p) { *p = 1; }
static __global__ void count_up(unsigned long long *least, unsigned *n)
{
    atomicMin(least, (unsigned long long)first_index() + 7);
    atomicAdd(n, 1u);
}

__device__ static float sum_of(const float *x, unsigned n)
{
    float sum = 0;
    for (unsigned i = 0; i < n; i++)
        sum += x[i];
    return sum;
}
/* The last block adds up the values of all blocks. FENCES: 1, before the count; 2, after it. */
template <int FENCES> static __global__ void last_adds(float *y, float *part, unsigned *counter)
{
    SHARED(last, bool);
    part[blockIdx.x * blockDim.x + threadIdx.x] = (float)blockIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) {
        if (FENCES & 1)
            __threadfence();
        last = atomicAdd(counter, 1u) == gridDim.x - 1;
        if (FENCES & 2)
            __threadfence();
    }
    __syncthreads();
    if (last && threadIdx.x == 0)
        *y = sum_of(part, gridDim.x * blockDim.x);
}
/* Each thread fences before the barrier, so the counting thread has no fence for the others' values. */
static __global__ void fences_too_early(float *y, float *part, unsigned *counter)
{
    part[blockIdx.x * blockDim.x + threadIdx.x] = 1;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0 && atomicAdd(counter, 1u) == gridDim.x - 1) {
        __threadfence();
        *y = sum_of(part, gridDim.x * blockDim.x);
    }
}

static int failures;
static void check(bool right, const char *what, int line)
{
    if (!right)
        printf("emu_test.cpp:%d: %s\n", line, what), failures++;
}
#define CHECK(condition) check((condition), #condition, __LINE__)
static void set(const char *name, int value) { setenv(name, std::to_string(value).c_str(), 1); }

static bool dies(const std::function<void()> &what)
{
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        if (!freopen("/dev/null", "w", stderr))
            _exit(9);
        what();
        exit(0);                                 /* not _exit: ThreadSanitizer sets the exit status */
    }
    waitpid(child, &status, 0);
    return !WIFEXITED(status) || WEXITSTATUS(status);
}

typedef std::vector<float> floats;
template <class T> static T *device(size_t n)
{
    T *p;
    CHECK(cudaMalloc(&p, n * sizeof *p) == cudaSuccess);
    return p;
}
static float *put(const floats &x)
{
    float *p = device<float>(x.size());
    CHECK(cudaMemcpy(p, x.data(), x.size() * 4, cudaMemcpyHostToDevice) == cudaSuccess);
    return p;
}
template <class T> static std::vector<T> get(const T *p, size_t n)
{
    std::vector<T> x(n);
    cudaDeviceSynchronize();
    cudaMemcpy(x.data(), p, n * sizeof *p, cudaMemcpyDeviceToHost);
    return x;
}
static floats ramp(size_t n, float from = 0)
{
    floats x(n);
    for (size_t i = 0; i < n; i++)
        x[i] = from + (float)i;
    return x;
}
static bool near(const floats &a, const floats &b, double tolerance)
{
    double worst = a.size() == b.size() ? 0 : 1;
    for (size_t i = 0; i < a.size() && i < b.size(); i++)
        worst = a[i] - b[i] <= tolerance && b[i] - a[i] <= tolerance ? worst : 1;
    return worst == 0;
}

/* ---- threads ---- */
static bool totals_right(bool waits)
{
    floats x = ramp(4 * ALL), expected(4 * ALL);
    float *dx = put(x), *dy = device<float>(x.size());
    for (size_t b = 0; b < 4; b++)
        for (size_t i = 0; i < ALL; i++)
            expected[b * ALL + i] = ALL * (b * ALL + (ALL - 1) / 2.0f);
    if (waits)
        LAUNCH_RAW(totals<true>, 4, ALL, 0, NULL, dy, dx);
    else
        LAUNCH_RAW(totals<false>, 4, ALL, 0, NULL, dy, dx);
    bool right = near(get(dy, x.size()), expected, 0);
    return cudaFree(dx), cudaFree(dy), right;
}

static void test_threads()
{
    int wrong[3];
    for (int order = 0; order < 3; order++) {
        set("WEFT_EMU_ORDER", order);
        CHECK(totals_right(true));
        wrong[order] = dies([] { exit(!totals_right(false)); });
        float *x = put(ramp(1000)), *y = device<float>(1000);
        LAUNCH_RAW(add_one, 3, 96, 0, NULL, y, x, 1000);
        CHECK(get(y, 1000) == ramp(1000, 1));
        cudaFree(x), cudaFree(y);
    }
    CHECK(wrong[0] && wrong[1] && wrong[2]);     /* the planted missing barrier */
    set("WEFT_EMU_ORDER", 0);
}

static void test_lanes()
{
    double *y = device<double>(128);
    LAUNCH_RAW(lanes, 1, 32, 0, NULL, y);
    std::vector<double> v = get(y, 128);
    for (int i = 0; i < 32; i++) {
        CHECK(v[i] == 5 && v[32 + i] == (double)((long long)(i ^ 3) << 40));
        CHECK(i >= 8 || (v[64 + i] == 7 && v[96 + i] != v[96 + i]));
    }
    cudaFree(y);
}

static void expect_lost(void (*kernel)(), int threads)
{
    cudaStream_t s;
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    LAUNCH_RAW(kernel, 1, threads, 0, s);
    CHECK(cudaGetLastError() == cudaSuccess && cudaStreamSynchronize(s) == cudaErrorLaunchFailure);
    CHECK(cudaGetLastError() == cudaErrorLaunchFailure && cudaStreamSynchronize(s) == cudaErrorLaunchFailure);
    void *p;
    CHECK(cudaMalloc(&p, 1) == cudaErrorLaunchFailure && !p);
    CHECK(cudaDeviceReset() == cudaSuccess && cudaStreamDestroy(s) == cudaSuccess &&
          cudaGetLastError() == cudaSuccess);
    CHECK(totals_right(true));
}

static cudaError_t started(dim3 grid, dim3 threads, size_t shared)
{
    float *y = NULL;
    LAUNCH_RAW(touch, grid, threads, shared, NULL, y);
    return cudaGetLastError();
}

static void test_refusals()
{
    fprintf(stderr, "(two lost devices are expected)\n");
    expect_lost(half_waits, 32);
    expect_lost(other_masks, 32);
    CHECK(started(1, 1025, 0) == cudaErrorInvalidConfiguration &&
          started(1, dim3(1, 1, 65), 0) == cudaErrorInvalidConfiguration);
    CHECK(started(0, 1, 0) == cudaErrorInvalidConfiguration &&
          started(dim3(1, 65536), 1, 0) == cudaErrorInvalidConfiguration);
    CHECK(started(1, 1, 48 * 1024 + 1) == cudaErrorInvalidValue);
    CHECK(cudaFuncSetAttribute(touch, cudaFuncAttributeMaxDynamicSharedMemorySize, 228 << 10) ==
          cudaErrorInvalidValue);
    CHECK(cudaGetLastError() == cudaErrorInvalidValue && cudaGetLastError() == cudaSuccess);
    CHECK(cudaFuncSetAttribute(unwritten_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10) ==
          cudaSuccess);
    setenv("WEFT_EMU_FAIL", "touch", 1);
    float *y = device<float>(1);
    LAUNCH_RAW(touch, 1, 1, 0, NULL, y);
    CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress && cudaDeviceReset() == cudaSuccess);
    unsetenv("WEFT_EMU_FAIL");
    cudaFree(y);
}

static void test_memory()
{
    float *y = device<float>(1000), *pinned, *address;
    CHECK(dies([=] { volatile float v = *y; (void)v; }));
    CHECK(dies([=] { LAUNCH_RAW(touch, 1, 1, 0, NULL, y + 1024); cudaDeviceSynchronize(); }));
    CHECK(!dies([=] { LAUNCH_RAW(touch, 1, 1, 0, NULL, y + 999); cudaDeviceSynchronize(); }));
    CHECK(dies([=] { cudaFree(y), LAUNCH_RAW(touch, 1, 1, 0, NULL, y); cudaDeviceSynchronize(); }));
#if defined(__SANITIZE_ADDRESS__)
    CHECK(dies([=] { LAUNCH_RAW(touch, 1, 1, 0, NULL, y + 1000); cudaDeviceSynchronize(); }));
    CHECK(dies([=] { LAUNCH_RAW(beyond_shared, 1, 1, 12, NULL, 3); cudaDeviceSynchronize(); }));
    CHECK(dies([=] { LAUNCH_RAW(beyond_shared, 1, 1, 12, NULL, 8); cudaDeviceSynchronize(); }));
#endif
    CHECK(!dies([=] { LAUNCH_RAW(beyond_shared, 1, 1, 12, NULL, 2); cudaDeviceSynchronize(); }));
    for (float v : get(y, 1000))
        CHECK(v != v);
    cudaMemsetAsync(y, 0, 4000);
    LAUNCH_RAW(unwritten_shared, 1, 32, 128, NULL, y);
    floats v = get(y, 65);
    for (int i = 0; i < 65; i++)
        CHECK(i == 64 ? v[i] == 0 : v[i] != v[i]);
    setenv("WEFT_EMU_MEMORY", std::to_string(emu::held(0) + 100).c_str(), 1);
    void *p, *q;
    CHECK(cudaMalloc(&p, 101) == cudaErrorMemoryAllocation && !p && cudaMalloc(&p, 60) == cudaSuccess &&
          cudaMalloc(&q, 60) != cudaSuccess);
    CHECK(cudaFree(p) == cudaSuccess && cudaMalloc(&q, 60) == cudaSuccess && cudaFree(q) == cudaSuccess);
    unsetenv("WEFT_EMU_MEMORY");
    cudaGetLastError();
    CHECK(cudaHostAlloc(&pinned, 4, cudaHostAllocMapped) == cudaSuccess);
    CHECK(cudaHostGetDevicePointer((void **)&address, pinned, 0) == cudaSuccess);
    LAUNCH_RAW(touch, 1, 1, 0, NULL, address);
    CHECK(*pinned != 1 && cudaDeviceSynchronize() == cudaSuccess && *pinned == 1);
    CHECK(cudaMemcpy(y, y, 4, cudaMemcpyHostToDevice) == cudaErrorInvalidValue &&
          cudaFree(pinned) == cudaErrorInvalidValue);
    CHECK(cudaFreeHost(pinned) == cudaSuccess && cudaFree(y) == cudaSuccess &&
          cudaGetLastError() == cudaErrorInvalidValue);
    unsigned long long *least = device<unsigned long long>(1);
    unsigned *n = device<unsigned>(1);
    cudaMemset(least, 0xFF, 8), cudaMemset(n, 0, 4);
    LAUNCH_RAW(count_up, 5, 100, 0, NULL, least, n);
    CHECK(get(least, 1)[0] == 7 && get(n, 1)[0] == 500);
    cudaFree(least), cudaFree(n);
}

/* ---- fences ---- */
static bool added(void (*kernel)(float *, float *, unsigned *), float total)     /* by four blocks of 64 */
{
    float *y = device<float>(1), *part = device<float>(256);
    unsigned *counter = device<unsigned>(1);
    cudaMemset(counter, 0, 4);
    LAUNCH_RAW(kernel, 4, 64, 0, NULL, y, part, counter);
    bool right = get(y, 1)[0] == total;
    return cudaFree(y), cudaFree(part), cudaFree(counter), right;
}
static const struct { void (*kernel)(float *, float *, unsigned *); float total; bool fenced; } adders[] = {
    { last_adds<3>, 64 * 6, true },
    { last_adds<2>, 64 * 6, false },
    { last_adds<1>, 64 * 6, false },
    { last_adds<0>, 64 * 6, false },
    { fences_too_early, 256, false },
};
/* Starts this program again: ThreadSanitizer detects nothing in a forked child. */
static void add_by(int which)
{
    const std::string number = std::to_string(which);
    execl("/proc/self/exe", "emu_test", number.c_str(), (char *)NULL);
}
static void test_fences()                        /* only ThreadSanitizer detects a missing one */
{
#if defined(__SANITIZE_THREAD__)
    const bool detects = true;
#else
    const bool detects = false;
#endif
    for (int i = 0; i < 15; i++) {
        set("WEFT_EMU_ORDER", i / 5);
        CHECK(dies([i] { add_by(i % 5); }) == (detects && !adders[i % 5].fenced));
    }
    set("WEFT_EMU_ORDER", 0);
}

/* ---- streams ---- */
struct two { cudaStream_t a, b; cudaEvent_t done; float *x, *y, *host; };
static two make_two()
{
    two t;
    cudaStreamCreateWithFlags(&t.a, cudaStreamNonBlocking),
        cudaStreamCreateWithFlags(&t.b, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&t.done, cudaEventDisableTiming);
    t.x = device<float>(64);
    t.y = device<float>(64);
    cudaMallocHost(&t.host, 256);
    for (int i = 0; i < 64; i++)
        t.host[i] = (float)i;
    return t;
}
static void free_two(two t)
{
    cudaStreamDestroy(t.a), cudaStreamDestroy(t.b), cudaEventDestroy(t.done);
    cudaFree(t.x), cudaFree(t.y), cudaFreeHost(t.host);
}

static float *from_pool(cudaMemPool_t pool, size_t n, cudaStream_t stream)
{
    void *p = NULL;
    CHECK(cudaMallocFromPoolAsync(&p, n * sizeof(float), pool, stream) == cudaSuccess);
    return (float *)p;
}
/* Memory is accessible only on its stream, between its allocation and its free in stream order. */
static void test_pools()
{
    two t = make_two();
    cudaMemPool_t pool;
    cudaMemPoolProps of{ cudaMemAllocationTypePinned,
                         cudaMemHandleTypeNone,
                         { cudaMemLocationTypeDevice, 0 } };
    uint64_t all = UINT64_MAX, is = 0;
    CHECK(cudaMemPoolCreate(&pool, &of) == cudaSuccess &&
          cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all) == cudaSuccess);
    float *p = from_pool(pool, 64, t.a);
    CHECK(dies([=] { LAUNCH_RAW(touch, 1, 1, 0, t.b, p); cudaStreamSynchronize(t.b); }));
    CHECK(dies([=] {
        cudaFreeAsync(p, t.a);
        LAUNCH_RAW(touch, 1, 1, 0, t.a, p);
        cudaStreamSynchronize(t.a);
    }));
    cudaMemcpyAsync(p, t.host, 256, cudaMemcpyHostToDevice, t.a);
    LAUNCH_RAW(add_one, 1, 64, 0, t.a, t.y, p, 64);
    CHECK(cudaFree(p) == cudaErrorInvalidValue && cudaFreeAsync(t.x, t.a) == cudaErrorInvalidValue);
    CHECK(cudaFreeAsync(p, t.a) == cudaSuccess && cudaFreeAsync(p, t.a) == cudaErrorInvalidValue);
    CHECK(cudaMemcpyAsync(p, t.host, 256, cudaMemcpyHostToDevice, t.a) == cudaErrorInvalidValue);
    CHECK(get(t.y, 64) == ramp(64, 1));          /* work submitted before the free had access */
    float *q = from_pool(pool, 64, t.a), *r = from_pool(pool, 64, t.b);
    for (auto which : { cudaMemPoolAttrReservedMemCurrent, cudaMemPoolAttrUsedMemCurrent })
        CHECK(cudaMemPoolGetAttribute(pool, which, &is) == cudaSuccess && is == 512);
    cudaFreeAsync(q, t.a), cudaFreeAsync(r, t.b), cudaStreamSynchronize(t.a);
    CHECK(cudaMemPoolTrimTo(pool, 0) == cudaSuccess &&
          cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &is) == cudaSuccess && is == 256);
    void *none;
    setenv("WEFT_EMU_POOLS", "3", 1);
    CHECK(cudaMallocFromPoolAsync(&none, 4, pool, t.a) == cudaErrorNotSupported);
    unsetenv("WEFT_EMU_POOLS");
    CHECK(cudaMemPoolDestroy(pool) == cudaSuccess && cudaGetLastError() == cudaErrorNotSupported);
    free_two(t);
}

static bool ring_written_again(bool waits)
{
    two t = make_two();
    cudaMemcpyAsync(t.x, t.host, 256, cudaMemcpyHostToDevice, t.a);
    cudaEventRecord(t.done, t.a);
    if (waits)
        cudaEventSynchronize(t.done);
    memset(t.host, 0, 256);
    bool right = get(t.x, 64) == ramp(64);
    return free_two(t), right;
}

static void test_streams()
{
    bool early = false;
    for (int seed = 0; seed < 8; seed++) {
        set("WEFT_EMU_SEED", seed);
        CHECK(ring_written_again(true));
        early |= !ring_written_again(false);
    }
    CHECK(early);
    set("WEFT_EMU_SEED", 0);
    two t = make_two();
    floats pageable = ramp(64, 5);
    cudaMemcpyAsync(t.x, pageable.data(), 256, cudaMemcpyHostToDevice, t.a);
    pageable.assign(64, 0);                      /* the copy has read it already */
    LAUNCH_RAW(add_one, 1, 64, 0, t.a, t.y, t.x, 64);
    cudaMemcpyAsync(t.host, t.y, 256, cudaMemcpyDeviceToHost, t.a);
    CHECK(t.host[1] == 1 && cudaStreamSynchronize(t.a) == cudaSuccess && t.host[1] == 7);
    cudaSetDevice(1);
    LAUNCH_RAW(touch, 1, 1, 0, t.a, t.x);
    CHECK(cudaGetLastError() == cudaErrorInvalidResourceHandle && cudaSetDevice(2) == cudaErrorInvalidDevice);
    cudaSetDevice(0), cudaGetLastError();
    free_two(t);
}

int main(int n, char **arguments)
{
    if (n > 1) {
        const auto &a = adders[atoi(arguments[1])];
        return !added(a.kernel, a.total);
    }
    test_threads(), test_lanes(), test_refusals(), test_memory(), test_fences(), test_pools(),
        test_streams();
    CHECK(cudaDeviceSynchronize() == cudaSuccess && cudaGetLastError() == cudaSuccess);
    printf("emulation of CUDA: %s\n", failures ? "wrong" : "right");
    return failures != 0;
}
