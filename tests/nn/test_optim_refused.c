/* test_optim_refused.c - optimisers: what they refuse, what they allocate, what they wait for. */
#include "optim_model.h"

Test(optim_refused, refusals)
{
    weft *w = open_on(WEFT_REF);
    model a = model_in(w);
    weft_sgd_new(a.m, &(weft_sgd_opts){ .lr = -1 });
    FAILS(w, WEFT_EARG, "sgd: lr -1");
    weft_sgd_new(a.m, &(weft_sgd_opts){ .lr = 1, .nesterov = true });
    FAILS(w, WEFT_EARG, "nesterov");
    weft_adam_new(a.m, &(weft_adam_opts){ 1, 1, 0, 1, 0 });
    FAILS(w, WEFT_EARG, "adam: beta1 1");
    weft_adamw_new(a.m, &(weft_adam_opts){ .lr = 1, .eps = WEFT_ZERO });
    FAILS(w, WEFT_EARG, "adamw: eps 0");
    weft_rmsprop_new(a.m, &(weft_rmsprop_opts){ 1, (weft_real)NAN, 1, 0, 0, false });
    FAILS(w, WEFT_EARG, "rmsprop: alpha nan");
    weft_optim *o = weft_sgd_new(a.m, NULL);
    weft_optim_set_lr(o, -1);
    FAILS(w, WEFT_EARG, "optim_set_lr: -1");
    weft_optim_set_group(o, "", 1, 0);
    FAILS(w, WEFT_EARG, "optim_set_group: pattern \"\", rate times 1");
    weft_optim_set_group(o, NULL, 1, 0);
    FAILS(w, WEFT_EARG, "optim_set_group: pattern NULL");
    weft_optim_set_group(o, "enc.*", -1, 0);
    FAILS(w, WEFT_EARG, "rate times -1");
    weft_clip_grad_norm(a.m, 1, 3);
    FAILS(w, WEFT_EARG, "clip_grad_norm: norm 3");
    weft_clip_grad_norm(a.m, (weft_real)NAN, 0);
    FAILS(w, WEFT_EARG, "at most nan");
    weft_clip_grad_norm(a.m, 0, 0);
    FAILS(w, WEFT_EARG,
          "clip_grad_norm: norm 2, at most 0; a norm 1, 2 (or 0) or INFINITY, at most more than 0 "
          "(INFINITY: no limit)");
    weft_ema_new(a.m, 2);
    FAILS(w, WEFT_EARG, "decay 2");
    cr_assert_eq(weft_optim_lr(o), (weft_real)1e-3);
    CLEAN(w);
}

/* 1e39 is an infinity of float, 1e-50 a 0, and what is nearly 1 is 1: refused as those are. */
Test(optim_refused, numbers_that_a_weft_real_does_not_hold)
{
    weft *w = open_on(WEFT_REF);
    model a = model_in(w);
    bool wide = sizeof(weft_real) == sizeof(double);
    double large = wide ? (double)INFINITY : 1e39, small = wide ? -1 : 1e-50, one = 1 - 1e-12;
    weft_sgd_new(a.m, &(weft_sgd_opts){ .lr = large });
    FAILS(w, WEFT_EARG, "sgd: lr inf");
    weft_sgd_new(a.m, &(weft_sgd_opts){ .dampening = large });
    FAILS(w, WEFT_EARG, "sgd: dampening inf");
    weft_rmsprop_new(a.m, &(weft_rmsprop_opts){ .eps = small });
    FAILS(w, WEFT_EARG, "rmsprop: eps");
    weft_adam_new(a.m, &(weft_adam_opts){ .eps = small });
    FAILS(w, WEFT_EARG, "adam: eps");
    if (!wide) {
        weft_adam_new(a.m, &(weft_adam_opts){ .beta2 = one });
        FAILS(w, WEFT_EARG, "adam: beta2 1; 0 or more and below 1");
        weft_clip_grad_norm(a.m, small, 2);
        FAILS(w, WEFT_EARG, "clip_grad_norm: norm 2, at most 1e-50");
    }
    weft_optim *o = weft_sgd_new(a.m, NULL);
    weft_optim_set_lr(o, large);
    FAILS(w, WEFT_EARG, "optim_set_lr: inf");
    weft_optim_set_group(o, "*", large, 0);
    FAILS(w, WEFT_EARG, "rate times inf");
    weft_optim_set_group(o, "*", 1, large);
    FAILS(w, WEFT_EARG, "decay inf");
    cr_assert_eq(weft_optim_lr(o), (weft_real)1e-3);
    CLEAN(w);
}

