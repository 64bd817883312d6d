/* Lesson 5: checks correlations, the choice of units, and errors without a unit. */
#include "common/lesson.h"
#include "common/mistakes.h"
#include "given.h"

/* ---- correlation, right and with known mistakes ---- */
enum { MOST_N = 3000, MOST_STEP = 5 };
static int N, A_STEP, B_STEP; /* of the numbers under test */

static double correlation_with(int m, const double *a, const double *b)
{
    int a_step = m == NO_STEPS || m == NO_A_STEP ? 1 : A_STEP;
    int b_step = m == NO_STEPS || m == NO_B_STEP ? 1 : B_STEP;
    double of_a = 0, of_b = 0, aa = 0, bb = 0, ab = 0;
    for (int i = 0; i < N && m != NO_MEANS; i++)
        of_a += a[i * a_step] / N, of_b += b[i * b_step] / N;
    for (int i = 0; i < N; i++) {
        double x = a[i * a_step] - of_a, y = b[i * b_step] - of_b;
        aa += x * x, bb += y * y, ab += x * y;
    }
    switch (m) {
    case NOT_DIVIDED: return ab;
    case NO_ROOT: return ab / (aa * bb);
    case SIZE_ONLY: return fabs(ab) / sqrt(aa * bb);
    case R_SQUARED: return ab * ab / (aa * bb);
    case BY_A_ONLY: return ab / aa;
    case BY_B_ONLY: return ab / bb;
    case DIVIDED_BY_N: return ab / N / sqrt(aa * bb);
    case N_MINUS_1: return ab / sqrt(aa * bb) * N / (N - 1);
    case N_MINUS_1_BELOW: return ab / sqrt(aa * bb) * (N - 1) / N;
    default: return ab / sqrt(aa * bb);
    }
}

static void check_constant(double value, double other)
{
    static double a[MOST_N], b[MOST_N], c[MOST_N];
    dice_fill(b, N);
    for (int i = 0; i < N; i++)
        a[i] = value, c[i] = other;
    double got = correlation(N, a, 1, b, 1), turned = correlation(N, b, 1, a, 1),
           both = correlation(N, a, 1, c, 1);
    if (isnan(got) || isnan(turned))
        hint("correlation with a constant unit is 0 / 0: return 0, because NaN makes "
             "later comparisons wrong");
    if (!is_near(got, 0, 1e-9) || !is_near(turned, 0, 1e-9))
        hint("correlation with a constant unit is %s; it should be 0",
             digits(fabs(got) > 1e-9 ? got : turned));
    if (!is_near(both, 0, 1e-9))
        hint("correlation of %d times %g with as many %g is %s; it should be 0. The "
             "mean is rounded, so a number minus the mean is not exactly 0: first "
             "subtract a[0] from each a, and b[0] from each b",
             N, value, other, digits(both));
}

static void check_correlation(void)
{
    static double a[MOST_N * MOST_STEP], b[MOST_N * MOST_STEP];
    const double slope[] = { -2, 2, -2, 200, 2 }, scale[] = { 1, 1e-9, 1, 1, 1 },
                 mean[] = { 2, 2, 2, 2, 1e5 };
    for (int k = 0; k < 5; k++) {
        dice_fill(a, N * A_STEP), dice_fill(b, N * B_STEP);
        for (int i = 0; i < N; i++)
            b[i * B_STEP] = .5 + k + b[i * B_STEP] + slope[k] * a[i * A_STEP],
                  a[i * A_STEP] = scale[k] * (a[i * A_STEP] + mean[k]);
        double got = correlation(N, a, A_STEP, b, B_STEP),
               want = correlation_with(RIGHT, a, b);
        if (got == 0 && k == 0)
            hint("correlation gives 0 for correlated numbers: fill it in first");
        if (got == 0)
            hint("correlation of small numbers, about 1e-9, is 0, not %s: only a sum "
                 "of squares of 0 means a constant",
                 digits(want));
        for (int m = NO_MEANS; m <= N_MINUS_1_BELOW && !is_near(got, want, 1e-9); m++)
            if (is_near(got, correlation_with(m, a, b), 1e-9))
                hint("%s", hints[m]);
        if (mean[k] > 2 && !is_near(got, want, 1e-9))
            hint("correlation loses digits if the mean is large (1e5): subtract the "
                 "means first, then multiply");
        hint_of_float("correlation is", &got, &want, 1);
        if (!is_near(got, want, 1e-9))
            hint("correlation is %s, not %s", BOTH(got, want));
    }
    check_constant(0, .5), check_constant(.5, 3), check_constant(.1, .7);
}

