/* Lesson 1, solved. */
#include "lesson.h"

static void back_add(tape *t, const node *y)
{
    t->at[y->a].grad += y->grad;
    t->at[y->b].grad += y->grad;
}

static void back_power(tape *t, const node *y)
{
    t->at[y->a].grad += y->exponent * pow(t->at[y->a].value, y->exponent - 1) * y->grad;
}

static void back_relu(tape *t, const node *y)
{
    t->at[y->a].grad += y->value > 0 ? y->grad : 0;
}

void back_mul(tape *t, const node *y)
{
#ifdef START
    (void)t, (void)y;           /* how much do a and b get? */
#else
    t->at[y->a].grad += t->at[y->b].value * y->grad;
    t->at[y->b].grad += t->at[y->a].value * y->grad;
#endif
}

void back_tanh(tape *t, const node *y)
{
#ifdef START
    (void)t, (void)y;           /* how much does a get? y->value is the tanh */
#else
    t->at[y->a].grad += (1 - y->value * y->value) * y->grad;
#endif
}

static void back(tape *t, const node *y)
{
    switch (y->op) {
    case ADD:   back_add(t, y); break;
    case MUL:   back_mul(t, y); break;
    case TANH:  back_tanh(t, y); break;
    case POWER: back_power(t, y); break;
    case RELU:  back_relu(t, y); break;
    case LEAF:  break;
    }
}

void backward(tape *t, int of)
{
#ifdef START
    t->at[of].grad = 1;         /* which value must all others have first? */
    back(t, &t->at[of]);        /* which entries follow, in which order? */
#else
    for (int k = 0; k < t->n; k++)
        t->at[k].grad = 0;
    t->at[of].grad = 1;
    for (int k = of; k >= 0; k--)
        back(t, &t->at[k]);
#endif
}
