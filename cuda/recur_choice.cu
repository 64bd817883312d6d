/* recur_choice.cu - chooses the kernel of a recurrent layer: general, block, cluster or group.
 *
 * It takes the fastest by an estimate until calls have been timed (recur_tune.cu). The times of the estimate
 * were measured on an H100, except those of group kernels. Kernels that the device cannot run, or does not
 * report, are left out. A persistent kernel is checked before its first use (recur_check.cu) and disabled if
 * it fails. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cuda/ptx.h"
#include "cuda/recur.h"

/* Estimates the microseconds of a step: two launches and the product. Measured on an H100. */
static double step_of_general(int64_t units, int64_t n)
{
    return 12 + (double)n * 0.5e-6 * (double)(units * units);
}

#ifdef WEFT_DOUBLE
estimate recur_estimate(weft__device *, int64_t units, int64_t n)
{
    return estimate{ GENERAL, step_of_general(units, n) };
}
void recur_count_checked(weft__device *, int *right, int *wrong) { *right = *wrong = 0; }
bool recur_fastest(weft__device *, int, kernel_kind *) { return false; }
bool cache_folder(char *, size_t) { return false; }
bool recur_persistent(weft__device *, const directions &, bool, timing *) { return false; }
void recur_end_timing(weft__device *, const timing *) {}
void recur_timed_out(weft__device *, unsigned) {}
#else
/* Only the first MOST_GPUS devices are remembered. Others use the general kernel. */
typedef struct gpu_facts {
    bool known;
    int shared, multiprocessors;                 /* shared: bytes that a block can opt in to */
    double clock_factor;                         /* 1980 MHz, the clock of the times below, over this GPU's */
    /* octets that run at the same time; -1: not available; 0: unknown */
    int concurrent_octets[CHOICES];
} gpu_facts;
static gpu_facts facts[MOST_GPUS];
/* Recursive: a check waits, and a wait may report that a kernel timed out. */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
struct lock_guard {                              /* holds the lock while it exists */
    lock_guard() { pthread_mutex_lock(&lock); }
    ~lock_guard() { pthread_mutex_unlock(&lock); }
};

static persistent_kernel kernel_for(const choice &c)
{
    return c.kind == BLOCKS   ? find_block_kernel(c) :
           c.kind == CLUSTERS ? find_cluster_kernel(c) :
                                find_group_kernel(c);
}

/* ---- capabilities of the device, queried once ---- */
static gpu_facts *facts_of(const weft__device *d)
{
    gpu_facts *f = &facts[d->index];
    if (f->known)
        return f;
    const double mhz = attribute_of(d, cudaDevAttrClockRate) / 1e3;
    f->shared = attribute_of(d, cudaDevAttrMaxSharedMemoryPerBlockOptin);
    f->multiprocessors = attribute_of(d, cudaDevAttrMultiProcessorCount);
    f->clock_factor = mhz > 0 ? 1980 / mhz : 1;
    f->known = true;
    return f;
}
/* Returns the number of products of a thread whose overflow weights fit in shared memory. */
static int shared_products(const gpu_facts *f, const persistent_kernel &k)
{
    const size_t bytes_each = (size_t)k.threads * sizeof(float4), available = (size_t)f->shared - k.bytes;
    return (int)((k.overflow < available ? k.overflow : available) / bytes_each);
}
static size_t bytes_of(const gpu_facts *f, const persistent_kernel &k)
{
    return k.bytes + (size_t)shared_products(f, k) * (size_t)k.threads * sizeof(float4);
}
/* Requests more than 48 KB of shared memory, and clusters of more than eight blocks, which are opt-in.
 * Returns false if refused, which is not an error. */
