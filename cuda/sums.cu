/* sums.cu - sums over axes (the transpose of broadcasting), and sums, maxima, top k, running sums and flips
 * within segments.
 *
 * A long sum is cut into chunks, and their sums are stored in scratch memory. The last block to finish adds
 * them, always in the same order. The number of chunks depends only on sizes. */
#include "cuda/groups.h"

/* ---- sums over some axes of a nest ---- */
typedef struct sums {
    /* axes of the result and axes to sum; step[0]: in x, step[1]: in y */
    weft__grid kept, summed;
    int64_t outputs, terms, chunk;
    /* true: the last axis is summed and a group runs along it; false: threads are columns */
    bool along;
} sums;

/* Sums chunk blockIdx.y of each output. A single chunk goes into y. Otherwise chunk sums go to partial
 * [chunks, outputs], and the last block adds them up. */
__global__ static void sum_each(sums s, const real *x, real *partial, unsigned *counters, real *y, bool add)
{
    group g = s.along ? group_along() : group_below();
    int64_t o = s.along ? group_number() : first_index(), from = blockIdx.y * s.chunk;
    int64_t end = o >= s.outputs ? from : from + s.chunk < s.terms ? from + s.chunk : s.terms;
    const real *v = x + place_in(s.kept, s.kept.rank, 0, o < s.outputs ? o : 0);
    real all = sum_of(g, from, end, [&](int64_t i) { return v[place_in(s.summed, s.summed.rank, 0, i)]; });
    const bool writes = o < s.outputs && g.lane == 0;
    if (gridDim.y > 1) {
        if (writes)
            partial[blockIdx.y * s.outputs + o] = all;
        if (!is_last(counters + blockIdx.x, gridDim.y))
            return;
        all = sum_of(g, 0, o < s.outputs ? gridDim.y : 0,
                     [&](int64_t i) { return __ldcg(partial + i * s.outputs + o); });
    }
    if (writes)
        put(y + place_in(s.kept, s.kept.rank, 1, o), all, add);
}
static shape shape_of(const sums *s)
{
    if (s->along)
        return groups_along(s->outputs, s->terms <= 1024 ? power_for(s->terms, 32) : 256);
    int tx = power_for(s->outputs, 32), ty = power_for(s->terms, THREADS / tx);
    return { dim3((unsigned)parts(s->outputs, tx)), dim3((unsigned)tx, (unsigned)ty) };
}
/* A thread sums at least eight terms. Several chunks use at most COUNTERS blocks, enough for a large GPU. */
static void sum_nest(weft__device *d, sums s, const real *x, real *y, bool add)
{
    shape one = shape_of(&s);
    int64_t lanes = s.along ? one.threads.x : one.threads.y, blocks = one.grid.x;
    s.chunk = most(parts(s.terms, most(1, COUNTERS / most(1, blocks))), 8 * lanes);
    one.grid.y = (unsigned)most(1, parts(s.terms, s.chunk));
    real *partial = NULL;
    unsigned *counters = one.grid.y > 1 ? counters_of(d) : NULL;
    if (one.grid.y > 1)
        partial = (real *)scratch(d, (size_t)(one.grid.y * s.outputs) * sizeof *partial);
    if (one.grid.y == 1 || (partial && counters))
        LAUNCH(d, sum_each, one.grid, one.threads, 0, s, x, partial, counters, y, add);
}
static void sum_over(weft__device *d, const weft__grid *grid, const real *x, real *y, bool add)
{
    weft__grid g = collapsed(grid, 1);
    sums s = {};
    int64_t step = elements_of(&g);
    s.outputs = s.terms = 1;
    s.along = g.rank && g.step[0][g.rank - 1] == 0;
    for (int i = 0; i < g.rank; i++) {
        weft__grid *to = g.step[0][i] ? &s.kept : &s.summed;
        step = g.size[i] ? step / g.size[i] : 0;
        to->size[to->rank] = g.size[i];
        to->step[0][to->rank] = step;
        to->step[1][to->rank++] = g.step[0][i];
        *(g.step[0][i] ? &s.outputs : &s.terms) *= g.size[i];
    }
    sum_nest(d, s, x, y, add);
}
void K(sum)(weft__device *d, const weft__grid *g, const real *x, real *y, bool add)
{
    sum_over(d, g, x, y, add);
}

