/* test_clip.c - tests clipping, moving averages and schedules against plain loops in double and values of
 * torch.optim.lr_scheduler. */
#include "optim_model.h"

/* ---- clipping ---- */
static double norm_of(const model *a, double power, int frozen, int step)
{
    double s = 0;
    for (int k = 0; k < PARTS; k++)
        for (int64_t i = 0; i < a->n[k] && k != frozen; i++) {
            double v = fabs((double)(weft_real)slope(k, i, step));
            s = power == 2 ? s + v * v : power == 1 ? s + v : fmax(s, v);
        }
    return power == 2 ? sqrt(s) : s;
}

TABLE_TEST(clip, norms_match_plain_loops)
{
    for (int c = 0; c < 12; c++) {
        double power = ((double[]){ 1, 2, (double)INFINITY })[c % 3], max = c / 3 % 2 ? .75 : 1e4;
        int frozen = c < 6 ? -1 : 2;
        model a = model_in(w);
        if (frozen >= 0)
            weft_freeze(a.m, part_name[frozen], true);
        pull(&a, 2);
        double norm = norm_of(&a, power, frozen, 2), factor = fmin(1, max / (norm + 1e-6));
        weft_tensor *before = weft_clip_grad_norm(a.m, max, c > 8 && power == 2 ? 0 : power);
        cr_assert(weft_rank(before) == 0);
        close_to("norm", ((weft_real[]){ weft_item(before) }), ((weft_real[]){ (weft_real)norm }), 1,
                 TOL(1e-12, 1e-6));
        for (int k = 0; k < PARTS; k++)
            for (int64_t i = 0; i < a.n[k]; i++) {
                double got = (double)numbers(weft_grad(a.p[k]))[i], g = slope(k, i, 2);
                cr_assert_float_eq(got, k == frozen ? g : g * factor, TOL(1e-12, 1e-5), "part %d, %lld",
                                   k, (long long)i);
            }
        weft_clear(w);
    }
}

REF_TEST(clip, part_of_a_model_can_be_clipped)
{
    model a = model_in(w);
    double sum = 0;
    pull(&a, 0);
    for (int k = 1; k < PARTS; k += 2)
        for (int64_t i = 0; i < a.n[k]; i++)
            sum += slope(k, i, 0) * slope(k, i, 0);
    cr_assert_float_eq((double)weft_item(weft_clip_grad_norm(a.enc, (weft_real).5, 0)), sqrt(sum), 1e-5);
    cr_assert_float_eq((double)numbers(weft_grad(a.p[0]))[1], slope(0, 1, 0), 1e-6);
    cr_assert_float_eq((double)numbers(weft_grad(a.p[3]))[0], slope(3, 0, 0) * .5 / sqrt(sum), 1e-5);
    weft_module *none = weft_module_new(w, "none");
    cr_assert_eq(weft_item(weft_clip_grad_norm(none, 1, 0)), 0);
}

/* Clipping a gradient that is not finite neither hides it nor spreads it: the step is skipped and names
 * the right parameter. */
TABLE_TEST(clip, non_finite_gradients_are_handled)
{
    for (int c = 0; c < 6; c++) {
        model a = model_in(w);
        weft_optim *o = weft_adam_new(a.m, NULL);
        weft_real *before = numbers(a.p[0]);
        pull(&a, 0);
        poison(&a, 2, 9, c < 3 ? NAN : INFINITY);
        weft_tensor *norm = weft_clip_grad_norm(a.m, 1, ((weft_real[]){ 1, 2, (weft_real)INFINITY })[c % 3]);
        cr_assert(!isfinite(weft_item(norm)));
        weft_optim_step(o);
        cr_assert_str_eq(bad_parameter(o), "last");
        same_bits("values", numbers(a.p[0]), before, a.n[0]);
        weft_clear(w);
    }
}

