/* Lesson 3: compares the student's backward pass with weft's; checks a forget bias. */
#include "common/lesson.h"
#include "common/mistakes.h"
#include "given.h"

enum { ALL = STEPS * UNITS, OLD = 7 }; /* OLD: in dh before a call */
static double last[UNITS];
static walk right;

/* ---- the backward pass, right and with known mistakes ---- */
static double slope(const double *h, int j) { return 1 - h[j] * h[j]; }

/* Returns the factor from unit j of the next state to its sum. */
static double slope_with(int mistake, const double *now, const double *next, int j,
                         int k)
{
    double y = next[j];
    switch (mistake) {
    case NO_TANH:
    case OF_THE_SUM: return 1;
    case H_TOO_EARLY: return slope(now, j);
    case OF_UNIT_K: return slope(next, k);
    case NOT_SQUARED: return 1 - y;
    case PLUS_SQUARE: return 1 + y * y;
    case TANH_AGAIN: return 1 - tanh(y) * tanh(y);
    case NEGATIVE: return y * y - 1;
    default: return slope(next, j);
    }
}

static void walk_with(int mistake, int steps, double *dh)
{
    memcpy(dh + (steps - 1) * UNITS, last, sizeof last);
    for (int t = steps - 2; t >= 0; t--)
        for (int k = 0; k < UNITS; k++) {
            const double *now = right.h + t * UNITS, *next = now + UNITS;
            double sum = mistake == ADDS_LAST ? last[k] : mistake == ADDS_OLD ? OLD : 0;
            for (int j = 0; j < UNITS; j++) {
                int at = mistake == U_AS_IT_IS ? k * UNITS + j : j * UNITS + k;
                double d = mistake == ONLY_ONE_STEP ? last[j] :
                           mistake == D_OF_UNIT_K   ? dh[(t + 1) * UNITS + k] :
                                                      dh[(t + 1) * UNITS + j];
                sum += right.u[at] * d * slope_with(mistake, now, next, j, k);
            }
            dh[t * UNITS + k] = sum * (mistake == OF_THE_SUM ? slope(now, k) : 1);
        }
}

/* Compares step t relative to its own length: lengths differ by powers of ten. */
static bool same_at(const double *got, const double *want, int t, double tolerance)
{
    double apart[UNITS];
    for (int k = 0; k < UNITS; k++)
        apart[k] = got[t * UNITS + k] - want[t * UNITS + k];
    return norm(apart) <= tolerance * norm(want + t * UNITS);
}

/* Returns the last step that differs, which back computes first; -1: none differs. */
static int differs_by(const double *got, const double *want, int steps,
                      double tolerance)
{
    for (int t = steps - 1; t >= 0; t--)
        if (!same_at(got, want, t, tolerance))
            return t;
    return -1;
}

static int differs(const double *got, const double *want, int steps)
{
    return differs_by(got, want, steps, 1e-8);
}

/* Returns the ratio of the lengths if both have the same direction, otherwise 0. */
static double times(const double *got, const double *want, int t)
{
    double a = norm(got + t * UNITS), b = norm(want + t * UNITS);
    double both = dot(got + t * UNITS, want + t * UNITS, UNITS);
    return both > (1 - 1e-9) * a * b ? a / b : 0;
}

static void check_back(int steps)
{
    static double dh[ALL], other[ALL];
    for (int k = 0; k < ALL; k++)
        dh[k] = OLD;
    rnn_by_weft(1, 3, steps, last, &right);
    back(steps, UNITS, right.u, right.h, last, dh);
    int t = differs(dh, right.dh, steps);
    if (t < 0)
        return;
    if (t == steps - 1)
        hint("the gradient of the last step is `last`, because no step follows it");
    if (all_zero(dh + t * UNITS, UNITS))
        hint("back leaves dh_%d at zero: each unit of h_{t+1} adds a part to dh_t", t);
    if (dh[t * UNITS] == OLD && dh[t * UNITS + UNITS - 1] == OLD)
        hint("back does not write dh_%d: the loop runs from step T - 2 down to step 0",
             t);
    for (int m = RIGHT + 1; m < MISTAKES; m++) {
        walk_with(m, steps, other);
        if (differs(dh, other, steps) < 0)
            hint("%s", hints[m]);
    }
    if (differs_by(dh, right.dh, steps, 1e-4) < 0)
        hint("dh is right to about six digits, not to eight: use double instead of "
             "float");
    if (times(dh, right.dh, t) > 0)
        hint("the gradient has %s times its right length at step %d, and the right "
             "direction. Clipping changes the size, not how far the loss sees",
             digits(times(dh, right.dh, t)), t);
    int k = first_off(dh + t * UNITS, right.dh + t * UNITS, UNITS - 1, 1e-9);
    hint("dh is right from step %d on; at step %d, unit %d has %s, not %s", t + 1, t, k,
         BOTH(dh[t * UNITS + k], right.dh[t * UNITS + k]));
}