/* ---- sums and maxima of segments ---- */
__global__ static void segment_sum_each(weft__segments s, const real *x, real *y, bool add)
{
    seat t = seat_of(s);
    const real all = sum_of(t.g, 0, t.rows, [&](int64_t r) { return x[t.at + r * s.inner]; });
    if (t.is && t.g.lane == 0)
        put(y + t.run * s.inner + t.column, all, add);
}
void K(segment_sum)(weft__device *d, const weft__segments *s, const real *x, real *y, bool add)
{
    weft__grid equal = { 3, { s->count, s->length, s->inner }, { { s->inner, 0, 1 } } };
    shape one = groups_of(s);
    if (s->offset)
        LAUNCH(d, segment_sum_each, one.grid, one.threads, 0, *s, x, y, add);
    else
        sum_over(d, &equal, x, y, add);
}
__global__ static void segment_max_each(weft__segments s, const real *x, real *y, int32_t *at)
{
    seat t = seat_of(s);
    int64_t place = t.run * s.inner + t.column, row = INT32_MAX;
    real best = -(real)INFINITY;
    EACH_LANE(r, t.g, t.rows)
        best = merged<LARGEST>(x[t.at + r * s.inner], best);
    best = together<LARGEST>(t.g, best);
    EACH_LANE(r, t.g, t.rows) {
        real v = x[t.at + r * s.inner];
        if (row == INT32_MAX && (v == best || (v != v && best != best)))
            row = r;
    }
    row = together<LOWEST>(t.g, (int)row);
    if (t.is && t.g.lane == 0) {
        at[place] = t.rows ? (int32_t)row : -1;
        y[place] = t.rows ? x[t.at + row * s.inner] : 0;
    }
}
void K(segment_max)(weft__device *d, const weft__segments *s, const real *x, real *y, int32_t *at)
{
    LAUNCH_SHAPE(d, segment_max_each, groups_of(s), *s, x, y, at);
}

/* Returns true if row r with value v comes after row last_row with value `last` in descending order. */
__device__ static inline bool is_after(real v, int64_t r, real last, int64_t last_row)
{
    if (v == last || (v != v && last != last))
        return r > last_row;
    return v < last || (last != last && v == v);
}
/* Each of the k results is the first maximum among the elements that come after the previous result. */
__global__ static void segment_topk_each(weft__segments s, int64_t k, const real *x, int32_t *at,
                                         int32_t *place)
{
    seat t = seat_of(s);
    real last = 0;
    int64_t last_row = -1, to = t.run * k * s.inner + t.column;
    for (int64_t i = 0; i < k; i++, to += s.inner) {
        real best = -(real)INFINITY;
        int64_t row = INT32_MAX;
        EACH_LANE(r, t.g, t.rows) {
            real v = x[t.at + r * s.inner];
            if (last_row < 0 || is_after(v, r, last, last_row))
                best = merged<LARGEST>(v, best);
        }
        best = together<LARGEST>(t.g, best);
        EACH_LANE(r, t.g, t.rows) {
            real v = x[t.at + r * s.inner];
            if (row == INT32_MAX && (v == best || (v != v && best != best)) &&
                (last_row < 0 || is_after(v, r, last, last_row)))
                row = r;
        }
        row = together<LOWEST>(t.g, (int)row);
        last = best;
        last_row = row;
        if (t.is && t.g.lane == 0) {
            at[to] = row < INT32_MAX ? (int32_t)row : -1;
            place[to] = row < INT32_MAX ? (int32_t)(t.at + row * s.inner) : -1;
        }
    }
}
void K(segment_topk)(weft__device *d, const weft__segments *s, int64_t k, const real *x, int32_t *at,
                     int32_t *place)
{
    LAUNCH_SHAPE(d, segment_topk_each, groups_of(s), *s, k, x, at, place);
}

/* ---- one row of each segment; x has one row per segment ---- */
__global__ static void segment_place_each(weft__segments s, const real *x, const int32_t *at, real *y,
                                          faults f)
{
    for (int64_t i = first_index(); i < s.count * s.inner; i += index_step()) {
        int64_t run = i / s.inner, r = checked(f, run, at[i], run_length(&s, run));
        if (r >= 0)
            y[(first_row(&s, run) + r) * s.inner + i % s.inner] += x[i];
    }
}
void K(segment_place)(weft__device *d, const weft__segments *s, const real *x, const int32_t *at, real *y)
{
    LAUNCH(d, segment_place_each, blocks_for(s->count * s->inner), THREADS, 0, *s, x, at, y, faults_of(d));
}
__global__ static void segment_pick_each(weft__segments s, const real *x, const int32_t *at, real *y,
                                         bool add, faults f)
{
    for (int64_t i = first_index(); i < s.count * s.inner; i += index_step()) {
        int64_t run = i / s.inner, r = checked(f, run, at[i], run_length(&s, run));
        put(y + i, r < 0 ? 0 : x[(first_row(&s, run) + r) * s.inner + i % s.inner], add);
    }
}
void K(segment_pick)(weft__device *d, const weft__segments *s, const real *x, const int32_t *at, real *y,
                     bool add)
{
    LAUNCH(d, segment_pick_each, blocks_for(s->count * s->inner), THREADS, 0, *s, x, at, y, add,
           faults_of(d));
}

