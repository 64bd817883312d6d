/* export_layers.c - translates linear layers, norms, recurrent layers and their states, and attention. */
#include <stdlib.h>
#include <string.h>
#include "io/onnx/export.h"
#include "rnn/recurrent.h"

/* ---- linear layers ---- */
static bool linear(weft__export *x, const weft_call *c)
{
    const weft__linear_part_of *a = c->attributes;
    weft__value y = *weft__export_in(x, c, 0);
    const char *weight = weft__export_in(x, c, 1)->name, *bias = c->n > 2 ? weft__export_in(x, c, 2)->name : NULL;
    const bool grouped = c->x[1]->f.rank == 3;
    static const int order[2][3] = { { 1, 0 }, { 0, 2, 1 } };
    if (y.axes - y.first[c->x[0]->f.rank - 1] != 1)
        return weft__export_refuse(x, c, "a product along the rows of a batch");
    if (a->rows) {
        weight = weft__export_slice(x, weight, 0, a->from, a->from + a->rows);
        bias = bias ? weft__export_slice(x, bias, 0, a->from, a->from + a->rows) : NULL;
    }
    weight = weft__export_transpose(x, weight, grouped ? 3 : 2, order[grouped]);
    const char *name = grouped ? weft__export_unsqueeze(x, y.name, -2) : y.name;
    name = NODE(x, "MatMul", name, weight);
    name = grouped ? weft__export_squeeze(x, name, -2) : name;
    name = bias ? NODE(x, "Add", name, bias) : name;
    y.dim[y.axes - 1].n = c->y[0]->f.size[c->y[0]->f.rank - 1];
    return weft__export_done(x, c, &y, weft__export_function(x, name, a->f, (double)a->p, 0));
}

/* a sigmoid(b) for [a, b] */
static const char *gated(weft__export *x, const char *name, int axis, int64_t half)
{
    return NODE(x, "Mul", weft__export_slice(x, name, axis, 0, half),
                NODE(x, "Sigmoid", weft__export_slice(x, name, axis, half, 2 * half)));
}
static bool glu(weft__export *x, const weft_call *c)
{
    weft__value y = *weft__export_in(x, c, 0);
    weft__dim *last = &y.dim[y.axes - 1];
    last->n /= 2;
    return weft__export_done(x, c, &y, gated(x, y.name, y.axes - 1, last->n));
}

static bool norm_of(weft__export *x, const weft_call *c, const weft__value *v, const char *name, int gain)
{
    const weft__norm *a = c->attributes;
    const int64_t width = v->dim[v->axes - 1].n;
    const bool scaled = gain < c->n;
    const char *ones = scaled && !a->grouped ?
                           weft__export_in(x, c, gain)->name :
                           weft__export_expand(x, weft__export_number(x, 1), 1, &(weft__dim){ .n = width });
    name = NODE_WITH(x, "LayerNormalization", ATTRIBUTES(INT("axis", -1), REAL("epsilon", (double)a->eps)),
                     name, ones, scaled && !a->grouped ? weft__export_in(x, c, gain + 1)->name : NULL);
    if (scaled && a->grouped)
        name = NODE(x, "Add", NODE(x, "Mul", name, weft__export_in(x, c, gain)->name),
                    weft__export_in(x, c, gain + 1)->name);
    return weft__export_done(x, c, v, name);
}
static bool layer_norm(weft__export *x, const weft_call *c)
{
    return norm_of(x, c, weft__export_in(x, c, 0), weft__export_in(x, c, 0)->name, 1);
}
static bool gate_norm(weft__export *x, const weft_call *c)
{
    const weft__value *skip = weft__export_in(x, c, 1);
    const char *gate = gated(x, weft__export_in(x, c, 0)->name, skip->axes - 1, skip->dim[skip->axes - 1].n);
    return norm_of(x, c, skip, NODE(x, "Add", gate, skip->name), 2);
}

/* ---- recurrent layers ---- */
/* gates: those of ONNX. from: weft's gate for each of them. cifg: gate i is 1 - f, so its weights are -f. */
static const struct {
    const char *name, *op;
    int gates, from[4];
} cells[] = { { "rnn_tanh", "RNN", 1, { 0 } },
              { "rnn_relu", "RNN", 1, { 0 } },
              { "gru", "GRU", 3, { 1, 0, 2 } },
              { "lstm", "LSTM", 4, { 0, 3, 1, 2 } },
              { "cifg", "LSTM", 4, { 0, 2, 0, 1 } } };
