/* test_where.c - tests that a gradient of 0 stays 0 where a derivative is infinite or NaN. Elements that
 * weft_where did not select or a mask excluded affect neither gradients nor second derivatives. */
#include <float.h>
#include "tests/check.h"

typedef weft_tensor *one_fn(weft_tensor *x);
static weft_tensor *constant(weft_tensor *x, double v) { return weft_scalar(weft_context_of(x), v); }
static weft_tensor *over(weft_tensor *x)       { return weft_div(constant(x, 1), x); }
static weft_tensor *above(weft_tensor *x)      { return weft_div(x, weft_sub(x, x)); }
static weft_tensor *root(weft_tensor *x)       { return weft_pow(x, .5); }
static weft_tensor *third(weft_tensor *x)      { return weft_pow(x, -3); }
static weft_tensor *product(weft_tensor *x)    { return weft_mul(x, weft_log(weft_sub(x, x))); }
static weft_tensor *power(weft_tensor *x)      { return weft_exp(weft_mul(constant(x, 1e5), x)); }
static weft_tensor *infinite(weft_tensor *x)   { return weft_scale(x, (double)INFINITY); }
static weft_tensor *squared(weft_tensor *x)    { return weft_square(weft_exp(weft_scale(x, 1e4))); }
static weft_tensor *of_softmax(weft_tensor *x) { return weft_softmax(weft_log(weft_sub(x, x)), -1, NULL); }
static weft_tensor *of_logs(weft_tensor *x) { return weft_log_softmax(weft_log(weft_sub(x, x)), -1, NULL); }
static weft_tensor *of_sum(weft_tensor *x)
{
    return weft_reshape(weft_exp(weft_logsumexp(weft_log(x), -1, NULL)), WEFT_SHAPE(2, 1));
}
static weft_tensor *of_norm(weft_tensor *x)    { return weft_layer_norm(weft_log(x), NULL, NULL, 0); }
static weft_tensor *gate(weft_tensor *x)
{
    return weft_mul(weft_log(x), weft_sigmoid(weft_neg(weft_log(x))));
}
static weft_tensor *larger(weft_tensor *x)     { return weft_maximum(weft_log(x), weft_rsqrt(x)); }

/* Checks the gradients of the sum, and of the sum of squares, if weft_where selects nothing of f(x). */
static void nothing_selected(weft *w, const char *name, one_fn *f, bool recorded)
{
    const weft_real at[] = { 0, -1, 0, 3, (weft_real)INFINITY, (weft_real)NAN };
    weft_tensor *x = weft_reals(w, at, WEFT_SHAPE(2, 3)), *g, *second;
    weft_tensor *sum = weft_sum_all(weft_where(constant(x, 0), f(x), weft_scale(x, 2)));
    (recorded ? weft_gradients_recorded : weft_gradients)(sum, &x, 1, &g);
    weft_real *v = numbers(g);
    for (int i = 0; i < 6; i++)
        cr_assert(v[i] == 2, "%s on %s: %g", name, weft_device_name(w), (double)v[i]);
    if (!recorded)
        return;
    weft_gradients(weft_sum_all(weft_square(weft_sub(g, constant(x, 1)))), &x, 1, &second);
    v = numbers(second);
    for (int i = 0; i < 6; i++)
        cr_assert(v[i] == 0, "%s twice on %s: %g", name, weft_device_name(w), (double)v[i]);
}

TABLE_TEST(where, unselected_elements_have_gradient_zero, .init = unchecked)
{
    struct { const char *name; one_fn *f; } of[] = {
        { "sqrt", weft_sqrt },   { "rsqrt", weft_rsqrt },       { "log", weft_log },
        { "exp", weft_exp },     { "reciprocal", weft_reciprocal }, { "square", weft_square },
        { "softplus", weft_softplus }, { "gelu", weft_gelu },   { "silu", weft_silu },
        { "tanh", weft_tanh },   { "sigmoid", weft_sigmoid },   { "sin", weft_sin },
        { "over", over },        { "above", above },            { "pow .5", root },
        { "pow -3", third },     { "mul", product },            { "exp of mul", power },
        { "scale", infinite },   { "square of exp", squared },  { "softmax", of_softmax },
        { "log_softmax", of_logs }, { "logsumexp", of_sum },      { "layer_norm", of_norm },
        { "gate", gate },        { "maximum", larger },
    };
    for (int i = 0; i < COUNT(of); i++)
        for (int recorded = 0; recorded < 2; recorded++) {
            nothing_selected(w, of[i].name, of[i].f, recorded);
            OK(w);
            weft_clear(w);
        }
}

