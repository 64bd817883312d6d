/* api_tape.h - looking at the tape, checking gradients, second derivatives. */
#ifndef WEFT_API_TAPE_H
#define WEFT_API_TAPE_H
#include "api_autograd.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- second derivatives ---- */
/* Computes the gradients of weft_gradients and records that pass on the tape, also under
 * WEFT_NO_GRAD, so that the program can differentiate them again (gradient penalties, second
 * derivatives). Arguments, owners and errors are those of weft_gradients. It runs without fused
 * kernels: attention over 512 tokens takes 200 times the time and 400 times the memory. Like
 * torch.autograd.grad(.., create_graph=True). */
WEFT_API void weft_gradients_recorded(weft_tensor *of, weft_tensor *const *by, int64_t n,
                                      weft_tensor **out);

/* ---- checking gradients ---- */
/* Returns the largest difference between the gradients of f at x and central differences, relative
 * to max(1, norm of the gradient), for gradients by operators and by fused kernels. f(x, user)
 * returns a tensor of one element; it runs 4 times for each element of the n tensors x, whose
 * numbers weft changes and restores. order 1: of f; 2: of a fixed combination of its gradients, so
 * second derivatives. NaN on error. Use the double library. Like torch.autograd.gradcheck. */
WEFT_API double weft_gradcheck(weft_tensor *(*f)(weft_tensor *const *x, void *user),
                               weft_tensor *const *x, int64_t n, int order, void *user);

/* ---- looking at the tape ---- */
/* Calls fn with every result as soon as it is computed, also in the backward pass. A context has
 * one fn: a call replaces it, fn NULL removes it. fn may read y (weft_print, weft_item, weft_read,
 * weft_read_sequences). It should apply no operators, and it cannot end the step (see weft_clear).
 * fn gets the first result of an operator. A fused recurrent layer gives h of all tokens once and
 * no gates; weft_rnn_set_composed makes every gate of every step a result. Like forward hooks. */
WEFT_API void weft_on_result(
    weft *w, void (*fn)(const weft_tensor *y, const char *operator_name, void *user), void *user);
/* Prints the tape of the step, one line of up to 100 columns for each entry, or several; nothing if
 * file or w is NULL. An entry:
 *     %4 = slice(%3, axis=1, from=0, to=2) -> [5, 2] packed
 * The line has the number of the entry, the operator, its inputs and attributes, shape and layout
 * of the result. An input is the result of another entry by number ("%3.1": the second result of
 * %3), a parameter or buffer by path, or given0, given1, .. for other tensors, with their shape at
 * first. A result of one element is printed with its number, so it waits for the device. Like
 * torch.fx.Graph.print_tabular. */
WEFT_API void weft_print_tape(FILE *file, const weft *w);

#ifdef __cplusplus
}
#endif
#endif
