/* test_metrics.c - tests argmax, accuracy, confusion matrices, class scores, edit distance and meters. */
#include "tests/check.h"

enum { SEQUENCES = 5, TOKENS = 14, CLASSES = 4 };
static const int32_t len[SEQUENCES] = { 3, 0, 5, 2, 4 };
static const weft_lengths lengths = { .n = SEQUENCES, .len = len };

static int best_of(const weft_real *x)
{
    int at = 0;
    for (int j = 1; j < CLASSES; j++)
        at = x[j] > x[at] ? j : at;
    return at;
}

/* ---- accuracies and confusion ---- */
typedef struct { weft_real scores[TOKENS * CLASSES], mask[TOKENS]; int32_t target[TOKENS]; } data;

static data data_of(int32_t ignore)      /* nothing of a masked token may be read */
{
    data d;
    dice_fill(d.scores, TOKENS * CLASSES, -1, 1);
    for (int t = 0; t < TOKENS; t++) {
        d.target[t] = dice(3) ? best_of(d.scores + t * CLASSES) : (int32_t)dice(CLASSES);
        d.target[t] = dice(5) ? d.target[t] : ignore;
        d.mask[t] = (weft_real[]){ 0, 1, (weft_real).5 }[dice(3)];
        if (d.mask[t] == 0) {
            d.target[t] = 77;
            d.scores[t * CLASSES] = (weft_real)NAN;
        }
    }
    return d;
}

/* want: correct tokens, their total, correct sequences, their total */
static void by_hand(const data *d, int32_t ignore, double *want, double *matrix)
{
    memset(want, 0, 4 * sizeof *want);
    memset(matrix, 0, CLASSES * CLASSES * sizeof *matrix);
    for (int s = 0, t = 0; s < SEQUENCES; s++) {
        bool counts = false, right = true;
        for (int end = t + len[s]; t < end; t++) {
            if (d->target[t] == ignore || d->mask[t] == 0)
                continue;
            const int best = best_of(d->scores + t * CLASSES);
            counts = true;
            right &= best == d->target[t];
            want[0] += best == d->target[t] ? (double)d->mask[t] : 0;
            want[1] += (double)d->mask[t];
            matrix[d->target[t] * CLASSES + best] += (double)d->mask[t];
        }
        want[2] += counts && right;
        want[3] += counts;
    }
}

static bool is_ratio(weft_ratio r, const double *want)
{
    return weft_item(r.right) == want[0] && weft_item(r.total) == want[1] &&
           fabs(weft_item(weft_ratio_value(r)) - (want[1] ? want[0] / want[1] : 0)) < 1e-6;
}

TABLE_TEST(metrics, accuracy_and_confusion_match_plain_loops, .init = unchecked)
{
    for (int i = 0; i < 40; i++, weft_clear(w)) {
        int layout = i % 4;
        int32_t ignore = i % 3 ? -100 : 2;
        data d = data_of(ignore);
        double want[4], matrix[CLASSES * CLASSES], got[CLASSES * CLASSES] = { 0 };
        by_hand(&d, ignore, want, matrix);
        weft_tensor *x = weft_reals(w, d.scores, WEFT_SHAPE(2, TOKENS / 2, CLASSES)),
                    *y = weft_ints(w, d.target, WEFT_SHAPE(2, TOKENS / 2)),
                    *mask = weft_reals(w, d.mask, WEFT_SHAPE(2, TOKENS / 2));
        if (layout) {
            x = laid_out(weft_ragged(w, d.scores, CLASSES, &lengths), layout);
            y = laid_out(weft_ragged_ints(w, d.target, &lengths), 1 + i % 3);
            mask = weft_ragged(w, d.mask, 0, &lengths);
        }
        weft_cross_entropy_opts o = { .mask = mask, .has_ignore_index = true, .ignore_index = ignore };
        int64_t tape = weft_usage_of(w).tape;
        weft_tensor *m = weft_confusion_matrix(x, y, &o);
        weft_confusion_add(got, CLASSES, m);
        cr_assert(!memcmp(got, matrix, sizeof got), "layout %d: %s", layout, weft_error_message(w));
        weft_confusion_add(got, CLASSES, m);
        cr_assert_eq(got[0], 2 * matrix[0]);
        cr_assert(is_ratio(weft_accuracy(x, y, &o), want), "%s", weft_error_message(w));
        if (layout)
            cr_assert(is_ratio(weft_sequence_accuracy(x, y, &o), want + 2), "%s", weft_error_message(w));
        cr_assert_eq(weft_usage_of(w).tape, tape, "a metric was recorded");
    }
}

