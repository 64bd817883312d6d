/* backward.h - functions that the backward pass shares with the storage of gradients (accumulate.c). */
#ifndef WEFT_BACKWARD_H
#define WEFT_BACKWARD_H
#include "autograd/op.h"

/* Returns a buffer of that form. Without memory returns NULL and fails the context. slot_end frees it. */
weft_tensor *weft__gradient_slot(weft *, const weft__form *);
void         weft__slot_end(weft *, weft_tensor *);
/* Returns whether the backward pass needs the gradient of the tensor. */
bool         weft__needs_gradient(const weft_tensor *);
/* Adds g, the gradient from one use, to the gradient of x. */
void         weft__accumulate(weft_tensor *x, weft_tensor *g);
/* Adds the gradients that a fused backward wrote by weft_op_dx, from the last input to the first. */
void weft__accumulate_ragged(weft *, const weft_call *);
/* Makes the gradient of the call's result that of x, without a copy. Returns false if it cannot. */
bool         weft__move_gradient(weft_call *, weft_tensor *x, weft_tensor *g);
/* stale_inputs.c: Checks that the parameters and buffers that the entry's backward reads have not changed
 * since its call. Otherwise fails the context and returns false. */
bool weft__inputs_unchanged(const weft__entry *);
/* backward_check.c: is_loss: may weft_backward start from t? reaches_parameters, after `reach`: does the
 * loss depend on a trainable parameter? If not, they fail the context. */
bool         weft__is_loss(weft_tensor *t);
/* Returns the reason, for messages, why no entry of the tape made the tensor. */
const char  *weft__why_not_on_tape(const weft_tensor *t);
bool         weft__reaches_parameters(const weft_tensor *loss);
#endif
