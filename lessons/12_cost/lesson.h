/* Lesson 12: the functions that you write. A float has 4 bytes. Counts are doubles,
 * because a product of ints overflows above 2^31. */
#ifndef WEFT_LESSON_12
#define WEFT_LESSON_12

/* Returns the FLOPs of the matrix products in a forward run of an LSTM with I inputs
 * and H units, over T steps of B sequences. A multiplication counts 1, an addition 1.
 * Biases and gates do not count. */
double lstm_flops(int I, int H, int B, int T);

/* Returns the bytes that this run moves between memory and processor if nothing stays
 * in the cache between steps. Each step reads both weights (no biases). For each
 * sequence it reads x, h and c, and writes h and c. */
double lstm_bytes(int I, int H, int B, int T);

/* Returns the FLOPs of the matrix products of self-attention with width d over n
 * sequences of len[s] tokens, without pads. For each token q, k, v and the result are
 * products with a matrix [d, d]. A token has a score, an inner product of d numbers,
 * with each token of its sequence, and sums their v with its weights. */
double attention_flops(int d, int n, const int *len);

/* Returns the sequence length at which attention of width d and an LSTM with I = H = d
 * take the same FLOPs per token. */
int crossing(int d);
#endif
