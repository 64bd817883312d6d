/* recur_choice.cu - chooses the kernel of a recurrent layer: a kernel a step (recur.cu), or one for all
 * steps, in single blocks, in clusters or in groups of blocks.
 *
 * It takes the fastest kernel by an estimate until calls have been timed (recur_tune.cu). The times of the
 * estimate were measured on an H100, except those of groups. A kernel that the device cannot run, or does not
 * report, is left out. A kernel for all steps is checked before its first use (recur_check.cu). A wrong one
 * is disabled. */
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
foresight recur_foreseen(weft__device *, int64_t units, int64_t n)
{
    return foresight{ GENERAL, step_of_general(units, n) };
}
void recur_verdicts(weft__device *, int *right, int *wrong) { *right = *wrong = 0; }
bool recur_timed_way(weft__device *, int, recur_way *) { return false; }
bool findings_folder(char *, size_t) { return false; }
bool recur_persistent(weft__device *, const directions &, bool, timing *) { return false; }
void recur_timed(weft__device *, const timing *) {}
void recur_gave_up(weft__device *, unsigned) {}
#else
/* of others nothing is remembered, and they take a kernel a step */
typedef struct gpu_facts {
    bool known;
    int shared, multiprocessors;                 /* shared: bytes that a block can have if it asks */
    double slower;                               /* than the clock that the times below are for */
    /* eights of sequences; -1: it cannot do that; 0: not asked yet */
    int at_once[CHOICES];
} gpu_facts;
static gpu_facts facts[MOST_GPUS];
/* Recursive: trying waits, and a wait may tell of a kernel that gave up. */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
struct locked {                                  /* for as long as it lives */
    locked() { pthread_mutex_lock(&lock); }
    ~locked() { pthread_mutex_unlock(&lock); }
};

static way way_of(const choice &c)
{
    return c.way == BLOCKS ? block_way(c) : c.way == CLUSTERS ? cluster_way(c) : group_way(c);
}

/* ---- what the device can do, asked once ---- */
static gpu_facts *facts_of(const weft__device *d)
{
    gpu_facts *f = &facts[d->index];
    if (f->known)
        return f;
    const double mhz = attribute_of(d, cudaDevAttrClockRate) / 1e3;
    f->shared = attribute_of(d, cudaDevAttrMaxSharedMemoryPerBlockOptin);
    f->multiprocessors = attribute_of(d, cudaDevAttrMultiProcessorCount);
    f->slower = mhz > 0 ? 1980 / mhz : 1;
    f->known = true;
    return f;
}
/* Of a thread's products whose weights no register holds, a group's kernel has those in shared memory for
 * which there is room. */
static int in_shared(const gpu_facts *f, const way &w)
{
    const size_t each = (size_t)w.threads * sizeof(float4), room = (size_t)f->shared - w.bytes;
    return (int)((w.rest < room ? w.rest : room) / each);
}
static size_t bytes_of(const gpu_facts *f, const way &w)
{
    return w.bytes + (size_t)in_shared(f, w) * (size_t)w.threads * sizeof(float4);
}
/* Shared memory beyond 48 KB, and clusters beyond eight blocks, must be asked for. A refusal is an
 * answer, not an error. */
