/* golden_layers.c - compares attention over ragged memories, and losses over ragged tensors and over padded
 * ones with NaN in the padding. */
#include <math.h>
#include <string.h>
#include "weft_forecast.h"
#include "golden.h"

/* ---- attention ---- */
static weft_tensor *ragged_input(trial *t, const char *name, int64_t s, const weft_lengths *l,
                                 int64_t features)
{
    weft_tensor *x = formula_ragged(t, 2, 0, s, l, features);
    ask(t, name, x, l, 0);
    return laid(t, x);
}

static weft_causal causal(trial *t)
{
    const char *c = text(t, "causal");
    if (!strcmp(c, "top_left"))
        return WEFT_CAUSAL_TOP_LEFT;
    if (!strcmp(c, "bottom_right"))
        return WEFT_CAUSAL_BOTTOM_RIGHT;
    if (strcmp(c, "none"))
        wrong(t, "unknown causal \"%s\"", c);
    return WEFT_ALL_KEYS;
}

static weft_tensor *attended(trial *t, weft_tensor *y, const weft_lengths *queries)
{
    hold_tensor(t, "output", y, json_object_get(t->c, "output"));
    weft_tensor *loss = wavy_sum(t, y, queries, 1);
    hold_number(t, "loss", (double)weft_item(loss), json_object_get(t->c, "loss"));
    return loss;
}

static int64_t extent_of(trial *t, const char *parameter, size_t axis)
{
    size_t i;
    const json_t *p;
    json_array_foreach(json_object_get(t->c, "params"), i, p)
        if (!strcmp(json_string_value(json_array_get(p, 0)), parameter))
            return json_integer_value(json_array_get(json_array_get(p, 1), axis));
    wrong(t, "no parameter \"%s\" in the case", parameter);
    return 0;
}

static weft_tensor *scored(trial *t)
{
    bool         additive = !strcmp(text(t, "kind"), "additive_attention");
    weft_lengths lq = lengths(t, "query_lengths"), lm = lengths(t, "memory_lengths");
    int64_t dq = integer(t, "dq"), dm = integer(t, "dm"), width = additive ? extent_of(t, "score", 0) : 0;
    if (t->why[0])
        return NULL;
    const weft_attention_layer_opts o = {
        .kind = additive ? WEFT_ADDITIVE : WEFT_GENERAL, .dq = dq, .dm = dm, .width = width
    };
    weft_attention_layer *a = weft_attention_new(t->m, "a", &o);
    if (!weft_ok(t->w) || !set_parameters(t, "a", 2, 0))
        return NULL;
    weft_tensor *q = ragged_input(t, "query", 100, &lq, dq),
                *memory = ragged_input(t, "memory", 120, &lm, dm), *map = NULL;
    weft_tensor *y = weft_attention_run(a, q, memory, WEFT_ALL_KEYS, &map);
    hold_tensor(t, "weights", map, json_object_get(t->c, "weights"));
    return attended(t, y, &lq);
}

static weft_tensor *sdpa(trial *t)
{
    weft_lengths lq = lengths(t, "query_lengths"), lm = lengths(t, "memory_lengths");
    int64_t      heads = integer(t, "heads"), dk = integer(t, "dk"), dv = integer(t, "dv");
    weft_attention_opts o = { .heads = (int)heads, .causal = causal(t) };
    if (t->why[0])
        return NULL;
    weft_tensor *q = ragged_input(t, "q", 100, &lq, heads * dk),
                *k = ragged_input(t, "k", 120, &lm, heads * dk);
    weft_tensor *v = ragged_input(t, "v", 140, &lm, heads * dv);
    return attended(t, weft_attention(q, k, v, &o, NULL), &lq);
}

