/* test_scan.c - tests weft_scan and weft_shift against their definitions in loops. Parts of a sequence,
 * neighbours and layouts change no bit. */
#include "tests/check.h"

enum { N = 5, W = 37, TOKENS = 23 };
static const int32_t len[N] = { 7, 0, 12, 1, 3 };

static weft_tensor *ragged(weft *w, int64_t width, double low, double high)
{
    static weft_real x[TOKENS * W];
    return weft_ragged(w, dice_fill(x, TOKENS * width, low, high), width,
                       &(weft_lengths){ .n = N, .len = len });
}
static weft_tensor *plain(weft *w, int64_t rows, int64_t width)
{
    static weft_real x[N * W];
    return weft_reals(w, dice_fill(x, rows * width, -1, 1), WEFT_SHAPE(rows, width));
}
static weft_tensor *in_layout(weft_tensor *x, int layout)
{
    static const int32_t row[N] = { 0, 0, 1, 0, 1 }, column[N] = { 0, 7, 0, 8, 12 };
    return layout == 2 ? weft_to_rows(x, &(weft_placement){ 2, 15, row, column }) :
                         weft_to_layout(x, layout ? WEFT_PACKED : WEFT_CONCAT);
}
static weft_real *in_order(weft_tensor *x) { return numbers(weft_to_layout(x, WEFT_CONCAT)); }

/* y_t = a_t y_(t - 1) + b_t, in double; the steps between elements of a are `row` and `column` */
static void by_definition(const weft_real *a, int row, int column, const weft_real *b, const weft_real *first,
                          bool reverse, weft_real *y)
{
    for (int s = 0, from = 0; s < N; from += len[s++])
        for (int j = 0; j < W; j++) {
            double before = first ? (double)first[s * W + j] : 0;
            for (int i = 0; i < len[s]; i++) {
                int t = from + (reverse ? len[s] - 1 - i : i);
                before = (double)a[t * row + j * column] * before + (double)b[t * W + j];
                y[t * W + j] = (weft_real)before;
            }
        }
}

TABLE_TEST(scan, is_its_definition_in_every_layout)
{
    dice_seed(3);
    static weft_real want[TOKENS * W];
    for (int k = 0; k < 24; k++) {
        const int layout = k % 3, shape = k / 3 % 4;
        const bool reverse = k % 2, given = k % 5 < 3;
        weft_tensor *full = ragged(w, W, -1, 1), *column = ragged(w, 1, -1, 1), *b = ragged(w, W, -1, 1),
                    *first = plain(w, N, W), *row = plain(w, 1, W), *number = weft_scalar(w, -.7);
        weft_tensor *const a[] = { full, column, weft_reshape(row, WEFT_SHAPE(W)), number };
        by_definition(numbers(a[shape]), (const int[]){ W, 1, 0, 0 }[shape],
                      (const int[]){ 1, 0, 1, 0 }[shape], numbers(b), given ? numbers(first) : NULL, reverse,
                      want);
        weft_tensor *factors = shape < 2 ? in_layout(a[shape], (layout + k / 12) % 3) : a[shape];
        weft_tensor *y = weft_scan(factors, in_layout(b, layout), 0, given ? first : NULL, reverse);
        close_to("scan", in_order(y), want, TOKENS * W, TOL(1e-14, 2e-6));
        weft_clear(w);
    }
}

/* Sums of these numbers are exact, so weft_cumsum, which rounds once, gives the same bits. */
TABLE_TEST(scan, of_factors_1_is_the_running_sum)
{
    weft_real x[TOKENS * W];
    for (int i = 0; i < TOKENS * W; i++)
        x[i] = (weft_real)((i * 7919) % 513 - 256) / 64;
    weft_tensor *b = weft_ragged(w, x, W, &(weft_lengths){ .n = N, .len = len }), *one = weft_scalar(w, 1);
    same_bits("sum", in_order(weft_scan(one, b, 0, NULL, false)), in_order(weft_cumsum(b, 0)), TOKENS * W);
    weft_tensor *back = weft_flip(weft_cumsum(weft_flip(b, 0), 0), 0);
    same_bits("from the end", in_order(weft_scan(one, b, 0, NULL, true)), in_order(back), TOKENS * W);
    weft_tensor *square = weft_reals(w, x, WEFT_SHAPE(4, 5, W));
    same_bits("axis 1", numbers(weft_scan(one, square, 1, NULL, false)), numbers(weft_cumsum(square, 1)),
              20 * W);
}

