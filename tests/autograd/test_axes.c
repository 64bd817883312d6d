/* test_axes.c - tests operators along an axis against plain loops: extremes and their indices, ties and NaN,
 * variances, top k, permutations, stacks, repeats, reals as ints. Axis 0 of a ragged tensor is refused.
 * test_ops.c tests the derivatives. */
#include "tests/check.h"
#include "core/inside.h"

enum { A = 3, B = 4, C = 5, ALL = A * B * C };

/* Draws from few values, so that many are equal. nan: every 7th is NaN. */
static weft_real *drawn_few(weft_real *x, int64_t n, bool nan)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = nan && dice(7) == 0 ? (weft_real)NAN : (weft_real)dice(4) - 2;
    return x;
}
/* offset in [A, B, C] of row r of a run along the axis */
static int64_t at_of(int axis, int64_t run, int64_t r)
{
    int64_t inner = axis == 0 ? B * C : axis == 1 ? C : 1, n = axis == 0 ? A : axis == 1 ? B : C;
    return run / inner * inner * n + r * inner + run % inner;
}
#define ARE(name, y, n, ...) same_bits(name, numbers(y), ((weft_real[]){ __VA_ARGS__ }), n)
static const int64_t extent[3] = { A, B, C };

static int32_t *ints_of(weft_tensor *x, int32_t *out)
{
    cr_assert_eq(weft_dtype_of(x), WEFT_I32);
    cr_assert_eq(read_status(x, out, (size_t)weft_numel(x) * sizeof *out), WEFT_OK, "%s",
                 weft_error_message(x->w));
    return out;
}

/* Returns whether u sorts before v: the larger one, or with sign -1 the smaller one. NaN sorts first. */
static bool is_before(double u, double v, int sign)
{
    return isnan(u) ? !isnan(v) : sign * u > sign * v;
}

/* Checks that values and indices [.., k, ..] are the best k of each run along the axis, ties by position. */
static void are_best(const weft_real *x, int axis, int64_t k, int sign, weft_tensor *values,
                     weft_tensor *indices)
{
    int32_t got[ALL];
    int64_t n = extent[axis], runs = ALL / n, inner = axis == 0 ? B * C : axis == 1 ? C : 1;
    OK(weft_context_of(values));
    cr_assert(weft_numel(values) == runs * k && weft_numel(indices) == runs * k);
    ints_of(indices, got);
    for (int64_t run = 0; run < runs; run++) {
        bool used[C] = { false };
        for (int64_t i = 0; i < k; i++) {
            int64_t best = -1, at = (run / inner * k + i) * inner + run % inner;
            for (int64_t r = 0; r < n; r++)
                if (!used[r] && (best < 0 || is_before((double)x[at_of(axis, run, r)],
                                                       (double)x[at_of(axis, run, best)], sign)))
                    best = r;
            used[best] = true;
            weft_real want = x[at_of(axis, run, best)], is = numbers(values)[at];
            cr_assert(got[at] == best && (is == want || (isnan(is) && isnan(want))), "axis %d, k %d, %d",
                      axis, (int)k, (int)i);
        }
    }
}

TABLE_TEST(axes, extremes_and_topk_break_ties_by_position, .init = unchecked)
{
    for (int round = 0; round < 8; round++, weft_clear(w))
        for (int axis = 0; axis < 3; axis++) {
            weft_real x[ALL];
            weft_tensor *values, *indices,
                *t = weft_reals(w, drawn_few(x, ALL, round % 2), WEFT_SHAPE(A, B, C));
            are_best(x, axis, 1, 1, weft_max(t, axis), weft_argmax(t, axis - 3));
            are_best(x, axis, 1, -1, weft_min(t, axis - 3), weft_argmin(t, axis));
            for (int64_t k = 0; k <= extent[axis]; k++) {
                weft_topk(t, k, axis, &values, &indices);
                cr_assert_eq(weft_size(values, axis), k);
                are_best(x, axis, k, 1, values, indices);
            }
        }
}

TABLE_TEST(axes, extremes_send_the_gradient_to_the_first_tie)
{
    weft_tensor *x = weft_reals(w, (weft_real[]){ 2, 1, 2, 1 }, WEFT_SHAPE(1, 4)), *g;
    weft_gradients(weft_max(x, 1), &x, 1, &g);
    ARE("max", g, 4, 1, 0, 0, 0);
    weft_gradients(weft_min(x, 1), &x, 1, &g);
    ARE("min", g, 4, 0, 1, 0, 0);
}

