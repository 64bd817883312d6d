/* layers.c - runs recurrent layers: stacked layers, two directions, dropout between layers, states in the
 * user's order. Each layer and direction is one fused operator, or the composed form. */
#include "autograd/fused.h"
#include "rnn/layers.h"

/* ---- layers and directions over a packed batch ---- */
/* Returns part k of a stack, in the user's order. */
static weft_tensor *part_of(weft_tensor *stack, int k)
{
    return stack ? weft_reshape(weft_slice(stack, 0, k, k + 1),
                                WEFT_SHAPE(weft_size(stack, 1), weft_size(stack, 2))) :
                   NULL;
}
/* Returns weight_hh of direction k, with dropout if the layer drops weights. The mask has the parameter's
 * name. */
static weft_tensor *recurrent_weight(const weft_rnn *r, int k)
{
    char name[WEFT__PATH + 32];
    weft_tensor *weight = r->weight[k][WEFT__W_HH - WEFT__W_IH];
    if (!weight || r->opts.weight_drop == 0 || !weight->w->training)
        return weight;
    snprintf(name, sizeof name, "%s.weight_hh_l%d%s", r->m->path, k / directions(r),
             k % directions(r) ? "_reverse" : "");
    return weft_dropout(weight, r->opts.weight_drop, name, false);
}

/* Returns the direction k of a layer. first: stacked states. */
static weft__direction direction_of(weft_rnn *r, weft_tensor *x, weft__ids by, weft_state first, int k,
                                    const weft__state_map *e)
{
    weft__direction d = { .cell = r->cell,
                          .own = is_own(r) ? &r->own_cells[k] : NULL,
                          .trace = r->traces.on ? r->traces.trace + k : NULL,
                          .has_c = r->has_c,
                          .reverse = k % directions(r),
                          .lean = r->opts.lean || x->w->lean,
                          .layer = k / directions(r),
                          .hidden = r->opts.hidden,
                          .in = { x } };
    d.in[WEFT__IDS] = by.ids;
    d.in[WEFT__TABLE] = by.table;
    for (int i = 0; i < WEFT__RNN_WEIGHTS; i++)
        d.in[WEFT__W_IH + i] = r->weight[k][i];
    d.in[WEFT__W_HH] = recurrent_weight(r, k);
    const weft_state own = is_linear(r) ? (weft_state){ part_of(first.h, k), part_of(first.c, k) } :
                                          weft__first_states(e, first, k);
    d.in[WEFT__H0] = own.h;
    d.in[WEFT__C0] = own.c;
    return d;
}
/* Returns whether both directions are one entry of the tape, so that a GPU runs them in one launch. */
static bool runs_together(const weft_rnn *r, const weft *w)
{
    return directions(r) == 2 && !w->dev.k->synchronous && !r->composed && !is_own(r) && !r->traces.on &&
           !r->opts.proj && !r->opts.lean && !w->lean;
}
static void run_directions(weft_rnn *r, weft_tensor *x, weft__ids by, weft_state first, int k,
                           const weft__state_map *e, weft_state *y)
{
    weft__direction d[2];
    const bool both = runs_together(r, x->w);
    for (int i = 0; i < directions(r) && !x->w->status; i++) {
        d[i] = direction_of(r, x, by, first, k + i, e);
        if (!both && !x->w->status)
            y[i] = is_linear(r) ? weft__linear_direction(&d[i], &r->linear) :
                   r->composed  ? weft__recurrent_composed(&d[i]) :
                                  weft__recurrent(&d[i]);
    }
    if (both && !x->w->status)
        weft__recurrent_both(d, y);
}

static weft_tensor *drop_between_layers(const weft_rnn *r, weft_tensor *x, int layer)
{
    char name[WEFT__PATH + 24];
    if (!layer || r->opts.dropout == 0 || !x->w->training)
        return x;
    snprintf(name, sizeof name, "%s.dropout_l%d", r->m->path, layer - 1);
    return weft_dropout(x, r->opts.dropout, name, r->opts.variational);
}

