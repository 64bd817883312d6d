/* recur_persistent.cu - recurrent layers of up to 128 units: one launch for all steps. A block of threads owns eight sequences
 * from their first step to their last, so that no block waits for another, and keeps the weights in its registers and, of more
 * than 64 units, in its shared memory.
 *
 * A step is a product of tensor cores with the weights on the left and the eight sequences as columns. Forward, a warp has eight
 * units: the rows of its two 16-row tiles are their slots 0 and 1, 2 and 3. The layout of results then gives a thread all slots of
 * one unit of two sequences, and it finishes the cell by itself; c stays with it, h goes through shared memory. Backward, the
 * slots' gradients go through shared memory, and two warps share a tile of 16 units of dh, each with half of the gates. What a
 * step reads is loaded while the step before it is computed.
 *
 * The tensor cores take tf32: a number is split into a high and a low half of 11 bits each, and three products of halves make one
 * as exact as fp32. A column never depends on its neighbours, nor does a sequence. */
#include <stdlib.h>
#include <string.h>
#include "cuda/ptx.h"
#include "cuda/recur.h"

#ifdef WEFT_DOUBLE
bool recur_persistent(weft__device *, const weft__recurrence *, bool) { return false; }
#else
#ifdef WEFT_EMULATED
#define UNROLLED
#define ROLLED
#else
#define UNROLLED _Pragma("unroll")               /* registers have no index */
#define ROLLED   _Pragma("unroll 1")             /* loads ahead want registers, too */
#endif
enum { SEQUENCES = 8, PAD = 4 };                 /* of a block; + PAD: what a warp reads lies in 32 banks */

/* Steps of eight terms in a product; tiles of 16 rows that a warp has; steps whose weights are in registers. */
__host__ __device__ constexpr int forward_deep(int units)                   { return units / 8; }
__host__ __device__ constexpr int forward_tiles(weft__cell c)               { return slots_of(c) > 1 ? 2 : 1; }
__host__ __device__ constexpr int backward_deep(weft__cell c, int units)    { return gates_of(c) * units / 16; }
__host__ __device__ constexpr int kept_of(int units, int deep, int tiles)
{
    return units <= 64 || deep < 7 / tiles ? deep : 7 / tiles;
}
__host__ __device__ constexpr size_t rest_bytes(int units, int deep, int tiles)
{
    return (size_t)(deep - kept_of(units, deep, tiles)) * tiles * 4 * units * sizeof(float4);
}
__host__ __device__ constexpr size_t forward_bytes(weft__cell c, int units)
{
    return 2 * SEQUENCES * (units + PAD) * sizeof(float) + rest_bytes(units, forward_deep(units), forward_tiles(c));
}
__host__ __device__ constexpr size_t backward_bytes(weft__cell c, int units)
{
    return SEQUENCES * ((gates_of(c) + 2) * units + 3 * PAD) * sizeof(float) + rest_bytes(units, backward_deep(c, units), 1);
}

/* Rows of a forward tile that have weights: those of a slot that h has a part in. */
__host__ __device__ constexpr bool has_weights(weft__cell c, int tile, int j)
{
    return 2 * tile + j % 2 < slots_of(c) && !(c == WEFT__GRU && 2 * tile + j % 2 == 2);
}

/* ---- who a thread is: a unit of two sequences ---- */
typedef struct who {
    int warp, group, part;                       /* lane = 4 group + part: row (and column) and the first of two columns of a tile */
    int unit, sequence;                          /* its unit; its first sequence, of the block's */
    int first;                                   /* the block's first sequence */
} who;
__device__ static inline who whoami()
{
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    return who{ warp, lane / 4, lane % 4, warp * 8 + lane / 4, lane % 4 * 2, (int)blockIdx.x * SEQUENCES };
}

typedef struct moment { int live, row; } moment; /* a step of the block: sequences that take part, row of the first */
__device__ static inline moment moment_at(const weft__recurrence &r, int first, int steps, int i, bool down)
{
    if (i >= steps)
        return moment{ 0, 0 };
    const int t = down ? steps - 1 - i : i, live = r.live.device[t] - first;
    return moment{ live < SEQUENCES ? live : (int)SEQUENCES, r.start.device[t] + first };
}
__device__ static int steps_of(const weft__recurrence &r, int first)             /* of the block's longest sequence, by halving */
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
__device__ static inline float first_state(const weft__recurrence &r, const float *from, const who &me, int q)
{
    const int64_t s = me.first + me.sequence + q;
    return from && s < r.sequences && me.unit < r.hidden ? from[s * r.hidden + me.unit] : 0;
}

