/* walk.c - the way back. The tape is in execution order, so a backward walk is a loop downwards that asks each entry for the
 * gradients of its inputs, written in operators too.
 *
 * Where the gradients go. When a walk is not recorded, the last operator of a backward is not run at once: the door keeps the
 * call in w->late, and give() runs it straight into the gradient's buffer, adding if something is there. So dW of a matrix
 * product used T times is T products into the flat vector, no temporary. All other temporaries of one entry's backward end when
 * the entry has been passed (the step's arenas are rewound); gradients of results go back to a list of spare buffers. When a
 * walk is recorded, gradients are ordinary tensors. */
#include <string.h>
#include "autograd/autograd.h"
#include "core/log.h"

/* ---- buffers of gradients: four size classes an octave ---- */
static int64_t class_bytes(int class_) { return (int64_t)(64 + 16 * (class_ & 3)) << (class_ >> 2); }    /* 64 80 96 112 128 .. */

static weft_tensor *slot_new(weft *w, const weft__form *f)
{
    int64_t bytes = weft__bytes(f);
    int class_ = 0;
    while (class_bytes(class_) < bytes)
        class_++;
    weft_tensor *s = w->spare[class_];
    if (s)
        w->spare[class_] = s->grad;
    else if (!(s = weft__take(w, &w->keep, sizeof *s)) || !(s->data = weft__take(w, &w->grads, class_bytes(class_))))
        return NULL;
    *s = (weft_tensor){ .w = w, .step = w->step, .f = *f, .data = s->data, .class_ = (int16_t)class_ };
    return s;
}

static void slot_end(weft *w, weft_tensor *s)
{
    s->grad = w->spare[s->class_];
    w->spare[s->class_] = s;
}

static void settle(weft *w)
{
    if (w->late)
        w->settle(w);
}

/* ---- what depends on what is wanted; no tensor needs to say beforehand that it will be asked for a gradient ---- */
static bool wanted(const weft_tensor *t)
{
    return t->reached == t->w->walk || (t->w->to_parameters && t->parameter && !t->frozen);
}

static void reach(weft *w, int64_t from, int64_t to)
{
    for (int64_t e = from; e < to; e++) {
        weft_call *c = w->tape[e].call;
        bool any = false;
        for (int i = 0; i < c->n && !any; i++)
            any = wanted(c->x[i]);
        for (int k = 0; any && !c->op->no_gradient && k < c->m; k++)
            c->y[k]->reached = w->walk;
    }
}

/* ---- handing a gradient to an input ---- */
static bool fits(const weft_tensor *x, const weft_tensor *g)
{
    char a[128], b[128];
    if (weft__same(&x->f, &g->f))
        return true;
    weft__fail(x->w, WEFT_ESHAPE, "backward of %s: its gradient is %s, the input %s", x->w->running, weft__text(&g->f, a), weft__text(&x->f, b));
    return false;
}

/* In the layout of both, pads and all: an operator would arrange what lies in rows, and views of it want it as it lies. */
static weft_tensor *sum_of(weft_tensor *a, weft_tensor *b)
{
    if (a->f.layout != WEFT_ROWS)
        return weft_add(a, b);
    return weft__view(weft_add(weft_plain(a), weft_plain(b)), &a->f);
}

static void give(weft_tensor *x, weft_tensor *g)
{
    weft *w = x->w;
    if (w->status || !fits(x, g))
        return;
    if (w->recording) {
        x->grad = x->grad ? sum_of(x->grad, g) : g;
        return;
    }
    bool add = x->grad;
    x->given |= w->to_parameters;
    if (!add && !(x->grad = slot_new(w, &x->f)))
        return;
    weft_call *late = w->late;
    if (late && late->y[0] == g) {
        g->data = x->grad->data, late->add = add;
        settle(w);
    } else
        w->dev.k->scale(&w->dev, count(g), 1, g->data, x->grad->data, add);
}

static bool takes(const weft_call *c, const weft_tensor *x)
{
    for (int i = 0; i < c->n; i++)
        if (c->x[i] == x)
            return true;
    return false;
}

/* May the gradient of x take the buffer of dy, which nobody needs any more? If it is dy itself (add, view), or is about to be
 * computed from it element by element. */
static bool hand_over(weft_call *c, weft_tensor *x, weft_tensor *g)
{
    weft *w = x->w;
    weft_tensor *y = c->y[0];
    if (w->status || w->recording || x->grad || y->kept == w->walk || !fits(x, g))
        return false;
    if (w->late && w->late->y[0] == g && w->late->op->in_place && weft__same(&g->f, &y->grad->f) && takes(w->late, y->grad)) {
        g->data = y->grad->data;
        settle(w);
    }
    if (g->data != y->grad->data)
        return false;
    x->grad = y->grad, x->grad->f = x->f;
    y->grad = NULL;
    return true;
}

