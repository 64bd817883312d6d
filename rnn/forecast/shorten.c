/* shorten.c - random shorter lengths as augmentation: drawing them, and keeping that many rows of each
 * sequence, the newest of what is past and the first of what is to come, so that both still meet at the same
 * moment. */
#include "autograd/fused.h"
#include "rnn/forecast/api_forecast.h"

weft_status weft_stream_lengths(weft_stream *stream, const weft_lengths *l, int32_t least, int32_t most,
                                int32_t *out)
{
    if (!stream || !l || l->n < 0 || (l->n && (!l->len || !out)) || least < 0 || most < least)
        return WEFT_EARG;
    for (int64_t s = 0; s < l->n; s++) {
        int32_t drawn = least + (int32_t)weft_stream_below(stream, (uint64_t)(most - least) + 1);
        out[s] = drawn < l->len[s] ? drawn : l->len[s];
    }
    return WEFT_OK;
}

/* ---- one ragged tensor ---- */
static bool shortens(weft_tensor *x, const weft_lengths *shorter)
{
    weft *w = weft__inert_beside(x)->w;
    weft_lengths now = weft_lengths_of(x);
    if (!x || weft__wrong(w, x) || !x->f.batch)
        weft__failed(x, WEFT_EARG, "shorten", "a ragged tensor is expected");
    bool sound = weft__lengths_fit(w, shorter, now.n, INT32_MAX, "shorten");
    for (int64_t s = 0; sound && s < now.n && !w->status; s++)
        if (shorter->len[s] > now.len[s])
            weft__fail(w, WEFT_ESHAPE, "shorten: sequence %lld is to have length %d; 0 .. %d is expected",
                       (long long)s, shorter->len[s], now.len[s]);
    return !w->status;
}

static weft_tensor *last_rows(weft_tensor *x, const weft_lengths *kept)
{
    weft *w = x->w;
    weft_lengths now = weft_lengths_of(x);
    int32_t *dropped = weft__take(w, WEFT__IN_NOTES, now.n * (int64_t)sizeof *dropped);
    weft_tensor *rows = &w->nil;
    for (int64_t s = 0; dropped && s < now.n; s++)
        dropped[s] = now.len[s] - kept->len[s];
    if (dropped)
        weft_split_sequences(x, &(weft_lengths){ .n = now.n, .len = dropped }, NULL, &rows);
    return rows;
}

static weft_tensor *first_rows(weft_tensor *x, const weft_lengths *kept)
{
    weft_tensor *rows;
    weft_split_sequences(x, kept, &rows, NULL);
    return rows;
}

weft_tensor *weft_shorten(weft_tensor *x, const weft_lengths *shorter, bool newest)
{
    if (!shortens(x, shorter))
        return weft__inert_beside(x);
    return newest ? last_rows(x, shorter) : first_rows(x, shorter);
}

/* ---- a series ---- */
typedef struct {
    const char *name;
    weft_tensor *x;
    const weft_lengths *lengths;
    weft_align align;
    int32_t least, most;
    bool newest;
} side;

/* unfilled; NULL and a sticky error if there is no memory */
static weft_lengths *lengths_in_step(weft *w, int64_t n, const int64_t *id)
{
    weft_lengths *l = weft__take(w, WEFT__IN_NOTES, sizeof *l);
    int32_t *len = weft__take(w, WEFT__IN_NOTES, n * (int64_t)sizeof *len);
    if (!l || !len)
        return NULL;
    *l = (weft_lengths){ .n = n, .len = len, .id = id };
    return l;
}

static const weft_lengths *full_lengths(const weft_tensor *x)
{
    weft_lengths *l = x->f.rank < 2 ? NULL : lengths_in_step(x->w, x->f.size[0], NULL);
    for (int64_t s = 0; l && s < l->n; s++)
        ((int32_t *)(uintptr_t)l->len)[s] = (int32_t)x->f.size[1];
    return l;
}

static weft_tensor *as_ragged(const side *a)
{
    const weft_lengths *l = a->lengths || a->x->f.batch ? a->lengths : full_lengths(a->x);
    if (a->x->f.batch)
        return a->x;
    return weft__is_padded(a->x, l, a->align, a->name) ? weft_pack_padded_sequence(a->x, l, a->align) :
                                                         &a->x->w->nil;
}

static bool shortenable(const side *a, weft_stream *stream)
{
    weft *w = weft__inert_beside(a->x)->w;
    const char *wrong = weft__wrong(w, a->x);
    if (wrong)
        weft__fail(w, WEFT_EARG, "%s: the tensor %s", a->name, wrong);
    else if (!stream || a->least < 0 || a->most < a->least)
        weft__fail(w, WEFT_EARG, "%s: lengths %d .. %d%s; a stream and 0 <= least <= most are expected",
                   a->name, a->least, a->most, stream ? "" : ", no stream");
    return !w->status;
}

/* Sets side->x, and of a plain one side->lengths; most 0: nothing changes. */
static void shorten(side *a, weft_stream *stream)
{
    if (!a->most && !a->least)
        return;
    weft_tensor *x = a->x, *ragged = shortenable(a, stream) ? as_ragged(a) : weft__inert_beside(x);
    a->x = ragged;
    weft_lengths now = weft_lengths_of(ragged),
                 *l = weft_ok(ragged->w) ? lengths_in_step(ragged->w, now.n, now.id) : NULL;
    if (!l || weft_stream_lengths(stream, &now, a->least, a->most, (int32_t *)(uintptr_t)l->len))
        return;
    a->x = weft_shorten(ragged, l, a->newest);
    if (!x->f.batch)
        a->lengths = l, a->x = weft_pad_packed_sequence(a->x, x->f.size[1], 0, a->align);
}

weft_series_batch weft_shorten_series(weft_series_batch s, weft_stream *stream, const weft_shorten_opts *opts)
{
    weft_shorten_opts o = opts ? *opts : (weft_shorten_opts){ 0 };
    side past = {
        "shorten_series: past", s.past, s.past_lengths, s.past_align, o.past_least, o.past_most, true
    };
    side future = { "shorten_series: future",
                    s.future,
                    s.future_lengths,
                    WEFT_ALIGN_LEFT,
                    o.future_least,
                    o.future_most,
                    false };
    shorten(&past, stream), shorten(&future, stream);
    s.past = past.x, s.past_lengths = past.lengths;
    s.future = future.x, s.future_lengths = future.lengths;
    return s;
}
