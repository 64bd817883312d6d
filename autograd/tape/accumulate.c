/* accumulate.c - adds the gradients of a backward pass and manages their buffers.
 *
 * In an unrecorded backward pass the last operator of a backward function is deferred: weft__apply
 * stores the call, which later writes directly into the gradient's buffer. It adds if the buffer has a
 * gradient already. So dW of a matrix product used T times is T products into the flat vector, without
 * temporaries. In a recorded pass gradients are ordinary tensors.
 *
 * Order of sums. The gradient of a ragged tensor from one use is computed in full and then added. Uses
 * are added from the end of the tape, and the inputs of a call from last to first. Rearranging a tensor
 * before its use does not change this order, so a layout changes no bit. Kernels add directly to the
 * gradients of plain tensors, mostly parameters. On a GPU, kernels that compute sums in full (weft__dx_whole)
 * also add directly to ragged gradients. This gives the same sums in the same order and saves a launch. */
#include "autograd/backward.h"

/* ---- buffers of gradients: four size classes for each power of 2 ---- */
/* 64, 80, 96, 112, 128 .. */
static int64_t class_bytes(int class_) { return (int64_t)(64 + 16 * (class_ & 3)) << (class_ >> 2); }

weft_tensor *weft__gradient_slot(weft *w, const weft__form *f)
{
    int64_t bytes = weft__bytes(f);
    int class_ = 0;
    while (class_bytes(class_) < bytes)
        class_++;
    weft_tensor *s = w->tape->free_buffers[class_];
    if (s)
        w->tape->free_buffers[class_] = node(s)->grad;
    else if (!(s = weft__take(w, WEFT__ARENA_STEP, sizeof *s)) ||
             !(s->data = weft__take(w, WEFT__ARENA_GRADS, class_bytes(class_))))
        return NULL;
    *s = (weft_tensor){ .w = w, .step = w->step, .f = *f, .data = s->data };
        node(s)->class_ = (int16_t)class_;
    return s;
}

void weft__slot_end(weft *w, weft_tensor *s)
{
    node(s)->grad = w->tape->free_buffers[node(s)->class_];
    w->tape->free_buffers[node(s)->class_] = s;
}

/* ---- adding a gradient to that of an input ---- */
bool weft__needs_gradient(const weft_tensor *t)
{
    return node(t)->reached_pass == t->w->tape->pass ||
           (t->w->tape->for_parameters && node(t)->parameter && !node(t)->frozen);
}

static bool gradient_fits(const weft_tensor *x, const weft_tensor *g)
{
    const char *by = x->w->tape->entry_name; /* running may be an operator of its backward */
    by = by ? by : x->w->running;
    if (WEFT__IS_USABLE(x->w, g, "backward of %s: the gradient that it returned", by) &&
        !weft__forms_equal(&x->f, &g->f))
        weft__fail(x->w, WEFT_ESHAPE, "backward of %s: its gradient is %s, the input %s; expected one shape",
                   by, WEFT__TEXT(&g->f), WEFT__TEXT(&x->f));
    return !x->w->status;
}

/* Adds without a change of layout, padding included. An operator would rearrange tensors in ROWS, and views
 * of them rely on that layout. */
static weft_tensor *sum_of(weft_tensor *a, weft_tensor *b)
{
    if (a->f.layout != WEFT_ROWS)
        return weft_add(a, b);
    return weft__view(weft_add(weft_plain(a), weft_plain(b)), &a->f);
}

/* Makes `own` the gradient of x, or adds it to that gradient and frees it. */
static void accumulate_slot(weft_tensor *x, weft_tensor *own)
{
    weft *w = x->w;
    if (!node(x)->grad) {
        node(x)->grad = own;
        return;
    }
    w->dev.k->scale(&w->dev, count(x), 1, own->data, node(x)->grad->data, true);
    weft__slot_end(w, own);
}

/* Runs the deferred call, which computes g, into the gradient of x or into a new buffer. */
static void accumulate_deferred(weft_tensor *x, weft_tensor *g)
{
    weft *w = x->w;
    const bool whole = w->tape->deferred->op->moves && !w->dev.k->synchronous;     /* see weft__dx_whole */
    bool apart = !node(x)->grad || (x->f.batch && !whole);
    weft_tensor *to = apart ? weft__gradient_slot(w, &x->f) : node(x)->grad;
    if (!to)
        return;
    g->data = to->data;
    w->tape->deferred->add = !apart;
    weft__run_deferred(w);
    if (apart)
        accumulate_slot(x, to);
}

