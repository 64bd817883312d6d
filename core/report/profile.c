/* profile.c - measures time and arithmetic of each operator, for weft_profile_of and WEFT_LOG=2.
 *
 * One row is timed at any moment. An operator switches to its own row when it begins and back when it ends,
 * so its time excludes the operators that it calls. While profiling, the context uses a copy of the kernel
 * table in which kernels with products also count their operations. On a GPU each switch waits for the
 * device; without that only launches would be timed. */
#include <stdlib.h>
#include <string.h>
#include "core/report/profile.h"

/* ---- rows ---- */
static weft__timed *row_named(struct weft__profile *p, const char *name, bool back)
{
    uint64_t slot = weft__hash(back, name);
    for (int i = 0; i < WEFT__TIMED_ROWS - 1; i++, slot++) {
        weft__timed *r = &p->row[1 + slot % (WEFT__TIMED_ROWS - 1)];
        if (!r->name[0]) {
            snprintf(r->name, sizeof r->name, "%s", *name ? name : "?");
            r->back = back;
        }
        if (r->back == back && !strncmp(r->name, *name ? name : "?", sizeof r->name - 1))
            return r;
    }
    return &p->row[0];                           /* the table is full */
}

static void switch_row(weft *w, weft__timed *to)
{
    struct weft__profile *p = inside(w)->profile;
    if (w->profiling) {
        if (!w->dev.k->synchronous)
            w->dev.k->wait(&w->dev);
        int64_t t = weft__now();
        p->now->ns += t - p->since;
        p->now->launches += w->dev.launches - p->launched;
        p->since = t;
        p->launched = w->dev.launches;
    }
    p->now = to;
}

weft__timed *weft__profile_enter(weft *w, const char *name, bool back)
{
    weft__timed *before = inside(w)->profile->now;
    switch_row(w, row_named(inside(w)->profile, name, back));
    inside(w)->profile->now->calls++;
    return before;
}

void weft__profile_leave(weft *w, weft__timed *before) { switch_row(w, before); }
void weft__profile_bytes(weft *w, int64_t bytes)       { inside(w)->profile->now->bytes += (double)bytes; }

/* ---- arithmetic of the kernels ---- */
/* Returns the operations of the cell and of the products with recurrent weights, which are equal for forward
 * and backward. The caller adds the layer's other products. */
static double recurrence_flops(const weft__recurrence *r)
{
    int64_t tokens = r->start.host[r->to] - r->start.host[r->from];
    double units = (double)tokens * (double)r->hidden;
    return 2. * units * (double)r->width * (weft__gates(r->cell) + (r->w_hr != NULL)) +
           units * weft__flops(r->cell);
}

/* Returns the operations of the recurrence and of the products outside it. */
static double layer_flops(const weft__recur_layer *l, bool back)
{
    const weft__recurrence *r = &l->r;
    double tokens = 2. * (double)(r->start.host[r->to] - r->start.host[r->from]),
           G = (double)(r->hidden * weft__gates(r->cell));
    int products = back ? (l->dx.to != NULL) + (l->dw_ih.to != NULL) : 1;
    double more = back && l->dw_hh.to ? G * (double)r->width : 0,
           projected = back && l->dw_hr.to ? (double)(r->width * r->hidden) : 0;
    return recurrence_flops(r) + (l->ids ? 2. * (double)l->rows : tokens) * products * G * (double)l->inputs +
           tokens * (more + projected) + (l->beside ? layer_flops(l->beside, back) : 0);
}

/* Returns the number of pairs of a query and a key that it sees. causal: see weft__attention. */
static double count_pairs(int causal, int64_t queries, int64_t keys)
{
    double pairs = 0;
    int64_t shift = causal == 1 ? 1 : keys - queries + (causal == 2);
    for (int64_t i = 0; causal && i < queries; i++)
        pairs += (double)(i + shift < 0 ? 0 : i + shift > keys ? keys : i + shift);
    return causal ? pairs : (double)queries * (double)keys;
}

/* Forward computes a product of dk and one of dv for each pair. Backward computes the score again, and the
 * gradients of score, q, k and v. Averaged heads share the products of dv. */
static double attention_flops(const weft__attention *a, bool back)
{
    const int64_t key_width = a->heads * a->dk, value_width = (a->mean ? 1 : a->heads) * a->dv;
    double pairs = 0, each = 2. * (double)(back ? 3 * key_width + 2 * value_width : key_width + value_width);
    for (int64_t s = 0; s < a->sequences; s++)
        pairs += count_pairs(a->causal, a->q_offset.host[s + 1] - a->q_offset.host[s],
                             a->k_offset.host[s + 1] - a->k_offset.host[s]);
    return pairs * each;
}

/* ---- counting versions of kernels; optimiser kernels also get their own rows ---- */
/* The device is the first member of its context. */
static struct weft__profile *profile_of(weft__device *d) { return inside((weft *)(void *)d)->profile; }

static void counted_gemm(weft__device *d, const weft__product *p, const real *a, const real *b, real *c)
{
    profile_of(d)->now->flops += 2. * (double)p->m * (double)p->n * (double)p->k * (double)p->batches;
    profile_of(d)->plain->gemm(d, p, a, b, c);
}
/* Defines counted_KERNEL. Kernels that this one calls are not counted again. */
#define COUNTED(kernel, arguments, operations)                        \
    static void counted_##kernel(weft__device *d, const arguments *a) \
    {                                                                 \
        struct weft__profile *p = profile_of(d);                      \
        p->now->flops += operations;                                  \
        d->k = p->plain;                                              \
        p->plain->kernel(d, a);                                       \
        d->k = &p->counting;                                          \
    }
