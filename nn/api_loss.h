/* api_loss.h - losses as (sum, weight), metrics. */
#ifndef WEFT_API_LOSS_H
#define WEFT_API_LOSS_H
#include "../autograd/api_autograd.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- losses ---- */
/* A total, and what it is to be divided by, both of rank 0; nothing to count is 0 with weight 0. */
typedef struct { weft_tensor *sum, *weight; } weft_loss;
/* sum / weight; 0 if the weight is 0. */
WEFT_API weft_tensor *weft_mean_loss(weft_loss l);
/* Two losses as one. */
WEFT_API weft_loss weft_add_losses(weft_loss a, weft_loss b);

/* smoothing a: (1 - a) w[target] (-log p[target]) + a / classes sum_c w[c] (-log p[c]), Szegedy et
 * al. 2016; weight: sum of w[target]. mask, of the shape of the classes, or NULL, multiplies both;
 * where it is 0 logits and class are not looked at. class_weight [classes] or NULL; ignore: a class
 * that counts nothing (class 0 wants has_ignore said, any other is meant by its number alone, -100,
 * too). Mask and class_weight are constants: they have no gradient. */
typedef struct {
    weft_tensor *mask, *class_weight;
    double smoothing;
    int32_t ignore;
    bool has_ignore;
} weft_ce_opts;
/* logits [.., classes], classes [..] ints, ragged or plain; opts may be NULL. A class out of range
 * is an error that names its sequence and token. */
WEFT_API weft_loss weft_cross_entropy(weft_tensor *logits, weft_tensor *classes,
                                      const weft_ce_opts *opts);
/* The losses below take predicted and target of one shape and a mask that broadcasts to it (NULL:
 * all 1); weight = sum of the mask over all elements (the number of elements without one).
 * `weights`, another tensor that broadcasts, multiplies the elements only and is not in the
 * denominator. Where the mask is 0 predicted, target and weights may be NaN. */
typedef struct { weft_tensor *mask, *weights; } weft_loss_opts;
WEFT_API weft_loss weft_mse(weft_tensor *predicted, weft_tensor *target,
                            const weft_loss_opts *opts);
WEFT_API weft_loss weft_mae(weft_tensor *predicted, weft_tensor *target,
                            const weft_loss_opts *opts);
WEFT_API weft_loss weft_huber(weft_tensor *predicted, weft_tensor *target, double delta,
                              const weft_loss_opts *opts);
/* Binary cross entropy of logits and targets in 0 .. 1. */
WEFT_API weft_loss weft_bce_with_logits(weft_tensor *logits, weft_tensor *target,
                                        const weft_loss_opts *opts);
/* 0.5 (log v + (y - m)^2 / v), v = max(variance, eps), which has no gradient below eps; eps 0:
 * 1e-6. */
WEFT_API weft_loss weft_gaussian_nll(weft_tensor *mean, weft_tensor *target, weft_tensor *variance,
                                     double eps, const weft_loss_opts *opts);
/* 2 |p - y| / (|p| + |y|) and |(y - p) / y|; as losses and as metrics. 0 / 0 counts as 0, a miss
 * of a target of 0 is infinite in mape. */
WEFT_API weft_loss weft_smape(weft_tensor *predicted, weft_tensor *target,
                              const weft_loss_opts *opts);
WEFT_API weft_loss weft_mape(weft_tensor *predicted, weft_tensor *target,
                             const weft_loss_opts *opts);
/* predicted [.., n], target [..] or [.., 1]; r = (y - p_q) weight, element max((q - 1) r, q r).
 * weight: elements; per_batch: sequences (or first extent) * n. */
WEFT_API weft_loss weft_quantile_loss(weft_tensor *predicted, weft_tensor *target,
                                      const weft_real *quantiles, int n, bool per_batch,
                                      const weft_loss_opts *opts);

/* ---- metrics ---- */
/* How many rows the largest score is right, of how many that are not ignored (opts as in cross
 * entropy). */
WEFT_API weft_loss weft_token_accuracy(weft_tensor *scores, weft_tensor *classes,
                                       const weft_ce_opts *opts);
/* How many sequences are right in all their tokens that are not ignored, of how many that have
 * one (ragged inputs). */
WEFT_API weft_loss weft_sequence_accuracy(weft_tensor *scores, weft_tensor *classes,
                                          const weft_ce_opts *opts);
/* exp(sum / weight), 1 if the weight is 0. */
WEFT_API double weft_perplexity(double sum, double weight);
/* Insertions, deletions and substitutions between two sequences of ints, Levenshtein 1966; -1 if
 * out of memory, or if one is NULL and not empty. */
WEFT_API int64_t weft_edit_distance(const int32_t *a, int64_t na, const int32_t *b, int64_t nb);

#ifdef __cplusplus
}
#endif
#endif