TABLE_TEST(average, matches_the_formula)
{
    model a = model_in(w);
    weft_optim *o = weft_sgd_new(a.m, &(weft_sgd_opts){ .lr = (weft_real).1 });
    weft_ema *e = weft_ema_new(a.m, (weft_real).5);
    double mean[MOST];
    for (int i = 0; i < 15; i++)
        mean[i] = (double)numbers(a.p[1])[i];
    for (int t = 0; t < STEPS; t++) {
        pull(&a, t);
        weft_optim_step(o);
        weft_ema_update(e, t + 1);
        for (int i = 0; i < 15; i++)
            mean[i] += (t < 2 ? 1 : .5) * ((double)numbers(a.p[1])[i] - mean[i]);
        weft_clear(w);
    }
    weft_tensor *held = weft_find_parameter(a.m, "ema.enc.weight");
    cr_assert(held && weft_rank(held) == 2 && weft_buffer_count(a.m) == PARTS);
    for (int i = 0; i < 15; i++)
        cr_assert_float_eq((double)numbers(held)[i], mean[i], TOL(1e-12, 1e-5));
    weft_ema_new(a.m, 0);
    FAILS(w, WEFT_EARG, "\"ema\" already");
}

/* ---- schedules; the numbers are those of torch.optim.lr_scheduler 2.x ---- */
static void holds(const char *name, const double *want, int n, double (*f)(int64_t))
{
    for (int i = 0; i < n; i++)
        cr_assert_float_eq(f(i), want[i], 1e-14, "%s(%d) is %.17g, expected %.17g", name, i, f(i), want[i]);
}

static double (*const cycle)(int64_t, int64_t, double, double, double, double) = weft_one_cycle_schedule;
static double cosine(int64_t step) { return weft_cosine_schedule(step, 8, 1, 0, .1); }
static double halves(int64_t step) { return weft_step_schedule(step, 3, 1, .5); }
/* Formulas of transformers' schedules, with warm-up counted from 1 as in the cosine schedule. */
static double linear(int64_t step) { return weft_linear_schedule(step, 8, 1, 3, 0); }
static double stable(int64_t step)
{
    return weft_warmup_stable_decay_schedule(step, 10, 1, 2, 4, .2);
}
static double inverse(int64_t step) { return weft_inverse_sqrt_schedule(step, 1, 4); }
static double cycle20(int64_t step) { return cycle(step, 20, .5, .3, 25, 1e4); }
static double cycle10(int64_t step) { return cycle(step, 10, .5, .25, 10, 100); }
static double cycle7(int64_t step) { return cycle(step, 7, .5, .5, 4, 2); }

Test(schedule, rates_match_the_formula)
{
    static const double annealed[] = {
        1, 0.9657457896300791, 0.8681980515339464, 0.7222075445642905, 0.55, 0.3777924554357097,
        0.2318019484660537, 0.134254210369921, 0.1, .1, .1,
    };
    static const double decayed[] = { 1, 1, 1, .5, .5, .5, .25, .25 };
    static const double of20[] = {
        0.020000000000000018, 0.06583592135001265, 0.18583592135001265, 0.3341640786499874,
        0.45416407864998737, 0.5, 0.49373200311754367, 0.47524231600673683, 0.445458088785525,
        0.40587282697488153, 0.3584715008956504, 0.30563101096814466, 0.250001, 0.19437098903185537,
        0.14153049910434962, 0.09412917302511849, 0.05454391121447502, 0.024759683993263143,
        0.006269996882456277, 2e-06, 2e-6,
    };
    static const double of10[] = {
        0.05, 0.3875, 0.49454236328326795, 0.4523019943451431, 0.375125, 0.2763559837010965,
        0.1730730056548569, 0.08313463106187524, 0.022092021953760407, 0.0005,
    };
    static const double of7[] = {
        0.125, 0.25455931355469735, 0.46419068644530265, 0.47833693985365416, 0.32992645430294376,
        0.14486160584340205, 0.0625,
    };
    holds("warmup_cosine", annealed, COUNT(annealed), cosine);
    holds("step_decay", decayed, COUNT(decayed), halves);
    static const double to_zero[] = { 1. / 3, 2. / 3, 1, 1, .8, .6, .4, .2, 0, 0 };
    static const double held[] = { .5, 1, 1, 1, 1, 1, 1, .8, .6, .4, .2, .2 };
    static const double of_4[] = {
        0.25, 0.5, 0.75, 1.0, 0.8944271909999159, 0.8164965809277261, 0.7559289460184544, 0.7071067811865476,
    };
    holds("linear", to_zero, COUNT(to_zero), linear);
    holds("warmup_stable_decay", held, COUNT(held), stable);
    holds("inverse_sqrt", of_4, COUNT(of_4), inverse);
    holds("one_cycle", of20, COUNT(of20), cycle20);
    holds("one_cycle", of10, COUNT(of10), cycle10);
    holds("one_cycle", of7, COUNT(of7), cycle7);
    for (int t = 0; t < 3; t++)
        cr_assert(isfinite(cycle(t, 2, 1, .5, 2, 2)) && isfinite(cycle(t, 1, 1, .5, 2, 2)));
}

