/* test_rnn_lookup.c - tests recurrent layers on embeddings. With many tokens and few table rows, layers use
 * ids in place of rows (rnn/lookup.c). Values and all gradients match the composed layer. The forward has the
 * bits of the same rows without a known table. */
#include "rnn/rnn.h"
#include "tests/rnn/rnn_kinds.h"

enum { ROWS = 3, PADDING = 2, MANY = 40, LONGEST = 20 };         /* sequences, and tokens of one */
typedef struct {
    weft_module *m;
    weft_embedding *e;
    weft_rnn *r;
    weft_lengths l;
    int32_t *ids;
    bool also;
    int layout;
} net;

static net net_of(weft *w, const kind *k, bool padding)
{
    static int32_t len[MANY], ids[MANY * LONGEST];
    net s = { .m = weft_module_new(w, "m"), .l = { .n = MANY, .len = len }, .ids = ids };
    s.layout = WEFT_CONCAT;
    s.e = weft_embedding_new(
        s.m, "e",
        &(weft_embedding_opts){
            .rows = ROWS, .columns = k->o.input, .has_padding = padding, .padding = PADDING });
    s.r = rnn_of(s.m, "r", k);
    dice_lengths(len, MANY, LONGEST);
    for (int i = 0; i < 6; i++)
        len[i] = i == 1 ? 0 : LONGEST;           /* tokens enough for each row */
    for (int i = 0; i < COUNT(ids); i++)
        ids[i] = (int32_t)dice(ROWS);
    if (!padding)
        ids[3] = ids[50] = -1;                   /* a row of zeros as well */
    return s;
}
static weft_tensor *embedded(weft *w, const net *s)
{
    return laid_out(weft_embedding_run(s->e, weft_ragged_ints(w, s->ids, &s->l)), s->layout);
}
static bool by_ids(weft_tensor *x)
{
    weft__form packed = { .batch = x->f.batch, .layout = WEFT_PACKED };
    return weft__ids_of(x, &packed).ids;
}
static weft_tensor *loss(const net *s, const kind *k, weft_tensor *x, weft_rnn_out *o)
{
    *o = weft_rnn_run(s->r, x, random_state(weft_context_of(x), k, s->l.n));
    return s->also ? weft_add(loss_of(*o), weighted(x, 14)) : loss_of(*o);
}
static void gather_all(weft *w, const net *s, const kind *k, bag *b)
{
    weft_rnn_out o;
    weft_zero_grad(s->m);
    weft_backward(loss(s, k, embedded(w, s), &o));
    b->n = 0;
    put(b, o.y), put(b, o.last.h), put(b, weft_flat_gradient(s->m));
    OK(w);
    weft_clear(w);
}

static bag fused, composed;
static void agree(weft *w, const kind *k, bool padding, int layout, bool also, int64_t rows_at_once)
{
    char text[160];
    net s = net_of(w, k, padding);
    s.layout = layout;
    s.also = also;
    weft__test_segment_rows = rows_at_once;
    cr_assert(by_ids(embedded(w, &s)));
    gather_all(w, &s, k, &fused);
    weft_rnn_set_composed(s.r, true);
    gather_all(w, &s, k, &composed);
    weft__test_segment_rows = 0;
    snprintf(text, sizeof text, "%s: %s, %d layers, %d, layout %d, hidden %d, padding %d, lean %d",
             weft_device_name(w), cell_name[k->cell], k->o.layers, k->o.bidirectional, layout,
             (int)k->o.hidden, padding, k->o.lean);
    cr_assert_eq(fused.n, composed.n, "%s", text);
    close_to(text, fused.v, composed.v, fused.n, TOL(1e-11, 5e-5));
}
TABLE_TEST(rnn_lookup, fused_layer_matches_composed_layer)
{
    static const int64_t sizes[][2] = { { 1, 2 }, { 3, 5 }, { 16, 32 }, { 7, 130 } };
    for (int i = 0; i < rounds(20, 400); i++) {
        dice_seed((uint64_t)i);
        const int64_t *size = sizes[i % 10 == 7 ? 3 : i % 3];
        kind k = { i % CELLS,
                   { .input = size[0],
                     .hidden = size[1],
                     .layers = 1 + i % 2,
                     .bidirectional = i / 2 % 2,
                     .no_bias = dice(4) == 0,
                     .lean = i % 3 == 0 },
                   i / 4 % 2 };
        agree(w, &k, dice(2), WEFT_PACKED + (int)dice(3), dice(2), k.o.lean ? 40 : 0);
    }
}

