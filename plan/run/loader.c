/* loader.c - runs a planner epoch after epoch: each epoch is a plan, made when it begins.
 *
 * The plan of an epoch is a function of the stream's counter at its start. So a position has four numbers:
 * the epoch, the batch, that counter, and a fingerprint of the data and options. Restoring it makes the plan
 * again.
 *
 * weft_loader_batches, and early checks of the planner, need a plan before its epoch begins. That plan is
 * made with the stream's counter put back, so that a checkpoint of the time finds the stream unchanged.
 * weft_loader_next uses the plan if the stream still has that counter. */
#include <string.h>
#include "core/context.h"
#include "plan/options.h"
#include "plan/run/api_plan_run.h"

enum { POOL = 50 }; /* default number of batches in a pool */

struct weft_loader {
    weft *w;
    const char *name; /* a part of the stream's name, after "loader." */
    weft_stream *stream;
    const weft_planner *planner;
    weft_plan_opts opts;
    weft_plan plan; /* of the current epoch, or of the next one if planned */
    int64_t n, next, epoch; /* next: the next batch */
    bool open, valid, planned; /* an epoch is in progress; plan is valid; plan is for the next epoch */
    uint64_t before, after, print; /* the stream's counter before and after the plan; fingerprint */
    int32_t *len, *index; /* [n] each; index: the last batch returned */
    int64_t *lists; /* bounds, then sizes, of the options */
    double *cost; /* [n] of the options, or NULL */
};

static weft_loader none; /* returned if none can be made; read only */

static void end_loader(void *it)
{
    weft_loader *l = it;
    if (l->w)
        weft__release(l->w, l->len), weft__release(l->w, l->lists), weft__release(l->w, l->cost);
    weft_plan_free(&l->plan);
}

/* ---- epochs ---- */
/* Makes the plan of an epoch from the stream's counter `begun`. On failure the context has failed, returns
 * false, and leaves the stream and the old plan unchanged. */
static bool plan_epoch(weft_loader *l, uint64_t begun, int64_t epoch)
{
    const uint64_t before = l->stream->count;
    weft_plan_opts o = l->opts;
    weft_plan plan;
    l->stream->count = begun;
    o.stream = l->stream;
    o.epoch = epoch;
    weft__callback outer = weft__callback_begin(l->w, "the planner", l->planner->name);
    weft_status s = weft_plan_make(l->planner, l->len, l->n, &o, &plan);
    weft__callback_end(l->w, outer);
    if (s != WEFT_OK) {
        l->stream->count = before;
        return weft__fail(l->w, s, "loader \"%s\": %s", l->name, weft_plan_message()), false;
    }
    weft_plan_free(&l->plan);
    l->plan = plan;
    l->valid = true;
    l->planned = false;
    l->before = begun;
    l->after = l->stream->count;
    return true;
}

/* Plans the next epoch, and puts the stream's counter back. */
static bool plan_next_epoch(weft_loader *l)
{
    if (!plan_epoch(l, l->stream->count, l->epoch))
        return false;
    l->stream->count = l->before;
    return l->planned = true;
}

static bool begin_epoch(weft_loader *l)
{
    if (l->planned && l->stream->count == l->before)
        l->stream->count = l->after;
    else if (!plan_epoch(l, l->stream->count, l->epoch))
        return false;
    l->planned = false;
    l->open = true;
    l->next = 0;
    l->epoch++;
    return true;
}

/* ---- making ---- */
static uint64_t mix(uint64_t hash, uint64_t value)
{
    return (hash ^ value) * 0x9E3779B97F4A7C15u ^ (hash >> 29);
}

static uint64_t mix_real(uint64_t hash, double value) /* 0 does not change the hash */
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits ? mix(hash, bits) : hash;
}

/* Hashes the options of weft_loader_new. The formula is fixed, so that saved positions stay valid. */
static uint64_t mix_loader_opts(int64_t n, const weft_loader_opts *o, int pool)
{
    uint64_t hash = mix(mix((uint64_t)n, (uint64_t)o->count), (uint64_t)o->tokens);
    return mix(mix(hash, (uint64_t)pool), o->keep_order);
}

static uint64_t mix_plan_opts(int64_t n, const weft_planner *planner, const weft_plan_opts *o)
{
    const int64_t all[] = {
        n,         o->count,         o->tokens, o->pool,     o->budget, o->multiple, o->keep_order,
        o->edges,  o->least,         o->k,      o->capacity, o->limit,  o->carry,    o->slots,
        o->window, o->longest_first, o->ranks,  o->method,   o->rows,   o->open,     o->lookahead,
        o->shuffle
    };
    uint64_t hash = 0, ratio;
    memcpy(&ratio, &o->ratio, sizeof ratio);
    for (const char *c = planner->name; *c; c++)
        hash = mix(hash, (unsigned char)*c);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        hash = mix(hash, (uint64_t)all[i]);
    hash = mix(hash, ratio);
    /* options of later versions change the hash only if they are given */
    const int64_t later[] = { o->squares, o->align, o->longer, o->extra };
    for (int64_t i = 0; i < 4; i++)
        hash = later[i] ? mix(mix(hash, (uint64_t)i + 1), (uint64_t)later[i]) : hash;
    hash = mix_real(hash, o->per_square);
    for (int64_t i = 0; o->cost && i < n; i++)
        hash = mix_real(hash, o->cost[i]);
    for (int64_t i = 0; i < o->edges; i++)
        hash = mix(mix(hash, (uint64_t)o->bounds[i]), (uint64_t)o->sizes[i]);
    return o->edges ? mix(hash, (uint64_t)o->sizes[o->edges]) : hash;
}

