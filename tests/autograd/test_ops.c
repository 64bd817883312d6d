/* test_ops.c - tests every operator of op_cases.def on every kernel table and random shapes. In the double
 * build it compares gradients and second derivatives with central differences (<= 1e-7, <= 1e-5, relative to
 * max(1, norm)). */
#include "op_inputs.h"

typedef struct { function *f; } probed;

/* sum y sin(1 + k): depends on order and sign */
static weft_tensor *scalar_of(weft_tensor *const *x, void *user)
{
    weft_tensor *y = ((probed *)user)->f(x, NULL);
    weft *w = weft_context_of(x[0]);
    if (!weft_ok(w) || !y)
        return y;
    weft_real *p = weft__take(w, WEFT__ARENA_BATCHES, weft__bytes(&y->f));
    for (int64_t k = 0; p && k < weft_numel(y); k++)
        p[k] = (weft_real)sin(1 + (double)k);
    return p ? weft_sum_all(weft_mul(y, weft__tensor(w, &y->f, p))) : y;
}

static double error_of(weft *w, const op_case *c, bool second)
{
    weft_tensor *x[4];
    probed p = { c->f };
    int n = inputs(w, c, x, WEFT_PLAIN);
    double e = 0;
    /* Slow twice over. Here it only has to run. */
    if (CHECK_SANITIZED && getenv("WEFT_SMALL")) {
        weft_tensor *of = scalar_of(x, &p), *g[4];
        bool was = weft_set_grad_enabled(w, false);
        weft_gradients(of, x, n, g);
        weft_set_grad_enabled(w, was);
    } else
        e = weft_gradcheck(scalar_of, x, n, 1 + second, &p);
    cr_expect(weft_ok(w), "%s: %s", c->name, weft_error_message(w));
    weft_clear(w);
    return e;
}

static void check_all(bool second, double allowed)
{
    FOR_DEVICES(w)
        FOR_CASES(c)
            for (int r = 0; r < rounds(3, 100) && c.orders >= 1 + second; r++) {
                dice_seed((uint64_t)(1 + case_i + 200 * c.variant + 1000 * r));
                draw_round();
                double e = error_of(w, &c, second);
                cr_expect(e <= allowed, "%s, shapes %d, round %d on %s: off by %.2e", c.name, c.variant, r,
                          weft_device_name(w), e);
            }
}

Test(ops, gradients_match_central_differences)        { check_all(false, TOL(1e-7, 3e-2)); }
Test(ops, second_gradients_match_central_differences) { if (sizeof(weft_real) == 8) check_all(true, 1e-5); }

/* ---- the backward pass beyond one operator ---- */
TABLE_TEST(ops, backward_handles_shared_and_unused_inputs)
{
    weft_tensor *x = weft_scalar(w, 3), *g, *y = weft_mul(x, weft_detach(weft_square(x)));
    weft_gradients(y, &x, 1, &g);
    cr_assert_eq(weft_item(g), 9);           /* x^2 is a constant there */
    weft_gradients(y, (weft_tensor *[]){ y }, 1, &g);
    cr_assert_eq(weft_item(g), 1);
    weft_gradients(x, &x, 1, &g);
    cr_assert_eq(weft_item(g), 1);
    weft_tensor *two[2], *unused = weft_scalar(w, 1);
    weft_gradients(y, (weft_tensor *[]){ x, unused }, 2, two);
    cr_assert_eq(weft_item(two[0]), 9);
    cr_assert_eq(weft_item(two[1]), 0);      /* no path leads there */
    weft_set_grad_enabled(w, false);
    weft_tensor *off = weft_square(x);
    weft_set_grad_enabled(w, true);
    FAILS_AT(w, weft_gradients(off, &x, 1, &g), WEFT_EARG, "not a result on the tape");
}

