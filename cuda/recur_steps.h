/* recur_steps.h - common code of the persistent kernels in recur_block.cu, recur_cluster.cu and
 * recur_group.cu: which units and sequences a thread has, the loads and stores of a step, and products by
 * tensor cores. Float only.
 *
 * A step is a tensor core product: weights times eight columns, one for each sequence of an octet. Forward, a
 * warp has eight units; the rows of its two 16-row tiles are their slots 0 and 1, and 2 and 3. So the layout
 * of the result gives a thread all slots of one unit of two sequences. Tensor cores take TF32: a number is
 * split into a high and a low half of 11 bits each, and three products of halves are as exact as fp32. If the
 * context requires only TF32, one product of the high halves is enough. No column depends on another.
 *
 * RESET: a column may hold several sequences, one after the other. Forward, if a sequence begins at the next
 * step, its first state replaces the state of this step. Backward, its gradient is stored after the step. */
#ifndef WEFT_RECUR_STEPS_H
#define WEFT_RECUR_STEPS_H
#include "cuda/ptx.h"
#include "cuda/recur.h"

/* Returns HAS. A kernel without code that is started anyway sets the timeout flag. */
template <bool HAS> __device__ static inline bool code_exists(const recur_call &call)
{
    if (!HAS)
        atomicExch(call.timeout, call.number);
    return HAS;
}

__host__ __device__ constexpr int forward_tiles(weft__cell c) { return weft__slots(c) > 1 ? 2 : 1; }

/* ---- a thread's role: a unit of one or two sequences ---- */
typedef struct role {
    /* lane = 4 group + part. group: a row (or column) of a tile; part: a pair of columns */
    int warp, group, part;
    int unit, sequence;                          /* sequence: the first of its sequences, in the octet */
    int first;                                   /* the octet's first sequence */
} role;

/* Rows of an octet in a step: live sequences, row of the first. */
typedef struct step_rows { int live, row; } step_rows;
__device__ static inline step_rows rows_at(const weft__recurrence &r, int first, int steps, int i,
                                           bool reverse)
{
    if (i >= steps)
        return step_rows{ 0, 0 };
    const int t = reverse ? steps - 1 - i : i, live = r.live.device[t] - first;
    return step_rows{ live < SEQUENCES ? live : (int)SEQUENCES, r.start.device[t] + first };
}
__device__ static inline void advance(step_rows &now, step_rows &next, const step_rows &after)
{
    now = next;
    next = after;
}
__device__ static inline void advance(step_rows &now, step_rows &next, step_rows &after,
                                      const step_rows &later)
{
    advance(now, next, after);
    after = later;
}
/* Returns the steps of the octet's longest sequence, by binary search. */
__device__ static int steps_of(const weft__recurrence &r, int first)
{
    int low = 0, high = (int)r.steps;
    while (low < high) {
        const int t = (low + high) / 2;
        if (r.live.device[t] > first)
            low = t + 1;
        else
            high = t;
    }
    return low;
}

/* ---- where sequences begin ---- */
/* Returns the sequence that begins in column s of the octet at this step; WEFT__ON: none. */
__device__ static inline int begins_at(const weft__recurrence &r, const step_rows &now, int s)
{
    return s < now.live ? r.reset.device[now.row + s] : (int)WEFT__ON;
}
/* Returns the sequence of column s of the octet at its first step. Negative: zeros, or it begins later. */
template <bool RESET>
__device__ static inline int first_sequence(const weft__recurrence &r, const role &me, const step_rows &now,
                                            int s)
{
    return RESET ? begins_at(r, now, s) : me.first + s;
}
__device__ static inline float first_state(const weft__recurrence &r, const float *from, int64_t sequence,
                                           int unit)
{
    return from && sequence >= 0 && sequence < r.sequences && unit < r.hidden ?
               operand(from[sequence * r.hidden + unit]) :
               0;
}
/* Adds the gradient of a sequence's first state. */
__device__ static inline void add_first_gradient(const weft__recurrence &r, int64_t sequence, int unit,
                                                 float dh, float dc)
{
    const int64_t i = sequence * r.hidden + unit;
    if (unit >= r.hidden)
        return;
    if (r.dh0)
        r.dh0[i] += dh;
    if (r.dc0)
        r.dc0[i] += dc;
}

