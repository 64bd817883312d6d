/* attention_cores_back.cu - the backward pass of attention_cores.cu: five products for a pair of tiles,
 * scores S = q k^T, dw = dy v^T, dv += w^T dy, dk += ds^T q and dq += ds k, where attention.cu makes ten.
 *
 * A block has one head of a sequence and a run of its keys, tile by tile; for each it walks over the queries,
 * its gradients of keys and values in registers. Scores lie with keys down, so that weights are the left
 * operand of dv and dk as they are, and only ds goes through shared memory, for dq. Who adds to dq? A run is
 * four tiles of keys, and its block alone adds to its rows, in the order of keys. What a sequence of more
 * keys has of each run lies in scratch memory, and another kernel adds them up in order. So the work of many
 * short sequences and of few long ones is divided among blocks by one rule, and nothing but the sequence's
 * own number of keys says in which order its sums are taken. */
#ifndef WEFT_DOUBLE
#include "cuda/attention_cores.h"

#define CORED __launch_bounds__(CORES, 2)

enum {
    QUERIES = 8 * FOLDED,                        /* at a time */
    DOWN = FOLDED,                               /* of a warp's results across them */
    RUN = 4 * TILE, MOST_RUNS = 8                /* keys of a run, but in longest sequences */
};
/* of a block, in shared memory */
typedef struct __align__(16) desk {
    line k[TILE], v[TILE], q[QUERIES], dy[QUERIES];
    float ds[TILE][QUERIES + 4];                 /* and weights, see clean */
    uint64_t gone[QUERIES];
    float lse[QUERIES], all[QUERIES];
    int seen[QUERIES];                           /* how many of the tile's keys */
    unsigned odd;                                /* see mark_if */
    tile t; int end;                             /* of the run; registers are for sums */
} desk;
/* A run's keys; so many runs cost scratch memory, which is to grow no faster than the sequence. */
__host__ __device__ static inline int64_t run_of(int64_t keys)
{
    return keys <= MOST_RUNS * RUN ? (int64_t)RUN : (keys + MOST_RUNS * TILE - 1) / (MOST_RUNS * TILE) * TILE;
}
/* where results go; runs: [runs, queries, heads, dk], values: [keys, heads, dv] where heads share values */
typedef struct targets { const float *all; float *runs, *values; } targets;

__device__ static inline rows dy_of(const weft__attention &a, const tile &t)
{
    return a.mean ? rows{ a.dy + t.q * a.dv, a.dv, t.queries, a.dv, 1 / (float)a.heads } : gradients_of(a, t);
}

/* ---- a step: QUERIES queries from `query` on, TILE keys from `key` on ---- */
typedef struct step { int query, key; unsigned mark; bool there, odd; } step;
/* Has a head more columns than a tile? */
__device__ static inline bool is_wide(const weft__attention &a) { return a.dk > TILE || a.dv > TILE; }

