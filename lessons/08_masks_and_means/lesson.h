/* Lesson 8: the functions that you write. */
#ifndef WEFT_LESSON_08
#define WEFT_LESSON_08
#include "weft.h"

/* Mean over all tokens, over the means of sequences, or over the means of batches. */
typedef enum { OF_TOKENS, OF_SEQUENCES, OF_BATCHES, MEANS } mean_of;

/* Writes the weight of each token's loss in this mean to weight [sum of len], sequence
 * after sequence. Sequence s of n has len[s] tokens, 0 or more, and belongs to batch
 * batch[s], 0 .. batches - 1. An empty sequence or batch has no mean and does not
 * count. */
void weigh(mean_of which, int n, const int *len, int batches, const int *batch,
           double *weight);

/* A network and n batches for one update. loss(b, i) computes the loss of batch i: .sum
 * is the sum over its tokens and .weight their number. Both are tensors of one number,
 * which weft_item reads. sequences[i] is the number of sequences in batch i, and
 * longest[i] their longest length. */
typedef struct batches batches;
struct batches {
    weft *w;
    weft_module *net;
    int n;
    const int *sequences, *longest;
    weft_loss (*loss)(const batches *b, int i);
    const void *given;                           /* read by loss */
};

/* Computes, in net's parameters, the gradient of the mean over the tokens of all
 * batches, as for one big batch. Memory suffices for one batch, so call
 * weft_clear(b->w) before the next. The gradients are 0 at the call. weft_backward adds
 * to them, and weft_clear keeps them. */
void accumulate(const batches *b);
#endif