/* The first step, the last one, and steps beyond it. */
Test(schedule, edges_match_worked_examples)
{
    struct { double got, want; } at[] = {
        { weft_cosine_schedule(0, 5, 1, 0, .1), 1 },  { weft_cosine_schedule(0, 5, 1, 5, .1), .2 },
        { weft_cosine_schedule(4, 5, 1, 5, .1), 1 },  { weft_cosine_schedule(5, 5, 1, 5, .1), .1 },
        { weft_cosine_schedule(5, 5, 1, 0, .1), .1 }, { weft_cosine_schedule(INT64_MAX, 5, 1, 0, .1), .1 },
        { weft_cosine_schedule(0, 1, 1, 1, .1), 1 },  { weft_cosine_schedule(1, 1, 1, 1, .1), .1 },
        { weft_cosine_schedule(1, 4, 1e308, 4, 0), 5e307 }, { weft_cosine_schedule(8, 12, .8, 4, .1), .45 },
        { weft_linear_schedule(5, 5, 1, 5, .1), .1 }, { weft_linear_schedule(4, 5, 1, 5, .1), 1 },
        { weft_linear_schedule(INT64_MAX, 5, 1, 0, .1), .1 }, { weft_linear_schedule(0, 5, 1, 0, .1), 1 },
        { weft_warmup_stable_decay_schedule(4, 5, 1, 0, 0, .1), 1 },
        { weft_warmup_stable_decay_schedule(5, 5, 1, 0, 0, .1), .1 },
        { weft_inverse_sqrt_schedule(0, 2, 1), 2 },   { weft_inverse_sqrt_schedule(399, 2, 4), .2 },
        { weft_step_schedule(0, 3, 1, .5), 1 },        { weft_step_schedule(2, 3, 1, .5), 1 },
        { weft_step_schedule(3, 3, 1, .5), .5 },       { weft_step_schedule(INT64_MAX, 1, 1, .5), 0 },
        { cycle(0, 10, 1, .5, 2, 4), .5 },   { cycle(4, 10, 1, .5, 2, 4), 1 },
        { cycle(9, 10, 1, .5, 2, 4), .125 }, { cycle(10, 10, 1, .5, 2, 4), .125 },
        { cycle(9, 10, 1, 1, 2, 4), 1 },     { cycle(10, 10, 1, 1, 2, 4), .125 },
        { cycle(0, 1, 1, .5, 2, 4), .125 },  { cycle(INT64_MAX, 9, 1, .5, 2, 4), .125 },
    };
    for (int i = 0; i < COUNT(at); i++)
        cr_assert(fabs(at[i].got - at[i].want) <= 1e-12 * at[i].want, "case %d: %g, want %g", i, at[i].got,
                  at[i].want);
    cr_assert(isnan(weft_cosine_schedule(0, 2, 1, 3, 0)) && isnan(weft_cosine_schedule(3, 2, 1, 8, 0)));
    cr_assert(isnan(weft_cosine_schedule(0, INT64_MAX - 1, 1, INT64_MAX, 0)));
    cr_assert(isnan(weft_step_schedule(2000, 1, 1, 2)) && isnan(cycle(0, 5, 1, .5, 1e-320, 1)));
}

static bool fits(int64_t step, int64_t total, double lr)
{
    return step >= 0 && total > 0 && lr >= 0 && lr < 9;
}