Test(optim_refused, null)
{
    weft_optim *o = weft_adam_new(NULL, NULL);
    weft_ema *e = weft_ema_new(NULL, 0);
    cr_assert(o && e && weft_clip_grad_norm(NULL, 1, 0));
    for (int i = 0; i < 2; i++, o = NULL, e = NULL) {
        weft_optim_step(o);
        weft_optim_set_lr(o, 1);
        weft_optim_set_group(o, NULL, 1, 1);
        cr_assert(weft_optim_steps(o) == 0 && weft_optim_lr(o) == 0 && weft_optim_skipped(o, NULL) == 0 &&
                  !*bad_parameter(o));
        weft_ema_update(e, 1);
        weft_ema_swap(e);
    }
}

Test(optim_refused, steady_steps_allocate_nothing)
{
    FOR_DEVICES(w) {
        model a = model_in(w);
        weft_optim *o = weft_adamw_new(a.m, NULL);
        weft_ema *e = weft_ema_new(a.m, (weft_real).9);
        int64_t before = 0;
        for (int t = 0; t < 6; t++) {
            pull(&a, t);
            weft_clip_grad_norm(a.m, 1, 0);
            weft_optim_step(o);
            weft_ema_update(e, t + 1);
            weft_ema_swap(e);
            weft_ema_swap(e);
            weft_clear(w);
            before = t == 2 ? allocations(w) : before;
        }
        cr_assert_eq(allocations(w), before);
    }
}

/* On a device that is not the host a whole training step reads nothing back; ten bad steps are found out
 * when somebody asks. */
static int waits;
static void download(weft__device *d, void *to, const void *from, size_t bytes)
{
    waits++, weft__ref.download(d, to, from, bytes);
}
static void wait(weft__device *d) { waits++, weft__ref.wait(d); }

static weft_tensor *whole_loss(const model *a)
{
    weft *w = a->w;
    weft_tensor *h = weft_matmul(weft_full(w, 1, WEFT_SHAPE(2, 3)), a->p[1]),
                *y = weft_ints(w, (int32_t[]){ 4, 0 }, WEFT_SHAPE(2));
    weft_loss l = weft_cross_entropy(
        h, y, &(weft_ce_opts){ .mask = weft_full(w, 1, WEFT_SHAPE(2)), .smoothing = (weft_real).1 });
    weft_loss m = weft_mse(a->p[2], weft_zeros(w, WEFT_SHAPE(16)),
                           &(weft_loss_opts){ .mask = weft_full(w, 1, WEFT_SHAPE(16)) });
    return weft_add(weft_mean_loss(l), weft_mean_loss(m));
}

Test(optim_refused, a_step_does_not_wait, .init = unchecked)
{
    weft__kernels far = weft__ref;
    far.synchronous = false;
    far.download = download;
    far.wait = wait;
    weft *w = open_on(WEFT_REF);
    w->dev.k = &far;
    model a = model_in(w);
    weft_optim *o = weft_adamw_new(a.m, NULL);
    weft_ema *e = weft_ema_new(a.m, (weft_real).9);
    waits = 0;
    for (int t = 0; t < 12; t++) {
        weft_backward(whole_loss(&a));
        if (t > 1)
            weft_assign_values(weft_grad(a.p[3]), (weft_real[]){ NAN }, 1);
        weft_clip_grad_norm(a.m, 1, 0);
        weft_freeze(a.enc, "*", t == 1);
        weft_optim_step(o);
        weft_ema_update(e, t + 1);
        weft_ema_swap(e);
        weft_ema_swap(e);
        weft_clear(w);
    }
    OK(w);
    cr_assert_eq(waits, 0);
    cr_assert_eq(weft_optim_steps(o), 12);
    cr_assert_eq(weft_optim_skipped(o, NULL), 10);
    cr_assert_eq(waits, 1);
    FAILS(w, WEFT_ENUMERIC, "10 steps in a row, first in enc.bias");
    CLEAN(w);
}

Test(optim_refused, no_memory)
{
    for (int i = 1, failed = 1; failed; i++) {
        weft *w = open_on(WEFT_REF);
        model a = model_in(w);
        fail_in(w, i);
        weft_optim *o =
            weft_rmsprop_new(a.m, &(weft_rmsprop_opts){ 1, (weft_real).9, 1, 0, (weft_real).5, true });
        weft_ema *e = weft_ema_new(a.m, (weft_real).5);
        failed = !weft_ok(w);
        cr_assert(!failed || weft_error_code(w) == WEFT_ENOMEM, "%s", weft_error_message(w));
        fail_in(w, 0);
        weft_optim_step(o);
        weft_ema_update(e, 1);
        cr_assert_lt(i, 100);
        CLEAN_FAILED(w);
    }
}
