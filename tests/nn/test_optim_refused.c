/* test_optim_refused.c - tests which options optimisers refuse, how much they allocate, and when they wait
 * for the device. */
#include "optim_model.h"

#define INF (double)INFINITY
/* In float, 1e39 is infinity, 1e-50 is 0 and numbers close to 1 are 1. */
#define LARGE TOL(INF, 1e39)
#define SMALL TOL(-1, 1e-50)

REF_TEST(optim_refused, invalid_options_are_refused)
{
    static const struct { weft_sgd_opts o; const char *part; } sgd[] = {
        { { .lr = -1 }, "sgd: lr -1; expected a finite number, 0 or more" },
        { { .lr = LARGE }, "sgd: lr inf" },
        { { .lr = 1, .momentum = INF }, "sgd: momentum inf" },
        { { .dampening = LARGE }, "sgd: dampening inf" },
        { { .momentum = .9, .dampening = NAN }, "sgd: dampening nan; expected a finite number" },
        { { .weight_decay = INF }, "sgd: weight_decay inf" },
        { { .lr = 1, .nesterov = true }, "nesterov" } };
    static const struct { weft_rmsprop_opts o; const char *part; } rmsprop[] = {
        { { .alpha = NAN }, "rmsprop: alpha nan" },
        { { .alpha = 2 }, "rmsprop: alpha 2; expected 0 .. 1" },
        { { .eps = SMALL }, "rmsprop: eps" } };
    static const struct { weft_adam_opts o; const char *part; } adam[] = {
        { { .beta1 = 1 }, "adam: beta1 1" },
        { { .beta2 = TOL(1, 1 - 1e-12) }, "adam: beta2 1; expected 0 or more and below 1" },
        { { .lr = NAN }, "adam: lr nan" },
        { { .eps = WEFT_ZERO }, "adam: eps 0" },
        { { .eps = INF }, "adam: eps inf; expected a finite number above 0" },
        { { .eps = SMALL }, "adam: eps" } };
    static const struct { weft_lion_opts o; const char *part; } lion[] = {
        { { .lr = -1 }, "lion: lr -1" },
        { { .beta1 = 1 }, "lion: beta1 1; expected 0 or more and below 1" },
        { { .beta2 = NAN }, "lion: beta2 nan" },
        { { .weight_decay = INF }, "lion: weight_decay inf" } };
    static const struct { weft_muon_opts o; const char *part; } muon[] = {
        { { .lr = WEFT_ZERO }, "muon: lr 0; expected a finite number above 0" },
        { { .momentum = 1 }, "muon: momentum 1" },
        { { .eps = SMALL }, "muon: eps" },
        { { .ns_steps = -1 }, "muon: ns_steps -1; expected 1 .. 99" },
        { { .ns_steps = 100 }, "muon: ns_steps 100" },
        { { .weight_decay = -1 }, "muon: weight_decay -1" },
        { { .adamw = { .beta1 = 1 } }, "muon, adamw: beta1 1" },
        { { .lr = TOL(1e-300, 1e-30), .adamw = { .lr = TOL(1e300, 1e30) } }, "muon: adamw.lr / lr inf" } };
    model a = model_in(w);
    for (int i = 0; i < COUNT(lion); i++)
        FAILS_AT(w, weft_lion_new(a.m, &lion[i].o), WEFT_EARG, lion[i].part);
    for (int i = 0; i < COUNT(muon); i++)
        FAILS_AT(w, weft_muon_new(a.m, &muon[i].o), WEFT_EARG, muon[i].part);
    FAILS_AT(w, weft_radam_new(a.m, &(weft_radam_opts){ .beta2 = 1 }), WEFT_EARG, "radam: beta2 1");
    for (int i = 0; i < COUNT(sgd); i++)
        FAILS_AT(w, weft_sgd_new(a.m, &sgd[i].o), WEFT_EARG, sgd[i].part);
    for (int i = 0; i < COUNT(rmsprop); i++)
        FAILS_AT(w, weft_rmsprop_new(a.m, &rmsprop[i].o), WEFT_EARG, rmsprop[i].part);
    for (int i = 0; i < COUNT(adam); i++)
        FAILS_AT(w, weft_adam_new(a.m, &adam[i].o), WEFT_EARG, adam[i].part);
}

REF_TEST(optim_refused, invalid_rates_groups_and_norms_are_refused)
{
    static const struct { double lr; const char *part; } rates[] = {
        { -1, "optim_set_lr: -1" }, { LARGE, "optim_set_lr: inf; expected a finite number, 0 or more" },
        { NAN, "optim_set_lr: nan" } };
    static const struct { const char *pattern; double scale, decay; const char *part; } groups[] = {
        { "", 1, 0, "optim_set_group: pattern \"\", rate times 1" },
        { NULL, 1, 0, "optim_set_group: pattern NULL" },
        { "enc.*", -1, 0, "rate times -1" },
        { "enc.*", LARGE, 0, "pattern \"enc.*\", rate times inf, decay 0; expected a pattern of paths" },
        { "enc.*", 1, LARGE, "rate times 1, decay inf" } };
    static const struct { double max, power; const char *part; } norms[] = {
        { 1, 3, "clip_grad_norm: norm 3" }, { NAN, 0, "limit nan" }, { SMALL, 2, "limit" },
        { 0, 0, "norm 2, limit 0; expected a norm of 1, 2 (or 0) or INFINITY, and a limit above 0" } };
    model a = model_in(w);
    weft_optim *o = weft_sgd_new(a.m, NULL);
    for (int i = 0; i < COUNT(rates); i++)
        FAILS_AT(w, weft_optim_set_lr(o, rates[i].lr), WEFT_EARG, rates[i].part);
    for (int i = 0; i < COUNT(groups); i++) {
        weft_optim_set_group(o, groups[i].pattern, groups[i].scale, groups[i].decay);
        FAILS(w, WEFT_EARG, groups[i].part);
    }
    for (int i = 0; i < COUNT(norms); i++)
        FAILS_AT(w, weft_clip_grad_norm(a.m, norms[i].max, norms[i].power), WEFT_EARG, norms[i].part);
    weft_ema_new(a.m, 2);
    FAILS(w, WEFT_EARG, "decay 2");
    cr_assert_eq(weft_optim_lr(o), (weft_real)1e-3);
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
    weft_loss l = weft_cross_entropy(h, y,
                                     &(weft_cross_entropy_opts){ .mask = weft_full(w, 1, WEFT_SHAPE(2)),
                                                                 .label_smoothing = (weft_real).1 });
    weft_loss m = weft_mse_loss(a->p[2], weft_zeros(w, WEFT_SHAPE(16)),
                                &(weft_loss_opts){ .mask = weft_full(w, 1, WEFT_SHAPE(16)) });
    return weft_add(weft_mean_loss(l), weft_mean_loss(m));
}

REF_TEST(optim_refused, step_does_not_wait_for_the_device, .init = unchecked)
{
    static weft__kernels far;
    far = weft__ref;
    far.synchronous = false;
    far.download = download;
    far.wait = wait;
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
}