/* ---- variances ---- */
/* From torch.var(torch.tensor([1., 2., 4., 8.])) and .std(): 9.583333, 3.095696; correction 0: 7.1875.
 * Numbers far from 0 need the mean subtracted first. */
TABLE_TEST(axes, variances_match_pytorch)
{
    weft_tensor *y = weft_reals(w, (weft_real[]){ 1, 2, 4, 8 }, WEFT_SHAPE(1, 4, 1));
    for (int far = 0; far < 2; far++) {
        weft_tensor *x = weft_add(y, weft_scalar(w, far * 100));
        close_to("var", numbers(weft_var(x, 1, 1)), (weft_real[]){ (weft_real)(115. / 12) }, 1, 1e-6);
        close_to("std", numbers(weft_std(x, -2, 1)), (weft_real[]){ (weft_real)3.0956959 }, 1, 1e-6);
        close_to("var", numbers(weft_var(x, 1, 0)), (weft_real[]){ (weft_real)7.1875 }, 1, 1e-6);
    }
}

TABLE_TEST(axes, variances_are_defined_for_no_one_or_equal_elements)
{
    weft_tensor *none = weft_zeros(w, WEFT_SHAPE(2, 0)), *one = weft_full(w, 7, WEFT_SHAPE(2, 1)),
                *equal = weft_full(w, 3, WEFT_SHAPE(2, 4)), *g;
    const weft_real zeros[8] = { 0 };
    for (int correction = 0; correction < 3; correction++) {
        same_bits("nothing", numbers(weft_var(none, 1, correction)), zeros, 2);
        same_bits("nothing", numbers(weft_std(none, 1, correction)), zeros, 2);
        same_bits("one", numbers(weft_var(one, 1, correction)), zeros, 2);
        same_bits("one", numbers(weft_std(one, 1, correction)), zeros, 2);
    }
    weft_tensor *std = weft_std(equal, 1, 1);
    same_bits("equal", numbers(std), zeros, 2);
    weft_gradients(std, &equal, 1, &g);
    for (int i = 0; i < 8; i++)
        cr_assert(numbers(g)[i] == 0, "as in PyTorch");
    FAILS_AT(w, weft_var(equal, 1, -1), WEFT_EARG, "var: [2, 4]: correction -1; expected 0 or more");
    FAILS_AT(w, weft_std(weft_zeros(w, WEFT_SHAPE(2)), 0, (double)NAN), WEFT_EARG, "std: [2]: correction");
}

/* ---- ragged ---- */
static const int32_t len[4] = { 3, 0, 5, 2 };
static const weft_lengths lengths = { .n = 4, .len = len };

static weft_tensor *ragged_of(weft *w, int64_t features)
{
    return weft_ragged(w, (weft_real[10 * C]){ 0 }, features, &lengths);
}
TABLE_TEST(axes, topk_works_on_ragged_rows)
{
    FOR_LAYOUTS(layout) {
        weft_real x[10 * C], want[10 * 2];
        dice_fill(x, 10 * C, -1, 1);
        weft_tensor *values, *indices, *g, *t = laid_out(weft_ragged(w, x, C, &lengths), layout);
        weft_topk(t, 2, -1, &values, &indices);
        int32_t at[20];
        ints_of(weft_to_layout(indices, WEFT_CONCAT), at);
        for (int i = 0; i < 20; i++)
            want[i] = x[i / 2 * C + at[i]];
        same_bits("values", numbers(weft_to_layout(values, WEFT_CONCAT)), want, 20);
        weft_gradients(values, &t, 1, &g);
        weft_real *dx = numbers(weft_to_layout(g, WEFT_CONCAT));
        for (int i = 0; i < 10 * C; i++)
            cr_assert_eq(dx[i], at[i / C * 2] == i % C || at[i / C * 2 + 1] == i % C);
        FAILS_AT(w, weft_topk(t, 1, 0, &values, NULL), WEFT_ESHAPE, "topk: ");
        cr_assert(values == &w->nil);
    }
}