/* ---- all rows of each segment ---- */
/* Threads are (columns, rows, segments), blocks (segments, columns, rows). */
static shape runs_shape(const weft__segments *s)
{
    int tx = power_for(s->inner, 32), ty = power_for(s->offset ? (int64_t)THREADS : s->length, THREADS / tx);
    int tz = (int)least(64, THREADS / (tx * ty));
    int64_t runs = least(parts(s->count, tz), MOST_BLOCKS), columns = least(parts(s->inner, 4 * tx), 64);
    int64_t slices = s->offset ? 8 : parts(s->length, 4 * ty),
            room = most(1, MOST_BLOCKS / most(1, runs * columns));
    return { dim3((unsigned)runs, (unsigned)columns, (unsigned)least(slices, room)),
             dim3((unsigned)tx, (unsigned)ty, (unsigned)tz) };
}
/* Copies x to each row of y: without flip the segment's row, with flip the row as far from the other end. */
__global__ static void runs_each(weft__segments s, bool flip, const real *x, real *y, bool add)
{
    int64_t w = s.inner, columns = (int64_t)gridDim.y * blockDim.x;
    for (int64_t run = (int64_t)blockIdx.x * blockDim.z + threadIdx.z; run < s.count;
         run += (int64_t)gridDim.x * blockDim.z) {
        int64_t first = first_row(&s, run), n = run_length(&s, run);
        for (int64_t r = blockIdx.z * blockDim.y + threadIdx.y; r < n; r += gridDim.z * blockDim.y) {
            const real *from = x + (flip ? first + n - 1 - r : run) * w;
            real *to = y + (first + r) * w;
            MAP(blockIdx.y * blockDim.x + threadIdx.x, columns, w, j, to, onto(&to[j], add, from[j]))
        }
    }
}
void K(segment_spread)(weft__device *d, const weft__segments *s, const real *x, real *y, bool add)
{
    LAUNCH_SHAPE(d, runs_each, runs_shape(s), *s, false, x, y, add);
}
void K(flip)(weft__device *d, const weft__segments *s, const real *x, real *y, bool add)
{
    LAUNCH_SHAPE(d, runs_each, runs_shape(s), *s, true, x, y, add);
}

/* ---- running sums: each lane of a group processes one row at a time ---- */
/* Returns the sum of v over this lane and all lanes before it. *all: the sum over all lanes. All threads of
 * the block must call it. */
__device__ static real running(group g, real v, real *all)
{
    SHARED(part, real[1024]);
    int me = threadIdx.y * blockDim.x + threadIdx.x;
    part[me] = v;
    for (int back = 1; back < g.lanes; back *= 2) {
        __syncthreads();
        real before = g.lane >= back ? part[me - back * g.step] : 0;
        __syncthreads();
        part[me] = g.lane >= back ? before + part[me] : part[me];
    }
    __syncthreads();
    v = part[me];
    *all = part[me + (g.lanes - 1 - g.lane) * g.step];
    __syncthreads();
    return v;
}
/* All threads of a block share one segment length, so they do the same number of iterations. */
__global__ static void cumsum_each(weft__segments s, bool reverse, const real *x, real *y, bool add)
{
    seat t = seat_of(s);
    int64_t rows = run_length(&s, s.inner == 1 ? blockIdx.x : t.run);
    exact_sum before = {};
    real all;
    for (int64_t from = 0; from < rows; from += t.g.lanes) {
        int64_t r = from + t.g.lane, at = t.at + (reverse ? rows - 1 - r : r) * s.inner;
        bool is = t.is && r < rows;
        real v = before.sum + running(t.g, is ? x[at] : 0, &all);
        if (is)
            put(y + at, v, add);
        add_exactly(before, all);
    }
}
void K(cumsum)(weft__device *d, const weft__segments *s, bool reverse, const real *x, real *y, bool add)
{
    shape one = groups_of(s);
    if (s->inner == 1)
        one = { dim3((unsigned)s->count),
                dim3((unsigned)(s->offset ? RAGGED_LANES : power_for(s->length, THREADS))) };
    LAUNCH(d, cumsum_each, one.grid, one.threads, 0, *s, reverse, x, y, add);
}
