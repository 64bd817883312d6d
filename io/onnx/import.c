/* import.c - imports an ONNX model: reads its graph, then makes parameters, buffers and layers.
 *
 * Constants are computed in a part of the user's step that is undone, so a failure changes nothing. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "io/onnx/model.h"

/* ---- names ---- */
/* Copies a name's first n bytes, at most 55, with _ instead of characters that a path does not have. */
static void clean(const char *name, size_t n, char text[64])
{
    size_t length = 0;
    for (size_t i = 0; i < n && length < 55; i++)
        text[length++] = (char)(isalnum((unsigned char)name[i]) || name[i] == '-' ? name[i] : '_');
    if (!length)
        text[length++] = '_';
    text[length] = 0;
}

void weft__onnx_name(weft_onnx *m, const char *name, char text[64])
{
    char base[64];
    clean(name, strlen(name), base);
    snprintf(text, 64, "%.55s", base);
    while (weft__name_below(m->module, text))
        snprintf(text, 64, "%.50s_%d", base, ++m->renamed);
}

/* Returns the module of this name in m, made if necessary; NULL if the name is taken or the path too long. */
static weft_module *module_in(weft_module *m, const char *name)
{
    const weft__name *found = weft__name_below(m, name);
    if (found)
        return found->parameter ? NULL : (weft_module *)((uintptr_t)found - offsetof(weft_module, entry));
    return strlen(m->path) + 2 * WEFT__NAME < WEFT__PATH ? weft_submodule_new(m, name) : NULL;
}

/* "fc.weight" is the parameter "weight" of the module "fc". */
static weft_tensor *new_parameter(weft_onnx *m, const char *path, const value *v, bool buffer)
{
    weft_module *parent = m->module;
    const char *name = path;
    char text[64];
    for (const char *dot; parent && (dot = strchr(name, '.')); name = dot + 1) {
        clean(name, (size_t)(dot - name), text);
        parent = module_in(parent, text);
    }
    clean(name, strlen(name), text);
    if (!parent || weft__name_below(parent, text)) {
        parent = m->module;
        weft__onnx_name(m, path, text);
    }
    return buffer ? weft_buffer(parent, text, v->rank, v->size) :
                    weft_parameter(parent, text, v->rank, v->size, (weft_init){ 0 });
}

/* ---- which nodes a run needs ---- */
static bool is_constant(const weft_onnx *m, int i)
{
    return m->known[i].type && !(m->slot[i].trained && !m->slot[i].initial);
}

static void mark(weft_onnx *m)
{
    for (int64_t i = 0; i < m->out.n; i++)
        m->slot[m->out.slot[i]].needed = true;
    for (int i = m->nodes - 1; i >= 0; i--) {
        node *n = &m->node[i];
        for (int k = 0; k < n->outputs; k++)
            n->needed =
                n->needed || (n->out[k] >= 0 && m->slot[n->out[k]].needed && !is_constant(m, n->out[k]));
        if (n->needed && n->guard >= 0)
            m->slot[n->guard].needed = true;
        for (int k = 0; n->needed && k < n->inputs; k++)
            if (n->in[k] >= 0 && !(n->layer && k && (k < 4 || k == 7))) {
                m->slot[n->in[k]].needed = true;
                m->slot[n->in[k]].is_statistic = k > 2 && !strcmp(n->op, "BatchNormalization");
            }
    }
}

/* ---- values that outlive the import ---- */
weft__array weft__onnx_array(run *r, const value *v)
{
    if (v->stored)
        return *v->stored;
    weft__array a = { .name = "a constant", .kind = { weft__number_of(WEFT_REAL), v->rank, { 0 } } };
    memcpy(a.kind.size, v->size, sizeof v->size);
    weft__set_strides(&a);
    a.bytes = (const unsigned char *)weft__onnx_read(r, v);
    return a;
}