static bool lengths_are_sensible(weft *w, const char *name, int64_t n, const int32_t *len)
{
    if (!name || strlen(name) > 30)
        return weft__fail(w, WEFT_EARG, "loader: expected a name of at most 30 bytes"), false;
    if (n < 0 || n >= INT32_MAX || (n && !len))
        return weft__fail(w, WEFT_EARG, "loader \"%s\": %lld sequences%s", name, (long long)n,
                          len ? "" : " without lengths"),
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
    for (const weft_loader *l = NULL; (l = weft__next_owned(w, end_loader, l));)
        if (l->stream && !strcmp(l->stream->name, stream))
            return true;
    return false;
}

static bool arrays(weft_loader *l, const int32_t *len)
{
    size_t n = (size_t)l->n, edges = (size_t)l->opts.edges;
    l->len = weft__allocate(l->w, (2 * n + 1) * sizeof *l->len);
    l->lists = edges ? weft__allocate(l->w, (2 * edges + 1) * sizeof *l->lists) : NULL;
    l->cost = l->opts.cost ? weft__allocate(l->w, (n + 1) * sizeof *l->cost) : NULL;
    if (!l->len || (edges && !l->lists) || (l->opts.cost && !l->cost))
        return false;
    if (l->cost && n)
        memcpy(l->cost, l->opts.cost, n * sizeof *l->cost);
    l->opts.cost = l->cost;
    l->index = l->len + n;
    if (n)
        memcpy(l->len, len, n * sizeof *len);
    if (edges) {
        memcpy(l->lists, l->opts.bounds, edges * sizeof *l->lists);
        memcpy(l->lists + edges, l->opts.sizes, (edges + 1) * sizeof *l->lists);
        l->opts.bounds = l->lists;
        l->opts.sizes = l->lists + edges;
    }
    return true;
}

static weft_loader *loader_new(weft *w, const char *name, int64_t n, const int32_t *len,
                               const weft_planner *planner, const weft_plan_opts *opts, uint64_t print)
{
    char stream[48];
    snprintf(stream, sizeof stream, "loader.%s", name);
    if (stream_is_taken(w, stream))
        return weft__fail(
                   w, WEFT_EARG,
                   "loader \"%s\": the name is in use; expected a unique name, because loaders of one name "
                   "share random numbers",
                   name),
               &none;
    weft_loader *l = weft__own(w, sizeof *l, end_loader, NULL);
    if (!l)
        return &none;
    l->w = w;
    l->n = n;
    l->planner = planner;
    l->opts = *opts;
    if (!arrays(l, len) || !(l->stream = weft_stream_of(w, stream)))
        return &none;
    l->name = strchr(l->stream->name, '.') + 1;
    l->print = print;
    for (int64_t i = 0; i < n; i++)
        l->print = mix(l->print, (uint64_t)len[i]);
    if (plan_next_epoch(l))
        return l;
    l->stream = NULL; /* frees the name */
    return &none;
}

weft_loader *weft_loader_new(weft *w, const char *name, int64_t n, const int32_t *len,
                             const weft_loader_opts *o)
{
    if (!w || !weft_ok(w) || !lengths_are_sensible(w, name, n, len))
        return &none;
    w->running = "loader";
    if (!o || o->count < 0 || o->tokens < 0 || o->pool < 0 || (!o->count && !o->tokens))
        return weft__fail(w, WEFT_EARG,
                          "loader \"%s\": count or tokens is missing or negative; expected count or tokens "
                          "of a batch", name),
               &none;
    const int pool = o->pool ? o->pool : POOL;
    const weft_plan_opts opts = {
        .count = o->count, .tokens = o->tokens, .pool = o->keep_order ? 0 : pool, .shuffle = !o->keep_order
    };
    return loader_new(w, name, n, len, weft_planner_named(o->keep_order ? "order" : "pool"), &opts,
                      mix_loader_opts(n, o, pool));
}