__device__ static inline void bring_facts(desk &m, const weft__attention &a, const tile &t, const float *all,
                                          const step &s)
{
    const int i = (int)threadIdx.x;
    if (i >= QUERIES)
        return;
    const int64_t q = s.query + i;
    m.seen[i] = least_of(seen_by(a, t, q) - s.key, TILE);
    m.lse[i] = q < t.queries ? a.lse[of_query(a, t, q)] : 0;
    m.all[i] = q < t.queries && (a.dq || a.dk_) ? all[of_query(a, t, q)] : 0;
}
/* score = k q^T, dw = v dy^T. Of heads wider than a tile those columns stay that the block has. */
template <bool EXACT>
__device__ static inline void multiply(desk &m, const weft__attention &a, const tile &t, const lane &me,
                                       const float *all, step &s, float (&score)[DOWN][4],
                                       float (&dw)[DOWN][4])
{
    const rows q = from(queries_of(a, t), s.query), k = from(keys_of(a, t), s.key);
    const rows dy = from(dy_of(a, t), s.query), v = from(values_of(a, t), s.key);
    const int64_t width = a.dk > a.dv ? a.dk : a.dv;
    bool odd = false;
    UNROLLED for (int j = 0; j < DOWN; j++)
        UNROLLED for (int i = 0; i < 4; i++)
            score[j][i] = dw[j][i] = 0;
    /* once more for the block's own columns, if there are others */
    ROLLED for (int64_t at = 0; at < width + (is_wide(a) ? TILE : 0); at += TILE) {
        const bool again = at >= width;
        const int64_t column = again ? t.column : at;
        __syncthreads();
        ROLLED for (int i = 0; i < (s.there ? 2 : 4); i++) {    /* one loop, so that its code is there once */
            const rows x = columns(i == 0 ? q : i == 1 ? dy : i == 2 ? k : v, column);
            odd |= bring<EXACT>(i == 0 ? m.q :
                         i == 1 ? m.dy :
                         i == 2 ? m.k :
                                  m.v,
                         i < 2 ? (int)QUERIES : (int)TILE, x);
        }
        mark_if(&m.odd, s.mark, odd);
        if (at == 0)
            bring_facts(m, a, t, all, s);
        __syncthreads();
        if (again)
            break;
        add_dots<EXACT>(m.k + 16 * me.warp, m.q, least_of(a.dk - column, TILE), me, score);
        add_dots<EXACT>(m.v + 16 * me.warp, m.dy, least_of(a.dv - column, TILE), me, dw);
    }
    s.odd = m.odd == s.mark;
    s.there = !is_wide(a);
}
/* Scores become weights, and what dropout makes of them; dw becomes ds. */
template <bool drops, bool EXACT>
__device__ static inline void weigh_again(const desk &m, const weft__attention &a, const lane &me,
                                          float (&w)[DOWN][4], float (&ds)[DOWN][4])
{
    UNROLLED for (int j = 0; j < DOWN; j++)
        UNROLLED for (int e = 0; e < 2; e++) {
            const int query = 8 * j + 2 * me.part + e;
            const uint64_t drawn = drops && m.seen[query] > 0 ? m.gone[query] : 0;
            const uint32_t gone = (uint32_t)(drawn >> (8 * me.group + 2 * me.warp));
            UNROLLED for (int half = 0; half < 2; half++) {
                float &x = w[j][2 * half + e], &y = ds[j][2 * half + e];
                const bool seen = 16 * me.warp + me.group + 8 * half < m.seen[query];
                const float kept = !drops ? 1 : gone >> half & 1 ? 0 : a.kept;
                x = seen ? expf(x - m.lse[query]) : 0;
                if (drops)                       /* not times 0, which infinity is not for */
                    y = kept != 0 ? y * kept : 0;
                y = stored<EXACT>(seen ? x * (y - m.all[query]) : 0);
                x = stored<EXACT>(!drops ? x : kept != 0 ? x * kept : 0);
            }
        }
}
/* ... to shared memory: rows are keys. */
__device__ static inline void lay_out(desk &m, const lane &me, const float (&x)[DOWN][4])
{
    UNROLLED for (int j = 0; j < 2 * DOWN; j++)
        UNROLLED for (int half = 0; half < 2; half++)
            m.ds[16 * me.warp + me.group + 8 * half][j / 2 * 8 + 2 * me.part + j % 2] =
                x[j / 2][2 * half + j % 2];
}
/* Adds w b to sum, for a warp's 16 keys; b has these rows from `query` on. */
template <bool EXACT>
__device__ static inline void add_queries(desk &m, const weft__attention &a, const tile &t, const lane &me,
                                          const step &s, bool gradients, const float (&w)[DOWN][4],
                                          float (&sum)[WIDE][4])
{
    const int width = least_of((gradients ? a.dv : a.dk) - t.column, TILE);
    add_products<EXACT>(w, gradients ? m.dy : m.q, width, me, sum);
    if (s.odd) {
        const rows of = columns(from(gradients ? dy_of(a, t) : queries_of(a, t), s.query), t.column);
        __syncwarp();
        lay_out(m, me, w);
        __syncwarp();
        add_odd(of, least_of(of.n, QUERIES), &m.ds[16 * me.warp + me.group][0], QUERIES + 4, 1, 0, sum);
    }
}

