/* recur.cu - the general kernel: recurrent layers of any size. Each step is a product with the weights
 * (step_product.cu) and one kernel for the pointwise work. The host's loop over steps never waits.
 *
 * The rows of a step are its live sequences, the longest first. Those with a previous step come first, and
 * their previous states are stored consecutively, so one product serves them all. The others begin here,
 * from h0 or zeros. Backward, carry_h and carry_c accumulate the gradients of previous states, one row per
 * sequence. After a sequence's first step its row stays, so dh0 and dc0 add all rows at the end.
 *
 * With reset, a column may hold several sequences. If one begins at a step, the entering states are
 * gathered into rows first, and backward its carries are added to dh0 and dc0 after the step. */
#include "cuda/blas.h"
#include "cuda/groups.h"
#include "cuda/recur.h"
#include "core/shared/recur.h"

/* ---- grids: x covers the units of a sequence, y the sequences or steps ---- */
static unsigned unit_threads(int64_t units)
{
    return units < THREADS ? (unsigned)((units + 31) / 32 * 32) : (unsigned)THREADS;
}
static dim3 unit_grid(int64_t units, int64_t rows)
{
    const int64_t highest = 65535, across = (units + THREADS - 1) / THREADS;
    return dim3((unsigned)(across < highest ? across : highest), (unsigned)(rows < highest ? rows : highest));
}

/* ---- forward ---- */
/* Returns element j of the state that enters this step in column s. */
__device__ static inline real state_before(const weft__recurrence &r, const real *rows, const real *first,
                                           int64_t width, const step &now, int64_t s, int64_t j)
{
    const int64_t begins = begins_at(r, now, s);
    return begins == WEFT__ON   ? rows[(now.previous + s) * width + j] :
           first && begins >= 0 ? first[begins * width + j] :
                                  0;
}
/* Returns the last of these states: c if the cell has one, otherwise h. */
template <weft__cell C>
__device__ static inline real last_before(const weft__recurrence &r, const step &now, int64_t s, int64_t j)
{
    return state_before(r, has_c(C) ? r.c : r.h, has_c(C) ? r.c0 : r.h0, r.hidden, now, s, j);
}
template <weft__cell C>
__device__ static inline void load_slots(const real *from, int64_t hidden, real (&slot)[4])
{
    for (int k = 0; k < 4; k++)
        slot[k] = k < weft__slots(C) ? from[k * hidden] : 0;
}
template <weft__cell C>
__device__ static inline void store_slots(real *to, int64_t hidden, const real (&slot)[4])
{
    for (int k = 0; k < 4; k++)
        if (k < weft__slots(C))
            to[k * hidden] = slot[k];
}
template <weft__cell C> static __global__ void forward_units_of(weft__recurrence r, step now)
{
    const int64_t H = r.hidden;
    const int alone = weft__slot_of_h_alone(C);
    for (int64_t s = blockIdx.y; s < now.live; s += gridDim.y)
        for (int64_t j = first_index(); j < H; j += index_step()) {
            const int64_t row = now.row + s;
            real slot[4], *gates = r.gates + row * weft__slots(C) * H + j, c = 0;
            load_slots<C>(gates, H, slot);
            for (int k = 0; k < 4; k++)
                if (k == alone)                  /* without a previous h the product has not written it */
                    slot[k] = (s < now.continuing || r.h0 ? slot[k] : 0) + (r.b_h_alone ? r.b_h_alone[j] : 0);
            const real h = forward_cell<C>(slot, last_before<C>(r, now, s, j), c);
            store_slots<C>(gates, H, slot);
            if (has_c(C))
                r.c[row * H + j] = c;
            (r.w_hr ? r.raw : r.h)[row * H + j] = h;
        }
}
#define CELL(name, ...) forward_units_of<WEFT__##name>,
static void (*const forward_kernels[])(weft__recurrence, step) = {
#include "core/cells.def"
};

