/* clip.c - the gradients below a module as a whole: scaled so that their common norm is at most a given one,
 * and copied into one vector. The norm stays on the device: kernels add it up over the runs in double, then
 * take the root and scale by it, and no one waits. */
#include <math.h>
#include "autograd/fused.h"
#include "nn/nn.h"

/* y: where the norm goes, until it is there */
typedef struct { real max, power; weft__guard *g; bool start; real *y; } clipping;

static void norm(weft_module *root, int64_t from, int64_t n, void *user)
{
    clipping *c = user;
    weft__device *d = &root->w->dev;
    d->k->norm(d, n, c->power, root->gradients + from, c->start, c->g), c->start = false;
}

static void clip(weft_module *root, int64_t from, int64_t n, void *user)
{
    clipping *c = user;
    weft__device *d = &root->w->dev;
    d->k->clip(d, n, c->power, c->max, c->g, root->gradients + from, c->y), c->y = NULL;
}

weft_tensor *weft_clip_grad_norm(weft_module *m, double max, double power)
{
    weft *w = weft__ready(m);
    if (!w)
        return weft__inert(m);
    if (!weft__outside_shards(w, "clip_grad_norm"))
        return &w->nil;
    power = power == 0 ? 2 : power;
    if (!((real)max > 0) || (power != 1 && power != 2 && power != (double)INFINITY)) {
        weft__fail(w, WEFT_EARG,
                   "clip_grad_norm: norm %g, at most %g; a norm 1, 2 (or 0) or INFINITY, at most more than 0 "
                   "(INFINITY: no limit) are expected",
                   power, max);
        return &w->nil;
    }
    w->running = "clip_grad_norm";
    weft__gradients_are_there(m, "clip_grad_norm");
    weft__form scalar = weft__plain(WEFT_REAL, 0, NULL);
    weft_tensor *total = weft__empty(w, &scalar);
    clipping c = { (real)max, (real)power, weft__take(w, WEFT__IN_DATA, sizeof *c.g), true,
                   total->data };
    if (w->status)
        return &w->nil;
    weft__each_run(m, false, norm, &c);
    if (c.start)
        w->dev.k->norm(&w->dev, 0, c.power, NULL, true, c.g);      /* there is nothing */
    weft__each_run(m, false, clip, &c);
    if (c.y)
        w->dev.k->clip(&w->dev, 0, c.power, c.max, c.g, NULL, c.y);
    weft__check_faults(w, "clip_grad_norm");
    return total;
}

/* ---- gradients as one vector ---- */
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
