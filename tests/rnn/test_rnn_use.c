/* test_rnn_use.c - tests the use of recurrent layers: very long sequences, single steps, parameters, dropout,
 * states, errors, memory. */
#include "tests/rnn/rnn_kinds.h"

/* ---- 70,000 steps ---- */
CPU_TEST(rnn_use, long_sequence_matches_plain_loops)
{
    enum { T = 70000, H = 2 };
    static weft_real x[T];
    static const int32_t len[] = { T };
    weft_module *m = weft_module_new(w, "m");
    weft_rnn *r = weft_elman_new(m, "r", &(weft_rnn_opts){ .input = 1, .hidden = H });
    dice_seed(3);
    weft_rnn_out o = weft_rnn_run(
        r, weft_ragged(w, dice_fill(x, T, -1, 1), 1, &(weft_lengths){ .n = 1, .len = len }), WEFT_ZERO_STATE);
    weft_backward(weft_sum_all(o.y));
    OK(w);
    const weft_real *wih = numbers(weft_find_parameter(m, "r.weight_ih_l0")),
                    *whh = numbers(weft_find_parameter(m, "r.weight_hh_l0"));
    const weft_real *bih = numbers(weft_find_parameter(m, "r.bias_ih_l0")),
                    *bhh = numbers(weft_find_parameter(m, "r.bias_hh_l0")), *y = numbers(weft_plain(o.y));
    double h[H] = { 0 };
    for (int t = 0; t < T; t++) {
        double a[H];
        for (int j = 0; j < H; j++)
            a[j] = tanh((double)(wih[j] * x[t] + bih[j] + bhh[j]) + (double)whh[j * H] * h[0] +
                        (double)whh[j * H + 1] * h[1]);
        for (int j = 0; j < H; j++) {
            h[j] = a[j];
            cr_assert(fabs(h[j] - (double)y[t * H + j]) < TOL(1e-12, 1e-5), "step %d", t);
        }
    }
    cr_assert(isfinite(numbers(weft_grad(weft_find_parameter(m, "r.weight_hh_l0")))[0]));
}

/* The golden vectors check names and shapes. */
CPU_TEST(rnn_use, parameters_have_pytorchs_order_and_first_values)
{
    static const char *const names[] = { "r.weight_ih_l0", "r.weight_hh_l0", "r.bias_ih_l0",
                                         "r.bias_hh_l0",   "r.weight_hr_l0", "r.weight_ih_l0_reverse" };
    weft_module *m = weft_module_new(w, "m");
    weft_lstm_new(
        m, "r", &(weft_rnn_opts){ .input = 5, .hidden = 16, .layers = 2, .bidirectional = true, .proj = 3 });
    cr_assert_eq(weft_parameter_count(m), 20);
    for (int i = 0; i < COUNT(names); i++) {
        const char *path;
        weft_parameter_at(m, i, &path);
        cr_assert_str_eq(path, names[i]);
    }
    const weft_real *v = numbers(weft_parameter_at(m, 0, NULL));
    double low = 1, high = -1;
    for (int i = 0; i < 64 * 5; i++) {
        low = fmin(low, (double)v[i]);
        high = fmax(high, (double)v[i]);
    }
    cr_assert(low >= -.25 && low < -.2 && high <= .25 && high > .2, "%g .. %g", low, high);
}

/* ---- the forget gate's bias ---- */
/* The biases of both modules are equal except in the rows of the forget gate, where they sum to `bias`. */
static void forgets_with(weft_module *m, weft_module *plain, const char *which, int gates, int forget,
                         double bias)
{
    enum { H = 5 };
    char ih[40], hh[40];
    snprintf(ih, sizeof ih, "r.bias_ih_%s", which), snprintf(hh, sizeof hh, "r.bias_hh_%s", which);
    const weft_real *b = numbers(weft_find_parameter(m, ih)), *c = numbers(weft_find_parameter(m, hh)),
                    *b0 = numbers(weft_find_parameter(plain, ih)),
                    *c0 = numbers(weft_find_parameter(plain, hh));
    for (int k = 0; k < gates * H; k++)
        if (k / H == forget)
            cr_assert(b[k] + c[k] == (weft_real)bias && c[k] == 0, "%s, row %d: %g + %g", which, k,
                      (double)b[k], (double)c[k]);
        else
            cr_assert(b[k] == b0[k] && c[k] == c0[k] && b[k] != (weft_real)bias, "%s, row %d", which, k);
}

