/* backward.c - the backward pass. The tape is in execution order, so the pass is a loop from its end to its
 * start. It calls the backward function of each entry for the gradients of its inputs; accumulate.c adds
 * them. After an entry, its temporaries end (the step's arenas are rewound), and the gradients of its results
 * return to a list of free buffers. */
#include <string.h>
#include "autograd/backward.h"
#include "core/report/check.h"
#include "core/report/profile.h"

/* ---- results that depend on a needed tensor ---- */
static void reach(weft *w, int64_t from, int64_t to)
{
    for (int64_t e = from; e < to; e++) {
        weft_call *c = w->tape->entry[e].call;
        bool any = false;
        for (int i = 0; i < c->n && !any; i++)
            any = weft__needs_gradient(c->x[i]);
        for (int k = 0; any && !c->op->no_gradient && k < c->m; k++)
            node(c->y[k])->reached_pass = w->tape->pass;
    }
}

static void report_uses(weft *w, int64_t to)
{
    for (int64_t e = 0; e < to; e++) {
        const weft_call *c = w->tape->entry[e].call;
        for (int i = 0; i < c->n; i++)
            if (node(c->x[i])->parameter)
                w->tape->pass_watch->on_use(w->tape->pass_user, c->x[i], e);
    }
}

/* ---- one entry ---- */
static void run_entries(weft *w, int64_t top, int64_t bottom);

static weft_tensor **list_of_inputs(weft *w, const weft_call *c)
{
    weft_tensor **x = weft__take(w, WEFT__ARENA_CALLS, c->n * (int64_t)sizeof *x);
    if (x)
        memset(x, 0, (size_t)c->n * sizeof *x);
    return x;
}

/* Checks that a function of the record returned a tensor of this step, or fails the context. */
static bool returned_is_usable(weft *w, const weft_call *c, const char *function, const weft_tensor *t)
{
    return !w->status &&
           WEFT__IS_USABLE(w, t, "%s of %s: the tensor that it returned", function, c->op->name);
}

static void run_fused(weft *w, const weft_call *c)
{
    weft__work work;
    if (!(w->tape->ragged_grads = list_of_inputs(w, c)) || !weft__work_begin(w, &work, c, true)) {
        w->tape->ragged_grads = NULL;
        return;
    }
    weft__callback outer = weft__op_callback_begin(w, c, "the fused function of");
    c->op->fused(c);
    weft__callback_end(w, outer);
    weft__work_end(w, &work);
    weft__run_deferred(w);
    weft__accumulate_ragged(w, c);
    w->tape->ragged_grads = NULL;
}

/* Records the composed function of a fused entry, gives it the gradients of the results, and runs backward
 * through it. The function gets views of the ragged inputs, so several gradients of one input are first
 * summed in its view and then added. */
static void run_composed(weft *w, const weft_call *call)
{
    weft_tensor *y[WEFT__RESULTS] = { 0 };
    int64_t from = w->tape->entries;
    bool recording = w->recording, unrecorded = w->tape->unrecorded_pass;
    weft_call own = *call, *c = &own;
    if (!(own.x = list_of_inputs(w, call)))
        return;
    w->recording = true;
    w->tape->unrecorded_pass = false;
    for (int i = 0; i < c->n; i++)
        own.x[i] =
            call->x[i]->f.batch && weft__needs_gradient(call->x[i]) ? weft__new_view(call->x[i]) : call->x[i];
    weft__callback outer = weft__op_callback_begin(w, c, "the composed function of");
    c->op->composed(c, y);
    weft__callback_end(w, outer);
    w->recording = recording;
    w->tape->unrecorded_pass = unrecorded;
    reach(w, from, w->tape->entries);
    for (int k = 0; k < WEFT__RESULTS && k < c->m && !w->status; k++)
        if (y[k] && node(c->y[k])->grad && returned_is_usable(w, c, "composed", y[k]))
            weft__accumulate(y[k], node(c->y[k])->grad);
    run_entries(w, w->tape->entries, from);
}