static bool lets(const gpu_facts *f, const way &w, bool cluster)
{
    const cudaFuncAttribute shared = cudaFuncAttributeMaxDynamicSharedMemorySize,
                            wide = cudaFuncAttributeNonPortableClusterSizeAllowed;
    const size_t bytes = bytes_of(f, w);
    return !(bytes > 48 << 10 && refused(cudaFuncSetAttribute(w.kernel, shared, (int)bytes))) &&
           !(cluster && w.blocks > 8 && refused(cudaFuncSetAttribute(w.kernel, wide, 1)));
}
static int ask(weft__device *d, const gpu_facts *f, const way &w, recur_way kind)
{
    int n = 0;
    cudaFuncAttributes code;
    if (w.bytes > (size_t)f->shared || refused(cudaFuncGetAttributes(&code, w.kernel)) ||
        !has_code(kind, code.ptxVersion, w.blocks, w.bytes) || !lets(f, w, kind == CLUSTERS))
        return -1;
    if (kind == BLOCKS)
        n = f->multiprocessors;
    else if (kind == CLUSTERS) {
        if (refused(clusters_at_once(&n, w.kernel, w.blocks, w.threads, w.bytes, stream_of(d))))
            return -1;
    } else if (attribute_of(d, cudaDevAttrCooperativeLaunch)) {
        if (refused(blocks_at_once(&n, w.kernel, w.threads, bytes_of(f, w))))
            return -1;
        n = n * f->multiprocessors / w.blocks;
    }
    return n > 0 ? n : -1;
}
static int at_once(weft__device *d, const choice &c)
{
    gpu_facts *f = facts_of(d);
    int *known = &f->at_once[number_of(c)];
    if (*known == 0)
        *known = ask(d, f, way_of(c), c.way);
    return *known;
}

/* ---- the estimate, in microseconds a step ---- */
static int64_t eights_of(int64_t sequences) { return (sequences + SEQUENCES - 1) / SEQUENCES; }
static double step_of(const gpu_facts *f, const choice &c, int64_t eights)
{
    /* of up to 32, 64, 128 units; of up to 128, 256, 512 units. Groups were not measured. */
    static const double blocks[] = { 0.7, 1.2, 4.8 }, clusters[] = { 1.6, 2.7, 4.4 },
                        groups[] = { 2.1, 3.7, 6.5 };
    const int64_t together = f->at_once[number_of(c)];
    const double *times = c.way == BLOCKS ? blocks : c.way == CLUSTERS ? clusters : groups;
    const double alone = times[c.size] * (c.back ? 1.1 : 1) * f->slower;
    return alone * (double)((eights + together - 1) / together);
}

/* ---- the choice ---- */
/* The smallest kernel of that way that takes the layer; GENERAL: there is none. */
static choice smallest(const weft__recurrence *r, recur_way way, bool back)
{
    choice c = { way, r->cell, r->reset.host != NULL, back, 0 };
    while (c.size < 2 && r->hidden > most_units(c))
        c.size++;
    if (r->hidden > most_units(c) || !is_persistent(c.cell))
        c.way = GENERAL;
    return c;
}
static choice fastest(weft__device *d, const directions &all, bool back, const char *verdicts)
{
    const weft__recurrence *r = all.of;
    /* deterministic: by the units only */
    const int64_t n = d->deterministic ? 1 : r->live.host[0], sides = d->deterministic ? 1 : all.n;
    double least = (double)sides * step_of_general(r->hidden, n);
    choice best = {};
    for (int way = BLOCKS; way <= GROUPS; way++) {
        const choice c = smallest(r, (recur_way)way, back);
        if (c.way == GENERAL || verdicts[number_of(c)] == '-' || at_once(d, c) < 0)
            continue;
        const double time = step_of(facts_of(d), c, sides * eights_of(n));
        if (time < least) {
            least = time;
            best = c;
        }
    }
    return best;
}

