/* recur_cluster.cu - recurrent layers of up to 512 units: one launch for all steps. A cluster of 4, 8 or 16
 * blocks owns eight sequences from their first step to their last; each block has 32 of the units, keeps
 * their weights in its registers and, of more than 256 units, in its shared memory, and the blocks send each
 * other what a step needs, into shared memory, by stores that a barrier there counts. No block waits for one
 * of another cluster.
 *
 * Numbers go over in fours: a unit's eight sequences are two fours in memory, those of even place and those
 * of odd, since a group of four threads has just such four after a product. A place is written again two
 * steps later, when all who read it have since sent something that the writer has waited for; so there is
 * nothing to wait for but data, and that not for ever. sm_90 only. */
#ifndef WEFT_DOUBLE
#include "cuda/recur_steps.h"

/* a block's units, warps, threads; products whose weights are in registers */
enum { OWN = 32, WARPS = 8, BLOCK = 32 * WARPS, KEPT = 32 };

__host__ __device__ constexpr int least_of(int a, int b)          { return a < b ? a : b; }
/* Forward, a warp has the two tiles of eight units, and half of the terms; backward, all of the block's
 * terms and these tiles. */
__host__ __device__ constexpr int forward_deep(int blocks)        { return blocks * OWN / 16; }
__host__ __device__ constexpr int backward_deep(weft__cell c)     { return weft__gates(c) * OWN / 8; }
__host__ __device__ constexpr int backward_tiles(int blocks)      { return blocks * OWN / 16 / WARPS; }
__host__ __device__ constexpr size_t rest_bytes(int products)
{
    return (size_t)(products - least_of(products, KEPT)) * BLOCK * sizeof(float4);
}
__host__ __device__ constexpr size_t forward_bytes(weft__cell c, int blocks)
{
    return 2 * (OWN * blocks * SEQUENCES * sizeof(float) + BLOCK * sizeof(float4)) +
           rest_bytes(forward_deep(blocks) * forward_tiles(c));
}
__host__ __device__ constexpr size_t backward_bytes(weft__cell c, int blocks)
{
    return 2 * (weft__gates(c) + blocks) * OWN * SEQUENCES * sizeof(float) +
           rest_bytes(backward_deep(c) * backward_tiles(blocks));
}

/* A unit of one sequence. Two warps have the same eight units: the first four of a block the even
 * sequences, the others the odd. */
__device__ static inline who whoami()
{
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    return who{ warp,
                lane / 4,
                lane % 4,
                (int)cluster_rank() * OWN + warp % 4 * 8 + lane / 4,
                lane % 4 * 2 + warp / 4,
                (int)(blockIdx.x / cluster_size()) * SEQUENCES };
}
/* of the eight, in memory */
__device__ static inline int place_of(int sequence) { return sequence % 2 * 4 + sequence / 2; }

/* ---- what blocks send ---- */
/* Barriers of the two places that steps use in turn; has a thread of this block waited there in vain? */
typedef struct channel { uint64_t full[2]; unsigned given_up[2]; } channel;
__device__ static inline void open_channel(channel *c)
{
    if (threadIdx.x == 0) {
        mbarrier_init(&c->full[0], 1), mbarrier_init(&c->full[1], 1);
        c->given_up[0] = c->given_up[1] = 0;
        mbarrier_init_done();
    }
    cluster_sync();
}
/* once for each use i of the channel: 0, 1 .. */
__device__ static inline void expect(channel *c, int i, unsigned bytes)
{
    if (threadIdx.x == 0)
        mbarrier_arrive_expect(&c->full[i % 2], bytes);
}
/* Clocks that a wait may last, some two seconds, and how many of them a single look counts for: a GPU that
 * meanwhile did something else has not waited. After so many the others' distress counts, too. */
enum : long long { PATIENCE = 1LL << 32, GLANCE = 1LL << 28, UNUSUAL = 1LL << 22 };
/* A wait ends in any case. Who has waited in vain (false) goes on to the block's next barrier, and behind
 * it all threads leave together: given_up. */
__device__ static inline bool receive(channel *c, int i, const recur_call &call)
{
    if (mbarrier_try_wait(&c->full[i % 2], i / 2 % 2))
        return true;
    long long gone = 0, last = clock64();
    while (!mbarrier_try_wait(&c->full[i % 2], i / 2 % 2)) {
        const long long now = clock64();
        gone += now - last < GLANCE ? now - last : GLANCE, last = now;
        if (gone > PATIENCE || (gone > UNUSUAL && load_acquire(call.cell) != NOBODY)) {
            atomicExch(call.cell, call.number), atomicExch(&c->given_up[i % 2], 1u);
            return false;
        }
    }
    return true;
}
/* Behind a barrier of the block that follows a use of the channel: the next but one writes here again,
 * when all have looked. */