static weft_tensor *gradient_by_operators(weft *w, weft_call *c, int i)
{
    if (!weft__needs_gradient(c->x[i]))
        return NULL;
    weft__callback outer = weft__op_callback_begin(w, c, "the backward function of");
    weft_tensor *g = c->op->backward(c, node(c->y[0])->grad, i);
    weft__callback_end(w, outer);
    return g && returned_is_usable(w, c, "backward", g) ? g : NULL;
}

static void run_operators(weft *w, weft_call *c) /* from the last to the first needed input */
{
    int first = 0;
    while (first < c->n && !weft__needs_gradient(c->x[first]))
        first++;
    for (int i = c->n; i-- > first && !w->status;) {
        weft_tensor *x = c->x[i], *g = gradient_by_operators(w, c, i);
        if (g && !w->status && !(i == first && weft__move_gradient(c, x, g)))
            weft__accumulate(x, g);
    }
    weft__run_deferred(w);
}

static void run_entry(weft *w, weft_call *c, bool *consumed)
{
    bool raw = c->op->fused && !w->recording && !*consumed;
    w->running = w->tape->entry_name = c->op->name;
    if (raw)
        *consumed = c->op->once, run_fused(w, c);
    else if (c->op->composed)
        run_composed(w, c);
    else if (c->op->backward)
        run_operators(w, c);
    else
        weft__fail(w, WEFT_EARG, "%s has no derivative%s", c->op->name,
                   c->op->fused ? " that can be differentiated again" : "");
    if (w->dev.fault.is || w->dev.failure[0])
        weft__check_faults(w, c->op->name);
    if (w->check)
        weft__check_gradients(c);
    w->tape->entry_name = NULL;
}

/* run_entry with profiling. A raw function reads inputs and results, and the gradients of both. */
static void run_entry_timed(weft *w, weft_call *c, bool *consumed)
{
    weft__timed *before = weft__profile_enter(w, c->op->name, true);
    bool raw = c->op->fused && !w->recording && !*consumed;
    for (int i = 0; raw && i < c->n; i++)
        weft__profile_bytes(w, 2 * weft__bytes(&c->x[i]->f));
    for (int k = 0; raw && k < c->m; k++)
        weft__profile_bytes(w, 2 * weft__bytes(&c->y[k]->f));
    run_entry(w, c, consumed);
    weft__profile_leave(w, before);
}

static void drop_gradient(weft *w, weft_tensor *y)
{
    if (node(y)->grad && node(y)->kept_pass != w->tape->pass) {
        if (!w->recording)
            weft__slot_end(w, node(y)->grad);
        node(y)->grad = NULL;
    }
}

/* ---- the pass ---- */
static void run_entries(weft *w, int64_t top, int64_t bottom)
{
    for (int64_t e = top; e-- > bottom && !w->status;) {
        weft_call *c = w->tape->entry[e].call;
        bool any = false, consumed = w->tape->entry[e].consumed;
        for (int k = 0; k < c->m; k++)
            any |= node(c->y[k])->grad && node(c->y[k])->reached_pass == w->tape->pass;
        weft_mark mark = weft_mark_here(w);
        any = any && weft__inputs_unchanged(&w->tape->entry[e]);
        if (any)
            (w->profiling ? run_entry_timed : run_entry)(w, c, &consumed);
        w->tape->entry[e].consumed = consumed;
        if (any && !w->recording && !w->status)
            weft__rewind_numbers(w, mark);
        for (int k = 0; k < c->m; k++)
            drop_gradient(w, c->y[k]);
        if (w->tape->pass_watch && !bottom && w->tape->for_parameters)
            w->tape->pass_watch->on_entry(w->tape->pass_user, e);
    }
}

