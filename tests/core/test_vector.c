/* test_vector.c - tests exp, log, tanh and sigmoid of each kernel table. */
#include "tests/check.h"
#include "core/inside.h"
#include "core/cpu/vector.h"

enum { POINTS = 4096 };
static long double logistic_l(long double x) { return 1 / (1 + expl(-x)); }
static const struct function {
    const char *name; int unary; long double (*want)(long double); double low, high;
} functions[] = {
    { "exp", WEFT__exp, expl, -87, 88 },
    { "exp", WEFT__exp, expl, -1, 1 },
    { "log", WEFT__log, logl, 1e-30, 1e3 },
    { "log", WEFT__log, logl, .9, 1.1 },
    { "tanh", WEFT__tanh, tanhl, -12, 12 },
    { "tanh", WEFT__tanh, tanhl, -1, 1 },
    { "tanh", WEFT__tanh, tanhl, -1e-6, 1e-6 },
    { "sigmoid", WEFT__sigmoid, logistic_l, -87, 40 },
    { "sigmoid", WEFT__sigmoid, logistic_l, -3, 3 },
};
static void apply(weft *w, int unary, int64_t n, const real *x, real *y)
{
    w->dev.k->unary(&w->dev, unary, 0, n, 0, 0, x, NULL, NULL, y, false);
    w->dev.k->wait(&w->dev);
}
static void check_function(weft *w, const struct function *f)
{
    real x[POINTS], y[POINTS];
    for (int round = 0; round < rounds(40, 2000); round++) {
        dice_fill(x, POINTS, f->low, f->high);
        apply(w, f->unary, POINTS, x, y);
        for (int i = 0; i < POINTS; i++) {
            long double want = f->want((long double)x[i]), normal = fmaxl(fabsl(want), (long double)V_NORMAL);
            long double ulp = ldexpl(1, ilogbl(normal) - V_FRACTION);
            cr_assert(fabsl((long double)y[i] - want) <= 4 * ulp, "%s: %s(%.17g) is %.17g, not %.17Lg",
                      weft_device_name(w), f->name, (double)x[i], (double)y[i], want);
        }
    }
}
TABLE_TEST(vector, functions_are_within_four_ulp)
{
    for (int i = 0; i < COUNT(functions); i++)
        check_function(w, &functions[i]);
}

static void check_ends(weft *w, int unary)
{
    static const real x[16] = {
        -(real)INFINITY, (real)INFINITY, (real)NAN, 0, -(real)0, -1000, 1000, V_NORMAL
    };
    const char *where = weft_device_name(w);
    real y[16];
    apply(w, unary, 16, x, y);
    cr_assert(isnan(y[2]), "%s: NaN is not kept", where);
    if (unary == WEFT__exp)
        cr_assert(y[0] == 0 && y[1] == INFINITY && y[3] == 1 && y[4] == 1 && y[5] == 0 && y[6] == INFINITY &&
                      y[7] == 1,
                  "%s: exp", where);
    if (unary == WEFT__log)
        cr_assert(isnan(y[0]) && y[1] == INFINITY && y[3] == -INFINITY && y[4] == -INFINITY && isnan(y[5]) &&
                      isfinite(y[7]),
                  "%s: log", where);
    if (unary == WEFT__tanh)
        cr_assert(y[0] == -1 && y[1] == 1 && y[3] == 0 && y[4] == 0 && y[5] == -1 && y[6] == 1 &&
                      y[7] == x[7],
                  "%s: tanh", where);
    if (unary == WEFT__sigmoid)
        cr_assert(y[0] == 0 && y[1] == 1 && y[3] == (real).5 && y[4] == (real).5 && y[5] == 0 && y[6] == 1,
                  "%s: sigmoid", where);
}
TABLE_TEST(vector, functions_are_correct_at_the_ends_of_their_range)
{
    cr_assert(signbit(v_tanh(v_set(-(real)0))[0]) && !signbit(v_tanh(v_set(0))[0]));
    for (int i = 0; i < COUNT(functions); i++)
        check_ends(w, functions[i].unary);
}
