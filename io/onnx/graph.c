/* graph.c - reads the graph of an ONNX file to a list of nodes in the order of their execution.
 *
 * Each name becomes a slot. A node whose inputs are all known is computed now, unless it is costly. Functions
 * of the file, and the branch of an If whose condition is known, are inlined: their nodes join the list. */
#include <stdio.h>
#include <string.h>
#include "io/onnx/graph.h"

enum { FIRST_OPSET = 7, LAST_OPSET = 28, DEEPEST = 16, MOST_WORK = 1 << 24 };

/* ---- nodes ---- */
/* Fields of a NodeProto. */
enum { INPUT = 1, OUTPUT, NAME, OPERATOR, ATTRIBUTE, DOMAIN = 7 };
/* Fields of a GraphProto and of a FunctionProto. */
enum { GRAPH_NODE = 1, GRAPH_INITIALISER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT };
enum { FUNCTION_INPUT = 4, FUNCTION_OUTPUT, FUNCTION_NODE = 7 };

/* Finds the slots of all inputs. */
static bool connect(builder *b, const scope *s, const record *f, node *n)
{
    weft__pb m = f->message, name;
    n->in = weft__weights_memory(b->w, ((size_t)f->count[INPUT] + (size_t)f->count[OUTPUT] + 1) *
                                           sizeof *n->in);
    n->out = n->in ? n->in + f->count[INPUT] : NULL;
    n->name = weft__onnx_text(b->w, f->bytes[NAME]);
    n->op = weft__onnx_text(b->w, f->bytes[OPERATOR]);
    n->outputs = f->count[OUTPUT];
    while (!b->w->status && weft__onnx_field(&m, INPUT, &name)) {
        int at = weft__pb_size(name) ? weft__onnx_find(b, s, name) : MISSING;
        const char *text = at == UNDEFINED ? weft__onnx_text(b->w, name) : NULL;
        if (text)
            return weft__onnx_fail(b->r,
                                   "input %.100s is not computed before it; expected nodes in the order of "
                                   "execution, without cycles",
                                   text);
        n->in[n->inputs++] = at < 0 ? -1 : at;
    }
    return !b->w->status;
}

/* Gives the outputs of a node their slots. from: those of an inlined graph, or NULL: new ones. */
static bool define_outputs(builder *b, const scope *s, const record *f, node *n, const int *from)
{
    weft__pb m = f->message, name;
    for (int i = 0; !b->w->status && weft__onnx_field(&m, OUTPUT, &name); i++)
        if (!weft__pb_size(name))
            n->out[i] = -1;
        else if (!from)
            n->out[i] = weft__onnx_defined(b, s, name);
        else if (weft__onnx_define(b, s, name, from[i]))
            n->out[i] = from[i];
    return !b->w->status;
}

static void note_unknown(builder *b, const record *f, const node *n)
{
    const char *domain = weft__onnx_text(b->w, f->bytes[DOMAIN]);
    size_t length = strlen(b->unknown);
    char text[160];
    snprintf(text, sizeof text, "%.40s of %.40s (node %.60s)", n->op, domain && *domain ? domain : "ai.onnx",
             n->name);
    if (length + strlen(text) + 2 < sizeof b->unknown && !strstr(b->unknown, text))
        snprintf(b->unknown + length, sizeof b->unknown - length, "%s%s", length ? ", " : "", text);
}

/* ---- values that are known ---- */
/* Sets a slot to a value of the file. Reals are only loaded as tensors if a constant depends on them. */
static void set_known(builder *b, int at, const value *v)
{
    b->m->known[at] = *v;
    b->m->slot[at].initial = v->stored;
}

static bool load_known(builder *b, int at)
{
    const weft__array *a = b->m->slot[at].initial;
    value *v = &b->m->known[at];
    if (a && !v->x) {
        *v = weft__onnx_reals(b->r, weft_zeros(b->r->w, v->rank, v->size));
        weft__onnx_assign(b->r, v->x, a);
    }
    return weft_ok(b->r->w);
}

