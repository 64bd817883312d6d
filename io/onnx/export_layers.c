/* export_layers.c - translates linear layers, norms, recurrent layers and their states, attention, lookups,
 * and operators between two batches. */
#include <math.h>
#include <string.h>
#include "core/shared/attention.h"
#include "io/onnx/export.h"
#include "rnn/recurrent.h"

static const weft__value *in(weft__onnx *x, const weft_call *c, int i) { return weft__onnx_value(x, c->x[i]); }
static weft__onnx_batch *batch_of(weft__onnx *x, const weft_tensor *t)
{
    return t->f.batch ? weft__onnx_batch_of(x, t->f.batch) : NULL;
}
static bool done(weft__onnx *x, const weft_call *c, const weft__value *v, const char *name)
{
    weft__onnx_set(x, c->y[0], weft__onnx_like(v, name));
    return true;
}

/* ---- linear layers ---- */
static bool linear(weft__onnx *x, const weft_call *c)
{
    const weft__linear_part_of *a = c->attributes;
    weft__value y = *in(x, c, 0);
    const char *weight = in(x, c, 1)->name, *bias = c->n > 2 ? in(x, c, 2)->name : NULL;
    const bool grouped = c->x[1]->f.rank == 3;
    static const int order[2][3] = { { 1, 0 }, { 0, 2, 1 } };
    if (y.axes - y.first[c->x[0]->f.rank - 1] != 1)
        return weft__onnx_refuse(x, c, "a product along the rows of a batch");
    if (a->rows) {
        weight = weft__onnx_slice(x, weight, 0, a->from, a->from + a->rows);
        bias = bias ? weft__onnx_slice(x, bias, 0, a->from, a->from + a->rows) : NULL;
    }
    weight = weft__onnx_transpose(x, weight, grouped ? 3 : 2, order[grouped]);
    const char *name = grouped ? weft__onnx_unsqueeze(x, y.name, -2) : y.name;
    name = NODE(x, "MatMul", name, weight);
    name = grouped ? weft__onnx_squeeze(x, name, -2) : name;
    name = bias ? NODE(x, "Add", name, bias) : name;
    y.dim[y.axes - 1].n = c->y[0]->f.size[c->y[0]->f.rank - 1];
    return done(x, c, &y, weft__onnx_function(x, name, a->f, (double)a->p, 0));
}

/* a sigmoid(b) for [a, b] */
static const char *gated(weft__onnx *x, const char *name, int axis, int64_t half)
{
    return NODE(x, "Mul", weft__onnx_slice(x, name, axis, 0, half),
                NODE(x, "Sigmoid", weft__onnx_slice(x, name, axis, half, 2 * half)));
}
static bool glu(weft__onnx *x, const weft_call *c)
{
    weft__value y = *in(x, c, 0);
    weft__dim *last = &y.dim[y.axes - 1];
    last->n /= 2;
    return done(x, c, &y, gated(x, y.name, y.axes - 1, last->n));
}

static bool norm_of(weft__onnx *x, const weft_call *c, const weft__value *v, const char *name, int gain)
{
    const weft__norm *a = c->attributes;
    const int64_t width = v->dim[v->axes - 1].n;
    const bool scaled = gain < c->n;
    const char *ones = scaled && !a->grouped ? in(x, c, gain)->name :
        weft__onnx_expand(x, weft__onnx_number(x, 1), 1, &(weft__dim){ .n = width });
    name = NODE_WITH(x, "LayerNormalization", ATTRIBUTES(INT("axis", -1), REAL("epsilon", (double)a->eps)), name,
                     ones, scaled && !a->grouped ? in(x, c, gain + 1)->name : NULL);
    if (scaled && a->grouped)
        name = NODE(x, "Add", NODE(x, "Mul", name, in(x, c, gain)->name), in(x, c, gain + 1)->name);
    return done(x, c, v, name);
}
static bool layer_norm(weft__onnx *x, const weft_call *c)
{
    return norm_of(x, c, in(x, c, 0), in(x, c, 0)->name, 1);
}
static bool gate_norm(weft__onnx *x, const weft_call *c)
{
    const weft__value *skip = in(x, c, 1);
    const char *gate = gated(x, in(x, c, 0)->name, skip->axes - 1, skip->dim[skip->axes - 1].n);
    return norm_of(x, c, skip, NODE(x, "Add", gate, skip->name), 2);
}

