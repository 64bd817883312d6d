/* export_inputs.c - makes an input, an initializer or a constant of a tensor that no operator made, and finds
 * the dynamic axes of inputs. */
#include <stdlib.h>
#include <string.h>
#include "io/onnx/export.h"

/* ---- numbers ---- */
static const weft_onnx_input *listed(const graph *x, const weft_tensor *t)
{
    for (int64_t i = 0; x->opts && i < x->opts->n_inputs; i++)
        if (x->opts->inputs[i].tensor == t)
            return &x->opts->inputs[i];
    return NULL;
}

void *weft__ex_read(graph *x, const weft_tensor *t)
{
    const size_t n = (size_t)weft__elements(&t->f);
    void *numbers = n < SIZE_MAX / 16 ? malloc(n * sizeof(int64_t) + 1) : NULL;
    if (numbers && !weft__read(t, numbers, n * (t->f.type == WEFT_I32 ? sizeof(int32_t) : sizeof(real))))
        return numbers;
    weft__ex_fail(x, numbers ? WEFT_EDEVICE : WEFT_ENOMEM, "a tensor cannot be read: %.300s",
                  numbers ? weft_error_message(x->w) : "no memory");
    free(numbers);
    return NULL;
}

static const char *initializer_of(graph *x, const char *name, const weft_tensor *t)
{
    const size_t n = (size_t)weft__elements(&t->f);
    const bool ints = t->f.type == WEFT_I32;
    real *numbers = weft__ex_read(x, t);
    if (!numbers)
        return NULL;
    for (size_t i = n; ints && i-- > 0;) /* int32 to int64 in place, from the end */
        ((int64_t *)(void *)numbers)[i] = ((int32_t *)(void *)numbers)[i];
    for (size_t i = 0; !ints && i < n; i++)
        ((float *)(void *)numbers)[i] = (float)numbers[i];
    name = weft__ex_initializer(x, name, ints ? INT64 : FLOAT, t->f.rank, t->f.size, numbers,
                                n * (ints ? sizeof(int64_t) : sizeof(float)));
    free(numbers);
    return name;
}

/* ---- axes of plain inputs ---- */
static bool has_steps(const weft_call *view)
{
    return view->y[0]->f.layout == WEFT_PADDED || view->x[0]->f.rank == view->y[0]->f.rank + 1;
}

void weft__ex_trace_steps(graph *x, const weft_call *c)
{
    const bool itself = !strcmp(c->op->name, "view") && c->y[0]->f.batch && !c->x[0]->f.batch;
    const value *y = weft__ex_place(x, c->y[0]);
    const weft_call *view = itself ? c : y ? y->view : NULL;
    for (int i = 0; view && i < c->n; i++) {
        const weft_tensor *t = c->x[i];
        const weft__form *to = itself ? &t->f : &c->y[0]->f;
        const int axes = has_steps(view) ? 2 : 1;
        bool same = !t->f.batch && t->f.rank >= axes && to->rank >= axes;
        for (int k = 0; same && k < axes; k++)
            same = t->f.size[k] == to->size[k];
        value *place = same ? weft__ex_place(x, maker_of(t) ? maker_of(t)->y[0] : t) : NULL;
        if (place && !place->view)
            place->view = view;
    }
}

static void fail_at_leaf(graph *x, const weft_tensor *t, const char *problem)
{
    weft__ex_fail(x, WEFT_EARG, "given%lld %s",
                  (long long)x->listing.number[weft__leaf_of(&x->listing, t)], problem);
}

/* Returns the axis of sequences of a plain tensor, or -1. */
static int batch_axis(graph *x, const weft_tensor *t, const weft_call *view)
{
    int axis = view ? 0 : -1, found = 0;
    for (int64_t e = 0; e < x->w->tape->entries && axis < 0; e++) { /* operators that read it by sequences */
        const weft_call *c = call_of(x, e);
        const weft_batch *b = c->y[0]->f.batch;
        for (int i = 0; x->needed[e] && i < c->n; i++)
            if (c->x[i] == t && !strcmp(c->op->name, "first_states"))
                axis = 1;
            else if (c->x[i] == t && !strcmp(c->op->name, "broadcast") && b && t->f.size[0] == b->n)
                axis = 0;
    }
    if (axis >= 0)
        return axis;
    for (int s = 0; s < x->symbols; s++)
        for (int i = 0; i < t->f.rank && !strncmp(x->symbol[s].name, "batch", 5); i++)
            if (x->symbol[s].n == t->f.size[i])
                axis = i, found++;
    if (found > 1)
        fail_at_leaf(x, t, "has several axes with as many elements as there are sequences; name its batch "
                           "axis in opts->inputs, or trace with another number of sequences");
    return axis;
}