/* ---- products ---- */
__device__ static inline void split(float x, uint32_t &high, uint32_t &low)
{
    high = to_tf32(x);
    low = __float_as_uint(x - __uint_as_float(high)); /* the tensor core truncates it */
}
/* Two numbers of a thread, of eight of a column, split. */
typedef struct halves { uint32_t high[2], low[2]; } halves;
template <int STRIDE> __device__ static inline halves column_of(const float *x)
{
    halves b;
    split(x[0], b.high[0], b.low[0]);
    split(x[4 * STRIDE], b.high[1], b.low[1]);
    return b;
}
/* Products with a low half are small and are summed separately. */
typedef struct parts { float high[4], small[4]; } parts;
__device__ static inline void add_product(const uint32_t (&high)[4], const uint32_t (&low)[4],
                                          const halves &b, bool one_product, parts &p)
{
    if (!one_product)
        mma_tf32(p.small, low, b.high), mma_tf32(p.small, high, b.low);
    mma_tf32(p.high, high, b.high);
}
__device__ static inline void fold(parts &p, float (&sum)[4])
{
    for (int j = 0; j < 4; j++)
        sum[j] += p.high[j] + p.small[j];
    p = {};
}
/* Call after step k. A product waits for the previous one of its accumulator, so its sums are short. */
__device__ static inline void fold_after(int k, parts &p, float (&sum)[4])
{
    if (k % FOLDED == FOLDED - 1)
        fold(p, sum);
}
/* Returns number j, of four, of a thread in a forward tile: row of the unit's slot, column `in`. */
template <weft__cell C>
__device__ static float forward_weight(const weft__recurrence &r, const role &me, int k, int tile, int j)
{
    const int slot = 2 * tile + j % 2, in = k * 8 + me.part + j / 2 * 4, H = (int)r.hidden;
    for (int gate = 0; gate < weft__gates(C); gate++)
        if (weft__slot_of(C, true, gate) == slot && me.unit < H && in < H)
            return operand(r.w_hh[(gate * H + me.unit) * H + in]);
    return 0;
}