void weft__accumulate(weft_tensor *x, weft_tensor *g)
{
    weft *w = x->w;
    if (w->status || !gradient_fits(x, g))
        return;
    if (w->recording) {
        node(x)->grad = node(x)->grad ? sum_of(node(x)->grad, g) : g;
        return;
    }
    node(x)->has_gradient |= w->tape->for_parameters;
    if (w->tape->deferred && w->tape->deferred->y[0] == g) {
        accumulate_deferred(x, g);
        return;
    }
    bool add = node(x)->grad;
    if (add || (node(x)->grad = weft__gradient_slot(w, &x->f)))
        w->dev.k->scale(&w->dev, count(g), 1, g->data, node(x)->grad->data, add);
}

/* Returns how many inputs of the call are x. */
static int uses_of(const weft_call *c, const weft_tensor *x)
{
    int n = 0;
    for (int i = 0; i < c->n; i++)
        n += c->x[i] == x;
    return n;
}

/* Returns whether x took over the gradient of y, which is not read again. x takes its buffer in two cases: g
 * is that gradient itself (add, view), or the deferred call computes g from it element by element. */
bool weft__move_gradient(weft_call *c, weft_tensor *x, weft_tensor *g)
{
    weft *w = x->w;
    weft_tensor *y = c->y[0];
    if (w->status || w->recording || node(x)->grad || node(y)->kept_pass == w->tape->pass ||
        !gradient_fits(x, g))
        return false;
    const weft_call *c_of_g = w->tape->deferred && w->tape->deferred->y[0] == g ? w->tape->deferred : NULL;
    if (c_of_g && c_of_g->op->in_place && weft__forms_equal(&g->f, &node(y)->grad->f) &&
        uses_of(c_of_g, node(y)->grad)) {
        g->data = node(y)->grad->data;
        weft__run_deferred(w);
    }
    if (g->data != node(y)->grad->data)
        return false;
    node(x)->grad = node(y)->grad, node(x)->grad->f = x->f;
    node(y)->grad = NULL;
    return true;
}

const real *weft_op_dy(const weft_call *c, int k)
{
    const weft_tensor *g = c && k >= 0 && k < c->m ? node(c->y[k])->grad : NULL;
    return g ? weft__host_gradient(c, c->y[k], g->data, true, false) : NULL;
}

real *weft__dy_reusable(const weft_call *c, int k)
{
    const weft_tensor *y = c->y[k];
    return node(y)->grad && node(y)->kept_pass != y->w->tape->pass ? node(y)->grad->data : NULL;
}

real *weft_op_dx(const weft_call *c, int i, bool *add)
{
    weft_tensor *x = c && i >= 0 && i < c->n ? c->x[i] : NULL;
    if (!x || !add || !weft__needs_gradient(x))
        return NULL;
    weft *w = x->w;
    weft__run_deferred(w);
    node(x)->has_gradient |= w->tape->for_parameters;
    weft_tensor **to = x->f.batch && w->tape->ragged_grads ? &w->tape->ragged_grads[i] : &node(x)->grad;
    *add = *to;
    if (!*to && (*to = weft__gradient_slot(w, &x->f)) && !node(x)->grad && uses_of(c, x) == 1)
        node(x)->grad = *to;
    return *to ? weft__host_gradient(c, x, (*to)->data, *add, true) : NULL;
}

real *weft__dx_whole(const weft_call *c, int i, bool *add)
{
    weft_tensor *x = c->x[i], *grad = node(x)->grad;
    if (!grad || x->w->dev.k->synchronous || uses_of(c, x) > 1 || !weft__needs_gradient(x))
        return weft_op_dx(c, i, add);
    weft__run_deferred(x->w);
    node(x)->has_gradient |= x->w->tape->for_parameters;
    *add = true;
    return weft__host_gradient(c, x, grad->data, true, true);
}

real *weft__dx_sum(const weft_call *c, int i, weft__blocks *zeros)
{
    bool add;
    real *dx = weft_op_dx(c, i, &add);
    if (dx && !add)
        weft__add_zeros(c, zeros, dx, count(c->x[i]));
    return dx;
}

void weft__accumulate_ragged(weft *w, const weft_call *c)
{
    for (int i = c->n; i-- > 0 && !w->status;)
        if (w->tape->ragged_grads[i] && w->tape->ragged_grads[i] != node(c->x[i])->grad)
            accumulate_slot(c->x[i], w->tape->ragged_grads[i]);
}
