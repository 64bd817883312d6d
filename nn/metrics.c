/* metrics.c - accuracies, edit distance, confusion matrices with their scores, and running means. Nothing
 * here is recorded on the tape. */
#include <math.h>
#include <stdlib.h>
#include "autograd/fused.h"
#include "nn/loss.h"

/* ---- accuracies ---- */
typedef struct { weft_tensor *right, *counts; } hits;             /* for each row: 0 or 1, and its weight */

static weft_tensor *predicted(const char *name, weft_tensor *scores, weft_tensor *classes)
{
    if (scores && !weft__handle_error(scores->w, scores) && scores->f.type != WEFT_REAL)
        weft__fail(scores->w, WEFT_EARG, "%s: the scores are %s; expected reals, and scores before classes",
                   name, WEFT__TEXT(&scores->f));
    weft_tensor *best = weft_argmax(scores, -1);
    if (weft_ok(best->w) && !weft__handle_error(best->w, classes) &&
        !weft__shapes_equal(&best->f, &classes->f, -1))
        weft__fail(best->w, WEFT_ESHAPE, "%s: scores %s, classes %s; expected [.., classes] and [..]", name,
                   WEFT__TEXT(&scores->f), WEFT__TEXT(&classes->f));
    return best;
}

static hits compare(const char *name, weft_tensor *scores, weft_tensor *classes,
                    const weft_cross_entropy_opts *opts)
{
    weft_tensor *best = predicted(name, scores, classes);
    return (hits){ weft_equal(weft_to_reals(best), weft_to_reals(classes)),
                   weft__entropy_weight(classes, weft_size(scores, -1), opts, false) };
}

weft_tensor *weft_ratio_value(weft_ratio r)
{
    weft *w = weft_context_of(r.right);
    weft_tensor *y = NULL;
    WEFT_NO_GRAD(w)                              /* without a total the ratio is 0 / 1 */
        y = weft_div(r.right, weft_add(r.total, weft_equal(r.total, weft_scalar(w, 0))));
    return y;
}

weft_ratio weft_accuracy(weft_tensor *scores, weft_tensor *classes, const weft_cross_entropy_opts *opts)
{
    weft_ratio r = { 0 };
    WEFT_NO_GRAD(weft_context_of(scores)) {
        hits h = compare("accuracy", scores, classes, opts);
        r = (weft_ratio){ weft_sum_all(weft_mul(h.right, h.counts)), weft_sum_all(h.counts) };
    }
    return r;
}

/* A sequence is right if no counted token is wrong. It counts if any of its tokens counts. */
weft_ratio weft_sequence_accuracy(weft_tensor *scores, weft_tensor *classes,
                                  const weft_cross_entropy_opts *opts)
{
    weft_ratio r = { 0 };
    if (scores && !weft__handle_error(scores->w, scores) && !scores->f.batch)
        weft__fail(scores->w, WEFT_ESHAPE, "sequence_accuracy: the scores are %s; expected a ragged tensor",
                   WEFT__TEXT(&scores->f));
    WEFT_NO_GRAD(weft_context_of(scores)) {
        hits h = compare("sequence_accuracy", scores, classes, opts);
        weft_tensor *none = weft_scalar(scores ? scores->w : NULL, 0);
        weft_tensor *wrong = weft_pool(weft_mul(weft_equal(h.right, none), h.counts), WEFT_POOL_SUM);
        weft_tensor *counts = weft_greater(weft_pool(h.counts, WEFT_POOL_SUM), none);
        r = (weft_ratio){ weft_sum_all(weft_mul(weft_equal(wrong, none), counts)), weft_sum_all(counts) };
    }
    return r;
}

/* ---- edit distance ---- */
static int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }

/* Turns one row of the table into the next, in place. row[j] is the distance between the first i of a and the
 * first j of b; corner is that for i - 1 and j - 1. */
static void next_row(int64_t *row, int64_t i, int32_t symbol, const int32_t *b, int64_t nb)
{
    int64_t corner = row[0];
    row[0] = i;
    for (int64_t j = 1; j <= nb; j++) {
        int64_t changed = corner + (symbol != b[j - 1]);
        corner = row[j];
        row[j] = lesser(changed, lesser(row[j], row[j - 1]) + 1);
    }
}

int64_t weft_edit_distance(const int32_t *a, int64_t na, const int32_t *b, int64_t nb)
{
    na = na < 0 ? 0 : na;
    nb = nb < 0 ? 0 : nb;
    bool sound = (a || !na) && (b || !nb) && (uint64_t)nb < SIZE_MAX / sizeof(int64_t);
    int64_t *row = sound ? malloc(((size_t)nb + 1) * sizeof *row) : NULL;
    if (!row)
        return -1;
    for (int64_t j = 0; j <= nb; j++)
        row[j] = j;
    for (int64_t i = 1; i <= na; i++)
        next_row(row, i, a[i - 1], b, nb);
    int64_t distance = row[nb];
    free(row);
    return distance;
}

/* ---- confusion matrices ---- */
static weft_tensor *flat(weft_tensor *x, int rank, int64_t last)  /* merges the axes of plain rows */
{
    return x->f.batch ? x : weft_reshape(x, rank, (int64_t[]){ -1, last });
}

/* Adds the weight of each row, at its true class, to the row of its predicted class. The sums are exact and
 * in a fixed order. A class that is ignored or masked is a row of zeros. */
