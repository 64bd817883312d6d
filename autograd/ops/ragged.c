/* ragged.c - converts between the layouts of a batch (pack, pad, arrange), and between sequences and their
 * tokens (broadcast to tokens, pool). All of it is the batch's gather, or kernels over runs of rows. */
#include "autograd/op.h"

static bool is_ragged(const weft_tensor *x) { return x && !weft__handle_error(x->w, x) && x->f.batch; }

/* ---- arrange ---- */
weft_tensor *weft_to_layout(weft_tensor *x, weft_layout layout)
{
    if (!is_ragged(x) || (layout != WEFT_PACKED && layout != WEFT_CONCAT))
        return weft__failed(x, WEFT_EARG, "to_layout",
                            "layout %d; expected a ragged tensor, and packed or concat "
                            "(weft_pad_packed_sequence pads, weft_to_rows places)",
                            (int)layout);
    weft__form to = weft__as_layout(x->f, x->f.batch, layout, 0, WEFT_ALIGN_LEFT, NULL);
    return weft__arranged(x, &to, 0);
}

weft_tensor *weft_to_rows(weft_tensor *x, const weft_placement *placement)
{
    if (!is_ragged(x))
        return weft__failed(x, WEFT_EARG, "to_rows", "expected a ragged tensor");
    x->w->running = "to_rows";
    const weft__place *place = weft__placement(x->f.batch, placement);
    if (!place)
        return &x->w->nil;
    weft__form to = weft__as_layout(x->f, x->f.batch, WEFT_ROWS, 0, WEFT_ALIGN_LEFT, place);
    return weft__arranged(x, &to, 0);
}

/* ---- pack and pad ---- */
/* Row numbers must fit an int32. */
static bool rows_are_few(weft *w, int64_t n, int64_t total, const char *function)
{
    if (n && total > INT32_MAX / n)
        weft__fail(w, WEFT_ESHAPE,
                   "%s: %lld sequences of %lld steps; expected fewer than 2^31 steps with padding", function,
                   (long long)n, (long long)total);
    return !w->status;
}

bool weft__lengths_fit(weft *w, const weft_lengths *l, int64_t n, int64_t total, const char *function)
{
    if (!l || (l->n && !l->len) || l->n != n)
        weft__fail(w, WEFT_ESHAPE, "%s: %lld lengths for %lld sequences; expected one for each", function,
                   (long long)(l ? l->n : 0), (long long)n);
    for (int64_t s = 0; !w->status && s < n; s++)
        if (l->len[s] < 0 || l->len[s] > total)
            weft__fail(w, WEFT_ESHAPE, "%s: sequence %lld has length %d; expected 0 .. %lld", function,
                       (long long)s, l->len[s], (long long)total);
    return !w->status;
}

bool weft__is_padded(weft_tensor *x, const weft_lengths *l, weft_align align, const char *function)
{
    if (!x || weft__handle_error(x->w, x) || (unsigned)align > WEFT_ALIGN_RIGHT)
        weft__failed(x, WEFT_EARG, function, "alignment %d; expected a value of weft_align", (int)align);
    else if (x->f.rank < 2 || x->f.batch)
        weft__failed(x, WEFT_ESHAPE, function, "expected plain [sequences, T, ..], rank 2 or more");
    else
        return weft__lengths_fit(x->w, l, x->f.size[0], x->f.size[1], function) &&
               rows_are_few(x->w, l->n, x->f.size[1], function);
    return false;
}

/* Returns a plain padded tensor as a view with the batch and layout PADDED, for weft__arranged only. */
static weft_tensor *as_padded(weft_tensor *x, const weft_lengths *l, weft_align align, const char *function)
{
    if (!weft__is_padded(x, l, align, function))
        return weft__inert_of(x);
    x->w->running = function;
    weft_batch *b = weft__batch(x->w, l, function);
    if (!b)
        return &x->w->nil;
    weft__form f = x->f;
    f.batch = b;
    f.layout = WEFT_PADDED;
    f.align = align;
    return weft__view(x, &f);
}

weft_tensor *weft_pack_padded_sequence(weft_tensor *x, const weft_lengths *l, weft_align align)
{
    weft_tensor *padded = as_padded(x, l, align, "pack_padded_sequence");
    if (!padded->f.batch)
        return padded;
    weft__form to = weft__as_layout(padded->f, padded->f.batch, WEFT_PACKED, 0, align, NULL);
    return weft__arranged(padded, &to, 0);
}

/* Returns whether a number is not 0; -0 counts as 0. */
static bool any_nonzero(const weft_tensor *x, const void *all, int64_t from, int64_t n)
{
    const real    *reals = (const real *)all + from;
    const int32_t *ints = (const int32_t *)all + from;
    for (int64_t i = 0; i < n; i++)
        if (x->f.type == WEFT_REAL ? reals[i] != 0 : ints[i] != 0)
            return true;
    return false;
}

