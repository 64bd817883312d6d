/* attention.c - attention layers over a ragged memory: additive, general, and of several heads. A decoder
 * asks a memory many times, so whatever can be done to the few queries instead of the long memory is: general
 * attention's q . (W m) is (W^T q) . m. */
#include <math.h>
#include "nn/attention.h"

static const weft_init xavier = { WEFT_INIT_XAVIER, 1, 0 }, zero = { WEFT_INIT_ZERO, 0, 0 };

/* ---- additive ---- */
struct weft_additive_attention { weft_module *m; weft_tensor *query_weight, *memory_weight, *bias, *score; };

weft_additive_attention *weft_additive_attention_new(weft_module *parent, const char *name,
                                                     const weft_additive_attention_opts *opts)
{
    static weft_additive_attention none;
    weft_additive_attention_opts o = opts ? *opts : (weft_additive_attention_opts){ 0 };
    if (!WEFT__SIZES(parent, "additive_attention", name, opts, { "dq", o.dq }, { "dm", o.dm },
                     { "width", o.width }))
        return &none;
    weft_module *m = weft_submodule_new(parent, name);
    weft_additive_attention *a = weft__layer(m, sizeof *a);
    if (!a)
        return weft__finished(m, a, &none);
    real bound = (real)sqrt(6 / (double)(o.width + 1));        /* as [1, width] by Xavier */
    a->m = m;
    a->query_weight = weft_parameter(m, "query_weight", WEFT_SHAPE(o.width, o.dq), xavier);
    a->memory_weight = weft_parameter(m, "memory_weight", WEFT_SHAPE(o.width, o.dm), xavier);
    a->bias = weft_parameter(m, "bias", WEFT_SHAPE(o.width), zero);
    a->score = weft_parameter(m, "score", WEFT_SHAPE(o.width),
                              (weft_init){ WEFT_INIT_UNIFORM, (double)-bound, (double)bound });
    return weft__finished(m, a, &none);
}

static weft_attention_memory project_additive(const void *layer, weft_tensor *memory)
{
    const weft_additive_attention *a = layer;
    return (weft_attention_memory){ weft__linear(memory, a->memory_weight, a->bias, WEFT__UNARIES, 0),
                                    memory };
}

/* All pairs of a query and a memory row; a softmax over those of each query; their memory rows, summed by
 * these weights. */
static weft_tensor *additive(const void *layer, weft_tensor *q, weft_attention_memory memory,
                             weft_causal causal, weft_tensor **map)
{
    const weft_additive_attention *a = layer;
    (void)causal;
    weft_tensor *of_q = weft_matmul_with(q, false, a->query_weight, true), *of_q_pair, *of_m_pair, *value;
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
    weft__form f = y->f;                         /* its rows are the queries, sequence by sequence */
    f.batch = q->f.batch, f.layout = WEFT_CONCAT;
    return weft__view(y, &f);
}

static weft__asked by_additive(const weft_additive_attention *a)
{
    return (weft__asked){ a ? a->m : NULL, "additive_attention", a, project_additive, additive };
}
weft_tensor *weft_additive_attention_run(weft_additive_attention *a, weft_tensor *q, weft_tensor *memory,
                                         weft_tensor **map)
{
    return weft__attend(by_additive(a), q, memory, WEFT_ALL_KEYS, map);
}
weft_attention_memory weft_additive_attention_project(weft_additive_attention *a, weft_tensor *memory)
{
    return weft__project_memory(by_additive(a), memory);
}
weft_tensor *weft_additive_attention_query(weft_additive_attention *a, weft_tensor *q,
                                           weft_attention_memory memory, weft_tensor **map)
{
    return weft__attend_projected(by_additive(a), q, memory, WEFT_ALL_KEYS, map);
}

/* ---- general ---- */
struct weft_general_attention { weft_module *m; weft_tensor *weight; };

weft_general_attention *weft_general_attention_new(weft_module *parent, const char *name,
                                                   const weft_general_attention_opts *opts)
{
    static weft_general_attention none;
    weft_general_attention_opts o = opts ? *opts : (weft_general_attention_opts){ 0 };
    if (!WEFT__SIZES(parent, "general_attention", name, opts, { "dq", o.dq }, { "dm", o.dm }))
        return &none;
    weft_module *m = weft_submodule_new(parent, name);
    weft_general_attention *g = weft__layer(m, sizeof *g);
    if (!g)
        return weft__finished(m, g, &none);
    g->m = m;
    g->weight = weft_parameter(m, "weight", WEFT_SHAPE(o.dq, o.dm), xavier);
    return weft__finished(m, g, &none);
}

/* to the memory itself, by the projected query, and to projected keys */
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
    const weft_general_attention *g = layer;
    return general_query(layer, weft_matmul(q, g->weight), memory, causal, map);
}

