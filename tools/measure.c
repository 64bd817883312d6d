/* measure.c - the clock, and what is typical of measured numbers. */
#include <math.h>
#include <stdlib.h>
#include <time.h>
#include "tools/tools.h"

double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double quantile(double *x, int n, double q)
{
    qsort(x, (size_t)n, sizeof *x, ascending);
    double at = q * (n - 1), low = floor(at);
    int i = (int)low, next = i + 1 < n ? i + 1 : i;
    return x[i] + (at - low) * (x[next] - x[i]);
}
