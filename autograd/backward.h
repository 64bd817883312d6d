/* backward.h - what the way back is made of: the walk (backward.c), and where gradients go (accumulate.c). */
#ifndef WEFT_BACKWARD_H
#define WEFT_BACKWARD_H
#include "autograd/op.h"

/* a buffer of that form; NULL and a sticky error without memory */
weft_tensor *weft__slot(weft *, const weft__form *);
void         weft__slot_end(weft *, weft_tensor *);
/* no tensor needs to say beforehand that it will be asked for a gradient */
bool         weft__needed(const weft_tensor *);
/* the gradient that x gets from one use */
void         weft__accumulate(weft_tensor *x, weft_tensor *g);
/* what a fused backward has written by weft_op_dx, from the last input to the first */
void         weft__accumulate_apart(weft *, const weft_call *);
/* instead, if x can take the buffer of the call's result */
bool         weft__hand_over(weft_call *, weft_tensor *x, weft_tensor *g);
/* stale_inputs.c: whether the parameters and buffers that the entry's backward reads are what its call read;
 * else the context fails */
bool         weft__as_it_was(const weft__entry *);
/* backward_check.c: whether weft_backward may begin at t; after the walk's scan, whether t depends on a
 * parameter to be trained. If not, the context fails. */
bool         weft__is_loss(weft_tensor *t);
/* for messages about a tensor that no entry of the tape has made */
const char  *weft__why_not_on_tape(const weft_tensor *t);
bool         weft__reaches_parameters(const weft_tensor *loss);
#endif