static weft_attention_memory project_general(const void *layer, weft_tensor *memory)
{
    const weft_general_attention *g = layer;
    return (weft_attention_memory){ weft_matmul_with(memory, false, g->weight, true), memory };
}

weft_tensor *weft_general_attention_run(weft_general_attention *g, weft_tensor *q, weft_tensor *memory,
                                        weft_tensor **map)
{
    return weft__attend((weft__asked){ g ? g->m : NULL, "general_attention", g, NULL, general }, q, memory,
                        WEFT_ALL_KEYS, map);
}
static weft__asked by_general(const weft_general_attention *g)
{
    return (weft__asked){ g ? g->m : NULL, "general_attention", g, project_general, general_query };
}
weft_attention_memory weft_general_attention_project(weft_general_attention *g, weft_tensor *memory)
{
    return weft__project_memory(by_general(g), memory);
}
weft_tensor *weft_general_attention_query(weft_general_attention *g, weft_tensor *q,
                                          weft_attention_memory memory, weft_tensor **map)
{
    return weft__attend_projected(by_general(g), q, memory, WEFT_ALL_KEYS, map);
}

/* ---- several heads ---- */
struct weft_multihead_attention {
    weft_module *m;
    int64_t width;
    int heads;
    weft_tensor *weight, *bias;
    weft_linear *out;
};

static bool multihead_is_sound(weft_module *m, const char *name, const weft_multihead_attention_opts *o)
{
    if (!WEFT__SIZES(m, "multihead_attention", name, o, { "width", o ? o->width : 0 },
                     { "heads", o ? o->heads : 0 }))
        return false;
    if (o->width % o->heads)
        weft__fail(m->w, WEFT_EARG,
                   "multihead_attention: width %lld, %d heads; a width that heads divide is expected",
                   (long long)o->width, o->heads);
    return !m->w->status;
}

weft_multihead_attention *weft_multihead_attention_new(weft_module *parent, const char *name,
                                                       const weft_multihead_attention_opts *opts)
{
    static weft_multihead_attention none;
    if (!multihead_is_sound(parent, name, opts))
        return &none;
    weft_module *m = weft_submodule_new(parent, name);
    weft_multihead_attention *a = weft__layer(m, sizeof *a);
    if (!a)
        return weft__finished(m, a, &none);
    int64_t width = opts->width;
    a->m = m, a->width = width, a->heads = opts->heads;
    a->weight = weft_parameter(m, "in_proj_weight", WEFT_SHAPE(3 * width, width), xavier);
    a->bias = weft_parameter(m, "in_proj_bias", WEFT_SHAPE(3 * width), zero);
    a->out = weft__linear_as(m, "out_proj", width, width, weft__by_width(width));
    return weft__finished(m, a, &none);
}

/* Query, key or value, 0 .. 2: by its part of the weight. */
static weft_tensor *project_input(const weft_multihead_attention *a, weft_tensor *x, int i)
{
    return weft__linear_part(x, a->weight, a->bias, i * a->width, a->width);
}

static weft_attention_memory project_multihead(const void *layer, weft_tensor *memory)
{
    const weft_multihead_attention *a = layer;
    return (weft_attention_memory){ project_input(a, memory, 1), project_input(a, memory, 2) };
}

static weft_tensor *multihead(const void *layer, weft_tensor *q, weft_attention_memory memory,
                              weft_causal causal, weft_tensor **map)
{
    const weft_multihead_attention *a = layer;
    weft_attention_opts opts = { .heads = a->heads, .causal = causal };
    weft_tensor *query = project_input(a, q, 0);
    memory = memory.values ? memory : project_multihead(layer, memory.keys);
    return weft_linear_run(a->out, weft_attention(query, memory.keys, memory.values, &opts, map));
}

static weft__asked by_multihead(const weft_multihead_attention *a)
{
    return (weft__asked){ a ? a->m : NULL, "multihead_attention", a, project_multihead, multihead };
}
weft_tensor *weft_multihead_attention_run(weft_multihead_attention *a, weft_tensor *q, weft_tensor *memory,
                                          weft_causal causal, weft_tensor **map)
{
    return weft__attend(by_multihead(a), q, memory, causal, map);
}
weft_attention_memory weft_multihead_attention_project(weft_multihead_attention *a, weft_tensor *memory)
{
    return weft__project_memory(by_multihead(a), memory);
}
weft_tensor *weft_multihead_attention_query(weft_multihead_attention *a, weft_tensor *q,
                                            weft_attention_memory memory, weft_causal causal,
                                            weft_tensor **map)
{
    return weft__attend_projected(by_multihead(a), q, memory, causal, map);
}
