/* norm.c - layer normalisation as a layer: its gain and shift are parameters of PyTorch's names, weight
 * and bias. */
#include "autograd/autograd.h"
#include "nn/nn.h"

struct weft_layer_norm_layer { weft_module *m; weft_tensor *weight, *bias; };

weft_layer_norm_layer *weft_layer_norm_layer_new(weft_module *parent, const char *name, int64_t width)
{
    static weft_layer_norm_layer none;
    weft *w = weft__ready(parent);
    if (w && width < 1)
        weft__fail(w, WEFT_ESHAPE, "norm \"%s\" in %s: width %lld; 1 or more is wanted", name ? name : "",
                   parent->path, (long long)width);
    weft_module *m = weft_submodule_new(parent, name);
    weft_layer_norm_layer *n = weft__layer(m, sizeof *n);
    if (!n)
        return weft__finished(m, n, &none);
    n->m = m;
    n->weight = weft_parameter(m, "weight", WEFT_SHAPE(width), (weft_init){ WEFT_INIT_CONSTANT, 1, 0 });
    n->bias = weft_parameter(m, "bias", WEFT_SHAPE(width), (weft_init){ WEFT_INIT_ZERO, 0, 0 });
    return weft__finished(m, n, &none);
}

weft_tensor *weft_layer_norm_layer_run(weft_layer_norm_layer *n, weft_tensor *x)
{
    weft_tensor *bad = weft__refused(n ? n->m : NULL, x, "layer_norm_layer");
    if (bad)
        return bad;
    const weft_module *before = weft__enter(n->m);
    if (x->f.type != WEFT_REAL || weft_size(x, -1) != n->weight->f.size[0])
        weft__failed(x, WEFT_ESHAPE, "layer_norm_layer", "[.., %lld] of reals is wanted",
                     (long long)n->weight->f.size[0]);
    weft_tensor *y = weft_layer_norm(x, n->weight, n->bias, (real)1e-5);
    weft__leave(n->m, before);
    return y;
}
