/* Lesson 2: the functions that you write. */
#ifndef WEFT_LESSON_02
#define WEFT_LESSON_02

/* A layer of H units over inputs of I numbers; matrices row by row, as in PyTorch:
 * w [H, I] is weight_ih, u [H, H] weight_hh, b [H] bias_ih, c [H] bias_hh. */
typedef struct {
    int I, H;
    const double *w, *u, *b, *c;
} rnn;

/* One step: h [H] from x [I] and the state before it, [H]:
 *     h = tanh(w x + b + u before + c) */
void step(const rnn *r, const double *x, const double *before, double *h);

/* All steps: x [steps, I], h [steps, H]. The state before the first step is zeros. */
void run(const rnn *r, int steps, const double *x, double *h);
#endif