/* ---- trying ---- */
/* The layers that it was for go by a kernel a step from now on, in both directions. */
static void condemn(const weft__device *d, const choice &c, const char *what)
{
    choice other = c;
    other.back = !c.back;
    keep_finding(d, OF_CHOICES, number_of(c), '-'), keep_finding(d, OF_CHOICES, number_of(other), '-');
    if (d->log > 0)
        fprintf(stderr,
                "weft: GPU %d: no kernel for all steps %s any more for %s layers of up to %d units%s: %s had "
                "%s\n",
                d->index, name_of(c.way), name_of(c.cell), most_units(c),
                c.reset ? " in rows" : "", c.back ? "backward" : "forward", what);
}
/* True if it is right. Without memory to try it, it is not taken, but may be next time. */
static bool try_choice(weft__device *d, const choice &c)
{
    const char *wrong = recur_check(d, c);
    if (!wrong)
        keep_finding(d, OF_CHOICES, number_of(c), '+');
    else if (*wrong)
        condemn(d, c, wrong);
    return !wrong;
}
static char verdict_of(const weft__device *d, const choice &c)
{
    return findings_of(d, OF_CHOICES)[number_of(c)];
}
static choice trusted(weft__device *d, const directions &all, bool back)
{
    for (;;) {
        const char *verdicts = findings_of(d, OF_CHOICES);
        const choice c = fastest(d, all, back, verdicts);
        if (c.way == GENERAL || verdicts[number_of(c)] == '+' || try_choice(d, c))
            return c;
        if (verdicts[number_of(c)] != '-' || d->failure[0])
            return choice{};
    }
}
/* A kernel of that way that can be had and is right; else the general one. */
static choice proven(weft__device *d, const weft__recurrence *r, recur_way way, bool back)
{
    const choice c = way == GENERAL ? choice{} : smallest(r, way, back);
    const bool can = c.way != GENERAL && verdict_of(d, c) != '-' && at_once(d, c) > 0;
    return can && (verdict_of(d, c) == '+' || try_choice(d, c)) ? c : choice{};
}
/* By the clock where that is asked for, by the estimate until the clock has told; two directions are not
 * timed together. */
static choice timed(weft__device *d, const directions &all, bool back, timing *now)
{
    const weft__recurrence *r = all.of;
    recur_way way;
    if (!tune_is_on(d, r))
        return trusted(d, all, back);
    if (tune_knows(d, r, back, &way))
        return proven(d, r, way, back);
    if (all.n > 1)
        return choice{};
    const choice of[WAYS] = { {}, proven(d, r, BLOCKS, back), proven(d, r, CLUSTERS, back),
                              proven(d, r, GROUPS, back) };
    bool possible[WAYS] = {};
    for (int i = 0; i < WAYS; i++)
        possible[i] = of[i].way == i;
    const choice first = trusted(d, all, back);
    way = d->failure[0] ? first.way : tune(d, r, back, possible, first.way, now);
    return way == first.way ? first : of[way];
}
static choice chosen(weft__device *d, const directions &all, bool back, timing *now)
{
    /* "general"; "block", "cluster", "group": wherever that is possible, untried */
    const char *asked = secure_getenv("WEFT_RECUR");
    if (!asked || !*asked)
        return timed(d, all, back, now);
    static const char *const names[WAYS] = { "general", "block", "cluster", "group" };
    int way = WAYS - 1;
    while (way > GENERAL && strcmp(asked, names[way]))
        way--;
    const choice c = smallest(all.of, (recur_way)way, back);
    return c.way != GENERAL && at_once(d, c) > 0 ? c : choice{};
}