__device__ static inline bool given_up(const channel *c, int i) { return i >= 0 && c->given_up[i % 2]; }
#define NOT_A_NUMBER __int_as_float(0x7fffffff)
/* What was not computed is NaN, so that no one takes it for a result: of step i and those after it. */
__device__ static void spoil(const weft__recurrence &r, const who &me, int i, int steps, bool down,
                             float *rows, int64_t width)
{
    for (; i < steps; i++) {
        const moment at = moment_at(r, me.first, steps, i, down);
        if (me.sequence < at.live && me.unit < r.hidden)
            rows[(at.row + me.sequence) * width + me.unit] = NOT_A_NUMBER;
    }
}

/* Of four neighbouring threads number k gets value k of each. */
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

/* ---- products: DEEP steps of eight terms, TILES tiles ---- */
template <class Weight>
__device__ static float4 four_weights(const Weight &weight, int k, int tile)
{
    return make_float4(weight(k, tile, 0), weight(k, tile, 1), weight(k, tile, 2), weight(k, tile, 3));
}
template <int DEEP, int TILES, class Weight>
__device__ static void load_weights(const Weight &weight, float4 (&w)[least_of(DEEP * TILES, KEPT)],
                                    float4 *rest)
{
    constexpr int IN_REGISTERS = least_of(DEEP * TILES, KEPT);
    UNROLLED for (int i = 0; i < IN_REGISTERS; i++)
        w[i] = four_weights(weight, i / TILES, i % TILES);
    ROLLED for (int i = IN_REGISTERS; i < DEEP * TILES; i++)
        rest[(i - IN_REGISTERS) * BLOCK + (int)threadIdx.x] = four_weights(weight, i / TILES, i % TILES);
}
__device__ static inline void add_product(const float4 &w, const halves &b, bool one_product, parts &p)
{
    uint32_t high[4], low[4];
    split(w.x, high[0], low[0]), split(w.y, high[1], low[1]), split(w.z, high[2], low[2]),
        split(w.w, high[3], low[3]);
    add_product(high, low, b, one_product, p);
}
/* x: the thread's first number of its column; a term is SEQUENCES numbers further on. */
template <int DEEP, int TILES>
__device__ static void multiply(float4 (&w)[least_of(DEEP * TILES, KEPT)], const float4 *rest, const float *x,
                                bool one_product, float (&sum)[TILES][4])
{
    constexpr int IN_REGISTERS = least_of(DEEP * TILES, KEPT) / TILES;
    parts part[TILES] = {};
    UNROLLED for (int tile = 0; tile < TILES; tile++)
        for (int j = 0; j < 4; j++)
            sum[tile][j] = 0;
    UNROLLED for (int k = 0; k < IN_REGISTERS; k++) {
        const halves b = column_of<SEQUENCES>(x + k * 8 * SEQUENCES);
        UNROLLED for (int tile = 0; tile < TILES; tile++) {
            made_anew(w[k * TILES + tile]);      /* two halves of each are too many for the registers */
            add_product(w[k * TILES + tile], b, one_product, part[tile]);
            fold_after(k, part[tile], sum[tile]);
        }
    }
    ROLLED for (int k = IN_REGISTERS; k < DEEP; k++) {
        const halves b = column_of<SEQUENCES>(x + k * 8 * SEQUENCES);
        UNROLLED for (int tile = 0; tile < TILES; tile++) {
            const float4 &v = rest[((k - IN_REGISTERS) * TILES + tile) * BLOCK + (int)threadIdx.x];
            add_product(v, b, one_product, part[tile]);
            fold_after(k, part[tile], sum[tile]);
        }
    }
    UNROLLED for (int tile = 0; tile < TILES; tile++)
        fold_all(part[tile], sum[tile]);
}

/* ---- forward ---- */
/* Each of two threads has half of the terms' sums for two sequences, and gets the whole sums of its own;
 * x: those of the inputs. */
