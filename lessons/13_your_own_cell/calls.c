/* Lesson 13: calls of the student's functions, see common/answer.h. Only the process
 * with the answer has its tensors; the check shares the numbers. */
#include "common/answer.h"
#include "lesson.h"

void forward(int H, const double *s, const double *v, const double *h, double *to)
{
    call_begins("forward");
    s = READS(s, 2 * H), v = READS(v, H), h = READS(h, H);
    double *into = call_writes("to", to, H, sizeof *to);
    ANSWER(forward, answer(H, s, v, h, into));
}

void backward(int H, const double *s, const double *v, const double *h, const double *d,
              double *ds, double *dv, double *dh)
{
    call_begins("backward");
    s = READS(s, 2 * H), v = READS(v, H), h = READS(h, H), d = READS(d, H);
    double *by_s = call_writes("ds", ds, 2 * H, sizeof *ds);
    double *by_v = call_writes("dv", dv, H, sizeof *dv);
    double *by_h = call_writes("dh", dh, H, sizeof *dh);
    ANSWER(backward, answer(H, s, v, h, d, by_s, by_v, by_h));
}

static int tokens_of(const batch *of)
{
    int tokens = 0;
    for (int k = 0; k < of->n; k++)
        tokens += of->len[k];
    return tokens;
}

/* Returns the batch with arrays to pass to the student's function. */
static batch passed(const batch *of)
{
    int tokens = tokens_of(of), H = of->H;
    return (batch){ of->n,
                    H,
                    READS(of->len, of->n),
                    READS(of->s, tokens * 2 * H),
                    READS(of->v, H),
                    READS(of->first, of->n * H) };
}

void run(const batch *of, double *y, double *last)
{
    call_begins("run");
    batch own = passed(of);
    double *of_tokens = call_writes("y", y, tokens_of(of) * of->H, sizeof *y);
    double *of_ends = call_writes("last", last, of->n * of->H, sizeof *last);
    ANSWER(run, answer(&own, of_tokens, of_ends));
}

void run_back(const batch *of, const double *y, const double *dy, const double *dlast,
              double *ds, double *dv, double *dfirst)
{
    int numbers = tokens_of(of) * of->H;
    call_begins("run_back");
    batch own = passed(of);
    y = READS(y, numbers), dy = READS(dy, numbers);
    dlast = READS(dlast, of->n * of->H);
    double *by_s = call_writes("ds", ds, 2 * numbers, sizeof *ds);
    double *by_v = call_writes("dv", dv, of->H, sizeof *dv);
    double *by_first = call_writes("dfirst", dfirst, of->n * of->H, sizeof *dfirst);
    ANSWER(run_back, answer(&own, y, dy, dlast, by_s, by_v, by_first));
}

weft_state light(const weft_cell_input *in, void *user)
{
    weft_state next = { in->h, NULL };
    call_begins("light");
    ANSWER(light, next = answer(in, user));
    return next;
}
