/* Lesson 14: calls of the student's functions, see common/answer.h. */
#include "common/answer.h"
#include "lesson.h"

int collapse(int steps, const int *path, int *out)
{
    int n = 0;
    CALL(collapse, steps);
    path = READS(path, steps);
    int *to = WRITES(out, steps);
    ANSWER(collapse, n = answer(steps, path, to));
    return (int)shared(n);
}

double log_probability(int steps, int classes, const double *score, int n,
                       const int *labels)
{
    double p = 0;
    CALL(log_probability, steps, classes, n);
    score = READS(score, steps * classes), labels = READS(labels, n);
    ANSWER(log_probability, p = answer(steps, classes, score, n, labels));
    return shared(p);
}

double best_path(int steps, int classes, const double *score, int n, const int *labels,
                 int *path)
{
    double p = 0;
    CALL(best_path, steps, classes, n);
    score = READS(score, steps * classes), labels = READS(labels, n);
    int *to = WRITES(path, steps);
    ANSWER(best_path, p = answer(steps, classes, score, n, labels, to));
    return shared(p);
}
