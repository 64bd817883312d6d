/* export.c - weft_export_onnx: follows the tape from the outputs back, makes an input or a constant of each
 * tensor that no operator made, and lets a handler translate each operator. */
#include <stdlib.h>
#include <string.h>
#include "io/io.h"
#include "io/onnx/export.h"

/* ---- results ---- */
static const weft__node *node_of(const weft_tensor *t) { return weft__node_of(t); }

static int64_t entry_of(const weft_tensor *t) { return (int64_t)node_of(t)->entry_number - 1; }
static const weft_call *call_of(const weft__export *x, int64_t entry)
{
    return x->w->tape->entry[entry].call;
}
weft__value *weft__export_place(weft__export *x, const weft_tensor *t)
{
    const int64_t e = entry_of(t);
    if (e < 0)
        return &x->leaf[weft__leaf_of(&x->listing, t)];
    const weft_call *c = call_of(x, e);
    if (!x->result[e])
        x->result[e] = weft__export_memory(x, (size_t)c->m * sizeof **x->result);
    int k = 0;
    while (k + 1 < c->m && c->y[k] != t)
        k++;
    return x->result[e] ? x->result[e] + k : NULL;
}

void weft__export_set(weft__export *x, const weft_tensor *t, weft__value v)
{
    weft__value *place = weft__export_place(x, t);
    if (place)
        *place = v;
}

const weft__value *weft__export_value(weft__export *x, const weft_tensor *t)
{
    static const weft__value none;
    weft__value *v = weft__export_place(x, t);
    if (v && !v->name && entry_of(t) < 0 && !x->status)
        weft__export_make_leaf(x, t, v);
    return v ? v : &none;
}

/* ---- the tape ---- */
static void find_needed(weft__export *x, weft_tensor *const *outputs, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (entry_of(outputs[i]) >= 0)
            x->needed[entry_of(outputs[i])] = true;
    for (int64_t e = x->w->tape->entries - 1; e >= 0; e--) {
        const weft_call *c = call_of(x, e);
        if (x->needed[e])
            weft__export_trace_steps(x, e);
        for (int i = 0; x->needed[e] && i < c->n; i++)
            if (weft__export_reads(c, i) && entry_of(c->x[i]) >= 0)
                x->needed[entry_of(c->x[i])] = true;
    }
}

/* Calls make for each input of a needed entry that no operator made. */
static void each_leaf(weft__export *x, void (*make)(weft__export *, const weft_tensor *))
{
    for (int64_t e = 0; e < x->w->tape->entries && !x->status; e++) {
        const weft_call *c = call_of(x, e);
        for (int i = 0; x->needed[e] && i < c->n; i++)
            if ((weft__export_reads(c, i) || node_of(c->x[i])->path) && entry_of(c->x[i]) < 0)
                make(x, c->x[i]);
    }
}
static void count_parameter(weft__export *x, const weft_tensor *t)
{
    const char *path = node_of(t)->path, *dot = path ? strchr(path, '.') : NULL;
    if (!path || x->root == SIZE_MAX)
        return;
    const size_t n = dot ? (size_t)(dot - path) + 1 : 0;
    x->root = n && (x->root == 0 || x->root == n) ? n : SIZE_MAX;
}
static void make_ragged(weft__export *x, const weft_tensor *t)
{
    if (t->f.batch && !node_of(t)->unrecorded)
        weft__export_value(x, t);
}
static void make_padded(weft__export *x, const weft_tensor *t)
{
    if (!t->f.batch && !node_of(t)->path && x->leaf_views[weft__leaf_of(&x->listing, t)])
        weft__export_value(x, t);
}

bool weft__export_is_own(const weft_call *c) { return c->host || c->op->device; }
static weft__export_translator *translator_of(const weft_call *c)
{
    static const weft__export_entry *const tables[] = { weft__export_pointwise, weft__export_shapes,
                                                        weft__export_axes, weft__export_layers,
                                                        weft__export_rows };
    for (size_t i = 0; i < sizeof tables / sizeof *tables && !weft__export_is_own(c); i++)
        for (const weft__export_entry *e = tables[i]; e->name; e++)
            if (!strcmp(e->name, c->op->name))
                return e->run;
    return !weft__export_is_own(c) && weft__export_is_recurrent(c) ? weft__export_recurrent : NULL;
}

static const char *reason_of(const weft_call *c)
{
    const char *name = c->op->name;
    return weft__export_is_own(c)   ? "an operator of the program" :
           !strcmp(name, "dropout") ? "dropout is on; run the forward pass inside WEFT_EVAL" :
           !strcmp(name, "same")    ? "a recurrent layer that runs step by step: a cell of the program, or "
                                      "weft_rnn_set_composed" :
                                      "it has no ONNX form";
}