void weft__onnx_assign(run *r, weft_tensor *x, const weft__array *a)
{
    enum { PIECE = 1 << 18 };
    run own = { .w = r->w, .left = SIZE_MAX };
    weft__device *device = &r->w->dev;
    weft__array piece = *a;
    int64_t n = weft__onnx_product(a->kind.size, a->kind.rank), rows = a->kind.rank ? a->kind.size[0] : 1;
    if (weft_ok(r->w) && n != weft_numel(x))
        weft__onnx_fail(r, "weights of another shape than in the first run");
    if (!weft_ok(r->w) || !n)
        return;
    int64_t width = n / rows, gate = a->gates ? rows / a->gates : rows;
    int64_t most = PIECE / width + 1 < gate ? PIECE / width + 1 : gate;
    weft_real *reals = weft__onnx_take(&own, most * width, sizeof *reals);
    piece.gates = 0;
    for (int64_t i = 0, count; reals && i < rows; i += count) {
        int64_t row = a->order[i / gate] * gate + i % gate, rest = gate - i % gate;
        count = most < rest ? most : rest;
        piece.kind.size[0] = count;
        piece.bytes = a->bytes + (size_t)(row * a->stride[0]) * weft__number_bytes(a->kind.type);
        if (!weft__array_read(r->model->weights, &piece, weft__number_of(WEFT_REAL), reals)) {
            weft__fail(r->w, r->model->weights->status, "%s", weft_file_message());
            break;
        }
        device->k->upload(device, (weft_real *)x->data + i * width, reals,
                          (size_t)(count * width) * sizeof *reals);
    }
    weft__check_faults(r->w, "onnx");
    weft__pieces_end(&own.memory);
}

/* Keeps the numbers of constants that are needed, while the step of the import exists. */
static void read_constants(run *r)
{
    weft_onnx *m = r->model;
    for (int i = 0; i < m->slots; i++) {
        value *v = &m->known[i];
        weft__array *computed = NULL;
        v->stored = m->slot[i].initial;
        if (!m->slot[i].needed || !is_constant(m, i))
            continue;
        if (v->x && !v->stored && (computed = weft__onnx_take(r, 1, sizeof *computed))) {
            *computed = weft__onnx_array(r, v);
            v->stored = computed;
        } else if (v->number) {
            int64_t *copy = weft__weights_memory(m->weights, ((size_t)v->count + 1) * sizeof *copy);
            v->number = copy && v->count ? memcpy(copy, v->number, (size_t)v->count * sizeof *copy) : copy;
        }
    }
}

static void keep(run *r, int i)
{
    weft_onnx *m = r->model;
    struct slot *s = &m->slot[i];
    const value *v = &m->known[i];
    char name[32];
    snprintf(name, sizeof name, "constant%d", i);
    s->kept = s->initial && s->trained ? new_parameter(m, s->initial->name, v, s->is_statistic) :
                                         weft_buffer(m->constants, name, v->rank, v->size);
    weft__onnx_assign(r, s->kept, v->stored);
}

/* Makes room for the parameters by one that is removed: room that grows needs twice the memory. */
static void reserve(weft_onnx *m)
{
    const weft__weights *w = m->weights;
    int64_t n = 0;
    for (int64_t i = 0; i < w->n; i++)
        if (weft__number_is_float(w->array[i].kind.type))
            n += weft__onnx_product(w->array[i].kind.size, w->array[i].kind.rank) + WEFT__GRAIN;
    weft_module *all = weft_submodule_new(m->module, "all");
    weft_parameter(all, "all", 1, &n, (weft_init){ 0 });
    weft__finish_layer(all, NULL, NULL);
}

static void end_model(void *p)
{
    weft_onnx *m = p;
    weft__weights_close(m->weights);
}