static weft_tensor *multihead(trial *t)
{
    weft_lengths lq = lengths(t, "query_lengths"), lm = lengths(t, "memory_lengths");
    int64_t      width = integer(t, "width"), heads = integer(t, "heads");
    weft_causal  c = causal(t);
    if (t->why[0])
        return NULL;
    weft_attention_layer *a = weft_attention_new(
        t->m, "a",
        &(weft_attention_layer_opts){ .kind = WEFT_MULTIHEAD, .width = width, .heads = (int)heads });
    if (!weft_ok(t->w) || !set_parameters(t, "a", 2, 0))
        return NULL;
    weft_tensor *q = ragged_input(t, "query", 100, &lq, width);
    weft_tensor *memory = flag(t, "self") ? q : ragged_input(t, "memory", 120, &lm, width);
    return attended(t, weft_attention_run(a, q, memory, c, NULL), &lq);
}

/* ---- cross entropy ---- */
static void hold_loss(trial *t, weft_loss l, const char *weight)
{
    hold_number(t, "sum", (double)weft_item(l.sum), json_object_get(t->c, "sum"));
    hold_number(t, weight, (double)weft_item(l.weight), json_object_get(t->c, weight));
    hold_number(t, "mean", (double)weft_item(weft_mean_loss(l)), json_object_get(t->c, "mean"));
}

/* The loss of each row is the sum over this row. */
static void hold_rows(trial *t, const weft_real *logits, const int32_t *target, int64_t n, int64_t classes,
                      const weft_cross_entropy_opts *o)
{
    weft_real *rows = hold(t, n * (int64_t)sizeof *rows);
    for (int64_t r = 0; r < n; r++) {
        weft_tensor *x = weft_reals(t->w, logits + r * classes, WEFT_SHAPE(1, classes)),
                    *y = weft_ints(t->w, target + r, WEFT_SHAPE(1));
        rows[r] = weft_item(weft_cross_entropy(x, y, o).sum);
    }
    hold_values(t, "rows", rows, n, json_object_get(t->c, "rows"));
}

static weft_tensor *cross_entropy(trial *t)
{
    const json_t *list = json_object_get(t->c, "target"), *ignore = json_object_get(t->c, "ignore_index");
    int64_t  n = (int64_t)json_array_size(list), classes = integer(t, "classes");
    int32_t *target = hold(t, n * (int64_t)sizeof *target);
    for (int64_t r = 0; r < n; r++)
        target[r] = (int32_t)json_integer_value(json_array_get(list, (size_t)r));
    weft_cross_entropy_opts o = { .label_smoothing = (weft_real)number(t, "label_smoothing"),
                                  .has_ignore_index = json_is_integer(ignore),
                                  .ignore_index = (int32_t)json_integer_value(ignore) };
    if (t->why[0])
        return NULL;
    if (flag(t, "class_weights"))
        o.class_weight = weft_reals(t->w, formula(t, 1, 1.25, 50, classes), WEFT_SHAPE(classes));
    weft_real   *logits = formula(t, 3, 0, 100, n * classes);
    weft_tensor *x = weft_reals(t->w, logits, WEFT_SHAPE(n, classes));
    ask(t, "logits", x, NULL, 0);
    hold_rows(t, logits, target, n, classes, &o);
    weft_loss l = weft_cross_entropy(x, weft_ints(t->w, target, WEFT_SHAPE(n)), &o);
    hold_loss(t, l, "weight");
    return l.sum;
}

/* ---- regression losses ---- */
/* base + factor u(s + b, k) as a ragged tensor, or as a padded one [n, T, features] whose pads are NaN (1 of
 * a base that is not 0: weights must be numbers). */
static weft_tensor *masked_input(trial *t, double factor, double base, int64_t s, const weft_lengths *l,
                                 int64_t features, int64_t *longest)
{
    weft_tensor *ragged = formula_ragged(t, factor, base, s, l, features);
    *longest = 0;
    if (!(t->way & PADDED))
        return ragged;
    for (int64_t b = 0; b < l->n; b++)
        *longest = *longest > l->len[b] ? *longest : l->len[b];
    int64_t    width = features ? features : 1, n = l->n * *longest * width, at = 0;
    weft_real *rows = elements(t, ragged), *padded = hold(t, n * (int64_t)sizeof *padded);
    for (int64_t i = 0; i < n; i++) {
        bool real_one = i / width % *longest < l->len[i / width / *longest];
        padded[i] = real_one ? rows[at++] : base != 0 ? 1 : (weft_real)NAN;
    }
    return features ? weft_reals(t->w, padded, WEFT_SHAPE(l->n, *longest, features)) :
                      weft_reals(t->w, padded, WEFT_SHAPE(l->n, *longest));
}