static void seed(weft_tensor *y)                /* d sum(y) / dy = 1 */
{
    weft *w = y->w;
    if (w->recording) {
        node(y)->grad = weft__spread_to(weft_scalar(w, 1), &y->f);
        return;
    }
    node(y)->grad = weft__gradient_slot(w, &y->f);
    if (node(y)->grad)
        w->dev.k->fill(&w->dev, count(y), 1, node(y)->grad->data);
}

static void run_pass(weft_tensor *y, bool recording)
{
    weft *w = y->w;
    bool old = weft_set_grad_enabled(w, recording);
    w->tape->in_pass = true;
    reach(w, 0, node(y)->entry_number);
    if (w->tape->pass_watch && w->tape->for_parameters)
        report_uses(w, node(y)->entry_number);
    w->tape->unrecorded_pass = !recording;
    /* Gradient of a parameter, or of a tensor given to weft_gradients, which the pass must not change. */
    weft_tensor *saved = node(y)->grad;
    bool own = !node(y)->entry_number;
    bool ok = !w->tape->for_parameters || weft__reaches_parameters(y);
    if (!own && ok)
        seed(y);
    if (!w->status)
        run_entries(w, node(y)->entry_number, 0);
    if (own)
        node(y)->grad = saved;
    w->tape->unrecorded_pass = w->tape->in_pass = false;
    w->recording = old;
}

static bool check_output(weft *w, weft_tensor *y, const char *function)
{
    if (!WEFT__IS_USABLE(w, y, "%s: the tensor", function))
        return false;
    if (y->f.type != WEFT_REAL)
        weft__fail(w, WEFT_EARG, "%s: a tensor of ints has no gradient; expected reals", function);
    else if (w->tape && w->tape->in_pass)
        weft__fail(w, WEFT_EARG,
                   "%s: called inside a callback of another weft_backward or weft_gradients; expected one "
                   "backward pass at a time. Call it later",
                   function);
    if (!w->status && weft__tape_of(w))
        w->running = function;
    return !w->status;
}

/* The gradient of a parameter by itself is 1 everywhere and needs no backward pass. */
static void backward_of_itself(weft_tensor *parameter)
{
    weft *w = parameter->w;
    weft_mark mark = weft_mark_here(w);
    weft_tensor *ones = weft_full(w, 1, parameter->f.rank, parameter->f.size);
    if (w->status)
        return;
    w->dev.k->scale(&w->dev, count(ones), 1, ones->data, node(parameter)->grad->data, true);
    node(parameter)->has_gradient = true;
    weft_rewind(w, mark);
}

void weft_backward(weft_tensor *loss)
{
    weft *w = loss ? loss->w : weft__no_context();
    if (!check_output(w, loss, "backward"))
        return;
    if (!weft__is_loss(loss))
        return;
    if (w->tape->pass_watch && w->tape->pass_watch->closed) {
        weft__fail(w, WEFT_EARG,
                   "backward: the shard has its loss; expected no weft_backward after weft_parallel_add");
        return;
    }
    weft__count_backward(w);
    if (node(loss)->parameter) {
        if (weft__reaches_parameters(loss))
            backward_of_itself(loss);
        return;
    }
    if (w->check && !weft__check_enter(w, "backward"))
        return;
    w->tape->pass++, w->tape->for_parameters = true;
    run_pass(loss, false);
    w->tape->for_parameters = false;
    weft__check_leave(w);
}

weft_tensor *weft_grad(weft_tensor *t) { return t && node(t)->parameter ? node(t)->grad : NULL; }

/* ---- gradients of chosen tensors ---- */
static bool check_gradients_of(weft *w, weft_tensor *y, weft_tensor *const *x, int64_t n)
{
    bool ok = check_output(w, y, "gradients");
    bool found = ok && node(y)->entry_number;
    for (int64_t i = 0; ok && i < n; i++) {
        ok = check_output(w, x[i], "gradients");
        found |= x[i] == y;
    }
    if (ok && !found)
        weft__fail(w, WEFT_EARG, "gradients: the first tensor is not a result on the tape: %s",
                   weft__why_not_on_tape(y));
    return ok && found;
}

