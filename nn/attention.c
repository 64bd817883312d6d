/* attention.c - attention layers over a ragged memory, with three kinds of score. A decoder queries one
 * memory many times. So work is done on the few queries where possible: the general score q . (W m) is
 * computed as (W^T q) . m. */
#include <math.h>
#include "nn/attention.h"

struct weft_attention_layer {
    weft_module *m;
    weft_attention_kind kind;
    int64_t width;
    int heads;
    weft_tensor *weight, *bias; /* GENERAL: weight; MULTIHEAD: three projections */
    weft_linear *out; /* MULTIHEAD */
    weft_tensor *query_weight, *memory_weight, *score; /* ADDITIVE, which also uses bias */
};

static const weft_init xavier = { WEFT_INIT_XAVIER, 1, 0 };
static const weft_init zero = { WEFT_INIT_ZERO, 0, 0 };

/* ---- ragged or plain ---- */
/* Returns a view as a ragged tensor, or x unchanged if it is ragged or has another rank. */
static weft_tensor *as_ragged(weft_tensor *x)
{
    if (x->f.batch || x->f.type != WEFT_REAL || (x->f.rank != 2 && x->f.rank != 3))
        return x;
    return weft__as_batch(x, "attention", x->f.size[0], x->f.rank == 3 ? x->f.size[1] : 1);
}

static bool memory_is_ragged(weft_tensor *memory)
{
    return as_ragged(memory)->f.batch && !(memory->f.rank == 2 && !memory->f.batch);
}

static bool batches_fit(weft_tensor *q, weft_tensor *memory)
{
    weft *w = q->w;
    if (!WEFT__IS_USABLE(w, memory, "attention: the memory"))
        return false;
    if (as_ragged(q)->f.rank != 2 || !as_ragged(q)->f.batch || !memory_is_ragged(memory))
        weft__fail(w, WEFT_ESHAPE,
                   "attention: query %s, memory %s; expected a query of rank 2 or plain of rank 3, and a "
                   "memory that is ragged of rank 2 or plain of rank 3",
                   WEFT__TEXT(&q->f), WEFT__TEXT(&memory->f));
    else if (as_ragged(q)->f.batch->n != as_ragged(memory)->f.batch->n)
        weft__fail(w, WEFT_ESHAPE, "attention: %s %lld, memory of %lld sequences; expected equal numbers",
                   q->f.batch ? "sequences of queries:" : "plain queries, one per sequence:",
                   (long long)as_ragged(q)->f.batch->n, (long long)as_ragged(memory)->f.batch->n);
    return !w->status;
}

static weft_tensor *plain_like(weft_tensor *y, const weft_tensor *q)
{
    weft__form f = q->f;
    if (!y->f.batch)                             /* the context has failed */
        return y;
    f.size[f.rank - 1] = width(y);
    return weft__view(weft_to_layout(y, WEFT_CONCAT), &f);
}

static weft_tensor *attend(weft__scorer a, weft_tensor *q, weft_attention_memory memory, weft_causal causal,
                           weft_tensor **map)
{
    weft_tensor *y = weft__bad_input(a.m, q, a.name);
    if (map)
        *map = y ? y : &q->w->nil;
    if (y)
        return y;
    const weft_module *before = weft__enter(a.m);
    y = &q->w->nil;
    if (batches_fit(q, memory.keys) && (memory.values == memory.keys || batches_fit(q, memory.values))) {
        memory = (weft_attention_memory){ as_ragged(memory.keys),
                                          a.project ? NULL : as_ragged(memory.values) };
        y = a.run(a.layer, as_ragged(q), memory, causal, map);
    }
    return weft__leave_with(a.m, before, q->f.batch ? y : plain_like(y, q));
}

weft_tensor *weft__attend(weft__scorer a, weft_tensor *q, weft_tensor *memory, weft_causal causal,
                          weft_tensor **map)
{
    return attend(a, q, (weft_attention_memory){ memory, memory }, causal, map);
}

/* ---- additive ---- */
static void additive_new(weft_attention_layer *a, const weft_attention_layer_opts *o)
{
    double bound = (double)(real)sqrt(6 / (double)(o->width + 1)); /* Xavier for [1, width] */
    a->query_weight = weft_parameter(a->m, "query_weight", WEFT_SHAPE(o->width, o->dq), xavier);
    a->memory_weight = weft_parameter(a->m, "memory_weight", WEFT_SHAPE(o->width, o->dm), xavier);
    a->bias = weft_parameter(a->m, "bias", WEFT_SHAPE(o->width), zero);
    a->score =
        weft_parameter(a->m, "score", WEFT_SHAPE(o->width), (weft_init){ WEFT_INIT_UNIFORM, -bound, bound });
}

