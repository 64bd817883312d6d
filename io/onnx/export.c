/* export.c - weft_export_onnx: follows the tape from the outputs back, makes an input, an initializer or a
 * constant of each tensor that no operator made, and lets a translator write each operator. */
#include <stdlib.h>
#include <string.h>
#include "io/onnx/export.h"

static int64_t entry_of(const weft_tensor *t) { return (int64_t)weft__node_of(t)->entry_number - 1; }

value *weft__ex_place(graph *x, const weft_tensor *t)
{
    const int64_t e = entry_of(t);
    if (e < 0)
        return &x->leaf[weft__leaf_of(&x->listing, t)];
    const weft_call *c = call_of(x, e);
    if (!x->result[e])
        x->result[e] = weft__ex_memory(x, (size_t)c->m * sizeof **x->result);
    int k = 0;
    while (k + 1 < c->m && c->y[k] != t)
        k++;
    return &x->result[e][k];
}

/* ---- tensors that no operator made ---- */
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
    void *numbers = weft__ex_memory(x, n < SIZE_MAX / 16 ? n * sizeof(int64_t) : SIZE_MAX);
    if (weft__read(t, numbers, n * (t->f.type == WEFT_I32 ? sizeof(int32_t) : sizeof(real))))
        weft__ex_fail(x, WEFT_EDEVICE, "a tensor cannot be read: %.300s", weft_error_message(x->w));
    return numbers;
}

static const char *initializer_of(graph *x, const char *name, const weft_tensor *t)
{
    const size_t n = (size_t)weft__elements(&t->f);
    const bool ints = t->f.type == WEFT_I32;
    real *numbers = weft__ex_read(x, t);
    for (size_t i = n; ints && i-- > 0;) /* int32 to int64 in place, from the end */
        ((int64_t *)(void *)numbers)[i] = ((int32_t *)(void *)numbers)[i];
    for (size_t i = 0; !ints && i < n; i++)
        ((float *)(void *)numbers)[i] = (float)numbers[i];
    return weft__ex_initializer(x, name, ints ? INT64 : FLOAT, t->f.rank, t->f.size, numbers,
                                n * (ints ? sizeof(int64_t) : sizeof(float)));
}

static bool is_op(const weft_call *c, const char *name) { return !strcmp(c->op->name, name); }
static bool has_steps(const weft_call *view)
{
    return !is_op(view, "broadcast") &&
           (view->y[0]->f.layout == WEFT_PADDED || view->x[0]->f.rank == view->y[0]->f.rank + 1);
}

/* Called for needed entries, the last first: sets `view` of the inputs. */
static void trace_steps(graph *x, const weft_call *c)
{
    const weft_batch *b = c->y[0]->f.batch;
    const bool itself = is_op(c, "first_states") || (b && !c->x[0]->f.batch &&
        (is_op(c, "view") || (is_op(c, "broadcast") && c->x[0]->f.size[0] == b->n)));
    const weft_call *view = itself ? c : weft__ex_place(x, c->y[0])->view;
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
    int axis = -1, found = 0;
    if (view)                                    /* an operator that reads it by sequences */
        return is_op(view, "first_states");
    for (int s = 0; s < x->symbols; s++)
        for (int i = 0; i < t->f.rank && !strncmp(x->symbol[s].name, "batch", 5); i++)
            if (x->symbol[s].n == t->f.size[i])
                axis = i, found++;
    if (found > 1)
        fail_at_leaf(x, t, "has several axes whose extent is the number of sequences; name its batch axis "
                           "in opts->inputs, or trace with another number of sequences");
    return axis;
}

static const char *input_name(graph *x, const weft_onnx_input *in)
{
    return in && in->name ? in->name : weft__ex_text(x, "input%d", x->given++);
}

static void ragged_input(graph *x, const weft_tensor *t, value *v)
{
    const batch *b = weft__ex_root(x, t->f.batch);
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
    if (axis < 0 && !in && (x->symbols || weft__elements(&t->f) == 1)) {
        v->name = initializer_of(x, NULL, t);
        return;
    }
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
    if (n == 0 || n != weft__elements(&t->f) || t->f.type != WEFT_REAL || listed(x, t))
        return false;
    const real *number = weft__ex_read(x, t);
    const batch *found = NULL;
    for (int i = 0; i < x->batches && !found; i++) {
        const weft_batch *b = x->batch[i].b;
        bool same = b->n == n && x->batch[i].lengths && !x->batch[i].pairs;
        for (int64_t s = 0; same && s < n; s++)
            same = number[s] == (b->len[s] ? 1 / (real)b->len[s] : 0);
        found = same ? &x->batch[i] : NULL;
    }
    if (!found)
        return false;
    const int64_t shape[WEFT_RANK] = { -1, 1, 1, 1, 1, 1 };
    const char *length = NODES(x, "Cast(%s, to=%d)", found->lengths, FLOAT);
    v->dim[0] = found->rows[1];
    v->dim[0].joined = false;
    v->name = NODES(x, "Reshape(Div(Min(%s, 1.), Max($, 1.)), [%*p])", length, ITEMS(v->rank, shape));
    return true;
}

