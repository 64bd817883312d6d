/* test_optim.c - optimisers against the rules of torch.optim in plain loops of double; groups, frozen and
 * tied parameters, steps whose gradients are not finite, resuming. */
#include "autograd/tape.h"
#include "optim_model.h"

/* ---- the rules, a parameter at a time ---- */
typedef enum { SGD, RMSPROP, ADAM, ADAMW } rule;
/* a, b: momentum, dampening; momentum, alpha; betas */
typedef struct { rule rule; double lr, decay, eps, a, b; bool nesterov, centered; } options;
typedef struct { double x, m, v, mean; int t; } memory;

static void follow(const options *o, memory *s, double g)
{
    double x = s->x;
    s->t++;
    if (o->rule == ADAMW)
        x -= o->lr * o->decay * x;
    else
        g += o->decay * x;
    if (o->rule == SGD && o->a != 0) {
        s->m = s->t == 1 ? g : o->a * s->m + (1 - o->b) * g;
        g = o->nesterov ? g + o->a * s->m : s->m;
    }
    if (o->rule == SGD)
        s->x = x - o->lr * g;
    if (o->rule == RMSPROP) {
        s->v = o->b * s->v + (1 - o->b) * g * g;
        s->mean = o->b * s->mean + (1 - o->b) * g;
        double d = g / (sqrt(s->v - (o->centered ? s->mean * s->mean : 0)) + o->eps);
        s->m = o->a * s->m + d;
        s->x = x - o->lr * (o->a != 0 ? s->m : d);
    }
    if (o->rule == ADAM || o->rule == ADAMW) {
        s->m = o->a * s->m + (1 - o->a) * g;
        s->v = o->b * s->v + (1 - o->b) * g * g;
        s->x = x - o->lr * (s->m / (1 - pow(o->a, s->t))) / (sqrt(s->v / (1 - pow(o->b, s->t))) + o->eps);
    }
}

static const options all[] = {
    { SGD, .05, 0, 0, 0, 0, false, false },           { SGD, .05, .1, 0, .9, 0, false, false },
    { SGD, .05, .1, 0, .8, .3, false, false },        { SGD, .05, 0, 0, .9, 0, true, false },
    { SGD, .05, .2, 0, .7, 0, true, false },          { RMSPROP, .01, 0, 1e-8, 0, .99, false, false },
    { RMSPROP, .01, .1, 1e-6, 0, .9, false, true },   { RMSPROP, .01, .1, 1e-6, .5, .9, false, true },
    { RMSPROP, .01, 0, 1e-4, .9, .95, false, false }, { ADAM, .01, 0, 1e-8, .9, .999, false, false },
    { ADAM, .02, .1, 1e-6, .8, .95, false, false },   { ADAMW, .01, 0, 1e-8, .9, .999, false, false },
    { ADAMW, .02, .3, 1e-3, .8, .95, false, false },
};

static weft_optim *made(weft_module *m, const options *o)
{
    weft_real lr = (weft_real)o->lr, decay = (weft_real)o->decay, eps = (weft_real)o->eps,
              a = (weft_real)o->a, b = (weft_real)o->b;
    weft_adam_opts adam = { lr, a, b, eps, decay };
    if (o->rule == SGD)
        return weft_sgd_new(m, &(weft_sgd_opts){ lr, a, b, decay, o->nesterov });
    if (o->rule == RMSPROP)
        return weft_rmsprop_new(m, &(weft_rmsprop_opts){ lr, b, eps, decay, a, o->centered });
    return o->rule == ADAM ? weft_adam_new(m, &adam) : weft_adamw_new(m, &adam);
}

static void begin(const model *a, memory s[PARTS][MOST])
{
    memset(s, 0, sizeof(memory[PARTS][MOST]));
    for (int k = 0; k < PARTS; k++)
        for (int64_t i = 0; i < a->n[k]; i++)
            s[k][i].x = (double)numbers(a->p[k])[i];
}

