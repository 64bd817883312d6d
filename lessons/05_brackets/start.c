/* Lesson 5: which unit counts? lesson.h says what each function does; begin with
 * the first. */
#include <math.h>
#include "lesson.h"

double correlation(int n, const double *a, int a_step, const double *b, int b_step)
{
    (void)n, (void)a, (void)a_step, (void)b, (void)b_step;
    return 0;                   /* sum of (a - mean)(b - mean), divided by? */
}

int unit_for(const record *r, int output)
{
    (void)r, (void)output;
    return 0;                   /* unit j's c: r->c + j, a step is UNITS */
}

double error_without(const record *r, int output, int cut)
{
    (void)r, (void)output, (void)cut;
    return 0;
}
