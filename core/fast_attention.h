/* fast_attention.h - attention by products over blocks of queries, each head of each sequence apart: so a sequence's bits depend
 * on itself only. A task has the scores of one block of queries with all keys at a time; the whole score matrix is never there.
 * Forward, tasks are blocks; backward, the blocks' gradients of keys and values add up, so tasks are heads (with shared values
 * sequences). */
#include "core/fast_gemm.h"
#include "core/fast_norm.h"
#include "core/fast_random.h"

enum { QUERIES = MC };                           /* of a block */
typedef struct attention_job {
    const weft__attention *a; int64_t blocks;    /* blocks: of the longest sequence */
    real *scratch; int64_t most, each;           /* most: keys of a sequence, in vectors; each: scratch of a thread */
} attention_job;
typedef struct head {                            /* of one sequence */
    const weft__attention *a; int64_t h, row, queries, first, keys;          /* row, first: of query 0 and of key 0 */
    int64_t wide, wide_v;                        /* steps from row to row: of queries and keys, of values */
    const real *k, *v; real *scores, *grads, *kept, *pack;   /* kept: of a row, what dropout makes of 1 */
} head;

/* c [m, n] (+)= a [m, k] b [k, n] */
static void multiply_views(const head *t, view a, view b, real *c, int64_t c_row, int64_t m, int64_t n, int64_t k, bool add)
{
    gemm_job w = { .a = a, .b = b, .c_row = c_row, .c_column = 1, .k = k, .add = add, .of_a = up((MC + VLEN) * KC, 16) };
    if (k > 0)
        block(&w, a.at, b.at, c, m, n, 0, t->pack);
    for (int64_t i = 0; k == 0 && !add && i < m; i++)
        memset(c + i * c_row, 0, (size_t)n * sizeof *c);
}
static int64_t scratch_reals(int64_t most, int matrices)
{
    return up(matrices * QUERIES * most + up(most, DRAWS) + (MC + NC + 2 * VLEN) * KC + 16, 16);
}

static head head_of(const attention_job *j, int64_t s, int64_t h, int matrices)
{
    const weft__attention *a = j->a;
    head t = { .a = a, .h = h, .row = a->q_offset.host[s], .first = a->k_offset.host[s] };
    t.wide = a->heads * a->dk, t.wide_v = value_width(a);
    t.queries = a->q_offset.host[s + 1] - t.row, t.keys = a->k_offset.host[s + 1] - t.first;
    t.k = a->k + t.first * t.wide + h * a->dk, t.v = a->v + t.first * t.wide_v + (a->shared_values ? 0 : h * a->dv);
    t.scores = j->scratch + weft__worker() * j->each, t.grads = t.scores + (matrices - 1) * QUERIES * j->most;
    t.kept = t.scores + matrices * QUERIES * j->most, t.pack = t.kept + up(j->most, DRAWS);
    return t;
}
static inline int64_t seen_by(const head *t, int64_t i) { return weft__keys_seen(t->a->causal, i, t->queries, t->keys); }
static inline view rows_of_q(const head *t, int64_t i)
{
    return (view){ t->a->q + (t->row + i) * t->wide + t->h * t->a->dk, t->wide, 1 };
}
/* Where query i's row of y, and of its gradient, begins. */
static inline int64_t result_at(const head *t, int64_t i) { return ((t->row + i) * t->a->heads + t->h) * t->a->dv; }

static void scale_row(int64_t n, real factor, real *x)
{
    EACH_VECTOR(i, n)
        v_store_to(x + i, factor * v_load_to(x + i, n - i), n - i);
}
/* Of query i's weights, of their gradients x. */
static void draw_row(const head *t, int64_t i)
{
    const weft__attention *a = t->a;
    const uint64_t key = weft__head_key(a->mask_key, t->h);
    for (int64_t j = 0, seen = seen_by(t, i); j < seen; j += DRAWS)
        draw_kept(key, a->id[t->row + i], (int32_t)i, j, a->below, a->kept, t->kept + j);
}
static void drop_row(const head *t, int64_t i, real *x) { keep(seen_by(t, i), t->kept, x, x); }
/* Scores to weights; 0 for the keys that are not seen. */
static void weigh_row(const head *t, int64_t i, int64_t n, real *s)
{
    int64_t seen = seen_by(t, i), row = (t->row + i) * t->a->heads + t->h;
    memset(s + seen, 0, (size_t)(n - seen) * sizeof *s);
    t->a->lse[row] = nothing;
    if (!seen)
        return;
    scale_row(seen, t->a->scale, s);
    real most = most_of(seen, NULL, s), sum = sum_of_exp(seen, NULL, s, most, s);
    scale_row(seen, 1 / sum, s);
    t->a->lse[row] = most + log(sum);
}
static void write_map_row(const head *t, int64_t i, int64_t n, const real *s)
{
    int64_t heads = t->a->heads;
    real *map = t->a->map + t->a->map_offset.host[t->row + i] * heads + t->h;
    for (int64_t j = 0; j < t->keys; j++)
        map[j * heads] = j < n ? s[j] : 0;
}
static void attend_block(const head *t, int64_t i, int64_t m)
{
    const weft__attention *a = t->a;
    int64_t n = seen_by(t, i + m - 1), ldy = a->heads * a->dv;   /* the last query sees most */
    multiply_views(t, rows_of_q(t, i), (view){ t->k, 1, t->wide }, t->scores, n, m, n, a->dk, false);
    for (int64_t r = 0; r < m; r++) {
        weigh_row(t, i + r, n, t->scores + r * n);
        if (a->below) {
            draw_row(t, i + r);
            drop_row(t, i + r, t->scores + r * n);
        }
        if (a->map)
            write_map_row(t, i + r, n, t->scores + r * n);
    }
    multiply_views(t, (view){ t->scores, n, 1 }, (view){ t->v, t->wide_v, 1 }, a->y + result_at(t, i), ldy, m, a->dv, n, false);
}
static void attend_task(void *argument, int64_t task)
{
    const attention_job *j = argument;
    int64_t pair = task / j->blocks, i = task % j->blocks * QUERIES;
    head t = head_of(j, pair / j->a->heads, pair % j->a->heads, 1);
    if (i < t.queries)
        attend_block(&t, i, least(QUERIES, t.queries - i));
}
/* Scratch for every thread: so many matrices of scores and the packed panels. */
static bool attention_scratch(weft__device *d, attention_job *j, int matrices)
{
    int64_t threads = weft__pool_threads(d->pool), queries = 0;
    for (int64_t s = 0; s < j->a->sequences; s++) {
        int64_t keys = j->a->k_offset.host[s + 1] - j->a->k_offset.host[s], n = j->a->q_offset.host[s + 1] - j->a->q_offset.host[s];
        j->most = keys > j->most ? keys : j->most, queries = n > queries ? n : queries;
    }
    j->most = up(j->most, 16), j->blocks = (queries + QUERIES - 1) / QUERIES;
    j->each = scratch_reals(j->most, matrices);
    j->scratch = weft__scratch(d, (size_t)(j->each * threads) * sizeof(real));
    return j->scratch;
}
static void K(attention)(weft__device *d, const weft__attention *a)
{
    attention_job j = { .a = a };
    if (attention_scratch(d, &j, 1))
        weft__parallel(d, a->sequences * a->heads * j.blocks, attend_task, &j);
    else
        plain_attention(a);
}

