/* test_own_cell_zeros.c - tests that a zero gradient has the same sign for a single sequence and in a
 * batch. */
#include "tests/check.h"

static weft_state add_up(const weft_cell_input *in, void *user)
{
    (void)user;
    return (weft_state){ weft_add(in->x, weft_neg(in->h)), NULL };
}
static weft_state through(const weft_cell_input *in, void *user)
{
    (void)user;
    return (weft_state){ weft_add(in->x, in->h), NULL };
}

/* Gradients of x [.., 2] and of the first states [2, n, 2], of a loss whose gradient by y is -0. */
static void minus_zero_gradients(weft_cell_step *step, int n, const int32_t *len, weft_real *dx,
                                 weft_real *dh)
{
    weft *w = open_on(WEFT_CPU);
    weft_cell c = { .name = "mine", .gates = 1, .gates_h = -1, .states = 1, .step = step };
    weft_rnn *r = weft_rnn_of_cell(weft_module_new(w, "m"), "r", &c,
                                   &(weft_rnn_opts){ .input = 2, .hidden = 2, .bidirectional = true });
    weft_lengths l = { .n = n, .len = len };
    weft_real zeros[64];
    for (int i = 0; i < 64; i++)
        zeros[i] = -0.f;
    weft_tensor *by[] = { weft_ragged(w, zeros, 2, &l), weft_full(w, .5, WEFT_SHAPE(2, n, 2)) }, *g[2];
    weft_rnn_out o = weft_rnn_run(r, by[0], (weft_state){ by[1], NULL });
    weft_gradients(weft_sum_all(weft_mul(o.y, weft_ragged(w, zeros, 4, &l))), by, 2, g);
    OK(w);
    weft_read_sequences(g[0], dx, (size_t)weft_numel(g[0]) * sizeof *dx);
    weft_read(g[1], dh, (size_t)weft_numel(g[1]) * sizeof *dh);
    CLEAN(w);
}

Test(own_cell, zeros_have_one_sign_alone_and_in_a_batch)
{
    static const int32_t len[] = { 3, 1, 2 };
    weft_cell_step *const steps[] = { add_up, through };
    for (int k = 0; k < COUNT(steps); k++) {
        weft_real dx[12], dh[12], alone_x[12], alone_h[4];
        minus_zero_gradients(steps[k], 3, len, dx, dh);
        for (int s = 0, at = 0; s < 3; at += 2 * len[s++]) {
            minus_zero_gradients(steps[k], 1, len + s, alone_x, alone_h);
            same_bits("dx", dx + at, alone_x, 2 * len[s]);
            for (int d = 0; d < 2; d++)
                same_bits("dh", dh + 6 * d + 2 * s, alone_h + 2 * d, 2);
        }
    }
}