enum { LARGE = CHECK_SANITIZED ? 66 : 130 };     /* units, beyond a multiple of the vector width */
/* Returns the same rows without their link to the table. */
static weft_tensor *forgotten(weft_tensor *x) { return weft_ragged_like(weft_plain(x), x); }
TABLE_TEST(rnn_lookup, outputs_have_the_bits_of_rows)
{
    static const int64_t hidden[] = { 5, 32, LARGE };
    for (int i = 0; i < COUNT(hidden) * CELLS; i++) {
        dice_seed((uint64_t)i);
        kind k = { i % CELLS,
                   { .input = 9, .hidden = hidden[i / CELLS], .layers = 1, .bidirectional = true },
                   true };
        net s = net_of(w, &k, false);
        for (int recorded = 0; recorded < 2; recorded++) {
            weft_set_grad_enabled(w, recorded);
            weft_tensor *x = embedded(w, &s), *y[2];
            weft_rnn_out o;
            cr_assert(by_ids(x) && !by_ids(forgotten(x)));
            loss(&s, &k, x, &o), y[0] = o.y;
            loss(&s, &k, forgotten(x), &o), y[1] = o.y;
            OK(w);
            same_in_company(cell_name[k.cell], concat_numbers(y[0]), concat_numbers(y[1]), weft_numel(y[0]));
            weft_clear(w);
        }
    }
}

/* Unused rows of the table may contain anything. */
TABLE_TEST(rnn_lookup, unused_rows_of_the_table_have_no_effect)
{
    for (int i = 0; i < 2 * CELLS; i++) {
        dice_seed((uint64_t)i);
        kind k = { i % CELLS, { .input = 4, .hidden = 6, .layers = 1, .bidirectional = true }, true };
        net s = net_of(w, &k, false);
        s.layout = i < CELLS ? WEFT_ROWS : WEFT_CONCAT;
        for (int j = 0; j < MANY * LONGEST; j++)
            s.ids[j] = s.ids[j] == 0 ? 1 : s.ids[j];
        weft_real row[ROWS * 4];
        for (int j = 0; j < COUNT(row); j++)
            row[j] = j < 4 ? (weft_real)NAN : dice_real(-1, 1);
        weft_assign_values(weft_find_parameter(s.m, "e.weight"), row, COUNT(row));
        gather_all(w, &s, &k, &fused);
        for (int64_t j = 0; j < fused.n; j++)
            cr_assert(isfinite(fused.v[j]), "%s: number %d", cell_name[k.cell], (int)j);
    }
}

TABLE_TEST(rnn_lookup, few_tokens_or_a_changed_table_use_rows)
{
    kind k = { LSTM, { .input = 4, .hidden = 6, .layers = 1 }, false };
    net s = net_of(w, &k, false), few = s;
    few.l = (weft_lengths){ .n = 1, .len = (int32_t[]){ 4 * ROWS - 1 } };
    cr_assert(!by_ids(embedded(w, &few)), "too few tokens");
    few.l = (weft_lengths){ .n = 1, .len = (int32_t[]){ 4 * ROWS } };
    cr_assert(by_ids(embedded(w, &few)), "enough");
    weft_tensor *x = embedded(w, &s), *table = weft_find_parameter(s.m, "e.weight");
    weft_rnn_out before, after;
    cr_assert(by_ids(x));
    loss(&s, &k, forgotten(x), &before);
    weft_assign(table, weft_scale(table, 2));
    cr_assert(!by_ids(x));
    loss(&s, &k, x, &after);
    same_in_company("x must keep its values", concat_numbers(after.y), concat_numbers(before.y),
                    weft_numel(before.y));
    OK(w);
    weft_clear(w);
}

