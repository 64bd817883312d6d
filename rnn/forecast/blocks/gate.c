/* gate.c - gates and the residual sums around them: GLU, AddNorm, GateAddNorm, ResampleNorm. */
#include <string.h>
#include "autograd/fused.h"
#include "nn/nn.h"
#include "rnn/forecast/forecast.h"

static const weft_init zero = { WEFT_INIT_ZERO, 0, 0 };

/* ---- GLU ---- */
struct weft_glu { weft_module *m; weft_linear *fc1; int64_t out; double dropout; };

weft_glu *weft_glu_new(weft_module *parent, const char *name, const weft_glu_opts *opts)
{
    static weft_glu none;
    weft_glu_opts o = opts ? *opts : (weft_glu_opts){ 0 };
    if (!WEFT__SIZES(parent, "glu", name, opts, { "in", o.in }, { "out", o.out }) ||
        !weft__dropout_is_sound(parent->w, "glu", o.dropout))
        return &none;
    weft_module *m = weft_submodule_new(parent, name);
    weft_glu *g = weft__layer(m, sizeof *g);
    if (!g)
        return weft__finished(m, g, &none);
    *g = (weft_glu){ m, weft__linear_as(m, "fc1", o.in, 2 * o.out, (weft_init){ WEFT_INIT_XAVIER, 1, 0 }),
                     o.out, o.dropout };
    return weft__finished(m, g, &none);
}

/* What the unit is made of, [.., 2 out]. */
weft_tensor *weft__glu_gate(weft_glu *g, weft_tensor *x)
{
    const weft_module *before = weft__enter(g->m);
    weft_tensor *y = weft_linear_run(g->fc1, weft__dropped(g->m, "dropout", x, g->dropout));
    weft__leave(g->m, before);
    return y;
}

weft_tensor *weft_glu_run(weft_glu *g, weft_tensor *x)
{
    weft_tensor *bad = weft__refused(g ? g->m : NULL, x, "glu");
    if (bad)
        return bad;
    return weft__glu(weft__glu_gate(g, x));
}

/* ---- a skip whose features a mask scales, by 1 at first ---- */
static weft_tensor *mask_new(weft_module *m, bool needed, int64_t width)
{
    return needed ? weft_parameter(m, "mask", WEFT_SHAPE(width), zero) : NULL;
}
static weft_tensor *factors_of(weft_tensor *mask) { return weft_scale(weft_sigmoid(mask), 2); }
static weft_tensor *scale_by_mask(weft_tensor *mask, weft_tensor *x)
{
    return mask ? weft_mul(x, factors_of(mask)) : x;
}

/* ---- AddNorm ---- */
struct weft_add_norm { weft_module *m; weft_layer_norm_layer *norm; weft_tensor *mask; };

weft_add_norm *weft_add_norm_new(weft_module *parent, const char *name, const weft_add_norm_opts *opts)
{
    static weft_add_norm none;
    if (!WEFT__SIZES(parent, "add_norm", name, opts, { "width", opts ? opts->width : 0 }))
        return &none;
    weft_module *m = weft_submodule_new(parent, name);
    weft_add_norm *a = weft__layer(m, sizeof *a);
    if (!a)
        return weft__finished(m, a, &none);
    *a = (weft_add_norm){
        m, weft_layer_norm_layer_new(m, "norm", &(weft_layer_norm_opts){ .width = opts->width }),
        mask_new(m, opts->trainable_add, opts->width)
    };
    return weft__finished(m, a, &none);
}

weft_tensor *weft_add_norm_run(weft_add_norm *a, weft_tensor *x, weft_tensor *skip)
{
    weft_tensor *bad = weft__refused(a ? a->m : NULL, x, "add_norm");
    if (bad)
        return bad;
    const weft_module *before = weft__enter(a->m);
    weft_tensor *y = weft_layer_norm_layer_run(a->norm, weft_add(x, scale_by_mask(a->mask, skip)));
    weft__leave(a->m, before);
    return y;
}

weft_tensor *weft__gate_and_norm(weft_glu *g, weft_add_norm *a, weft_tensor *x, weft_tensor *skip)
{
    weft_tensor *gate = weft__glu_gate(g, x);
    const weft_module *before = weft__enter(a->m);
    weft_tensor *y = weft__layer_norm_of_gate(a->norm, gate, scale_by_mask(a->mask, skip));
    weft__leave(a->m, before);
    return y;
}

/* ---- GateAddNorm ---- */
struct weft_gate_add_norm { weft_module *m; weft_glu *glu; weft_add_norm *add_norm; };