/* Scratch memory of a layer: rows for states or gradients (NULL if not needed), and the parts of products. */
typedef struct workspace { real *rows, *parts; } workspace;
static workspace workspace_of(weft__device *d, const weft__recurrence *r, int64_t width, bool back)
{
    const int64_t live = r->steps ? r->live.host[0] : 0, rows = (live * width + 63) / 64 * 64;
    int64_t parts = r->w_hr ? back ? reals_of_parts(live, r->width, r->hidden) :
                                     reals_of_parts(live, r->hidden, r->width) : 0;
    for (int b = 0, n; b < weft__gates(r->cell); b += n) {
        n = weft__blocks_from(r->cell, true, b);
        parts = most(parts, back ? reals_of_parts(live, n * r->hidden, r->width) :
                                   reals_of_parts(live, r->width, n * r->hidden));
    }
    real *all = rows + parts ? (real *)scratch(d, (size_t)(rows + parts) * sizeof(real)) : NULL;
    return workspace{ rows ? all : NULL, parts ? all + rows : NULL };
}
/* Adds the product of the previous states and the weights to the slots of some rows. */
static void add_products(weft__device *d, const weft__recurrence *r, int64_t row, int64_t rows, const real *h,
                         real *parts)
{
    const int64_t H = r->hidden, W = r->width, ld = weft__slots(r->cell) * H;
    for (int b = 0, n; b < weft__gates(r->cell); b += n) {
        const int slot = weft__slot_of(r->cell, true, b);
        n = weft__blocks_from(r->cell, true, b);
        step_product(d, rows, h, W, r->w_hh + b * H * W, true, n * H, W, r->gates + row * ld + slot * H, ld,
                     slot != weft__slot_of_h_alone(r->cell), parts);
    }
}
/* Returns whether a sequence begins at this step in a column with reset. */
static bool any_begins(const weft__recurrence *r, const step *now)
{
    for (int64_t s = 0; r->reset.host && s < now->live; s++)
        if (r->reset.host[now->row + s] != WEFT__ON)
            return true;
    return false;
}
static __global__ void gather_entering(weft__recurrence r, step now, real *entering)
{
    const int64_t W = r.width;
    for (int64_t s = blockIdx.y; s < now.live; s += gridDim.y)
        for (int64_t j = first_index(); j < W; j += index_step())
            entering[s * W + j] = state_before(r, r.h, r.h0, W, now, s, j);
}
/* work.rows [live, W]: the entering states, if a sequence begins in a column with reset. */
static void recur_step(weft__device *d, const weft__recurrence *r, const step *now, const workspace &work)
{
    const int64_t H = r->hidden, W = r->width;
    real *const entering = any_begins(r, now) ? work.rows : NULL;
    if (entering) {
        LAUNCH(d, gather_entering, unit_grid(W, now->live), unit_threads(W), 0, *r, *now, entering);
        add_products(d, r, now->row, now->live, entering, work.parts);
    } else {
        add_products(d, r, now->row, now->continuing, r->h + now->previous * W, work.parts);
        if (r->h0)
            add_products(d, r, now->row + now->continuing, now->live - now->continuing,
                         r->h0 + now->continuing * W, work.parts);
    }
    const auto forward_units = forward_kernels[r->cell]; /* the emulation reads this name */
    LAUNCH(d, forward_units, unit_grid(H, now->live), unit_threads(H), 0, *r, *now);
    if (r->w_hr)
        step_product(d, now->live, r->raw + now->row * H, H, r->w_hr, true, W, H, r->h + now->row * W, W,
                     false, work.parts);
}
void recur_general(weft__device *d, const weft__recurrence *r)
{
    const workspace work = workspace_of(d, r, r->reset.host ? r->width : 0, false);
    for (int64_t i = 0; i < r->to - r->from && !d->failure[0]; i++) {
        step now = step_at(*r, r->live.host, r->start.host, r->reverse ? r->to - 1 - i : r->from + i);
        recur_step(d, r, &now, work);
    }
}

/* ---- backward ---- */
/* incoming [live, H]: with a projection, the gradient of h before it. NULL: the gradient of h is carry_h +
 * dy, and carry_h becomes the gradient of the previous h. */
