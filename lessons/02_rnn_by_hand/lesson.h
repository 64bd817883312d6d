/* Lesson 2: the functions that you write. */
#ifndef WEFT_LESSON_02
#define WEFT_LESSON_02

/* A layer of H units with inputs of I numbers. Matrices are stored row by row. PyTorch
 * calls w [H, I] weight_ih, u [H, H] weight_hh, b [H] bias_ih and c [H] bias_hh. */
typedef struct {
    int I, H;
    const double *w, *u, *b, *c;
} rnn;

/* Computes one step: h [H] from x [I] and the state before [H]:
 *     h = tanh(w x + b + u before + c) */
void step(const rnn *r, const double *x, const double *before, double *h);

/* Computes h [steps, H] from x [steps, I]. The state before the first step is 0. */
void run(const rnn *r, int steps, const double *x, double *h);
#endif
