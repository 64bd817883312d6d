/* flat.c - the gradients below a module as one vector. */
#include "nn/nn.h"

typedef struct { real *to; weft__device *device; } writer;

static bool write_one(weft__parameter *p, void *user)
{
    writer *at = user;
    int64_t n = p->buffer ? 0 : weft__elements(&p->grad.f);
    if (n && weft__node_of(&p->value)->frozen)
        at->device->k->fill(at->device, n, 0, at->to);
    else if (n)
        at->device->k->copy(at->device, at->to, p->grad.data, (size_t)n * sizeof(real));
    at->to += n;
    return true;
}

weft_tensor *weft_flat_gradient(weft_module *m)
{
    weft *w = weft__ready(m);
    if (!w)
        return weft__inert(m);
    w->running = "flat_gradient";
    weft__form f = weft__plain(WEFT_REAL, 1, (int64_t[]){ weft_parameter_numel(m) });
    weft_tensor *y = weft__empty(w, &f);
    if (!weft_ok(w))
        return &w->nil;
    weft__each_parameter(m, write_one, &(writer){ y->data, &w->dev });
    weft__check_faults(w, "flat_gradient");
    return y;
}
