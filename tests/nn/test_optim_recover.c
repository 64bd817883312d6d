/* test_optim_recover.c - tests recovery after ten bad steps: saving, loading and further steps. Also tests
 * settings and gradients that would silently make parameters NaN. */
#include "optim_model.h"
#include "tests/io/files.h"

static void good_step(model *a, weft_optim *o, int t)
{
    pull(a, t);
    weft_optim_step(o);
    weft_clear(a->w);
}

static void bad_steps(model *a, weft_optim *o, int n)
{
    for (int t = 0; t < n; t++) {
        pull(a, t);
        poison(a, 1, 4, NAN);
        weft_optim_step(o);
        weft_clear(a->w);
    }
}

static void diverged(model *a, weft_optim *o)    /* diverged without a report so far, then recovered */
{
    bad_steps(a, o, 10);
    weft_optim_skipped(o, NULL);                       /* reads the counts of a GPU */
    FAILS(a->w, WEFT_ENUMERIC, "10 steps in a row, first in enc.weight");
}

/* ---- the context stays recovered ---- */
TABLE_TEST(recover, queries_do_not_fail_the_context_again)
{
    model a = model_in(w);
    weft_optim *o = weft_adam_new(a.m, NULL);
    diverged(&a, o);
    cr_assert_eq(weft_optim_skipped(o, NULL), 10);
    cr_assert_str_eq(bad_parameter(o), "enc.weight");
    OK(w);
    bad_steps(&a, o, 9);                     /* the count restarts */
    cr_assert_eq(weft_optim_skipped(o, NULL), 19);
    OK(w);
    bad_steps(&a, o, 1);
    weft_optim_skipped(o, NULL);
    FAILS(w, WEFT_ENUMERIC, "10 steps in a row");
    cr_assert_eq(weft_optim_steps(o), 20);
}

TABLE_TEST(recover, other_errors_keep_the_count_of_skipped_steps)
{
    model a = model_in(w);
    weft_optim *o = weft_sgd_new(a.m, NULL);
    bad_steps(&a, o, 9);
    weft_fail(w, WEFT_EARG, "on purpose");
    FAILS(w, WEFT_EARG, "on purpose");
    bad_steps(&a, o, 1);
    weft_optim_skipped(o, NULL);
    FAILS(w, WEFT_ENUMERIC, "10 steps in a row");
}

TABLE_TEST(recover, optimiser_may_end_before)
{
    model a = model_in(w);
    weft_optim *o = weft_sgd_new(a.m, NULL);
    bad_steps(&a, o, 10);
    weft_optim_skipped(o, NULL);
    weft_optim_free(o);
    FAILS(w, WEFT_ENUMERIC, "10 steps in a row");
    o = weft_sgd_new(a.m, NULL);
    good_step(&a, o, 0);
    cr_assert(weft_optim_steps(o) == 1 && weft_optim_skipped(o, NULL) == 0);
    OK(w);
}

/* A diverged run reloads its last file and continues like a run that started from it. */
TABLE_TEST(recover, diverged_run_continues_from_its_last_file)
{
    const char *path = in_folder("a.h5");
    model a = model_in(w), b = model_in(w);
    weft_optim *o = weft_adam_new(a.m, NULL), *p = weft_adam_new(b.m, NULL);
    for (int t = 0; t < 3; t++)
        good_step(&a, o, t);
    DOES(weft_save(path, a.m, o, NULL, 0));
    for (int t = 3; t < 40; t++)
        good_step(&a, o, t);
    diverged(&a, o);
    DOES(weft_load(path, a.m, o, NULL, 0));
    DOES(weft_load(path, b.m, p, NULL, 0));
    OK(w);
    cr_assert(weft_optim_steps(o) == 3 && weft_optim_skipped(o, NULL) == 0 && !*bad_parameter(o));
    for (int t = 3; t < 6; t++) {
        good_step(&a, o, t), good_step(&b, p, t);
        same_values("after going back", &a, everything(&b));
    }
    end_folder();
}

/* The file functions also read the counts of a GPU. They do not fail the context. A query of the counts
 * does. */
