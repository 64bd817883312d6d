/* ema.c - exponential moving averages of parameters, and their exchange for an evaluation.
 *
 * The averages are buffers in a module "ema" below m, in a tree like that of m: "ema.encoder.weight" averages
 * "encoder.weight". So checkpoints contain them as any other buffers, and programs find them by path. */
#include "autograd/fused.h"
#include "nn/nn.h"

typedef struct { weft_tensor *value, *mean; } pair;
struct weft_ema {
    weft *w;
    const weft_module *m;
    real decay;
    int64_t largest;
    bool swapped;
    int n, count; /* number of parameters below m at the start */
    pair pairs[];
};

static void copy_numbers(weft_tensor *to, const weft_tensor *from)
{
    if (weft__bytes(&to->f))
        to->w->dev.k->copy(&to->w->dev, to->data, from->data, (size_t)weft__bytes(&to->f));
}

static void add_pair(weft_ema *a, weft__parameter *p, weft_module *to)
{
    weft_tensor *x = &p->value, *mean = weft_buffer(to, p->name, x->f.rank, x->f.size);
    if (a->w->status)
        return;
    int64_t n = weft__elements(&x->f);
    a->pairs[a->n++] = (pair){ x, mean };
    a->largest = n > a->largest ? n : a->largest;
    copy_numbers(mean, x);
}

static void mirror(weft_ema *a, const weft_module *m, weft_module *to)
{
    for (weft__parameter *p = m->parameters; p && !a->w->status; p = p->next)
        if (!p->buffer && !p->tied)
            add_pair(a, p, to);
    for (const weft_module *c = m->child; c && !a->w->status; c = c->sibling)
        if (weft_parameter_count(c))
            mirror(a, c, weft_submodule_new(to, c->name));
}

weft_ema *weft_ema_new(weft_module *m, double decay)
{
    static weft_ema inert;
    weft *w = weft__ready(m);
    if (!(decay >= 0 && decay <= 1))
        weft__fail(w ? w : m ? m->w : NULL, WEFT_EARG, "ema: decay %g; expected 0 .. 1", decay);
    int count = weft_parameter_count(m);
    weft_ema *a = w && !w->status ? weft__layer(m, sizeof *a + (size_t)count * sizeof *a->pairs) : NULL;
    if (!a)
        return &inert;
    a->w = w;
    a->m = m;
    a->decay = (real)decay;
    a->count = count;
    weft_module *to = weft_submodule_new(m, "ema");
    mirror(a, m, to);
    return weft__finish_layer(to, a, &inert);
}

/* Fails if m has new parameters: averages of only some parameters would mix two models. */
static bool is_usable(const weft_ema *a, const char *function)
{
    if (!a || !a->w || a->w->status)
        return false;
    int now = weft_parameter_count(a->m);
    if (now != a->count)
        weft__fail(
            a->w, WEFT_EARG,
            "%s: %s has %d parameters; expected %d, as at the start. Call weft_ema_new after the last layer",
            function, a->m->path, now, a->count);
    return now == a->count;
}

void weft_ema_update(weft_ema *a, int64_t updates)
{
    if (!is_usable(a, "ema_update"))
        return;
    /* After swap the parameters are averages, so an update would average the averages. */
    if (a->swapped) {
        weft__fail(a->w, WEFT_EARG,
                   "ema_update: the averages are swapped with the parameters. Call weft_ema_swap first.");
        return;
    }
    weft__device *d = &a->w->dev;
    bool early = (double)updates * (1 - (double)a->decay) <= 1;
    for (int i = 0; i < a->n; i++) {
        const pair *p = &a->pairs[i];
        int64_t n = weft__elements(&p->value->f);
        if (!early)
            d->k->scale(d, n, a->decay, p->mean->data, p->mean->data, false);
        d->k->scale(d, n, early ? 1 : 1 - a->decay, p->value->data, p->mean->data, !early);
        weft__mark_changed(p->mean);
    }
    weft__check_faults(a->w, "ema_update");
}

void weft_ema_swap(weft_ema *a)
{
    if (!is_usable(a, "ema_swap"))
        return;
    weft *w = a->w;
    weft_mark mark = weft_mark_here(w);
    w->running = "ema_swap";
    weft_tensor *spare =
        weft__empty(w, &(weft__form){ .type = WEFT_REAL, .rank = 1, .size = { a->largest } });
    for (int i = 0; i < a->n && !w->status; i++) {
        const pair *p = &a->pairs[i];
        spare->f = p->value->f;
        copy_numbers(spare, p->value);
        copy_numbers(p->value, p->mean);
        copy_numbers(p->mean, spare);
        weft__mark_changed(p->value), weft__mark_changed(p->mean);
    }
    a->swapped ^= !w->status;
    weft__check_faults(w, "ema_swap");
    if (!w->status)
        weft_rewind(w, mark);
}
