/* Lesson 7: calls of the student's functions, see common/answer.h. */
#include "common/answer.h"
#include "common/lesson.h"
#include "lesson.h"

int conjugate(int n, const int32_t *part, int32_t *out)
{
    CALL(conjugate, n);
    int32_t *to = WRITES(out, largest_of(n, part));
    part = READS(part, n);
    RETURN(conjugate, answer(n, part, to));
}

void pack_index(int n, const int32_t *len, packing *p)
{
    int steps = largest_of(n, len), rows = sum_of(n, len);
    CALL(pack_index, n);
    packing own = *p;
    own.batch_sizes =
        call_writes("batch_sizes", p->batch_sizes, steps, sizeof(int32_t));
    own.sorted = call_writes("sorted", p->sorted, n, sizeof(int32_t));
    own.unsorted = call_writes("unsorted", p->unsorted, n, sizeof(int32_t));
    own.sequence = call_writes("sequence", p->sequence, rows, sizeof(int32_t));
    own.position = call_writes("position", p->position, rows, sizeof(int32_t));
    len = READS(len, n);
    ANSWER(pack_index, answer(n, len, &own));
    int sizes[] = { own.n, own.steps, own.rows };
    share(sizes, sizeof sizes);
    p->n = sizes[0], p->steps = sizes[1], p->rows = sizes[2];
}

void unpack(const packing *p, const double *data, double *padded)
{
    CALL(unpack, p->n, p->steps, p->rows);
    double *to = WRITES(padded, p->n * p->steps);
    packing own = *p;
    own.batch_sizes =
        (int32_t *)call_reads("batch_sizes", p->batch_sizes, p->steps, sizeof(int32_t));
    own.sorted = (int32_t *)call_reads("sorted", p->sorted, p->n, sizeof(int32_t));
    data = READS(data, p->rows);
    ANSWER(unpack, answer(&own, data, to));
}