CPU_TEST(schedule, invalid_arguments_give_nan)
{
    const int64_t odd[] = { INT64_MIN, -1, 0, 3, INT64_MAX };
    const double rates[] = { 1, 0, -1, NAN, INFINITY };
    for (int i = 0; i < 125; i++) {
        int64_t step = odd[i % 5], total = odd[i / 5 % 5];
        double lr = rates[i / 25],
               got[] = { weft_cosine_schedule(step, total, lr, 0, 0), weft_step_schedule(step, total, lr, .5),
                         weft_one_cycle_schedule(step, total, lr, .3, 25, 1e4),
                         weft_linear_schedule(step, total, lr, 0, 0),
                         weft_inverse_sqrt_schedule(step, lr, total),
                         weft_warmup_stable_decay_schedule(step, total, lr, 1, 0, 0) };
        for (int k = 0; k < 6; k++)
            cr_assert(fits(step, total, lr) ? got[k] >= 0 && got[k] <= lr : isnan(got[k]),
                      "schedule %d, step %lld of %lld, rate %g: %g", k, (long long)step, (long long)total, lr,
                      got[k]);
    }
    cr_assert(isnan(weft_cosine_schedule(1, 8, 1, -1, 0)) && isnan(weft_cosine_schedule(1, 8, 1, 2, -1)) &&
              isnan(weft_cosine_schedule(1, 8, 1, 2, NAN)));
    const int64_t spans[][2] = { { -1, 2 }, { 9, 0 }, { 2, -1 }, { 2, 7 }, { INT64_MAX, INT64_MAX } };
    for (int i = 0; i < COUNT(spans); i++)
        cr_assert(isnan(weft_warmup_stable_decay_schedule(1, 8, 1, spans[i][0], spans[i][1], 0)), "%d", i);
    cr_assert(isnan(weft_linear_schedule(1, 8, 1, -1, 0)) && isnan(weft_linear_schedule(1, 8, 1, 9, 0)) &&
              isnan(weft_linear_schedule(1, 8, 1, 2, NAN)));
    cr_assert(isnan(weft_step_schedule(1, 8, 1, -1)) && isnan(weft_step_schedule(1, 8, 1, INFINITY)));
    const double bad[][3] = { { -.1, 2, 2 }, { 1.1, 2, 2 }, { NAN, 2, 2 },  { .3, 0, 2 },
                              { .3, 2, 0 },  { .3, -1, 2 }, { .3, 2, NAN }, { .3, INFINITY, 2 } };
    for (int i = 0; i < COUNT(bad); i++)
        cr_assert(isnan(weft_one_cycle_schedule(1, 8, 1, bad[i][0], bad[i][1], bad[i][2])), "%d", i);
    weft_optim *o = weft_sgd_new(model_in(w).m, NULL);
    weft_optim_set_lr(o, weft_cosine_schedule(0, 0, 4e-3, 0, 0));
    FAILS(w, WEFT_EARG, "optim_set_lr: nan");
}

Test(schedule, plateau_lowers_the_rate)
{
    static const double values[] = { 3,  2,  2,  1.99995, 2.5, NAN, 1,  1,  1, 1,
                                     .5, .6, .6, .6,      .6,  .6,  .6, .6, .6 };
    static const double smaller[] = { .1,   .1,   .1,   .1,  .05, .05, .05, .05, .05, .025,
                                      .025, .025, .025, .02, .02, .02, .02, .02, .02 };
    static const double larger[] = { .1,  .1,  .1,  .05, .05, .05, .025, .025, .025, .02,
                                     .02, .02, .02, .02, .02, .02, .02,  .02,  .02 };
    weft_plateau a = { .lr = .1, .factor = .5, .least = .02, .patience = 2 }, b = a;
    b.larger_is_better = true;
    for (int i = 0; i < COUNT(values); i++) {
        double down = weft_plateau_step(&a, values[i]), up = weft_plateau_step(&b, values[i]);
        cr_assert(fabs(down - smaller[i]) < 1e-15 && fabs(up - larger[i]) < 1e-15, "value %d: %g and %g", i,
                  down, up);
    }
    cr_assert_eq(a.seen, COUNT(values));
}