/* ---- products ---- */
__device__ static inline void split(float x, uint32_t &high, uint32_t &low)
{
    high = to_tf32(x);
    low = __float_as_uint(x - __uint_as_float(high));            /* the tensor core cuts it off */
}

template <int KEPT, int TILES> struct weights { uint32_t high[KEPT][TILES][4], low[KEPT][TILES][4]; };

/* Number j of a thread's four in tile `tile` of step k of the product. */
template <weft__cell C>
__device__ static float forward_weight(const weft__recurrence &r, const who &me, int k, int tile, int j)
{
    const int slot = 2 * tile + j % 2, in = k * 8 + me.part + j / 2 * 4, H = (int)r.hidden;
    for (int gate = 0; gate < gates_of(C); gate++)
        if (slot_of(C, gate) == slot && me.unit < H && in < H)
            return r.w_hh[(gate * H + me.unit) * H + in];
    return 0;
}
template <weft__cell C, int UNITS>
__device__ static float backward_weight(const weft__recurrence &r, const who &me, int k, int j)
{
    const int out = me.warp / 2 * 16 + me.group + j % 2 * 8, H = (int)r.hidden;
    const int term = (me.warp % 2 * backward_deep(C, UNITS) + k) * 8 + me.part + j / 2 * 4, gate = term / UNITS, in = term % UNITS;
    return in < H && out < H ? r.w_hh[(gate * H + in) * H + out] : 0;
}
template <weft__cell C, int UNITS, bool BACK>
__device__ static float weight_at(const weft__recurrence &r, const who &me, int k, int tile, int j)
{
    return BACK ? backward_weight<C, UNITS>(r, me, k, j) : forward_weight<C>(r, me, k, tile, j);
}
template <weft__cell C, int UNITS, bool BACK, int DEEP, int KEPT, int TILES>
__device__ static void load_weights(const weft__recurrence &r, const who &me, weights<KEPT, TILES> &w, float4 *rest)
{
    UNROLLED for (int i = 0; i < KEPT * TILES * 4; i++)
        split(weight_at<C, UNITS, BACK>(r, me, i / 4 / TILES, i / 4 % TILES, i % 4), w.high[i / 4 / TILES][i / 4 % TILES][i % 4],
              w.low[i / 4 / TILES][i / 4 % TILES][i % 4]);
    ROLLED for (int i = KEPT * TILES; i < DEEP * TILES; i++) {
        float v[4];
        for (int j = 0; j < 4; j++)
            v[j] = weight_at<C, UNITS, BACK>(r, me, i / TILES, i % TILES, j);
        rest[(i - KEPT * TILES) * (4 * UNITS) + (int)threadIdx.x] = make_float4(v[0], v[1], v[2], v[3]);
    }
}

typedef struct halves { uint32_t high[2], low[2]; } halves;      /* of eight numbers of a column, a thread's two */
__device__ static inline halves column_of(const float *x)
{
    halves b;
    split(x[0], b.high[0], b.low[0]);
    split(x[4], b.high[1], b.low[1]);
    return b;
}
__device__ static inline void add_product(const uint32_t (&high)[4], const uint32_t (&low)[4], const halves &b, float (&small)[4],
                                          float (&sum)[4])
{
    mma_tf32(small, low, b.high);
    mma_tf32(small, high, b.low);
    mma_tf32(sum, high, b.high);
}
/* sum += weights times columns; x: the thread's first number of its column. */
template <weft__cell C, bool BACK, int DEEP, int KEPT, int TILES>
__device__ static void multiply(const weights<KEPT, TILES> &w, const float4 *rest, const float *x, float (&sum)[TILES][4])
{
    float small[TILES][4] = {};
    uint32_t high[4], low[4];
    UNROLLED for (int i = 0; i < KEPT * TILES; i++) {
        const int k = i / TILES, tile = i % TILES;
        for (int j = 0; j < 4; j++) {
            const bool is = BACK || has_weights(C, tile, j);
            high[j] = is ? w.high[k][tile][j] : 0, low[j] = is ? w.low[k][tile][j] : 0;
        }
        add_product(high, low, column_of(x + k * 8), small[tile], sum[tile]);
    }
    for (int k = KEPT; k < DEEP; k++) {
        const halves b = column_of(x + k * 8);
        for (int tile = 0; tile < TILES; tile++) {
            const float4 v = rest[((k - KEPT) * TILES + tile) * (int)blockDim.x + (int)threadIdx.x];
            split(v.x, high[0], low[0]), split(v.y, high[1], low[1]), split(v.z, high[2], low[2]), split(v.w, high[3], low[3]);
            add_product(high, low, b, small[tile], sum[tile]);
        }
    }
    for (int tile = 0; tile < TILES; tile++)
        for (int j = 0; j < 4; j++)
            sum[tile][j] += small[tile][j];
}

