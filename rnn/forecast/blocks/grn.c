/* grn.c - gated residual networks: a single one, and several of one shape that run together, with one batch
 * of products instead of separate ones. */
#include <math.h>
#include <string.h>
#include "autograd/fused.h"
#include "rnn/forecast/blocks/blocks.h"

/* ---- one network ---- */
struct weft__grn {
    weft_module *m;
    double dropout;
    /* NULL if not needed. resampled: in differs from out, and the skip is interpolated. */
    weft_linear *fc1, *fc2, *fc3, *project;
    weft__glu_layer *glu1;
    weft_norm_layer *norm, *resampled;
    weft_tensor *mask;                           /* of resampled */
    int64_t out;
};

static weft_init normal_of(int64_t in)
{
    return (weft_init){ WEFT_INIT_NORMAL, 0, in > 0 ? (double)(real)sqrt(2 / (double)in) : 0 };
}

static void skip_new(weft__grn *g, const weft__grn_opts *o)
{
    if (o->in == o->out)
        return;
    if (!o->interpolate) {
        g->project = weft__linear_new(g->m, "project", o->in, o->out, weft__init_by_width(o->in));
        return;
    }
    weft_module *m = weft_submodule_new(g->m, "resample");
    g->resampled = weft_layer_norm_new(m, "norm", &(weft_layer_norm_opts){ .width = o->out });
    g->mask = weft_parameter(m, "mask", WEFT_SHAPE(o->out), (weft_init){ WEFT_INIT_ZERO, 0, 0 });
}

weft__grn *weft__grn_new(weft_module *parent, const char *name, const weft__grn_opts *o)
{
    weft__grn *g = weft__layer_new(parent, name, sizeof *g);
    if (!g)
        return NULL;
    int64_t hidden = o->hidden ? o->hidden : o->in;
    g->dropout = o->dropout;
    g->out = o->out;
    g->fc1 = weft__linear_new(g->m, "fc1", o->in, hidden, normal_of(o->in));
    if (o->context)
        g->fc3 =
            weft__linear_unbiased_new(g->m, "fc3", o->context, hidden, (weft_init){ WEFT_INIT_XAVIER, 1, 0 });
    g->fc2 = weft__linear_new(g->m, "fc2", hidden, o->out, normal_of(hidden));
    g->glu1 = weft__glu_new(g->m, "glu1", o->out, o->out, o->dropout);
    if (weft_ok(g->m->w))
        weft_initialise(weft_find_parameter(g->m, "glu1.fc1.weight"), normal_of(o->out));
    skip_new(g, o);
    g->norm = weft_layer_norm_new(g->m, "norm", &(weft_layer_norm_opts){ .width = o->out });
    return g;
}

/* Spreads one row per sequence over the rows of x. */
static weft_tensor *spread_over(weft_tensor *c, weft_tensor *x)
{
    if (x->f.batch && !c->f.batch)
        return weft_broadcast_to_tokens(c, x);
    return x->f.rank == 3 && c->f.rank == 2 ?
               weft_reshape(c, 3, (int64_t[]){ c->f.size[0], 1, c->f.size[1] }) :
               c;
}

/* The activation of fc1 x + fc3 context. */
static weft_tensor *hidden(const weft__grn *g, weft_tensor *x, weft_tensor *context)
{
    if (!g->fc3)
        return weft__run_activated(g->fc1, WEFT_ELU, x);
    weft_tensor *h = weft_linear_run(g->fc1, x);
    return weft_elu(weft_add(h, spread_over(weft_linear_run(g->fc3, context), h)), 1);
}

weft_tensor *weft__grn_run(weft__grn *g, weft_tensor *x, weft_tensor *context)
{
    const weft_module *before = weft__enter(g->m);
    weft_tensor *h = weft_linear_run(g->fc2, hidden(g, x, context));
    h = weft__glu_gate(g->glu1, weft__dropout(g->m, "dropout", h, g->dropout));
    weft_tensor *skip = g->project ? weft_linear_run(g->project, x) : x;
    if (g->resampled)
        skip = weft_layer_norm_run(g->resampled, weft__resample(x, g->out, g->mask));
    return weft__leave_with(g->m, before, weft__layer_norm_of_gate(g->norm, h, skip));
}

