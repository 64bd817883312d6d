/* attention.c - softmax(scale q k^T) v within each sequence, between two ragged tensors.
 *
 * The fused operator stores no scores, only their log-sum-exp. The composed form works on all pairs of a
 * query and a visible key; it provides the map and second derivatives. Dropout masks are not stored. They are
 * a function of the record's attributes, so each pass draws them again. */
#include <math.h>
#include "autograd/op.h"
#include "core/shared/attention.h"

typedef weft__attention_of attention;
enum { Q, K, V };
enum { OUT, LSE, MAP };

static weft__attention attention_record(const weft_call *c)
{
    const attention *a = c->attributes;
    const weft_batch *q = c->x[Q]->f.batch, *k = c->x[K]->f.batch;
    const struct weft__rows *rows = a->below ? weft__rows_of(c->x[Q]->f.batch, &c->x[Q]->f) : NULL;
    return (weft__attention){ .sequences = q->n,
                              .queries = q->tokens,
                              .keys = k->tokens,
                              .heads = a->o.heads,
                              .dk = a->dk,
                              .dv = a->dv,
                              .q_offset = q->offset,
                              .k_offset = k->offset,
                              .map_offset = a->pairs ? a->pairs->offset : (weft__ints){ NULL, NULL },
                              .causal = (int)a->o.causal,
                              .shared_values = a->o.shared_values,
                              .mean = a->o.mean_heads,
                              .scale = a->scale,
                              .below = a->below,
                              .kept = a->kept,
                              .mask_key = a->mask_key,
                              .id = rows ? rows->id : NULL,
                              .position = rows ? rows->position.device : NULL,
                              .q = X(c, Q),
                              .k = X(c, K),
                              .v = X(c, V),
                              .y = Y(c, OUT),
                              .lse = Y(c, LSE),
                              .map = a->pairs ? Y(c, MAP) : NULL };
}

static bool attention_shape(weft_call *c)
{
    attention *a = (attention *)(uintptr_t)c->attributes;
    const weft__form *q = &c->x[Q]->f, *k = &c->x[K]->f, *v = &c->x[V]->f;
    int heads = a->o.heads;
    if (!q->batch || !k->batch || v->batch != k->batch || q->batch->n != k->batch->n || q->rank != 2 ||
        k->rank != 2 || v->rank != 2)
        return weft__refuse(c,
                            "expected ragged rows of rank 2, equal numbers of sequences in queries and keys "
                            "(%lld and %lld), and keys and values of one batch",
                            (long long)(q->batch ? q->batch->n : 0), (long long)(k->batch ? k->batch->n : 0));
    if (!is_real(c, Q) || !is_real(c, K) || !is_real(c, V) || heads < 1 || q->size[1] != k->size[1] ||
        q->size[1] % heads || (!a->o.shared_values && v->size[1] % heads))
        return weft__refuse(c,
                            "expected reals, queries and keys of one width (%lld and %lld), and widths that "
                            "are multiples of %d heads",
                            (long long)q->size[1], (long long)k->size[1], heads);
    a->dk = q->size[1] / heads;
    a->dv = a->o.shared_values ? v->size[1] : v->size[1] / heads;
    a->scale = a->o.scale != 0 ? (real)weft__or(a->o.scale, 1) : a->dk ? 1 / (real)sqrt((double)a->dk) : 1;
    c->y[OUT]->f = c->y[LSE]->f = *q;
    c->y[OUT]->f.size[1] = a->o.mean_heads ? a->dv : heads * a->dv;
    c->y[LSE]->f.size[1] = heads;
    if (a->pairs) {
        c->y[MAP]->f = weft__as_layout(c->y[LSE]->f, a->pairs, WEFT_CONCAT, 0, WEFT_ALIGN_LEFT, NULL);
    }
    return true;
}

static void attention_run(weft_call *c)
{
    weft__attention a = attention_record(c);
    if (!c->y[0]->w->status)                     /* otherwise no memory for the rows */
        RUN(c, attention, &a);
}