/* ---- forward ---- */
/* The sums of the inputs, where the product adds its own; a GRU's hidden side of n begins with its bias. */
template <weft__cell C, int TILES>
__device__ static void load_sums(const weft__recurrence &r, const who &me, const moment &at, float bias, float (&sum)[TILES][4])
{
    const int H = (int)r.hidden, inputs = C == WEFT__GRU ? 3 : slots_of(C);
    for (int q = 0; q < 2; q++) {
        const bool live = me.sequence + q < at.live && me.unit < H;
        const float *x = r.gates + (int64_t)(at.row + me.sequence + q) * slots_of(C) * H + me.unit;
        for (int slot = 0; slot < 2 * TILES; slot++)
            sum[slot / 2][slot % 2 * 2 + q] = slot >= inputs ? bias : live ? x[slot * H] : 0;
    }
}
/* The cell of one sequence; h and c are of the step before, and become this one's. */
template <weft__cell C, int TILES>
__device__ static void forward_unit(const weft__recurrence &r, const who &me, const moment &at, int q, const float (&sum)[TILES][4],
                                    float &h, float &c)
{
    const int64_t H = r.hidden, row = at.row + me.sequence + q;
    float slot[4], c_new = c;
    for (int k = 0; k < 4; k++)
        slot[k] = k < 2 * TILES ? sum[k / 2 % TILES][k % 2 * 2 + q] : 0;
    const float h_new = forward_cell(C, slot, h, c_new);
    if (me.sequence + q >= at.live || me.unit >= H)
        return;
    h = h_new, c = c_new;
    for (int k = 0; k < slots_of(C); k++)
        r.gates[row * slots_of(C) * H + k * H + me.unit] = slot[k];
    r.h[row * H + me.unit] = h;
    if (C == WEFT__LSTM)
        r.c[row * H + me.unit] = c;
}
template <weft__cell C, int UNITS>
static __global__ void __launch_bounds__(4 * UNITS, UNITS == 32) forward_steps(weft__recurrence r)
{
    constexpr int DEEP = forward_deep(UNITS), TILES = forward_tiles(C), KEPT = kept_of(UNITS, DEEP, TILES);
    DYN_SHARED(float, memory);
    float (*state)[SEQUENCES][UNITS + PAD] = (float (*)[SEQUENCES][UNITS + PAD])memory;
    float4 *rest = (float4 *)(memory + 2 * SEQUENCES * (UNITS + PAD));
    const who me = whoami();
    const int steps = steps_of(r, me.first);
    const float bias = C == WEFT__GRU && r.b_hn && me.unit < r.hidden ? r.b_hn[me.unit] : 0;
    weights<KEPT, TILES> w;
    float h[2], c[2] = {}, sum[TILES][4], ahead[TILES][4];
    load_weights<C, UNITS, false, DEEP>(r, me, w, rest);
    for (int q = 0; q < 2; q++) {
        h[q] = state[0][me.sequence + q][me.unit] = first_state(r, r.h0, me, q);
        c[q] = C == WEFT__LSTM ? first_state(r, r.c0, me, q) : 0;
    }
    moment now = moment_at(r, me.first, steps, 0, r.reverse), next = moment_at(r, me.first, steps, 1, r.reverse);
    load_sums<C>(r, me, now, bias, ahead);
    __syncthreads();
    for (int i = 0; i < steps; i++) {
        const moment after = moment_at(r, me.first, steps, i + 2, r.reverse);
        for (int k = 0; k < 4 * TILES; k++)
            sum[k / 4][k % 4] = ahead[k / 4][k % 4];
        load_sums<C>(r, me, next, bias, ahead);
        multiply<C, false, DEEP>(w, rest, &state[i % 2][me.group][me.part], sum);
        for (int q = 0; q < 2; q++) {
            forward_unit<C>(r, me, now, q, sum, h[q], c[q]);
            state[(i + 1) % 2][me.sequence + q][me.unit] = h[q];
        }
        now = next, next = after;
        __syncthreads();
    }
}

