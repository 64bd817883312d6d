/* export_layers.c - translates linear layers, norms, recurrent layers and their states, and attention. */
#include <stdlib.h>
#include <string.h>
#include "io/onnx/export.h"
#include "rnn/recurrent.h"

/* ---- linear layers ---- */
TRANSLATOR(linear)
{
    const weft__linear_part_of *a = c->attributes;
    const char *name = input(x, 0)->name, *weight = input(x, 1)->name;
    const char *bias = c->n > 2 ? input(x, 2)->name : NULL;
    const bool grouped = c->x[1]->f.rank == 3;
    if (axes_of(y, y->rank - 1) != 1)
        return weft__ex_refuse(x, "a product along the rows of a batch");
    if (a->rows) {
        weight = SLICE(x, weight, 0, a->from, a->from + a->rows);
        bias = bias ? SLICE(x, bias, 0, a->from, a->from + a->rows) : NULL;
    }
    weight = weft__ex_transpose(x, weight, grouped ? 3 : 2, grouped ? (int[]){ 0, 2, 1 } : (int[]){ 1, 0 });
    name = NODE(x, "MatMul", grouped ? UNSQUEEZE(x, name, -2) : name, weight);
    name = grouped ? SQUEEZE(x, name, -2) : name;
    name = bias ? NODE(x, "Add", name, bias) : name;
    y->dim[y->axes - 1].n = c->y[0]->f.size[c->y[0]->f.rank - 1];
    return weft__ex_function(x, name, a->f, (double)a->p, 0);
}

/* a sigmoid(b) for [a, b] */
static const char *gated(graph *x, const char *name, int axis, int64_t half)
{
    return NODE(x, "Mul", SLICE(x, name, axis, 0, half),
                NODE(x, "Sigmoid", SLICE(x, name, axis, half, 2 * half)));
}
TRANSLATOR(glu)
{
    y->dim[y->axes - 1].n /= 2;
    return gated(x, input(x, 0)->name, y->axes - 1, y->dim[y->axes - 1].n);
}

static const char *norm_of(graph *x, const char *name, int64_t size, int gain)
{
    const weft__norm *a = x->call->attributes;
    const bool scaled = gain < x->call->n, grouped = scaled && a->grouped;
    const char *scale = scaled ? input(x, gain)->name : NULL;
    const char *shift = scaled ? input(x, gain + 1)->name : NULL;
    const char *ones = scaled && !grouped ? scale : NODE(x, "Expand", NUMBER(x, 1), INTS(x, size));
    const attribute options[] = { INT("axis", -1), REAL("epsilon", (double)a->eps), { 0 } };
    name = NODE_WITH(x, "LayerNormalization", options, name, ones, grouped ? NULL : shift);
    return grouped ? NODE(x, "Add", NODE(x, "Mul", name, scale), shift) : name;
}
TRANSLATOR(layer_norm)
{
    return norm_of(x, input(x, 0)->name, y->dim[y->axes - 1].n, 1);
}
TRANSLATOR(gate_norm)
{
    *y = like(input(x, 1), NULL);
    const int64_t size = y->dim[y->axes - 1].n;
    const char *gate = gated(x, input(x, 0)->name, y->axes - 1, size);
    return norm_of(x, NODE(x, "Add", gate, input(x, 1)->name), size, 2);
}

/* ---- recurrent layers ---- */
/* gates: those of ONNX. from: weft's gate for each of them. cifg: gate i is 1 - f, so its weights are -f. */
typedef struct cell { const char *name, *op; bool relu, cifg; int gates, from[4]; } cell;
static const cell *cell_of(const weft_op *op)
{
    static const cell cells[] = { { "rnn_tanh", "RNN", false, false, 1, { 0 } },
                                  { "rnn_relu", "RNN", true, false, 1, { 0 } },
                                  { "gru", "GRU", false, false, 3, { 1, 0, 2 } },
                                  { "lstm", "LSTM", false, false, 4, { 0, 3, 1, 2 } },
                                  { "cifg", "LSTM", false, true, 4, { 0, 2, 0, 1 } } };
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        if (!strcmp(cells[i].name, op->name))
            return &cells[i];
    return NULL;
}
bool weft__ex_is_recurrent(const weft_call *c) { return cell_of(c->op); }

