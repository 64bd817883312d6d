/* join.c - operators between two batches: join appends sequence s of b to that of a, split is the inverse,
 * and pairs lists each query with each key. They move rows by an index from the host, one launch per pass. */
#include "autograd/op.h"
#include "core/shared/attention.h"

static weft_tensor *pair_failed(weft_tensor *a, weft_tensor *b, const char *function)
{
    weft *w = weft__context(LIST(a, b));
    const char *error = weft__handle_error(w, a) ? weft__handle_error(w, a) : weft__handle_error(w, b);
    if (error)
        weft__fail(w, WEFT_EARG, "%s: a tensor %s", function, error);
    else if (!a->f.batch || !b->f.batch)
        weft__fail(w, WEFT_ESHAPE, "%s: %s; expected two ragged tensors", function,
                   WEFT__TEXT(a->f.batch ? &b->f : &a->f));
    else
        weft__fail(w, WEFT_ESHAPE, "%s: %lld and %lld sequences; expected equal numbers", function,
                   (long long)a->f.batch->n, (long long)b->f.batch->n);
    return &w->nil;
}

static bool batches_fit(const weft_tensor *a, const weft_tensor *b)
{
    return a && !weft__handle_error(a->w, a) && !weft__handle_error(a->w, b) && a->f.batch && b->f.batch &&
           a->f.batch->n == b->f.batch->n;
}

static weft_tensor *concat_rows(weft_tensor *x) { return weft_plain(weft_to_layout(x, WEFT_CONCAT)); }

/* Writes n row numbers from `from` on. Returns the position after them. */
static int32_t *write_rows(int32_t *out, int64_t from, int32_t n)
{
    for (int32_t t = 0; t < n; t++)
        *out++ = (int32_t)from + t;
    return out;
}

/* ---- join: rows of [a; b] in the order of the joined batch ---- */
/* Writes the row numbers, and to `place` the position of each row of [a; b] among them. Returns the row
 * numbers as a ragged tensor of ints. */
static weft_tensor *join_map(weft *w, const weft_batch *a, const weft_batch *b, int32_t *rows, int32_t *place)
{
    int32_t *len = weft__take(w, WEFT__ARENA_CALLS, a->n * (int64_t)sizeof *len), *next = rows;
    if (!len || !rows || !place)
        return &w->nil;
    for (int64_t s = 0; s < a->n; s++) {
        len[s] = a->len[s] + b->len[s];
        next = write_rows(next, a->offset.host[s], a->len[s]);
        next = write_rows(next, a->tokens + b->offset.host[s], b->len[s]);
    }
    weft_lengths l = { .n = a->n, .len = len, .id = a->own_ids ? a->id : NULL };
    weft_tensor *from = weft_ragged_ints(w, rows, &l);
    for (int64_t i = 0; !w->status && i < a->tokens + b->tokens; i++)
        place[rows[i]] = (int32_t)i;
    return from;
}

