/* test_optim.c - tests optimisers of several parameters: frozen ones, parts of a model, non-finite gradients,
 * resuming. tests/golden/layers.json compares the rules with PyTorch. */
#include "autograd/tape.h"
#include "optim_model.h"

/* Any parameter may be frozen in any step. Each counts its own steps, without skipped ones. */
static void freeze(const model *a, int t)
{
    for (int k = 0; k < PARTS; k++)
        weft_freeze(a->m, part_name[k], t == 0 ? k > 1 : t == 1 ? k > 0 : (7 * t + 3 * k) % 5 < 2);
}

/* A parameter moves as one that has an optimiser of its own, which steps when this one is not frozen and all
 * gradients are finite. */
TABLE_TEST(optim, each_parameter_counts_its_own_steps)
{
    for (int r = 0; r < RULES; r++) {
        model a = model_in(w), alone[PARTS];
        weft_optim *o = rule_new(a.m, r, .05), *of[PARTS];
        for (int k = 0; k < PARTS; k++) {
            alone[k] = model_in(w);
            of[k] = rule_new(alone[k].m, r, .05);
            weft_freeze(alone[k].m, "*", true), weft_freeze(alone[k].m, part_name[k], false);
        }
        for (int t = 0; t < 3 * STEPS; t++) {
            freeze(&a, t);
            pull(&a, t);
            for (int k = 0; k < PARTS; k++) {
                bool frozen = weft__node_of(a.p[k])->frozen;
                if (t % 4 == 3 && !frozen)
                    poison(&a, k, 0, NAN);
                if (t % 4 != 3 && !frozen)
                    pull(&alone[k], t), weft_optim_step(of[k]);
            }
            weft_optim_step(o);
            weft_clear(w);
        }
        OK(w);
        for (int k = 0; k < PARTS; k++)
            same_bits(part_name[k], numbers(a.p[k]), numbers(alone[k].p[k]), a.n[k]);
    }
}

/* An optimiser of a part changes only this part, including gradients. A parameter without a gradient stays
 * the same, although the vectors moved. */
Test(optim, steps_only_its_own_parameters)
{
    weft *w = open_on(WEFT_REF);
    model a = model_in(w), whole = model_in(w);
    weft_tie(a.enc, "again", a.p[1]);
    weft_optim *o = rule_new(a.enc, ADAM_L2, .01), *of_all = rule_new(whole.m, ADAM_L2, .01);
    weft_tensor *late =
        weft_parameter(a.enc, "late", WEFT_SHAPE(2000), (weft_init){ WEFT_INIT_CONSTANT, 1, 0 });
    model before = model_in(w);
    pull(&a, 0), pull(&whole, 0), pull(&before, 0);
    weft_optim_step(o), weft_optim_step(of_all);
    for (int k = 0; k < PARTS; k++) {
        const model *like = k % 2 ? &whole : &before;
        same_bits("value", numbers(a.p[k]), numbers(like->p[k]), a.n[k]);
        same_bits("gradient", numbers(weft_grad(a.p[k])), numbers(weft_grad(like->p[k])), a.n[k]);
    }
    cr_assert_eq(numbers(late)[1999], 1);
    pull(&a, 1);
    poison(&a, 3, 0, NAN);
    poison(&a, 0, 0, NAN);                       /* the step does not check */
    weft_optim_step(o);
    cr_assert_str_eq(bad_parameter(o), "bias");
    CLEAN(w);
}

Test(optim, frozen_parameters_are_kept_and_empty_modules_refused)
{
    weft *w = open_on(WEFT_REF);
    model a = model_in(w);
    weft_optim *empty = weft_adam_new(weft_module_new(w, "empty"), NULL), *o = weft_sgd_new(a.m, NULL);
    weft_real *before = numbers(a.p[2]);
    weft_freeze(a.m, "*", true);
    weft_optim_step(o);
    cr_assert(weft_optim_steps(o) == 1 && weft_optim_skipped(o, NULL) == 0);
    same_bits("frozen", numbers(a.p[2]), before, 16);
    weft_optim_step(empty);
    FAILS(w, WEFT_EARG, "optim_step: the adam of empty has no parameters; expected a parameter");
    cr_assert_eq(weft_optim_steps(empty), 0);
    CLEAN(w);
}

/* ---- gradients that are not finite ---- */
/* A skipped step changes only its count. The run equals one without it, bit for bit. */
TABLE_TEST(optim, non_finite_gradients_skip_the_step)
{
    for (int r = 0; r < RULES; r++) {
        model a = model_in(w), b = model_in(w);
        weft_optim *o = rule_new(a.m, r, .05), *p = rule_new(b.m, r, .05);
        weft_optim_set_group(o, "enc.*", 2, 0);    /* four runs */
        weft_optim_set_group(p, "enc.*", 2, 0);
        for (int t = 0; t < STEPS; t++) {
            pull(&a, t);
            poison(&a, t % PARTS, a.n[t % PARTS] - 1, t % 2 ? INFINITY : NAN);
            weft_optim_step(o);
            cr_assert_str_eq(bad_parameter(o),
                             ((const char *[]){ "first", "enc.weight", "last", "enc.bias" })[t % PARTS]);
            cr_assert_eq(numbers(weft_grad(a.p[0]))[0], 0);
            pull(&a, t), weft_optim_step(o);
            pull(&b, t), weft_optim_step(p);
            same_values("after a skipped step", &a, everything(&b));
            weft_clear(w);
        }
        cr_assert(weft_optim_steps(o) == 2 * STEPS && weft_optim_skipped(o, NULL) == STEPS &&
                  weft_optim_skipped(p, NULL) == 0);
    }
}