template <weft__cell C>
static __global__ void backward_units_of(weft__recurrence r, step now, const real *incoming)
{
    const int64_t H = r.hidden;
    for (int64_t s = blockIdx.y; s < now.live; s += gridDim.y)
        for (int64_t j = first_index(); j < H; j += index_step()) {
            const int64_t i = s * H + j, k = (now.row + s) * H + j;
            real slot[4], *gates = r.gates + (now.row + s) * weft__slots(C) * H + j;
            real dh = incoming ? incoming[i] : r.carry_h[i] + (r.dy ? r.dy[k] : 0);
            real dc = has_c(C) ? r.carry_c[i] + (r.dyc ? r.dyc[k] : 0) : 0;
            load_slots<C>(gates, H, slot);
            const real dh_before =
                backward_cell<C>(slot, last_before<C>(r, now, s, j), has_c(C) ? r.c[k] : 0, dh, dc);
            store_slots<C>(gates, H, slot);
            if (has_c(C))
                r.carry_c[i] = dc;
            if (!incoming)
                r.carry_h[i] = dh_before;
        }
}
#define CELL(name, ...) backward_units_of<WEFT__##name>,
static void (*const backward_kernels[])(weft__recurrence, step, const real *) = {
#include "core/cells.def"
};
/* With a projection: sums the gradients of h, n numbers. */
static __global__ void sum_incoming(int64_t n, const real *carry, const real *dy, real *dh)
{
    for (int64_t i = first_index(); i < n; i += index_step())
        dh[i] = carry[i] + (dy ? dy[i] : 0);
}
/* Adds the gradient of a first state, and sets the carry to 0 for the sequence before it in the column. */
__device__ static inline void end_sequence(int64_t begins, int64_t width, int64_t j, real *carry, real *first)
{
    if (begins >= 0 && first)
        first[begins * width + j] += *carry;
    *carry = 0;
}
static __global__ void end_sequences(weft__recurrence r, step now)
{
    const int64_t H = r.hidden, W = r.width;
    for (int64_t s = blockIdx.y; s < now.live; s += gridDim.y) {
        const int64_t begins = begins_at(r, now, s);
        if (begins == WEFT__ON)
            continue;
        for (int64_t j = first_index(); j < W; j += index_step())
            end_sequence(begins, W, j, r.carry_h + s * W + j, r.dh0);
        for (int64_t j = first_index(); r.carry_c && j < H; j += index_step())
            end_sequence(begins, H, j, r.carry_c + s * H + j, r.dc0);
    }
}
static void recur_step_back(weft__device *d, const weft__recurrence *r, const step *now,
                            const workspace &work)
{
    real *const incoming = work.rows;
    const int64_t H = r->hidden, W = r->width, ld = weft__slots(r->cell) * H;
    const int64_t needed = r->dh0 || r->reset.host ? now->live : now->continuing;
    const real *gates = r->gates + now->row * ld;
    if (r->w_hr) {
        LAUNCH(d, sum_incoming, blocks_for(now->live * W), THREADS, 0, now->live * W, r->carry_h,
               r->dy ? r->dy + now->row * W : NULL, r->dh + now->row * W);
        step_product(d, now->live, r->dh + now->row * W, W, r->w_hr, false, H, W, incoming, H, false,
                     work.parts);
    }
    const auto backward_units = backward_kernels[r->cell]; /* the emulation reads this name */
    LAUNCH(d, backward_units, unit_grid(H, now->live), unit_threads(H), 0, *r, *now, incoming);
    /* With a projection carry_h has been summed into dh and is overwritten. */
    for (int b = 0, n; b < weft__gates(r->cell); b += n) {
        n = weft__blocks_from(r->cell, true, b);
        step_product(d, needed, gates + weft__slot_of(r->cell, true, b) * H, ld, r->w_hh + b * H * W, false,
                     W, n * H, r->carry_h, W, b || !r->w_hr, work.parts);
    }
    if (any_begins(r, now))
        LAUNCH(d, end_sequences, unit_grid(W, now->live), unit_threads(W), 0, *r, *now);
}
void recur_general_back(weft__device *d, const weft__recurrence *r)
{
    const int64_t live = r->steps ? r->live.host[0] : 0;
    const workspace work = workspace_of(d, r, r->w_hr ? r->hidden : 0, true);
    /* Is this the last of the calls that cover all steps? */
    const bool last = r->reverse ? r->to == r->steps : r->from == 0;
    for (int64_t i = 0; i < r->to - r->from && !d->failure[0]; i++) {
        step now = step_at(*r, r->live.host, r->start.host, r->reverse ? r->from + i : r->to - 1 - i);
        recur_step_back(d, r, &now, work);
    }
    if (last && r->dh0 && !r->reset.host)
        K(scale)(d, live * r->width, 1, r->carry_h, r->dh0, true);
    if (last && r->dc0 && !r->reset.host)
        K(scale)(d, live * r->hidden, 1, r->carry_c, r->dc0, true);
}

