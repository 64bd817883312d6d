/* layer.c - recurrent nodes as layers. A node with the usual functions is one of weft's layers. Others, a GRU
 * with the reset gate before the product, an LSTM with peepholes, run by a cell of their own. */
#include <string.h>
#include "autograd/fused.h"
#include "io/onnx/model.h"

/* ---- cells ---- */
/* Applies function k of a layer. Like onnxruntime it clips sums of gates, not c. */
static weft_tensor *activate(const layer *l, int k, weft_tensor *x)
{
    run r = { .w = weft_context_of(x), .node = &l->function[k], .left = SIZE_MAX };
    value out[8] = { { 0 } }, in[8] = { { 0 } };
    in->x = l->clip > 0 && k < 2 ? weft_clamp(x, -l->clip, l->clip) : x;
    *in = weft__onnx_reals(&r, in->x);
    r.node->operation->operate(&r, in, out);
    weft__pieces_end(&r.memory);
    return out->x;
}

static weft_tensor *affine(weft_tensor *h, weft_tensor *weight, weft_tensor *bias)
{
    weft_tensor *y = weft_matmul_with(h, false, weight, true);
    return bias ? weft_add(y, bias) : y;
}
static weft_tensor *gate(const weft_cell_input *in, weft_tensor *sums, int k)
{
    return weft_slice(sums, 1, k * in->hidden, (k + 1) * in->hidden);
}

static weft_state rnn_step(const weft_cell_input *in, void *user)
{
    weft_tensor *sums = weft_add(in->x, affine(in->h, in->weight_hh, in->bias_hh));
    return (weft_state){ activate(user, 0, sums), NULL };
}

static weft_state gru_step(const weft_cell_input *in, void *user)
{
    const layer *l = user;
    const int64_t H = in->hidden;
    weft_tensor *of_h = affine(in->h, in->weight_hh, in->bias_hh), *inner;
    weft_tensor *r = activate(l, 0, weft_add(gate(in, in->x, 0), gate(in, of_h, 0)));
    weft_tensor *z = activate(l, 0, weft_add(gate(in, in->x, 1), gate(in, of_h, 1)));
    if (l->linear_before_reset)
        inner = weft_mul(r, gate(in, of_h, 2));
    else
        inner = affine(weft_mul(r, in->h), weft_slice(in->weight_hh, 0, 2 * H, 3 * H),
                       in->bias_hh ? weft_slice(in->bias_hh, 0, 2 * H, 3 * H) : NULL);
    weft_tensor *n = activate(l, 1, weft_add(gate(in, in->x, 2), inner));
    return (weft_state){ weft_add(n, weft_mul(z, weft_sub(in->h, n))), NULL };
}

/* The gate of ONNX's order i, o, f with its peephole. */
static weft_tensor *peep(const layer *l, const weft_cell_input *in, weft_tensor *sum, weft_tensor *c, int k)
{
    const int64_t H = in->hidden;
    return l->peepholes ? weft_add(sum, weft_mul(c, weft_slice(in->own[0], 0, k * H, (k + 1) * H))) : sum;
}

static weft_state lstm_step(const weft_cell_input *in, void *user)
{
    const layer *l = user;
    weft_tensor *sums = weft_add(in->x, affine(in->h, in->weight_hh, in->bias_hh));
    weft_tensor *i = activate(l, 0, peep(l, in, gate(in, sums, 0), in->c, 0));
    weft_tensor *f = l->input_forget ? weft_sub(weft_scalar(weft_context_of(i), 1), i) :
                                       activate(l, 0, peep(l, in, gate(in, sums, 1), in->c, 2));
    weft_tensor *c = weft_add(weft_mul(f, in->c), weft_mul(i, activate(l, 1, gate(in, sums, 2))));
    weft_tensor *o = activate(l, 0, peep(l, in, gate(in, sums, 3), c, 1));
    return (weft_state){ weft_mul(o, activate(l, 2, c)), c };
}

static const weft_cell_parameter peepholes = { "weight_peephole", WEFT_CELL_VECTOR, 3, NULL };
static const weft_cell own_cells[] = {
    { .name = "onnx_rnn", .gates = 1, .step = rnn_step },
    { .name = "onnx_gru", .gate_names = "r z n", .gates = 3, .step = gru_step },
    { .name = "onnx_lstm", .gate_names = "i f g o", .gates = 4, .states = 2, .own = &peepholes,
      .step = lstm_step },
};

/* ---- making a layer ---- */
/* Reads function i of both directions, which must be the same. numbers: counts of those that were read from
 * both lists. */
