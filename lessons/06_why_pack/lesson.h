/* Lesson 6: the functions that you write. */
#ifndef WEFT_LESSON_06
#define WEFT_LESSON_06
#include <stdbool.h>
#include <stdint.h>
#include "weft.h"

enum { INPUTS = 3, UNITS = 4 };                 /* of the layers that are run */

/* What a padded batch of n sequences takes: cells, n times the longest length; tokens,
 * the sum of the lengths. len[s] may be 0, and so may n. */
typedef struct { int cells, tokens; } batch_size;
batch_size count(int n, const int32_t *len);

/* An LSTM of one direction over a padded batch, step by step. x [n, T, INPUTS], pads
 * after the tokens; mask [n, T] is 1 at tokens, 0 in pads. reverse: from step T - 1
 * down to 0. What is in the pads has no effect, NaN included, on numbers and gradients:
 *     y [n, T, UNITS]                 h after each token, in its place; 0 in the pads
 *     last.h, last.c [1, n, UNITS]    the state after the last token that is read; 0 of
 *                                     a sequence without tokens */
weft_rnn_out run_padded(weft_rnn *lstm, weft_tensor *x, weft_tensor *mask,
                        bool reverse);

/* The mean of y's squares, over the tokens and their UNITS; y and mask as above. */
weft_tensor *mean_square(weft_tensor *y, weft_tensor *mask);
#endif
