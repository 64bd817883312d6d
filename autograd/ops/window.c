/* window.c - windows over the tokens of each sequence, every n-th token, repeated tokens, and pooling over
 * windows. All of them are a gather by an index array that the batch keeps (core/ragged/windows.c), so the
 * backward pass adds rows in the order of the sequence, and no neighbour changes a bit. */
#include "autograd/api_windows.h"
#include "autograd/op.h"

/* Checks numbers that must be 1 .. 2^31 - 1. */
static bool is_count(int64_t n) { return n >= 1 && n <= INT32_MAX; }

static bool are_tokens(weft_tensor *x, const char *function)
{
    bool ragged = x && !weft__handle_error(x->w, x) && x->f.batch;
    if (!ragged)
        weft__failed(x, WEFT_ESHAPE, function, "expected a ragged tensor");
    else
        x->w->running = function;
    return ragged;
}

/* Returns the kept index array as a ragged tensor of ints, [rows, width], or [rows] without an axis. */
static weft_tensor *index_of(weft_tensor *x, const weft__reads *reads, bool axis, const char *function)
{
    const weft__token_windows *v = weft__token_windows_of(x->f.batch, reads, false, function);
    if (!v)
        return &x->w->nil;
    weft__form f = weft__plain(WEFT_I32, axis ? 2 : 1, (int64_t[]){ v->to->tokens, reads->width });
    f.batch = v->to;
    f.layout = WEFT_CONCAT;
    weft_tensor *index = weft__header(x->w, &f);
    if (!index)
        return &x->w->nil;
    index->data = (real *)(uintptr_t)v->index.device;
    return index;
}

weft_tensor *weft__windows(weft_tensor *x, const weft__reads *reads, bool axis, const char *function)
{
    weft_tensor *index = index_of(x, reads, axis, function);
    return index == &x->w->nil ? index : weft_index_select(weft_plain(weft_to_layout(x, WEFT_CONCAT)), index);
}

weft_tensor *weft_tokens_window(weft_tensor *x, int64_t width, int64_t dilation, int64_t from)
{
    if (!are_tokens(x, "tokens_window"))
        return weft__inert_of(x);
    if (!is_count(width) || !is_count(dilation) || from < -INT32_MAX || from > INT32_MAX ||
        x->f.rank == WEFT_RANK)
        return weft__failed(x, WEFT_EARG, "tokens_window",
                            "width %lld, dilation %lld, from %lld; expected width and dilation of 1 or more, "
                            "numbers below 2^31, and a tensor of rank 1 .. %d",
                            (long long)width, (long long)dilation, (long long)from, WEFT_RANK - 1);
    return weft__windows(x, &(weft__reads){ width, dilation, from, 1, 1, 0, 0 }, true, "tokens_window");
}

static weft_tensor *resampled(weft_tensor *x, int64_t n, bool repeat, const char *function)
{
    if (!are_tokens(x, function))
        return weft__inert_of(x);
    if (!is_count(n))
        return weft__failed(x, WEFT_EARG, function, "n is %lld; expected 1 .. 2^31 - 1", (long long)n);
    return weft__windows(x, &(weft__reads){ 1, 1, 0, repeat ? 1 : n, repeat ? n : 1, 0, 0 }, false, function);
}
weft_tensor *weft_tokens_every(weft_tensor *x, int64_t n) { return resampled(x, n, false, "tokens_every"); }
weft_tensor *weft_tokens_repeat(weft_tensor *x, int64_t n) { return resampled(x, n, true, "tokens_repeat"); }

/* ---- pooling ---- */
/* Returns 1 / number of existing tokens for each row of the pooled tensor, broadcast over its other axes. */
static weft_tensor *shares(weft_tensor *sums, const weft_batch *from, int64_t width, int64_t stride)
{
    weft *w = sums->w;
    const weft_batch *b = sums->f.batch;
    weft__form f = weft__plain(WEFT_REAL, sums->f.rank, (int64_t[WEFT_RANK]){ b->tokens, 1, 1, 1, 1, 1 });
    real *share = weft__take(w, WEFT__ARENA_CALLS, b->tokens * (int64_t)sizeof *share), *next = share;
    weft__copy_layout(&f, &sums->f);
    for (int64_t s = 0; share && s < b->n; s++)
        for (int64_t t = 0; t < b->len[s]; t++) {
            int64_t left = from->len[s] - t * stride;
            *next++ = 1 / (real)(left < width ? left : width);
        }
    return share ? weft__tensor(w, &f, share) : &w->nil;
}

/* A missing token of a window counts as 0 in a sum. For a maximum the window repeats its last token instead,
 * which changes neither the maximum nor the token that gets its gradient, the first largest. */
weft_tensor *weft_tokens_pool(weft_tensor *x, int64_t width, int64_t stride, weft_pooling how)
{
    static const char function[] = "tokens_pool";
    if (!are_tokens(x, function))
        return weft__inert_of(x);
    if (!is_count(width) || !is_count(stride) || (unsigned)how > WEFT_POOL_MAX || x->f.rank == WEFT_RANK)
        return weft__failed(
            x, WEFT_EARG, function,
            "width %lld, stride %lld, pooling %d; expected width and stride of 1 .. 2^31 - 1, "
            "WEFT_POOL_SUM, MEAN or MAX, and a tensor of rank 1 .. %d",
            (long long)width, (long long)stride, (int)how, WEFT_RANK - 1);
    if (how == WEFT_POOL_MEAN && x->f.type != WEFT_REAL)
        return weft__failed(x, WEFT_EARG, function, "a mean of ints; expected reals (weft_to_reals)");
    weft_tensor *all =
        weft__windows(x, &(weft__reads){ width, 1, 0, stride, 1, 0, how == WEFT_POOL_MAX }, true, function);
    if (how == WEFT_POOL_MAX)
        return weft_max(all, 1);
    weft_tensor *sums = weft_sum(all, 1);
    if (how == WEFT_POOL_SUM || !weft_ok(x->w))
        return sums;
    return weft_mul(sums, shares(sums, x->f.batch, width, stride));
}
