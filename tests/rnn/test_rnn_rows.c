/* test_rnn_rows.c - tests recurrent layers on the layout rows, where a column holds several sequences.
 * Results equal those of packed input, with gaps, empty rows and empty sequences. */
#include "tests/rnn/rnn_kinds.h"

enum { N = 6, FEATURES = 3, ROWS = 4, WIDTH = 8, TOKENS = 15 };
/* row 1 stays empty */
static const int32_t len[N] = { 4, 0, 2, 5, 1, 3 }, row[N] = { 2, 0, 2, 0, 2, 3 },
                     column[N] = { 1, 0, 6, 2, 5, 0 };
static const weft_lengths lengths = { .n = N, .len = len };
static const weft_placement placement = { ROWS, WIDTH, row, column };

/* The gradient of the squares of dx by a weight. */
static weft_real *second_derivative(weft *w, const kind *k, weft_rnn *r, bool rows)
{
    weft_tensor *x = random_ragged(w, 4, FEATURES, &lengths), *dx, *second;
    weft_tensor *weight = weft_find_parameter(weft_rnn_module(r), "weight_hh_l0");
    weft_tensor *given = rows ? weft_to_rows(x, &placement) : weft_to_layout(x, WEFT_PACKED);
    weft_rnn_out o = weft_rnn_run(r, given, random_state(w, k, N));
    weft_gradients_recorded(loss_of(o), &x, 1, &dx);
    weft_gradients(weft_sum_all(weft_square(weft_plain(dx))), &weight, 1, &second);
    OK(w);
    return numbers(second);
}

/* The results have the same bits, the gradients are close. */
static void rows_are_packed(weft *w, const kind *k, weft_rnn *r)
{
    static bag a, b;
    int64_t h = stacked(k) * N * width_of(k), c = has_c(k) ? stacked(k) * N * k->o.hidden : 0,
            y = TOKENS * width_of(k) * (1 + k->o.bidirectional), results = y + h + c;
    all_of(w, k, r, &lengths, WEFT_PACKED, &a);
    weft_tensor *x = random_ragged(w, 4, FEATURES, &lengths);
    all_by(k, r, x, weft_to_rows(x, &placement), &b);
    cr_assert_eq(a.n, b.n);
    same_in_company(cell_name[k->cell], b.v, a.v, results);
    close_to(cell_name[k->cell], b.v + results, a.v + results, a.n - results, TOL(1e-12, 2e-5));
}

TABLE_TEST(rnn_rows, match_packed_sequences)
{
    for (int i = 0; i < 4 * CELLS; i++) {
        kind k = { i % CELLS,
                   { .input = FEATURES, .hidden = 4, .layers = 2, .bidirectional = i / CELLS % 2 },
                   i / CELLS / 2 };
        weft_rnn *r = layer_of_kind(w, &k);
        close_to(cell_name[k.cell], second_derivative(w, &k, r, true), second_derivative(w, &k, r, false),
                 weft_numel(weft_find_parameter(weft_rnn_module(r), "weight_hh_l0")), TOL(1e-11, 2e-4));
        for (int composed = 0; composed < 2; composed++) {
            weft_rnn_set_composed(r, composed);
            rows_are_packed(w, &k, r);
        }
    }
}

/* Many units and few sequences, so that threads share the units. */
TABLE_TEST(rnn_rows, wide_layers_match_packed_sequences)
{
    for (int i = 0; i < CELLS; i++) {
        kind k = { i, { .input = FEATURES, .hidden = 380, .layers = 1 }, true };
        rows_are_packed(w, &k, layer_of_kind(w, &k));
    }
}

TABLE_TEST(rnn_rows, the_result_has_the_layout_of_the_input)
{
    weft_module *m = weft_module_new(w, "m");
    weft_rnn *r = weft_gru_new(m, "r", &(weft_rnn_opts){ .input = FEATURES, .hidden = 2 });
    weft_tensor *x = weft_to_rows(random_ragged(w, 4, FEATURES, &lengths), &placement),
                *y = weft_rnn_run(r, x, WEFT_ZERO_STATE).y;
    cr_assert_eq(weft_layout_of(y), WEFT_ROWS);
    const int32_t *sequence = weft_rows_of(y).sequence;
    const weft_real *v = numbers(weft_plain(y));
    for (int i = 0; i < ROWS * WIDTH; i++)
        cr_assert((sequence[i] < 0) == (v[2 * i] == 0 && v[2 * i + 1] == 0), "cell %d", i);
}

TABLE_TEST(rnn_rows, empty_batches_work)
{
    static const int32_t none[] = { 0, 0 };
    weft_module *m = weft_module_new(w, "m");
    weft_rnn *r = weft_lstm_new(m, "r", &(weft_rnn_opts){ .input = FEATURES, .hidden = 2 });
    for (int n = 0; n < 3; n++) {
        weft_tensor *x = weft_ragged(w, NULL, FEATURES, &(weft_lengths){ .n = n, .len = none });
        weft_rnn_out o =
            weft_rnn_run(r, weft_to_rows(x, &(weft_placement){ n, 5, none, none }), WEFT_ZERO_STATE);
        weft_backward(weft_sum_all(o.y));
        cr_assert(weft_numel(o.y) == 10 * n && weft_size(o.last.h, 1) == n);
        OK(w);
        weft_clear(w);
    }
}
