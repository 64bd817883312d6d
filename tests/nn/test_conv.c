/* test_conv.c - tests convolutions over tokens: plain loops at sizes that need several pieces, the same bits
 * in any batch, layout and thread count, neighbours of NaN, plain inputs, and refused options. Values and
 * gradients of small layers are in tests/golden/windows.json. */
#include "layers.h"

static const weft_conv_opts kinds[] = {
    { .in = 3, .out = 4, .width = 3 },
    { .in = 3, .out = 4, .width = 4, .dilation = 2, .causal = true },
    { .in = 3, .out = 4, .width = 3, .stride = 2 },
    { .in = 3, .out = 4, .width = 2, .dilation = 3, .padding = WEFT_CONV_VALID },
    { .in = 3, .out = 4, .width = 1 },
};

/* Returns the sum of W_k x over the window of row t, in double. */
static double row_of(const weft_conv_opts *o, const weft_real *weight, double bias, const weft_real *x,
                     int64_t len, int64_t t, int64_t to)
{
    const int64_t dilation = o->dilation ? o->dilation : 1, stride = o->stride ? o->stride : 1,
                  span = dilation * (o->width - 1),
                  from = o->padding == WEFT_CONV_VALID ? 0 :
                         o->causal                     ? -span :
                                                         -(span / 2);
    double sum = bias;
    for (int64_t k = 0; k < o->width; k++) {
        const int64_t at = t * stride + from + k * dilation;
        for (int64_t i = 0; at >= 0 && at < len && i < o->in; i++)
            sum += (double)weight[(to * o->in + i) * o->width + k] * (double)x[at * o->in + i];
    }
    return sum;
}

/* Tables that copy windows have pieces of 2^18 numbers: several here, the last one short. */
TABLE_TEST(conv, pieces_match_plain_loops)
{
    enum { ALL = 700, WIDE = 64, NARROW = 5 };
    static weft_real rows[ALL * WIDE];
    const weft_conv_opts o = { .in = WIDE, .out = NARROW, .width = 20, .dilation = 2 };
    const weft_lengths l = { .n = 3, .len = (int32_t[]){ 300, 399, 1 } };
    weft_module *m = weft_module_new(w, "m");
    weft_conv *c = weft_conv_new(m, "c", &o);
    weft_tensor *x = weft_ragged(w, dice_fill(rows, ALL * WIDE, -1, 1), WIDE, &l), *y = weft_conv_run(c, x);
    const weft_real *got = numbers(y), *weight = of(m, "c.weight"), *bias = of(m, "c.bias");
    double apart = 0;
    for (int64_t s = 0, first = 0; s < l.n; first += l.len[s++])
        for (int64_t t = 0; t < l.len[s]; t++)
            for (int64_t to = 0; to < NARROW; to++)
                apart = fmax(apart, fabs((double)*got++ - row_of(&o, weight, (double)bias[to],
                                                                 rows + first * WIDE, l.len[s], t, to)));
    cr_assert(apart <= TOL(1e-13, 2e-5), "off by %.2e", apart);
    /* the gradients of the fused form against those of windows and a product */
    weft_tensor *by[] = { x, weft_find_parameter(m, "c.weight"), weft_find_parameter(m, "c.bias") }, *g[2][3];
    weft_tensor *loss = weft_sum_all(weft_square(y));
    weft_gradients(loss, by, 3, g[0]);
    weft_gradients_recorded(loss, by, 3, g[1]);
    for (int i = 0; i < 3; i++)
        close_to("gradient", numbers(g[0][i]), numbers(g[1][i]), weft_numel(by[i]), TOL(1e-11, 2e-3));
}

/* ---- bits ---- */
enum { IN = 3, OUT = 4, LONG = 1500 };
typedef struct {
    weft_real y[OUT * (LONG + 20)], dx[IN * (LONG + 20)];
} computed;