/* ---- recurrent layers ---- */
/* gates: those of ONNX. from: weft's gate for each of them. cifg: gate i is 1 - f, so its weights are -f. */
static const struct { const char *name, *op; int gates, from[4]; } cells[] = {
    { "rnn_tanh", "RNN", 1, { 0 } },       { "rnn_relu", "RNN", 1, { 0 } }, { "gru", "GRU", 3, { 1, 0, 2 } },
    { "lstm", "LSTM", 4, { 0, 3, 1, 2 } }, { "cifg", "LSTM", 4, { 0, 2, 0, 1 } }
};
static int cell_of(const weft_op *op)
{
    int i = 0;
    while (i < (int)(sizeof cells / sizeof *cells) && strcmp(cells[i].name, op->name))
        i++;
    return i < (int)(sizeof cells / sizeof *cells) ? i : -1;
}

/* Copies the gates of a weight or bias to `to` in the order of ONNX. Returns the end of the copy. */
static float *copy_gates(weft__onnx *x, int cell, const weft_tensor *t, float *to)
{
    const size_t n = (size_t)weft__elements(&t->f);
    real *numbers = weft__onnx_memory(x, (n + 1) * sizeof *numbers);
    if (!numbers || !to || weft__read(t, numbers, n * sizeof *numbers))
        return NULL;
    const bool cifg = !strcmp(cells[cell].name, "cifg");
    const size_t block = n / (size_t)(cells[cell].gates - cifg);
    for (int g = 0; g < cells[cell].gates; g++)
        for (size_t i = 0; i < block; i++)
            *to++ = (float)numbers[(size_t)cells[cell].from[g] * block + i] * (cifg && g == 0 ? -1 : 1);
    return to;
}

/* Returns an initializer [1, gates, columns] of a weight, or [1, 2 gates] of two biases. Each is made once. */
static const char *packed_weight(weft__onnx *x, int cell, const weft_tensor *a, const weft_tensor *b,
                                 const char *letter)
{
    weft__value *place = a ? weft__onnx_place(x, a) : NULL;
    const char *path = a ? weft__node_of(a)->path : NULL, *word = path ? strstr(path, b ? "bias_ih" : "weight_") : NULL;
    if (!a || place->last)
        return place ? place->last : NULL;
    const size_t n = 2 * (size_t)weft__elements(&a->f);
    float *numbers = weft__onnx_memory(x, n * 2 * sizeof *numbers), *end = copy_gates(x, cell, a, numbers);
    end = b && end ? copy_gates(x, cell, b, end) : end;
    if (!end)
        return NULL;
    const int64_t columns = b ? 1 : a->f.size[1], shape[] = { 1, (end - numbers) / (columns ? columns : 1), columns };
    const char *name = word ? weft__onnx_text(x, "%.*s%s%s", (int)(word - path - (ptrdiff_t)x->root),
                                              path + x->root, letter, word + (b ? 7 : 9)) : NULL;
    if (name && !weft__onnx_reserve(x, name))
        return NULL;
    return place->last = weft__onnx_initializer(x, name, WEFT__ONNX_FLOAT, b ? 2 : 3, shape, numbers,
                                                (size_t)(end - numbers) * sizeof *numbers);
}

