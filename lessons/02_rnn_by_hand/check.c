/* Lesson 2: compares the student's layer with weft's, for several sizes and lengths. */
#include "common/lesson.h"
#include "common/mistakes.h"
#include "given.h"

enum { WIDEST = 40, MOST = 70 };
/* The layer under test. w and x have spare numbers at their ends, so that a wrong index
 * reads a number that identifies the mistake. */
static int I, H;
static double w[WIDEST * WIDEST], u[WIDEST * WIDEST], b[WIDEST], c[WIDEST],
    x[(MOST + 1) * WIDEST], before[WIDEST];

static double inner(const double *row, int stride, const double *x, int n)
{
    double sum = 0;
    for (int k = 0; k < n; k++)
        sum += row[k * stride] * x[k];
    return sum;
}

/* ---- one step, right and with known mistakes ---- */
/* Returns the output of a unit from its two products and its biases. */
static double unit_with(int mistake, double of_x, double of_h, double b, double c)
{
    double state = mistake == NO_STATE      ? 0 :
                   mistake == TANH_OF_STATE ? tanh(of_h) :
                                              of_h;
    double biases = mistake == WITHOUT_B ? c :
                    mistake == WITHOUT_C ? b :
                    mistake == B_TWICE   ? 2 * b :
                    mistake == C_TWICE   ? 2 * c :
                    mistake == B_IN_LOOP ? I * b + c :
                    mistake == C_IN_LOOP ? b + H * c :
                    mistake == C_MINUS   ? b - c :
                                           b + c;
    double sum = of_x + state + biases;
    switch (mistake) {
    case NO_TANH: return sum;
    case SIGMOID: return 1 / (1 + exp(-sum));
    case RELU: return sum > 0 ? sum : 0;
    case TANH_TWICE: return tanh(tanh(sum));
    case BIASES_OUTSIDE: return tanh(of_x + state) + biases;
    case STATE_OUTSIDE: return tanh(of_x + biases) + state;
    default: return tanh(sum);
    }
}

static void step_with(int mistake, double *h)
{
    double so_far = 0;
    memset(h, 0, (size_t)H * sizeof *h);
    for (int j = 0; j < H; j++) {
        int row = mistake == W_ROWS_OF_H ? H : I;
        double of_x = mistake == W_TRANSPOSED ? inner(w + j, H, x, I) :
                                                inner(w + j * row, 1, x, I);
        double of_h = mistake == U_TRANSPOSED ? inner(u + j, H, before, H) :
                                                inner(u + j * H, 1, before, H);
        if (mistake == U_DIAGONAL)
            of_h = u[j * H + j] * before[j];
        if (mistake == U_NEW_H)
            of_h = inner(u + j * H, 1, h, H);
        h[j] = unit_with(mistake, of_x + so_far, of_h, b[j], c[j]);
        if (mistake == SUM_GOES_ON)
            so_far += of_x + of_h + b[j] + c[j];
    }
}

static void check_step(const rnn *r)
{
    double h[WIDEST] = { 0 }, want[WIDEST];
    step(r, x, before, h);
    step_with(RIGHT, want);
    int j = first_off(h, want, H, 1e-12);
    if (j == H)
        return;
    if (all_zero(h, H))
        hint("step leaves h at zero: write the sum of unit j, and its tanh, to h[j]");
    hint_of_mistakes(h, H, 1e-12, hints, RIGHT + 1, MISTAKES - 1, step_with);
    hint_of_float("h is", h, want, H);
    hint("step gives %s for unit %d, not %s%s", digits_unlike(h[j], want[j]), j,
         digits_unlike(want[j], h[j]),
         isnan(h[j]) ? ": exp of a large sum is infinite, so use tanh" : "");
}

/* ---- all steps, against weft ---- */
/* Gives a hint if step t is right for the numbers at another index of x. */
static void check_token(const rnn *r, const double *h, int t)
{
    double zeros[WIDEST] = { 0 }, other[WIDEST];
    for (int from = 0; from <= (MOST + 1) * H - I; from++) {
        step(r, x + from, t ? h + (t - 1) * H : zeros, other);
        if (from != t * I && near(h + t * H, other, H, 1e-12))
            hint("step %d reads the wrong token: x is [steps, I], and I is %d here. "
                 "This step's token begins at x[%d], but yours begins at x[%d]",
                 t + 1, I, t * I, from);
    }
}

/* Gives a hint if step t read its state before from the array that it wrote. */
static void check_one_array(const double *h, const double *want, int t)
{
    double state[WIDEST] = { 0 };
    for (int j = 0; j < H && t > 0; j++)
        state[j] = want[(t - 1) * H + j];
    for (int j = 0; j < H; j++)
        state[j] = tanh(inner(w + j * I, 1, x + t * I, I) + b[j] + c[j] +
                        inner(u + j * H, 1, state, H));
    if (near(h + t * H, state, H, 1e-12))
        hint("step %d reads its state before from the array that it writes, so later "
             "units read new values: use two arrays",
             t + 1);
}

static void check_run(const rnn *r, int steps)
{
    static double h[MOST * WIDEST], want[MOST * WIDEST];
    old_values(h, MOST * WIDEST, steps == 3);
    by_weft(r, steps, x, want);
    run(r, steps, x, h);
    if (near(h, want, steps * H, 1e-12))
        return;
    for (int t = 0; t < steps; t++)
        if (h[t * H] == 7 && h[t * H + H - 1] == 7)
            hint("run does not write h of step %d: h[%d] still has its old value",
                 t + 1, t * H);
    hint_of_float("all steps are", h, want, steps * H);
    int t = first_off(h, want, steps * H, 1e-12) / H;
    check_one_array(h, want, t), check_token(r, h, t);
    if (t == 0 && all_zero(h, H) && near(h + H, want, (steps - 1) * H, 1e-12))
        hint("row t of h has the state before step t: write the state after it");
    if (t == 0)
        hint("the first step does not begin with zeros: set the state before the first "
             "token to 0");
    hint("step %d is wrong, and the steps before it are right: its state before is h "
         "of step %d",
         t + 1, t);
}

static void check_layer(int inputs, int units)
{
    I = inputs, H = units;
    const rnn r = { I, H, w, u, b, c };
    DICE_FILL(w), DICE_FILL(u), DICE_FILL(b), DICE_FILL(c), DICE_FILL(x);
    for (int k = 0; k < H * H; k++) /* a layer that forgets: errors of rounding fade */
        u[k] /= sqrt(H);
    for (int k = 0; H == 1 && k < MOST; k++)
        x[k] = (x[k] > 0 ? 2000 : -2000) / w[0]; /* sums far from 0 */
    DICE_FILL(before);
    check_step(&r);
    memset(before, 0, sizeof before);
    check_step(&r);
    check_run(&r, 1), check_run(&r, 5), check_run(&r, 0), check_run(&r, 3);
    if (H > 5)
        check_run(&r, MOST);
}

void check(void)
{
    dice_seed(2);
    check_layer(3, 4), check_layer(5, 2), check_layer(1, 5), check_layer(1, 1);
    check_layer(3, 3), check_layer(37, WIDEST);
}
