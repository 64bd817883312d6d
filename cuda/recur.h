/* recur.h - declarations of the recurrent layers on a GPU: a cell's arithmetic for one unit of one token,
 * the rows of a step, and the kernels that run a layer.
 *
 * Four kinds of kernel run a layer. The general kernel (recur.cu) is launched once per step. The block,
 * cluster and group kernels are persistent: one launch runs all steps. core/kernels.h has the formulas. */
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

/* Replaces the sums of a unit by the values that its slots keep, and returns the new h. before: the last
 * state of the previous step, c if the cell has one, otherwise h. Sets c if the cell has one. */
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

/* Replaces the values of the slots by the gradients of their sums. before: as above. dh, dc: the gradients of
 * h and c; dc becomes the gradient of the previous c. Returns the gradient of the previous h without the part
 * that goes through the weights. */
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
/* Rows of a step: row .. row + live - 1. The first `continuing` of them have a previous row: previous .. */
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
/* Returns the sequence that begins at column s of a step, which is s if each column is one sequence.
 * WEFT__ON: none begins; the previous state continues. */
__device__ static inline int64_t begins_at(const weft__recurrence &r, const step &now, int64_t s)
{
    return r.reset.device ? r.reset.device[now.row + s] : s < now.continuing ? (int64_t)WEFT__ON : s;
}

/* ---- persistent kernels: all steps in one launch ---- */
enum { SEQUENCES = 8 };                          /* an octet: computed together, from first step to last */
/* Value of the timeout flag until a kernel has waited too long for another block. Then it is that kernel's
 * number, and other blocks that wait also stop. */
enum : unsigned { NO_TIMEOUT = ~0u };
/* Arguments of a persistent kernel, apart from the layer.
 *   timeout: the timeout flag; number: this kernel's
 *   one_product: the context requires no more than TF32, so one product of the high halves is enough
 *   words, tag (group kernels): where blocks exchange numbers; the tag of the first use
 *   shared_products, global_weights (group kernels): products of a thread whose overflow weights are in
 *       shared memory; the address of the other overflow weights */
typedef struct recur_call {
    unsigned *timeout, number;
    bool one_product;
    uint64_t *words;
    unsigned tag;
    int shared_products;
    float4 *global_weights;
} recur_call;
/* One or both directions of a layer, independent and of equal size. blockIdx.y is the direction. */
typedef struct directions { int n; weft__recurrence of[2]; } directions;
/* A persistent kernel: threads of a block, blocks that compute one octet, bytes of shared memory. For group
 * kernels also: bytes of a block's overflow weights, which are added to shared memory as far as they fit, and
 * the words that a group exchanges. */
typedef struct persistent_kernel {
    void (*function)(directions, recur_call);
    int threads, blocks;
    size_t bytes, overflow;
    int64_t words;
} persistent_kernel;
/* size 0, 1, 2: up to 32, 64, 128 units (block kernel), or 128, 256, 512 (cluster and group kernels). */
typedef enum { GENERAL, BLOCKS, CLUSTERS, GROUPS } kernel_kind;
typedef struct choice { kernel_kind kind; weft__cell cell; bool reset, back; int size; } choice;
/* Returns whether code compiled for sm_ARCH contains such a kernel. It lacks kernels that need more shared
 * memory, or clusters of more blocks, than these GPUs have. It has group kernels only where clusters cannot
 * have 16 blocks. */