/* Each selected element keeps its derivative. */
TABLE_TEST(where, each_element_has_the_gradient_of_its_branch, .init = unchecked)
{
    struct { one_fn *f; weft_real at[3], slope[3], bend[3]; } of[] = {
        { weft_sqrt,  { -3, 0, 4 }, { 7, 7, .25f },    { 0, 0, -1 / 32.f } },
        { weft_rsqrt, { -3, 0, 4 }, { 7, 7, -1 / 16.f }, { 0, 0, 3 / 128.f } },
        { weft_log,   { -3, 0, 4 }, { 7, 7, .25f },    { 0, 0, -1 / 16.f } },
        { over,       { -3, 0, 4 }, { 7, 7, -1 / 16.f }, { 0, 0, 1 / 32.f } },
        { root,       { -3, 0, 4 }, { 7, 7, .25f },    { 0, 0, -1 / 32.f } },
    };
    for (int i = 0; i < COUNT(of); i++) {
        weft_tensor *x = weft_reals(w, of[i].at, WEFT_SHAPE(3)), *g, *second;
        weft_tensor *is = weft_greater(x, constant(x, 0));
        weft_gradients_recorded(weft_sum_all(weft_where(is, of[i].f(x), weft_scale(x, 7))), &x, 1, &g);
        close_to("slope", numbers(g), of[i].slope, 3, TOL(1e-7, 1e-6));
        weft_gradients(weft_sum_all(g), &x, 1, &second);
        close_to("bend", numbers(second), of[i].bend, 3, TOL(1e-7, 1e-6));
        weft_clear(w);
    }
}

/* An error stays visible if a nonzero gradient meets the infinite derivative. */
TABLE_TEST(where, selected_infinite_derivative_reaches_the_gradient, .init = unchecked)
{
    weft_tensor *x = weft_zeros(w, WEFT_SHAPE(1)), *g;
    weft_gradients(weft_sqrt(x), &x, 1, &g);
    cr_assert(isinf(numbers(g)[0]));
    x = weft_full(w, (double)NAN, WEFT_SHAPE(1));
    weft_gradients(weft_mul(x, x), &x, 1, &g);
    cr_assert(isnan(numbers(g)[0]));
    x = weft_zeros(w, WEFT_SHAPE(1));
    weft_tensor *bad = weft_full(w, (double)NAN, WEFT_SHAPE(1));
    weft_gradients(weft_mul(weft_mul(x, weft_scalar(w, 0)), bad), &x, 1, &g);
    cr_assert(isnan(numbers(g)[0]));         /* the gradient NaN times a factor of 0 */
}

/* In operators with their own kernels, unselected rows do not reach parameters either. */
static weft_tensor *fused_rows(int which, weft_tensor *x, weft_tensor *gain, weft_tensor *shift)
{
    switch (which) {
    case 0: return weft_layer_norm(x, gain, shift, 0);
    case 1: return weft_softmax(x, -1, NULL);
    case 2: return weft_softmax(x, 0, NULL);
    default: return weft_mul(x, gain);
    }
}

TABLE_TEST(where, unselected_rows_do_not_reach_parameters, .init = unchecked)
{
    const weft_real bad = (weft_real)INFINITY, at[] = { 1, bad, 2, bad, 4, -bad, 3, bad, 9, (weft_real)NAN };
    const weft_real rows[] = { 1, 0 }, columns[] = { 1, 0, 1, 0, 1 };
    for (int k = 0; k < 4; k++) {
        weft_tensor *x = weft_transpose(weft_reals(w, at, WEFT_SHAPE(5, 2)), 0, 1), *g[3];
        weft_tensor *is = weft_reals(w, rows, WEFT_SHAPE(2, 1));
        weft_tensor *gain = weft_reals(w, columns, WEFT_SHAPE(5)), *shift = weft_zeros(w, WEFT_SHAPE(5));
        if (k == 2)
            x = weft_transpose(x, 0, 1), is = weft_reals(w, rows, WEFT_SHAPE(1, 2));
        weft_tensor *y = weft_where(is, fused_rows(k, x, gain, shift), constant(x, 0));
        weft_gradients(weft_sum_all(weft_square(weft_sub(y, constant(x, 3)))), WEFT_LIST(x, gain, shift), g);
        for (int i = 0; i < 3; i++) {
            weft_real *v = numbers(g[i]);
            for (int64_t j = 0; j < weft_numel(g[i]); j++)
                cr_assert(isfinite(v[j]), "%d, input %d, %s: %g", k, i, weft_device_name(w), (double)v[j]);
        }
        weft_clear(w);
    }
}
