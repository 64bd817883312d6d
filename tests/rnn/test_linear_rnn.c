/* test_linear_rnn.c - tests linear recurrent layers: against the same equations as a program's cell, step by
 * step; streaming, layouts, files, options. tests/golden/linear.json compares them with PyTorch. */
#include "tests/io/checkpoint.h"
#include "tests/rnn/rnn_kinds.h"

enum { IN = 3, H = 5, KINDS = 4 };
static const char *const names[KINDS] = { "min_gru", "min_lstm", "rg_lru", "qrnn" };
static const weft_lengths five = { .n = 5, .len = (const int32_t[]){ 4, 0, 7, 1, 5 } };

static weft_rnn *layer_of(weft *w, int which, int layers, bool both, int window)
{
    return weft_linear_rnn_new(weft_module_new(w, "m"), "r",
                               &(weft_linear_rnn_opts){ .kind = (weft_linear_rnn_kind)which,
                                                        .input = IN,
                                                        .hidden = H,
                                                        .layers = layers,
                                                        .bidirectional = both,
                                                        .window = which == WEFT_QRNN ? window : 0 });
}

/* ---- the equations as a step ---- */
static weft_tensor *part(const weft_cell_input *in, int k)
{
    return weft_slice(in->x, 1, k * in->hidden, (k + 1) * in->hidden);
}
static weft_tensor *mixed(weft_tensor *z, weft_tensor *yes, weft_tensor *no)
{
    return weft_add(weft_mul(z, yes), weft_mul(weft_sub(weft_scalar(z->w, 1), z), no));
}
static weft_state min_gru(const weft_cell_input *in, void *user)
{
    return (void)user, (weft_state){ mixed(weft_sigmoid(part(in, 0)), part(in, 1), in->h), NULL };
}
static weft_state min_lstm(const weft_cell_input *in, void *user)
{
    weft_tensor *f = weft_sigmoid(part(in, 0)), *i = weft_sigmoid(part(in, 1));
    return (void)user, (weft_state){ mixed(weft_div(f, weft_add(f, i)), in->h, part(in, 2)), NULL };
}
static weft_state rg_lru(const weft_cell_input *in, void *user)
{
    weft_tensor *gates = weft_sigmoid(weft_add(weft_matmul_with(in->x, false, in->own[1], true), in->own[2]));
    weft_tensor *r = weft_slice(gates, 1, 0, H), *i = weft_slice(gates, 1, H, 2 * H);
    weft_tensor *a = weft_exp(weft_scale(weft_mul(weft_softplus(in->own[0]), r), -8));
    weft_tensor *share = weft_sqrt(weft_sub(weft_scalar(a->w, 1), weft_square(a)));
    weft_tensor *h = weft_add(weft_mul(a, in->h), weft_mul(share, weft_mul(i, in->x)));
    return (void)user, (weft_state){ h, NULL };
}
static weft_state qrnn(const weft_cell_input *in, void *user)
{
    weft_tensor *c = mixed(weft_sigmoid(part(in, 1)), in->c, weft_tanh(part(in, 0)));
    return (void)user, (weft_state){ weft_mul(weft_sigmoid(part(in, 2)), c), c };
}
static const weft_init decay = { WEFT_INIT_UNIFORM, -6.9067547786, -2.1972245773 };
static const weft_cell_parameter of_rg_lru[] = { { "decay", WEFT_CELL_VECTOR, 1, &decay },
                                                 { "weight_gates", WEFT_CELL_OF_HIDDEN, 2, NULL },
                                                 { "bias_gates", WEFT_CELL_VECTOR, 2, NULL } };
static const weft_cell cells[KINDS] = {
    { .name = "min_gru", .gates = 2, .gates_h = -1, .step = min_gru },
    { .name = "min_lstm", .gates = 3, .gates_h = -1, .step = min_lstm },
    { .name = "rg_lru", .gates = 1, .gates_h = -1, .own = of_rg_lru, .own_count = 3, .step = rg_lru },
    { .name = "qrnn", .gates = 3, .gates_h = -1, .states = 2, .step = qrnn }
};

