/* attention.cu - ragged attention in fp32 or double, by tiles of queries and keys. The matrix of scores is
 * never stored. Forward keeps a running maximum and sum for each query (Milakov, Gimelshein 2018; Dao et al.
 * 2022) and stores the logarithm of the sum, and backward uses it to compute the weights again.
 *
 * A block of threads computes one tile of the result: TILE queries (or keys) of one sequence and head, and
 * TILE columns. It visits the sequence's keys (or queries) in order, so each element has one writer and fixed
 * bits. Wide heads are processed in pieces of TILE columns. If a head is wider than a tile, each of its
 * column tiles computes the scores again. One function computes all scores, so the weight of a single key is
 * exactly 1, also in backward. */
#include <math.h>
#include "cuda/attention_tile.h"

/* ---- forward ---- */
/* Turns the scores of one query in a tile of keys into exp(score - max). Returns the factor for the sums so
 * far. */
__device__ static real weigh(running &r, real (&score)[EACH], int64_t seen)
{
    const real nothing = -(real)INFINITY;
    real largest = r.largest, sum = 0;
    for (int j = 0; j < EACH; j++)
        largest = column_of(j) < seen ? larger(score[j], largest) : largest;
    largest = row_max(largest);
    const real from = largest == nothing ? 0 : largest, old = exp(r.largest - from);
    for (int j = 0; j < EACH; j++) {
        score[j] = column_of(j) < seen ? exp(score[j] - from) : 0;
        sum += score[j];
    }
    r.largest = largest;
    r.sum = r.sum * old + row_sum(sum);
    return old;
}
__device__ static void write_results(const weft__attention &a, const tile &t, const running (&r)[EACH],
                                     const real (&sum)[EACH][EACH])
{
    for (int i = 0; i < EACH; i++) {
        const int64_t query = t.first + row_of(i), at = of_query(a, t, query), seen = seen_by(a, t, query);
        if (query >= t.queries)
            continue;
        for (int j = 0; j < EACH; j++) {
            const int64_t c = t.column + column_of(j);
            if (c < a.dv)
                a.y[at * a.dv + c] = seen ? sum[i][j] / r[i].sum : 0;
        }
        if (thread_column() == 0 && t.column == 0)
            a.lse[at] = log_of(r[i], seen);
    }
}
template <bool drops> static __global__ void TILED attend(weft__attention a, int64_t pieces, int64_t tiles)
{
    SHARED(m, smem);
    EACH_TILE(a, a.q_offset, a.heads, pieces, tiles, t) {
        real score[EACH][EACH], sum[EACH][EACH] = {};
        running r[EACH];
        for (int i = 0; i < EACH; i++)
            r[i] = running{ -(real)INFINITY, 0 };
        for (int64_t key = 0, keys = seen_by_tile(a, t); key < keys; key += TILE) {
            dots(m, from(queries_of(a, t), t.first), from(keys_of(a, t), key), score);
            for (int i = 0; i < EACH; i++) {
                const real old = weigh(r[i], score[i], seen_by(a, t, t.first + row_of(i)) - key);
                for (int j = 0; j < EACH; j++)
                    sum[i][j] *= old;
            }
            if (drops)
                drop<false>(m, a, t, t.first, key, score);
            add_products(m, score, from(columns(values_of(a, t), t.column), key),
                         sees_all(a, t, t.first, key), sum);
        }
        write_results(a, t, r, sum);
    }
}

/* Turns scores into weights. Rows are queries from `query` on and columns are keys from `key` on; with
 * `turned` the other way round. */
template <bool turned>
__device__ static void recompute_weights(const weft__attention &a, const tile &t, int64_t query, int64_t key,
                                         real (&score)[EACH][EACH])
{
    UNROLLED for (int i = 0; i < EACH; i++)
        UNROLLED for (int j = 0; j < EACH; j++) {
            const int64_t q = query + (turned ? column_of(j) : row_of(i));
            const int64_t k = key + (turned ? row_of(i) : column_of(j));
            score[i][j] = k < seen_by(a, t, q) ? exp(score[i][j] - a.lse[of_query(a, t, q)]) : 0;
        }
}
template <bool drops> static __global__ void TILED write_map(weft__attention a, int64_t tiles)
{
    SHARED(m, smem);
    EACH_TILE(a, a.q_offset, a.heads, 1, tiles, t)
        for (int64_t key = 0; key < t.keys; key += TILE) {
            real w[EACH][EACH];
            dots(m, from(queries_of(a, t), t.first), from(keys_of(a, t), key), w);
            recompute_weights<false>(a, t, t.first, key, w);
            if (drops)
                drop<false>(m, a, t, t.first, key, w);
            for (int i = 0; i < EACH; i++)
                for (int j = 0; j < EACH; j++) {
                    const int64_t q = t.first + row_of(i), k = key + column_of(j);
                    if (q < t.queries && k < t.keys)
                        a.map[(a.map_offset.device[t.q + q] + k) * a.heads + t.head] = w[i][j];
                }
        }
}
/* The mean over heads stores each head's results and gradients in scratch memory. So the kernels above and
 * below, which need all available registers, do not handle it. */
