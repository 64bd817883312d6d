/* loss.h - what losses and metrics share. */
#ifndef WEFT_LOSS_H
#define WEFT_LOSS_H
#include "nn/nn.h"

/* Of one shape, both ragged or both plain, in any layout; if last >= 0 that is b's last extent instead of
 * a's. */
bool weft__alike(const weft__form *a, const weft__form *b, int64_t last);
/* x [..] as [.., 1], so that it broadcasts over a last axis; ragged ones stay so. */
weft_tensor *weft__column(weft_tensor *x);
/* What each row counts in a cross entropy, in the shape of classes: 0 if it is ignored, else mask times
 * weight of its class. No gradient. weighted: whether class_weight counts. */
weft_tensor *weft__entropy_weight(weft_tensor *classes, int64_t n, const weft_ce_opts *opts, bool weighted);
/* [.., classes] of 0 and 1; a class out of range, an ignored one perhaps, gives zeros. */
weft_tensor *weft__class_rows(weft_tensor *classes, int64_t n);
#endif