/* The output list may be the input list, or overlap it. */
TABLE_TEST(ops, gradients_may_overwrite_their_input_list)
{
    for (int recorded = 0; recorded < 2; recorded++) {
        weft_tensor *x[3] = { weft_scalar(w, 3), weft_scalar(w, 5), NULL }, *y = weft_mul(x[0], x[1]);
        void (*of)(weft_tensor *, weft_tensor *const *, int64_t, weft_tensor **) =
            recorded ? weft_gradients_recorded : weft_gradients;
        weft_tensor *again[] = { x[0], x[1], NULL };
        of(y, x, 2, x);
        cr_assert(weft_item(x[0]) == 5 && weft_item(x[1]) == 3);
        of(y, again, 2, again + 1);
        cr_assert(weft_item(again[1]) == 5 && weft_item(again[2]) == 3);
        weft_clear(w);
    }
}

/* weft_gradients returns constants. weft_gradients_recorded returns tensors with gradients, also under
 * NO_GRAD. */
TABLE_TEST(ops, gradients_are_recorded_on_request)
{
    weft_tensor *x = weft_scalar(w, 3), *y = weft_mul(x, weft_square(x)), *g, *second;
    int64_t entries = weft_usage_of(w).tape;
    weft_gradients(y, &x, 1, &g);
    cr_assert(weft_usage_of(w).tape == entries && weft_is_grad_enabled(w));
    weft_gradients(weft_add(weft_mul(x, g), y), &x, 1, &second);
    cr_assert_eq(weft_item(second), 27 + 27);
    weft_gradients(g, &x, 1, &second);
    FAILS(w, WEFT_EARG, "such as a result of weft_gradients (weft_gradients_recorded records)");
    x = weft_scalar(w, 3), y = weft_mul(x, weft_mul(x, x));
    WEFT_NO_GRAD(w) {
        weft_gradients_recorded(y, &x, 1, &g);
        cr_assert(!weft_is_grad_enabled(w));
    }
    weft_gradients_recorded(g, &x, 1, &g);
    weft_gradients(g, &x, 1, &second);
    cr_assert(weft_item(g) == 18 && weft_item(second) == 6);
}

/* For attention over 128 tokens, an unrecorded backward stores no map of all pairs. */
Test(ops, gradients_take_little_memory, .init = unchecked)
{
    enum { T = 128, D = 8 };
    int64_t peak[2];
    static weft_real v[T * D];
    for (int recorded = 0; recorded < 2; recorded++) {
        weft *w = open_on(WEFT_CPU);
        dice_fill(v, T * D, -1, 1);
        weft_tensor *x = weft_ragged(w, v, D, &(weft_lengths){ .n = 1, .len = (int32_t[]){ T } }), *g;
        weft_attention_opts o = { .heads = 1 };
        weft_tensor *loss = weft_sum_all(weft_square(weft_attention(x, x, x, &o, NULL)));
        (recorded ? weft_gradients_recorded : weft_gradients)(loss, &x, 1, &g);
        peak[recorded] = weft_usage_of(w).host_peak;
        CLEAN(w);
    }
    cr_assert(4 * peak[0] < peak[1], "%lld bytes, recorded %lld", (long long)peak[0], (long long)peak[1]);
}

/* A comparison is a constant, even of network outputs. Used as a mask it does not stop the backward pass. */
TABLE_TEST(ops, comparisons_have_no_gradient)
{
    weft_module *m = weft_module_new(w, "m");
    weft_tensor *p = weft_parameter(m, "p", WEFT_SHAPE(2, 3),
                                    (weft_init){ WEFT_INIT_CONSTANT, (weft_real).5, 0 }),
                *g[2], *x = weft_scalar(w, 2);
    weft_tensor *logits = weft_matmul(weft_full(w, 1, WEFT_SHAPE(4, 2)), p), *zero = weft_scalar(w, 0);
    weft_tensor *(*const all[])(weft_tensor *, weft_tensor *) = { weft_less,    weft_less_equal,
                                                                  weft_greater, weft_greater_equal,
                                                                  weft_equal,   weft_not_equal };
    for (int i = 0; i < COUNT(all); i++) {
        weft_tensor *mask = all[i](weft_max(logits, 1), zero);
        weft_backward(weft_mean_loss(weft_cross_entropy(logits, weft_ints(w, NULL, WEFT_SHAPE(4)),
                                                        &(weft_cross_entropy_opts){ .mask = mask })));
        OK(w);
        weft_gradients(all[i](weft_square(x), zero), (weft_tensor *[]){ x, zero }, 2, g);
        cr_assert_eq(weft_item(g[0]), 0);
        cr_assert_eq(weft_item(g[1]), 0);
    }
    weft_gradients(weft_mul(weft_greater(weft_tanh(x), zero), x), &x, 1, g);
    cr_assert_eq(weft_item(g[0]), 1);
}

