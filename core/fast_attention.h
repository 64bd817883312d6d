/* fast_attention.h - attention by blocks of queries and blocks of keys, each head of each sequence apart; the matrix of scores is never
 * there, and the memory that a thread needs does not depend on how long sequences are.
 *
 * Blocks of keys begin at multiples of KEYS in their sequence, and a row of scores meets them in order: of those before it keeps the
 * largest score, the sum of exp(score - largest), and y times that sum. So a row's bits depend on its query and on its sequence's keys
 * alone; blocks of queries, and who computes which, are free. */
#ifndef WEFT_FAST_ATTENTION_H
#define WEFT_FAST_ATTENTION_H
#include "core/fast_attention_deal.h"
#include "core/fast_norm.h"
#include "core/fast_random.h"

enum {
    ROW = KEYS + NR,                             /* from row to row of a block of scores, which whole vectors may cross, and cache lines share out well */
    ROWS = MR * (MR > 8 ? 4 : 8)                 /* of a block of scores, at most */
};
enum { OF_KEYS_T, OF_VALUES, OF_KEYS, OF_QUERIES, OF_RESULTS, SCORES, GRADS, KEPT, MOST, SUM, DOTS, LEFT, ROOMS };  /* of a thread's scratch; _T: transposed */
typedef struct attention_job {
    const weft__attention *a; bool back;
    int parts;                                   /* of a number on matrix tiles (fast_gemm_tiles.h); 0: by vectors */
    dealt d; real *scratch; int64_t at[ROOMS + 1];   /* where each room begins; the last: of the next thread */
} attention_job;
typedef struct head {                            /* of one sequence */
    const weft__attention *a; int64_t h, row, queries, first, keys;          /* row, first: of query 0 and of key 0 */
    int64_t wide, wide_v;                        /* steps from row to row: of queries and keys, of values */
    const real *k, *v; real *room[ROOMS];
    int parts;
} head;

static head head_of(const attention_job *j, int64_t s, int64_t h)
{
    const weft__attention *a = j->a;
    head t = { .a = a, .h = h, .row = a->q_offset.host[s], .first = a->k_offset.host[s], .parts = j->parts };
    t.wide = a->heads * a->dk, t.wide_v = value_width(a);
    t.queries = a->q_offset.host[s + 1] - t.row, t.keys = a->k_offset.host[s + 1] - t.first;
    t.k = a->k + t.first * t.wide + h * a->dk, t.v = a->v + t.first * t.wide_v + (a->shared_values ? 0 : h * a->dv);
    for (int i = 0; i < ROOMS; i++)
        t.room[i] = j->scratch + weft__worker() * j->at[ROOMS] + j->at[i];
    return t;
}
static inline int64_t seen_by(const head *t, int64_t i) { return weft__keys_seen(t->a->causal, i, t->queries, t->keys); }
/* Query i sees that many of the keys from j on, and each query after it one more, if there are so many. */
static inline int64_t stairs_of(const head *t, int64_t i, int64_t j)
{
    return t->a->causal ? i - j + (t->a->causal == 1 ? 1 : t->keys - t->queries + (t->a->causal == 2)) : all_seen;
}
/* Of the n keys from j on. */
static inline int64_t seen_of(const head *t, int64_t i, int64_t j, int64_t n)
{
    int64_t seen = seen_by(t, i) - j;
    return seen < 0 ? 0 : least(seen, n);
}
static inline in_lines rows_of_q(const head *t, int64_t i)
{
    return (in_lines){ t->a->q + (t->row + i) * t->wide + t->h * t->a->dk, t->wide, false, all_seen };
}
/* Where query i's row of y, and of its gradient, begins; and its number among all heads' rows. */
static inline int64_t head_row(const head *t, int64_t i)  { return (t->row + i) * t->a->heads + t->h; }
static inline int64_t result_at(const head *t, int64_t i) { return head_row(t, i) * t->a->dv; }

/* n rows of `width` numbers as columns of the right operand, or as its rows, in that room. */
static in_panels as_columns(const head *t, int64_t n, int64_t width, const real *x, int64_t line, int room)
{
#ifdef TILES
    if (t->parts)
        return packed_for_tiles(t->parts, (view){ x, 1, line }, width, n, t->room[room], t->room[LEFT]);
#endif
    return packed_lines(n, width, x, line, t->room[room]);
}
static in_panels as_rows(const head *t, bool few, int64_t n, int64_t width, const real *x, int64_t line, int room)
{
#ifdef TILES
    if (t->parts)
        return packed_for_tiles(t->parts, (view){ x, line, 1 }, n, width, t->room[room], t->room[LEFT]);
#endif
    return packed_rows(few, n, width, x, line, t->room[room]);
}

