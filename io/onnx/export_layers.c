/* export_layers.c - translates linear layers, norms, recurrent layers and their states, and attention. */
#include <string.h>
#include "io/onnx/export.h"
#include "nn/recurrent.h"

/* ---- linear layers ---- */
TRANSLATOR(linear)
{
    const weft__linear_part_of *a = c->attributes;
    const char *weight = input(x, 1)->name, *bias = c->n > 2 ? input(x, 2)->name : NULL;
    const long long from = a->from, to = from + a->rows;
    const bool grouped = c->x[1]->f.rank == 3;
    if (axes_of(y, y->rank - 1) != 1)
        weft__ex_refuse(x, "a product along the rows of a batch");
    if (a->rows) {
        weight = NODES(x, "Slice(%s, [%lld], [%lld], [0])", weight, from, to);
        bias = bias ? NODES(x, "Slice(%s, [%lld], [%lld], [0])", bias, from, to) : NULL;
    }
    static const char group[] = "Squeeze(MatMul(Unsqueeze(@0, [-2]), Transpose(%s, perm=[0, 2, 1])), [-2])";
    const char *name = NODES(x, grouped ? group : "MatMul(@0, Transpose(%s, perm=[1, 0]))", weight);
    name = bias ? NODES(x, "Add(%s, %s)", name, bias) : name;
    y->dim[y->axes - 1].n = c->y[0]->f.size[c->y[0]->f.rank - 1];
    return weft__ex_function(x, name, a->f, (double)a->p, 0);
}

/* a sigmoid(b) for input [a, b] */
TRANSLATOR(glu)
{
    const long long half = y->dim[y->axes - 1].n /= 2;
    return NODES(x, "Mul(Slice(@0, [0], [%lld], [-1]), Sigmoid(Slice(@0, [%lld], [%lld], [-1])))", half, half,
                 2 * half);
}

/* gain: input with the scale; the shift follows, except for an RMS norm. */
static const char *norm_of(graph *x, const char *name, int64_t size, int gain)
{
    const weft__norm *a = x->call->attributes;
    const bool scaled = gain < x->call->n;
    const char *scale = scaled ? input(x, gain)->name : NULL;
    const char *shift = scaled && !a->rms ? input(x, gain + 1)->name : NULL;
    const double eps = (double)a->eps;
    if (a->rms) {
        name = NODES(x, "Div(%s, Sqrt(Add(ReduceMean(Mul($, $), axes=[-1]), %g)))", name, eps);
        return scaled ? NODES(x, "Mul(%s, %s)", name, scale) : name;
    }
    if (scaled && !a->grouped)
        return NODES(x, "LayerNormalization(%s, %s, %s, axis=-1, epsilon=%g)", name, scale, shift, eps);
    name = NODES(x, "LayerNormalization(%s, Expand(1., [%lld]), axis=-1, epsilon=%g)", name, (long long)size,
                 eps);
    return scaled ? NODES(x, "Add(Mul(%s, %s), %s)", name, scale, shift) : name;
}
TRANSLATOR(layer_norm)
{
    return norm_of(x, input(x, 0)->name, y->dim[y->axes - 1].n, 1);
}
TRANSLATOR(gate_norm)
{
    const char *gate = glu(x, c, y);
    *y = like(input(x, 1), NULL);
    return norm_of(x, NODES(x, "Add(%s, @1)", gate), y->dim[y->axes - 1].n, 2);
}

/* ---- recurrent layers ---- */
/* gates: those of ONNX. from: weft's gate for each of them. cifg: gate i is 1 - f, so its weights are -f.
 * node: takes the weights, the lengths, first states, width and direction. */
typedef struct cell { const char *name, *node; bool cifg; int gates, from[4]; } cell;
static const cell *cell_of(const weft_op *op)
{
#define LAYER(op, more) op "(@0, %s, %s, %s, %s, %s, %s, hidden_size=%lld, direction=%s" more ")"
    static const cell cells[] = { { "rnn_tanh", LAYER("RNN:2", ""), false, 1, { 0 } },
                                  { "rnn_relu", LAYER("RNN:2", ", activations=[Relu]"), false, 1, { 0 } },
                                  { "gru", LAYER("GRU:2", ", linear_before_reset=1"), false, 3, { 1, 0, 2 } },
                                  { "lstm", LAYER("LSTM:3", ""), false, 4, { 0, 3, 1, 2 } },
                                  { "cifg", LAYER("LSTM:3", ""), true, 4, { 0, 2, 0, 1 } } };
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        if (!strcmp(cells[i].name, op->name))
            return &cells[i];
    return NULL;
}
bool weft__ex_is_recurrent(const weft_call *c) { return cell_of(c->op); }

