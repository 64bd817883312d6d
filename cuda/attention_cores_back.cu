/* attention_cores_back.cu - the backward pass of attention_cores.cu. A pair of tiles takes five products: S =
 * q k^T, dw = dy v^T, dv += w^T dy, dk += ds^T q and dq += ds k. attention.cu takes ten.
 *
 * A block processes one head of a sequence and one run of its keys, tile by tile. For each tile of keys it
 * visits the queries and keeps the gradients of keys and values in registers. Rows of a score tile are keys,
 * so the weights are the left operand of dv and dk in place. Only ds passes through shared memory, for dq.
 *
 * A run is four tiles of keys. If a sequence has one run, its block adds to dq in the order of keys.
 * Otherwise each run writes its part of dq to scratch memory, and another kernel adds the parts in order. One
 * rule divides short and long sequences, and the order of sums depends only on the number of keys. */
#ifndef WEFT_DOUBLE
#include "cuda/attention_cores.h"

#define CORED __launch_bounds__(CORES, 2)

enum {
    QUERIES = 8 * FOLDED,                        /* per step */
    DOWN = FOLDED,                               /* a warp's result fragments across the queries */
    RUN = 4 * TILE, MOST_RUNS = 8                /* keys of a run; most runs, then runs get longer */
};
/* shared memory of a block */
typedef struct __align__(16) smem {
    line k[TILE], v[TILE], q[QUERIES], dy[QUERIES];
    float ds[TILE][QUERIES + 4];                 /* also weights, see add_queries */
    uint64_t dropped[QUERIES];
    float lse[QUERIES], all[QUERIES];
    int seen[QUERIES];                           /* number of the tile's keys that the query sees */
    unsigned nonfinite;                          /* see mark_if */
    tile t; int end;                             /* end of the run; here because registers hold sums */
} smem;
/* Returns the keys of a run. MOST_RUNS limits scratch memory, which may grow no faster than the sequence. */
__host__ __device__ static inline int64_t run_of(int64_t keys)
{
    return keys <= MOST_RUNS * RUN ? (int64_t)RUN : (keys + MOST_RUNS * TILE - 1) / (MOST_RUNS * TILE) * TILE;
}
/* Outputs. runs: [runs, queries, heads, dk]; values: [keys, heads, dv] if heads share values. */
typedef struct targets { const float *all; float *runs, *values; } targets;

__device__ static inline rows dy_of(const weft__attention &a, const tile &t)
{
    return a.mean ? rows{ a.dy + t.q * a.dv, a.dv, t.queries, a.dv, 1 / (float)a.heads } : gradients_of(a, t);
}

/* ---- one step: QUERIES queries from `query` on, TILE keys from `key` on ---- */
typedef struct step { int query, key; unsigned mark; bool loaded, nonfinite; } step;
/* Returns true if a head is wider than a tile. */
__device__ static inline bool is_wide(const weft__attention &a) { return a.dk > TILE || a.dv > TILE; }

