/* recur.h - what both ways through a recurrent layer share: a cell's arithmetic for one unit of one token
 * (kernels.h has the formulas), and where the rows of a step are. */
#ifndef WEFT_CUDA_RECUR_H
#define WEFT_CUDA_RECUR_H
#include <math.h>
#include "cuda/ptx.h"

/* ---- cells ---- */
#undef SIGMOID
#define SIGMOID(x) reciprocal(1 + exp(-(x)))
#define num        real
#define CELL_FN    __device__ static inline
#define BODIES
#include "core/cells/words.h"
#include "core/cells.def"
#undef BODIES
#undef num

__host__ __device__ constexpr bool has_c(weft__cell cell) { return weft__states(cell) == 2; }

/* Sums become what the slots keep; h is returned. before: the last state of the step before; c: becomes
 * that of this one, of two states. */
template <weft__cell C> __device__ static inline real forward_cell(real (&slot)[4], real before, real &c)
{
    const real was[2] = { before, before };
    real now[2] = { 0, c };
    switch (C) {
#define CELL(name, ...) case WEFT__##name: name##_gates(slot, was, now); name##_out(slot, was, now); break;
#include "core/cells.def"
    default: break;
    }
    c = now[1];
    return now[0];
}

/* What the slots keep becomes their gradients. before: as above; dh: all that arrived at h; dc: at c, and
 * then at the c before. What goes on to the h before by other ways than the weights is returned. */
template <weft__cell C>
__device__ static inline real backward_cell(real (&slot)[4], real before, real c, real dh, real &dc)
{
    const real was[2] = { before, before }, now[2] = { 0, c };
    real d[2] = { dh, dc };
    switch (C) {
#define CELL(name, ...) case WEFT__##name: name##_back(slot, was, now, d); break;
#include "core/cells.def"
    default: break;
    }
    dc = d[1];
    return d[0];
}

/* ---- a step of the recurrence ---- */
/* Rows row .. row + live, of which the first `going` have a row before, before .. */
typedef struct step { int64_t row, live, previous, continuing; } step;
__host__ __device__ static inline step step_at(const weft__recurrence &r, const int32_t *live,
                                               const int32_t *start, int64_t t)
{
    const int64_t u = r.reverse ? t + 1 : t - 1;
    step now = { start[t], live[t], 0, 0 };
    if (u >= 0 && u < r.steps) {
        now.previous = start[u];
        now.continuing = live[u] < now.live ? live[u] : now.live;
    }
    return now;
}
/* Which sequence begins at column s of a step, s itself where columns are sequences; WEFT__ON: none, the
 * state before goes on. */
__device__ static inline int64_t begins_at(const weft__recurrence &r, const step &now, int64_t s)
{
    return r.reset.device ? r.reset.device[now.row + s] : s < now.continuing ? (int64_t)WEFT__ON : s;
}

/* ---- all steps in one kernel ---- */
enum { SEQUENCES = 8 };                          /* that stay together from first step to last */
/* Where a kernel leaves its number when what it waits for does not come. One that finds a number there
 * does not wait any longer, either. */
enum : unsigned { NO_TIMEOUT = ~0u };
/* What all kernels for all steps are told beside the layer: where that is, their number; and whether the
 * context asks for no more than tf32, so that one product of high halves is all. Groups: the words by which
 * blocks send numbers, the first use's tag; how many of a thread's products have their weights in shared
 * memory, where the others are. */
typedef struct recur_call {
    unsigned *timeout, number;
    bool one_product;
    uint64_t *words;
    unsigned tag;
    int shared_products;
    float4 *global_weights;
} recur_call;
/* One direction, or both of a layer, which have nothing to do with each other but their sizes: a grid's y is
 * the direction. */
typedef struct directions { int n; weft__recurrence of[2]; } directions;
/* A kernel for a layer: its threads and shared memory, how many blocks see to eight sequences. Groups: bytes
 * of weights that are in shared memory as far as it goes; words of those blocks. */
typedef struct persistent_kernel {
    void (*function)(directions, recur_call);
    int threads, blocks;
    size_t bytes, overflow;
    int64_t words;
} persistent_kernel;
/* Which kernel: blocks have three sizes, of up to 32, 64, 128 units, clusters and groups, too, of up to 128,
 * 256, 512. */
typedef enum { GENERAL, BLOCKS, CLUSTERS, GROUPS } kernel_kind;
typedef struct choice { kernel_kind kind; weft__cell cell; bool reset, back; int size; } choice;
/* Whether there is code of such a kernel in what is compiled for sm_ARCH: none of one that wants more shared
 * memory, or more blocks in a cluster, than GPUs of that kind have, and of groups only where clusters cannot
 * have sixteen blocks. */