TABLE_TEST(optim, ten_skipped_steps_in_a_row_are_an_error)
{
    model a = model_in(w);
    weft_optim *o = weft_adamw_new(a.m, NULL);
    for (int t = 0; t < 20; t++) {           /* nine bad ones and a good one, twice */
        pull(&a, t);
        if (t % 10 != 9)
            poison(&a, 3, 0, NAN);
        weft_optim_step(o);
    }
    OK(w);
    weft_real *before = everything(&a);
    for (int t = 0; t < 10; t++) {
        OK(w);
        pull(&a, t);
        poison(&a, 1, 4, INFINITY);
        weft_optim_step(o);
    }
    cr_assert_eq(weft_optim_steps(o), 30);
    weft_optim_skipped(o, NULL);  /* a GPU is read here, or reports at the next synchronisation */
    weft_optim_step(o);
    cr_assert_eq(weft_optim_steps(o), 30, "a failed step was counted");
    cr_assert_str_eq(bad_parameter(o), "enc.weight");
    FAILS(w, WEFT_ENUMERIC, "10 steps in a row, first in enc.weight");
    same_values("after ten bad steps", &a, before);
    pull(&a, 0);
    weft_optim_step(o);
    OK(w);
}

Test(optim, failed_step_changes_nothing)
{
    weft *w = open_on(WEFT_REF);
    model a = model_in(w);
    weft_optim *o = weft_adamw_new(a.m, NULL);
    weft_ema *e = weft_ema_new(a.m, (weft_real).5);
    weft_real *before = numbers(a.p[2]), *mean = numbers(weft_find_parameter(a.m, "ema.last"));
    pull(&a, 0);
    uint64_t version = a.w->tape->version;
    weft_fail(w, WEFT_EARG, "on purpose");
    weft_optim_step(o);
    weft_ema_update(e, 1);
    weft_ema_swap(e);
    weft_clip_grad_norm(a.m, 1, 0);
    cr_assert(weft_optim_steps(o) == 0 && a.w->tape->version == version);
    FAILS(w, WEFT_EARG, "on purpose");
    same_bits("values", numbers(a.p[2]), before, 16);
    same_bits("average", numbers(weft_find_parameter(a.m, "ema.last")), mean, 16);
    CLEAN(w);
}

/* ---- resuming ---- */
static void carry_over(weft *from, weft_optim *o, weft *to, weft_optim *p)
{
    weft__saved a[8], b[8];
    int n = weft__optim_entries(o, a, 8);
    cr_assert_eq(n, weft__optim_entries(p, b, 8));
    for (int i = 0; i < n; i++) {
        size_t bytes = (size_t)a[i].n * (a[i].type == WEFT_I64 ? sizeof(int64_t) : sizeof(weft_real));
        void *held = malloc(bytes);
        cr_assert(held && !strcmp(a[i].name, b[i].name) && a[i].n == b[i].n && a[i].type == b[i].type &&
                  a[i].device == b[i].device);
        if (a[i].device) {
            from->dev.k->download(&from->dev, held, a[i].data, bytes);
            to->dev.k->upload(&to->dev, b[i].data, held, bytes);
        } else
            memcpy(b[i].data, a[i].data, bytes);
        free(held);
    }
    weft__optim_after_load(p);
}

Test(optim, resumed_run_matches)
{
    FOR_DEVICES(w)
        for (int r = 0; r < RULES; r++) {
            weft *v = open_table(check_i);
            model a = model_in(w), b = model_in(v);
            weft_optim *o = rule_new(a.m, r, .05), *p = rule_new(b.m, r, .05);
            for (int t = 0; t < 3; t++) {
                freeze(&a, t);
                pull(&a, t);
                if (t == 1)
                    poison(&a, 0, 2, NAN);
                weft_optim_step(o);
            }
            weft_optim_set_lr(o, (weft_real).03);
            carry_over(w, o, v, p);
            for (int k = 0; k < PARTS; k++)
                weft_assign_values(b.p[k], numbers(a.p[k]), a.n[k]);
            cr_assert(weft_optim_steps(p) == 3 && weft_optim_skipped(p, NULL) == 1 &&
                      weft_optim_lr(p) == (weft_real).03);
            cr_assert_str_eq(bad_parameter(p), "first");
            for (int t = 3; t < 9; t++) {
                freeze(&a, t), freeze(&b, t);
                pull(&a, t), weft_optim_step(o);
                pull(&b, t), weft_optim_step(p);
            }
            same_values("resumed", &b, everything(&a));
            CLEAN(v);
        }
}