/* Makes all parameters, buffers and layers. */
static void make(run *r, const char *name)
{
    weft_onnx *m = r->model;
    m->module = weft_module_new(m->w, name);
    m->constants = weft_module_new(m->w, "onnx_constants");
    reserve(m);
    for (int i = 0; weft_ok(m->w) && i < m->slots; i++) {
        value *v = &m->known[i];
        if (m->slot[i].needed && is_constant(m, i) && v->stored)
            keep(r, i);
        if (v->x || m->slot[i].initial || !m->slot[i].needed)
            *v = (value){ 0 };
        m->slot[i].initial = NULL;
    }
    for (int i = 0; weft_ok(m->w) && i < m->nodes; i++)
        if (m->node[i].needed && m->node[i].layer)
            weft__onnx_make(r, &m->node[i]);
}

/* Reads the graph in a part of the step that is undone, and makes the model. A failure of the context becomes
 * one of the file. */
static void import(run *r, const char *name)
{
    weft__weights *weights = r->model->weights;
    weft__listener *listener = weft__mute_errors(r->w);
    weft_mark here = weft_mark_here(r->w);
    bool recording = weft_set_grad_enabled(r->w, false);
    bool read = weft__onnx_graph(r);
    if (read) {
        mark(r->model);
        read_constants(r);
    }
    weft_set_grad_enabled(r->w, recording);
    read = read && weft_ok(r->w) && !weights->status;
    if (read) {
        weft_rewind(r->w, here);
        r->importing = false;
        make(r, name);
    }
    if (!weft_ok(r->w))
        weft__weights_fail(weights, weft_error_code(r->w), "%s", weft_error_message(r->w));
    weft__unmute_errors(r->w, listener, !weft_ok(r->w));
    if (!read)
        weft_rewind(r->w, here);
}

weft_onnx *weft_import_onnx(const char *path, weft *w, const weft_onnx_import_opts *opts)
{
    enum { SPARE = 32 << 20 };
    weft__weights *weights;
    if (!weft_ok(w))
        weft__file_fail(WEFT_EARG, "%.300s: the context has failed", path ? path : "NULL");
    if (!weft_ok(w) || weft__weights_open(path, NULL, &weights))
        return NULL;
    if (strcmp(weights->format, "ONNX"))
        weft__weights_fail(weights, WEFT_EFORMAT, "not a graph; expected an ONNX model");
    weft_onnx *m = weft__own(w, sizeof *m, end_model, NULL);
    if (!m) {
        weft__weights_close(weights);
        weft__file_fail(WEFT_ENOMEM, "%.300s: out of memory", path);
        return NULL;
    }
    m->w = w;
    m->weights = weights;
    run r = { .w = w, .model = m, .left = 3 * weights->size + SPARE, .importing = true };
    if (!weights->status)
        import(&r, opts && opts->name ? opts->name : "onnx");
    weft__pieces_end(&r.memory);
    free(weights->image);
    weights->image = NULL;
    weights->path = "ONNX model";
    return weights->status ? NULL : m;
}

/* ---- public functions ---- */
weft_module *weft_onnx_module(weft_onnx *m) { return m ? m->module : NULL; }

weft_rnn *weft_onnx_rnn(weft_onnx *m, const char *name)
{
    for (int i = 0; m && name && i < m->nodes; i++) {
        weft_rnn *rnn = m->node[i].layer ? m->node[i].layer->rnn : NULL;
        if (rnn && (!strcmp(weft_rnn_module(rnn)->name, name) || !strcmp(m->node[i].name, name)))
            return rnn;
    }
    return NULL;
}

static const weft_onnx_value *values_of(const struct ends *e, int64_t *n)
{
    if (n)
        *n = e ? e->n : 0;
    return e ? e->value : NULL;
}

const weft_onnx_value *weft_onnx_inputs(const weft_onnx *m, int64_t *n)
{
    return values_of(m ? &m->in : NULL, n);
}

const weft_onnx_value *weft_onnx_outputs(const weft_onnx *m, int64_t *n)
{
    return values_of(m ? &m->out : NULL, n);
}
