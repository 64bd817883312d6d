/* recur_block.cu - the block kernel: all steps of a recurrent layer of up to 128 units in one launch. Float
 * only.
 *
 * A block owns an octet of sequences from first step to last, so no block waits for another. It keeps the
 * weights in registers, and those that do not fit (more than 64 units) in shared memory.
 *
 * Forward, a thread has all slots of one unit of two sequences and computes the cell without other threads. c
 * stays in its registers; h goes through shared memory. Backward, the gradients of the slots go through
 * shared memory. Two warps share a tile of 16 units of dh, and each sums half of the gates' terms. The inputs
 * of a step are loaded during the step before it. */
#ifndef WEFT_DOUBLE
#include "cuda/recur_steps.h"

/* padding of a row of units, against bank conflicts */
enum { PAD = 4 };

/* depth: steps of eight terms in a product. tiles: tiles of 16 rows that a warp has. kept_of: steps whose
 * weights are in registers. */
__host__ __device__ constexpr int forward_depth(int units)                   { return units / 8; }
__host__ __device__ constexpr int backward_depth(weft__cell c, int units)
{
    return weft__gates(c) * units / 16;
}
__host__ __device__ constexpr int kept_of(int units, int deep, int tiles)
{
    return units <= 64 || deep < 7 / tiles ? deep : 7 / tiles;
}
__host__ __device__ constexpr size_t overflow_bytes(int units, int deep, int tiles)
{
    return (size_t)(deep - kept_of(units, deep, tiles)) * tiles * 4 * units * sizeof(float4);
}
__host__ __device__ constexpr size_t forward_bytes(weft__cell c, int units)
{
    return 2 * SEQUENCES * (units + PAD) * sizeof(float) +
           overflow_bytes(units, forward_depth(units), forward_tiles(c));
}
__host__ __device__ constexpr size_t backward_bytes(weft__cell c, int units)
{
    return SEQUENCES * ((weft__gates(c) + 2) * units + 3 * PAD) * sizeof(float) +
           overflow_bytes(units, backward_depth(c, units), 1);
}

/* Returns whether rows j of a forward tile have weights, that is whether h contributes to their slot. */
__host__ __device__ constexpr bool has_weights(weft__cell c, int tile, int j)
{
    return weft__block_of_h(c, 2 * tile + j % 2) >= 0;
}

/* Returns a unit of two sequences. */
__device__ static inline role thread_role()
{
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    return role{ warp, lane / 4, lane % 4, warp * 8 + lane / 4, lane % 4 * 2, (int)blockIdx.x * SEQUENCES };
}

/* ---- products ---- */
template <int KEPT, int TILES> struct weights { uint32_t high[KEPT][TILES][4], low[KEPT][TILES][4]; };

/* Returns number j, of four, of a thread in its tile of step k. */
template <weft__cell C, int UNITS>
__device__ static float backward_weight(const weft__recurrence &r, const role &me, int k, int j)
{
    const int out = me.warp / 2 * 16 + me.group + j % 2 * 8, H = (int)r.hidden;
    const int term = (me.warp % 2 * backward_depth(C, UNITS) + k) * 8 + me.part + j / 2 * 4,
              gate = term / UNITS, in = term % UNITS;
    return in < H && out < H ? operand(r.w_hh[(gate * H + in) * H + out]) : 0;
}
template <weft__cell C, int UNITS, bool BACK>
__device__ static float weight_at(const weft__recurrence &r, const role &me, int k, int tile, int j)
{
    return BACK ? backward_weight<C, UNITS>(r, me, k, j) : forward_weight<C>(r, me, k, tile, j);
}
template <weft__cell C, int UNITS, bool BACK, int DEPTH, int KEPT, int TILES>
__device__ static void load_weights(const weft__recurrence &r, const role &me, weights<KEPT, TILES> &w,
                                    float4 *overflow)
{
    UNROLLED for (int i = 0; i < KEPT * TILES * 4; i++)
        split(weight_at<C, UNITS, BACK>(r, me, i / 4 / TILES, i / 4 % TILES, i % 4),
              w.high[i / 4 / TILES][i / 4 % TILES][i % 4], w.low[i / 4 / TILES][i / 4 % TILES][i % 4]);
    ROLLED for (int i = KEPT * TILES; i < DEPTH * TILES; i++) {
        float v[4];
        for (int j = 0; j < 4; j++)
            v[j] = weight_at<C, UNITS, BACK>(r, me, i / TILES, i % TILES, j);
        overflow[(i - KEPT * TILES) * (4 * UNITS) + (int)threadIdx.x] = make_float4(v[0], v[1], v[2], v[3]);
    }
}