/* ---- the launch ---- */
/* All blocks at once: groups take one eight of sequences after the other. */
static cudaError_t launch_groups(weft__device *d, const choice &c, const directions &all, unsigned eights,
                                 recur_call call)
{
    const way w = way_of(c);
    const gpu_facts *f = facts_of(d);
    const unsigned n = (unsigned)all.n, most = (unsigned)at_once(d, c) / n,
                   groups = eights < most ? eights : most,
                   uses = (eights + groups - 1) / groups * (unsigned)all.of[0].steps;
    call.in_shared = in_shared(f, w);
    const size_t far = w.rest - (size_t)call.in_shared * (size_t)w.threads * sizeof(float4);
    call.words = words_of(d, (size_t)w.words * groups * n, uses, &call.tag);
    call.far = far ? (float4 *)scratch(d, far * groups * n * (size_t)w.blocks) : NULL;
    const auto group_kernel = w.kernel;          /* the name that the emulation knows */
    if (d->failure[0])
        return cudaErrorMemoryAllocation;
    return LAUNCH_COOP_RAW(group_kernel, dim3(groups * (unsigned)w.blocks, n), dim3((unsigned)w.threads),
                           bytes_of(f, w), stream_of(d), all, call);
}
cudaError_t launch_way(weft__device *d, const choice &c, const directions &all, unsigned *cell)
{
    const way w = way_of(c);
    const recur_call call = { cell, (unsigned)number_of(c), d->precision != WEFT_FP32, NULL, 0, 0, NULL };
    const unsigned eights = (unsigned)eights_of(all.of[0].live.host[0]), blocks = (unsigned)w.blocks;
    if (c.way == GROUPS)
        return launch_groups(d, c, all, eights, call);
    const dim3 grid(eights * blocks, (unsigned)all.n), threads((unsigned)w.threads);
    /* the names that the emulation knows */
    const auto block_kernel = w.kernel, cluster_kernel = w.kernel;
    if (blocks == 1)
        return LAUNCH_RAW(block_kernel, grid, threads, w.bytes, stream_of(d), all, call);
    return LAUNCH_CLUSTER_RAW(cluster_kernel, grid, threads, w.bytes, stream_of(d), blocks, all, call);
}

static bool is_whole(const weft__recurrence *r)
{
    return r->hidden > 0 && r->steps > 0 && r->from == 0 && r->to == r->steps && !r->w_hr;
}
bool recur_persistent(weft__device *d, const directions &all, bool back, timing *now)
{
    for (int i = 0; i < all.n; i++)
        if (!is_whole(&all.of[i]))
            return false;
    if (d->precision == WEFT_STRICT_FP32 || d->index >= MOST_GPUS || d->failure[0])
        return false;
    choice c;
    {
        const locked here;
        c = chosen(d, all, back, now);
        if (c.way == GROUPS && at_once(d, c) < all.n)
            c.way = GENERAL;
    }
    if (c.way != GENERAL) {
        d->recurrent[c.way]++;
        launched(d, launch_way(d, c, all, distress_cell(d)), "recur");
    }
    return c.way != GENERAL;
}

/* ---- for who asks what will be ---- */
static weft__cell any_persistent()
{
    int cell = 0;
    while (cell < WEFT__CELLS - 1 && !is_persistent((weft__cell)cell))
        cell++;
    return (weft__cell)cell;
}
foresight recur_foreseen(weft__device *d, int64_t units, int64_t n)
{
    static const char untried[CHOICES] = {};
    const int32_t live = (int32_t)n;
    directions one = { 1, {} };
    one.of[0].cell = any_persistent();
    one.of[0].hidden = units;
    one.of[0].live.host = &live;
    if (d->precision == WEFT_STRICT_FP32 || d->index >= MOST_GPUS)
        return foresight{ GENERAL, step_of_general(units, n) };
    const locked here;
    const choice c = fastest(d, one, false, untried);
    return foresight{ c.way, c.way == GENERAL ? step_of_general(units, n) :
                                                step_of(facts_of(d), c, eights_of(n)) };
}
void recur_verdicts(weft__device *d, int *right, int *wrong)
{
    const locked here;
    *right = *wrong = 0;
    for (int i = 0; d->index < MOST_GPUS && i < CHOICES; i++) {
        *right += findings_of(d, OF_CHOICES)[i] == '+';
        *wrong += findings_of(d, OF_CHOICES)[i] == '-';
    }
}
bool recur_timed_way(weft__device *d, int number, recur_way *way)
{
    const locked here;
    return d->index < MOST_GPUS && tune_found(d, number, way);
}

void recur_timed(weft__device *d, const timing *now)
{
    const locked here;
    tune_end(d, now);
}

void recur_gave_up(weft__device *d, unsigned number)
{
    const choice c = choice_of((int)number);
    {
        const locked here;
        condemn(d, c, "a wait without an end");
    }
    fail(d, WEFT_EDEVICE, "recur: blocks that run one layer waited for each other in vain; "
                          "from now on such layers take a kernel a step");
}
#endif
