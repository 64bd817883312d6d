/* optim_model.h - a small model for the tests of optimisers and clipping, and gradients for it. */
#ifndef OPTIM_MODEL_H
#define OPTIM_MODEL_H
#include "tests/check.h"
#include "nn/nn.h"

enum { PARTS = 4, MOST = 32, STEPS = 5 };

typedef struct { weft *w; weft_module *m, *enc; weft_tensor *p[PARTS]; int64_t n[PARTS]; } model;

/* Two modules whose parameters alternate in memory: enc's are two runs. */
UNUSED static const char *const part_name[] = { "first", "enc.weight", "last", "enc.bias" };

UNUSED static model model_in(weft *w)
{
    weft_init u = { WEFT_INIT_UNIFORM, -1, 1 };
    model a = { .w = w, .m = weft_module_new(w, "net") };
    a.enc = weft_submodule_new(a.m, "enc");
    a.p[0] = weft_parameter(a.m, "first", WEFT_SHAPE(7), u);
    a.p[1] = weft_parameter(a.enc, "weight", WEFT_SHAPE(3, 5), u);
    a.p[2] = weft_parameter(a.m, "last", WEFT_SHAPE(16), u);
    a.p[3] = weft_parameter(a.enc, "bias", WEFT_SHAPE(1), u);
    for (int i = 0; i < PARTS; i++)
        a.n[i] = weft_numel(a.p[i]);
    return a;
}

UNUSED static const char *bad_parameter(weft_optim *o)
{
    const char *path;
    weft_optim_skipped(o, &path);
    return path;
}

UNUSED static double slope(int part, int64_t i, int step)
{
    return sin(1 + 1.7 * part + .9 * (double)i + 2.3 * step * step) * (step == 2 ? 30 : 1);
}

UNUSED static void set_gradient(weft_tensor *p, int part, int step)
{
    weft_real g[3000];
    cr_assert(weft_numel(p) <= COUNT(g));
    for (int64_t i = 0; i < weft_numel(p); i++)
        g[i] = (weft_real)slope(part, i, step);
    weft_assign_values(weft_grad(p), g, weft_numel(p));
}

UNUSED static void pull(const model *a, int step)
{
    for (int k = 0; k < PARTS; k++)
        set_gradient(a->p[k], k, step);
}

/* One optimiser of each kind. All move parameters without a gradient, by momentum or decay. */
enum { SGD_PLAIN, SGD_NESTEROV, RMSPROP_CENTRED, ADAM_L2, ADAMW_DECAY, RADAM, LION, MUON, RULES };
UNUSED static weft_optim *rule_new(weft_module *m, int rule, double lr)
{
    weft_adam_opts adam = { .lr = lr, .beta2 = .99, .weight_decay = rule == ADAM_L2 ? .1 : .3 };
    switch (rule) {
    case SGD_PLAIN: return weft_sgd_new(m, &(weft_sgd_opts){ .lr = lr });
    case SGD_NESTEROV:
        return weft_sgd_new(
            m, &(weft_sgd_opts){ .lr = lr, .momentum = .9, .nesterov = true, .weight_decay = .1 });
    case RMSPROP_CENTRED:
        return weft_rmsprop_new(m, &(weft_rmsprop_opts){ .lr = lr, .alpha = .9, .momentum = .5,
                                                         .centered = true });
    case ADAM_L2: return weft_adam_new(m, &adam);
    case RADAM:   return weft_radam_new(m, &(weft_radam_opts){ .lr = lr, .beta2 = .9, .weight_decay = .1 });
    case LION:    return weft_lion_new(m, &(weft_lion_opts){ .lr = lr, .weight_decay = .3 });
    case MUON:    return weft_muon_new(m, &(weft_muon_opts){ .lr = lr, .weight_decay = .3, .adamw = adam });
    default:      return weft_adamw_new(m, &adam);
    }
}

/* All parameters end to end; freed by same_values, or by the caller. */
UNUSED static weft_real *everything(const model *a)
{
    weft_real *x = calloc(PARTS * MOST, sizeof *x);
    int64_t at = 0;
    for (int k = 0; k < PARTS; at += a->n[k++])
        memcpy(x + at, numbers(a->p[k]), (size_t)a->n[k] * sizeof *x);
    return x;
}
UNUSED static void same_values(const char *what, const model *a, weft_real *before)
{
    weft_real *now = everything(a);
    same_bits(what, now, before, PARTS * MOST);
    free(now);
    free(before);
}

/* One number of a gradient is replaced. */
UNUSED static void poison(const model *a, int part, int64_t i, double value)
{
    weft_real *g = numbers(weft_grad(a->p[part]));
    g[i] = (weft_real)value;
    weft_assign_values(weft_grad(a->p[part]), g, a->n[part]);
}

#endif
