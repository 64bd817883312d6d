/* recur_group.cu - the group kernel: all steps of a recurrent layer of up to 512 units in one launch, on GPUs
 * without large clusters. It adds the same terms in the same order as recur_cluster.cu, so results have the
 * same bits.
 *
 * A group of 4, 8 or 16 blocks runs an octet of sequences from first step to last, then takes the next octet.
 * The launch is cooperative: all blocks run at the same time, in the largest number of groups that fits.
 *
 * Blocks exchange the numbers of a step through global memory. A number and the tag of its use form one
 * 64-bit word, so a block that reads the tag has also read the number. No flags, fences or order of stores
 * are needed. Tags are never reused, not even by later launches. Two buffers alternate. A buffer is written
 * again two uses later. By then the writer has data from each reader. So blocks wait for data only, for a
 * limited time. */
#ifndef WEFT_DOUBLE
#include "cuda/recur_wide.h"

/* Bytes of shared memory without overflow weights. */
__host__ __device__ constexpr size_t forward_bytes(int blocks)
{
    return N_UNITS * blocks * SEQUENCES * sizeof(float) + BLOCK * sizeof(float4);
}
__host__ __device__ constexpr size_t backward_bytes(weft__cell c)
{
    return 2 * weft__gates(c) * N_UNITS * SEQUENCES * sizeof(float);
}
/* Words of one use: the states of all units; backward each block's share of each unit's gradient. */
__host__ __device__ constexpr int forward_words(int blocks)       { return blocks * N_UNITS * SEQUENCES; }
__host__ __device__ constexpr int backward_words(int blocks)      { return blocks * forward_words(blocks); }

/* ---- what blocks send ---- */
/* words: two buffers of `size` words each. use: number of the next use. timed_out, in shared memory, for each
 * buffer: a thread of this block timed out. failed: set after that, when all threads of the block know. */
typedef struct channel { uint64_t *words; int size; unsigned use, *timed_out; bool failed; } channel;
__device__ static inline channel open_channel(const recur_call &call, int group, int size, unsigned *flags)
{
    if (threadIdx.x < 2)
        flags[threadIdx.x] = 0;
    return channel{ call.words + (int64_t)group * 2 * size, size, 0, flags, false };
}
__device__ static inline uint64_t *words_of(const channel &c, unsigned use)
{
    return c.words + use % 2 * (unsigned)c.size;
}
__device__ static inline void send(const channel &c, const recur_call &call, int pos, float v)
{
    store_word(words_of(c, c.use) + pos, (uint64_t)(call.tag + c.use) << 32 | __float_as_uint(v));
}
/* Reads N words that are `stride` apart. Returns false if the wait timed out. The thread then continues to
 * the block's next barrier, after which all threads see expired and leave together. */
template <int N>
__device__ static bool receive(const channel &c, const recur_call &call, unsigned use, int pos,
                               int stride, float (&v)[N])
{
    const uint64_t *words = words_of(c, use) + pos;
    for (wait_state p = start_wait();; look_again()) {
        bool complete = true;
        UNROLLED for (int k = 0; k < N; k++) {
            const uint64_t word = load_word(words + k * stride);
            complete &= (unsigned)(word >> 32) == call.tag + use;
            v[k] = __uint_as_float((unsigned)word);
        }
        if (complete)
            return true;
        if (wait_expired(p, call)) {
            atomicExch(&c.timed_out[use % 2], 1u);
            return false;
        }
    }
}
/* Call after the block's first barrier after a use. The flag is used again two uses later. */
__device__ static inline bool expired(channel &c, unsigned use) { return c.failed = c.timed_out[use % 2]; }