TABLE_TEST(ops, backward_of_a_parameter_adds_ones)
{
    weft_module *m = weft_module_new(w, "m");
    weft_tensor *p = weft_parameter(m, "p", WEFT_SHAPE(1), (weft_init){ WEFT_INIT_CONSTANT, 3, 0 });
    weft_backward(p);
    weft_backward(weft_square(p));
    weft_backward(p);
    cr_assert_eq(numbers(weft_grad(p))[0], 1 + 2 * 3 + 1);
    weft_freeze(m, "p", true);               /* freezing sets the gradient to zero */
    FAILS_AT(w, weft_backward(p), WEFT_EARG, "backward: no trainable parameter contributes to the loss");
    cr_assert_eq(numbers(weft_grad(p))[0], 0);
}

/* ---- invalid losses ---- */
static weft_tensor *two(weft *w, weft_module **m)
{
    *m = weft_module_new(w, "m");
    return weft_parameter(*m, "p", WEFT_SHAPE(2), (weft_init){ WEFT_INIT_CONSTANT, 3, 0 });
}

TABLE_TEST(ops, loss_must_have_one_element)
{
    weft_module *m;
    weft_tensor *p = two(w, &m), *y = weft_square(p), *g;
    weft_gradients(y, &p, 1, &g);
    cr_assert_eq(numbers(g)[1], 6);
    weft_backward(y);
    FAILS(w, WEFT_ESHAPE,
          "backward: the loss is [2]; expected one element (weft_mean_loss, weft_sum_all)");
    FAILS_AT(w, weft_backward(p), WEFT_ESHAPE, "backward: the loss is [2]; expected one element");
    weft_backward(weft_reshape(weft_sum_all(weft_square(p)), WEFT_SHAPE(1, 1)));
    cr_assert(weft_ok(w) && numbers(weft_grad(p))[1] == 6, "%s", weft_error_message(w));
}

TABLE_TEST(ops, loss_can_be_used_once)
{
    weft_module *m;
    weft_tensor *p = two(w, &m), *shared = weft_square(p), *loss = weft_sum_all(shared),
                *other = weft_mean_all(shared), *g;
    weft_gradients(loss, &p, 1, &g);
    weft_backward(loss);
    weft_gradients(loss, &p, 1, &g);
    weft_backward(other);
    cr_assert(weft_ok(w) && numbers(weft_grad(p))[0] == 6 + 3, "%s", weft_error_message(w));
    FAILS_AT(w, weft_backward(loss), WEFT_EARG, "backward: the gradients of this loss were added before");
    weft_backward(weft_sum_all(weft_square(p)));
    OK(w);
}

