/* conv.c - convolution over the tokens of each sequence as a layer. Its weight is stored [out, in, width] as
 * in PyTorch, so the two read each other's files. */
#include "autograd/fused.h"
#include "nn/api_conv.h"
#include "nn/nn.h"

struct weft_conv {
    weft_module *m;
    weft_tensor *weight, *bias;
    weft__reads reads;
};

static bool conv_is_sound(weft_module *m, const char *name, const weft_conv_opts *o)
{
    if (!WEFT__SIZES(m, "conv", name, o, { "in", o ? o->in : 0 }, { "out", o ? o->out : 0 },
                     { "width", o ? o->width : 0 }))
        return false;
    if (o->width > INT32_MAX || o->dilation < 0 || o->dilation > INT32_MAX || o->stride < 0 ||
        o->stride > INT32_MAX || (unsigned)o->padding > WEFT_CONV_VALID)
        weft__fail(
            m->w, WEFT_EARG,
            "conv \"%.80s\" in %s: width %lld, dilation %lld, stride %lld, padding %d; expected numbers "
            "of 1 .. 2^31 - 1 (0 means 1 for dilation and stride), and a value of weft_conv_padding",
            name ? name : "", m->path, (long long)o->width, (long long)o->dilation, (long long)o->stride,
            (int)o->padding);
    else if (o->causal && o->padding == WEFT_CONV_VALID)
        weft__fail(m->w, WEFT_EARG, "conv \"%.80s\" in %s: causal with WEFT_CONV_VALID; expected one of them",
                   name ? name : "", m->path);
    return !m->w->status;
}

static weft__reads reads_of(const weft_conv_opts *o)
{
    const int64_t dilation = o->dilation ? o->dilation : 1, span = dilation * (o->width - 1);
    const bool valid = o->padding == WEFT_CONV_VALID;
    return (weft__reads){ .width = o->width,
                          .dilation = dilation,
                          .from = valid     ? 0 :
                                  o->causal ? -span :
                                              -(span / 2),
                          .every = o->stride ? o->stride : 1,
                          .repeat = 1,
                          .whole = valid };
}

weft_conv *weft_conv_new(weft_module *parent, const char *name, const weft_conv_opts *opts)
{
    static weft_conv inert;
    if (!conv_is_sound(parent, name, opts))
        return &inert;
    weft_conv *c = weft__layer_new(parent, name, sizeof *c);
    if (!c)
        return &inert;
    const weft_init init = weft__init_by_width(opts->in * opts->width);
    *c = (weft_conv){ .m = c->m, .reads = reads_of(opts) };
    c->weight = weft_parameter(c->m, "weight", WEFT_SHAPE(opts->out, opts->in, opts->width), init);
    c->bias = opts->no_bias ? NULL : weft_parameter(c->m, "bias", WEFT_SHAPE(opts->out), init);
    return weft__finish_layer(c->m, c, &inert);
}

/* A window of one token needs no copy. */
static weft_tensor *convolve(const weft_conv *c, weft_tensor *x)
{
    const weft__form *f = &c->weight->f;
    if (c->reads.width > 1 || c->reads.every > 1)
        return weft__conv(x, c->weight, c->bias, &c->reads);
    return weft__linear(weft_to_layout(x, WEFT_CONCAT), weft_reshape(c->weight, 2, f->size), c->bias,
                        WEFT__UNARIES, 0);
}

/* Runs a plain [n, T, in] as n sequences. */
static weft_tensor *convolve_plain(const weft_conv *c, weft_tensor *x)
{
    const int64_t n = x->f.size[0];
    weft_tensor *rows = weft__as_batch(x, "conv", n, x->f.size[1]);
    weft_tensor *y = weft_ok(x->w) ? weft_plain(convolve(c, weft_to_layout(rows, WEFT_CONCAT))) : rows;
    return weft_reshape(y, WEFT_SHAPE(n, n ? weft_size(y, 0) / n : 0, c->weight->f.size[0]));
}

weft_tensor *weft_conv_run(weft_conv *c, weft_tensor *x)
{
    weft_tensor *bad = weft__bad_input(c ? c->m : NULL, x, "conv");
    if (bad)
        return bad;
    const weft_module *before = weft__enter(c->m);
    const int rank = x->f.batch ? 2 : 3;
    weft_tensor *y = &x->w->nil;
    if (x->f.type != WEFT_REAL || x->f.rank != rank || x->f.size[rank - 1] != c->weight->f.size[1] ||
        x->f.size[1] >= INT32_MAX)
        weft__fail(x->w, WEFT_ESHAPE,
                   "conv: the input is %s; expected ragged [N, %lld] or plain [n, T, %lld] of reals%s",
                   WEFT__TEXT(&x->f), (long long)c->weight->f.size[1], (long long)c->weight->f.size[1],
                   weft__ids_advice(&x->f));
    else
        y = x->f.batch ? convolve(c, x) : convolve_plain(c, x);
    return weft__leave_with(c->m, before, y);
}
