/* Lesson 8: the sum is divided by the sequences. */
#include "lesson.h"

/* How many tokens a batch has. */
static int tokens_of(int n, const int *len, const int *batch, int which)
{
    int all = 0;
    for (int s = 0; s < n; s++)
        all += batch[s] == which ? len[s] : 0;
    return all;
}

void weigh(mean_of which, int n, const int *len, int batches, const int *batch,
           double *weight)
{
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
}

void accumulate(const batches *b)
{
    double sequences = 0;
    for (int i = 0; i < b->n; i++) {
        weft_loss l = b->loss(b, i);
        weft_backward(l.sum);
        sequences += b->sequences[i];
        weft_clear(b->w);
    }
    weft_divide_grad(b->net, weft_scalar(b->w, sequences));
}