static bool run_direction(weft__onnx *x, const weft_call *c, int cell, weft__onnx_batch *b)
{
    const char *w = packed_weight(x, cell, input_of(c, WEFT__W_IH), NULL, "W");
    const char *r = packed_weight(x, cell, input_of(c, WEFT__W_HH), NULL, "R");
    const char *bias = packed_weight(x, cell, input_of(c, WEFT__B_IH), input_of(c, WEFT__B_HH), "B");
    const char *first[2] = { NULL, NULL }, *out[3];
    const bool two = has_c(c), gru = !strcmp(cells[cell].op, "GRU"), relu = !strcmp(cells[cell].name, "rnn_relu");
    for (int s = 0; s < 2; s++)
        if (input_of(c, WEFT__H0 + s))
            first[s] = weft__onnx_unsqueeze(x, weft__onnx_value(x, input_of(c, WEFT__H0 + s))->name, 0);
    if (b->lengths && !b->lengths32)
        b->lengths32 = weft__onnx_cast(x, b->lengths, 6);
    const int64_t hidden = width(input_of(c, WEFT__W_HH));
    const char *direction = how(c)->reverse ? "reverse" : "forward";
    NODE_OUT(x, cells[cell].op,
             ATTRIBUTES(INT("hidden_size", hidden), TEXT("direction", direction),
                        { gru ? "linear_before_reset" : relu ? "activations" : NULL, gru ? 'i' : 'S', .n = 1, .i = 1,
                          .s = "Relu" }),
             out, two ? 3 : 2, in(x, c, 0)->name, w, r, bias, b->lengths32, first[0], first[1]);
    weft__value y = *in(x, c, 0);
    y.dim[y.axes - 1].n = hidden;
    for (int s = 0; s <= two; s++) {             /* an empty sequence keeps its first state */
        y.last = out[1 + s];
        if (b->lengths && first[s])
            y.last = NODE(x, "Where", weft__onnx_unsqueeze(x, NODE(x, "Greater", b->lengths, weft__onnx_int(x, 0)),
                                                           -1), y.last, first[s]);
        y.name = s ? "" : weft__onnx_squeeze(x, out[0], 1);      /* only last_states reads c */
        y.count = NULL;
        weft__onnx_set(x, c->y[s], y);
    }
    return true;
}

static bool recurrent(weft__onnx *x, const weft_call *c)
{
    const direction_calls all = calls_of(c);
    const int cell = cell_of(c->op);
    weft__onnx_batch *b = weft__onnx_batch_of(x, packed(&all.of[0])->batch);
    if (input_of(&all.of[0], WEFT__W_HR))
        return weft__onnx_refuse(x, c, "a projection (proj)");
    for (int d = 0; d < all.n; d++)
        for (int k = WEFT__W_IH; k <= WEFT__B_HH; k++)
            if (input_of(&all.of[d], k) && weft__node_of(input_of(&all.of[d], k))->entry_number)
                return weft__onnx_refuse(x, c, "its weights are results of operators");
    if (!b || b->axes != 2)
        return weft__onnx_refuse(x, c, "pairs");
    for (int d = 0; d < all.n; d++)
        run_direction(x, &all.of[d], cell, b);
    return true;
}

static bool first_states(weft__onnx *x, const weft_call *c)
{
    const weft__state_move *m = c->attributes;
    for (int s = 0; s < c->n; s++) {
        weft__value y = weft__onnx_like(in(x, c, s), NULL);
        if (y.axes != 3)
            return weft__onnx_refuse(x, c, "a first state whose axes are not [layers, batch, width]");
        y.name = NODE_WITH(x, "Gather", ATTRIBUTES(INT("axis", 0)), in(x, c, s)->name, weft__onnx_int(x, m->k));
        weft__onnx_remove(&y, 3, 0);
        weft__onnx_set(x, c->y[s], y);
    }
    return true;
}
static bool last_states(weft__onnx *x, const weft_call *c)
{
    const weft__state_move *m = c->attributes;
    const char **name = weft__onnx_memory(x, (size_t)m->parts * sizeof *name);
    for (int s = 0; name && s < m->states; s++) {
        weft__value y = weft__onnx_like(in(x, c, s * m->parts), NULL);
        for (int k = 0; k < m->parts; k++)
            if (!(name[k] = in(x, c, s * m->parts + k)->last))
                return weft__onnx_refuse(x, c, "states of a cell that is not an ONNX operator");
        weft__onnx_remove(&y, 2, 0);
        weft__onnx_insert(&y, 1, 0, 1, &(weft__dim){ .n = m->parts });
        weft__onnx_insert(&y, 2, 1, 1, &batch_of(x, c->x[0])->rows[1]);
        y.dim[1].joined = false;
        y.name = weft__onnx_node(x, "Concat", name, m->parts, ATTRIBUTES(INT("axis", 0)), NULL, 1);
        weft__onnx_set(x, c->y[s], y);
    }
    return true;
}