static void make_leaf(graph *x, const weft_tensor *t, value *v)
{
    const char *path = weft__node_of(t)->path;
    value y = { 0 };
    for (int i = 0; i < t->f.rank; i++)
        weft__ex_insert(&y, i, 1, &(extent){ .n = t->f.size[i] });
    if (path) {
        y.name = path + x->root;
        weft__ex_reserve(x, y.name);
        initializer_of(x, y.name, t);
    } else if (weft__node_of(t)->unrecorded && !listed(x, t))
        fail_at_leaf(x, t, "is the result of an operator that was not recorded (WEFT_NO_GRAD); record it, "
                           "or list it in opts->inputs");
    else if (t->f.batch)
        ragged_input(x, t, &y);
    else if (!shares(x, t, &y))
        plain_input(x, t, &y, v->view);
    *v = y;
}

const value *weft__ex_value(graph *x, const weft_tensor *t)
{
    value *v = weft__ex_place(x, t);
    if (!v->name && entry_of(t) < 0)
        make_leaf(x, t, v);
    return v;
}

/* ---- the tape ---- */
static void count_root(graph *x, const char *path)
{
    const char *dot = path ? strchr(path, '.') : NULL;
    const size_t n = dot ? (size_t)(dot - path) + 1 : 0;
    if (path && x->root != SIZE_MAX)
        x->root = n && (x->root == 0 || x->root == n) ? n : SIZE_MAX;
}
static void find_needed(graph *x, weft_tensor *const *outputs, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x->needed[entry_of(outputs[i])] = true;
    for (int64_t e = x->w->tape->entries - 1; e >= 0; e--) {
        const weft_call *c = call_of(x, e);
        if (x->needed[e])
            trace_steps(x, c);
        for (int i = 0; x->needed[e] && i < c->n; i++)
            if (entry_of(c->x[i]) < 0)
                count_root(x, weft__node_of(c->x[i])->path);
            else if (weft__ex_reads(c, i))
                x->needed[entry_of(c->x[i])] = true;
    }
    x->root = x->root == SIZE_MAX ? 0 : x->root;
}

/* Makes the inputs that are ragged, or the plain ones that a view makes a batch. */
static void make_inputs(graph *x, bool ragged)
{
    for (int64_t e = 0; e < x->w->tape->entries; e++) {
        const weft_call *c = call_of(x, e);
        for (int i = 0; x->needed[e] && i < c->n; i++) {
            const weft__node *n = weft__node_of(c->x[i]);
            if (!weft__ex_reads(c, i) || n->entry_number || n->path || ragged == !c->x[i]->f.batch)
                continue;
            if (ragged ? !n->unrecorded : weft__ex_place(x, c->x[i])->view != NULL)
                weft__ex_value(x, c->x[i]);
        }
    }
}

bool weft__ex_is_own(const weft_call *c) { return c->host || c->op->device; }
static const translation *translation_of(const weft_call *c)
{
    static const translation recurrent = { "", weft__ex_recurrent, false };
    static const translation *const tables[] = { weft__ex_pointwise, weft__ex_shapes, weft__ex_layers };
    if (weft__ex_is_own(c))
        return NULL;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const translation *e = tables[i]; e->name; e++)
            if (!strcmp(e->name, c->op->name))
                return e;
    return weft__ex_is_recurrent(c) ? &recurrent : NULL;
}

static const char *reason_of(const weft_call *c)
{
    return weft__ex_is_own(c)       ? "an operator of the program" :
           is_op(c, "dropout")      ? weft__ex_dropout :
           is_op(c, "same")         ? "a recurrent layer that runs step by step: a cell of the program, or "
                                      "weft_rnn_set_composed" :
                                      "it has no ONNX form";
}

static void translate_call(graph *x, const weft_call *c)
{
    const translation *t = translation_of(c);
    if (!x->needed[x->entry])
        return;
    if (!t)
        weft__ex_refuse(x, reason_of(c));
    for (int i = 0; i < c->n; i++)
        if (weft__ex_reads(c, i) && !input(x, i)->name)
            return; /* the result of a refused operator */
    if (t->along && c->op->describe) {
        const weft__along *a = c->attributes;
        x->axis = a->axis;
        x->tokens = a->tokens ? batch_of(x, c->x[0]) : NULL;
        x->at = x->tokens ? 0 : weft__ex_axis(x, input(x, 0), a->axis);
    }
    value y = c->n && weft__ex_reads(c, 0) ? like(input(x, 0), NULL) : (value){ 0 };
    if ((y.name = t->run(x, c, &y)) != NULL)
        *weft__ex_place(x, c->y[0]) = y;
}
static void translate(graph *x)
{
    for (x->entry = 0; x->entry < x->w->tape->entries; x->entry++)
        if (!setjmp(x->next))
            translate_call(x, x->call = call_of(x, x->entry));
    if (*x->refused)
        weft__ex_fail(x, WEFT_EARG, "operators that cannot be exported:%s", x->refused);
}

