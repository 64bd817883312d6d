/* Lesson 1: checks single operations, whole backward passes, and 24 random
 * expressions against a backward pass of the check's own. */
#include "common/lesson.h"
#include "lesson.h"

static const char used_twice[] =
    "%s overwrites the gradient from another use of the same variable: use +=";

/* ---- a product ---- */
static void check_mul(void)
{
    tape t = { 0 };
    int a = leaf(&t, 3), b = leaf(&t, -2), y = mul(&t, a, b);
    t.at[a].grad = 0.5, t.at[b].grad = 0.25, t.at[y].grad = 4;
    back_mul(&t, &t.at[y]);
    double da = t.at[a].grad, db = t.at[b].grad;
    if (is(da, 0.5) && is(db, 0.25))
        hint("back_mul does not change the gradients of its inputs: add to both");
    if (is(da, 0.5) || is(db, 0.25))
        hint("back_mul does not change the gradient of %s: both inputs get a part",
             is(da, 0.5) ? "a" : "b");
    if (is(da, 0.5 + 4 * 0.25))
        hint("back_mul multiplies by the other input's gradient: d(a b)/da is the "
             "value of b");
    if (is(da, -8) || is(db, 12))
        hint(used_twice, "back_mul");
    if (is(da, 0.5 + 4 * 3) && is(db, 0.25 + 4 * -2))
        hint("back_mul multiplies by the wrong factor: d(a b)/da is b");
    if (is(da, 0.5 - 2) && is(db, 0.25 + 3))
        hint("back_mul leaves out the factor y->grad: add b * y->grad");
    hint_of_float("back_mul is", (double[]){ da, db }, (double[]){ 0.5 - 8, 0.25 + 12 },
                  2);
    if (!is(da, 0.5 - 8) || !is(db, 0.25 + 12))
        hint("back_mul of 3 * -2 with y->grad = 4 adds %s and %s, not -8 and 12",
             digits_unlike(da - 0.5, -8), digits_unlike(db - 0.25, 12));
}

static void check_square(void)
{
    tape t = { 0 };
    int b = leaf(&t, 3), y = mul(&t, b, b);
    t.at[y].grad = 4;
    back_mul(&t, &t.at[y]);
    if (!is(t.at[b].grad, 24))
        hint("back_mul of b * b at b = 3 adds %s times y->grad. The derivative is 2 b: "
             "b is used twice, and both uses count",
             digits(t.at[b].grad / 4));
}

/* ---- a tanh ---- */
static void check_tanh(void)
{
    tape t = { 0 };
    int x = leaf(&t, 0.5), at = squash(&t, x);
    double y = t.at[at].value, before = 0.25, grad = 2, of_tanh = 1 - y * y;
    t.at[x].grad = before, t.at[at].grad = grad;
    back_tanh(&t, &t.at[at]);
    double got = t.at[x].grad;
    if (is(got, before))
        hint("back_tanh does not change the gradient of its input: add (1 - y^2) * "
             "y->grad");
    if (is(got, grad * of_tanh))
        hint(used_twice, "back_tanh");
    const known_mistake mistakes[] = {
        { before + grad * (1 - 0.5 * 0.5),
          "computes 1 - x^2 from the input x: use the result y, 1 - y^2" },
        { before + grad * (1 - tanh(y) * tanh(y)),
          "computes tanh(y), but y is already the tanh: use 1 - y^2" },
        { before + of_tanh, "leaves out the factor y->grad: add (1 - y^2) * y->grad" },
        { before - grad * of_tanh, "has the wrong sign: tanh rises, so its derivative "
                                   "is 1 - y^2, which is positive" },
        { before + grad * (1 - y), "computes 1 - y: square y" },
        { before + grad * (1 + y * y), "computes 1 + y^2: subtract y^2" },
        { before + grad * y,
          "multiplies by the tanh: multiply by its derivative, 1 - y^2" },
    };
    double want = before + grad * of_tanh;
    HINT_OF_KNOWN("back_tanh", got, want, mistakes);
    if (!is(got, want))
        hint("back_tanh at y = %s with y->grad = 2 adds %s, not %s", digits(y),
             BOTH(got - before, grad * of_tanh));
}