__host__ __device__ constexpr bool has_code(kernel_kind kind, int arch, int blocks, size_t bytes)
{
    const bool wide = arch >= 90 && arch < 120;
    const size_t limit = (size_t)(wide ? 227 : arch < 90 ? 163 : 99) << 10;
    return arch == EVERY_ARCH ||
           (kind == GROUPS ? !wide :
                             bytes <= limit && (kind == BLOCKS || wide || (arch >= 120 && blocks <= 8)));
}
enum { KERNEL_KINDS = 4, PER_CELL = 2 * 2 * 3, CHOICES = (KERNEL_KINDS - 1) * WEFT__CELLS * PER_CELL };
static inline int number_of(const choice &c)
{
    return (((int)c.kind - 1) * WEFT__CELLS + (int)c.cell) * PER_CELL + (c.reset * 2 + c.back) * 3 + c.size;
}
static inline choice choice_of(int number)
{
    const int i = number % PER_CELL, pair = number / PER_CELL;
    return choice{ (kernel_kind)(BLOCKS + pair / WEFT__CELLS), (weft__cell)(pair % WEFT__CELLS), i / 6 != 0,
                   i / 3 % 2 != 0, i % 3 };
}
/* Returns the cell whose persistent kernels run `cell`, or WEFT__CELLS if it has none. */
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
typedef struct timing { int class_number; } timing; /* -1: nothing is timed */
persistent_kernel find_block_kernel(const choice &);                   /* recur_block.cu */
persistent_kernel find_cluster_kernel(const choice &);                 /* recur_cluster.cu; sm_90 */
persistent_kernel find_group_kernel(const choice &);                   /* recur_group.cu */
/* recur_choice.cu: runs the layer by a persistent kernel and returns true, or does nothing and returns
 * false. It requires all steps, and a kernel that is available, expected to be fastest, and has passed its
 * check on this device. Two directions run together or not at all. */
bool recur_persistent(weft__device *, const directions &, bool back, timing *);
void recur_end_timing(weft__device *, const timing *); /* call after the layer's kernels, whichever ran */
cudaError_t launch_persistent(weft__device *, const choice &, const directions &, unsigned *timeout);
/* Disables the kernel of that number after a wait that expired, and fails the context. */
void recur_timed_out(weft__device *, unsigned number);
/* Returns the kernel that the estimate prefers, checked or not, and its microseconds per forward step. */
typedef struct estimate { kernel_kind kind; double us; } estimate;
estimate recur_estimate(weft__device *, int64_t units, int64_t n);
/* Count the device's kernels that passed or failed their check; return the fastest kernel of a class of
 * layers, or false if the class was not timed. */
void recur_count_checked(weft__device *, int *right, int *wrong);
bool recur_fastest(weft__device *, int number, kernel_kind *);
/* recur.cu: one launch per step */
void recur_general(weft__device *, const weft__recurrence *);
void recur_general_back(weft__device *, const weft__recurrence *);
/* recur_check.cu: runs a small layer by this kernel and by the general one. Returns NULL if they agree up
 * to rounding, "" if the check could not run, otherwise the reason for the failure. */
const char *recur_check(weft__device *, const choice &);
/* kernel_cache.cu: the results known for a device, one letter each; '.' is unknown. CHECKS, for each
 * choice: '+' passed, '-' failed. TIMINGS, for each class of layers: its fastest kernel. Callers hold the
 * lock of recur_choice.cu, here and in recur_tune.cu. */
enum {
    UNIT_CLASSES = 5, OCTET_CLASSES = 8, MAX_UNITS = 32 << (UNIT_CLASSES - 1),
    CLASSES = WEFT__CELLS * 8 * UNIT_CLASSES * OCTET_CLASSES
};
/* Layers of up to 32 << units units and up to 8 << octets sequences. */
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
    static const char *const names[KERNEL_KINDS] = { "general", "block", "cluster", "group" };
    return names[kind];
}
/* Letters of a class, in the order of kernel_kind. */
#define KIND_LETTERS "sbcg"
typedef enum { CHECKS, TIMINGS, CACHES } cache_kind;
const char *cached(const weft__device *, cache_kind);
void store_cached(const weft__device *, cache_kind, int number, char letter);
/* Writes the folder of the stored results, which ends in "/weft". Returns false if nothing is stored. */
bool cache_folder(char *path, size_t size);
bool cache_is_off();                             /* WEFT_CACHE */
/* recur_tune.cu: returns whether layers are timed here, the result of a layer's class, or of a class by
 * number. tune selects the kernel of this call among the possible ones; `first` is the estimate's. If it
 * times the call, call tune_end when all of it is launched. */
bool tune_is_on(const weft__device *, const weft__recurrence *);
bool tune_class_result(const weft__device *, const weft__recurrence *, bool back, kernel_kind *);
bool tune_result(const weft__device *, int number, kernel_kind *);
kernel_kind tune(weft__device *, const weft__recurrence *, bool back, const bool (&possible)[KERNEL_KINDS],
                 kernel_kind first, timing *);
void tune_end(weft__device *, const timing *);
#endif