static int cell_of(const weft_op *op)
{
    int i = 0;
    while (i < (int)(sizeof cells / sizeof *cells) && strcmp(cells[i].name, op->name))
        i++;
    return i < (int)(sizeof cells / sizeof *cells) ? i : -1;
}

/* Copies the gates of a weight or bias to `to` in the order of ONNX. Returns the end of the copy. */
static float *copy_gates(weft__export *x, int cell, const weft_tensor *t, float *to)
{
    real *numbers = to ? weft__export_read(x, t) : NULL;
    const bool cifg = !strcmp(cells[cell].name, "cifg");
    const size_t block = (size_t)weft__elements(&t->f) / (size_t)(cells[cell].gates - cifg);
    for (int g = 0; numbers && g < cells[cell].gates; g++)
        for (size_t i = 0; i < block; i++)
            *to++ = (float)numbers[(size_t)cells[cell].from[g] * block + i] * (cifg && g == 0 ? -1 : 1);
    to = numbers ? to : NULL;
    free(numbers);
    return to;
}

/* The directions of a layer that one ONNX node runs. */
typedef struct directions {
    int n, cell;
    const weft_call *of[2];
} directions;

/* Returns the name of weight k, [n, gates, columns], or of biases k and k + 1, [n, 2 gates]. Each is made
 * once: "rnn.weight_ih_l0" becomes "rnn.W_l0". */
static const char *packed_weight(weft__export *x, const directions *d, int k, const char *letter)
{
    const weft_tensor *a = input_of(d->of[0], k);
    weft__value *place = a ? weft__export_place(x, a) : NULL;
    const bool bias = k == WEFT__B_IH;
    if (!a || (place->last && place->counted == d->n))
        return place ? place->last : NULL;
    const int64_t columns = bias ? 1 : a->f.size[1]; /* 6: two directions, two biases, or a gate more */
    float *numbers = malloc((6 * (size_t)weft__elements(&a->f) + 1) * sizeof *numbers), *end = numbers;
    for (int i = 0; end && i < d->n * (1 + bias); i++)
        end = copy_gates(x, d->cell, input_of(d->of[bias ? i / 2 : i], bias ? k + i % 2 : k), end);
    if (!numbers)
        weft__export_fail(x, WEFT_ENOMEM, "no memory for weights");
    const char *path = weft__node_of(a)->path, *dot = path && !place->last ? strrchr(path, '.') : NULL,
               *name = NULL;
    if (end && dot && strlen(dot) > 9)
        name = weft__export_text(x, "%.*s%s%s", (int)(dot + 1 - path) - (int)x->root, path + x->root, letter,
                               dot + (bias ? 8 : 10));
    if (end && (!name || weft__export_reserve(x, name))) {
        const int64_t shape[] = { d->n, columns ? (end - numbers) / columns / d->n : 0, columns };
        place->last = weft__export_initializer(x, name, WEFT__EXPORT_FLOAT, bias ? 2 : 3, shape, numbers,
                                             (size_t)(end - numbers) * sizeof *numbers);
        place->counted = d->n;
    }
    free(numbers);
    return place->last;
}

/* Returns the first states [n, batch, width], or NULL for zeros. */
static const char *first_state(weft__export *x, const directions *d, int k)
{
    const char *of[2];
    for (int i = 0; i < d->n; i++) {
        if (!input_of(d->of[i], k))
            return NULL;
        of[i] = weft__export_unsqueeze(x, weft__export_value(x, input_of(d->of[i], k))->name, 0);
    }
    return d->n == 1 ? of[0] : NODE_WITH(x, "Concat", ATTRIBUTES(INT("axis", 0)), of[0], of[1]);
}

