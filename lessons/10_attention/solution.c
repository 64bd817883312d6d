/* Lesson 10, solved. */
#include <math.h>
#include "lesson.h"

#ifndef START
static void attend_one(int tokens, const double *score, int width, const double *memory,
                       double *weight, double *context)
{
    double most = -INFINITY, sum = 0;
    for (int t = 0; t < tokens; t++)
        most = fmax(most, score[t]);
    for (int t = 0; t < tokens; t++)
        sum += weight[t] = exp(score[t] - most);
    for (int j = 0; j < width; j++)
        context[j] = 0;
    for (int t = 0; t < tokens; t++) {
        weight[t] /= sum;
        for (int j = 0; j < width; j++)
            context[j] += weight[t] * memory[t * width + j];
    }
}
#endif

void attend(int n, const int *len, const double *score, int width, const double *memory,
            double *weight, double *context)
{
#ifdef START
    (void)score, (void)memory;
    for (int s = 0; s < n; s++) {
        for (int t = 0; t < len[s]; t++)
            weight[t] = 0; /* the softmax of its scores */
        for (int j = 0; j < width; j++)
            context[j] = 0; /* the sum of memory's rows with these weights */
        weight += len[s], context += width; /* which others must move on? */
    }
#else
    for (int s = 0; s < n; s++) {
        attend_one(len[s], score, width, memory, weight, context);
        score += len[s], weight += len[s], memory += len[s] * width, context += width;
    }
#endif
}

#ifndef START
static int likeliest(int n, const double *score)
{
    int best = 0;
    for (int k = 1; k < n; k++)
        best = score[k] > score[best] ? k : best;
    return best;
}
#endif

int decode(decoder *d, const int *gold, double share, int limit, int *out)
{
#ifdef START
    (void)d, (void)gold, (void)share, (void)limit, (void)out;
    return 0; /* begin with d->step(d, BEGIN) */
#else
    int told = BEGIN;
    for (int n = 0; n < limit; n++) {
        int own = likeliest(d->classes, d->step(d, told));
        if (own == END)
            return n;
        out[n] = own;
        told = gold && d->coin(d) < share ? gold[n] : own;
    }
    return limit;
#endif
}