/* ---- axes and copies ---- */
TABLE_TEST(axes, permute_matches_plain_loops)
{
    static const int orders[][3] = { { 1, 0, -1 }, { 1, 2, 0 }, { -1, 0, 1 }, { 2, -2, -3 } };
    weft_real x[ALL];
    weft_tensor *t = weft_reals(w, dice_fill(x, ALL, -1, 1), WEFT_SHAPE(A, B, C)),
                *want[] = { weft_transpose(t, 0, 1), weft_transpose(weft_transpose(t, 0, 1), 1, 2),
                            weft_transpose(weft_transpose(t, 0, 2), 1, 2), weft_transpose(t, 0, 2) };
    for (int o = 0; o < COUNT(orders); o++) {
        weft_tensor *y = weft_permute(t, orders[o]);
        same_bits("permute", numbers(y), numbers(want[o]), ALL);
        cr_assert(weft_size(y, 0) == weft_size(want[o], 0) && weft_size(y, 2) == weft_size(want[o], 2));
    }
    cr_assert_eq(weft_item(weft_permute(weft_scalar(w, 4), NULL)), 4);
    weft_permute(t, (int[]){ 0, 1, 1 });
    FAILS(w, WEFT_EARG, "permute: [3, 4, 5]: axis 1 at position 2; expected each of 0 .. 2 once");
    weft_permute(ragged_of(w, 2), (int[]){ 1, 0 });
    FAILS(w, WEFT_ESHAPE, "expected the ragged rows in axis 0");
}

TABLE_TEST(axes, stack_matches_plain_loops)
{
    weft_tensor *a = weft_reals(w, (weft_real[]){ 1, 2, 3 }, WEFT_SHAPE(3)),
                *b = weft_reals(w, (weft_real[]){ 4, 5, 6 }, WEFT_SHAPE(3)), *both[] = { a, b };
    ARE("first", weft_stack(both, 2, 0), 6, 1, 2, 3, 4, 5, 6);
    weft_tensor *last = weft_stack(both, 2, -1);
    ARE("last", last, 6, 1, 4, 2, 5, 3, 6);
    cr_assert(weft_size(last, 0) == 3 && weft_size(last, 1) == 2);
    int32_t got[2];
    weft_tensor *ones[] = { weft_ints(w, (int32_t[]){ 8 }, 0, NULL),
                            weft_ints(w, (int32_t[]){ 9 }, 0, NULL) };
    ints_of(weft_stack(ones, 2, 0), got);
    cr_assert(got[0] == 8 && got[1] == 9);
    weft_stack((weft_tensor *[]){ a, weft_zeros(w, WEFT_SHAPE(2)) }, 2, 0);
    FAILS(w, WEFT_ESHAPE, "stack: input 1 is [2], input 0 [3]; expected one shape");
    weft_stack((weft_tensor *[]){ weft_scalar(w, 1), NULL }, 2, 0);
    FAILS(w, WEFT_EARG, "stack: input 1 is NULL");
    weft_stack((weft_tensor *[]){ weft_scalar(w, 1) }, 1, 1);
    FAILS(w, WEFT_ESHAPE, "stack: []: new axis 1");
}

TABLE_TEST(axes, stack_works_on_ragged_tensors)
{
    weft_real x[10], y[10], want[20];
    weft_tensor *a = weft_ragged(w, dice_fill(x, 10, -1, 1), 0, &lengths),
                *b = weft_ragged(w, dice_fill(y, 10, -1, 1), 0, &lengths);
    for (int i = 0; i < 20; i++)
        want[i] = i % 2 ? y[i / 2] : x[i / 2];
    FOR_LAYOUTS(layout) {
        weft_tensor *both[] = { laid_out(a, layout), b }, *s = weft_stack(both, 2, 1);
        same_bits("ragged", numbers(weft_to_layout(s, WEFT_CONCAT)), want, 20);
        FAILS_AT(w, weft_stack(both, 2, 0), WEFT_ESHAPE, "a new axis 0; expected the ragged rows there");
        a = weft_ragged(w, x, 0, &lengths), b = weft_ragged(w, y, 0, &lengths);
    }
    weft_stack(
        (weft_tensor *[]){ a, weft_ragged(w, y, 0, &(weft_lengths){ .n = 1, .len = (int32_t[]){ 10 } }) },
        2, 1);
    FAILS(w, WEFT_ESHAPE, "stack: ");
}

