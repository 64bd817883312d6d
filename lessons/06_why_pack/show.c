/* Lesson 6: compares a padded batch with the same batch packed, in both directions. */
#include "weft_op.h"
#include "weft_plot.h"
#include "common/lesson.h"
#include "given.h"

enum { N = 8, T = 8, CELLS = N * T * UNITS };
static const int32_t len[N] = { 4, 6, 8, 5, 4, 3, 7, 8 };
static const weft_lengths lengths = { .n = N, .len = len };

/* ---- the layers ---- */
static const char *const weights[] = { "weight_ih", "weight_hh", "bias_ih", "bias_hh" };

weft_tensor *weight_of(const layers *l, const char *name, bool reverse, bool own)
{
    char path[64];
    snprintf(path, sizeof path, "%s.%s_l0%s",
             !own    ? "both" :
             reverse ? "back" :
                       "fore",
             name, !own && reverse ? "_reverse" : "");
    return weft_find_parameter(l->m, path);
}

layers layers_new(weft *w)
{
    const weft_rnn_opts opts = { .input = INPUTS, .hidden = UNITS };
    weft_rnn_opts two = opts;
    two.bidirectional = true;
    layers l = { .m = weft_module_new(w, "m") };
    l.both = weft_lstm_new(l.m, "both", &two);
    l.one[0] = weft_lstm_new(l.m, "fore", &opts),
    l.one[1] = weft_lstm_new(l.m, "back", &opts);
    for (int k = 0; k < 8; k++)
        weft_assign(weight_of(&l, weights[k / 2], k % 2, true),
                    weight_of(&l, weights[k / 2], k % 2, false));
    return l;
}

weft_tensor *padded_of(weft *w, unsigned seed, int n, int steps, const int32_t *of,
                       double pad)
{
    double x[n * steps * INPUTS + 1];
    dice_seed(seed);
    dice_fill(x, n * steps * INPUTS);
    for (int i = 0; i < n * steps * INPUTS; i++)
        if (i / INPUTS % steps >= of[i / INPUTS / steps])
            x[i] = pad;
    return weft_reals(w, x, WEFT_SHAPE(n, steps, INPUTS));
}

/* ---- the differences that the pads cause ---- */
typedef enum { NAIVE, REPAIRED } program;
typedef struct {
    double y, h, loss, gradient, token[N * T];
} difference;
enum { WEIGHTS = 4 * UNITS * (INPUTS + UNITS + 2) };
typedef struct {
    double y[CELLS], h[N * UNITS], loss, gradient[WEIGHTS];
} numbers;

/* Computes the gradient of the loss by all weights of a direction. */
static void gradients(weft_tensor *loss, const layers *l, int direction, bool own,
                      double *to)
{
    weft_tensor *by[4], *d[4];
    for (int k = 0; k < 4; k++)
        by[k] = weight_of(l, weights[k], direction, own);
    weft_gradients(loss, by, 4, d);
    for (int k = 0; k < 4; to += weft_numel(by[k++]))
        weft_read(d[k], to, (size_t)weft_numel(by[k]) * sizeof *to);
}

/* Reads y, h_n, the loss and its gradient of one direction. out.y: [N, T, 2 UNITS], or
 * [N, T, UNITS] from a layer of one direction. */
static numbers read_of(weft_rnn_out out, weft_tensor *loss, const layers *l,
                       int direction)
{
    numbers r;
    bool two = weft_size(out.y, 2) == 2 * UNITS;
    int64_t from = two ? direction * UNITS : 0, row = two ? direction : 0;
    weft_read(weft_slice(out.y, 2, from, from + UNITS), r.y, sizeof r.y);
    weft_read(weft_slice(out.last.h, 0, row, row + 1), r.h, sizeof r.h);
    r.loss = weft_item(loss);
    gradients(loss, l, direction, !two, r.gradient);
    return r;
}

