/* test_optim_finite.c - tests that an optimiser step writes finite numbers or nothing. A rate, a gradient or
 * a value that is too large skips the step and names the parameter. Mostly sizes alone prove that a step is
 * finite, so few steps are checked element by element. */
#include "optim_model.h"

#define HUGE_REAL ((weft_real)TOL(1.7e308, 3e38))

TABLE_TEST(finite, too_large_rate_changes_nothing)
{
    for (int rule = 0; rule < RULES; rule++) {
        model a = model_in(w);
        weft_optim *o = rule_new(a.m, rule, HUGE_REAL);
        weft_real *before = everything(&a);
        for (int t = 0; t < 10; t++) {
            OK(w);
            pull(&a, 2);
            weft_optim_step(o);
            cr_assert(t == 9 || weft_optim_skipped(o, NULL) == t + 1);
            cr_assert_str_eq(bad_parameter(o), "first");
            weft_clear(w);
        }
        weft_optim_skipped(o, NULL);               /* reads the counts of a GPU */
        FAILS(w, WEFT_ENUMERIC,
              "optim_step: gradients were finite, but values after the step not finite in 10 steps in a "
              "row, first in first; the rate is ");
        same_values("a parameter", &a, before);
        weft_optim_set_lr(o, (weft_real).01);
        pull(&a, 0);
        weft_optim_step(o);
        cr_assert(weft_ok(w) && weft_optim_skipped(o, NULL) == 10 && numbers(a.p[0])[0] != 0);
    }
}

/* Only one parameter would overflow. The others are not written either, at any position. Lion and Muon stay
 * finite with any gradient: a step is a sign, or has a fixed norm. */
TABLE_TEST(finite, one_too_large_value_skips_the_step)
{
    for (int rule = 0; rule < LION; rule++)
        for (int k = 0; k < PARTS; k++) {
            model a = model_in(w), b = model_in(w);
            weft_optim *o = rule_new(a.m, rule, (weft_real).01), *p = rule_new(b.m, rule, (weft_real).01);
            pull(&a, 0), weft_optim_step(o), pull(&b, 0), weft_optim_step(p);
            weft_real *before = everything(&a);
            pull(&a, 1);
            /* its square, or its sum with the decay, overflows */
            poison(&a, k, a.n[k] - 1, -(double)HUGE_REAL);
            weft_real was = numbers(a.p[k])[a.n[k] - 1];
            if (rule < 2)
                weft_optim_set_lr(o, (weft_real)1e3);
            weft_optim_step(o);
            cr_assert_eq(weft_optim_skipped(o, NULL), 1, "rule %d, parameter %d from %g", rule, k,
                         (double)was);
            cr_assert_str_eq(bad_parameter(o), part_name[k]);
            same_values("a parameter", &a, before);
            weft_optim_set_lr(o, (weft_real).01);
            for (int t = 2; t < 5; t++)
                pull(&a, t), weft_optim_step(o), pull(&b, t), weft_optim_step(p);
            same_values("a parameter", &a, everything(&b));  /* and no vector has stored it */
            weft_clear(w);
        }
}

/* A parameter that is already infinite does not skip the step: a bias of -INFINITY may exclude a class. */
TABLE_TEST(finite, existing_infinities_are_accepted)
{
    weft_module *m = weft_module_new(w, "m");
    weft_tensor *p = weft_parameter(m, "p", WEFT_SHAPE(3), (weft_init){ WEFT_INIT_CONSTANT, 1, 0 });
    weft_assign_values(p, (weft_real[]){ 1, -(weft_real)INFINITY, 2 }, 3);
    weft_optim *o = weft_adamw_new(m, NULL);
    for (int t = 0; t < 3; t++) {
        weft_assign_values(weft_grad(p), (weft_real[]){ 1, 0, -1 }, 3);
        weft_optim_step(o);
    }
    cr_assert(weft_optim_skipped(o, NULL) == 0 && numbers(p)[0] < 1 && !isfinite(numbers(p)[1]) &&
              numbers(p)[2] > 2);
}

/* ---- number of element-wise checks ---- */
static int looks;
static void rehearse(weft__device *d, int64_t n, const weft__foresight *first, const weft__update *u,
                     const weft__guard *past, bool moves, const weft_real *dx, const weft_real *m,
                     const weft_real *v, const weft_real *a, const weft_real *x, int64_t from,
                     weft__guard *g)
{
    weft__ref.rehearse(d, 0, first, u, past, moves, dx, m, v, a, x, from, g);      /* result of the bounds */
    looks += g->finite && !g->sure;
    weft__ref.rehearse(d, n, NULL, u, past, moves, dx, m, v, a, x, from, g);
}

Test(finite, few_steps_check_each_element)
{
    weft__kernels counting = weft__ref;
    counting.rehearse = rehearse;
    for (int rule = 0; rule < MUON; rule++) {      /* Muon always checks */
        weft *w = open_on(WEFT_REF);
        w->dev.k = &counting;
        model a = model_in(w);
        weft_optim *o = rule_new(a.m, rule, (weft_real).01);
        looks = 0;
        for (int t = 0; t < 400; t++) {
            pull(&a, t);
            if (t == 100)
                weft_assign_values(a.p[1], (weft_real[15]){ 1 }, 15);     /* then sizes are found out again */
            weft_optim_step(o);
            weft_clear(w);
        }
        cr_assert_eq(looks, 2, "rule %d: %d looks", rule, looks);
        /* a value this large can never be proved finite, so each step checks it */
        for (int t = 0; t < 4; t++) {
            pull(&a, t);
            weft_assign_values(a.p[3], (weft_real[]){ HUGE_REAL }, 1);
            weft_optim_step(o);
        }
        cr_assert_eq(looks, 6);
        CLEAN(w);
    }
}

/* A value that is assigned between steps, and would overflow, is seen though sizes were known before. */
TABLE_TEST(finite, assigned_values_are_checked)
{
    model a = model_in(w);
    weft_optim *o = weft_sgd_new(a.m, &(weft_sgd_opts){ .lr = 1 });
    for (int t = 0; t < 3; t++)
        pull(&a, t), weft_optim_step(o);
    weft_real large = (weft_real)TOL(1.7e308, 3.3e38);
    weft_assign_values(a.p[3], &large, 1);
    pull(&a, 0);
    poison(&a, 3, 0, -(double)large);
    weft_optim_step(o);
    cr_assert_eq(weft_optim_skipped(o, NULL), 1);
    cr_assert_str_eq(bad_parameter(o), "enc.bias");
    cr_assert_eq(numbers(a.p[3])[0], large);
}
