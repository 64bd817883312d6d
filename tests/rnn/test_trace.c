/* test_trace.c - tests the trace of fused layers. It changes neither outputs nor gradients. Its gates and
 * states satisfy the equations of the cell. Its gradients sum to those of the weights and match single steps,
 * with the same bits in every layout. Invalid requests are refused. */
#include "tests/rnn/rnn_kinds.h"

static bag plain, traced;

TABLE_TEST(trace, changes_no_bit)
{
    for (int i = 0; i < rounds(24, 200); i++) {
        kind k;
        weft_lengths l;
        weft_rnn *r = layer_by_number(w, i, &k, &l);
        all_of(w, &k, r, &l, WEFT_PACKED + i % 3, &plain);
        cr_assert(!weft_rnn_set_traced(r, true));
        all_of(w, &k, r, &l, WEFT_PACKED + i % 3, &traced);
        cr_assert_eq(plain.n, traced.n);
        same_bits(cell_name[k.cell], traced.v, plain.v, plain.n);
        cr_assert(weft_rnn_set_traced(r, false));
    }
}

/* ---- the contents for one layer ---- */
typedef struct {
    weft_rnn_out out;
    weft_tensor *loss;
    weft_rnn_traced before, t;
} traced_run;

static traced_run run_of(weft_rnn *r, const kind *k, weft_tensor *x, int64_t n)
{
    weft *w = weft_context_of(x);
    traced_run it = { .out = weft_rnn_run(r, x, random_state(w, k, n)) };
    it.before = weft_rnn_trace(r, 0, k->o.bidirectional);
    OK(w);
    cr_assert(!it.before.dh && !it.before.dc && !it.before.dgate[0]);
    weft_backward(it.loss = loss_of(it.out));
    it.t = weft_rnn_trace(r, 0, k->o.bidirectional);
    OK(w);
    return it;
}

static void put_trace(bag *b, const weft_rnn_traced *t)
{
    b->n = 0;
    for (int g = 0; g < t->gates; g++)
        put(b, t->gate[g]), put(b, t->dgate[g]);
    put(b, t->h), put(b, t->dh);
    if (t->c)
        put(b, t->c), put(b, t->dc);
}

TABLE_TEST(trace, has_the_same_bits_in_every_layout)
{
    for (int i = 0; i < rounds(16, 100); i++) {
        kind k;
        weft_lengths l;
        weft_rnn *r = layer_by_number(w, i, &k, &l);
        weft_rnn_set_traced(r, true);
        FOR_LAYOUTS(layout)
        {
            bool first = layout == WEFT_PACKED;
            traced_run it = run_of(r, &k, laid_out(random_ragged(w, 4, k.o.input, &l), layout), l.n);
            put_trace(first ? &plain : &traced, &it.t);
            cr_assert_eq((int)weft_layout_of(it.t.h), layout);
            same_in_company(cell_name[k.cell], traced.v, plain.v, first ? 0 : plain.n);
            weft_zero_grad(weft_rnn_module(r));
            weft_clear(w);
        }
    }
}

/* The gates' gradients, summed over tokens, are the biases'; times x those of weight_ih. */
static void sums_are_the_weights(weft_rnn *r, const kind *k, weft_tensor *x, const weft_rnn_traced *t)
{
    weft_module *m = weft_rnn_module(r);
    weft_tensor *db = weft_grad(weft_find_parameter(m, "bias_ih_l0")),
                *dw = weft_grad(weft_find_parameter(m, "weight_ih_l0"));
    for (int g = 0; g < t->gates; g++) {
        int64_t H = k->o.hidden;
        weft_tensor *d = weft_plain(weft_to_layout(t->dgate[g], WEFT_CONCAT)),
                    *rows = weft_plain(weft_to_layout(x, WEFT_CONCAT));
        close_to(t->name[g], numbers(weft_sum(d, 0)), numbers(weft_slice(db, 0, g * H, (g + 1) * H)), H,
                 TOL(1e-11, 2e-4));
        close_to(t->name[g], numbers(weft_matmul(weft_transpose(d, 0, 1), rows)),
                 numbers(weft_slice(dw, 0, g * H, (g + 1) * H)), H * k->o.input, TOL(1e-11, 2e-4));
    }
}

TABLE_TEST(trace, gate_gradients_sum_to_the_weight_gradients)
{
    for (int i = 0; i < 2 * CELLS; i++) {
        kind k;
        weft_lengths l;
        weft_rnn *r = layer_by_number(w, i, &k, &l);
        if (k.o.layers > 1 || k.o.bidirectional || k.o.no_bias)
            continue;
        weft_rnn_set_traced(r, true);
        weft_tensor *x = random_ragged(w, 4, k.o.input, &l);
        traced_run it = run_of(r, &k, x, l.n);
        sums_are_the_weights(r, &k, x, &it.t);
        weft_clear(w);
    }
}

