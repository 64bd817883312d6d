/* Lesson 1: prints a small expression on the tape, a larger one on the tape and in
 * weft, and gradients of gradients. */
#include "weft_op.h"
#include "weft_plot.h"
#include "common/lesson.h"
#include "lesson.h"

static const char *const names[] = { "given", "+", "*", "tanh", "power", "relu" };

static void show_entries(const tape *t)
{
    printf("entry  what        value  gradient\n");
    for (int k = 0; k < t->n; k++) {
        const node *y = &t->at[k];
        char what[32];
        snprintf(what, sizeof what,
                 y->op == LEAF ? "%s" :
                 y->op == TANH ? "%s %d" :
                                 "%2$d %1$s %3$d",
                 names[y->op], y->a, y->b);
        printf("%5d  %-8s %8s  %8s\n", k, what, digits(y->value), digits(y->grad));
    }
}

static void show_small(void)
{
    tape t = { 0 };
    int a = leaf(&t, 2), b = leaf(&t, -0.5);
    int y = squash(&t, add(&t, mul(&t, a, b), b));
    backward(&t, y);
    printf("y = tanh(a b + b)   a = 2   b = -0.5\n");
    show_entries(&t);
}

/* ---- the expression of micrograd's README, twice ---- */
static int on_tape(tape *t, int a, int b)
{
    int c = add(t, a, b), d = add(t, mul(t, a, b), power(t, b, 3));
    c = add(t, c, add(t, c, leaf(t, 1)));
    c = add(t, c, sub(t, add(t, leaf(t, 1), c), a));
    d = add(t, d, add(t, scale(t, d, 2), relu(t, add(t, b, a))));
    d = add(t, d, add(t, scale(t, d, 3), relu(t, sub(t, b, a))));
    int f = power(t, sub(t, c, d), 2);
    return add(t, scale(t, f, 0.5), quotient(t, leaf(t, 10), f));
}

static weft_tensor *in_weft(weft *w, weft_tensor *a, weft_tensor *b)
{
    weft_tensor *one = weft_scalar(w, 1), *ten = weft_scalar(w, 10);
    weft_tensor *c = weft_add(a, b), *d = weft_add(weft_mul(a, b), weft_pow(b, 3));
    c = weft_add(c, weft_add(c, one));
    c = weft_add(c, weft_sub(weft_add(one, c), a));
    d = weft_add(d, weft_add(weft_scale(d, 2), weft_relu(weft_add(b, a))));
    d = weft_add(d, weft_add(weft_scale(d, 3), weft_relu(weft_sub(b, a))));
    weft_tensor *f = weft_square(weft_sub(c, d));
    return weft_add(weft_scale(f, 0.5), weft_div(ten, f));
}

static void show_large(void)
{
    tape t = { 0 };
    int a = leaf(&t, -4), b = leaf(&t, 2), g = on_tape(&t, a, b);
    backward(&t, g);
    weft *w = lesson_open(1);
    weft_tensor *x[] = { weft_scalar(w, -4), weft_scalar(w, 2) }, *by[2];
    weft_tensor *same = in_weft(w, x[0], x[1]);
    weft_gradients(same, x, 2, by);
    printf("\nmicrograd's example, %d entries\n", t.n);
    printf("            tape       weft\ng      %9.4f  %9.4f\n", t.at[g].value,
           weft_item(same));
    printf("dg/da  %9.4f  %9.4f\n", t.at[a].grad, weft_item(by[0]));
    printf("dg/db  %9.4f  %9.4f\n", t.at[b].grad, weft_item(by[1]));
    lesson_close(w);
}

/* A recorded backward pass is itself on the tape, so its result has a gradient. */
static void show_higher(void)
{
    weft *w = lesson_open(1);
    weft_tensor *x = weft_scalar(w, 3), *y = weft_mul(weft_mul(x, x), x);
    printf("\nx^3 at 3 and its derivatives, by weft: %s", digits(weft_item(y)));
    for (int order = 1; order <= 3; order++) {
        weft_gradients_recorded(y, &x, 1, &y);
        printf("  %s", digits(weft_item(y)));
    }
    printf("\n");
    lesson_close(w);
}

void show(void)
{
    hint_of_crash("backward reads outside the tape");
    show_small();
    show_large();
    show_higher();
}

static weft_tensor *named(weft_module *m, const char *name, double value)
{
    weft_tensor *x = weft_parameter(m, name, 0, NULL, (weft_init){ 0 });
    weft_assign_values(x, &value, 1);
    return x;
}

weft_status draw(const char *path)
{
    weft *w = lesson_open(1);
    weft_module *m = weft_module_new(w, "x");
    weft_tensor *g = in_weft(w, named(m, "a", -4), named(m, "b", 2));
    weft_status status = weft_plot_tape(path, "The tape of micrograd's example", w, g);
    lesson_close(w);
    return status;
}
