/* test_kernels_ints.c - tests the kernels of ints, and the search for numbers outside a range, of every table
 * against the plain loops. */
#include "kernel_run.h"

/* Compares ints as reals. They have few bits, so that a float holds them. */
static void hand_in(run *t, const int32_t *x, int64_t n)
{
    CALL(to_reals, n, x, result_of(t, n, 0, 0));
}
static void play_ints(run *t)
{
    static const int functions[] = { WEFT__add, WEFT__sub, WEFT__mul, WEFT__minimum, WEFT__maximum };
    int64_t n[3];
    weft__grid g = random_nest(t, 3, n);
    int64_t all = elements(&g);
    int32_t *a = indices(t, n[0], -9, 9), *b = indices(t, n[1], -9, 9), *c = indices(t, n[2], -9, 9), *y;
    real *condition = some_zeros(reals(t, n[0], -1, 1), n[0]);
    for (int i = 0; i < COUNT(functions); i++) {
        CALL(binary_ints, functions[i], &g, a, b, y = room(t, all, sizeof *y));
        hand_in(t, y, all);
    }
    for (int f = WEFT__less; f <= WEFT__not_equal; f++)
        CALL(compare_ints, f, &g, a, b, result_of(t, all, 0, 0));
    CALL(select_ints, &g, condition, b, c, y = room(t, all, sizeof *y));
    hand_in(t, y, all);
    CALL(spread_ints, &g, a, y = room(t, all, sizeof *y));
    hand_in(t, y, all);
}
Test(kernels_ints, match_plain_loops) { everywhere("ints", play_ints, rounds(40, 2000)); }

static void play_runs_of_ints(run *t)
{
    weft__segments s = segments(t, size(7), size(4) ? 30 : 2000, coin() ? 1 : 1 + size(70));
    int64_t ends = s.count * s.inner;
    int32_t *x = indices(t, segment_rows(&s) * s.inner, -99, 99), *y;
    for (int i = 0; i < 3; i++) {
        CALL(segment_ints, &s, (int[]){ WEFT__add, WEFT__minimum, WEFT__maximum }[i], x,
             y = room(t, ends, sizeof *y));
        hand_in(t, y, ends);
    }
}
Test(kernels_ints, match_plain_runs) { everywhere("runs_of_ints", play_runs_of_ints, rounds(40, 2000)); }

/* The fault is the first number outside the range. */
static void play_range(run *t)
{
    int64_t n = flat_size(t), first = n ? size(n) : 0;
    bool wrong = n && coin();
    real *x = reals(t, n, 0, 1);
    for (int64_t i = 0; i < n; i++)
        x[i] = wrong && i >= first ? (real)(coin() ? -1 : 2) : dice(20) ? x[i] : (real)NAN;
    CALL(check_range, n, 0, 1, x);
    settle(t);
    cr_assert(t->d.fault.is == wrong && (!wrong || (t->d.fault.row == first && t->d.fault.below == -2)));
    t->d.fault = (weft__fault){ 0 };
    *result_of(t, 1, 0, 0) = wrong;
}
Test(kernels_ints, find_the_first_number_outside) { everywhere("range", play_range, rounds(40, 2000)); }