static void attention_fused(const weft_call *c)
{
    weft__attention a = attention_record(c);
    a.map = NULL;
    weft__blocks zeros = { 0 };
    a.dy = weft_op_dy(c, OUT), a.dq = weft__dx_sum(c, Q, &zeros), a.dk_ = weft__dx_sum(c, K, &zeros),
    a.dv_ = weft__dx_sum(c, V, &zeros);
    weft__run_blocks(c, &zeros);
    if (a.dy && !c->y[0]->w->status)
        RUN(c, attention_back, &a);
}

/* ---- composed ---- */
/* Returns the factor of dropout, [pairs, heads], for each pair of a query and a visible key. `like` has one
 * sequence for each query. */
static weft_tensor *dropout_factors(const attention *a, weft_tensor *const *x, weft_tensor *like)
{
    weft *w = like->w;
    const weft_batch *q = x[Q]->f.batch;
    const weft_lengths l = weft_lengths_of(like);
    const int64_t heads = a->o.heads;
    real *values = weft__take(w, WEFT__ARENA_CALLS, count(like) * (int64_t)sizeof *values), *next = values;
    for (int64_t s = 0, row = 0; values && s < q->n; s++)
        for (int32_t i = 0; i < q->len[s]; i++, row++)
            for (int64_t p = 0; p < l.len[row] * heads; p++) {
                uint64_t key = weft__head_key(a->mask_key, p % heads);
                int32_t position = i + (q->before ? q->before[s] : 0);
                *next++ = weft__philox_mask(key, q->id[s], position, p / heads) < a->below ? 0 : a->kept;
            }
    return values ? weft_ragged(w, values, heads, &(weft_lengths){ .n = l.n, .len = l.len }) : &w->nil;
}

static weft_tensor *by_heads(weft_tensor *x, int64_t heads, int64_t wide)
{
    return weft_reshape(x, 3, (int64_t[]){ weft_size(x, 0), heads, wide });
}

/* Uses visible pairs only: a weight of 0 times NaN or infinity would be NaN. */
static weft_tensor *compose_attention(const attention *a, weft_tensor *const *x, weft_tensor **map)
{
    const int causal = (int)a->o.causal;
    int64_t heads = a->o.heads;
    weft_tensor *q, *k, *v;
    weft__visible_pairs(x[Q], x[K], causal, &q, &k);
    weft__visible_pairs(x[Q], x[V], causal, NULL, &v);
    weft_tensor *scores = weft_scale(weft_sum(by_heads(weft_mul(q, k), heads, a->dk), 2), (double)a->scale);
    if (!weft_ok(x[Q]->w))
        return scores;
    weft_tensor *weights = weft_softmax(scores, 0, NULL);
    if (a->below && weft_ok(x[Q]->w))
        weights = weft_mul(weights, dropout_factors(a, x, weights));
    if (map)
        *map = weft__all_pairs(weights, x[Q], x[K], causal);
    heads = a->o.mean_heads ? 1 : heads;
    weights = a->o.mean_heads ? weft_mean(by_heads(weights, a->o.heads, 1), 1) : by_heads(weights, heads, 1);
    weft_tensor *parts = weft_mul(by_heads(v, a->o.shared_values ? 1 : heads, a->dv),
                                  weft_reshape(weights, 3, (int64_t[]){ -1, heads, 1 }));
    weft_tensor *rows = weft_pool(parts, WEFT_POOL_SUM);
    return weft_ragged_like(weft_reshape(rows, 2, (int64_t[]){ weft_size(rows, 0), heads * a->dv }),
                            weft_to_layout(x[Q], WEFT_CONCAT));
}

static void attention_composed(const weft_call *c, weft_tensor **y)
{
    y[OUT] = compose_attention(c->attributes, c->x, NULL);
}

static void describe_attention(const weft_call *c, char *text, size_t size)
{
    static const char *const masks[] = { "", ", causal from the top left", ", causal to the bottom right",
                                         ", causal, strict" };
    const attention *a = c->attributes;
    char dropout[40] = "";
    if (a->below)
        snprintf(dropout, sizeof dropout, ", dropout=%g", a->o.dropout);
    snprintf(text, size, "heads=%d%s, scale=%.4g%s%s", a->o.heads, a->o.mean_heads ? ", their mean" : "",
             (double)a->scale, masks[a->o.causal], dropout);
}

