/* test_losses_range.c - targets and variances that cannot be are errors that name their place. */
#include "core/inside.h"
#include "tests/check.h"

Test(losses_range, a_variance_below_0)
{
    FOR_DEVICES(w) {
        weft_tensor *x = weft_zeros(w, WEFT_SHAPE(4)),
                    *v = weft_reals(w, (weft_real[]){ 1, 0, (weft_real)-.5, -2 }, WEFT_SHAPE(4));
        weft_gaussian_nll(x, x, v, 0, NULL);
        weft_synchronize(w);
        cr_assert_eq(weft_error_code(w), WEFT_EARG);
        if (w->dev.k->synchronous)
            cr_assert(strstr(weft_error_message(w), "gaussian_nll: variance: element 2 is -0.5; 0 .. inf"),
                      "%s", weft_error_message(w));
        weft_recover(w);
    }
}

Test(losses_range, a_binary_target_outside_0_and_1)
{
    FOR_DEVICES(w)
        for (int i = 0; i < 2; i++) {
            weft_lengths l = { .n = 2, .len = (int32_t[]){ 1, 3 } };
            weft_real target[] = { 0, 1, i ? 2 : (weft_real)-.25, 1 };
            weft_tensor *x = weft_to_layout(weft_ragged(w, target, 1, &l), WEFT_PACKED);
            weft_bce_with_logits(weft_ragged(w, (weft_real[4]){ 0 }, 1, &l), x, NULL);
            weft_synchronize(w);
            cr_assert_eq(weft_error_code(w), WEFT_EARG);
            const char *found =
                strstr(weft_error_message(w), i ? " (sequence 1, position 1) is 2; 0 .. 1" :
                                                  " (sequence 1, position 1) is -0.25; 0 .. 1");
            cr_assert(found || !w->dev.k->synchronous, "%s", weft_error_message(w));
            weft_recover(w);
        }
}

Test(losses_range, numbers_at_the_ends_and_under_a_mask_are_taken)
{
    FOR_DEVICES(w) {
        weft_real target[] = { 0, 1, 7, (weft_real).5 }, variance[] = { 1, 0, -3, 2 };
        weft_loss_opts o = { .mask = weft_reals(w, (weft_real[]){ 1, 1, 0, 1 }, WEFT_SHAPE(4)) };
        weft_tensor *x = weft_zeros(w, WEFT_SHAPE(4));
        weft_loss l = weft_bce_with_logits(x, weft_reals(w, target, WEFT_SHAPE(4)), &o);
        cr_assert(fabs(weft_item(l.sum) - 3 * log(2)) < 1e-5 && weft_item(l.weight) == 3);
        l = weft_gaussian_nll(x, x, weft_reals(w, variance, WEFT_SHAPE(4)), 0, &o);
        cr_assert(isfinite(weft_item(l.sum)) && weft_ok(w), "%s", weft_error_message(w));
    }
}
