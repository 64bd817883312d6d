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
typedef struct {
    weft__pb message, name, op, domain;
    int inputs, outputs;
} fields;

static bool read_fields(builder *b, weft__pb message, fields *f)
{
    weft__pb m = message;
    *f = (fields){ .message = message };
    for (weft__pb_field x; weft__pb_next(&m, &x);) {
        f->inputs += x.number == 1;
        f->outputs += x.number == 2;
        *(x.number == 3 ? &f->name :
          x.number == 4 ? &f->op :
          x.number == 7 ? &f->domain :
                          &(weft__pb){ 0 }) = x.bytes;
    }
    return m.next == m.end || weft__onnx_damaged(b->w, m);
}

/* Finds the slots of all inputs. */
static bool connect(builder *b, const scope *s, const fields *f, node *n)
{
    n->in = weft__weights_memory(b->w, ((size_t)f->inputs + (size_t)f->outputs + 1) * sizeof *n->in);
    n->out = n->in ? n->in + f->inputs : NULL;
    n->name = weft__onnx_text(b->w, f->name);
    n->op = weft__onnx_text(b->w, f->op);
    weft__pb m = f->message;
    for (weft__pb_field x; !b->w->status && weft__pb_next(&m, &x);) {
        if (x.number != 1)
            continue;
        int at = weft__pb_size(x.bytes) ? weft__onnx_find(b, s, x.bytes) : MISSING;
        n->in[n->inputs++] = at < 0 ? -1 : at;
        if (at == UNDEFINED)
            weft__weights_fail(b->w, WEFT_EFORMAT,
                               "node %.100s (%s): input %.*s is not computed before it; expected "
                               "nodes in the order of execution, without cycles",
                               n->name, n->op,
                               (int)(weft__pb_size(x.bytes) < 100 ? weft__pb_size(x.bytes) : 100),
                               (const char *)x.bytes.next);
    }
    return !b->w->status;
}

/* Gives the outputs of a node their slots. from: those of an inlined graph, or NULL: new ones. */
static bool define_outputs(builder *b, const scope *s, const fields *f, node *n, const int *from, int count)
{
    weft__pb m = f->message;
    for (weft__pb_field x; weft__pb_next(&m, &x);) {
        if (x.number != 2)
            continue;
        int at = -1, i = n->outputs++;
        bool named = weft__pb_size(x.bytes);
        if (named && from && i < count)
            at = weft__onnx_define(b, s, x.bytes, from[i]) ? from[i] : -1;
        else if (named && !from)
            at = weft__onnx_defined(b, s, x.bytes);
        else if (named)
            weft__weights_fail(b->w, WEFT_EFORMAT, "node %.100s (%s): output %d is not computed", n->name,
                               n->op, i);
        n->out[i] = at;
    }
    return !b->w->status;
}

static void note_unknown(builder *b, const fields *f, const node *n)
{
    char domain[48] = "ai.onnx";
    if (weft__pb_size(f->domain) && weft__pb_size(f->domain) < sizeof domain) {
        memcpy(domain, f->domain.next, weft__pb_size(f->domain));
        domain[weft__pb_size(f->domain)] = 0;
    }
    char text[160];
    snprintf(text, sizeof text, "%s%s of %s (node %.60s)", b->unknown_count ? ", " : "", n->op, domain,
             n->name);
    if (b->unknown_count++ < 100 && b->unknown_length + strlen(text) < sizeof b->unknown &&
        !strstr(b->unknown, text + 2))
        b->unknown_length += (size_t)snprintf(b->unknown + b->unknown_length,
                                              sizeof b->unknown - b->unknown_length, "%s", text);
}

