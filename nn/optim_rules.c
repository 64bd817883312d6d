/* optim_rules.c - SGD, RMSprop, Adam and AdamW: their options, checked, and the vectors that each keeps. */
#include <math.h>
#include "nn/optim.h"

static void sound(const weft_module *m, const char *name, const char *option, real value)
{
    if (!(value >= 0) || isinf(value))
        weft__fail(m ? m->w : NULL, WEFT_EARG, "%s: %s %g; 0 or more, and finite, is wanted", name, option,
                   (double)value);
}

static void below_one(const weft_module *m, const char *name, const char *option, real value)
{
    if (!(value >= 0 && value < 1))
        weft__fail(m ? m->w : NULL, WEFT_EARG, "%s: %s %g; 0 or more and below 1 is wanted", name, option,
                   (double)value);
}

/* 0 would divide 0 by 0 wherever a gradient is 0: in rows of an embedding that a batch lacks, in the gaps
 * between parameters. */
static void positive(const weft_module *m, const char *name, real eps)
{
    if (!(eps > 0) || isinf(eps))
        weft__fail(m ? m->w : NULL, WEFT_EARG, "%s: eps %g; more than 0, and finite, is wanted", name,
                   (double)eps);
}

weft_optim *weft_sgd_new(weft_module *m, const weft_sgd_opts *opts)
{
    weft_sgd_opts o = opts ? *opts : (weft_sgd_opts)WEFT_SGD_DEFAULTS;
    sound(m, "sgd", "lr", o.lr);
    sound(m, "sgd", "momentum", o.momentum);
    sound(m, "sgd", "weight_decay", o.weight_decay);
    if (!isfinite(o.dampening))
        weft__fail(m ? m->w : NULL, WEFT_EARG, "sgd: dampening %g; a finite number is wanted",
                   (double)o.dampening);
    if (o.nesterov && (!(o.momentum > 0) || o.dampening != 0))
        weft__fail(m ? m->w : NULL, WEFT_EARG,
                   "sgd: momentum %g, dampening %g; nesterov wants a momentum above 0 and no dampening",
                   (double)o.momentum, (double)o.dampening);
    weft__update how = { .rule = WEFT__SGD,
                         .lr = o.lr,
                         .decay = o.weight_decay,
                         .beta1 = o.momentum,
                         .beta2 = o.dampening,
                         .nesterov = o.nesterov };
    return weft__optim_new(m, "sgd", &how, o.momentum != 0, false, false);
}

weft_optim *weft_rmsprop_new(weft_module *m, const weft_rmsprop_opts *opts)
{
    weft_rmsprop_opts o = opts ? *opts : (weft_rmsprop_opts)WEFT_RMSPROP_DEFAULTS;
    sound(m, "rmsprop", "lr", o.lr);
    if (!(o.alpha >= 0 && o.alpha <= 1))         /* more would be the root of a negative average */
        weft__fail(m ? m->w : NULL, WEFT_EARG, "rmsprop: alpha %g; 0 .. 1 is wanted", (double)o.alpha);
    positive(m, "rmsprop", o.eps);
    sound(m, "rmsprop", "momentum", o.momentum);
    sound(m, "rmsprop", "weight_decay", o.weight_decay);
    weft__update how = { .rule = WEFT__RMSPROP,
                         .lr = o.lr,
                         .decay = o.weight_decay,
                         .eps = o.eps,
                         .beta1 = o.momentum,
                         .beta2 = o.alpha,
                         .centered = o.centered };
    return weft__optim_new(m, "rmsprop", &how, o.momentum != 0, true, o.centered);
}

static weft_optim *adam(weft_module *m, const char *name, weft__rule rule, const weft_adam_opts *opts)
{
    weft_adam_opts o = opts ? *opts : (weft_adam_opts)WEFT_ADAM_DEFAULTS;
    sound(m, name, "lr", o.lr);
    below_one(m, name, "beta1", o.beta1);
    below_one(m, name, "beta2", o.beta2);
    positive(m, name, o.eps);
    sound(m, name, "weight_decay", o.weight_decay);
    weft__update how = {
        .rule = rule, .lr = o.lr, .decay = o.weight_decay, .eps = o.eps, .beta1 = o.beta1, .beta2 = o.beta2
    };
    return weft__optim_new(m, name, &how, true, true, false);
}

weft_optim *weft_adam_new(weft_module *m, const weft_adam_opts *opts)
{
    return adam(m, "adam", WEFT__ADAM, opts);
}
weft_optim *weft_adamw_new(weft_module *m, const weft_adam_opts *opts)
{
    return adam(m, "adamw", WEFT__ADAMW, opts);
}
