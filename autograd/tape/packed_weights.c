/* packed_weights.c - caches packed weights by their first tensor, while the versions of all are the same. */
#include "autograd/packed_weights.h"
#include "autograd/op.h"

static bool has_tensors(const weft__packed *k, weft_tensor *const *weights, int n)
{
    int next = 0;
    for (int i = 0; i < n; i++)
        if (weights[i] && (next == k->n || k->of[next++].x != weights[i]))
            return false;
    return next == k->n;
}

static bool is_current(const weft__packed *k)
{
    bool same = k->filled;
    for (int i = 0; same && i < k->n; i++)
        same = k->of[i].version == node(k->of[i].x)->version;
    return same;
}

/* Returns NULL, without an error, if the copy cannot be stored. */
static weft__packed *packed_new(weft *w, weft_tensor *const *x, int n, weft__packed_kind kind, size_t bytes)
{
    if (w->kept_limit && w->kept_bytes + (int64_t)bytes > w->kept_limit)
        return NULL;
    weft__packed *k = weft__try_own(w, sizeof *k + WEFT__LINE + bytes);
    if (!k)
        return NULL;
    void *data = (void *)(((uintptr_t)(k + 1) + WEFT__LINE - 1) / WEFT__LINE * WEFT__LINE);
    for (int i = 0; i < n; i++)
        if (x[i])
            k->of[k->n++].x = x[i];
    k->kind = kind;
    k->bytes = bytes;
    k->data = data;
    k->next = node(x[0])->packed_copies, node(x[0])->packed_copies = k;
    w->kept_bytes += (int64_t)bytes;
    return k;
}

weft__packed *weft__packed_of(weft_tensor *const *weights, int n, weft__packed_kind kind, size_t bytes)
{
    weft *w = weights[0]->w;
    if (!bytes || w->recording || w->lean || w->kept_limit < 0)
        return NULL;
    weft__packed *k = node(weights[0])->packed_copies;
    while (k && !(k->kind == kind && k->bytes == bytes && has_tensors(k, weights, n)))
        k = k->next;
    k = k ? k : packed_new(w, weights, n, kind, bytes);
    if (k)
        k->filled = is_current(k);
    return k;
}

void weft__mark_filled(weft__packed *k)
{
    k->filled = true;
    for (int i = 0; i < k->n; i++)
        k->of[i].version = node(k->of[i].x)->version;
}