/* Writes elements first, first + by, .. of the states that enter step t to h_before, in the order of rows. */
__device__ static inline void copy_entering(const weft__recurrence &r, int64_t t, int64_t first, int64_t by)
{
    const int64_t W = r.width;
    const step now = step_at(r, r.live.device, r.start.device, t);
    for (int64_t i = first; i < now.live * W; i += by)
        r.h_before[now.row * W + i] = r.reset.device ? state_before(r, r.h, r.h0, W, now, i / W, i % W)
                                    : i < now.continuing * W ? r.h[now.previous * W + i] : r.h0 ? r.h0[i] : 0;
}
static __global__ void copy_before(weft__recurrence r)
{
    for (int64_t t = r.from + blockIdx.y; t < r.to; t += gridDim.y)
        copy_entering(r, t, first_index(), index_step());
}
static void recur_one(weft__device *d, const weft__recurrence *r, bool back)
{
    timing now = { -1 };
    if (!recur_persistent(d, directions{ 1, { *r } }, back, &now)) {
        d->recurrent[GENERAL]++;
        (back ? recur_general_back : recur_general)(d, r);
    }
    recur_end_timing(d, &now);
}
void K(recur)(weft__device *d, const weft__recurrence *r) { recur_one(d, r, false); }
void K(recur_back)(weft__device *d, const weft__recurrence *r)
{
    recur_one(d, r, true);
    if (r->h_before && r->to > r->from)
        LAUNCH(d, copy_before, unit_grid(r->live.host[r->from] * r->width, r->to - r->from), THREADS, 0, *r);
}

/* ---- backward in one launch: gradients of the biases, and the states that enter the steps ---- */
/* Sums of the columns of x [rows, columns], by tiles of columns and chunks of rows, for bias gradients. */
typedef struct bias_run { int64_t slot, n; weft__into into; } bias_run;
typedef struct slot_sums {
    int64_t rows, columns, chunk; unsigned tiles, chunks; const real *x; real *partial; unsigned *counters;
    int runs; bias_run run[8];                   /* like layer_blocks */
} slot_sums;
__device__ static void sum_slots(const slot_sums &s, unsigned tile, unsigned chunk)
{
    const group g = group_below();
    const int64_t j = (int64_t)tile * blockDim.x + threadIdx.x, from = chunk * s.chunk;
    const int64_t end = j >= s.columns ? from : from + s.chunk < s.rows ? from + s.chunk : s.rows;
    real total = sum_of(g, from, end, [&](int64_t r) { return s.x[r * s.columns + j]; });
    const bool writes = j < s.columns && g.lane == 0;
    if (s.chunks > 1) {
        if (writes)
            s.partial[chunk * s.columns + j] = total;
        if (!is_last(s.counters + tile, s.chunks))
            return;
        total = sum_of(g, 0, j < s.columns ? s.chunks : 0,
                       [&](int64_t c) { return __ldcg(s.partial + c * s.columns + j); });
    }
    for (int i = 0; writes && i < s.runs; i++) {
        const bias_run &to = s.run[i];
        if (j >= to.slot && j < to.slot + to.n)
            put(to.into.to + (j - to.slot), total, to.into.add);
    }
}
/* The first blocks compute the sums. `step_blocks` of the others work on each step. */
static __global__ void sums_and_states(slot_sums s, weft__recurrence r, unsigned step_blocks)
{
    const unsigned sums = s.tiles * s.chunks, other = blockIdx.x - sums;
    if (blockIdx.x < sums)
        sum_slots(s, blockIdx.x % s.tiles, blockIdx.x / s.tiles);
    else
        copy_entering(r, r.from + other / step_blocks,
                      (int64_t)(other % step_blocks) * THREADS + threadIdx.y * blockDim.x + threadIdx.x,
                      (int64_t)step_blocks * THREADS);
}
static bool plan_sums(weft__device *d, slot_sums *s, unsigned column_threads)
{
    s->chunk = most(parts(s->rows, most(1, COUNTERS / s->tiles)), 8 * (int64_t)column_threads);
    s->chunks = (unsigned)most(1, parts(s->rows, s->chunk));
    if (s->chunks == 1)
        return true;
    s->partial = (real *)scratch(d, (size_t)(s->chunks * s->columns) * sizeof(real));
    s->counters = counters_of(d);
    return s->partial && s->counters;
}
static void layer_sums(const layer_work *w, int64_t n, const real *gates)
{
    const weft__recur_layer *l = w->l;
    const weft__recurrence *r = &l->r;
    const weft__into into[] = { l->db_ih, l->db_hh };
    const bool tied = into[0].to == into[1].to;  /* then they are added one after the other */
    const unsigned tx = (unsigned)power_for(layer_slots(l), 32);
    slot_sums s = {};
    s.rows = n;
    s.columns = layer_slots(l);
    s.x = gates;
    s.tiles = (unsigned)parts(s.columns, tx);
    for (int of_h = 0; of_h < 2 && !tied; of_h++)
        if (into[of_h].to)
            EACH_RUN_OF(run, l, of_h)
                s.run[s.runs++] = { run.slot, run.n, { into[of_h].to + run.block, into[of_h].add } };
    if (tied)
        layer_biases_back(w, n, gates);
    if (s.runs == 0)
        s.tiles = 0;
    else if (!plan_sums(w->d, &s, THREADS / tx))
        return;
    const unsigned step_blocks = (unsigned)most(1, parts(r->live.host[r->from] * r->width, 8 * THREADS));
    const unsigned states = r->h_before ? (unsigned)(r->to - r->from) * step_blocks : 0;
    LAUNCH(w->d, sums_and_states, dim3(s.tiles * s.chunks + states), dim3(tx, THREADS / tx), 0, s, *r,
           step_blocks);
}