/* ---- against single steps, whose states can be asked for ---- */
enum { STEPS = 9 };

/* The gradient of a state sums two parts: that of y, and that of the state passed on. */
static void arrived_by_steps(weft *w, const kind *k, weft_rnn *r, weft_tensor *x, weft_tensor *dh[STEPS],
                             weft_tensor *h[STEPS])
{
    weft_tensor *by[2 * STEPS], *d[2 * STEPS];
    weft_rnn_out o = { NULL, random_state(w, k, 1) };
    for (int t = 0; t < STEPS; t++) {
        o = weft_rnn_step(r, weft_slice(weft_plain(x), 0, t, t + 1), o.last);
        by[t] = o.y;
        by[STEPS + t] = o.last.h;
    }
    weft_rnn_out whole = { weft_concat(by, STEPS, 0), o.last };
    weft_gradients(loss_of(whole), by, 2 * STEPS, d);
    for (int t = 0; t < STEPS; t++) {
        dh[t] = weft_add(d[t], weft_reshape(d[STEPS + t], WEFT_SHAPE(1, width_of(k))));
        h[t] = by[t];
    }
    OK(w);
}

/* Through c' = f c + i g, the gradient of g's sum determines that of c. */
static void c_is_seen_through_g(const weft_rnn_traced *t)
{
    int g = t->gates == 4 ? 2 : 1;
    int64_t n = weft_numel(t->dc);
    weft_tensor *f = t->gate[0], *one = weft_full(weft_context_of(f), 1, WEFT_SHAPE(1)),
                *in = t->gates == 4 ? t->gate[0] : weft_sub(one, f);
    weft_tensor *slope = weft_sub(one, weft_square(t->gate[g]));
    close_to("dc", numbers(weft_plain(weft_mul(weft_mul(t->dc, in), slope))),
             numbers(weft_plain(t->dgate[g])), n, TOL(1e-12, 1e-5));
}

static void same_as_steps(weft *w, const kind *k, weft_rnn *r)
{
    const int32_t one[] = { STEPS };
    int64_t W = width_of(k);
    weft_tensor *x = random_ragged(w, 4, k->o.input, &(weft_lengths){ .n = 1, .len = one });
    weft_tensor *dh[STEPS], *h[STEPS];
    traced_run it = run_of(r, k, x, 1);
    weft_rnn_set_traced(r, false);
    arrived_by_steps(w, k, r, x, dh, h);
    for (int t = 0; t < STEPS; t++) {
        close_to("h", numbers(weft_plain(it.t.h)) + t * W, numbers(h[t]), W, TOL(1e-12, 1e-5));
        close_to("dh", numbers(weft_plain(it.t.dh)) + t * W, numbers(dh[t]), W, TOL(1e-10, 1e-4));
    }
    if (it.t.c)
        c_is_seen_through_g(&it.t);
    cr_assert((it.t.c != NULL) == has_c(k));
}

TABLE_TEST(trace, gradients_of_states_match_single_steps)
{
    for (int i = 0; i < CELLS; i++) {
        kind k = { i, { .input = 3, .hidden = 5, .layers = 1 }, true };
        weft_rnn *r = layer_of_kind(w, &k);
        weft_rnn_set_traced(r, true);
        same_as_steps(w, &k, r);
        weft_clear(w);
    }
}

TABLE_TEST(trace, gates_satisfy_the_equations)
{
    static const char *const names[CELLS] = { "h", "h", "rzn", "fn", "ifgo", "fgo", "ifgo", "fgo" };
    const int32_t two[] = { 2 };
    for (int i = 0; i < CELLS; i++) {
        char letters[8] = "";
        kind k = { i, { .input = 3, .hidden = 4 }, false };
        weft_rnn *r = layer_of_kind(w, &k);
        weft_rnn_set_traced(r, true);
        weft_rnn_run(r, random_ragged(w, 4, 3, &(weft_lengths){ .n = 1, .len = two }), WEFT_ZERO_STATE);
        weft_rnn_traced t = weft_rnn_trace(r, 0, false);
        for (int g = 0; g < t.gates; g++)
            strcat(letters, t.name[g]);
        cr_assert_str_eq(letters, names[i]);
        if (i != LSTM)
            continue;
        close_to("c", numbers(weft_plain(t.c)),
                 numbers(weft_mul(weft_plain(t.gate[0]), weft_plain(t.gate[2]))), 4, TOL(1e-15, 1e-6));
        close_to("h", numbers(weft_plain(t.h)),
                 numbers(weft_mul(weft_plain(t.gate[3]), weft_tanh(weft_plain(t.c)))), 8, TOL(1e-15, 1e-6));
    }
    weft_clear(w);
}