/* Sets a slot to the value of a node Constant. */
static bool set_constant(builder *b, const node *n, int at)
{
    const attribute *a = n->attributes == 1 ? n->attribute : &(attribute){ 0 };
    value v = a->tensor;
    if (a->type == A_FLOAT)
        v = weft__onnx_reals(b->r, weft_scalar(b->r->w, (double)a->f));
    else if (a->type == A_FLOATS)
        v = weft__onnx_reals(b->r, weft_reals(b->r->w, a->floats, 1, &a->n));
    else if (a->type == A_INT)
        v = (value){ .type = WEFT__ONNX_INT64, .number = (int64_t *)&a->i, .count = 1 };
    else if (a->type == A_INTS)
        v = (value){ WEFT__ONNX_INT64, .number = a->ints, .count = a->n, .rank = 1, .size = { a->n } };
    set_known(b, at, &v);
    return v.type || weft__onnx_fail(b->r, "has no numbers");
}

/* Computes a node whose inputs are known. */
static bool fold(builder *b, const node *n)
{
    const weft_onnx *m = b->m;
    const int64_t most = MOST_WORK + 4 * (int64_t)b->w->size; /* the rest is computed in each run */
    bool known = n->inputs > 0 && n->operation->inputs >= 0 && !*b->unknown, trained = false;
    int64_t work = b->work;
    for (int i = 0; i < n->inputs; i++)
        if (n->in[i] >= 0) {
            known = known && m->known[n->in[i]].type;
            trained = trained || m->slot[n->in[i]].trained;
            work += m->known[n->in[i]].count;
        }
    known = known && work < most;
    for (int i = 0; known && i < n->inputs; i++)
        if (n->in[i] >= 0 && !load_known(b, n->in[i]))
            return false;
    if (known && !weft__onnx_step(b->r, n, m->known))
        return false;
    b->work = known ? work : b->work;
    for (int i = 0; i < n->outputs; i++)
        if (n->out[i] >= 0) {
            m->slot[n->out[i]].trained = trained && (!known || m->known[n->out[i]].x);
            b->work += m->known[n->out[i]].count;
        }
    return true;
}

static bool add_node(builder *b, const scope *s, const record *f);
static bool add_operation(builder *b, const scope *s, const record *f, node *n);

/* Adds the nodes of a graph or a function. nodes, outputs: numbers of the fields. Sets to[] to the slots of
 * the outputs that node n has. */
static bool inlined(builder *b, const scope *s, weft__pb graph, int nodes, int outputs, const node *n,
                    int *to)
{
    weft__pb m = graph, bytes;
    record f;
    while (weft__onnx_each(b->w, &m, nodes, &f))
        if (!add_node(b, s, &f))
            return false;
    b->r->node = n;
    m = graph;
    for (int i = 0; !b->w->status && i < n->outputs; i++) {
        bool found = weft__onnx_field(&m, outputs, &bytes);
        if (found && nodes == GRAPH_NODE && !weft__onnx_fields(b->w, bytes, &f))
            return false;
        to[i] = found ? weft__onnx_find(b, s, nodes == GRAPH_NODE ? f.bytes[1] : bytes) : UNDEFINED;
        if (to[i] < 0)
            return weft__onnx_fail(b->r, "output %d is not computed by its graph", i);
    }
    return !b->w->status;
}

static bool add_initialisers(builder *b, const scope *s, weft__pb graph)
{
    record f;
    value v;
    while (weft__onnx_each(b->w, &graph, GRAPH_INITIALISER, &f)) {
        int at = weft__onnx_value(b->w, f.message, &v) ? weft__onnx_defined(b, s, f.bytes[8]) : -1;
        if (at < 0)
            return false;
        set_known(b, at, &v);
        b->m->slot[at].trained = v.stored && v.rank > 0;
    }
    return !b->w->status;
}

