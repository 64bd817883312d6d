/* api_loss.h - losses, each as a sum and the weight to divide it by.
 *
 * Contents: losses. Metrics are in api_metrics.h. Sum and weight belong to the step. Gradients flow
 * to predictions and targets. opts may be NULL: all 0. A NaN makes the sum NaN, unless a mask hides
 * it. Errors: NULL; another type or shape; sum and weight are then inert tensors. */
#ifndef WEFT_API_LOSS_H
#define WEFT_API_LOSS_H
#include "../autograd/api_autograd.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- losses ---- */
/* A total and its divisor, both reals of rank 0. A loss without elements has sum 0 and weight 0.
 * Pads of the layout ROWS are not elements. */
typedef struct { weft_tensor *sum, *weight; } weft_loss;
/* Returns sum / weight of a loss, rank 0; 0 if the weight is 0. Like reduction="mean". */
WEFT_API weft_tensor *weft_mean_loss(weft_loss l);

typedef struct {
    weft_tensor *mask;               /* reals of the classes' shape and layout, a factor for each
                                      * element; NULL: 1. Where the mask is 0 the loss reads
                                      * neither logits nor class. */
    weft_tensor *class_weight;       /* reals, plain [classes]; NULL: 1 */
    double label_smoothing;          /* 0 .. 1; Szegedy et al. 2016 */
    int32_t ignore_index;            /* class whose elements get mask 0, such as -100; 0: none */
    bool has_ignore_index;           /* true: ignore_index 0 is class 0. Only 0 needs the flag */
} weft_cross_entropy_opts;
/* Computes the cross entropy of logits [.., classes], reals, and classes [..], ints 0 .. classes -
 * 1, both ragged or both plain. With label smoothing a, class weights w and probabilities p =
 * softmax of the logits, the loss of an element is
 *     (1 - a) w[target] (-log p[target]) + a / classes sum_c w[c] (-log p[c])
 * and its weight is w[target]. The mask multiplies loss and weight of each element, which are then
 * summed. A factor of 0 makes a term 0, also at a logit of -inf (PyTorch: NaN). mask and
 * class_weight are constants: weft_backward fails if one of them needs a gradient.
 * Errors: a class out of range; the message names its sequence and token. On a GPU the error comes
 * at the next wait. Like torch.nn.CrossEntropyLoss. */
WEFT_API weft_loss weft_cross_entropy(weft_tensor *logits, weft_tensor *classes,
                                      const weft_cross_entropy_opts *opts);

/* For the losses below, predicted and target are reals of one shape, both ragged or both plain. An
 * element whose mask or weight is 0 costs 0, and its predicted and target get gradient 0 and may be
 * NaN. Where the mask is 0, weights may also be NaN. Gradients also flow to mask and weights.
 * Where the mask is 0, its gradient is computed as if predicted and target were 0. */
typedef struct {
    /* Reals that broadcast to predicted: a factor for each element. The loss's .weight is the sum
     * of the factors of all elements. NULL: 1, so .weight is the number of elements. */
    weft_tensor *mask;
    weft_tensor *weights;            /* factors like mask, but .weight ignores them; NULL: 1 */
} weft_loss_opts;
/* Sums the squared errors (predicted - target)^2. opts->mask decides .weight. Like
 * torch.nn.MSELoss. */
WEFT_API weft_loss weft_mse_loss(weft_tensor *predicted, weft_tensor *target,
                                 const weft_loss_opts *opts);
/* Sums the absolute errors |predicted - target|. opts->mask decides .weight. Like
 * torch.nn.L1Loss. */
WEFT_API weft_loss weft_l1_loss(weft_tensor *predicted, weft_tensor *target,
                                const weft_loss_opts *opts);
/* Sums r^2 / 2 where |r| <= delta, otherwise delta (|r| - delta / 2), for r = predicted - target.
 * opts->mask decides .weight. delta 0 means 1. Errors: delta below 0. Like torch.nn.HuberLoss. */
WEFT_API weft_loss weft_huber_loss(weft_tensor *predicted, weft_tensor *target, double delta,
                                   const weft_loss_opts *opts);
/* Sums the binary cross entropy of logits and target (0 .. 1). opts->mask decides .weight. A logit
 * of +inf with target 1, or of -inf with target 0, costs 0. Errors: a target outside 0 .. 1,
 * unless its mask or weights are 0; on a GPU at the next wait. Like torch.nn.BCEWithLogitsLoss. */
WEFT_API weft_loss weft_bce_with_logits(weft_tensor *logits, weft_tensor *target,
                                        const weft_loss_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