static bool set_attributes(const gpu_facts *f, const persistent_kernel &k, bool cluster)
{
    const cudaFuncAttribute shared = cudaFuncAttributeMaxDynamicSharedMemorySize,
                            wide = cudaFuncAttributeNonPortableClusterSizeAllowed;
    const size_t bytes = bytes_of(f, k);
    return !(bytes > 48 << 10 && refused(cudaFuncSetAttribute(k.function, shared, (int)bytes))) &&
           !(cluster && k.blocks > 8 && refused(cudaFuncSetAttribute(k.function, wide, 1)));
}
static int query_concurrent(weft__device *d, const gpu_facts *f, const persistent_kernel &k, kernel_kind kind)
{
    int n = 0;
    cudaFuncAttributes code;
    if (k.bytes > (size_t)f->shared || refused(cudaFuncGetAttributes(&code, k.function)) ||
        !has_code(kind, code.ptxVersion, k.blocks, k.bytes) || !set_attributes(f, k, kind == CLUSTERS))
        return -1;
    if (kind == BLOCKS)
        n = f->multiprocessors;
    else if (kind == CLUSTERS) {
        if (refused(clusters_at_once(&n, k.function, k.blocks, k.threads, k.bytes, stream_of(d))))
            return -1;
    } else if (attribute_of(d, cudaDevAttrCooperativeLaunch)) {
        if (refused(blocks_at_once(&n, k.function, k.threads, bytes_of(f, k))))
            return -1;
        n = n * f->multiprocessors / k.blocks;
    }
    return n > 0 ? n : -1;
}
static int concurrent_octets(weft__device *d, const choice &c)
{
    gpu_facts *f = facts_of(d);
    int *known = &f->concurrent_octets[number_of(c)];
    if (*known == 0)
        *known = query_concurrent(d, f, kernel_for(c), c.kind);
    return *known;
}

/* ---- the estimate, in microseconds per step ---- */
static int64_t octets_of(int64_t sequences) { return (sequences + SEQUENCES - 1) / SEQUENCES; }
static double step_of(const gpu_facts *f, const choice &c, int64_t octets)
{
    /* For up to 32, 64, 128 units; for up to 128, 256, 512 units. Group kernels were not measured. */
    static const double blocks[] = { 0.7, 1.2, 4.8 }, clusters[] = { 1.6, 2.7, 4.4 },
                        groups[] = { 2.1, 3.7, 6.5 };
    const int64_t concurrent = f->concurrent_octets[number_of(c)];
    const double *times = c.kind == BLOCKS ? blocks : c.kind == CLUSTERS ? clusters : groups;
    const double one_round = times[c.size] * (c.back ? 1.1 : 1) * f->clock_factor;
    return one_round * (double)((octets + concurrent - 1) / concurrent);
}

/* ---- the choice ---- */
/* Returns the smallest kernel of that kind for the layer, or GENERAL if the layer is too large for it. */
static choice smallest_kernel(const weft__recurrence *r, kernel_kind kind, bool back)
{
    choice c = { kind, r->cell, r->reset.host != NULL, back, 0 };
    while (c.size < 2 && r->hidden > max_units(c))
        c.size++;
    if (r->hidden > max_units(c) || !is_persistent(c.cell))
        c.kind = GENERAL;
    return c;
}
static choice fastest(weft__device *d, const directions &all, bool back, const char *results)
{
    const weft__recurrence *r = all.of;
    /* In a deterministic context only the units decide. */
    const int64_t n = d->deterministic ? 1 : r->live.host[0], n_directions = d->deterministic ? 1 : all.n;
    double shortest = (double)n_directions * step_of_general(r->hidden, n);
    choice best = {};
    for (int kind = BLOCKS; kind <= GROUPS; kind++) {
        const choice c = smallest_kernel(r, (kernel_kind)kind, back);
        if (c.kind == GENERAL || results[number_of(c)] == '-' || concurrent_octets(d, c) < 0)
            continue;
        const double time = step_of(facts_of(d), c, n_directions * octets_of(n));
        if (time < shortest) {
            shortest = time;
            best = c;
        }
    }
    return best;
}