/* ---- backward ---- */
typedef struct tape { float slot[4], before, c, dh, dc; } tape;  /* what a step reads of a unit of one sequence */

template <weft__cell C>
__device__ static void load_tape(const weft__recurrence &r, const who &me, const moment &at, const moment &earlier, tape (&x)[2])
{
    const int H = (int)r.hidden;
    for (int q = 0; q < 2; q++) {
        const int s = me.sequence + q;
        const int64_t i = (int64_t)(at.row + s) * H + me.unit;
        const bool live = s < at.live && me.unit < H;
        for (int k = 0; k < 4; k++)
            x[q].slot[k] = k < slots_of(C) && live ? r.gates[(int64_t)(at.row + s) * slots_of(C) * H + k * H + me.unit] : 0;
        x[q].c = C == WEFT__LSTM && live ? r.c[i] : 0, x[q].before = 0;
        if (C >= WEFT__GRU && live && s < earlier.live)
            x[q].before = (C == WEFT__LSTM ? r.c : r.h)[(int64_t)(earlier.row + s) * H + me.unit];
        else if (C >= WEFT__GRU && live)
            x[q].before = first_state(r, C == WEFT__LSTM ? r.c0 : r.h0, me, q);
        x[q].dh = r.dy && live ? r.dy[i] : 0, x[q].dc = C == WEFT__LSTM && r.dyc && live ? r.dyc[i] : 0;
    }
}
/* The cell of one sequence: the gates' gradients, zeros where it takes no part, also into d [gates * UNITS]. */
template <weft__cell C, int UNITS>
__device__ static void backward_unit(const weft__recurrence &r, const who &me, const moment &at, int q, tape &x,
                                     float &dh, float &dc, float *d)
{
    const int H = (int)r.hidden;
    if (me.sequence + q < at.live && me.unit < H) {
        dc += x.dc;
        dh = backward_cell(C, x.slot, x.before, x.c, dh + x.dh, dc);
        for (int k = 0; k < slots_of(C); k++)
            r.gates[(int64_t)(at.row + me.sequence + q) * slots_of(C) * H + k * H + me.unit] = x.slot[k];
    }                                            /* else the slots came as zeros */
    for (int gate = 0; gate < gates_of(C); gate++)
        d[gate * UNITS + me.unit] = x.slot[slot_of(C, gate)];
}
__device__ static void add_first_gradients(const weft__recurrence &r, const who &me, const float (&dh)[2], const float (&dc)[2])
{
    for (int q = 0; q < 2; q++) {
        const int64_t s = me.first + me.sequence + q, i = s * r.hidden + me.unit;
        if (s >= r.live.device[0] || me.unit >= r.hidden)
            continue;
        if (r.dh0)
            r.dh0[i] += dh[q];
        if (r.dc0)
            r.dc0[i] += dc[q];
    }
}
template <weft__cell C, int UNITS>
static __global__ void __launch_bounds__(4 * UNITS, UNITS == 32) backward_steps(weft__recurrence r)
{
    constexpr int DEEP = backward_deep(C, UNITS), KEPT = kept_of(UNITS, DEEP, 1), WIDE = gates_of(C) * UNITS + PAD;
    DYN_SHARED(float, memory);
    float (*d)[WIDE] = (float (*)[WIDE])memory, (*part)[SEQUENCES][UNITS + PAD] = (float (*)[SEQUENCES][UNITS + PAD])d[SEQUENCES];
    float4 *rest = (float4 *)part[2];
    const who me = whoami();
    const int steps = steps_of(r, me.first);
    weights<KEPT, 1> w;
    float dh[2] = {}, dc[2] = {};
    tape x[2], ahead[2];
    load_weights<C, UNITS, true, DEEP>(r, me, w, rest);
    moment now = moment_at(r, me.first, steps, 0, !r.reverse), next = moment_at(r, me.first, steps, 1, !r.reverse);
    moment after = moment_at(r, me.first, steps, 2, !r.reverse);
    load_tape<C>(r, me, now, next, ahead);
    for (int i = 0; i < steps; i++) {
        for (int q = 0; q < 2; q++)
            x[q] = ahead[q];
        load_tape<C>(r, me, next, after, ahead);
        for (int q = 0; q < 2; q++)
            backward_unit<C, UNITS>(r, me, now, q, x[q], dh[q], dc[q], d[me.sequence + q]);
        __syncthreads();
        float sum[1][4] = {};
        multiply<C, true, DEEP>(w, rest, &d[me.group][me.warp % 2 * DEEP * 8 + me.part], sum);
        for (int j = 0; j < 4; j++)
            part[me.warp % 2][me.sequence + j % 2][me.warp / 2 * 16 + me.group + j / 2 * 8] = sum[0][j];
        __syncthreads();
        for (int q = 0; q < 2; q++)
            if (me.sequence + q < now.live)
                dh[q] += part[0][me.sequence + q][me.unit] + part[1][me.sequence + q][me.unit];
        now = next, next = after, after = moment_at(r, me.first, steps, i + 3, !r.reverse);
    }
    add_first_gradients(r, me, dh, dc);
}