TABLE_TEST(ops, loss_must_depend_on_a_trainable_parameter)
{
    weft_module *m;
    weft_tensor *p = two(w, &m), *none;
    weft_backward(weft_sum_all(weft_square(weft_detach(p))));
    FAILS(w, WEFT_EARG, "backward: no trainable parameter contributes to the loss");
    weft_backward(weft_sum_all(weft_less(p, weft_scalar(w, 0))));
    FAILS(w, WEFT_EARG, "no trainable parameter contributes to the loss");
    weft_freeze(m, "*", true);
    weft_backward(weft_sum_all(weft_square(p)));
    FAILS(w, WEFT_EARG, "no trainable parameter contributes to the loss");
    weft_freeze(m, "*", false);
    none = weft_ragged(w, NULL, 2, &(weft_lengths){ .n = 0 });
    /* an empty batch gives a gradient of zeros */
    weft_backward(weft_sum_all(weft_mul(none, weft_reshape(p, WEFT_SHAPE(1, 2)))));
    cr_assert(weft_ok(w) && weft__node_of(p)->has_gradient && numbers(weft_grad(p))[0] == 0, "%s",
              weft_error_message(w));
}

/* ---- values, which gradients do not determine ---- */
static void equals(weft_tensor *y, int64_t n, const double *want)
{
    weft_real *got = numbers(y), w[64];
    cr_assert_eq(weft_numel(y), n);
    for (int64_t i = 0; i < n; i++)
        w[i] = (weft_real)want[i];
    close_to("value", got, w, n, TOL(1e-14, 1e-6));
}
#define IS(y, ...) \
    equals(y, (int64_t)(sizeof((double[]){ __VA_ARGS__ }) / sizeof(double)), (double[]){ __VA_ARGS__ })

TABLE_TEST(ops, values_match_plain_loops)
{
    weft_tensor *a = weft_reals(w, (weft_real[]){ 1, 2, 3, 4, 5, 6 }, WEFT_SHAPE(2, 3)),
                *b = weft_reals(w, (weft_real[]){ 3, 2, 1 }, WEFT_SHAPE(3));
    IS(weft_add(a, b), 4, 4, 4, 7, 7, 7);
    IS(weft_less(a, b), 1, 0, 0, 0, 0, 0);
    IS(weft_equal(a, b), 0, 1, 0, 0, 0, 0);
    IS(weft_not_equal(a, b), 1, 0, 1, 1, 1, 1);
    IS(weft_greater_equal(a, b), 0, 1, 1, 1, 1, 1);
    IS(weft_less_equal(a, b), 1, 1, 0, 0, 0, 0);
    IS(weft_minimum(a, b), 1, 2, 1, 3, 2, 1);
    IS(weft_maximum(a, b), 3, 2, 3, 4, 5, 6);
    IS(weft_sum(a, 0), 5, 7, 9);
    IS(weft_mean(a, 1), 2, 5);
    IS(weft_max(a, 0), 4, 5, 6);
    IS(weft_cumsum(a, 1), 1, 3, 6, 4, 9, 15);
    IS(weft_flip(a, 1), 3, 2, 1, 6, 5, 4);
    IS(weft_transpose(a, 0, 1), 1, 4, 2, 5, 3, 6);
    IS(weft_tile(a, 0, 2), 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6);
    IS(weft_tile(a, 1, 2), 1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6);
    IS(weft_matmul_with(a, false, a, true), 14, 32, 32, 77);
    IS(weft_one_hot(weft_ints(w, (int32_t[]){ 1, -1, 0 }, WEFT_SHAPE(3)), 2), 0, 1, 0, 0, 1, 0);
    IS(weft_to_reals(weft_arange(w, 0, 3, 1)), 0, 1, 2);
    IS(weft_index_select(a, weft_ints(w, (int32_t[]){ 1, -1, 1 }, WEFT_SHAPE(3))), 4, 5, 6, 0, 0, 0, 4, 5, 6);
    IS(weft_where(weft_greater(a, weft_scalar(w, 3)), a, weft_scalar(w, 0)), 0, 0, 0, 4, 5, 6);
    IS(weft_reciprocal(weft_reals(w, (weft_real[]){ 0, 4 }, WEFT_SHAPE(2))), 0, .25);
    IS(weft_softmax(a, 1, weft_zeros(w, WEFT_SHAPE(2, 3))), 0, 0, 0, 0, 0, 0);
    IS(weft_full(w, 7, WEFT_SHAPE(2)), 7, 7);
}
