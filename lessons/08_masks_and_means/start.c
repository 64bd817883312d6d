/* Lesson 8: means. Fill in both functions; lesson.h says what they do. */
#include "lesson.h"

void weigh(mean_of which, int n, const int *len, int batches, const int *batch,
           double *weight)
{
    (void)which, (void)batches, (void)batch;
    int k = 0;
    for (int s = 0; s < n; s++)
        for (int t = 0; t < len[s]; t++)
            weight[k++] = 0;                     /* one divided by what? */
}

void accumulate(const batches *b)
{
    for (int i = 0; i < b->n; i++) {
        weft_loss l = b->loss(b, i);
        (void)l;                      /* walk back: from which tensor? */
        weft_clear(b->w);             /* what weft_item is to read, it reads before */
    }                                 /* and what is left to do after the last one? */
}
