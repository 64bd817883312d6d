/* fast_attention_back.h - attention backward. With weights w, what dropout makes of them m w, dw = m dy v^T and D = dy . y, which is the
 * sum of w dw along a row: ds = scale w (dw - D), dq += ds k, dk += ds^T q, dv += (m w)^T dy.
 *
 * Weights come once more from the scores and their log sum exp, block by block. An element of dq is one chain over all keys in order,
 * those of dk and dv are chains over all queries (with shared values, of one head after the other): so it is free whether a task has a
 * whole head, or one task a block of queries for dq and another one a block of keys for dk and dv. The second way computes weights twice,
 * but has work for many threads where there are few sequences. */
#include "core/fast_attention.h"

typedef struct back_wants { bool q, kv; } back_wants;
typedef struct attention_back_job { attention_job j; division by; back_wants want; } attention_back_job;
typedef struct key_block { int64_t j, n; in_panels keys, values, rows; back_wants want; } key_block;    /* rows: of keys, for dq */

static real row_sum(const head *t, int64_t i)
{
    const real *y = t->a->y + result_at(t, i), *dy = t->a->dy + result_at(t, i);
    vec dot = v_set(0);
    EACH_VECTOR(c, t->a->dv)
        dot = v_fma(v_load_to(y + c, t->a->dv - c), v_load_to(dy + c, t->a->dv - c), dot);
    return v_sum(dot);
}
/* Scores s become m w, and dy v^T becomes ds. */
static void row_back(const head *t, int64_t i, const key_block *b, int64_t n, real *s, real *ds)
{
    const weft__attention *a = t->a;
    int64_t seen = seen_of(t, i, b->j, n);
    const real *kept = a->below ? drawn_row(t, i, b->j, seen) : NULL;
    real lse = a->lse[head_row(t, i)], all = t->room[DOTS][i];
    for (int64_t c = 0; c < seen; c += VLEN) {
        vec w = exp_low(v_load(s + c) - lse), dw = v_load(ds + c), k;
        if (kept) {
            k = v_load(kept + c);
            veci stays = (veci)(k != 0);
            dw = v_select(stays, k * dw, v_set(0));
            v_store(s + c, v_select(stays, k * w, v_set(0)));
        } else
            v_store(s + c, w);
        v_store(ds + c, a->scale * w * (dw - all));
    }
    if (seen && seen_by(t, i) == 1)              /* nothing to choose from: 0 exactly */
        ds[0] = 0;
    zero_unseen(seen, n, s), zero_unseen(seen, n, ds);
}
static void block_back(const head *t, int64_t i, int64_t m, const key_block *b, int64_t n)
{
    const weft__attention *a = t->a;
    real *w = t->room[SCORES], *ds = t->room[GRADS];
    in_lines q = rows_of_q(t, i), dy = { a->dy + result_at(t, i), a->heads * a->dv, false, all_seen };
    int64_t at_k = t->k - a->k + b->j * t->wide, at_v = t->v - a->v + b->j * t->wide_v, stairs = stairs_of(t, i, b->j);
    attention_product(m, up(n, NR), a->dk, q, b->keys, w, ROW, false, a->scale, stairs);
    attention_product(m, up(n, NR), a->dv, dy, b->values, ds, ROW, false, 1, stairs);
    for (int64_t r = 0; r < m; r++)
        row_back(t, i + r, b, n, w + r * ROW, ds + r * ROW);
    if (b->want.q)
        attention_product(m, a->dk, n, (in_lines){ ds, ROW, false, stairs }, b->rows, a->dq + (q.at - a->q), t->wide, true, 1, all_seen);
    if (b->want.kv && a->dk_)
        attention_product(n, a->dk, m, (in_lines){ ds, ROW, true, stairs }, as_rows(t, m <= FEW_ROWS, m, a->dk, q.at, q.line, OF_QUERIES),
                          a->dk_ + at_k, t->wide, true, 1, all_seen);
    if (b->want.kv && a->dv_)
        attention_product(n, a->dv, m, (in_lines){ w, ROW, true, stairs }, as_rows(t, m <= FEW_ROWS, m, a->dv, dy.at, dy.line, OF_RESULTS),
                          a->dv_ + at_v, t->wide_v, true, 1, all_seen);
}
/* Queries from .. to, and a block of keys. */
static void keys_back(const head *t, int64_t from, int64_t to, int64_t j, back_wants want)
{
    const weft__attention *a = t->a;
    key_block b = { .j = j, .n = least(KEYS, seen_by(t, to - 1) - j), .want = want };
    if (b.n <= 0)
        return;
    const real *k = t->k + j * t->wide;
    b.keys = as_columns(t, b.n, a->dk, k, t->wide, OF_KEYS_T);
    b.values = as_columns(t, b.n, a->dv, t->v + j * t->wide_v, t->wide_v, OF_VALUES);
    if (want.q)
        b.rows = as_rows(t, to - from <= FEW_ROWS, b.n, a->dk, k, t->wide, OF_KEYS);
    for (int64_t i = from, block = even_block(to - from, ROWS); i < to; i += block) {
        int64_t m = least(block, to - i), n = seen_of(t, i + m - 1, j, b.n);
        if (n)
            block_back(t, i, m, &b, n);
    }
}
static void head_back(const attention_back_job *w, const attention_piece *p, int64_t h)
{
    head t = head_of(&w->j, p->s, h);
    int64_t block = w->by == BY_QUERIES ? even_block(t.queries, QUERIES) : t.queries, i = w->by == BY_QUERIES ? p->part * block : 0;
    int64_t end = least(i + block, t.queries);
    for (int64_t r = i; r < end; r++)
        t.room[DOTS][r] = row_sum(&t, r);        /* D */
    for (int64_t j = w->by == BY_KEYS ? p->part * KEYS : 0, last = w->by == BY_KEYS ? least(j + KEYS, t.keys) : t.keys; end > i && j < last; j += KEYS)
        keys_back(&t, i, end, j, w->want);
}
static void attend_back_task(void *argument, int64_t task)
{
    const attention_back_job *w = argument;
    const attention_piece *p = &w->j.d.piece[task];
    for (int64_t h = 0; p->h == ALL_HEADS && h < w->j.a->heads; h++)
        head_back(w, p, h);
    if (p->h != ALL_HEADS)
        head_back(w, p, p->h);
    attention_lets_go(&w->j);
}
static void deal_back(weft__device *d, attention_back_job *w, division by, back_wants want)
{
    w->by = by, w->want = want;
    deal(d, w->j.a, by, &w->j.d, attend_back_task, w);
}
static void K(attention_back)(weft__device *d, const weft__attention *a)
{
    attention_back_job w = { .j = { .a = a, .back = true } };
    back_wants want = { a->dq, a->dk_ || a->dv_ };
    int64_t most = pieces_of(a, BY_QUERIES), n = pieces_of(a, BY_KEYS);
    if (!attention_scratch(d, &w.j, most > n ? most : n))
        return;
    if (want.q && want.kv && !uneven(a, BY_HEADS, weft__pool_threads(d->pool))) {
        deal_back(d, &w, BY_HEADS, want);
        return;
    }
    if (want.q)
        deal_back(d, &w, BY_QUERIES, (back_wants){ .q = true });
    if (want.kv)
        deal_back(d, &w, BY_KEYS, (back_wants){ .kv = true });
}
