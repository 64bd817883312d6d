/* recur_cluster.cu - the cluster kernel: all steps of a recurrent layer of up to 512 units in one launch.
 * sm_90.
 *
 * A cluster of 4, 8 or 16 blocks owns an octet of sequences from first step to last. Each block has 32 of the
 * units and keeps their weights in registers, and those that do not fit (more than 256 units) in shared
 * memory. Blocks send the numbers of each step into each other's shared memory by asynchronous stores, whose
 * bytes a barrier there counts. No block waits for one of another cluster.
 *
 * A store has four floats: the even or the odd sequences of a unit, because four neighbouring threads have
 * these after a product. Two buffers alternate. A buffer is written again two steps later. By then the writer
 * has data from each reader. So blocks wait for data only, for a limited time. */
#ifndef WEFT_DOUBLE
#include "cuda/recur_wide.h"

__host__ __device__ constexpr size_t forward_bytes(weft__cell c, int blocks)
{
    return 2 * (N_UNITS * blocks * SEQUENCES * sizeof(float) + BLOCK * sizeof(float4)) +
           overflow_bytes(forward_depth(blocks) * forward_tiles(c));
}
__host__ __device__ constexpr size_t backward_bytes(weft__cell c, int blocks)
{
    return 2 * (weft__gates(c) + blocks) * N_UNITS * SEQUENCES * sizeof(float) +
           overflow_bytes(backward_depth(c) * backward_tiles(blocks));
}

__device__ static inline role cluster_role()
{
    return thread_role((int)cluster_rank(), (int)(blockIdx.x / cluster_size()) * SEQUENCES);
}

/* ---- what blocks send ---- */
/* Barriers of the two buffers, and whether a thread of this block timed out there. */
typedef struct channel { uint64_t full[2]; unsigned timed_out[2]; } channel;
__device__ static inline void open_channel(channel *c)
{
    if (threadIdx.x == 0) {
        mbarrier_init(&c->full[0], 1), mbarrier_init(&c->full[1], 1);
        c->timed_out[0] = c->timed_out[1] = 0;
        mbarrier_init_done();
    }
    __syncwarp();                                /* cluster_sync requires all lanes of a warp together */
    cluster_sync();
}
/* Call once for each use i = 0, 1, .. of the channel. */
__device__ static inline void expect(channel *c, int i, unsigned bytes)
{
    if (threadIdx.x == 0)
        mbarrier_arrive_expect(&c->full[i % 2], bytes);
}
/* Waits for use i of the channel. Returns false if the wait timed out. The thread then continues to the
 * block's next barrier, after which all threads see expired and leave together. The lanes of a warp
 * return together, as the tensor core products that follow require. */
__device__ static inline bool receive(channel *c, int i, const recur_call &call)
{
    bool arrived = mbarrier_try_wait(&c->full[i % 2], i / 2 % 2);
    if (!arrived) {
        wait_state p = start_wait();
        do
            arrived = mbarrier_try_wait(&c->full[i % 2], i / 2 % 2);
        while (!arrived && !wait_expired(p, call));
        if (!arrived)
            atomicExch(&c->timed_out[i % 2], 1u);
    }
    __syncwarp();
    return arrived;
}
/* Call after the block's first barrier after a use. The flag is used again two uses later. */
__device__ static inline bool expired(const channel *c, int i) { return i >= 0 && c->timed_out[i % 2]; }

/* Transposes the values of four neighbouring threads: thread k returns value k of each. */
__device__ static inline float4 transposed(float (&v)[4], int k)
{
    for (int pair = 0; pair < 4; pair += 2) {
        const float other = __shfl_xor_sync(~0u, k & 1 ? v[pair] : v[pair + 1], 1);
        if (k & 1)
            v[pair] = other;
        else
            v[pair + 1] = other;
    }
    for (int i = 0; i < 2; i++) {
        const float other = __shfl_xor_sync(~0u, k & 2 ? v[i] : v[i + 2], 2);
        if (k & 2)
            v[i] = other;
        else
            v[i + 2] = other;
    }
    return make_float4(v[0], v[1], v[2], v[3]);
}