TABLE_TEST(scan, of_a_joined_sequence_is_that_of_its_parts)
{
    dice_seed(5);
    static const int32_t cut[N] = { 3, 0, 12, 0, 1 };
    const weft_lengths parts = { .n = N, .len = cut };
    weft_tensor *a = ragged(w, W, -1, 1), *b = ragged(w, W, -1, 1), *a1, *a2, *b1, *b2;
    weft_tensor *first = plain(w, N, W);
    weft_split_sequences(a, &parts, &a1, &a2);
    weft_split_sequences(b, &parts, &b1, &b2);
    weft_tensor *y1 = weft_scan(a1, b1, 0, first, false), *last = weft_pool(y1, WEFT_POOL_LAST);
    weft_real kept[N * W];                       /* a sequence without a first part keeps its first */
    for (int s = 0; s < N; s++)
        memcpy(kept + s * W, numbers(cut[s] ? last : first) + s * W, W * sizeof *kept);
    weft_tensor *y2 = weft_scan(a2, b2, 0, weft_reals(w, kept, WEFT_SHAPE(N, W)), false);
    same_bits("parts", in_order(weft_concat_sequences(y1, y2)), in_order(weft_scan(a, b, 0, first, false)),
              TOKENS * W);
}

/* Values of sequence 2 alone, or in company with NaN in sequence 0, then gradients of a, b and first. */
static void found_alone(weft *w, bool alone, int layout, weft_real *out)
{
    enum { FROM = 7, ROWS = 12, ALL = ROWS * W };
    static weft_real a[TOKENS * W], b[TOKENS * W], first[N * W];
    dice_seed(9);
    dice_fill(a, TOKENS * W, -1, 1), dice_fill(b, TOKENS * W, -1, 1), dice_fill(first, N * W, -1, 1);
    a[3] = b[W] = first[2] = (weft_real)NAN;
    const weft_lengths l = { .n = alone ? 1 : N, .len = len + 2 * alone };
    const int64_t from = alone ? FROM * W : 0, s = alone ? 2 * W : 0;
    weft_tensor *x[] = { laid_out(weft_ragged(w, a + from, W, &l), layout), weft_ragged(w, b + from, W, &l),
                         weft_reals(w, first + s, WEFT_SHAPE(l.n, W)) };
    weft_tensor *y = weft_scan(x[0], x[1], 0, x[2], true), *dx[3];
    weft_gradients(weft_sum_all(weft_square(y)), x, 3, dx);
    const weft_real *const at[] = { in_order(y), in_order(dx[0]), in_order(dx[1]), numbers(dx[2]) };
    for (int k = 0; k < 4; k++)
        memcpy(out + k * ALL, at[k] + (alone ? 0 : k < 3 ? FROM * W : 2 * W),
               (size_t)(k < 3 ? ALL : W) * sizeof *out);
}

TABLE_TEST(scan, of_a_sequence_does_not_depend_on_others, .init = unchecked)
{
    static weft_real alone[4 * 12 * W], together[4 * 12 * W];
    FOR_LAYOUTS(layout) {
        found_alone(w, true, layout, alone);
        found_alone(w, false, layout, together);
        same_bits("in company", together, alone, 3 * 12 * W + W);
        weft_clear(w);
    }
}

TABLE_TEST(scan, of_nothing_is_nothing)
{
    static const int32_t none[] = { 0, 0 };
    const weft_lengths l = { .n = 2, .len = none };
    weft_tensor *x[] = { weft_ragged(w, NULL, 3, &l), weft_ragged(w, NULL, 3, &l), plain(w, 2, 3) }, *dx[3];
    weft_tensor *y = weft_scan(x[0], x[1], 0, x[2], false);
    weft_gradients(weft_sum_all(y), x, 3, dx);
    cr_assert(weft_size(y, 0) == 0 && weft_size(dx[0], 0) == 0 && weft_size(dx[1], 0) == 0);
    same_bits("dfirst", numbers(dx[2]), ((weft_real[6]){ 0 }), 6);
    y = weft_scan(weft_scalar(w, 1), weft_zeros(w, WEFT_SHAPE(2, 0, 3)), 1, NULL, true);
    cr_assert(weft_numel(y) == 0);
    cr_assert(weft_numel(weft_shift(weft_zeros(w, WEFT_SHAPE(0, 3)), 2, NULL)) == 0);
}

