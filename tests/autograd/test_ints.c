/* test_ints.c - tests operators that take ints against plain loops: arithmetic that wraps, comparisons beyond
 * float precision, where, axes, pools. Operators that refuse ints name an alternative. */
#include "tests/check.h"

enum { A = 2, B = 3, C = 4, ALL = A * B * C, BIG = 1 << 30 };

static int32_t x[ALL], y[ALL];
static void draw(void)
{
    for (int i = 0; i < ALL; i++) {
        x[i] = (int32_t)dice(9) - 4 + (dice(3) ? 0 : BIG);
        y[i] = dice(3) ? (int32_t)dice(9) - 4 : x[i] + (int32_t)dice(2);
    }
}

static void are_ints(const char *name, weft_tensor *t, const int32_t *want, int64_t n)
{
    int32_t got[4 * ALL];
    OK(weft_context_of(t));
    cr_assert(weft_dtype_of(t) == WEFT_I32 && (weft_numel(t) == n || weft_layout_of(t) == WEFT_ROWS), "%s",
              name);
    weft_read_sequences(t, got, (size_t)n * sizeof *got);
    for (int64_t i = 0; i < n; i++)
        cr_assert(got[i] == want[i], "%s: %d at %lld, expected %d", name, got[i], (long long)i, want[i]);
}

#define EACH_INT(i, value) for (int i = 0; i < ALL; i++) want[i] = (int32_t)(value)
TABLE_TEST(ints, arithmetic_wraps)
{
    int32_t want[ALL];
    draw();
    weft_tensor *a = weft_ints(w, x, WEFT_SHAPE(A, B, C)), *b = weft_ints(w, y, WEFT_SHAPE(A, B, C)),
                *row = weft_ints(w, y, WEFT_SHAPE(C)), *column = weft_ints(w, y, WEFT_SHAPE(B, 1));
    EACH_INT(i, (uint32_t)x[i] + (uint32_t)y[i]);
    are_ints("add", weft_add(a, b), want, ALL);
    EACH_INT(i, (uint32_t)x[i] - (uint32_t)y[i % C]);
    are_ints("sub", weft_sub(a, row), want, ALL);
    EACH_INT(i, (uint32_t)x[i] * (uint32_t)y[i / C % B]);
    are_ints("mul", weft_mul(a, column), want, ALL);
    EACH_INT(i, x[i] < y[i] ? x[i] : y[i]);
    are_ints("minimum", weft_minimum(a, b), want, ALL);
    EACH_INT(i, x[i] > y[i] ? x[i] : y[i]);
    are_ints("maximum", weft_maximum(a, b), want, ALL);
    const int32_t most = INT32_MAX;
    are_ints("wraps", weft_add(weft_ints(w, &most, 0, NULL), weft_ints(w, &(int32_t){ 1 }, 0, NULL)),
             &(int32_t){ INT32_MIN }, 1);
}

/* Beyond 2^24, numbers that differ by 1 are the same float. */
TABLE_TEST(ints, comparisons_are_exact)
{
    static weft_tensor *(*const compare[])(weft_tensor *, weft_tensor *) = {
        weft_less, weft_less_equal, weft_greater, weft_greater_equal, weft_equal, weft_not_equal
    };
    draw();
    weft_tensor *a = weft_ints(w, x, WEFT_SHAPE(A, B, C)), *b = weft_ints(w, y, WEFT_SHAPE(A, B, C));
    for (int f = 0; f < COUNT(compare); f++) {
        weft_real *got = numbers(compare[f](a, b));
        for (int i = 0; i < ALL; i++) {
            const bool want[] = { x[i] < y[i],  x[i] <= y[i], x[i] > y[i],
                                  x[i] >= y[i], x[i] == y[i], x[i] != y[i] };
            cr_assert(got[i] == want[f], "%d: %d, %d", f, x[i], y[i]);
        }
    }
}

TABLE_TEST(ints, where_selects_ints)
{
    int32_t want[ALL];
    draw();
    weft_tensor *a = weft_ints(w, x, WEFT_SHAPE(A, B, C)), *b = weft_ints(w, y, WEFT_SHAPE(C));
    EACH_INT(i, x[i] < y[i % C] ? x[i] : y[i % C]);
    are_ints("where", weft_where(weft_less(a, b), a, b), want, ALL);
    EACH_INT(i, x[i] ? y[i % C] : x[i]);
    are_ints("an int condition", weft_where(a, b, a), want, ALL);
    weft_real *got = numbers(weft_where(a, weft_scalar(w, 2), weft_scalar(w, 3)));
    for (int i = 0; i < ALL; i++)
        cr_assert(got[i] == (x[i] ? 2 : 3));
}