REF_TEST(recover, file_functions_read_the_counts_and_do_not_fail)
{
    static weft__kernels far;
    far = weft__ref;
    far.synchronous = false;
    const char *path = in_folder("a.h5");
    w->dev.k = &far;
    model a = model_in(w);
    weft_optim *o = weft_adam_new(a.m, NULL);
    bad_steps(&a, o, 12);
    DOES(weft_save(path, a.m, o, NULL, 0));
    OK(w);
    weft_optim_skipped(o, NULL);
    FAILS(w, WEFT_ENUMERIC, "12 steps in a row");
    bad_steps(&a, o, 3);
    DOES(weft_load(path, a.m, o, NULL, 0));
    cr_assert(weft_optim_skipped(o, NULL) == 12 && weft_ok(w), "the load must succeed: %s",
              weft_error_message(w));
    end_folder();
}

/* ---- numbers that poison ---- */
/* The mean of squares of equal gradients is the square of their mean, and by rounding less; where, depends
 * on alpha and the instructions. */
static void pulled_evenly(weft *w, double alpha)
{
    enum { N = 64, BLOCKS = 5 };
    weft_module *m = weft_module_new(w, "m");
    weft_tensor *p = weft_parameter(m, "p", WEFT_SHAPE(BLOCKS * N), (weft_init){ WEFT_INIT_CONSTANT, 1, 0 });
    weft_optim *o = weft_rmsprop_new(
        m, &(weft_rmsprop_opts){
               .lr = (weft_real)1e-3, .alpha = (weft_real)alpha, .eps = (weft_real)1e-8, .centered = true });
    weft_real g[BLOCKS * N];
    for (int i = 0; i < BLOCKS * N; i++)
        g[i] = (weft_real)((i % N + 1) * .013 * (i / N + 1));
    for (int t = 0; t < rounds(100, 3000); t++) {
        weft_assign_values(weft_grad(p), g, BLOCKS * N);
        weft_optim_step(o);
        weft_clear(w);
    }
    weft_real *x = numbers(p);
    for (int i = 0; i < BLOCKS * N; i++)
        cr_assert(isfinite(x[i]), "alpha %g: parameter %d is %g on %s", alpha, i, (double)x[i],
                  weft_device_name(w));
    cr_assert_eq(weft_optim_skipped(o, NULL), 0);
}

TABLE_TEST(recover, centred_rmsprop_handles_equal_gradients)
{
    for (int alpha = 1; alpha < 10; alpha++)
        pulled_evenly(w, alpha / 10.);
}

/* ---- averages in place of the parameters ---- */
TABLE_TEST(recover, averages_in_use_are_not_updated)
{
    model a = model_in(w), b = model_in(w);
    weft_ema *e = weft_ema_new(a.m, (weft_real).5);
    weft_assign(a.p[1], weft_full(w, 7, WEFT_SHAPE(3, 5)));
    weft_ema_swap(e);
    same_values("swapped", &a, everything(&b));
    weft_ema_update(e, 9);
    FAILS(w, WEFT_EARG,
          "ema_update: the averages are swapped with the parameters. Call weft_ema_swap first.");
    same_values("swapped", &a, everything(&b));
    weft_ema_swap(e);
    cr_assert(numbers(a.p[1])[14] == 7 &&
              numbers(weft_find_parameter(a.m, "ema.enc.weight"))[14] == numbers(b.p[1])[14]);
    weft_ema_update(e, 1);
    cr_assert_eq(numbers(weft_find_parameter(a.m, "ema.enc.weight"))[14], 7);
}

TABLE_TEST(recover, average_refuses_new_parameters)
{
    model a = model_in(w);
    weft_ema *e = weft_ema_new(a.m, .5);
    weft_ema_update(e, 1);
    weft_parameter(a.enc, "late", WEFT_SHAPE(2), (weft_init){ WEFT_INIT_CONSTANT, 3, 0 });
    weft_ema_update(e, 2);
    FAILS(w, WEFT_EARG, "ema_update: net has 5 parameters; expected 4, as at the start");
    weft_ema_swap(e);
    FAILS(w, WEFT_EARG, "ema_swap: net has 5 parameters");
}
