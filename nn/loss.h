/* loss.h - functions shared by losses and metrics. */
#ifndef WEFT_LOSS_H
#define WEFT_LOSS_H
#include "nn/nn.h"

/* Returns whether a and b have one shape, and both are ragged or both plain, in any layout. last >= 0: b's
 * last extent must be `last` instead. */
bool weft__shapes_equal(const weft__form *a, const weft__form *b, int64_t last);
/* Reshapes x [..] to [.., 1], so that it broadcasts over a last axis. A ragged x stays ragged. */
weft_tensor *weft__as_column(weft_tensor *x);
/* Returns the weight of each row in a cross entropy, in the shape of classes: 0 if ignored, otherwise mask
 * times class weight. No gradient. weighted: use class_weight. */
weft_tensor *weft__entropy_weight(weft_tensor *classes, int64_t n, const weft_cross_entropy_opts *opts,
                                  bool weighted);
/* Returns [.., classes] of 0 and 1. A class out of range, such as an ignored one, gives zeros. */
weft_tensor *weft__class_rows(weft_tensor *classes, int64_t n);
#endif
