/* streams.cpp - launches, copies, streams and events of runtime.h. Work waits in a queue until a wait for
 * it. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include "tests/emu/runtime.h"
#include "tests/ptx/launched.h"

namespace {
typedef std::function<void()> Work;
/* an event's state */
struct Mark { struct emu_stream *stream; unsigned long long recorded, done; double when; };
/* event: also runs on a lost device. others: waits for the other ranks, instead of work */
struct Item { Work work; bool event; std::function<bool()> others; };
} // namespace

struct emu_stream { int device; std::deque<Item> queue; };
struct emu_event { std::shared_ptr<Mark> mark; };

namespace {
std::vector<emu_stream *> &streams = *new std::vector<emu_stream *>;
typedef std::pair<int, const void *> KernelOnDevice; /* a kernel on a device */
std::map<KernelOnDevice, int> &max_shared = *new std::map<KernelOnDevice, int>;
std::map<KernelOnDevice, bool> &wide_clusters = *new std::map<KernelOnDevice, bool>;
unsigned random_state = 1;

emu_stream *default_stream(int device)
{
    static emu_stream *defaults[8];
    if (!defaults[device])
        streams.push_back(defaults[device] = new emu_stream{ device, {} });
    return defaults[device];
}
emu_stream *resolve(emu_stream *s) { return s ? s : default_stream(emu::current_device()); }

/* ---- order of streams ---- */
emu_stream *choose(emu_stream *waiting)
{
    int seed = emu::setting("WEFT_EMU_SEED", 0);
    std::vector<emu_stream *> others;
    for (emu_stream *s : streams)
        if (s != waiting && !s->queue.empty() && !s->queue.front().others)
            others.push_back(s);
    random_state = random_state * 1664525u + 1013904223u + (unsigned)seed;
    size_t choice = (random_state >> 8) % (others.size() + 1);
    if (others.empty() || seed == 0 || (seed > 1 && choice == others.size()))
        return waiting;
    return others[seed == 1 ? 0 : choice];
}

void step(emu_stream *s)
{
    if (s->queue.front().others && !s->queue.front().others()) {
        emu::yield_lock();
        return;
    }
    Item item = std::move(s->queue.front());
    s->queue.pop_front();
    if (item.work && (item.event || emu::lost(s->device) == cudaSuccess))
        item.work();
}

/* Runs work until `done` holds. Returns the error of the stream's device. */
template <class Done> cudaError_t run_until(emu_stream *waiting, Done done)
{
    emu::Open open;
    while (!done())
        step(choose(waiting));
    return emu::note(emu::lost(waiting->device));
}
cudaError_t finish(emu_stream *s)
{
    emu::counts.waits++;
    return run_until(s, [s] { return s->queue.empty(); });
}

/* With WEFT_EMU_TIMES ("block_kernel=5 forward_units=.3"), a clock that advances by these milliseconds for
 * each such kernel and otherwise stops. */
double simulated_ms;
void advance_clock(const emu::Launch &l)
{
    const char *times = getenv("WEFT_EMU_TIMES");
    const char *at = times ? strstr(times, l.name) : NULL;
    if (at && at[strlen(l.name)] == '=')
        simulated_ms += atof(at + strlen(l.name) + 1);
}
double now()
{
    struct timespec t;
    if (getenv("WEFT_EMU_TIMES"))
        return simulated_ms;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* ---- launches ---- */
bool is_named(const emu::Launch &l, const char *variable)
{
    const char *victim = getenv(variable);
    return victim && *victim && strstr(l.name, victim);
}

void execute(emu::Launch l, int device)
{
    if (emu::is_skipping())
        return;
    l.wrong = is_named(l, "WEFT_EMU_WRONG");
    l.lost = is_named(l, "WEFT_EMU_LOSE");
    l.capability = emu::model().capability;
    if (is_named(l, "WEFT_EMU_FAIL")) {
        emu::lost(device) = cudaErrorIllegalAddress;
        return;
    }
    advance_clock(l);
    if (!ptx::interpreted(l))
        emu::run(l);
    if (l.failure) {
        fprintf(stderr, "emulated CUDA: %s: %s\n", l.name, l.failure);
        emu::lost(device) = cudaErrorLaunchFailure;
    }
}

/* Returns the number of blocks that fit a multiprocessor; registers are not counted. */
size_t blocks_that_fit(size_t threads, size_t dynamic)
{
    cudaDeviceProp about;
    cudaGetDeviceProperties(&about, emu::current_device());
    return std::min(2048 / threads, about.sharedMemPerMultiprocessor / (dynamic + 1024));
}
cudaError_t check_launch(const emu::Launch &l)
{
    const dim3 &g = l.grid, &t = l.threads;
    size_t each = (size_t)t.x * t.y * t.z, all = (size_t)g.x * g.y * g.z;
    if (!each || !all || t.x > 1024 || t.y > 1024 || t.z > 64 || each > emu::MOST_THREADS || g.x >> 31 ||
        g.y > 65535 || g.z > 65535)
        return cudaErrorInvalidConfiguration;
    const emu::Model &model = emu::model();
    if (!model.code)
        return cudaErrorNoKernelImageForDevice;
    if (is_named(l, "WEFT_EMU_REFUSE"))
        return cudaErrorLaunchOutOfResources;
    const KernelOnDevice key(emu::current_device(), l.kernel);
    if (!l.cluster || (l.cluster > 1 && model.cluster == 1) || l.cluster > (wide_clusters[key] ? 16u : 8u) ||
        g.x % l.cluster)
        return cudaErrorInvalidConfiguration;
    auto most = max_shared.find(key);
    if (l.dynamic > (most == max_shared.end() ? (size_t)emu::SHARED_DEFAULT : (size_t)most->second))
        return cudaErrorInvalidValue;
    cudaDeviceProp about;
    cudaGetDeviceProperties(&about, emu::current_device());
    return l.cooperative && all > blocks_that_fit(each, l.dynamic) * (size_t)about.multiProcessorCount ?
               cudaErrorCooperativeLaunchTooLarge :
               cudaSuccess;
}
} // namespace

namespace emu {
Counts counts;
cudaError_t drain()
{
    for (size_t i = 0; i < streams.size(); i++)  /* other threads may add some */
        if (streams[i]->device == current_device())
            finish(streams[i]);
    return note(lost(current_device()));
}
static bool is_set(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value && strcmp(value, "0");
}
bool is_skipping() { return is_set("WEFT_EMU_SKIP"); }
void log_launch(const char *launch)
{
    if (is_set("WEFT_EMU_SAY"))
        fprintf(stderr, "emulated CUDA: %s\n", launch);
}
cudaError_t check_stream(cudaStream_t stream)
{
    if (lost(current_device()))
        return note(lost(current_device()));
    return resolve(stream)->device == current_device() ? cudaSuccess : note(cudaErrorInvalidResourceHandle);
}
void enqueue(cudaStream_t stream, Work work)
{
    Locked locked;
    resolve(stream)->queue.push_back(Item{ std::move(work), false, NULL });
}
cudaError_t submit(Launch l, cudaStream_t stream)
{
    Locked locked;
    cudaError_t e = check_stream(stream);
    if (e != cudaSuccess || (e = note(check_launch(l))) != cudaSuccess)
        return e;
    if (const char *why = ptx::refused(l)) {
        fprintf(stderr, "emulated CUDA: %s: %s\n", l.name, why);
        return note(cudaErrorInvalidConfiguration);
    }
    counts.launches++;
    log_launch(l.name);
    int device = current_device();
    enqueue(stream, [l, device] { execute(l, device); });
    return cudaSuccess;
}
} // namespace emu

void weft_emu_counts(long long out[6])
{
    emu::Locked locked;
    const emu::Counts &c = emu::counts;
    const long long all[] = { c.launches, c.uploads, c.waits, c.queries, c.stalls, 0 };
    memcpy(out, all, sizeof all);
    for (int d = 0; d < 8; d++)
        out[5] += (long long)emu::held(d);
}

void weft_emu_until(cudaStream_t stream, bool (*done)(void *), void *user)
{
    emu::Locked locked;
    resolve(stream)->queue.push_back(Item{ NULL, false, [done, user] { return done(user); } });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *a, const void *)
{
    const emu::Model &model = emu::model();
    /* sm_89 runs code of sm_80; code of sm_100 is from PTX of 90 */
    const bool as_made = model.code / 10 == model.capability / 10;
    *a = cudaFuncAttributes{ model.code, as_made ? model.code : model.capability };
    return emu::note(model.code ? emu::lost(emu::current_device()) : cudaErrorNoKernelImageForDevice);
}

cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute a, int v)
{
    emu::Locked locked;
    emu::counts.queries++;
    const KernelOnDevice key(emu::current_device(), kernel);
    const bool shared = a == cudaFuncAttributeMaxDynamicSharedMemorySize,
               wide = a == cudaFuncAttributeNonPortableClusterSizeAllowed;
    if (emu::setting("WEFT_EMU_QUERIES", 1) == 0)
        return emu::note(cudaErrorNotSupported);
    if ((shared && (v < 0 || v > emu::model().shared)) || (wide && v && emu::model().cluster < 16))
        return emu::note(cudaErrorInvalidValue);
    if (shared)
        max_shared[key] = v;
    else if (wide)
        wide_clusters[key] = v != 0;
    return cudaSuccess;
}

