/* Lesson 2: the student's layer beside weft's, with other weights and lengths. */
#include "common/lesson.h"
#include "given.h"

enum { WIDEST = 5, MOST = 5 };
/* The layer that is checked. w and x hold more than it has, so that a wrong place in
 * them has a number. */
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
    SIGMOID,
    B_TWICE,
    C_TWICE,
    BIASES_OUTSIDE,
    STATE_OUTSIDE,
    TANH_OF_STATE,
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
    [SIGMOID] =
        "the sum is right, but it gets a sigmoid: this layer has tanh, from -1 to 1",
    [B_TWICE] = "b is added twice, and c is missing: there are two biases",
    [C_TWICE] = "c is added twice, and b is missing: there are two biases",
    [BIASES_OUTSIDE] = "the biases are added after tanh: they belong to its sum",
    [STATE_OUTSIDE] = "u before is added after tanh: it belongs to its sum",
    [TANH_OF_STATE] =
        "u before gets a tanh of its own: there is one tanh, of the whole sum",
};

/* What comes of the products of unit j and its biases. */
static double unit_with(int mistake, double of_x, double of_h, double b, double c)
{
    double state = mistake == NO_STATE      ? 0 :
                   mistake == TANH_OF_STATE ? tanh(of_h) :
                                              of_h;
    double biases = mistake == WITHOUT_B ? c :
                    mistake == WITHOUT_C ? b :
                    mistake == B_TWICE   ? 2 * b :
                    mistake == C_TWICE   ? 2 * c :
                                           b + c;
    double sum = of_x + state + biases;
    switch (mistake) {
    case NO_TANH:
        return sum;
    case SIGMOID:
        return 1 / (1 + exp(-sum));
    case BIASES_OUTSIDE:
        return tanh(of_x + state) + biases;
    case STATE_OUTSIDE:
        return tanh(of_x + biases) + state;
    default:
        return tanh(sum);
    }
}

static void step_with(int mistake, double *h)
{
    for (int j = 0; j < H; j++) {
        int row = mistake == W_ROWS_OF_H ? H : I;
        double of_x = mistake == W_TRANSPOSED ? inner(w + j, H, x, I) :
                                                inner(w + j * row, 1, x, I);
        double of_h = mistake == U_TRANSPOSED ? inner(u + j, H, before, H) :
                                                inner(u + j * H, 1, before, H);
        h[j] = unit_with(mistake, of_x, of_h, b[j], c[j]);
    }
}

static void check_step(const rnn *r)
{
    double h[WIDEST] = { 0 }, want[WIDEST];
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
        double wrong[WIDEST];
        step_with(m, wrong);
        if (near(h, wrong, H, 1e-12))
            hint("%s", hints[m]);
    }
    if (near(h, want, H, 1e-5))
        hint("h is right to six digits or so, but not to twelve: a float has no more; "
             "take double for the sum, and tanh, not tanhf");
    for (int j = 0; j < H; j++)
        if (!near(h + j, want + j, 1, 1e-12))
            hint("step gives %s for unit %d, which should be %s", digits(h[j]), j,
                 digits(want[j]));
}

/* ---- all steps, against weft ---- */
/* Step t of h is wrong: would it be right for another place in x? */
static void check_token(const rnn *r, const double *h, int t)
{
    double zeros[WIDEST] = { 0 }, other[WIDEST];
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
    double h[MOST * WIDEST], want[MOST * WIDEST];
    for (int k = 0; k < MOST * WIDEST; k++)
        h[k] = 7; /* what memory may hold before */
    by_weft(r, steps, x, want);
    run(r, steps, x, h);
    if (near(h, want, steps * H, 1e-12))
        return;
    for (int t = 0; t < steps; t++)
        if (h[t * H] == 7 && h[t * H + H - 1] == 7)
            hint("run does not write h of step %d: h[%d] still holds what was there "
                 "before",
                 t + 1, t * H);
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

static void check_layer(int inputs, int units)
{
    I = inputs, H = units;
    const rnn r = { I, H, w, u, b, c };
    dice_fill(w, WIDEST * WIDEST), dice_fill(u, WIDEST * WIDEST), dice_fill(b, H),
        dice_fill(c, H);
    dice_fill(x, (MOST + 1) * WIDEST), dice_fill(before, WIDEST);
    check_step(&r);
    check_run(&r, 1);
    check_run(&r, MOST);
    check_run(&r, 0);
    check_run(&r, 3);
}

void check(void)
{
    dice_seed(2);
    check_layer(3, 4), check_layer(5, 2), check_layer(1, 5);
}