static bool read_function(run *r, layer *l, int i, int64_t numbers[2])
{
    static const char *const lists[] = { "activation_alpha", "activation_beta" };
    const attribute *names = weft__onnx_attribute(r, "activations", 8);
    const int k = i % (l->kind + 1);
    const char *usual = k || !l->kind ? "Tanh" : "Sigmoid",
               *name = names && i < names->n ? names->texts[i] : usual;
    const unsigned char *text = (const unsigned char *)name;
    const operation *o = weft__onnx_operation((weft__pb){ 0 }, (weft__pb){ text, text + strlen(name) });
    const bool hard = !strcmp(name, "HardSigmoid");
    const int parameters = hard ? 2 : !strcmp(name, "LeakyRelu") || !strcmp(name, "Elu");
    node *f = &l->function[k];
    if (!o || o->inputs != 1 || (f->op && strcmp(f->op, name)))
        return weft__onnx_fail(r, "activation %.40s; expected one that is known, equal in both directions",
                               name);
    *f = (node){ .op = name, .operation = o, .attribute = l->parameter[k] };
    for (int p = 0; p < parameters; p++) {
        const attribute *list = weft__onnx_attribute(r, lists[p], 6);
        if (list && numbers[p] < list->n)
            f->attribute[f->attributes++] =
                (attribute){ p ? "beta" : "alpha", .type = 1, .f = (float)list->floats[numbers[p]++] };
    }
    l->relu = !l->kind && !strcmp(name, "Relu");
    l->own = l->own || (strcmp(name, usual) && !l->relu);
    return true;
}

static layer *new_layer(run *r, const value *in)
{
    const char *op = r->node->op, *direction = weft__onnx_string(r, "direction", "forward");
    layer *l = weft__weights_memory(r->model->weights, sizeof *l);
    int64_t numbers[2] = { 0 };
    if (!l)
        return NULL;
    *l = (layer){ .hidden = in[2].size[2],
                  .input = in[1].size[2],
                  .directions = !strcmp(direction, "bidirectional") ? 2 : 1,
                  .reversed = !strcmp(direction, "reverse"),
                  .kind = *op == 'R' ? 0 : *op == 'G' ? 1 : 2,
                  .has_bias = in[3].type,
                  .peepholes = *op == 'L' && in[7].type,
                  .clip = weft__onnx_float(r, "clip", 0),
                  .input_forget = weft__onnx_int(r, "input_forget", 0),
                  .linear_before_reset = weft__onnx_int(r, "linear_before_reset", 0) };
    l->parts = 2 + (l->has_bias ? 2 : 0) + (l->peepholes ? 1 : 0);
    l->own = l->peepholes || l->clip > 0 || l->input_forget || (*op == 'G' && !l->linear_before_reset);
    for (int i = 0; weft_ok(r->w) && i < (l->kind + 1) * l->directions; i++)
        read_function(r, l, i, numbers);
    return weft_ok(r->w) ? l : NULL;
}

/* Sets l->part to the weights. */
static bool read_weights(run *r, layer *l, const value *in)
{
    const weft__onnx_cell *cell = weft__onnx_cell_of(r->node->op);
    weft__array w = weft__onnx_array(r, in + 1), h = weft__onnx_array(r, in + 2),
                b = weft__onnx_array(r, in + 3), p = weft__onnx_array(r, in + 7);
    const int64_t D = l->directions, H = l->hidden;
    bool agree = w.kind.size[0] == D && weft__onnx_int(r, "hidden_size", H) == H &&
                 (!l->peepholes ||
                  (p.kind.rank == 2 && p.kind.size[0] == D && p.kind.size[1] == 3 * H));
    for (int d = 0; weft_ok(r->w) && agree && d < D; d++) {
        weft__array *part = &l->part[d * l->parts];
        agree = weft__onnx_direction(cell, &w, &h, l->has_bias ? &b : NULL, d, part);
        if (l->peepholes)
            part[l->parts - 1] = weft__onnx_part(&p, d, 0, 3 * H, &(weft__onnx_cell){ .gates = 1 });
    }
    if (!agree)
        weft__onnx_fail(r, "the shapes of W, R, B, P, direction and hidden_size do not agree");
    return weft_ok(r->w);
}

static weft_rnn *new_rnn(weft_module *m, layer *l, const char *name)
{
    weft_rnn_opts o = { .input = l->input,
                        .hidden = l->hidden,
                        .bidirectional = l->directions == 2,
                        .no_bias = !l->has_bias,
                        .relu = !l->own && l->relu };
    weft_cell cell = own_cells[l->kind];
    cell.own_count = l->peepholes;
    cell.user = l;
    return l->own       ? weft_rnn_of_cell(m, name, &cell, &o) :
           l->kind == 0 ? weft_elman_new(m, name, &o) :
           l->kind == 1 ? weft_gru_new(m, name, &o) :
                          weft_lstm_new(m, name, &o);
}

void weft__onnx_make(run *r, const node *n)
{
    layer *l = n->layer;
    char name[64];
    if (!l->rnn) {
        weft__onnx_name(r->model, *n->name == '/' ? n->name + 1 : *n->name ? n->name : "layer", name);
        weft_rnn *rnn = new_rnn(r->model->module, l, name);
        l->rnn = weft_ok(r->w) ? rnn : NULL;
    }
    for (int i = 0; weft_ok(r->w) && i < l->directions * l->parts; i++) {
        weft_tensor *x = weft_parameter_at(weft_rnn_module(l->rnn), i, NULL);
        weft__onnx_assign(r, x, &l->part[i]);
        weft__mark_changed(x);
    }
}

