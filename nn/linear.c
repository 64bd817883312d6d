/* linear.c - y = x W^T + b. The weight lies as in PyTorch, [out, in], so that both read each other's files;
 * the product takes it transposed, and no copy is made. */
#include <math.h>
#include "autograd/autograd.h"
#include "nn/nn.h"

struct weft_linear { weft_module *m; weft_tensor *weight, *bias; };

static weft_linear *made(weft_module *parent, const char *name, int64_t in, int64_t out, weft_init weight,
                         const weft_init *bias)
{
    static weft_linear none;
    weft_module *m = weft_submodule_new(parent, name);
    weft_linear *l = weft__layer(m, sizeof *l);
    if (!l)
        return weft__finished(m, l, &none);
    l->m = m;
    l->weight = weft_parameter(m, "weight", WEFT_SHAPE(out, in), weight);
    l->bias = bias ? weft_parameter(m, "bias", WEFT_SHAPE(out), *bias) : NULL;
    return weft__finished(m, l, &none);
}

weft_init weft__by_width(int64_t in)
{
    real bound = in > 0 ? (real)(1 / sqrt((double)in)) : 0;
    return (weft_init){ WEFT_INIT_UNIFORM, -bound, bound };
}

weft_linear *weft_linear_new(weft_module *m, const char *name, int64_t in, int64_t out)
{
    weft_init init = weft__by_width(in);
    return made(m, name, in, out, init, &init);
}
weft_linear *weft_linear_unbiased(weft_module *m, const char *name, int64_t in, int64_t out)
{
    return made(m, name, in, out, weft__by_width(in), NULL);
}

weft_linear *weft__linear_as(weft_module *m, const char *name, int64_t in, int64_t out, weft_init weight)
{
    return made(m, name, in, out, weight, &(weft_init){ WEFT_INIT_ZERO, 0, 0 });
}
weft_linear *weft__linear_unbiased_as(weft_module *m, const char *name, int64_t in, int64_t out,
                                      weft_init weight)
{
    return made(m, name, in, out, weight, NULL);
}

static bool fits(const weft_linear *l, const weft_tensor *x)
{
    char text[128];
    int64_t in = l->weight->f.size[1];
    if (x->f.type != WEFT_REAL || x->f.rank < 2 || x->f.size[x->f.rank - 1] != in)
        weft__fail(x->w, WEFT_ESHAPE,
                   "linear: the input is %s; [.., %lld] of reals, of rank 2 or more, is wanted",
                   weft__text(&x->f, text), (long long)in);
    return !x->w->status;
}

static weft_tensor *run(weft_linear *l, weft_tensor *x, int f, real p)
{
    weft_tensor *bad = weft__refused(l ? l->m : NULL, x, "linear");
    if (bad)
        return bad;
    const weft_module *before = weft__enter(l->m);
    weft_tensor *y = fits(l, x) ? weft__linear(x, l->weight, l->bias, f, p) : &x->w->nil;
    weft__leave(l->m, before);
    return y;
}
weft_tensor *weft_linear_run(weft_linear *l, weft_tensor *x) { return run(l, x, WEFT__UNARIES, 0); }

weft_tensor *weft__linear_activated(weft_linear *l, weft_activation a, weft_tensor *x)
{
    switch (a) {
    case WEFT_RELU:       return run(l, x, WEFT__relu, 0);
    case WEFT_LEAKY_RELU: return run(l, x, WEFT__leaky_relu, (real).01);
    case WEFT_ELU:        return run(l, x, WEFT__elu, 1);
    case WEFT_TANH:       return run(l, x, WEFT__tanh, 0);
    case WEFT_SIGMOID:    return run(l, x, WEFT__sigmoid, 0);
    default:              return weft__activated(a, weft_linear_run(l, x));
    }
}