static weft_attention_memory project_additive(const void *layer, weft_tensor *memory)
{
    const weft_attention_layer *a = layer;
    return (weft_attention_memory){ weft__linear(memory, a->memory_weight, a->bias, WEFT__UNARIES, 0),
                                    memory };
}

/* Scores all pairs of a query and a memory row. A softmax over the pairs of each query gives the weights for
 * the sum of memory rows. */
static weft_tensor *additive(const void *layer, weft_tensor *q, weft_attention_memory memory,
                             weft_causal causal, weft_tensor **map)
{
    const weft_attention_layer *a = layer;
    weft_tensor *of_q = weft_matmul_with(q, false, a->query_weight, true);
    weft_tensor *of_q_pair, *of_m_pair, *value;
    if (causal != WEFT_ALL_KEYS)
        weft__fail(q->w, WEFT_EARG, "additive_attention: causal %d; expected WEFT_ALL_KEYS", (int)causal);
    memory = memory.values ? memory : project_additive(layer, memory.keys);
    weft_pairs(of_q, memory.keys, &of_q_pair, &of_m_pair);
    weft_pairs(of_q, memory.values, NULL, &value);
    weft_tensor *score = weft_reshape(a->score, 2, (int64_t[]){ 1, -1 });
    weft_tensor *weight = weft_softmax(
        weft_matmul_with(weft_tanh(weft_add(of_q_pair, of_m_pair)), false, score, true), 0, NULL);
    weft_tensor *y = weft_pool(weft_mul(weight, value), WEFT_POOL_SUM);
    if (map)
        *map = weight;
    if (y->w->status)
        return &y->w->nil;
    weft__form f = y->f;                         /* one row for each query, in CONCAT order */
    f.batch = q->f.batch;
    f.layout = WEFT_CONCAT;
    return weft__view(y, &f);
}

/* ---- general ---- */
static void general_new(weft_attention_layer *a, const weft_attention_layer_opts *o)
{
    a->weight = weft_parameter(a->m, "weight", WEFT_SHAPE(o->dq, o->dm), xavier);
}

/* Applies projected queries to the memory, or queries to projected keys. */
static weft_tensor *general_query(const void *layer, weft_tensor *q, weft_attention_memory memory,
                                  weft_causal causal, weft_tensor **map)
{
    (void)layer;
    return weft_attention(q, memory.keys, memory.values,
                          &(weft_attention_opts){ .heads = 1, .scale = 1, .causal = causal }, map);
}
static weft_tensor *general(const void *layer, weft_tensor *q, weft_attention_memory memory,
                            weft_causal causal, weft_tensor **map)
{
    const weft_attention_layer *a = layer;
    return general_query(layer, weft_matmul(q, a->weight), memory, causal, map);
}

static weft_attention_memory project_general(const void *layer, weft_tensor *memory)
{
    const weft_attention_layer *a = layer;
    return (weft_attention_memory){ weft_matmul_with(memory, false, a->weight, true), memory };
}

/* ---- multiple heads ---- */
static void multihead_new(weft_attention_layer *a, const weft_attention_layer_opts *o)
{
    int64_t width = o->width;
    a->weight = weft_parameter(a->m, "in_proj_weight", WEFT_SHAPE(3 * width, width), xavier);
    a->bias = weft_parameter(a->m, "in_proj_bias", WEFT_SHAPE(3 * width), zero);
    a->out = weft__linear_new(a->m, "out_proj", width, width, weft__init_by_width(width));
}

/* Projects query, key or value (i = 0 .. 2) with its part of the weight. */
static weft_tensor *project_input(const weft_attention_layer *a, weft_tensor *x, int i)
{
    return weft__linear_part(x, a->weight, a->bias, i * a->width, a->width, WEFT__UNARIES);
}

static weft_attention_memory project_multihead(const void *layer, weft_tensor *memory)
{
    const weft_attention_layer *a = layer;
    return (weft_attention_memory){ project_input(a, memory, 1), project_input(a, memory, 2) };
}