/* Runs all layers. x, or ids if given, is packed, or has rows step by step; CONCAT in a linear layer. */
static weft_rnn_out run_layers(weft_rnn *r, weft_tensor *x, weft__ids by, weft_state first)
{
    const weft__form form = (by.ids ? by.ids : x)->f;
    weft *w = x->w;
    const weft__state_map *e = w->status ? NULL : weft__state_map_of(&form, stacked(r));
    weft_tensor *h[2 * LAYERS], *c[2 * LAYERS];
    for (int l = 0, k = 0; l < r->opts.layers; l++) {
        if (!by.ids)
            /* Dropout between two layers may have changed the layout. */
            x = weft__arranged_as(drop_between_layers(r, x, l), &form);
        weft_state s[2] = { { NULL, NULL }, { NULL, NULL } };
        run_directions(r, x, by, first, k, e, s);
        if (w->status)
            return (weft_rnn_out){ &w->nil, { &w->nil, &w->nil } };
        for (int d = 0; d < directions(r); d++, k++) {
            h[k] = s[d].h;
            c[k] = s[d].c;
        }
        x = directions(r) == 2 ? weft_concat(h + k - 2, 2, 1) : h[k - 1];
        by = (weft__ids){ NULL, NULL };          /* ids belong to the first layer only */
    }
    if (w->status)
        return (weft_rnn_out){ &w->nil, { &w->nil, &w->nil } };
    return (weft_rnn_out){
        x, weft__last_states(e, h, r->has_c ? c : NULL, stacked(r), directions(r), first)
    };
}

/* ---- checks of inputs ---- */
static bool state_fits(const weft_rnn *r, const char *function, const char *name, const weft_tensor *t,
                       int64_t n, int64_t wide)
{
    weft *w = r->m->w;
    if (t && WEFT__IS_USABLE(w, t, "%s: state %s", function, name) &&
        (t->f.rank != 3 || t->f.batch || t->f.type != WEFT_REAL || t->f.size[0] != stacked(r) ||
         t->f.size[1] != n || t->f.size[2] != wide))
        weft__fail(w, WEFT_ESHAPE,
                   "%s: state %s is %s; expected [%d, %lld, %lld] (layers * directions, sequences, width)",
                   function, name, WEFT__TEXT(&t->f), stacked(r), (long long)n, (long long)wide);
    return !w->status;
}

static bool states_fit(const weft_rnn *r, const char *function, weft_state s, int64_t n)
{
    weft *w = r->m->w;
    if (s.c && !r->has_c)
        weft__fail(w, WEFT_EARG, "%s: state c is given; expected NULL, for a cell with one state, h",
                   function);
    else if (r->has_c && !s.h != !s.c)
        weft__fail(w, WEFT_EARG, "%s: state %s is NULL; expected both h and c, or neither", function,
                   s.h ? "c" : "h");
    return !w->status && state_fits(r, function, "h", s.h, n, h_width(r)) &&
           state_fits(r, function, "c", s.c, n, c_width(r));
}

static bool input_fits(const weft_rnn *r, const char *function, const weft_tensor *x, int plain_rank)
{
    weft *w = r->m->w;
    bool one = plain_rank == 2;
    int rank = x->f.batch ? 2 : plain_rank;
    if (x->f.type != WEFT_REAL || (x->f.batch && one) || x->f.rank != rank ||
        x->f.size[rank - 1] != r->opts.input || x->f.size[1] >= INT32_MAX)
        weft__fail(w, WEFT_ESHAPE, "%s: x is %s; expected %s%lld] of reals%s", function, WEFT__TEXT(&x->f),
                   one ? "plain [sequences, " : "ragged rows or plain [sequences, steps, ",
                   (long long)r->opts.input, weft__ids_advice(&x->f));
    return !w->status;
}

static bool call_fits(const weft_rnn *r, const char *function, const weft_tensor *x, weft_state s,
                      int plain_rank)
{
    return WEFT__IS_USABLE(r->m->w, x, "%s: x", function) && !r->m->w->status &&
           input_fits(r, function, x, plain_rank) &&
           states_fit(r, function, s, x->f.batch ? x->f.batch->n : x->f.size[0]);
}