/* ---- which way a layer takes ---- */
typedef struct way { void (*kernel)(weft__recurrence); size_t bytes; } way;
#define WAYS(C, UNITS) { { forward_steps<C, UNITS>, forward_bytes(C, UNITS) }, { backward_steps<C, UNITS>, backward_bytes(C, UNITS) } }
#define SIZES(C)       { WAYS(C, 32), WAYS(C, 64), WAYS(C, 128) }
static const way ways[][3][2] = { SIZES(WEFT__RNN_TANH), SIZES(WEFT__RNN_RELU), SIZES(WEFT__GRU), SIZES(WEFT__LSTM) };

/* Up to how many sequences a layer of up to so many units is faster in one kernel. Nothing has been measured yet. */
static const struct { int units; int64_t sequences; } recur_choice[] = { { 32, 0 }, { 64, 0 }, { 128, 0 } };

static bool wanted(const weft__device *d, const weft__recurrence *r, int size)
{
    const char *asked = getenv("WEFT_RECUR");    /* "persistent" or "general" */
    const int64_t most = recur_choice[size].sequences;
    if (asked && *asked)
        return !strcmp(asked, "persistent");
    return d->deterministic ? most > 0 : r->live.host[0] <= most;   /* deterministic: by the units alone */
}
static bool room_for(weft__device *d, const way *w)              /* in a block's shared memory; beyond 48 KB it must be asked for */
{
    int most = 0;
    stream_of(d);                                /* makes the GPU current: the limit is set for that one */
    if (failed(d, cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, d->index), "recur") || w->bytes > (size_t)most)
        return false;
    return w->bytes <= 48 << 10 ||
           !failed(d, cudaFuncSetAttribute(w->kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)w->bytes), "recur");
}
bool recur_persistent(weft__device *d, const weft__recurrence *r, bool back)
{
    int size = 0;
    while (size < 3 && r->hidden > recur_choice[size].units)
        size++;
    if (size == 3 || r->hidden == 0 || r->steps == 0 || r->w_hr || d->precision == WEFT_STRICT_FP32 || !wanted(d, r, size))
        return false;
    const way *w = &ways[r->cell][size][back];
    if (!room_for(d, w))
        return false;
    const int64_t blocks = (r->live.host[0] + SEQUENCES - 1) / SEQUENCES;
    LAUNCH(d, w->kernel, dim3((unsigned)blocks), (unsigned)(4 * recur_choice[size].units), w->bytes, *r);
    return true;
}
#endif
