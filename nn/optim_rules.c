/* optim_rules.c - checks the options of all optimisers and selects their vectors. An option is
 * checked as a weft_real: in float 1e-50 is an eps of 0, and 1e39 is infinite. */
#include <math.h>
#include "nn/optim.h"

static void check(const weft_module *m, const char *rule, const char *option, double value, bool valid,
                  const char *expected)
{
    if (!valid)
        weft__fail(m ? m->w : NULL, WEFT_EARG, "%s: %s %g; expected %s", rule, option, (double)(real)value,
                   expected);
}

static void check_option(const weft_module *m, const char *rule, const char *option, double value)
{
    check(m, rule, option, value, value >= 0 && !isinf((real)value), "a finite number, 0 or more");
}

static void check_below_one(const weft_module *m, const char *rule, const char *option, double value)
{
    check(m, rule, option, value, value >= 0 && (real)value < 1, "0 or more and below 1");
}

/* An eps of 0 would divide 0 by 0 wherever a gradient is 0: in rows of an embedding that the batch lacks, and
 * in the gaps between parameters. */
static void check_positive(const weft_module *m, const char *rule, double eps)
{
    check(m, rule, "eps", eps, (real)eps > 0 && !isinf((real)eps), "a finite number above 0");
}

weft_optim *weft_sgd_new(weft_module *m, const weft_sgd_opts *opts)
{
    weft_sgd_opts o = opts ? *opts : (weft_sgd_opts){ 0 };
    o.lr = weft__or(o.lr, 1e-3);
    check_option(m, "sgd", "lr", o.lr);
    check_option(m, "sgd", "momentum", o.momentum);
    check_option(m, "sgd", "weight_decay", o.weight_decay);
    check(m, "sgd", "dampening", o.dampening, isfinite((real)o.dampening), "a finite number");
    if (o.nesterov && (!(o.momentum > 0) || o.dampening != 0))
        weft__fail(m ? m->w : NULL, WEFT_EARG,
                   "sgd: momentum %g, dampening %g; expected nesterov with momentum > 0 and no dampening",
                   o.momentum, o.dampening);
    weft__update update = { .rule = WEFT__SGD,
                            .lr = (real)o.lr,
                            .decay = (real)o.weight_decay,
                            .beta1 = (real)o.momentum,
                            .beta2 = (real)o.dampening,
                            .nesterov = o.nesterov };
    return weft__optim_new(m, &(weft_optim){ .name = "sgd", .update = update, .first = o.momentum != 0 });
}

weft_optim *weft_rmsprop_new(weft_module *m, const weft_rmsprop_opts *opts)
{
    weft_rmsprop_opts o = opts ? *opts : (weft_rmsprop_opts){ 0 };
    o.lr = weft__or(o.lr, 1e-2);
    o.alpha = weft__or(o.alpha, .99);
    o.eps = weft__or(o.eps, 1e-8);
    check_option(m, "rmsprop", "lr", o.lr);
    /* A larger alpha could give the root of a negative average. */
    check(m, "rmsprop", "alpha", o.alpha, o.alpha >= 0 && o.alpha <= 1, "0 .. 1");
    check_positive(m, "rmsprop", o.eps);
    check_option(m, "rmsprop", "momentum", o.momentum);
    check_option(m, "rmsprop", "weight_decay", o.weight_decay);
    weft__update update = { .rule = WEFT__RMSPROP,
                            .lr = (real)o.lr,
                            .decay = (real)o.weight_decay,
                            .eps = (real)o.eps,
                            .beta1 = (real)o.momentum,
                            .beta2 = (real)o.alpha,
                            .centered = o.centered };
    return weft__optim_new(m, &(weft_optim){ .name = "rmsprop",
                                             .update = update,
                                             .first = o.momentum != 0,
                                             .second = true,
                                             .average = o.centered });
}

