/* Lesson 11: checks the clipping of random gradients, the forget gate's bias, and
 * updates with known numbers. */
#include "weft_op.h"
#include "given.h"
#include "known.h"

/* ---- clip ---- */
enum { MOST_ARRAYS = 7, MOST_NUMBERS = 400 };
/* The gradient under test: the number of its arrays, their sizes, and their sum. */
static int ARRAYS, NUMBERS, size[MOST_ARRAYS];
/* Tolerance for the factor of PyTorch and weft, most / (norm + 1e-6). */
static const double rough = 2e-6;
typedef enum { RIGHT, EACH, VALUES, ALWAYS, NO_ROOT, SQUARED, LIMIT_SQUARED } mistake;

static double norm_of(const double *x, int n) { return sqrt(dot(x, x, n)); }

static double cosine(const double *a, const double *b)
{
    return dot(a, b, NUMBERS) / norm_of(a, NUMBERS) / norm_of(b, NUMBERS);
}

/* Returns whether a gradient of this norm is scaled. */
static bool is_scaled(mistake m, double norm, double most)
{
    return m == ALWAYS        ? true :
           m == SQUARED       ? norm * norm > most :
           m == LIMIT_SQUARED ? norm > most * most :
                                norm > most;
}

static void clip_with(mistake m, const double *x, double most, double *out)
{
    double norm = norm_of(x, NUMBERS);
    for (int k = 0, at = 0; k < ARRAYS; at += size[k++])
        for (int j = at; j < at + size[k]; j++) {
            double of = m == EACH    ? norm_of(x + at, size[k]) :
                        m == NO_ROOT ? norm * norm :
                                       norm;
            out[j] = m == VALUES            ? fmax(-most, fmin(most, x[j])) :
                     is_scaled(m, of, most) ? x[j] * most / of :
                                              x[j];
        }
}

/* Names the factor of a gradient that kept its direction. */
static void diagnose_factor(const double *x, double most, const double *got)
{
    double norm = norm_of(x, NUMBERS), sum = 0, largest = 0, wrong[MOST_NUMBERS];
    int begin = 0; /* the numbers before the first empty array */
    for (int k = 0; k < ARRAYS && size[k]; k++)
        begin += size[k];
    for (int k = 0; k < NUMBERS; k++)
        sum += fabs(x[k]), largest = fmax(largest, fabs(x[k]));
    const known_mistake known[] = {
        { most / sum, "the norm is the sum of absolute values: it is the root of the "
                      "sum of squares" },
        { most / largest,
          "the norm is the largest number: it is the root of the sum of squares" },
        { most / norm * sqrt(NUMBERS),
          "the norm is the root of the mean of squares: use their sum" },
        { most * norm,
          "the numbers are multiplied by the norm: multiply by most / norm" },
        { norm / most, "the factor is norm / most: it is most / norm" },
        { 1 / norm, "the norm becomes 1: it must become most" },
        { most / norm_of(x, begin), "the norm leaves out all arrays after an empty "
                                    "one: go on after an array of size 0" },
    };
    if (all_zero(got, NUMBERS))
        hint("clip sets the numbers to 0: multiply them by most / norm");
    for (int k = 0; k < (int)(sizeof known / sizeof *known); k++) {
        for (int j = 0; j < NUMBERS; j++)
            wrong[j] = x[j] * known[k].gives;
        if (near(got, wrong, NUMBERS, rough))
            hint("%s", known[k].hint);
    }
}

