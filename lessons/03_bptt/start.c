/* Lesson 3: back through time. Fill in both functions; lesson.h says what they do. */
#include "lesson.h"

void back(int steps, int H, const double *u, const double *h, const double *last,
          double *dh)
{
    (void)u, (void)h;
    for (int j = 0; j < H; j++)
        dh[(steps - 1) * H + j] = last[j];
    for (int t = steps - 2; t >= 0; t--)
        for (int k = 0; k < H; k++)
            dh[t * H + k] = 0;  /* what comes to h_t, unit k, from all of h_{t+1}? */
}

double forget_bias(int tokens)
{
    (void)tokens;
    return 0;                   /* which f, and of which number is it the sigmoid? */
}