const real *weft_dy(const weft_call *c, int k) { return c && k >= 0 && k < c->m && c->y[k]->grad ? c->y[k]->grad->data : NULL; }

real *weft__dy_spent(const weft_call *c, int k)
{
    const weft_tensor *y = c->y[k];
    return y->grad && y->kept != y->w->walk ? y->grad->data : NULL;
}

real *weft_dx(const weft_call *c, int i, bool *add)
{
    weft_tensor *x = c && i >= 0 && i < c->n ? c->x[i] : NULL;
    if (!x || !add || !wanted(x))
        return NULL;
    settle(x->w);
    *add = x->grad;
    x->given |= x->w->to_parameters;
    if (!x->grad)
        x->grad = slot_new(x->w, &x->f);
    return x->grad ? x->grad->data : NULL;
}

real *weft__dx_added(const weft_call *c, int i)
{
    bool add;
    real *dx = weft_dx(c, i, &add);
    if (dx && !add)
        RUN(c, fill, count(c->x[i]), 0, dx);
    return dx;
}

/* ---- one entry ---- */
static void walk(weft *w, int64_t top, int64_t bottom);

/* Runs the composed function of a fused entry onto the tape, hands the gradients over, and walks back through that. */
static void through_composed(weft *w, const weft_call *c)
{
    weft_tensor *y[WEFT__RESULTS] = { 0 };
    int64_t from = w->entries;
    bool recording = w->recording, walking = w->walking;
    w->recording = true, w->walking = false;
    c->op->composed(c, y);
    w->recording = recording, w->walking = walking;
    reach(w, from, w->entries);
    for (int k = 0; k < WEFT__RESULTS && !w->status; k++)
        if (y[k] && k < c->m && c->y[k]->grad)
            give(y[k], c->y[k]->grad);
    walk(w, w->entries, from);
}

static void by_operators(weft *w, weft_call *c)  /* from the last input to the first wanted one */
{
    int first = 0;
    while (first < c->n && !wanted(c->x[first]))
        first++;
    for (int i = c->n; i-- > first && !w->status;) {
        weft_tensor *x = c->x[i], *g = wanted(x) ? c->op->backward(c, c->y[0]->grad, i) : NULL;
        if (g && !w->status && !(i == first && hand_over(c, x, g)))
            give(x, g);
    }
    settle(w);
}

static void pass(weft *w, weft_call *c, bool *spent)
{
    bool raw = c->op->fused && !w->recording && !*spent;
    w->running = c->op->name;
    if (raw)
        *spent = c->op->once, c->op->fused(c);
    else if (c->op->composed)
        through_composed(w, c);
    else if (c->op->backward)
        by_operators(w, c);
    else
        weft__fail(w, WEFT_EARG, "%s has no derivative%s", c->op->name, c->op->fused ? " that can be differentiated again" : "");
    if (w->dev.fault.is || w->dev.failure[0])
        weft__check_faults(w, c->op->name);
}

/* By WEFT_LOG=2. A raw function looks at inputs and results, and at the gradients of both. */
static void pass_logged(weft *w, weft_call *c, bool *spent)
{
    weft__log_row *before = weft__log_enter(w, c->op->name, true);
    bool raw = c->op->fused && !w->recording && !*spent;
    for (int i = 0; raw && i < c->n; i++)
        weft__log_bytes(w, 2 * weft__bytes(&c->x[i]->f));
    for (int k = 0; raw && k < c->m; k++)
        weft__log_bytes(w, 2 * weft__bytes(&c->y[k]->f));
    pass(w, c, spent);
    weft__log_leave(w, before);
}

static void drop(weft *w, weft_tensor *y)
{
    if (y->grad && y->kept != w->walk) {
        if (!w->recording)
            slot_end(w, y->grad);
        y->grad = NULL;
    }
}

/* ---- the walk ---- */
static void walk(weft *w, int64_t top, int64_t bottom)
{
    for (int64_t e = top; e-- > bottom && !w->status;) {
        weft_call *c = w->tape[e].call;
        bool any = false, spent = w->tape[e].spent;
        for (int k = 0; k < c->m; k++)
            any |= c->y[k]->grad && c->y[k]->reached == w->walk;
        weft_mark here = weft_here(w);
        any = any && weft__as_it_was(&w->tape[e]);
        if (any)
            (w->logging ? pass_logged : pass)(w, c, &spent);
        w->tape[e].spent = spent;
        if (any && !w->recording && !w->status)
            weft_rewind(w, here);
        for (int k = 0; k < c->m; k++)
            drop(w, c->y[k]);
    }
}