/* ---- the check ---- */
/* Disables a kernel in both directions. Its layers then use the general kernel. */
static void disable(const weft__device *d, const choice &c, const char *reason)
{
    choice other = c;
    other.back = !c.back;
    store_cached(d, CHECKS, number_of(c), '-'), store_cached(d, CHECKS, number_of(other), '-');
    if (d->log > 0)
        fprintf(stderr,
                "weft: GPU %d: disabled the %s kernel for %s layers of up to %d units%s: %s: %s\n",
                d->index, name_of(c.kind), name_of(c.cell), max_units(c),
                c.reset ? " in rows" : "", c.back ? "backward" : "forward", reason);
}
/* Returns true if the kernel passes its check. If the check cannot run, the kernel is not used this time. */
static bool check_choice(weft__device *d, const choice &c)
{
    const char *wrong = recur_check(d, c);
    if (!wrong)
        store_cached(d, CHECKS, number_of(c), '+');
    else if (*wrong)
        disable(d, c, wrong);
    return !wrong;
}
static char result_of(const weft__device *d, const choice &c)
{
    return cached(d, CHECKS)[number_of(c)];
}
static choice choose_by_estimate(weft__device *d, const directions &all, bool back)
{
    for (;;) {
        const char *results = cached(d, CHECKS);
        const choice c = fastest(d, all, back, results);
        if (c.kind == GENERAL || results[number_of(c)] == '+' || check_choice(d, c))
            return c;
        if (results[number_of(c)] != '-' || d->failure[0])
            return choice{};
    }
}
/* Returns a kernel of that kind that is available and has passed its check, otherwise the general one. */
static choice checked(weft__device *d, const weft__recurrence *r, kernel_kind kind, bool back)
{
    const choice c = kind == GENERAL ? choice{} : smallest_kernel(r, kind, back);
    const bool usable = c.kind != GENERAL && result_of(d, c) != '-' && concurrent_octets(d, c) > 0;
    return usable && (result_of(d, c) == '+' || check_choice(d, c)) ? c : choice{};
}
/* Chooses by measured times if timing is on and they are known. Launches of two directions are not timed. */
static choice choose_by_time(weft__device *d, const directions &all, bool back, timing *now)
{
    const weft__recurrence *r = all.of;
    kernel_kind kind;
    if (!tune_is_on(d, r))
        return choose_by_estimate(d, all, back);
    if (tune_class_result(d, r, back, &kind))
        return checked(d, r, kind, back);
    if (all.n > 1)
        return choice{};
    const choice choices[KERNEL_KINDS] = { {}, checked(d, r, BLOCKS, back), checked(d, r, CLUSTERS, back),
                              checked(d, r, GROUPS, back) };
    bool possible[KERNEL_KINDS] = {};
    for (int i = 0; i < KERNEL_KINDS; i++)
        possible[i] = choices[i].kind == i;
    const choice estimated = choose_by_estimate(d, all, back);
    kind = d->failure[0] ? estimated.kind : tune(d, r, back, possible, estimated.kind, now);
    return kind == estimated.kind ? estimated : choices[kind];
}
static choice choose(weft__device *d, const directions &all, bool back, timing *now)
{
    /* Selects a kernel wherever it is available, without a check. */
    const char *forced = secure_getenv("WEFT_RECUR");
    if (!forced || !*forced)
        return choose_by_time(d, all, back, now);
    static const char *const names[KERNEL_KINDS] = { "general", "block", "cluster", "group" };
    int kind = KERNEL_KINDS - 1;
    while (kind > GENERAL && strcmp(forced, names[kind]))
        kind--;
    const choice c = smallest_kernel(all.of, (kernel_kind)kind, back);
    return c.kind != GENERAL && concurrent_octets(d, c) > 0 ? c : choice{};
}

