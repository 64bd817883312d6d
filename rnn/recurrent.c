/* recurrent.c - the operator of a fused recurrent layer: its shapes, composed form and records.
 *
 * One entry of the tape runs one direction of a layer over a whole batch, packed or in rows (by_time.c).
 * On a GPU one entry may run both directions, so that one launch computes a step of both; are_one in layers.c
 * decides this. Its results are those of the first direction, then those of the second. The forward and fused
 * backward functions are in recurrent_run.c. */
#include "nn/recurrent.h"
#include "rnn/rnn.h"

/* Returns whether x is NULL or has the shape [rows, columns], or [rows] if columns is 0. */
static bool is(const weft_tensor *x, int64_t rows, int64_t columns)
{
    return !x ||
           (x->f.rank == 1 + (columns != 0) && x->f.size[0] == rows && (!columns || x->f.size[1] == columns));
}

static bool shape_of_one(weft_call *c)
{
    const weft__form *x = packed(c);
    if (!x->batch || x->rank != (input_of(c, WEFT__IDS) ? 1 : 2) || (x->layout != WEFT_PACKED && !fold(c)))
        return weft_op_refuse(c, "x: expected packed rows [tokens, input]");
    extents e = sizes(c);
    if (!is(input_of(c, WEFT__W_IH), e.G, e.F) || !is(input_of(c, WEFT__W_HH), e.G, e.W) ||
        !is(input_of(c, WEFT__W_HR), e.W, e.H) || !is(input_of(c, WEFT__B_IH), e.G, 0) ||
        !is(input_of(c, WEFT__B_HH), e.G, 0))
        return weft_op_refuse(c, "weights: shapes do not match; expected w_ih [G, input], w_hh [G, width], "
                                 "w_hr [width, hidden] and biases [G], with G = gates * hidden");
    if (!is(input_of(c, WEFT__H0), e.n, e.W) || !is(input_of(c, WEFT__C0), e.n, e.H))
        return weft_op_refuse(c, "first: expected h [sequences, width] and c [sequences, hidden]");
    int64_t of_gates = at_gates(c);
    for (int k = 0; k < c->m; k++) {
        c->y[k]->f = *x;
        c->y[k]->f.type = WEFT_REAL;
        c->y[k]->f.rank = 2;
        c->y[k]->f.size[1] = k == 0 ? e.W : k == of_gates ? e.S : e.H;
    }
    return true;
}
static bool shape(weft_call *c)
{
    direction_calls all = calls_of(c);
    return shape_of_one(&all.of[0]) && (all.n == 1 || shape_of_one(&all.of[1]));
}

static void composed_of_one(const weft_call *c, weft_tensor **y)
{
    weft__direction d = {
        .cell = how(c)->cell, .has_c = has_c(c), .reverse = how(c)->reverse, .hidden = sizes(c).H
    };
    for (int k = 0; k < WEFT__RNN_INPUTS; k++)
        d.in[k] = input_of(c, k);
    d.in[WEFT__X] = weft__arranged_as(d.in[WEFT__X], packed(c));
    weft_state s = weft__recurrent_composed(&d);
    y[0] = s.h;
    if (s.c)
        y[1] = s.c;
}
static void recurrent_composed(const weft_call *c, weft_tensor **y)
{
    const direction_calls all = calls_of(c);
    for (int d = 0; d < all.n; d++)
        composed_of_one(&all.of[d], y + d * all.of[d].m);
}

static void describe(const weft_call *c, char *text, size_t size)
{
    const direction_calls all = calls_of(c);
    snprintf(text, size, "layer=%d%s%s%s", how(c)->layer, how(c)->reverse ? ", reverse" : "",
             all.n == 2 ? ", both directions" : "", is_lean(&all.of[0]) ? ", lean" : "");
}

/* ---- the records of a cell ---- */
/* Each cell has five records: lean; with gates; with gates and a projection; both directions, lean; both
 * directions, with gates. They differ in the number of results and in `once`. Backward overwrites the saved
 * gates, so it runs only once; a lean call saves no gates. */
#define RECORD(its_name, its_results, is_once)                                                               \
    {                                                                                                        \
        .name = its_name, .results = its_results, .layout = WEFT_ROWS, .once = is_once, .shape = shape,      \
        .forward = weft__recurrent_run, .fused = weft__recurrent_back, .composed = recurrent_composed,       \
        .describe = describe                                                                                 \
    }
#define CELL(name, gpu, gates, slots, states, ...) \
    { RECORD(#name, states, false), RECORD(#name, states + 1, true), RECORD(#name, states + 2, true),        \
      RECORD(#name, 2 * states, false), RECORD(#name, 2 * states + 2, true) },
static const weft_op records[][5] = {
#include "core/cells.def"
};

static const weft_op *op_of(const weft__direction *d, bool both)
{
    bool lean = d->lean || (!d->in[WEFT__X]->w->recording && !d->trace);
    return &records[d->cell][both ? 4 - lean : lean ? 0 : d->in[WEFT__W_HR] ? 2 : 1];
}

/* Appends the inputs of a direction to x, counts them in *n, and returns the attributes with their indices.
 * first: NULL, or for the second direction the attributes of the first, which has the same x, ids and
 * table. */
static attributes attributes_of(const weft__direction *d, const attributes *first, weft_tensor **x, int *n)
{
    attributes a = { .cell = d->cell, .reverse = d->reverse, .layer = d->layer, .trace = d->trace };
    a.run = d->trace ? d->trace->run + 1 : 0;
    a.lean = d->lean;
    for (int k = 0; k < WEFT__RNN_INPUTS; k++) {
        const bool shared = first && (k == WEFT__X || k == WEFT__IDS || k == WEFT__TABLE);
        a.input[k] = shared ? first->input[k] : (int8_t)(d->in[k] ? *n : -1);
        if (!shared && d->in[k])
            x[(*n)++] = d->in[k];
    }
    return a;
}
weft_state weft__recurrent(const weft__direction *d)
{
    weft_tensor *x[WEFT__RNN_INPUTS];
    int n = 0;
    const attributes a = attributes_of(d, NULL, x, &n);
    const weft_call *c = weft__apply(op_of(d, false), x, n, &a, sizeof a);
    if (d->trace && weft_ok(c->y[0]->w))
        weft__trace_begin(d->trace, d, c);
    return (weft_state){ c->y[0], d->has_c ? c->y[1] : NULL };
}
void weft__recurrent_both(const weft__direction *d, weft_state *y)
{
    weft_tensor *x[2 * WEFT__RNN_INPUTS];
    int n = 0;
    attributes a[2] = { attributes_of(d, NULL, x, &n) };
    a[0].both = true;
    a[1] = attributes_of(d + 1, a, x, &n);
    const weft_call *c = weft__apply(op_of(d, true), x, n, a, sizeof a);
    const int m = c->m / 2;
    for (int i = 0; i < 2; i++)
        y[i] = (weft_state){ c->y[i * m], d->has_c ? c->y[i * m + 1] : NULL };
}
