/* variable_selection.c - which features matter at each token: a GRN for each, and one over all of them
 * that weighs the others. */
#include <string.h>
#include "nn/nn.h"
#include "autograd/fused.h"
#include "rnn/forecast/forecast.h"

enum { MOST_FEATURES = 4096 };

struct weft_variable_selection {
    weft_module *m; weft_variable_selection_opts o;
    weft_tensor **weight, **bias;                /* of the prescalers */
    weft_grn *only, *flattened;                  /* only: of one feature; flattened: of several; else NULL */
    weft__grouped_grn *singles;
};

static bool selection_is_sound(weft_module *m, const weft_variable_selection_opts *o)
{
    weft *w = weft__ready(m);
    if (w && !o)
        weft__fail(w, WEFT_EARG, "variable_selection: opts is NULL");
    else if (w && (o->num_features < 1 || o->num_features > MOST_FEATURES || o->d_hidden < 0 ||
                   o->d_model < 0 || o->context < 0))
        weft__fail(w, WEFT_ESHAPE,
                   "variable_selection: %lld features, d_hidden %lld, d_model %lld, context %lld; 1 .. %d "
                   "features and widths of 0 or more "
                   "are expected",
                   (long long)o->num_features, (long long)o->d_hidden, (long long)o->d_model,
                   (long long)o->context, MOST_FEATURES);
    return weft__dropout_is_sound(w, "variable_selection", o ? o->dropout : 0);
}

static void prescaler_new(weft_variable_selection *v, weft_module *prescalers, int i)
{
    char number[16];
    snprintf(number, sizeof number, "%d", i);
    weft_module *m = weft_submodule_new(prescalers, number);
    v->weight[i] = weft_parameter(m, "weight", WEFT_SHAPE(v->o.d_hidden, 1), weft__by_width(1));
    v->bias[i] = weft_parameter(m, "bias", WEFT_SHAPE(v->o.d_hidden), weft__by_width(1));
}

static bool features_new(weft_variable_selection *v)
{
    size_t n = (size_t)v->o.num_features;
    v->weight = weft__layer(v->m, 2 * n * sizeof *v->weight);
    if (!v->weight)
        return false;
    v->bias = v->weight + n;
    weft_module *prescalers = weft_submodule_new(v->m, "prescalers");
    v->singles = weft__grouped_grn_new(v->m, "single_grn", v->o.num_features, v->o.d_hidden, v->o.d_model,
                                       v->o.dropout);
    for (int i = 0; v->singles && i < (int)n; i++) {
        prescaler_new(v, prescalers, i);
        weft_grn *one = weft__grouped_grn_add(v->singles, i);
        v->only = n == 1 ? one : NULL;
    }
    if (n > 1)
        v->flattened =
            weft_grn_new(v->m, "flattened_grn",
                         &(weft_grn_opts){ .in = (int64_t)n * v->o.d_hidden,
                                           .out = (int64_t)n,
                                           .interpolate = true,
                                           .activation = WEFT_ELU,
                                           .hidden = v->o.d_model < (int64_t)n ? v->o.d_model : (int64_t)n,
                                           .context = v->o.context,
                                           .dropout = v->o.dropout });
    return v->singles;
}

weft_variable_selection *weft_variable_selection_new(weft_module *parent, const char *name,
                                                     const weft_variable_selection_opts *opts)
{
    static weft_variable_selection none;
    if (!selection_is_sound(parent, opts))
        return &none;
    weft_module *m = weft_submodule_new(parent, name);
    weft_variable_selection *v = weft__layer(m, sizeof *v);
    if (!v)
        return weft__finished(m, v, &none);
    v->m = m, v->o = *opts;
    v->o.d_hidden = weft__or_count(v->o.d_hidden, 8), v->o.d_model = weft__or_count(v->o.d_model, 300);
    return weft__finished(m, features_new(v) ? v : NULL, &none);
}

/* x with other axes from rank - 1 on: `last`, and `behind` if that is not 0. Of the layout rows only tokens
 * are seen, not its pads. */
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

/* [.., features] -> [.., features, d_hidden]: each by its own line. */
static weft_tensor *prescaled(const weft_variable_selection *v, weft_tensor *x)
{
    const int64_t n = v->o.num_features, table[] = { n, v->o.d_hidden };
    weft_tensor *const *lists[] = { v->weight, v->bias }, *all[2];
    weft__concat_lists(lists, 2, (int)n, all);
    weft_tensor *slope = weft_reshape(all[0], 2, table), *shift = weft_reshape(all[1], 2, table);
    return weft_add(weft_mul(with_last(x, x->f.rank, n, 1), slope), shift);
}

static weft_tensor *select_variables(const weft_variable_selection *v, weft_tensor *x, weft_tensor *context,
                                     weft_tensor **weights)
{
    const int rank = x->f.rank;
    const int64_t n = v->o.num_features;
    weft_tensor *each = prescaled(v, x), *side_by_side = with_last(each, rank, n * v->o.d_hidden, 0);
    if (v->only) {
        if (weights)
            *weights = weft_where(weft_scalar(x->w, 0), weft_detach(x), weft_scalar(x->w, 1));
        return weft_grn_run(v->only, side_by_side, NULL);
    }
    weft_tensor *share = weft_softmax(weft_grn_run(v->flattened, side_by_side, context), -1, NULL);
    if (weights)
        *weights = share;
    return weft_sum(weft_mul(weft__grouped_grn_run(v->singles, each), with_last(share, rank, n, 1)), -2);
}

weft_tensor *weft_variable_selection_run(weft_variable_selection *v, weft_tensor *x, weft_tensor *context,
                                         weft_tensor **weights)
{
    weft_tensor *y = weft__refused(v ? v->m : NULL, x, "variable_selection");
    char text[128];
    if (weights)
        *weights = y ? y : &x->w->nil;
    if (y)
        return y;
    const weft_module *before = weft__enter(v->m);
    if (x->f.rank < 2 || x->f.rank >= WEFT_RANK || x->f.type != WEFT_REAL ||
        x->f.size[x->f.rank - 1] != v->o.num_features)
        weft__fail(x->w, WEFT_ESHAPE,
                   "variable_selection: the input is %s; [.., %lld] of reals, of rank 2 .. %d, is expected%s",
                   weft__text(&x->f, text), (long long)v->o.num_features, WEFT_RANK - 1, weft__of_ids(&x->f));
    y = weft_ok(x->w) ? select_variables(v, x, context, weights) : &x->w->nil;
    weft__leave(v->m, before);
    return y;
}
