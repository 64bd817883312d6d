/* test_rnn_dropout.c - tests dropout of recurrent weights, and dropout between layers by sequence. */
#include "tests/check.h"
#include "autograd/op.h"

enum { F = 3, H = 4, TOKENS = 9 };
static const weft_lengths some = { .n = 3, .len = (int32_t[]){ 5, 0, 4 } };

/* Begins a step whose masks are always the same. */
static void begin(weft *w) { weft_clear(w), w->random.draw = 7; }

static weft_rnn *lstm(weft *w, weft_rnn_opts o, bool composed, weft_module **m)
{
    o.input = F, o.hidden = H;
    *m = weft_module_new(w, composed ? "composed" : "m");
    weft_rnn *r = weft_lstm_new(*m, "r", &o);
    weft_rnn_set_composed(r, composed);
    return r;
}

/* The layer has the bits of a layer without weight_drop whose weight_hh were multiplied by hand. */
TABLE_TEST(rnn_dropout, weight_drop_equals_weights_dropped_by_hand)
{
    static weft_real rows[TOKENS * F];
    dice_fill(rows, TOKENS * F, -1, 1);
    for (int composed = 0; composed < 2; composed++) {
        weft_module *m;
        weft_rnn *r = lstm(w, (weft_rnn_opts){ .weight_drop = .5, .bidirectional = true }, composed, &m);
        begin(w);
        weft_tensor *x = weft_ragged(w, rows, F, &some);
        weft_real *got = numbers(weft_rnn_run(r, x, WEFT_ZERO_STATE).y);
        weft_set_training(w, false);
        weft_real *off = numbers(weft_rnn_run(r, x, WEFT_ZERO_STATE).y);
        weft_set_training(w, true);
        begin(w);
        cr_assert(memcmp(got, off, TOKENS * 2 * H * sizeof *got), "weights were dropped");
        const char *names[] = { "r.weight_hh_l0", "r.weight_hh_l0_reverse" };
        for (int i = 0; i < 2; i++) {
            char path[64];
            weft_tensor *p = weft_find_parameter(m, names[i]);
            snprintf(path, sizeof path, "%s.%s", composed ? "composed" : "m", names[i]);
            weft_real *dropped = numbers(weft_dropout(p, .5, path, false));
            int zeros = 0;
            for (int k = 0; k < 4 * H * H; k++)
                zeros += dropped[k] == 0;
            cr_assert(zeros > H * H && zeros < 3 * H * H);
            weft_assign_values(p, dropped, 4 * H * H);
        }
        begin(w);
        weft_set_training(w, false);
        same_bits("y", got, numbers(weft_rnn_run(r, weft_ragged(w, rows, F, &some), WEFT_ZERO_STATE).y),
                  TOKENS * 2 * H);
        weft_set_training(w, true);
        OK(w);
    }
}

/* A layer of two equals two layers with dropout by sequence between them. */
TABLE_TEST(rnn_dropout, variational_dropout_has_one_mask_for_a_sequence)
{
    static const char *const parts[] = { "weight_ih", "weight_hh", "bias_ih", "bias_hh" };
    static weft_real rows[TOKENS * F];
    weft_module *m;
    dice_fill(rows, TOKENS * F, -1, 1);
    weft_rnn *r = lstm(w, (weft_rnn_opts){ .layers = 2, .dropout = .5, .variational = true }, false, &m),
             *one[2];
    for (int l = 0; l < 2; l++) {
        one[l] = weft_lstm_new(m, l ? "b" : "a", &(weft_rnn_opts){ .input = l ? H : F, .hidden = H });
        for (int i = 0; i < COUNT(parts); i++) {
            char from[32], to[32];
            snprintf(from, sizeof from, "r.%s_l%d", parts[i], l);
            snprintf(to, sizeof to, "%s.%s_l0", l ? "b" : "a", parts[i]);
            weft_assign(weft_find_parameter(m, to), weft_find_parameter(m, from));
        }
    }
    begin(w);
    weft_tensor *x = weft_ragged(w, rows, F, &some);
    weft_real *got = numbers(weft_rnn_run(r, x, WEFT_ZERO_STATE).y);
    begin(w);
    x = weft_rnn_run(one[0], weft_ragged(w, rows, F, &some), WEFT_ZERO_STATE).y;
    weft_tensor *y = weft_rnn_run(one[1], weft_dropout(x, .5, "m.r.dropout_l0", true), WEFT_ZERO_STATE).y;
    same_bits("y", got, numbers(y), TOKENS * H);
}

CPU_TEST(rnn_dropout, bad_weight_drop_is_reported)
{
    weft_module *m;
    lstm(w, (weft_rnn_opts){ .weight_drop = 1 }, false, &m);
    FAILS(w, WEFT_EARG, "weight_drop: expected 0 <= weight_drop < 1");
}