static bool read_layer(run *r, node *n, const value *in)
{
    n->layer = n->layer ? n->layer : new_layer(r, in);
    return n->layer && read_weights(r, n->layer, in);
}

bool weft__onnx_layer(run *r, node *n, const value *known)
{
    value in[8] = { { 0 } };
    r->node = n;
    n->weights_are_known = n->inputs > 2;
    for (int i = 1; i < n->inputs && i < 8; i++)
        if (n->in[i] >= 0) {
            in[i] = known[n->in[i]];
            n->weights_are_known = n->weights_are_known && (in[i].type || (i > 3 && i < 7));
        }
    return !n->weights_are_known || read_layer(r, n, in);
}

/* ---- running it ---- */
/* Exchanges the first two axes. */
static weft_tensor *exchanged(weft_tensor *x, bool really)
{
    return really && x ? weft_transpose(x, 0, 1) : x;
}

static layer *layer_of(run *r, const value *in)
{
    node *n = (node *)r->node;
    if (!n->weights_are_known && read_layer(r, n, in))
        weft__onnx_make(r, n);
    return weft_ok(r->w) ? n->layer : NULL;
}

/* Packs x [n, T, F] by sequence_lens. Returns x if all sequences have the length T. */
static weft_tensor *packed(run *r, weft_tensor *x, const value *lens, weft_lengths *lengths)
{
    int64_t n = weft_size(x, 0), T = weft_size(x, 1), shorter = 0;
    int32_t *len = weft__onnx_take(r, n, sizeof *len);
    if (!lens->type)
        return x;
    if (lens->x || lens->count != n)
        weft__onnx_fail(r, "%lld sequence_lens for %lld sequences", (long long)lens->count, (long long)n);
    for (int64_t i = 0; weft_ok(r->w) && i < n; i++) {
        int64_t l = lens->number[i];
        len[i] = l < 0 || l > T ? -1 : (int32_t)l; /* weft refuses -1 */
        shorter += len[i] < T;
    }
    *lengths = (weft_lengths){ .n = n, .len = len };
    return shorter && weft_ok(r->w) ? weft_pack_padded_sequence(x, lengths, WEFT_ALIGN_LEFT) : x;
}

/* Reverses the data of each row of [n, T, ..], for a layer of the reverse direction only. */
static weft_tensor *flipped(weft_tensor *x) { return weft_flip(x, weft_lengths_of(x).len ? 0 : 1); }

/* The last state of a sequence of length 0 is 0, as in onnxruntime; in weft it is the first state. */
static weft_tensor *without_empty(run *r, weft_tensor *last, const weft_lengths *lengths)
{
    weft_real *kept = weft__onnx_take(r, lengths->n, sizeof *kept);
    bool empty = false;
    for (int64_t i = 0; kept && i < lengths->n; i++) {
        kept[i] = lengths->len[i] > 0;
        empty = empty || !lengths->len[i];
    }
    return empty && last ? weft_mul(last, weft_reals(r->w, kept, WEFT_SHAPE(lengths->n, 1))) : last;
}

void weft__onnx_recurrent(run *r, const value *in, value *out)
{
    bool batch_first = weft__onnx_int(r, "layout", 0);
    layer *l = layer_of(r, in);
    weft_lengths lengths = { 0 };
    if (!l || in->rank != 3 || !in->x) {
        weft__onnx_fail(r, "X of rank %d; expected reals of rank 3", in->rank);
        return;
    }
    weft_tensor *x = exchanged(in->x, !batch_first);
    int64_t n = weft_size(x, 0), T = weft_size(x, 1);
    weft_state first = { exchanged(in[5].x, batch_first), exchanged(in[6].x, batch_first) };
    x = packed(r, x, &in[4], &lengths);
    weft_rnn_out y = weft_rnn_run(l->rnn, l->reversed ? flipped(x) : x, first);
    y.y = l->reversed ? flipped(y.y) : y.y;
    if (weft_lengths_of(y.y).len)
        y.y = weft_pad_packed_sequence(y.y, T, 0, WEFT_ALIGN_LEFT);
    y.y = weft_reshape(y.y, WEFT_SHAPE(n, T, l->directions, l->hidden));
    y.y = batch_first ? y.y : weft_permute(y.y, (int[]){ 1, 2, 0, 3 });
    y.last.h = without_empty(r, y.last.h, &lengths);
    y.last.c = without_empty(r, y.last.c, &lengths);
    out[0] = weft__onnx_reals(r, y.y);
    out[1] = weft__onnx_reals(r, exchanged(y.last.h, batch_first));
    if (y.last.c)
        out[2] = weft__onnx_reals(r, exchanged(y.last.c, batch_first));
}

const operation weft__onnx_layers[] = {
    { "LSTM", weft__onnx_recurrent, .inputs = -1 }, { "GRU", weft__onnx_recurrent, .inputs = -1 },
    { "RNN", weft__onnx_recurrent, .inputs = -1 },
    { .name = NULL },
};