/* Checks the options of Adam, its variants and Lion, which ignores eps, and returns their update. */
static weft__update adam(const weft_module *m, const char *name, weft__rule rule, weft_adam_opts o,
                         bool decoupled)
{
    o.lr = weft__or(o.lr, 1e-3);
    o.eps = weft__or(o.eps, 1e-8);
    o.beta1 = weft__or(o.beta1, .9);
    o.beta2 = weft__or(o.beta2, .999);
    check_option(m, name, "lr", o.lr);
    check_below_one(m, name, "beta1", o.beta1);
    check_below_one(m, name, "beta2", o.beta2);
    check_positive(m, name, o.eps);
    check_option(m, name, "weight_decay", o.weight_decay);
    return (weft__update){ .rule = rule,
                           .lr = (real)o.lr,
                           .decay = (real)o.weight_decay,
                           .eps = (real)o.eps,
                           .beta1 = (real)o.beta1,
                           .beta2 = (real)o.beta2,
                           .decoupled = decoupled };
}

static weft_optim *adam_new(weft_module *m, const char *name, weft__rule rule, const weft_adam_opts *opts,
                            bool decoupled)
{
    weft__update update = adam(m, name, rule, opts ? *opts : (weft_adam_opts){ 0 }, decoupled);
    return weft__optim_new(
        m, &(weft_optim){ .name = name, .update = update, .first = true, .second = true });
}

weft_optim *weft_adam_new(weft_module *m, const weft_adam_opts *opts)
{
    return adam_new(m, "adam", WEFT__ADAM, opts, false);
}
weft_optim *weft_adamw_new(weft_module *m, const weft_adam_opts *opts)
{
    return adam_new(m, "adamw", WEFT__ADAMW, opts, true);
}
weft_optim *weft_radam_new(weft_module *m, const weft_radam_opts *opts)
{
    weft_radam_opts o = opts ? *opts : (weft_radam_opts){ 0 };
    return adam_new(m, "radam", WEFT__RADAM,
                    &(weft_adam_opts){ o.lr, o.beta1, o.beta2, o.eps, o.weight_decay },
                    o.decoupled_weight_decay);
}

weft_optim *weft_lion_new(weft_module *m, const weft_lion_opts *opts)
{
    weft_lion_opts o = opts ? *opts : (weft_lion_opts){ 0 };
    /* not weft__or: adam() has to see WEFT_ZERO */
    weft_adam_opts like = { .lr = o.lr != 0 ? o.lr : 1e-4,
                            .beta1 = o.beta1,
                            .beta2 = o.beta2 != 0 ? o.beta2 : .99,
                            .weight_decay = o.weight_decay };
    weft__update update = adam(m, "lion", WEFT__LION, like, true);
    return weft__optim_new(m, &(weft_optim){ .name = "lion", .update = update, .first = true });
}

weft_optim *weft_muon_new(weft_module *m, const weft_muon_opts *opts)
{
    weft_muon_opts o = opts ? *opts : (weft_muon_opts){ 0 };
    o.lr = weft__or(o.lr, 1e-3);
    o.momentum = weft__or(o.momentum, .95);
    o.eps = weft__or(o.eps, 1e-7);
    o.ns_steps = o.ns_steps ? o.ns_steps : 5;
    /* The rate of AdamW is stored as a multiple of this rate. */
    check(m, "muon", "lr", o.lr, (real)o.lr > 0 && !isinf((real)o.lr), "a finite number above 0");
    check_below_one(m, "muon", "momentum", o.momentum);
    check_positive(m, "muon", o.eps);
    check(m, "muon", "ns_steps", o.ns_steps, o.ns_steps > 0 && o.ns_steps < 100, "1 .. 99");
    check_option(m, "muon", "weight_decay", o.weight_decay);
    weft__update update = { .rule = WEFT__MUON,
                            .lr = (real)o.lr,
                            .decay = (real)o.weight_decay,
                            .eps = (real)o.eps,
                            .beta1 = (real)o.momentum,
                            .nesterov = !o.no_nesterov,
                            .decoupled = true };
    weft_optim how = { .name = "muon",
                       .update = update,
                       .others = adam(m, "muon, adamw", WEFT__ADAMW, o.adamw, true),
                       .muon_steps = o.ns_steps,
                       .match_rms_adamw = o.match_rms_adamw,
                       .first = true,
                       .second = true };
    double factor = (double)how.others.lr / o.lr;
    check(m, "muon", "adamw.lr / lr", factor, !isinf((real)factor), "a finite number");
    how.others.lr = (real)factor;
    return weft__optim_new(m, &how);
}