/* ---- attention ---- */
/* [time, batch, heads * n] as [batch, heads, time, n], or as the keys of a product, [batch, heads, n, time]. */
static const char *by_heads(weft__onnx *x, const char *name, int64_t heads, int64_t n, bool keys)
{
    const char *four = NODE(x, "Reshape", name, INTS(x, 0, 0, heads, n));
    return weft__onnx_transpose(x, four, 4, keys ? (int[]){ 1, 2, 3, 0 } : (int[]){ 1, 2, 0, 3 });
}

/* Returns [batch or 1, 1, queries or 1, keys]: whether a query sees a key. NULL: it sees all. */
static const char *visible(weft__onnx *x, int causal, weft__onnx_batch *q, weft__onnx_batch *k)
{
    const char *key = NODE(x, "Reshape", weft__onnx_position(x, k), INTS(x, -1));
    const char *keys = NODE(x, "Reshape", weft__onnx_lengths(x, k), INTS(x, -1, 1, 1, 1));
    const char *seen = k->lengths ? NODE(x, "Less", key, keys) : NULL, *before;
    if (!causal)
        return seen;
    const char *query = NODE(x, "Reshape", weft__onnx_position(x, q), INTS(x, -1, 1));
    if (causal != WEFT_CAUSAL_TOP_LEFT) {
        const char *queries = NODE(x, "Reshape", weft__onnx_lengths(x, q), INTS(x, -1, 1, 1, 1));
        query = NODE(x, "Add", query, NODE(x, "Sub", keys, queries));
    }
    before = NODE(x, causal == WEFT_CAUSAL_STRICT ? "Less" : "LessOrEqual", key, query);
    return seen ? NODE(x, "And", seen, before) : before;
}

static bool attention(weft__onnx *x, const weft_call *c)
{
    const weft__attention_of *a = c->attributes;
    weft__onnx_batch *q = batch_of(x, c->x[0]), *k = batch_of(x, c->x[1]);
    const int64_t heads = a->o.heads;
    if (a->below || a->pairs)
        return weft__onnx_refuse(x, c, a->below ? "dropout is on; run the forward pass inside WEFT_EVAL" : "its map");
    if (!q || !k || q->axes != 2 || k->axes != 2)
        return weft__onnx_refuse(x, c, "pairs");
    const char *zero = weft__onnx_number(x, 0), *seen = visible(x, (int)a->o.causal, q, k);
    const char *values = weft__onnx_filled(x, k, in(x, c, 2), zero);
    const char *scores = NODE(x, "MatMul", by_heads(x, in(x, c, 0)->name, heads, a->dk, false),
                              by_heads(x, in(x, c, 1)->name, heads, a->dk, true));
    scores = NODE(x, "Mul", scores, weft__onnx_number(x, (double)a->scale));
    scores = seen ? NODE(x, "Where", seen, scores, weft__onnx_number(x, -1e30)) : scores;
    const char *p = NODE_WITH(x, "Softmax", ATTRIBUTES(INT("axis", -1)), scores);
    p = seen ? NODE(x, "Where", seen, p, zero) : p;
    if (a->o.mean_heads) {
        const int64_t axis = 1;
        p = NODE_WITH(x, "ReduceMean", ATTRIBUTES({ "axes", 'I', .n = 1, .ints = &axis }), p);
    }
    const char *y = NODE(x, "MatMul", p, by_heads(x, values, a->o.shared_values ? 1 : heads, a->dv, false));
    weft__value v = weft__onnx_like(in(x, c, 0), NULL);
    v.dim[v.axes - 1].n = c->y[0]->f.size[1];
    y = NODE(x, "Reshape", weft__onnx_transpose(x, y, 4, (int[]){ 2, 0, 1, 3 }), INTS(x, 0, 0, v.dim[v.axes - 1].n));
    return done(x, c, &v, y);
}