static bool agrees(const char *what, const model *a, memory s[PARTS][MOST])
{
    bool good = true;
    for (int k = 0; k < PARTS; k++) {
        weft_real want[MOST], zero[MOST] = { 0 };
        for (int64_t i = 0; i < a->n[k]; i++)
            want[i] = (weft_real)s[k][i].x;
        good &= is_close(what, numbers(a->p[k]), want, a->n[k], TOL(1e-12, 3e-6));
        good &= is_same("the gradient after a step", numbers(weft_grad(a->p[k])), zero, a->n[k]);
    }
    return good;
}

/* enc at half the rate, or with another decay, or with neither; then frozen for two steps: what is frozen
 * does not move, decay included, and keeps its memory. */
static void grouped(weft *w, int r, double scale, double decay)
{
    memory s[PARTS][MOST];
    model a = model_in(w);
    options other = all[r];
    weft_optim *o = made(a.m, &all[r]);
    weft_optim_set_group(o, "enc.*", (weft_real)scale, (weft_real)decay);
    other.lr *= scale;
    other.decay = decay;
    begin(&a, s);
    for (int t = 0; t < STEPS; t++) {
        bool frozen = t == 2 || t == 3;
        weft_freeze(a.enc, "*", frozen);
        pull(&a, t);
        weft_optim_step(o);
        for (int k = 0; k < PARTS; k++)
            for (int64_t i = 0; i < a.n[k]; i++)
                if (!(k % 2 && frozen))
                    follow(k % 2 ? &other : &all[r], &s[k][i], slope(k, i, t));
        cr_assert(agrees("groups", &a, s), "options %d, step %d: %s", r, t, weft_error_message(w));
        weft_clear(w);
    }
}

Test(optim, groups_and_frozen)
{
    FOR_DEVICES(w)
        for (int r = 0; r < COUNT(all); r++) {
            grouped(w, r, .5, all[r].decay);
            grouped(w, r, 1, .07);
            grouped(w, r, 1, all[r].decay);
        }
}

/* Any parameter may be frozen in any step, from the first on; each counts its own steps, and none that was
 * skipped. */
static void freeze(const model *a, int t)
{
    for (int k = 0; k < PARTS; k++)
        weft_freeze(a->m, part_name[k], t == 0 ? k > 1 : t == 1 ? k > 0 : (7 * t + 3 * k) % 5 < 2);
}

Test(optim, steps_of_their_own)
{
    FOR_DEVICES(w)
        for (int r = 0; r < COUNT(all); r++) {
            memory s[PARTS][MOST];
            model a = model_in(w);
            weft_optim *o = made(a.m, &all[r]);
            begin(&a, s);
            for (int t = 0; t < 3 * STEPS; t++) {
                freeze(&a, t);
                pull(&a, t);
                for (int k = 0; k < PARTS; k++) {
                    const weft__parameter *p = weft__parameter_of(a.p[k]);
                    if (t % 4 == 3 && !weft__node_of(&p->value)->frozen)
                        poison(&a, k, 0, NAN);
                    for (int64_t i = 0; i < a.n[k] && t % 4 != 3 && !weft__node_of(&p->value)->frozen; i++)
                        follow(&all[r], &s[k][i], slope(k, i, t));
                }
                weft_optim_step(o);
                cr_assert(agrees("frozen at random", &a, s), "options %d, step %d: %s", r, t,
                          weft_error_message(w));
                weft_clear(w);
            }
        }
}

/* An optimiser of a part leaves the rest alone, gradients too; what no loss has reached stays, though the
 * vectors moved. */
