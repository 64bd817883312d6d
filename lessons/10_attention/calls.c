/* Lesson 10: calls of the student's functions, see common/answer.h. */
#include "common/answer.h"
#include "common/lesson.h"
#include "lesson.h"

void attend(int n, const int *len, const double *score, int width, const double *memory,
            double *weight, double *context)
{
    int tokens = sum_of(n, len);
    CALL(attend, n, width);
    double *of_weight = WRITES(weight, tokens);
    double *of_context = WRITES(context, n * width);
    len = READS(len, n), score = READS(score, tokens),
    memory = READS(memory, tokens * width);
    ANSWER(attend, answer(n, len, score, width, memory, of_weight, of_context));
}

/* step and coin of d run in the answer's process. The check shares their counts. */
int decode(decoder *d, const int *gold, double share_of_gold, int limit, int *out)
{
    CALL(decode, share_of_gold, limit);
    int *to = WRITES(out, limit);
    gold = gold ? READS(gold, limit) : NULL;
    RETURN(decode, answer(d, gold, share_of_gold, limit, to));
}
