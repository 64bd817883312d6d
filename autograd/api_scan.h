/* api_scan.h - recurrences without a matrix, and shifted rows.
 *
 * The functions are operators (see api_autograd.h). Layers on them are in api_linear_rnn.h. */
#ifndef WEFT_API_SCAN_H
#define WEFT_API_SCAN_H
#include "api_autograd.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- scans and shifts ---- */
/* Computes the linear recurrence y_t = a_t * y_(t-1) + b_t along an axis of b, reals; along axis 0
 * of a ragged tensor within each sequence. reverse: from the end, y_t = a_t * y_(t+1) + b_t. The
 * result has b's shape. a has this shape or broadcasts to it: a number, [W] for the columns,
 * [N, 1] for the tokens. first: the y before the first row, of b's shape without the axis; for
 * sequences [n, ..] in the user's order; NULL: zeros. The rows are computed in order, so a second
 * call continues with the same bits if `first` is the last row of the first call. a = 1 gives the
 * sums of weft_cumsum, rounded at each step; a = d and b = (1 - d) x the exponential average of x.
 * Errors: other shapes; ints. Like a loop over torch.addcmul, or ewm of pandas. */
WEFT_API weft_tensor *weft_scan(weft_tensor *a, weft_tensor *b, int axis, weft_tensor *first,
                                bool reverse);
/* Moves the rows of axis 0 by a copy: row t becomes row t + by; `by` may be negative. In a ragged
 * tensor it moves them within each sequence. Takes reals or ints. Rows that come from outside are
 * fill, of x's type: one row, of x's shape without axis 0; of a ragged x also [n, ..], a row for
 * each sequence; NULL: 0. Targets shifted by 1, with the begin token as fill, are the inputs of a
 * decoder. Errors: another fill. Like shift of pandas. */
WEFT_API weft_tensor *weft_shift(weft_tensor *x, int64_t by, weft_tensor *fill);

#ifdef __cplusplus
}
#endif
#endif