static __global__ void spread_to_heads(weft__attention a, real *dy)
{
    for (int64_t i = first_index(); i < a.queries * a.heads * a.dv; i += index_step())
        dy[i] = a.dy[i / a.dv / a.heads * a.dv + i % a.dv] / (real)a.heads;
}
static int64_t of_all_heads(const weft__attention *a) { return a->queries * a->heads * a->dv; }
static void attend_mean(weft__device *d, const weft__attention *a)
{
    weft__attention each = *a;
    each.mean = false;
    each.y = (real *)scratch(d, (size_t)(of_all_heads(a) + 1) * sizeof(real));
    if (!each.y)
        return;
    K(attention)(d, &each);
    /* only these sequences; other rows stay unchanged */
    const int64_t first = a->sequences ? a->q_offset.host[0] : 0;
    const int64_t rows = a->sequences ? a->q_offset.host[a->sequences] - first : 0;
    LAUNCH(d, sum_heads<true>, blocks_for(rows * a->dv), THREADS, 0, *a, each.y, first, rows, a->y);
}
/* Tensor cores multiply floats, unless the context requires strict fp32. */
static bool by_cores(const weft__device *d)
{
    return sizeof(real) == sizeof(float) && d->precision != WEFT_STRICT_FP32;
}
void K(attention)(weft__device *d, const weft__attention *a)
{
    if (a->mean) {
        attend_mean(d, a);
        return;
    }
    if (by_cores(d)) {
        attend_by_cores(d, a);
        return;
    }
    const int64_t pieces = pieces_of(a->dv), tiles = slots(a->q_offset, a->sequences) * a->heads;
    LAUNCH(d, WHICH(attend), grid_of(tiles * pieces), SIDE * SIDE, 0, *a, pieces, tiles * pieces);
    if (a->map)
        LAUNCH(d, WHICH(write_map), grid_of(tiles), SIDE * SIDE, 0, *a, tiles);
}

/* ---- backward ---- */
/* Let w be the weights, m the dropout factors, dw = m dy v^T, and D the sum of w dw for each query. Then ds =
 * w (dw - D), dq += scale ds k, dk += scale ds^T q, dv += (m w)^T dy. This kernel computes D. */