/* A value must improve by a fraction of the best one's size, also if values are negative. */
Test(schedule, plateau_handles_negative_values)
{
    struct { double from, step; bool larger; bool lowers; } of[] = {
        { 2, 0, false, true },      { -2, 0, false, true },     { -2, 1e-5, false, true },
        { -2, -1e-3, false, false }, { -2, -1e-5, false, true }, { -2, 0, true, true },
        { -2, 1e-3, true, false },  { -2, 1e-5, true, true },   { -2, -1e-3, true, true },
        { 2, 1e-3, true, false },   { 2, 1e-5, true, true },    { 0, 0, false, true },
        { 0, 0, true, true },       { .5, -.1, false, false },  { -.5, .1, true, false },
        { -INFINITY, 0, false, true }, { INFINITY, 0, true, true }, { NAN, 0, false, true },
    };
    for (int i = 0; i < COUNT(of); i++) {
        weft_plateau p = { .lr = 1, .factor = .5, .patience = 2, .larger_is_better = of[i].larger };
        for (int k = 0; k < 12; k++)
            weft_plateau_step(&p, of[i].from + of[i].step * k);
        /* 1e-5 a step adds up to more than the threshold, 2e-4, only after 20 steps */
        cr_assert(of[i].lowers ? p.lr == .125 || (isnan(of[i].from) && p.lr == .0625) : p.lr == 1,
                  "case %d: %g, best %g", i, p.lr, p.best);
    }
    weft_plateau worse = { .lr = 1, .patience = 20 };
    for (int k = 0; k < 12; k++)
        weft_plateau_step(&worse, -2 + 1e-3 * k);
    cr_assert(worse.best == -2 && worse.bad == 11);
}

Test(schedule, damaged_states_are_handled)
{
    weft_plateau p = { .lr = 1, .factor = .5, .best = 1, .bad = INT64_MAX, .seen = INT64_MAX };
    cr_assert(weft_plateau_step(&p, 2) == .5 && p.bad == 0 && p.seen == INT64_MAX);
    p.bad = INT64_MIN;
    p.seen = INT64_MIN;
    p.patience = INT64_MAX;
    cr_assert_eq(weft_plateau_step(&p, 2), .5);
    p.bad = INT64_MAX;
    cr_assert(weft_plateau_step(&p, 2) == .5 && p.bad == INT64_MAX);
    weft_early_stopping s = { .patience = 3, .best = 1, .bad = INT64_MAX, .seen = INT64_MAX };
    cr_assert(weft_early_stopping_step(&s, 2, NULL) && s.bad == INT64_MAX);
    p = (weft_plateau){ .lr = 1, .best = NAN, .seen = 5 };
    cr_assert(weft_plateau_step(&p, 2) == 1 && p.best == 2);
    const double factors[] = { 1, 2, -1, NAN, INFINITY };
    for (int i = 0; i < COUNT(factors); i++)
        cr_assert(isnan(weft_plateau_step(&(weft_plateau){ .lr = 1, .factor = factors[i] }, 1)));
    cr_assert(isnan(weft_plateau_step(&(weft_plateau){ .lr = 1, .least = -1 }, 1)));
    cr_assert(isnan(weft_plateau_step(&(weft_plateau){ .lr = 1, .least = NAN }, 1)));
}

Test(schedule, early_stopping_counts_its_patience)
{
    static const double values[] = { NAN, 5, 4, 3.95, 4.1, 3, 3, NAN, 3 };
    static const bool best[] = { false, true, true, false, false, true, false, false, false };
    weft_early_stopping s = { .patience = 2, .min_delta = .1 },
                        up = { .patience = 1, .larger_is_better = true };
    for (int i = 0; i < COUNT(values); i++) {
        bool is_best = !best[i];
        cr_assert_eq(weft_early_stopping_step(&s, values[i], &is_best), i == 8, "value %d", i);
        cr_assert_eq(is_best, best[i], "value %d", i);
    }
    cr_assert_eq(s.best, 3);
    cr_assert(!weft_early_stopping_step(&up, 1, NULL) && !weft_early_stopping_step(&up, 0, NULL) &&
              !weft_early_stopping_step(&up, 2, NULL));
    cr_assert(!weft_early_stopping_step(&up, 2, NULL) && weft_early_stopping_step(&up, 1, NULL));
    weft_early_stopping hasty = { 0 };
    cr_assert(!weft_early_stopping_step(&hasty, 1, NULL) && !weft_early_stopping_step(&hasty, 0, NULL) &&
              weft_early_stopping_step(&hasty, 0, NULL));
}

