/* dropout.c - dropout. The mask depends only on its key and on (sequence id, position, column). So the
 * backward is the same operator, and layout, neighbours and threads do not change the mask. */
#include "autograd/op.h"

/* of_shard: rows are sequences of the current shard */
typedef struct { real p; uint64_t key; bool per_sequence, of_shard; } drop;

static bool dropout_shape(weft_call *c)
{
    weft_op_like(c->y[0], c->x[0]);
    return (is_real(c, 0) && c->x[0]->f.rank > 0) || weft_op_refuse(c, "expected reals with rows");
}

static void dropout_run(weft_call *c)
{
    const drop *d = c->attributes;
    const weft__form *x = &c->x[0]->f;
    const struct weft__rows *r = x->batch ? weft__rows_of(x->batch, x) : NULL;
    int64_t rows = x->size[0];
    const weft__shard *shard = d->of_shard ? c->x[0]->w->shard : NULL;
    if (rows && (r || !x->batch))
        RUN(c, dropout, rows, count(c->y[0]) / rows, d->p, d->key,
            r     ? r->id :
            shard ? shard->device_id :
                    NULL,
            r && !d->per_sequence ? r->position.device : NULL, X(c, 0), Y(c, 0), c->add);
}

static weft_tensor *dropout_back(const weft_call *c, weft_tensor *dy, int i)
{
    (void)i;
    return APPLY_WITH(c->op, *(const drop *)c->attributes, dy);
}

static void describe_dropout(const weft_call *c, char *text, size_t size)
{
    const drop *d = c->attributes;
    snprintf(text, size, "p=%g%s", (double)d->p, d->per_sequence ? ", per sequence" : "");
}

static const weft_op op_dropout = { .name = "dropout",
                                    .adds = true,
                                    .in_place = true,
                                    .unread = 1,
                                    .shape = dropout_shape,
                                    .forward = dropout_run,
                                    .backward = dropout_back,
                                    .describe = describe_dropout };

weft_tensor *weft__row_factors(weft *w, int64_t rows, double p, const char *name)
{
    drop d = { (real)p, weft__hash(w->random.seed, name) ^ (w->random.draw * 0x9E3779B97F4A7C15u), true,
               false };
    weft_tensor *ones = weft_full(w, 1, WEFT_SHAPE(rows));
    return APPLY_WITH(&op_dropout, d, ones);
}

/* Returns the number of the call with this name in the step. */
static uint64_t call_number(weft *w, uint64_t name)
{
    struct weft__tape *t = weft__tape_of(w);
    for (weft__drops *d = t ? t->dropouts : NULL; d; d = d->next)
        if (d->name == name)
            return ++d->calls;
    weft__drops *d = t ? weft__take(w, WEFT__ARENA_STEP, sizeof *d) : NULL;
    if (d) {
        *d = (weft__drops){ t->dropouts, name, 0 };
        t->dropouts = d;
    }
    return 0;
}

uint64_t weft__mask_key(weft *w, const char *name)
{
    uint64_t key = weft__hash(w->random.seed, name), number = call_number(w, key);
    w->random.counted = false;
    return key ^ (w->random.draw * 0x9E3779B97F4A7C15u + number * 0xD1342543DE82EF95u);
}

bool weft__ids_are_known(const weft_tensor *x, const char *function)
{
    const weft__shard *shard = x->w->shard;
    bool kept = node(x)->path, plain = !x->f.batch;
    if (!shard || kept || (plain ? x->f.rank && x->f.size[0] == shard->n : !x->f.batch->ids_unknown))
        return true;
    int64_t n = !plain ? x->f.batch->n : x->f.rank ? x->f.size[0] : 0;
    weft__fail(x->w, WEFT_EARG,
               "%s: %lld %s in a shard of %lld sequences; expected ids (weft_lengths.id), because the mask "
               "depends on the sequence in the whole batch",
               function, (long long)n, plain ? "rows" : "sequences without ids", (long long)shard->n);
    return false;
}

weft_tensor *weft_dropout(weft_tensor *x, double p, const char *name, bool per_sequence)
{
    if (!x || weft__handle_error(x->w, x) || !(p >= 0 && (real)p < 1) || !name)
        return weft__failed(x, WEFT_EARG, "dropout", "p = %g%s; expected a name and 0 <= p < 1", p,
                            name ? "" : ", no name");
    weft *w = x->w;
    if (!w->training || p == 0)
        return x;
    if (!weft__ids_are_known(x, "dropout"))
        return &w->nil;
    drop d = { (real)p, weft__mask_key(w, name), per_sequence, w->shard && !x->f.batch && !node(x)->path };
    return APPLY_WITH(&op_dropout, d, x);
}