static weft_loss quantile(trial *t, weft_tensor *p, weft_tensor *y, const weft_loss_opts *o)
{
    const json_t *list = json_object_get(t->c, "quantiles");
    int64_t    n = (int64_t)json_array_size(list);
    weft_real *q = hold(t, n * (int64_t)sizeof *q);
    for (int64_t i = 0; i < n; i++)
        q[i] = (weft_real)json_number_value(json_array_get(list, (size_t)i));
    weft_loss per_batch = weft_quantile_loss(p, y, q, (int)n, true, o);
    hold_number(t, "per_batch", (double)weft_item(weft_mean_loss(per_batch)),
                json_object_get(t->c, "per_batch"));
    return weft_quantile_loss(p, y, q, (int)n, false, o);
}

static weft_loss by_name(trial *t, const char *name, weft_tensor *p, weft_tensor *y, const weft_loss_opts *o)
{
    if (!strcmp(name, "mse"))
        return weft_mse_loss(p, y, o);
    if (!strcmp(name, "mae"))
        return weft_l1_loss(p, y, o);
    if (!strcmp(name, "huber"))
        return weft_huber_loss(p, y, (weft_real)number(t, "delta"), o);
    if (!strcmp(name, "smape"))
        return weft_smape(p, y, o);
    if (!strcmp(name, "mape"))
        return weft_mape(p, y, o);
    if (!strcmp(name, "quantile"))
        return quantile(t, p, y, o);
    wrong(t, "unknown loss \"%s\"", name);
    return (weft_loss){ NULL, NULL };
}

static weft_tensor *masked(trial *t)
{
    const char  *name = text(t, "loss");
    weft_lengths l = lengths(t, "lengths");
    int64_t      features = integer(t, "features"), longest;
    bool         quantiles = !strcmp(name, "quantile");
    if (t->why[0])
        return NULL;
    weft_tensor *p = masked_input(t, 2, 0, 100, &l, features, &longest),
                *y = masked_input(t, 2, 0, 120, &l, quantiles ? 0 : features, &longest);
    ask(t, "predicted", p, &l, longest);
    ask(t, "target", y, &l, longest);
    weft_loss_opts o = { NULL, NULL };
    if (flag(t, "weighted"))
        o.weights = masked_input(t, .5, 1, 140, &l, quantiles ? 0 : features, &longest);
    /* one weight per token: [.., 1] broadcasts to [.., quantiles] */
    if (quantiles && o.weights)
        o.weights = t->way & PADDED ? weft_reshape(o.weights, WEFT_SHAPE(l.n, longest, 1)) :
                                      weft_reshape(o.weights, WEFT_SHAPE(tokens(&l), 1));
    if (t->way & PADDED)
        o.mask =
            weft_reshape(weft_length_mask(t->w, &l, longest, WEFT_ALIGN_LEFT), WEFT_SHAPE(l.n, longest, 1));
    else {
        p = laid(t, p);
        y = laid(t, y);
    }
    weft_loss loss = by_name(t, name, p, y, &o);
    if (!loss.sum)
        return NULL;
    hold_loss(t, loss, "count");
    return loss.sum;
}

const kind golden_layers[] = {
    { "additive_attention", scored, PACKED | RECORDED },
    { "general_attention", scored, PACKED | RECORDED },
    { "sdpa", sdpa, PACKED | RECORDED },
    { "multihead", multihead, PACKED | RECORDED },
    { "masked", masked, PACKED | RECORDED | PADDED },
    { "cross_entropy", cross_entropy, RECORDED },
    { NULL, NULL, 0 },
};
