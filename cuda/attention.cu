/* attention.cu - ragged attention in tiles of queries by keys. The matrix of scores is never there: forward
 * keeps a running maximum and sum of each query (Milakov, Gimelshein 2018; Dao et al. 2022) and leaves their
 * logarithm, from which backward makes the weights again.
 *
 * A block of threads has one tile of the result: some queries (or keys) of one sequence and one head, and as
 * many columns. It walks over the keys (or queries) of its sequence in their order, so that nothing is added
 * by two blocks, and bits never change. Widths are taken in pieces; where a head is wider than a tile, each
 * tile of its columns makes the scores anew. Scores come from one function everywhere: the weight of a single
 * key is 1 exactly, also backward. */
#include <math.h>
#include "cuda/attention_tile.h"

/* ---- forward ---- */
/* The scores of one query in a tile of keys become exp(score - most); what was summed up to now is to be
 * multiplied by the result. */
__device__ static real weigh(running &r, real (&score)[EACH], int64_t seen)
{
    const real nothing = -(real)INFINITY;
    real most = r.most, sum = 0;
    for (int j = 0; j < EACH; j++)
        most = column_of(j) < seen ? larger(score[j], most) : most;
    most = row_max(most);
    const real from = most == nothing ? 0 : most, old = exp(r.most - from);
    for (int j = 0; j < EACH; j++) {
        score[j] = column_of(j) < seen ? exp(score[j] - from) : 0;
        sum += score[j];
    }
    r.most = most;
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
        if (across() == 0 && t.column == 0)
            a.lse[at] = log_of(r[i], seen);
    }
}
template <bool drops> static __global__ void TILED attend(weft__attention a, int64_t pieces, int64_t tiles)
{
    SHARED(m, room);
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

/* Scores become weights: rows are queries from `query` on, columns keys from `key` on, or the other way
 * round if turned. */
template <bool turned>
__device__ static void weigh_again(const weft__attention &a, const tile &t, int64_t query, int64_t key,
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
    SHARED(m, room);
    EACH_TILE(a, a.q_offset, a.heads, 1, tiles, t)
        for (int64_t key = 0; key < t.keys; key += TILE) {
            real w[EACH][EACH];
            dots(m, from(queries_of(a, t), t.first), from(keys_of(a, t), key), w);
            weigh_again<false>(a, t, t.first, key, w);
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
/* The mean over heads has results and gradients of each head in scratch: so the kernels above and below,
 * which need all registers that they may have, know nothing of it. */
static __global__ void average_heads(weft__attention a, int64_t first, int64_t rows, const real *y)
{
    for (int64_t i = first * a.dv + first_index(); i < (first + rows) * a.dv; i += index_step()) {
        const int64_t row = i / a.dv, c = i % a.dv;
        real sum = 0;
        for (int64_t h = 0; h < a.heads; h++)
            sum += y[(row * a.heads + h) * a.dv + c];
        a.y[i] = sum / (real)a.heads;
    }
}
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
    /* of these sequences only: others' rows are not touched */
    const int64_t first = a->sequences ? a->q_offset.host[0] : 0;
    const int64_t rows = a->sequences ? a->q_offset.host[a->sequences] - first : 0;
    LAUNCH(d, average_heads, blocks_for(rows * a->dv), THREADS, 0, *a, first, rows, each.y);
}
/* Tensor cores multiply floats, except where the context requires strict fp32. */
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
    const int64_t pieces = pieces_of(a->dv), tiles = places(a->q_offset, a->sequences) * a->heads;
    LAUNCH(d, WHICH(attend), grid_of(tiles * pieces), SIDE * SIDE, 0, *a, pieces, tiles * pieces);
    if (a->map)
        LAUNCH(d, WHICH(write_map), grid_of(tiles), SIDE * SIDE, 0, *a, tiles);
}

/* ---- backward ---- */
/* With weights w, what dropout makes of them m w, dw = m dy v^T and D = sum of w dw of a query:
 * ds = w (dw - D), dq += scale ds k, dk += scale ds^T q, dv += (m w)^T dy. First D. */
template <bool drops> static __global__ void TILED sum_gradients(weft__attention a, real *all, int64_t tiles)
{
    SHARED(m, room);
    EACH_TILE(a, a.q_offset, a.heads, 1, tiles, t) {
        real w[EACH][EACH], dw[EACH][EACH], sum[EACH] = {};
        for (int64_t key = 0, keys = seen_by_tile(a, t); key < keys; key += TILE) {
            dots(m, from(queries_of(a, t), t.first), from(keys_of(a, t), key), w);
            dots(m, from(gradients_of(a, t), t.first), from(values_of(a, t), key), dw);
            weigh_again<false>(a, t, t.first, key, w);
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
            if (across() == 0 && query < t.queries)
                all[of_query(a, t, query)] = whole;
        }
    }
}
/* ds of a tile of queries by keys, or turned. */
template <bool turned, bool drops>
__device__ static void score_gradients(room &m, const weft__attention &a, const tile &t, const real *all,
                                       int64_t query, int64_t key, real (&ds)[EACH][EACH])
{
    real dw[EACH][EACH];
    const rows q = from(queries_of(a, t), query), k = from(keys_of(a, t), key);
    const rows dy = from(gradients_of(a, t), query), v = from(values_of(a, t), key);
    dots(m, turned ? k : q, turned ? q : k, ds);
    weigh_again<turned>(a, t, query, key, ds);
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
/* Rows `first` on of y, columns `column` on, += factor sum. */
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
    SHARED(m, room);
    EACH_TILE(a, a.q_offset, a.heads, pieces, tiles, t) {
        real ds[EACH][EACH], sum[EACH][EACH] = {};
        for (int64_t key = 0, keys = seen_by_tile(a, t); key < keys; key += TILE) {
            score_gradients<false, drops>(m, a, t, all, t.first, key, ds);
            add_products(m, ds, from(columns(keys_of(a, t), t.column), key), sees_all(a, t, t.first, key),
                         sum);
        }
        const rows q = queries_of(a, t);
        add_results(a.dq + (q.at - a.q), q, t, a.scale, sum);
    }
}
/* The first query that sees a key of the tile: it begins there to look. */
__device__ static int64_t first_query(const weft__attention &a, const tile &t)
{
    return weft__first_seeing(a.causal, t.first, t.queries, t.keys);
}
template <bool drops>
static __global__ void TILED gradient_of_keys(weft__attention a, const real *all, int64_t pieces,
                                              int64_t tiles)
{
    SHARED(m, room);
    EACH_TILE(a, a.k_offset, a.heads, pieces, tiles, t) {
        real ds[EACH][EACH], sum[EACH][EACH] = {};
        for (int64_t query = first_query(a, t); query < t.queries; query += TILE) {
            score_gradients<true, drops>(m, a, t, all, query, t.first, ds);
            add_products(m, ds, from(columns(queries_of(a, t), t.column), query),
                         sees_all(a, t, query, t.first), sum);
        }
        const rows k = keys_of(a, t);
        add_results(a.dk_ + (k.at - a.k), k, t, a.scale, sum);
    }
}
/* Shared values have one tile for all heads, which are added in their order. */
template <bool drops>
static __global__ void TILED gradient_of_values(weft__attention a, int64_t heads, int64_t pieces,
                                                int64_t tiles)
{
    SHARED(m, room);
    EACH_TILE(a, a.k_offset, heads, pieces, tiles, t) {
        real w[EACH][EACH], sum[EACH][EACH] = {};
        for (const int64_t end = heads == 1 ? a.heads : t.head + 1; t.head < end; t.head++)
            for (int64_t query = first_query(a, t); query < t.queries; query += TILE) {
                dots(m, from(keys_of(a, t), t.first), from(queries_of(a, t), query), w);
                weigh_again<true>(a, t, query, t.first, w);
                if (drops)
                    drop<true>(m, a, t, query, t.first, w);
                add_products(m, w, from(columns(gradients_of(a, t), t.column), query),
                             sees_all(a, t, query, t.first), sum);
            }
        t.head = heads == 1 ? 0 : t.head - 1;
        const rows v = values_of(a, t);
        add_results(a.dv_ + (v.at - a.v), v, t, 1, sum);
    }
}
/* all: of each query and head */
static void attend_back(weft__device *d, const weft__attention *a, real *all)
{
    const int64_t wide_k = pieces_of(a->dk), wide_v = pieces_of(a->dv),
                  heads = a->shared_values ? 1 : a->heads;
    const int64_t queries = places(a->q_offset, a->sequences) * a->heads,
                  key_places = places(a->k_offset, a->sequences);
    /* tiles */
    const int64_t keys = key_places * a->heads * wide_k, values = key_places * heads * wide_v;
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
