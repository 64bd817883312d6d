/* Lesson 1: calls of the student's functions, see common/answer.h. */
#include "common/answer.h"
#include "lesson.h"

void back_mul(tape *t, const node *y)
{
    CALL(back_mul, y - t->at);
    tape *own = WRITES(t, 1);
    ANSWER(back_mul, answer(own, own->at + (y - t->at)));
}

void back_tanh(tape *t, const node *y)
{
    CALL(back_tanh, y - t->at);
    tape *own = WRITES(t, 1);
    ANSWER(back_tanh, answer(own, own->at + (y - t->at)));
}

void backward(tape *t, int of)
{
    CALL(backward, of);
    tape *own = WRITES(t, 1);
    ANSWER(backward, answer(own, of));
}