/* Copies the gates of a weight or bias to `to` in the order of ONNX. Returns the end of the copy. */
static float *copy_gates(graph *x, const cell *k, const weft_tensor *t, float *to)
{
    real *numbers = to ? weft__ex_read(x, t) : NULL;
    const size_t block = (size_t)weft__elements(&t->f) / (size_t)(k->gates - k->cifg);
    for (int g = 0; numbers && g < k->gates; g++)
        for (size_t i = 0; i < block; i++)
            *to++ = (float)numbers[(size_t)k->from[g] * block + i] * (k->cifg && g == 0 ? -1 : 1);
    to = numbers ? to : NULL;
    free(numbers);
    return to;
}

/* The directions of a layer that one ONNX node runs. */
typedef struct directions { int n; const cell *cell; const weft_call *of[2]; } directions;

/* Returns the name of weight k, [n, gates, columns], or of biases k and k + 1, [n, 2 gates]. Each is made
 * once: "rnn.weight_ih_l0" becomes "rnn.W_l0". */
static const char *packed_weight(graph *x, const directions *d, int k, const char *letter)
{
    const weft_tensor *a = input_of(d->of[0], k);
    value *place = a ? weft__ex_place(x, a) : NULL;
    const bool bias = k == WEFT__B_IH;
    if (!a || (place->last && place->counted == d->n))
        return place ? place->last : NULL;
    const int64_t columns = bias ? 1 : a->f.size[1]; /* 6: two directions, two biases, or a gate more */
    float *numbers = malloc((6 * (size_t)weft__elements(&a->f) + 1) * sizeof *numbers), *end = numbers;
    if (!numbers)
        weft__ex_fail(x, WEFT_ENOMEM, "no memory for weights");
    for (int i = 0; end && i < d->n * (1 + bias); i++)
        end = copy_gates(x, d->cell, input_of(d->of[bias ? i / 2 : i], bias ? k + i % 2 : k), end);
    const char *path = weft__node_of(a)->path, *dot = path && !place->last ? strrchr(path, '.') : NULL;
    const char *name = end && dot && strlen(dot) > 9 ?
                           weft__ex_text(x, "%.*s%s%s", (int)(dot + 1 - path) - (int)x->root, path + x->root,
                                         letter, dot + (bias ? 8 : 10)) : NULL;
    if (end && (!name || weft__ex_reserve(x, name))) {
        const int64_t shape[] = { d->n, columns ? (end - numbers) / columns / d->n : 0, columns };
        place->last = weft__ex_initializer(x, name, FLOAT, bias ? 2 : 3, shape, numbers,
                                           (size_t)(end - numbers) * sizeof *numbers);
        place->counted = d->n;
    }
    free(numbers);
    return place->last;
}

/* Returns the first states [n, batch, width], or NULL for zeros. */
static const char *first_state(graph *x, const directions *d, int k)
{
    const char *of[2] = { NULL };
    for (int i = 0; i < d->n && input_of(d->of[i], k); i++)
        of[i] = UNSQUEEZE(x, weft__ex_value(x, input_of(d->of[i], k))->name, 0);
    return d->n == 2 && of[0] && of[1] ? CONCAT(x, of, 2, 0) : of[d->n - 1];
}

