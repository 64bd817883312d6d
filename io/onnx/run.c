/* run.c - runs an imported model, node by node. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "autograd/fused.h"
#include "io/onnx/model.h"

/* ---- memory and failures ---- */
void *weft__onnx_take(run *r, int64_t n, size_t each)
{
    size_t bytes;
    bool fits = n >= 0 && !__builtin_mul_overflow((size_t)n, each, &bytes) && bytes < r->left;
    void *p = fits && weft_ok(r->w) ? weft__piece_new(&r->memory, bytes + 8) : NULL;
    if (p)
        r->left -= bytes;
    else
        weft__fail(r->w, WEFT_ENOMEM, "no memory for %lld numbers", (long long)n);
    return p;
}

bool weft__onnx_fail(run *r, const char *format, ...)
{
    char text[400];
    WEFT__PLAIN_TEXT(text, sizeof text, format);
    weft__fail(r->w, r->importing ? WEFT_EFORMAT : WEFT_ESHAPE, "%s", text);
    return false;
}

/* ---- values ---- */
int64_t weft__onnx_product(const int64_t *size, int n)
{
    int64_t all = 1;
    for (int i = 0; i < n; i++)
        if (__builtin_mul_overflow(all, size[i], &all))
            return INT64_MAX;
    return all;
}

value weft__onnx_reals(run *r, weft_tensor *x)
{
    value v = { .type = WEFT__ONNX_FLOAT, .x = x, .rank = weft_rank(x), .count = weft_numel(x) };
    for (int i = 0; i < v.rank; i++)
        v.size[i] = weft_size(x, i);
    size_t bytes = (size_t)v.count * sizeof(weft_real);
    if (r->importing && bytes >= r->left)
        weft__onnx_fail(r, "its constant result of %lld numbers is too large for this file",
                        (long long)v.count);
    else if (r->importing)
        r->left -= bytes;
    v.type = weft_ok(r->w) ? v.type : 0;
    return v;
}

value weft__onnx_integers(run *r, int type, int rank, const int64_t *size)
{
    value v = { .type = type, .rank = rank, .count = weft__onnx_product(size, rank) };
    for (int i = 0; i < rank; i++)
        v.size[i] = size[i];
    v.number = weft__onnx_take(r, v.count, sizeof *v.number);
    return v.number ? v : (value){ 0 };
}

weft_tensor *weft__onnx_tensor_of(run *r, const value *v)
{
    return v->x || !v->type ? v->x : weft_reals(r->w, weft__onnx_read(r, v), v->rank, v->size);
}

weft_real *weft__onnx_read(run *r, const value *v)
{
    weft_real *reals = weft__onnx_take(r, v->count, sizeof *reals);
    if (reals && v->x)
        weft_read(v->x, reals, (size_t)v->count * sizeof *reals);
    for (int64_t i = 0; reals && !v->x && i < v->count; i++)
        reals[i] = (weft_real)v->number[i];
    return weft_ok(r->w) ? reals : NULL;
}

value weft__onnx_integers_of(run *r, const value *v)
{
    if (!v->x)
        return *v;
    weft_real *reals = weft__onnx_read(r, v);
    value to = weft__onnx_integers(r, WEFT__ONNX_INT64, v->rank, v->size);
    for (int64_t i = 0; to.type && reals && i < v->count; i++)
        to.number[i] = reals[i] >= (weft_real)0x1p63 || isnan(reals[i]) || reals[i] < -(weft_real)0x1p63 ?
                           INT64_MIN :
                           (int64_t)reals[i];
    return to;
}

/* ---- attributes ---- */
const attribute *weft__onnx_attribute(run *r, const char *name, int type)
{
    for (int i = 0; i < r->node->attributes; i++) {
        const attribute *a = &r->node->attribute[i];
        if (strcmp(a->name, name))
            continue;
        if (a->type == type)
            return a;
        weft__onnx_fail(r, "attribute %s has the type %d; expected %d", name, a->type, type);
    }
    return NULL;
}

int64_t weft__onnx_int(run *r, const char *name, int64_t otherwise)
{
    const attribute *a = weft__onnx_attribute(r, name, 2);
    return a ? a->i : otherwise;
}