TABLE_TEST(axes, repeat_interleave_matches_plain_loops)
{
    weft_tensor *a = weft_reals(w, (weft_real[]){ 1, 2, 3, 4 }, WEFT_SHAPE(2, 2));
    ARE("rows", weft_repeat_interleave(a, 0, 2), 8, 1, 2, 1, 2, 3, 4, 3, 4);
    ARE("last", weft_repeat_interleave(a, -1, 3), 12, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4);
    cr_assert_eq(weft_numel(weft_repeat_interleave(a, 1, 0)), 0);
    FAILS_AT(w, weft_repeat_interleave(ragged_of(w, 2), 0, 2), WEFT_ESHAPE, "repeat_interleave: ");
    weft_repeat_interleave(weft_zeros(w, WEFT_SHAPE(2)), 0, -1);
    FAILS(w, WEFT_ESHAPE, "repeat_interleave: [2]: axis 0, -1 times");
}

TABLE_TEST(axes, to_ints_rounds_to_the_nearest_even, .init = unchecked)
{
    const weft_real x[] = { 0, (weft_real)-0.5, .5, 1.5, 2.5, -1.5, -2.5, (weft_real).49999997,
                            (weft_real)-.49999997, (weft_real)-.50000006, 7, (weft_real)-1e-30,
                            (weft_real)16777217, -2147483648.f, 2147483520.f, 8388607.5f };
    const int32_t want[] = { 0, 0, 0, 2, 2, -2, -2, 0, 0, -1, 7, 0, (int32_t)(weft_real)16777217,
                             INT32_MIN, 2147483520, 8388608 };
    int32_t got[COUNT(x)];
    ints_of(weft_to_ints(weft_reals(w, x, WEFT_SHAPE(COUNT(x)))), got);
    for (int i = 0; i < COUNT(x); i++)
        cr_assert_eq(got[i], want[i], "%g: %d", (double)x[i], got[i]);
    static const double none[] = { NAN, INFINITY, -INFINITY, 2147483648., -2147483904., 1e30 };
    for (int i = 0; i < COUNT(none); i++) {
        weft_real two[] = { 1, 2, (weft_real)none[i], 3, (weft_real)NAN };
        weft_tensor *y = weft_to_ints(weft_reals(w, two, WEFT_SHAPE(5)));
        int32_t at[5];
        if (weft_ok(w))
            weft_read(y, at, sizeof at);     /* a GPU reports the error here */
        FAILS(w, WEFT_EARG, "element 2");
    }
    FAILS_AT(w, weft_to_ints(weft_arange(w, 0, 3, 1)), WEFT_ESHAPE, "to_ints: [3] of ints: expected reals");
}

/* ---- axis 0 of a ragged tensor is ambiguous ---- */
TABLE_TEST(axes, axis_0_of_a_ragged_tensor_is_refused)
{
    weft_tensor *(*const all[])(weft_tensor *, int) = { weft_sum, weft_mean,   weft_max,
                                                        weft_min, weft_argmax, weft_argmin };
    static const char *const names[] = { "sum: ", "mean: ", "max: ", "min: ", "argmax: ", "argmin: " };
    FOR_LAYOUTS(layout)
        for (int i = 0; i < 2 * COUNT(all) + 2; i++) {
            weft_tensor *x = laid_out(ragged_of(w, 2), layout);
            if (i < 2 * COUNT(all))
                all[i / 2](x, i % 2 ? -2 : 0);
            else
                (i % 2 ? weft_var : weft_std)(x, 0, 1);
            cr_assert(strstr(weft_error_message(w), "weft_pool") &&
                          strstr(weft_error_message(w), "weft_sum_all") &&
                          strstr(weft_error_message(w), "weft_plain"), "%s", weft_error_message(w));
            FAILS(w, WEFT_ESHAPE, i < 2 * COUNT(all) ? names[i / 2] : i % 2 ? "var: " : "std: ");
        }
    weft_real x[20], sums[2] = { 0 };
    dice_fill(x, 20, -1, 1);
    for (int i = 0; i < 20; i++)
        sums[i % 2] += x[i];
    weft_tensor *t = weft_ragged(w, x, 2, &lengths);
    close_to("over all tokens", numbers(weft_sum(weft_plain(t), 0)), sums, 2, TOL(1e-12, 1e-5));
    same_bits("columns", numbers(weft_to_layout(weft_sum(t, 1), WEFT_CONCAT)),
              numbers(weft_sum(weft_plain(t), 1)), 10);
}

CPU_TEST(axes, gradcheck_accepts_its_orders)
{
    weft_tensor *x = weft_scalar(w, 2);
    cr_assert(isnan(weft_gradcheck(NULL, &x, 1, 3, NULL)));
    FAILS(w, WEFT_EARG, "gradcheck: order 3; expected 1 or 2");
}