/* ---- runs ---- */
static weft_rnn_out run_batch(weft_rnn *r, weft_tensor *x, weft_state first)
{
    const bool rows = x->f.layout == WEFT_ROWS && !is_linear(r);
    weft__form order = { .batch = x->f.batch,
                         .layout = is_linear(r) ? WEFT_CONCAT : rows ? WEFT_ROWS : WEFT_PACKED,
                         .place = rows ? weft__by_time(x->f.batch, x->f.place) : NULL };
    if (rows && !order.place)
        return (weft_rnn_out){ &x->w->nil, { &x->w->nil, &x->w->nil } };
    weft__ids by = r->composed ? (weft__ids){ NULL, NULL } : weft__ids_of(x, &order);
    weft__form in = weft__as_layout(x->f, order.batch, order.layout, 0, WEFT_ALIGN_LEFT, order.place);
    r->traces.form = x->f;
    r->traces.plain_form.rank = 0;
    /* Makes a separate tensor that both directions read. */
    weft_rnn_out o = run_layers(r, by.ids ? x : weft__arranged(x, &in, 0), by, first);
    o.y = weft__arranged_as(o.y, &x->f);
    return o;
}

static weft_rnn_out run_plain(weft_rnn *r, weft_tensor *x, const char *function, int64_t T, weft_state first)
{
    weft *w = x->w;
    weft__form f = x->f;
    weft_tensor *rows = weft__as_batch(x, function, f.size[0], T);
    weft_rnn_out o = weft_ok(w) ? run_batch(r, rows, first) : (weft_rnn_out){ &w->nil, { &w->nil, &w->nil } };
    f.size[f.rank - 1] = width(o.y);
    o.y = weft__view(o.y, &f);
    r->traces.plain_form = f;
    return o;
}

/* Returns whether the step needs nothing that only a run over a batch supports. */
static bool can_step(const weft_rnn *r, const weft_tensor *x)
{
    return !r->composed && !is_own(r) && !r->traces.on &&
           !(x->w->training && ((r->opts.dropout > 0 && r->opts.layers > 1) || r->opts.weight_drop > 0)) &&
           weft__can_step(x);
}
static weft_rnn_out one_step(const weft_rnn *r, weft_tensor *x, weft_state before)
{
    const weft__layers l = { r->cell,    r->opts.layers, r->opts.input, r->opts.hidden,
                             h_width(r), r->opts.lean,   r->weight };
    return weft__run_step(&l, x, before);
}

static weft_rnn_out run_checked(weft_rnn *r, const char *function, weft_tensor *x, weft_state first,
                                int plain_rank)
{
    weft *w = r && r->m ? r->m->w : weft__bad_input(NULL, x, function)->w;
    weft_rnn_out o = { &w->nil, { &w->nil, r && r->has_c ? &w->nil : NULL } };
    if (!r || !r->m)
        return o;
    const weft_module *before = weft__enter(r->m);
    if (plain_rank == 2 && directions(r) == 2)
        weft__fail(w, WEFT_EARG, "%s: the layer has two directions; expected one, or weft_rnn_run", function);
    if (call_fits(r, function, x, first, plain_rank) &&
        weft__trace_allowed(&r->traces, function, r->composed, r->opts.lean || w->lean)) {
        const int64_t T = plain_rank == 3 ? x->f.size[1] : 1;
        weft_rnn_out y = x->f.batch                        ? run_batch(r, x, first) :
                         plain_rank == 2 && can_step(r, x) ? one_step(r, x, first) :
                                                             run_plain(r, x, function, T, first);
        o = weft_ok(w) ? y : o;
    }
    weft__leave(r->m, before);
    return o;
}

weft_rnn_out weft_rnn_run(weft_rnn *r, weft_tensor *x, weft_state first)
{
    return run_checked(r, "rnn_run", x, first, 3);
}
weft_rnn_out weft_rnn_step(weft_rnn *r, weft_tensor *x, weft_state state)
{
    return run_checked(r, "rnn_step", x, state, 2);
}

weft_tensor *weft_final_state(weft_rnn *r, weft_state last)
{
    if (!r || !r->m)
        return weft__bad_input(NULL, last.h, "final_state");
    weft *w = r->m->w;
    const weft_module *before = weft__enter(r->m);
    if (!last.h)
        weft__fail(w, WEFT_EARG, "final_state: state h is NULL; expected the last state of a run");
    else if (!w->status)
        state_fits(r, "final_state", "h", last.h, weft_size(last.h, 1), h_width(r));
    weft_tensor *y[2] = { &w->nil, &w->nil };
    for (int d = 0; !w->status && d < directions(r); d++)
        y[d] = part_of(last.h, stacked(r) - directions(r) + d);
    return weft__leave_with(r->m, before, directions(r) == 2 ? weft_concat(y, 2, 1) : y[0]);
}
