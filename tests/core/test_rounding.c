/* test_rounding.c - tests a host that changes the rounding mode of its thread after the pool's threads have
 * started. Any number of threads gives the same bits. Kernels flush denormals on a CPU with a mode for it,
 * and restore the host's mode. */
#include <fenv.h>
#include "core/cpu/rounding.h"
#include "tests/check.h"

enum { B = 24, F = 32, H = 48, TOKENS = 24 * 30, MOST = TOKENS * H };
static void upward(void)   { fesetround(FE_UPWARD); }
static void downward(void) { fesetround(FE_DOWNWARD); }
static const uint64_t flushed = (uint64_t)WEFT__DENORMALS; /* 0: no such mode */
static void flush(void) { weft__set_control(weft__control() | flushed); }
static void nearest(void)
{
    fesetround(FE_TONEAREST);
    weft__set_control(weft__control() & ~flushed);
}

/* Runs two steps on numbers of this size and calls `change` between them. Returns the outputs and gradients
 * of the second. */
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

Test(rounding, threads_use_the_mode_of_the_caller)
{
    static const struct { const char *name; void (*change)(void); weft_real scale; bool same;
    } hosts[] = { { "upward", upward, 1, false },
                  { "downward", downward, 1, false },
                  { "flush to zero", flush, (weft_real)TOL(1e-308, 1e-38), true } };
    static weft_real y[2][MOST], dx[2][MOST], untouched[MOST];
    for (int i = 0; i < COUNT(hosts); i++) {
        numbers_of(1, hosts[i].scale, nearest, untouched, dx[1]);
        numbers_of(1, hosts[i].scale, hosts[i].change, y[0], dx[0]);
        cr_expect(!flushed || !memcmp(untouched, y[0], sizeof untouched) == hosts[i].same, "%s",
                  hosts[i].name);
        for (int again = 0; again < 5; again++) {
            numbers_of(3, hosts[i].scale, hosts[i].change, y[1], dx[1]);
            same_bits(hosts[i].name, y[1], y[0], MOST);
            same_bits(hosts[i].name, dx[1], dx[0], TOKENS * F);
        }
    }
}

/* A GPU computes with denormals at full speed. */
#define FOR_CPUS(w) FOR_DEVICES(w) if (flushed && strcmp(weft_device_name(w), "cuda"))
enum { N = 200000 };
static const double tiny = TOL(1e-310, 1e-39);
static void expect_zeros(const char *name, weft_tensor *y)
{
    const weft_real *x = numbers(y);
    for (int64_t i = 0; i < weft_numel(y); i++)
        cr_assert(x[i] == 0, "%s: %g at %lld", name, (double)x[i], (long long)i);
}
/* Runs few numbers, and enough for the pool's threads. Each function must treat a denormal as 0. */
static void tiny_numbers(weft *w, int64_t n)
{
    weft_tensor *x = weft_full(w, tiny, WEFT_SHAPE(n, 1));
    expect_zeros("mul", weft_mul(x, weft_full(w, 2, WEFT_SHAPE(n, 1))));
    expect_zeros("scale", weft_scale(x, 2));
    expect_zeros("sum", weft_sum(x, 0));
    expect_zeros("cumsum", weft_cumsum(x, 0));
    expect_zeros("matmul", weft_matmul(x, weft_full(w, 2, WEFT_SHAPE(1, 3))));
    expect_zeros("index_add", weft_index_add(x, weft_to_ints(weft_zeros(w, WEFT_SHAPE(n))), 1));
    expect_zeros("sqrt", weft_sqrt(x));
}
Test(rounding, kernels_flush_denormals_and_restore_the_mode)
{
    static void (*const hosts[])(void) = { nearest, flush };
    FOR_CPUS(w)
        for (int i = 0; i < COUNT(hosts); i++, weft_clear(w)) {
            hosts[i]();
            const uint64_t mode = weft__control() & flushed;
            tiny_numbers(w, 3);
            tiny_numbers(w, N);
            cr_expect((weft__control() & flushed) == mode, "%s: the mode has changed", weft_device_name(w));
            nearest();
            OK(w);
        }
}
/* Layers treat denormal inputs as zeros, and optimisers denormal squares. */
Test(rounding, layers_and_optimisers_flush_denormals)
{
    FOR_CPUS(w) {
        weft_module *m = weft_module_new(w, "m");
        weft_rnn *r = weft_lstm_new(m, "r", &(weft_rnn_opts){ .input = F, .hidden = H });
        const weft_lengths l = { .n = 1, .len = (int32_t[]){ 7 } };
        weft_tensor *like = weft_ragged(w, NULL, 0, &l), *in[2];
        in[0] = weft_ragged_like(weft_full(w, tiny, WEFT_SHAPE(7, F)), like);
        in[1] = weft_ragged_like(weft_zeros(w, WEFT_SHAPE(7, F)), like);
        same_bits("lstm", numbers(weft_rnn_run(r, in[0], WEFT_ZERO_STATE).y),
                  numbers(weft_rnn_run(r, in[1], WEFT_ZERO_STATE).y), 7 * H);
        weft_module *of_p = weft_module_new(w, "p");
        weft_tensor *p = weft_parameter(of_p, "p", WEFT_SHAPE(9), (weft_init){ WEFT_INIT_CONSTANT, 1, 0 });
        weft_optim *o = weft_adam_new(of_p, &(weft_adam_opts){ .eps = TOL(1e-160, 1e-25) });
        weft_backward(weft_sum_all(weft_scale(p, TOL(1e-155, 1e-20))));
        weft_optim_step(o);
        OK(w);
        /* the second moment is 0, so only eps is in the denominator */
        cr_expect(numbers(p)[8] < -10, "%s: %g", weft_device_name(w), (double)numbers(p)[8]);
    }
}
