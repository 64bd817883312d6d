/* Lesson 12: the functions that you write. Numbers are floats, of 4 bytes. Counts are doubles:
 * a product of ints overflows above 2^31. */
#ifndef WEFT_LESSON_12
#define WEFT_LESSON_12

/* FLOPs of a forward run of an LSTM with I inputs and H units, T steps of B
 * sequences each: those of its matrix products. A multiplication is one, an addition is
 * one; biases and gates are left out. */
double lstm_flops(int I, int H, int B, int T);

/* Bytes that it moves between memory and processor if nothing stays in the cache from
 * one step to the next. Each step reads both weights (no biases), and of each sequence
 * x, h and c, and it writes h and c. */
double lstm_bytes(int I, int H, int B, int T);

/* FLOPs of the matrix products of self-attention of width d over n sequences, len[s]
 * tokens each, without pads: of each token q, k, v and the result are products with a
 * matrix [d, d]; it has a score with each token of its sequence, an inner product of d
 * numbers, and its scores weigh their v. */
double attention_flops(int d, int n, const int *len);

/* The length of a sequence at which attention of width d takes as many FLOPs a token as
 * an LSTM with I = H = d. */
int crossing(int d);
#endif
