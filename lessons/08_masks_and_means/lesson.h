/* Lesson 8: the functions that you write. */
#ifndef WEFT_LESSON_08
#define WEFT_LESSON_08
#include "weft.h"

/* The mean of all tokens; of the sequences' means; of the batches' means. */
typedef enum { OF_TOKENS, OF_SEQUENCES, OF_BATCHES, MEANS } mean_of;

/* weight [sum of len], sequence after sequence: the number by which a token's loss is
 * multiplied in that mean. Sequence s, one of n, has len[s] tokens, 0 or more, and is
 * in batch batch[s], of which there are `batches`, numbered from 0. What has no token
 * has no mean, and is not counted. */
void weigh(mean_of which, int n, const int *len, int batches, const int *batch,
           double *weight);

/* Batches that come one after the other. loss(b, i) is what the network says of batch
 * i: .sum, the sum of its tokens' losses, and .weight, how many they are, both tensors
 * of one number, which weft_item reads. sequences[i], longest[i]: how many sequences
 * the batch has, and the length of the longest. */
typedef struct batches batches;
struct batches {
    weft *w;
    weft_module *net;
    int n;
    const int *sequences, *longest;
    weft_loss (*loss)(const batches *b, int i);
    const void *given;                           /* what loss looks at */
};

/* Leaves in net's parameters the gradient of the mean over the tokens of all batches,
 * as if they were one. There is memory for one batch only: weft_clear(b->w) before the
 * next one. The gradients are 0 at the call; weft_backward adds to them, and weft_clear
 * leaves them. */
void accumulate(const batches *b);
#endif