static void diagnose(const double *x, double most, const double *got)
{
    double wrong[MOST_NUMBERS], norm = norm_of(x, NUMBERS);
    for (int m = SQUARED; m <= LIMIT_SQUARED; m++)
        if (clip_with(m, x, most, wrong), near(got, wrong, NUMBERS, rough))
            hint("a gradient of norm %s %s with a limit of %s: compare the norm with "
                 "the limit, %s",
                 digits(norm), norm > most ? "is not clipped" : "is changed",
                 digits(most),
                 m == SQUARED ? "not its square" : "not with the limit's square");
    if (near(got, x, NUMBERS, 1e-12))
        hint("clip does not change a gradient of norm %s with a limit of %s",
             digits(norm), digits(most));
    for (int m = RIGHT + 1; m <= LIMIT_SQUARED; m++) {
        clip_with(m, x, most, wrong);
        if (!near(got, wrong, NUMBERS, rough))
            continue;
        if (m == EACH)
            hint("each array is clipped separately, which changes the direction (the "
                 "cosine is %s): use one norm of all numbers, and one factor",
                 digits(cosine(x, got)));
        if (m == VALUES)
            hint("single numbers are clipped, which changes the direction (the cosine "
                 "is %s): limit the norm",
                 digits(cosine(x, got)));
        if (m == ALWAYS)
            hint("a gradient of norm %s, below the limit, becomes larger: do not "
                 "change it",
                 digits(norm));
        hint("all numbers are divided by the sum of squares: the norm is its root");
    }
    diagnose_factor(x, most, got);
    for (int k = 0, at = 0; k < ARRAYS; at += size[k++])
        if (norm > most && size[k] && near(got + at, x + at, size[k], 1e-12))
            hint("array %d of %d is not scaled: scale the numbers of all arrays", k + 1,
                 ARRAYS);
    hint("after clip the norm is %s and the cosine to the gradient %s; expected: a "
         "norm of %s and a cosine of 1",
         digits_unlike(norm_of(got, NUMBERS), fmin(norm, most)), digits(cosine(x, got)),
         digits_unlike(fmin(norm, most), norm_of(got, NUMBERS)));
}

/* Checks a random gradient with a norm near `length`, in n arrays. */
static void check_clip(int n, const int *sizes, double length, double most)
{
    double x[MOST_NUMBERS], got[MOST_NUMBERS], want[MOST_NUMBERS];
    double *gradient[MOST_ARRAYS];
    ARRAYS = n, NUMBERS = 0;
    for (int k = 0; k < n; k++)
        size[k] = sizes[k], gradient[k] = got + NUMBERS, NUMBERS += sizes[k];
    dice_fill(x, NUMBERS);
    for (int k = 0, left = NUMBERS; k < left; k++)
        x[k] *= length / sqrt(left / 3.);
    memcpy(got, x, sizeof x);
    double norm = clip(ARRAYS, size, gradient, most), before = norm_of(x, NUMBERS);
    clip_with(RIGHT, x, most, want);
    if (!near(got, want, NUMBERS, rough))
        diagnose(x, most, got);
    if (before > most && is_near(norm, most, rough))
        hint("clip returns the norm after clipping: return the norm before, %s",
             digits(before));
    if (is_near(norm, before, rough) && !is(norm, before))
        hint("clip returns the norm before with an error of %.1e: add 1e-6 only to the "
             "divisor, and use double for sums",
             norm - before);
    if (is(norm, before * before))
        hint("clip returns the sum of squares: return its root, the norm");
    if (!is(norm, before))
        hint("clip returns %s, not the norm before, %s", BOTH(norm, before));
}

/* ---- the forget gate's bias ---- */
enum { MOST_H = 40 };
static int H; /* units of the layer */
static const char *const gates[] = { "input", "forget", "candidate", "output" };

static void read_bias(weft_module *m, const char *name, double *x)
{
    weft_read(weft_find_parameter(m, name), x, (size_t)(4 * H) * sizeof *x);
}

static void check_rows(const double *b, const double *c, const double *b0,
                       const double *c0, double value)
{
    int changed[4] = { 0 };
    for (int k = 0; k < 4 * H; k++)
        changed[k / H] += b[k] != b0[k] || c[k] != c0[k];
    if (!changed[0] && !changed[1] && !changed[2] && !changed[3])
        hint("forget_bias changes nothing: call weft_read for both biases, change the "
             "rows of f, and call weft_assign_values");
    for (int g = 0; g < 4 && !changed[1]; g++)
        if (changed[g])
            hint("the rows of the %s gate have changed: the order is i f g o, so the "
                 "rows of f are hidden .. 2 hidden - 1",
                 gates[g]);
    for (int g = 0; g < 4; g++)
        if (g != 1 && changed[g])
            hint("the rows of the %s gate have also changed: change only those of f, "
                 "and read the biases before you assign them",
                 gates[g]);
    for (int k = H; k < 2 * H; k++) {
        double sum = b[k] + c[k], own = value + b0[k];
        if (is(sum, value))
            continue;
        if (is(sum, 2 * value))
            hint("both biases are set to the value: their sum is %s, not %s",
                 BOTH(sum, value));
        if (is(sum, value + c0[k]))
            hint("bias_hh_l0 keeps its initial values in the rows of f: the sum is %s, "
                 "not %s",
                 BOTH(sum, value));
        if (is(sum, own) || is(sum, own + c0[k]))
            hint("the value is added to the initial bias: replace it");
        if (k > H && b[k] == b0[k])
            hint("row %d of bias_ih_l0 keeps its initial value: the rows of f are "
                 "hidden .. 2 hidden - 1, here %d .. %d",
                 k, H, 2 * H - 1);
        hint("the forget gate's bias, bias_ih_l0 + bias_hh_l0, is %s in row %d, not %s",
             digits_unlike(sum, value), k, digits_unlike(value, sum));
    }
}