static void run_directions(weft__export *x, const directions *d, weft__export_batch *b)
{
    const weft_call *c = d->of[0];
    const char *first[2], *out[3],
        *direction = d->n == 2       ? "bidirectional" :
                     how(c)->reverse ? "reverse" :
                                       "forward";
    const bool two = has_c(c), gru = !strcmp(cells[d->cell].op, "GRU"),
               relu = !strcmp(cells[d->cell].name, "rnn_relu");
    const int64_t hidden = width(input_of(c, WEFT__W_HH));
    for (int s = 0; s < 2; s++)
        first[s] = first_state(x, d, WEFT__H0 + s);
    if (b->lengths && !b->lengths32)
        b->lengths32 = weft__export_cast(x, b->lengths, 6);
    NODE_OUT(x, cells[d->cell].op,
             ATTRIBUTES(INT("hidden_size", hidden), TEXT("direction", direction),
                        { gru  ? "linear_before_reset" :
                          relu ? "activations" :
                                 NULL,
                          gru ? 'i' : 'S', .n = d->n, .i = 1, .s = "Relu" }),
             out, two ? 3 : 2, weft__export_in(x, c, 0)->name, packed_weight(x, d, WEFT__W_IH, "W"),
             packed_weight(x, d, WEFT__W_HH, "R"), packed_weight(x, d, WEFT__B_IH, "B"), b->lengths32,
             first[0], first[1]);
    weft__value y = *weft__export_in(x, c, 0);
    y.dim[y.axes - 1].n = hidden;
    for (int s = 0; s <= two; s++) { /* an empty sequence keeps its first state */
        const char *some =
            b->lengths && first[s] ? NODE(x, "Greater", b->lengths, weft__export_int(x, 0)) : NULL;
        out[1 + s] =
            some ? NODE(x, "Where", weft__export_unsqueeze(x, some, -1), out[1 + s], first[s]) : out[1 + s];
        for (int i = 0; i < d->n; i++) { /* only last_states reads c */
            const char *at =
                s ? NULL : NODE_WITH(x, "Gather", ATTRIBUTES(INT("axis", 1)), out[0], weft__export_int(x, i));
            weft__value own = weft__export_like(&y, s ? "" : at);
            own.last = d->n == 1 ? out[1 + s] : weft__export_slice(x, out[1 + s], 0, i, i + 1);
            weft__export_set(x, d->of[i]->y[s], own);
        }
    }
}

/* Returns the call that runs the other direction of the layer over the same rows, or NULL. It is near the
 * current entry, after it if step is 1. */
static const weft_call *other_direction(const weft__export *x, const weft_call *c, int step)
{
    for (int64_t e = x->entry + step, k = 0; e >= 0 && e < x->w->tape->entries && k < 4; e += step, k++) {
        const weft_call *o = x->w->tape->entry[e].call;
        if (x->needed[e] && o->op == c->op && !how(o)->both && o->x[0] == c->x[0] &&
            how(o)->layer == how(c)->layer && how(o)->reverse != how(c)->reverse &&
            how(o)->reverse == (step > 0))
            return o;
    }
    return NULL;
}

bool weft__export_is_recurrent(const weft_call *c) { return cell_of(c->op) >= 0; }
bool weft__export_recurrent(weft__export *x, const weft_call *c)
{
    const direction_calls all = calls_of(c);
    const weft_call *other = all.n == 1 ? other_direction(x, c, how(c)->reverse ? -1 : 1) : NULL;
    directions d = { all.n, cell_of(c->op), { &all.of[0], &all.of[1] } };
    weft__export_batch *b = weft__export_batch_of(x, packed(&all.of[0])->batch);
    if (input_of(&all.of[0], WEFT__W_HR))
        return weft__export_refuse(x, c, "a projection (proj)");
    for (int i = 0; i < all.n; i++)
        for (int k = WEFT__W_IH; k <= WEFT__B_HH; k++)
            if (input_of(&all.of[i], k) && weft__node_of(input_of(&all.of[i], k))->entry_number)
                return weft__export_refuse(x, c, "its weights are results of operators");
    if (!b || b->axes != 2)
        return weft__export_refuse(x, c, "pairs");
    if (other && !how(c)->reverse) /* runs together with the other direction */
        return true;
    if (other)
        d = (directions){ 2, d.cell, { other, c } };
    run_directions(x, &d, b);
    return true;
}

static bool first_states(weft__export *x, const weft_call *c)
{
    const weft__state_move *m = c->attributes;
    for (int s = 0; s < c->n; s++) {
        weft__value y = weft__export_like(weft__export_in(x, c, s), NULL);
        if (y.axes != 3)
            return weft__export_refuse(x, c, "a first state whose axes are not [layers, batch, width]");
        y.name = NODE_WITH(x, "Gather", ATTRIBUTES(INT("axis", 0)), weft__export_in(x, c, s)->name,
                           weft__export_int(x, m->k));
        weft__export_remove(&y, 3, 0);
        weft__export_set(x, c->y[s], y);
    }
    return true;
}
static bool last_states(weft__export *x, const weft_call *c)
{
    const weft__state_move *m = c->attributes;
    const char **name = weft__export_memory(x, (size_t)m->parts * sizeof *name);
    for (int s = 0; name && s < m->states; s++) {
        weft__value y = weft__export_like(weft__export_in(x, c, s * m->parts), NULL);
        for (int k = 0; k < m->parts; k++)
            if (!(name[k] = weft__export_in(x, c, s * m->parts + k)->last))
                return weft__export_refuse(x, c, "states of a cell that is not an ONNX operator");
        weft__export_remove(&y, 2, 0);
        weft__export_insert(&y, 1, 0, 1, &(weft__dim){ .n = m->parts });
        weft__export_insert(&y, 2, 1, 1, &weft__export_of(x, c->x[0])->rows[1]);
        y.dim[1].joined = false;
        y.name = weft__export_node(x, "Concat", name, m->parts, ATTRIBUTES(INT("axis", 0)), NULL, 1);
        weft__export_set(x, c->y[s], y);
    }
    return true;
}