/* Merges the ONNX axes of an axis, such as batch and 4 of [batch * 4, ..]; rows of a batch stay apart. */
static void merge_axes(graph *x, value *v)
{
    extent size[AXES];
    int merged = 0;
    value y = { 0 };
    for (int i = 0; i < v->rank; i++) {
        const extent *group = v->dim + v->first[i];
        const bool apart = axes_of(v, i) == 1 || group->rows;
        const extent all = apart ? *group : weft__ex_symbol(x, "rows", 0, NULL, 0);
        weft__ex_insert(&y, i, apart ? axes_of(v, i) : 1, apart ? group : &all);
        memcpy(size + y.first[i], y.dim + y.first[i], (size_t)axes_of(&y, i) * sizeof *size);
        if (!apart)
            size[y.first[i]] = (extent){ .n = -1 }, merged++;
    }
    if (merged > 1)
        weft__ex_fail(x, WEFT_EARG, "an output with two axes that merge a dynamic one; reshape it");
    if (!merged)
        return;
    y.name = NODES(x, "Reshape(%s, %s)", v->name, weft__ex_sizes(x, y.axes, size));
    *v = y;
}

static void add_output(graph *x, const weft_tensor *t, int64_t i)
{
    const char *name = x->opts && x->opts->output_names ? x->opts->output_names[i] : NULL;
    value v = *weft__ex_value(x, t);
    batch *b = batch_of(x, t);
    if (!t->f.batch)
        merge_axes(x, &v);
    if (b)
        v.name = weft__ex_filled(x, b, &v, t->f.type, 0);
    weft__ex_end(x, true, name ? name : weft__ex_text(x, "output%lld", (long long)i), t->f.type, &v);
}

/* ---- the function ---- */
static void check_arguments(graph *x, const char *path, weft_tensor *const *outputs, int64_t n)
{
    const weft_onnx_export_opts *o = x->opts;
    const bool given = path && outputs && n > 0 && outputs[0];
    if (!given || (o && (o->n_inputs < 0 || (o->n_inputs && !o->inputs))))
        weft__ex_fail(x, WEFT_EARG, "expected a path, one or more outputs and their options");
    x->w = outputs[0]->w;
    if (x->w->status)
        weft__ex_fail(x, WEFT_EARG, "the context has failed: %.300s", weft_error_message(x->w));
    if (!x->w->tape || !x->w->tape->entries)
        weft__ex_fail(x, WEFT_EARG, "nothing is recorded; run a forward pass outside WEFT_NO_GRAD");
    for (int64_t i = 0; i < n; i++) {
        const char *error = outputs[i] ? weft__handle_error(x->w, outputs[i]) : "is NULL";
        if (error || entry_of(outputs[i]) < 0)
            weft__ex_fail(x, WEFT_EARG, "output %lld %s; expected the result of a recorded operator",
                          (long long)i, error ? error : "is not on the tape");
    }
    for (int64_t i = 0; o && i < o->n_inputs; i++)
        if (!o->inputs[i].tensor || weft__handle_error(x->w, o->inputs[i].tensor) ||
            entry_of(o->inputs[i].tensor) >= 0)
            weft__ex_fail(x, WEFT_EARG, "opts->inputs[%lld]: expected a tensor that no operator made",
                          (long long)i);
}

static void make_graph(graph *x, weft_tensor *const *outputs, int64_t n)
{
    const size_t entries = (size_t)x->w->tape->entries;
    int64_t bytes = 0;
    if (!weft__listing_begin(&x->listing, x->w))
        weft__ex_fail(x, WEFT_ENOMEM, "no memory for the tape");
    x->needed = weft__ex_memory(x, entries * sizeof *x->needed);
    x->result = weft__ex_memory(x, entries * sizeof *x->result);
    x->leaf = weft__ex_memory(x, ((size_t)x->listing.leaves + 1) * sizeof *x->leaf);
    for (int64_t i = 0; i < x->listing.leaves; i++)
        bytes += weft__node_of(x->listing.leaf[i])->path ? 4 * weft__elements(&x->listing.leaf[i]->f) : 0;
    if (bytes > INT32_MAX - (1 << 24))
        weft__ex_fail(x, WEFT_EARG, "the parameters have %lld bytes; an ONNX file has at most 2 GiB",
                      (long long)bytes);
    find_needed(x, outputs, n);
    make_inputs(x, true);
    make_inputs(x, false);
    translate(x);
    for (int64_t i = 0; i < n; i++)
        add_output(x, outputs[i], i);
}

weft_status weft_export_onnx(const char *path, weft_tensor *const *outputs, int64_t n,
                             const weft_onnx_export_opts *opts)
{
    graph *x = calloc(1, sizeof *x);
    if (!x)
        return weft__file_fail(WEFT_ENOMEM, "weft_export_onnx: no memory");
    x->opts = opts;
    x->nodes.x = x->initializers.x = x->inputs.x = x->outputs.x = x;
    if (!setjmp(x->failed)) {
        check_arguments(x, path, outputs, n);
        make_graph(x, outputs, n);
        weft__ex_write(x, path);
    }
    const weft_status status = x->status;
    weft__listing_end(&x->listing);
    weft__pieces_end(&x->memory);
    free(x);
    return status;
}