TABLE_TEST(ints, axis_operators_move_ints)
{
    int32_t want[2 * ALL];
    draw();
    weft_tensor *a = weft_ints(w, x, WEFT_SHAPE(A, B, C));
    EACH_INT(i, x[i % B * C + i / B % C + i / (B * C) * B * C]);
    are_ints("transpose", weft_transpose(a, 1, 2), want, ALL);
    are_ints("permute", weft_permute(a, (int[]){ 0, 2, 1 }), want, ALL);
    EACH_INT(i, x[i + C - 1 - 2 * (i % C)]);
    are_ints("flip", weft_flip(a, -1), want, ALL);
    EACH_INT(i, x[(A - 1 - i / (B * C)) * B * C + i % (B * C)]);
    are_ints("flip 0", weft_flip(a, 0), want, ALL);
    for (int i = 0; i < 2 * ALL; i++)
        want[i] = x[i / 2];
    are_ints("repeat_interleave", weft_repeat_interleave(a, 2, 2), want, (int64_t)2 * ALL);
    for (int i = 0; i < 2 * ALL; i++)
        want[i] = x[i % ALL];
    are_ints("tile", weft_tile(a, 0, 2), want, (int64_t)2 * ALL);
}

TABLE_TEST(ints, sums_and_extremes_match_plain_loops)
{
    int32_t sum[A * C] = { 0 }, most[A * C], least[A * C];
    draw();
    weft_tensor *a = weft_ints(w, x, WEFT_SHAPE(A, B, C));
    for (int i = 0; i < ALL; i++) {
        int to = i / (B * C) * C + i % C, first = i / C % B == 0;
        sum[to] = (int32_t)((uint32_t)sum[to] + (uint32_t)x[i]);
        most[to] = first || x[i] > most[to] ? x[i] : most[to];
        least[to] = first || x[i] < least[to] ? x[i] : least[to];
    }
    are_ints("sum", weft_sum(a, 1), sum, (int64_t)A * C);
    are_ints("max", weft_max(a, 1), most, (int64_t)A * C);
    are_ints("min", weft_min(a, 1), least, (int64_t)A * C);
}

/* ---- ragged ---- */
static const int32_t len[] = { 2, 0, 3, 1 }, ids[] = { 5, 7, BIG + 1, BIG, 3, 9 };
static weft_tensor *batch(weft *w, int layout)
{
    return laid_out(weft_ragged_ints(w, ids, &(weft_lengths){ .n = 4, .len = len }), layout);
}

TABLE_TEST(ints, ragged_ints_stay_within_their_sequences)
{
    FOR_LAYOUTS(layout) {
        weft_tensor *r = batch(w, layout);
        are_ints("flip", weft_flip(r, 0), (int32_t[]){ 7, 5, 3, BIG, BIG + 1, 9 }, 6);
        are_ints("sum", weft_pool(r, WEFT_POOL_SUM), (int32_t[]){ 12, 0, INT32_MIN + 4, 9 }, 4);
        are_ints("max", weft_pool(r, WEFT_POOL_MAX), (int32_t[]){ 7, 0, BIG + 1, 9 }, 4);
        are_ints("first", weft_pool(r, WEFT_POOL_FIRST), (int32_t[]){ 5, 0, BIG + 1, 9 }, 4);
        are_ints("last", weft_pool(r, WEFT_POOL_LAST), (int32_t[]){ 7, 0, 3, 9 }, 4);
        are_ints("add", weft_add(r, weft_ints(w, &(int32_t){ 1 }, 0, NULL)),
                 (int32_t[]){ 6, 8, BIG + 2, BIG + 1, 4, 10 }, 6);
        weft_tensor *each = weft_ints(w, (int32_t[]){ 1, 2, 3, 4 }, WEFT_SHAPE(4));
        are_ints("broadcast", weft_broadcast_to_tokens(each, r), (int32_t[]){ 1, 1, 3, 3, 3, 4 }, 6);
        are_ints("where", weft_where(weft_equal(r, weft_flip(r, 0)), r, weft_sub(r, r)),
                 (int32_t[]){ 0, 0, 0, BIG, 0, 9 }, 6);
    }
}

