/* Lesson 11: clipping of ten gradients, a forget gate's bias, one update with known
 * numbers. */
#include "given.h"

/* ---- clip ---- */
enum { ARRAYS = 3, NUMBERS = 9 };
static const int size[ARRAYS] = { 4, 2, 3 };
/* most / (norm + 1e-6), which is PyTorch's factor and weft's, is as right as most /
 * norm. */
static const double rough = 2e-6;
typedef enum { RIGHT, EACH, VALUES, ALWAYS, NO_ROOT, MISTAKES } mistake;

static double norm_of(const double *x, int n)
{
    double sum = 0;
    for (int k = 0; k < n; k++)
        sum += x[k] * x[k];
    return sqrt(sum);
}

static double cosine(const double *a, const double *b)
{
    double sum = 0;
    for (int k = 0; k < NUMBERS; k++)
        sum += a[k] * b[k];
    return sum / norm_of(a, NUMBERS) / norm_of(b, NUMBERS);
}

static void clip_with(mistake m, const double *x, double most, double *out)
{
    double norm = norm_of(x, NUMBERS);
    for (int k = 0, at = 0; k < ARRAYS; at += size[k++])
        for (int j = at; j < at + size[k]; j++) {
            double of = m == EACH    ? norm_of(x + at, size[k]) :
                        m == NO_ROOT ? norm * norm :
                                       norm;
            out[j] = m == VALUES              ? fmax(-most, fmin(most, x[j])) :
                     of > most || m == ALWAYS ? x[j] * most / of :
                                                x[j];
        }
}

static void diagnose(const double *x, double most, const double *got)
{
    double wrong[NUMBERS], norm = norm_of(x, NUMBERS);
    if (near(got, x, NUMBERS, 1e-12))
        hint("clip leaves a gradient of norm %s as it is, with a limit of %s",
             digits(norm), digits(most));
    for (int m = RIGHT + 1; m < MISTAKES; m++) {
        clip_with(m, x, most, wrong);
        if (!near(got, wrong, NUMBERS, rough))
            continue;
        if (m == EACH)
            hint("each array was clipped by itself: the direction has changed, its "
                 "cosine to the gradient is %s; one norm of all numbers, and one "
                 "factor, keep it",
                 digits(cosine(x, got)));
        if (m == VALUES)
            hint("single numbers were cut off at the limit: the direction has changed, "
                 "its cosine to the gradient is %s; the norm is what must not be above "
                 "it",
                 digits(cosine(x, got)));
        if (m == ALWAYS)
            hint("a gradient of norm %s was below the limit, and was made larger: it "
                 "has to stay as it is",
                 digits(norm));
        hint(
            "all numbers were divided by the sum of the squares: the norm is its root");
    }
    hint("after clip the norm is %s and the cosine to the gradient %s; a norm of %s "
         "and a cosine of 1 are expected",
         digits(norm_of(got, NUMBERS)), digits(cosine(x, got)),
         digits(fmin(norm, most)));
}

static void check_clip(double most)
{
    double x[NUMBERS], got[NUMBERS + 1], want[NUMBERS];
    dice_fill(x, NUMBERS);
    memcpy(got, x, sizeof x);
    got[NUMBERS] = 7;
    double *const gradient[ARRAYS] = { got, got + size[0], got + size[0] + size[1] };
    double norm = clip(ARRAYS, size, gradient, most), before = norm_of(x, NUMBERS);
    clip_with(RIGHT, x, most, want);
    if (got[NUMBERS] != 7)
        hint("clip writes behind the last array: array k has size[k] numbers");
    if (!near(got, want, NUMBERS, rough))
        diagnose(x, most, got);
    if (before > most && near(&norm, &most, 1, rough))
        hint("clip returns the norm after: the one before, %s, tells how training goes",
             digits(before));
    if (near(&norm, &before, 1, rough) && !near(&norm, &before, 1, 1e-12))
        hint("clip returns the norm before, but %.1e beside it: what is added belongs "
             "to the divisor alone, and sums are in double",
             norm - before);
    if (!near(&norm, &before, 1, 1e-12))
        hint("clip returns %s; the norm before is %s", digits(norm), digits(before));
}

/* ---- the forget gate's bias ---- */
enum { H = 3 };
static const char *const gates[] = { "input", "forget", "candidate", "output" };

static void read_bias(weft_module *m, const char *name, double *x)
{
    weft_read(weft_find_parameter(m, name), x, 4 * H * sizeof *x);
}

