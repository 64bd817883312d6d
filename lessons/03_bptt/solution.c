/* Lesson 3, solved. */
#include <math.h>
#include "lesson.h"

void back(int steps, int H, const double *u, const double *h, const double *last,
          double *dh)
{
    for (int j = 0; j < H; j++)
        dh[(steps - 1) * H + j] = last[j];
    for (int t = steps - 2; t >= 0; t--)
#ifdef START
        for (int k = 0; k < H; k++)
            dh[t * H + k] = 0;  /* how much does each unit of h_{t+1} add? */
    (void)u, (void)h;
#else
        for (int k = 0; k < H; k++) {
            double sum = 0;
            for (int j = 0; j < H; j++) {
                double y = h[(t + 1) * H + j];
                sum += u[j * H + k] * (1 - y * y) * dh[(t + 1) * H + j];
            }
            dh[t * H + k] = sum;
        }
#endif
}

double forget_bias(int tokens)
{
#ifdef START
    (void)tokens;
    return 0;                   /* which f, and which number has f as its sigmoid? */
#else
    /* f to the power of tokens - 1 is 0.1. The sigmoid of log(f / (1 - f)) is f. */
    double f = pow(0.1, 1.0 / (tokens - 1));
    return log(f / (1 - f));
#endif
}
