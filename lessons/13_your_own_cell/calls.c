/* Lesson 13: calls of the student's functions, see common/answer.h. Only the process
 * with the answer has its tensors; the check shares the numbers. */
#include "common/answer.h"
#include "common/lesson.h"
#include "lesson.h"

void forward(int H, const double *s, const double *v, const double *h, double *to)
{
    CALL(forward, H);
    s = READS(s, 2 * H), v = READS(v, H), h = READS(h, H);
    double *into = WRITES(to, H);
    ANSWER(forward, answer(H, s, v, h, into));
}

void backward(int H, const double *s, const double *v, const double *h, const double *d,
              double *ds, double *dv, double *dh)
{
    CALL(backward, H);
    s = READS(s, 2 * H), v = READS(v, H), h = READS(h, H), d = READS(d, H);
    double *by_s = WRITES(ds, 2 * H);
    double *by_v = WRITES(dv, H);
    double *by_h = WRITES(dh, H);
    ANSWER(backward, answer(H, s, v, h, d, by_s, by_v, by_h));
}

/* Returns the batch with arrays to pass to the student's function. */
static batch passed(const batch *of)
{
    int tokens = sum_of(of->n, of->len), H = of->H;
    return (batch){ of->n,
                    H,
                    READS(of->len, of->n),
                    READS(of->s, tokens * 2 * H),
                    READS(of->v, H),
                    READS(of->first, of->n * H) };
}

void run(const batch *of, double *y, double *last)
{
    CALL(run, of->n, of->H);
    batch own = passed(of);
    double *of_tokens = WRITES(y, sum_of(of->n, of->len) * of->H);
    double *of_ends = WRITES(last, of->n * of->H);
    ANSWER(run, answer(&own, of_tokens, of_ends));
}

void run_back(const batch *of, const double *y, const double *dy, const double *dlast,
              double *ds, double *dv, double *dfirst)
{
    int numbers = sum_of(of->n, of->len) * of->H;
    CALL(run_back, of->n, of->H);
    batch own = passed(of);
    y = READS(y, numbers), dy = READS(dy, numbers);
    dlast = READS(dlast, of->n * of->H);
    double *by_s = WRITES(ds, 2 * numbers);
    double *by_v = WRITES(dv, of->H);
    double *by_first = WRITES(dfirst, of->n * of->H);
    ANSWER(run_back, answer(&own, y, dy, dlast, by_s, by_v, by_first));
}

weft_state light(const weft_cell_input *in, void *user)
{
    weft_state next = { in->h, NULL };
    CALL(light, in->hidden);
    ANSWER(light, next = answer(in, user));
    return next;
}
