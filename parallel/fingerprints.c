/* fingerprints.c - hashes of data that must be equal on all ranks.
 *
 * Two ranks that train different models, or one model with different options, would add unrelated gradients
 * without any sign of it. */
#include <string.h>
#include "nn/optim.h"
#include "parallel/parallel.h"

uint64_t weft__hash_mix(uint64_t h, uint64_t with)
{
    h = (h ^ with) * 0x9E3779B97F4A7C15u;
    return h ^ h >> 29;
}

static uint64_t mixed_real(uint64_t h, real x)
{
    uint64_t bits = 0;
    memcpy(&bits, &x, sizeof x);
    return weft__hash_mix(h, bits);
}

/* ---- hashes of names and shapes, lengths, streams ---- */
uint64_t weft__fingerprint_of_model(const weft_module *m)
{
    uint64_t h = 1;
    for (const weft__parameter *p = NULL; (p = weft__next_parameter(m, p));) {
        h = weft__hash_mix(h, weft__hash((uint64_t)p->buffer, p->path));
        for (int i = 0; i < p->value.f.rank; i++)
            h = weft__hash_mix(h, (uint64_t)p->value.f.size[i]);
    }
    return h;
}

uint64_t weft__fingerprint_of_lengths(const weft_parallel *p)
{
    uint64_t h = weft__hash_mix(2, (uint64_t)p->sequences);
    for (int64_t i = 0; p->len && i < p->sequences; i++)
        h = weft__hash_mix(h, (uint64_t)p->len[i]);
    return h;
}

uint64_t weft__fingerprint_of_batch(const weft_parallel *p)
{
    const weft__portion *b = &p->batch;
    uint64_t h = weft__hash_mix((uint64_t)b->n, (uint64_t)b->number);
    for (int64_t i = 0; i < b->n; i++)
        h = weft__hash_mix(h, (uint64_t)b->index[i] << 32 ^ (uint64_t)b->place[i]);
    return h;
}

uint64_t weft__fingerprint_of_streams(const weft *w)
{
    uint64_t h = w->random.draw;
    for (const weft_stream *s = w->random.streams; s; s = s->next)
        if (s->count)  /* a sum, because streams have no order: some may not exist yet on a rank */
            h += weft__hash_mix(s->key, s->count);
    return h;
}

/* ---- optimisers ---- */
static uint64_t mixed_update(uint64_t h, const weft__update *u)
{
    const real numbers[] = { u->lr, u->decay, u->eps, u->beta1, u->beta2 };
    h = weft__hash_mix(h, (uint64_t)u->rule << 3 | (uint64_t)u->decoupled << 2 | (uint64_t)u->nesterov << 1 |
                              u->centered);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        h = mixed_real(h, numbers[i]);
    return h;
}

static uint64_t mixed_optimiser(uint64_t h, const weft_optim *o, const weft__parameter *p)
{
    h = mixed_update(mixed_update(h, &o->update), &o->others);
    h = weft__hash_mix(h, (uint64_t)o->muon_steps << 1 | o->match_rms_adamw);
    for (int i = 0; i < o->n; i++)
        if (o->slot[i].p == p)
            h = mixed_real(mixed_real(h, o->slot[i].scale), o->slot[i].decay) + o->slot[i].muon;
    return h;
}

uint64_t weft__fingerprint_of_optimisers(const weft_module *m)
{
    uint64_t h = 3;
    for (const weft__parameter *p = NULL; (p = weft__next_parameter(m, p));)
        h = p->optim ? mixed_optimiser(h, p->optim, p) : h;
    return h;
}

/* ---- values ---- */
static uint64_t hash_values(const weft__parameter *p, void *host)
{
    weft__device *d = &p->value.w->dev;
    int64_t n = weft__elements(&p->value.f);
    const real *x = d->k->synchronous ? p->value.data : host;
    if (!d->k->synchronous)
        d->k->download(d, host, p->value.data, (size_t)n * sizeof *x);
    uint64_t h = (uint64_t)n;
    for (int64_t i = 0; i < n && !p->shard; i++)
        h = mixed_real(h, x[i]);
    return h;
}

uint64_t *weft__fingerprints_of_values(weft_parallel *p, int64_t *n)
{
    int64_t most = 0;
    *n = 0;
    for (const weft__parameter *q = NULL; (q = weft__next_parameter(p->module, q)); ++*n)
        most = weft__elements(&q->value.f) > most ? weft__elements(&q->value.f) : most;
    bool device = !p->w->dev.k->synchronous;
    uint64_t *all = weft__allocate(p->w, (size_t)(*n + 1) * sizeof *all), *to = all;
    void *host = device ? weft__allocate(p->w, (size_t)(most + 1) * sizeof(real)) : NULL;
    for (const weft__parameter *q = NULL;
         all && (host || !device) && (q = weft__next_parameter(p->module, q));)
        *to++ = hash_values(q, host);
    weft__release(p->w, host);
    return all;
}

void weft__name_difference(weft_parallel *p, const char *operation, const uint64_t *own, int64_t n)
{
    if (!weft__hand_out(p, operation, own, n * (int64_t)sizeof *own))
        return;
    const uint64_t *a = weft__words_of(p, 0);
    for (int q = 1; q < p->world.ranks; q++) {
        const uint64_t *b = weft__words_of(p, q);
        const weft__parameter *x = weft__next_parameter(p->module, NULL);
        for (int64_t i = 0; x; x = weft__next_parameter(p->module, x), i++)
            if (a[i] != b[i]) {
                weft__explain(p->w,
                              "%s: the values of ranks 0 and %d differ, first in %s; expected equal values; "
                              "create, load and change it on all ranks",
                              operation, q, x->path);
                return;
            }
    }
}