bool weft_pads_are_zero(weft_tensor *x, const weft_lengths *l, weft_align align)
{
    static const char function[] = "pads_are_zero";
    weft *w = weft__inert_of(x)->w;
    size_t bytes = weft__is_padded(x, l, align, function) ? (size_t)weft__bytes(&x->f) : 0;
    w->running = function;
    int64_t cells = bytes ? x->f.size[0] * x->f.size[1] : 0, cell = cells ? weft__elements(&x->f) / cells : 0;
    void *all = cells ? weft__take(w, WEFT__ARENA_BATCHES, (int64_t)bytes) : NULL;
    if (!all || weft__read(x, all, bytes) != WEFT_OK)
        return !w->status;
    for (int64_t i = 0, T = x->f.size[1]; i < cells && !w->status; i++) {
        int64_t s = i / T, t = i % T, from = align == WEFT_ALIGN_RIGHT ? T - l->len[s] : 0;
        if ((t < from || t >= from + l->len[s]) && any_nonzero(x, all, i * cell, cell))
            weft__fail(w, WEFT_EARG, "%s: sequence %lld of length %d has data at step %lld, in its padding",
                       function, (long long)s, l->len[s], (long long)t);
    }
    return !w->status;
}

static weft_tensor *padded(weft_tensor *x, int64_t total, real fill, weft_align align, const char *function)
{
    if (!is_ragged(x) || (unsigned)align > WEFT_ALIGN_RIGHT || x->f.rank == WEFT_RANK)
        return weft__failed(
            x, WEFT_EARG, function,
            "alignment %d; expected a ragged tensor of rank 1 .. %d and a value of weft_align", (int)align,
            WEFT_RANK - 1);
    weft_batch *b = x->f.batch;
    if (total < 0 || (total && total < b->longest)) {
        weft__fail(x->w, WEFT_ESHAPE, "%s: total %lld; expected at least the longest sequence, %lld",
                   function, (long long)total, (long long)b->longest);
        return &x->w->nil;
    }
    if (!rows_are_few(x->w, b->n, total ? total : b->longest, function))
        return &x->w->nil;
    weft__form to = weft__as_layout(x->f, b, WEFT_PADDED, total ? total : b->longest, align, NULL);
    return weft_plain(weft__arranged(x, &to, fill));
}

weft_tensor *weft_pad_packed_sequence(weft_tensor *x, int64_t total, double fill, weft_align align)
{
    return padded(x, total, (real)fill, align, "pad_packed_sequence");
}

weft_tensor *weft_move_pads(weft_tensor *x, const weft_lengths *l, weft_align from, weft_align to)
{
    if ((unsigned)to > WEFT_ALIGN_RIGHT)
        return weft__failed(x, WEFT_EARG, "move_pads", "to %d; expected a value of weft_align", (int)to);
    weft_tensor *padded = as_padded(x, l, from, "move_pads");
    if (!padded->f.batch)
        return padded;
    weft__form f = padded->f;
    f.align = to;
    return weft_plain(weft__arranged(padded, &f, 0));
}

weft_tensor *weft_length_mask(weft *w, const weft_lengths *l, int64_t total, weft_align align)
{
    w = w ? w : weft__no_context();
    w->running = "length_mask";
    weft_batch *b = weft__batch(w, l, "length_mask");
    if (!b)
        return &w->nil;
    weft__form rows = weft__as_layout(weft__plain(WEFT_REAL, 1, &b->tokens), b, WEFT_CONCAT, 0, align, NULL);
    weft_tensor *ones = weft__empty(w, &rows);
    if (ones != &w->nil)
        w->dev.k->fill(&w->dev, b->tokens, 1, ones->data);
    return padded(ones, total, 0, align, "length_mask");
}

/* ---- a plain [n, T, F] as n sequences of T tokens in the layout CONCAT ---- */
weft_tensor *weft__as_batch(weft_tensor *x, const char *function, int64_t n, int64_t T)
{
    weft *w = x->w;
    int32_t *len = weft__take(w, WEFT__ARENA_CALLS, n * (int64_t)sizeof *len);
    for (int64_t s = 0; len && s < n; s++)
        len[s] = (int32_t)T;
    weft_batch *b = len ? weft__batch(w, &(weft_lengths){ .n = n, .len = len }, function) : NULL;
    if (!b)
        return &w->nil;
    weft__form f = weft__plain(WEFT_REAL, 2, (int64_t[]){ b->tokens, width(x) });
    f.batch = b, f.layout = T == 1 ? WEFT_PACKED : WEFT_CONCAT;   /* with T = 1 both layouts are equal */
    return weft__view(x, &f);
}