static void seed(weft_tensor *of)                /* the gradient of the sum of `of` by `of`: ones */
{
    weft *w = of->w;
    if (w->recording) {
        of->grad = weft__spread_to(weft_scalar(w, 1), &of->f);
        return;
    }
    of->grad = slot_new(w, &of->f);
    if (of->grad)
        w->dev.k->fill(&w->dev, count(of), 1, of->grad->data);
}

static void walk_from(weft_tensor *of, bool recording)
{
    weft *w = of->w;
    bool was = weft_recording(w, recording);
    reach(w, 0, of->born);
    w->walking = !recording;
    weft_tensor *mine = of->grad;                /* of a parameter, or of a tensor asked for by weft_gradients */
    bool own = !of->born;
    bool fine = !w->to_parameters || weft__reaches_parameters(of);
    if (!own && fine)
        seed(of);
    if (!w->status)
        walk(w, of->born, 0);
    if (own)
        of->grad = mine;
    w->walking = false, w->recording = was;
}

static bool good(weft *w, weft_tensor *of, const char *function)
{
    const char *wrong = weft__wrong(w, of);
    if (wrong)
        weft__fail(w, WEFT_EARG, "%s: the tensor %s", function, wrong);
    else if (of->f.type != WEFT_REAL)
        weft__fail(w, WEFT_EARG, "%s: reals are wanted, not ints", function);
    if (!w->status)
        w->running = function;
    return !w->status;
}

static void backward_of_itself(weft_tensor *parameter)            /* of each element 1, and there is nothing to walk */
{
    weft *w = parameter->w;
    weft_mark here = weft_here(w);
    weft_tensor *ones = weft_full(w, 1, parameter->f.rank, parameter->f.size);
    if (w->status)
        return;
    w->dev.k->scale(&w->dev, count(ones), 1, ones->data, parameter->grad->data, true);
    parameter->given = true;
    weft_rewind(w, here);
}

void weft_backward(weft_tensor *loss)
{
    weft *w = loss ? loss->w : weft__nowhere();
    if (!good(w, loss, "backward"))
        return;
    if (!weft__is_loss(loss))
        return;
    weft__count_walk(w);
    if (loss->parameter) {
        if (weft__reaches_parameters(loss))
            backward_of_itself(loss);
        return;
    }
    w->walk++, w->to_parameters = true;
    walk_from(loss, false);
    w->to_parameters = false;
}

weft_tensor *weft_gradient(weft_tensor *t) { return t && t->parameter ? t->grad : NULL; }

/* ---- gradients of chosen tensors ---- */
static bool all_good(weft *w, weft_tensor *of, weft_tensor *const *by, int n)
{
    bool fine = good(w, of, "gradients");
    bool there = fine && of->born;
    for (int i = 0; fine && i < n; i++) {
        fine = good(w, by[i], "gradients");
        there |= by[i] == of;
    }
    if (fine && !there)
        weft__fail(w, WEFT_EARG, "gradients: the first tensor is not the result of an operator on the tape");
    return fine && there;
}

static void set_aside(weft *w, weft_tensor *const *by, int n, weft_tensor **mine)
{
    for (int i = 0; i < n; i++) {
        if (by[i]->kept == w->walk)
            continue;                            /* named twice */
        mine[i] = by[i]->grad;
        by[i]->grad = NULL, by[i]->reached = by[i]->kept = w->walk;
    }
}

static weft_tensor *result_of(weft *w, weft_tensor *of, weft_tensor *by)
{
    weft_tensor *g = by->grad;
    if (of == by && !of->born)
        g = weft__spread_to(weft_scalar(w, 1), &by->f);
    return w->status ? &w->nil : g ? g : weft__tensor(w, &by->f, NULL);
}

void weft_gradients(weft_tensor *of, weft_tensor *const *by, int n, weft_tensor **out)
{
    weft *w = weft__context(&of, 1);
    w = w->status && by && n > 0 ? weft__context(by, n) : w;
    for (int i = 0; out && i < n; i++)
        out[i] = &w->nil;
    if (!by || !out || n < 0)
        weft__fail(w, WEFT_EARG, "gradients: tensors and room for their gradients are wanted");
    if (w->status || !all_good(w, of, by, n))
        return;
    weft_tensor **mine = weft__take(w, &w->keep, (n + 1) * (int64_t)sizeof *mine);
    if (!mine)
        return;
    w->walk++;
    set_aside(w, by, n, mine);
    walk_from(of, w->recording);
    for (int i = 0; i < n; i++)
        out[i] = result_of(w, of, by[i]);
    for (int i = 0; i < n; i++)
        if (by[i]->kept == w->walk)              /* its first mention */
            by[i]->grad = mine[i], by[i]->kept = 0;
}