template <int TILES>
__device__ static void meet(const who &me, float4 *desk, const float (&half)[TILES][4], float (&x)[TILES][4])
{
    const int own = me.sequence % 2;
    float theirs[4] = {}, mine[4] = {};
    for (int k = 0; k < 2 * TILES; k++) {
        const float even = half[k / 2][k % 2 * 2], odd = half[k / 2][k % 2 * 2 + 1];
        mine[k] = own ? odd : even, theirs[k] = own ? even : odd;
    }
    desk[threadIdx.x] = make_float4(theirs[0], theirs[1], theirs[2], theirs[3]);
    __syncthreads();
    const float4 v = desk[threadIdx.x ^ (BLOCK / 2)];
    const float rest[4] = { v.x, v.y, v.z, v.w };
    for (int k = 0; k < 2 * TILES; k++)
        x[k / 2][k % 2 * 2] += mine[k] + rest[k];
}
/* Of the whole layer, those that enter the first step. */
template <bool RESET, int UNITS>
__device__ static void load_states(const weft__recurrence &r, const who &me, const moment &at,
                                   float (*state)[SEQUENCES])
{
    for (int i = (int)threadIdx.x; i < UNITS * SEQUENCES; i += BLOCK) {
        const int unit = i / SEQUENCES, s = i % SEQUENCES;
        state[unit][place_of(s)] = first_state(r, r.h0, first_sequence<RESET>(r, me, at, s), unit);
    }
}
/* The states of a group's four sequences go to every block, each thread sending to some. */
template <int BLOCKS>
__device__ static inline void send_states(const who &me, bool last, float h, float *there, uint64_t *full)
{
    float of_group[4];
    for (int k = 0; k < 4; k++)
        of_group[k] = __shfl_sync(~0u, h, me.group * 4 + k);
    for (int to = me.part; !last && to < BLOCKS; to += 4)
        st_async((float4 *)there, full, (unsigned)to,
                 make_float4(of_group[0], of_group[1], of_group[2], of_group[3]));
}
template <weft__cell C, bool RESET, int BLOCKS>
static __global__ void __launch_bounds__(BLOCK, 1) forward_cluster(weft__recurrence r, recur_call call)
{
    constexpr int UNITS = BLOCKS * OWN, DEEP = forward_deep(BLOCKS), TILES = forward_tiles(C);
    DYN_SHARED(float, memory);
    SHARED(link, channel);
    float (*state)[UNITS][SEQUENCES] = (float (*)[UNITS][SEQUENCES])memory;
    float4 (*desk)[BLOCK] = (float4 (*)[BLOCK])state[2], *rest = desk[2];
    const who me = whoami();
    const int steps = steps_of(r, me.first), half = me.warp / 4;
    const float bias =
        weft__slot_of_h_alone(C) >= 0 && r.b_h_alone && me.unit < r.hidden ? r.b_h_alone[me.unit] : 0;
    float4 w[least_of(DEEP * TILES, KEPT)];
    moment now = moment_at(r, me.first, steps, 0, r.reverse),
           next = moment_at(r, me.first, steps, 1, r.reverse);
    const int first = first_sequence<RESET>(r, me, now, me.sequence);
    float h = first_state(r, r.h0, first, me.unit), c = has_c(C) ? first_state(r, r.c0, first, me.unit) : 0;
    float sum[TILES][4], ahead[TILES][4] = {}, x[TILES][4];
    load_weights<DEEP, TILES>(
        [&](int k, int tile, int j) { return forward_weight<C>(r, me, half * DEEP + k, tile, j); }, w, rest);
    load_states<RESET, UNITS>(r, me, now, state[0]);
    load_sums<C, 1>(r, me, now, bias, ahead);
    open_channel(&link);
    int i = 0;
    for (; i < steps; i++) {
        const moment after = moment_at(r, me.first, steps, i + 2, r.reverse);
        const bool last = i + 1 == steps;
        for (int k = 0; k < 4 * TILES; k++)
            x[k / 4][k % 4] = ahead[k / 4][k % 4];
        load_sums<C, 1>(r, me, next, bias, ahead);
        const int begins = RESET ? begins_at(r, next, me.sequence) : (int)WEFT__ON;
        if (!last)
            expect(&link, i, sizeof state[0]);
        if (i > 0)
            receive(&link, i - 1, call);
        multiply<DEEP, TILES>(w, rest, &state[i % 2][half * DEEP * 8 + me.part][place_of(me.group)],
                              call.one_product, sum);
        meet(me, desk[i % 2], sum, x);
        if (given_up(&link, i - 1))
            break;
        forward_unit<C>(r, me, now, 0, x, h, c);
        enter<C>(r, me, begins, h, c);
        send_states<BLOCKS>(me, last, h, &state[(i + 1) % 2][me.unit][half * 4], &link.full[i % 2]);
        now = next, next = after;
    }
    spoil(r, me, i, steps, r.reverse, r.h, r.hidden);
    cluster_sync();
}

