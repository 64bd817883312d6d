/* Lesson 5, solved. */
#include <math.h>
#include "lesson.h"

double correlation(int n, const double *a, int a_step, const double *b, int b_step)
{
#ifdef START
    (void)n, (void)a, (void)a_step, (void)b, (void)b_step;
    return 0;                   /* sum of (a - mean)(b - mean), divided by what? */
#else
    /* Without a[0] a constant has the mean 0, which is not rounded. */
    double mean_a = 0, mean_b = 0, aa = 0, bb = 0, ab = 0;
    for (int i = 0; i < n; i++)
        mean_a += (a[i * a_step] - a[0]) / n, mean_b += (b[i * b_step] - b[0]) / n;
    for (int i = 0; i < n; i++) {
        double x = a[i * a_step] - a[0] - mean_a, y = b[i * b_step] - b[0] - mean_b;
        aa += x * x, bb += y * y, ab += x * y;
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : 0;
#endif
}

int unit_for(const record *r, int output)
{
#ifdef START
    (void)r, (void)output;
    return 0;                   /* c of unit j: from r->c + j, in steps of UNITS */
#else
    int best = 0;
    double most = -1;
    for (int j = 0; j < UNITS; j++) {
        double with = correlation(r->n, r->c + j, UNITS, r->target + output, OUTPUTS);
        if (fabs(with) > most)
            most = fabs(with), best = j;
    }
    return best;
#endif
}

double error_without(const record *r, int output, int cut)
{
#ifdef START
    (void)r, (void)output, (void)cut;
    return 0;
#else
    double error = 0;
    for (int i = 0; i < r->n; i++) {
        double answer = r->bias[output];
        for (int j = 0; j < UNITS; j++)
            if (j != cut)
                answer += r->weight[output][j] * r->h[i * UNITS + j];
        error += fabs(answer - r->target[i * OUTPUTS + output]);
    }
    return error / r->n;
#endif
}
