/* recurrent_run.c - runs the fused recurrent layer.
 *
 * The kernels `recur_layer` and `recur_layer_back` do the work. The projection of x, dx and the gradients of
 * the weights are one product each over all N tokens, or computed while a token is in the cache. Only the
 * recurrence runs step by step. The gates' buffer holds sums, then gates, then their gradients, so it serves
 * one backward pass. A second pass, and second derivatives, use the composed form.
 *
 * In a lean layer, or while nothing is recorded, the gates are not a result. They exist for a segment of
 * steps at a time, in a buffer that stays in the cache. Backward runs each segment forward again from its h
 * and c, by the same kernel, with the same bits. */
#include "autograd/packed_weights.h"
#include "nn/recurrent.h"
#include "rnn/rnn.h"

static weft__recurrence recurrence(const weft_call *c, const extents *e)
{
    const weft_batch *b = packed(c)->batch;
    const weft__fold *f = fold(c);
    return (weft__recurrence){
        .cell = how(c)->cell,
        .reverse = how(c)->reverse,
        .sequences = e->n,
        .tokens = e->N,
        .steps = f ? f->steps : b->longest,
        .hidden = e->H,
        .width = e->W,
        .live = f ? f->order.live : b->live,
        .start = f ? f->order.start : b->start,
        .reset = f ? f->reset[how(c)->reverse] : (weft__ints){ NULL, NULL },
        .w_hh = numbers_of(c, WEFT__W_HH),
        .w_hr = numbers_of(c, WEFT__W_HR),
        .h0 = numbers_of(c, WEFT__H0),
        .c0 = numbers_of(c, WEFT__C0),
        .h = Y(c, 0),
        .c = has_c(c) ? Y(c, 1) : NULL,
    };
}

/* ---- segments ---- */
enum { SEGMENT_BYTES = 4 << 20, SEGMENT_ROWS = 1024, DEVICE_FACTOR = 64 };

/* Steps that run together, and their buffers of `room` rows. A layer that keeps its gates is one segment. */
typedef struct { weft__recur_layer l; int64_t room; real *gates, *raw, *h_before, *dh; } segment;

extern int64_t weft__test_segment_rows;
int64_t weft__test_segment_rows;                 /* Only tests set it: rows of a segment, or 0. */

/* Returns the rows of a segment: few enough to keep the gates in a cache, and enough to make the cost of
 * packing the weights negligible. It must not depend on the number of threads, because weight gradients are
 * sums over segments. */
static int64_t segment_rows(const weft_call *c, const extents *e, const weft__recurrence *r)
{
    int64_t rows = SEGMENT_BYTES / (e->S * (int64_t)sizeof(real));
    rows = (rows > SEGMENT_ROWS ? rows : SEGMENT_ROWS) * (dev(c)->k->synchronous ? 1 : DEVICE_FACTOR);
    if (weft__test_segment_rows)
        rows = weft__test_segment_rows;
    rows = rows > r->live.host[0] ? rows : r->live.host[0];       /* at least one step */
    return is_lean(c) && rows < e->N ? rows : e->N;
}

static segment segments_of(const weft_call *c, const extents *e)
{
    segment s = { .l = { .r = recurrence(c, e),
                         .inputs = e->F,
                         .x = X(c, WEFT__X),
                         .w_ih = numbers_of(c, WEFT__W_IH),
                         .b_ih = numbers_of(c, WEFT__B_IH),
                         .b_hh = numbers_of(c, WEFT__B_HH),
                         .total = weft__device_scratch(c, e->S) } };
    if (input_of(c, WEFT__IDS)) {
        s.l.x = numbers_of(c, WEFT__TABLE);
        s.l.ids = (int32_t *)(void *)numbers_of(c, WEFT__IDS);
        s.l.rows = input_of(c, WEFT__TABLE)->f.size[0];
        s.l.of_rows = weft__device_scratch(c, s.l.rows * e->S);
    }
    int k = at_gates(c);
    s.room = segment_rows(c, e, &s.l.r);
    s.gates = is_lean(c) ? weft__device_scratch(c, s.room * e->S) : Y(c, k);
    s.raw = !s.l.r.w_hr ? NULL : is_lean(c) ? weft__device_scratch(c, s.room * e->H) : Y(c, k + 1);
    return s;
}

/* Returns the address of row 0 if p is the address of `row`; NULL for NULL. */
static real *base_of_row(real *p, int64_t row, int64_t columns)
{
    return p ? (real *)((uintptr_t)p - (uintptr_t)(row * columns) * sizeof *p) : NULL;
}