/* First values depend on seed and path, so both layers have the same. */
TABLE_TEST(linear_rnn, matches_a_cell_with_its_equations)
{
    static bag fast, slow;
    for (int i = 0; i < KINDS; i++) {
        const kind k = { i == WEFT_QRNN ? LSTM : GRU,
                         { .input = IN, .hidden = H, .layers = 2, .bidirectional = true },
                         true };
        all_of(w, &k, layer_of(w, i, 2, true, 1), &five, i % 2 ? WEFT_ROWS : WEFT_PACKED, &fast);
        all_of(w, &k, weft_rnn_of_cell(weft_module_new(w, "m"), "r", &cells[i], &k.o), &five, WEFT_CONCAT,
               &slow);
        cr_assert(fast.n == slow.n && fast.n > 500);
        close_to(names[i], fast.v, slow.v, fast.n, TOL(1e-12, 1e-5));
    }
}

/* ---- bits ---- */
TABLE_TEST(linear_rnn, has_the_same_bits_in_every_layout)
{
    static bag a, b;
    for (int i = 0; i < KINDS; i++) {
        const kind k = { i == WEFT_QRNN ? LSTM : GRU,
                         { .input = IN, .hidden = H, .layers = 2, .bidirectional = true },
                         true };
        weft_rnn *r = layer_of(w, i, 2, true, 1);
        all_of(w, &k, r, &five, WEFT_CONCAT, &a);
        FOR_LAYOUTS(layout)
        {
            all_of(w, &k, r, &five, layout, &b);
            cr_assert_eq(a.n, b.n);
            same_bits(names[i], b.v, a.v, a.n);
        }
    }
}

/* Runs T tokens of each sequence in pieces: single steps, or runs of 1, 2, .. tokens. */
TABLE_TEST(linear_rnn, streaming_has_the_bits_of_a_whole_run)
{
    enum { N = 3, T = 6 };
    for (int i = 0; i < 2 * KINDS; i++) {
        weft_rnn *r = layer_of(w, i % KINDS, 2, false, 3);
        WEFT_EVAL(w) {
            weft_tensor *x = random_tensor(w, 3, WEFT_SHAPE(N, T, IN)), *y[T];
            weft_rnn_out whole = weft_rnn_run(r, x, WEFT_ZERO_STATE), o = { NULL, WEFT_ZERO_STATE };
            int n = 0;
            for (int t = 0, more; t < T; t += more) {
                more = i < KINDS ? 1 : n + 1;
                weft_tensor *now = weft_slice(x, 1, t, t + more);
                o = i < KINDS ? weft_rnn_step(r, weft_reshape(now, WEFT_SHAPE(N, IN)), o.last) :
                                weft_rnn_run(r, now, o.last);
                y[n++] = weft_reshape(o.y, WEFT_SHAPE(N, more, H));
            }
            same_bits("y", numbers(weft_concat(y, n, 1)), numbers(whole.y), N * T * H);
            same_bits("h", numbers(o.last.h), numbers(whole.last.h), weft_numel(whole.last.h));
            if (o.last.c)
                same_bits("c", numbers(o.last.c), numbers(whole.last.c), weft_numel(whole.last.c));
            cr_assert(!o.last.c == (i % KINDS != WEFT_QRNN));
        }
        OK(w);
        weft_clear(w);
    }
}

/* ---- numbers at the edge ---- */
/* Gates at 0 and 1 and beyond the range of exp: no result and no gradient is infinite or NaN. */
TABLE_TEST(linear_rnn, saturated_gates_stay_finite)
{
    for (int i = 0; i < KINDS; i++)
        for (double size = 30; size < 1e4; size *= 10) {
            weft_rnn *r = layer_of(w, i, 1, false, 2);
            weft_module *m = weft_rnn_module(r);
            for (int p = 0; p < weft_parameter_count(m); p++) {
                weft_tensor *v = weft_parameter_at(m, p, NULL);
                weft_assign(v, weft_scale(v, size));
            }
            weft_tensor *x = random_ragged(w, 4, IN, &five);
            weft_backward(loss_of(weft_rnn_run(r, x, WEFT_ZERO_STATE)));
            for (int p = 0; p < weft_parameter_count(m); p++) {
                weft_tensor *g = weft_grad(weft_parameter_at(m, p, NULL));
                for (int64_t j = 0; j < weft_numel(g); j++)
                    cr_assert(isfinite(numbers(g)[j]), "%s times %g", names[i], size);
            }
            OK(w);
            weft_clear(w);
        }
}

