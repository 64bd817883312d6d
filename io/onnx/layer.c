/* layer.c - recurrent nodes as layers. A node with the usual functions is one of weft's layers. Others, a GRU
 * with the reset gate before the product, an LSTM with peepholes, run by a cell of their own. */
#include <math.h>
#include <string.h>
#include "autograd/fused.h"
#include "io/onnx/model.h"
#include "rnn/api_cell.h"

/* ---- cells ---- */
enum { SIGMOID, TANH, RELU, AFFINE, LEAKY, THRESHOLDED, SCALED_TANH, HARD_SIGMOID, ELU, SOFTSIGN, SOFTPLUS };
static const struct {
    const char *name;
    int parameters;
    double alpha, beta;
} functions[] = {
    { "Sigmoid", 0, 0, 0 },    { "Tanh", 0, 0, 0 },          { "Relu", 0, 0, 0 },
    { "Affine", 2, 1, 0 },     { "LeakyRelu", 1, .01, 0 },   { "ThresholdedRelu", 1, 1, 0 },
    { "ScaledTanh", 2, 1, 1 }, { "HardSigmoid", 2, .2, .5 }, { "Elu", 1, 1, 0 },
    { "Softsign", 0, 0, 0 },   { "Softplus", 0, 0, 0 },
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static weft_tensor *plus(weft_tensor *x, double c) { return weft_add(x, weft_scalar(weft_context_of(x), c)); }

/* Applies function k of a layer. Like onnxruntime it clips sums of gates, not c. */
static weft_tensor *activate(const layer *l, int k, weft_tensor *x)
{
    double alpha = l->alpha[k], beta = l->beta[k];
    x = l->clip > 0 && k < 2 ? weft_clamp(x, -l->clip, l->clip) : x;
    int f = l->act[k];
    return f == SIGMOID      ? weft_sigmoid(x) :
           f == TANH         ? weft_tanh(x) :
           f == RELU         ? weft_relu(x) :
           f == AFFINE       ? plus(weft_scale(x, alpha), beta) :
           f == LEAKY        ? weft_leaky_relu(x, alpha) :
           f == THRESHOLDED  ? weft_mul(x, weft_greater(x, weft_scalar(weft_context_of(x), alpha))) :
           f == SCALED_TANH  ? weft_scale(weft_tanh(weft_scale(x, beta)), alpha) :
           f == HARD_SIGMOID ? weft_clamp(plus(weft_scale(x, alpha), beta), 0, 1) :
           f == ELU          ? weft_elu(x, alpha) :
           f == SOFTSIGN     ? weft_div(x, plus(weft_abs(x), 1)) :
                               weft_softplus(x);
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

static weft_tensor *peep(const layer *l, const weft_cell_input *in, weft_tensor *sum, weft_tensor *c, int k)
{
    return l->peepholes ? weft_add(sum, weft_mul(c, in->own[k])) : sum;
}

static weft_state lstm_step(const weft_cell_input *in, void *user)
{
    const layer *l = user;
    weft_tensor *sums = weft_add(in->x, affine(in->h, in->weight_hh, in->bias_hh));
    weft_tensor *i = activate(l, 0, peep(l, in, gate(in, sums, 0), in->c, 0));
    weft_tensor *f =
        l->input_forget ? plus(weft_neg(i), 1) : activate(l, 0, peep(l, in, gate(in, sums, 1), in->c, 1));
    weft_tensor *c = weft_add(weft_mul(f, in->c), weft_mul(i, activate(l, 1, gate(in, sums, 2))));
    weft_tensor *o = activate(l, 0, peep(l, in, gate(in, sums, 3), c, 2));
    return (weft_state){ weft_mul(o, activate(l, 2, c)), c };
}

static const weft_cell_parameter peepholes[] = { { "weight_ci", WEFT_CELL_VECTOR, 1, NULL },
                                                 { "weight_cf", WEFT_CELL_VECTOR, 1, NULL },
                                                 { "weight_co", WEFT_CELL_VECTOR, 1, NULL } };
static const weft_cell own_cells[] = {
    { .name = "onnx_rnn", .gates = 1, .step = rnn_step },
    { .name = "onnx_gru", .gate_names = "r z n", .gates = 3, .step = gru_step },
    { .name = "onnx_lstm",
      .gate_names = "i f g o",
      .gates = 4,
      .states = 2,
      .own = peepholes,
      .step = lstm_step },
};

/* ---- making a layer ---- */
/* Reads the functions of both directions, which must be the same. */
static void read_functions(run *r, layer *l)
{
    const attribute *names = weft__onnx_attribute(r, "activations", 8),
                    *alpha = weft__onnx_attribute(r, "activation_alpha", 6),
                    *beta = weft__onnx_attribute(r, "activation_beta", 6);
    int64_t a = 0, b = 0;
    for (int k = 0; k <= l->kind; k++)
        l->act[k] = k || !l->kind ? TANH : SIGMOID;
    for (int64_t i = 0; names && i < names->n; i++) {
        int f = 0, k = (int)(i % (l->kind + 1));
        while (f < FUNCTIONS && strcasecmp(names->texts[i], functions[f].name))
            f++;
        if (f == FUNCTIONS || (i > l->kind && l->act[k] != f)) {
            weft__onnx_fail(r, "activation %.40s; expected a known one, the same in both directions",
                            names->texts[i]);
            return;
        }
        bool reads_alpha = functions[f].parameters > 0 && alpha && a < alpha->n,
             reads_beta = functions[f].parameters > 1 && beta && b < beta->n;
        l->own = l->own || (i <= l->kind && f != l->act[k] && (l->kind || f != RELU));
        l->act[k] = f;
        l->alpha[k] = reads_alpha ? (double)alpha->floats[a++] : functions[f].alpha;
        l->beta[k] = reads_beta ? (double)beta->floats[b++] : functions[f].beta;
    }
}

static layer *new_layer(run *r, const value *in)
{
    const char *op = r->node->op, *direction = weft__onnx_string(r, "direction", "forward");
    layer *l = weft__weights_memory(r->model->weights, sizeof *l);
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
    l->parts = 2 + (l->has_bias ? 2 : 0) + (l->peepholes ? 3 : 0);
    l->own = l->peepholes || l->clip > 0 || l->input_forget || (*op == 'G' && !l->linear_before_reset);
    read_functions(r, l);
    return weft_ok(r->w) ? l : NULL;
}

/* The peepholes of one direction: the three parts of P [directions, 3 hidden]. */
static void read_peepholes(const weft__array *p, int direction, int64_t hidden, weft__array *part)
{
    static const int block[] = { 0, 2, 1 }; /* ONNX: i o f */
    for (int k = 0; k < 3; k++) {
        int64_t first = (direction * 3 + block[k]) * hidden;
        part[k] = *p;
        part[k].kind.rank = 1;
        part[k].kind.size[0] = hidden;
        part[k].stride[0] = 1;
        part[k].bytes = p->bytes + (size_t)first * weft__number_bytes(p->kind.type);
    }
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
            read_peepholes(&p, d, H, part + l->parts - 3);
    }
    if (!agree)
        weft__onnx_fail(r, "the shapes of W, R, B, P, direction and hidden_size do not agree");
    return weft_ok(r->w);
}

void weft__onnx_fill(run *r, const layer *l)
{
    for (int i = 0; weft_ok(r->w) && i < l->directions * l->parts; i++) {
        weft_tensor *x = weft_parameter_at(weft_rnn_module(l->rnn), i, NULL);
        weft__onnx_assign(r, x, &l->part[i]);
        weft__mark_changed(x);
    }
}

weft_rnn *weft__onnx_new_layer(weft_module *m, layer *l, const char *name)
{
    weft_rnn_opts o = { .input = l->input,
                        .hidden = l->hidden,
                        .bidirectional = l->directions == 2,
                        .no_bias = !l->has_bias,
                        .relu = !l->own && l->kind == 0 && l->act[0] == RELU };
    weft_cell cell = own_cells[l->kind];
    cell.own_count = l->peepholes ? 3 : 0;
    cell.user = l;
    return l->own       ? weft_rnn_of_cell(m, name, &cell, &o) :
           l->kind == 0 ? weft_elman_new(m, name, &o) :
           l->kind == 1 ? weft_gru_new(m, name, &o) :
                          weft_lstm_new(m, name, &o);
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
    if (!n->weights_are_known && read_layer(r, n, in)) {
        if (!n->layer->rnn)
            weft__onnx_make(r->model, n);
        weft__onnx_fill(r, n->layer);
    }
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