/* Checks other sizes. Spare numbers in u, h and dh identify a wrong index. */
enum { WIDEST = 40, LATEST = 90 };
static void check_units(int steps, int H)
{
    static double dh[LATEST * WIDEST], want[LATEST * WIDEST], u[WIDEST * WIDEST],
        h[LATEST * WIDEST], last[WIDEST];
    DICE_FILL(u), DICE_FILL(h), DICE_FILL(last);
    old_values(dh, LATEST * WIDEST, true);
    for (int k = 0; k < WIDEST * WIDEST; k++)
        u[k] *= sqrt(3. / H) / .73; /* the gradient keeps its length, on average */
    back(steps, H, u, h, last, dh);
    memcpy(want + (steps - 1) * H, last, (size_t)H * sizeof *last);
    for (int t = steps - 2; t >= 0; t--)
        for (int k = 0; k < H; k++) {
            double sum = 0;
            for (int j = 0; j < H; j++)
                sum += u[j * H + k] * slope(h, (t + 1) * H + j) * want[(t + 1) * H + j];
            want[t * H + k] = sum;
        }
    int at = first_off(dh, want, steps * H, 1e-8);
    if (at < steps * H)
        hint("back is right for 16 units, but not for %d units and %d steps, first at "
             "unit %d of step %d: row j of U begins at u[j * H], and step t at h[t * "
             "H] and dh[t * H]",
             H, steps, at % H, at / H);
}

/* ---- the forget gate ---- */
static bool about(double got, double want) { return is_near(got, want, 1e-3); }

/* The tolerance allows a bias of two or three digits. */
static bool a_tenth(double f, int factors)
{
    return fabs(pow(f, factors) - 0.1) < 0.01;
}

static void check_bias(int tokens)
{
    double bias = forget_bias(tokens), f = 1 / (1 + exp(-bias));
    int factors = tokens - 1;
    if (!isfinite(bias))
        hint("forget_bias for %d tokens is not a finite number: in C, 1 / %d is 0, so "
             "write 1.0 / %d",
             tokens, factors, factors);
    if (a_tenth(f, factors))
        return;
    const double right_f = pow(0.1, 1.0 / factors), half = pow(0.5, 1.0 / factors);
    if (about(bias, right_f))
        hint("forget_bias returns f: return the number whose sigmoid is f");
    if (about(bias, log(right_f)))
        hint("forget_bias returns log f: the sigmoid of log(f / (1 - f)) is f");
    if (about(bias, log10(right_f / (1 - right_f))))
        hint("forget_bias uses log10: the sigmoid has e^-x, so use log");
    if (about(bias, atanh(right_f)))
        hint("forget_bias inverts tanh: invert the sigmoid, 1 / (1 + e^-x)");
    if (bias != 0 && about(bias, log(half / (1 - half))))
        hint("with this bias a half is left, not a tenth");
    if (a_tenth(1 / (1 + exp(bias)), factors))
        hint("the bias has the wrong sign: a positive bias opens the forget gate");
    if (about(bias, log(pow(0.1, 1.0 / tokens) / (1 - pow(0.1, 1.0 / tokens)))))
        hint("from the first to the last of %d tokens there are %d steps with a factor "
             "f each, not %d",
             tokens, factors, tokens);
    if (tokens != STEPS && about(bias, forget_bias(STEPS)))
        hint("with a bias of %s a tenth is left after 60 tokens, but after %d tokens "
             "%.1e is left: the bias must depend on the length",
             digits(bias), tokens, pow(f, factors));
    if (f > 0.9999)
        hint("with a forget bias of %s, f is %s: an LSTM that cannot forget adds up "
             "all its inputs. Which f has a %dth power of 0.1?",
             digits(bias), digits(f), factors);
    hint("with a forget bias of %s, f is %s, and its %dth power is %.1e. Which f has a "
         "%dth power of 0.1, and which number has f as its sigmoid?",
         digits(bias), digits(f), factors, pow(f, factors), factors);
}

void check(void)
{
    dice_seed(3);
    dice_fill(last, UNITS);
    check_back(2);
    check_back(STEPS);
    check_back(1);
    check_units(7, 5), check_units(4, 24), check_units(9, 1);
    check_units(LATEST, WIDEST), check_units(2, 2), check_units(1, 3);
    check_bias(STEPS);
    check_bias(7);
    check_bias(250);
    check_bias(2);
    check_bias(3000);
}
