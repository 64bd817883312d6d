/* Lesson 3: the student's walk beside weft's, and an LSTM with the student's forget bias. */
#include "common/lesson.h"
#include "given.h"

enum { ALL = STEPS * UNITS };
static double last[UNITS];
static walk right;

/* ---- what comes of the usual mistakes ---- */
enum { RIGHT, U_AS_IT_IS, H_TOO_EARLY, NO_TANH, OF_THE_SUM, ONLY_ONE_STEP, MISTAKES };
static const char *const hints[MISTAKES] = {
    [U_AS_IT_IS] =
        "U is used as on the way forward: there h_{t+1}, unit j, takes row j of U; so what goes back to "
        "unit k of h_t are the numbers of column k, U transposed",
    [H_TOO_EARLY] =
        "1 - h^2 is that of the wrong step: h_t has gone into the tanh that made h_{t+1}, so the factor "
        "is 1 - h_{t+1}^2",
    [NO_TANH] = "the factor of tanh is missing: from h_{t+1} to its sum it is 1 - h_{t+1}^2",
    [OF_THE_SUM] =
        "this is the gradient by the sum of step t, not by h_t: 1 - h^2 comes first, of step t + 1, then "
        "U transposed",
    [ONLY_ONE_STEP] =
        "each step takes from `last`: dh_t is made of dh_{t+1}, which has come through all later steps",
};

static double slope(const double *h, int t, int j) { return 1 - h[t * UNITS + j] * h[t * UNITS + j]; }

static void walk_with(int mistake, int steps, double *dh)
{
    memcpy(dh + (steps - 1) * UNITS, last, sizeof last);
    for (int t = steps - 2; t >= 0; t--)
        for (int k = 0; k < UNITS; k++) {
            double sum = 0;
            for (int j = 0; j < UNITS; j++) {
                double u = mistake == U_AS_IT_IS ? right.u[k * UNITS + j] : right.u[j * UNITS + k];
                double d = mistake == ONLY_ONE_STEP ? last[j] : dh[(t + 1) * UNITS + j];
                bool bare = mistake == NO_TANH || mistake == OF_THE_SUM;
                sum += u * d * (bare ? 1 : slope(right.h, t + (mistake != H_TOO_EARLY), j));
            }
            dh[t * UNITS + k] = sum * (mistake == OF_THE_SUM ? slope(right.h, t, k) : 1);
        }
}

/* Each step's gradient beside its own length: they are of very different sizes. */
static bool same_at(const double *got, const double *want, int t)
{
    double apart[UNITS];
    for (int k = 0; k < UNITS; k++)
        apart[k] = got[t * UNITS + k] - want[t * UNITS + k];
    return norm(apart) <= 1e-8 * norm(want + t * UNITS);
}

/* The latest step, that is the first on the way, that is not the same; -1 if there is none. */
static int differs(const double *got, const double *want, int steps)
{
    for (int t = steps - 1; t >= 0; t--)
        if (!same_at(got, want, t))
            return t;
    return -1;
}

/* How often got is as long as want, if it points to the same side; else 0. */
static double times(const double *got, const double *want, int t)
{
    double both = 0, a = norm(got + t * UNITS), b = norm(want + t * UNITS);
    for (int k = 0; k < UNITS; k++)
        both += got[t * UNITS + k] * want[t * UNITS + k];
    return both > (1 - 1e-9) * a * b ? a / b : 0;
}

static void check_back(int steps)
{
    static double dh[ALL + 1], other[ALL], zeros[UNITS];
    for (int k = 0; k <= ALL; k++)
        dh[k] = 7; /* what memory may hold before */
    rnn_by_weft(1, 3, steps, last, &right);
    back(steps, UNITS, right.u, right.h, last, dh);
    if (dh[steps * UNITS] != 7)
        hint("back writes behind the last step: dh has %d steps of %d numbers", steps, UNITS);
    int t = differs(dh, right.dh, steps);
    if (t < 0)
        return;
    if (t == steps - 1)
        hint("the last step's gradient is `last`: nothing comes after it");
    if (near(dh + t * UNITS, zeros, UNITS, 0))
        hint("back leaves dh_%d at zero: what comes to h_t from all units of h_{t+1}?", t);
    for (int m = RIGHT + 1; m < MISTAKES; m++) {
        walk_with(m, steps, other);
        if (differs(dh, other, steps) < 0)
            hint("%s", hints[m]);
    }
    if (times(dh, right.dh, t) > 0)
        hint("the gradient is %s times as long as it should be at step %d, its direction is right: if it is "
             "clipped or "
             "brought to a length on the way, that changes its size, not how far the loss sees",
             digits(times(dh, right.dh, t)), t);
    hint("dh of steps %d and later is right; the first number of step %d is %s, which should be %s", t + 1, t,
         digits(dh[t * UNITS]), digits(right.dh[t * UNITS]));
}

/* ---- the forget gate ---- */
static double mean_forget(void)
{
    double sum = 0;
    for (int k = 0; k < ALL; k++)
        sum += right.f[k];
    return sum / ALL;
}

static void check_bias(void)
{
    double bias = forget_bias(), ones[UNITS];
    for (int j = 0; j < UNITS; j++)
        ones[j] = 1;
    if (!isfinite(bias))
        hint("forget_bias gives no finite number");
    lstm_by_weft(bias, 1, STEPS, ones, &right);
    double left = norm(right.dc), f = mean_forget();
    if (left < 0.1)
        hint("with a forget bias of %s |dL/dc_0| is %.1e: f is about %s, and its 59th power %.1e; which f "
             "has a "
             "59th power of 0.1, and of which number is it the sigmoid?",
             digits(bias), left, digits(f), pow(f, 59));
    if (left > 10)
        hint("with a forget bias of %s |dL/dc_0| is %s, more than 10: f is about %s, the gates do not close "
             "any more, "
             "and an LSTM that cannot forget adds up all it reads",
             digits(bias), digits(left), digits(f));
}

void check(void)
{
    dice_seed(3);
    dice_fill(last, UNITS);
    check_back(2);
    check_back(STEPS);
    check_back(1);
    check_bias();
}
