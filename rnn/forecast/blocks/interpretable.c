/* interpretable.c - InterpretableMultiHeadAttention (Lim et al. 2021). Heads have their own queries and keys
 * but share the values, so the mean of their maps shows the influence of each key. All heads are projected in
 * one product with concatenated weights. */
#include <math.h>
#include "nn/attention.h"
#include "rnn/forecast/blocks/blocks.h"

enum { MOST_HEADS = 256 };

struct weft__interpretable {
    weft_module *m;
    int64_t width;
    int64_t dk;                                  /* width of a head */
    int heads;
    double dropout;
    weft_tensor **query, **key;                  /* weights of the heads, then their biases */
    weft_linear *value, *output;
};

static const weft_init xavier = { WEFT_INIT_XAVIER, 1, 0 };
static const weft_init zero = { WEFT_INIT_ZERO, 0, 0 };

/* ---- making ---- */
static weft_tensor **heads_new(const weft__interpretable *a, const char *name)
{
    weft_tensor **heads = weft__layer(a->m, 2 * (size_t)a->heads * sizeof *heads);
    weft_module *m = weft_submodule_new(a->m, name);
    for (int h = 0; heads && h < a->heads; h++) {
        char number[16];
        snprintf(number, sizeof number, "%d", h);
        weft_module *head = weft_submodule_new(m, number);
        heads[h] = weft_parameter(head, "weight", WEFT_SHAPE(a->dk, a->width), xavier);
        heads[a->heads + h] = weft_parameter(head, "bias", WEFT_SHAPE(a->dk), zero);
    }
    return heads;
}

weft__interpretable *weft__interpretable_new(weft_module *parent, const char *name, int64_t d_model,
                                             int heads, double dropout)
{
    weft *w = weft__ready(parent);
    if (w && (heads < 1 || heads > MOST_HEADS || heads > d_model))
        weft__fail(
            w, WEFT_EARG,
            "interpretable_attention: d_model %lld, %d heads; expected 1 .. %d heads, and at most d_model",
            (long long)d_model, heads, MOST_HEADS);
    weft__interpretable *a = weft__layer_new(parent, name, sizeof *a);
    if (!a)
        return NULL;
    *a = (weft__interpretable){ .m = a->m, .width = d_model, .dk = d_model / heads, .heads = heads,
                                .dropout = dropout };
    a->query = heads_new(a, "query_layers");
    a->key = heads_new(a, "key_layers");
    a->value = weft__linear_new(a->m, "value_layer", a->width, a->dk, xavier);
    a->output = weft__linear_new(a->m, "output_layer", a->dk, a->width, xavier);
    return a;
}

/* ---- running ---- */
/* Queries and keys of all heads, [.., heads * dk]. */
typedef struct projected { weft_tensor *queries, *keys; } projected;
static projected project_heads(const weft__interpretable *a, weft_tensor *q, weft_tensor *memory)
{
    enum { OF_Q, BIAS_OF_Q, OF_K, BIAS_OF_K, LISTS };
    weft_tensor *const *list[LISTS] = { a->query, a->query + a->heads, a->key, a->key + a->heads };
    weft_tensor *all[LISTS];
    weft__concat_lists(list, LISTS, a->heads, all);
    return (projected){ weft__linear(q, all[OF_Q], all[BIAS_OF_Q], WEFT__UNARIES, 0),
                        weft__linear(memory, all[OF_K], all[BIAS_OF_K], WEFT__UNARIES, 0) };
}

/* Returns the output layer of the mean over the heads. */
static weft_tensor *put_out(const weft__interpretable *a, weft_tensor *seen)
{
    return weft__dropout(a->m, "dropout", weft_linear_run(a->output, seen), a->dropout);
}

static weft_tensor *run_interpretable(const void *layer, weft_tensor *q, weft_attention_memory asked,
                                      weft_causal causal, weft_tensor **map)
{
    const weft__interpretable *a = layer;
    weft_tensor *memory = asked.keys;
    char name[WEFT__PATH + WEFT__NAME];
    snprintf(name, sizeof name, "%s.weights", a->m->path);
    weft_attention_opts opts = {
        .heads = a->heads, .causal = causal, .shared_values = true, .mean_heads = true,
        .dropout = a->dropout, .name = name
    };
    const projected heads = project_heads(a, q, memory);
    return put_out(
        a, weft_attention(heads.queries, heads.keys, weft_linear_run(a->value, memory), &opts, map));
}

weft_tensor *weft__interpretable_run(weft__interpretable *a, weft_tensor *q, weft_tensor *memory,
                                     weft_causal causal, weft_tensor **map)
{
    return weft__attend((weft__scorer){ a->m, "interpretable_attention", a, NULL, run_interpretable }, q,
                        memory, causal, map);
}

