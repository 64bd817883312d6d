/* recur_wide.h - common code of recur_cluster.cu and recur_group.cu: a layer spread over several blocks.
 *
 * Each block has 32 of the units for an octet of sequences. It keeps their weights in registers and, for
 * layers of more than 256 units, the rest in memory (overflow weights). Blocks send each other the numbers
 * of each step. This file has the roles of a block's threads, its weights, products and timed waits. */
#ifndef WEFT_RECUR_WIDE_H
#define WEFT_RECUR_WIDE_H
#include "cuda/recur_steps.h"

/* Units, warps and threads of a block. KEPT: products of a thread whose weights are in registers. A thread
 * with at most SPLIT products keeps both halves of each weight there, so that no step splits them again. */
enum { N_UNITS = 32, WARPS = 8, BLOCK = 32 * WARPS, KEPT = 32, SPLIT = 16 };

__host__ __device__ constexpr int least_of(int a, int b)          { return a < b ? a : b; }
/* Forward, a warp has the two tiles of eight units and half of the terms; backward these tiles, all terms. */
__host__ __device__ constexpr int forward_depth(int blocks) { return blocks * N_UNITS / 16; }
__host__ __device__ constexpr int backward_depth(weft__cell c) { return weft__gates(c) * N_UNITS / 8; }
__host__ __device__ constexpr int backward_tiles(int blocks) { return blocks * N_UNITS / 16 / WARPS; }
__host__ __device__ constexpr size_t overflow_bytes(int products)
{
    return (size_t)(products - least_of(products, KEPT)) * BLOCK * sizeof(float4);
}

/* Returns a unit of one sequence. Two warps share eight units: one of the block's first four warps has the
 * even sequences, one of the last four the odd. */
__device__ static inline role thread_role(int rank, int first)
{
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    return role{ warp,
                lane / 4,
                lane % 4,
                rank * N_UNITS + warp % 4 * 8 + lane / 4,
                lane % 4 * 2 + warp / 4,
                first };
}
/* Position of a sequence in the memory of an octet: even ones first. */
__device__ static inline int pos_of(int sequence) { return sequence % 2 * 4 + sequence / 2; }

/* ---- waiting for other blocks ---- */
/* Clocks until a wait expires, about two seconds. One poll counts for at most POLL_LIMIT, since the GPU may
 * run other work in between. After LONG_WAIT the timeout flag is read as well. */
enum : long long { WAIT_LIMIT = 1LL << 32, POLL_LIMIT = 1LL << 28, LONG_WAIT = 1LL << 22 };
typedef struct wait_state { long long elapsed, last; } wait_state;
__device__ static inline wait_state start_wait() { return wait_state{ 0, clock64() }; }
/* Call after a poll without result. If the wait has expired, sets the timeout flag and returns true. */
__device__ static inline bool wait_expired(wait_state &p, const recur_call &call)
{
    const long long now = clock64();
    p.elapsed += now - p.last < POLL_LIMIT ? now - p.last : POLL_LIMIT;
    p.last = now;
    if (p.elapsed <= WAIT_LIMIT && (p.elapsed <= LONG_WAIT || load_acquire(call.timeout) == NO_TIMEOUT))
        return false;
    atomicExch(call.timeout, call.number);
    return true;
}
#define NOT_A_NUMBER __int_as_float(0x7fffffff)
/* Fills the rows of step i and later steps with NaN, because they were not computed. */
__device__ static void fill_nan(const weft__recurrence &r, const role &me, int i, int steps, bool reverse,
                                float *rows, int64_t width)
{
    for (; i < steps; i++) {
        const step_rows now = rows_at(r, me.first, steps, i, reverse);
        if (me.sequence < now.live && me.unit < r.hidden)
            rows[(now.row + me.sequence) * width + me.unit] = NOT_A_NUMBER;
    }
}