/* Computes sum += weights times columns. x: the thread's first number in its column. */
template <weft__cell C, bool BACK, int DEPTH, int KEPT, int TILES>
__device__ static void multiply(const weights<KEPT, TILES> &w, const float4 *overflow, const float *x,
                                bool one_product, float (&sum)[TILES][4])
{
    parts part[TILES] = {};
    uint32_t high[4], low[4];
    UNROLLED for (int i = 0; i < KEPT * TILES; i++) {
        const int k = i / TILES, tile = i % TILES;
        for (int j = 0; j < 4; j++) {
            const bool used = BACK || has_weights(C, tile, j);
            high[j] = used ? w.high[k][tile][j] : 0;
            low[j] = used ? w.low[k][tile][j] : 0;
        }
        add_product(high, low, column_of<1>(x + k * 8), one_product, part[tile]);
        fold_after(k, part[tile], sum[tile]);
    }
    for (int k = KEPT; k < DEPTH; k++) {
        const halves b = column_of<1>(x + k * 8);
        for (int tile = 0; tile < TILES; tile++) {
            const float4 v = overflow[((k - KEPT) * TILES + tile) * (int)blockDim.x + (int)threadIdx.x];
            split(v.x, high[0], low[0]), split(v.y, high[1], low[1]), split(v.z, high[2], low[2]),
                split(v.w, high[3], low[3]);
            add_product(high, low, b, one_product, part[tile]);
            fold_after(k, part[tile], sum[tile]);
        }
    }
    for (int tile = 0; tile < TILES; tile++)
        fold(part[tile], sum[tile]);
}

/* ---- forward ---- */
template <weft__cell C, bool RESET, int UNITS>
static __global__ void __launch_bounds__(4 * UNITS, UNITS == 32)
    forward_steps(const __grid_constant__ directions all, const __grid_constant__ recur_call call)
{
    const weft__recurrence &r = all.of[blockIdx.y];
    constexpr int DEPTH = forward_depth(UNITS), TILES = forward_tiles(C), KEPT = kept_of(UNITS, DEPTH, TILES);
    DYN_SHARED(float, memory);
    if (!code_exists<has_code(BLOCKS, ARCH, 1, forward_bytes(C, UNITS))>(call))
        return;
    float (*state)[SEQUENCES][UNITS + PAD] = (float (*)[SEQUENCES][UNITS + PAD])memory;
    float4 *overflow = (float4 *)(memory + 2 * SEQUENCES * (UNITS + PAD));
    const role me = thread_role();
    const int steps = steps_of(r, me.first);
    const float bias =
        weft__slot_of_h_alone(C) >= 0 && r.b_h_alone && me.unit < r.hidden ? r.b_h_alone[me.unit] : 0;
    weights<KEPT, TILES> w;
    float h[2], c[2] = {}, sum[TILES][4], ahead[TILES][4];
    int begins[2];
    load_weights<C, UNITS, false, DEPTH>(r, me, w, overflow);
    step_rows now = rows_at(r, me.first, steps, 0, r.reverse),
              next = rows_at(r, me.first, steps, 1, r.reverse);
    for (int q = 0; q < 2; q++) {
        const int first = first_sequence<RESET>(r, me, now, me.sequence + q);
        h[q] = state[0][me.sequence + q][me.unit] = first_state(r, r.h0, first, me.unit);
        c[q] = has_c(C) ? first_state(r, r.c0, first, me.unit) : 0;
    }
    load_sums<C, 2>(r, me, now, bias, ahead);
    __syncthreads();
    for (int i = 0; i < steps; i++) {
        const step_rows after = rows_at(r, me.first, steps, i + 2, r.reverse);
        for (int k = 0; k < 4 * TILES; k++)
            sum[k / 4][k % 4] = ahead[k / 4][k % 4];
        load_sums<C, 2>(r, me, next, bias, ahead);
        for (int q = 0; q < 2; q++)
            begins[q] = RESET ? begins_at(r, next, me.sequence + q) : (int)WEFT__ON;
        multiply<C, false, DEPTH>(w, overflow, &state[i % 2][me.group][me.part], call.one_product, sum);
        for (int q = 0; q < 2; q++) {
            forward_unit<C>(r, me, now, q, sum, h[q], c[q]);
            start_sequence<C>(r, me, begins[q], h[q], c[q]);
            state[(i + 1) % 2][me.sequence + q][me.unit] = h[q];
        }
        advance(now, next, after);
        __syncthreads();
    }
}

