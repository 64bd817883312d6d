/* loader.c - the order of an epoch: shuffled, sorted by length within pools, cut into batches, the batches
 * shuffled.
 *
 * An epoch's order is a function of the stream's counter when it began. So a position is four numbers: the
 * epoch, the batch, that counter, and a fingerprint of what is loaded; restoring replays the shuffle. Nothing
 * is allocated after weft_loader_new.
 *
 * To tell the number of batches before an epoch has begun, the epoch is planned, and the stream's counter is
 * put back: whatever happens then (a checkpoint is saved, or loaded) finds the stream untouched, and
 * weft_loader_next takes the plan if the stream still stands where it was. */
#include <string.h>
#include "core/core.h"
#include "core/best.h"
#include "io/io.h"

enum { POOL = 50 };                              /* batches a pool if the user names no number */

struct weft_loader {
    weft *w;
    weft_stream *stream;
    weft_loader_opts opts;
    int64_t n, batches, at, epoch;               /* at: the next batch */
    bool open, known, planned;                   /* within an epoch; batches counts one; that of a plan */
    uint64_t begun, ended, print;                /* the stream's counter around lay_out; fingerprint */
    /* [n] each; order: all batches end to end; turn: batch numbers, shuffled */
    int32_t *len, *order, *turn;
    int64_t *start;                              /* [n + 1] where each batch lies in order */
    weft__scored *places;                        /* [n] scratch of the sort */
};

static weft_loader none;                         /* what could not be made; no one writes to it */

static void end_loader(void *it)
{
    weft_loader *l = it;
    if (l->w)
        weft__release(l->w, l->len);
}

/* ---- order ---- */
/* By length; equal lengths stay in their order, since the lower place is the better one. */
static void sort_pool(weft_loader *l, int32_t *pool, int64_t n)
{
    weft__best shortest = { l->places, n, 0 };
    for (int64_t i = 0; i < n; i++)
        weft__best_offer(&shortest, -(double)l->len[pool[i]], i);
    weft__best_sort(&shortest);
    int32_t *sorted = l->turn;                   /* not in use before the batches are cut */
    for (int64_t i = 0; i < n; i++)
        sorted[i] = pool[l->places[i].id];
    memcpy(pool, sorted, (size_t)n * sizeof *pool);
}

static bool full(const weft_loader *l, int64_t count, int64_t tokens)
{
    return (l->opts.count && count > l->opts.count) ||
           (l->opts.tokens && count > 1 && tokens > l->opts.tokens);
}

/* Where the pool that begins at `from` ends: after `pool` batches' worth of sequences. */
static int64_t pool_end(const weft_loader *l, int64_t from)
{
    int64_t count = 0, tokens = 0, batches = 0, at = from;
    for (; at < l->n; at++) {
        tokens += l->len[l->order[at]];
        if (full(l, ++count, tokens)) {
            if (++batches == l->opts.pool)
                break;
            count = 1;
            tokens = l->len[l->order[at]];
        }
    }
    return at;
}

static void cut_batches(weft_loader *l, int64_t from, int64_t to)
{
    int64_t count = 0, tokens = 0;
    l->start[l->batches++] = from;
    for (int64_t i = from; i < to; i++) {
        tokens += l->len[l->order[i]];
        if (full(l, ++count, tokens)) {
            l->start[l->batches++] = i;
            count = 1;
            tokens = l->len[l->order[i]];
        }
    }
}

/* the epoch's batches, from the stream's present counter on */
static void plan_epoch(weft_loader *l)
{
    l->begun = l->stream->count;
    l->batches = 0;
    if (l->opts.keep_order) {
        for (int64_t i = 0; i < l->n; i++)
            l->order[i] = (int32_t)i;
        if (l->n)
            cut_batches(l, 0, l->n);
    } else {
        weft_stream_permutation(l->stream, l->n, l->order);
        for (int64_t from = 0, to; from < l->n; from = to) {
            to = pool_end(l, from);
            sort_pool(l, l->order + from, to - from);
            cut_batches(l, from, to);
        }
    }
    l->start[l->batches] = l->n;
    if (l->opts.keep_order)
        for (int64_t i = 0; i < l->batches; i++)
            l->turn[i] = (int32_t)i;
    else
        weft_stream_permutation(l->stream, l->batches, l->turn);
    l->ended = l->stream->count;
    l->known = true;
    l->planned = false;
}