/* ---- backward: with weights w, what dropout makes of them m w, dw = m dy v^T and D = sum of w dw along a row:
 *      ds = scale w (dw - D), dq += ds k, dk += ds^T q, dv += (m w)^T dy ---- */
static void weigh_row_again(const head *t, int64_t i, int64_t n, real *s)
{
    int64_t seen = seen_by(t, i);
    real lse = t->a->lse[(t->row + i) * t->a->heads + t->h];
    scale_row(seen, t->a->scale, s);             /* rounded as forward: the weight of a single key is 1 exactly */
    EACH_VECTOR(c, seen)
        v_store_to(s + c, v_exp(v_load_to(s + c, seen - c) - lse), seen - c);
    memset(s + seen, 0, (size_t)(n - seen) * sizeof *s);
}
static void score_gradients(const head *t, int64_t n, const real *w, real *ds)   /* ds comes in as dw */
{
    vec dot = v_set(0);
    EACH_VECTOR(c, n)
        dot = v_fma(v_load_to(w + c, n - c), v_load_to(ds + c, n - c), dot);
    real all = v_sum(dot);
    EACH_VECTOR(c, n)
        v_store_to(ds + c, t->a->scale * v_load_to(w + c, n - c) * (v_load_to(ds + c, n - c) - all), n - c);
}
static void attend_block_back(const head *t, int64_t i, int64_t m)
{
    const weft__attention *a = t->a;
    int64_t n = seen_by(t, i + m - 1);
    real *w = t->scores, *ds = t->grads;
    view q = rows_of_q(t, i), dy = { a->dy + result_at(t, i), a->heads * a->dv, 1 };
    multiply_views(t, q, (view){ t->k, 1, t->wide }, w, n, m, n, a->dk, false);
    multiply_views(t, dy, (view){ t->v, 1, t->wide_v }, ds, n, m, n, a->dv, false);
    for (int64_t r = 0; r < m; r++) {
        weigh_row_again(t, i + r, n, w + r * n);
        if (a->below) {
            draw_row(t, i + r);
            drop_row(t, i + r, ds + r * n);
        }
        score_gradients(t, n, w + r * n, ds + r * n);
        if (a->below)
            drop_row(t, i + r, w + r * n);
    }
    if (a->dq)
        multiply_views(t, (view){ ds, n, 1 }, (view){ t->k, t->wide, 1 }, a->dq + (q.at - a->q), t->wide, m, a->dk, n, true);
    if (a->dk_)
        multiply_views(t, (view){ ds, 1, n }, q, a->dk_ + (t->k - a->k), t->wide, n, a->dk, m, true);
    if (a->dv_)
        multiply_views(t, (view){ w, 1, n }, dy, a->dv_ + (t->v - a->v), t->wide_v, n, a->dv, m, true);
}
static bool heads_share(const weft__attention *a) { return a->shared_values && a->dv_; }
static void attend_back_task(void *argument, int64_t task)
{
    const attention_job *j = argument;
    int64_t heads = heads_share(j->a) ? j->a->heads : 1, first = task * heads;
    for (int64_t pair = first; pair < first + heads; pair++) {
        head t = head_of(j, pair / j->a->heads, pair % j->a->heads, 2);
        for (int64_t i = 0; i < t.queries; i += QUERIES)
            attend_block_back(&t, i, least(QUERIES, t.queries - i));
    }
}
static void K(attention_back)(weft__device *d, const weft__attention *a)
{
    attention_job j = { .a = a };
    if (attention_scratch(d, &j, 2))
        weft__parallel(d, a->sequences * (heads_share(a) ? 1 : a->heads), attend_back_task, &j);
    else
        plain_attention_back(a);
}
