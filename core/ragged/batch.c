/* batch.c - creates ragged batches: lengths, ids and offsets of sequences, and their order in the PACKED
 * layout. Within a step, equal lengths, ids and offsets give the same batch, so tensors that were packed
 * separately can be inputs of one operator. The batches of a step form a tree, sorted by hash: a new batch
 * sets one pointer, and a rewind resets it. */
#include <string.h>
#include "core/inside.h"

/* ---- the order ---- *
 * live[t] sequences are longer than t: suffix sums of the histogram of lengths. Those of length l have
 * positions live[l] .. live[l - 1] - 1, in the program's order: a stable counting sort, longest first. */
void weft__rank(int64_t n, const int32_t *len, int64_t longest, weft__order *o, int32_t *next)
{
    int32_t *live = weft__index_values(o->live), *start = weft__index_values(o->start);
    memset(next, 0, (size_t)(longest + 1) * sizeof *next);
    for (int64_t s = 0; s < n; s++)
        next[len[s]]++;
    for (int64_t t = longest, longer = 0; t >= 0; t--) {
        int32_t of_this_length = next[t];
        next[t] = (int32_t)longer;
        longer += of_this_length;
        if (t > 0)
            live[t - 1] = (int32_t)longer;
    }
    start[0] = 0;
    for (int64_t t = 0; t < longest; t++)
        start[t + 1] = start[t] + live[t];
    for (int64_t s = 0; s < n; s++)
        o->rank[s] = next[len[s]]++;
}

static void order(weft_batch *b, int32_t *next)
{
    int32_t *offset = weft__index_values(b->offset), *sorted = weft__index_values(b->sorted);
    weft__order o = { b->live, b->start, weft__index_values(b->unsorted) };
    weft__rank(b->n, b->len, b->longest, &o, next);
    offset[0] = 0;
    for (int64_t s = 0; s < b->n; s++)
        offset[s + 1] = offset[s] + b->len[s], sorted[o.rank[s]] = (int32_t)s;
}

static bool make_indices(weft *w, weft_batch *b)
{
    struct { weft__ints *index; int64_t n;
    } all[] = { { &b->offset, b->n + 1 },
                { &b->sorted, b->n },
                { &b->unsorted, b->n },
                { &b->live, b->longest },
                { &b->start, b->longest + 1 } };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!(*all[i].index = weft__index(w, all[i].n)).host)
            return false;
    int64_t position = weft__position(w, WEFT__ARENA_BATCHES);
    int32_t *next = weft__take(w, WEFT__ARENA_BATCHES, (b->longest + 1) * (int64_t)sizeof *next);
    if (!next)
        return false;
    order(b, next);
    weft__rewind_to(w, WEFT__ARENA_BATCHES, position);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        weft__upload_index(w, all[i].index, all[i].n);
    return true;
}

/* Offsets that are all 0 count as no offsets. */
static bool has_offsets(const weft_lengths *l)
{
    for (int64_t s = 0; l->offset && s < l->n; s++)
        if (l->offset[s])
            return true;
    return false;
}

static int32_t offset_of(const weft_lengths *l, int64_t s) { return l->offset ? l->offset[s] : 0; }

static weft_batch *batch_new(weft *w, const weft_lengths *l, int64_t longest, uint64_t hash)
{
    weft_batch *b = weft__take(w, WEFT__ARENA_BATCHES, sizeof *b);
    int64_t *id = weft__take(w, WEFT__ARENA_BATCHES, l->n * (int64_t)sizeof *id);
    int32_t *len = weft__take(w, WEFT__ARENA_BATCHES, (has_offsets(l) ? 2 : 1) * l->n * (int64_t)sizeof *len);
    if (!b || !id || !len)
        return NULL;
    *b = (weft_batch){ .w = w,
                       .hash = hash,
                       .n = l->n,
                       .longest = longest,
                       .id = id,
                       .len = len,
                       .before = has_offsets(l) ? len + l->n : NULL,
                       .own_ids = l->id,
                       .ids_unknown = w->shard && !l->id };
    for (int64_t s = 0; s < l->n; s++) {
        len[s] = l->len[s];
        id[s] = l->id ? l->id[s] : s;
        if (b->before)
            b->before[s] = l->offset[s];
    }
    if (!make_indices(w, b))
        return NULL;
    b->tokens = b->offset.host[b->n];
    if (!w->dev.k->synchronous)
        weft__make_usual_maps(b);
    return w->status ? NULL : b;
}

static uint64_t hash_of(const weft_lengths *l)
{
    uint64_t h = (uint64_t)l->n;
    for (int64_t s = 0; s < l->n; s++) {
        h = (h ^ (uint32_t)l->len[s] ^ (uint64_t)offset_of(l, s) << 32) * 0x9E3779B97F4A7C15u;
        h = (h ^ h >> 32 ^ (uint64_t)(l->id ? l->id[s] : s)) * 0xD1342543DE82EF95u;
        h ^= h >> 29;
    }
    return h;
}

static bool equal(const weft_batch *b, const weft_lengths *l, uint64_t hash)
{
    bool same = b->hash == hash && b->n == l->n &&
                (b->n == 0 || b->len == l->len || !memcmp(b->len, l->len, (size_t)b->n * sizeof *b->len));
    for (int64_t s = 0; same && s < b->n; s++)
        same = b->id[s] == (l->id ? l->id[s] : s) && (b->before ? b->before[s] : 0) == offset_of(l, s);
    return same;
}

