/* Lesson 13: the functions that you write. */
#ifndef WEFT_LESSON_13
#define WEFT_LESSON_13
#include "weft_op.h"

/* The light recurrence of H units. A step gets s [2 H], the sums of its token: n = W x
 * + b in s[0] .. s[H - 1], then p, the gate's sum. v [H] has one weight per unit, and h
 * [H] is the state before the step. */

/* Computes the state after the step, to [H]:
 *     f = sigmoid(p + v * h)
 *     h' = f * h + (1 - f) * n */
void forward(int H, const double *s, const double *v, const double *h, double *to);

/* Computes the gradients of a loss from d [H], its gradient by h'. Writes ds [2 H], the
 * gradients by n and p, and dh [H], the gradient by h. Adds the gradient by v to dv
 * [H], because all steps share v. */
void backward(int H, const double *s, const double *v, const double *h, const double *d,
              double *ds, double *dv, double *dh);

/* A ragged batch: n sequences end to end. Sequence k has len[k] tokens, which may be 0.
 * s [tokens, 2 H] has the sums of all tokens, first [n, H] the states at the beginning.
 */
typedef struct {
    int n, H;
    const int *len;
    const double *s, *v, *first;
} batch;

/* Writes y [tokens, H], the state after each token, and last [n, H], the state after
 * the last token of each sequence: `first` if it has no tokens. */
void run(const batch *of, double *y, double *last);

/* Computes the gradients of a loss from dy [tokens, H] and dlast [n, H], its direct
 * gradients by y and last. Writes ds [tokens, 2 H], dv [H] and dfirst [n, H]. y has the
 * results of run. */
void run_back(const batch *of, const double *y, const double *dy, const double *dlast,
              double *ds, double *dv, double *dfirst);

/* The same step in weft's operators, for all rows of a step: in->x [rows, 2 H] are the
 * sums, in->own[0] [H] is v, and in->h [rows, H] the states. The new states are h of
 * the result, whose c is NULL. */
weft_state light(const weft_cell_input *in, void *user);
#endif
