/* golden_optim.c - compares optimisers: the parameters after each step, the accumulators after the last, and
 * clipping by global norm. */
#include <math.h>
#include <string.h>
#include "golden.h"
#include "nn/nn.h"

/* ---- options; missing ones have PyTorch's defaults ---- */
typedef struct settings {
    double lr, momentum, dampening, weight_decay, alpha, eps, beta1, beta2, ns_steps;
    bool nesterov, centered, decoupled, matched;
    const json_t *lrs;
} settings;

static double *place_of(settings *s, const char *key)
{
    struct { const char *key; double *at;
    } places[] = {
        { "lr", &s->lr },
        { "momentum", &s->momentum },
        { "dampening", &s->dampening },
        { "weight_decay", &s->weight_decay },
        { "alpha", &s->alpha },
        { "eps", &s->eps },
        { "ns_steps", &s->ns_steps },
    };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (!strcmp(places[i].key, key))
            return places[i].at;
    return NULL;
}

static bool read_option(trial *t, settings *s, const char *key, const json_t *v)
{
    double *at = place_of(s, key);
    if (at && json_is_number(v))
        *at = json_number_value(v);
    else if (!strcmp(key, "lr") && json_is_array(v))
        s->lrs = v;
    else if (!strcmp(key, "betas") && json_array_size(v) == 2) {
        s->beta1 = json_number_value(json_array_get(v, 0));
        s->beta2 = json_number_value(json_array_get(v, 1));
    } else if (!strcmp(key, "nesterov") && json_is_boolean(v))
        s->nesterov = json_is_true(v);
    else if (!strcmp(key, "centered") && json_is_boolean(v))
        s->centered = json_is_true(v);
    else if (!strcmp(key, "decoupled_weight_decay") && json_is_boolean(v))
        s->decoupled = json_is_true(v);
    else if (!strcmp(key, "adjust_lr_fn") && json_is_string(v))
        s->matched = !strcmp(json_string_value(v), "match_rms_adamw");
    else if (!json_is_false(v) && !json_is_null(v))          /* false, null: not given */
        return wrong(t, "unknown option \"%s\"", key);
    return true;
}

static bool read_options(trial *t, settings *s, const char *rule)
{
    bool muon = !strcmp(rule, "muon");
    *s = (settings){ .lr = !strcmp(rule, "rmsprop") ? 1e-2 : 1e-3,
                     .momentum = muon ? .95 : 0,
                     .weight_decay = !strcmp(rule, "adamw") ? 1e-2 : 0,
                     .alpha = .99,
                     .eps = muon ? 1e-7 : 1e-8,
                     .beta1 = .9,
                     .beta2 = !strcmp(rule, "lion") ? .99 : .999,
                     .nesterov = muon };
    const char *key;
    json_t     *v;
    json_object_foreach(json_object_get(t->c, "options"), key, v)
        if (!read_option(t, s, key, v))
            return false;
    if (s->lrs)
        s->lr = json_number_value(json_array_get(s->lrs, 0));
    return true;
}

static weft_optim *optimiser(trial *t, const char *rule, const settings *s)
{
    weft_real lr = (weft_real)s->lr, decay = (weft_real)s->weight_decay, momentum = (weft_real)s->momentum,
              eps = (weft_real)s->eps;
    weft_adam_opts adam = { lr, (weft_real)s->beta1, (weft_real)s->beta2, eps, decay };
    if (!strcmp(rule, "sgd"))
        return weft_sgd_new(t->m,
                            &(weft_sgd_opts){ lr, momentum, (weft_real)s->dampening, decay, s->nesterov });
    if (!strcmp(rule, "rmsprop"))
        return weft_rmsprop_new(
            t->m, &(weft_rmsprop_opts){ lr, (weft_real)s->alpha, eps, decay, momentum, s->centered });
    if (!strcmp(rule, "adam"))
        return weft_adam_new(t->m, &adam);
    if (!strcmp(rule, "adamw"))
        return weft_adamw_new(t->m, &adam);
    if (!strcmp(rule, "radam"))
        return weft_radam_new(
            t->m, &(weft_radam_opts){ lr, adam.beta1, adam.beta2, eps, decay, s->decoupled });
    if (!strcmp(rule, "lion"))
        return weft_lion_new(t->m, &(weft_lion_opts){ lr, adam.beta1, adam.beta2, decay });
    if (!strcmp(rule, "muon"))
        return weft_muon_new(t->m, &(weft_muon_opts){ lr, momentum, eps, decay, (int)s->ns_steps,
                                                      !s->nesterov, s->matched, adam });
    wrong(t, "unknown rule \"%s\"", rule);
    return NULL;
}

/* ---- a case ---- */
/* A parameter and a loss whose gradient is g. */
static weft_tensor *pull(trial *t, weft_tensor *p, const weft_real *g)
{
    int64_t shape[WEFT_RANK];
    for (int i = 0; i < weft_rank(p); i++)
        shape[i] = weft_size(p, i);
    return weft_sum_all(weft_mul(p, weft_reals(t->w, g, weft_rank(p), shape)));
}

/* An accumulator by PyTorch's name: first moments and momenta are our vector m, second moments v, the
 * centred average a. */
