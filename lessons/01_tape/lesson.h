/* Lesson 1: the functions that you write. */
#ifndef WEFT_LESSON_01
#define WEFT_LESSON_01
#include "tape.h"

/* y is an entry of the tape, y->grad all of its gradient. Each adds to the gradients
 * of the inputs of y, t->at[y->a].grad and of MUL t->at[y->b].grad, what goes to them
 * through y. */
void back_mul(tape *t, const node *y);
void back_tanh(tape *t, const node *y);

/* Puts into grad of every entry the derivative of entry `of` by it: 0 where it has not
 * led to `of`; whatever stood there before. */
void backward(tape *t, int of);
#endif