/* ---- norms ---- */
TABLE_TEST(axes, norms_are_accurate_for_all_sizes)
{
    const double size[] = { 1, 1e-30, 1e-18, 1e18, 3e37 };
    for (int i = 0; i < COUNT(size); i++) {
        double s = size[i];
        weft_tensor *x = weft_scale(weft_reals(w, (weft_real[]){ 3, -4, 0, 0, 0, 0 }, WEFT_SHAPE(2, 3)), s);
        weft_real *two = numbers(weft_vector_norm(x, -1, 2)), *one = numbers(weft_vector_norm(x, 1, 1)),
                  *most = numbers(weft_vector_norm(x, 1, (double)INFINITY)),
                  *down = numbers(weft_vector_norm(x, 0, 0));
        cr_assert(fabs((double)two[0] / s - 5) < 3e-6 && two[1] == 0, "%g: %g", s, (double)two[0]);
        cr_assert(fabs((double)one[0] / s - 7) < 4e-6 && one[1] == 0);
        cr_assert(fabs((double)most[0] / s - 4) < 3e-6 && most[1] == 0);
        cr_assert(fabs((double)down[0] / s - 3) < 3e-6 && fabs((double)down[1] / s - 4) < 3e-6 &&
                  down[2] == 0);
    }
}

/* The norm of a zero vector has first and second derivatives of 0. */
TABLE_TEST(axes, norm_of_zero_has_zero_derivatives)
{
    const double powers[] = { 2, 1, (double)INFINITY };
    for (int i = 0; i < COUNT(powers); i++) {
        weft_tensor *x = weft_reals(w, (weft_real[]){ 0, 0, 3, 4 }, WEFT_SHAPE(2, 2)), *g, *second;
        weft_gradients_recorded(weft_sum_all(weft_vector_norm(x, 1, powers[i])), &x, 1, &g);
        const weft_real want[][2] = { { (weft_real).6, (weft_real).8 }, { 1, 1 }, { 0, 1 } };
        const weft_real *v = numbers(g), slope[] = { 0, 0, want[i][0], want[i][1] };
        close_to("gradient", v, slope, 4, 1e-6);
        if (i)
            continue;
        weft_gradients(weft_slice(weft_slice(g, 0, 1, 2), 1, 0, 1), &x, 1, &second);
        v = numbers(second);                 /* derivative of x / |x|: 1 / 5 - 9 / 125, -12 / 125 */
        close_to("second", v, ((weft_real[]){ 0, 0, (weft_real).128, (weft_real)-.096 }), 4, 1e-6);
        weft_gradients(weft_sum_all(weft_slice(g, 0, 0, 1)), &x, 1, &second);
        for (int k = 0; k < 4; k++)
            cr_assert_eq(numbers(second)[k], 0);
    }
}

CPU_TEST(axes, norms_handle_edge_cases, .init = unchecked)
{
    const weft_real inf = (weft_real)INFINITY, nan = (weft_real)NAN;
    weft_tensor *x = weft_reals(w, (weft_real[]){ 1, inf, nan, 1, -inf, nan }, WEFT_SHAPE(3, 2));
    for (int i = 0; i < 3; i++) {
        weft_real *v = numbers(weft_vector_norm(x, 1, i < 2 ? i + 1 : (double)INFINITY));
        cr_assert(isinf(v[0]) && v[0] > 0 && isnan(v[1]) && isnan(v[2]));
    }
    cr_assert_eq(numbers(weft_vector_norm(weft_zeros(w, WEFT_SHAPE(2, 0)), 1, 2))[1], 0);
    cr_assert_eq(weft_numel(weft_vector_norm(weft_zeros(w, WEFT_SHAPE(0, 2)), 1, 2)), 0);
    OK(w);
    FAILS_AT(w, weft_vector_norm(x, 1, 3), WEFT_EARG, "power 3; expected 1, 2 (or 0) or INFINITY");
    weft_vector_norm(weft_ints(w, NULL, WEFT_SHAPE(2)), 0, 2);
    FAILS(w, WEFT_EARG, "expected reals (weft_to_reals)");
    weft_vector_norm(weft_ragged(w, NULL, 2, &(weft_lengths){ .n = 0 }), 0, 2);
    FAILS(w, WEFT_ESHAPE, "axis 0 of a ragged tensor");
}