/* Computes a node whose inputs are known. */
static bool fold(builder *b, const node *n)
{
    const weft_onnx *m = b->m;
    bool known = n->inputs > 0 && n->operation->inputs >= 0 && !b->unknown_count, trained = false;
    for (int i = 0; i < n->inputs; i++)
        if (n->in[i] >= 0) {
            known = known && m->known[n->in[i]].type;
            trained = trained || m->slot[n->in[i]].trained;
        }
    for (int i = 0; known && i < n->inputs; i++)
        if (n->in[i] >= 0 && !weft__onnx_load(b, n->in[i]))
            return false;
    for (int i = 0; known && i < n->inputs; i++)
        b->work += n->in[i] >= 0 ? m->known[n->in[i]].count : 0;
    known = known && b->work < MOST_WORK + 4 * (int64_t)b->w->size; /* the rest is computed in each run */
    if (known && !weft__onnx_step(b->r, n, m->known))
        return false;
    for (int i = 0; known && i < n->outputs; i++)
        b->work += n->out[i] >= 0 ? m->known[n->out[i]].count : 0;
    for (int i = 0; i < n->outputs; i++)
        if (n->out[i] >= 0)
            m->slot[n->out[i]].trained = trained && (!known || m->known[n->out[i]].x);
    return true;
}

static bool add_node(builder *b, const scope *s, weft__pb message);
static bool add_operation(builder *b, const scope *s, const fields *f, node *n);

/* The slots of the outputs of an inlined graph. */
typedef struct {
    int *slot;
    int64_t n, room;
} ends;

/* Adds the nodes of a graph or a function, and appends its outputs. nodes, outputs: numbers of the fields. */
static bool inlined(builder *b, const scope *s, weft__pb graph, int nodes, int outputs, const node *n,
                    ends *to)
{
    weft__pb m = graph, name;
    for (weft__pb_field x; weft__pb_next(&m, &x);)
        if (x.number == nodes && !add_node(b, s, x.bytes))
            return false;
    for (weft__pb_field x; weft__pb_next(&graph, &x);) {
        if (x.number != outputs)
            continue;
        name = x.bytes;
        for (weft__pb_field y; nodes == 1 && weft__pb_next(&x.bytes, &y);)
            name = y.number == 1 ? y.bytes : name;
        to->slot = weft__onnx_grown(b->w, to->slot, to->n, &to->room, sizeof *to->slot);
        int at = to->slot ? weft__onnx_find(b, s, name) : -1;
        if (at < 0) {
            weft__weights_fail(b->w, WEFT_EFORMAT, "node %.100s (%s): an output of its graph is not computed",
                               n->name, n->op);
            return false;
        }
        to->slot[to->n++] = at;
    }
    return true;
}

static bool add_graph_initialisers(builder *b, const scope *s, weft__pb graph)
{
    for (weft__pb_field x; !b->w->status && weft__pb_next(&graph, &x);)
        if (x.number == 5)
            weft__onnx_initialiser(b, s, x.bytes);
    return !b->w->status;
}

static bool add_branch(builder *b, const scope *s, node *n, bool then, bool known, ends *to)
{
    const char *name = then ? "then_branch" : "else_branch";
    scope in = *s;
    in.outer = s;
    in.number = ++b->scopes;
    in.depth++;
    in.guard = known ? s->guard : n->in[0];
    in.guard_is = known ? s->guard_is : then;
    for (int i = 0; i < n->attributes && s->depth < DEEPEST; i++)
        if (!strcmp(n->attribute[i].name, name) && n->attribute[i].graph.next)
            return add_graph_initialisers(b, &in, n->attribute[i].graph) &&
                   inlined(b, &in, n->attribute[i].graph, 1, 12, n, to);
    weft__weights_fail(b->w, WEFT_EFORMAT, "node %.100s (If) has no %s, or is nested deeper than %d", n->name,
                       name, DEEPEST);
    return false;
}

/* An If becomes the nodes of its branches. Unless the condition is known, they run if it has their value, and
 * a last node selects their results. */
