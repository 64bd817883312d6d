/* Lesson 3: the functions that you write. */
#ifndef WEFT_LESSON_03
#define WEFT_LESSON_03

/* Of the layer of lesson 2, h_t = tanh(W x_t + b + U h_{t-1} + c), after a run of some
 * steps: u [H, H] is U, h [steps, H] all states, last [H] the gradient of the loss by
 * the last state. Into dh [steps, H] the gradient by each state, from the last back to
 * the first, through all steps between. */
void back(int steps, int H, const double *u, const double *h, const double *last,
          double *dh);

/* The bias of an LSTM's forget gates with which a tenth comes from the last cell of a
 * text of so many tokens to its first cell, by the factors f alone: f = sigmoid(bias)
 * to the power of the steps between them is 0.1. 2 tokens or more. */
double forget_bias(int tokens);
#endif
