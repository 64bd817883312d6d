/* checkpoint.c - weft_save: writes module, optimiser, random streams and the program's items to one file with
 * a seal.
 *
 * The same state gives the same bytes. The file has no times and nothing about the process. Random streams
 * are sorted by name, and those never used are left out, because a new stream is the same. */
#include <stdlib.h>
#include <string.h>
#include "io/checkpoint/checkpoint.h"

/* ---- the stored parameters ---- */
bool weft__is_stored(const weft_module *m, const weft__parameter *p)
{
    return weft__is_below(p->module, m) && !(p->tied && weft__is_below(p->tied->module, m));
}

const weft__parameter *weft__next_stored(const weft_module *m, const weft__parameter *p)
{
    p = p ? p->next_in_root : m->root->first;
    while (p && !weft__is_stored(m, p))
        p = p->next_in_root;
    return p;
}

const weft__parameter *weft__numbers_of(const weft__parameter *p) { return p->tied ? p->tied : p; }

const char *weft__set_of(const weft_module *m, const weft__parameter *p, char path[WEFT__NAMED])
{
    snprintf(path, WEFT__NAMED, "%s/%s", p->buffer ? "buffers" : "parameters", weft__path_below(p, m));
    return path;
}

weft__kind weft__kind_of(const weft_tensor *x)
{
    weft__kind k = { .type = weft__number_of(x->f.type), .rank = x->f.rank };
    memcpy(k.size, x->f.size, sizeof k.size);
    return k;
}

static int by_place(const void *a, const void *b)
{
    int64_t x = (*(const weft__parameter *const *)a)->offset,
            y = (*(const weft__parameter *const *)b)->offset;
    return x < y ? -1 : x > y;
}

char *weft__order_of(const weft_module *m)
{
    size_t n = 0, bytes = 1, length = 0;
    for (const weft__parameter *p = NULL; (p = weft__next_stored(m, p)); n++)
        bytes += strlen(weft__path_below(p, m)) + 1;
    const weft__parameter **all = malloc((n + 1) * sizeof *all);
    char *text = all ? malloc(bytes) : NULL;
    if (text) {
        n = 0;
        for (const weft__parameter *p = NULL; (p = weft__next_stored(m, p)); )
            if (!p->buffer && !p->tied)
                all[n++] = p;
        qsort(all, n, sizeof *all, by_place);
        *text = 0;
        for (size_t i = 0; i < n; i++)
            length += (size_t)snprintf(text + length, bytes - length, "%s\n", weft__path_below(all[i], m));
    }
    free(all);
    return text;
}

weft_status weft__check_storable(const weft_module *m, const char *function, const char *path)
{
    if (!path || !*path)
        return weft__file_fail(WEFT_EARG, "%s: path is NULL or empty; expected the path of a file", function);
    if (!m || !m->w)
        return weft__file_fail(WEFT_EARG, "%s: %s: module is NULL, or its creation failed; expected a module",
                               function, path);
    weft_synchronize(m->w);                             /* reports failures of the device */
    if (m->w->status)
        return weft__file_fail(m->w->status, "%s: %s: the context has failed: %s",
                               function, path, weft_error_message(m->w));
    return WEFT_OK;
}

weft_status weft__check_storable_with(const weft_module *m, const weft_optim *o, const char *function,
                                      const char *path)
{
    weft_status s = weft__check_storable(m, function, path);
    if (!s && m->w->shard)
        return weft__file_fail(WEFT_EARG,
                               "%s: %s: a shard of a batch is in progress; expected a call outside shards; "
                               "call it after weft_parallel_next has returned false",
                               function, path);
    if (s || !o || weft__optim_belongs_to(o, m))
        return s;
    return weft__file_fail(WEFT_EARG, "%s: %s: optimiser belongs to another module; expected one of %s or of "
                                      "a module below it", function,
                           path, m->path);
}

/* ---- storing ---- */
weft_status weft__download(const char *file, const char *name, weft *w, const weft__kind *k,
                           const void *device, void **host)
{
    size_t bytes = weft__kind_bytes(k);
    *host = malloc(bytes + 1);
    if (!*host)
        return weft__file_fail(WEFT_ENOMEM, "%s: no memory for %s, %zu bytes", file, name, bytes);
    if (bytes)
        w->dev.k->download(&w->dev, *host, device, bytes);
    return w->dev.failure[0] ? weft__file_fail(WEFT_EDEVICE, "%s: %s: %s", file, name, w->dev.failure) :
                               WEFT_OK;
}