static bool add_if(builder *b, const scope *s, const fields *f, node *n)
{
    ends both = { 0 };
    if (n->inputs != 1 || n->in[0] < 0) {
        weft__weights_fail(b->w, WEFT_EFORMAT, "node %.100s (If) has no condition", n->name);
        return false;
    }
    const value *condition = &b->m->known[n->in[0]];
    if (condition->number && condition->count == 1)
        return add_branch(b, s, n, *condition->number, true, &both) &&
               define_outputs(b, s, f, n, both.slot, (int)both.n);
    if (!add_branch(b, s, n, true, false, &both) || !add_branch(b, s, n, false, false, &both))
        return false;
    int *in = weft__weights_memory(b->w, (1 + (size_t)both.n) * sizeof *in);
    if (!in || both.n != 2 * f->outputs) {
        weft__weights_fail(b->w, WEFT_EFORMAT, "node %.100s (If): its branches have other outputs", n->name);
        return false;
    }
    in[0] = n->in[0];
    memcpy(in + 1, both.slot, (size_t)both.n * sizeof *in);
    n->in = in;
    n->inputs += (int)both.n;
    return add_operation(b, s, f, n);
}

static void read_opset(weft__pb m, scope *s)
{
    weft__pb domain = { 0 };
    int64_t version = 0;
    for (weft__pb_field f; weft__pb_next(&m, &f);)
        if (f.number == 1)
            domain = f.bytes;
        else if (f.number == 2)
            version = (int64_t)f.value;
    if (!weft__pb_size(domain) || weft__pb_is(domain, "ai.onnx"))
        s->version[MAIN] = version;
    else if (weft__pb_is(domain, "ai.onnx.ml"))
        s->version[LEARNING] = version;
}

static bool add_call(builder *b, const scope *s, const fields *f, node *n, weft__pb function)
{
    scope in = { .number = ++b->scopes,
                 .depth = s->depth + 1,
                 .guard = s->guard,
                 .guard_is = s->guard_is,
                 .version = { s->version[0], s->version[1] },
                 .caller = n };
    int i = 0;
    if (s->depth >= DEEPEST) {
        weft__weights_fail(b->w, WEFT_EFORMAT, "node %.100s (%s): functions nested deeper than %d", n->name,
                           n->op, DEEPEST);
        return false;
    }
    weft__pb m = function;
    for (weft__pb_field x; !b->w->status && weft__pb_next(&m, &x);) {
        if (x.number == 9)
            read_opset(x.bytes, &in);
        else if (x.number == 4) {
            weft__onnx_define(b, &in, x.bytes, i < n->inputs && n->in[i] >= 0 ? n->in[i] : MISSING);
            i++;
        }
    }
    ends to = { 0 };
    return !b->w->status && inlined(b, &in, function, 7, 5, n, &to) &&
           define_outputs(b, s, f, n, to.slot, (int)to.n);
}

static bool add_operation(builder *b, const scope *s, const fields *f, node *n)
{
    n->operation = weft__onnx_operation(f->domain, f->op);
    n->guard = s->guard;
    n->guard_is = s->guard_is;
    n->version = (int)s->version[weft__pb_is(f->domain, "ai.onnx.ml")];
    if (!n->operation)
        note_unknown(b, f, n);
    if (!define_outputs(b, s, f, n, NULL, 0))
        return false;
    if (!n->operation)
        return true;
    node *all = weft__onnx_grown(b->w, b->m->node, b->m->nodes, &b->node_room, sizeof *all);
    if (!all)
        return false;
    b->m->node = all;
    all[b->m->nodes] = *n;
    n = &all[b->m->nodes++];
    if (n->operation->operate == weft__onnx_recurrent)
        return b->unknown_count || weft__onnx_layer(b->r, n, b->m->known);
    return fold(b, n);
}

static bool add_node(builder *b, const scope *s, weft__pb message)
{
    fields f;
    node n = { 0 };
    if (!read_fields(b, message, &f) || !connect(b, s, &f, &n) ||
        !weft__onnx_attributes(b->w, message, &n, s->caller))
        return false;
    if (weft__pb_is(f.op, "If"))
        return add_if(b, s, &f, &n);
    weft__pb function = weft__onnx_function(b, f.domain, f.op);
    if (function.next)
        return add_call(b, s, &f, &n, function);
    if (!weft__pb_is(f.op, "Constant"))
        return add_operation(b, s, &f, &n);
    if (!define_outputs(b, s, &f, &n, NULL, 0))
        return false;
    return n.outputs < 1 || n.out[0] < 0 || weft__onnx_constant(b, &n, &b->m->known[n.out[0]]);
}

