/* grn.c - gated residual networks: what a TFT does to everything. */
#include <math.h>
#include "nn/nn.h"
#include "rnn/forecast/forecast.h"

struct weft_grn {
    weft_module *m; weft_grn_opts o;
    /* what is not needed is NULL */
    weft_linear *fc1, *fc2, *fc3, *project;
    weft_glu *glu1;
    weft_layer_norm_layer *norm;
    weft_resample_norm *resample;
};

static weft_init normal_of(int64_t in)
{
    return (weft_init){ WEFT_INIT_NORMAL, 0, in > 0 ? (double)(real)sqrt(2 / (double)in) : 0 };
}

static bool grn_is_sound(weft_module *m, const weft_grn_opts *o)
{
    weft *w = weft__ready(m);
    if (w && !o)
        weft__fail(w, WEFT_EARG, "grn: opts is NULL");
    else if (w && (o->in < 1 || o->out < 1 || o->hidden < 0 || o->context < 0))
        weft__fail(w, WEFT_ESHAPE,
                   "grn: in %lld, out %lld, hidden %lld, context %lld; in and out of 1 or more are expected, "
                   "the others of 0 or more",
                   (long long)o->in, (long long)o->out, (long long)o->hidden, (long long)o->context);
    else if (w && (unsigned)o->activation > WEFT_SIGMOID)
        weft__fail(w, WEFT_EARG, "grn: activation %d; a weft_activation is expected", (int)o->activation);
    return weft__dropout_is_sound(w, "grn", o ? o->dropout : 0);
}

static void skip_new(weft_grn *g)
{
    if (g->o.in == g->o.out)
        return;
    if (g->o.interpolate)
        g->resample = weft_resample_norm_new(
            g->m, "resample",
            &(weft_resample_norm_opts){ .in = g->o.in, .out = g->o.out, .trainable_add = true });
    else
        g->project = weft__linear_as(g->m, "project", g->o.in, g->o.out, weft__by_width(g->o.in));
}

weft_grn *weft_grn_new(weft_module *parent, const char *name, const weft_grn_opts *opts)
{
    static weft_grn none;
    if (!grn_is_sound(parent, opts))
        return &none;
    weft_module *m = weft_submodule_new(parent, name);
    weft_grn *g = weft__layer(m, sizeof *g);
    if (!g)
        return weft__finished(m, g, &none);
    g->m = m, g->o = *opts;
    g->o.activation = g->o.activation ? g->o.activation : WEFT_ELU;
    int64_t hidden = g->o.hidden ? g->o.hidden : g->o.in, out = g->o.out;
    g->fc1 = weft__linear_as(m, "fc1", g->o.in, hidden, normal_of(g->o.in));
    if (g->o.context)
        g->fc3 =
            weft__linear_unbiased_as(m, "fc3", g->o.context, hidden, (weft_init){ WEFT_INIT_XAVIER, 1, 0 });
    g->fc2 = weft__linear_as(m, "fc2", hidden, out, normal_of(hidden));
    g->glu1 = weft_glu_new(m, "glu1", &(weft_glu_opts){ .in = out, .out = out, .dropout = g->o.dropout });
    if (weft_ok(m->w))
        weft_initialise(weft_find_parameter(m, "glu1.fc1.weight"), normal_of(out));
    skip_new(g);
    g->norm = weft_layer_norm_layer_new(m, "norm", &(weft_layer_norm_opts){ .width = out });
    return weft__finished(m, g, &none);
}

/* One row for each sequence, to all rows of x that are its. */
static weft_tensor *spread_over(weft_tensor *c, weft_tensor *x)
{
    if (x->f.batch && !c->f.batch)
        return weft_broadcast_to_tokens(c, x);
    return x->f.rank == 3 && c->f.rank == 2 ?
               weft_reshape(c, 3, (int64_t[]){ c->f.size[0], 1, c->f.size[1] }) :
               c;
}

/* The activation of fc1 x + fc3 context. */
static weft_tensor *hidden(const weft_grn *g, weft_tensor *x, weft_tensor *context)
{
    if (!g->fc3 && !context)
        return weft__linear_activated(g->fc1, g->o.activation, x);
    weft_tensor *h = weft_linear_run(g->fc1, x);
    const char *wrong = weft__wrong(x->w, context);
    if (!g->fc3 || wrong)
        weft__fail(x->w, WEFT_EARG, "grn: the context %s",
                   g->fc3 ? wrong : "was given to a network made without one");
    return weft_ok(x->w) ? weft__activated(g->o.activation,
                                           weft_add(h, spread_over(weft_linear_run(g->fc3, context), h))) :
                           &x->w->nil;
}

weft_tensor *weft_grn_run(weft_grn *g, weft_tensor *x, weft_tensor *context)
{
    weft_tensor *bad = weft__refused(g ? g->m : NULL, x, "grn");
    if (bad)
        return bad;
    const weft_module *before = weft__enter(g->m);
    weft_tensor *h = weft_linear_run(g->fc2, hidden(g, x, context));
    h = weft__glu_gate(g->glu1, weft__dropped(g->m, "dropout", h, g->o.dropout));
    weft_tensor *skip = g->project  ? weft_linear_run(g->project, x) :
                        g->resample ? weft_resample_norm_run(g->resample, x) :
                                      x;
    weft_tensor *y = weft__layer_norm_of_gate(g->norm, h, skip);
    weft__leave(g->m, before);
    return y;
}
