/* step.c - runs one token of some sequences through all layers while nothing is recorded, for streaming and
 * decoding.
 *
 * The kernel is that of a whole run, on one step of n tokens, so the results have the same bits. But no batch
 * is made and no states are rearranged. Packed weights are cached until the weights change
 * (autograd/packed_weights.h), and so is the projection of a small table if the tokens are its rows. A token
 * then costs only the product with the weights of h. */
#include <string.h>
#include "autograd/fused.h"
#include "autograd/packed_weights.h"
#include "rnn/rnn.h"

enum { X_, NOT_THERE = -1 };

/* Indices of the inputs: previous states, table and ids. */
typedef struct attributes { weft__layers r; int8_t h, c, table, ids; } attributes;
static const attributes *attributes_of(const weft_call *c) { return c->attributes; }

static bool step_shape(weft_call *c)
{
    const weft__layers *r = &attributes_of(c)->r;
    const int64_t n = c->x[X_]->f.size[0];
    weft_op_set_shape(c->y[0], WEFT_REAL, WEFT_SHAPE(n, r->width));
    weft_op_set_shape(c->y[1], WEFT_REAL, WEFT_SHAPE(r->layers, n, r->width));
    if (c->m > 2)
        weft_op_set_shape(c->y[2], WEFT_REAL, WEFT_SHAPE(r->layers, n, r->hidden));
    return true;
}

/* ---- one layer ---- */
typedef struct layer_run {
    const weft_call *c; weft_tensor *const *weight;
    weft__recur_layer l; int32_t live, start[2];
} layer_run;

static real *data_of(weft_tensor *x) { return x ? x->data : NULL; }
static const real *rows_of(const weft_call *c, int input, int64_t from)
{
    return input == NOT_THERE ? NULL : c->x[input]->data + from;
}
static weft_tensor *weight(const layer_run *o, int k) { return o->weight[k - WEFT__W_IH]; }

static void describe_layer(layer_run *o, int layer, const real *x, int64_t inputs)
{
    const weft_call *c = o->c;
    const weft__layers *r = &attributes_of(c)->r;
    const int64_t n = c->x[X_]->f.size[0], H = r->hidden, W = r->width, S = weft__slots(r->cell) * H;
    o->live = o->start[1] = (int32_t)n;
    o->start[0] = 0;
    o->l = (weft__recur_layer){ .r = { .cell = r->cell,
                                       .sequences = n,
                                       .tokens = n,
                                       .steps = 1,
                                       .hidden = H,
                                       .width = W,
                                       .to = 1,
                                       .live = { &o->live, &o->live },
                                       .start = { o->start, o->start },
                                       .w_hh = data_of(weight(o, WEFT__W_HH)),
                                       .w_hr = data_of(weight(o, WEFT__W_HR)),
                                       .h0 = rows_of(c, attributes_of(c)->h, layer * n * W),
                                       .c0 = rows_of(c, attributes_of(c)->c, layer * n * H),
                                       .gates = weft__device_scratch(c, n * S),
                                       .h = Y(c, 1) + layer * n * W,
                                       .c = c->m > 2 ? Y(c, 2) + layer * n * H : NULL,
                                       .raw = weight(o, WEFT__W_HR) ? weft__device_scratch(c, n * H) : NULL },
                                .inputs = inputs,
                                .x = x,
                                .w_ih = data_of(weight(o, WEFT__W_IH)),
                                .b_ih = data_of(weight(o, WEFT__B_IH)),
                                .b_hh = data_of(weight(o, WEFT__B_HH)),
                                .total = weft__device_scratch(c, S) };
}

/* ---- cached projection of a table ---- */
/* Returns the table followed by a row of zeros for id -1; NULL without memory. */
static const real *with_zeros(const weft_call *c, const weft_tensor *table)
{
    const int64_t n = count(table);
    real *rows = weft__device_scratch(c, n + width(table));
    if (rows) {
        memcpy(rows, table->data, (size_t)n * sizeof *rows);
        memset(rows + n, 0, (size_t)width(table) * sizeof *rows);
    }
    return rows;
}