/* Checks whether a GPU would accept the launch. */
static cudaError_t check_query(const void *kernel, unsigned blocks, int threads, size_t shared)
{
    emu::Launch l = emu::shape("", dim3(blocks), dim3((unsigned)threads), shared, blocks, false);
    l.kernel = kernel;
    emu::counts.queries++;
    return emu::note(emu::setting("WEFT_EMU_QUERIES", 1) ? check_launch(l) : cudaErrorNotSupported);
}
cudaError_t blocks_at_once(int *n, const void *kernel, int threads, size_t shared)
{
    emu::Locked locked;
    const cudaError_t e = check_query(kernel, 1, threads, shared);
    *n = e == cudaSuccess ? (int)blocks_that_fit((size_t)threads, shared) : 0;
    return e;
}
cudaError_t clusters_at_once(int *n, const void *kernel, int blocks, int threads, size_t shared, cudaStream_t)
{
    emu::Locked locked;
    const cudaError_t e = check_query(kernel, (unsigned)blocks, threads, shared);
    *n = e == cudaSuccess ? 8 / blocks + 1 : 0;
    return e;
}

/* ---- copies ---- */
static bool direction_is_right(const void *to, const void *from, cudaMemcpyKind kind)
{
    bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    auto fits = [](const void *p, bool device) { return emu::on_device(p) == device || emu::pinned(p); };
    return kind == cudaMemcpyDefault || (fits(to, to_device) && fits(from, from_device));
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    emu::Locked locked;
    cudaError_t e = emu::check_stream(stream);
    if (e != cudaSuccess || !bytes)
        return e;
    if (!direction_is_right(to, from, kind))
        return emu::note(cudaErrorInvalidValue);
    emu::counts.uploads += kind == cudaMemcpyHostToDevice;
    bool from_pages = !emu::on_device(from) && !emu::pinned(from),
         to_pages = !emu::on_device(to) && !emu::pinned(to);
    /* CUDA has read it when this returns; pinned memory is read when the copy runs */
    if (from_pages) {
        std::vector<char> bytes_read((const char *)from, (const char *)from + bytes);
        emu::enqueue(stream, [=] { memcpy(to, bytes_read.data(), bytes); });
    } else
        emu::enqueue(stream, [=] { memmove(to, from, bytes); });
    return to_pages ? cudaStreamSynchronize(stream) : cudaSuccess;
}
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_step, const void *from, size_t step, size_t bytes,
                              size_t lines, cudaMemcpyKind kind, cudaStream_t stream)
{
    emu::Locked locked;
    cudaError_t e = emu::check_stream(stream);
    if (e != cudaSuccess || !bytes || !lines)
        return e;
    if (kind != cudaMemcpyDeviceToDevice || !direction_is_right(to, from, kind) || to_step < bytes ||
        step < bytes)
        return emu::note(cudaErrorInvalidValue);
    emu::enqueue(stream, [=] {
        for (size_t i = 0; i < lines; i++)
            memmove((char *)to + i * to_step, (const char *)from + i * step, bytes);
    });
    return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t stream)
{
    emu::Locked locked;
    cudaError_t e = emu::check_stream(stream);
    if (e != cudaSuccess || !bytes)
        return e;
    if (!emu::on_device(to) && !emu::pinned(to))
        return emu::note(cudaErrorInvalidValue);
    emu::enqueue(stream, [=] { memset(to, byte, bytes); });
    return cudaSuccess;
}
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    cudaError_t e = cudaMemcpyAsync(to, from, bytes, kind, NULL);
    return e != cudaSuccess ? e : cudaStreamSynchronize(NULL);
}
cudaError_t cudaMemset(void *to, int byte, size_t bytes) { return cudaMemsetAsync(to, byte, bytes, NULL); }

