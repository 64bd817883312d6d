/* grouped_grn.c - gated residual networks of one form side by side, as variable selection has one for each
 * feature: their parameters are those of grn.c, each network's its own, but all of them run as one, with a
 * batch of products where each had one. */
#include <stdio.h>
#include <string.h>
#include "autograd/fused.h"
#include "nn/nn.h"
#include "rnn/forecast/forecast.h"

/* The parameters of a network, by their names. */
enum {
    FC1_WEIGHT, FC1_BIAS, FC2_WEIGHT, FC2_BIAS, GATE_WEIGHT, GATE_BIAS, NORM_WEIGHT, NORM_BIAS,
    MASK, SKIP_WEIGHT, SKIP_BIAS, PARAMETERS     /* from MASK on: where in is not out */
};
static const char *const names[PARAMETERS] = {
    "fc1.weight",     "fc1.bias",    "fc2.weight", "fc2.bias",      "glu1.fc1.weight",
    "glu1.fc1.bias",  "norm.weight", "norm.bias",  "resample.mask", "resample.norm.weight",
    "resample.norm.bias"
};

struct weft__grouped_grn {
    weft_module *m; int64_t groups, in, out; double dropout;
    weft_tensor **of[PARAMETERS];                /* [groups] each */
};

weft__grouped_grn *weft__grouped_grn_new(weft_module *parent, const char *name, int64_t groups, int64_t in,
                                         int64_t out, double dropout)
{
    weft_module *m = weft_submodule_new(parent, name);
    weft__grouped_grn *g = weft__layer(m, sizeof *g);
    weft_tensor **all = weft__layer(m, (size_t)(PARAMETERS * groups) * sizeof *all);
    if (!g || !all)
        return NULL;
    *g = (weft__grouped_grn){ .m = m, .groups = groups, .in = in, .out = out, .dropout = dropout };
    for (int p = 0; p < PARAMETERS; p++)
        g->of[p] = all + p * groups;
    return g;
}

weft_grn *weft__grouped_grn_add(weft__grouped_grn *g, int64_t i)
{
    const weft_grn_opts opts = { .in = g->in,
                                 .out = g->out,
                                 .hidden = g->in < g->out ? g->in : g->out,
                                 .interpolate = true,
                                 .activation = WEFT_ELU,
                                 .dropout = g->dropout };
    char path[64];
    snprintf(path, sizeof path, "%lld", (long long)i);
    weft_grn *one = weft_grn_new(g->m, path, &opts);
    for (int p = 0; p < (g->in == g->out ? MASK : PARAMETERS) && weft_ok(g->m->w); p++) {
        snprintf(path, sizeof path, "%lld.%s", (long long)i, names[p]);
        g->of[p][i] = weft_find_parameter(g->m, path);
    }
    return one;
}

/* Some parameters of all networks, one behind the other there, [groups, ..] each. */
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
    return weft__layer_norm_of_groups(weft__resampled(x, g->out, all[0]), all[1], all[2], 0);
}

weft_tensor *weft__grouped_grn_run(const weft__grouped_grn *g, weft_tensor *x)
{
    const weft_module *before = weft__enter(g->m);
    weft_tensor *h = linear_of(g, FC2_WEIGHT, linear_of(g, FC1_WEIGHT, x, WEFT__elu), WEFT__UNARIES);
    h = weft__dropped(g->m, "glu1.dropout", weft__dropped(g->m, "dropout", h, g->dropout), g->dropout);
    weft_tensor *gate = linear_of(g, GATE_WEIGHT, h, WEFT__UNARIES), *skip = skip_of(g, x), *norm[2];
    of_all(g, NORM_WEIGHT, 2, norm);
    weft_tensor *y = weft__gate_norm_of(gate, skip, norm[0], norm[1], 0);
    weft__leave(g->m, before);
    return y;
}