static void check_bias(int hidden, double value)
{
    double b0[4 * MOST_H], c0[4 * MOST_H], b[4 * MOST_H], c[4 * MOST_H];
    H = hidden;
    weft *w = lesson_open(3);
    weft_rnn *r = weft_lstm_new(weft_module_new(w, "net"), "rnn",
                                &(weft_rnn_opts){ .input = 2, .hidden = H });
    weft_module *m = weft_rnn_module(r);
    read_bias(m, "bias_ih_l0", b0), read_bias(m, "bias_hh_l0", c0);
    if (answer_here()) {
        forget_bias(m, H, value);
        if (!weft_ok(w))
            hint("weft reports: %s", weft_error_message(w));
        read_bias(m, "bias_ih_l0", b), read_bias(m, "bias_hh_l0", c);
    }
    lesson_close(w);
    share(b, (size_t)(4 * H) * sizeof *b), share(c, (size_t)(4 * H) * sizeof *c);
    check_rows(b, c, b0, c0, value);
}

/* ---- two updates: the loss is 3 p + 4 q + 12 r, so its gradient has norm 13 ---- */
/* weft divides by the norm + 1e-6, as PyTorch does. */
enum { UPDATES = 2, FACTORS = 3 };
static const double factor[FACTORS] = { 3, 4, 12 };
typedef struct {
    double x[UPDATES][FACTORS], norm[UPDATES];
    int steps[UPDATES];
} updates;

static updates updated(double most, double momentum)
{
    updates u;
    weft *w = lesson_open(3);
    weft_module *m = weft_module_new(w, "net");
    const weft_init zero = { .kind = WEFT_INIT_ZERO };
    weft_tensor *pq = weft_parameter(m, "pq", WEFT_SHAPE(2), zero),
                *r = weft_parameter(m, "r", WEFT_SHAPE(1), zero);
    weft_optim *o = weft_sgd_new(m, &(weft_sgd_opts){ .lr = 1, .momentum = momentum });
    for (int k = 0; k < UPDATES; k++) {
        weft_tensor *loss = weft_sum_all(weft_mul(
            weft_concat(WEFT_LIST(pq, r), 0), weft_reals(w, factor, WEFT_SHAPE(3))));
        u.norm[k] = update(m, o, loss, most);
        if (!weft_ok(w))
            hint("weft reports: %s", weft_error_message(w));
        weft_read(pq, u.x[k], 2 * sizeof(double)),
            weft_read(r, u.x[k] + 2, sizeof(double));
        u.steps[k] = (int)weft_optim_steps(o);
        weft_clear(w);
    }
    lesson_close(w);
    return u;
}

