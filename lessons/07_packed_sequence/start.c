/* Lesson 7: how packed sequences lie in memory. lesson.h says what each function does;
 * begin with conjugate, which the others can use. */
#include "lesson.h"

int conjugate(int n, const int32_t *part, int32_t *out)
{
    (void)n, (void)part, (void)out;
    return 0;                                   /* how many numbers out has now */
}

void pack_index(int n, const int32_t *len, packing *p)
{
    p->n = n, p->rows = 0;
    p->steps = conjugate(n, len, p->batch_sizes);
    for (int s = 0; s < n; s++)
        p->sorted[s] = p->unsorted[s] = s;      /* the longest first? */
    /* which token is in row 0, row 1, ..: sequence and position; and how many rows */
}

void unpack(const packing *p, const double *data, double *padded)
{
    (void)data;
    for (int i = 0; i < p->n * p->steps; i++)
        padded[i] = 0;                          /* then each row of data to its place */
}