/* ---- the unit ---- */
/* Returns the unit with the largest correlation; size: regardless of sign. */
static int unit_by(const record *r, int output, const double *numbers, bool size)
{
    int best = 0;
    double most = 0;
    for (int j = 0; j < UNITS; j++) {
        double with =
            correlation(r->n, numbers + j, UNITS, r->target + output, OUTPUTS);
        with = size ? fabs(with) : with;
        if (j == 0 || with > most)
            most = with, best = j;
    }
    return best;
}

/* Returns whether this rule finds the same two units as the student's unit_for. */
static bool both_by(const record *r, const int got[OUTPUTS], const double *numbers,
                    bool size)
{
    return got[0] == unit_by(r, 0, numbers, size) &&
           got[1] == unit_by(r, 1, numbers, size);
}

static double of_unit(const record *r, int j, int output)
{
    return correlation(r->n, r->c + j, UNITS, r->target + output, OUTPUTS);
}

static void check_unit(const record *r, const char *of)
{
    static const char *const names[] = { "the depth", "the quotes" };
    const int got[] = { unit_for(r, 0), unit_for(r, 1) }, turned[] = { got[1], got[0] };
    if (both_by(r, got, r->c, true))
        return;
    int o = got[0] == unit_by(r, 0, r->c, true), want = unit_by(r, o, r->c, true);
    if (got[o] < 0 || got[o] >= UNITS)
        hint("unit_for returns %d, but units are 0 .. %d", got[o], UNITS - 1);
    if (both_by(r, got, r->c, false))
        hint("unit_for takes the sign into account: unit %d of %s has a correlation of "
             "%s with %s, and a unit that counts down is also a counter",
             want, of, digits(of_unit(r, want, o)), names[o]);
    if (both_by(r, got, r->h, true) || both_by(r, got, r->h, false))
        hint("unit_for finds unit %d of %s for %s from h, which is gated: use c",
             got[o], of, names[o]);
    if (both_by(r, turned, r->c, true))
        hint("unit_for finds the unit of the other output: the target of token i for "
             "output o is target[i * OUTPUTS + o]");
    double with = of_unit(r, got[o], o), best = of_unit(r, want, o);
    hint(
        "unit_for finds unit %d of %s for %s, with a correlation of %s; unit %d has %s",
        got[o], of, names[o], digits_unlike(with, best), want,
        digits_unlike(best, with));
}

/* ---- a record of random numbers: c of unit 2 follows the depth downwards, c of unit 3
 * follows the quotes. Sign, h and the other output each lead to other units. All
 * units are numbered from `turn` on. If `close`, unit 1 follows the depth almost as
 * well as unit 2 ---- */
static void made_up(reading *to, int turn, bool close)
{
    record *r = &to->r;
    const double noise = close ? .003 : .1, sign = close ? -1 : 1;
    *r = (record){ .n = N, .c = to->c, .h = to->h, .target = to->target };
    dice_fill(to->c, N * UNITS), dice_fill(to->h, N * UNITS),
        dice_fill(to->target, N * OUTPUTS);
    dice_fill(r->weight[0], OUTPUTS * UNITS), dice_fill(r->bias, OUTPUTS);
    for (int i = 0; i < N; i++) {
        const double *target = to->target + i * OUTPUTS;
        double *h = to->h + i * UNITS, *c[UNITS];
        for (int j = 0; j < UNITS; j++)
            c[j] = to->c + i * UNITS + (j + turn) % UNITS;
        *c[0] = .5, *c[1] = sign * target[DEPTH] + 10 * noise * *c[1];
        *c[2] = -target[DEPTH] + noise * *c[2], *c[3] = target[QUOTE] + noise * *c[3];
        h[turn] = target[DEPTH], h[(turn + 1) % UNITS] = target[QUOTE];
    }
}

