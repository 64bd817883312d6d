/* test_checkpoint_optim.c - tests that a checkpoint with valid checksums but an impossible optimiser state is
 * refused and changes nothing. */
#include "checkpoint.h"
#include "nn/optim.h"

enum { W = 5 };
typedef struct { weft *w; weft_module *m; weft_tensor *p; weft_optim *o; } trained;

static trained trained_by(int rule)
{
    trained t = { .w = open_on(WEFT_CPU) };
    t.m = weft_module_new(t.w, "m");
    t.p = weft_parameter(t.m, "p", WEFT_SHAPE(W), (weft_init){ WEFT_INIT_CONSTANT, 1, 0 });
    const weft_sgd_opts sgd = { .lr = .125, .momentum = .5 };
    const weft_rmsprop_opts rmsprop = { .lr = .125, .momentum = .5, .centered = true };
    const weft_adam_opts adam = { .lr = .125 };
    t.o = rule == 0 ? weft_sgd_new(t.m, &sgd) :
          rule == 1 ? weft_rmsprop_new(t.m, &rmsprop) :
                      weft_adam_new(t.m, &adam);
    for (int i = 0; i < 3; i++, weft_clear(t.w)) {
        weft_backward(weft_sum_all(weft_square(t.p)));
        weft_optim_step(t.o);
    }
    OK(t.w);
    return t;
}

/* ---- values that are invalid before the save ---- */
typedef void damage(weft_optim *o);
static void lr_nan(weft_optim *o) { o->update.lr = (weft_real)NAN; }
static void lr_infinite(weft_optim *o) { o->update.lr = (weft_real)INFINITY; }
static void lr_negative(weft_optim *o) { o->update.lr = -1; }
static void steps_negative(weft_optim *o)   { o->steps = -1; }
static void steps_at_the_end(weft_optim *o) { o->steps = INT64_MAX; }
static void applied(weft_optim *o)          { o->guard->applied = INT64_MAX; }
static void skipped(weft_optim *o)          { o->guard->skipped = -5; }
static void in_a_row(weft_optim *o)         { o->guard->in_a_row = INT64_MIN; }
static void place(weft_optim *o)            { o->guard->bad = -2; }
static void far_place(weft_optim *o)        { o->guard->bad = 1000; }
static void age(weft_optim *o) { o->counters[0].applied = INT64_MAX; }
static void young(weft_optim *o) { o->counters[0].applied = -1; }
static void m_nan(weft_optim *o)            { o->m[1] = (weft_real)NAN; }
static void v_negative(weft_optim *o)       { o->v[W - 1] = -1; }
static void v_infinite(weft_optim *o)       { o->v[0] = (weft_real)INFINITY; }
static void a_nan(weft_optim *o)            { o->a[2] = (weft_real)NAN; }

static const struct { damage *by; int rule; const char *what; } cases[] = {
    { lr_nan, 0, "optimizer/lr: number 0 is nan" },
    { lr_infinite, 2, "optimizer/lr: number 0 is inf" },
    { lr_negative, 0, "optimizer/lr: number 0 is -1; expected a finite number, 0 or more" },
    { steps_negative, 0, "optimizer/steps: number 0 is -1; expected 0 .. 9007199254740992" },
    { steps_at_the_end, 2, "optimizer/steps: number 0 is 9223372036854775807" },
    { applied, 0, "optimizer/guard: number 0 is 9223372036854775807" },
    { skipped, 0, "optimizer/guard: number 1 is -5" },
    { in_a_row, 0, "optimizer/guard: number 2 is -9223372036854775808" },
    { place, 0, "optimizer/guard: number 3 is -2; expected -1 .. 5" },
    { far_place, 0, "optimizer/guard: number 3 is 1000" },
    { age, 2, "optimizer/ages: number 0 is 9223372036854775807" },
    { young, 1, "optimizer/ages: number 0 is -1" },
    { m_nan, 0, "optimizer/m: number 1 is nan" },
    { v_negative, 2, "optimizer/v: number 4 is -1" },
    { v_negative, 1, "optimizer/v: number 4 is -1" },
    { v_infinite, 2, "optimizer/v: number 0 is inf" },
    { a_nan, 1, "optimizer/a: number 2 is nan" },
};

static void refused_as(int i)
{
    trained bad = trained_by(cases[i].rule), good = trained_by(cases[i].rule);
    const char *path = in_folder("impossible.h5");
    weft_real before[W];
    cases[i].by(bad.o);
    weft_assign_values(bad.p, (weft_real[W]){ 7, 7, 7, 7, 7 }, W);
    DOES(weft_save(path, bad.m, bad.o, NULL, 0));
    memcpy(before, numbers(good.p), sizeof before);
    REFUSES(weft_load(path, good.m, good.o, NULL, 0), WEFT_EFORMAT, cases[i].what);
    same_bits("parameter", numbers(good.p), before, W);
    cr_assert(weft_optim_steps(good.o) == 3 && weft_optim_lr(good.o) == .125);
    DOES(weft_load(path, good.m, NULL, NULL, 0));
    CLEAN(bad.w);
    CLEAN(good.w);
}

Test(checkpoint_optim, impossible_numbers_are_refused, .init = unchecked)
{
    for (int i = 0; i < COUNT(cases); i++)
        refused_as(i);
}

Test(checkpoint_optim, possible_numbers_are_read)
{
    for (int rule = 0; rule < 3; rule++) {
        trained a = trained_by(rule), b = trained_by(rule);
        const char *path = in_folder("possible.h5");
        a.o->steps = a.o->guard->applied = a.o->counters[0].applied = (int64_t)1 << 53;
        a.o->guard->bad = W - 1;
        a.o->update.lr = 0;
        DOES(weft_save(path, a.m, a.o, NULL, 0));
        DOES(weft_load(path, b.m, b.o, NULL, 0));
        weft_backward(weft_sum_all(weft_square(b.p)));
        weft_optim_step(b.o);
        cr_assert_eq(weft_optim_steps(b.o), ((int64_t)1 << 53) + 1);
        CLEAN(a.w);
        CLEAN(b.w);
    }
}