static void translate(weft__export *x)
{
    for (x->entry = 0; x->entry < x->w->tape->entries && !x->status; x->entry++) {
        const weft_call *c = call_of(x, x->entry);
        if (!x->needed[x->entry])
            continue;
        weft__export_translator *run = translator_of(c);
        bool known = run != NULL;
        if (!run)
            weft__export_refuse(x, c, reason_of(c));
        for (int i = 0; known && i < c->n; i++) /* what comes from a refused operator has no value */
            known = !weft__export_reads(c, i) || weft__export_value(x, c->x[i])->name;
        if (known)
            run(x, c);
    }
    if (*x->refused)
        weft__export_fail(x, WEFT_EARG, "operators that cannot be exported:%s", x->refused);
}

/* Merges the ONNX axes of an axis, such as batch and 4 of [batch * 4, ..]; rows of a batch stay apart. */
static void merge_axes(weft__export *x, weft__value *v, int rank)
{
    const char *part[WEFT__EXPORT_RANK];
    int merged = 0, axes = 0;
    weft__value y = { .axes = 0 };
    for (int i = 0; i < rank; i++) {
        const int from = v->first[i], n = v->first[i + 1] - from;
        const bool apart = n == 1 || v->dim[from].rows;
        merged += !apart;
        for (int k = 0; k < (apart ? n : 1); k++)
            part[axes++] =
                apart ? weft__export_size(x, v->dim[from + k]) : weft__export_ints(x, 1, (int64_t[]){ -1 });
        const weft__dim all = apart ? (weft__dim){ 0 } : weft__export_symbol(x, "rows", 0, NULL, 0);
        weft__export_insert(&y, i, i, apart ? n : 1, apart ? v->dim + from : &all);
    }
    if (merged > 1)
        weft__export_fail(x, WEFT_EARG, "an output with two axes that merge a dynamic one; reshape it");
    if (!merged)
        return;
    y.name = weft__export_node(x, "Concat", part, axes, ATTRIBUTES(INT("axis", 0)), NULL, 1);
    y.name = NODE(x, "Reshape", v->name, y.name);
    *v = y;
}

static void add_output(weft__export *x, const weft_tensor *t, int64_t i)
{
    const bool named = x->opts && x->opts->output_names && x->opts->output_names[i];
    const char *name = named ? x->opts->output_names[i] : weft__export_name_of(x, "output%lld", (long long)i);
    const bool ints = t->f.type == WEFT_I32;
    weft__value v = *weft__export_value(x, t);
    weft__export_batch *b = t->f.batch ? weft__export_batch_of(x, t->f.batch) : NULL;
    if (!v.name)
        weft__export_fail(x, WEFT_EARG, "output %lld has no value", (long long)i);
    if (!weft__export_reserve(x, name))
        return;
    if (!t->f.batch)
        merge_axes(x, &v, t->f.rank);
    else if (b)
        v.name = weft__export_filled(x, b, &v, ints ? weft__export_int(x, 0) : weft__export_number_of(x, 0));
    weft__proto node = { 0 };
    weft__proto_text(&node, 1, v.name);
    weft__proto_text(&node, 2, name);
    weft__proto_text(&node, 4, "Identity");
    weft__proto_message(&x->nodes, 1, &node);
    weft__export_add_value(x, &x->outputs, 12, name, ints ? WEFT__EXPORT_INT64 : WEFT__EXPORT_FLOAT, &v);
}

static void write_model(weft__export *x, const char *path)
{
    weft__proto head = { 0 }, graph = { 0 }, opset = { 0 }, tail = { 0 };
    weft__proto_int(&head, 1, 8);
    weft__proto_text(&head, 2, "weft");
    weft__proto_text(&head, 3, weft_version());
    weft__proto_text(&graph, 2, "weft");
    const weft__proto *part[] = { &x->nodes, &graph, &x->initializers, &x->inputs, &x->outputs };
    weft__span spans[7];
    size_t n = 0;
    bool failed = false;
    for (int i = 0; i < 5; i++) {
        spans[i + 1] = (weft__span){ part[i]->bytes, part[i]->n };
        n += part[i]->n, failed |= part[i]->failed;
    }
    weft__proto_begin(&head, 7, n);
    weft__proto_text(&opset, 1, "");
    weft__proto_int(&opset, 2, 17);
    weft__proto_message(&tail, 8, &opset);
    spans[0] = (weft__span){ head.bytes, head.n }, spans[6] = (weft__span){ tail.bytes, tail.n };
    if (failed || head.failed || tail.failed)
        weft__export_fail(x, WEFT_ENOMEM, "no memory for the model");
    if (!x->status)
        x->status = weft__write_file(path, spans, 7);
    weft__proto_free(&head), weft__proto_free(&graph), weft__proto_free(&tail);
}