/* ---- dq ---- */
/* A warp has 16 of the queries and half of the columns. */
template <bool EXACT>
__device__ static inline void query_products(const desk &m, const lane &me, int n, int column, int width,
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
__device__ static inline void add_to_queries(const desk &m, const weft__attention &a, const tile &t,
                                             const lane &me, const step &s, const targets &to)
{
    const int width = least_of(a.dk - t.column, TILE);
    const int row = me.warp % 2 * 16 + me.group, column = me.warp / 2 * (TILE / 2);
    const int n = least_of(t.keys - s.key, TILE);
    float sum[WIDE / 2][4] = {};
    query_products<EXACT>(m, me, n, column, width, sum);
    if (s.odd)
        add_odd(columns(from(keys_of(a, t), s.key), t.column), n, &m.ds[0][row], 1, QUERIES + 4, column, sum);
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
/* in the order of runs */
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
        add_rows(a.dk_ + row * a.dk + t.column, a.heads * a.dk, n, least_of(a.dk - t.column, TILE), true, me,
                 dk);
    if (a.dv_)
        add_rows((a.shared_values ? to.values : a.dv_) + row * a.dv + t.column, a.heads * a.dv, n,
                 least_of(a.dv - t.column, TILE), !a.shared_values, me, dv);
}
template <bool drops, bool EXACT>
__device__ static inline void each_query(desk &m, const weft__attention &a, const tile &t, const lane &me,
                                         const targets &to, step &s, float (&dk)[WIDE][4],
                                         float (&dv)[WIDE][4])
{
    const int64_t first = weft__first_seeing(a.causal, s.key, t.queries, t.keys);
    for (s.query = (int)first / QUERIES * QUERIES; s.query < t.queries; s.query += QUERIES) {
        float w[DOWN][4], ds[DOWN][4];
        s.mark++;
        if (drops)
            draw<QUERIES, CORES>(m.gone, a, t, s.query, s.key);
        multiply<EXACT>(m, a, t, me, to.all, s, w, ds);
        weigh_again<drops, EXACT>(m, a, me, w, ds);
        if (s.odd) {
            const int wide_k = least_of(a.dk - t.column, TILE), wide_v = least_of(a.dv - t.column, TILE);
            __syncthreads();
            clean(m.k, TILE, wide_k), clean(m.q, QUERIES, wide_k), clean(m.dy, QUERIES, wide_v);
            s.there = false;
            __syncthreads();
        }
        if (a.dv_)
            add_queries<EXACT>(m, a, t, me, s, true, w, dv);
        if (a.dk_)
            add_queries<EXACT>(m, a, t, me, s, false, ds, dk);
        if (a.dq) {
            __syncwarp();
            lay_out(m, me, ds);
            __syncthreads();
            add_to_queries<EXACT>(m, a, t, me, s, to);
        }
    }
}
template <bool drops, bool EXACT>
static __global__ void CORED attend_back_cores(weft__attention a, targets to, int64_t pieces, int64_t places)
{
    DYN_SHARED(desk, m);
    const lane me = this_lane();
    step s = {};
    if (threadIdx.x == 0)
        m->odd = 0;
    __syncthreads();
    EACH_RUN(RUN, a, a.k_offset, a.heads, pieces, places, found) {
        __syncthreads();
        if (threadIdx.x == 0) {
            const int64_t run = run_of(found.keys), end = (found.first / RUN + 1) * run;
            m->t = found;
            m->end = (int)(end < found.keys ? end : found.keys);
        }
        __syncthreads();
        for (s.key = (int)(m->t.first / RUN * run_of(m->t.keys)); s.key < m->end; s.key += TILE) {
            float dk[WIDE][4] = {}, dv[WIDE][4] = {};
            s.there = false;
            each_query<drops, EXACT>(*m, a, m->t, me, to, s, dk, dv);
            write_keys(a, m->t, me, s, to, dk, dv);
        }
    }
}

/* ---- before and after ---- */
/* The sum of w dw of a query and head is that of y dy. Eight threads have one. */
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
        UNROLLED for (int far = EACH / 2; far; far /= 2)
            sum += __shfl_xor_sync(~0u, sum, far);
        if (part == 0 && i < rows)
            all[row] = a.mean ? sum / (float)a.heads : sum;
    }
}
/* Gradients of values that heads share, in the order of heads. */
static __global__ void add_heads(weft__attention a, const float *values, int64_t first, int64_t rows)
{
    for (int64_t i = first * a.dv + first_index(); i < (first + rows) * a.dv; i += index_step()) {
        const int64_t row = i / a.dv, c = i % a.dv;
        float sum = 0;
        for (int64_t h = 0; h < a.heads; h++)
            sum += values[(row * a.heads + h) * a.dv + c];
        a.dv_[i] += sum;
    }
}
/* How many runs the sequence of most keys has; 0: nobody has two. */
static int64_t most_runs(const weft__attention *a)
{
    int64_t most = 0;
    for (int64_t s = 0; s < a->sequences; s++) {
        const int64_t keys = a->k_offset.host[s + 1] - a->k_offset.host[s], run = run_of(keys);
        most = keys > run && (keys + run - 1) / run > most ? (keys + run - 1) / run : most;
    }
    return a->dq ? most : 0;
}
/* Results of each head, which only the mean of was kept, are made again. */
static const float *results_of(weft__device *d, const weft__attention *a, float *room)
{
    if (!a->mean)
        return a->y;
    weft__attention each = *a;
    each.mean = false;
    each.map = NULL;
    each.y = room;
    each.lse = room + a->queries * a->heads * a->dv;
    attend_by_cores(d, &each);
    return room;
}
static void add_back(weft__device *d, const weft__attention *a, const targets *to)
{
    const int64_t wide = pieces_of(a->dk > a->dv ? a->dk : a->dv);
    const int64_t blocks = places<RUN>(a->k_offset, a->sequences) * a->heads * wide;
    const size_t shared = sizeof(desk);
    const auto attend_back = WHICH_CORES(d, attend_back_cores);   /* the name that the emulation knows */
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
    const int64_t tiles = places(a->q_offset, a->sequences) * a->heads;
    if (runs)
        LAUNCH(d, add_runs, grid_of(tiles), THREADS, 0, *a, to.runs, tiles);
    if (values)
        LAUNCH(d, add_heads, blocks_for(keys * a->dv), THREADS, 0, *a, to.values, first_key, keys);
}
#endif
