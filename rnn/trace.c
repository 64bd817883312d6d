/* trace.c - the inside of a fused layer: gates and states of every token and, after backward, their
 * gradients.
 *
 * The gates are a result of the layer's operator that backward overwrites, so they are copied first. For the
 * gradients the recurrence runs backward again on a copy, one step for each call. Between two calls the
 * kernel's buffers hold the gradients that continue to the previous states. So the values have the layer's
 * bits, and the layer itself is unchanged. The gradient of c is its direct gradient plus that through h = o
 * tanh(c), added when requested. */
#include "autograd/fused.h"
#include "rnn/rnn.h"

/* ---- enabling ---- */
bool weft_rnn_set_traced(weft_rnn *r, bool traced)
{
    weft__traces *t = weft__traces_of(r);
    bool old = t && t->on;
    if (!t || t->w->status)
        return old;
    if (traced && t->own)
        return weft__fail(t->w, WEFT_EARG,
                          "rnn_set_traced: the cell has no fused kernel; expected one of the library"),
               old;
    if (traced && !t->trace)
        t->trace = weft__layer(weft_rnn_module(r), (size_t)(t->layers * t->directions) * sizeof *t->trace);
    t->on = traced && t->trace;
    return old;
}

bool weft__trace_allowed(const weft__traces *t, const char *function, bool composed, bool lean)
{
    if (t->on && (composed || lean))
        weft__fail(t->w, WEFT_EARG,
                   "%s: the layer is traced (weft_rnn_set_traced) and %s; expected a fused layer that keeps "
                   "its gates",
                   function, lean ? "lean" : "composed");
    return !t->w->status;
}

/* ---- forward ---- */
static weft_tensor *like(const weft_tensor *h, int64_t columns)
{
    weft__form f = h->f;
    f.size[1] = columns;
    return weft__empty(h->w, &f);
}

void weft__trace_begin(weft__trace *t, const weft__direction *d, const weft_call *c)
{
    uint64_t run = t->run + 1;
    weft_tensor *h = c->y[0], *gates = c->y[weft__states(d->cell)];
    *t = (weft__trace){ .run = run, .cell = d->cell, .hidden = d->hidden, .step = h->w->step };
    t->h = h;
    t->c = d->has_c ? c->y[1] : NULL;
    t->gates = gates;
    t->saved_gates = like(h, width(gates));
    t->dgates = like(h, width(gates));
    t->dh = like(h, width(h));
    t->dc = t->c ? like(h, d->hidden) : NULL;
    weft_tensor *w_hr = d->in[WEFT__W_HR];
    WEFT_NO_GRAD(h->w)
    t->w_hr = w_hr && weft_ok(h->w) ? weft_scale(weft_detach(w_hr), 1) : NULL;
}

/* ---- backward ---- */
static real *zeros(const weft_call *c, int64_t n)
{
    real *p = weft__device_scratch(c, n);
    if (p)
        RUN(c, fill, n, 0, p);
    return p;
}

/* Adds, for the n tokens of a step, the gradients of their own results and of later tokens. */
static void add_gradients(const weft_call *c, int64_t n, const real *given, const real *carried, real *to)
{
    if (given)
        RUN(c, scale, n, 1, given, to, false);
    RUN(c, scale, n, 1, carried, to, given != NULL);
}

static void step_back(const weft_call *c, const weft__trace *t, weft__recurrence *r, int64_t step)
{
    const int64_t row = r->start.host[step], n = r->live.host[step], W = r->width, H = r->hidden;
    const real *dy = r->dy, *dyc = r->dyc;
    add_gradients(c, n * W, dy ? dy + row * W : NULL, r->carry_h, t->dh->data + row * W);
    if (t->dc)
        add_gradients(c, n * H, dyc ? dyc + row * H : NULL, r->carry_c, t->dc->data + row * H);
    r->from = step;
    r->to = step + 1;
    RUN(c, recur_back, r);
}