/* ---- copy a sequence's row to each of its tokens; pool, the reverse ---- */
/* Returns all tokens in CONCAT order, with rows as wide as those of `row`. */
static weft__along tokens_of(const weft_tensor *like, const weft_tensor *row)
{
    weft__form concat = weft__as_layout(row->f, like->f.batch, WEFT_CONCAT, 0, WEFT_ALIGN_LEFT, NULL);
    return (weft__along){ concat, 0, true, false };
}

/* Gathers by the sequence number of each row. Padding has -1 and gets 0. */
static weft_tensor *ints_to_tokens(weft_tensor *x, weft_tensor *like)
{
    const struct weft__rows *r = weft__rows_of(like->f.batch, &like->f);
    if (!r)
        return &x->w->nil;
    weft_tensor *y = weft_index_select(x, weft_ints(x->w, r->sequence.host, 1, like->f.size));
    return weft_ok(x->w) ? weft__ragged_as(y, &like->f) : y;
}

weft_tensor *weft_broadcast_to_tokens(weft_tensor *x, weft_tensor *like)
{
    if (!is_ragged(like) || !x || weft__handle_error(like->w, x))
        return weft__failed_of(LIST(x, like), WEFT_EARG, "broadcast_to_tokens",
                               "expected a tensor [sequences, ..] and a ragged one");
    if (x->f.rank < 1 || x->f.batch || x->f.size[0] != like->f.batch->n)
        return weft__failed(x, WEFT_ESHAPE, "broadcast_to_tokens",
                            "expected a plain tensor with one row for each of %lld sequences",
                            (long long)like->f.batch->n);
    if (x->f.type == WEFT_I32)
        return ints_to_tokens(x, like);
    weft__along a = tokens_of(like, x);
    weft__form to = a.whole;
    weft__copy_layout(&to, &like->f);
    weft_tensor *y = weft__expand(x, &a);
    return like->f.layout == WEFT_CONCAT ? y : weft__arranged(y, &to, 0);
}

/* Returns, for each sequence, the row of its first or last token in CONCAT order; -1 if empty. */
static weft_tensor *ends(weft_tensor *x, bool last)
{
    weft *w = x->w;
    const weft_batch *b = x->f.batch;
    int32_t *row = weft__take(w, WEFT__ARENA_CALLS, b->n * (int64_t)sizeof *row);
    for (int64_t s = 0; row && s < b->n; s++)
        row[s] = b->len[s] ? (last ? b->offset.host[s + 1] - 1 : b->offset.host[s]) : -1;
    return row ? weft_ints(w, row, 1, &b->n) : &w->nil;
}

/* Divides by the lengths. An empty sequence gives 0. */
static weft_tensor *per_token(weft_tensor *sums, const weft_batch *b)
{
    weft *w = sums->w;
    real *share = weft__take(w, WEFT__ARENA_CALLS, b->n * (int64_t)sizeof *share);
    for (int64_t s = 0; share && s < b->n; s++)
        share[s] = b->len[s] ? 1 / (real)b->len[s] : 0;
    int64_t shape[WEFT_RANK] = { b->n, 1, 1, 1, 1, 1 };
    return share ? weft_mul(sums, weft_reals(w, share, sums->f.rank, shape)) : &w->nil;
}

weft_tensor *weft_pool(weft_tensor *x, weft_pooling p)
{
    if (!is_ragged(x) || (unsigned)p > WEFT_POOL_LAST)
        return weft__failed(x, WEFT_EARG, "pool",
                            "pooling %d; expected a ragged tensor and a value of weft_pooling", (int)p);
    if (p == WEFT_POOL_MEAN && x->f.type != WEFT_REAL)
        return weft__failed(x, WEFT_EARG, "pool", "a mean of ints; expected reals (weft_to_reals)");
    x->w->running = "pool";
    weft__along a = tokens_of(x, x);
    switch (p) {
    case WEFT_POOL_SUM:  return weft__reduce(x, &a);
    case WEFT_POOL_MEAN: return per_token(weft__reduce(x, &a), x->f.batch);
    case WEFT_POOL_MAX:  return weft__pool_max(x);
    default:
        return weft_index_select(weft_plain(weft_to_layout(x, WEFT_CONCAT)), ends(x, p == WEFT_POOL_LAST));
    }
}

void weft_read_sequences(const weft_tensor *x, void *out, size_t bytes)
{
    /* With the tape off, x is not stored anywhere, so it is not changed. */
    weft_tensor *own = (weft_tensor *)(uintptr_t)x;
    WEFT_NO_GRAD(weft_context_of(x))
        weft_read(weft_layout_of(x) == WEFT_PLAIN ? x : weft_to_layout(own, WEFT_CONCAT), out, bytes);
}
