/* test_optim_reached.c - tests that a parameter stays unchanged if no loss has reached it since the last step
 * or weft_zero_grad: no decay, no momentum, no step count. torch.optim does the same when grad is None. A
 * gradient of zeros counts as a gradient. */
#include "autograd/tape.h"
#include "optim_model.h"
#include "rnn/api_rnn.h"

typedef struct { weft_module *m; weft_tensor *p, *q; weft_optim *o; } pair;
static pair pair_in(weft *w, int rule)
{
    weft_init u = { WEFT_INIT_UNIFORM, (weft_real).5, 1 };
    pair a = { .m = weft_module_new(w, "net") };
    a.p = weft_parameter(a.m, "p", WEFT_SHAPE(5), u);
    a.q = weft_parameter(a.m, "q", WEFT_SHAPE(20), u);
    a.o = rule_new(a.m, rule, .01);
    return a;
}
static weft_tensor *loss_of(weft_tensor *p) { return weft_sum_all(weft_square(p)); }
static bool moved(weft_tensor *p, void (*by)(pair *), pair *a)
{
    weft_real *before = numbers(p), now;
    by(a);
    now = numbers(p)[0];
    return memcmp(before, &now, sizeof now) != 0;
}

/* ---- what counts as reached ---- */
static void by_nothing(pair *a)     { weft_backward(loss_of(a->p)); }
static void by_zeros(pair *a)       { weft_backward(weft_scale(loss_of(a->q), 0)); }
static void by_no_tokens(pair *a)
{
    weft *w = weft_module_context(a->m);
    weft_backward(weft_sum_all(weft_mul(weft_ragged(w, NULL, 20, &(weft_lengths){ .n = 0 }),
                                        weft_reshape(a->q, WEFT_SHAPE(1, 20)))));
}
static void by_assignment(pair *a)
{
    weft_assign(weft_grad(a->q), weft_zeros(weft_module_context(a->m), WEFT_SHAPE(20)));
}
static void and_zeroed(pair *a)     { by_zeros(a), weft_zero_grad(a->m), by_nothing(a); }
static void and_recovered(pair *a)
{
    weft *w = weft_module_context(a->m);
    by_zeros(a);
    weft_fail(w, WEFT_EARG, "on purpose");
    weft_recover(w);
    by_nothing(a);
}
static void and_frozen(pair *a)
{
    by_zeros(a), weft_freeze(a->m, "q", true), weft_freeze(a->m, "q", false), by_nothing(a);
}
static void before_another(pair *a) { by_zeros(a), by_nothing(a); }
static void by_gradients(pair *a)
{
    weft_tensor *g;
    weft_gradients(loss_of(a->q), &a->q, 1, &g);
    by_nothing(a);
}
static void and_a_bad_step(pair *a)              /* The step is skipped, and its gradients are dropped. */
{
    by_zeros(a);
    weft_assign(weft_grad(a->p), weft_full(weft_module_context(a->m), (weft_real)NAN, WEFT_SHAPE(5)));
    weft_optim_step(a->o);
    by_nothing(a);
}
static void by_no_loss(pair *a)     { (void)a; }

static const struct { const char *name; void (*by)(pair *); bool moves;
} cases[] = {
    { "nothing", by_nothing, false },
    { "a gradient of zeros", by_zeros, true },
    { "an empty batch", by_no_tokens, true },
    { "an assignment", by_assignment, true },
    { "before zero_grad", and_zeroed, false },
    { "before recovering", and_recovered, false },
    { "before freezing", and_frozen, false },
    { "one of two losses", before_another, true },
    { "weft_gradients", by_gradients, false },
    { "before a step that was skipped", and_a_bad_step, false },
    { "no backward at all", by_no_loss, false },
};

static void (*what)(pair *);
static void then_a_step(pair *a) { what(a), weft_optim_step(a->o); }