/* ---- overflow weights: in shared memory if they fit, otherwise in global memory ---- */
typedef struct overflow_weights { float4 *shared, *global; int shared_products; } overflow_weights;
__device__ static inline overflow_weights overflow_of(const recur_call &call, float4 *shared, int products)
{
    const int64_t n = products - KEPT - call.shared_products;
    const int64_t block = blockIdx.y * gridDim.x + blockIdx.x;
    return overflow_weights{ shared, call.global_weights ? call.global_weights + block * n * BLOCK : NULL,
                             call.shared_products };
}
__device__ static inline float4 load_overflow(const overflow_weights &overflow, int i)
{
    if (i < overflow.shared_products)
        return load_overflow((const float4 *)overflow.shared, i);
    return load_overflow((const float4 *)overflow.global, i - overflow.shared_products);
}
__device__ static inline void store_overflow(const overflow_weights &overflow, int i, const float4 &v)
{
    if (i < overflow.shared_products)
        store_overflow(overflow.shared, i, v);
    else
        store_overflow(overflow.global, i - overflow.shared_products, v);
}

/* ---- forward ---- */
/* The state of a block between octets, apart from its weights. */
typedef struct forward_block {
    float (*state)[SEQUENCES];
    float4 *exchange;
    float bias;
    channel link;
} forward_block;

/* A thread receives a number of one unit from each block, so afterwards it has heard from all blocks. */
template <int BLOCKS>
__device__ static inline void receive_states(const forward_block &b, const recur_call &call)
{
    float v[BLOCKS];
    const int pos = (int)threadIdx.x;
    receive<BLOCKS>(b.link, call, b.link.use - 1, pos, BLOCK, v);
    UNROLLED for (int k = 0; k < BLOCKS; k++)
        ((float *)b.state)[k * BLOCK + pos] = v[k];
    __syncthreads();
}
template <weft__cell C, bool RESET, int BLOCKS, int IN_REGISTERS>
__device__ static inline void forward_octet(const weft__recurrence &r, const recur_call &call, const role &me,
                                            float4 (&w)[IN_REGISTERS], const overflow_weights &overflow,
                                            forward_block &b)
{
    constexpr int DEPTH = forward_depth(BLOCKS), TILES = forward_tiles(C);
    const int steps = steps_of(r, me.first), half = me.warp / 4;
    step_rows now = rows_at(r, me.first, steps, 0, r.reverse),
              next = rows_at(r, me.first, steps, 1, r.reverse);
    const int first = first_sequence<RESET>(r, me, now, me.sequence);
    float h = first_state(r, r.h0, first, me.unit), c = has_c(C) ? first_state(r, r.c0, first, me.unit) : 0;
    float sum[TILES][4], ahead[TILES][4] = {}, x[TILES][4];
    load_states<RESET, BLOCKS * N_UNITS>(r, me, now, b.state);
    load_sums<C, 1>(r, me, now, b.bias, ahead);
    __syncthreads();
    int i = 0;
    for (; i < steps && !b.link.failed; i++) {
        const step_rows after = rows_at(r, me.first, steps, i + 2, r.reverse);
        for (int k = 0; k < 4 * TILES; k++)
            x[k / 4][k % 4] = ahead[k / 4][k % 4];
        load_sums<C, 1>(r, me, next, b.bias, ahead);
        const int begins = RESET ? begins_at(r, next, me.sequence) : (int)WEFT__ON;
        if (i > 0) {
            receive_states<BLOCKS>(b, call);
            if (expired(b.link, b.link.use - 1))
                break;
        }
        multiply<DEPTH, TILES>(w, overflow, &b.state[half * DEPTH * 8 + me.part][pos_of(me.group)],
                               call.one_product, sum);
        exchange_sums(me, b.exchange, sum, x);
        forward_unit<C>(r, me, now, 0, x, h, c);
        start_sequence<C>(r, me, begins, h, c);
        if (i + 1 < steps)
            send(b.link, call, me.unit * SEQUENCES + pos_of(me.sequence), h), b.link.use++;
        advance(now, next, after);
    }
    fill_nan(r, me, i, steps, r.reverse, r.h, r.hidden);
}
template <weft__cell C, bool RESET, int BLOCKS>
static __global__ void __launch_bounds__(BLOCK, 1)
    forward_group(const __grid_constant__ directions all, const __grid_constant__ recur_call call)
{
    const weft__recurrence &r = all.of[blockIdx.y];
    constexpr int DEPTH = forward_depth(BLOCKS), TILES = forward_tiles(C);
    DYN_SHARED(float, memory);
    SHARED(timed_out, unsigned[2]);
    if (!code_exists<has_code(GROUPS, ARCH, BLOCKS, forward_bytes(BLOCKS))>(call))
        return;
    forward_block b = {};
    b.state = (float (*)[SEQUENCES])memory;
    b.exchange = (float4 *)b.state[BLOCKS * N_UNITS];
    float4 *shared_weights = b.exchange + BLOCK;
    const overflow_weights overflow = overflow_of(call, shared_weights, DEPTH * TILES);
    const int group = (int)blockIdx.x / BLOCKS, groups = (int)gridDim.x / BLOCKS;
    role me = thread_role((int)blockIdx.x % BLOCKS, group * SEQUENCES);
    const int half = me.warp / 4;
    float4 w[least_of(DEPTH * TILES, KEPT)];
    b.bias = weft__slot_of_h_alone(C) >= 0 && r.b_h_alone && me.unit < r.hidden ? r.b_h_alone[me.unit] : 0;
    b.link = open_channel(call, (int)blockIdx.y * groups + group, forward_words(BLOCKS), timed_out);
    load_weights<DEPTH, TILES>(
        [&](int k, int t, int j) { return forward_weight<C>(r, me, half * DEPTH + k, t, j); }, w, overflow);
    for (; me.first < r.live.device[0]; me.first += groups * SEQUENCES)
        forward_octet<C, RESET, BLOCKS>(r, call, me, w, overflow, b);
}