/* ---- with all scores, by a mask ---- */
/* Rearranges [n, T, heads * dk] to [n, heads, T, dk]. */
static weft_tensor *by_head(const weft__interpretable *a, weft_tensor *x)
{
    return weft_transpose(weft_reshape(x, 4, (int64_t[]){ x->f.size[0], x->f.size[1], a->heads, a->dk }), 1,
                          2);
}

static weft_tensor *masked_scores(weft_tensor *scores, weft_tensor *forbidden)
{
    const int64_t *size = forbidden->f.size;
    forbidden = weft_reshape(forbidden, 4, (int64_t[]){ size[0], 1, size[1], size[2] });
    return weft_where(forbidden, weft_scalar(scores->w, (double)(real)-1e9), scores);
}

/* Returns [n, T, 1]: 1 for each row of x [n, T, width] without NaN and infinity, otherwise 0. */
static weft_tensor *finite_rows(weft_tensor *x)
{
    weft *w = x->w;
    weft_tensor *finite = weft_less(weft_abs(x), weft_scalar(w, (double)INFINITY));
    weft_tensor *all = weft_equal(weft_sum(finite, 2), weft_scalar(w, (double)x->f.size[2]));
    return weft_reshape(all, 3, (int64_t[]){ x->f.size[0], x->f.size[1], 1 });
}

/* A masked key has weight 0, but 0 times NaN or infinity is NaN. So rows of queries and memory that are not
 * finite are set to 0. The results of queries that see such a row are set to NaN. */
typedef struct cleaned {
    weft_tensor *q, *memory;
    weft_tensor *spoilt;                         /* [n, Tq, 1]: not 0 for queries that see such a row */
} cleaned;
static cleaned clean(weft_tensor *q, weft_tensor *memory, weft_tensor *forbidden)
{
    weft *w = q->w;
    weft_tensor *nought = weft_scalar(w, 0);
    weft_tensor *one = weft_scalar(w, 1);
    weft_tensor *of_q = nought;
    weft_tensor *of_memory = nought;
    weft_tensor *spoilt = nought;
    WEFT_NO_GRAD(w)
    {
        of_q = finite_rows(q);
        of_memory = finite_rows(memory);
        weft_tensor *odd = weft_reshape(weft_sub(one, of_memory), 3,
                                        (int64_t[]){ memory->f.size[0], 1, memory->f.size[1] });
        weft_tensor *sum = weft_sum(weft_where(forbidden, nought, odd), 2);
        sum = weft_reshape(sum, 3, (int64_t[]){ q->f.size[0], forbidden->f.size[1], 1 });
        spoilt = weft_add(weft_sub(one, of_q), sum);
    }
    return (cleaned){ weft_where(of_q, q, nought), weft_where(of_memory, memory, nought), spoilt };
}
static weft_tensor *spoil(weft_tensor *y, weft_tensor *spoilt)
{
    return weft_where(spoilt, weft_scalar(y->w, (double)NAN), y);
}

static weft_tensor *attend_all(const weft__interpretable *a, weft_tensor *q, weft_tensor *memory,
                               weft_tensor *forbidden, weft_tensor **map)
{
    const projected heads = project_heads(a, q, memory);
    weft_tensor *dots = weft_matmul_with(by_head(a, heads.queries), false, by_head(a, heads.keys), true);
    weft_tensor *scores = weft_scale(dots, (double)(real)(1 / sqrt((double)a->dk)));
    if (forbidden)
        scores = masked_scores(scores, forbidden);
    weft_tensor *weights = weft__dropout(a->m, "weights", weft_softmax(scores, -1, NULL), a->dropout);
    if (map)
        *map = weights;
    return put_out(a, weft_matmul(weft_mean(weights, 1), weft_linear_run(a->value, memory)));
}

static weft_tensor *masked(const weft__interpretable *a, weft_tensor *q, weft_tensor *memory,
                           weft_tensor *forbidden, weft_tensor **map)
{
    const cleaned c = clean(q, memory, forbidden);
    weft_tensor *y = spoil(attend_all(a, c.q, c.memory, forbidden, map), c.spoilt);
    if (map && weft_ok(q->w))
        *map = spoil(*map, weft_reshape(c.spoilt, 4, (int64_t[]){ q->f.size[0], 1, q->f.size[1], 1 }));
    return y;
}

weft_tensor *weft__interpretable_masked(weft__interpretable *a, weft_tensor *q, weft_tensor *memory,
                                        weft_tensor *forbidden, weft_tensor **map)
{
    const weft_module *before = weft__enter(a->m);
    return weft__leave_with(
        a->m, before, forbidden ? masked(a, q, memory, forbidden, map) : attend_all(a, q, memory, NULL, map));
}