static weft_tensor *half(weft_tensor *y, int direction)
{
    return weft_slice(y, 2, direction * UNITS, (direction + 1) * UNITS);
}

static numbers packed(const layers *l, weft_tensor *x, int direction)
{
    weft_rnn_out out =
        weft_rnn_run(l->both, weft_pack_padded_sequence(x, &lengths, WEFT_ALIGN_LEFT),
                     WEFT_ZERO_STATE);
    out.y = weft_pad_packed_sequence(out.y, T, 0, WEFT_ALIGN_LEFT);
    weft_tensor *sum = weft_sum_all(weft_square(half(out.y, direction)));
    return read_of(out, weft_scale(sum, 1.0 / (45 * UNITS)), l, direction);
}

static numbers by_padding(const layers *l, weft_tensor *x, int direction, program p)
{
    weft_tensor *mask =
        weft_length_mask(weft_context_of(x), &lengths, T, WEFT_ALIGN_LEFT);
    if (p == NAIVE) {
        weft_rnn_out out = weft_rnn_run(l->both, x, WEFT_ZERO_STATE);
        weft_tensor *loss = weft_mean_all(weft_square(half(out.y, direction)));
        return read_of(out, loss, l, direction);
    }
    weft_rnn_out out = run_padded(l->one[direction], x, mask, direction);
    return read_of(out, mean_square(out.y, mask), l, direction);
}

static double larger(double a, double b)
{
    return isnan(b) || isnan(a) ? NAN : a > b ? a : b;
}

/* Returns the largest differences in tokens, h_n, the loss and its gradient. */
static difference differ(int direction, double pad, program p)
{
    weft *w = lesson_open(6);
    layers l = layers_new(w);
    weft_tensor *x = padded_of(w, 6, N, T, len, pad);
    numbers want = packed(&l, x, direction), got = by_padding(&l, x, direction, p);
    difference d = { 0 };
    for (int i = 0; i < CELLS; i++)
        if (i / UNITS % T < len[i / UNITS / T]) {
            d.token[i / UNITS] = larger(d.token[i / UNITS], fabs(want.y[i] - got.y[i]));
            d.y = larger(d.y, d.token[i / UNITS]);
        }
    for (int i = 0; i < N * UNITS; i++)
        d.h = larger(d.h, fabs(want.h[i] - got.h[i]));
    for (int i = 0; i < WEIGHTS; i++)
        d.gradient = larger(d.gradient, fabs(want.gradient[i] - got.gradient[i]));
    d.loss = fabs(want.loss - got.loss);
    lesson_close(w);
    return d;
}

void show(void)
{
    static const double pads[] = { 0, 7, NAN };
    batch_size size = count(N, len);
    printf("%d sequences: %d cells, %d tokens, %d pads\n\n", N, size.cells, size.tokens,
           size.cells - size.tokens);
    printf("largest difference to the packed batch\n");
    printf("program  direction pads   in tokens    in h_n   in loss in gradient\n");
    for (int k = 0; k < 12; k++) {
        difference d = differ(k % 2, pads[k / 2 % 3], k / 6);
        printf("%-8s %-9s %4s %11s %9s %9s %11s\n", k < 6 ? "padded" : "yours",
               k % 2 ? "reverse" : "forward", digits(pads[k / 2 % 3]), digits(d.y),
               digits(d.h), digits(d.loss), digits(d.gradient));
    }
}

/* Draws the padded program's difference in each token of the reverse direction, in
 * concat order. */
weft_status draw(const char *path)
{
    const weft_colour_scale scale = { 0, 0, .5, "largest difference in y" };
    difference d = differ(1, 7, NAIVE);
    double of_token[N * T];
    int rows = 0;
    for (int i = 0; i < N * T; i++)
        if (i % T < len[i / T])
            of_token[rows++] = d.token[i];
    return weft_plot_batch(path, "Reverse direction: what pads of 7 change", &lengths,
                           NULL, of_token, &scale, NULL);
}