REF_TEST(metrics, accuracy_refuses_invalid_arguments)
{
    weft_accuracy(weft_zeros(w, WEFT_SHAPE(4, 3)), weft_ints(w, NULL, WEFT_SHAPE(1)), NULL);
    FAILS(w, WEFT_ESHAPE, "accuracy: scores [4, 3], classes [1] of ints");
    weft_accuracy(weft_zeros(w, WEFT_SHAPE(4, 3)),
                  weft_ints(w, (int32_t[]){ 0, 1, 3, 2 }, WEFT_SHAPE(4)), NULL);
    FAILS(w, WEFT_EARG, "row 2; expected 0 .. 2");
    cr_assert(weft_set_grad_enabled(w, true), "recording was left off");
    cr_assert_eq(weft_item(weft_ratio_value((weft_ratio){ weft_scalar(w, 0), weft_scalar(w, 0) })), 0);
    for (int n = 1; n < 200; n++)                /* all right is 1, not nearly */
        cr_assert_eq(weft_item(weft_ratio_value((weft_ratio){ weft_scalar(w, n), weft_scalar(w, n) })), 1);
    cr_assert_not_null(weft_sequence_accuracy(NULL, NULL, NULL).right);
}

CPU_TEST(metrics, confusion_accepts_an_empty_batch)
{
    static const int32_t none[2] = { 0, 0 };
    double got[9] = { 1 };
    weft_tensor *x[] = { weft_zeros(w, WEFT_SHAPE(0, 3)),
                         weft_ragged(w, NULL, 3, &(weft_lengths){ .n = 2, .len = none }),
                         weft_ragged(w, NULL, 3, &(weft_lengths){ .n = 0 }) };
    weft_tensor *y[] = { weft_ints(w, NULL, WEFT_SHAPE(0)),
                         weft_ragged_ints(w, NULL, &(weft_lengths){ .n = 2, .len = none }),
                         weft_ragged_ints(w, NULL, &(weft_lengths){ .n = 0 }) };
    for (int i = 0; i < COUNT(x); i++) {
        weft_confusion_add(got, 3, weft_confusion_matrix(x[i], y[i], NULL));
        cr_assert(weft_ok(w), "%d: %s", i, weft_error_message(w));
    }
    cr_assert(got[0] == 1 && got[8] == 0);
}

CPU_TEST(metrics, confusion_refuses_invalid_arguments)
{
    double got[9] = { 0 };
    weft_confusion_matrix(weft_zeros(w, WEFT_SHAPE(4, 3)), weft_ints(w, NULL, WEFT_SHAPE(5)), NULL);
    FAILS(w, WEFT_ESHAPE, "confusion_matrix: scores [4, 3], classes [5] of ints");
    weft_confusion_matrix(weft_zeros(w, WEFT_SHAPE(2, 3)), weft_ints(w, (int32_t[]){ 0, 3 }, WEFT_SHAPE(2)),
                          NULL);
    FAILS(w, WEFT_EARG, "row 1; expected 0 .. 2");
    weft_confusion_add(got, 3, weft_full(w, 1, WEFT_SHAPE(3, 2)));
    FAILS(w, WEFT_ESHAPE, "the matrix is [3, 2], counts is given; expected [3, 3]");
    weft_confusion_add(NULL, 3, weft_zeros(w, WEFT_SHAPE(3, 3)));
    FAILS(w, WEFT_ESHAPE, "counts is NULL");
    weft_confusion_add(got, 3, NULL);
    cr_assert(got[0] == 0);
}

/* ---- scores: worked by hand ---- */
static void near(weft_class_scores got, double precision, double recall, double f1, double support)
{
    cr_assert(fabs(got.precision - precision) < 1e-12 && fabs(got.recall - recall) < 1e-12 &&
                  fabs(got.f1 - f1) < 1e-12 && got.support == support,
              "%g %g %g %g, expected %g %g %g %g", got.precision, got.recall, got.f1, got.support, precision,
              recall, f1, support);
}

/* True 0 0 1 1 2 2, predicted 0 2 1 0 0 1 (the example of scikit-learn's precision_recall_fscore_support has
 * the like): class 0 is right 1 of 3 predicted, of 2; class 1 1 of 2, of 2; class 2 0 of 1, of 2. */
Test(metrics, scores_match_worked_examples)
{
    static const double counts[] = { 1, 0, 1, 1, 1, 0, 1, 1, 0 };
    near(weft_class_scores_of(counts, 3, 0), 1. / 3, 1. / 2, .4, 2);
    near(weft_class_scores_of(counts, 3, 1), 1. / 2, 1. / 2, .5, 2);
    near(weft_class_scores_of(counts, 3, 2), 0, 0, 0, 2);
    near(weft_average_scores(counts, 3, WEFT_MACRO_AVERAGE), (1. / 3 + .5) / 3, 1. / 3, .3, 6);
    near(weft_average_scores(counts, 3, WEFT_WEIGHTED_AVERAGE), (1. / 3 + .5) / 3, 1. / 3, .3, 6);
    near(weft_average_scores(counts, 3, WEFT_MICRO_AVERAGE), 1. / 3, 1. / 3, 1. / 3, 6);
}