static const weft__saved *accumulator(const weft__saved *saved, int n, const char *name)
{
    static const char *const ours[][2] = { { "momentum_buffer", "m" },
                                           { "exp_avg", "m" },
                                           { "exp_avg_sq", "v" },
                                           { "square_avg", "v" },
                                           { "grad_avg", "a" } };
    for (size_t k = 0; k < sizeof ours / sizeof *ours; k++)
        for (int i = 0; i < n && !strcmp(ours[k][0], name); i++)
            if (!strcmp(saved[i].name, ours[k][1]) && saved[i].device)
                return &saved[i];
    return NULL;
}

/* The flat vectors are longer than the one parameter of n numbers that they begin with. */
static void hold_state(trial *t, weft_optim *o, int64_t count)
{
    weft__saved saved[16];
    int         n = weft__optim_entries(o, saved, 16);
    const char *key;
    json_t     *want;
    json_object_foreach(json_object_get(t->c, "state"), key, want) {
        const weft__saved *s = accumulator(saved, n, key);
        if (!strcmp(key, "step"))
            hold_number(t, key, (double)weft_optim_steps(o), want);
        else if (!s)
            wrong(t, "the optimiser has no \"%s\"", key);
        else {
            weft_real *v = hold(t, s->n * (int64_t)sizeof *v);
            t->w->dev.k->download(&t->w->dev, v, s->data, (size_t)s->n * sizeof *v);
            hold_values(t, key, v, count < s->n ? count : s->n, want);
        }
    }
}

static weft_tensor *optimizer(trial *t)
{
    const char   *rule = text(t, "rule");
    const json_t *steps = json_object_get(t->c, "steps"), *scale = json_object_get(t->c, "scale");
    int64_t       n = (int64_t)json_array_size(json_array_get(steps, 0));
    settings      s;
    if (t->why[0] || !read_options(t, &s, rule))
        return NULL;
    const json_t *shape = json_object_get(t->c, "shape");
    int64_t       size[2] = { n, 0 };
    for (size_t i = 0; i < json_array_size(shape) && i < 2; i++)
        size[i] = json_integer_value(json_array_get(shape, i));
    weft_tensor *p = weft_parameter(t->m, "p", shape ? 2 : 1, size, (weft_init){ .kind = WEFT_INIT_ZERO });
    weft_assign_values(p, formula(t, 1, 0, 0, n), n);
    weft_optim *o = optimiser(t, rule, &s);
    for (size_t i = 0; i < json_array_size(steps) && !t->why[0] && weft_ok(t->w); i++) {
        const json_t *k = json_array_get(scale, i);
        if (s.lrs)
            weft_optim_set_lr(o, (weft_real)json_number_value(json_array_get(s.lrs, i)));
        weft_backward(pull(t, p, formula(t, k ? json_number_value(k) : 1, 0, 10 + (int64_t)i, n)));
        weft_optim_step(o);
        char name[32];
        snprintf(name, sizeof name, "step %zu", i);
        hold_tensor(t, name, p, json_array_get(steps, i));
        weft_clear(t->w);
    }
    if (!t->why[0] && weft_ok(t->w))
        hold_state(t, o, n);
    return NULL;
}

static double norm_type(const trial *t)
{
    const json_t *j = json_object_get(t->c, "norm_type");
    return json_is_string(j) ? (!strcmp(json_string_value(j), "inf") ? INFINITY : NAN) :
           json_is_number(j) ? json_number_value(j) :
                               2;
}

static weft_tensor *clip_grad_norm(trial *t)
{
    const json_t *shapes = json_object_get(t->c, "shapes"), *shape;
    weft_tensor  *p[SOURCES], *loss = weft_scalar(t->w, 0);
    double        scale = number(t, "scale"), most = number(t, "max_norm"), power = norm_type(t);
    int64_t       size[WEFT_RANK], all = 0, at = 0;
    size_t        s, n = json_array_size(shapes);
    if (t->why[0] || n > SOURCES || isnan(power)) {
        wrong(t, "shapes or norm_type that this program does not know");
        return NULL;
    }
    json_array_foreach(shapes, s, shape) {
        char name[32];
        snprintf(name, sizeof name, "p%zu", s);
        for (size_t i = 0; i < json_array_size(shape) && i < WEFT_RANK; i++)
            size[i] = json_integer_value(json_array_get(shape, i));
        p[s] = weft_parameter(t->m, name, (int)json_array_size(shape), size,
                              (weft_init){ .kind = WEFT_INIT_ZERO });
        loss = weft_add(loss, pull(t, p[s], formula(t, scale, 0, (int64_t)s, weft_numel(p[s]))));
        all += weft_numel(p[s]);
    }
    weft_backward(loss);
    weft_tensor *total = weft_clip_grad_norm(t->m, most, power == 2 && (t->way & PACKED) ? 0 : power);
    hold_number(t, "total", (double)weft_item(total), json_object_get(t->c, "total"));
    weft_real *clipped = hold(t, all * (int64_t)sizeof *clipped);
    for (s = 0; s < n && weft_ok(t->w); s++) {
        memcpy(clipped + at, elements(t, weft_grad(p[s])), (size_t)weft_numel(p[s]) * sizeof *clipped);
        at += weft_numel(p[s]);
    }
    hold_values(t, "clipped", clipped, all, json_object_get(t->c, "clipped"));
    return NULL;
}

const kind golden_optimisers[] = { { "optimizer", optimizer, 0 },
                                   { "clip_grad_norm", clip_grad_norm, PACKED },
                                   { NULL, NULL, 0 } };