/* Copies the gates of a weight or bias to `to` in the order of ONNX. Returns the end of the copy. */
static float *copy_gates(graph *x, const cell *k, const weft_tensor *t, float *to)
{
    const real *numbers = weft__ex_read(x, t);
    const size_t block = (size_t)weft__elements(&t->f) / (size_t)(k->gates - k->cifg);
    for (int g = 0; g < k->gates; g++)
        for (size_t i = 0; i < block; i++)
            *to++ = (float)numbers[(size_t)k->from[g] * block + i] * (k->cifg && g == 0 ? -1 : 1);
    return to;
}

/* Returns the name of a weight, [1, gates, columns], or of both biases, [1, 2 gates]. Each is made once:
 * "rnn.weight_ih_l0" becomes "rnn.W_l0". */
static const char *packed_weight(graph *x, const cell *layer, const weft_call *c, int k)
{
    const weft_tensor *a = input_of(c, k);
    value *place = a ? weft__ex_place(x, a) : NULL;
    const bool bias = k == WEFT__B_IH;
    if (!a || place->last)
        return place ? place->last : NULL;
    /* 3: two biases, or a gate more */
    float *numbers = weft__ex_memory(x, (3 * (size_t)weft__elements(&a->f) + 1) * sizeof *numbers);
    float *end = copy_gates(x, layer, a, numbers);
    if (bias)
        end = copy_gates(x, layer, input_of(c, k + 1), end);
    const char *path = weft__node_of(a)->path, *dot = path ? strrchr(path, '.') : NULL, *name = NULL;
    if (dot && strlen(dot) > 9)
        name = weft__ex_text(x, "%.*s%c%s", (int)(dot + 1 - path) - (int)x->root, path + x->root,
                             bias ? 'B' : k == WEFT__W_IH ? 'W' : 'R', dot + (bias ? 8 : 10));
    if (name)
        weft__ex_reserve(x, name);
    const int64_t columns = bias ? 1 : a->f.size[1], shape[] = { 1, (end - numbers) / columns, columns };
    return place->last = weft__ex_initializer(x, name, FLOAT, bias ? 2 : 3, shape, numbers,
                                              (size_t)(end - numbers) * sizeof *numbers);
}

static void run_direction(graph *x, const cell *k, const weft_call *c, batch *b)
{
    const char *first[2] = { NULL };
    value y = *input(x, 0);
    const long long wide = y.dim[y.axes - 1].n = width(input_of(c, WEFT__W_HH));
    for (int s = 0; s < 2 && input_of(c, WEFT__H0 + s); s++)
        first[s] = NODES(x, "Unsqueeze(%s, [0])", weft__ex_value(x, input_of(c, WEFT__H0 + s))->name);
    if (b->lengths && !b->lengths32)
        b->lengths32 = NODES(x, "Cast(%s, to=%d)", b->lengths, INT32);
    const char *W = packed_weight(x, k, c, WEFT__W_IH), *R = packed_weight(x, k, c, WEFT__W_HH),
               *B = packed_weight(x, k, c, WEFT__B_IH),
               *out = NODES(x, k->node, W, R, B, b->lengths32, first[0], first[1], wide,
                            how(c)->reverse ? "reverse" : "forward"),
               *last[] = { x->out[1], x->out[2] };
    for (int s = 0; s <= has_c(c); s++) {
        if (b->lengths && first[s])              /* an empty sequence keeps its first state */
            last[s] = NODES(x, "Where(Unsqueeze(Greater(%s, 0), [-1]), %s, %s)", b->lengths, last[s],
                            first[s]);
        value own = like(&y, s ? "" : NODES(x, "Gather(%s, 0, axis=1)", out)); /* only last_states reads c */
        own.last = last[s];
        *weft__ex_place(x, c->y[s]) = own;
    }
}

const char *weft__ex_recurrent(graph *x, const weft_call *c, value *y UNUSED)
{
    const direction_calls all = calls_of(c);
    batch *b = weft__ex_batch(x, packed(&all.of[0])->batch);
    if (input_of(&all.of[0], WEFT__W_HR))
        weft__ex_refuse(x, "a projection (proj)");
    if (!b || b->axes != 2)
        weft__ex_refuse(x, "pairs");
    for (int i = 0; i < all.n; i++) {
        for (int k = WEFT__W_IH; k <= WEFT__B_HH; k++)
            if (input_of(&all.of[i], k) && maker_of(input_of(&all.of[i], k)))
                weft__ex_refuse(x, "its weights are results of operators");
        run_direction(x, cell_of(c->op), &all.of[i], b);
    }
    return NULL;
}