static void run_directions(graph *x, const directions *d, batch *b)
{
    const weft_call *c = d->of[0];
    const char *first[2], *out[3], *one_way = how(c)->reverse ? "reverse" : "forward";
    const bool two = has_c(c), gru = !strcmp(d->cell->op, "GRU");
    const attribute option = { gru ? "linear_before_reset" : d->cell->relu ? "activations" : NULL,
                               gru ? 'i' : 'S', .n = d->n, .i = 1, .s = "Relu" };
    value y = *input(x, 0);
    y.dim[y.axes - 1].n = width(input_of(c, WEFT__W_HH));
    for (int s = 0; s < 2; s++)
        first[s] = first_state(x, d, WEFT__H0 + s);
    if (b->lengths && !b->lengths32)
        b->lengths32 = CAST(x, b->lengths, INT32);
    NODE_OUT(x, d->cell->op,
             ATTRIBUTES(INT("hidden_size", y.dim[y.axes - 1].n),
                        TEXT("direction", d->n == 2 ? "bidirectional" : one_way), option),
             out, two ? 3 : 2, input(x, 0)->name, packed_weight(x, d, WEFT__W_IH, "W"),
             packed_weight(x, d, WEFT__W_HH, "R"), packed_weight(x, d, WEFT__B_IH, "B"), b->lengths32,
             first[0], first[1]);
    for (int s = 0; s <= two; s++) { /* an empty sequence keeps its first state */
        const char *some = b->lengths && first[s] ? NODE(x, "Greater", b->lengths, WHOLE(x, 0)) : NULL;
        out[1 + s] = some ? NODE(x, "Where", UNSQUEEZE(x, some, -1), out[1 + s], first[s]) : out[1 + s];
        for (int i = 0; i < d->n; i++) { /* only last_states reads c */
            value own = like(&y, "");
            if (s == 0)
                own.name = NODE_WITH(x, "Gather", ATTRIBUTES(INT("axis", 1)), out[0], WHOLE(x, i));
            own.last = d->n == 1 ? out[1 + s] : SLICE(x, out[1 + s], 0, i, i + 1);
            set_value(x, d->of[i]->y[s], own);
        }
    }
}

/* Returns the call that runs the other direction of the layer over the same rows, or NULL. It is near the
 * current entry, after it if step is 1. */
static const weft_call *other_direction(const graph *x, const weft_call *c, int step)
{
    for (int64_t e = x->entry + step, k = 0; e >= 0 && e < x->w->tape->entries && k < 4; e += step, k++) {
        const weft_call *o = call_of(x, e);
        if (x->needed[e] && o->op == c->op && !how(o)->both && o->x[0] == c->x[0] &&
            how(o)->layer == how(c)->layer && how(o)->reverse != how(c)->reverse &&
            how(o)->reverse == (step > 0))
            return o;
    }
    return NULL;
}

const char *weft__ex_recurrent(graph *x, const weft_call *c, value *y UNUSED)
{
    const direction_calls all = calls_of(c);
    const weft_call *other = all.n == 1 ? other_direction(x, c, how(c)->reverse ? -1 : 1) : NULL;
    directions d = { all.n, cell_of(c->op), { &all.of[0], &all.of[1] } };
    batch *b = weft__ex_batch(x, packed(&all.of[0])->batch);
    if (input_of(&all.of[0], WEFT__W_HR))
        return weft__ex_refuse(x, "a projection (proj)");
    for (int i = 0; i < all.n; i++)
        for (int k = WEFT__W_IH; k <= WEFT__B_HH; k++)
            if (input_of(&all.of[i], k) && maker_of(input_of(&all.of[i], k)))
                return weft__ex_refuse(x, "its weights are results of operators");
    if (!b || b->axes != 2)
        return weft__ex_refuse(x, "pairs");
    if (other && !how(c)->reverse) /* runs together with the other direction */
        return NULL;
    if (other)
        d = (directions){ 2, d.cell, { other, c } };
    run_directions(x, &d, b);
    return NULL;
}

TRANSLATOR(first_states)
{
    const weft__state_move *m = c->attributes;
    for (int s = 0; s < c->n; s++) {
        *y = like(input(x, s), NULL);
        if (y->axes != 3)
            return weft__ex_refuse(x, "a first state whose axes are not [layers, batch, width]");
        y->name = NODE_WITH(x, "Gather", ATTRIBUTES(INT("axis", 0)), input(x, s)->name, WHOLE(x, m->k));
        weft__ex_remove(y, 0);
        set_value(x, c->y[s], *y);
    }
    return NULL;
}
TRANSLATOR(last_states)
{
    const weft__state_move *m = c->attributes;
    const char **name = weft__ex_memory(x, (size_t)m->parts * sizeof *name);
    for (int s = 0; name && s < m->states; s++) {
        *y = like(input(x, s * m->parts), NULL);
        for (int k = 0; k < m->parts; k++)
            if (!(name[k] = input(x, s * m->parts + k)->last))
                return weft__ex_refuse(x, "states of a cell that is not an ONNX operator");
        weft__ex_per_sequence(y, batch_of(x, c->x[0]));
        weft__ex_insert(y, 0, 1, &(extent){ .n = m->parts });
        y->name = CONCAT(x, name, m->parts, 0);
        set_value(x, c->y[s], *y);
    }
    return NULL;
}