CPU_TEST(ints, refused_ints_name_an_alternative)
{
    weft_tensor *(*const unary[])(weft_tensor *) = { weft_neg, weft_exp, weft_square, weft_tanh, weft_sum_all,
                                                     weft_mean_all };
    for (int i = 0; i < COUNT(unary); i++) {
        unary[i](weft_ints(w, NULL, WEFT_SHAPE(2, 2)));
        FAILS(w, weft_error_code(w), "expected reals (weft_to_reals)");
    }
    weft_div(weft_ints(w, NULL, WEFT_SHAPE(2)), weft_ints(w, NULL, WEFT_SHAPE(2)));
    FAILS(w, WEFT_ESHAPE, "div: [2] of ints, [2] of ints: expected reals (weft_to_reals)");
    weft_add(weft_ints(w, NULL, WEFT_SHAPE(2)), weft_zeros(w, WEFT_SHAPE(2)));
    FAILS(w, WEFT_ESHAPE, "add: [2] of ints, [2]: reals and ints; expected one type (weft_to_reals, ");
    weft_where(weft_zeros(w, WEFT_SHAPE(2)), weft_ints(w, NULL, WEFT_SHAPE(2)), weft_zeros(w, WEFT_SHAPE(2)));
    FAILS(w, WEFT_ESHAPE, "reals and ints; expected one type (weft_to_reals, weft_to_ints)");
    weft_mean(weft_ints(w, NULL, WEFT_SHAPE(2)), 0);
    FAILS(w, WEFT_ESHAPE, "mean: [2] of ints: expected reals (weft_to_reals)");
    weft_cumsum(weft_ints(w, NULL, WEFT_SHAPE(2)), 0);
    FAILS(w, WEFT_ESHAPE, "cumsum: [2] of ints: expected reals (weft_to_reals)");
    weft_argmax(weft_ints(w, NULL, WEFT_SHAPE(2)), 0);
    FAILS(w, WEFT_ESHAPE, "argmax: [2] of ints: expected reals (weft_to_reals)");
    weft_max(weft_ints(w, NULL, WEFT_SHAPE(0)), 0);
    FAILS(w, WEFT_ESHAPE, "max: [0] of ints: the axis is empty");
    weft_pool(batch(w, WEFT_CONCAT), WEFT_POOL_MEAN);
    FAILS(w, WEFT_EARG, "pool: [6] concat of ints: a mean of ints; expected reals (weft_to_reals)");
}

/* ---- arange ---- */
TABLE_TEST(ints, arange_matches_plain_loops)
{
    are_ints("up", weft_arange(w, 2, 9, 3), (int32_t[]){ 2, 5, 8 }, 3);
    are_ints("to an end", weft_arange(w, 2, 8, 3), (int32_t[]){ 2, 5 }, 2);
    are_ints("down", weft_arange(w, 2, -3, -2), (int32_t[]){ 2, 0, -2 }, 3);
    are_ints("none", weft_arange(w, 4, 4, -1), NULL, 0);
    are_ints("ends", weft_arange(w, INT32_MIN, INT64_MAX / 2, INT64_MAX), (int32_t[]){ INT32_MIN }, 1);
    are_ints("far", weft_arange(w, INT32_MIN, INT32_MAX, INT32_MAX),
             (int32_t[]){ INT32_MIN, -1, INT32_MAX - 1 }, 3);
}

CPU_TEST(ints, invalid_aranges_are_refused)
{
    weft_arange(w, 0, 5, 0);
    FAILS(w, WEFT_EARG,
          "arange: from 0 to 5 in steps of 0; expected a step that is not 0 and leads to the end");
    weft_arange(w, 0, 5, -1);
    FAILS(w, WEFT_EARG, "arange: from 0 to 5 in steps of -1; expected a step that is not 0");
    weft_arange(w, 0, 3000000000, 1500000000);
    OK(w);
    weft_arange(w, 0, 3000000001, 1500000000);
    FAILS(w, WEFT_EARG, "fewer than 2^31 numbers that fit an int32");
    weft_arange(w, INT64_MIN, INT64_MAX, 1);
    FAILS(w, WEFT_EARG, "fewer than 2^31 numbers that fit an int32");
}
