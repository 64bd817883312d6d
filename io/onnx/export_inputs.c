/* export_inputs.c - makes an input, an initializer or a constant of a tensor that no operator made, and finds
 * the dynamic axes of inputs. */
#include <string.h>
#include "io/onnx/export.h"

int32_t *weft__export_read_ints(weft__export *x, const weft_tensor *t)
{
    const size_t bytes = (size_t)weft__elements(&t->f) * sizeof(int32_t);
    int32_t *values = weft__export_memory(x, bytes + 1);
    return values && !weft__read(t, values, bytes) ? values : NULL;
}

/* ---- numbers ---- */
static const weft_onnx_input *listed(const weft__export *x, const weft_tensor *t)
{
    for (int64_t i = 0; x->opts && i < x->opts->n_inputs; i++)
        if (x->opts->inputs[i].tensor == t)
            return &x->opts->inputs[i];
    return NULL;
}

static const char *initializer_of(weft__export *x, const char *name, const weft_tensor *t)
{
    const size_t n = (size_t)weft__elements(&t->f);
    const bool ints = t->f.type == WEFT_I32;
    real *numbers = weft__export_memory(x, n * sizeof(int64_t) + 1);
    if (!numbers || weft__read(t, numbers, n * (ints ? sizeof(int32_t) : sizeof(real)))) {
        weft__export_fail(x, WEFT_EDEVICE, "a tensor cannot be read: %.300s", weft_error_message(x->w));
        return NULL;
    }
    for (size_t i = n; ints && i-- > 0;) /* int32 to int64 in place, from the end */
        ((int64_t *)(void *)numbers)[i] = ((int32_t *)(void *)numbers)[i];
    for (size_t i = 0; !ints && i < n; i++)
        ((float *)(void *)numbers)[i] = (float)numbers[i];
    return weft__export_initializer(x, name, ints ? WEFT__EXPORT_INT64 : WEFT__EXPORT_FLOAT, t->f.rank,
                                    t->f.size, numbers, n * (ints ? sizeof(int64_t) : sizeof(float)));
}

/* ---- axes of plain inputs ---- */
static const weft_call *call_of(const weft__export *x, int64_t entry)
{
    return x->w->tape->entry[entry].call;
}
static bool has_steps(const weft_call *view)
{
    return view->y[0]->f.layout == WEFT_PADDED || view->x[0]->f.rank == view->y[0]->f.rank + 1;
}

void weft__export_trace_steps(weft__export *x, int64_t entry)
{
    const weft_call *c = call_of(x, entry), *view = x->views[entry];
    if (c->y[0]->f.batch && !c->x[0]->f.batch && !strcmp(c->op->name, "view"))
        view = c;
    for (int i = 0; view && i < c->n; i++) {
        const weft_tensor *t = c->x[i];
        const weft__form *like = view == c ? &t->f : &c->y[0]->f;
        const int axes = has_steps(view) ? 2 : 1;
        bool same = !t->f.batch && t->f.rank >= axes && like->rank >= axes;
        for (int k = 0; same && k < axes; k++)
            same = t->f.size[k] == like->size[k];
        const weft_call **place = weft__node_of(t)->entry_number ?
                                      &x->views[weft__node_of(t)->entry_number - 1] :
                                      &x->leaf_views[weft__leaf_of(&x->listing, t)];
        if (same && !*place)
            *place = view;
    }
}

/* Returns the axis of sequences of a plain tensor, or -1. */
static int batch_axis(weft__export *x, const weft_tensor *t)
{
    int axis = x->leaf_views[weft__leaf_of(&x->listing, t)] ? 0 : -1, found = 0;
    for (int64_t e = 0; e < x->w->tape->entries && axis < 0; e++) { /* operators that read it by sequences */
        const weft_call *c = call_of(x, e);
        const weft__form *y = &c->y[0]->f;
        for (int i = 0; x->needed[e] && i < c->n; i++)
            if (c->x[i] == t)
                axis = !strcmp(c->op->name, "first_states")                                         ? 1 :
                       !strcmp(c->op->name, "broadcast") && y->batch && t->f.size[0] == y->batch->n ? 0 :
                                                                                                      axis;
    }
    if (axis >= 0)
        return axis;
    for (int s = 0; s < x->symbols; s++)
        for (int i = 0; i < t->f.rank && !strncmp(x->symbol[s].name, "batch", 5); i++)
            if (t->f.size[i] == x->symbol[s].n)
                axis = i, found++;
    if (found > 1)
        weft__export_fail(x, WEFT_EARG,
                          "given%lld has several axes with as many elements as there are sequences; "
                          "name its batch axis in opts->inputs, or trace with another number of "
                          "sequences",
                          (long long)x->listing.number[weft__leaf_of(&x->listing, t)]);
    return axis;
}

static weft__value of_shape(const weft_tensor *t)
{
    weft__value v = { .axes = 0 };
    for (int i = 0; i < t->f.rank; i++)
        weft__export_insert(&v, i, i, 1, &(weft__dim){ .n = t->f.size[i] });
    return v;
}