/* ---- the cell: C, or another that uses its kernels ---- */
template <weft__cell C> __device__ static inline bool is_other(const weft__recurrence &r, weft__cell cell)
{
    return cell != C && kernels_of(cell) == C && r.cell == cell;
}
template <weft__cell C>
__device__ static inline float forward_cell_of(const weft__recurrence &r, float (&slot)[4], float before,
                                               float &c)
{
#define CELL(name, ...)              \
    if (is_other<C>(r, WEFT__##name)) \
        return forward_cell<WEFT__##name>(slot, before, c);
#include "core/cells.def"
    return forward_cell<C>(slot, before, c);
}
template <weft__cell C>
__device__ static inline float backward_cell_of(const weft__recurrence &r, float (&slot)[4], float before,
                                                float c, float dh, float &dc)
{
#define CELL(name, ...)              \
    if (is_other<C>(r, WEFT__##name)) \
        return backward_cell<WEFT__##name>(slot, before, c, dh, dc);
#include "core/cells.def"
    return backward_cell<C>(slot, before, c, dh, dc);
}

/* ---- forward: Q sequences of a thread ---- */
/* Loads the input projections in the layout of the product. A slot without input begins with its bias. */
template <weft__cell C, int Q, int TILES>
__device__ static void load_sums(const weft__recurrence &r, const role &me, const step_rows &now, float bias,
                                 float (&sum)[TILES][4])
{
    const int H = (int)r.hidden;
    for (int q = 0; q < Q; q++) {
        const bool live = me.sequence + q < now.live && me.unit < H;
        const float *x = r.gates + (int64_t)(now.row + me.sequence + q) * weft__slots(C) * H + me.unit;
        for (int slot = 0; slot < 2 * TILES; slot++)
            sum[slot / 2][slot % 2 * 2 + q] = weft__block_of_x(C, slot) < 0 ? bias : live ? x[slot * H] : 0;
    }
}
/* Computes the cell of one sequence. h and c: the previous state, replaced by the new one. */
template <weft__cell C, int TILES>
__device__ static void forward_unit(const weft__recurrence &r, const role &me, const step_rows &now, int q,
                                    const float (&sum)[TILES][4], float &h, float &c)
{
    const int64_t H = r.hidden, row = now.row + me.sequence + q;
    float slot[4], c_new = c;
    for (int k = 0; k < 4; k++)
        slot[k] = k < 2 * TILES ? sum[k / 2 % TILES][k % 2 * 2 + q] : 0;
    const float h_new = forward_cell_of<C>(r, slot, has_c(C) ? c : h, c_new);
    if (me.sequence + q >= now.live || me.unit >= H)
        return;
    h = computed_operand(h_new);
    c = c_new;
    for (int k = 0; k < weft__slots(C); k++)
        r.gates[row * weft__slots(C) * H + k * H + me.unit] = slot[k];
    r.h[row * H + me.unit] = h;
    if (has_c(C))
        r.c[row * H + me.unit] = c;
}
/* Replaces h and c by the first state of a sequence that begins at the next step, if any. */
template <weft__cell C>
__device__ static inline void start_sequence(const weft__recurrence &r, const role &me, int begins, float &h,
                                             float &c)
{
    if (begins == WEFT__ON)
        return;
    h = first_state(r, r.h0, begins, me.unit);
    c = has_c(C) ? first_state(r, r.c0, begins, me.unit) : 0;
}

/* ---- backward ---- */
/* Inputs of a backward step for a unit of one sequence. With RESET, before is always of the previous row,
 * even if another sequence ends there. LATE: begins is not loaded ahead. */
typedef struct step_data { float slot[4], before, c, dh, dc; int begins; } step_data;

template <weft__cell C, bool RESET, bool LATE = false, int Q>
__device__ static void load_step_data(const weft__recurrence &r, const role &me, const step_rows &now,
                                      const step_rows &earlier, step_data (&x)[Q])
{
    const int H = (int)r.hidden;
    for (int q = 0; q < Q; q++) {
        const int s = me.sequence + q;
        const int64_t i = (int64_t)(now.row + s) * H + me.unit;
        const bool live = s < now.live && me.unit < H;
        for (int k = 0; k < 4; k++)
            x[q].slot[k] = k < weft__slots(C) && live ?
                               r.gates[(int64_t)(now.row + s) * weft__slots(C) * H + k * H + me.unit] :
                               0;
        x[q].c = has_c(C) && live ? r.c[i] : 0;
        x[q].before = 0;
        x[q].begins = RESET && !LATE ? begins_at(r, now, s) : (int)WEFT__ON;
        if (live && s < earlier.live)
            x[q].before = (has_c(C) ? r.c : r.h)[(int64_t)(earlier.row + s) * H + me.unit];
        else if (live && !RESET)
            x[q].before = first_state(r, has_c(C) ? r.c0 : r.h0, me.first + s, me.unit);
        x[q].dh = r.dy && live ? r.dy[i] : 0;
        x[q].dc = has_c(C) && r.dyc && live ? r.dyc[i] : 0;
    }
}
/* Computes the cell of one sequence: its slots become their gradients, or stay 0 if it is not live. */
template <weft__cell C, bool RESET>
__device__ static void backward_unit(const weft__recurrence &r, const role &me, const step_rows &now, int q,
                                     step_data &x, float &dh, float &dc)
{
    const int H = (int)r.hidden;
    if (me.sequence + q >= now.live || me.unit >= H)
        return;                                  /* the slots are 0 */
    if (RESET && x.begins != WEFT__ON)           /* ahead, each step would wait for begins */
        x.before = first_state(r, has_c(C) ? r.c0 : r.h0, x.begins, me.unit);
    dc += x.dc;
    dh = backward_cell_of<C>(r, x.slot, x.before, x.c, dh + x.dh, dc);
    for (int k = 0; k < weft__slots(C); k++)
        x.slot[k] = computed_operand(x.slot[k]);
    for (int k = 0; k < weft__slots(C); k++)
        r.gates[(int64_t)(now.row + me.sequence + q) * weft__slots(C) * H + k * H + me.unit] = x.slot[k];
}
/* After a step at which a sequence begins: stores the gradient of its first state. The sequence before it in
 * the column continues with 0. */
__device__ static inline void end_sequence(const weft__recurrence &r, const role &me, int begins, float &dh,
                                           float &dc)
{
    if (begins == WEFT__ON)
        return;
    if (begins >= 0)
        add_first_gradient(r, begins, me.unit, dh, dc);
    dh = dc = 0;
}
/* After the last step, if each column is one sequence. */
template <int Q>
__device__ static void add_first_gradients(const weft__recurrence &r, const role &me, const float (&dh)[Q],
                                           const float (&dc)[Q])
{
    for (int q = 0; q < Q; q++)
        if (me.first + me.sequence + q < r.live.device[0])
            add_first_gradient(r, me.first + me.sequence + q, me.unit, dh[q], dc[q]);
}

#endif