/* ---- products: DEPTH steps of eight terms, TILES tiles ---- */
template <class Weight>
__device__ static float4 four_weights(const Weight &weight, int k, int tile)
{
    return make_float4(weight(k, tile, 0), weight(k, tile, 1), weight(k, tile, 2), weight(k, tile, 3));
}
/* The i-th overflow weights of a thread. */
__device__ static inline float4 load_overflow(const float4 *overflow, int i)
{
    return overflow[i * BLOCK + (int)threadIdx.x];
}
__device__ static inline void store_overflow(float4 *overflow, int i, const float4 &v)
{
    overflow[i * BLOCK + (int)threadIdx.x] = v;
}
template <int DEPTH, int TILES, class Weight, class Overflow>
__device__ static void load_weights(const Weight &weight, float4 (&w)[least_of(DEPTH * TILES, KEPT)],
                                    Overflow overflow)
{
    constexpr int IN_REGISTERS = least_of(DEPTH * TILES, KEPT);
    UNROLLED for (int i = 0; i < IN_REGISTERS; i++)
        w[i] = four_weights(weight, i / TILES, i % TILES);
    ROLLED for (int i = IN_REGISTERS; i < DEPTH * TILES; i++)
        store_overflow(overflow, i - IN_REGISTERS, four_weights(weight, i / TILES, i % TILES));
}
__device__ static inline void add_product(const float4 &w, const halves &b, bool one_product, parts &p)
{
    uint32_t high[4], low[4];
    split(w.x, high[0], low[0]), split(w.y, high[1], low[1]), split(w.z, high[2], low[2]),
        split(w.w, high[3], low[3]);
    add_product(high, low, b, one_product, p);
}
/* x: the thread's first number in its column; consecutive terms are SEQUENCES numbers apart. */
template <int DEPTH, int TILES, class Overflow>
__device__ static void multiply(float4 (&w)[least_of(DEPTH * TILES, KEPT)], Overflow overflow, const float *x,
                                bool one_product, float (&sum)[TILES][4])
{
    constexpr int IN_REGISTERS = least_of(DEPTH * TILES, KEPT) / TILES;
    parts part[TILES] = {};
    UNROLLED for (int tile = 0; tile < TILES; tile++)
        for (int j = 0; j < 4; j++)
            sum[tile][j] = 0;
    UNROLLED for (int k = 0; k < IN_REGISTERS; k++) {
        const halves b = column_of<SEQUENCES>(x + k * 8 * SEQUENCES);
        UNROLLED for (int tile = 0; tile < TILES; tile++) {
            if (DEPTH * TILES > SPLIT)           /* both halves do not fit in registers */
                made_anew(w[k * TILES + tile]);
            add_product(w[k * TILES + tile], b, one_product, part[tile]);
            fold_after(k, part[tile], sum[tile]);
        }
    }
    /* Loads of several steps overlap. Registers suffice for two steps of four tiles. */
    UNROLLED_BY((TILES > 2 ? 2 : 4)) for (int k = IN_REGISTERS; k < DEPTH; k++) {
        const halves b = column_of<SEQUENCES>(x + k * 8 * SEQUENCES);
        UNROLLED for (int tile = 0; tile < TILES; tile++) {
            const float4 v = load_overflow(overflow, (k - IN_REGISTERS) * TILES + tile);
            add_product(v, b, one_product, part[tile]);
            fold_after(k, part[tile], sum[tile]);
        }
    }
    UNROLLED for (int tile = 0; tile < TILES; tile++)
        fold(part[tile], sum[tile]);
}

/* ---- forward ---- */
/* Two threads each have half of the terms for two sequences. Each adds both halves for its own sequence to x,
 * the input projections. */
template <int TILES>
__device__ static void exchange_sums(const role &me, float4 *exchange, const float (&half)[TILES][4],
                                     float (&x)[TILES][4])
{
    const int odd_half = me.sequence % 2;
    float sent[4] = {}, kept[4] = {};
    for (int k = 0; k < 2 * TILES; k++) {
        const float even = half[k / 2][k % 2 * 2], odd = half[k / 2][k % 2 * 2 + 1];
        kept[k] = odd_half ? odd : even;
        sent[k] = odd_half ? even : odd;
    }
    exchange[threadIdx.x] = make_float4(sent[0], sent[1], sent[2], sent[3]);
    __syncthreads();
    const float4 v = exchange[threadIdx.x ^ (BLOCK / 2)];
    const float received[4] = { v.x, v.y, v.z, v.w };
    for (int k = 0; k < 2 * TILES; k++)
        x[k / 2][k % 2 * 2] += kept[k] + received[k];
}
/* Loads the entering states of all units at the first step. */
template <bool RESET, int UNITS>
__device__ static void load_states(const weft__recurrence &r, const role &me, const step_rows &now,
                                   float (*state)[SEQUENCES])
{
    for (int i = (int)threadIdx.x; i < UNITS * SEQUENCES; i += BLOCK) {
        const int unit = i / SEQUENCES, s = i % SEQUENCES;
        state[unit][pos_of(s)] = first_state(r, r.h0, first_sequence<RESET>(r, me, now, s), unit);
    }
}

/* ---- backward ---- */
__device__ static inline float backward_weight(const weft__recurrence &r, const role &me, int rank, int tile,
                                               int k, int j)
{
    const int out = tile * 16 + me.group + j % 2 * 8, term = k * 8 + me.part + j / 2 * 4, H = (int)r.hidden;
    const int gate = term / N_UNITS, in = rank * N_UNITS + term % N_UNITS;
    return in < H && out < H ? operand(r.w_hh[(gate * H + in) * H + out]) : 0;
}

#endif