/* Inputs: a, b, the row of [a; b] for each joined row, and the joined row for each row of [a; b]. */
enum { A, B, FROM, TO };
static bool join_shape(weft_call *c)
{
    const weft__form *from = &c->x[FROM]->f;
    weft_op_like(c->y[0], c->x[A]);
    weft__copy_layout(&c->y[0]->f, from);
    return true;
}
/* Returns the block that copies the rows of input i to the joined rows, or back. */
static weft__block_copy rows_of(const weft_call *c, int i, bool back)
{
    const int64_t rows = c->x[i]->f.size[0], width = rows ? count(c->x[i]) / rows : 0;
    const int32_t *place = I(c, TO) + (i == B ? c->x[A]->f.size[0] : 0);
    return (weft__block_copy){ .rows = rows, .width = width, .ldx = width, .ldy = width,
                               .from = back ? place : NULL, .to = back ? NULL : place };
}
static void join_run(weft_call *c)
{
    weft__blocks all = { 0 };
    for (int i = A; i <= B; i++) {
        weft__block_copy one = rows_of(c, i, false);
        one.x = X(c, i), one.y = Y(c, 0);
        weft__add_block(c, &all, one);
    }
    weft__run_blocks(c, &all);
}
static void join_fused(const weft_call *c)
{
    weft__blocks all = { 0 };
    for (int i = B; i >= A; i--) {
        weft__block_copy one = rows_of(c, i, true);
        one.x = weft_op_dy(c, 0), one.y = weft__dx_whole(c, i, &one.add);
        if (one.y)
            weft__add_block(c, &all, one);
    }
    weft__run_blocks(c, &all);
}
static weft_tensor *by_index(weft_tensor *a, weft_tensor *b, weft_tensor *from)
{
    return weft_index_select(weft_concat((weft_tensor *[]){ concat_rows(a), concat_rows(b) }, 2, 0), from);
}
static void join_composed(const weft_call *c, weft_tensor **y)
{
    y[0] = by_index(c->x[A], c->x[B], c->x[FROM]);
}
static const weft_op op_join = { .name = "concat_sequences",
                                 .layout = WEFT_CONCAT,
                                 .ragged_apart = true,
                                 .moves = true,
                                 .unread = 1 << A | 1 << B,
                                 .shape = join_shape,
                                 .forward = join_run,
                                 .fused = join_fused,
                                 .composed = join_composed };

/* Returns whether both are reals of one shape except for the number of rows. For other tensors by_index does
 * the work or fails. */
static bool are_joinable(const weft_tensor *a, const weft_tensor *b)
{
    weft__form f = b->f;
    weft__copy_layout(&f, &a->f);
    return a->f.type == WEFT_REAL && a->f.rank == f.rank && weft__forms_equal(&a->f, &f);
}
weft_tensor *weft_concat_sequences(weft_tensor *a, weft_tensor *b)
{
    if (!batches_fit(a, b))
        return pair_failed(a, b, "concat_sequences");
    weft *w = a->w;
    w->running = "concat_sequences";
    const int64_t n = a->f.batch->tokens + b->f.batch->tokens;
    int32_t *rows = weft__take(w, WEFT__ARENA_CALLS, n * (int64_t)sizeof *rows),
            *place = weft__take(w, WEFT__ARENA_CALLS, n * (int64_t)sizeof *place);
    weft_tensor *from = join_map(w, a->f.batch, b->f.batch, rows, place);
    if (!are_joinable(a, b))
        return by_index(a, b, from);
    return APPLY(&op_join, a, b, from, weft_ints(w, place, 1, &n));
}

/* ---- split ---- */
static weft_tensor *split_index(weft *w, const weft_batch *whole, const weft_lengths *first, bool second)
{
    int32_t *len = weft__take(w, WEFT__ARENA_CALLS, whole->n * (int64_t)sizeof *len);
    int32_t *rows = weft__take(w, WEFT__ARENA_CALLS, whole->tokens * (int64_t)sizeof *rows), *next = rows;
    if (!len || !rows)
        return &w->nil;
    for (int64_t s = 0; s < whole->n; s++) {
        int32_t from = whole->offset.host[s] + (second ? first->len[s] : 0);
        len[s] = second ? whole->len[s] - first->len[s] : first->len[s];
        next = write_rows(next, from, len[s]);
    }
    return weft_ragged_ints(
        w, rows, &(weft_lengths){ .n = whole->n, .len = len, .id = whole->own_ids ? whole->id : NULL });
}

static bool parts_fit(weft_tensor *x, const weft_lengths *first)
{
    weft *w = x ? x->w : weft__no_context();
    if (!x || weft__handle_error(w, x) || !x->f.batch || !first || first->n != x->f.batch->n ||
        (first->n && !first->len)) {
        weft__failed(x, WEFT_EARG, "split_sequences",
                     "%lld lengths; expected a ragged tensor, and a length for each of its %lld sequences",
                     (long long)(first ? first->n : 0), (long long)weft_lengths_of(x).n);
        return false;
    }
    for (int64_t s = 0; s < first->n; s++)
        if (first->len[s] < 0 || first->len[s] > x->f.batch->len[s]) {
            weft__fail(w, WEFT_EARG,
                       "split_sequences: the first part of sequence %lld has length %d; expected 0 .. %d",
                       (long long)s, first->len[s], x->f.batch->len[s]);
            return false;
        }
    return !w->status;
}