__device__ static inline void load_query_data(smem &m, const weft__attention &a, const tile &t,
                                              const float *all, const step &s)
{
    const int i = (int)threadIdx.x;
    if (i >= QUERIES)
        return;
    const int64_t q = s.query + i;
    m.seen[i] = clamped(seen_by(a, t, q) - s.key, TILE);
    m.lse[i] = q < t.queries ? a.lse[of_query(a, t, q)] : 0;
    m.all[i] = q < t.queries && (a.dq || a.dk_) ? all[of_query(a, t, q)] : 0;
}
/* Computes score = k q^T and dw = v dy^T. For wide heads, shared memory ends with the block's own columns. */
template <bool EXACT>
__device__ static inline void multiply(smem &m, const weft__attention &a, const tile &t, const lane &me,
                                       const float *all, step &s, float (&score)[DOWN][4],
                                       float (&dw)[DOWN][4])
{
    const rows q = from(queries_of(a, t), s.query), k = from(keys_of(a, t), s.key);
    const rows dy = from(dy_of(a, t), s.query), v = from(values_of(a, t), s.key);
    const int64_t width = a.dk > a.dv ? a.dk : a.dv;
    bool nonfinite = false;
    UNROLLED for (int j = 0; j < DOWN; j++)
        UNROLLED for (int i = 0; i < 4; i++)
            score[j][i] = dw[j][i] = 0;
    /* wide heads: load the block's own columns again at the end */
    ROLLED for (int64_t at = 0; at < width + (is_wide(a) ? TILE : 0); at += TILE) {
        const bool again = at >= width;
        const int64_t column = again ? t.column : at;
        __syncthreads();
        ROLLED for (int i = 0; i < (s.loaded ? 2 : 4); i++) {   /* one loop, so that its code exists once */
            const rows x = columns(i == 0 ? q : i == 1 ? dy : i == 2 ? k : v, column);
            nonfinite |= load_tile<EXACT>(i == 0 ? m.q :
                         i == 1 ? m.dy :
                         i == 2 ? m.k :
                                  m.v,
                         i < 2 ? (int)QUERIES : (int)TILE, x);
        }
        mark_if(&m.nonfinite, s.mark, nonfinite);
        if (at == 0)
            load_query_data(m, a, t, all, s);
        __syncthreads();
        if (again)
            break;
        add_dots<EXACT>(m.k + 16 * me.warp, m.q, clamped(a.dk - column, TILE), me, score);
        add_dots<EXACT>(m.v + 16 * me.warp, m.dy, clamped(a.dv - column, TILE), me, dw);
    }
    s.nonfinite = m.nonfinite == s.mark;
    s.loaded = !is_wide(a);
}
/* Turns scores into weights and dw into ds, both with dropout. If a query sees one key, ds is 0: m.all is the
 * same dw, but summed in another order, so their difference would be rounding noise. */
template <bool drops, bool EXACT>
__device__ static inline void recompute_weights(const smem &m, const weft__attention &a, const lane &me,
                                                const step &s, float (&w)[DOWN][4], float (&ds)[DOWN][4])
{
    UNROLLED for (int j = 0; j < DOWN; j++)
        UNROLLED for (int e = 0; e < 2; e++) {
            const int query = 8 * j + 2 * me.part + e;
            const uint64_t drawn = drops && m.seen[query] > 0 ? m.dropped[query] : 0;
            const uint32_t dropped = (uint32_t)(drawn >> (8 * me.group + 2 * me.warp));
            UNROLLED for (int half = 0; half < 2; half++) {
                float &x = w[j][2 * half + e], &y = ds[j][2 * half + e];
                const bool seen = 16 * me.warp + me.group + 8 * half < m.seen[query];
                const float kept = !drops ? 1 : dropped >> half & 1 ? 0 : a.kept;
                x = seen ? expf(x - m.lse[query]) : 0;
                if (drops)                       /* not times 0, because the factor may be infinite */
                    y = kept != 0 ? y * kept : 0;
                const float mean = s.key == 0 && m.seen[query] == 1 ? y : m.all[query];
                y = stored<EXACT>(seen ? x * (y - mean) : 0);
                x = stored<EXACT>(!drops ? x : kept != 0 ? x * kept : 0);
            }
        }
}
/* Writes a result to shared memory; rows are keys. */
__device__ static inline void store_rows(smem &m, const lane &me, const float (&x)[DOWN][4])
{
    UNROLLED for (int j = 0; j < 2 * DOWN; j++)
        UNROLLED for (int half = 0; half < 2; half++)
            m.ds[16 * me.warp + me.group + 8 * half][j / 2 * 8 + 2 * me.part + j % 2] =
                x[j / 2][2 * half + j % 2];
}
/* Adds w b to sum, for a warp's 16 keys. b: rows of queries or of dy, from `query` on. */
template <bool EXACT>
__device__ static inline void add_queries(smem &m, const weft__attention &a, const tile &t, const lane &me,
                                          const step &s, bool gradients, const float (&w)[DOWN][4],
                                          float (&sum)[WIDE][4])
{
    const int width = clamped((gradients ? a.dv : a.dk) - t.column, TILE);
    add_products<EXACT>(w, gradients ? m.dy : m.q, width, me, sum);
    if (s.nonfinite) {
        const rows of = columns(from(gradients ? dy_of(a, t) : queries_of(a, t), s.query), t.column);
        __syncwarp();
        store_rows(m, me, w);
        __syncwarp();
        add_nonfinite(of, clamped(of.n, QUERIES), &m.ds[16 * me.warp + me.group][0], QUERIES + 4, 1, 0, sum);
    }
}