double weft__onnx_float(run *r, const char *name, double otherwise)
{
    const attribute *a = weft__onnx_attribute(r, name, 1);
    return a ? (double)a->f : otherwise;
}

const char *weft__onnx_string(run *r, const char *name, const char *otherwise)
{
    const attribute *a = weft__onnx_attribute(r, name, 3);
    return a ? a->text : otherwise;
}

bool weft__onnx_axis(run *r, int64_t *axis, int rank)
{
    if (*axis < -rank || *axis >= rank)
        weft__onnx_fail(r, "axis %lld; expected %d .. %d", (long long)*axis, -rank, rank - 1);
    *axis += *axis < 0 ? rank : 0;
    return weft_ok(r->w);
}

value weft__onnx_list(run *r, const value *in, int i, const char *name)
{
    if (i >= 0 && i < r->node->inputs && in[i].type)
        return weft__onnx_integers_of(r, &in[i]);
    const attribute *a = name ? weft__onnx_attribute(r, name, 7) : NULL;
    if (!a)
        return (value){ 0 };
    return (value){ WEFT__ONNX_INT64, .number = a->ints, .count = a->n, .rank = 1, .size = { a->n } };
}

/* ---- nodes ---- */
const operation *weft__onnx_operation(weft__pb domain, weft__pb op)
{
    static const operation *const tables[] = {
        weft__onnx_learning, weft__onnx_layers, weft__onnx_pointwise, weft__onnx_shapes, weft__onnx_indexed,
        weft__onnx_made, weft__onnx_reductions, weft__onnx_products
    };
    const bool is_main = !weft__pb_size(domain) || weft__pb_is(domain, "ai.onnx");
    size_t first = is_main ? 1 : 0, end = is_main ? sizeof tables / sizeof *tables : 1;
    for (size_t i = first; i < end && (is_main || weft__pb_is(domain, "ai.onnx.ml")); i++)
        for (const operation *o = tables[i]; o->name; o++)
            if (weft__pb_is(op, o->name))
                return o;
    return NULL;
}

bool weft__onnx_explain(run *r)
{
    char text[400];
    snprintf(text, sizeof text, "%s", weft_error_message(r->w));
    if (r->node && !weft_ok(r->w))
        weft__explain(r->w, "node %.80s (%s): %.380s", r->node->name, r->node->op, text);
    r->node = NULL;
    return false;
}

bool weft__onnx_step(run *r, const node *n, value *values)
{
    r->node = n;
    value *in = weft__onnx_take(r, (n->inputs > 8 ? n->inputs : 8) + 1, sizeof *in);
    value *out = weft__onnx_take(r, (n->outputs > 8 ? n->outputs : 8) + 1, sizeof *out);
    for (int i = 0; in && i < n->inputs; i++) {
        in[i] = n->in[i] >= 0 ? values[n->in[i]] : in[i];
        if (in[i].split && strcmp(n->op, "SequenceAt"))
            weft__onnx_fail(r, "input %d is a sequence; expected a tensor", i);
    }
    for (int i = 0; in && i < abs(n->operation->inputs); i++)
        if (!in[i].type)
            weft__onnx_fail(r, "input %d is missing", i);
    if (weft_ok(r->w))
        n->operation->operate(r, in, out);
    for (int i = 0; weft_ok(r->w) && i < n->outputs; i++)
        if (n->out[i] >= 0) {
            if (!out[i].type)
                weft__onnx_fail(r, "output %d cannot be computed", i);
            values[n->out[i]] = out[i];
        }
    return weft_ok(r->w) || weft__onnx_explain(r);
}

/* Whether a node of a branch runs. */
static bool is_open(const node *n, const value *values)
{
    const value *v = n->guard >= 0 ? &values[n->guard] : NULL;
    return !v || (v->number && v->count == 1 && !*v->number == !n->guard_is);
}