static weft_tensor *matrix(weft_tensor *scores, weft_tensor *classes, const weft_cross_entropy_opts *opts)
{
    weft *w = weft__context(LIST(scores, classes));
    if (!WEFT__IS_USABLE(w, scores, "confusion_matrix: an input") ||
        !WEFT__IS_USABLE(w, classes, "confusion_matrix: an input") || w->status)
        return &w->nil;
    weft_tensor *best = predicted("confusion_matrix", scores, classes);
    int64_t n = weft_size(scores, -1);
    weft_tensor *counts = weft__entropy_weight(classes, n, opts, false);
    if (w->status)
        return &w->nil;
    if (weft_numel(classes) == 0)
        return weft_zeros(w, WEFT_SHAPE(n, n));
    weft_tensor *rows = weft_mul(weft__class_rows(classes, n), weft__as_column(counts));
    weft_tensor *taken = weft_index_add(flat(rows, 2, n), flat(best, 1, 0), n);
    return weft_transpose(taken, 0, 1);
}

weft_tensor *weft_confusion_matrix(weft_tensor *scores, weft_tensor *classes,
                                   const weft_cross_entropy_opts *opts)
{
    weft_tensor *y = NULL;
    WEFT_NO_GRAD(weft_context_of(scores))
        y = matrix(scores, classes, opts);
    return y;
}

void weft_confusion_add(double *counts, int64_t classes, weft_tensor *m)
{
    weft *w = weft__context(&m, 1);
    if (WEFT__IS_USABLE(w, m, "confusion_add: the matrix") &&
        (!counts || m->f.rank != 2 || m->f.type != WEFT_REAL || m->f.size[0] != classes ||
         m->f.size[1] != classes))
        weft__fail(w, WEFT_ESHAPE, "confusion_add: the matrix is %s, %s; expected [%lld, %lld] of reals",
                   WEFT__TEXT(&m->f), counts ? "counts is given" : "counts is NULL", (long long)classes,
                   (long long)classes);
    int64_t n = w->status ? 0 : classes * classes;
    real *now = weft__take(w, WEFT__ARENA_CALLS, (n + 1) * (int64_t)sizeof *now);
    if (!now || weft__read(m, now, (size_t)n * sizeof *now))
        return;
    for (int64_t i = 0; i < n; i++)
        counts[i] += (double)now[i];
}

/* ---- scores ---- */
typedef struct { double tp, fp, fn; } tally;

static tally tally_of(const double *counts, int64_t classes, int64_t k)
{
    tally t = { .tp = counts[k * classes + k] };
    for (int64_t j = 0; j < classes; j++)
        if (j != k) {
            t.fp += counts[j * classes + k];
            t.fn += counts[k * classes + j];
        }
    return t;
}

static double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

static weft_class_scores scores_of(tally t)
{
    return (weft_class_scores){ ratio(t.tp, t.tp + t.fp), ratio(t.tp, t.tp + t.fn),
                                ratio(2 * t.tp, 2 * t.tp + t.fp + t.fn), t.tp + t.fn };
}

static weft_class_scores micro(const double *counts, int64_t classes)
{
    tally all = { 0 };
    for (int64_t k = 0; k < classes; k++) {
        tally t = tally_of(counts, classes, k);
        all.tp += t.tp;
        all.fp += t.fp;
        all.fn += t.fn;
    }
    return scores_of(all);
}

static weft_class_scores mean_over_classes(const double *counts, int64_t classes, bool by_support)
{
    weft_class_scores sum = { 0 };
    double weights = 0;
    for (int64_t k = 0; k < classes; k++) {
        tally t = tally_of(counts, classes, k);
        weft_class_scores s = scores_of(t);
        double weight = by_support ? s.support : t.tp + t.fp + t.fn > 0;
        weights += weight;
        sum.precision += weight * s.precision;
        sum.recall += weight * s.recall;
        sum.f1 += weight * s.f1;
        sum.support += s.support;
    }
    return (weft_class_scores){ ratio(sum.precision, weights), ratio(sum.recall, weights),
                                ratio(sum.f1, weights), sum.support };
}

weft_class_scores weft_class_scores_of(const double *counts, int64_t classes, int64_t class_)
{
    bool known = counts && class_ >= 0 && class_ < classes;
    return known ? scores_of(tally_of(counts, classes, class_)) : (weft_class_scores){ 0 };
}

weft_class_scores weft_average_scores(const double *counts, int64_t classes, weft_average average)
{
    if (!counts)
        return (weft_class_scores){ 0 };
    if (average == WEFT_MICRO_AVERAGE)
        return micro(counts, classes);
    return mean_over_classes(counts, classes, average == WEFT_WEIGHTED_AVERAGE);
}

/* ---- meters: sums in double, so that an epoch of float losses adds up exactly ---- */
static int buckets(const weft_meter *m)          /* 0 for NULL */
{
    if (!m)
        return 0;
    int edges = m->edges < 0 ? 0 : m->edges < WEFT_BUCKETS ? m->edges : WEFT_BUCKETS - 1;
    return edges + 1;
}

void weft_meter_add(weft_meter *meter, double sum, double weight)
{
    if (buckets(meter) > 1) {
        meter->other_sum += sum;
        meter->other_weight += weight;
    } else
        weft_meter_add_bucket(meter, 0, sum, weight);
}

void weft_meter_add_bucket(weft_meter *meter, int64_t length, double sum, double weight)
{
    int i = 0;
    while (i + 1 < buckets(meter) && length >= meter->edge[i])
        i++;
    if (meter) {
        meter->sum[i] += sum;
        meter->weight[i] += weight;
    }
}

double weft_meter_mean(const weft_meter *meter)
{
    double sum = meter ? meter->other_sum : 0, weight = meter ? meter->other_weight : 0;
    for (int i = 0; i < buckets(meter); i++) {
        sum += meter->sum[i];
        weight += meter->weight[i];
    }
    return weight != 0 ? sum / weight : (double)NAN;
}