/* ---- streams ---- */
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags)
{
    emu::Locked locked;
    if (flags != cudaStreamNonBlocking)          /* others wait for the default stream: not emulated */
        return emu::note(cudaErrorInvalidValue);
    if (emu::lost(emu::current_device()))
        return emu::note(emu::lost(emu::current_device()));
    streams.push_back(*s = new emu_stream{ emu::current_device(), {} });
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    emu::Locked locked;
    return finish(resolve(stream));
}
cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    emu::Locked locked;
    cudaError_t e = finish(s);
    streams.erase(std::find(streams.begin(), streams.end(), s));
    delete s;
    return e;
}
cudaError_t cudaDeviceSynchronize()
{
    emu::Locked locked;
    return emu::drain();
}
cudaError_t cudaDeviceReset()
{
    emu::Locked locked;
    cudaDeviceSynchronize();
    emu::lost(emu::current_device()) = cudaSuccess;
    cudaGetLastError();
    return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    emu::Locked locked;
    emu_stream *s = resolve(stream);
    if (s->queue.empty())
        return emu::note(emu::lost(s->device));
    emu::Open open;
    step(choose(s));                             /* repeated queries make progress */
    return cudaErrorNotReady;
}

/* ---- events ---- */
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned)
{
    *e = new emu_event{ std::make_shared<Mark>(Mark{ NULL, 0, 0, 0 }) };
    return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t *e) { return cudaEventCreateWithFlags(e, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t e) { return delete e, cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t stream)
{
    emu::Locked locked;
    emu_stream *s = resolve(stream);
    std::shared_ptr<Mark> mark = e->mark;
    unsigned long long number = ++mark->recorded;
    mark->stream = s;
    auto record = [mark, number] {
        mark->done = number;
        mark->when = now();
    };
    s->queue.push_back(Item{ record, true, NULL });
    return emu::note(emu::lost(s->device));
}
cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
    emu::Locked locked;
    Mark *m = e->mark.get();
    unsigned long long number = m->recorded;
    if (m->done >= number)
        return emu::note(emu::lost(emu::current_device()));
    emu::counts.waits++;
    return run_until(m->stream, [m, number] { return m->done >= number; });
}
cudaError_t cudaEventQuery(cudaEvent_t e)
{
    emu::Locked locked;
    if (e->mark->done >= e->mark->recorded)
        return cudaSuccess;
    emu::Open open;
    step(choose(e->mark->stream));
    return cudaErrorNotReady;
}
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    *ms = (float)(to->mark->when - from->mark->when);
    return from->mark->done && to->mark->done ? cudaSuccess : emu::note(cudaErrorInvalidResourceHandle);
}
