/* test_draws.c - tests random numbers: the same bits on every instruction set and device, accurate to a few
 * ulp. */
#include "kernel_run.h"
#include "core/cpu/cpu.h"
#include "core/shared/normal.h"

/* ---- the same bits everywhere ---- */
RUN_TEST(draws, have_the_same_bits_on_every_table)
{
    enum { NUMBERS = 20011 };
    static real want[NUMBERS];
    const real a = (real)-.37, b = (real)1.13;   /* a + b u must round twice */
    for (int normal = 0; normal < 2; normal++) {
        real *y = room(t, NUMBERS, sizeof *y);
        weft__random(NUMBERS, 0x1234567890abcdefu, 3, normal, a, b, want);
        CALL(random, NUMBERS, 0x1234567890abcdefu, 3, normal, a, b, y);
        same_bits(t->k->name, y, want, NUMBERS);
    }
}

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
Test(draws, have_the_recorded_bits)  /* Recorded on one machine; every other machine must reproduce them. */
{
    static const struct { uint64_t draw, bits;
    } known[] = {
        { 0, 0x401aa4499161cd47 },
        { 0x0123456789abcdef, 0xc009977215aaf13d },
        { 0xfedcba9876543210, 0xbfb77c3c298ba2ca },
        { 0x8000000080000000, 0xbff2d6abe42fce9e },
        { 0xfffffffe40000001, 0xbd21c5831ae1d445 },
        { 0x00000001c0ffee11, 0x3fc4964ec7f9d8a9 },
    };
    for (int i = 0; i < COUNT(known); i++)
        cr_expect_eq(bits_of(weft__standard_normal(known[i].draw)), known[i].bits, "draw %llx gives %llx",
                     (unsigned long long)known[i].draw,
                     (unsigned long long)bits_of(weft__standard_normal(known[i].draw)));
}

/* ---- accuracy ---- */
static double off(double got, long double want)  /* Error in ulp of the expected value. */
{
    double near = (double)want;
    return (double)fabsl(((long double)got - want) /
                         (long double)(nextafter(fabs(near), INFINITY) - fabs(near)));
}
Test(draws, compute_log_within_two_ulp_and_cos_within_three)
{
    const long double turn = 6.28318530717958647692528676655900577L;
    double worst_log = 0, worst_cos = 0;
    for (uint64_t i = 0; i < (uint64_t)rounds(200000, 20000000); i++) {
        uint64_t draw = weft__philox_draw(11, i);
        double u = i % 3 ? ((double)(draw >> 32) + 1) * 0x1p-32 : 1 - weft__uniform(draw),
               v = i % 2 ? (double)(uint32_t)draw * 0x1p-32 : weft__uniform(draw);
        u = i % 7 ? u : 1 - (double)(draw >> 44) * 0x1p-53;      /* near 1 */
        if (u < 1)
            worst_log = fmax(worst_log, off(weft__log(u), logl(u)));
        else
            cr_assert_eq(weft__log(u), 0);
        long double c = cosl(turn * (long double)v);
        if (fabsl(c) > 1e-3L)                    /* nearer to 0, the rounding of the angle would dominate */
            worst_cos = fmax(worst_cos, off(weft__cos_of_turns(v), c));
    }
    cr_expect(worst_log < 2 && worst_cos < 3, "log %.2f ulp, cos %.2f ulp", worst_log, worst_cos);
    cr_expect(weft__cos_of_turns(0) == 1 && weft__cos_of_turns(.25) == 0 && weft__cos_of_turns(.5) == -1 &&
              weft__cos_of_turns(.75) == 0);
    cr_expect(isfinite(weft__standard_normal(0)) && weft__standard_normal(~(uint64_t)0) == 0);
}

/* ---- the open end ---- */

/* Draws at the end of the range: the largest u, and the normal number of the smallest u. */
Test(draws, stay_below_one_at_the_end_of_the_range)
{
    const float a[] = { 0, 1, 100, 1e8f, -1, .1f }, b[] = { 1, 1, 1, 8, 1, .2f };
    for (int i = 0; i < COUNT(a); i++) {
        float y = weft__random_float(UINT64_MAX, false, a[i], b[i]);
        cr_assert(y >= a[i] && y < a[i] + b[i], "%.9g", (double)y);
        double z = weft__random_double(UINT64_MAX, false, (double)a[i], (double)b[i]);
        cr_assert(z >= (double)a[i] && z < (double)a[i] + (double)b[i], "%.17g", z);
    }
    cr_assert_eq(weft__random_float(UINT64_MAX, false, 3, 0), 3);
    cr_assert_eq(weft__random_float(UINT64_MAX, false, 1e8f, 1e-8f), 1e8f);
    const uint64_t ends[] = { 0, 1, UINT32_MAX, (uint64_t)UINT32_MAX << 32, UINT64_MAX };
    for (int i = 0; i < COUNT(ends); i++)
        cr_assert(isfinite(weft__standard_normal(ends[i])) && fabs(weft__standard_normal(ends[i])) < 7);
}

CPU_TEST(draws, refuse_a_dropout_that_rounds_to_one)
{
    weft_tensor *x = weft_full(w, 1, WEFT_SHAPE(64));
    const double p[] = { 1, 1 - 1e-17, TOL(1, 1 - 1e-9), -1, NAN };
    for (int i = 0; i < COUNT(p); i++) {
        FAILS_AT(w, weft_dropout(x, p[i], "d", false), WEFT_EARG, "dropout");
        x = weft_full(w, 1, WEFT_SHAPE(64));
    }
    const double fine[] = { 0, 1e-300, .5, 1 - 1e-4 };
    for (int i = 0; i < COUNT(fine); i++) {
        const weft_real *y = numbers(weft_dropout(x, fine[i], "d", false));
        for (int k = 0; k < 64; k++)
            cr_assert(isfinite(y[k]) && (i > 1 || fabs((double)y[k] - 1) < 1e-6));
    }
}
