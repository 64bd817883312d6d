/* Lesson 11: calls of the student's functions, see common/answer.h. Only the process
 * with the answer has its parameters; the check shares the numbers. */
#include "common/answer.h"
#include "lesson.h"

enum { MOST_ARRAYS = 8 };

double clip(int n, const int *size, double *const *gradient, double most)
{
    double norm = 0, *own[MOST_ARRAYS];
    call_begins("clip");
    for (int k = 0; k < n && k < MOST_ARRAYS; k++)
        own[k] = call_writes("gradient[k]", gradient[k], size[k], sizeof **gradient);
    size = READS(size, n);
    double *const *all = call_reads("gradient", own, n, sizeof *own);
    ANSWER(clip, norm = answer(n, size, all, most));
    return shared(norm);
}

void forget_bias(weft_module *lstm, int hidden, double value)
{
    call_begins("forget_bias");
    ANSWER(forget_bias, answer(lstm, hidden, value));
}

double update(weft_module *m, weft_optim *o, weft_tensor *loss, double most)
{
    double norm = 0;
    call_begins("update");
    ANSWER(update, norm = answer(m, o, loss, most));
    return norm;
}