/* the next epoch's batches, without a draw */
static void plan_next_epoch(weft_loader *l)
{
    plan_epoch(l);
    l->stream->count = l->begun;
    l->planned = true;
}

static void begin_epoch(weft_loader *l)
{
    if (l->planned && l->stream->count == l->begun)
        l->stream->count = l->ended;
    else
        plan_epoch(l);
    l->planned = false;
    l->open = true;
    l->at = 0;
    l->epoch++;
}

/* ---- making ---- */
static uint64_t mix(uint64_t hash, uint64_t value)
{
    return (hash ^ value) * 0x9E3779B97F4A7C15u ^ (hash >> 29);
}

static uint64_t fingerprint(const weft_loader *l)
{
    uint64_t hash = mix(mix(mix((uint64_t)l->n, (uint64_t)l->opts.count), (uint64_t)l->opts.tokens),
                        (uint64_t)l->opts.pool);
    hash = mix(hash, l->opts.keep_order);
    for (int64_t i = 0; i < l->n; i++)
        hash = mix(hash, (uint64_t)l->len[i]);
    return hash;
}

static bool options_are_sensible(weft *w, const char *name, int64_t n, const int32_t *len,
                                 const weft_loader_opts *o)
{
    if (!name || strlen(name) > 30)
        return weft__fail(w, WEFT_EARG, "loader: a name of at most 30 bytes is expected"), false;
    if (n < 0 || n >= INT32_MAX || (n && !len))
        return weft__fail(w, WEFT_EARG, "loader \"%s\": %lld sequences%s", name, (long long)n,
                          len ? "" : " without lengths"),
               false;
    if (!o || o->count < 0 || o->tokens < 0 || o->pool < 0 || (!o->count && !o->tokens))
        return weft__fail(w, WEFT_EARG,
                          "loader \"%s\": count or tokens of a batch must be given, none negative", name),
               false;
    for (int64_t i = 0; i < n; i++)
        if (len[i] < 0)
            return weft__fail(w, WEFT_EARG, "loader \"%s\": sequence %lld has length %d", name, (long long)i,
                              (int)len[i]),
                   false;
    return true;
}

static bool stream_is_taken(const weft *w, const char *stream)
{
    for (weft__owned *o = w->owned; o; o = o->next) {
        const weft_loader *l = o->end == end_loader ? (const weft_loader *)(void *)(o + 1) : NULL;
        if (l && l->stream && !strcmp(l->stream->name, stream))
            return true;
    }
    return false;
}

static bool arrays(weft_loader *l, const int32_t *len)
{
    size_t n = (size_t)l->n, ints = (3 * n + 1) / 2 * 2;         /* what follows them is 8-byte aligned */
    l->len = weft__allocate(l->w, ints * sizeof *l->len + (n + 1) * sizeof *l->start + n * sizeof *l->places);
    if (!l->len)
        return false;
    l->order = l->len + n;
    l->turn = l->order + n;
    l->start = (int64_t *)(void *)(l->len + ints);
    l->places = (weft__scored *)(void *)(l->start + n + 1);
    if (n)
        memcpy(l->len, len, n * sizeof *len);
    return true;
}

static bool can_be_made(weft *w, const char *name, int64_t n, const int32_t *len, const weft_loader_opts *o,
                        char stream[48])
{
    if (!options_are_sensible(w, name, n, len, o))
        return false;
    snprintf(stream, 48, "loader.%s", name);
    if (stream_is_taken(w, stream))
        weft__fail(w, WEFT_EARG,
                   "loader \"%s\": there is one of that name; two would disturb each other's shuffling",
                   name);
    return weft_ok(w);
}