/* ---- attention ---- */
/* Turns [time, batch, heads * n] into [batch, heads, time, n], or for keys into [batch, heads, n, time]. */
static const char *by_heads(graph *x, const char *name, int64_t heads, int64_t n, bool keys)
{
    const char *four = NODE(x, "Reshape", name, INTS(x, 0, 0, heads, n));
    return weft__ex_transpose(x, four, 4, keys ? (int[]){ 1, 2, 3, 0 } : (int[]){ 1, 2, 0, 3 });
}

/* Returns [batch or 1, 1, queries or 1, keys]: whether a query sees a key. NULL: it sees all. */
static const char *visible(graph *x, int causal, batch *q, batch *k)
{
    const char *key = NODE(x, "Reshape", weft__ex_position(x, k), INTS(x, -1));
    const char *keys = NODE(x, "Reshape", weft__ex_lengths(x, k), INTS(x, -1, 1, 1, 1));
    const char *seen = k->lengths ? NODE(x, "Less", key, keys) : NULL;
    if (!causal)
        return seen;
    const char *query = NODE(x, "Reshape", weft__ex_position(x, q), INTS(x, -1, 1));
    if (causal != WEFT_CAUSAL_TOP_LEFT) {
        const char *queries = NODE(x, "Reshape", weft__ex_lengths(x, q), INTS(x, -1, 1, 1, 1));
        query = NODE(x, "Add", query, NODE(x, "Sub", keys, queries));
    }
    const char *before = NODE(x, causal == WEFT_CAUSAL_STRICT ? "Less" : "LessOrEqual", key, query);
    return seen ? NODE(x, "And", seen, before) : before;
}

TRANSLATOR(attention)
{
    const weft__attention_of *a = c->attributes;
    batch *q = batch_of(x, c->x[0]), *k = batch_of(x, c->x[1]);
    const int64_t heads = a->o.heads, size = c->y[0]->f.size[1];
    if (a->below || a->pairs)
        return weft__ex_refuse(x, a->below ? weft__ex_dropout : "its map");
    if (!q || !k || q->axes != 2 || k->axes != 2)
        return weft__ex_refuse(x, "pairs");
    const char *zero = NUMBER(x, 0), *seen = visible(x, (int)a->o.causal, q, k);
    const char *values = weft__ex_filled(x, k, input(x, 2), zero);
    const char *scores = NODE(x, "MatMul", by_heads(x, input(x, 0)->name, heads, a->dk, false),
                              by_heads(x, input(x, 1)->name, heads, a->dk, true));
    scores = NODE(x, "Mul", scores, NUMBER(x, (double)a->scale));
    scores = seen ? NODE(x, "Where", seen, scores, NUMBER(x, -1e30)) : scores;
    const char *p = NODE_WITH(x, "Softmax", ATTRIBUTES(INT("axis", -1)), scores);
    p = seen ? NODE(x, "Where", seen, p, zero) : p;
    if (a->o.mean_heads)
        p = NODE_WITH(x, "ReduceMean", ATTRIBUTES(INT_LIST("axes", 1, &(int64_t){ 1 })), p);
    p = NODE(x, "MatMul", p, by_heads(x, values, a->o.shared_values ? 1 : heads, a->dv, false));
    y->dim[y->axes - 1].n = size;
    return NODE(x, "Reshape", weft__ex_transpose(x, p, 4, (int[]){ 2, 0, 1, 3 }), INTS(x, 0, 0, size));
}

const translation weft__ex_layers[] = {
    { "first_states", first_states, false }, { "last_states", last_states, false },
    { "layer_norm", layer_norm, false },     { "gate_norm", gate_norm, false },
    { "attention", attention, false },       { "linear", linear, false },
    { "glu", glu, false },                   { NULL, NULL, false }
};
