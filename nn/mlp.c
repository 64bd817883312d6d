/* mlp.c - linear layers one after the other, with an activation and dropout between them. */
#include "nn/nn.h"

/* ---- activations by name ---- */
weft_tensor *weft__activate(weft_activation a, weft_tensor *x)
{
    switch (a) {
    case WEFT_DEFAULT_ACTIVATION:
    case WEFT_RELU:       return weft_relu(x);
    case WEFT_LEAKY_RELU: return weft_leaky_relu(x, .01);
    case WEFT_ELU:        return weft_elu(x, 1);
    case WEFT_GELU:       return weft_gelu(x);
    case WEFT_SILU:       return weft_silu(x);
    case WEFT_TANH:       return weft_tanh(x);
    case WEFT_SIGMOID:    return weft_sigmoid(x);
    }
    return x;
}

enum { MOST_LAYERS = 9999 };                    /* documented in api_layers.h */

struct weft_mlp {
    weft_module *m;
    weft_activation activation;
    double dropout;
    int layers;
    weft_linear *linear[];
};

/* Returns the number of linear layer i in a torch.nn.Sequential, which numbers all parts. */
static int layer_number(const weft_mlp *l, int i) { return i * (l->dropout > 0 ? 3 : 2); }

static bool check_mlp(weft_module *m, const weft_mlp_opts *o)
{
    weft *w = weft__ready(m);
    if (w && (!o || !o->widths))
        weft__fail(w, WEFT_EARG, "mlp: %s is NULL", o ? "widths" : "opts");
    else if (w && (o->layers < 1 || o->layers > MOST_LAYERS))
        weft__fail(w, WEFT_EARG, "mlp: %d layers; expected 1 .. %d", o->layers, MOST_LAYERS);
    else if (w && ((unsigned)o->activation > WEFT_SIGMOID || !(o->dropout >= 0 && (real)o->dropout < 1)))
        weft__fail(w, WEFT_EARG,
                   "mlp: activation %d, dropout %g; expected a value of weft_activation and 0 <= dropout < 1",
                   (int)o->activation, o->dropout);
    return w && !w->status;
}

weft_mlp *weft_mlp_new(weft_module *parent, const char *name, const weft_mlp_opts *opts)
{
    static weft_mlp inert;
    if (!check_mlp(parent, opts))
        return &inert;
    weft_mlp *l = weft__layer_new(parent, name, sizeof *l + (size_t)opts->layers * sizeof *l->linear);
    if (!l)
        return &inert;
    l->activation = opts->activation ? opts->activation : WEFT_RELU;
    l->dropout = opts->dropout;
    l->layers = opts->layers;
    for (int i = 0; i < l->layers; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", layer_number(l, i));
        l->linear[i] = weft_linear_new(
            l->m, number, &(weft_linear_opts){ .in = opts->widths[i], .out = opts->widths[i + 1] });
    }
    return weft__finish_layer(l->m, l, &inert);
}

weft_tensor *weft_mlp_run(weft_mlp *l, weft_tensor *x)
{
    weft_tensor *bad = weft__bad_input(l ? l->m : NULL, x, "mlp");
    if (bad)
        return bad;
    const weft_module *before = weft__enter(l->m);
    for (int i = 0; i < l->layers; i++) {
        char drop[16];
        snprintf(drop, sizeof drop, "%d", layer_number(l, i) + 2);
        if (i + 1 < l->layers)
            x = weft__dropout(l->m, drop, weft__run_activated(l->linear[i], l->activation, x), l->dropout);
        else
            x = weft_linear_run(l->linear[i], x);
    }
    return weft__leave_with(l->m, before, x);
}