TRANSLATOR(first_states)
{
    const weft__state_move *m = c->attributes;
    for (int s = 0; s < c->n; s++) {
        *y = like(input(x, s), NULL);
        if (y->axes != 3)
            weft__ex_refuse(x, "a first state whose axes are not [layers, batch, width]");
        y->name = NODES(x, "Gather(%s, %d, axis=0)", input(x, s)->name, m->k);
        weft__ex_remove(y, 0);
        *weft__ex_place(x, c->y[s]) = *y;
    }
    return NULL;
}
TRANSLATOR(last_states)
{
    const weft__state_move *m = c->attributes;
    const char **name = weft__ex_memory(x, (size_t)m->parts * sizeof *name);
    for (int s = 0; s < m->states; s++) {
        *y = like(input(x, s * m->parts), NULL);
        for (int k = 0; k < m->parts; k++)
            if (!(name[k] = input(x, s * m->parts + k)->last))
                weft__ex_refuse(x, "states of a cell that is not an ONNX operator");
        weft__ex_per_sequence(y, batch_of(x, c->x[0]));
        weft__ex_insert(y, 0, 1, &(extent){ .n = m->parts });
        y->name = NODES(x, "Concat(%*p, axis=0)", ITEMS(m->parts, name));
        *weft__ex_place(x, c->y[s]) = *y;
    }
    return NULL;
}

/* ---- attention ---- */
/* Returns [batch or 1, 1, queries or 1, keys]: whether a query sees a key. NULL: it sees all. */
static const char *visible(graph *x, int causal, batch *q, batch *k)
{
    const char *key = NODES(x, "Reshape(%s, [-1])", weft__ex_position(x, k));
    const char *keys = NODES(x, "Reshape(%s, [-1, 1, 1, 1])", weft__ex_lengths(x, k));
    const char *seen = k->lengths ? NODES(x, "Less(%s, %s)", key, keys) : NULL;
    if (!causal)
        return seen;
    const char *query = NODES(x, "Reshape(%s, [-1, 1])", weft__ex_position(x, q));
    if (causal != WEFT_CAUSAL_TOP_LEFT)
        query = NODES(x, "Add(%s, Sub(%s, Reshape(%s, [-1, 1, 1, 1])))", query, keys, weft__ex_lengths(x, q));
    const char *compare = causal == WEFT_CAUSAL_STRICT ? "Less" : "LessOrEqual";
    const char *before = NODES(x, "%s(%s, %s)", compare, key, query);
    return seen ? NODES(x, "And(%s, %s)", seen, before) : before;
}

/* Tensors [time, batch, heads * n] become [batch, heads, time, n], and the keys [batch, heads, n, time]. */
TRANSLATOR(attention)
{
    const weft__attention_of *a = c->attributes;
    batch *q = batch_of(x, c->x[0]), *k = batch_of(x, c->x[1]);
    const long long heads = a->o.heads, dk = a->dk, dv = a->dv, size = c->y[0]->f.size[1];
    if (a->below || a->pairs)
        weft__ex_refuse(x, a->below ? weft__ex_dropout : "its map");
    if (!q || !k || q->axes != 2 || k->axes != 2)
        weft__ex_refuse(x, "pairs");
    const char *seen = visible(x, (int)a->o.causal, q, k);
    const char *values = weft__ex_filled(x, k, input(x, 2), WEFT_REAL, 0);
    const char *p = NODES(x, "Mul(MatMul(Transpose(Reshape(@0, [0, 0, %lld, %lld]), perm=[1, 2, 0, 3]), "
                             "Transpose(Reshape(@1, [0, 0, %lld, %lld]), perm=[1, 2, 3, 0])), %g)",
                          heads, dk, heads, dk, (double)a->scale);
    if (seen)
        p = NODES(x, "Where(%s, Softmax(Where($, %s, %g), axis=-1), 0.)", seen, p, -1e30);
    else
        p = NODES(x, "Softmax(%s, axis=-1)", p);
    if (a->o.mean_heads)
        p = NODES(x, "ReduceMean(%s, axes=[1])", p);
    y->dim[y->axes - 1].n = size;
    p = NODES(x, "MatMul(%s, Transpose(Reshape(%s, [0, 0, %lld, %lld]), perm=[1, 2, 0, 3]))", p, values,
              a->o.shared_values ? 1 : heads, dv);
    return NODES(x, "Reshape(Transpose(%s, perm=[2, 0, 1, 3]), [0, 0, %lld])", p, size);
}

const translation weft__ex_layers[] = {
    { "first_states", first_states, false }, { "last_states", last_states, false },
    { "layer_norm", layer_norm, false },     { "rms_norm", layer_norm, false },
    { "gate_norm", gate_norm, false },       { "attention", attention, false },
    { "linear", linear, false },             { "glu", glu, false },
    { NULL, NULL, false }
};
