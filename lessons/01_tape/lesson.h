/* Lesson 1: the functions that you write. */
#ifndef WEFT_LESSON_01
#define WEFT_LESSON_01
#include "tape.h"

/* Adds the part that passes through entry y to the gradients of y's inputs:
 * t->at[y->a].grad, and for MUL also t->at[y->b].grad. y->grad is complete. */
void back_mul(tape *t, const node *y);
void back_tanh(tape *t, const node *y);

/* Sets grad of every entry to the derivative of entry `of` by that entry, or to 0 if it
 * does not contribute to `of`. Earlier gradients are overwritten. */
void backward(tape *t, int of);
#endif
