/* api_tape.h - looking at the tape, checking gradients, second derivatives. */
#ifndef WEFT_API_TAPE_H
#define WEFT_API_TAPE_H
#include "api_autograd.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- second derivatives ---- */
/* Computes the derivative of the sum of `of` with respect to each tensor by[i], i below n, into
 * out[i], as weft_gradients. It records this backward pass on the tape, also under WEFT_NO_GRAD. So
 * a loss may contain the results (gradient penalties, second derivatives). by: tensors of this
 * step, parameters or buffers; out may be the array by. On error every out[i] is inert. No fused
 * kernel runs: attention over 512 tokens takes 200 times the time and 400 times the memory. Errors:
 * `of` is neither on the tape nor one of by. Like torch.autograd.grad(.., create_graph=True). */
WEFT_API void weft_gradients_recorded(weft_tensor *of, weft_tensor *const *by, int64_t n,
                                      weft_tensor **out);

/* ---- checking gradients ---- */
/* Returns the largest difference between the gradients of f at x and central differences, relative
 * to max(1, norm of the gradient). Each call checks the passes by operators and by fused kernels.
 * f(x, user) returns a tensor of one element. x: n >= 1 tensors of reals: parameters, buffers or
 * tensors of the step. For each element of x weft runs f 4 times. It changes the element by up to
 * 8e-4 (2e-2 in the float library) and restores it. weft rewinds after each run, so x stays valid
 * and memory does not grow. order 1 checks the first derivatives of f. order 2 checks the second:
 * it differentiates a fixed combination of f's gradients. NaN on error. Use the double library.
 * Like torch.autograd.gradcheck. */
WEFT_API double weft_gradcheck(weft_tensor *(*f)(weft_tensor *const *x, void *user),
                               weft_tensor *const *x, int64_t n, int order, void *user);

/* ---- looking at the tape ---- */
/* Calls fn(y, operator_name, user) with every result as soon as it is computed, also in the
 * backward pass. y is the first result of an operator; others, such as the c of an LSTM, are not
 * shown. A context has one fn: a new one replaces the old one, fn NULL removes it. fn may read y
 * (weft_print, weft_read, ..). fn must not apply operators and cannot end the step. The name is
 * valid during the call. A fused recurrent layer gives h of all tokens once and no gates;
 * weft_rnn_set_composed makes every gate of every step a result. Like forward hooks. */
WEFT_API void weft_on_result(
    weft *w, void (*fn)(const weft_tensor *y, const char *operator_name, void *user), void *user);
/* Prints the tape of the step, one line for each entry, wrapped after 100 columns. Prints nothing
 * if file or w is NULL. An entry:
 *     %4 = slice(%3, axis=1, from=0, to=2) -> [5, 2] packed
 * The line has the number of the entry, the operator, its inputs and attributes, shape and layout
 * of the result. An input is the result of another entry by number ("%3.1": the second result of
 * %3), a parameter or buffer by path, or given0, given1, .. for other tensors. The first line that
 * names a parameter, buffer or given tensor also has its shape. A result of one element is printed
 * with its number, so the call waits for the device. Like torch.fx.Graph.print_tabular. */
WEFT_API void weft_print_tape(FILE *file, const weft *w);

#ifdef __cplusplus
}
#endif
#endif