weft_loader *weft_plan_loader_new(weft *w, const char *name, int64_t n, const int32_t *len,
                                  const weft_planner *planner, const weft_plan_opts *opts)
{
    if (!w || !weft_ok(w) || !lengths_are_sensible(w, name, n, len))
        return &none;
    w->running = "loader";
    const weft_plan_opts o = opts ? *opts : (weft_plan_opts){ 0 };
    if (!planner || !planner->name || !planner->plan || o.edges < 0 || o.edges > INT32_MAX ||
        (o.edges && (!o.bounds || !o.sizes)))
        return weft__fail(w, WEFT_EARG,
                          "loader \"%s\": expected a planner, and lists of bounds and sizes with .edges "
                          "entries%s%s", name,
                          planner ? "" : "; the planner is NULL, ", planner ? "" : weft__planner_error()),
               &none;
    return loader_new(w, name, n, len, planner, &o, mix_plan_opts(n, planner, &o));
}

/* ---- use ---- */
static bool is_usable(const weft_loader *l) { return l && l->w && weft_ok(l->w); }

int64_t weft_loader_next_batch(weft_loader *l, const weft_plan **plan)
{
    if (plan)
        *plan = NULL;
    if (!plan || !is_usable(l) || !weft__refuse_in_shard(l->w, "loader_next") ||
        (!l->open && !begin_epoch(l)))
        return -1;
    *plan = &l->plan;
    if (l->next < l->plan.batches)
        return l->next++;
    l->open = false;
    return -1;
}

const int32_t *weft_loader_next(weft_loader *l, int64_t *size)
{
    const weft_plan *p;
    if (size)
        *size = 0;
    if (!size || !is_usable(l))
        return NULL;
    if (!(l->planner->promises & WEFT_PLAN_WHOLE))
        return weft__fail(l->w, WEFT_EARG,
                          "loader \"%s\": planner %s may cut sequences; expected one that keeps them whole; "
                          "call weft_loader_next_batch instead",
                          l->name, l->planner->name),
               NULL;
    int64_t b = weft_loader_next_batch(l, &p);
    if (b < 0)
        return NULL;
    *size = p->batch[b].n;
    for (int64_t i = 0; i < *size; i++)
        l->index[i] = (int32_t)p->segment[p->batch[b].first + i].sequence;
    return l->index;
}

int64_t weft_loader_batches(weft_loader *l)
{
    if (is_usable(l) && (!l->valid || (l->planned && l->stream->count != l->before)))
        plan_next_epoch(l);
    return l && l->valid ? l->plan.batches : 0;
}

int64_t weft_loader_epoch(const weft_loader *l) { return l ? l->epoch : 0; }

/* at: epochs begun; batches returned in the current epoch, -1 between two; the stream's counter at its start;
 * fingerprint. */
weft_loader_state weft_loader_get_state(const weft_loader *l)
{
    if (!l || !l->w)
        return (weft_loader_state){ { 0 } };
    uint64_t counter = l->open ? l->before : l->stream->count;
    return (weft_loader_state){ { l->epoch, l->open ? l->next : -1, (int64_t)counter, (int64_t)l->print } };
}

/* Plans the epoch that began at the stream's counter `begun`. Returns false without a plan or
 * a batch `position`; then the context has failed, and nothing else is changed. */
static bool plan_again(weft_loader *l, uint64_t begun, int64_t epoch, int64_t position)
{
    weft_loader before = *l;
    const uint64_t count = l->stream->count;
    l->plan = (weft_plan){ 0 };
    if (plan_epoch(l, begun, epoch) && position <= l->plan.batches)
        return weft_plan_free(&before.plan), true;
    weft__fail(l->w, WEFT_EARG, "%s: the saved position is batch %lld of %lld; expected a batch of the plan",
               l->stream->name, (long long)position, (long long)l->plan.batches);
    weft_plan_free(&l->plan);
    *l = before;
    l->stream->count = count;
    return false;
}

void weft_loader_set_state(weft_loader *l, weft_loader_state state)
{
    if (!is_usable(l))
        return;
    const int64_t *value = state.at;
    if ((uint64_t)value[3] != l->print)
        weft__fail(l->w, WEFT_EARG, "%s: the position was saved with other sequences or options; expected "
                                    "the same",
                   l->stream->name);
    else if (value[0] < 0 || value[0] > INT64_MAX / 2 || value[1] < -1 || (value[1] >= 0 && !value[0]) ||
             value[2] < 0 || value[2] > INT64_MAX / 2)
        weft__fail(l->w, WEFT_EARG, "%s: the saved position is damaged: epoch %lld, batch %lld, %lld draws; "
                                    "expected one of weft_loader_get_state",
                   l->stream->name, (long long)value[0], (long long)value[1], (long long)value[2]);
    else if (value[1] >= 0)
        plan_again(l, (uint64_t)value[2], value[0] - 1, value[1]);
    if (!weft_ok(l->w))
        return;
    l->epoch = value[0];
    l->open = value[1] >= 0;
    l->next = l->open ? value[1] : 0;
    l->valid = l->open;
    if (!l->open)
        l->stream->count = (uint64_t)value[2];
}
