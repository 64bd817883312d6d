/* windows.c - index arrays of windows over tokens: which tokens of its own sequence each row of a result
 * reads. Convolutions, windows, every n-th token and repeated tokens use them. A batch keeps the arrays, so
 * layers and steps of one batch share them. */
#include <string.h>
#include "core/inside.h"

/* Returns the number of result rows of a sequence. */
static int64_t rows_of_length(const weft__reads *r, int64_t length)
{
    const int64_t span = r->whole ? (r->width - 1) * r->dilation : 0;
    return length > span ? ((length - span - 1) / r->every + 1) * r->repeat : 0;
}

/* Returns the batch of the result: b itself if no length changes. */
static weft_batch *batch_of_rows(weft_batch *b, const weft__reads *r, const char *function)
{
    weft *w = b->w;
    int64_t most = INT32_MAX;
    int32_t *len = weft__take(w, WEFT__ARENA_CALLS, b->n * (int64_t)sizeof *len);
    bool same = true;
    for (int64_t s = 0; len && s < b->n && !w->status; s++) {
        const int64_t rows = rows_of_length(r, b->len[s]);
        most -= rows * r->width;
        if (most < 0)
            weft__fail(
                w, WEFT_ESHAPE,
                "%s: sequence %lld of length %d gets %lld rows of %lld tokens; expected fewer than 2^31 "
                "tokens in all",
                function, (long long)s, b->len[s], (long long)rows, (long long)r->width);
        same = same && rows == b->len[s];
        len[s] = (int32_t)rows;
    }
    if (same)
        return w->status ? NULL : b;
    return weft__batch(w, &(weft_lengths){ .n = b->n, .len = len, .id = b->own_ids ? b->id : NULL },
                       function);
}

static void fill_index(const weft_batch *b, const weft__token_windows *v, int32_t *index)
{
    const weft__reads *r = &v->reads;
    for (int64_t s = 0; s < b->n; s++)
        for (int64_t t = 0; t < v->to->len[s]; t++)
            for (int64_t k = 0; k < r->width; k++) {
                int64_t token = t / r->repeat * r->every + r->from + k * r->dilation;
                if (r->last && token >= b->len[s])
                    token = b->len[s] - 1;
                *index++ = token >= 0 && token < b->len[s] ? b->offset.host[s] + (int32_t)token : -1;
            }
}
static void fill_readers(const weft_batch *b, const weft__token_windows *v, int32_t *reader)
{
    const weft__reads *r = &v->reads;
    for (int64_t s = 0; s < b->n; s++)
        for (int64_t token = 0; token < b->len[s]; token++)
            for (int64_t k = 0; k < r->width; k++) {
                const int64_t from = token - r->from - k * r->dilation, row = from / r->every;
                const bool reads = from >= 0 && from % r->every == 0 && row < v->to->len[s];
                *reader++ = reads ? v->to->offset.host[s] + (int32_t)row : -1;
            }
}

static bool make(weft_batch *b, const weft__token_windows *v, weft__ints *to, int64_t rows,
                 void fill(const weft_batch *, const weft__token_windows *, int32_t *))
{
    *to = weft__index(b->w, rows * v->reads.width);
    if (!to->host)
        return false;
    fill(b, v, weft__index_values(*to));
    weft__upload_index(b->w, to, rows * v->reads.width);
    return true;
}

/* A copy with readers replaces a window without them, so that a rewind brings back the older one. */
const weft__token_windows *weft__token_windows_of(weft_batch *b, const weft__reads *r, bool readers,
                                                  const char *function)
{
    weft *w = b->w;
    const weft__token_windows *known = NULL;
    for (const weft__token_windows *v = b->windows; v && !known; v = v->next)
        known = !memcmp(&v->reads, r, sizeof *r) ? v : NULL;
    if (known && (known->readers.host || !readers))
        return known;
    weft__token_windows *v = weft__take(w, WEFT__ARENA_BATCHES, sizeof *v);
    if (!v)
        return NULL;
    *v = known ? *known : (weft__token_windows){ .reads = *r, .to = batch_of_rows(b, r, function) };
    v->next = b->windows;
    if (!v->to || (!known && !make(b, v, &v->index, v->to->tokens, fill_index)) ||
        (readers && !make(b, v, &v->readers, b->tokens, fill_readers)))
        return NULL;
    return weft__set_undoable(w, &b->windows, v) ? v : NULL;
}