/* Checks an input, and copies one of ints to the host. */
static value input_of(run *r, weft_tensor *x, const weft_onnx_value *expected, int type)
{
    const bool ints = !weft__number_is_float(weft__onnx_number(type));
    const char *error = weft__handle_error(r->w, x);
    if (error || x->f.batch) {
        weft__fail(r->w, error ? WEFT_EARG : WEFT_ESHAPE, "onnx_run: input %.80s %s", expected->name,
                   error ? error : "is ragged; expected a plain tensor");
        return (value){ 0 };
    }
    value v = weft__onnx_reals(r, x);
    bool same = expected->rank < 0 || expected->rank == v.rank;
    for (int i = 0; same && i < expected->rank; i++)
        same = expected->size[i] < 0 || expected->size[i] == v.size[i];
    if (!same || (x->f.type == WEFT_I32) != ints) {
        char text[128];
        weft__fail(r->w, WEFT_ESHAPE, "onnx_run: input %.80s is %s%s; the model expects %s of %s",
                   expected->name, weft__text(&x->f, text), x->f.type == WEFT_I32 ? " of ints" : "",
                   ints ? "ints" : "reals", same ? "this shape" : "another shape");
        return (value){ 0 };
    }
    if (!ints)
        return v;
    value to = weft__onnx_ints(r, x);
    to.type = to.type ? type : 0;
    return to;
}

static weft_tensor *output_of(run *r, const value *v, const char *name)
{
    if (v->split)
        weft__fail(r->w, WEFT_EARG, "onnx_run: output %.80s is a sequence; expected a tensor", name);
    if (v->x)
        return v->x;
    int32_t *ints = weft__onnx_take(r, v->count, sizeof *ints);
    for (int64_t i = 0; ints && i < v->count; i++) {
        ints[i] = (int32_t)v->number[i];
        if (ints[i] != v->number[i])
            weft__fail(r->w, WEFT_EARG, "onnx_run: output %.80s: %lld does not fit an int32", name,
                       (long long)v->number[i]);
    }
    return weft_ok(r->w) ? weft_ints(r->w, ints, v->rank, v->size) : &r->w->nil;
}

/* Most bytes of integers and of positions in one run. */
#define HOST_BYTES (SIZE_MAX >> 31 > 1 ? (uint64_t)4 << 30 : (uint64_t)1 << 30)

bool weft_onnx_run(weft_onnx *m, weft_tensor *const *inputs, int64_t n, weft_tensor **outputs, int64_t outs)
{
    if (!m) {
        weft__failed_of(inputs, inputs ? n : 0, WEFT_EARG, "onnx_run",
                        "model is NULL; weft_file_message says why weft_import_onnx failed");
        return false;
    }
    weft *w = m->w;
    for (int64_t i = 0; outputs && i < (outs < m->out.n ? outs : m->out.n); i++)
        outputs[i] = &w->nil;
    if (n != m->in.n || outs != m->out.n || (n && !inputs) || (outs && !outputs))
        weft__fail(w, WEFT_EARG, "onnx_run: %lld inputs and %lld outputs; the model has %lld and %lld",
                   (long long)n, (long long)outs, (long long)m->in.n, (long long)m->out.n);
    if (!weft_ok(w))
        return false;
    run r = { .w = w, .model = m, .left = (size_t)HOST_BYTES };
    value *values = weft__onnx_take(&r, m->slots, sizeof *values);
    for (int i = 0; values && i < m->slots; i++)
        values[i] = m->slot[i].kept ? weft__onnx_reals(&r, m->slot[i].kept) : m->known[i];
    for (int64_t i = 0; weft_ok(w) && i < n; i++) {
        int at = m->in.slot[i];
        values[at] = input_of(&r, inputs[i], &m->in.value[i], m->slot[at].type);
    }
    for (int i = 0; weft_ok(w) && i < m->nodes; i++)
        if (m->node[i].needed && is_open(&m->node[i], values))
            weft__onnx_step(&r, &m->node[i], values);
    for (int64_t i = 0; weft_ok(w) && i < outs; i++)
        outputs[i] = output_of(&r, &values[m->out.slot[i]], m->out.value[i].name);
    for (int64_t i = 0; !weft_ok(w) && i < outs; i++)
        outputs[i] = &w->nil;
    weft__pieces_end(&r.memory);
    return weft_ok(w);
}
