/* given.h - layers of weft, run over random tokens and walked back. */
#ifndef WEFT_LESSON_03_GIVEN
#define WEFT_LESSON_03_GIVEN
#include "lesson.h"

enum { INPUTS = 4, UNITS = 16, STEPS = 60 };
/* What came of it: U of an RNN, states, the gradients by them, and of an LSTM by its
 * cells, and its forget gates. */
typedef struct {
    double u[UNITS * UNITS], h[STEPS * UNITS], dh[STEPS * UNITS];
    double dc[STEPS * UNITS], f[STEPS * UNITS];
} walk;

/* show.c: an RNN whose U is orthogonal times `gain`; an LSTM whose forget gates have
 * this bias; the loss is the sum of `last` [UNITS] times the last state. */
void rnn_by_weft(double gain, unsigned seed, int steps, const double *last, walk *to);
void lstm_by_weft(double bias, unsigned seed, int steps, const double *last, walk *to);
/* sqrt(sum of x^2) of x [UNITS]. */
double norm(const double *x);
#endif