static inline void zero_unseen(int64_t seen, int64_t n, real *s)
{
    if (seen < n)
        memset(s + seen, 0, (size_t)(n - seen) * sizeof *s);
}
/* What dropout makes of 1, for query i and n keys from j on. */
static const real *drawn_row(const head *t, int64_t i, int64_t j, int64_t n)
{
    const weft__attention *a = t->a;
    const uint64_t key = weft__head_key(a->mask_key, t->h);
    for (int64_t c = 0; c < n; c += DRAWS)
        draw_kept(key, a->id[t->row + i], (int32_t)i, j + c, n - c, a->below, a->kept, t->room[KEPT] + c);
    return t->room[KEPT];
}
/* ---- softmax, some rows at a time: what one row waits for the others fill ---- */
/* The largest of n scores that query i sees from key j on and of `most`; up to whole vectors the others become -infinity. */
static real top_of_row(const head *t, int64_t i, int64_t j, int64_t n, real *s, real most)
{
    int64_t seen = seen_of(t, i, j, n), whole = up(seen, VLEN);
    vec top = v_set(most);
    for (int64_t c = seen; c < whole; c++)
        s[c] = nothing;
    for (int64_t c = 0; c < whole; c += VLEN)
        top = v_max(v_load(s + c), top);         /* NaN is left for the sum */
    return v_largest(top);
}
/* Scores become exp(score - base), 0 for the keys that are not seen; the result is their sum. */
static real weigh_row(const head *t, int64_t i, int64_t j, int64_t n, real *s, real base)
{
    int64_t seen = seen_of(t, i, j, n), whole = up(seen, VLEN);
    vec all = v_set(0);
    for (int64_t c = 0; c < whole; c += VLEN) {
        vec e = exp_low(v_load(s + c) - base);
        v_store(s + c, e), all += e;
    }
    zero_unseen(whole, n, s);
    if (t->a->below)
        keep(seen, drawn_row(t, i, j, seen), s, s);
    return v_sum(all);
}
/* For m rows: fade is what the sums and y must be multiplied by, as they were made for another `most`. */
static void weigh_rows(const head *t, int64_t i, int64_t m, int64_t j, int64_t n, real *most, real *sum, real *fade)
{
    real *s = t->room[SCORES], base[ROWS + VLEN];
    for (int64_t r = 0; r < m; r++)
        base[r] = top_of_row(t, i + r, j, n, s + r * ROW, most[r]);
    EACH_VECTOR(r, m) {
        vec before = v_load_to(most + r, m - r), now = v_load_to(base + r, m - r), from = v_select((veci)(now == nothing), v_set(0), now);
        v_store_to(most + r, now, m - r);
        v_store(base + r, from), v_store(fade + r, v_select((veci)(before == now), v_set(1), exp_low(before - from)));
    }
    for (int64_t r = 0; r < m; r++)
        sum[r] = sum[r] * fade[r] + weigh_row(t, i + r, j, n, s + r * ROW, base[r]);
}
static void attend_block(const head *t, int64_t i, int64_t m, int64_t j, int64_t n, in_panels keys, in_panels values, real *most, real *sum)
{
    const weft__attention *a = t->a;
    real *s = t->room[SCORES], *y = a->y + result_at(t, i), fade[ROWS + VLEN];
    int64_t ldy = a->heads * a->dv, stairs = stairs_of(t, i, j);
    attention_product(m, up(n, NR), a->dk, rows_of_q(t, i), keys, s, ROW, false, a->scale, stairs);
    weigh_rows(t, i, m, j, n, most, sum, fade);
    for (int64_t r = 0; j && r < m; r++)
        if (fade[r] != 1)
            scaled(a->dv, fade[r], y + r * ldy);
    attention_product(m, a->dv, n, (in_lines){ s, ROW, false, stairs }, values, y, ldy, j > 0, 1, all_seen);
}
static void attend_keys(const head *t, int64_t i, int64_t m, int64_t j, int64_t n)
{
    in_panels keys = as_columns(t, n, t->a->dk, t->k + j * t->wide, t->wide, OF_KEYS_T);
    in_panels values = as_rows(t, m <= FEW_ROWS, n, t->a->dv, t->v + j * t->wide_v, t->wide_v, OF_VALUES);
    for (int64_t r = 0, block = even_block(m, ROWS); r < m; r += block) {
        int64_t rows = least(block, m - r), seen = seen_of(t, i + r + rows - 1, j, n);          /* the last query sees most */
        if (seen)
            attend_block(t, i + r, rows, j, seen, keys, values, t->room[MOST] + r, t->room[SUM] + r);
    }
}
static void finish_row(const head *t, int64_t i, real lse, real share)
{
    real *y = t->a->y + result_at(t, i);
    bool seen = seen_by(t, i);
    t->a->lse[head_row(t, i)] = seen ? lse : nothing;
    if (seen)
        scaled(t->a->dv, share, y);
    else
        memset(y, 0, (size_t)t->a->dv * sizeof *y);
}
static void finish_rows(const head *t, int64_t i, int64_t m)
{
    for (int64_t r = 0; r < m; r += VLEN) {
        real lse[VLEN], share[VLEN];
        vec sum = v_load_to(t->room[SUM] + r, m - r);
        v_store(lse, v_load_to(t->room[MOST] + r, m - r) + v_log(sum)), v_store(share, 1 / sum);
        for (int64_t l = 0; l < least(VLEN, m - r); l++)
            finish_row(t, i + r + l, lse[l], share[l]);
    }
}

