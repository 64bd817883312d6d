/* Lesson 5: calls of the student's functions, see common/answer.h. */
#include "common/answer.h"
#include "lesson.h"

double correlation(int n, const double *a, int a_step, const double *b, int b_step)
{
    CALL(correlation, n, a_step, b_step);
    a = READS(a, n ? (n - 1) * a_step + 1 : 0),
    b = READS(b, n ? (n - 1) * b_step + 1 : 0);
    RETURN(correlation, answer(n, a, a_step, b, b_step));
}

static record numbers_of(const record *r)
{
    record own = *r;
    own.c = READS(r->c, r->n * UNITS), own.h = READS(r->h, r->n * UNITS);
    own.target = READS(r->target, r->n * OUTPUTS);
    return own;
}

int unit_for(const record *r, int output)
{
    CALL(unit_for, r->n, output);
    record own = numbers_of(r);
    RETURN(unit_for, answer(&own, output));
}

double error_without(const record *r, int output, int cut)
{
    CALL(error_without, r->n, output, cut);
    record own = numbers_of(r);
    RETURN(error_without, answer(&own, output, cut));
}