static value of_shape(const weft_tensor *t)
{
    value v = { 0 };
    for (int i = 0; i < t->f.rank; i++)
        weft__ex_insert(&v, i, 1, &(extent){ .n = t->f.size[i] });
    return v;
}

static const char *input_name(graph *x, const weft_onnx_input *in)
{
    return in && in->name ? in->name : weft__ex_text(x, "input%d", x->given++);
}

static void ragged_input(graph *x, const weft_tensor *t, value *v)
{
    const batch *b = weft__ex_root(x, t->f.batch);
    if (!b)
        return;
    weft__ex_replace(v, b->axes, b->rows);
    v->name = input_name(x, listed(x, t));
    weft__ex_time_source(x, b, v->name, 0);
    weft__ex_end(x, false, v->name, t->f.type, v);
}

/* Returns the axis of the steps of a plain tensor: that of the batch if the view makes it a padded one. */
static extent steps_of(graph *x, const weft_tensor *t, const weft_call *view, const char *name)
{
    batch *b = view->y[0]->f.layout == WEFT_PADDED ? weft__ex_root(x, view->y[0]->f.batch) : NULL;
    if (b && weft__ex_time_source(x, b, name, 1))
        b->padded = true;
    return b && b->padded ? (extent){ .n = t->f.size[1], .symbol = b->rows[0].symbol } :
                            weft__ex_symbol(x, "steps", t->f.size[1], name, 1);
}

static void plain_input(graph *x, const weft_tensor *t, value *v, const weft_call *view)
{
    const weft_onnx_input *in = listed(x, t);
    const int axis = in ? in->batch_axis : batch_axis(x, t, view);
    if (in && in->batch_axis >= t->f.rank)
        weft__ex_fail(x, WEFT_EARG, "batch_axis %d of input \"%.100s\"; expected -1 or one of its %d axes",
                      in->batch_axis, in->name ? in->name : "", t->f.rank);
    if (!x->status && axis < 0 && !in && (x->symbols || weft__elements(&t->f) == 1))
        v->name = initializer_of(x, NULL, t);
    if (x->status || v->name)
        return;
    v->name = input_name(x, in);
    if (axis >= 0)
        v->dim[axis] = weft__ex_symbol(x, "batch", t->f.size[axis], v->name, axis);
    if (axis == 0 && view && has_steps(view))
        v->dim[1] = steps_of(x, t, view, v->name);
    weft__ex_end(x, false, v->name, t->f.type, v);
}

/* Returns whether t has 1 / length for each sequence, 0 for empty ones, as weft_pool makes it. */
static bool shares(graph *x, const weft_tensor *t, value *v)
{
    const int64_t n = t->f.rank ? t->f.size[0] : 0;
    real *number = n && n == weft__elements(&t->f) && t->f.type == WEFT_REAL && !listed(x, t) ?
                       weft__ex_read(x, t) : NULL;
    const batch *found = NULL;
    for (int i = 0; number && i < x->batches && !found; i++) {
        const weft_batch *b = x->batch[i].b;
        bool same = b->n == n && x->batch[i].lengths && !x->batch[i].pairs;
        for (int64_t s = 0; same && s < n; s++)
            same = number[s] == (b->len[s] ? 1 / (real)b->len[s] : 0);
        found = same ? &x->batch[i] : NULL;
    }
    free(number);
    if (!found)
        return false;
    const int64_t shape[WEFT_RANK] = { -1, 1, 1, 1, 1, 1 };
    const char *length = NODES(x, "Cast(%s, to=%d)", found->lengths, FLOAT);
    v->dim[0] = found->rows[1], v->dim[0].joined = false;
    v->name = NODES(x, "Reshape(Div(Min(%s, 1.), Max($, 1.)), [%*p])", length, ITEMS(v->rank, shape));
    return true;
}

void weft__ex_make_leaf(graph *x, const weft_tensor *t, value *v)
{
    const char *path = weft__node_of(t)->path;
    value y = of_shape(t);
    if (path) {
        const char *name = weft__ex_text(x, "%s", path + x->root);
        y.name = weft__ex_reserve(x, name) ? initializer_of(x, name, t) : NULL;
    } else if (weft__node_of(t)->unrecorded && !listed(x, t))
        fail_at_leaf(x, t, "is the result of an operator that was not recorded (WEFT_NO_GRAD); record it, "
                           "or list it in opts->inputs");
    else if (t->f.batch)
        ragged_input(x, t, &y);
    else if (!shares(x, t, &y))
        plain_input(x, t, &y, v->view);
    *v = y;
}
