/* variable_selection.c - weights the features of each token; each feature, and the weights, have a GRN. */
#include <string.h>
#include "autograd/fused.h"
#include "rnn/forecast/blocks/blocks.h"

enum { MOST_FEATURES = 4096 };

struct weft__selection {
    weft_module *m;
    weft__selection_opts o;
    weft_tensor **weight, **bias;                /* of the prescalers */
    weft__grn *only, *flattened; /* only: for one feature; flattened: for several. Otherwise NULL. */
    weft__grouped_grn *singles;
};

static void prescaler_new(weft__selection *v, weft_module *prescalers, int i)
{
    char number[16];
    snprintf(number, sizeof number, "%d", i);
    weft_module *m = weft_submodule_new(prescalers, number);
    v->weight[i] = weft_parameter(m, "weight", WEFT_SHAPE(v->o.d_hidden, 1), weft__init_by_width(1));
    v->bias[i] = weft_parameter(m, "bias", WEFT_SHAPE(v->o.d_hidden), weft__init_by_width(1));
}

static void features_new(weft__selection *v)
{
    int n = (int)v->o.features;
    weft_module *prescalers = weft_submodule_new(v->m, "prescalers");
    v->weight = weft__layer(v->m, 2 * (size_t)n * sizeof *v->weight);
    v->singles = weft__grouped_grn_new(v->m, "single_grn", n, v->o.d_hidden, v->o.d_model, v->o.dropout);
    if (!v->weight || !v->singles)
        return;
    v->bias = v->weight + n;
    for (int i = 0; i < n; i++) {
        prescaler_new(v, prescalers, i);
        weft__grn *one = weft__grouped_grn_add(v->singles, i);
        v->only = n == 1 ? one : NULL;
    }
    const weft__grn_opts flattened = { .in = n * v->o.d_hidden,
                                       .out = n,
                                       .interpolate = true,
                                       .hidden = v->o.d_model < n ? v->o.d_model : n,
                                       .context = v->o.context,
                                       .dropout = v->o.dropout };
    v->flattened = n > 1 ? weft__grn_new(v->m, "flattened_grn", &flattened) : NULL;
}

weft__selection *weft__selection_new(weft_module *parent, const char *name, const weft__selection_opts *o)
{
    weft *w = weft__ready(parent);
    if (w && o->features > MOST_FEATURES)
        weft__fail(w, WEFT_ESHAPE, "variable_selection: %lld features; expected 1 .. %d",
                   (long long)o->features, MOST_FEATURES);
    weft__selection *v = weft__layer_new(parent, name, sizeof *v);
    if (!v)
        return NULL;
    v->o = *o;
    features_new(v);
    return v;
}

/* Returns x with the axes from rank - 1 on replaced by `last` and, unless 0, `behind`. In the layout ROWS it
 * uses tokens only, without padding. */
static weft_tensor *with_last(weft_tensor *x, int rank, int64_t last, int64_t behind)
{
    int64_t shape[WEFT_RANK];
    memcpy(shape, x->f.size, sizeof shape);
    shape[0] = x->f.batch ? -1 : shape[0];
    shape[rank - 1] = last;
    if (behind)
        shape[rank] = behind;
    return weft_reshape(x, behind ? rank + 1 : rank, shape);
}

/* [.., features] -> [.., features, d_hidden]: each feature has its own linear layer. */
static weft_tensor *prescaled(const weft__selection *v, weft_tensor *x)
{
    const int64_t n = v->o.features, table[] = { n, v->o.d_hidden };
    weft_tensor *const *lists[] = { v->weight, v->bias }, *all[2];
    weft__concat_lists(lists, 2, (int)n, all);
    weft_tensor *slope = weft_reshape(all[0], 2, table), *shift = weft_reshape(all[1], 2, table);
    return weft_add(weft_mul(with_last(x, x->f.rank, n, 1), slope), shift);
}

static weft_tensor *select_variables(const weft__selection *v, weft_tensor *x, weft_tensor *context,
                                     weft_tensor **weights)
{
    const int rank = x->f.rank;
    const int64_t n = v->o.features;
    weft_tensor *each = prescaled(v, x);
    weft_tensor *side_by_side = with_last(each, rank, n * v->o.d_hidden, 0);
    if (v->only) {
        if (weights)
            *weights = weft_where(weft_scalar(x->w, 0), weft_detach(x), weft_scalar(x->w, 1));
        return weft__grn_run(v->only, side_by_side, NULL);
    }
    weft_tensor *share = weft_softmax(weft__grn_run(v->flattened, side_by_side, context), -1, NULL);
    if (weights)
        *weights = share;
    return weft_sum(weft_mul(weft__grouped_grn_run(v->singles, each), with_last(share, rank, n, 1)), -2);
}

weft_tensor *weft__selection_run(weft__selection *v, weft_tensor *x, weft_tensor *context,
                                 weft_tensor **weights)
{
    const weft_module *before = weft__enter(v->m);
    if (weights)
        *weights = &x->w->nil;
    return weft__leave_with(
        v->m, before, weft_ok(x->w) ? select_variables(v, x, context, weights) : &x->w->nil);
}
