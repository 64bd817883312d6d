/* Lesson 11: the functions that you write. */
#ifndef WEFT_LESSON_11
#define WEFT_LESSON_11
#include "weft.h"

/* Clips by the global norm. The gradient of a model is n arrays, one a parameter;
 * gradient[k] has size[k] numbers. The norm is that of all numbers together, the root
 * of the sum of their squares. If it is above most, all are scaled so that it is most;
 * else they stay as they are. (PyTorch divides by norm + 1e-6, and so may you.) Returns
 * the norm before. */
double clip(int n, const int *size, double *const *gradient, double most);

/* Makes the bias of the forget gate `value`: bias_ih_l0 + bias_hh_l0 in the rows of f.
 * lstm holds both parameters, [4 hidden] each, gates in the order i f g o. All other
 * rows stay as they are. */
void forget_bias(weft_module *lstm, int hidden, double value);

/* One update of m's parameters: gradients of the loss, clipped to a norm of at most
 * `most` by weft_clip_grad_norm(m, most, 2), then a step of o, which zeroes the
 * gradients. Returns the norm before, by weft_item. (2 is the power in the norm: the
 * root of the sum of squares. 1 is the sum of sizes, INFINITY the largest of them.) */
double update(weft_module *m, weft_optim *o, weft_tensor *loss, double most);
#endif