void weft__trace_back(const weft_call *c, weft__trace *t, uint64_t run, weft__recurrence r, int64_t columns)
{
    weft *w = c->y[0]->w;
    if (t->run != run || w->status)
        return;
    const int64_t before = weft__position(w, WEFT__ARENA_DATA), all = r.tokens * width(t->gates);
    r.gates = t->dgates->data;
    r.dy = weft_op_dy(c, 0);
    r.dyc = r.c ? weft_op_dy(c, 1) : NULL;
    r.carry_h = zeros(c, columns * r.width);
    r.carry_c = r.c ? zeros(c, columns * r.hidden) : NULL;
    r.dh = r.w_hr ? zeros(c, r.tokens * r.width) : NULL;
    if (!w->status && all) {
        RUN(c, scale, all, 1, t->gates->data, t->saved_gates->data, false);
        RUN(c, scale, all, 1, t->gates->data, t->dgates->data, false);
        for (int64_t i = 0; i < r.steps && !w->dev.failure[0]; i++)
            step_back(c, t, &r, r.reverse ? i : r.steps - 1 - i);
    }
    t->gates = t->saved_gates;
    t->has_gradients = true;
    weft__rewind_to(w, WEFT__ARENA_DATA, before);
}

/* ---- reading ---- */
/* Returns a constant in the layout of the run's x. */
static weft_tensor *in_layout(const weft__traces *all, weft_tensor *packed)
{
    weft_tensor *t = weft__arranged_as(packed, &all->form);
    weft__form f = all->plain_form;
    if (f.rank)
        f.size[f.rank - 1] = width(t), t = weft__view(t, &f);
    return t;
}

/* Returns a copy, because backward will overwrite the gates. */
static weft_tensor *copy_gate(weft_tensor *gates, const weft__trace *t, int k)
{
    return weft_scale(weft_slice(gates, 1, k * t->hidden, (k + 1) * t->hidden), 1);
}

/* Returns the sum of c's direct gradient and its gradient through h = o tanh(c). */
static weft_tensor *gradient_of_c(const weft__trace *t)
{
    weft_tensor *dh = t->w_hr ? weft_matmul(t->dh, t->w_hr) : t->dh, *squashed = weft_tanh(t->c);
    weft_tensor *by_tanh = weft_mul(dh, copy_gate(t->gates, t, weft__gate_of(t->cell, 'o')));
    return weft_add(t->dc, weft_sub(by_tanh, weft_mul(by_tanh, weft_square(squashed))));
}

static void fill_traced(const weft__traces *all, const weft__trace *t, weft_rnn_traced *out)
{
    const char *names = weft__gate_names(t->cell);
    out->gates = weft__gates(t->cell);
    for (int k = 0; k < out->gates; k++) {
        out->name[k][0] = *names ? names[2 * k] : 'h'; /* the gate of an Elman cell is h */
        out->gate[k] = in_layout(all, copy_gate(t->gates, t, k));
        out->dgate[k] = t->has_gradients ? in_layout(all, copy_gate(t->dgates, t, k)) : NULL;
    }
    out->h = in_layout(all, weft_detach(t->h));
    out->c = t->c ? in_layout(all, weft_detach(t->c)) : NULL;
    out->dh = t->has_gradients ? in_layout(all, weft_detach(t->dh)) : NULL;
    out->dc = t->has_gradients && t->c ? in_layout(all, gradient_of_c(t)) : NULL;
}

static bool is_available(weft *w, const weft__traces *all, int layer, bool reverse)
{
    const weft__trace *t = all && all->trace ? all->trace + layer * all->directions + reverse : NULL;
    if (!all)
        weft__fail(w, WEFT_EARG, "rnn_trace: the layer is NULL or could not be made");
    else if (layer < 0 || layer >= all->layers || (reverse && all->directions == 1))
        weft__fail(w, WEFT_EARG, "rnn_trace: layer %d%s; expected one of %d layers and %d direction%s", layer,
                   reverse ? ", reverse" : "", all->layers, all->directions, all->directions == 1 ? "" : "s");
    else if (!t || !t->run)
        weft__fail(w, WEFT_EARG,
                   "rnn_trace: the layer has not run; expected a run after weft_rnn_set_traced");
    else if (t->step != w->step)
        weft__fail(w, WEFT_EARG, "rnn_trace: the step of the last run has ended; expected a new run");
    return !w->status;
}

weft_rnn_traced weft_rnn_trace(weft_rnn *r, int layer, bool reverse)
{
    weft__traces *all = weft__traces_of(r);
    weft *w = all ? all->w : weft__no_context();
    weft_rnn_traced out = { .gates = 0 };
    if (w->status || !is_available(w, all, layer, reverse))
        return out;
    const weft__trace *t = all->trace + layer * all->directions + reverse;
    if (!WEFT__IS_USABLE(w, t->h, "rnn_trace: the result of the layer's last run"))
        return out;
    WEFT_NO_GRAD(w) fill_traced(all, t, &out);
    return weft_ok(w) ? out : (weft_rnn_traced){ .gates = 0 };
}