void weft_split_sequences(weft_tensor *joined, const weft_lengths *first, weft_tensor **a, weft_tensor **b)
{
    weft *w = joined ? joined->w : weft__no_context();
    bool ok = parts_fit(joined, first);
    w->running = "split_sequences";
    weft_tensor *rows = ok ? concat_rows(joined) : &w->nil;
    if (a)
        *a = ok ? weft_index_select(rows, split_index(w, joined->f.batch, first, false)) : &w->nil;
    if (b)
        *b = ok ? weft_index_select(rows, split_index(w, joined->f.batch, first, true)) : &w->nil;
}

/* ---- pairs: one sequence for each query row, one token for each of its keys ---- */
/* Rows of k for each pair. A query has its visible keys; with `unseen` all keys, the others as -1. */
typedef struct pair_rows { int causal; bool unseen; int32_t *len, *row; } pair_rows;
static void write_pairs(const weft_batch *q, const weft_batch *k, pair_rows p)
{
    int32_t seen_before = 0;
    for (int64_t s = 0; s < q->n; s++)
        for (int32_t i = 0; i < q->len[s]; i++) {
            const int32_t seen = (int32_t)weft__keys_seen(p.causal, i, q->len[s], k->len[s]),
                          n = p.unseen ? k->len[s] : seen;
            for (int32_t j = 0; j < n; j++)
                *p.row++ = !p.unseen ? k->offset.host[s] + j : j < seen ? seen_before + j : -1;
            *p.len++ = n, seen_before += seen;
        }
}
static weft_tensor *pair_ints(weft *w, const weft_batch *q, const weft_batch *k, int causal, bool unseen)
{
    int64_t pairs = 0;
    for (int64_t s = 0; s < q->n; s++)
        pairs += (int64_t)q->len[s] * k->len[s];
    int32_t *len = weft__take(w, WEFT__ARENA_CALLS, q->tokens * (int64_t)sizeof *len);
    int32_t *row = pairs < INT32_MAX ? weft__take(w, WEFT__ARENA_CALLS, pairs * (int64_t)sizeof *row) : NULL;
    if (pairs >= INT32_MAX)
        weft__fail(w, WEFT_ESHAPE, "pairs: %lld pairs of a query and a key; expected fewer than 2^31",
                   (long long)pairs);
    if (!len || !row)
        return &w->nil;
    write_pairs(q, k, (pair_rows){ causal, unseen, len, row });
    return weft_ragged_ints(w, row, &(weft_lengths){ .n = q->tokens, .len = len });
}

void weft__visible_pairs(weft_tensor *q, weft_tensor *k, int causal, weft_tensor **q_of_pair,
                         weft_tensor **k_of_pair)
{
    bool ok = batches_fit(q, k);
    if (ok)
        q->w->running = "pairs";
    weft_tensor *nil = ok ? &q->w->nil : pair_failed(q, k, "pairs");
    weft_tensor *index = ok ? pair_ints(q->w, q->f.batch, k->f.batch, causal, false) : nil;
    if (k_of_pair)
        *k_of_pair = ok ? weft_index_select(concat_rows(k), index) : nil;
    if (q_of_pair)
        *q_of_pair = ok ? weft_broadcast_to_tokens(concat_rows(q), index) : nil;
}

void weft_pairs(weft_tensor *q, weft_tensor *k, weft_tensor **q_of_pair, weft_tensor **k_of_pair)
{
    weft__visible_pairs(q, k, 0, q_of_pair, k_of_pair);
}

weft_tensor *weft__all_pairs(weft_tensor *seen, const weft_tensor *q, const weft_tensor *k, int causal)
{
    if (!causal || !weft_ok(seen->w))
        return seen;
    weft_tensor *index = pair_ints(seen->w, q->f.batch, k->f.batch, causal, true);
    return weft_index_select(weft_plain(weft_to_layout(seen, WEFT_CONCAT)), index);
}