/* Advances to the next segment, up or down the steps, or to the first one. Returns false at the end. */
static bool next_segment(segment *s, const extents *e, bool down)
{
    weft__recurrence *r = &s->l.r;
    const int32_t *start = r->start.host;
    if (r->to == r->from)
        r->from = r->to = down ? r->steps : 0;
    if (down) {
        for (r->to = r->from; r->from > 0 && start[r->to] - start[r->from - 1] <= s->room;)
            r->from--;
    } else
        for (r->from = r->to; r->to < r->steps && start[r->to + 1] - start[r->from] <= s->room;)
            r->to++;
    int64_t row = start[r->from];
    r->gates = base_of_row(s->gates, row, e->S);
    r->raw = base_of_row(s->raw, row, e->H);
    r->h_before = base_of_row(s->h_before, row, e->W);
    r->dh = base_of_row(s->dh, row, e->W);
    return r->to > r->from;
}

const void *weft__pack_layer(const weft_call *c, weft_tensor *const *weights, const weft__recur_layer *l)
{
    weft__device *d = dev(c);
    weft__packed *k = weft__packed_of(weights, WEFT__RNN_WEIGHTS, WEFT__PACK_LAYER, d->k->recur_packs(d, l));
    if (k && !k->filled)
        d->k->recur_pack(d, l, k->data), weft__mark_filled(k);
    return k ? k->data : NULL;
}

/* Returns the cached packed weights. They are used while nothing is recorded and the weights are tensors of
 * step 0, until these change. */
static const void *packed_weights(const weft_call *c, const weft__recur_layer *l)
{
    weft_tensor *weights[WEFT__RNN_WEIGHTS];
    for (int i = 0; i < WEFT__RNN_WEIGHTS; i++) {
        weights[i] = input_of(c, WEFT__W_IH + i);
        if (weights[i] && weights[i]->step)
            return NULL;
    }
    if (weights[0]->w->recording || how(c)->lean)
        return NULL;
    return weft__pack_layer(c, weights, l);
}

/* Runs two directions together if each is one segment. */
void weft__recurrent_run(weft_call *c)
{
    const direction_calls all = calls_of(c);
    const extents e = sizes(&all.of[0]);
    weft *w = c->y[0]->w;
    segment s[2];
    bool together = all.n == 2;
    if (e.N == 0)
        return;
    int64_t before = weft__position(w, WEFT__ARENA_DATA);
    for (int d = 0; d < all.n; d++) {
        s[d] = segments_of(&all.of[d], &e);
        s[d].l.packed = w->status ? NULL : packed_weights(&all.of[d], &s[d].l);
        together = together && s[d].room == e.N;
    }
    if (together)
        next_segment(&s[1], &e, how(&all.of[1])->reverse), s[0].l.beside = &s[1].l;
    for (int d = 0; d < (together ? 1 : all.n); d++)
        while (!w->status && !w->dev.failure[0] && next_segment(&s[d], &e, how(&all.of[d])->reverse))
            RUN(c, recur_layer, &s[d].l);
    weft__rewind_to(w, WEFT__ARENA_DATA, before);
}

/* ---- backward ---- */
static weft__into dx_target(const weft_call *c, int k) /* target of an input's gradient */
{
    weft__into i = { NULL, false };
    /* The gradient of x is one product, unless its blocks are several runs of slots. */
    const weft__cell cell = how(c)->cell;
    const bool whole = k == WEFT__X && weft__blocks_from(cell, false, 0) == weft__gates(cell);
    if (input_of(c, k))
        i.to = (whole ? weft__dx_whole : weft_op_dx)(c, how(c)->input[k], &i.add);
    return i;
}

/* Does the same for kernels that add. */
static real *dx_sum(const weft_call *c, int k, weft__blocks *zeros)
{
    return input_of(c, k) ? weft__dx_sum(c, how(c)->input[k], zeros) : NULL;
}

static void prepare_back(const weft_call *c, const extents *e, segment *s, weft__blocks *zeros)
{
    weft__recur_layer *l = &s->l;
    weft__recurrence *r = &l->r;
    enum { LINE = 64 };                          /* alignment of vectors */
    int64_t columns = fold(c) ? fold(c)->columns : e->n, of_h = (columns * e->W + LINE - 1) / LINE * LINE;
    r->dy = weft_op_dy(c, 0);
    r->dyc = r->c ? weft_op_dy(c, 1) : NULL;
    const int64_t carries = of_h + (r->c ? columns * e->H : 0);
    r->dh0 = dx_sum(c, WEFT__H0, zeros);
    r->dc0 = dx_sum(c, WEFT__C0, zeros);
    r->carry_h = weft__device_scratch(c, carries);
    if (r->carry_h)
        weft__add_zeros(c, zeros, r->carry_h, carries);
    r->carry_c = r->c && r->carry_h ? r->carry_h + of_h : NULL;
    s->h_before = weft__device_scratch(c, s->room * e->W);
    s->dh = r->w_hr ? weft__device_scratch(c, s->room * e->W) : NULL;
    if (!l->dx.to)
        l->dx = dx_target(c, l->ids ? WEFT__TABLE : WEFT__X);
    l->dw_ih = dx_target(c, WEFT__W_IH);
    l->dw_hh = dx_target(c, WEFT__W_HH);
    l->dw_hr = dx_target(c, WEFT__W_HR);
    l->db_ih = dx_target(c, WEFT__B_IH);
    l->db_hh = dx_target(c, WEFT__B_HH);
}

