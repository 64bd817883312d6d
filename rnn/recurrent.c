/* recurrent.c - the fused recurrent layer: one tape entry for one direction over a whole packed batch, or over rows of several sequences.
 *
 * The kernels `recur_layer` and `recur_layer_back` do it all: the projection of x, dx and the gradients of the weights are one product each over all N
 * tokens, or done while a token is in the caches; only what is recurrent must run step by step. The buffer of the gates holds sums, then gates, then their
 * gradients, so it serves one walk back; a second one, and second derivatives, go through the composed form.
 *
 * N tokens, n sequences, F inputs, H hidden units, W the width of h, G = gates H rows of the weights, S = slots H columns of the
 * buffer: a GRU's has one slot more, since n's two sides have gradients of their own. */
#include "autograd/autograd.h"
#include "rnn/rnn.h"

typedef struct { weft__cell cell; bool reverse; int8_t at[WEFT__RNN_INPUTS]; } attributes;   /* at: which x of the call; -1: absent */
typedef struct { int64_t N, n, F, H, W, G, S; } extents;

static const attributes *how(const weft_call *c) { return c->attributes; }
static weft_tensor *input(const weft_call *c, int k) { return how(c)->at[k] < 0 ? NULL : c->x[how(c)->at[k]]; }
static real *numbers(const weft_call *c, int k)      { return input(c, k) ? input(c, k)->data : NULL; }

/* Results: h, [LSTM: c,] then the gates and, with a projection, h before it. */
static int slot_of_gates(const weft_call *c) { return how(c)->cell == WEFT__LSTM ? 2 : 1; }

static extents sizes(const weft_call *c)
{
    const weft__form *x = &c->x[WEFT__X]->f;
    int64_t W = width(c->x[WEFT__W_HH]), H = input(c, WEFT__W_HR) ? width(input(c, WEFT__W_HR)) : W, S = how(c)->cell < WEFT__GRU ? 1 : 4;
    return (extents){ x->size[0], x->batch->n, width(c->x[WEFT__X]), H, W, weft__gates(how(c)->cell) * H, S * H };
}

/* Of rows that are columns of several sequences; NULL: packed. */
static const weft__fold *fold(const weft_call *c)
{
    const weft__form *x = &c->x[WEFT__X]->f;
    return x->layout == WEFT_ROWS ? x->place->fold : NULL;
}

static bool is(const weft_tensor *x, int64_t rows, int64_t columns)      /* [rows, columns], or [rows] if columns is 0; or absent */
{
    return !x || (x->f.rank == 1 + (columns != 0) && x->f.size[0] == rows && (!columns || x->f.size[1] == columns));
}

static bool shape(weft_call *c)
{
    const weft__form *x = &c->x[WEFT__X]->f;
    if (!x->batch || x->rank != 2 || (x->layout != WEFT_PACKED && !fold(c)))
        return weft_refuse(c, "packed rows [tokens, input] are wanted");
    extents e = sizes(c);
    if (!is(c->x[WEFT__W_IH], e.G, e.F) || !is(c->x[WEFT__W_HH], e.G, e.W) || !is(input(c, WEFT__W_HR), e.W, e.H) ||
        !is(input(c, WEFT__B_IH), e.G, 0) || !is(input(c, WEFT__B_HH), e.G, 0))
        return weft_refuse(c, "weights that fit the rows and each other are wanted");
    if (!is(input(c, WEFT__H0), e.n, e.W) || !is(input(c, WEFT__C0), e.n, e.H))
        return weft_refuse(c, "first states [sequences, width] are wanted");
    int64_t of_gates = slot_of_gates(c);
    for (int k = 0; k < c->m; k++) {
        c->y[k]->f = *x;
        c->y[k]->f.size[1] = k == 0 ? e.W : k == of_gates ? e.S : e.H;
    }
    return true;
}

static weft__recurrence recurrence(const weft_call *c, const extents *e)
{
    const weft_batch *b = c->x[WEFT__X]->f.batch;
    const weft__fold *f = fold(c);
    int k = slot_of_gates(c);
    return (weft__recurrence){
        .cell = how(c)->cell, .reverse = how(c)->reverse,
        .sequences = e->n, .tokens = e->N, .steps = f ? f->steps : b->longest, .hidden = e->H, .width = e->W,
        .live = f ? f->order.live : b->live, .start = f ? f->order.start : b->start, .reset = f ? f->reset[how(c)->reverse] : (weft__ints){ NULL, NULL },
        .w_hh = numbers(c, WEFT__W_HH), .w_hr = numbers(c, WEFT__W_HR),
        .h0 = numbers(c, WEFT__H0), .c0 = numbers(c, WEFT__C0),
        .gates = Y(c, k), .h = Y(c, 0), .c = k == 2 ? Y(c, 1) : NULL, .raw = c->m > k + 1 ? Y(c, k + 1) : NULL,
    };
}