TABLE_TEST(rnn_use, forget_bias_is_the_sum_of_both_biases)
{
    static const double given[] = { 1, -.5, WEFT_ZERO };
    for (int cifg = 0; cifg < 2; cifg++)
        for (int k = 0; k < 3; k++) {
            weft_rnn *(*make)(weft_module *, const char *, const weft_rnn_opts *) =
                cifg ? weft_cifg_new : weft_lstm_new;
            weft_rnn_opts o = { .input = 3, .hidden = 5, .layers = 2, .bidirectional = true };
            weft_module *plain = weft_module_new(w, "m"), *m = weft_module_new(w, "m");
            make(plain, "r", &o);
            o.forget_bias = given[k];
            make(m, "r", &o);
            const double bias = given[k] == WEFT_ZERO ? 0 : given[k];
            forgets_with(m, plain, "l0", 4 - cifg, 1 - cifg, bias);
            forgets_with(m, plain, "l1_reverse", 4 - cifg, 1 - cifg, bias);
        }
}

/* ---- dropout between layers ---- */
static weft_real *with_dropout(weft *w, weft_layout layout, bool training)
{
    static const int32_t len[] = { 3, 5, 1 };
    weft_rnn *r =
        weft_gru_new(weft_module_new(w, "m"), "r",
                     &(weft_rnn_opts){ .input = 2, .hidden = 8, .layers = 2, .dropout = (weft_real).5 });
    weft_set_training(w, training);
    return concat_numbers(
        weft_rnn_run(r, weft_to_layout(random_ragged(w, 4, 2, &(weft_lengths){ .n = 3, .len = len }), layout),
                     WEFT_ZERO_STATE)
            .y);
}

static bool equal(const weft_real *a, const weft_real *b) { return !memcmp(a, b, 72 * sizeof *a); }

Test(rnn_use, dropout_is_a_function_of_seed_and_path)
{
    weft *a = open_on(WEFT_CPU), *b = open_on(WEFT_CPU), *c = open_on(WEFT_CPU);
    weft_real *in_a = with_dropout(a, WEFT_PACKED, true),
              *in_b = with_dropout(b, WEFT_CONCAT, true),
              *in_c = with_dropout(c, WEFT_CONCAT, false);
    cr_assert(equal(in_a, in_b), "the layout changed the mask");
    cr_assert(!equal(in_a, in_c), "no dropout in training");
    CLEAN(a), CLEAN(b), CLEAN(c);
}

TABLE_TEST(rnn_use, states_are_selected)
{
    weft_state s = { random_tensor(w, 1, WEFT_SHAPE(2, 3, 4)), random_tensor(w, 2, WEFT_SHAPE(2, 3, 5)) };
    static const int32_t parent[] = { 2, 0, 2, 1 }, each_twice[] = { 0, 0, 1, 1, 2, 2 };
    weft_state chosen = weft_state_select(s, parent, 4), twice = weft_state_select(s, each_twice, 6);
    OK(w);
    cr_assert(weft_size(chosen.h, 1) == 4 && weft_size(chosen.c, 2) == 5 && weft_size(twice.c, 1) == 6);
    const weft_real *h = numbers(s.h), *c = numbers(s.c), *ch = numbers(chosen.h), *tc = numbers(twice.c);
    for (int k = 0; k < 2; k++)
        for (int j = 0; j < 4; j++)
            same_bits("select", ch + (k * 4 + j) * 4, h + (k * 3 + parent[j]) * 4, 4);
    for (int k = 0; k < 2; k++)
        for (int j = 0; j < 6; j++)
            same_bits("repeat", tc + (k * 6 + j) * 5, c + (k * 3 + j / 2) * 5, 5);
    weft_state none = weft_state_select(WEFT_ZERO_STATE, parent, 4);
    cr_assert(!none.h && !none.c && weft_size(weft_state_select(s, NULL, 0).h, 1) == 0);
    OK(w);
    weft_state_select((weft_state){ weft_zeros(w, WEFT_SHAPE(2, 3, 4)), NULL }, (const int32_t[]){ 0, 3 }, 2);
    FAILS(w, WEFT_EARG, "parent[1] is 3; expected 0 .. 2");
    weft_state_select((weft_state){ weft_zeros(w, WEFT_SHAPE(3, 4)), NULL }, (const int32_t[]){ 0 }, 1);
    FAILS(w, WEFT_ESHAPE, "state_select: the state is [3, 4]");
}

