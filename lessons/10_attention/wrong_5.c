/* Lesson 10: the step is told the token that it is to find. */
#include <math.h>
#include "lesson.h"

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

void attend(int n, const int *len, const double *score, int width, const double *memory,
            double *weight, double *context)
{
    for (int s = 0; s < n; s++) {
        attend_one(len[s], score, width, memory, weight, context);
        score += len[s], weight += len[s], memory += len[s] * width, context += width;
    }
}

static int likeliest(int n, const double *score)
{
    int best = 0;
    for (int k = 1; k < n; k++)
        best = score[k] > score[best] ? k : best;
    return best;
}

int decode(decoder *d, const int *gold, double share, int limit, int *out)
{
    int told = BEGIN;
    for (int n = 0; n < limit; n++) {
        if (gold && d->coin(d) < share)
            told = gold[n];
        int own = likeliest(d->classes, d->step(d, told));
        if (own == END)
            return n;
        out[n] = own;
        told = own;
    }
    return limit;
}
