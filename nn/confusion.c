/* confusion.c - which class was taken for which, and what follows from it: precision, recall, F1. The matrix
 * of a batch is a tensor; what is summed over batches is plain memory of the program. */
#include "autograd/fused.h"
#include "nn/loss.h"

/* ---- the matrix ---- */
static weft_tensor *flat(weft_tensor *x, int rank, int64_t last)  /* of a plain one: its rows as one axis */
{
    return x->f.batch ? x : weft_reshape(x, rank, (int64_t[]){ -1, last });
}

/* Predicted classes choose the row to which the true class, and what it counts, is added; so the sums are
 * exact, and in a fixed order. A class that is ignored, or hidden by a mask, is a row of zeros. */
static weft_tensor *matrix(weft_tensor *scores, weft_tensor *classes, const weft_ce_opts *opts)
{
    weft *w = weft__context(LIST(scores, classes));
    const char *wrong = weft__wrong(w, scores) ? weft__wrong(w, scores) : weft__wrong(w, classes);
    if (wrong)
        weft__fail(w, WEFT_EARG, "confusion_matrix: an input %s", wrong);
    if (w->status)
        return &w->nil;
    weft_tensor *best = weft__predicted("confusion_matrix", scores, classes);
    int64_t n = weft_size(scores, -1);
    weft_tensor *counts = weft__entropy_weight(classes, n, opts, false);
    if (w->status)
        return &w->nil;
    if (weft_numel(classes) == 0)
        return weft_zeros(w, WEFT_SHAPE(n, n));
    weft_tensor *rows = weft_mul(weft__class_rows(classes, n), weft__column(counts));
    weft_tensor *taken = weft_index_add(flat(rows, 2, n), flat(best, 1, 0), n);
    return weft_transpose(taken, 0, 1);
}

weft_tensor *weft_confusion_matrix(weft_tensor *scores, weft_tensor *classes, const weft_ce_opts *opts)
{
    weft_tensor *y = NULL;
    WEFT_NO_GRAD(weft_context_of(scores))
        y = matrix(scores, classes, opts);
    return y;
}

void weft_confusion_add(double *counts, int64_t classes, weft_tensor *m)
{
    weft *w = weft__context(&m, 1);
    char text[128];
    const char *wrong = weft__wrong(w, m);
    if (wrong)
        weft__fail(w, WEFT_EARG, "confusion_add: the matrix %s", wrong);
    else if (!counts || m->f.rank != 2 || m->f.type != WEFT_REAL || m->f.size[0] != classes ||
             m->f.size[1] != classes)
        weft__fail(w, WEFT_ESHAPE, "confusion_add: the matrix is %s, %s; [%lld, %lld] of reals is expected",
                   weft__text(&m->f, text), counts ? "counts are there" : "counts is NULL",
                   (long long)classes, (long long)classes);
    int64_t n = w->status ? 0 : classes * classes;
    real *now = weft__take(w, WEFT__IN_NOTES, (n + 1) * (int64_t)sizeof *now);
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
        if (j != k)
            t.fp += counts[j * classes + k], t.fn += counts[k * classes + j];
    return t;
}

static double part(double of, double whole) { return whole > 0 ? of / whole : 0; }

static weft_class_scores scores_of(tally t)
{
    return (weft_class_scores){ part(t.tp, t.tp + t.fp), part(t.tp, t.tp + t.fn),
                                part(2 * t.tp, 2 * t.tp + t.fp + t.fn), t.tp + t.fn };
}

static weft_class_scores micro(const double *counts, int64_t classes)
{
    tally all = { 0 };
    for (int64_t k = 0; k < classes; k++) {
        tally t = tally_of(counts, classes, k);
        all.tp += t.tp, all.fp += t.fp, all.fn += t.fn;
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
        sum.precision += weight * s.precision, sum.recall += weight * s.recall, sum.f1 += weight * s.f1;
        sum.support += s.support;
    }
    return (weft_class_scores){ part(sum.precision, weights), part(sum.recall, weights),
                                part(sum.f1, weights), sum.support };
}

weft_class_scores weft_class_scores_of(const double *counts, int64_t classes, int64_t which)
{
    if (counts && which >= 0 && which < classes)
        return scores_of(tally_of(counts, classes, which));
    if (counts && which == WEFT_AVERAGE_MICRO)
        return micro(counts, classes);
    if (counts && (which == WEFT_AVERAGE_MACRO || which == WEFT_AVERAGE_WEIGHTED))
        return mean_over_classes(counts, classes, which == WEFT_AVERAGE_WEIGHTED);
    return (weft_class_scores){ 0 };
}