/* ---- the final states: the numbers at the ends of the outputs ---- */
enum { ENDS = 5, TOKENS = 14, F = 2, H = 3 };
static const int32_t end_len[ENDS] = { 3, 0, 6, 1, 4 };
static const weft_lengths of_ends = { .n = ENDS, .len = end_len };

/* y: rows of the outputs, sequence by sequence; an empty sequence has its first state, here 0 */
static void ends_of(const weft_real *y, int width, bool both, weft_real *want)
{
    for (int s = 0, at = 0; s < ENDS; at += end_len[s++])
        for (int j = 0; j < width; j++) {
            bool back = both && j >= width / 2;
            want[s * width + j] = end_len[s] ? y[(back ? at : at + end_len[s] - 1) * width + j] : 0;
        }
}

TABLE_TEST(rnn_use, final_state_matches_the_ends_of_the_outputs)
{
    for (int c = 0; c < CELLS * 2 * 2 * 3; c++) {
        int cell = c % CELLS, layout = WEFT_PACKED + c / CELLS / 4;
        bool both = c / CELLS % 2, several = c / CELLS / 2 % 2;
        kind k = { cell, { .input = F, .hidden = H, .layers = 1 + several, .bidirectional = both }, 0 };
        weft_rnn *r = layer_of_kind(w, &k);
        weft_tensor *x = laid_out(random_ragged(w, 4, F, &of_ends), layout);
        weft_rnn_out o = weft_rnn_run(r, x, WEFT_ZERO_STATE);
        weft_tensor *got = weft_final_state(r, o.last);
        int width = (int)weft_size(o.y, 1);
        weft_real y[TOKENS * 2 * H], want[ENDS * 2 * H];
        cr_assert(sequences_status(o.y, y, (size_t)(TOKENS * width) * sizeof *y) == WEFT_OK, "%s",
                  weft_error_message(w));
        cr_assert(weft_rank(got) == 2 && weft_size(got, 0) == ENDS && weft_size(got, 1) == width &&
                  weft_layout_of(got) == WEFT_PLAIN);
        ends_of(y, width, both, want);
        same_bits(cell_name[cell], numbers(got), want, ENDS * width);
        weft_clear(w);
    }
}

CPU_TEST(rnn_use, final_state_checks_its_state)
{
    weft *other = open_on(WEFT_CPU);
    weft_module *m = weft_module_new(w, "m");
    weft_rnn *r = weft_lstm_new(m, "r", &(weft_rnn_opts){ .input = F, .hidden = H, .proj = 2, .layers = 2 });
    weft_tensor *h = weft_randn(w, WEFT_SHAPE(2, 4, 2));
    weft_tensor *y = weft_final_state(r, (weft_state){ h, NULL });           /* c is not read */
    same_bits("projected", numbers(y), numbers(h) + 8, 8);
    weft_tensor *none = weft_final_state(r, (weft_state){ weft_zeros(w, WEFT_SHAPE(2, 0, 2)), NULL });
    cr_assert(weft_size(none, 0) == 0 && weft_size(none, 1) == 2);
    const struct { int64_t shape[3]; bool foreign; weft_status status; const char *text; } bad[] = {
        { { 1, 4, 2 }, false, WEFT_ESHAPE, "state h is [1, 4, 2]; expected [2, 4, 2]" },
        { { 2, 4, 3 }, false, WEFT_ESHAPE, "state h is [2, 4, 3]; expected [2, 4, 2]" },
        { { 2, 4, 2 }, true, WEFT_EARG, "m.r: final_state: state h" },
    };
    for (int i = 0; i < COUNT(bad); i++) {
        weft_tensor *state = weft_zeros(bad[i].foreign ? other : w, 3, bad[i].shape);
        cr_assert_eq(weft_numel(weft_final_state(r, (weft_state){ state, NULL })), 0);
        FAILS(w, bad[i].status, bad[i].text);
    }
    FAILS_AT(w, weft_final_state(r, WEFT_ZERO_STATE), WEFT_EARG, "m.r: final_state: state h is NULL");
    weft_final_state(NULL, (weft_state){ weft_zeros(w, WEFT_SHAPE(2, 4, 2)), NULL });
    FAILS(w, WEFT_EARG, "final_state: the layer is NULL");
    cr_assert_not_null(weft_final_state(NULL, WEFT_ZERO_STATE));
    CLEAN(other);
}