/* ---- many of one shape ---- */
/* The parameters of a network, by their names. */
enum {
    FC1_WEIGHT, FC1_BIAS, FC2_WEIGHT, FC2_BIAS, GATE_WEIGHT, GATE_BIAS, NORM_WEIGHT, NORM_BIAS,
    MASK, SKIP_WEIGHT, SKIP_BIAS, PARAMETERS     /* from MASK on only if in differs from out */
};
static const char *const names[PARAMETERS] = {
    "fc1.weight",     "fc1.bias",    "fc2.weight", "fc2.bias",      "glu1.fc1.weight",
    "glu1.fc1.bias",  "norm.weight", "norm.bias",  "resample.mask", "resample.norm.weight",
    "resample.norm.bias"
};

struct weft__grouped_grn {
    weft_module *m;
    int64_t groups;
    int64_t in;
    int64_t out;
    double dropout;
    weft_tensor **of[PARAMETERS];                /* [groups] each */
};

weft__grouped_grn *weft__grouped_grn_new(weft_module *parent, const char *name, int64_t groups, int64_t in,
                                         int64_t out, double dropout)
{
    weft__grouped_grn *g = weft__layer_new(parent, name, sizeof *g);
    weft_tensor **all = g ? weft__layer(g->m, (size_t)(PARAMETERS * groups) * sizeof *all) : NULL;
    if (!all)
        return NULL;
    *g = (weft__grouped_grn){ .m = g->m, .groups = groups, .in = in, .out = out, .dropout = dropout };
    for (int p = 0; p < PARAMETERS; p++)
        g->of[p] = all + p * groups;
    return g;
}

weft__grn *weft__grouped_grn_add(weft__grouped_grn *g, int64_t i)
{
    const weft__grn_opts opts = { .in = g->in, .out = g->out, .hidden = g->in < g->out ? g->in : g->out,
                                  .interpolate = true, .dropout = g->dropout };
    char path[64];
    snprintf(path, sizeof path, "%lld", (long long)i);
    weft__grn *one = weft__grn_new(g->m, path, &opts);
    for (int p = 0; p < (g->in == g->out ? MASK : PARAMETERS) && weft_ok(g->m->w); p++) {
        snprintf(path, sizeof path, "%lld.%s", (long long)i, names[p]);
        g->of[p][i] = weft_find_parameter(g->m, path);
    }
    return one;
}

/* Collects n kinds of parameters, from `parameter` on, of all networks; [groups, ..] each. */
static void of_all(const weft__grouped_grn *g, int parameter, int n, weft_tensor **all)
{
    weft_tensor *const *const *lists = (weft_tensor *const *const *)(g->of + parameter);
    weft__concat_lists(lists, n, (int)g->groups, all);
    for (int i = 0; i < n; i++) {
        const weft__form *one = &lists[i][0]->f;
        int64_t shape[WEFT_RANK] = { g->groups };
        memcpy(shape + 1, one->size, (size_t)one->rank * sizeof *shape);
        all[i] = weft_reshape(all[i], one->rank + 1, shape);
    }
}

static weft_tensor *linear_of(const weft__grouped_grn *g, int weight, weft_tensor *x, int f)
{
    weft_tensor *all[2];
    of_all(g, weight, 2, all);
    return weft__linear(x, all[0], all[1], f, 1);
}

static weft_tensor *skip_of(const weft__grouped_grn *g, weft_tensor *x)
{
    if (g->in == g->out)
        return x;
    weft_tensor *all[3];
    of_all(g, MASK, 3, all);
    return weft__layer_norm_of_groups(weft__resample(x, g->out, all[0]), all[1], all[2], 0);
}

weft_tensor *weft__grouped_grn_run(const weft__grouped_grn *g, weft_tensor *x)
{
    const weft_module *before = weft__enter(g->m);
    weft_tensor *h = linear_of(g, FC2_WEIGHT, linear_of(g, FC1_WEIGHT, x, WEFT__elu), WEFT__UNARIES);
    h = weft__dropout(g->m, "glu1.dropout", weft__dropout(g->m, "dropout", h, g->dropout), g->dropout);
    weft_tensor *gate = linear_of(g, GATE_WEIGHT, h, WEFT__UNARIES);
    weft_tensor *skip = skip_of(g, x);
    weft_tensor *norm[2];
    of_all(g, NORM_WEIGHT, 2, norm);
    return weft__leave_with(g->m, before, weft__gate_norm_of(gate, skip, norm[0], norm[1], 0));
}
