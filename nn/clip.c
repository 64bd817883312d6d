/* clip.c - clips the common norm of all gradients below a module, and copies them into one vector. The norm
 * stays on the device: kernels sum the runs in double, take the root and scale, without a wait. */
#include <math.h>
#include "autograd/fused.h"
#include "nn/nn.h"

/* Writes the norm to y. Without parameters it is the norm of an empty vector. */
static void norm_and_clip(const weft_module *m, real max, real power, weft__guard *g, real *y)
{
    weft__device *d = &m->w->dev;
    real *gradients = m->root->gradients;
    bool start = true;
    for (weft__range s = { 0 }; weft__next_range(m, false, &s); start = false)
        d->k->norm(d, s.n, power, gradients + s.from, start, g);
    if (start) {
        d->k->norm(d, 0, power, NULL, true, g);
        d->k->clip(d, 0, power, max, g, NULL, y);
    }
    for (weft__range s = { 0 }; weft__next_range(m, false, &s); y = NULL)
        d->k->clip(d, s.n, power, max, g, gradients + s.from, y);
}

weft_tensor *weft_clip_grad_norm(weft_module *m, double max, double power)
{
    weft *w = weft__ready(m);
    if (!w)
        return weft__inert(m);
    if (!weft__refuse_in_shard(w, "clip_grad_norm"))
        return &w->nil;
    power = power == 0 ? 2 : power;
    if (!((real)max > 0) || (power != 1 && power != 2 && power != (double)INFINITY))
        weft__fail(w, WEFT_EARG,
                   "clip_grad_norm: norm %g, limit %g; expected a norm of 1, 2 (or 0) or INFINITY, and a "
                   "limit above 0 (INFINITY: no limit)",
                   power, max);
    w->running = "clip_grad_norm";
    weft__form scalar = weft__plain(WEFT_REAL, 0, NULL);
    weft_tensor *total = weft__empty(w, &scalar);
    weft__guard *g = weft__take(w, WEFT__ARENA_DATA, sizeof *g);
    if (w->status)
        return &w->nil;
    weft__check_gradients_exist(m, "clip_grad_norm");
    norm_and_clip(m, (real)max, (real)power, g, total->data);
    weft__check_faults(w, "clip_grad_norm");
    return total;
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
    real *to = y->data;
    for (const weft__parameter *p = NULL; (p = weft__next_parameter(m, p));) {
        int64_t n = p->buffer ? 0 : weft__elements(&p->grad.f);
        if (n && weft__node_of(&p->value)->frozen)
            w->dev.k->fill(&w->dev, n, 0, to);
        else if (n)
            w->dev.k->copy(&w->dev, to, p->grad.data, (size_t)n * sizeof *to);
        to += n;
    }
    weft__check_faults(w, "flat_gradient");
    return y;
}
