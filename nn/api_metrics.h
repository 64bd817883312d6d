/* api_metrics.h - metrics of predictions, running means, all gradients as one vector.
 *
 * Contents: accuracies, confusion matrices, edit distance, meters, gradients. Tensors of a metric
 * belong to the step and have no gradient. scores [.., classes] are reals and classes [..] ints,
 * both ragged or both plain. The predicted class of a row is the first of its largest scores, or
 * the first NaN. opts may be NULL; only mask, ignore_index and has_ignore_index are read. Errors:
 * other types or shapes, a class out of range; returns inert tensors. */
#ifndef WEFT_API_METRICS_H
#define WEFT_API_METRICS_H
#include "api_loss.h"
#include "api_nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- accuracies ---- */
/* Counts, reals of rank 0, without a gradient. A weft_meter sums them over batches. */
typedef struct { weft_tensor *right, *total; } weft_ratio;
/* Returns right / total, a tensor of rank 0; 0 if the total is 0. */
WEFT_API weft_tensor *weft_ratio_value(weft_ratio r);
/* Counts the rows whose predicted class is right. total: all rows that are not ignored. With a mask
 * each row counts as its mask, in right and in total. Like Accuracy of torchmetrics. */
WEFT_API weft_ratio weft_accuracy(weft_tensor *scores, weft_tensor *classes,
                                  const weft_cross_entropy_opts *opts);
/* Counts the sequences whose counted tokens all have the right predicted class. A token counts
 * unless its class is ignored or its mask is 0. total: the sequences with a counted token. Errors:
 * plain scores. */
WEFT_API weft_ratio weft_sequence_accuracy(weft_tensor *scores, weft_tensor *classes,
                                           const weft_cross_entropy_opts *opts);

/* ---- confusion matrices ---- */
/* Computes the confusion matrix of a batch, plain reals [classes, classes]. Row t, column p counts
 * the rows of class t with predicted class p. With a mask each row counts as its mask. Ignored rows
 * do not count. Like sklearn.metrics.confusion_matrix. */
WEFT_API weft_tensor *weft_confusion_matrix(weft_tensor *scores, weft_tensor *classes,
                                            const weft_cross_entropy_opts *opts);
/* Adds a matrix of weft_confusion_matrix to the program's counts [classes * classes], row by row.
 * Waits for the device. Errors: counts NULL, another shape; adds nothing. */
WEFT_API void weft_confusion_add(double *counts, int64_t classes, weft_tensor *matrix);
/* tp / (tp + fp), tp / (tp + fn) and 2 tp / (2 tp + fp + fn), each 0 if the divisor is 0. tp: true
 * positives, fp: false positives, fn: false negatives; support: tp + fn. */
typedef struct { double precision, recall, f1, support; } weft_class_scores;
/* Averages over classes, as in scikit-learn with zero_division = 0. MACRO: the mean over the
 * classes that occur, as targets or as predictions. WEIGHTED: the mean weighted by support. MICRO:
 * the scores of tp, fp and fn summed over all classes; all three then equal the accuracy. */
typedef enum { WEFT_MACRO_AVERAGE, WEFT_WEIGHTED_AVERAGE, WEFT_MICRO_AVERAGE } weft_average;
/* Returns the scores of class number class_ from counts [classes * classes] of weft_confusion_add,
 * rows targets, columns predictions. Zeros for a class outside 0 .. classes - 1, or NULL. Like
 * sklearn.metrics.precision_recall_fscore_support. */
WEFT_API weft_class_scores weft_class_scores_of(const double *counts, int64_t classes,
                                                int64_t class_);
/* Averages the scores of all classes in counts, as in weft_class_scores_of; support is the sum.
 * Zeros for counts NULL. Like sklearn.metrics.precision_recall_fscore_support(average=..). */
WEFT_API weft_class_scores weft_average_scores(const double *counts, int64_t classes,
                                               weft_average average);

/* ---- edit distance ---- */
/* Counts the fewest insertions, deletions and substitutions that turn a [na] into b [nb],
 * Levenshtein 1966. A length below 0 counts as 0. Returns -1 if memory is short, or if an array is
 * NULL and its length above 0. Like torchaudio.functional.edit_distance. */
WEFT_API int64_t weft_edit_distance(const int32_t *a, int64_t na, const int32_t *b, int64_t nb);

/* ---- meters ---- */
/* A running mean, and means by length if the program sets edges. Plain data without a context;
 * zero-initialised is valid; functions ignore a NULL meter. The mean of bucket b is sum[b] /
 * weight[b]. exp of a mean cross entropy is the perplexity. */
enum { WEFT_BUCKETS = 16 };
typedef struct {
    int edges;                                   /* number of edges, limited to 0 .. 15 */
    int64_t edge[WEFT_BUCKETS - 1];              /* lengths, ascending (unchecked); a length equal
                                                  * to edge[b] is in bucket b + 1 */
    double sum[WEFT_BUCKETS];                    /* without edges all is in bucket 0 */
    double weight[WEFT_BUCKETS];
    double other_sum;                            /* with edges: entries added without a length */
    double other_weight;                         /* their weight */
} weft_meter;
/* Adds a total and its weight, such as weft_item of a loss's sum and weight. With edges the pair
 * counts in weft_meter_mean, but in no bucket. NaN makes the mean NaN. Like AverageMeter. */
WEFT_API void weft_meter_add(weft_meter *meter, double sum, double weight);
/* Adds a total and its weight for sequences of that length, in tokens. The bucket is the first
 * whose edge is above the length, or number `edges` if none is; 0 without edges. */
WEFT_API void weft_meter_add_bucket(weft_meter *meter, int64_t length, double sum, double weight);
/* Returns the sum of all totals / the sum of all weights; NaN if that is 0, and for NULL. */
WEFT_API double weft_meter_mean(const weft_meter *meter);

/* ---- gradients ---- */
/* Copies all gradients below m into one plain vector [weft_parameter_numel(m)], in the order of
 * weft_parameter_at. A tied parameter is in it once; a frozen one, or one without a gradient, gives
 * zeros. The vector is a constant of the step; inert if m is NULL. Like
 * torch.nn.utils.parameters_to_vector of the gradients. */
WEFT_API weft_tensor *weft_flat_gradient(weft_module *m);

#ifdef __cplusplus
}
#endif
#endif
