/* linear.c - y = x W^T + b. The weight is stored [out, in] as in PyTorch, so the two read each other's files.
 * The product reads it transposed, without a copy. */
#include <math.h>
#include "autograd/fused.h"
#include "nn/nn.h"

struct weft_linear { weft_module *m; weft_tensor *weight, *bias; };

static weft_linear none;

static weft_linear *new_linear(weft_module *parent, const char *name, const weft_linear_opts *o,
                               weft_init weight, const weft_init *bias)
{
    weft_linear *l = weft__layer_new(parent, name, sizeof *l);
    if (!l)
        return &none;
    l->weight = o->weight ? o->weight : weft_parameter(l->m, "weight", WEFT_SHAPE(o->out, o->in), weight);
    if (o->weight)
        weft_tie(l->m, "weight", o->weight);
    l->bias = bias ? weft_parameter(l->m, "bias", WEFT_SHAPE(o->out), *bias) : NULL;
    return weft__finish_layer(l->m, l, &none);
}

weft_init weft__init_by_width(int64_t in)
{
    real bound = in > 0 ? (real)(1 / sqrt((double)in)) : 0;
    return (weft_init){ WEFT_INIT_UNIFORM, (double)-bound, (double)bound };
}

/* Checks a shared weight. It defines the sizes, and sizes in the options must agree with it. */
static bool weight_fits(const weft_module *m, const char *name, weft_linear_opts *o)
{
    weft *w = weft__ready(m);
    const weft__form *f = &o->weight->f;
    if (!w)
        return false;
    if (weft__handle_error(w, o->weight) || !weft__node_of(o->weight)->parameter)
        weft__fail(w, WEFT_EARG, "linear \"%.80s\" in %s: the weight %s", name ? name : "", m->path,
                   weft__handle_error(w, o->weight) ? weft__handle_error(w, o->weight) :
                                                      "is not a parameter");
    else if (f->rank != 2 || (o->out && o->out != f->size[0]) || (o->in && o->in != f->size[1]))
        weft__fail(w, WEFT_ESHAPE,
                   "linear \"%.80s\" in %s: the weight is %s; expected [out, in] with out = %lld and in = "
                   "%lld, or 0 to use the weight's sizes",
                   name ? name : "", m->path, WEFT__TEXT(f), (long long)o->out, (long long)o->in);
    else {
        o->out = f->size[0];
        o->in = f->size[1];
    }
    return !w->status;
}

weft_linear *weft_linear_new(weft_module *parent, const char *name, const weft_linear_opts *opts)
{
    weft_linear_opts o = opts ? *opts : (weft_linear_opts){ 0 };
    if (o.weight && !weight_fits(parent, name, &o))
        return &none;
    if (!WEFT__SIZES(parent, "linear", name, opts, { "in", o.in }, { "out", o.out }))
        return &none;
    weft_init init = weft__init_by_width(o.in);
    return new_linear(parent, name, &o, init, o.no_bias ? NULL : &init);
}

weft_linear *weft__linear_new(weft_module *m, const char *name, int64_t in, int64_t out, weft_init weight)
{
    return new_linear(m, name, &(weft_linear_opts){ .in = in, .out = out }, weight,
                      &(weft_init){ WEFT_INIT_ZERO, 0, 0 });
}
weft_linear *weft__linear_unbiased_new(weft_module *m, const char *name, int64_t in, int64_t out,
                                      weft_init weight)
{
    return new_linear(m, name, &(weft_linear_opts){ .in = in, .out = out }, weight, NULL);
}

static bool input_fits(const weft_linear *l, const weft_tensor *x)
{
    int64_t in = l->weight->f.size[1];
    if (x->f.type != WEFT_REAL || x->f.rank < 2 || x->f.size[x->f.rank - 1] != in)
        weft__fail(x->w, WEFT_ESHAPE,
                   "linear: the input is %s; expected [.., %lld] of reals, rank 2 or more%s",
                   WEFT__TEXT(&x->f), (long long)in, weft__ids_advice(&x->f));
    return !x->w->status;
}

static weft_tensor *run_linear(weft_linear *l, weft_tensor *x, int f, real p)
{
    weft_tensor *bad = weft__bad_input(l ? l->m : NULL, x, "linear");
    if (bad)
        return bad;
    const weft_module *before = weft__enter(l->m);
    return weft__leave_with(
        l->m, before, input_fits(l, x) ? weft__linear(x, l->weight, l->bias, f, p) : &x->w->nil);
}
weft_tensor *weft_linear_run(weft_linear *l, weft_tensor *x) { return run_linear(l, x, WEFT__UNARIES, 0); }

weft_tensor *weft__run_activated(weft_linear *l, weft_activation a, weft_tensor *x)
{
    switch (a) {
    case WEFT_RELU:       return run_linear(l, x, WEFT__relu, 0);
    case WEFT_LEAKY_RELU: return run_linear(l, x, WEFT__leaky_relu, (real).01);
    case WEFT_ELU:        return run_linear(l, x, WEFT__elu, 1);
    case WEFT_TANH:       return run_linear(l, x, WEFT__tanh, 0);
    case WEFT_SIGMOID:    return run_linear(l, x, WEFT__sigmoid, 0);
    default:              return weft__activate(a, weft_linear_run(l, x));
    }
}
