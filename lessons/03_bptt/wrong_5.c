/* Lesson 3: a forget bias of 1, as many programs have it. */
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
                double y = h[(t + 1) * H + j];
                sum += u[j * H + k] * (1 - y * y) * dh[(t + 1) * H + j];
            }
            dh[t * H + k] = sum;
        }
}

double forget_bias(int tokens)
{
    (void)tokens;
    return 1;
}