__host__ __device__ constexpr bool has_code(kernel_kind kind, int arch, int blocks, size_t bytes)
{
    const bool wide = arch >= 90 && arch < 120;
    const size_t room = (size_t)(wide ? 227 : arch < 90 ? 163 : 99) << 10;
    return arch == EVERY_ARCH ||
           (kind == GROUPS ? !wide :
                             bytes <= room && (kind == BLOCKS || wide || (arch >= 120 && blocks <= 8)));
}
enum {
    KERNEL_KINDS = 4, CHOICES_PER_CELL = 2 * 2 * 3,
    CHOICES = (KERNEL_KINDS - 1) * WEFT__CELLS * CHOICES_PER_CELL
};
static inline int number_of(const choice &c)
{
    return (((int)c.kind - 1) * WEFT__CELLS + (int)c.cell) * CHOICES_PER_CELL + (c.reset * 2 + c.back) * 3 +
           c.size;
}
static inline choice choice_of(int number)
{
    const int i = number % CHOICES_PER_CELL, pair = number / CHOICES_PER_CELL;
    return choice{ (kernel_kind)(BLOCKS + pair / WEFT__CELLS), (weft__cell)(pair % WEFT__CELLS), i / 6 != 0,
                   i / 3 % 2 != 0, i % 3 };
}
/* The cell whose kernels a cell has, WEFT__CELLS: there are none. */
__host__ __device__ constexpr weft__cell kernels_of(weft__cell cell)
{
#define general        WEFT__CELLS
#define persistent(of) WEFT__##of
#define CELL(name, gpu, ...) case WEFT__##name: return gpu;
    switch (cell) {
#include "core/cells.def"
    default: return WEFT__CELLS;
    }
#undef general
#undef persistent
}
static inline bool is_persistent(weft__cell cell) { return kernels_of(cell) != WEFT__CELLS; }
static inline int max_units(const choice &c) { return (c.kind == BLOCKS ? 32 : 128) << c.size; }
typedef struct timing { int class_number; } timing;                   /* -1: nothing is timed */
persistent_kernel find_block_kernel(const choice &);                   /* recur_block.cu */
persistent_kernel find_cluster_kernel(const choice &);                 /* recur_cluster.cu; sm_90 */
persistent_kernel find_group_kernel(const choice &);                   /* recur_group.cu */
/* recur_choice.cu: takes one of them where that is there, is expected to be faster, has been seen to be right
 * on this device, and all steps are expected; else false, and nothing is done. Two directions are taken only
 * together. */
bool recur_persistent(weft__device *, const directions &, bool back, timing *);
void recur_end_timing(weft__device *, const timing *);          /* after it and what it left to others */
cudaError_t launch_persistent(weft__device *, const choice &, const directions &, unsigned *timeout);
/* It has left its number: from now on it is not taken. */
void recur_timed_out(weft__device *, unsigned number);
/* The estimate, in microseconds, for a step forward of n sequences: the way that it would take, untried and
 * if nothing has been timed. */
typedef struct estimate { kernel_kind kind; double us; } estimate;
estimate recur_estimate(weft__device *, int64_t units, int64_t n);
/* How many kernels were found right or wrong on the device; which way class `number` was found fastest,
 * false: it was not timed. */
void recur_count_checked(weft__device *, int *right, int *wrong);
bool recur_fastest(weft__device *, int number, kernel_kind *);
/* recur.cu: a kernel a step */
void recur_general(weft__device *, const weft__recurrence *);
void recur_general_back(weft__device *, const weft__recurrence *);
/* recur_check.cu: a small layer by that kernel and by a kernel a step. NULL: the same, but for rounding;
 * "": it could not be tried; else what is wrong. */
const char *recur_check(weft__device *, const choice &);
/* kernel_cache.cu: what is known of a device, a letter for each thing, '.' nothing yet: of each choice, '+' it is
 * right, '-' it is not; of each class of layers, which way is the fastest. This and the next under the lock
 * of recur_choice.cu. */
enum {
    UNIT_CLASSES = 5, OCTET_CLASSES = 8, MAX_UNITS = 32 << (UNIT_CLASSES - 1),
    CLASSES = WEFT__CELLS * 8 * UNIT_CLASSES * OCTET_CLASSES
};
/* Up to 32 << units units; up to 8 << eights sequences. */
typedef struct layer_class { weft__cell cell; bool reset, back, one_product; int units, octets; } layer_class;
static inline int number_of(const layer_class &c)
{
    const int kind = (((int)c.cell * 2 + c.reset) * 2 + c.back) * 2 + c.one_product;
    return (kind * UNIT_CLASSES + c.units) * OCTET_CLASSES + c.octets;
}
static inline layer_class class_of(int number)
{
    const int sizes = UNIT_CLASSES * OCTET_CLASSES, kind = number / sizes;
    return layer_class{ (weft__cell)(kind / 8),         kind / 4 % 2 != 0,    kind / 2 % 2 != 0,
                        kind % 2 != 0,                  number % sizes / OCTET_CLASSES,
                        number % OCTET_CLASSES };
}
static inline const char *name_of(weft__cell cell)
{
#define CELL(name, ...) #name,
    static const char *const names[] = {
#include "core/cells.def"
    };
    return names[cell];
}
static inline const char *name_of(kernel_kind kind)
{
    static const char *const names[KERNEL_KINDS] = { "by a kernel a step", "in blocks", "in clusters",
                                                     "in groups" };
    return names[kind];
}
/* of a class, in the order of recur_way */
#define KIND_LETTERS "sbcg"
typedef enum { CHECKS, TIMINGS, CACHES } cache_kind;
const char *cached(const weft__device *, cache_kind);
void store_cached(const weft__device *, cache_kind, int number, char letter);
/* The folder in which they are kept, with "/weft"; false: they are not. */
bool cache_folder(char *path, size_t size);
bool cache_is_off();                         /* WEFT_CACHE */
/* recur_tune.cu: whether a layer's way is a matter of time, and has been found; which to take until then, of
 * those that are possible, `first` by the estimate. What is timed ends with tune_end, when all of it is
 * launched. */
bool tune_is_on(const weft__device *, const weft__recurrence *);
bool tune_class_result(const weft__device *, const weft__recurrence *, bool back, kernel_kind *);
bool tune_result(const weft__device *, int number, kernel_kind *);
kernel_kind tune(weft__device *, const weft__recurrence *, bool back, const bool (&possible)[KERNEL_KINDS],
                 kernel_kind first, timing *);
void tune_end(weft__device *, const timing *);
#endif