/* ---- forward ---- */
/* Sends the states of four sequences of a unit to every block; each of four threads serves some. */
template <int BLOCKS>
__device__ static inline void send_states(const role &me, bool last, float h, float *target, uint64_t *full)
{
    float group_states[4];
    for (int k = 0; k < 4; k++)
        group_states[k] = __shfl_sync(~0u, h, me.group * 4 + k);
    for (int block = me.part; !last && block < BLOCKS; block += 4)
        st_async((float4 *)target, full, (unsigned)block,
                 make_float4(group_states[0], group_states[1], group_states[2], group_states[3]));
}
template <weft__cell C, bool RESET, int BLOCKS>
static __global__ void __launch_bounds__(BLOCK, 1)
    forward_cluster(const __grid_constant__ directions all, const __grid_constant__ recur_call call)
{
    const weft__recurrence &r = all.of[blockIdx.y];
    constexpr int UNITS = BLOCKS * N_UNITS, DEPTH = forward_depth(BLOCKS), TILES = forward_tiles(C);
    DYN_SHARED(float, memory);
    SHARED(link, channel);
    if (!code_exists<has_code(CLUSTERS, ARCH, BLOCKS, forward_bytes(C, BLOCKS))>(call))
        return;
    float (*state)[UNITS][SEQUENCES] = (float (*)[UNITS][SEQUENCES])memory;
    float4 (*exchange)[BLOCK] = (float4 (*)[BLOCK])state[2], *overflow = exchange[2];
    const role me = cluster_role();
    const int steps = steps_of(r, me.first), half = me.warp / 4;
    const float bias =
        weft__slot_of_h_alone(C) >= 0 && r.b_h_alone && me.unit < r.hidden ? r.b_h_alone[me.unit] : 0;
    float4 w[least_of(DEPTH * TILES, KEPT)];
    step_rows now = rows_at(r, me.first, steps, 0, r.reverse),
              next = rows_at(r, me.first, steps, 1, r.reverse);
    const int first = first_sequence<RESET>(r, me, now, me.sequence);
    float h = first_state(r, r.h0, first, me.unit), c = has_c(C) ? first_state(r, r.c0, first, me.unit) : 0;
    float sum[TILES][4], ahead[TILES][4] = {}, x[TILES][4];
    load_weights<DEPTH, TILES>(
        [&](int k, int t, int j) { return forward_weight<C>(r, me, half * DEPTH + k, t, j); }, w, overflow);
    load_states<RESET, UNITS>(r, me, now, state[0]);
    load_sums<C, 1>(r, me, now, bias, ahead);
    open_channel(&link);
    int i = 0;
    for (; i < steps; i++) {
        const step_rows after = rows_at(r, me.first, steps, i + 2, r.reverse);
        const bool last = i + 1 == steps;
        for (int k = 0; k < 4 * TILES; k++)
            x[k / 4][k % 4] = ahead[k / 4][k % 4];
        load_sums<C, 1>(r, me, next, bias, ahead);
        const int begins = RESET ? begins_at(r, next, me.sequence) : (int)WEFT__ON;
        if (!last)
            expect(&link, i, sizeof state[0]);
        if (i > 0)
            receive(&link, i - 1, call);
        multiply<DEPTH, TILES>(w, overflow, &state[i % 2][half * DEPTH * 8 + me.part][pos_of(me.group)],
                               call.one_product, sum);
        exchange_sums(me, exchange[i % 2], sum, x);
        if (expired(&link, i - 1))
            break;
        forward_unit<C>(r, me, now, 0, x, h, c);
        start_sequence<C>(r, me, begins, h, c);
        send_states<BLOCKS>(me, last, h, &state[(i + 1) % 2][me.unit][half * 4], &link.full[i % 2]);
        advance(now, next, after);
    }
    fill_nan(r, me, i, steps, r.reverse, r.h, r.hidden);
    cluster_sync();
}

