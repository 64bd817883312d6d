/* api_forecast_loss.h - losses of forecasts: relative errors, quantiles, normal distributions.
 *
 * Contents: losses of forecasts. Shapes, masks, opts and errors are those of api_loss.h. */
#ifndef WEFT_API_FORECAST_LOSS_H
#define WEFT_API_FORECAST_LOSS_H
#include "api_loss.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- losses of forecasts ---- */
/* Computes the relative error 2 |p - y| / (|p| + |y|) of prediction p and target y, summed over all
 * elements; 0 / 0 counts as 0. Like SymmetricMeanAbsolutePercentageError of torchmetrics. */
WEFT_API weft_loss weft_smape(weft_tensor *predicted, weft_tensor *target,
                              const weft_loss_opts *opts);
/* Computes the relative error |(y - p) / y| of prediction p and target y, summed over all elements;
 * 0 / 0 is 0, any other error at a target of 0 is infinite. Like MeanAbsolutePercentageError of
 * torchmetrics. */
WEFT_API weft_loss weft_mape(weft_tensor *predicted, weft_tensor *target,
                             const weft_loss_opts *opts);
/* Computes the pinball loss of n quantiles: predicted [.., n], target [..] or [.., 1], element
 * max((q - 1) r, q r) with r = (target - predicted_q) * mask * weights. quantiles [n], between 0
 * and 1, in the order of the columns, are copied. The loss's weight is that of weft_mse_loss; with
 * per_batch it is the number of sequences (or the first extent) times n. Errors: other quantiles.
 * Like mean_pinball_loss of scikit-learn. */
WEFT_API weft_loss weft_quantile_loss(weft_tensor *predicted, weft_tensor *target,
                                      const weft_real *quantiles, int64_t n, bool per_batch,
                                      const weft_loss_opts *opts);
/* Computes 0.5 (log v + (target - mean)^2 / v) with v = max(variance, eps), summed over all
 * elements. variance has the shape of mean; below eps it gets no gradient. eps 0 means 1e-6.
 * Errors: a variance below 0 where the mask is not 0, on a GPU at the next wait; an eps below 0.
 * Like torch.nn.GaussianNLLLoss. */
WEFT_API weft_loss weft_gaussian_nll_loss(weft_tensor *mean, weft_tensor *target,
                                          weft_tensor *variance, double eps,
                                          const weft_loss_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