/* Backward for ids when the gradient of the looked-up rows is requested: the table then gets its gradient
 * through these rows. Returns the packed target of the gradient. */
static weft_tensor *use_looked_up_rows(const weft_call *c, segment *s)
{
    weft_tensor *x = weft__arranged_as(c->x[WEFT__X], packed(c)), *dx = weft__empty(x->w, &x->f);
    s->l.ids = NULL;
    s->l.x = weft_op_data(x);
    s->l.dx = (weft__into){ dx->data, false };
    return dx;
}
static void accumulate_rows(const weft_call *c, weft_tensor *packed_dx)
{
    const weft_tensor *x = c->x[WEFT__X];
    const real *from = weft_op_data(
        weft__forms_equal(&packed_dx->f, &x->f) ? packed_dx : weft__arranged(packed_dx, &x->f, 0));
    weft__blocks zeros = { 0 };
    real *dx = dx_sum(c, WEFT__X, &zeros);
    weft__run_blocks(c, &zeros);
    if (dx && from)
        RUN(c, scale, count(x), 1, from, dx, true);
}

static void back_by_segments(const weft_call *c, const extents *e, segment *s)
{
    const weft *w = c->y[0]->w;
    while (!w->status && !w->dev.failure[0] && next_segment(s, e, !how(c)->reverse)) {
        if (is_lean(c))
            RUN(c, recur_layer, &s->l);
        RUN(c, recur_layer_back, &s->l);
        weft__into *sums[] = { &s->l.dw_ih, &s->l.dw_hh, &s->l.dw_hr, &s->l.db_ih, &s->l.db_hh };
        for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
            sums[i]->add = true;                 /* for the next segment */
        s->l.dx.add |= s->l.ids != NULL;         /* the gradient of a table is also a sum */
    }
}
/* Runs backward as for two entries, the last first. Where two directions run together, they keep their gates
 * and each is one segment. */
static void back(const direction_calls *all, const extents *e)
{
    const weft *w = all->of[0].y[0]->w;
    const int last = all->n - 1;
    segment s[2];
    weft_tensor *rows_dx[2];
    weft__blocks zeros = { 0 };
    for (int d = last; d >= 0; d--) {
        const weft_call *c = &all->of[d];
        s[d] = segments_of(c, e);
        rows_dx[d] = s[d].l.ids && weft__keeps_gradient(c->x[WEFT__X]) ? use_looked_up_rows(c, &s[d]) : NULL;
        prepare_back(c, e, &s[d], &zeros);
    }
    weft__run_blocks(&all->of[0], &zeros);
    if (last)
        next_segment(&s[0], e, !how(&all->of[0])->reverse), s[1].l.beside = &s[0].l;
    back_by_segments(&all->of[last], e, &s[last]);
    for (int d = last; d >= 0 && !w->status; d--)
        if (rows_dx[d])
            accumulate_rows(&all->of[d], rows_dx[d]);
}

void weft__recurrent_back(const weft_call *c)
{
    const direction_calls all = calls_of(c);
    extents e = sizes(&all.of[0]);
    if (how(c)->trace && !is_lean(c)) {          /* a traced run is one direction */
        weft__recurrence r = recurrence(c, &e);
        r.from = 0;
        r.to = r.steps;
        r.raw = input_of(c, WEFT__W_HR) ? Y(c, at_gates(c) + 1) : NULL;
        weft__trace_back(c, how(c)->trace, how(c)->run, r, fold(c) ? fold(c)->columns : e.n);
    }
    weft__blocks zeros = { 0 };
    if (e.N)
        back(&all, &e);
    else                                         /* without tokens all gradients are zeros */
        for (int i = 0; i < all.n * WEFT__RNN_INPUTS; i++)
            dx_sum(&all.of[i / WEFT__RNN_INPUTS], i % WEFT__RNN_INPUTS, &zeros);
    weft__run_blocks(c, &zeros);
}