/* ---- backward ---- */
/* Sends the sums of a warp's tiles to the blocks that own their units. */
template <int TILES>
__device__ static inline void send_sums(const role &me, int first_tile, float (&sum)[TILES][4],
                                        float (*target)[SEQUENCES], uint64_t *full)
{
    UNROLLED for (int tile = 0; tile < TILES; tile++) {
        const int out = (first_tile + tile) * 16 + me.group + me.part / 2 * 8;
        st_async((float4 *)&target[out % N_UNITS][me.part % 2 * 4], full, (unsigned)(out / N_UNITS),
                 transposed(sum[tile], me.part));
    }
}
template <weft__cell C, bool RESET, int BLOCKS>
static __global__ void __launch_bounds__(BLOCK, 1)
    backward_cluster(const __grid_constant__ directions all, const __grid_constant__ recur_call call)
{
    const weft__recurrence &r = all.of[blockIdx.y];
    constexpr int DEPTH = backward_depth(C), TILES = backward_tiles(BLOCKS);
    DYN_SHARED(float, memory);
    SHARED(link, channel);
    if (!code_exists<has_code(CLUSTERS, ARCH, BLOCKS, backward_bytes(C, BLOCKS))>(call))
        return;
    float (*d)[weft__gates(C) * N_UNITS][SEQUENCES] = (float (*)[weft__gates(C) * N_UNITS][SEQUENCES])memory;
    float (*part)[BLOCKS][N_UNITS][SEQUENCES] = (float (*)[BLOCKS][N_UNITS][SEQUENCES])d[2]; /* dh by block */
    float4 *overflow = (float4 *)part[2];
    const role me = cluster_role();
    const int steps = steps_of(r, me.first), rank = (int)cluster_rank();
    const int first_tile = me.warp * TILES, local = me.unit - rank * N_UNITS, pos = pos_of(me.sequence);
    float4 w[least_of(DEPTH * TILES, KEPT)];
    float dh[1] = {}, dc[1] = {}, sum[TILES][4];
    step_data x[1], ahead[1];
    load_weights<DEPTH, TILES>(
        [&](int k, int t, int j) { return backward_weight(r, me, rank, first_tile + t, k, j); }, w, overflow);
    step_rows now = rows_at(r, me.first, steps, 0, !r.reverse),
              next = rows_at(r, me.first, steps, 1, !r.reverse);
    step_rows after = rows_at(r, me.first, steps, 2, !r.reverse);
    load_step_data<C, RESET>(r, me, now, next, ahead);
    open_channel(&link);
    int i = 0;
    for (; i < steps; i++) {
        x[0] = ahead[0];
        load_step_data<C, RESET>(r, me, next, after, ahead);
        backward_unit<C, RESET>(r, me, now, 0, x[0], dh[0], dc[0]);
        for (int gate = 0; gate < weft__gates(C); gate++)
            d[i % 2][gate * N_UNITS + local][pos] = x[0].slot[weft__slot_of(C, true, gate)];
        expect(&link, i, sizeof part[0]);
        __syncthreads();
        if (expired(&link, i - 1))
            break;
        multiply<DEPTH, TILES>(w, overflow, &d[i % 2][me.part][pos_of(me.group)], call.one_product, sum);
        send_sums<TILES>(me, first_tile, sum, part[i % 2][rank], &link.full[i % 2]);
        if (!receive(&link, i, call))
            dh[0] = NOT_A_NUMBER;
        for (int block = 0; block < BLOCKS && me.sequence < now.live; block++)
            dh[0] += part[i % 2][block][local][pos];
        end_sequence(r, me, x[0].begins, dh[0], dc[0]);
        advance(now, next, after, rows_at(r, me.first, steps, i + 3, !r.reverse));
    }
    fill_nan(r, me, i, steps, !r.reverse, r.gates, weft__slots(C) * r.hidden);
    if (!RESET)
        add_first_gradients(r, me, dh, dc);
    cluster_sync();
}

/* ---- the table ---- */
#define FORWARD(C, RESET, N)  { forward_cluster<C, RESET, N>, BLOCK, N, forward_bytes(C, N) }
#define BACKWARD(C, RESET, N) { backward_cluster<C, RESET, N>, BLOCK, N, backward_bytes(C, N) }
#define SMALLEST              4
#include "cuda/recur_table.h"
persistent_kernel find_cluster_kernel(const choice &c) { return kernels[c.cell][c.reset][c.size][c.back]; }
#endif
