/* Lesson 2: calls of the student's functions, see common/answer.h. */
#include "common/answer.h"
#include "lesson.h"

static rnn weights_of(const rnn *r)
{
    return (rnn){ r->I,
                  r->H,
                  READS(r->w, r->H * r->I),
                  READS(r->u, r->H * r->H),
                  READS(r->b, r->H),
                  READS(r->c, r->H) };
}

void step(const rnn *r, const double *x, const double *before, double *h)
{
    CALL(step, r->I, r->H);
    rnn own = weights_of(r);
    x = READS(x, r->I), before = READS(before, r->H);
    double *to = WRITES(h, r->H);
    ANSWER(step, answer(&own, x, before, to));
}

void run(const rnn *r, int steps, const double *x, double *h)
{
    CALL(run, r->I, r->H, steps);
    rnn own = weights_of(r);
    x = READS(x, steps * r->I);
    double *to = WRITES(h, steps * r->H);
    ANSWER(run, answer(&own, steps, x, to));
}