static weft_tensor *multihead(const void *layer, weft_tensor *q, weft_attention_memory memory,
                              weft_causal causal, weft_tensor **map)
{
    const weft_attention_layer *a = layer;
    weft_attention_opts opts = { .heads = a->heads, .causal = causal };
    weft_tensor *query = project_input(a, q, 0);
    memory = memory.values ? memory : project_multihead(layer, memory.keys);
    return weft_linear_run(a->out, weft_attention(query, memory.keys, memory.values, &opts, map));
}

/* ---- the layer ---- */
static const struct kind {
    const char *name;
    void (*make)(weft_attention_layer *, const weft_attention_layer_opts *);
    weft__attention_projection *project;
    weft__attention_method *run;
} kinds[] = {
    [WEFT_MULTIHEAD] = { "multihead_attention", multihead_new, project_multihead, multihead },
    [WEFT_GENERAL] = { "general_attention", general_new, project_general, general_query },
    [WEFT_ADDITIVE] = { "additive_attention", additive_new, project_additive, additive },
};

static bool is_sound(weft_module *m, const char *name, const weft_attention_layer_opts *o)
{
    weft_attention_kind kind = o ? o->kind : WEFT_MULTIHEAD;
    weft *w = weft__ready(m);
    if (!w)
        return false;
    if ((unsigned)kind > WEFT_ADDITIVE) {
        weft__fail(w, WEFT_EARG, "attention: kind %d; expected a value of weft_attention_kind", (int)kind);
        return false;
    }
    const char *layer = kinds[kind].name;
    if (kind == WEFT_ADDITIVE)
        return WEFT__SIZES(m, layer, name, o, { "dq", o->dq }, { "dm", o->dm }, { "width", o->width });
    if (kind == WEFT_GENERAL)
        return WEFT__SIZES(m, layer, name, o, { "dq", o->dq }, { "dm", o->dm });
    if (!WEFT__SIZES(m, layer, name, o, { "width", o ? o->width : 0 }, { "heads", o ? o->heads : 0 }))
        return false;
    if (o->width % o->heads)
        weft__fail(w, WEFT_EARG, "%s: width %lld, %d heads; expected a width that is a multiple of heads",
                   layer, (long long)o->width, o->heads);
    return !w->status;
}

weft_attention_layer *weft_attention_new(weft_module *parent, const char *name,
                                         const weft_attention_layer_opts *opts)
{
    static weft_attention_layer inert;
    if (!is_sound(parent, name, opts))
        return &inert;
    weft_attention_layer *a = weft__layer_new(parent, name, sizeof *a);
    if (!a)
        return &inert;
    a->kind = opts->kind;
    a->width = opts->width;
    a->heads = opts->heads;
    kinds[a->kind].make(a, opts);
    return weft__finish_layer(a->m, a, &inert);
}

static weft__scorer scorer_of(const weft_attention_layer *a)
{
    if (!a || !a->m)
        return (weft__scorer){ .name = "attention" };
    const struct kind *k = &kinds[a->kind];
    return (weft__scorer){ a->m, k->name, a, k->project, k->run };
}

weft_tensor *weft_attention_run(weft_attention_layer *a, weft_tensor *q, weft_tensor *memory,
                                weft_causal causal, weft_tensor **map)
{
    weft__scorer scorer = scorer_of(a);
    if (scorer.run == general_query) { /* project the queries, not the memory */
        scorer.project = NULL;
        scorer.run = general;
    }
    return weft__attend(scorer, q, memory, causal, map);
}

weft_attention_memory weft_attention_project(weft_attention_layer *layer, weft_tensor *memory)
{
    const weft__scorer a = scorer_of(layer);
    weft_tensor *y = weft__bad_input(a.m, memory, a.name);
    if (y)
        return (weft_attention_memory){ y, y };
    weft *w = memory->w;
    const weft_module *before = weft__enter(a.m);
    weft_attention_memory projected = { &w->nil, &w->nil };
    if (!memory_is_ragged(memory))
        weft__fail(w, WEFT_ESHAPE, "attention: memory %s; expected ragged of rank 2 or plain of rank 3",
                   WEFT__TEXT(&memory->f));
    else
        projected = a.project(a.layer, as_ragged(memory));
    weft__leave(a.m, before);
    return projected;
}

weft_tensor *weft_attention_query(weft_attention_layer *a, weft_tensor *q, weft_attention_memory memory,
                                  weft_causal causal, weft_tensor **map)
{
    weft__scorer scorer = scorer_of(a);
    scorer.project = NULL;
    return attend(scorer, q, memory, causal, map);
}