static void store_from(weft__sealed *f, const char *path, weft *w, const weft__kind *k, const void *device)
{
    void *host = NULL;
    if (!f->status)
        f->status = weft__download(f->path, path, w, k, device, &host);
    weft__sealed_write(f, path, k, host);
    free(host);
}

static void store_module(weft__sealed *f, const weft_module *m)
{
    char path[WEFT__NAMED];
    for (const weft__parameter *p = NULL; (p = weft__next_stored(m, p)); ) {
        const weft_tensor *x = &weft__numbers_of(p)->value;
        const weft__kind k = weft__kind_of(x);
        store_from(f, weft__set_of(m, p, path), m->w, &k, x->data);
        for (const weft__note *n = weft__numbers_of(p)->module->notes; n; n = n->next)
            weft__sealed_describe(f, path, n->key, n->value);
    }
}

static void store_optimiser(weft__sealed *f, const weft_module *m, weft_optim *o)
{
    char path[WEFT__NAMED], *order = weft__order_of(m);
    weft__saved all[32];
    int n = weft__optim_entries(o, all, 32);
    if (n == 0)
        weft__sealed_fail(f, WEFT_EARG, "optimiser: its creation failed; expected a valid one, or NULL to "
                                        "save none");
    for (int i = 0; i < n; i++) {
        weft__kind k = { weft__number_of(all[i].type), 1, { all[i].n } };
        snprintf(path, sizeof path, "optimizer/%s", all[i].name);
        if (all[i].device)
            store_from(f, path, m->w, &k, all[i].data);
        else
            weft__sealed_write(f, path, &k, all[i].data);
    }
    const weft__kind text = { WEFT__CHARS, 1, { order ? (int64_t)strlen(order) + 1 : 1 } };
    if (order)
        weft__sealed_write(f, "optimizer/order", &text, order);
    else
        weft__sealed_fail(f, WEFT_ENOMEM, "no memory for the names of the parameters");
    free(order);
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const weft_stream *const *)a)->name, (*(const weft_stream *const *)b)->name);
}

static void store_streams(weft__sealed *f, const weft *w)
{
    const weft__kind one = { WEFT__I64, 0, { 0 } }, two = { WEFT__I64, 1, { 2 } };
    int n = 0, i = 0;
    for (const weft_stream *s = w->random.streams; s; s = s->next)
        n += s->count > 0;
    const weft_stream **all = malloc(((size_t)n + 1) * sizeof *all);
    if (!all) {
        weft__sealed_fail(f, WEFT_ENOMEM, "no memory for %d random streams", n);
        return;
    }
    for (const weft_stream *s = w->random.streams; s; s = s->next)
        if (s->count > 0)
            all[i++] = s;
    qsort(all, (size_t)n, sizeof *all, by_name);
    weft__sealed_write(f, "streams/seed", &one, &w->random.seed);
    weft__sealed_write(f, "streams/draw", &one, &w->random.draw);
    for (i = 0; i < n; i++) {
        char path[WEFT__NAMED];
        snprintf(path, sizeof path, "streams/%d", i);
        weft__sealed_write(f, path, &two, (uint64_t[]){ all[i]->key, all[i]->count });
        weft__sealed_describe(f, path, "name", all[i]->name);
    }
    free(all);
}

weft_status weft_save(const char *path, weft_module *m, weft_optim *o, const weft_checkpoint_item *items,
                      int64_t n)
{
    weft_status s = weft__check_storable_with(m, o, "weft_save", path);
    weft__sealed *f;
    if (!s)
        s = weft__items_good("weft_save", items, n);
    if (!s)
        s = weft__sealed_new(path, o != NULL, &f);
    if (s)
        return s;
    store_module(f, m);
    if (o)
        store_optimiser(f, m, o);
    store_streams(f, m->w);
    weft__items_store(f, items, n);
    return weft__sealed_save(f);
}