/* ---- lookups ---- */
/* Ids, with -1 for the padding id. */
static bool without_padding(weft__onnx *x, const weft_call *c)
{
    const int32_t *map = weft__onnx_read_ints(x, c->x[1]);
    int64_t id = 0;
    while (map && id < weft__elements(&c->x[1]->f) && map[id] >= 0)
        id++;
    weft__value y = weft__onnx_like(in(x, c, 0), NULL);
    y.negative = true;
    y.name = NODE(x, "Where", NODE(x, "Equal", in(x, c, 0)->name, weft__onnx_int(x, id)), weft__onnx_int(x, -1),
                  in(x, c, 0)->name);
    weft__onnx_set(x, c->y[0], y);
    return map;
}

/* Returns the ragged tensor whose rows a plain one has, or NULL. */
static const weft_tensor *rows_of(const weft_tensor *t)
{
    const int64_t e = (int64_t)weft__node_of(t)->entry_number;
    const weft_call *c = e ? t->w->tape->entry[e - 1].call : NULL;
    return c && !strcmp(c->op->name, "view") && c->x[0]->f.batch && c->x[0]->f.layout == WEFT_CONCAT &&
                   c->x[0]->f.size[0] == t->f.size[0] ? c->x[0] : NULL;
}

static bool first_or_last(weft__onnx *x, const weft_call *c, const int32_t *row, weft__onnx_batch *b)
{
    const weft_batch *k = b->b;
    bool first = true, last = true;
    for (int64_t s = 0; s < k->n; s++) {
        first = first && row[s] == (k->len[s] ? k->offset.host[s] : -1);
        last = last && row[s] == (k->len[s] ? k->offset.host[s + 1] - 1 : -1);
    }
    if (first == last || b->axes != 2)
        return weft__onnx_refuse(x, c, first ? "first and last rows are the same; trace with longer sequences" :
                                               "rows of a batch by indices of the program");
    weft__value y = weft__onnx_like(in(x, c, 0), NULL);
    const char *at = NODE(x, "Sub", weft__onnx_lengths(x, b), weft__onnx_int(x, 1));
    at = first ? INTS(x, 0) : NODE(x, "Max", at, weft__onnx_int(x, 0));
    y.name = weft__onnx_gather_time(x, y.name = in(x, c, 0)->name, weft__onnx_unsqueeze(x, at, 0), &y);
    y.name = weft__onnx_squeeze(x, y.name, 0);
    weft__onnx_remove(&y, c->x[0]->f.rank, 0);
    weft__onnx_insert(&y, c->x[0]->f.rank - 1, 0, 1, &b->rows[1]);
    y.dim[0].joined = false;
    if (b->lengths) {
        const char *some = NODE(x, "Greater", b->lengths, weft__onnx_int(x, 0));
        for (int i = 1; i < y.axes; i++)
            some = weft__onnx_unsqueeze(x, some, -1);
        y.name = NODE(x, "Where", some, y.name,
                      c->x[0]->f.type == WEFT_REAL ? weft__onnx_number(x, 0) : weft__onnx_int(x, 0));
    }
    return done(x, c, &y, y.name);
}

/* Returns the batch whose rows are the queries of pairs with the keys k, or NULL. */
static weft__onnx_batch *queries_of(weft__onnx *x, const weft_batch *pairs, const weft_batch *k)
{
    for (int i = 0; i < x->batches; i++) {
        const weft_batch *q = x->batch[i].b;
        bool same = x->batch[i].axes == 2 && q->n == k->n && q->tokens == pairs->n;
        for (int64_t s = 0, row = 0; same && s < q->n; s++)
            for (int32_t t = 0; same && t < q->len[s]; t++)
                same = pairs->len[row++] == k->len[s];
        if (same)
            return &x->batch[i];
    }
    return NULL;
}
/* Each query gets all keys of its sequence: [keys, queries, batch, ..]. */
static bool keys_of_pairs(weft__onnx *x, const weft_call *c, weft__onnx_batch *q, weft__onnx_batch *k)
{
    const weft_batch *p = c->y[0]->f.batch;
    const weft__dim rows[] = { k->rows[0], q->rows[0], q->rows[1] };
    weft__onnx_batch *b = weft__onnx_batch_of(x, p);
    weft__value y = weft__onnx_like(in(x, c, 0), NULL);
    if (b && !b->pairs)
        return weft__onnx_refuse(x, c, "its pairs also belong to another batch; trace with other lengths");
    b = b ? b : weft__onnx_new_batch(x, p, 3, rows);
    if (!b)
        return false;
    b->pairs = true, b->a = q->b, b->lengths = k->lengths;
    weft__onnx_remove(&y, c->x[0]->f.rank, 0);
    weft__onnx_insert(&y, c->x[0]->f.rank - 1, 0, 3, b->rows);
    return done(x, c, &y, weft__onnx_expand(x, weft__onnx_unsqueeze(x, in(x, c, 0)->name, 1), y.axes, y.dim));
}

