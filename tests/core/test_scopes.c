/* test_scopes.c - tests WEFT_NO_GRAD and WEFT_EVAL: the previous setting returns, however the block is
 * left. */
#include "tests/check.h"

static bool both_on(const weft *w)  { return weft_is_grad_enabled(w) && weft_is_training(w); }
static bool both_off(const weft *w) { return !weft_is_grad_enabled(w) && !weft_is_training(w); }

static int returns_from_inside(weft *w)
{
    WEFT_NO_GRAD(w) WEFT_EVAL(w) {
        if (both_off(w))
            return 7;
    }
    return 0;
}

static void jumps_out(weft *w)
{
    WEFT_NO_GRAD(w) {
        WEFT_EVAL(w) {
            cr_assert(both_off(w));
            goto out;
        }
    }
    cr_assert_fail("no scope ended");
out:
    cr_assert(both_on(w));
}

CPU_TEST(scopes, restore_the_previous_setting)
{
    int rounds_ = 0, inside = 0;
    cr_assert(both_on(w));
    WEFT_NO_GRAD(w) {
        inside++;
        cr_assert(!weft_is_grad_enabled(w) && weft_is_training(w));
        WEFT_EVAL(w)
            cr_assert(both_off(w));
        cr_assert(!weft_is_grad_enabled(w) && weft_is_training(w));
        WEFT_NO_GRAD(w)
            inside++;
        cr_assert(!weft_is_grad_enabled(w), "the inner block ended the outer one");
    }
    cr_assert(both_on(w) && inside == 2);
    for (; rounds_ < 3; rounds_++)
        WEFT_EVAL(w) {
            if (rounds_ == 1)
                continue;                        /* leaves only the inner block */
            if (rounds_ == 2)
                break;
        }
    cr_assert(both_on(w) && rounds_ == 3);
    cr_assert_eq(returns_from_inside(w), 7);
    cr_assert(both_on(w));
    jumps_out(w);
    weft_set_training(w, false);
    WEFT_EVAL(w)
        cr_assert(!weft_is_training(w));
    cr_assert(!weft_is_training(w), "it was off before the block");
}

CPU_TEST(scopes, disable_tape_and_dropout_inside)
{
    weft_tensor *x = weft_full(w, 1, WEFT_SHAPE(100)), *y = NULL;
    WEFT_EVAL(w)
        y = weft_dropout(x, .5, "drop", false);
    cr_assert(weft_item(weft_sum_all(y)) == 100);
    int64_t entries = weft_usage_of(w).tape;
    WEFT_NO_GRAD(w)
        y = weft_tanh(x);
    cr_assert_eq(weft_usage_of(w).tape, entries);
    weft_tanh(x);
    cr_assert_eq(weft_usage_of(w).tape, entries + 1);
}

Test(scopes, run_for_null_and_failed_contexts)
{
    int inside = 0;
    WEFT_NO_GRAD(NULL) WEFT_EVAL(NULL)
        inside++;
    cr_assert(inside == 1 && !weft_is_training(NULL) && !weft_is_grad_enabled(NULL));
    weft *w = open_on(WEFT_CPU);
    WEFT_NO_GRAD(w)
        weft_matmul(weft_zeros(w, WEFT_SHAPE(2, 3)), weft_zeros(w, WEFT_SHAPE(2, 3)));
    cr_assert(both_on(w) && !weft_ok(w));
    CLEAN_FAILED(w);
}

CPU_TEST(scopes, composed_setting_returns_the_previous_one)
{
    weft_rnn *r = weft_gru_new(weft_module_new(w, "m"), "gru", &(weft_rnn_opts){ .input = 2, .hidden = 3 });
    cr_assert(!weft_rnn_set_composed(r, true) && !weft_rnn_set_composed(NULL, true));
    cr_assert(weft_rnn_set_composed(r, true) && weft_rnn_set_composed(r, false));
    cr_assert(!weft_rnn_set_composed(r, false));
}