/* ---- use ---- */
CPU_TEST(linear_rnn, files_store_the_kind, .fini = end_folder)
{
    const char *path = in_folder("linear.h5");
    weft_rnn *from = layer_of(w, WEFT_MINLSTM, 1, false, 0), *to = layer_of(w, WEFT_MINLSTM, 1, false, 0),
             *other = layer_of(w, WEFT_QRNN, 1, false, 1);                  /* the same shapes */
    weft_tensor *moved = weft_find_parameter(weft_rnn_module(from), "weight_ih_l0"),
                *read = weft_find_parameter(weft_rnn_module(to), "weight_ih_l0");
    weft_assign(moved, weft_full(w, 7, WEFT_SHAPE(3 * H, IN)));
    cr_assert(weft_save(path, weft_rnn_module(from), NULL, NULL, 0) == WEFT_OK &&
                  weft_load(path, weft_rnn_module(to), NULL, NULL, 0) == WEFT_OK,
              "%s", weft_file_message());
    cr_assert_eq(numbers(read)[3 * H * IN - 1], 7);
    cr_assert(weft_load(path, weft_rnn_module(other), NULL, NULL, 0) == WEFT_EFORMAT &&
                  strstr(weft_file_message(), "min_lstm"),
              "%s", weft_file_message());
}

TABLE_TEST(linear_rnn, an_empty_batch_gives_parameters_zero_gradients)
{
    for (int i = 0; i < KINDS; i++) {
        weft_rnn *r = layer_of(w, i, 2, true, 2);
        const weft_lengths none = { .n = 2, .len = (const int32_t[]){ 0, 0 } };
        weft_rnn_out o = weft_rnn_run(r, random_ragged(w, 4, IN, &none), WEFT_ZERO_STATE);
        weft_backward(loss_of(o));
        weft_tensor *g = weft_grad(weft_find_parameter(weft_rnn_module(r), "weight_ih_l1_reverse"));
        cr_assert(weft_size(o.y, 0) == 0 && numbers(g)[0] == 0 && numbers(o.last.h)[0] == 0);
        OK(w);
        weft_clear(w);
    }
}

CPU_TEST(linear_rnn, options_are_checked)
{
    weft_module *m = weft_module_new(w, "m");
    FAILS_AT(w, weft_linear_rnn_new(m, "r", NULL), WEFT_EARG, "linear_rnn_new \"r\": opts is NULL");
    FAILS_AT(w, weft_linear_rnn_new(m, "r", &(weft_linear_rnn_opts){ .kind = (weft_linear_rnn_kind)4 }),
             WEFT_EARG, "kind: expected a value of weft_linear_rnn_kind");
    FAILS_AT(w, weft_linear_rnn_new(m, "r", &(weft_linear_rnn_opts){ .input = 1, .hidden = 1, .window = 2 }),
             WEFT_EARG, "window: expected only with WEFT_QRNN");
    FAILS_AT(w, weft_linear_rnn_new(m, "r", &(weft_linear_rnn_opts){ .kind = WEFT_QRNN, .window = 65 }),
             WEFT_EARG, "window: expected 1 .. 64 (0 means 2)");
    FAILS_AT(w, weft_linear_rnn_new(m, "r", &(weft_linear_rnn_opts){ .input = 1 }), WEFT_EARG,
             "linear_rnn_new \"r\": input and hidden: expected 1 or more; given: input 1, hidden 0");
    weft_rnn *r = layer_of(w, WEFT_QRNN, 1, false, 3);
    weft_tensor *x = weft_zeros(w, WEFT_SHAPE(2, IN)), *h = weft_zeros(w, WEFT_SHAPE(1, 2, H));
    FAILS_AT(w, weft_rnn_step(r, x, (weft_state){ h, h }), WEFT_ESHAPE,
             "state c is [1, 2, 5]; expected [1, 2, 11]");
    weft_rnn_set_traced(r, true);
    FAILS(w, WEFT_EARG, "rnn_set_traced");
    cr_assert(weft_rnn_set_composed(r, false) && weft_rnn_set_composed(r, false));
}

/* The dropout between two layers is that of the other recurrent layers: by sequence id and position. */
TABLE_TEST(linear_rnn, drops_between_layers_in_training)
{
    const weft_linear_rnn_opts o = { .input = IN, .hidden = H, .layers = 2, .dropout = .5 };
    weft_rnn *r = weft_linear_rnn_new(weft_module_new(w, "m"), "r", &o);
    weft_tensor *x = random_ragged(w, 4, IN, &five);
    weft_real *trained = numbers(weft_rnn_run(r, x, WEFT_ZERO_STATE).y), *used = NULL;
    WEFT_EVAL(w)
        used = numbers(weft_rnn_run(r, x, WEFT_ZERO_STATE).y);
    cr_assert(memcmp(trained, used, 17 * H * sizeof *used));
    OK(w);
    weft_clear(w);
}