/* Returns the number of result rows. */
static int64_t compute(const weft_conv_opts *o, int threads, weft_layout layout, const weft_real *rows,
                       const weft_lengths *l, computed *to)
{
    weft *w = weft_open(&(weft_opts){ .device = WEFT_CPU, .seed = 1, .threads = threads });
    weft_module *m = weft_module_new(w, "m");
    weft_conv *c = weft_conv_new(m, "c", o);
    weft_tensor *x = weft_ragged(w, rows, IN, l), *y = weft_conv_run(c, weft_to_layout(x, layout)), *g;
    const int64_t n = weft_size(y, 0);
    cr_assert(n * OUT <= COUNT(to->y));
    weft_gradients(weft_sum_all(weft_mul(y, weft_sin(y))), &x, 1, &g);
    weft_read_sequences(y, to->y, (size_t)(n * OUT) * sizeof *to->y);
    weft_read_sequences(g, to->dx, (size_t)(weft_size(x, 0) * IN) * sizeof *to->dx);
    cr_assert(weft_ok(w), "%s", weft_error_message(w));
    weft_close(w);
    return n;
}

/* A sequence has the same bits alone on one thread, and in a batch of any layout with a neighbour of NaN. */
Test(conv, sequences_have_the_same_bits_in_any_batch, .init = unchecked)
{
    static const int32_t lens[] = { 3, 0, LONG, 1, 7, 5 };
    static weft_real rows[(LONG + 16) * IN];
    static computed all, one;
    for (int k = 0; k < COUNT(kinds); k++)
        for (int way = 0; way < 3; way++) {
            dice_seed(3), dice_fill(rows, COUNT(rows), -1, 1);
            for (int i = 0; way == 2 && i < 3 * IN; i++) /* sequence 0 */
                rows[i] = i % 2 ? (weft_real)NAN : (weft_real)INFINITY;
            compute(&kinds[k], 3, way == 1 ? WEFT_PACKED : WEFT_CONCAT, rows,
                    &(weft_lengths){ .n = COUNT(lens), .len = lens }, &all);
            for (int64_t s = 0, first = 0, row = 0; s < COUNT(lens); first += lens[s++]) {
                int64_t n = compute(&kinds[k], 1, WEFT_CONCAT, rows + first * IN,
                                    &(weft_lengths){ .n = 1, .len = lens + s }, &one);
                if (way < 2 || s) {
                    same_bits("y", all.y + row * OUT, one.y, n * OUT);
                    same_bits("dx", all.dx + first * IN, one.dx, lens[s] * IN);
                }
                row += n;
            }
        }
}

/* Gradients of weights have the same bits with any number of threads. */
Test(conv, weight_gradients_have_the_same_bits_on_any_threads, .init = unchecked)
{
    static weft_real rows[LONG * IN], value[2][IN * OUT * 3 + OUT];
    dice_fill(rows, COUNT(rows), -1, 1);
    for (int t = 0; t < 2; t++) {
        weft *w = weft_open(&(weft_opts){ .device = WEFT_CPU, .seed = 1, .threads = 1 + 2 * t });
        weft_module *m = weft_module_new(w, "m");
        weft_conv *c = weft_conv_new(m, "c", &kinds[0]);
        weft_tensor *x = weft_ragged(w, rows, IN, &(weft_lengths){ .n = 1, .len = (int32_t[]){ LONG } });
        weft_backward(weft_sum_all(weft_square(weft_conv_run(c, x))));
        weft_read(weft_grad(weft_find_parameter(m, "c.weight")), value[t], IN * OUT * 3 * sizeof(weft_real));
        weft_read(weft_grad(weft_find_parameter(m, "c.bias")), value[t] + IN * OUT * 3,
                  OUT * sizeof(weft_real));
        cr_assert(weft_ok(w));
        weft_close(w);
    }
    same_bits("gradient", value[1], value[0], COUNT(value[0]));
}