#define RECORD(n)                                                                       \
    {                                                                                   \
        .name = "attention", .results = n, .layout = WEFT_CONCAT, .ragged_apart = true, \
        .shape = attention_shape, .forward = attention_run, .fused = attention_fused,   \
        .composed = attention_composed, .describe = describe_attention                  \
    }
static const weft_op op_attention = RECORD(2), op_attention_map = RECORD(3);

/* ---- the function ---- */
/* Returns a batch with one sequence for each query row, as long as the memory of the query. */
static weft_batch *batch_of_pairs(weft_tensor *q, weft_tensor *k)
{
    weft *w = q->w;
    const weft_batch *bq = q->f.batch, *bk = k->f.batch;
    int32_t *len = weft__take(w, WEFT__ARENA_CALLS, bq->tokens * (int64_t)sizeof *len);
    for (int64_t s = 0, row = 0; len && s < bq->n; s++)
        for (int32_t i = 0; i < bq->len[s]; i++)
            len[row++] = bk->len[s];
    return len ? weft__batch(w, &(weft_lengths){ .n = bq->tokens, .len = len }, "attention") : NULL;
}

static const char *wrong_with(const weft_attention_opts *o)
{
    return (unsigned)o->causal > WEFT_CAUSAL_STRICT   ? "causal: expected a value of weft_causal" :
           o->mean_heads && !o->shared_values         ? "mean_heads: shared_values is false; expected both" :
           !isfinite(o->scale)                        ? "scale: expected a finite number" :
           !(o->dropout >= 0 && (real)o->dropout < 1) ? "dropout: expected 0 <= dropout < 1" :
           o->dropout > 0 && !o->name                 ? "name: expected a name for the dropout masks" :
                                                        NULL;
}

static void set_dropout(weft *w, attention *a, const weft_tensor *q)
{
    real p = (real)a->o.dropout;
    a->below = weft__threshold((double)p), a->kept = 1 / (1 - p);
    if (a->below && weft__ids_are_known(q, "attention"))
        a->mask_key = weft__mask_key(w, a->o.name);
}

weft_tensor *weft_attention(weft_tensor *q, weft_tensor *k, weft_tensor *v, const weft_attention_opts *opts,
                            weft_tensor **map)
{
    weft *w = weft__context(LIST(q, k, v));
    attention a = { .o = opts ? *opts : (weft_attention_opts){ .heads = 1 } };
    a.o.heads = a.o.heads ? a.o.heads : 1;
    if (map)
        *map = &w->nil;
    const char *error = wrong_with(&a.o);
    if (error)
        return weft__failed_of(LIST(q, k, v), WEFT_EARG, "attention",
                               "%s; given: causal %d, scale %g, dropout %g, name %s", error, (int)a.o.causal,
                               (double)a.o.scale, (double)a.o.dropout, a.o.name ? a.o.name : "NULL");
    if (w->training && weft_ok(w) && q)
        set_dropout(w, &a, q);
    if (!map)
        return APPLY_WITH(&op_attention, a, q, k, v);
    bool sound = q && k && !weft__handle_error(w, q) && !weft__handle_error(w, k) && q->f.batch &&
                 k->f.batch && q->f.batch->n == k->f.batch->n;
    if (sound)
        a.pairs = batch_of_pairs(q, k);
    /* While recording, the map comes from operators, so that it can be differentiated. */
    bool kernel = !w->recording;
    if (!a.pairs || !kernel) {
        a.pairs = NULL;
        const weft_call *c = weft__apply(&op_attention, LIST(q, k, v), &a, sizeof a);
        if (!weft_ok(w))
            return c->y[OUT];
        weft_tensor *views[] = { weft__new_view(c->x[Q]), weft__new_view(c->x[K]), weft__new_view(c->x[V]) };
        return compose_attention(c->attributes, views, map);
    }
    const weft_call *c = weft__apply(&op_attention_map, LIST(q, k, v), &a, sizeof a);
    if (weft_ok(w))
        *map = c->y[MAP];
    return c->y[OUT];
}