/* ---- derivatives ---- */
/* Tests gradients of looked-up rows in every layout, with and without those of the table and the weights. */
TABLE_TEST(rnn_lookup, rows_have_gradients_on_request)
{
    for (int i = 0; i < 6 * CELLS; i++) {
        dice_seed((uint64_t)i);
        kind k = { i % CELLS,
                   { .input = 4,
                     .hidden = i % 8 ? 6 : LARGE,
                     .layers = 1,
                     .bidirectional = true,
                     .lean = i % 4 == 0 },
                   true };
        net s = net_of(w, &k, false);
        const int asked_n = i / CELLS < 3 ? 3 : 1;
        s.layout = WEFT_PACKED + i / CELLS % 3;
        for (int known = 0; known < 2; known++) {
            weft_rnn_out o;
            weft_tensor *x = embedded(w, &s), *rows = weft_to_layout(x, WEFT_PACKED), *g[3];
            weft_tensor *asked[] = { i % 3 ? x : rows, weft_find_parameter(s.m, "e.weight"),
                                     weft_find_parameter(s.m, "r.weight_ih_l0") };
            bag *b = known ? &fused : &composed;
            weft__test_segment_rows = k.o.lean ? 40 : 0;
            weft_rnn_set_composed(s.r, !known);
            weft_tensor *l = loss(&s, &k, i % 3 == 1 ? x : rows, &o);
            b->n = 0;
            weft_gradients(l, asked, asked_n, g);
            for (int j = 0; j < asked_n; j++)
                put(b, g[j]);
            weft__test_segment_rows = 0;
            OK(w);
            weft_clear(w);
        }
        cr_assert_eq(fused.n, composed.n);
        close_to(cell_name[k.cell], fused.v, composed.v, fused.n, TOL(1e-11, 5e-5));
    }
}
typedef struct { const net *s; const kind *k; } problem;
static weft_tensor *loss_at(weft_tensor *const *x, void *user)
{
    const problem *p = user;
    weft_rnn_out o;
    (void)x;                                     /* parameters, where they are */
    return loss(p->s, p->k, embedded(p->s->m->w, p->s), &o);
}
REF_TEST(rnn_lookup, second_derivatives_match)
{
    for (int cell = 0; cell < CELLS; cell++) {
        if (cell == RELU)
            continue;                            /* it has a corner */
        dice_seed((uint64_t)cell);
        kind k = { cell, { .input = 1, .hidden = 2, .layers = 1 }, false };
        net s = net_of(w, &k, false);
        weft_tensor *by[INPUTS];
        cr_assert(by_ids(embedded(w, &s)));
        int n = 0;
        for (; n < weft_parameter_count(s.m); n++)
            by[n] = weft_parameter_at(s.m, n, NULL);
        double e = weft_gradcheck(loss_at, by, n, 2, &(problem){ &s, &k });
        OK(w);
        cr_assert(e < TOL(1e-6, 1e-1), "%s: %g", cell_name[cell], e);
        weft_clear(w);
    }
}

/* ---- memory ---- */
static const kind small = { LSTM, { .input = 4, .hidden = 6, .layers = 2, .bidirectional = true }, false };
static void step(weft *w, void *user)
{
    const net *s = user;
    weft_rnn_out o;
    weft_backward(loss(s, &small, embedded(w, s), &o));
}
TABLE_TEST(rnn_lookup, a_steady_step_allocates_nothing, .init = unchecked)
{
    net s = net_of(w, &small, false);
    is_steady(w, step, &s);
}
static void failing(weft *w, void *user)
{
    step(w, user);
    if (weft_ok(w))
        weft_clear(w);
}
TABLE_TEST(rnn_lookup, survives_failure_of_each_allocation)
{
    net s = net_of(w, &small, false);
    cr_assert(failures_of(w, 40, failing, &s) > 20);
}