/* The first or the last part of each sequence, if the lengths of that part are known. */
static bool part_of_sequences(weft__onnx *x, const weft_call *c, const int32_t *row, weft__onnx_batch *b)
{
    const weft_batch *whole = b->b, *p = c->y[0]->f.batch;
    weft__onnx_batch *part = weft__onnx_batch_of(x, p);
    bool first = true, last = true;
    for (int64_t s = 0, i = 0; p->n == whole->n && s < p->n; s++)
        for (int32_t t = 0; t < p->len[s]; t++, i++) {
            first = first && row[i] == whole->offset.host[s] + t;
            last = last && row[i] == whole->offset.host[s + 1] - p->len[s] + t;
        }
    if (!part || p->n != whole->n || b->axes != 2 || part->axes != 2 || first == last)
        return weft__onnx_refuse(x, c, part ? "rows of a batch by indices of the program" :
                                              "a part of each sequence whose length is not that of an input");
    weft__value y = weft__onnx_like(in(x, c, 0), NULL);
    const char *from = NODE(x, "Sub", weft__onnx_lengths(x, b), weft__onnx_lengths(x, part));
    const char *at = weft__onnx_position(x, part), *end = NODE(x, "Sub", weft__onnx_size(x, b->rows[0]), INTS(x, 1));
    at = NODE(x, "Min", first ? at : NODE(x, "Add", at, from), end);
    y.name = weft__onnx_gather_time(x, in(x, c, 0)->name, NODE(x, "Max", at, weft__onnx_int(x, 0)), &y);
    memcpy(y.dim, part->rows, 2 * sizeof *y.dim);
    return done(x, c, &y, y.name);
}

static bool index_select(weft__onnx *x, const weft_call *c)
{
    const weft_tensor *ragged = rows_of(c->x[0]);
    if (!weft__onnx_reads(c, 1)) {
        const int32_t *row = weft__onnx_read_ints(x, c->x[1]);
        weft__onnx_batch *b = batch_of(x, ragged), *q;
        const weft_batch *p = c->y[0]->f.batch;
        if (!row || !b)
            return false;
        if (!p)
            return c->x[1]->f.rank == 1 && c->x[1]->f.size[0] == b->b->n ? first_or_last(x, c, row, b) :
                       weft__onnx_refuse(x, c, "rows of a batch by indices of the program");
        q = b->axes == 2 ? queries_of(x, p, b->b) : NULL;
        return q ? keys_of_pairs(x, c, q, b) : part_of_sequences(x, c, row, b);
    }
    const int64_t from = (int64_t)weft__node_of(c->x[1])->entry_number;
    const weft_call *maker = from ? x->w->tape->entry[from - 1].call : NULL;
    const weft__value *table = in(x, c, 0), *id = in(x, c, 1);
    if (maker && !strcmp(maker->op->name, "topk"))
        return done(x, c, id, id->name);
    if (table->first[1] != 1)
        return weft__onnx_refuse(x, c, "rows of a whole batch by an index");
    weft__value y = weft__onnx_like(id, NULL);
    const int rank = c->x[1]->f.rank;
    for (int i = 1; i < c->x[0]->f.rank; i++)
        weft__onnx_insert(&y, rank + i - 1, rank + i - 1, table->first[i + 1] - table->first[i],
                          table->dim + table->first[i]);
    y.negative = false;
    y.name = NODE(x, "Gather", table->name, id->name);
    if (id->negative) {
        const char *none = NODE(x, "Less", id->name, weft__onnx_int(x, 0));
        for (int i = 1; i < c->x[0]->f.rank; i++)
            none = weft__onnx_unsqueeze(x, none, -1);
        y.name = NODE(x, "Where", none, weft__onnx_number(x, 0), y.name);
    }
    return done(x, c, &y, y.name);
}