/* A gradient of 0 stays 0, though a factor or a result is infinite. */
TABLE_TEST(scan, passes_on_gradients_of_0, .init = unchecked)
{
    weft_real values[] = { 1, 2, (weft_real)INFINITY, 4 };
    weft_tensor *a = weft_reals(w, values, WEFT_SHAPE(4)), *b = weft_reals(w, values, WEFT_SHAPE(4)), *dx[2];
    weft_tensor *y = weft_slice(weft_scan(a, b, 0, NULL, false), 0, 0, 2);
    weft_gradients(weft_sum_all(y), (weft_tensor *[]){ a, b }, 2, dx);
    same_bits("da", numbers(dx[0]), ((weft_real[]){ 0, 1, 0, 0 }), 4);
    same_bits("db", numbers(dx[1]), ((weft_real[]){ 3, 1, 0, 0 }), 4);
}

CPU_TEST(scan, refuses_other_shapes)
{
    weft_scan(weft_zeros(w, WEFT_SHAPE(4)), ragged(w, 3, 0, 1), 0, NULL, false);
    FAILS(w, WEFT_ESHAPE, "scan: [4]: factors a; expected [23, 3] concat, or what broadcasts to it");
    weft_tensor *b = ragged(w, 3, 0, 1);
    weft_scan(b, b, 0, weft_zeros(w, WEFT_SHAPE(4, 3)), false);
    FAILS(w, WEFT_ESHAPE, "first; expected [5, 3]: b without the axis, with a row for each sequence");
    weft_scan(ragged(w, 3, 0, 1), weft_zeros(w, WEFT_SHAPE(TOKENS, 3)), 0, NULL, false);
    FAILS(w, WEFT_ESHAPE, "scan: ");
    weft_scan(NULL, weft_zeros(w, WEFT_SHAPE(2)), 0, NULL, false);
    FAILS(w, WEFT_EARG, "scan: input 0 is NULL");
    weft_scan(weft_scalar(w, 1), weft_zeros(w, WEFT_SHAPE(2)), 1, NULL, false);
    FAILS(w, WEFT_EARG, "scan: [2] has no axis 1");
    weft_scan(weft_scalar(w, 1), weft_ints(w, NULL, WEFT_SHAPE(2)), 0, NULL, false);
    FAILS(w, WEFT_ESHAPE, "expected reals (weft_to_reals)");
    weft_shift(ragged(w, 3, 0, 1), 1, weft_zeros(w, WEFT_SHAPE(4, 3)));
    FAILS(w, WEFT_ESHAPE, "shift: [4, 3]: fill; expected [3] or a row for each sequence");
    weft_shift(weft_ints(w, NULL, WEFT_SHAPE(2)), 1, weft_scalar(w, 0));
    FAILS(w, WEFT_ESHAPE, "shift: []: fill; expected [] of ints");
}

TABLE_TEST(shift, is_its_definition_in_every_layout)
{
    dice_seed(4);
    weft_real want[TOKENS * 3];
    for (int k = 0; k < 21; k++) {
        const int by = k % 7 - 3, kind = k / 7;  /* of fill: none, a row, a row for each sequence */
        weft_tensor *x = ragged(w, 3, -1, 1), *one = plain(w, 1, 3), *each = plain(w, N, 3);
        const weft_real *v = numbers(x), *fill = numbers(kind == 1 ? one : each);
        for (int s = 0, from = 0; s < N; from += len[s++])
            for (int i = 0; i < len[s] * 3; i++) {
                const int t = i / 3 - by;
                want[from * 3 + i] = t >= 0 && t < len[s] ? v[(from + t) * 3 + i % 3] :
                                     kind == 0            ? 0 :
                                                            fill[(kind == 1 ? 0 : s) * 3 + i % 3];
            }
        one = kind == 0 ? NULL : kind == 1 ? weft_reshape(one, WEFT_SHAPE(3)) : each;
        same_bits("shift", in_order(weft_shift(in_layout(x, k % 3), by, one)), want, TOKENS * 3);
        weft_clear(w);
    }
}

TABLE_TEST(shift, of_targets_is_the_input_of_a_decoder)
{
    int32_t ids[] = { 5, 6, 7, 8 }, shifted[4];
    weft_tensor *x = weft_ragged_ints(w, ids, &(weft_lengths){ .n = 3, .len = (int32_t[]){ 3, 0, 1 } });
    weft_tensor *begin = weft_ints(w, (int32_t[]){ 1 }, 0, NULL);
    weft_read_sequences(weft_shift(x, 1, begin), shifted, sizeof shifted);
    cr_assert(!memcmp(shifted, ((int32_t[]){ 1, 5, 6, 1 }), sizeof shifted));
}