/* ---- embedded input: gathers a table's projected rows and adds the biases of slots with input ---- */
typedef struct slot_biases { int runs; struct { int64_t slot, n; const real *b; } run[8]; } slot_biases;
static __global__ void take_rows(int64_t rows, int64_t columns, const real *of_rows, const int32_t *id,
                                 slot_biases s, real *gates)
{
    EACH_ROW(r, rows)
        for (int64_t j = first_column(); j < columns; j += column_step()) {
            real bias = 0;
            for (int i = 0; i < s.runs; i++)
                if (j >= s.run[i].slot && j < s.run[i].slot + s.run[i].n)
                    bias += s.run[i].b[j - s.run[i].slot];
            gates[r * columns + j] = of_rows[id[r] * columns + j] + bias;
        }
}
static void layer_gather_rows(const layer_work *w)
{
    const weft__recur_layer *l = w->l;
    const int64_t N = layer_tokens(l), first = layer_first(l), S = layer_slots(l);
    const int64_t alone = weft__slot_of_h_alone(l->r.cell) * l->r.hidden;
    const real *of[] = { l->b_ih, l->b_hh };
    const shape plane = plane_of(N, S);
    slot_biases s = {};
    for (int of_h = 0; of_h < 2 && l->b_ih; of_h++)
        EACH_RUN_OF(run, l, of_h)
            if (!of_h || run.slot != alone)
                s.run[s.runs++] = { run.slot, run.n, of[of_h] + run.block };
    LAUNCH(w->d, take_rows, plane.grid, plane.threads, 0, N, S, l->of_rows, l->ids + first, s,
           l->r.gates + first * S);
}

/* ---- the whole layer ---- */
static void recur_both(weft__device *d, const weft__recurrence *both, bool back)
{
    timing now = { -1 };
    if (recur_persistent(d, directions{ 2, { both[0], both[1] } }, back, &now))
        return;
    for (int i = 0; i < 2; i++)
        (back ? K(recur_back) : K(recur))(d, &both[i]);
}
static const layer_kernels cuda_kernels = { K(gemm),       K(blocks),  K(binary),         K(sum),
                                            K(gather),     K(scatter), K(recur),          K(recur_back),
                                            K(gemm_packs), layer_sums, layer_gather_rows, recur_both };
void K(recur_layer)(weft__device *d, const weft__recur_layer *l)      { layer_forward(d, &cuda_kernels, l); }
void K(recur_layer_back)(weft__device *d, const weft__recur_layer *l) { layer_backward(d, &cuda_kernels, l); }
size_t K(recur_packs)(weft__device *, const weft__recur_layer *)      { return 0; }
void K(recur_pack)(weft__device *, const weft__recur_layer *, void *) {}
