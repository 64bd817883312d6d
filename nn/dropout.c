/* dropout.c - dropout as a layer. It has no parameters. It is a module because its path names its masks: two
 * layers draw independently, and a layer draws the same numbers after a restart. */
#include "nn/nn.h"

bool weft__dropout_is_sound(weft *w, const char *function, double p)
{
    if (w && !(p >= 0 && (real)p < 1))
        weft__fail(w, WEFT_EARG, "%s: dropout %g; expected 0 <= dropout < 1", function, p);
    return w && !w->status;
}

weft_tensor *weft__dropout(const weft_module *m, const char *part, weft_tensor *x, double p)
{
    char place[WEFT__PATH + WEFT__NAME];
    if (p == 0 || !x->w->training)
        return x;
    snprintf(place, sizeof place, "%s.%s", m->path, part);
    return weft_dropout(x, p, place, false);
}

struct weft_dropout_layer { weft_module *m; double p; bool per_sequence; };

weft_dropout_layer *weft_dropout_new(weft_module *parent, const char *name, const weft_dropout_opts *opts)
{
    static weft_dropout_layer inert;
    weft *w = weft__ready(parent);
    double p = opts ? opts->p : 0;
    if (w && !(p >= 0 && (real)p < 1))
        weft__fail(w, WEFT_EARG, "dropout: p = %g; expected 0 <= p < 1", p);
    weft_dropout_layer *d = weft__layer_new(parent, name, sizeof *d);
    if (d)
        *d = (weft_dropout_layer){ d->m, p, opts && opts->per_sequence };
    return d ? d : &inert;
}

weft_tensor *weft_dropout_run(weft_dropout_layer *d, weft_tensor *x)
{
    weft_tensor *bad = weft__bad_input(d ? d->m : NULL, x, "dropout");
    if (bad)
        return bad;
    const weft_module *before = weft__enter(d->m);
    return weft__leave_with(d->m, before, weft_dropout(x, d->p, d->m->path, d->per_sequence));
}