static void add_input(weft__export *x, const weft_tensor *t, weft__value *v)
{
    if (weft__export_reserve(x, v->name))
        weft__export_add_value(x, &x->inputs, 11, v->name,
                               t->f.type == WEFT_I32 ? WEFT__EXPORT_INT64 : WEFT__EXPORT_FLOAT, v);
}

static const char *input_name(weft__export *x, const weft_onnx_input *in)
{
    return in && in->name ? in->name : weft__export_name_of(x, "input%d", x->given++);
}

static void ragged_input(weft__export *x, const weft_tensor *t, weft__value *v)
{
    weft__export_batch *b = weft__export_root(x, t->f.batch);
    if (!b)
        return;
    *v = of_shape(t);
    weft__export_remove(v, t->f.rank, 0);
    weft__export_insert(v, t->f.rank - 1, 0, b->axes, b->rows);
    v->name = input_name(x, listed(x, t));
    weft__symbol *time = &x->symbol[b->rows[0].symbol - 1];
    if (!time->source)
        time->source = v->name;
    add_input(x, t, v);
}

/* Returns the axis of the steps of a plain tensor: that of the batch if the view makes it a padded one. */
static weft__dim steps_of(weft__export *x, const weft_tensor *t, const weft_call *view, const char *name)
{
    weft__export_batch *b =
        view->y[0]->f.layout == WEFT_PADDED ? weft__export_root(x, view->y[0]->f.batch) : NULL;
    if (!b)
        return weft__export_symbol(x, "time", t->f.size[1], name, 1);
    weft__symbol *time = &x->symbol[b->rows[0].symbol - 1];
    if (!time->source)
        time->source = name, time->axis = 1;
    return (weft__dim){ .n = t->f.size[1], .symbol = b->rows[0].symbol };
}

static void plain_input(weft__export *x, const weft_tensor *t, weft__value *v)
{
    const weft_onnx_input *in = listed(x, t);
    const weft_call *view = x->leaf_views[weft__leaf_of(&x->listing, t)];
    const int axis = in ? in->batch_axis : batch_axis(x, t);
    if (in && in->batch_axis >= t->f.rank)
        weft__export_fail(x, WEFT_EARG,
                          "batch_axis %d of input \"%.100s\"; expected -1 or one of its %d axes",
                          in->batch_axis, in->name ? in->name : "", t->f.rank);
    *v = of_shape(t);
    if (x->status || (axis < 0 && !in && (x->symbols || weft__elements(&t->f) == 1))) {
        v->name = initializer_of(x, NULL, t);
        return;
    }
    v->name = input_name(x, in);
    if (axis >= 0)
        v->dim[axis] = weft__export_batch_axis(x, t->f.size[axis], v->name, axis);
    if (axis == 0 && view && has_steps(view))
        v->dim[1] = steps_of(x, t, view, v->name);
    add_input(x, t, v);
}

/* Returns whether t has 1 / length for each sequence, 0 for empty ones, as weft_pool makes it. */
static const char *share_of_tokens(weft__export *x, const weft_tensor *t, weft__value *v)
{
    const int64_t n = t->f.rank ? t->f.size[0] : 0;
    real *number = n && n == weft__elements(&t->f) && t->f.type == WEFT_REAL && !listed(x, t) ?
                       weft__export_memory(x, (size_t)n * sizeof *number) :
                       NULL;
    if (!number || weft__read(t, number, (size_t)n * sizeof *number))
        return NULL;
    for (int i = 0; i < x->batches; i++) {
        const weft__export_batch *b = &x->batch[i];
        bool same = b->b->n == n && b->lengths && !b->pairs;
        for (int64_t s = 0; same && s < n; s++)
            same = number[s] == (b->b->len[s] ? 1 / (real)b->b->len[s] : 0);
        if (!same)
            continue;
        int64_t shape[WEFT_RANK] = { -1, 1, 1, 1, 1, 1 };
        const char *length = weft__export_cast(x, b->lengths, WEFT__EXPORT_FLOAT),
                   *one = weft__export_number_of(x, 1);
        v->dim[0] = b->rows[1], v->dim[0].joined = false;
        return NODE(x, "Reshape", NODE(x, "Div", NODE(x, "Min", length, one), NODE(x, "Max", length, one)),
                    weft__export_ints(x, t->f.rank, shape));
    }
    return NULL;
}

void weft__export_make_leaf(weft__export *x, const weft_tensor *t, weft__value *v)
{
    const char *path = weft__node_of(t)->path;
    weft__value shape = of_shape(t);
    if (path) {
        const char *name = weft__export_name_of(x, "%s", path + x->root);
        shape.name = weft__export_reserve(x, name) ? initializer_of(x, name, t) : NULL;
    } else if (weft__node_of(t)->unrecorded && !listed(x, t))
        weft__export_fail(x, WEFT_EARG,
                          "given%lld is the result of an operator that was not recorded "
                          "(WEFT_NO_GRAD); record it, or list it in opts->inputs",
                          (long long)x->listing.number[weft__leaf_of(&x->listing, t)]);
    else if (t->f.batch)
        ragged_input(x, t, &shape);
    else if (!(shape.name = share_of_tokens(x, t, &shape)))
        plain_input(x, t, &shape);
    *v = shape;
}
