/* Lesson 2: the student's layer beside weft's, with other weights and lengths. */
#include "common/lesson.h"
#include "given.h"

enum { I = 3, H = 4, MOST = 5 };
/* w and x hold more than the layer has, so that a wrong place in them has a number. */
static double w[H * H], u[H * H], b[H], c[H], x[(MOST + 1) * H], before[H];

static double inner(const double *row, int stride, const double *x, int n)
{
    double sum = 0;
    for (int k = 0; k < n; k++)
        sum += row[k * stride] * x[k];
    return sum;
}

/* ---- one step, and what comes of the usual mistakes ---- */
enum {
    RIGHT,
    W_TRANSPOSED,
    W_ROWS_OF_H,
    U_TRANSPOSED,
    WITHOUT_B,
    WITHOUT_C,
    NO_TANH,
    NO_STATE,
    MISTAKES
};
static const char *const hints[MISTAKES] = {
    [W_TRANSPOSED] = "w is used transposed: weight_ih is [hidden, input], so unit j's "
                     "weights are its row j",
    [W_ROWS_OF_H] = "row j of w begins at w[j * H], but w is [H, I]: its rows are of I "
                    "numbers, one for each input, so row j begins at w[j * I]",
    [U_TRANSPOSED] = "u is used transposed: weight_hh is [hidden, hidden], its row j "
                     "is of unit j, to which the numbers of the state go",
    [WITHOUT_B] =
        "one bias only: b is missing; PyTorch's layer has two, and both are added",
    [WITHOUT_C] =
        "one bias only: c is missing; PyTorch's layer has two, and both are added",
    [NO_TANH] = "the sum is right, but tanh of it is missing",
    [NO_STATE] = "the state before has no part in the sum: u before is missing",
};

static void step_with(int mistake, double *h)
{
    for (int j = 0; j < H; j++) {
        int row = mistake == W_ROWS_OF_H ? H : I;
        double of_x = mistake == W_TRANSPOSED ? inner(w + j, H, x, I) :
                                                inner(w + j * row, 1, x, I);
        double of_h = mistake == U_TRANSPOSED ? inner(u + j, H, before, H) :
                                                inner(u + j * H, 1, before, H);
        double sum = of_x + (mistake == NO_STATE ? 0 : of_h) +
                     (mistake == WITHOUT_B ? 0 : b[j]) +
                     (mistake == WITHOUT_C ? 0 : c[j]);
        h[j] = mistake == NO_TANH ? sum : tanh(sum);
    }
}

static void check_step(const rnn *r)
{
    double h[H] = { 0 }, want[H];
    step(r, x, before, h);
    step_with(RIGHT, want);
    if (near(h, want, H, 1e-12))
        return;
    for (int k = 0, zeros = 1; k < H; k++) {
        zeros &= h[k] == 0;
        if (k == H - 1 && zeros)
            hint("step leaves h at zero: write the sum of unit j, and its tanh, to "
                 "h[j]");
    }
    for (int m = RIGHT + 1; m < MISTAKES; m++) {
        double wrong[H];
        step_with(m, wrong);
        if (near(h, wrong, H, 1e-12))
            hint("%s", hints[m]);
    }
    if (near(h, want, H, 1e-5))
        hint("h is right to six digits or so, but not to twelve: a float has no more; "
             "take double for the sum, and tanh, not tanhf");
    for (int j = 0; j < H; j++)
        if (!near(h + j, want + j, 1, 1e-12))
            hint("step gives %s for unit %d, which should be %s", digits(h[j]), j + 1,
                 digits(want[j]));
}

/* ---- all steps, against weft ---- */
/* Step t of h is wrong: would it be right for another place in x? */
static void check_token(const rnn *r, const double *h, int t)
{
    double zeros[H] = { 0 }, other[H];
    for (int from = 0; from <= (MOST + 1) * H - I; from++) {
        step(r, x + from, t ? h + (t - 1) * H : zeros, other);
        if (from != t * I && near(h + t * H, other, H, 1e-12))
            hint("step %d reads the wrong token: x is [steps, I], I is %d here, so "
                 "this step's token begins at x[%d], and yours at x[%d]",
                 t + 1, I, t * I, from);
    }
}

static void check_run(const rnn *r, int steps)
{
    double h[MOST * H + 1], want[MOST * H + 1];
    for (int k = 0; k <= MOST * H; k++)
        h[k] = 7;                                /* what memory may hold before */
    by_weft(r, steps, x, want);
    run(r, steps, x, h);
    if (h[steps * H] != 7)
        hint("run writes behind the last step: h has %d steps of %d numbers", steps, H);
    if (near(h, want, steps * H, 1e-12))
        return;
    if (near(h, want, steps * H, 1e-5))
        hint("all steps are right to six digits or so, but not to twelve: a float has "
             "no more; double holds the states, too");
    for (int t = 0; t < steps; t++)
        if (!near(h + t * H, want + t * H, H, 1e-12)) {
            check_token(r, h, t);
            break;
        }
    if (!near(h, want, H, 1e-12))
        hint("the first step begins with something else than zeros: before the first "
             "token there is no state, and h has nothing yet");
    for (int t = 1; t < steps; t++)
        if (!near(h + t * H, want + t * H, H, 1e-12))
            hint("step %d is wrong, those before it are right: the state before it is "
                 "that of step %d",
                 t + 1, t);
}

void check(void)
{
    const rnn r = { I, H, w, u, b, c };
    dice_seed(2);
    dice_fill(w, H * H), dice_fill(u, H * H), dice_fill(b, H), dice_fill(c, H);
    dice_fill(x, (MOST + 1) * H), dice_fill(before, H);
    check_step(&r);
    check_run(&r, 1);
    check_run(&r, MOST);
    check_run(&r, 0);
}
