/* recur.h - what both ways through a recurrent layer share: a cell's arithmetic for one unit of one token (kernels.h has the
 * formulas), and where the rows of a step are. */
#ifndef WEFT_CUDA_RECUR_H
#define WEFT_CUDA_RECUR_H
#include <math.h>
#include "cuda/cuda.h"

__host__ __device__ constexpr int slots_of(weft__cell cell) { return cell < WEFT__GRU ? 1 : 4; }
/* The gates of w_hh, each of `hidden` rows, and the slot that gate's product belongs to. */
__host__ __device__ constexpr int gates_of(weft__cell cell) { return cell == WEFT__GRU ? 3 : slots_of(cell); }
__host__ __device__ constexpr int slot_of(weft__cell cell, int gate) { return cell == WEFT__GRU && gate == 2 ? 3 : gate; }

/* ---- cells ---- */
__device__ static inline real sigmoid(real x) { return 1 / (1 + exp(-x)); }

/* Sums become what the slots keep; h is returned. h: of the step before; c: of the step before, and of this one. */
__device__ static inline real forward_cell(weft__cell cell, real (&slot)[4], real h, real &c)
{
    if (cell < WEFT__GRU)
        return slot[0] = cell == WEFT__RNN_TANH ? tanh(slot[0]) : slot[0] > 0 ? slot[0] : 0 * slot[0];       /* relu(NaN) is NaN */
    slot[0] = sigmoid(slot[0]), slot[1] = sigmoid(slot[1]);
    if (cell == WEFT__GRU) {
        slot[2] = tanh(slot[2] + slot[0] * slot[3]);
        return slot[2] + slot[1] * (h - slot[2]);
    }
    slot[2] = tanh(slot[2]), slot[3] = sigmoid(slot[3]);
    c = slot[1] * c + slot[0] * slot[2];
    return slot[3] * tanh(c);
}

/* What the slots keep becomes their gradients. before: h (GRU) or c (LSTM) of the step before; dh: all that arrived at h; dc: at c, and
 * then at the c before. What goes on to the h before by other ways than the weights is returned. */
__device__ static inline real backward_cell(weft__cell cell, real (&slot)[4], real before, real c, real dh, real &dc)
{
    if (cell < WEFT__GRU) {
        slot[0] = dh * (cell == WEFT__RNN_TANH ? 1 - slot[0] * slot[0] : (real)(slot[0] > 0));
        return 0;
    }
    if (cell == WEFT__GRU) {
        const real reset = slot[0], z = slot[1], n = slot[2], dn = dh * (1 - z) * (1 - n * n);
        slot[0] = dn * slot[3] * reset * (1 - reset), slot[1] = dh * (before - n) * z * (1 - z);
        slot[2] = dn, slot[3] = dn * reset;
        return dh * z;
    }
    const real i = slot[0], f = slot[1], g = slot[2], o = slot[3], squashed = tanh(c), all = dc + dh * o * (1 - squashed * squashed);
    slot[0] = all * g * i * (1 - i), slot[1] = all * before * f * (1 - f);
    slot[2] = all * i * (1 - g * g), slot[3] = dh * squashed * o * (1 - o);
    dc = all * f;
    return 0;
}

/* ---- a step of the recurrence: rows row .. row + live, of which the first `going` have a row before, before .. ---- */
typedef struct step { int64_t row, live, before, going; } step;
__host__ __device__ static inline step step_at(const weft__recurrence &r, const int32_t *live, const int32_t *start, int64_t t)
{
    const int64_t u = r.reverse ? t + 1 : t - 1;
    step at = { start[t], live[t], 0, 0 };
    if (u >= 0 && u < r.steps)
        at.before = start[u], at.going = live[u] < at.live ? live[u] : at.live;
    return at;
}
/* Which sequence begins at column s of a step, s itself where columns are sequences; WEFT__ON: none, the state before goes on. */
__device__ static inline int64_t begins_at(const weft__recurrence &r, const step &at, int64_t s)
{
    return r.reset.device ? r.reset.device[at.row + s] : s < at.going ? (int64_t)WEFT__ON : s;
}

/* ---- all steps in one kernel ---- */
enum { SEQUENCES = 8 };                          /* that stay together from first step to last */
/* Where a kernel leaves its number when what it waits for does not come. One that finds a number there does not wait any longer, either. */
enum : unsigned { NOBODY = ~0u };
typedef struct distress { unsigned *cell, number; } distress;
/* A kernel for a layer: its threads and shared memory, how many blocks see to eight sequences. */
typedef struct way { void (*kernel)(weft__recurrence, distress); int threads, blocks; size_t bytes; } way;
/* Which kernel: blocks have three sizes, of up to 32, 64, 128 units, clusters, too, of up to 128, 256, 512. */
typedef enum { GENERAL, BLOCKS, CLUSTERS } recur_way;
typedef struct choice { recur_way way; weft__cell cell; bool reset, back; int size; } choice;
enum { CHOICES = 2 * 4 * 2 * 2 * 3 };
static inline int number_of(const choice &c) { return ((((int)c.way - 1) * 4 + (int)c.cell) * 4 + c.reset * 2 + c.back) * 3 + c.size; }
static inline int most_units(const choice &c) { return (c.way == BLOCKS ? 32 : 128) << c.size; }
way block_way(const choice &);                   /* recur_block.cu */
way cluster_way(const choice &);                 /* recur_cluster.cu; sm_90 */
/* recur_choice.cu: takes one of them where that is there, is expected to be faster, has been seen to be right on this device, and all steps are
 * wanted; else false, and nothing is done. */
bool recur_persistent(weft__device *, const weft__recurrence *, bool back);
cudaError_t launch_way(weft__device *, const choice &, const weft__recurrence &, unsigned *distress_cell);
/* It has left its number: from now on it is not taken. */
void recur_gave_up(weft__device *, unsigned number);
/* recur.cu: a kernel a step */
void recur_general(weft__device *, const weft__recurrence *);
void recur_general_back(weft__device *, const weft__recurrence *);
/* recur_check.cu: a small layer by that kernel and by a kernel a step. NULL: the same, but for rounding; "": it could not be tried; else what is wrong. */
const char *recur_check(weft__device *, const choice &);
/* verdicts.cu: what is known of each choice on a device, '+' it is right, '-' it is not, '.' nothing yet. Both under the lock of recur_choice.cu. */
const char *verdicts_of(const weft__device *);
void keep_verdict(const weft__device *, int number, char verdict);
#endif
