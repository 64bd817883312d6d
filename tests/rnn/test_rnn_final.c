/* test_rnn_final.c - the last layer's final states side by side: against the outputs of each sequence's ends,
 * which are the same numbers. */
#include "tests/rnn/rnn_kinds.h"

enum { N = 5, TOKENS = 14, F = 2, H = 3 };
static const int32_t len[N] = { 3, 0, 6, 1, 4 };
static const weft_lengths lengths = { .n = N, .len = len };

static weft_tensor *in_layout(weft_tensor *x, int layout)
{
    static const int32_t row[N] = { 0, 0, 1, 0, 2 }, column[N] = { 0, 3, 0, 3, 1 };
    static const weft_placement place = { 3, 6, row, column };
    return layout == 0 ? x : layout == 1 ? weft_to_layout(x, WEFT_PACKED) : weft_to_rows(x, &place);
}

/* y: rows of the outputs, sequence by sequence; an empty sequence has its first state, here 0 */
static void ends_of(const weft_real *y, int width, bool both, weft_real *want)
{
    for (int s = 0, at = 0; s < N; at += len[s++])
        for (int j = 0; j < width; j++) {
            bool back = both && j >= width / 2;
            want[s * width + j] = len[s] ? y[(back ? at : at + len[s] - 1) * width + j] : 0;
        }
}

Test(rnn_final, is_what_stands_at_the_ends)
{
    FOR_DEVICES(w)
        for (int c = 0; c < CELLS * 2 * 2 * 3; c++) {
            int cell = c % CELLS, layout = c / CELLS / 4;
            bool both = c / CELLS % 2, several = c / CELLS / 2 % 2;
            char name[64];
            snprintf(name, sizeof name, "%s%d%d%d", cell_name[cell], layout, both, several);
            kind k = { cell, { .input = F, .hidden = H, .layers = 1 + several, .bidirectional = both }, 0 };
            weft_rnn *r = rnn_of(weft_module_new(w, name), "r", &k);
            weft_tensor *x = in_layout(random_ragged(w, 4, F, &lengths), layout);
            weft_rnn_out o = weft_rnn_run(r, x, WEFT_ZERO_STATE);
            weft_tensor *got = weft_final_state(r, o.last);
            int width = (int)weft_size(o.y, 1);
            weft_real y[TOKENS * 2 * H], want[N * 2 * H];
            cr_assert(sequences_status(o.y, y, (size_t)(TOKENS * width) * sizeof *y) == WEFT_OK, "%s",
                      weft_error_message(w));
            cr_assert(weft_rank(got) == 2 && weft_size(got, 0) == N && weft_size(got, 1) == width &&
                      weft_layout_of(got) == WEFT_PLAIN);
            ends_of(y, width, both, want);
            same_bits(name, numbers(got), want, N * width);
            weft_clear(w);
        }
}

Test(rnn_final, of_other_states)
{
    weft *w = open_on(WEFT_CPU), *other = open_on(WEFT_CPU);
    weft_module *m = weft_module_new(w, "m");
    weft_rnn *r = weft_lstm_new(m, "r", &(weft_rnn_opts){ .input = F, .hidden = H, .proj = 2, .layers = 2 });
    weft_tensor *h = weft_randn(w, WEFT_SHAPE(2, 4, 2));
    weft_tensor *y = weft_final_state(r, (weft_state){ h, NULL });           /* c is not looked at */
    same_bits("projected", numbers(y), numbers(h) + 8, 8);
    weft_tensor *none = weft_final_state(r, (weft_state){ weft_zeros(w, WEFT_SHAPE(2, 0, 2)), NULL });
    cr_assert(weft_size(none, 0) == 0 && weft_size(none, 1) == 2);
    const struct { int64_t shape[3]; bool foreign; weft_status status; const char *text; } bad[] = {
        { { 1, 4, 2 }, false, WEFT_ESHAPE, "state h is [1, 4, 2]; [2, 4, 2]" },
        { { 2, 4, 3 }, false, WEFT_ESHAPE, "state h is [2, 4, 3]; [2, 4, 2]" },
        { { 2, 4, 2 }, true, WEFT_EARG, "m.r: final_state: state h" },
    };
    for (int i = 0; i < COUNT(bad); i++) {
        weft_tensor *state = weft_zeros(bad[i].foreign ? other : w, 3, bad[i].shape);
        cr_assert_eq(weft_numel(weft_final_state(r, (weft_state){ state, NULL })), 0);
        FAILS(w, bad[i].status, bad[i].text);
    }
    weft_final_state(r, WEFT_ZERO_STATE);
    FAILS(w, WEFT_EARG, "m.r: final_state: state h is NULL");
    weft_final_state(NULL, (weft_state){ weft_zeros(w, WEFT_SHAPE(2, 4, 2)), NULL });
    FAILS(w, WEFT_EARG, "final_state: the layer is NULL");
    cr_assert_not_null(weft_final_state(NULL, WEFT_ZERO_STATE));
    CLEAN(w);
    CLEAN(other);
}

/* The gradient goes to the last layer's states, and to nothing else. */
Test(rnn_final, gradient)
{
    weft *w = open_on(WEFT_CPU);
    weft_rnn *r = weft_gru_new(weft_module_new(w, "m"), "r", &(weft_rnn_opts){ .input = F, .hidden = H,
                                                                              .layers = 2,
                                                                              .bidirectional = true });
    weft_tensor *h = weft_randn(w, WEFT_SHAPE(4, 2, H)), *g;
    weft_tensor *loss = weft_sum_all(weft_square(weft_final_state(r, (weft_state){ h, NULL })));
    weft_gradients(loss, &h, 1, &g);
    for (int i = 0; i < 4 * 2 * H; i++)
        cr_assert_eq(numbers(g)[i], i < 2 * 2 * H ? 0 : 2 * numbers(h)[i]);
    CLEAN(w);
}