weft_gate_add_norm *weft_gate_add_norm_new(weft_module *parent, const char *name,
                                           const weft_gate_add_norm_opts *opts)
{
    static weft_gate_add_norm none;
    weft_gate_add_norm_opts o = opts ? *opts : (weft_gate_add_norm_opts){ 0 };
    if (!WEFT__SIZES(parent, "gate_add_norm", name, opts, { "in", o.in }, { "out", o.out }))
        return &none;
    weft_module *m = weft_submodule_new(parent, name);
    weft_gate_add_norm *g = weft__layer(m, sizeof *g);
    if (!g)
        return weft__finished(m, g, &none);
    *g = (weft_gate_add_norm){ m, weft_glu_new(m, "glu", &(weft_glu_opts){ o.in, o.out, o.dropout }),
                               weft_add_norm_new(m, "add_norm",
                                                 &(weft_add_norm_opts){ o.out, o.trainable_add }) };
    return weft__finished(m, g, &none);
}

weft_tensor *weft_gate_add_norm_run(weft_gate_add_norm *g, weft_tensor *x, weft_tensor *skip)
{
    weft_tensor *bad = weft__refused(g ? g->m : NULL, x, "gate_add_norm");
    if (bad)
        return bad;
    const weft_module *before = weft__enter(g->m);
    weft_tensor *y = weft__gate_and_norm(g->glu, g->add_norm, x, skip);
    weft__leave(g->m, before);
    return y;
}

/* ---- ResampleNorm ---- */
struct weft_resample_norm {
    weft_module *m;
    weft_layer_norm_layer *norm;
    weft_tensor *mask;
    int64_t in, out;
};

weft_resample_norm *weft_resample_norm_new(weft_module *parent, const char *name,
                                           const weft_resample_norm_opts *opts)
{
    static weft_resample_norm none;
    weft_resample_norm_opts o = opts ? *opts : (weft_resample_norm_opts){ 0 };
    if (!WEFT__SIZES(parent, "resample_norm", name, opts, { "in", o.in }, { "out", o.out }))
        return &none;
    weft_module *m = weft_submodule_new(parent, name);
    weft_resample_norm *r = weft__layer(m, sizeof *r);
    if (!r)
        return weft__finished(m, r, &none);
    *r =
        (weft_resample_norm){ m,
                              weft_layer_norm_layer_new(m, "norm", &(weft_layer_norm_opts){ .width = o.out }),
                              mask_new(m, o.trainable_add, o.out), o.in, o.out };
    return weft__finished(m, r, &none);
}

/* [out, in]: row j holds the shares of the two features that place j lies between. */
static weft_tensor *interpolation(weft *w, int64_t in, int64_t out)
{
    real *at = weft__take(w, WEFT__IN_NOTES, in * out * (int64_t)sizeof *at);
    if (!at)
        return &w->nil;
    memset(at, 0, (size_t)(in * out) * sizeof *at);
    for (int64_t j = 0; j < out; j++) {
        double place = out > 1 ? (double)j * (double)(in - 1) / (double)(out - 1) : 0;
        int64_t first = (int64_t)place;
        at[j * in + first] += (real)(1 - (place - (double)first));
        if (first + 1 < in)
            at[j * in + first + 1] += (real)(place - (double)first);
    }
    return weft_reals(w, at, WEFT_SHAPE(out, in));
}

weft_tensor *weft__resampled(weft_tensor *x, int64_t out, weft_tensor *mask)
{
    if (width(x) == out)
        return scale_by_mask(mask, x);
    weft_tensor *shares = interpolation(x->w, width(x), out);
    if (mask) {                                  /* of the few shares, not of all tokens */
        int64_t shape[WEFT_RANK] = { 0 };
        memcpy(shape, mask->f.size, sizeof mask->f.size);
        shape[mask->f.rank] = 1;
        shares = weft_mul(weft_reshape(factors_of(mask), mask->f.rank + 1, shape), shares);
    }
    return weft__linear(x, shares, NULL, WEFT__UNARIES, 0);
}

weft_tensor *weft_resample_norm_run(weft_resample_norm *r, weft_tensor *x)
{
    weft_tensor *bad = weft__refused(r ? r->m : NULL, x, "resample_norm");
    if (bad)
        return bad;
    const weft_module *before = weft__enter(r->m);
    if (x->f.type != WEFT_REAL || weft_size(x, -1) != r->in)
        weft__failed(x, WEFT_ESHAPE, "resample_norm", "[.., %lld] of reals is expected", (long long)r->in);
    weft_tensor *y = weft_layer_norm_layer_run(r->norm, weft__resampled(x, r->out, r->mask));
    weft__leave(r->m, before);
    return y;
}