static void save_gradients(weft *w, weft_tensor *const *x, int64_t n, weft_tensor **saved)
{
    for (int64_t i = 0; i < n; i++) {
        if (node(x[i])->kept_pass == w->tape->pass)
            continue;                            /* listed twice */
        saved[i] = node(x[i])->grad;
        node(x[i])->grad = NULL, node(x[i])->reached_pass = node(x[i])->kept_pass = w->tape->pass;
    }
}

/* Returns a gradient buffer as a tensor of the step. When the step ends, later passes reuse the buffer. */
static weft_tensor *as_step_tensor(weft *w, weft_tensor *slot)
{
    int64_t entries = weft_mark_here(w).at[1];
    weft_tensor *g = weft__header(w, &slot->f);
    if (!g)
        return &w->nil;
    g->data = slot->data;
    if (node(slot)->kept_pass != w->tape->pass) /* otherwise it was listed twice */
        node(slot)->kept_pass = w->tape->pass, node(slot)->entry_number = entries,
        node(slot)->grad = w->tape->lent_buffers, w->tape->lent_buffers = slot;
    return g;
}

static weft_tensor *result_of(weft *w, weft_tensor *y, weft_tensor *x)
{
    weft_tensor *g = node(x)->grad;
    if (y == x && !node(y)->entry_number)
        return weft__spread_to(weft_scalar(w, 1), &x->f);
    if (w->status || !g)
        return w->status ? &w->nil : weft__tensor(w, &x->f, NULL);
    return w->recording ? g : as_step_tensor(w, g);
}

/* x and out do not overlap; each of out is the inert tensor. Restores the recording mode at the end. */
static void find_gradients(weft *w, weft_tensor *y, weft_tensor *const *x, int64_t n, weft_tensor **out,
                           bool recorded)
{
    weft_tensor **saved = weft__take(w, WEFT__ARENA_CALLS, (n + 1) * (int64_t)sizeof *saved);
    if (!saved)
        return;
    bool old = weft_set_grad_enabled(w, recorded);
    w->tape->pass++;
    save_gradients(w, x, n, saved);
    run_pass(y, recorded);
    for (int64_t i = 0; i < n; i++)
        out[i] = result_of(w, y, x[i]);
    for (int64_t i = 0; i < n; i++)
        if (node(x[i])->kept_pass == w->tape->pass) /* first mention in the list */
            node(x[i])->grad = saved[i], node(x[i])->kept_pass = 0;
    w->recording = old;
}

/* out may be the array x, so the list is copied first. */
static void gradients(weft_tensor *y, weft_tensor *const *x, int64_t n, weft_tensor **out, bool recorded)
{
    weft *w = weft__context(&y, 1);
    w = w->status && x && n > 0 ? weft__context(x, n) : w;
    weft_tensor **asked = NULL;
    if (!x || !out || n < 0)
        weft__fail(w, WEFT_EARG, "gradients: NULL; expected tensors and room for gradients");
    else if (!w->status)
        asked = weft__take(w, WEFT__ARENA_CALLS, (n + 1) * (int64_t)sizeof *asked);
    if (asked && n)
        memcpy(asked, x, (size_t)n * sizeof *asked);
    for (int64_t i = 0; out && i < n; i++)
        out[i] = &w->nil;
    if (asked && check_gradients_of(w, y, asked, n))
        find_gradients(w, y, asked, n, out, recorded);
}

void weft_gradients(weft_tensor *of, weft_tensor *const *by, int64_t n, weft_tensor **out)
{
    gradients(of, by, n, out, false);
}

void weft_gradients_recorded(weft_tensor *of, weft_tensor *const *by, int64_t n, weft_tensor **out)
{
    gradients(of, by, n, out, true);
}