/* ---- two batches end to end ---- */
static bool concat_sequences(weft__onnx *x, const weft_call *c)
{
    weft__onnx_batch *a = batch_of(x, c->x[0]), *b = batch_of(x, c->x[1]), *both = batch_of(x, c->y[0]);
    if (!a || !b || a->axes != 2 || b->axes != 2 || (both && (both->pairs || both->a != a->b)))
        return weft__onnx_refuse(x, c, "its rows also belong to another batch; trace with sequences of other lengths");
    weft__value y = weft__onnx_like(in(x, c, 0), NULL);
    const char *end_to_end = NODE_WITH(x, "Concat", ATTRIBUTES(INT("axis", 0)), in(x, c, 0)->name, in(x, c, 1)->name);
    if (!both) {
        const weft_batch *made = c->y[0]->f.batch;
        const weft__dim rows[] = { weft__onnx_symbol(x, "time", made->longest, end_to_end, 0), a->rows[1] };
        if (!(both = weft__onnx_new_batch(x, made, 2, rows)))
            return false;
        both->a = a->b;
        both->lengths = !a->lengths && !b->lengths ? NULL :
                            NODE(x, "Add", weft__onnx_lengths(x, a), weft__onnx_lengths(x, b));
    }
    y.dim[0] = both->rows[0];
    y.name = end_to_end;
    if (a->lengths) {
        const char *row = weft__onnx_position(x, both), *size = weft__onnx_size(x, a->rows[0]);
        const char *of_b = NODE(x, "Add", row, NODE(x, "Sub", size, a->lengths));
        row = NODE(x, "Where", NODE(x, "Less", row, a->lengths), row, of_b);
        row = NODE(x, "Mod", row, weft__onnx_size(x, both->rows[0]));
        y.name = weft__onnx_gather_time(x, end_to_end, row, &y);
    }
    return done(x, c, &y, y.name);
}

static const struct { const char *name; weft__onnx_translator *run; } table[] = {
    { "linear", linear }, { "glu", glu }, { "layer_norm", layer_norm }, { "gate_norm", gate_norm },
    { "first_states", first_states }, { "last_states", last_states }, { "attention", attention },
    { "embedding_run", without_padding }, { "index_select", index_select },
    { "concat_sequences", concat_sequences }
};
weft__onnx_translator *weft__onnx_layers(const char *operator_name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(table[i].name, operator_name))
            return table[i].run;
    return cell_of(&(weft_op){ .name = operator_name }) >= 0 ? recurrent : NULL;
}

bool weft__onnx_reads(const weft_call *c, int i)
{
    const char *name = c->op->name;
    if (cell_of(c->op) >= 0) {
        const direction_calls all = calls_of(c);
        for (int d = 0; d < all.n; d++) {
            const int8_t *input = how(&all.of[d])->input;
            if (i == input[WEFT__X] || i == input[WEFT__H0] || i == input[WEFT__C0])
                return true;
        }
        return false;
    }
    if (!strcmp(name, "index_select"))           /* else the index is recognised by its numbers */
        return i == 0 || !rows_of(c->x[0]) || weft__node_of(c->x[1])->entry_number;
    if (!strcmp(name, "last_states")) {          /* first states come with the recurrent layers */
        const weft__state_move *m = c->attributes;
        return i < m->states * m->parts;
    }
    return strcmp(name, "concat_sequences") && strcmp(name, "embedding_run") ? true :
           *name == 'c'                                                      ? i < 2 : i < 1;
}