/* ---- dq ---- */
/* A warp computes 16 of the queries and half of the columns. */
template <bool EXACT>
__device__ static inline void query_products(const smem &m, const lane &me, int n, int column, int width,
                                             float (&sum)[WIDE / 2][4])
{
    const float *p = m.ds[2 * me.part] + me.warp % 2 * 16 + me.group;
    UNROLLED for (int from = 0; from < TILE; from += 8 * FOLDED) {
        float x[FOLDED][4];
        if (from >= n)
            break;
        UNROLLED for (int k = 0; k < FOLDED; k++) {
            const float *row = p + (from + 8 * k) * (QUERIES + 4), *next = row + QUERIES + 4;
            x[k][0] = row[0];
            x[k][1] = row[8];
            x[k][2] = next[0];
            x[k][3] = next[8];
        }
        add_terms<EXACT>(x, &m.k[from][column], width - column, me, sum);
    }
}
template <bool EXACT>
__device__ static inline void add_to_queries(const smem &m, const weft__attention &a, const tile &t,
                                             const lane &me, const step &s, const targets &to)
{
    const int width = clamped(a.dk - t.column, TILE);
    const int row = me.warp % 2 * 16 + me.group, column = me.warp / 2 * (TILE / 2);
    const int n = clamped(t.keys - s.key, TILE);
    float sum[WIDE / 2][4] = {};
    query_products<EXACT>(m, me, n, column, width, sum);
    if (s.nonfinite)
        add_nonfinite(columns(from(keys_of(a, t), s.key), t.column), n, &m.ds[0][row], 1, QUERIES + 4, column,
                      sum);
    const int64_t run = run_of(t.keys), number = s.key / run;
    const bool several = t.keys > run, add = !several || s.key % run != 0;
    float *y = several ? to.runs + number * a.queries * a.heads * a.dk : a.dq;
    UNROLLED for (int half = 0; half < 2; half++) {
        const int64_t query = s.query + row + 8 * half, at = of_query(a, t, query) * a.dk + t.column;
        UNROLLED for (int j = 0; j < WIDE; j++) {
            const int c = column + j / 2 * 8 + 2 * me.part + j % 2;
            if (query < t.queries && c < width)
                put(&y[at + c], a.scale * sum[j / 2][2 * half + j % 2], add);
        }
    }
}
/* Adds the runs of a sequence in order. */
static __global__ void add_runs(weft__attention a, const float *runs, int64_t tiles)
{
    EACH_TILE(a, a.q_offset, a.heads, 1, tiles, t) {
        const int64_t run = run_of(t.keys), n = t.keys > run ? TILE * a.dk : 0;
        for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
            const int64_t query = t.first + i / a.dk, at = of_query(a, t, query) * a.dk + i % a.dk;
            float sum = 0;
            if (query >= t.queries)
                break;
            for (int64_t key = 0; key < seen_by(a, t, query); key += run)
                sum += runs[key / run * a.queries * a.heads * a.dk + at];
            a.dq[at] += sum;
        }
    }
}

