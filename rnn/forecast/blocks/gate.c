/* gate.c - gates and the residual sums around them. */
#include <string.h>
#include "autograd/fused.h"
#include "rnn/forecast/blocks/blocks.h"

/* ---- gated linear unit ---- */
weft__glu_layer *weft__glu_new(weft_module *parent, const char *name, int64_t in, int64_t out, double dropout)
{
    weft__glu_layer *g = weft__layer_new(parent, name, sizeof *g);
    if (!g)
        return NULL;
    g->fc1 = weft__linear_new(g->m, "fc1", in, 2 * out, (weft_init){ WEFT_INIT_XAVIER, 1, 0 });
    g->dropout = dropout;
    return g;
}

weft_tensor *weft__glu_gate(weft__glu_layer *g, weft_tensor *x)
{
    const weft_module *before = weft__enter(g->m);
    return weft__leave_with(
        g->m, before, weft_linear_run(g->fc1, weft__dropout(g->m, "dropout", x, g->dropout)));
}

/* ---- residual sums ---- */
weft__add_norm *weft__add_norm_new(weft_module *parent, const char *name, int64_t width, bool trainable_add)
{
    weft__add_norm *a = weft__layer_new(parent, name, sizeof *a);
    if (!a)
        return NULL;
    a->norm = weft_layer_norm_new(a->m, "norm", &(weft_layer_norm_opts){ .width = width });
    if (trainable_add)
        a->mask = weft_parameter(a->m, "mask", WEFT_SHAPE(width), (weft_init){ WEFT_INIT_ZERO, 0, 0 });
    return a;
}

static weft_tensor *factors_of(weft_tensor *mask) { return weft_scale(weft_sigmoid(mask), 2); }
static weft_tensor *scale_by_mask(weft_tensor *mask, weft_tensor *x)
{
    return mask ? weft_mul(x, factors_of(mask)) : x;
}

weft_tensor *weft__gate_and_norm(weft__glu_layer *g, weft__add_norm *a, weft_tensor *x, weft_tensor *skip)
{
    weft_tensor *gate = weft__glu_gate(g, x);
    const weft_module *before = weft__enter(a->m);
    return weft__leave_with(
        a->m, before, weft__layer_norm_of_gate(a->norm, gate, scale_by_mask(a->mask, skip)));
}

struct weft__gate_add_norm {
    weft_module *m;
    weft__glu_layer *glu;
    weft__add_norm *add_norm;
};

weft__gate_add_norm *weft__gate_add_norm_new(weft_module *parent, const char *name, int64_t in, int64_t out,
                                             double dropout, bool trainable_add)
{
    weft__gate_add_norm *g = weft__layer_new(parent, name, sizeof *g);
    if (!g)
        return NULL;
    g->glu = weft__glu_new(g->m, "glu", in, out, dropout);
    g->add_norm = weft__add_norm_new(g->m, "add_norm", out, trainable_add);
    return g;
}

weft_tensor *weft__gate_add_norm_run(weft__gate_add_norm *g, weft_tensor *x, weft_tensor *skip)
{
    return weft__gate_and_norm(g->glu, g->add_norm, x, skip);
}

/* ---- other widths ---- */
/* Returns [out, in]: row j has the weights of the two features between which position j falls. */
static weft_tensor *interpolation(weft *w, int64_t in, int64_t out)
{
    real *factor = weft__take(w, WEFT__ARENA_CALLS, in * out * (int64_t)sizeof *factor);
    if (!factor)
        return &w->nil;
    memset(factor, 0, (size_t)(in * out) * sizeof *factor);
    for (int64_t j = 0; j < out; j++) {
        double place = out > 1 ? (double)j * (double)(in - 1) / (double)(out - 1) : 0;
        int64_t first = (int64_t)place;
        factor[j * in + first] += (real)(1 - (place - (double)first));
        if (first + 1 < in)
            factor[j * in + first + 1] += (real)(place - (double)first);
    }
    return weft_reals(w, factor, WEFT_SHAPE(out, in));
}

weft_tensor *weft__resample(weft_tensor *x, int64_t out, weft_tensor *mask)
{
    if (!weft_ok(x->w) || width(x) == out)
        return scale_by_mask(mask, x);
    weft_tensor *shares = interpolation(x->w, width(x), out);
    if (mask) {                                  /* scales the small matrix, not all tokens */
        int64_t shape[WEFT_RANK] = { 0 };
        memcpy(shape, mask->f.size, sizeof mask->f.size);
        shape[mask->f.rank] = 1;
        shares = weft_mul(weft_reshape(factors_of(mask), mask->f.rank + 1, shape), shares);
    }
    return weft__linear(x, shares, NULL, WEFT__UNARIES, 0);
}
