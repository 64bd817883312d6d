/* given.h - forward and backward passes of weft's layers over random tokens. */
#ifndef WEFT_LESSON_03_GIVEN
#define WEFT_LESSON_03_GIVEN
#include "lesson.h"

enum { INPUTS = 4, UNITS = 16, STEPS = 60 };
/* The results of both passes. u: U of an RNN. h, dh: the states, and the gradients by
 * them. dc, f: an LSTM's gradients by its cells, and its forget gates. */
typedef struct {
    double u[UNITS * UNITS], h[STEPS * UNITS], dh[STEPS * UNITS];
    double dc[STEPS * UNITS], f[STEPS * UNITS];
} walk;

/* show.c: run an RNN whose U is orthogonal times gain, or an LSTM with a forget bias.
 * The loss is the inner product of last [UNITS] and the last state. */
void rnn_by_weft(double gain, unsigned seed, int steps, const double *last, walk *to);
void lstm_by_weft(double bias, unsigned seed, int steps, const double *last, walk *to);
/* Returns the length of x [UNITS]. */
double norm(const double *x);
#endif