static bool add_branch(builder *b, const scope *s, const node *n, bool then, bool known, int *to)
{
    const char *name = then ? "then_branch" : "else_branch";
    const attribute *a = s->depth < DEEPEST ? weft__onnx_attribute(b->r, name, A_GRAPH) : NULL;
    scope in = *s;
    in.outer = s;
    in.number = ++b->scopes;
    in.depth++;
    if (!known) {
        in.guard = n->in[0];
        in.guard_is = then;
    }
    if (!a || !a->graph.next)
        return weft__onnx_fail(b->r, "has no %s, or is nested deeper than %d", name, DEEPEST);
    return add_initialisers(b, &in, a->graph) && inlined(b, &in, a->graph, GRAPH_NODE, GRAPH_OUTPUT, n, to);
}

/* An If becomes the nodes of its branches. Unless the condition is known, they run if it has their value, and
 * a last node selects their results. */
static bool add_if(builder *b, const scope *s, const record *f, node *n)
{
    int *in = weft__weights_memory(b->w, (1 + 2 * (size_t)n->outputs) * sizeof *in);
    if (!in)
        return false;
    if (n->inputs != 1 || n->in[0] < 0)
        return weft__onnx_fail(b->r, "has no condition");
    const value *condition = &b->m->known[n->in[0]];
    if (condition->number && condition->count == 1)
        return add_branch(b, s, n, *condition->number, true, in) && define_outputs(b, s, f, n, in);
    if (!add_branch(b, s, n, true, false, in + 1) ||
        !add_branch(b, s, n, false, false, in + 1 + n->outputs))
        return false;
    in[0] = n->in[0];
    n->in = in;
    n->inputs += 2 * n->outputs;
    return add_operation(b, s, f, n);
}

static bool add_call(builder *b, const scope *s, const record *f, node *n, weft__pb function)
{
    scope in = *s;
    weft__pb m = function, bytes;
    int *to = weft__weights_memory(b->w, (size_t)n->outputs * sizeof *to);
    if (s->depth >= DEEPEST)
        return weft__onnx_fail(b->r, "functions nested deeper than %d", DEEPEST);
    in.outer = NULL;
    in.number = ++b->scopes;
    in.depth++;
    in.caller = n;
    for (int i = 0; !b->w->status && weft__onnx_field(&m, FUNCTION_INPUT, &bytes); i++)
        weft__onnx_define(b, &in, bytes, i < n->inputs && n->in[i] >= 0 ? n->in[i] : MISSING);
    return !b->w->status && inlined(b, &in, function, FUNCTION_NODE, FUNCTION_OUTPUT, n, to) &&
           define_outputs(b, s, f, n, to);
}

static bool add_operation(builder *b, const scope *s, const record *f, node *n)
{
    n->operation = weft__onnx_operation(f->bytes[DOMAIN], f->bytes[OPERATOR]);
    n->guard = s->guard;
    n->guard_is = s->guard_is;
    n->version = s->version;
    if (!n->operation)
        note_unknown(b, f, n);
    if (!define_outputs(b, s, f, n, NULL))
        return false;
    if (!n->operation)
        return true;
    node *all = weft__weights_grown(b->w, b->m->node, b->m->nodes, sizeof *all);
    if (!all)
        return false;
    b->m->node = all;
    all[b->m->nodes] = *n;
    n = &all[b->m->nodes++];
    if (n->operation->operate == weft__onnx_recurrent)
        return *b->unknown || weft__onnx_layer(b->r, n, b->m->known);
    return fold(b, n);
}

/* Returns the function that a node calls; next NULL: none. */
static weft__pb function_of(const builder *b, const record *f)
{
    for (int i = 0; i < b->functions; i++)
        if (weft__onnx_same(b->function[i].name, f->bytes[OPERATOR]) &&
            weft__onnx_same(b->function[i].domain, f->bytes[DOMAIN]))
            return b->function[i].body;
    return (weft__pb){ 0 };
}

static bool add_any(builder *b, const scope *s, const record *f, node *n)
{
    weft__pb function = function_of(b, f);
    if (!connect(b, s, f, n) || !weft__onnx_attributes(b->w, f, n, s->caller))
        return false;
    if (weft__pb_is(f->bytes[OPERATOR], "If"))
        return add_if(b, s, f, n);
    if (function.next)
        return add_call(b, s, f, n, function);
    if (!weft__pb_is(f->bytes[OPERATOR], "Constant"))
        return add_operation(b, s, f, n);
    return define_outputs(b, s, f, n, NULL) &&
           (n->outputs < 1 || n->out[0] < 0 || set_constant(b, n, n->out[0]));
}