static bool lengths_are_sound(weft *w, const weft_lengths *l, const char *function, int64_t *longest)
{
    int64_t total = 0;
    if (!l || (l->n && !l->len))
        weft__fail(w, WEFT_EARG, "%s: lengths: %sNULL", function, l ? "len is " : "");
    else if (l->n < 0 || l->n >= INT32_MAX)
        weft__fail(w, WEFT_EARG, "%s: lengths: n is %lld; expected 0 .. 2^31 - 2", function, (long long)l->n);
    for (int64_t s = 0; !w->status && s < l->n; s++) {
        total += l->len[s];
        *longest = l->len[s] > *longest ? l->len[s] : *longest;
        if (l->len[s] < 0 || total >= INT32_MAX)
            weft__fail(
                w, WEFT_EARG,
                "%s: sequence %lld has length %d, %lld tokens so far; expected 0 or more, and fewer than "
                "2^31 - 1 tokens in all",
                function, (long long)s, l->len[s], (long long)total);
        else if (offset_of(l, s) < 0 || (int64_t)offset_of(l, s) + l->len[s] > INT32_MAX)
            weft__fail(w, WEFT_EARG,
                       "%s: sequence %lld of length %d has the offset %d; expected 0 or more, and an end "
                       "below 2^31",
                       function, (long long)s, l->len[s], offset_of(l, s));
    }
    return !w->status;
}

/* Gives the sequences of a shard the ids that they have in the whole batch. */
static const weft_lengths *with_ids(const weft *w, const weft_lengths *l, weft_lengths *room)
{
    if (!w->shard || l->id || l->n != w->shard->n)
        return l;
    *room = *l, room->id = w->shard->id;
    return room;
}

weft_batch *weft__batch(weft *w, const weft_lengths *given, const char *function)
{
    int64_t longest = 0;
    if (w->status || !lengths_are_sound(w, given, function, &longest))
        return NULL;
    weft_lengths room;
    const weft_lengths *l = with_ids(w, given, &room);
    uint64_t hash = hash_of(l), rest = hash;
    weft_batch **link = &inside(w)->batches;
    for (; *link; link = &(*link)->child[rest >> 62], rest <<= 2)
        if (equal(*link, l, hash))
            return *link;
    weft_batch *b = batch_new(w, l, longest, hash);
    return b && weft__set_undoable(w, link, b) ? b : NULL;
}

void weft__difference(const weft_batch *a, const weft_batch *b, char *text, size_t size)
{
    if (a->n != b->n) {
        snprintf(text, size, "the first has %lld sequences, the second %lld", (long long)a->n,
                 (long long)b->n);
        return;
    }
    int64_t s = 0, i = 0, o = 0;
    while (s < a->n && a->len[s] == b->len[s])
        s++;
    while (i < a->n && a->id[i] == b->id[i])
        i++;
    while (o < a->n && (a->before ? a->before[o] : 0) == (b->before ? b->before[o] : 0))
        o++;
    if (s < a->n)
        snprintf(text, size, "sequence %lld has %d tokens in the first and %d in the second", (long long)s,
                 a->len[s], b->len[s]);
    else if (i < a->n)
        snprintf(text, size,
                 "their lengths agree, but sequence %lld has the id %lld in the first and %lld in the "
                 "second%s",
                 (long long)i, (long long)a->id[i], (long long)b->id[i],
                 a->own_ids == b->own_ids ? "" : "; ids were given only for one of them");
    else if (o < a->n)
        snprintf(text, size,
                 "lengths and ids agree, but sequence %lld has the offset %d in the first and %d in the "
                 "second",
                 (long long)o, a->before ? a->before[o] : 0, b->before ? b->before[o] : 0);
}

/* ---- ragged tensors from the program's rows ---- */
static weft_tensor *ragged_tensor(weft *w, const char *function, weft_dtype type, const void *rows,
                                  int64_t features, const weft_lengths *l)
{
    w = w ? w : weft__no_context();
    w->running = function;
    weft_batch *b = weft__batch(w, l, function);
    if (b && (features < 0 || (!rows && b->tokens && (features || type == WEFT_I32))))
        weft__fail(w, WEFT_EARG, "%s: %lld features%s; expected 0 or more, and their values", function,
                   (long long)features, rows ? "" : ", rows NULL");
    if (!b || w->status)
        return &w->nil;
    weft__form f = weft__plain(type, features ? 2 : 1, (int64_t[]){ b->tokens, features });
    f.batch = b;
    f.layout = WEFT_CONCAT;
    return weft__tensor(w, &f, rows);
}

weft_tensor *weft_ragged(weft *w, const real *rows, int64_t features, const weft_lengths *l)
{
    return ragged_tensor(w, "ragged", WEFT_REAL, rows, features, l);
}
weft_tensor *weft_ragged_ints(weft *w, const int32_t *rows, const weft_lengths *l)
{
    return ragged_tensor(w, "ragged_ints", WEFT_I32, rows, 0, l);
}

/* ---- accessors ---- */
static const weft_batch *batch_of(const weft_tensor *x)
{
    return x && (!x->step || x->step == x->w->step) ? x->f.batch : NULL;
}

weft_lengths weft_lengths_of(const weft_tensor *x)
{
    const weft_batch *b = batch_of(x);
    return b ? (weft_lengths){ .n = b->n, .len = b->len, .id = b->id, .offset = b->before } :
               (weft_lengths){ 0 };
}

const int32_t *weft_offsets(const weft_tensor *x) { return batch_of(x) ? x->f.batch->offset.host : NULL; }

weft_rows weft_rows_of(const weft_tensor *x)
{
    const struct weft__rows *r = batch_of(x) ? weft__rows_of(x->f.batch, &x->f) : NULL;
    return r ? (weft_rows){ r->sequence.host, r->position.host } : (weft_rows){ 0 };
}
