/* Lesson 1: single steps back, whole walks, and twelve random
 * expressions beside a walk of the check's own. */
#include "common/lesson.h"
#include "lesson.h"

static const char used_twice[] =
    "%s overwrites a gradient that is there already: the variable is used twice: what "
    "of the first use? Add, +=";

/* ---- a product ---- */
static void check_mul(void)
{
    tape t = { 0 };
    int a = leaf(&t, 3), b = leaf(&t, -2), y = mul(&t, a, b);
    t.at[a].grad = 0.5, t.at[b].grad = 0.25, t.at[y].grad = 4;
    back_mul(&t, &t.at[y]);
    double da = t.at[a].grad, db = t.at[b].grad;
    if (is(da, 0.5) && is(db, 0.25))
        hint("back_mul leaves the gradients of its inputs as they are: add to both");
    if (is(da, -8) || is(db, 12))
        hint(used_twice, "back_mul");
    if (is(da, 0.5 + 4 * 3) && is(db, 0.25 + 4 * -2))
        hint("back_mul gives each factor its own value: d(a b)/da is b");
    if (is(da, 0.5 - 2) && is(db, 0.25 + 3))
        hint("back_mul leaves out the factor y->grad: add b * y->grad");
    hint_of_float("back_mul is", (double[]){ da, db }, (double[]){ 0.5 - 8, 0.25 + 12 },
                  2);
    if (!is(da, 0.5 - 8) || !is(db, 0.25 + 12))
        hint("back_mul of 3 * -2 with y->grad = 4 adds %s and %s, not -8 and 12",
             digits(da - 0.5), digits(db - 0.25));
}

static void check_square(void)
{
    tape t = { 0 };
    int b = leaf(&t, 3), y = mul(&t, b, b);
    t.at[y].grad = 4;
    back_mul(&t, &t.at[y]);
    if (!is(t.at[b].grad, 24))
        hint("back_mul of b * b at 3 adds %s times y->grad; the derivative is 2 b, as "
             "b is used twice: what of the first use?",
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
        hint("back_tanh leaves the gradient of its input as it is: add 1 - y^2");
    if (is(got, grad * of_tanh))
        hint(used_twice, "back_tanh");
    if (is(got, before + grad * (1 - 0.5 * 0.5)))
        hint("back_tanh takes 1 - x^2, with the input x: take the result y: 1 - y^2");
    if (is(got, before + grad * (1 - tanh(y) * tanh(y))))
        hint("back_tanh takes tanh of y, which is a tanh already: 1 - y^2");
    if (is(got, before + of_tanh))
        hint("back_tanh leaves out the factor y->grad: add (1 - y^2) * y->grad");
    double want = before + grad * of_tanh;
    hint_of_float("back_tanh is", &got, &want, 1);
    if (!is(got, want))
        hint("back_tanh at y = %s with y->grad = 2 adds %s, which should be %s",
             digits(y), digits(got - before), digits(grad * of_tanh));
}

/* ---- the walk ---- */
static const char leaves_tape[] =
    "backward leaves the tape, which begins at entry 0: is k in `k >= 0` unsigned? It "
    "is never below 0; take an int";

/* Returns whether the walk visits later entries first: 0 times infinity leaves a NaN.
 */
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
    t.at[behind].grad = 7; /* as an earlier walk may leave it */
    hint_of_crash(leaves_tape);
    backward(&t, y);
    hint_of_crash(NULL);
    if (t.at[behind].grad == 1)
        hint("backward begins at the end of the tape: it must begin at entry `of`");
    if (t.at[y].grad == 0)
        hint("backward starts from 0: the gradient of `of` is 1");
    if (!is(t.at[product].grad, 1 - t.at[y].value * t.at[y].value))
        hint("backward does not come to what entry `of` is made of, or comes twice: of "
             "y = tanh(p) dy/dp is %s, which should be %s",
             digits(t.at[product].grad), digits(1 - t.at[y].value * t.at[y].value));
    if (t.at[a].grad == 0 && !walks_forward())
        hint("backward goes one step and stops: tanh(a b) has given its gradient to a "
             "b, but a and b have none; each entry before `of` must have its turn");
    if (t.at[a].grad == 0)
        hint("a node's gradient is read before its users have written: tanh(a b) has "
             "given its gradient to a b, but a and b have none; from which end must "
             "the tape be walked?");
    if (!is(t.at[b].grad, t.at[product].grad * t.at[a].value))
        hint("of y = tanh(a b) dy/db is %s, which should be %s", digits(t.at[b].grad),
             digits(t.at[product].grad * t.at[a].value));
    if (t.at[behind].grad != 0)
        hint("gradients of the walk before are still there: an entry that has not led "
             "to `of` keeps %s instead of 0; set all to 0 first",
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
        hint("gradients of the walk before are still there: of b b + b, b is 7 at "
             "first and %s the second time; set all to 0 first",
             digits(t.at[b].grad));
    hint("the derivative of b b + b at 3 is %s, not 7: all three uses of b count",
         digits(once));
}

/* ---- random expressions ---- */
enum { LEAVES = 3, STEPS = 16 };

static int push_any(tape *t)
{
    int a = dice_below(t->n), b = dice_below(t->n);
    switch (dice_below(6)) {
    case 0: return add(t, a, b);
    case 1: return mul(t, a, b);
    case 2: return squash(t, a);
    case 3: return relu(t, a);
    case 4: return scale(t, a, dice()); /* a constant in the middle of the tape */
    default: return power(t, squash(t, a), 2);
    }
}

/* Returns the entry to begin at. Later entries exist, and all gradients hold old
 * numbers. */
static int expression(tape *t)
{
    for (int k = 0; k < LEAVES; k++)
        leaf(t, dice());
    for (int k = 0; k < STEPS; k++)
        push_any(t);
    int of = squash(t, add(t, t->n - 1, t->n - 2));
    for (int k = dice_below(3); k > 0; k--)
        push_any(t);
    for (int k = 0; k < t->n; k++)
        t->at[k].grad = 1 + dice_below(8);
    return of;
}

/* Computes the gradients of all entries. */
static void walk(const tape *t, int of, double grad[MOST])
{
    for (int k = 0; k < t->n; k++)
        grad[k] = k == of;
    for (int k = of; k >= 0; k--) {
        const node *y = &t->at[k];
        double a = t->at[y->a].value, g = grad[k];
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
    double want[MOST];
    int y = expression(&t);
    walk(&t, y, want);
    backward(&t, y);
    for (int k = t.n - 1; k > y; k--)
        if (t.at[k].grad != 0)
            hint("random expression %d: entry %d comes after entry `of`, which is %d, "
                 "and keeps the gradient %s of before: set all to 0 first, up to t->n",
                 number, k, y, digits(t.at[k].grad));
    for (int k = y; k >= 0; k--)
        if (!is(t.at[k].grad, want[k]))
            hint("random expression %d: entry %d has the gradient %s, not %s", number,
                 k, digits(t.at[k].grad), digits(want[k]));
}

void check(void)
{
    check_mul();
    check_square();
    check_tanh();
    check_chain();
    check_again();
    dice_seed(1);
    for (int k = 0; k < 12; k++)
        check_expression(k + 1);
}
