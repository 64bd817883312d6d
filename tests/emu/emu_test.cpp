/* emu_test.cpp - the emulation itself: it computes what a GPU would, and it finds the planted mistakes.
 *
 *     g++ -std=c++17 -O2 -g -include tests/emu/cuda_emu.h -I. -Wall -Wextra \
 *         [-fsanitize=address,undefined | -fsanitize=thread] -o emu_test \
 *         tests/emu/{emu_test,fibers,block,order,memory,streams,cublas,cores}.cpp -lpthread
 *
 * What crashes, or what a sanitizer ends, is done by a child. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <functional>
#include <string>
#include <thread>
#include "tests/emu/test_kernels.cu"

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
        exit(0);                                 /* not _exit: ThreadSanitizer's verdict is the exit status */
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
static floats noise(size_t n, unsigned seed)
{
    floats x(n);
    for (float &v : x)
        seed = seed * 1664525u + 1013904223u, v = (float)(int)(seed >> 8) / (1 << 23) - 1;
    return x;
}
static bool near(const floats &a, const floats &b, double tolerance)
{
    double most = a.size() == b.size() ? 0 : 1;
    for (size_t i = 0; i < a.size() && i < b.size(); i++)
        most = a[i] - b[i] <= tolerance && b[i] - a[i] <= tolerance ? most : 1;
    return most == 0;
}