Test(optim, only_its_own)
{
    weft *w = open_on(WEFT_REF);
    memory s[PARTS][MOST];
    model a = model_in(w);
    weft_tie(a.enc, "again", a.p[1]);
    weft_optim *o = made(a.enc, &all[9]);
    /* moves the vectors */
    weft_tensor *late =
        weft_parameter(a.enc, "late", WEFT_SHAPE(2000), (weft_init){ WEFT_INIT_CONSTANT, 1, 0 });
    begin(&a, s);
    pull(&a, 0);
    weft_optim_step(o);
    for (int k = 0; k < PARTS; k++)
        for (int64_t i = 0; i < a.n[k]; i++) {
            if (k % 2)
                follow(&all[9], &s[k][i], slope(k, i, 0));
            cr_assert_float_eq((double)numbers(a.p[k])[i], s[k][i].x, 1e-6);
            cr_assert_float_eq((double)numbers(weft_grad(a.p[k]))[i], k % 2 ? 0 : slope(k, i, 0), 1e-6);
        }
    cr_assert_eq(numbers(late)[1999], 1);
    pull(&a, 1);
    poison(&a, 3, 0, NAN);
    poison(&a, 0, 0, NAN);                       /* no one asks */
    weft_optim_step(o);
    cr_assert_str_eq(bad_parameter(o), "bias");
    CLEAN(w);
}

Test(optim, all_frozen_and_nothing)
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
    FAILS(w, WEFT_EARG, "optim_step: the adam of empty has nothing to train: no parameter is made below it");
    cr_assert_eq(weft_optim_steps(empty), 0);
    CLEAN(w);
}

/* ---- gradients that are not finite ---- */
/* A skipped step leaves no trace but its count: the run equals one without it, bit for bit. */
Test(optim, skips)
{
    FOR_DEVICES(w)
        for (int r = 0; r < COUNT(all); r++) {
            model a = model_in(w), b = model_in(w);
            weft_optim *o = made(a.m, &all[r]), *p = made(b.m, &all[r]);
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

Test(optim, ten_in_a_row)
{
    FOR_DEVICES(w) {
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
        weft_optim_skipped(o, NULL);                   /* a GPU is asked, or tells at the next wait */
        weft_optim_step(o);
        cr_assert_eq(weft_optim_steps(o), 30, "a failed step was counted");
        cr_assert_str_eq(bad_parameter(o), "enc.weight");
        FAILS(w, WEFT_ENUMERIC, "10 steps in a row, first in enc.weight");
        same_values("after ten bad steps", &a, before);
        pull(&a, 0);
        weft_optim_step(o);
        OK(w);
    }
}

Test(optim, failed_step)
{
    weft *w = open_on(WEFT_REF);
    model a = model_in(w);
    weft_optim *o = weft_adamw_new(a.m, NULL);
    weft_ema *e = weft_ema_new(a.m, (weft_real).5);
    weft_real *before = numbers(a.p[2]), *mean = numbers(weft_find_parameter(a.m, "ema.last"));
    pull(&a, 0);
    uint64_t version = a.w->tape->changes;
    weft_fail(w, WEFT_EARG, "on purpose");
    weft_optim_step(o);
    weft_ema_update(e, 1);
    weft_ema_swap(e);
    weft_clip_grad_norm(a.m, 1, 0);
    cr_assert(weft_optim_steps(o) == 0 && a.w->tape->changes == version);
    FAILS(w, WEFT_EARG, "on purpose");
    same_bits("values", numbers(a.p[2]), before, 16);
    same_bits("average", numbers(weft_find_parameter(a.m, "ema.last")), mean, 16);
    CLEAN(w);
}

/* ---- resuming ---- */
static void carry_over(weft *from, weft_optim *o, weft *to, weft_optim *p)
{
    weft__saved a[8], b[8];
    int n = weft__optim_saved(o, a, 8);
    cr_assert_eq(n, weft__optim_saved(p, b, 8));
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
    weft__optim_restored(p);
}

Test(optim, resumes)
{
    FOR_DEVICES(w)
        for (int r = 0; r < COUNT(all); r++) {
            weft *v = open_table(check_i);
            model a = model_in(w), b = model_in(v);
            weft_optim *o = made(a.m, &all[r]), *p = made(b.m, &all[r]);
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
