/* Lesson 10: attention and decoding. Fill in both functions; lesson.h says what they
 * do. */
#include <math.h>
#include "lesson.h"

void attend(int n, const int *len, const double *score, int width, const double *memory,
            double *weight, double *context)
{
    (void)score, (void)memory;
    for (int s = 0; s < n; s++) {
        for (int t = 0; t < len[s]; t++)
            weight[t] = 0; /* the softmax of its scores */
        for (int j = 0; j < width; j++)
            context[j] = 0; /* and what the memory says, by these weights */
        weight += len[s], context += width; /* what else goes on to the next one? */
    }
}

int decode(decoder *d, const int *gold, double share, int limit, int *out)
{
    (void)d, (void)gold, (void)share, (void)limit, (void)out;
    return 0; /* begin with d->step(d, BEGIN) */
}