/* ---- threads ---- */
static bool totals_right(bool waits)
{
    floats x = ramp(4 * ALL), want(4 * ALL);
    float *dx = put(x), *dy = device<float>(x.size());
    for (size_t b = 0; b < 4; b++)
        for (size_t i = 0; i < ALL; i++)
            want[b * ALL + i] = ALL * (b * ALL + (ALL - 1) / 2.0f);
    if (waits)
        LAUNCH_RAW(totals<true>, 4, ALL, 0, NULL, dy, dx);
    else
        LAUNCH_RAW(totals<false>, 4, ALL, 0, NULL, dy, dx);
    bool right = near(get(dy, x.size()), want, 0);
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
    double *y = device<double>(256);
    LAUNCH_RAW(lanes, 1, 32, 0, NULL, y);
    std::vector<double> v = get(y, 256);
    for (int i = 0; i < 32; i++) {
        CHECK(v[i] == 5 && v[32 + i] == (double)((long long)(i ^ 3) << 40));
        CHECK(v[64 + i] == (i % 16 + 4 < 16 ? i + 4 : i) && v[96 + i] == (i ? i - 1 : 0));
        CHECK(v[128 + i] == (double)0x49249249u && v[224 + i] == 1);
        CHECK(i >= 8 || (v[160 + i] == 7 && v[192 + i] != v[192 + i]));
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

/* ---- memory ---- */
static void test_memory()
{
    float *y = device<float>(1000), *pinned, *there;
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
    size_t left, all;
    cudaMemGetInfo(&left, &all);
    setenv("WEFT_EMU_MEMORY", std::to_string(all - left + 100).c_str(), 1);
    void *p, *q;
    CHECK(cudaMalloc(&p, 101) == cudaErrorMemoryAllocation && !p && cudaMalloc(&p, 60) == cudaSuccess &&
          cudaMalloc(&q, 60) != cudaSuccess);
    CHECK(cudaFree(p) == cudaSuccess && cudaMalloc(&q, 60) == cudaSuccess && cudaFree(q) == cudaSuccess);
    unsetenv("WEFT_EMU_MEMORY");
    cudaGetLastError();
    CHECK(cudaHostAlloc(&pinned, 4, cudaHostAllocMapped) == cudaSuccess);
    CHECK(cudaHostGetDevicePointer((void **)&there, pinned, 0) == cudaSuccess);
    LAUNCH_RAW(touch, 1, 1, 0, NULL, there);
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
/* By this program started anew: in a child that goes on from here ThreadSanitizer sees nothing. */
static void add_by(int which)
{
    const std::string number = std::to_string(which);
    execl("/proc/self/exe", "emu_test", number.c_str(), (char *)NULL);
}
static void test_fences()                        /* what lacks one is found by ThreadSanitizer alone */
{
#if defined(__SANITIZE_THREAD__)
    const bool looks = true;
#else
    const bool looks = false;
#endif
    for (int i = 0; i < 15; i++) {
        set("WEFT_EMU_ORDER", i / 5);
        CHECK(dies([i] { add_by(i % 5); }) == (looks && !adders[i % 5].fenced));
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
    t.x = device<float>(64), t.y = device<float>(64);
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
/* Memory is there from its stream's coming to its beginning to the coming to its end, and for no other. */
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
    CHECK(get(t.y, 64) == ramp(64, 1));          /* what was sent before the end still had it */
    float *q = from_pool(pool, 64, t.a), *r = from_pool(pool, 64, t.b);
    for (auto which : { cudaMemPoolAttrReservedMemCurrent, cudaMemPoolAttrUsedMemCurrent })
        CHECK(cudaMemPoolGetAttribute(pool, which, &is) == cudaSuccess && is == 512);
    cudaFreeAsync(q, t.a), cudaFreeAsync(r, t.b), cudaStreamSynchronize(t.a);
    CHECK(cudaMemPoolTrimTo(pool, 0) == cudaSuccess &&
          cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &is) == cudaSuccess && is == 256);
    cudaStreamBeginCapture(t.a, cudaStreamCaptureModeRelaxed);
    cudaGraph_t graph;
    void *none;
    CHECK(cudaMallocFromPoolAsync(&none, 4, pool, t.a) == cudaErrorStreamCaptureUnsupported &&
          cudaStreamEndCapture(t.a, &graph) == cudaErrorStreamCaptureInvalidated);
    setenv("WEFT_EMU_POOLS", "3", 1);
    CHECK(cudaMallocFromPoolAsync(&none, 4, pool, t.a) == cudaErrorNotSupported);
    unsetenv("WEFT_EMU_POOLS");
    CHECK(cudaMemPoolDestroy(pool) == cudaSuccess && cudaGetLastError() == cudaErrorNotSupported);
    free_two(t);
}

static bool copied_then_used(bool event)         /* b copies, a computes: needs the event */
{
    two t = make_two();
    cudaMemcpyAsync(t.x, t.host, 256, cudaMemcpyHostToDevice, t.b);
    if (event)
        cudaEventRecord(t.done, t.b), cudaStreamWaitEvent(t.a, t.done);
    LAUNCH_RAW(add_one, 1, 64, 0, t.a, t.y, t.x, 64);
    cudaStreamSynchronize(t.a);
    bool right = get(t.y, 64) == ramp(64, 1);
    return free_two(t), right;
}

static bool used_then_overwritten(bool event)    /* a computes from what b then overwrites: needs it, too */
{
    two t = make_two();
    cudaMemcpyAsync(t.x, t.host, 256, cudaMemcpyHostToDevice, t.a);
    cudaStreamSynchronize(t.a);
    LAUNCH_RAW(add_one, 1, 64, 0, t.a, t.y, t.x, 64);
    if (event)
        cudaEventRecord(t.done, t.a), cudaStreamWaitEvent(t.b, t.done);
    cudaMemsetAsync(t.x, 0, 256, t.b);
    cudaMemcpyAsync(t.x, t.host, 4, cudaMemcpyHostToDevice, t.b);
    cudaStreamSynchronize(t.a);
    bool right = get(t.y, 64) == ramp(64, 1);
    return free_two(t), right;
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
    int wrong[3] = { 0, 0, 0 };
    for (int seed = 0; seed < 8; seed++) {
        set("WEFT_EMU_SEED", seed);
        CHECK(copied_then_used(true) && used_then_overwritten(true) && ring_written_again(true));
        wrong[0] += !copied_then_used(false), wrong[1] += !used_then_overwritten(false),
            wrong[2] += !ring_written_again(false);
        if (seed == 1)
            CHECK(wrong[0] && wrong[1] && wrong[2]);             /* the first two orders find each of them */
    }
    set("WEFT_EMU_SEED", 0);
    two t = make_two();
    floats pageable = ramp(64, 5);
    cudaMemcpyAsync(t.x, pageable.data(), 256, cudaMemcpyHostToDevice, t.a);
    pageable.assign(64, 0);                      /* has been read */
    LAUNCH_RAW(add_one, 1, 64, 0, t.a, t.y, t.x, 64);
    cudaMemcpyAsync(t.host, t.y, 256, cudaMemcpyDeviceToHost, t.a);
    CHECK(t.host[1] == 1 && cudaStreamSynchronize(t.a) == cudaSuccess && t.host[1] == 7);
    cudaSetDevice(1);
    LAUNCH_RAW(touch, 1, 1, 0, t.a, t.x);
    CHECK(cudaGetLastError() == cudaErrorInvalidResourceHandle && cudaSetDevice(2) == cudaErrorInvalidDevice);
    cudaSetDevice(0), cudaGetLastError();
    free_two(t);
}

static void test_graphs()
{
    two t = make_two();
    cudaGraph_t graph;
    cudaGraphExec_t x;
    cudaMemsetAsync(t.x, 0, 256, t.a);
    CHECK(cudaStreamBeginCapture(t.a, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    LAUNCH_RAW(add_one, 1, 64, 0, t.a, t.y, t.x, 64);
    cudaEventRecord(t.done, t.a), cudaStreamWaitEvent(t.b, t.done);
    LAUNCH_RAW(add_one, 1, 64, 0, t.b, t.x, t.y, 64);
    cudaEventRecord(t.done, t.b), cudaStreamWaitEvent(t.a, t.done);
    CHECK(cudaStreamEndCapture(t.a, &graph) == cudaSuccess && cudaGraphInstantiate(&x, graph) == cudaSuccess);
    for (int i = 0; i < 3; i++)
        CHECK(cudaGraphLaunch(x, t.a) == cudaSuccess);
    CHECK(get(t.x, 64) == floats(64, 6));
    cudaGraphExecDestroy(x), cudaGraphDestroy(graph);
    free_two(t);
}

static cudaGraph_t addition(two t, float *y, const float *x, int times)
{
    cudaGraph_t graph;
    cudaStreamBeginCapture(t.a, cudaStreamCaptureModeRelaxed);
    for (int i = 0; i < times; i++)
        LAUNCH_RAW(add_one, 1, 64, 0, t.a, y, x, 64);
    CHECK(cudaStreamEndCapture(t.a, &graph) == cudaSuccess);
    return graph;
}
static void test_updates()                       /* what was sent before stays as it was */
{
    two t = make_two();
    cudaGraphExec_t x;
    cudaGraphExecUpdateResultInfo why;
    cudaGraph_t there = addition(t, t.y, t.x, 1), back = addition(t, t.x, t.y, 1),
                longer = addition(t, t.x, t.y, 2);
    cudaMemsetAsync(t.x, 0, 256, t.a);
    CHECK(cudaGraphInstantiate(&x, there) == cudaSuccess && cudaGraphLaunch(x, t.a) == cudaSuccess);
    CHECK(cudaGraphExecUpdate(x, back, &why) == cudaSuccess && cudaGraphLaunch(x, t.a) == cudaSuccess);
    CHECK(cudaGraphExecUpdate(x, longer, &why) == cudaErrorGraphExecUpdateFailure &&
          why.result != cudaGraphExecUpdateSuccess);
    CHECK(get(t.x, 64) == floats(64, 2) && get(t.y, 64) == floats(64, 1));
    cudaGraphExecDestroy(x), cudaGraphDestroy(there), cudaGraphDestroy(back), cudaGraphDestroy(longer);
    cudaGetLastError();
    free_two(t);
}

/* Whether a capture of this mode survives the call, and whether that fails. */
template <class Call> static bool survives(two t, cudaStreamCaptureMode mode, Call call, bool *fails)
{
    cudaGraph_t graph;
    cudaStreamBeginCapture(t.a, mode);
    cudaEventRecord(t.done, t.a);
    *fails = call() == cudaErrorStreamCaptureUnsupported;
    const bool lives = cudaStreamEndCapture(t.a, &graph) == cudaSuccess;
    if (lives)
        cudaGraphDestroy(graph);
    cudaGetLastError();
    return lives;
}
static void test_rules()
{
    two t = make_two();
    cudaEvent_t other;
    cudaEventCreate(&other);
    for (auto mode : { cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal,
                       cudaStreamCaptureModeRelaxed }) {
        const bool relaxed = mode == cudaStreamCaptureModeRelaxed;
        bool fails;
        CHECK(!survives(t, mode, [=] { return cudaStreamSynchronize(t.a); }, &fails) && fails);
        CHECK(!survives(t, mode, [=] { return cudaStreamQuery(t.a); }, &fails) && fails);
        CHECK(!survives(t, mode, [=] { return cudaEventQuery(t.done); }, &fails) && fails);
        CHECK(!survives(t, mode, [=] { return cudaEventSynchronize(t.done); }, &fails) && fails);
        CHECK(!survives(t, mode, [=] { return cudaDeviceSynchronize(); }, &fails) && fails);
        CHECK(survives(t, mode, [=] { return cudaStreamSynchronize(t.b); }, &fails) && !fails);
        CHECK(survives(t, mode, [=] { return cudaEventQuery(other); }, &fails) == relaxed &&
              fails == !relaxed);
        CHECK(survives(t, mode, [=] { return cudaMemcpy(t.host, t.x, 4, cudaMemcpyDeviceToHost); }, &fails) ==
                  relaxed && fails == !relaxed);
        void *p = NULL;
        CHECK(survives(t, mode, [&p] { return cudaMalloc(&p, 4); }, &fails) == relaxed && fails == !relaxed);
        CHECK(cudaFree(p) == cudaSuccess);
        auto elsewhere = [&p] {                  /* another thread's call */
            cudaError_t e = cudaSuccess;
            std::thread([&] { e = cudaMalloc(&p, 4); }).join();
            return e;
        };
        const bool global = mode == cudaStreamCaptureModeGlobal;
        CHECK(survives(t, mode, elsewhere, &fails) == !global && fails == global);
        CHECK(cudaFree(p) == cudaSuccess);
    }
    cudaEventDestroy(other);
    free_two(t);
}

static void test_two_callers()
{
    auto work = [](int device) {
        cudaSetDevice(device);
        for (int i = 0; i < 20; i++)
            CHECK(totals_right(true));
    };
    std::thread other(work, 1);
    work(0);
    other.join();
}

/* ---- products ---- */
static floats product(const floats &a, const floats &b, size_t m, size_t n, size_t k)    /* row-major */
{
    floats c(m * n);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++)
            for (size_t l = 0; l < k; l++)
                c[i * n + j] += a[i * k + l] * b[l * n + j];
    return c;
}
static floats turned(const floats &a, size_t rows, size_t columns)
{
    floats t(a.size());
    for (size_t i = 0; i < a.size(); i++)
        t[i % columns * rows + i / columns] = a[i];
    return t;
}

/* A product as cublasLt has it, c^T = b^T a^T of column-major matrices. */
struct lt_product {
    cublasLtMatmulDescOpaque_t how; cublasLtMatrixLayoutOpaque_t a, b, c;
    cublasLtMatmulPreferenceOpaque_t wishes;
};
static lt_product lt_product_of(int m, int n, int k, bool ta, bool tb, cublasComputeType_t compute)
{
    const cublasOperation_t op_a = tb ? CUBLAS_OP_T : CUBLAS_OP_N, op_b = ta ? CUBLAS_OP_T : CUBLAS_OP_N;
    const uint32_t vector = 4, reduction = 0;
    lt_product p;
    cublasLtMatmulDescInit(&p.how, compute, CUDA_R_32F);
    cublasLtMatmulDescSetAttribute(&p.how, CUBLASLT_MATMUL_DESC_TRANSA, &op_a, sizeof op_a);
    cublasLtMatmulDescSetAttribute(&p.how, CUBLASLT_MATMUL_DESC_TRANSB, &op_b, sizeof op_b);
    cublasLtMatrixLayoutInit(&p.a, CUDA_R_32F, tb ? k : n, tb ? n : k, tb ? k : n);
    cublasLtMatrixLayoutInit(&p.b, CUDA_R_32F, ta ? m : k, ta ? k : m, ta ? m : k);
    cublasLtMatrixLayoutInit(&p.c, CUDA_R_32F, n, m, n);
    cublasLtMatmulPreferenceInit(&p.wishes);
    for (auto which :
         { CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
           CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES })
        cublasLtMatmulPreferenceSetAttribute(&p.wishes, which, &vector, sizeof vector);
    cublasLtMatmulPreferenceSetAttribute(&p.wishes, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reduction,
                                         sizeof reduction);
    return p;
}
static int lt_answers(cublasLtHandle_t h, lt_product *p, cublasLtMatmulHeuristicResult_t *answers)
{
    int found = 0;
    cublasLtMatmulAlgoGetHeuristic(h, &p->how, &p->a, &p->b, &p->c, &p->c, &p->wishes, 8, answers, &found);
    return found;
}
static cublasStatus_t lt_multiply(cublasLtHandle_t h, lt_product *p, const cublasLtMatmulAlgo_t *by,
                                  float beta, const float *a, const float *b, float *c)
{
    const float one = 1;
    return cublasLtMatmul(h, &p->how, &one, b, &p->a, a, &p->b, &beta, c, &p->c, c, &p->c, by, NULL, 0, NULL);
}
static void test_blas()
{
    enum { M = 3, N = 5, L = 7 };
    cublasLtHandle_t h;
    cublasLtCreate(&h);
    floats a = noise(M * L, 1), b = noise(L * N, 2), want = product(a, b, M, N, L);
    for (int bits = 0; bits < 8; bits++) {
        bool ta = bits & 1, tb = bits & 2, tf32 = bits & 4;
        float *da = put(ta ? turned(a, M, L) : a), *db = put(tb ? turned(b, L, N) : b),
              *dc = device<float>(M * N);
        lt_product p = lt_product_of(M, N, L, ta, tb,
                                     tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F);
        cublasLtMatmulHeuristicResult_t answers[8];
        const int found = lt_answers(h, &p, answers);
        CHECK(found >= 1);
        for (int i = 0; i < found; i++) {
            for (int twice = 0; twice < 2; twice++)
                CHECK(lt_multiply(h, &p, &answers[i].algo, (float)twice, da, db, dc) ==
                      CUBLAS_STATUS_SUCCESS);
            floats c = get(dc, M * N);
            for (float &v : c)
                v /= 2;
            CHECK(near(c, want, tf32 ? 5e-3 : 1e-6) && (!tf32 || !near(c, want, 1e-6)));
        }
        cudaFree(da), cudaFree(db), cudaFree(dc);
    }
    lt_product p = lt_product_of(M, N, L, false, false, CUBLAS_COMPUTE_32F);
    cublasLtMatmulHeuristicResult_t answers[8];
    CHECK(lt_answers(h, &p, answers) >= 1);
    lt_product turned = lt_product_of(M, N, L, true, false, CUBLAS_COMPUTE_32F);   /* it was not asked for */
    CHECK(lt_multiply(h, &turned, &answers[0].algo, 0, NULL, NULL, NULL) == CUBLAS_STATUS_NOT_SUPPORTED);
    p.a.step = N - 1;
    CHECK(lt_multiply(h, &p, &answers[0].algo, 0, NULL, NULL, NULL) == CUBLAS_STATUS_INVALID_VALUE);
    CHECK(!lt_answers(h, &p, answers));
    cublasLtDestroy(h);
}

static void test_cores()
{
    floats a = noise(16 * 8, 3), b = noise(8 * 8, 4), d;
    float *da = put(a), *db = put(b), *dd = device<float>(128);
    LAUNCH_RAW(one_mma, 1, 32, 0, NULL, dd, da, db);
    d = get(dd, 128);
    CHECK(near(d, product(a, b, 16, 8, 8), 4e-3) && !near(d, product(a, b, 16, 8, 8), 1e-6));
    cudaFree(da), cudaFree(db), cudaFree(dd);
    CHECK(to_tf32(1 + 0x1p-11f) == __float_as_uint(1 + 0x1p-10f) &&
          emu::to_bf16(1 + 0x1p-8f) == 0x3F80);
}

static bool exchanged(bool waits)                /* 5 rounds in clusters of 4 */
{
    float *y = device<float>(8);
    if (waits)
        LAUNCH_CLUSTER_RAW(by_st_async<true>, 8, 64, 0, NULL, 4, y, 5);
    else
        LAUNCH_CLUSTER_RAW(by_st_async<false>, 8, 64, 0, NULL, 4, y, 5);
    floats v = get(y, 8);
    cudaFree(y), cudaDeviceReset();
    return v[0] == 5 * 6 + 40 && v[7] == 5 * 22 + 40;
}

static void test_clusters()
{
    float *y = device<float>(512), *part = device<float>(8);
    unsigned *counter = device<unsigned>(1);
    for (int order = 0; order < 6; order++) {
        set("WEFT_EMU_ORDER", order % 3), set("WEFT_EMU_ASYNC", order / 3);
        CHECK(exchanged(true));
        cudaMemset(y, 0, 2048), cudaMemset(counter, 0, 4);
        LAUNCH_COOP_RAW(whole_grid, 8, 64, 0, NULL, y, part, counter);
        CHECK(get(y, 512) == floats(512, 28 + 16));
    }
    CHECK(!exchanged(false));                    /* late, and no one waits */
    set("WEFT_EMU_ORDER", 0), set("WEFT_EMU_ASYNC", 0);
    cudaFree(y), cudaFree(part), cudaFree(counter);
}

int main(int n, char **arguments)
{
    if (n > 1) {
        const auto &a = adders[atoi(arguments[1])];
        return !added(a.kernel, a.total);
    }
    test_threads(), test_lanes(), test_refusals(), test_memory(), test_fences(), test_pools();
    test_streams(), test_graphs(), test_updates(), test_rules(), test_two_callers();
    test_blas(), test_cores(), test_clusters();
    CHECK(cudaDeviceSynchronize() == cudaSuccess && cudaGetLastError() == cudaSuccess);
    printf("emulation of CUDA: %s\n", failures ? "wrong" : "right");
    return failures != 0;
}