static bool add_node(builder *b, const scope *s, const record *f)
{
    node n = { 0 };
    b->r->node = &n;
    return add_any(b, s, f, &n) || weft__onnx_explain(b->r);
}

/* ---- the model ---- */
/* Lists the inputs that are not initialisers, or the outputs. */
static bool add_ends(builder *b, const scope *s, const record *graph, int number, struct ends *to)
{
    const bool inputs = number == GRAPH_INPUT;
    weft__pb m = graph->message;
    record f;
    int type;
    to->value = weft__weights_memory(b->w, ((size_t)graph->count[number] + 1) * sizeof *to->value);
    to->slot = weft__weights_memory(b->w, ((size_t)graph->count[number] + 1) * sizeof *to->slot);
    while (weft__onnx_each(b->w, &m, number, &f)) {
        weft_onnx_value *v = &to->value[to->n];
        if (!weft__onnx_describe(b->w, &f, v, &type))
            return false;
        int at = weft__onnx_find(b, s, f.bytes[1]);
        if (inputs && at >= 0)
            continue;
        if (inputs && weft__onnx_number(type) == WEFT__ODD)
            weft__weights_fail(b->w, WEFT_EFORMAT,
                               "input %.80s has the element type %d; expected a tensor of numbers", v->name,
                               type);
        if (!inputs && at < 0)
            weft__weights_fail(b->w, WEFT_EFORMAT, "output %.80s is not computed by a node", v->name);
        at = inputs ? weft__onnx_defined(b, s, f.bytes[1]) : at;
        if (inputs && at >= 0)
            b->m->slot[at].type = type;
        to->slot[to->n++] = at;
    }
    return !b->w->status;
}

static bool read_functions(builder *b, weft__pb model)
{
    record f;
    while (b->functions < MOST_FUNCTIONS && weft__onnx_each(b->w, &model, 25, &f))
        b->function[b->functions++] = (struct function){ f.message, f.bytes[1], f.bytes[10] };
    return !b->w->status;
}

/* Reads the version of the operators. */
static bool read_version(builder *b, weft__pb model, scope *s)
{
    record f;
    while (weft__onnx_each(b->w, &model, 8, &f))
        if (!weft__pb_size(f.bytes[1]) || weft__pb_is(f.bytes[1], "ai.onnx"))
            s->version = (int)f.value[2];
        else if (!s->version && weft__pb_is(f.bytes[1], "ai.onnx.ml"))
            s->version = LAST_OPSET; /* if the model has no operators of the main set */
    if (s->version < FIRST_OPSET || s->version > LAST_OPSET)
        weft__weights_fail(b->w, WEFT_EFORMAT, "opset %d; expected %d .. %d (export with opset_version=20)",
                           s->version, FIRST_OPSET, LAST_OPSET);
    return !b->w->status;
}

bool weft__onnx_graph(run *r)
{
    builder *b = weft__onnx_take(r, 1, sizeof *b);
    scope s = { .guard = -1 };
    record f, graph;
    if (!b)
        return false;
    b->r = r;
    b->m = r->model;
    b->w = r->model->weights;
    if (!weft__onnx_fields(b->w, (weft__pb){ b->w->image, b->w->image + b->w->size }, &f) ||
        !read_functions(b, f.message) || !read_version(b, f.message, &s) ||
        !weft__onnx_fields(b->w, f.bytes[7], &graph) || !add_initialisers(b, &s, graph.message) ||
        !add_ends(b, &s, &graph, GRAPH_INPUT, &b->m->in))
        return false;
    weft__pb m = graph.message;
    while (weft__onnx_each(b->w, &m, GRAPH_NODE, &f))
        if (!add_node(b, &s, &f))
            return false;
    if (*b->unknown)
        weft__weights_fail(b->w, WEFT_EFORMAT, "unknown operators: %s", b->unknown);
    return !b->w->status && add_ends(b, &s, &graph, GRAPH_OUTPUT, &b->m->out);
}