static void hint_of_update(const updates *u, int k, double most, double moves)
{
    const double *x = u->x[k];
    double whole[FACTORS];
    for (int j = 0; j < FACTORS; j++)
        whole[j] = -factor[j] * moves;
    if (x[0] == 0 && x[1] == 0)
        hint("update changes no parameter: call weft_backward, weft_clip_grad_norm and "
             "weft_optim_step");
    if (near(x, whole, FACTORS, 1e-12) && is_near(u->norm[k], 13, 1e-5))
        hint("clipping has no effect, or its limit is not %s: update returns the norm, "
             "13, but the parameters move by the whole gradient",
             digits(most));
    if (near(x, whole, FACTORS, 1e-12))
        hint("the parameters move by the whole gradient, of norm 13, with a limit of "
             "%s: clipping is missing, or before weft_backward, or after "
             "weft_optim_step, which sets the gradients to zero",
             digits(most));
    const double limit = fmin(1, most / 13), sums = most / 19, largest = most / 12;
    if (most < 13 &&
        near(x, (double[]){ -3 * sums, -4 * sums, -12 * sums }, FACTORS, 1e-5))
        hint("the norm is the sum of absolute values: the last argument of "
             "weft_clip_grad_norm is 2");
    if (most < 12 &&
        near(x, (double[]){ -3 * largest, -4 * largest, -12 * largest }, FACTORS, 1e-5))
        hint("the norm is the largest number: the last argument of weft_clip_grad_norm "
             "is 2");
    hint("after update %d of the loss 3 p + 4 q + 12 r with a limit of %s, (p, q, r) "
         "is (%s, %s, %s), not (%s, %s, %s)",
         k + 1, digits(most), digits(x[0]), digits(x[1]), digits(x[2]),
         digits(whole[0] * limit), digits(whole[1] * limit), digits(whole[2] * limit));
}

static void check_update(double most, double momentum)
{
    updates u;
    double scale = fmin(1, most / 13), moves = 0, speed = 0, want[FACTORS];
    if (answer_here())
        u = updated(most, momentum);
    share(&u, sizeof u);
    for (int k = 0; k < UPDATES; k++) {
        speed = momentum * speed + 1, moves += speed;
        for (int j = 0; j < FACTORS; j++)
            want[j] = -factor[j] * scale * moves;
        if (!near(u.x[k], want, FACTORS, 1e-5))
            hint_of_update(&u, k, most, moves);
        if (is_near(u.norm[k], most, 1e-5) && most < 13)
            hint("update returns the norm after clipping: weft_clip_grad_norm returns "
                 "the norm before, so call it once, and keep its result");
        if (u.norm[k] == 0)
            hint("update returns 0, perhaps the loss: return the norm before clipping");
        if (!is_near(u.norm[k], 13, 1e-5))
            hint("update returns %s, not the norm before clipping, 13",
                 digits(u.norm[k]));
        if (u.steps[k] != k + 1)
            hint("after %d updates the optimiser has taken %d steps: call "
                 "weft_optim_step once per update",
                 k + 1, u.steps[k]);
    }
}

void known_forget_bias(weft_module *lstm, int hidden, double value)
{
    double x[MOST_ROWS];
    for (int k = 0; k < 2; k++) {
        weft_tensor *b = weft_find_parameter(lstm, k ? "bias_hh_l0" : "bias_ih_l0");
        weft_read(b, x, 4 * (size_t)hidden * sizeof *x);
        for (int j = hidden; j < 2 * hidden; j++)
            x[j] = k ? 0 : value;
        weft_assign_values(b, x, 4 * hidden);
    }
}

double known_update(weft_module *m, weft_optim *o, weft_tensor *loss, double most)
{
    weft_backward(loss);
    double norm = weft_item(weft_clip_grad_norm(m, most, 2));
    weft_optim_step(o);
    return norm;
}

void check(void)
{
    static const struct {
        int n, size[MOST_ARRAYS];
    } of[] = { { 3, { 4, 2, 3 } },
               { 2, { 1, 6 } },
               { 1, { 5 } },
               { 4, { 3, 0, 5, 1 } },
               { 7, { 2, 130, 1, 0, 70, 33, 100 } } };
    dice_seed(11);
    for (int k = 0; k < 10; k++)
        check_clip(of[0].n, of[0].size, 1.7, k % 3 == 2 ? 5 : 0.3 + 0.05 * k);
    for (int k = 0; k < 40; k++) { /* limits below and above the norm, and its square */
        double length = k / 4 % 2 ? 3 : .3, side = 0.2 + k / 8 * .5;
        check_clip(of[k % 4].n, of[k % 4].size, length, length * side);
        check_clip(of[k % 4].n, of[k % 4].size, length, length * length * side);
        check_clip(of[4].n, of[4].size, length, length * side);
    }
    check_bias(3, 1), check_bias(3, -2.5), check_bias(MOST_H, 3), check_bias(5, .25),
        check_bias(1, 0);
    check_update(1, 0), check_update(20, 0), check_update(7, .9), check_update(.5, 0);
}