TABLE_TEST(reached, parameters_move_only_with_a_gradient)
{
    for (int rule = SGD_NESTEROV; rule < RULES; rule++)
        for (int i = 0; i < COUNT(cases); i++) {
            pair a = pair_in(w, rule);
            weft_backward(loss_of(a.q)), weft_optim_step(a.o);            /* momentum */
            what = cases[i].by;
            cr_assert_eq(moved(a.q, then_a_step, &a), cases[i].moves, "rule %d, %s: %s", rule,
                         cases[i].name, weft_error_message(w));
            OK(w);
            weft_clear(w);
        }
}

/* ---- an empty batch reaches all parameters of every layer ---- */
static void all_reached(weft_module *m, const char *layer)
{
    for (int i = 0; i < weft_parameter_count(m); i++) {
        const char *path;
        cr_assert(weft__node_of(weft_parameter_at(m, i, &path))->has_gradient,
                  "%s: %s of a batch of nothing has no gradient", layer, path);
    }
}

TABLE_TEST(reached, empty_batches_give_zero_gradients)
{
    for (int i = 0; i < 12; i++) {
        weft_module *m = weft_module_new(w, "m");
        const weft_lengths none[] = { { .n = 0 }, { .n = 2, .len = (int32_t[]){ 0, 0 } } };
        weft_tensor *x = weft_ragged(w, NULL, 4, &none[i % 2]), *y = NULL;
        weft_rnn_opts o = { .input = 4, .hidden = 4, .layers = 2, .bidirectional = true, .lean = i % 4 > 1 };
        if (i < 2)
            y = weft_layer_norm_run(
                weft_layer_norm_new(m, "norm", &(weft_layer_norm_opts){ .width = 4 }),
                weft_linear_run(weft_linear_new(m, "linear", &(weft_linear_opts){ .in = 4, .out = 4 }), x));
        else if (i < 4)
            y = weft_embedding_run(
                weft_embedding_new(m, "embed", &(weft_embedding_opts){ .rows = 5, .columns = 4 }),
                weft_ragged_ints(w, NULL, &none[i % 2]));
        else if (i < 6)
            y = weft_attention_run(weft_attention_new(m, "heads",
                                                      &(weft_attention_layer_opts){
                                                          .kind = WEFT_MULTIHEAD, .width = 4, .heads = 2 }),
                                   x, x, WEFT_ALL_KEYS, NULL);
        else
            y = weft_rnn_run((i < 8  ? weft_elman_new :
                              i < 10 ? weft_gru_new :
                                       weft_lstm_new)(m, "rnn", &o),
                             x, WEFT_ZERO_STATE)
                    .y;
        weft_backward(weft_mean_loss(weft_mse_loss(y, weft_scale(y, 1), NULL)));
        OK(w);
        all_reached(m, i < 2 ? "linear, norm" : i < 4 ? "embed" : i < 6 ? "heads" : "rnn");
        weft_clear(w);
    }
}

/* ---- few calls: parameters of one history are one run, and a still one costs none of its own ---- */
static int updates;
static void update(weft__device *d, int64_t n, const weft__update *u, const weft__guard *past,
                   const weft__guard *g, weft_real *dx, weft_real *m, weft_real *v, weft_real *a,
                   weft_real *x)
{
    updates++;
    weft__ref.update(d, n, u, past, g, dx, m, v, a, x);
}

REF_TEST(reached, phases_update_their_own_runs)
{
    static weft__kernels counting;
    counting = weft__ref;
    counting.update = update;
    w->dev.k = &counting;
    weft_module *m = weft_module_new(w, "net"),
                *part[] = { weft_submodule_new(m, "one"), weft_submodule_new(m, "two") };
    weft_tensor *p[8];
    for (int i = 0; i < 8; i++) {
        const char *name = name_with("p", i);
        p[i] = weft_parameter(part[i / 4], name, WEFT_SHAPE(3), (weft_init){ WEFT_INIT_UNIFORM, -1, 1 });
    }
    weft_optim *o = weft_adam_new(m, NULL);
    for (int t = 0; t < 6; t++) {
        for (int i = 0; i < 8; i++)
            if (t == 5 || i / 4 == t % 2)
                weft_backward(loss_of(p[i]));
        updates = 0;
        weft_optim_step(o);
        cr_assert_eq(updates, t == 5 ? 2 : 1);
        weft_clear(w);
    }
}