/* ---- the model ---- */
/* Lists the inputs that are not initialisers, or the outputs. */
static bool add_ends(builder *b, const scope *s, weft__pb graph, bool inputs)
{
    weft_onnx *m = b->m;
    weft_onnx_value *list = NULL, one;
    int *slots = NULL, *types = NULL, type;
    int64_t n = 0, room[3] = { 0 };
    weft__pb name = { 0 };
    for (weft__pb_field x; weft__pb_next(&graph, &x);) {
        if (x.number != (inputs ? 11 : 12))
            continue;
        if (!weft__onnx_describe(b->w, x.bytes, &one, &name, &type))
            return false;
        int at = weft__onnx_find(b, s, name);
        if (inputs && at >= 0)
            continue;
        if (inputs && weft__onnx_number(type) == WEFT__ODD)
            weft__weights_fail(b->w, WEFT_EFORMAT,
                               "input %.80s has the element type %d; expected a tensor of numbers", one.name,
                               type);
        at = inputs ? weft__onnx_defined(b, s, name) : at;
        if (at < 0)
            weft__weights_fail(b->w, WEFT_EFORMAT, "output %.80s is not computed by a node", one.name);
        list = weft__onnx_grown(b->w, list, n, &room[0], sizeof *list);
        slots = weft__onnx_grown(b->w, slots, n, &room[1], sizeof *slots);
        types = weft__onnx_grown(b->w, types, n, &room[2], sizeof *types);
        if (!list || !slots || !types || b->w->status)
            return false;
        list[n] = one;
        slots[n] = at;
        types[n++] = type;
    }
    *(inputs ? &m->input : &m->output) = list;
    *(inputs ? &m->inputs : &m->outputs) = n;
    *(inputs ? &m->in : &m->out) = slots;
    m->input_type = inputs ? types : m->input_type;
    return true;
}

static bool read_model(builder *b, scope *s, weft__pb *graph)
{
    weft__pb m = { b->w->image, b->w->image + b->w->size };
    for (weft__pb_field f; weft__pb_next(&m, &f);)
        if (f.number == 7)
            *graph = f.bytes;
        else if (f.number == 8)
            read_opset(f.bytes, s);
        else if (f.number == 25)
            weft__onnx_note_function(b, f.bytes);
    if (!s->version[MAIN] && s->version[LEARNING])
        s->version[MAIN] = LAST_OPSET; /* a model without operators of that set */
    if (s->version[MAIN] < FIRST_OPSET || s->version[MAIN] > LAST_OPSET)
        weft__weights_fail(b->w, WEFT_EFORMAT, "opset %lld; expected %d .. %d (export with opset_version=20)",
                           (long long)s->version[MAIN], FIRST_OPSET, LAST_OPSET);
    return !b->w->status;
}

static bool build(builder *b)
{
    scope s = { .guard = -1 };
    weft__pb graph = { 0 };
    if (!read_model(b, &s, &graph) || !add_graph_initialisers(b, &s, graph) || !add_ends(b, &s, graph, true))
        return false;
    weft__pb m = graph;
    for (weft__pb_field x; weft__pb_next(&m, &x);)
        if (x.number == 1 && !add_node(b, &s, x.bytes))
            return false;
    if (b->unknown_count)
        weft__weights_fail(b->w, WEFT_EFORMAT, "unknown operators: %s", b->unknown);
    return !b->w->status && add_ends(b, &s, graph, false);
}

bool weft__onnx_graph(run *r)
{
    builder *b = weft__onnx_take(r, 1, sizeof *b);
    if (!b)
        return false;
    b->r = r;
    b->m = r->model;
    b->w = r->model->weights;
    return build(b);
}
