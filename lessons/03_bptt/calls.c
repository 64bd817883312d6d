/* Lesson 3: calls of the student's functions, see common/answer.h. */
#include "common/answer.h"
#include "lesson.h"

void back(int steps, int H, const double *u, const double *h, const double *last,
          double *dh)
{
    CALL(back, steps, H);
    u = READS(u, H * H), h = READS(h, steps * H), last = READS(last, H);
    double *to = WRITES(dh, steps * H);
    ANSWER(back, answer(steps, H, u, h, last, to));
}

double forget_bias(int tokens)
{
    CALL(forget_bias, tokens);
    RETURN(forget_bias, answer(tokens));
}