/* ---- the error ---- */
static bool counts(int m, int j, int cut)
{
    switch (m) {
    case ONLY_CUT: return j == cut;
    case UNIT_BEFORE: return j != cut - 1;
    case ZERO_FOR_NONE: return j != (cut < 0 ? 0 : cut);
    case NOT_CUT: return true;
    case NONE_AT_ALL: return j != cut && cut >= 0;
    default: return j != cut;
    }
}

static double error_with(int m, const record *r, int output, int cut)
{
    double error = 0;
    for (int i = 0; i < r->n; i++) {
        double answer = m == BIAS_CUT ? 0 : r->bias[m == BIAS_OF_0 ? 0 : output],
               all = r->bias[output];
        for (int j = 0; j < UNITS; j++) {
            int at = m == H_TRANSPOSED ? j * r->n + i : i * UNITS + j;
            int of = m == WEIGHT_TRANSPOSED ? j * OUTPUTS + output : output * UNITS + j;
            double part =
                r->weight[of / UNITS][of % UNITS] * (m == FROM_C ? r->c : r->h)[at];
            answer += counts(m, j, cut) ? part : 0, all += part;
        }
        int at = m == TARGET_TRANSPOSED ? output * r->n + i : i * OUTPUTS + output;
        double off = answer - (m == CHANGE ? all : r->target[at]);
        error += m == SIGNED               ? off :
                 m == INTEGERS             ? abs((int)off) :
                 m == SQUARED || m == ROOT ? off * off :
                                             fabs(off);
    }
    switch (m) {
    case SUM: return error;
    case ROOT: return sqrt(error / r->n);
    case BY_UNITS: return error / UNITS;
    case ONE_LESS: return error / (r->n - 1);
    default: return error / r->n;
    }
}

/* cut = -1 comes last: only there NONE_AT_ALL and ONLY_CUT are the same. */
static void check_error(const record *r)
{
    for (int o = 0; o < OUTPUTS; o++)
        for (int cut = UNITS - 1; cut >= -1; cut--) {
            double got = error_without(r, o, cut), want = error_with(RIGHT, r, o, cut);
            if (is_near(got, want, 1e-9))
                continue;
            if (got == 0)
                hint("error_without gives 0: add |output - target| of each token");
            for (int m = SIGNED; m <= BY_UNITS; m++) {
                double wrong = error_with(m, r, o, cut);
                if (m == ONLY_CUT && cut < 0)
                    continue;
                if (is_near(got, wrong, 1e-9) ||
                    (m == SIGNED && is_near(got, fabs(wrong), 1e-9)))
                    hint("%s", hints[m]);
            }
            hint_of_float("error_without is", &got, &want, 1);
            hint("error_without of output %d and unit %d should be %s, not %s", o, cut,
                 BOTH(want, got));
        }
}

static void check_numbers(int n, int a_step, int b_step, int turn)
{
    static reading now;
    N = n, A_STEP = a_step, B_STEP = b_step;
    check_correlation();
    made_up(&now, turn, turn == 3);
    check_unit(&now.r, "an invented network");
    check_error(&now.r);
    for (int i = 0; i < N * UNITS; i++)
        now.c[i] = .5;
    int unit = unit_for(&now.r, 0);
    if (unit < 0 || unit >= UNITS)
        hint("unit_for returns %d if all units are constant, not 0 .. %d", unit,
             UNITS - 1);
}

void check(void)
{
    static reading now;
    static net *n; /* trained once */
    dice_seed(5);
    check_numbers(64, 3, 2, 0), check_numbers(37, 1, 4, 1), check_numbers(10, 5, 1, 2);
    check_numbers(MOST_N, 2, 3, 3);
    n = n ? n : net_trained();
    net_reads(n, TEXTS, LONG, &now);
    check_unit(&now.r, "the trained network");
    check_error(&now.r);
}