static void check_far_tanh(void)
{
    tape t = { 0 };
    int x = leaf(&t, 800), at = squash(&t, x);
    t.at[at].grad = 1;
    back_tanh(&t, &t.at[at]);
    if (!is(t.at[x].grad, 0))
        hint("back_tanh at x = 800 adds %s, not 0: exp(800) is infinite, so use y, 1 - "
             "y^2",
             digits(t.at[x].grad));
}

/* ---- the backward pass ---- */
static const char leaves_tape[] =
    "backward reads outside the tape, which begins at entry 0. If k is unsigned, `k >= "
    "0` is always true: use an int";

/* Returns whether the pass visits more entries than `of`: then the product's gradient
 * 0, times infinity, leaves a NaN in a. */
static bool walks_forward(void)
{
    tape t = { 0 };
    int a = leaf(&t, 0.5), product = mul(&t, a, leaf(&t, INFINITY));
    t.at[product].grad = 0;
    backward(&t, squash(&t, a));
    return isnan(t.at[a].grad);
}

static void check_chain(void)
{
    tape t = { 0 };
    int a = leaf(&t, 0.5), b = leaf(&t, -1.5), product = mul(&t, a, b),
        y = squash(&t, product);
    int behind = mul(&t, y, a); /* does not contribute to y */
    t.at[behind].grad = 7; /* as an earlier pass may leave it */
    hint_of_crash(leaves_tape);
    backward(&t, y);
    hint_of_crash(NULL);
    if (t.at[behind].grad == 1)
        hint("backward begins at the end of the tape: it must begin at entry `of`");
    if (t.at[y].grad == 0)
        hint("backward starts from 0: the gradient of `of` is 1");
    double want = 1 - t.at[y].value * t.at[y].value, got = t.at[product].grad;
    if (is(t.at[y].grad, t.at[y].value))
        hint("backward starts from the value of `of`: its gradient is 1");
    hint_of_float("the gradients are", &got, &want, 1);
    if (!is(got, want))
        hint("backward must visit entry `of` exactly once: for y = tanh(p), dy/dp is "
             "%s, not %s",
             BOTH(got, want));
    if (t.at[a].grad == 0 && !walks_forward())
        hint("backward stops after entry `of`: for tanh(a b), the product a b has a "
             "gradient, but a and b have none. Visit every entry before `of`");
    if (t.at[a].grad == 0)
        hint("an entry's gradient is read before it is complete: for tanh(a b), the "
             "product a b has a gradient, but a and b have none. From which end must "
             "you read the tape?");
    if (!is(t.at[b].grad, t.at[product].grad * t.at[a].value))
        hint("for y = tanh(a b), dy/db is %s, not %s",
             BOTH(t.at[b].grad, got * t.at[a].value));
    if (t.at[behind].grad != 0)
        hint("old gradients remain: an entry that does not contribute to `of` has %s, "
             "not 0. Set all gradients to 0 first",
             digits(t.at[behind].grad));
}

static void check_again(void)
{
    tape t = { 0 };
    int b = leaf(&t, 3), y = add(&t, mul(&t, b, b), b);
    backward(&t, y);
    double once = t.at[b].grad;
    backward(&t, y);
    if (is(once, 7) && is(t.at[b].grad, 7))
        return;
    if (is(once, 7))
        hint("old gradients remain: for b b + b, the gradient of b is 7 after one pass "
             "and %s after a second. Set all gradients to 0 first",
             digits(t.at[b].grad));
    hint("the derivative of b b + b at 3 is %s, not 7: all three uses of b count",
         digits(once));
}

static void check_leaf(void)
{
    tape t = { 0 };
    int a = leaf(&t, 2), b = leaf(&t, 3);
    t.at[a].grad = t.at[b].grad = 5;
    backward(&t, a);
    if (!is(t.at[a].grad, 1) || !is(t.at[b].grad, 0))
        hint("backward of a leaf a leaves a with %s and another leaf with %s; expected "
             "1 and 0",
             digits(t.at[a].grad), digits(t.at[b].grad));
}

