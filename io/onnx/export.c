/* export.c - weft_export_onnx: follows the tape from the outputs back, makes an input or a constant of each
 * tensor that no operator made, and lets a translator write each operator. */
#include <stdlib.h>
#include <string.h>
#include "io/io.h"
#include "io/onnx/export.h"

/* ---- results ---- */
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
    return x->result[e] ? x->result[e] + k : NULL;
}

const value *weft__ex_value(graph *x, const weft_tensor *t)
{
    static const value none;
    value *v = weft__ex_place(x, t);
    if (v && !v->name && entry_of(t) < 0 && !x->status)
        weft__ex_make_leaf(x, t, v);
    return v ? v : &none;
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
            weft__ex_trace_steps(x, c);
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
    for (int64_t e = 0; e < x->w->tape->entries && !x->status; e++) {
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
    static const translation *const tables[] = { weft__ex_pointwise, weft__ex_shapes, weft__ex_axes,
                                                 weft__ex_layers, weft__ex_rows };
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
    const char *name = c->op->name;
    return weft__ex_is_own(c)       ? "an operator of the program" :
           !strcmp(name, "dropout") ? weft__ex_dropout :
           !strcmp(name, "same")    ? "a recurrent layer that runs step by step: a cell of the program, or "
                                      "weft_rnn_set_composed" :
                                      "it has no ONNX form";
}

static bool find_axis(graph *x, const weft__along *a)
{
    x->axis = a->axis;
    x->tokens = a->tokens ? batch_of(x, x->call->x[0]) : NULL;
    x->at = x->tokens ? 0 : weft__ex_axis(x, input(x, 0), a->axis);
    return x->at >= 0;
}

static void translate(graph *x)
{
    for (x->entry = 0; x->entry < x->w->tape->entries && !x->status; x->entry++) {
        const weft_call *c = x->call = call_of(x, x->entry);
        if (!x->needed[x->entry])
            continue;
        const translation *t = translation_of(c);
        if (!t)
            weft__ex_refuse(x, reason_of(c));
        bool known = t != NULL;
        for (int i = 0; known && i < c->n; i++) /* results of a refused operator have no value */
            known = !weft__ex_reads(c, i) || input(x, i)->name;
        if (!known || (t->along && c->op->describe && !find_axis(x, c->attributes)))
            continue;
        value y = c->n && weft__ex_reads(c, 0) ? like(input(x, 0), NULL) : (value){ 0 };
        if ((y.name = t->run(x, c, &y)) != NULL)
            set_value(x, c->y[0], y);
    }
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
    if (!v.name) {
        weft__ex_fail(x, WEFT_EARG, "output %lld has no value", (long long)i);
        return;
    }
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
    x->w = given ? outputs[0]->w : NULL;
    if (!given || (o && (o->n_inputs < 0 || (o->n_inputs && !o->inputs))))
        weft__ex_fail(x, WEFT_EARG, "expected a path, one or more outputs and their options");
    else if (x->w->status)
        weft__ex_fail(x, WEFT_EARG, "the context has failed: %.300s", weft_error_message(x->w));
    else if (!x->w->tape || !x->w->tape->entries)
        weft__ex_fail(x, WEFT_EARG, "nothing is recorded; run a forward pass outside WEFT_NO_GRAD");
    for (int64_t i = 0; i < n && !x->status; i++) {
        const char *error = outputs[i] ? weft__handle_error(x->w, outputs[i]) : "is NULL";
        if (error || entry_of(outputs[i]) < 0)
            weft__ex_fail(x, WEFT_EARG, "output %lld %s; expected the result of a recorded operator",
                          (long long)i, error ? error : "is not on the tape");
    }
    for (int64_t i = 0; !x->status && o && i < o->n_inputs; i++)
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
    if (x->status)
        return;
    for (int64_t i = 0; i < x->listing.leaves; i++)
        bytes += weft__node_of(x->listing.leaf[i])->path ? 4 * weft__elements(&x->listing.leaf[i]->f) : 0;
    if (bytes > INT32_MAX - (1 << 24))
        weft__ex_fail(x, WEFT_EARG, "the parameters have %lld bytes; an ONNX file has at most 2 GiB",
                      (long long)bytes);
    find_needed(x, outputs, n);
    make_inputs(x, true);
    make_inputs(x, false);
    translate(x);
    for (int64_t i = 0; i < n && !x->status; i++)
        add_output(x, outputs[i], i);
}

weft_status weft_export_onnx(const char *path, weft_tensor *const *outputs, int64_t n,
                             const weft_onnx_export_opts *opts)
{
    graph *x = calloc(1, sizeof *x);
    if (!x)
        return weft__file_fail(WEFT_ENOMEM, "weft_export_onnx: no memory");
    x->opts = opts;
    check_arguments(x, path, outputs, n);
    if (!x->status)
        make_graph(x, outputs, n);
    if (!x->status)
        weft__ex_write(x, path);
    const weft_status status = x->status;
    weft__listing_end(&x->listing);
    for (struct piece *p = x->memory, *next; p; p = next)
        next = p->next, free(p);
    free(x->nodes.bytes), free(x->initializers.bytes), free(x->inputs.bytes), free(x->outputs.bytes);
    free(x);
    return status;
}
