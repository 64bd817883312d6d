/* Lesson 8, solved. */
#include "lesson.h"

#ifndef START
/* Returns the number of tokens in batch `which`. */
static int tokens_of(int n, const int *len, const int *batch, int which)
{
    int all = 0;
    for (int s = 0; s < n; s++)
        all += batch[s] == which ? len[s] : 0;
    return all;
}
#endif

void weigh(mean_of which, int n, const int *len, int batches, const int *batch,
           double *weight)
{
#ifdef START
    (void)which, (void)batches, (void)batch;
    int k = 0;
    for (int s = 0; s < n; s++)
        for (int t = 0; t < len[s]; t++)
            weight[k++] = 0;                     /* 1 divided by which number? */
#else
    int tokens = 0, sequences = 0, full = 0;
    for (int s = 0; s < n; s++)
        tokens += len[s], sequences += len[s] > 0;
    for (int i = 0; i < batches; i++)
        full += tokens_of(n, len, batch, i) > 0;
    for (int s = 0; s < n; s++)
        for (int t = 0; t < len[s]; t++) {
            double parts[] = { tokens, (double)sequences * len[s],
                               (double)full * tokens_of(n, len, batch, batch[s]) };
            *weight++ = 1 / parts[which];
        }
#endif
}

void accumulate(const batches *b)
{
#ifdef START
    for (int i = 0; i < b->n; i++) {
        weft_loss l = b->loss(b, i);
        (void)l;                      /* weft_backward of which tensor? */
        weft_clear(b->w);             /* call weft_item before this line */
    }                                 /* what must follow the last batch? */
#else
    double tokens = 0;
    for (int i = 0; i < b->n; i++) {
        weft_loss l = b->loss(b, i);
        weft_backward(l.sum);
        tokens += weft_item(l.weight);
        weft_clear(b->w);
    }
    weft_divide_grad(b->net, weft_scalar(b->w, tokens));
#endif
}