template <bool drops> static __global__ void TILED sum_gradients(weft__attention a, real *all, int64_t tiles)
{
    SHARED(m, smem);
    EACH_TILE(a, a.q_offset, a.heads, 1, tiles, t) {
        real w[EACH][EACH], dw[EACH][EACH], sum[EACH] = {};
        for (int64_t key = 0, keys = seen_by_tile(a, t); key < keys; key += TILE) {
            dots(m, from(queries_of(a, t), t.first), from(keys_of(a, t), key), w);
            dots(m, from(gradients_of(a, t), t.first), from(values_of(a, t), key), dw);
            recompute_weights<false>(a, t, t.first, key, w);
            if (drops)
                drop<false>(m, a, t, t.first, key, dw);
            for (int i = 0; i < EACH; i++)
                for (int j = 0; j < EACH; j++)
                    sum[i] +=
                        key + column_of(j) < seen_by(a, t, t.first + row_of(i)) ? w[i][j] * dw[i][j] : 0;
        }
        for (int i = 0; i < EACH; i++) {
            const int64_t query = t.first + row_of(i);
            const real whole = row_sum(sum[i]);
            if (thread_column() == 0 && query < t.queries)
                all[of_query(a, t, query)] = whole;
        }
    }
}
/* Computes ds for a tile of queries by keys; with `turned` for keys by queries. */
template <bool turned, bool drops>
__device__ static void score_gradients(smem &m, const weft__attention &a, const tile &t, const real *all,
                                       int64_t query, int64_t key, real (&ds)[EACH][EACH])
{
    real dw[EACH][EACH];
    const rows q = from(queries_of(a, t), query), k = from(keys_of(a, t), key);
    const rows dy = from(gradients_of(a, t), query), v = from(values_of(a, t), key);
    dots(m, turned ? k : q, turned ? q : k, ds);
    recompute_weights<turned>(a, t, query, key, ds);
    dots(m, turned ? v : dy, turned ? dy : v, dw);
    if (drops)
        drop<turned>(m, a, t, query, key, dw);
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < EACH; j++) {
            const int64_t at = query + (turned ? column_of(j) : row_of(i));
            const int64_t k_at = key + (turned ? row_of(i) : column_of(j));
            ds[i][j] = k_at < seen_by(a, t, at) ? ds[i][j] * (dw[i][j] - all[of_query(a, t, at)]) : 0;
        }
}
/* Adds factor * sum to rows t.first on and columns t.column on of y. */
__device__ static void add_results(real *y, const rows &x, const tile &t, real factor,
                                   const real (&sum)[EACH][EACH])
{
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < EACH; j++) {
            const int64_t row = t.first + row_of(i), c = t.column + column_of(j);
            if (row < x.n && c < x.width)
                y[row * x.step + c] += factor * sum[i][j];
        }
}
template <bool drops>
static __global__ void TILED gradient_of_queries(weft__attention a, const real *all, int64_t pieces,
                                                 int64_t tiles)
{
    SHARED(m, smem);
    EACH_TILE(a, a.q_offset, a.heads, pieces, tiles, t) {
        real ds[EACH][EACH], sum[EACH][EACH] = {};
        for (int64_t key = 0, keys = seen_by_tile(a, t); key < keys; key += TILE) {
            score_gradients<false, drops>(m, a, t, all, t.first, key, ds);
            add_products(m, ds, from(columns(keys_of(a, t), t.column), key), sees_all(a, t, t.first, key),
                         sum);
        }
        const rows q = queries_of(a, t);
        add_results(a.dq + (q.data - a.q), q, t, a.scale, sum);
    }
}
/* Returns the first query that sees a key of the tile; the loop over queries starts there. */
__device__ static int64_t first_query(const weft__attention &a, const tile &t)
{
    return weft__first_seeing(a.causal, t.first, t.queries, t.keys);
}
template <bool drops>
static __global__ void TILED gradient_of_keys(weft__attention a, const real *all, int64_t pieces,
                                              int64_t tiles)
{
    SHARED(m, smem);
    EACH_TILE(a, a.k_offset, a.heads, pieces, tiles, t) {
        real ds[EACH][EACH], sum[EACH][EACH] = {};
        for (int64_t query = first_query(a, t); query < t.queries; query += TILE) {
            score_gradients<true, drops>(m, a, t, all, query, t.first, ds);
            add_products(m, ds, from(columns(queries_of(a, t), t.column), query),
                         sees_all(a, t, query, t.first), sum);
        }
        const rows k = keys_of(a, t);
        add_results(a.dk_ + (k.data - a.k), k, t, a.scale, sum);
    }
}
/* If heads share values, one tile handles all heads, in their order. */
template <bool drops>
static __global__ void TILED gradient_of_values(weft__attention a, int64_t heads, int64_t pieces,
                                                int64_t tiles)
{
    SHARED(m, smem);
    EACH_TILE(a, a.k_offset, heads, pieces, tiles, t) {
        real w[EACH][EACH], sum[EACH][EACH] = {};
        for (const int64_t end = heads == 1 ? a.heads : t.head + 1; t.head < end; t.head++)
            for (int64_t query = first_query(a, t); query < t.queries; query += TILE) {
                dots(m, from(keys_of(a, t), t.first), from(queries_of(a, t), query), w);
                recompute_weights<true>(a, t, query, t.first, w);
                if (drops)
                    drop<true>(m, a, t, query, t.first, w);
                add_products(m, w, from(columns(gradients_of(a, t), t.column), query),
                             sees_all(a, t, query, t.first), sum);
            }
        t.head = heads == 1 ? 0 : t.head - 1;
        const rows v = values_of(a, t);
        add_results(a.dv_ + (v.data - a.v), v, t, 1, sum);
    }
}
/* all: D of each query and head */
static void attend_back(weft__device *d, const weft__attention *a, real *all)
{
    const int64_t wide_k = pieces_of(a->dk), wide_v = pieces_of(a->dv),
                  heads = a->shared_values ? 1 : a->heads;
    const int64_t queries = slots(a->q_offset, a->sequences) * a->heads,
                  key_slots = slots(a->k_offset, a->sequences);
    /* numbers of tiles */
    const int64_t keys = key_slots * a->heads * wide_k, values = key_slots * heads * wide_v;
    if (a->dq || a->dk_)
        LAUNCH(d, WHICH(sum_gradients), grid_of(queries), SIDE * SIDE, 0, *a, all, queries);
    if (a->dq)
        LAUNCH(d, WHICH(gradient_of_queries), grid_of(queries * wide_k), SIDE * SIDE, 0, *a, all, wide_k,
               queries * wide_k);
    if (a->dk_)
        LAUNCH(d, WHICH(gradient_of_keys), grid_of(keys), SIDE * SIDE, 0, *a, all, wide_k, keys);
    if (a->dv_)
        LAUNCH(d, WHICH(gradient_of_values), grid_of(values), SIDE * SIDE, 0, *a, heads, wide_v, values);
}
void K(attention_back)(weft__device *d, const weft__attention *a)
{
    if (by_cores(d)) {
        attend_back_by_cores(d, a);
        return;
    }
    const int64_t sums = a->queries * a->heads;
    real *all = (real *)scratch(d, (size_t)(sums + (a->mean ? of_all_heads(a) : 0)) * sizeof(real));
    weft__attention each = *a;
    if (a->mean && all) {
        LAUNCH(d, spread_to_heads, blocks_for(of_all_heads(a)), THREADS, 0, *a, all + sums);
        each.mean = false;
        each.dy = all + sums;
    }
    attend_back(d, &each, all);
}
