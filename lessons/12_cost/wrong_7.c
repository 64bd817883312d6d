/* Lesson 12: a product of ints, which wraps: unsigned, since of int it is undefined. */
#include "lesson.h"

double lstm_flops(int I, int H, int B, int T)
{
    return 8u * H * (I + H) * B * T;
}

double lstm_bytes(int I, int H, int B, int T)
{
    double weights = 4.0 * H * (I + H);
    double sequence = I + 2.0 * H + 2.0 * H;
    return 4 * T * (weights + B * sequence);
}

double attention_flops(int d, int n, const int *len)
{
    double sum = 0;
    for (int s = 0; s < n; s++) {
        double T = len[s];
        double projections = 4 * 2 * T * d * d;
        double scores = 2 * T * T * d;
        double weighed = 2 * T * T * d;
        sum += projections + scores + weighed;
    }
    return sum;
}

int crossing(int d)
{
    return 2 * d;                           /* 16 d d = 8 d d + 4 T d */
}
