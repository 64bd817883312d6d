/* shorten.c - shortens sequences at random as augmentation. It keeps the newest rows of the past and the
 * first rows of the future, so that both still meet at the same moment. */
#include "autograd/fused.h"
#include "rnn/forecast/forecast.h"

/* Keeps len[s] rows of sequence s: its last ones (newest), or its first ones. */
static weft_tensor *rows_kept(weft_tensor *x, const weft_lengths *now, const weft_lengths *kept, bool newest)
{
    weft *w = x->w;
    weft_tensor *rows = &w->nil;
    int32_t *dropped = newest ? weft__take(w, WEFT__ARENA_CALLS, now->n * (int64_t)sizeof *dropped) : NULL;
    for (int64_t s = 0; dropped && s < now->n; s++)
        dropped[s] = now->len[s] - kept->len[s];
    if (!newest)
        weft_split_sequences(x, kept, &rows, NULL);
    else if (dropped)
        weft_split_sequences(x, &(weft_lengths){ .n = now->n, .len = dropped }, NULL, &rows);
    return rows;
}

typedef struct {
    const char *name;
    weft_tensor *x;
    const weft_lengths *lengths;
    weft_align align;
    int32_t least, most;
    bool newest;
} side;

/* Returns unfilled lengths. Returns NULL and fails the context if memory runs out. */
static weft_lengths *lengths_in_step(weft *w, int64_t n, const int64_t *id)
{
    weft_lengths *l = weft__take(w, WEFT__ARENA_CALLS, sizeof *l);
    int32_t *len = weft__take(w, WEFT__ARENA_CALLS, n * (int64_t)sizeof *len);
    if (!l || !len)
        return NULL;
    *l = (weft_lengths){ .n = n, .len = len, .id = id };
    return l;
}

static weft_tensor *as_ragged(const side *a)
{
    if (a->x->f.batch)
        return a->x;
    const bool known = a->lengths || a->x->f.rank < 2;
    const weft_lengths all = known ? (weft_lengths){ 0 } : weft__all_steps(a->x);
    const weft_lengths *l = known ? a->lengths : &all;
    return weft__is_padded(a->x, l, a->align, a->name) ? weft_pack_padded_sequence(a->x, l, a->align) :
                                                         &a->x->w->nil;
}

static bool shortenable(const side *a, weft_stream *stream)
{
    weft *w = weft__inert_of(a->x)->w;
    if (WEFT__IS_USABLE(w, a->x, "%s: the tensor", a->name) &&
        (!stream || a->least < 0 || a->most < a->least))
        weft__fail(w, WEFT_EARG, "%s: lengths %d .. %d%s; expected a stream and 0 <= least <= most", a->name,
                   a->least, a->most, stream ? "" : ", no stream");
    return !w->status;
}

/* Sets side->x, and side->lengths for a plain one. A range of 0 .. 0 changes nothing. Every sequence takes
 * one draw from the stream, whatever its length. */
static void shorten(side *a, weft_stream *stream)
{
    if (!a->most && !a->least)
        return;
    weft_tensor *x = a->x;
    weft_tensor *ragged = shortenable(a, stream) ? as_ragged(a) : weft__inert_of(x);
    weft_lengths now = weft_lengths_of(ragged);
    weft_lengths *l = weft_ok(ragged->w) ? lengths_in_step(ragged->w, now.n, now.id) : NULL;
    a->x = ragged;
    for (int64_t s = 0; l && s < now.n; s++) {
        int32_t drawn = a->least + (int32_t)weft_stream_below(stream, (uint64_t)(a->most - a->least) + 1);
        ((int32_t *)(uintptr_t)l->len)[s] = drawn < now.len[s] ? drawn : now.len[s];
    }
    if (!l)
        return;
    a->x = rows_kept(ragged, &now, l, a->newest);
    if (!x->f.batch) {
        a->lengths = l;
        a->x = weft_pad_packed_sequence(a->x, x->f.size[1], 0, a->align);
    }
}

weft_series_batch weft_shorten_series(weft_series_batch s, weft_stream *stream, const weft_shorten_opts *opts)
{
    weft_shorten_opts o = opts ? *opts : (weft_shorten_opts){ 0 };
    side past = { .name = "shorten_series: past", .x = s.past, .lengths = s.past_lengths, .newest = true,
                  .align = s.past_align, .least = o.past_least, .most = o.past_most };
    side future = { .name = "shorten_series: future", .x = s.future, .lengths = s.future_lengths,
                    .least = o.future_least, .most = o.future_most };
    shorten(&past, stream);
    shorten(&future, stream);
    s.past = past.x;
    s.past_lengths = past.lengths;
    s.future = future.x;
    s.future_lengths = future.lengths;
    return s;
}