static real *scratch(const weft_call *c, int64_t n) /* of the device, until the entry has been passed or the step ends */
{
    weft *w = c->y[0]->w;
    return weft__take(w, &w->data, n * (int64_t)sizeof(real));
}

static real *zeros(const weft_call *c, int64_t n)
{
    real *p = scratch(c, n);
    if (p)
        RUN(c, fill, n, 0, p);
    return p;
}

static weft__recur_layer layer(const weft_call *c, const extents *e)
{
    return (weft__recur_layer){
        .r = recurrence(c, e), .inputs = e->F, .x = X(c, WEFT__X), .w_ih = X(c, WEFT__W_IH),
        .b_ih = numbers(c, WEFT__B_IH), .b_hh = numbers(c, WEFT__B_HH), .total = scratch(c, e->S),
    };
}

static void run(weft_call *c)
{
    extents e = sizes(c);
    if (e.N == 0)
        return;
    weft__recur_layer l = layer(c, &e);
    if (l.total)
        RUN(c, recur_layer, &l);
}

/* ---- backward ---- */
static weft__into into(const weft_call *c, int k)                 /* where the gradient of an input goes */
{
    weft__into i = { NULL, false };
    if (input(c, k))
        i.to = weft_dx(c, how(c)->at[k], &i.add);
    return i;
}

static real *added(const weft_call *c, int k) { return input(c, k) ? weft__dx_added(c, how(c)->at[k]) : NULL; }      /* the same, for kernels that add */

static void back(const weft_call *c, const extents *e)
{
    weft__recur_layer l = layer(c, e);
    weft__recurrence *r = &l.r;
    bool lstm = r->cell == WEFT__LSTM;
    int64_t columns = fold(c) ? fold(c)->columns : e->n;
    r->dy = weft_dy(c, 0), r->dyc = lstm ? weft_dy(c, 1) : NULL;
    r->dh0 = added(c, WEFT__H0), r->dc0 = added(c, WEFT__C0);
    r->carry_h = zeros(c, columns * e->W), r->carry_c = lstm ? zeros(c, columns * e->H) : NULL;
    r->h_before = scratch(c, e->N * e->W), r->dh = r->w_hr ? scratch(c, e->N * e->W) : NULL;
    l.dx = into(c, WEFT__X);
    l.dw_ih = into(c, WEFT__W_IH), l.dw_hh = into(c, WEFT__W_HH), l.dw_hr = into(c, WEFT__W_HR);
    l.db_ih = into(c, WEFT__B_IH), l.db_hh = into(c, WEFT__B_HH);
    if (!c->y[0]->w->status)
        RUN(c, recur_layer_back, &l);
}

static void fused(const weft_call *c)
{
    extents e = sizes(c);
    if (e.N)
        back(c, &e);
    for (int k = 0; e.N == 0 && k < WEFT__RNN_INPUTS; k++)        /* nothing ran: all gradients are zeros */
        added(c, k);
}

static void composed(const weft_call *c, weft_tensor **y)
{
    weft__direction d = { .cell = how(c)->cell, .reverse = how(c)->reverse };
    for (int k = 0; k < WEFT__RNN_INPUTS; k++)
        d.in[k] = input(c, k);
    weft_state s = weft__recurrent_composed(&d);
    y[0] = s.h;
    if (s.c)
        y[1] = s.c;
}

/* ---- the records ---- */
#define RECORD(its_name, its_results)                                                                                      \
    { .name = its_name, .results = its_results, .layout = WEFT_ROWS, .shape = shape, .forward = run, .fused = fused, .once = true, .composed = composed }
static const weft_op op_rnn = RECORD("rnn", 2), op_gru = RECORD("gru", 2), op_lstm = RECORD("lstm", 3), op_projected = RECORD("lstm", 4);

static const weft_op *record_of(const weft__direction *d)
{
    return d->cell < WEFT__GRU ? &op_rnn : d->cell == WEFT__GRU ? &op_gru : d->in[WEFT__W_HR] ? &op_projected : &op_lstm;
}

weft_state weft__recurrent(const weft__direction *d)
{
    attributes a = { .cell = d->cell, .reverse = d->reverse };
    weft_tensor *x[WEFT__RNN_INPUTS];
    int n = 0;
    for (int k = 0; k < WEFT__RNN_INPUTS; k++) {
        a.at[k] = (int8_t)(d->in[k] ? n : -1);
        if (d->in[k])
            x[n++] = d->in[k];
    }
    const weft_call *c = weft__apply(record_of(d), x, n, &a, sizeof a);
    return (weft_state){ c->y[0], d->cell == WEFT__LSTM ? c->y[1] : NULL };
}