static void check_rows(const double *b, const double *c, const double *b0,
                       const double *c0, double value)
{
    int changed[4] = { 0 };
    for (int k = 0; k < 4 * H; k++)
        changed[k / H] += b[k] != b0[k] || c[k] != c0[k];
    if (!changed[0] && !changed[1] && !changed[2] && !changed[3])
        hint("forget_bias changes nothing: weft_read both biases, change their rows, "
             "weft_assign_values");
    for (int g = 0; g < 4 && !changed[1]; g++)
        if (changed[g])
            hint("the rows of the %s gate have changed: gates come as i f g o, so "
                 "those of f are hidden .. 2 hidden - 1",
                 gates[g]);
    for (int g = 0; g < 4; g++)
        if (g != 1 && changed[g])
            hint("the rows of the %s gate have changed, too: only those of f may, so "
                 "read the biases before you assign",
                 gates[g]);
    for (int k = H; k < 2 * H; k++) {
        double sum = b[k] + c[k], twice = 2 * value, old = value + c0[k];
        if (near(&sum, &value, 1, 1e-12))
            continue;
        if (near(&sum, &twice, 1, 1e-12))
            hint("both biases have the value: they are summed up, so the forget gate's "
                 "is now %s, not %s",
                 digits(sum), digits(value));
        if (near(&sum, &old, 1, 1e-12))
            hint("bias_hh_l0 still has its first values in these rows: the sum is %s, "
                 "not %s",
                 digits(sum), digits(value));
        hint("the forget gate's bias, bias_ih_l0 + bias_hh_l0, is %s in row %d, not %s",
             digits(sum), k, digits(value));
    }
}

static void check_bias(double value)
{
    weft *w = lesson_open(3);
    weft_rnn *r = weft_lstm_new(weft_module_new(w, "net"), "rnn",
                                &(weft_rnn_opts){ .input = 2, .hidden = H });
    weft_module *m = weft_rnn_module(r);
    double b0[4 * H], c0[4 * H], b[4 * H], c[4 * H];
    read_bias(m, "bias_ih_l0", b0), read_bias(m, "bias_hh_l0", c0);
    forget_bias(m, H, value);
    if (!weft_ok(w))
        hint("weft says: %s", weft_error_message(w));
    read_bias(m, "bias_ih_l0", b), read_bias(m, "bias_hh_l0", c);
    check_rows(b, c, b0, c0, value);
    lesson_close(w);
}

/* ---- one update: the loss is 3 p + 4 q, so its gradient has norm 5 ---- */
/* weft divides by the norm + 1e-6, as PyTorch does. */
static void check_update(double most)
{
    weft *w = lesson_open(3);
    weft_module *m = weft_module_new(w, "net");
    weft_tensor *p = weft_parameter(m, "p", 1, (int64_t[]){ 2 },
                                    (weft_init){ .kind = WEFT_INIT_ZERO });
    weft_optim *o = weft_sgd_new(m, &(weft_sgd_opts){ .lr = 1 });
    const double factor[2] = { 3, 4 }, five = 5, scale = fmin(1, most / 5);
    for (int k = 1; k <= 2; k++) {
        double x[2], want[2] = { -3 * scale * k, -4 * scale * k },
                     whole[2] = { -3 * k, -4 * k };
        double norm = update(
            m, o, weft_sum_all(weft_mul(p, weft_reals(w, factor, WEFT_SHAPE(2)))),
            most);
        if (!weft_ok(w))
            hint("weft says: %s", weft_error_message(w));
        weft_read(p, x, sizeof x);
        if (x[0] == 0 && x[1] == 0)
            hint("update moves no parameter: weft_backward, weft_clip_grad_norm, "
                 "weft_optim_step");
        if (!near(x, want, 2, 1e-5) && near(x, whole, 2, 1e-12) &&
            near(&norm, &five, 1, 1e-5))
            hint("there is no clip at all, or one with another limit than %s: update "
                 "returns the norm, 5, but the parameters have moved by the whole "
                 "gradient",
                 digits(most));
        if (!near(x, want, 2, 1e-5) && near(x, whole, 2, 1e-12))
            hint("the parameters have moved by the whole gradient, of norm 5, with a "
                 "limit of %s: there is no clip at all, or it is before weft_backward, "
                 "too early, or after weft_optim_step, which has made the gradients "
                 "zero",
                 digits(most));
        if (!near(x, want, 2, 1e-5))
            hint("after update %d of a loss 3 p + 4 q with a limit of %s, p is %s and "
                 "not %s",
                 k, digits(most), digits(x[0]), digits(want[0]));
        if (!near(&norm, &five, 1, 1e-5))
            hint("update returns %s; the norm before clipping is 5", digits(norm));
        weft_clear(w);
    }
    lesson_close(w);
}

void check(void)
{
    dice_seed(11);
    for (int k = 0; k < 10; k++)
        check_clip(k % 3 == 2 ? 5 : 0.3 + 0.05 * k);
    check_bias(1), check_bias(-2.5);
    check_update(1), check_update(7);
}