/* ---- a run ---- */
__device__ static inline void add_rows(float *y, int64_t step_, int64_t n, int width, bool add,
                                       const lane &me, const float (&sum)[WIDE][4])
{
    UNROLLED for (int half = 0; half < 2; half++) {
        const int row = 16 * me.warp + me.group + 8 * half;
        UNROLLED for (int j = 0; j < 2 * WIDE; j++) {
            const int c = j / 2 * 8 + 2 * me.part + j % 2;
            if (row < n && c < width)
                put(&y[row * step_ + c], sum[j / 2][2 * half + j % 2], add);
        }
    }
}
__device__ static inline void write_keys(const weft__attention &a, const tile &t, const lane &me,
                                         const step &s, const targets &to, const float (&dk)[WIDE][4],
                                         const float (&dv)[WIDE][4])
{
    const int64_t n = t.keys - s.key, row = (t.k + s.key) * a.heads + t.head;
    if (a.dk_)
        add_rows(a.dk_ + row * a.dk + t.column, a.heads * a.dk, n, clamped(a.dk - t.column, TILE), true, me,
                 dk);
    if (a.dv_)
        add_rows((a.shared_values ? to.values : a.dv_) + row * a.dv + t.column, a.heads * a.dv, n,
                 clamped(a.dv - t.column, TILE), !a.shared_values, me, dv);
}
template <bool drops, bool EXACT>
__device__ static inline void each_query(smem &m, const weft__attention &a, const tile &t, const lane &me,
                                         const targets &to, step &s, float (&dk)[WIDE][4],
                                         float (&dv)[WIDE][4])
{
    const int64_t first = weft__first_seeing(a.causal, s.key, t.queries, t.keys);
    for (s.query = (int)first / QUERIES * QUERIES; s.query < t.queries; s.query += QUERIES) {
        float w[DOWN][4], ds[DOWN][4];
        s.mark++;
        if (drops)
            draw<QUERIES, CORES>(m.dropped, a, t, s.query, s.key);
        multiply<EXACT>(m, a, t, me, to.all, s, w, ds);
        recompute_weights<drops, EXACT>(m, a, me, s, w, ds);
        if (s.nonfinite) {
            const int wide_k = clamped(a.dk - t.column, TILE), wide_v = clamped(a.dv - t.column, TILE);
            __syncthreads();
            clean(m.k, TILE, wide_k), clean(m.q, QUERIES, wide_k), clean(m.dy, QUERIES, wide_v);
            s.loaded = false;
            __syncthreads();
        }
        if (a.dv_)
            add_queries<EXACT>(m, a, t, me, s, true, w, dv);
        if (a.dk_)
            add_queries<EXACT>(m, a, t, me, s, false, ds, dk);
        if (a.dq) {
            __syncwarp();
            store_rows(m, me, ds);
            __syncthreads();
            add_to_queries<EXACT>(m, a, t, me, s, to);
        }
    }
}
template <bool drops, bool EXACT>
static __global__ void CORED attend_back_cores(weft__attention a, targets to, int64_t pieces, int64_t slots)
{
    DYN_SHARED(smem, m);
    const lane me = this_lane();
    step s = {};
    if (threadIdx.x == 0)
        m->nonfinite = 0;
    __syncthreads();
    EACH_RUN(RUN, a, a.k_offset, a.heads, pieces, slots, found) {
        __syncthreads();
        if (threadIdx.x == 0) {
            const int64_t run = run_of(found.keys), end = (found.first / RUN + 1) * run;
            m->t = found;
            m->end = (int)(end < found.keys ? end : found.keys);
        }
        __syncthreads();
        for (s.key = (int)(m->t.first / RUN * run_of(m->t.keys)); s.key < m->end; s.key += TILE) {
            float dk[WIDE][4] = {}, dv[WIDE][4] = {};
            s.loaded = false;
            each_query<drops, EXACT>(*m, a, m->t, me, to, s, dk, dv);
            write_keys(a, m->t, me, s, to, dk, dv);
        }
    }
}