/* ---- errors ---- */
CPU_TEST(rnn_use, options_are_checked)
{
#define GOOD .input = 2, .hidden = 3
    static const struct { layer_new *make; weft_rnn_opts o; const char *why; } bad[] = {
        { weft_gru_new, { .input = 2 }, "gru_new \"r\": input and hidden: expected 1 or more" },
        { weft_lstm_new, { .input = -1, .hidden = 3 }, "lstm_new \"r\": input and hidden: expected" },
        { weft_lstm_new, { GOOD, .layers = 33 }, "layers: expected 1 .. 32" },
        { weft_lstm_new, { GOOD, .proj = 3 }, "proj: expected less than hidden" },
        { weft_gru_new, { GOOD, .proj = 1 }, "proj: expected only with an LSTM or a CIFG" },
        { weft_elman_new, { GOOD, .dropout = 1 }, "dropout: expected 0 <= dropout < 1" },
        { weft_elman_new, { GOOD, .dropout = NAN }, "dropout: expected 0 <= dropout < 1" },
        { weft_lstm_new, { GOOD, .relu = true }, "relu: expected only with weft_elman_new" },
        { weft_gru_new, { GOOD, .forget_bias = 1 }, "forget_bias: expected only with an LSTM or a CIFG" },
        { weft_mgu_new, { GOOD, .forget_bias = 1 }, "forget_bias: expected only with an LSTM or a CIFG" },
        { weft_lstm_new, { GOOD, .forget_bias = NAN }, "forget_bias: expected a finite number" },
        { weft_lstm_new, { GOOD, .forget_bias = WEFT_ZERO, .no_bias = true },
          "forget_bias: expected only without no_bias" },
        { weft_lstm_new, { GOOD }, "m has a \"r\" already" },
    };
    weft_module *m = weft_module_new(w, "m");
    FAILS_AT(w, weft_gru_new(m, "r", NULL), WEFT_EARG, "gru_new \"r\": opts is NULL");
    weft_lstm_new(m, "r", &bad[COUNT(bad) - 1].o);
    OK(w);
    for (int i = 0; i < COUNT(bad); i++) {
        weft_rnn *r = bad[i].make(m, "r", &bad[i].o);
        FAILS(w, WEFT_EARG, bad[i].why);
        cr_assert(r && !weft_rnn_module(r) && !weft_rnn_set_composed(r, true));
        cr_assert_not_null(weft_rnn_run(r, weft_zeros(w, WEFT_SHAPE(1, 1, 1)), WEFT_ZERO_STATE).y);
        FAILS(w, WEFT_EARG, "rnn_run: the layer is NULL or could not be made");
    }
    weft_rnn_run(NULL, weft_zeros(w, WEFT_SHAPE(1, 1, 2)), WEFT_ZERO_STATE);
    FAILS(w, WEFT_EARG, "the layer is NULL");
}