/* ---- random expressions ---- */
enum { LEAVES = 3, EXPRESSIONS = 24 };

static int push_any(tape *t)
{
    int a = dice_below(t->n), b = dice_below(t->n);
    switch (dice_below(6)) {
    case 0: return add(t, a, b);
    case 1: return mul(t, a, b);
    case 2: return squash(t, a);
    case 3: return relu(t, a);
    case 4: return scale(t, a, dice()); /* adds a leaf in the middle of the tape */
    default: return power(t, squash(t, a), 2);
    }
}

/* Appends a random expression of about n entries and returns its result. Later entries
 * may follow it. All gradients hold old numbers. */
static int expression(tape *t, int n)
{
    for (int k = 0; k < LEAVES; k++)
        leaf(t, (k ? 1 : 4) * dice()); /* tanh of the first may be nearly 1 */
    while (t->n < n)
        if (fabs(t->at[push_any(t)].value) > 3)
            squash(t, t->n - 1); /* keeps a long expression finite */
    int of = squash(t, add(t, t->n - 1, t->n - 2));
    if (n % 2) /* small gradients, and tiny ones on the way */
        of = scale(t, scale(t, of, 1e20), -1e-24);
    for (int k = dice_below(3); k > 0; k--)
        push_any(t);
    for (int k = 0; k < t->n; k++)
        t->at[k].grad = k % 5 ? 1 + dice_below(8) : NAN;
    return of;
}

/* Computes the gradients of all entries. stops: with a known mistake. */
static void walk(const tape *t, int of, bool stops, double grad[MOST])
{
    for (int k = 0; k < t->n; k++)
        grad[k] = k == of;
    for (int k = of; k >= 0; k--) {
        const node *y = &t->at[k];
        double a = t->at[y->a].value, g = grad[k];
        if (stops && g == 0)
            return;
        if (y->op == ADD)
            grad[y->a] += g, grad[y->b] += g;
        if (y->op == MUL)
            grad[y->a] += g * t->at[y->b].value, grad[y->b] += g * a;
        if (y->op == TANH)
            grad[y->a] += g * (1 - y->value * y->value);
        if (y->op == POWER)
            grad[y->a] += g * y->exponent * pow(a, y->exponent - 1);
        if (y->op == RELU)
            grad[y->a] += y->value > 0 ? g : 0;
    }
}

static void check_expression(int number)
{
    tape t = { 0 };
    double want[MOST], stopped[MOST];
    int y = expression(&t, number % 4 ? LEAVES + number : MOST - 20);
    walk(&t, y, false, want), walk(&t, y, true, stopped);
    backward(&t, y);
    for (int k = t.n - 1; k > y; k--)
        if (t.at[k].grad != 0)
            hint("random expression %d: entry %d follows entry `of`, which is %d, and "
                 "keeps an old gradient, %s. Set all t->n gradients to 0 first",
                 number, k, y, digits(t.at[k].grad));
    for (int k = y; k >= 0; k--) {
        if (is(t.at[k].grad, want[k]))
            continue;
        int same = k; /* entries below it are as if the pass stopped */
        while (same >= 0 && is(t.at[same].grad, stopped[same]))
            same--;
        if (same < 0)
            hint("backward ends at an entry whose gradient is 0: go on, because "
                 "entries before it may have other paths to `of`");
        hint("random expression %d: entry %d of %d has the gradient %s, not %s%s",
             number, k, t.n, BOTH(t.at[k].grad, want[k]),
             t.at[k].grad != 0 && is_near(t.at[k].grad, want[k], 1e-5) ?
                 ": use double, not float" :
                 "");
    }
}

void check(void)
{
    check_mul();
    check_square();
    check_tanh();
    check_far_tanh();
    check_chain();
    check_again();
    check_leaf();
    dice_seed(1);
    for (int k = 0; k < EXPRESSIONS; k++)
        check_expression(k + 1);
}
