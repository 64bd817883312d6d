/* Lesson 6: the functions that you write. */
#ifndef WEFT_LESSON_06
#define WEFT_LESSON_06
#include <stdbool.h>
#include <stdint.h>
#include "weft.h"

enum { INPUTS = 3, UNITS = 4 };                 /* of the layers in this lesson */

/* The size of a padded batch of n sequences. cells: n times the longest length. tokens:
 * the sum of the lengths. len[s] may be 0, and n may be 0. */
typedef struct { int cells, tokens; } batch_size;
batch_size count(int n, const int32_t *len);

/* Runs an LSTM of one direction over a padded batch, step by step. In x [n, T, INPUTS]
 * the pads follow the tokens. mask [n, T] is 1 at tokens and 0 in pads. reverse: from
 * step T - 1 down to 0. Values in pads, even NaN, change no result and no gradient.
 * Returns
 *     y [n, T, UNITS]                 h after each token; 0 in the pads
 *     last.h, last.c [1, n, UNITS]    the state after the last token; 0 for a sequence
 *                                     without tokens */
weft_rnn_out run_padded(weft_rnn *lstm, weft_tensor *x, weft_tensor *mask,
                        bool reverse);

/* Returns the mean of y's squares over tokens and UNITS. y is 0 in the pads. */
weft_tensor *mean_square(weft_tensor *y, weft_tensor *mask);
#endif
