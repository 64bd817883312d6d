/* Lesson 10: calls of the student's functions, see common/answer.h. */
#include "common/answer.h"
#include "lesson.h"

void attend(int n, const int *len, const double *score, int width, const double *memory,
            double *weight, double *context)
{
    int tokens = 0;
    for (int s = 0; s < n; s++)
        tokens += len[s];
    call_begins("attend");
    double *of_weight = call_writes("weight", weight, tokens, sizeof *weight);
    double *of_context = call_writes("context", context, n * width, sizeof *context);
    len = READS(len, n), score = READS(score, tokens),
    memory = READS(memory, tokens * width);
    ANSWER(attend, answer(n, len, score, width, memory, of_weight, of_context));
}

/* step and coin of d run in the answer's process. The check shares their counts. */
int decode(decoder *d, const int *gold, double share_of_gold, int limit, int *out)
{
    int written = 0;
    call_begins("decode");
    int *to = call_writes("out", out, limit, sizeof *out);
    gold = gold ? READS(gold, limit) : NULL;
    ANSWER(decode, written = answer(d, gold, share_of_gold, limit, to));
    return (int)shared(written);
}