COUNTED(recur, weft__recurrence, recurrence_flops(a))
COUNTED(recur_back, weft__recurrence, recurrence_flops(a))
COUNTED(recur_layer, weft__recur_layer, layer_flops(a, false))
COUNTED(recur_layer_back, weft__recur_layer, layer_flops(a, true))
COUNTED(attention, weft__attention, attention_flops(a, false))
COUNTED(attention_back, weft__attention, attention_flops(a, true))

static void counted_norm(weft__device *d, int64_t n, real power, const real *x, bool start, weft__guard *g)
{
    weft *w = (weft *)(void *)d;
    weft__timed *before = weft__profile_enter(w, "norm of gradients", false);
    inside(w)->profile->plain->norm(d, n, power, x, start, g);
    weft__profile_bytes(w, n * (int64_t)sizeof *x);
    weft__profile_leave(w, before);
}
static void counted_clip(weft__device *d, int64_t n, real power, real limit, const weft__guard *g, real *x,
                         real *y)
{
    weft *w = (weft *)(void *)d;
    weft__timed *before = weft__profile_enter(w, "clip", false);
    inside(w)->profile->plain->clip(d, n, power, limit, g, x, y);
    weft__profile_bytes(w, 2 * n * (int64_t)sizeof *x);
    weft__profile_leave(w, before);
}
static void counted_update(weft__device *d, int64_t n, const weft__update *u, const weft__guard *past,
                           const weft__guard *g, real *dx, real *m, real *v, real *a, real *x)
{
    weft *w = (weft *)(void *)d;
    weft__timed *before = weft__profile_enter(w, "update", false);
    inside(w)->profile->plain->update(d, n, u, past, g, dx, m, v, a, x);
    weft__profile_bytes(w, n * (int64_t)sizeof *x * (3 + 2 * ((m != NULL) + (v != NULL) + (a != NULL))));
    weft__profile_leave(w, before);
}

static void count_kernels(struct weft__profile *p)
{
    p->counting = *p->plain;
    p->counting.gemm = counted_gemm;
    p->counting.recur = counted_recur;
    p->counting.recur_back = counted_recur_back;
    p->counting.recur_layer = counted_recur_layer;
    p->counting.recur_layer_back = counted_recur_layer_back;
    p->counting.attention = counted_attention;
    p->counting.attention_back = counted_attention_back;
    p->counting.norm = counted_norm;
    p->counting.clip = counted_clip;
    p->counting.update = counted_update;
}

/* ---- on, off, reset ---- */
static bool profile_new(weft *w)
{
    struct weft__profile *p = weft__allocate(w, sizeof *p);
    if (!p)
        return false;
    memset(p, 0, sizeof *p);
    p->plain = w->dev.k;
    p->now = p->row;
    count_kernels(p);
    inside(w)->profile = p;
    return true;
}

bool weft_set_profiling(weft *w, bool enabled)
{
    if (!w || weft__is_no_context(w))
        return false;
    bool old = w->profiling;
    if (old == enabled || (enabled && !inside(w)->profile && !profile_new(w)))
        return old;
    if (!enabled)
        switch_row(w, inside(w)->profile->now);          /* adds the time so far */
    w->profiling = enabled;
    inside(w)->profile->since = weft__now(), inside(w)->profile->launched = w->dev.launches;
    w->dev.k = enabled ? &inside(w)->profile->counting : inside(w)->profile->plain;
    return old;
}

void weft_reset_profile(weft *w)
{
    struct weft__profile *p = w ? inside(w)->profile : NULL;
    for (int i = 0; p && i < WEFT__TIMED_ROWS; i++) {        /* names stay: an operator may be running */
        p->row[i].calls = p->row[i].ns = p->row[i].launches = 0;
        p->row[i].flops = p->row[i].bytes = 0;
    }
    if (p)
        p->since = weft__now(), p->launched = w->dev.launches;
}

void weft__profile_end(weft *w)
{
    weft_set_profiling(w, false);
    weft__release(w, inside(w)->profile);
    inside(w)->profile = NULL;
}

/* ---- the result ---- */
static int by_time(const void *a, const void *b)
{
    const weft_profile_row *x = a, *y = b;
    int by_name = strcmp(x->name, y->name);
    return x->ms != y->ms ? (x->ms < y->ms) - (x->ms > y->ms) : by_name ? by_name : x->backward - y->backward;
}

weft_profile weft_profile_of(weft *w)
{
    struct weft__profile *p = w ? inside(w)->profile : NULL;
    weft_profile result = { 0 };
    if (!p)
        return result;
    switch_row(w, p->now);
    result.beside_ms = result.ms = (double)p->row[0].ns * 1e-6;
    result.rows = p->result;
    for (int i = 1; i < WEFT__TIMED_ROWS; i++) {
        const weft__timed *r = &p->row[i];
        if (!r->calls && !r->ns)
            continue;
        p->result[result.n] = (weft_profile_row){ r->name, r->back, r->calls, (double)r->ns * 1e-6, r->flops,
                                              r->bytes, r->launches };
        result.ms += p->result[result.n++].ms;
    }
    qsort(p->result, (size_t)result.n, sizeof *p->result, by_time);
    return result;
}
