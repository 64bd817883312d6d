/* Lesson 11: the functions that you write. */
#ifndef WEFT_LESSON_11
#define WEFT_LESSON_11
#include "weft.h"

/* Clips by the global norm. A model's gradient is n arrays, one per parameter, and
 * gradient[k] has size[k] numbers. The norm is the root of the sum of all squares. If
 * it is above most, scales all numbers so that it equals most. Otherwise changes
 * nothing. (You may divide by norm + 1e-6, as PyTorch does.) Returns the norm before
 * clipping. */
double clip(int n, const int *size, double *const *gradient, double most);

/* Sets the forget gate's bias, bias_ih_l0 + bias_hh_l0 in the rows of f, to `value`.
 * lstm holds both parameters, [4 hidden] each, gates in the order i f g o. All other
 * rows stay as they are. */
void forget_bias(weft_module *lstm, int hidden, double value);

/* Updates m's parameters once: computes the gradients of the loss, clips them with
 * weft_clip_grad_norm(m, most, 2), and takes a step of o, which sets them to zero.
 * Returns the norm before clipping, as weft_item reads it. (2: the root of squares.) */
double update(weft_module *m, weft_optim *o, weft_tensor *loss, double most);
#endif