Test(rnn_use, inputs_are_checked)
{
    weft *w = open_on(WEFT_CPU);
    weft_module *m = weft_module_new(w, "model");
    weft_rnn_opts o = { .input = 2, .hidden = 3, .layers = 2 };
    weft_rnn *lstm = weft_lstm_new(m, "enc", &o), *gru = weft_gru_new(m, "gru", &o),
             *both = weft_gru_new(m, "both", (o.bidirectional = true, &o));
#define X weft_zeros(w, WEFT_SHAPE(4, 5, 2))
#define STATE(...) weft_zeros(w, WEFT_SHAPE(__VA_ARGS__))
    FAILS_AT(w, weft_rnn_run(lstm, NULL, WEFT_ZERO_STATE), WEFT_EARG, "model.enc: rnn_run: x is NULL");
    weft_rnn_run(lstm, weft_zeros(w, WEFT_SHAPE(4, 5, 3)), WEFT_ZERO_STATE);
    FAILS(w, WEFT_ESHAPE,
          "x is [4, 5, 3]; expected ragged rows or plain [sequences, steps, 2] of reals");
    weft_rnn_run(lstm, weft_zeros(w, WEFT_SHAPE(4, 2)), WEFT_ZERO_STATE);
    FAILS(w, WEFT_ESHAPE, "x is [4, 2]");
    weft_rnn_run(lstm, X, (weft_state){ STATE(2, 3, 3), STATE(2, 4, 3) });
    FAILS(w, WEFT_ESHAPE,
          "state h is [2, 3, 3]; expected [2, 4, 3] (layers * directions, sequences, width)");
    weft_rnn_run(lstm, X, (weft_state){ STATE(2, 4, 3), STATE(4, 4, 3) });
    FAILS(w, WEFT_ESHAPE, "state c is [4, 4, 3]");
    FAILS_AT(w, weft_rnn_run(lstm, X, (weft_state){ STATE(2, 4, 3), NULL }), WEFT_EARG, "state c is NULL");
    FAILS_AT(w, weft_rnn_run(lstm, X, (weft_state){ NULL, STATE(2, 4, 3) }), WEFT_EARG, "state h is NULL");
    weft_rnn_run(gru, X, (weft_state){ STATE(2, 4, 3), STATE(2, 4, 3) });
    FAILS(w, WEFT_EARG, "model.gru: rnn_run: state c is given; expected NULL, for a cell with one state, h");
    weft_rnn_step(both, weft_zeros(w, WEFT_SHAPE(4, 2)), WEFT_ZERO_STATE);
    FAILS(w, WEFT_EARG, "model.both: rnn_step: the layer has two directions");
    weft_rnn_step(gru, X, WEFT_ZERO_STATE);
    FAILS(w, WEFT_ESHAPE, "rnn_step: x is [4, 5, 2]; expected plain [sequences, 2] of reals");
    weft_tensor *stale = X;
    weft_clear(w);
    FAILS_AT(w, weft_rnn_run(gru, stale, WEFT_ZERO_STATE), WEFT_EARG, "x is of a step that has ended");
    weft_rnn_out bad = weft_rnn_run(lstm, weft_zeros(w, WEFT_SHAPE(1)), WEFT_ZERO_STATE);
    cr_assert(bad.y && bad.last.h && bad.last.c && !weft_rnn_run(gru, bad.y, WEFT_ZERO_STATE).last.c);
    FAILS(w, WEFT_ESHAPE, "x is [1]");
    weft_rnn_run(lstm, X, WEFT_ZERO_STATE);
    OK(w);
    weft_fail(w, WEFT_EARG, "mine");
    cr_assert_str_eq(weft_error_message(w), "mine", "messages must name the layer after a run");
    CLEAN_FAILED(w);
}

/* ---- memory ---- */
static const kind trained = { LSTM, { .input = F, .hidden = H, .layers = 2, .bidirectional = true }, true };
static int layout_of_step;
static void one_step(weft *w, void *layer)
{
    weft_tensor *x = laid_out(random_ragged(w, 4, F, &of_ends), layout_of_step);
    weft_backward(loss_of(weft_rnn_run(layer, x, random_state(w, &trained, ENDS))));
    weft_zero_grad(weft_rnn_module(layer));
}

TABLE_TEST(rnn_use, a_steady_step_allocates_nothing, .init = unchecked)
{
    for (layout_of_step = WEFT_PACKED; layout_of_step <= WEFT_ROWS; layout_of_step++)
        is_steady(w, one_step, layer_of_kind(w, &trained));
}

CPU_TEST(rnn_use, survives_failure_of_each_allocation)
{
    for (layout_of_step = WEFT_PACKED; layout_of_step <= WEFT_ROWS; layout_of_step++) {
        weft_rnn *r = layer_of_kind(w, &trained);
        int failed = failures_of(w, layout_of_step == WEFT_ROWS ? 4000 : rounds(40, 4000), one_step, r);
        cr_assert(failed > (layout_of_step == WEFT_ROWS ? 50 : 10), "%d", failed);
        one_step(w, r);
    }
}
