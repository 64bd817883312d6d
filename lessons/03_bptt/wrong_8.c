/* Lesson 3: the tanh of unit k of h_{t+1}, not of unit j. */
#include <math.h>
#include "lesson.h"

void back(int steps, int H, const double *u, const double *h, const double *last,
          double *dh)
{
    for (int j = 0; j < H; j++)
        dh[(steps - 1) * H + j] = last[j];
    for (int t = steps - 2; t >= 0; t--)
        for (int k = 0; k < H; k++) {
            double sum = 0;
            for (int j = 0; j < H; j++) {
                double y = h[(t + 1) * H + k];
                sum += u[j * H + k] * (1 - y * y) * dh[(t + 1) * H + j];
            }
            dh[t * H + k] = sum;
        }
}

/* f to the power of tokens - 1 is 0.1, and sigmoid of log(f / (1 - f)) is f. */
double forget_bias(int tokens)
{
    double f = pow(0.1, 1.0 / (tokens - 1));
    return log(f / (1 - f));
}