/* ---- attention ---- */
/* Turns [time, batch, heads * n] into [batch, heads, time, n], or for keys into [batch, heads, n, time]. */
static const char *by_heads(weft__export *x, const char *name, int64_t heads, int64_t n, bool keys)
{
    const char *four = NODE(x, "Reshape", name, INTS(x, 0, 0, heads, n));
    return weft__export_transpose(x, four, 4, keys ? (int[]){ 1, 2, 3, 0 } : (int[]){ 1, 2, 0, 3 });
}

/* Returns [batch or 1, 1, queries or 1, keys]: whether a query sees a key. NULL: it sees all. */
static const char *visible(weft__export *x, int causal, weft__export_batch *q, weft__export_batch *k)
{
    const char *key = NODE(x, "Reshape", weft__export_position(x, k), INTS(x, -1));
    const char *keys = NODE(x, "Reshape", weft__export_lengths(x, k), INTS(x, -1, 1, 1, 1));
    const char *seen = k->lengths ? NODE(x, "Less", key, keys) : NULL, *before;
    if (!causal)
        return seen;
    const char *query = NODE(x, "Reshape", weft__export_position(x, q), INTS(x, -1, 1));
    if (causal != WEFT_CAUSAL_TOP_LEFT) {
        const char *queries = NODE(x, "Reshape", weft__export_lengths(x, q), INTS(x, -1, 1, 1, 1));
        query = NODE(x, "Add", query, NODE(x, "Sub", keys, queries));
    }
    before = NODE(x, causal == WEFT_CAUSAL_STRICT ? "Less" : "LessOrEqual", key, query);
    return seen ? NODE(x, "And", seen, before) : before;
}

static bool attention(weft__export *x, const weft_call *c)
{
    const weft__attention_of *a = c->attributes;
    weft__export_batch *q = weft__export_of(x, c->x[0]), *k = weft__export_of(x, c->x[1]);
    const int64_t heads = a->o.heads;
    if (a->below || a->pairs)
        return weft__export_refuse(
            x, c, a->below ? "dropout is on; run the forward pass inside WEFT_EVAL" : "its map");
    if (!q || !k || q->axes != 2 || k->axes != 2)
        return weft__export_refuse(x, c, "pairs");
    const char *zero = weft__export_number(x, 0), *seen = visible(x, (int)a->o.causal, q, k);
    const char *values = weft__export_filled(x, k, weft__export_in(x, c, 2), zero);
    const char *scores = NODE(x, "MatMul", by_heads(x, weft__export_in(x, c, 0)->name, heads, a->dk, false),
                              by_heads(x, weft__export_in(x, c, 1)->name, heads, a->dk, true));
    scores = NODE(x, "Mul", scores, weft__export_number(x, (double)a->scale));
    scores = seen ? NODE(x, "Where", seen, scores, weft__export_number(x, -1e30)) : scores;
    const char *p = NODE_WITH(x, "Softmax", ATTRIBUTES(INT("axis", -1)), scores);
    p = seen ? NODE(x, "Where", seen, p, zero) : p;
    if (a->o.mean_heads) {
        const int64_t axis = 1;
        p = NODE_WITH(x, "ReduceMean", ATTRIBUTES({ "axes", 'I', .n = 1, .ints = &axis }), p);
    }
    const char *y = NODE(x, "MatMul", p, by_heads(x, values, a->o.shared_values ? 1 : heads, a->dv, false));
    weft__value v = weft__export_like(weft__export_in(x, c, 0), NULL);
    v.dim[v.axes - 1].n = c->y[0]->f.size[1];
    y = NODE(x, "Reshape", weft__export_transpose(x, y, 4, (int[]){ 2, 0, 1, 3 }),
             INTS(x, 0, 0, v.dim[v.axes - 1].n));
    return weft__export_done(x, c, &v, y);
}

const weft__export_entry weft__export_layers[] = { { "linear", linear },
                                               { "glu", glu },
                                               { "layer_norm", layer_norm },
                                               { "gate_norm", gate_norm },
                                               { "first_states", first_states },
                                               { "last_states", last_states },
                                               { "attention", attention },
                                               { NULL, NULL } };