/* ---- before and after the main kernel ---- */
/* The sum of w dw of a query and head equals the sum of y dy. Eight threads compute one. */
static __global__ void dots_of_results(weft__attention a, const float *y, int64_t first, int64_t rows,
                                       float *all)
{
    enum { EACH = 8 };
    const int part = (int)threadIdx.x % EACH;
    for (int64_t i = first_index() / EACH; i - i % (32 / EACH) < rows; i += index_step() / EACH) {
        const int64_t row = first * a.heads + i, of_dy = a.mean ? row / a.heads : row;
        float sum = 0;
        for (int64_t c = i < rows ? part : a.dv; c < a.dv; c += EACH)
            sum += y[row * a.dv + c] * a.dy[of_dy * a.dv + c];
        UNROLLED for (int distance = EACH / 2; distance; distance /= 2)
            sum += __shfl_xor_sync(~0u, sum, distance);
        if (part == 0 && i < rows)
            all[row] = a.mean ? sum / (float)a.heads : sum;
    }
}
/* Returns the largest number of runs of a sequence, or 0 if no sequence has more than one. */
static int64_t most_runs(const weft__attention *a)
{
    int64_t largest = 0;
    for (int64_t s = 0; s < a->sequences; s++) {
        const int64_t keys = a->k_offset.host[s + 1] - a->k_offset.host[s], run = run_of(keys);
        largest = keys > run && (keys + run - 1) / run > largest ? (keys + run - 1) / run : largest;
    }
    return a->dq ? largest : 0;
}
/* Returns the results of each head. If only their mean was kept, computes them again. */
static const float *results_of(weft__device *d, const weft__attention *a, float *memory)
{
    if (!a->mean)
        return a->y;
    weft__attention each = *a;
    each.mean = false;
    each.map = NULL;
    each.y = memory;
    each.lse = memory + a->queries * a->heads * a->dv;
    attend_by_cores(d, &each);
    return memory;
}
static void add_back(weft__device *d, const weft__attention *a, const targets *to)
{
    const int64_t wide = pieces_of(a->dk > a->dv ? a->dk : a->dv);
    const int64_t blocks = slots<RUN>(a->k_offset, a->sequences) * a->heads * wide;
    const size_t shared = sizeof(smem);
    /* a local name that the emulation can look up */
    const auto attend_back = WHICH_CORES(d, attend_back_cores);
    if (failed(d, cudaFuncSetAttribute(attend_back, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared),
               "attention_back"))
        return;
    LAUNCH(d, attend_back, grid_of(blocks), CORES, shared, *a, *to, wide, blocks);
}
void attend_back_by_cores(weft__device *d, const weft__attention *a)
{
    const int64_t rows = a->queries * a->heads, runs = most_runs(a) * rows * a->dk;
    const int64_t values = a->shared_values && a->dv_ ? a->keys * a->heads * a->dv : 0;
    const int64_t results = a->mean ? rows * (a->dv + 1) : 0;
    const int64_t first = a->sequences ? a->q_offset.host[0] : 0,
                  first_key = a->sequences ? a->k_offset.host[0] : 0;
    const int64_t n = a->sequences ? a->q_offset.host[a->sequences] - first : 0;
    const int64_t keys = a->sequences ? a->k_offset.host[a->sequences] - first_key : 0;
    float *all = (float *)scratch(d, (size_t)(rows + runs + values + results + 1) * sizeof(float));
    if (!all)
        return;
    const targets to = { all, all + rows, all + rows + runs };
    if (a->dq || a->dk_)
        LAUNCH(d, dots_of_results, blocks_for(8 * n * a->heads), THREADS, 0, *a,
               results_of(d, a, all + rows + runs + values), first, n * a->heads, all);
    add_back(d, a, &to);
    const int64_t tiles = slots(a->q_offset, a->sequences) * a->heads;
    if (runs)
        LAUNCH(d, add_runs, grid_of(tiles), THREADS, 0, *a, to.runs, tiles);
    if (values)
        LAUNCH(d, sum_heads<false>, blocks_for(keys * a->dv), THREADS, 0, *a, to.values, first_key, keys,
               a->dv_);
}
#endif