/* Class 1 is never true, but predicted twice; class 2 occurs nowhere; class 3 is true and never predicted. */
Test(metrics, missing_classes_score_zero)
{
    static const double counts[] = { 4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0 };
    near(weft_class_scores_of(counts, 4, 0), 4. / 5, 4. / 5, 4. / 5, 5);
    near(weft_class_scores_of(counts, 4, 1), 0, 0, 0, 0);
    near(weft_class_scores_of(counts, 4, 2), 0, 0, 0, 0);
    near(weft_class_scores_of(counts, 4, 3), 0, 0, 0, 2);
    near(weft_average_scores(counts, 4, WEFT_MACRO_AVERAGE), .8 / 3, .8 / 3, .8 / 3, 7);
    near(weft_average_scores(counts, 4, WEFT_WEIGHTED_AVERAGE), 4. / 7, 4. / 7, 4. / 7, 7);
    near(weft_average_scores(counts, 4, WEFT_MICRO_AVERAGE), 4. / 7, 4. / 7, 4. / 7, 7);
    static const double nothing[4] = { 0 };
    near(weft_average_scores(nothing, 2, WEFT_MACRO_AVERAGE), 0, 0, 0, 0);
    near(weft_average_scores(nothing, 2, WEFT_WEIGHTED_AVERAGE), 0, 0, 0, 0);
    near(weft_average_scores(nothing, 2, WEFT_MICRO_AVERAGE), 0, 0, 0, 0);
    near(weft_class_scores_of(counts, 4, 4), 0, 0, 0, 0);
    near(weft_class_scores_of(counts, 4, -1), 0, 0, 0, 0);
    near(weft_class_scores_of(NULL, 4, 0), 0, 0, 0, 0);
    near(weft_average_scores(NULL, 4, WEFT_MICRO_AVERAGE), 0, 0, 0, 0);
}

/* ---- edit distance, against the definition ---- */
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t distance(const int32_t *a, int64_t na, const int32_t *b, int64_t nb)
{
    if (!na || !nb)
        return na + nb;
    int64_t changed = distance(a, na - 1, b, nb - 1) + (a[na - 1] != b[nb - 1]);
    return least(changed, least(distance(a, na - 1, b, nb), distance(a, na, b, nb - 1)) + 1);
}

Test(metrics, edit_distance_matches_its_definition)
{
    for (int i = 0; i < 300; i++) {
        int32_t a[6], b[6];
        int64_t na = (int64_t)dice(7), nb = (int64_t)dice(7);
        for (int j = 0; j < 6; j++) {
            a[j] = (int32_t)dice(3);
            b[j] = (int32_t)dice(3);
        }
        int64_t got = weft_edit_distance(a, na, b, nb), want = distance(a, na, b, nb);
        cr_assert_eq(got, want, "%lld, expected %lld", (long long)got, (long long)want);
    }
    cr_assert_eq(weft_edit_distance(NULL, 0, NULL, 0), 0);
}

Test(metrics, meter_averages_by_weight)
{
    weft_meter all = { 0 }, m = { .edges = 2, .edge = { 10, 20 } };
    cr_assert(isnan(weft_meter_mean(&all)) && isnan(weft_meter_mean(&m)));
    static const struct {
        int64_t length;
        int bucket;
    } put[] = { { 0, 0 }, { 9, 0 }, { 10, 1 }, { 19, 1 }, { 20, 2 }, { 1 << 20, 2 } };
    double sum[3] = { 0 }, weight[3] = { 0 }, total = 0, weights = 0;
    for (int i = 0; i < COUNT(put); i++) {
        weft_meter_add_bucket(&m, put[i].length, i * i, 1 + i);
        weft_meter_add(&all, i * i, 1 + i);
        sum[put[i].bucket] += i * i;
        weight[put[i].bucket] += 1 + i;
        total += i * i;
        weights += 1 + i;
    }
    for (int b = 0; b < 3; b++)
        cr_assert(m.sum[b] == sum[b] && m.weight[b] == weight[b]);
    cr_assert(weft_meter_mean(&m) == total / weights && weft_meter_mean(&all) == total / weights &&
              all.sum[0] == total && m.weight[3] == 0);
    weft_meter_add(&m, 70, 7);                   /* in no bucket, in the mean */
    cr_assert(weft_meter_mean(&m) == (total + 70) / (weights + 7));
    for (int b = 0; b < 3; b++)
        cr_assert(m.sum[b] == sum[b] && m.weight[b] == weight[b]);
    weft_meter full = { .edges = 99 };
    for (int i = 0; i < WEFT_BUCKETS - 1; i++)
        full.edge[i] = i;
    weft_meter_add_bucket(&full, 1 << 30, 3, 1);
    cr_assert_eq(full.sum[WEFT_BUCKETS - 1], 3);
}
