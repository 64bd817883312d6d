/* Lesson 2: a recurrent layer by hand. Fill in both functions; lesson.h says what they
 * do. */
#include <math.h>
#include "lesson.h"

void step(const rnn *r, const double *x, const double *before, double *h)
{
    (void)x, (void)before;
    for (int j = 0; j < r->H; j++)
        h[j] = 0;                           /* your sum and its tanh here */
}

void run(const rnn *r, int steps, const double *x, double *h)
{
    for (int t = 0; t < steps; t++)
        step(r, x + t * r->I, h, h + t * r->H); /* which state comes before step t? */
}
