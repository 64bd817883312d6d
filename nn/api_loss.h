/* api_loss.h - losses as (sum, weight), and what is counted beside them.
 *
 * Contents: losses, metrics (accuracies, confusion matrices, edit distance), meters. */
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

/* smoothing a: (1 - a) w[target] (-log p[target]) + a / classes sum_c w[c] (-log p[c]), Szegedy et
 * al. 2016; weight: sum of w[target]. mask, of the shape of the classes, or NULL, multiplies both;
 * where it is 0 logits and class are not looked at. class_weight [classes] or NULL; ignore: a class
 * that counts nothing (class 0 wants has_ignore said, any other is meant by its number, -100,
 * too). A term whose factor is 0 (smoothing, 1 - smoothing, a class weight) is 0, also at a logit
 * of -inf, where torch gives NaN. Mask and class_weight are constants: they have no gradient. */
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
 * denominator. Where the mask is 0 predicted, target and weights may be NaN; where a weight is 0
 * predicted and target may be. Value and gradient of such an element are 0. */
typedef struct { weft_tensor *mask, *weights; } weft_loss_opts;
WEFT_API weft_loss weft_mse(weft_tensor *predicted, weft_tensor *target,
                            const weft_loss_opts *opts);
WEFT_API weft_loss weft_mae(weft_tensor *predicted, weft_tensor *target,
                            const weft_loss_opts *opts);
/* r^2 / 2 of r = predicted - target where |r| <= delta, else delta (|r| - delta / 2); delta 0 means
 * 1. */
WEFT_API weft_loss weft_huber(weft_tensor *predicted, weft_tensor *target, double delta,
                              const weft_loss_opts *opts);
/* Returns the binary cross entropy of logits and targets in 0 .. 1. A logit of +inf or -inf whose
 * target is 1 or 0 costs 0.
 * Errors: a target outside 0 .. 1 where the mask is not 0; on a GPU at the next wait. */
WEFT_API weft_loss weft_bce_with_logits(weft_tensor *logits, weft_tensor *target,
                                        const weft_loss_opts *opts);
/* 0.5 (log v + (y - m)^2 / v), v = max(variance, eps), which has no gradient below eps; eps 0:
 * 1e-6.
 * Errors: a variance below 0 where the mask is not 0; on a GPU at the next wait. */
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
                                      const weft_real *quantiles, int64_t n, bool per_batch,
                                      const weft_loss_opts *opts);

/* ---- metrics ---- */
/* How many are right, and of how many, both of rank 0: an accuracy. It is no loss: it has no
 * gradient. Over several batches right and total are summed, by a weft_meter, say. */
typedef struct { weft_tensor *right, *total; } weft_ratio;
/* right / total; 0 if the total is 0. */
WEFT_API weft_tensor *weft_ratio_value(weft_ratio r);
/* How many rows the largest score is right, of how many that are not ignored: scores [.., classes],
 * classes [..] ints, ragged or plain, opts as in cross entropy (its class_weight and smoothing are
 * not looked at). */
WEFT_API weft_ratio weft_accuracy(weft_tensor *scores, weft_tensor *classes,
                                  const weft_ce_opts *opts);
/* How many sequences are right in all their tokens that are not ignored, of how many that have
 * one (ragged inputs). */
WEFT_API weft_ratio weft_sequence_accuracy(weft_tensor *scores, weft_tensor *classes,
                                           const weft_ce_opts *opts);
/* The confusion matrix [classes, classes] of a batch, plain: row t, column p is how many rows of
 * class t have their largest score in p, each counted by its mask. Arguments as in
 * weft_accuracy; no gradient. */
WEFT_API weft_tensor *weft_confusion_matrix(weft_tensor *scores, weft_tensor *classes,
                                            const weft_ce_opts *opts);
/* Adds a matrix [classes, classes] to counts, the program's own [classes * classes], row by row;
 * waits. Nothing is added on error. */
WEFT_API void weft_confusion_add(double *counts, int64_t classes, weft_tensor *matrix);
/* tp / (tp + fp), tp / (tp + fn) and 2 tp / (2 tp + fp + fn), each 0 where nothing is to be divided
 * by; support: how many there truly are. */
typedef struct { double precision, recall, f1, support; } weft_class_scores;
/* Averages over the classes as scikit-learn defines them with zero_division = 0. MACRO: the mean
 * over the classes that occur, truly or predicted. WEIGHTED: the mean by support. MICRO: of tp, fp
 * and fn summed over all classes, so all three are the accuracy. */
enum { WEFT_AVERAGE_MACRO = INT32_MIN, WEFT_AVERAGE_WEIGHTED, WEFT_AVERAGE_MICRO };
/* Of summed counts [classes * classes], rows true, columns predicted: those of one class, `which`
 * is 0 .. classes - 1, or an average, one of the three above, whose support is that of all classes.
 * Zeros of any other number, and of counts NULL. */
WEFT_API weft_class_scores weft_class_scores_of(const double *counts, int64_t classes,
                                                int64_t which);
/* Insertions, deletions and substitutions between two sequences of ints, Levenshtein 1966; -1 if
 * out of memory, or if one is NULL and not empty. */
WEFT_API int64_t weft_edit_distance(const int32_t *a, int64_t na, const int32_t *b, int64_t nb);

/* ---- meters ---- */
/* A running mean, by buckets of length if edges are given; plain data, no context needed,
 * zero-initialised is valid; a NULL one swallows all. The mean of bucket b is sum[b] / weight[b];
 * exp of a mean cross entropy is the perplexity. */
enum { WEFT_BUCKETS = 16 };
typedef struct {
    int edges;
    int64_t edge[WEFT_BUCKETS - 1];
    double sum[WEFT_BUCKETS], weight[WEFT_BUCKETS];
    double other_sum, other_weight;              /* of what no length was said of, beside edges */
} weft_meter;
/* Adds a total and its weight, of a loss, a ratio, or anything to be divided once. Beside edges it
 * is in the mean, and in no bucket. */
WEFT_API void weft_meter_add(weft_meter *meter, double sum, double weight);
/* The same of sequences of that length, which chooses the bucket: the first whose edge is above
 * it. */
WEFT_API void weft_meter_add_bucket(weft_meter *meter, int64_t length, double sum, double weight);
WEFT_API double weft_meter_mean(const weft_meter *meter);             /* NaN if nothing was added */

#ifdef __cplusplus
}
#endif
#endif
