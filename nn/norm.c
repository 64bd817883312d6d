/* norm.c - layer norm and RMS norm. Gain and shift have PyTorch's parameter names, weight and bias. */
#include <math.h>
#include "autograd/api_windows.h"
#include "autograd/fused.h"
#include "nn/nn.h"

struct weft_norm_layer {
    weft_module *m;
    weft_tensor *weight, *bias;                  /* bias NULL: an RMS norm */
    double eps;
};

static bool norm_is_sound(weft_module *m, const char *name, const weft_layer_norm_opts *o)
{
    if (!WEFT__SIZES(m, "layer_norm", name, o, { "width", o ? o->width : 0 }))
        return false;
    if (o->eps != WEFT_ZERO && !(o->eps >= 0 && isfinite(o->eps)))
        weft__fail(m->w, WEFT_EARG, "layer_norm: eps %g; expected a finite number, 0 or more", o->eps);
    return !m->w->status;
}

weft_norm_layer *weft_layer_norm_new(weft_module *parent, const char *name, const weft_layer_norm_opts *opts)
{
    static weft_norm_layer inert;
    if (!norm_is_sound(parent, name, opts))
        return &inert;
    weft_norm_layer *n = weft__layer_new(parent, name, sizeof *n);
    if (!n)
        return &inert;
    n->eps = opts->eps;
    n->weight =
        weft_parameter(n->m, "weight", WEFT_SHAPE(opts->width), (weft_init){ WEFT_INIT_CONSTANT, 1, 0 });
    if (!opts->rms)
        n->bias = weft_parameter(n->m, "bias", WEFT_SHAPE(opts->width), (weft_init){ WEFT_INIT_ZERO, 0, 0 });
    return weft__finish_layer(n->m, n, &inert);
}

weft_tensor *weft__layer_norm_of_gate(weft_norm_layer *n, weft_tensor *gate, weft_tensor *skip)
{
    weft *w = n->m->w;
    bool fits = weft_ok(w) && skip && !weft__handle_error(w, skip) && weft__gate_fits(gate, skip);
    if (!fits)                                   /* the skip must broadcast, or is wrong */
        return weft_layer_norm_run(n, weft_add(weft__glu(gate), skip));
    const weft_module *before = weft__enter(n->m);
    return weft__leave_with(n->m, before, weft__gate_norm_of(gate, skip, n->weight, n->bias, n->eps));
}

weft_tensor *weft_layer_norm_run(weft_norm_layer *n, weft_tensor *x)
{
    weft_tensor *bad = weft__bad_input(n ? n->m : NULL, x, "layer_norm");
    if (bad)
        return bad;
    const weft_module *before = weft__enter(n->m);
    if (x->f.type != WEFT_REAL || weft_size(x, -1) != n->weight->f.size[0])
        weft__failed(x, WEFT_ESHAPE, "layer_norm", "expected [.., %lld] of reals",
                     (long long)n->weight->f.size[0]);
    return weft__leave_with(n->m, before,
                            n->bias ? weft_layer_norm(x, n->weight, n->bias, n->eps) :
                                      weft_rms_norm(x, n->weight, n->eps));
}
