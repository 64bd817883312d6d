/* parallel.c - creates a weft_parallel: the ranks find each other and check that they train the same
 * model. */
#include <stdlib.h>
#include <string.h>
#include "autograd/fused.h"
#include "core/os.h"
#include "parallel/parallel.h"

static const double PATIENCE = 600;
static weft_parallel none;                       /* returned if none can be made; read only */

static bool ranks_agree(weft_parallel *p)
{
    const weft *w = p->w;
    const weft__fingerprint prints[] = {
        { "the version of weft", weft__hash(sizeof(real), weft_version()) },
        { "the seed", w->random.seed },
        { "the number of shards", (uint64_t)p->shards },
        { "the device or instruction set (WEFT_ISA=avx2 makes processors alike)",
          weft__hash(0, w->dev.k->name) },
        { "the precision", (uint64_t)w->dev.precision },
        { "the model", weft__fingerprint_of_model(p->module) },
        { "the lengths of the data", weft__fingerprint_of_lengths(p) },
    };
    bool ok;
    weft__begin_call(p);
    do
        ok = weft__agree(p, "weft_parallel_new", prints, sizeof prints / sizeof *prints) &&
             (!p->transport || (weft__find_shared_devices(p) && weft__link_up(p)));
    while (weft__repeat_call(p));
    return ok;
}

/* ---- options ---- */
static bool set_timeout(weft_parallel *p, double seconds)
{
    const char *value = weft__variable("WEFT_PARALLEL_TIMEOUT");
    char *end = NULL;
    p->timeout = seconds > 0 ? seconds : value && *value ? weft__plain_number(value, &end) : PATIENCE;
    bool ok = p->timeout > 0 && p->timeout < 1e9 && seconds >= 0 && (!end || !*end);
    if (!ok)
        weft__fail(p->w, WEFT_EARG,
                   "parallel_new: timeout %g, WEFT_PARALLEL_TIMEOUT=%s; expected seconds, above 0", seconds,
                   value ? value : "");
    return ok;
}

static bool shards_fit(weft_parallel *p, int shards)
{
    int ranks = p->world.ranks;
    p->shards = shards ? shards : ranks;
    p->shards_given = shards;
    if (shards < 0 || shards > WEFT__SHARDS)
        weft__fail(p->w, WEFT_EARG, "parallel_new: %d shards; expected 0 .. %d", shards, WEFT__SHARDS);
    else if (p->shards < ranks)
        weft__fail(p->w, WEFT_EARG,
                   "parallel_new: %d shards for %d ranks; expected at least one for each rank", shards,
                   ranks);
    return !p->w->status;
}

static bool keep_lengths(weft_parallel *p, const weft_parallel_opts *o)
{
    if (o->n < 0 || (o->n && !o->len) || o->n > INT32_MAX)
        weft__fail(p->w, WEFT_EARG, "parallel_new: %lld lengths%s", (long long)o->n,
                   o->len ? "" : ", len is NULL");
    for (int64_t i = 0; o->len && i < o->n && !p->w->status; i++)
        if (o->len[i] < 0)
            weft__fail(p->w, WEFT_EARG, "parallel_new: sequence %lld has length %d; expected 0 or more",
                       (long long)i, o->len[i]);
    if (p->w->status || !o->len)
        return !p->w->status;
    p->len = weft__allocate(p->w, (size_t)(o->n + 1) * sizeof *p->len);
    p->sequences = o->n;
    if (p->len && o->n)
        memcpy(p->len, o->len, (size_t)o->n * sizeof *p->len);
    return p->len;
}

/* ---- creation ---- */
static void parallel_end(void *user)
{
    weft_parallel *p = user;
    if (!p->w)
        return;
    weft__link_down(p);
    weft__release_levels(p);
    free(p->image.bytes);
    const weft__results *r = &p->results;
    void *const on_host[] = { p->len, p->stage.at, p->outbox.at, p->inbox.at, p->roll.at, p->batch.memory.at,
                              r->put.at, r->marks.at, r->gathered.at, r->table.at, p->shard_losses.host.at };
    void *const on_device[] = { p->batch.device.at, p->shard_losses.device.at, p->linked.terms.at };
    for (size_t i = 0; i < sizeof on_host / sizeof *on_host; i++)
        weft__release(p->w, on_host[i]);
    for (size_t i = 0; i < sizeof on_device / sizeof *on_device; i++)
        weft__device_release(p->w, on_device[i]);
}

static void parallel_recover(void *user)
{
    weft_parallel *p = user;
    if (!p->w || p->state == WEFT__IDLE)
        return;
    weft__shard_end(p->w);
    p->w->tape->pass_watch = NULL;
    p->abandoned = true;                         /* weft_parallel_next reports it to all ranks */
}

static bool initialise(weft_parallel *p, const weft_parallel_opts *o)
{
    char reason[600];
    if (!weft__transport_of(&p->transport, &p->world, reason, sizeof reason)) {
        weft__fail(p->w, WEFT_EDEVICE, "parallel_new: %s", reason);
        return false;
    }
    weft__update_place(p);                         /* an earlier weft_parallel may have lost ranks */
    bool ok = weft__await_reserve(p) && set_timeout(p, o->timeout) && shards_fit(p, o->shards) &&
              keep_lengths(p, o);
    p->own_shards = ok ? weft__shards_of(p->shards, p->world.rank, p->world.ranks) : (weft__branch){ 0, 0 };
    p->timeout = p->timeout > 0 ? p->timeout : PATIENCE;  /* needed to report the error to the other ranks */
    if (!ranks_agree(p))
        return false;
    if (p->transport && !o->no_signals)
        weft__signals_watch();
    if (p->w->dev.log && p->world.rank == 0)
        fprintf(stderr, "weft: %d ranks, %d shards, threads a rank: %d, CPUs: %d, %s%s%s\n", p->world.ranks,
                p->shards, weft_threads(p->w), weft__cpus(),
                p->transport ? p->transport->name : "no transport", p->transport ? ", " : "",
                weft__transport_version());
    return true;
}

weft_parallel *weft_parallel_new(weft_module *m, const weft_parallel_opts *opts)
{
    weft *w = m ? m->w : NULL;
    if (!w)
        return &none;
    w->running = "parallel_new";
    weft_parallel *p = weft__own(w, sizeof *p, parallel_end, parallel_recover);
    if (!p)
        return &none;
    p->w = w;
    p->module = m;
    w->dev.parallel = true;
    if (w->dev.blas_is_default)
        w->dev.blas = NULL;
    return initialise(p, opts ? opts : &(weft_parallel_opts){ 0 }) ? p : &none;
}

weft_parallel_place weft_parallel_place_of(const weft_parallel *p)
{
    if (!p || !p->w)
        return (weft_parallel_place){ 0, 1, 0, 1, 0, "none", 0 };
    const weft__world *x = &p->world;
    return (weft_parallel_place){ x->rank,  x->ranks, x->local_rank, x->local_ranks, p->shards,
                                  p->transport ? p->transport->name : "none",
                                  p->waited_by_all / x->ranks };
}

bool weft_parallel_stopping(const weft_parallel *p) { return p && p->stopping; }
