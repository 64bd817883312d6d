/* Lesson 12, solved. */
#include "lesson.h"

double lstm_flops(int I, int H, int B, int T)
{
#ifdef START
    (void)I, (void)H, (void)B, (void)T;
    return 0;               /* how many rows and columns do the weights have? */
#else
    return 2.0 * 4 * H * (I + H) * B * T;
#endif
}

double lstm_bytes(int I, int H, int B, int T)
{
#ifdef START
    (void)I, (void)H, (void)B, (void)T;
    return 0;               /* which bytes per step, which per sequence? */
#else
    double weights = 4.0 * H * (I + H);
    double sequence = I + 2.0 * H + 2.0 * H;
    return 4 * T * (weights + B * sequence);
#endif
}

double attention_flops(int d, int n, const int *len)
{
#ifdef START
    (void)d, (void)n, (void)len;
    return 0;               /* add up the sequences */
#else
    double sum = 0;
    for (int s = 0; s < n; s++) {
        double T = len[s];
        double projections = 4 * 2 * T * d * d;
        double scores = 2 * T * T * d;
        double weighed = 2 * T * T * d;
        sum += projections + scores + weighed;
    }
    return sum;
#endif
}

int crossing(int d)
{
#ifdef START
    (void)d;
    return 0;               /* set both FLOPs per token equal */
#else
    return 2 * d;                           /* 16 d d = 8 d d + 4 T d */
#endif
}
