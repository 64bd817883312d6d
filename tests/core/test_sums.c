/* test_sums.c - tests that sums of many terms are within 1e-6 of the exact value on every kernel, along every
 * axis, and that an infinite sum stays infinite. */
#include "tests/check.h"

static const double values[] = { .7, .1, 1.1, 3.3e-5, .9999999 };
static const double tolerance = TOL(1e-10, 1e-6);

static void right(const char *name, double got, double want)
{
    cr_expect(fabs(got / want - 1) <= tolerance, "%s: %.9g, expected %.9g: off by %.1e", name, got, want,
              got / want - 1);
}
static int64_t many(void) { return rounds(80000, 3000000); }
static double as_real(double x) { return (double)(weft_real)x; }

TABLE_TEST(sums, are_exact_along_every_axis)
{
    for (int i = 0; i < COUNT(values); i++, weft_clear(w)) {
        const int64_t n = many();
        const double x = values[i], of = as_real(x);
        right("sum_all", weft_item(weft_sum_all(weft_full(w, x, WEFT_SHAPE(n)))), of * (double)n);
        right("mean_all", weft_item(weft_mean_all(weft_full(w, x, WEFT_SHAPE(n)))), of);
        right("rows of 1", numbers(weft_sum(weft_full(w, x, WEFT_SHAPE(n, 1)), 0))[0], of * (double)n);
        right("mean of rows of 3", numbers(weft_mean(weft_full(w, x, WEFT_SHAPE(n, 3)), 0))[2], of);
        right("last axis", numbers(weft_sum(weft_full(w, x, WEFT_SHAPE(2, n)), 1))[1], of * (double)n);
        right("along the middle", numbers(weft_mean(weft_full(w, x, WEFT_SHAPE(2, n, 2)), 1))[3], of);
    }
}
/* The gradient of a broadcast operand sums over the first and the last of three axes. */
TABLE_TEST(sums, are_exact_for_broadcast_gradients)
{
    for (int i = 0; i < COUNT(values); i++, weft_clear(w)) {
        const int64_t n = many() / 2;
        const double x = values[i];
        weft_tensor *b = weft_zeros(w, WEFT_SHAPE(3, 1)), *d;
        weft_tensor *y = weft_mul(weft_add(weft_zeros(w, WEFT_SHAPE(n, 3, 2)), b), weft_scalar(w, x));
        weft_tensor *loss = weft_sum_all(y);
        WEFT_NO_GRAD(w)
            weft_gradients(loss, &b, 1, &d);
        for (int c = 0; c < 3; c++)
            right("over both sides", numbers(d)[c], as_real(x) * 2 * (double)n);
    }
}
TABLE_TEST(sums, are_exact_over_sequences_and_cumulatively)
{
    for (int i = 0; i < COUNT(values); i++, weft_clear(w)) {
        const int32_t n = (int32_t)many();
        const double x = as_real(values[i]), all = x * n;
        const weft_lengths l = { .n = 2, .len = (int32_t[]){ 5, n } };
        weft_tensor *like = weft_ragged(w, NULL, 0, &l),
                    *one = weft_ragged_like(weft_full(w, x, WEFT_SHAPE(n + 5)), like),
                    *pool = weft_pool(one, WEFT_POOL_SUM);
        right("pool", numbers(pool)[1], all);
        weft_real *y = numbers(weft_to_layout(weft_cumsum(one, 0), WEFT_CONCAT));
        right("cumsum", y[n + 4], all);
        right("cumsum, half", y[n / 2 + 4], x * (n / 2));
    }
}
TABLE_TEST(sums, are_exact_for_bias_gradients)
{
    const int64_t n = many();
    const double x = .7, all = as_real(x) * (double)n;
    weft_module *m = weft_module_new(w, "m");
    weft_linear *l = weft_linear_new(m, "l", &(weft_linear_opts){ .in = 1, .out = 3 });
    weft_norm_layer *norm = weft_layer_norm_new(m, "n", &(weft_layer_norm_opts){ .width = 3 });
    weft_tensor *y = weft_linear_run(l, weft_full(w, .1, WEFT_SHAPE(n, 1)));
    weft_backward(weft_sum_all(weft_mul(y, weft_scalar(w, x))));
    right("linear", numbers(weft_grad(weft_find_parameter(m, "l.bias")))[1], all);
    y = weft_layer_norm_run(norm, weft_linear_run(l, weft_full(w, .1, WEFT_SHAPE(n, 1))));
    weft_backward(weft_sum_all(weft_mul(y, weft_scalar(w, x))));
    right("layer norm", numbers(weft_grad(weft_find_parameter(m, "n.bias")))[1], all);
}
/* With weights of 0 and a bias of 1, relu passes all of y's gradient to the bias. */
static void recurrent_bias(weft *w, int hidden, bool by_ids, double x)
{
    enum { SEQUENCES = 40, IDS = 3, IN = 2 };
    int32_t len[SEQUENCES];
    for (int s = 0; s < SEQUENCES; s++)
        len[s] = (int32_t)(many() / (hidden < 10 ? 2 : 40) / SEQUENCES);
    const weft_lengths l = { .n = SEQUENCES, .len = len };
    const int64_t n = (int64_t)len[0] * SEQUENCES;
    char name[32];
    snprintf(name, sizeof name, "%s%d", by_ids ? "ids" : "reals", hidden);
    weft_module *m = weft_module_new(w, name);
    weft_rnn *r = weft_elman_new(m, "r", &(weft_rnn_opts){ .input = IN, .hidden = hidden, .relu = true });
    weft_embedding *e = weft_embedding_new(m, "e", &(weft_embedding_opts){ .rows = IDS, .columns = IN });
    weft_assign(weft_find_parameter(m, "r.weight_ih_l0"), weft_zeros(w, WEFT_SHAPE(hidden, IN)));
    weft_assign(weft_find_parameter(m, "r.weight_hh_l0"), weft_zeros(w, WEFT_SHAPE(hidden, hidden)));
    weft_assign(weft_find_parameter(m, "r.bias_ih_l0"), weft_full(w, 1, WEFT_SHAPE(hidden)));
    weft_tensor *like = weft_ragged(w, NULL, 0, &l), *ids = weft_to_ints(weft_zeros(w, WEFT_SHAPE(n)));
    weft_tensor *in = by_ids ? weft_embedding_run(e, weft_ragged_like(ids, like)) :
                               weft_ragged_like(weft_zeros(w, WEFT_SHAPE(n, IN)), like);
    weft_backward(weft_sum_all(weft_mul(weft_rnn_run(r, in, WEFT_ZERO_STATE).y, weft_scalar(w, x))));
    weft_tensor *bias = weft_find_parameter(m, "r.bias_hh_l0");
    right(name, numbers(weft_grad(bias))[hidden - 1], as_real(x) * (double)n);
    weft_clear(w);
}
TABLE_TEST(sums, are_exact_for_recurrent_bias_gradients)
{
    for (int by_ids = 0; by_ids < 2; by_ids++) {
        recurrent_bias(w, 3, by_ids, .7);
        recurrent_bias(w, strcmp(weft_device_name(w), "ref") ? 230 : 5, by_ids, .7);
    }
}
TABLE_TEST(sums, are_exact_for_rows_by_index)
{
    for (int i = 0; i < COUNT(values); i++, weft_clear(w)) {
        const int64_t n = many();
        weft_tensor *index = weft_to_ints(weft_full(w, 1, WEFT_SHAPE(n)));
        weft_tensor *y = weft_index_add(weft_full(w, values[i], WEFT_SHAPE(n, 2)), index, 3);
        right("index_add", numbers(y)[3], as_real(values[i]) * (double)n);
    }
}
TABLE_TEST(sums, are_exact_in_a_long_softmax)
{
    const int64_t n = many();
    const double e = exp(-as_real(.3)), want = e / (1 + (double)(n - 1) * e);
    for (int64_t columns = 1; columns < 4; columns += 2) {
        weft_tensor *rows[] = { weft_full(w, .3, WEFT_SHAPE(1, columns)),
                                weft_zeros(w, WEFT_SHAPE(n - 1, columns)) };
        right("softmax", numbers(weft_softmax(weft_concat(rows, 2, 0), 0, NULL))[5], want);
    }
}
/* An infinite term, or a sum that overflows, does not give NaN. */
TABLE_TEST(sums, keep_infinity, .init = unchecked)
{
    enum { N = 5000 };
    static weft_real x[N];
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < N; k++)
            x[k] = i ? (weft_real)TOL(1e306, 1e36) : k == 1234 ? (weft_real)INFINITY : 1;
        cr_expect(weft_item(weft_sum_all(weft_reals(w, x, WEFT_SHAPE(N)))) == (double)INFINITY);
        cr_expect(numbers(weft_sum(weft_reals(w, x, WEFT_SHAPE(N, 1)), 0))[0] == (weft_real)INFINITY);
        weft_tensor *index = weft_to_ints(weft_zeros(w, WEFT_SHAPE(N)));
        cr_expect(numbers(weft_index_add(weft_reals(w, x, WEFT_SHAPE(N, 1)), index, 1))[0] ==
                  (weft_real)INFINITY);
        weft_clear(w);
    }
}