/* ---- the map: weights from the scores and their log sum exp, 0 for the keys that are not seen ---- */
static void weigh_again(const head *t, int64_t i, int64_t n, int64_t seen, real *s)
{
    real lse = t->a->lse[head_row(t, i)];
    for (int64_t c = 0; c < seen; c += VLEN)
        v_store(s + c, exp_low(v_load(s + c) - lse));
    zero_unseen(seen, n, s);
}
static void write_weights(const head *t, int64_t i, int64_t m, int64_t j, int64_t n)
{
    const weft__attention *a = t->a;
    in_panels keys = as_columns(t, n, a->dk, t->k + j * t->wide, t->wide, OF_KEYS_T);
    for (int64_t r = 0; r < m; r++) {
        real *s = t->room[SCORES], *map = a->map + (a->map_offset.host[t->row + i + r] + j) * a->heads + t->h;
        int64_t seen = seen_of(t, i + r, j, n);
        attention_product(1, up(n, NR), a->dk, rows_of_q(t, i + r), keys, s, ROW, false, a->scale, all_seen);
        weigh_again(t, i + r, n, seen, s);
        if (a->below)
            keep(seen, drawn_row(t, i + r, j, seen), s, s);
        for (int64_t c = 0; c < n; c++)
            map[c * a->heads] = s[c];
    }
}

/* ---- tasks ---- */
static void attention_lets_go(const attention_job *j)        /* of the thread's tiles */
{
    (void)j;
#ifdef TILES
    if (j->parts)
        tiles_release();
#endif
}
/* Numbers of scratch for a right operand of that size. */
static int64_t attention_room(const attention_job *j, int64_t rows, int64_t width)
{
    return j->parts ? up(rows, 32) * up(width, 32) * j->parts / 2 : rows * up(width, NR);
}
static void attend_task(void *argument, int64_t task)
{
    const attention_job *job = argument;
    const attention_piece *p = &job->d.piece[task];
    head t = head_of(job, p->s, p->h);
    int64_t block = even_block(t.queries, QUERIES), i = p->part * block, m = least(block, t.queries - i), n = seen_by(&t, i + m - 1);
    for (int64_t r = 0; r < m; r++)
        t.room[MOST][r] = nothing, t.room[SUM][r] = 0;
    for (int64_t j = 0; j < n; j += KEYS)
        attend_keys(&t, i, m, j, least(KEYS, n - j));
    finish_rows(&t, i, m);
    for (int64_t j = 0; t.a->map && j < t.keys; j += KEYS)
        write_weights(&t, i, m, j, least(KEYS, t.keys - j));
    attention_lets_go(job);
}
/* Scratch for the tasks' list and every thread. */
static bool attention_scratch(weft__device *d, attention_job *j, int64_t pieces)
{
    const weft__attention *a = j->a;
    int64_t threads = weft__pool_threads(d->pool), longest = 0, back = j->back;
    for (int64_t s = 0; s < a->sequences; s++)
        longest = a->q_offset.host[s + 1] - a->q_offset.host[s] > longest ? a->q_offset.host[s + 1] - a->q_offset.host[s] : longest;
    j->parts = attention_parts(d, a);
    const int64_t keys = attention_room(j, KEYS, a->dk), values = attention_room(j, KEYS, a->dv), left = j->parts * up(ROWS, 32) * 512 / 2;
    const int64_t sizes[ROOMS] = { keys, values, back * keys, back * attention_room(j, ROWS, a->dk), back * attention_room(j, ROWS, a->dv),
                                   ROWS * ROW, back * ROWS * ROW, KEYS, QUERIES, QUERIES, back * longest, left };
    for (int i = 0; i < ROOMS; i++)
        j->at[i + 1] = j->at[i] + up(sizes[i] + VLEN, 16);
    int64_t list = up(pieces * (int64_t)sizeof(attention_piece), 64);
    char *scratch = weft__scratch(d, (size_t)list + (size_t)(j->at[ROOMS] * threads) * sizeof(real));
    if (scratch)
        j->d.piece = (attention_piece *)scratch, j->scratch = (real *)(scratch + list);
    return scratch;
}
static void K(attention)(weft__device *d, const weft__attention *a)
{
    attention_job j = { .a = a };
    if (attention_scratch(d, &j, pieces_of(a, BY_QUERIES)))
        deal(d, a, BY_QUERIES, &j.d, attend_task, &j);
}
#endif
