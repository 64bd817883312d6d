/* Lesson 8: calls of the student's functions, see common/answer.h. Only the process
 * with the answer accumulates; the check shares the gradients. */
#include "common/answer.h"
#include "common/lesson.h"
#include "lesson.h"

void weigh(mean_of which, int n, const int *len, int batches, const int *batch,
           double *weight)
{
    CALL(weigh, which, n, batches);
    double *to = WRITES(weight, sum_of(n, len));
    len = READS(len, n), batch = READS(batch, n);
    ANSWER(weigh, answer(which, n, len, batches, batch, to));
}

void accumulate(const batches *b)
{
    CALL(accumulate, b->n);
    batches own = *b;
    own.sequences = call_reads("b->sequences", b->sequences, b->n, sizeof(int));
    own.longest = call_reads("b->longest", b->longest, b->n, sizeof(int));
    ANSWER(accumulate, answer(&own));
}