/* ---- the function ---- */
static void check_arguments(weft__export *x, const char *path, weft_tensor *const *outputs, int64_t n)
{
    const weft_onnx_export_opts *o = x->opts;
    if (!path || !outputs || n < 1 || !outputs[0] ||
        (o && (o->n_inputs < 0 || (o->n_inputs && !o->inputs)))) {
        weft__export_fail(x, WEFT_EARG, "expected a path, one or more outputs and their options");
        return;
    }
    x->w = outputs[0]->w;
    if (x->w->status)
        weft__export_fail(x, WEFT_EARG, "the context has failed: %.300s", weft_error_message(x->w));
    else if (!x->w->tape || !x->w->tape->entries)
        weft__export_fail(x, WEFT_EARG, "nothing is recorded; run a forward pass outside WEFT_NO_GRAD");
    for (int64_t i = 0; i < n && !x->status; i++) {
        const char *error = outputs[i] ? weft__handle_error(x->w, outputs[i]) : "is NULL";
        if (error || entry_of(outputs[i]) < 0)
            weft__export_fail(x, WEFT_EARG, "output %lld %s; expected the result of a recorded operator",
                              (long long)i, error ? error : "is not on the tape");
    }
    for (int64_t i = 0; !x->status && o && i < o->n_inputs; i++)
        if (!o->inputs[i].tensor || weft__handle_error(x->w, o->inputs[i].tensor) ||
            entry_of(o->inputs[i].tensor) >= 0)
            weft__export_fail(x, WEFT_EARG, "opts->inputs[%lld]: expected a tensor that no operator made",
                              (long long)i);
}

static void make_graph(weft__export *x, weft_tensor *const *outputs, int64_t n)
{
    const size_t entries = (size_t)x->w->tape->entries;
    int64_t bytes = 0;
    if (!weft__listing_begin(&x->listing, x->w))
        weft__export_fail(x, WEFT_ENOMEM, "no memory for the tape");
    x->needed = weft__export_memory(x, entries * sizeof *x->needed);
    x->result = weft__export_memory(x, entries * sizeof *x->result);
    x->views = weft__export_memory(x, entries * sizeof *x->views);
    x->leaf_views = weft__export_memory(x, ((size_t)x->listing.leaves + 1) * sizeof *x->leaf_views);
    x->leaf = weft__export_memory(x, ((size_t)x->listing.leaves + 1) * sizeof *x->leaf);
    if (x->status)
        return;
    for (int64_t i = 0; i < x->listing.leaves; i++)
        bytes += weft__node_of(x->listing.leaf[i])->path ? 4 * weft__elements(&x->listing.leaf[i]->f) : 0;
    if (bytes > INT32_MAX - (1 << 24))
        weft__export_fail(x, WEFT_EARG, "the parameters have %lld bytes; an ONNX file has at most 2 GiB",
                          (long long)bytes);
    find_needed(x, outputs, n);
    each_leaf(x, count_parameter);
    x->root = x->root == SIZE_MAX ? 0 : x->root;
    each_leaf(x, make_ragged);
    each_leaf(x, make_padded);
    translate(x);
    for (int64_t i = 0; i < n && !x->status; i++)
        add_output(x, outputs[i], i);
}

weft_status weft_export_onnx(const char *path, weft_tensor *const *outputs, int64_t n,
                             const weft_onnx_export_opts *opts)
{
    weft__export *x = calloc(1, sizeof *x);
    if (!x)
        return weft__file_fail(WEFT_ENOMEM, "weft_export_onnx: no memory");
    x->opts = opts;
    check_arguments(x, path, outputs, n);
    if (!x->status)
        make_graph(x, outputs, n);
    if (!x->status)
        write_model(x, path);
    const weft_status status = x->status;
    weft__listing_end(&x->listing);
    for (struct weft__export_piece *p = x->memory, *next; p; p = next)
        next = p->next, free(p);
    weft__proto_free(&x->nodes), weft__proto_free(&x->initializers);
    weft__proto_free(&x->inputs), weft__proto_free(&x->outputs);
    free(x->used);
    free(x);
    return status;
}
