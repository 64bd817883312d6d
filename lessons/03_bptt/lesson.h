/* Lesson 3: the functions that you write. */
#ifndef WEFT_LESSON_03
#define WEFT_LESSON_03

/* Writes to dh [steps, H] the gradient of the loss by each state of lesson 2's layer,
 * h_t = tanh(W x_t + b + U h_{t-1} + c). u [H, H] is U, h [steps, H] has all states,
 * and last [H] is the gradient by the last state. */
void back(int steps, int H, const double *u, const double *h, const double *last,
          double *dh);

/* Returns the forget bias with which the factors f = sigmoid(bias) alone carry a tenth
 * of the gradient from the last cell of a text to its first: f to the power of the
 * number of steps between them is 0.1. tokens: 2 or more. */
double forget_bias(int tokens);
#endif