weft_loader *weft_loader_new(weft *w, const char *name, int64_t n, const int32_t *len,
                             const weft_loader_opts *opts)
{
    char stream[48];
    if (!w || !weft_ok(w) || !can_be_made(w, name, n, len, opts, stream))
        return &none;
    w->running = "loader";
    weft_loader *l = weft__own(w, sizeof *l, end_loader, NULL);
    if (!l)
        return &none;
    l->w = w;
    l->n = n;
    l->opts = *opts;
    l->opts.pool = opts->pool ? opts->pool : POOL;
    if (!arrays(l, len) || !(l->stream = weft_stream_of(w, stream)))
        return &none;
    l->print = fingerprint(l);
    return l;
}

/* ---- use ---- */
static bool is_usable(const weft_loader *l) { return l && l->w && weft_ok(l->w); }

const int32_t *weft_loader_next(weft_loader *l, int64_t *size)
{
    if (size)
        *size = 0;
    if (!size || !is_usable(l))
        return NULL;
    if (!l->open)
        begin_epoch(l);
    if (l->at == l->batches) {
        l->open = false;
        return NULL;
    }
    int32_t batch = l->turn[l->at++];
    *size = l->start[batch + 1] - l->start[batch];
    return l->order + l->start[batch];
}

int64_t weft_loader_batches(weft_loader *l)
{
    if (is_usable(l) && (!l->known || (l->planned && l->stream->count != l->begun)))
        plan_next_epoch(l);
    return l && l->known ? l->batches : 0;
}

int64_t weft_loader_epoch(const weft_loader *l) { return l ? l->epoch : 0; }

/* at: epochs begun; batches given of the open epoch, -1 between two; the stream's counter at its begin;
 * fingerprint. */
weft_loader_state weft_loader_get_state(const weft_loader *l)
{
    if (!l || !l->w)
        return (weft_loader_state){ { 0 } };
    uint64_t counter = l->open ? l->begun : l->stream->count;
    return (weft_loader_state){ { l->epoch, l->open ? l->at : -1, (int64_t)counter, (int64_t)l->print } };
}

/* Lays the epoch out that began at the stream's counter `begun`; true if it has a batch `at`, else all is
 * as it was. */
static bool lay_out_again(weft_loader *l, uint64_t begun, int64_t at, int64_t *found)
{
    const weft_loader before = *l;
    uint64_t count = l->stream->count;
    l->stream->count = begun;
    plan_epoch(l);
    *found = l->batches;
    if (at <= l->batches)
        return true;
    /* the arrays, too: what weft_loader_next gave last lies in them */
    l->stream->count = before.begun;
    plan_epoch(l);
    l->stream->count = count;
    *l = before;
    return false;
}

void weft_loader_set_state(weft_loader *l, weft_loader_state state)
{
    if (!is_usable(l))
        return;
    const int64_t *at = state.at;
    int64_t batches = 0;
    if ((uint64_t)at[3] != l->print)
        weft__fail(l->w, WEFT_EARG, "%s: the position was saved of other sequences or options",
                   l->stream->name);
    else if (at[0] < 0 || at[0] > INT64_MAX / 2 || at[1] < -1 || (at[1] >= 0 && !at[0]))
        weft__fail(l->w, WEFT_EARG, "%s: the position is damaged: epoch %lld, batch %lld", l->stream->name,
                   (long long)at[0], (long long)at[1]);
    else if (at[1] >= 0 && !lay_out_again(l, (uint64_t)at[2], at[1], &batches))
        weft__fail(l->w, WEFT_EARG, "%s: the position saved is batch %lld of %lld", l->stream->name,
                   (long long)at[1], (long long)batches);
    if (!weft_ok(l->w))
        return;
    l->epoch = at[0];
    l->open = at[1] >= 0;
    l->at = l->open ? at[1] : 0;
    l->known = l->open;
    if (!l->open)
        l->stream->count = (uint64_t)at[2];
}