/* ---- backward ---- */
/* Takes the step's inputs that were loaded ahead, and loads the others. */
template <bool LATE>
__device__ static inline void take_step_data(const weft__recurrence &r, const role &me, const step_rows &now,
                                             const step_data (&ahead)[2], step_data (&x)[2])
{
    for (int q = 0; q < 2; q++) {
        x[q] = ahead[q];
        if (LATE)
            x[q].begins = begins_at(r, now, me.sequence + q);
    }
}
template <weft__cell C, bool RESET, int UNITS>
static __global__ void __launch_bounds__(4 * UNITS, UNITS == 32)
    backward_steps(const __grid_constant__ directions all, const __grid_constant__ recur_call call)
{
    const weft__recurrence &r = all.of[blockIdx.y];
    constexpr int DEPTH = backward_depth(C, UNITS), KEPT = kept_of(UNITS, DEPTH, 1),
                  ROW = weft__gates(C) * UNITS + PAD;
    constexpr bool LATE = UNITS == 128;          /* otherwise registers spill */
    DYN_SHARED(float, memory);
    if (!code_exists<has_code(BLOCKS, ARCH, 1, backward_bytes(C, UNITS))>(call))
        return;
    float(*d)[ROW] = (float(*)[ROW])memory,
    (*part)[SEQUENCES][UNITS + PAD] = (float(*)[SEQUENCES][UNITS + PAD]) d[SEQUENCES];
    float4 *overflow = (float4 *)part[2];
    const role me = thread_role();
    const int steps = steps_of(r, me.first);
    weights<KEPT, 1> w;
    float dh[2] = {}, dc[2] = {};
    step_data x[2], ahead[2];
    int begins[2];
    load_weights<C, UNITS, true, DEPTH>(r, me, w, overflow);
    step_rows now = rows_at(r, me.first, steps, 0, !r.reverse),
              next = rows_at(r, me.first, steps, 1, !r.reverse);
    step_rows after = rows_at(r, me.first, steps, 2, !r.reverse);
    load_step_data<C, RESET, LATE>(r, me, now, next, ahead);
    for (int i = 0; i < steps; i++) {
        take_step_data<RESET && LATE>(r, me, now, ahead, x);
        load_step_data<C, RESET, LATE>(r, me, next, after, ahead);
        for (int q = 0; q < 2; q++) {
            backward_unit<C, RESET>(r, me, now, q, x[q], dh[q], dc[q]);
            for (int gate = 0; gate < weft__gates(C); gate++)
                d[me.sequence + q][gate * UNITS + me.unit] = x[q].slot[weft__slot_of(C, true, gate)];
        }
        __syncthreads();
        float sum[1][4] = {};
        multiply<C, true, DEPTH>(w, overflow, &d[me.group][me.warp % 2 * DEPTH * 8 + me.part],
                                 call.one_product, sum);
        for (int j = 0; j < 4; j++)
            part[me.warp % 2][me.sequence + j % 2][me.warp / 2 * 16 + me.group + j / 2 * 8] = sum[0][j];
        for (int q = 0; q < 2; q++)              /* read again: one register less during the product */
            begins[q] = RESET ? begins_at(r, now, me.sequence + q) : (int)WEFT__ON;
        __syncthreads();
        for (int q = 0; q < 2; q++) {
            if (me.sequence + q < now.live)
                dh[q] += part[0][me.sequence + q][me.unit] + part[1][me.sequence + q][me.unit];
            end_sequence(r, me, begins[q], dh[q], dc[q]);
        }
        advance(now, next, after, rows_at(r, me.first, steps, i + 3, !r.reverse));
    }
    if (!RESET)
        add_first_gradients(r, me, dh, dc);
}

/* ---- the table ---- */
#define FORWARD(C, RESET, UNITS)  { forward_steps<C, RESET, UNITS>, 4 * UNITS, 1, forward_bytes(C, UNITS) }
#define BACKWARD(C, RESET, UNITS) { backward_steps<C, RESET, UNITS>, 4 * UNITS, 1, backward_bytes(C, UNITS) }
#define SMALLEST                  32
#include "cuda/recur_table.h"
persistent_kernel find_block_kernel(const choice &c) { return kernels[c.cell][c.reset][c.size][c.back]; }
#endif