/* ---- the launch ---- */
/* Launches the largest number of groups that run at the same time. Each takes octet after octet. */
static cudaError_t launch_groups(weft__device *d, const choice &c, const directions &all, unsigned octets,
                                 recur_call call)
{
    const persistent_kernel k = kernel_for(c);
    const gpu_facts *f = facts_of(d);
    const unsigned n = (unsigned)all.n, limit = (unsigned)concurrent_octets(d, c) / n,
                   groups = octets < limit ? octets : limit,
                   uses = (octets + groups - 1) / groups * (unsigned)all.of[0].steps;
    call.shared_products = shared_products(f, k);
    const size_t extra = k.overflow - (size_t)call.shared_products * (size_t)k.threads * sizeof(float4);
    call.words = words_of(d, (size_t)k.words * groups * n, uses, &call.tag);
    call.global_weights = extra ? (float4 *)scratch(d, extra * groups * n * (size_t)k.blocks) : NULL;
    const auto group_kernel = k.function;        /* the emulation reads this name */
    if (d->failure[0])
        return cudaErrorMemoryAllocation;
    return LAUNCH_COOP_RAW(group_kernel, dim3(groups * (unsigned)k.blocks, n), dim3((unsigned)k.threads),
                           bytes_of(f, k), stream_of(d), all, call);
}
cudaError_t launch_persistent(weft__device *d, const choice &c, const directions &all, unsigned *timeout)
{
    const persistent_kernel k = kernel_for(c);
    const recur_call call = { timeout, (unsigned)number_of(c), d->precision != WEFT_FP32, NULL, 0, 0, NULL };
    const unsigned octets = (unsigned)octets_of(all.of[0].live.host[0]), blocks = (unsigned)k.blocks;
    if (c.kind == GROUPS)
        return launch_groups(d, c, all, octets, call);
    const dim3 grid(octets * blocks, (unsigned)all.n), threads((unsigned)k.threads);
    /* The emulation reads these names. */
    const auto block_kernel = k.function, cluster_kernel = k.function;
    if (blocks == 1)
        return LAUNCH_RAW(block_kernel, grid, threads, k.bytes, stream_of(d), all, call);
    return LAUNCH_CLUSTER_RAW(cluster_kernel, grid, threads, k.bytes, stream_of(d), blocks, all, call);
}

static bool is_complete(const weft__recurrence *r)
{
    return r->hidden > 0 && r->steps > 0 && r->from == 0 && r->to == r->steps && !r->w_hr;
}
bool recur_persistent(weft__device *d, const directions &all, bool back, timing *now)
{
    for (int i = 0; i < all.n; i++)
        if (!is_complete(&all.of[i]))
            return false;
    if (d->precision == WEFT_STRICT_FP32 || d->index >= MOST_GPUS || d->failure[0])
        return false;
    choice c;
    {
        const lock_guard guard;
        c = choose(d, all, back, now);
        if (c.kind == GROUPS && concurrent_octets(d, c) < all.n)
            c.kind = GENERAL;
    }
    if (c.kind != GENERAL) {
        d->recurrent[c.kind]++;
        launched(d, launch_persistent(d, c, all, timeout_flag(d)), "recur");
    }
    return c.kind != GENERAL;
}

/* ---- information for the user ---- */
static weft__cell any_persistent()
{
    int cell = 0;
    while (cell < WEFT__CELLS - 1 && !is_persistent((weft__cell)cell))
        cell++;
    return (weft__cell)cell;
}
estimate recur_estimate(weft__device *d, int64_t units, int64_t n)
{
    static const char unchecked[CHOICES] = {};
    const int32_t live = (int32_t)n;
    directions layer = { 1, {} };
    layer.of[0].cell = any_persistent();
    layer.of[0].hidden = units;
    layer.of[0].live.host = &live;
    if (d->precision == WEFT_STRICT_FP32 || d->index >= MOST_GPUS)
        return estimate{ GENERAL, step_of_general(units, n) };
    const lock_guard guard;
    const choice c = fastest(d, layer, false, unchecked);
    return estimate{ c.kind, c.kind == GENERAL ? step_of_general(units, n) :
                                                step_of(facts_of(d), c, octets_of(n)) };
}
void recur_count_checked(weft__device *d, int *right, int *wrong)
{
    const lock_guard guard;
    *right = *wrong = 0;
    for (int i = 0; d->index < MOST_GPUS && i < CHOICES; i++) {
        *right += cached(d, CHECKS)[i] == '+';
        *wrong += cached(d, CHECKS)[i] == '-';
    }
}
bool recur_fastest(weft__device *d, int number, kernel_kind *kind)
{
    const lock_guard guard;
    return d->index < MOST_GPUS && tune_result(d, number, kind);
}

void recur_end_timing(weft__device *d, const timing *now)
{
    const lock_guard guard;
    tune_end(d, now);
}

void recur_timed_out(weft__device *d, unsigned number)
{
    const choice c = choice_of((int)number);
    {
        const lock_guard guard;
        disable(d, c, "timed out waiting for another block");
    }
    fail(d, WEFT_EDEVICE, "recur: the blocks of a kernel timed out waiting for each other; this kernel is "
                          "now disabled");
}
#endif