/* ---- backward ---- */
/* Sends the sums of a warp's tiles to the blocks that own their units. */
template <int BLOCKS, int TILES>
__device__ static inline void send_sums(const channel &link, const recur_call &call, const role &me, int rank,
                                        int first_tile, const float (&sum)[TILES][4])
{
    UNROLLED for (int tile = 0; tile < TILES; tile++)
        for (int j = 0; j < 4; j++) {
            const int out = (first_tile + tile) * 16 + me.group + j / 2 * 8;
            const int pos = out % N_UNITS * SEQUENCES + pos_of(me.part * 2 + j % 2);
            send(link, call, (out / N_UNITS * BLOCKS + rank) * N_UNITS * SEQUENCES + pos, sum[tile][j]);
        }
}
/* d: two buffers for the gradients of a step. */
template <weft__cell C>
struct backward_block { float (*d)[weft__gates(C) * N_UNITS][SEQUENCES]; channel link; };

template <weft__cell C, bool RESET, int BLOCKS, int IN_REGISTERS>
__device__ static inline void backward_octet(const weft__recurrence &r, const recur_call &call,
                                             const role &me, float4 (&w)[IN_REGISTERS],
                                             const overflow_weights &overflow, backward_block<C> &b)
{
    constexpr int DEPTH = backward_depth(C), TILES = backward_tiles(BLOCKS);
    const int steps = steps_of(r, me.first), rank = (int)blockIdx.x % BLOCKS, pos = pos_of(me.sequence);
    const int local = me.unit - rank * N_UNITS;
    float dh[1] = { b.link.failed ? NOT_A_NUMBER : 0 }, dc[1] = {}, sum[TILES][4], v[BLOCKS];
    step_data x[1], ahead[1];
    step_rows now = rows_at(r, me.first, steps, 0, !r.reverse),
              next = rows_at(r, me.first, steps, 1, !r.reverse);
    step_rows after = rows_at(r, me.first, steps, 2, !r.reverse);
    load_step_data<C, RESET>(r, me, now, next, ahead);
    int i = 0;
    for (; i < steps; i++, b.link.use++) {
        float (&d)[weft__gates(C) * N_UNITS][SEQUENCES] = b.d[b.link.use % 2];
        x[0] = ahead[0];
        load_step_data<C, RESET>(r, me, next, after, ahead);
        backward_unit<C, RESET>(r, me, now, 0, x[0], dh[0], dc[0]);
        for (int gate = 0; gate < weft__gates(C); gate++)
            d[gate * N_UNITS + local][pos] = x[0].slot[weft__slot_of(C, true, gate)];
        __syncthreads();
        if (b.link.failed || expired(b.link, b.link.use - 1)) {
            dh[0] = NOT_A_NUMBER;
            break;
        }
        multiply<DEPTH, TILES>(w, overflow, &d[me.part][pos_of(me.group)], call.one_product, sum);
        send_sums<BLOCKS>(b.link, call, me, rank, me.warp * TILES, sum);
        if (!receive<BLOCKS>(b.link, call, b.link.use, (rank * BLOCKS * N_UNITS + local) * SEQUENCES + pos,
                             N_UNITS * SEQUENCES, v))
            dh[0] = NOT_A_NUMBER;
        for (int block = 0; block < BLOCKS && me.sequence < now.live; block++)
            dh[0] += v[block];
        end_sequence(r, me, x[0].begins, dh[0], dc[0]);
        advance(now, next, after, rows_at(r, me.first, steps, i + 3, !r.reverse));
    }
    fill_nan(r, me, i, steps, !r.reverse, r.gates, weft__slots(C) * r.hidden);
    if (!RESET)
        add_first_gradients(r, me, dh, dc);
}
template <weft__cell C, bool RESET, int BLOCKS>
static __global__ void __launch_bounds__(BLOCK, 1)
    backward_group(const __grid_constant__ directions all, const __grid_constant__ recur_call call)
{
    const weft__recurrence &r = all.of[blockIdx.y];
    constexpr int DEPTH = backward_depth(C), TILES = backward_tiles(BLOCKS);
    DYN_SHARED(float, memory);
    SHARED(timed_out, unsigned[2]);
    if (!code_exists<has_code(GROUPS, ARCH, BLOCKS, backward_bytes(C))>(call))
        return;
    backward_block<C> b = {};
    b.d = (float (*)[weft__gates(C) * N_UNITS][SEQUENCES])memory;
    float4 *shared_weights = (float4 *)b.d[2];
    const overflow_weights overflow = overflow_of(call, shared_weights, DEPTH * TILES);
    const int rank = (int)blockIdx.x % BLOCKS, group = (int)blockIdx.x / BLOCKS,
              groups = (int)gridDim.x / BLOCKS;
    role me = thread_role(rank, group * SEQUENCES);
    float4 w[least_of(DEPTH * TILES, KEPT)];
    b.link = open_channel(call, (int)blockIdx.y * groups + group, backward_words(BLOCKS), timed_out);
    load_weights<DEPTH, TILES>(
        [&](int k, int tile, int j) { return backward_weight(r, me, rank, me.warp * TILES + tile, k, j); }, w,
        overflow);
    for (; me.first < r.live.device[0]; me.first += groups * SEQUENCES)
        backward_octet<C, RESET, BLOCKS>(r, call, me, w, overflow, b);
}

/* ---- the table ---- */
#define FORWARD(C, RESET, BLOCKS)                                                                \
    {                                                                                            \
        forward_group<C, RESET, BLOCKS>, BLOCK, BLOCKS, forward_bytes(BLOCKS),                   \
            overflow_bytes(forward_depth(BLOCKS) * forward_tiles(C)), 2 * forward_words(BLOCKS)       \
    }
#define BACKWARD(C, RESET, BLOCKS)                                                               \
    {                                                                                            \
        backward_group<C, RESET, BLOCKS>, BLOCK, BLOCKS, backward_bytes(C),                      \
            overflow_bytes(backward_depth(C) * backward_tiles(BLOCKS)), 2 * backward_words(BLOCKS)    \
    }
#define SMALLEST 4
#include "cuda/recur_table.h"
persistent_kernel find_group_kernel(const choice &c) { return kernels[c.cell][c.reset][c.size][c.back]; }
#endif
