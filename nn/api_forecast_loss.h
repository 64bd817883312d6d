/* api_forecast_loss.h - losses of forecasts: relative errors, quantiles, normal distributions.
 *
 * Contents: losses of forecasts. predicted and target are reals of one shape, both ragged or both
 * plain. opts NULL: all 0. opts->mask and opts->weights are factors of the elements, broadcast to
 * predicted; elements with factor 0 may be NaN. A loss is a sum and its weight, two tensors of rank
 * 0 of the step. The weight is the number of elements, or with a mask the sum of the mask's
 * factors. Gradients flow to predicted and target. Errors: NULL, other types or shapes; sum and
 * weight are inert. */
#ifndef WEFT_API_FORECAST_LOSS_H
#define WEFT_API_FORECAST_LOSS_H
#include "api_loss.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- losses of forecasts ---- */
/* Computes the relative error 2 |p - y| / (|p| + |y|) of prediction p and target y, summed over all
 * elements. An element is 0 .. 2, not percent; 0 / 0 is 0. Like
 * SymmetricMeanAbsolutePercentageError of torchmetrics. */
WEFT_API weft_loss weft_smape(weft_tensor *predicted, weft_tensor *target,
                              const weft_loss_opts *opts);
/* Computes the relative error |(y - p) / y| of prediction p and target y, summed over all elements.
 * An element is a fraction, not percent. 0 / 0 is 0; another error at a target of 0 is infinite.
 * Like MeanAbsolutePercentageError of torchmetrics. */
WEFT_API weft_loss weft_mape(weft_tensor *predicted, weft_tensor *target,
                             const weft_loss_opts *opts);
/* Computes the pinball loss of quantiles [n], above 0 and below 1, in the order of the columns of
 * predicted, copied. predicted is [.., n]; target is [..] or [.., 1]. The loss is max((q - 1) r, q
 * r), summed over all elements of predicted, with r = (target - predicted) * mask * weights.
 * The weight is the number of elements of predicted, n for each target; with a mask the sum of its
 * factors over them, so a mask [.., 1] counts n times. per_batch: n times the number of sequences
 * (plain: first extent of predicted), whatever the mask. Errors: other quantiles.
 * Like mean_pinball_loss of scikit-learn. */
WEFT_API weft_loss weft_quantile_loss(weft_tensor *predicted, weft_tensor *target,
                                      const weft_real *quantiles, int64_t n, bool per_batch,
                                      const weft_loss_opts *opts);
/* Computes 0.5 (log v + (target - mean)^2 / v) with v = max(variance, eps), summed over all
 * elements, without the constant 0.5 log(2 pi). mean is the prediction. variance has the shape of
 * mean; an element below eps gets no gradient. eps 0 means 1e-6. Errors: a variance below 0 where
 * the mask is not 0, on a GPU at the next wait; an eps below 0. Like torch.nn.GaussianNLLLoss. */
WEFT_API weft_loss weft_gaussian_nll_loss(weft_tensor *mean, weft_tensor *target,
                                          weft_tensor *variance, double eps,
                                          const weft_loss_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
