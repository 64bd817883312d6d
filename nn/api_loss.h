/* api_loss.h - losses, each as a sum and the weight to divide it by.
 *
 * Contents: losses. Metrics are in api_metrics.h. Sum and weight belong to the step, and gradients
 * flow to predictions and targets. opts may be NULL: all 0. NaN that no mask hides makes the sum
 * NaN. Errors: NULL, other types or shapes; sum and weight are then inert tensors. */
#ifndef WEFT_API_LOSS_H
#define WEFT_API_LOSS_H
#include "../autograd/api_autograd.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- losses ---- */
/* A total and its divisor, both of rank 0. A loss without elements has sum 0 and weight 0. */
typedef struct { weft_tensor *sum, *weight; } weft_loss;
/* Returns sum / weight of a loss, rank 0; 0 if the weight is 0. Like reduction="mean". */
WEFT_API weft_tensor *weft_mean_loss(weft_loss l);

typedef struct {
    weft_tensor *mask;               /* reals of the classes' shape and layout, factors of the
                                      * elements; NULL: 1. Where it is 0 the loss reads neither
                                      * logits nor class. */
    weft_tensor *class_weight;       /* reals, plain [classes]; NULL: 1 */
    double label_smoothing;          /* 0 .. 1; Szegedy et al. 2016 */
    int32_t ignore_index;            /* a class that does not count, such as -100; 0: none */
    bool has_ignore_index;           /* only needed for class 0: ignore_index 0 is that class */
} weft_cross_entropy_opts;
/* Computes the cross entropy of logits [.., classes], reals, and classes [..], ints, both
 * ragged or both plain. opts may be NULL. With label smoothing a, class weights w and
 * probabilities p, the loss of an element is
 *     (1 - a) w[target] (-log p[target]) + a / classes sum_c w[c] (-log p[c])
 * and its weight is w[target]. The mask multiplies both; then each is summed. A factor of 0 makes
 * a term 0, also at a logit of -inf (PyTorch: NaN). Mask and class_weight get no gradient.
 * Errors: a class out of range; the message names its sequence and token. On a GPU the error comes
 * at the next wait. Like torch.nn.CrossEntropyLoss. */
WEFT_API weft_loss weft_cross_entropy(weft_tensor *logits, weft_tensor *classes,
                                      const weft_cross_entropy_opts *opts);

/* For the losses below, predicted and target are reals of one shape, both ragged or both plain. An
 * element with mask 0 or weights 0 costs 0 and has gradient 0; its predicted and target may be NaN.
 * With mask 0 its weights may be NaN, too. */
typedef struct {
    weft_tensor *mask;               /* reals, factors of the elements; broadcast to predicted. The
                                      * loss's weight is the sum of these factors. NULL: 1 */
    weft_tensor *weights;            /* the same, without effect on the loss's weight. NULL: 1 */
} weft_loss_opts;
/* Computes the squared errors (predicted - target)^2, summed. Like torch.nn.MSELoss. */
WEFT_API weft_loss weft_mse_loss(weft_tensor *predicted, weft_tensor *target,
                            const weft_loss_opts *opts);
/* Computes the absolute errors |predicted - target|, summed. Like torch.nn.L1Loss. */
WEFT_API weft_loss weft_l1_loss(weft_tensor *predicted, weft_tensor *target,
                            const weft_loss_opts *opts);
/* Computes r^2 / 2 for r = predicted - target where |r| <= delta, otherwise delta (|r| - delta /
 * 2), summed. delta 0 means 1. Errors: a delta below 0. Like torch.nn.HuberLoss. */
WEFT_API weft_loss weft_huber_loss(weft_tensor *predicted, weft_tensor *target, double delta,
                              const weft_loss_opts *opts);
/* Computes the binary cross entropy of logits and targets in 0 .. 1, summed over all elements. A
 * logit of +inf with target 1, or of -inf with target 0, costs 0. Errors: a target outside 0 .. 1
 * where the mask is not 0; on a GPU at the next wait. Like torch.nn.BCEWithLogitsLoss. */
WEFT_API weft_loss weft_bce_with_logits(weft_tensor *logits, weft_tensor *target,
                                        const weft_loss_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