/* ---- backward ---- */
__device__ static inline float backward_weight(const weft__recurrence &r, const who &me, int rank, int tile,
                                               int k, int j)
{
    const int out = tile * 16 + me.group + j % 2 * 8, term = k * 8 + me.part + j / 2 * 4, H = (int)r.hidden;
    const int gate = term / OWN, in = rank * OWN + term % OWN;
    return in < H && out < H ? r.w_hh[(gate * H + in) * H + out] : 0;
}
/* The sums of a warp's tiles go to the blocks that own their units. */
template <int TILES>
__device__ static inline void send_sums(const who &me, int first_tile, float (&sum)[TILES][4],
                                        float (*there)[SEQUENCES], uint64_t *full)
{
    UNROLLED for (int tile = 0; tile < TILES; tile++) {
        const int out = (first_tile + tile) * 16 + me.group + me.part / 2 * 8;
        st_async((float4 *)&there[out % OWN][me.part % 2 * 4], full, (unsigned)(out / OWN),
                 transposed(sum[tile], me.part));
    }
}
template <weft__cell C, bool RESET, int BLOCKS>
static __global__ void __launch_bounds__(BLOCK, 1) backward_cluster(weft__recurrence r, recur_call call)
{
    constexpr int DEEP = backward_deep(C), TILES = backward_tiles(BLOCKS);
    DYN_SHARED(float, memory);
    SHARED(link, channel);
    float (*d)[weft__gates(C) * OWN][SEQUENCES] = (float (*)[weft__gates(C) * OWN][SEQUENCES])memory;
    /* of dh, from each block */
    float (*part)[BLOCKS][OWN][SEQUENCES] = (float (*)[BLOCKS][OWN][SEQUENCES])d[2];
    float4 *rest = (float4 *)part[2];
    const who me = whoami();
    const int steps = steps_of(r, me.first), rank = (int)cluster_rank();
    const int first_tile = me.warp * TILES, mine = me.unit - rank * OWN, place = place_of(me.sequence);
    float4 w[least_of(DEEP * TILES, KEPT)];
    float dh[1] = {}, dc[1] = {}, sum[TILES][4];
    tape x[1], ahead[1];
    load_weights<DEEP, TILES>(
        [&](int k, int tile, int j) { return backward_weight(r, me, rank, first_tile + tile, k, j); }, w,
        rest);
    moment now = moment_at(r, me.first, steps, 0, !r.reverse),
           next = moment_at(r, me.first, steps, 1, !r.reverse);
    moment after = moment_at(r, me.first, steps, 2, !r.reverse);
    load_tape<C, RESET>(r, me, now, next, ahead);
    open_channel(&link);
    int i = 0;
    for (; i < steps; i++) {
        x[0] = ahead[0];
        load_tape<C, RESET>(r, me, next, after, ahead);
        backward_unit<C, RESET>(r, me, now, 0, x[0], dh[0], dc[0]);
        for (int gate = 0; gate < weft__gates(C); gate++)
            d[i % 2][gate * OWN + mine][place] = x[0].slot[weft__slot_of(C, true, gate)];
        expect(&link, i, sizeof part[0]);
        __syncthreads();
        if (given_up(&link, i - 1))
            break;
        multiply<DEEP, TILES>(w, rest, &d[i % 2][me.part][place_of(me.group)], call.one_product, sum);
        send_sums<TILES>(me, first_tile, sum, part[i % 2][rank], &link.full[i % 2]);
        if (!receive(&link, i, call))
            dh[0] = NOT_A_NUMBER;
        for (int from = 0; from < BLOCKS && me.sequence < now.live; from++)
            dh[0] += part[i % 2][from][mine][place];
        hand_over(r, me, x[0].begins, dh[0], dc[0]);
        now = next, next = after, after = moment_at(r, me.first, steps, i + 3, !r.reverse);
    }
    spoil(r, me, i, steps, !r.reverse, r.gates, weft__slots(C) * r.hidden);
    if (!RESET)
        add_first_gradients(r, me, dh, dc);
    cluster_sync();
}

/* ---- which of them ---- */
#define BOTH(C, RESET, BLOCKS)                                                           \
    {                                                                                    \
        { forward_cluster<C, RESET, BLOCKS>, BLOCK, BLOCKS, forward_bytes(C, BLOCKS) },  \
        {                                                                                \
            backward_cluster<C, RESET, BLOCKS>, BLOCK, BLOCKS, backward_bytes(C, BLOCKS) \
        }                                                                                \
    }
#define SIZES(C, RESET) { BOTH(C, RESET, 4), BOTH(C, RESET, 8), BOTH(C, RESET, 16) }
#define OF_persistent(C) { SIZES(C, false), SIZES(C, true) },
#define OF_general(C)    {},
#define CELL(name, gpu, ...) OF_##gpu(WEFT__##name)
static const way ways[][2][3][2] = {
#include "core/cells.def"
};

way cluster_way(const choice &c) { return ways[c.cell][c.reset][c.size][c.back]; }
#endif