static const int32_t *rows_by_id(const weft_call *c, const weft_tensor *ids, int64_t rows)
{
    const int64_t n = count(ids);
    const int32_t *id = (const int32_t *)(const void *)ids->data;
    int32_t *row = (int32_t *)(void *)weft__device_scratch(c, n);
    for (int64_t i = 0; row && i < n; i++)
        row[i] = id[i] < 0 ? (int32_t)rows : id[i];
    return row;
}

/* Uses the cached projection as the first layer's sums. Returns a cache entry to be filled, or NULL. */
static weft__packed *take_table(layer_run *o)
{
    const weft_call *c = o->c;
    if (attributes_of(c)->table == NOT_THERE)
        return NULL;
    weft_tensor *table = c->x[attributes_of(c)->table];
    weft_tensor *inputs[] = { weight(o, WEFT__W_IH), table, weight(o, WEFT__B_IH), weight(o, WEFT__B_HH) };
    const int64_t rows = table->f.size[0], S = weft__slots(o->l.r.cell) * o->l.r.hidden;
    weft__packed *k = weft__packed_of(inputs, 4, WEFT__PACK_TABLE, (size_t)((rows + 1) * S) * sizeof(real));
    const int32_t *row = k ? rows_by_id(c, c->x[attributes_of(c)->ids], rows) : NULL;
    const real *x = row && !k->filled ? with_zeros(c, table) : o->l.x;
    if (row && x) {
        o->l.ids = row;
        o->l.rows = rows + 1;
        o->l.of_rows = k->data;
        o->l.summed = k->filled;
        o->l.x = x;
    }
    return o->l.ids && !k->filled ? k : NULL;
}

static void step_run(weft_call *c)
{
    const weft__layers *r = &attributes_of(c)->r;
    weft *w = c->y[0]->w;
    const int64_t before = weft__position(w, WEFT__ARENA_DATA), n = c->x[X_]->f.size[0] * r->width;
    const real *x = X(c, X_);
    for (int l = 0; l < r->layers; l++, x = Y(c, 1) + (l - 1) * n) {
        layer_run o = { .c = c, .weight = r->weight[l] };
        describe_layer(&o, l, x, l ? r->width : r->input);
        if (!r->lean)
            o.l.packed = weft__pack_layer(c, o.weight, &o.l);
        weft__packed *fills = l || r->lean ? NULL : take_table(&o);
        if (w->status)
            return;
        RUN(c, recur_layer, &o.l);
        if (fills && !w->dev.failure[0])
            weft__mark_filled(fills);
    }
    memcpy(Y(c, 0), x, (size_t)n * sizeof *x);
    weft__rewind_to(w, WEFT__ARENA_DATA, before);
}

/* ---- the records of a cell ---- */
#define CELL(its_name, gpu, gates, slots, states, ...) \
    {                                                  \
        .name = #its_name,                             \
        .results = 1 + states,                         \
        .no_gradient = true,                           \
        .shape = step_shape,                           \
        .forward = step_run,                           \
    },
static const weft_op records[] = {
#include "core/cells.def"
};

bool weft__can_step(const weft_tensor *x)
{
    return !x->w->recording && x->w->dev.k->synchronous && x->f.size[0] > 0;
}

/* Appends an input and returns its index; NOT_THERE for NULL. */
static int8_t add_input(weft_tensor **in, int *n, weft_tensor *x)
{
    if (x)
        in[*n] = x;
    return x ? (int8_t)(*n)++ : NOT_THERE;
}

weft_rnn_out weft__run_step(const weft__layers *r, weft_tensor *x, weft_state before)
{
    weft_tensor *in[5] = { x }, *ids = NULL, *table = weft__table_of(x, &ids);
    int n = 1;
    const bool known = table && table->f.rank == 2 && table->f.size[0] <= WEFT__FEW_ROWS && !table->step;
    attributes a = { .r = *r };
    a.h = add_input(in, &n, before.h);
    a.c = add_input(in, &n, before.c);
    a.table = add_input(in, &n, known ? table : NULL);
    a.ids = add_input(in, &n, known ? ids : NULL);
    const weft_call *c = weft__apply(&records[r->cell], in, n, &a, sizeof a);
    return (weft_rnn_out){ c->y[0], { c->y[1], weft__states(r->cell) > 1 ? c->y[2] : NULL } };
}
