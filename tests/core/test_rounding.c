/* test_rounding.c - a host that changes how its thread rounds, after the pool's threads have started, has the
 * same bits from any number of threads; and its own mode, flags and traps are its own. */
#include <fenv.h>
#include "tests/check.h"
#if defined __SSE__
#include <xmmintrin.h>
#endif

enum { B = 24, F = 32, H = 48, TOKENS = 24 * 30, MOST = TOKENS * H };
static void upward(void)   { fesetround(FE_UPWARD); }
static void downward(void) { fesetround(FE_DOWNWARD); }
static void flush(void)                          /* denormals to zero, in and out */
{
#if defined __SSE__
    _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
}
static void nearest(void)
{
    fesetround(FE_TONEAREST);
#if defined __SSE__
    _mm_setcsr(_mm_getcsr() & ~0x8040u);
#endif
}

/* Two steps of numbers of that size, the host's `change` between them: the second's outputs and gradients. */
static void numbers_of(int threads, weft_real scale, void (*change)(void), weft_real *y, weft_real *dx)
{
    weft *w = open_with((weft_opts){ .device = WEFT_CPU, .threads = threads, .seed = 5 });
    weft_module *m = weft_module_new(w, "m");
    weft_rnn *r = weft_lstm_new(m, "r", &(weft_rnn_opts){ .input = F, .hidden = H });
    static weft_real x[TOKENS * F];
    int32_t len[B];
    for (int s = 0; s < B; s++)
        len[s] = TOKENS / B;
    dice_seed(3);
    dice_fill(x, TOKENS * F, -1, 1);
    for (int i = 0; i < TOKENS * F; i++)
        x[i] *= scale;
    for (int step = 0; step < 2; step++, weft_clear(w)) {
        if (step == 1)
            change();
        weft_tensor *in = weft_ragged(w, x, F, &(weft_lengths){ .n = B, .len = len }), *d;
        weft_tensor *out =
                        weft_mul(weft_rnn_run(r, in, WEFT_ZERO_STATE).y, weft_full(w, scale, WEFT_SHAPE(H))),
                    *loss = weft_sum_all(out);
        weft_set_grad_enabled(w, false);
        weft_gradients(loss, &in, 1, &d);
        weft_set_grad_enabled(w, true);
        OK(w);
        memcpy(y, numbers(out), MOST * sizeof *y);
        memcpy(dx, numbers(d), TOKENS * F * sizeof *dx);
    }
    nearest();
    CLEAN(w);
}

Test(rounding, threads_take_the_callers)
{
    static const struct { const char *name; void (*change)(void); weft_real scale;
    } hosts[] = { { "upward", upward, 1 },
                  { "downward", downward, 1 },
                  { "flush to zero", flush, (weft_real)TOL(1e-308, 1e-38) } };
    static weft_real y[2][MOST], dx[2][MOST], untouched[MOST];
    for (int i = 0; i < COUNT(hosts); i++) {
        numbers_of(1, hosts[i].scale, nearest, untouched, dx[1]);
        numbers_of(1, hosts[i].scale, hosts[i].change, y[0], dx[0]);
#if defined __SSE__
        cr_expect(memcmp(untouched, y[0], sizeof untouched), "%s changes nothing", hosts[i].name);
#endif
        for (int again = 0; again < 5; again++) {
            numbers_of(3, hosts[i].scale, hosts[i].change, y[1], dx[1]);
            same_bits(hosts[i].name, y[1], y[0], MOST);
            same_bits(hosts[i].name, dx[1], dx[0], TOKENS * F);
        }
    }
}