/* ---- forms and refusals ---- */
TABLE_TEST(conv, plain_input_gives_the_rows_of_full_sequences)
{
    enum { S = 3, T = 5 };
    weft_real rows[S * T * IN];
    weft_module *m = weft_module_new(w, "m");
    dice_fill(rows, COUNT(rows), -1, 1);
    for (int k = 0; k < COUNT(kinds); k++) {
        weft_conv *c = weft_conv_new(m, name_with("c", k), &kinds[k]);
        weft_tensor *plain = weft_conv_run(c, weft_reals(w, rows, WEFT_SHAPE(S, T, IN))),
                    *ragged_one = weft_conv_run(
                        c,
                        weft_ragged(w, rows, IN, &(weft_lengths){ .n = S, .len = (int32_t[]){ T, T, T } }));
        cr_assert(weft_rank(plain) == 3 && weft_size(plain, 0) == S && weft_size(plain, 2) == OUT &&
                  weft_size(plain, 1) * S == weft_size(ragged_one, 0));
        same_bits("plain", numbers(plain), numbers(ragged_one), weft_numel(plain));
        cr_assert_eq(weft_size(weft_conv_run(c, weft_zeros(w, WEFT_SHAPE(0, T, IN))), 0), 0);
        cr_assert_eq(weft_numel(weft_conv_run(c, weft_zeros(w, WEFT_SHAPE(2, 0, IN)))), 0);
    }
}

/* An empty batch gives gradients of 0. */
TABLE_TEST(conv, empty_batches_have_gradients_of_zero)
{
    for (int k = 0; k < COUNT(kinds); k++) {
        weft_module *m = weft_module_new(w, name_with("m", k));
        weft_conv *c = weft_conv_new(m, "c", &kinds[k]);
        weft_tensor *x = weft_ragged(w, NULL, IN, &(weft_lengths){ .n = 2, .len = (int32_t[]){ 0, 0 } });
        weft_backward(weft_sum_all(weft_conv_run(c, x)));
        OK(w);
        for (int i = 0; i < weft_parameter_count(m); i++) {
            weft_tensor *p = weft_parameter_at(m, i, NULL);
            const weft_real *g = numbers(weft_grad(p));
            for (int64_t j = 0; j < weft_numel(p); j++)
                cr_assert_eq(g[j], 0);
        }
    }
}

CPU_TEST(conv, bad_options_and_inputs_are_reported)
{
    static const struct {
        weft_conv_opts o;
        const char *message;
    } bad[] = {
        { { .out = 2, .width = 3 }, "in is 0, or missing" },
        { { .in = 2, .out = 2 }, "width is 0, or missing" },
        { { .in = 2, .out = 2, .width = 3, .dilation = -1 }, "dilation -1" },
        { { .in = 2, .out = 2, .width = 3, .stride = -2 }, "stride -2" },
        { { .in = 2, .out = 2, .width = 3, .padding = (weft_conv_padding)7 }, "padding 7" },
        { { .in = 2, .out = 2, .width = 3, .padding = WEFT_CONV_VALID, .causal = true },
          "causal with WEFT_CONV_VALID" },
    };
    weft_module *m = weft_module_new(w, "m");
    for (int i = 0; i < COUNT(bad); i++) {
        weft_conv_new(m, "c", &bad[i].o);
        FAILS(w, WEFT_EARG, bad[i].message);
    }
    weft_conv *c = weft_conv_new(m, "c", &kinds[0]);
    weft_conv_run(c, ragged(w, 2, &some));
    FAILS(w, WEFT_ESHAPE,
          "conv: the input is [9, 2] concat; expected ragged [N, 3] or plain [n, T, 3] of reals");
    weft_conv_run(c, weft_zeros(w, WEFT_SHAPE(4, 3)));
    FAILS(w, WEFT_ESHAPE, "conv: the input is [4, 3]");
    weft_conv_run(NULL, ragged(w, 3, &some));
    FAILS(w, WEFT_EARG, "conv");
}