/* ---- in use ---- */
TABLE_TEST(trace, works_without_recording_and_for_plain_input)
{
    weft_module *m = weft_module_new(w, "m");
    weft_rnn *r = weft_gru_new(m, "r", &(weft_rnn_opts){ .input = 3, .hidden = 4, .bidirectional = true });
    weft_rnn_set_traced(r, true);
    WEFT_NO_GRAD(w)
    weft_rnn_run(r, random_tensor(w, 3, WEFT_SHAPE(2, 5, 3)), WEFT_ZERO_STATE);
    weft_rnn_traced t = weft_rnn_trace(r, 0, true);
    OK(w);
    cr_assert(t.gates == 3 && !t.c && !t.dh && weft_rank(t.gate[2]) == 3);
    cr_assert(weft_size(t.gate[2], 0) == 2 && weft_size(t.gate[2], 1) == 5 && weft_size(t.gate[2], 2) == 4);
    weft_clear(w);
}

/* Values read before the backward stay the same. After two runs, the trace is that of the last one. */
TABLE_TEST(trace, belongs_to_the_last_run)
{
    weft_module *m = weft_module_new(w, "m");
    weft_rnn *r = weft_elman_new(m, "r", &(weft_rnn_opts){ .input = 3, .hidden = 4 });
    weft_rnn_set_traced(r, true);
    weft_tensor *one = random_tensor(w, 3, WEFT_SHAPE(1, 2, 3)),
                *two = random_tensor(w, 4, WEFT_SHAPE(1, 3, 3));
    weft_tensor *y1 = weft_rnn_run(r, one, WEFT_ZERO_STATE).y, *y2 = weft_rnn_run(r, two, WEFT_ZERO_STATE).y;
    weft_rnn_traced before = weft_rnn_trace(r, 0, false);
    weft_real gate[12];
    memcpy(gate, numbers(before.gate[0]), sizeof gate);
    weft_backward(weft_sum_all(y1));
    cr_assert(!weft_rnn_trace(r, 0, false).dh);
    weft_tensor *dx, *loss = weft_sum_all(y2);
    weft_gradients_recorded(loss, &two, 1, &dx);
    cr_assert(!weft_rnn_trace(r, 0, false).dh);
    weft_gradients(loss, &two, 1, &dx);
    weft_rnn_traced t = weft_rnn_trace(r, 0, false);
    OK(w);
    same_bits("gate", numbers(before.gate[0]), gate, 12);
    same_bits("gate", numbers(t.gate[0]), gate, 12);
    cr_assert(weft_size(t.dh, 1) == 3 && numbers(t.dh)[11] == 1);
    weft_clear(w);
}

CPU_TEST(trace, invalid_requests_are_refused)
{
    weft_module *m = weft_module_new(w, "m");
    weft_rnn *r = weft_lstm_new(m, "r", &(weft_rnn_opts){ .input = 3, .hidden = 4 }),
             *lean = weft_lstm_new(m, "lean", &(weft_rnn_opts){ .input = 3, .hidden = 4, .lean = true });
    cr_assert_eq(weft_rnn_trace(r, 0, false).gates, 0);
    FAILS(w, WEFT_EARG, "rnn_trace: the layer has not run; expected a run after weft_rnn_set_traced");
    weft_rnn_set_traced(r, true), weft_rnn_set_traced(lean, true);
    weft_tensor *x = random_tensor(w, 3, WEFT_SHAPE(1, 2, 3));
    weft_rnn_run(lean, x, WEFT_ZERO_STATE);
    FAILS(w, WEFT_EARG, "m.lean: rnn_run: the layer is traced (weft_rnn_set_traced) and lean");
    weft_rnn_set_composed(r, true);
    weft_rnn_run(r, random_tensor(w, 3, WEFT_SHAPE(1, 2, 3)), WEFT_ZERO_STATE);
    FAILS(w, WEFT_EARG, "and composed; expected a fused layer");
    weft_rnn_set_composed(r, false);
    weft_rnn_run(r, random_tensor(w, 3, WEFT_SHAPE(1, 2, 3)), WEFT_ZERO_STATE);
    OK(w);
    FAILS_AT(w, weft_rnn_trace(r, 1, false), WEFT_EARG, "layer 1; expected one of 1 layers and 1 direction");
    weft_rnn_run(r, random_tensor(w, 3, WEFT_SHAPE(1, 2, 3)), WEFT_ZERO_STATE);
    FAILS_AT(w, weft_rnn_trace(r, 0, true), WEFT_EARG, "layer 0, reverse; expected");
    weft_rnn_run(r, random_tensor(w, 3, WEFT_SHAPE(1, 2, 3)), WEFT_ZERO_STATE);
    weft_clear(w);
    FAILS_AT(w, weft_rnn_trace(r, 0, false), WEFT_EARG, "the step of the last run has ended");
    cr_assert(!weft_rnn_set_traced(NULL, true) && !weft_rnn_trace(NULL, 0, false).gates);
}
