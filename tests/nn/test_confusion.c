/* test_confusion.c - confusion matrices, precision, recall and F1, by hand. */
#include "tests/check.h"

enum { SEQUENCES = 5, TOKENS = 14, CLASSES = 4 };
static const int32_t len[SEQUENCES] = { 3, 0, 5, 2, 4 };
static const weft_lengths lengths = { .n = SEQUENCES, .len = len };

static weft_tensor *in_layout(weft_tensor *x, int layout)
{
    static const int32_t row[SEQUENCES] = { 0, 0, 1, 0, 2 }, column[SEQUENCES] = { 0, 3, 0, 3, 1 };
    static const weft_placement place = { 3, 6, row, column };
    return layout == 1 ? weft_to_layout(x, WEFT_PACKED) : layout == 2 ? x : weft_to_rows(x, &place);
}

static int best_of(const weft_real *x)
{
    int at = 0;
    for (int j = 1; j < CLASSES; j++)
        at = x[j] > x[at] ? j : at;
    return at;
}

typedef struct { weft_real scores[TOKENS * CLASSES], mask[TOKENS]; int32_t target[TOKENS]; } data;

static data data_of(int32_t ignore)              /* a masked token has nothing that may be looked at */
{
    data d;
    dice_fill(d.scores, TOKENS * CLASSES, -1, 1);
    for (int t = 0; t < TOKENS; t++) {
        d.target[t] = dice(5) ? (int32_t)dice(CLASSES) : ignore;
        d.mask[t] = (weft_real[]){ 0, 1, (weft_real).5 }[dice(3)];
        if (d.mask[t] == 0) {
            d.target[t] = 77;
            d.scores[t * CLASSES] = (weft_real)NAN;
        }
    }
    return d;
}

Test(confusion, matrix, .init = unchecked)
{
    FOR_DEVICES(w)
        for (int i = 0; i < 24; i++) {
            int layout = i % 4;
            int32_t ignore = i % 3 ? -100 : 2;
            data d = data_of(ignore);
            double want[CLASSES * CLASSES] = { 0 };
            for (int t = 0; t < TOKENS; t++)
                if (d.mask[t] != 0 && d.target[t] != ignore)
                    want[d.target[t] * CLASSES + best_of(d.scores + t * CLASSES)] += (double)d.mask[t];
            weft_tensor *x = weft_reals(w, d.scores, WEFT_SHAPE(2, TOKENS / 2, CLASSES)),
                        *y = weft_ints(w, d.target, WEFT_SHAPE(2, TOKENS / 2)),
                        *mask = weft_reals(w, d.mask, WEFT_SHAPE(2, TOKENS / 2));
            if (layout) {
                x = in_layout(weft_ragged(w, d.scores, CLASSES, &lengths), layout);
                y = in_layout(weft_ragged_ints(w, d.target, &lengths), 1 + i % 3);
                mask = weft_ragged(w, d.mask, 0, &lengths);
            }
            int64_t tape = weft_usage_of(w).tape;
            weft_tensor *m = weft_confusion_matrix(x, y, &(weft_ce_opts){ .mask = mask, .ignore = ignore });
            double got[CLASSES * CLASSES] = { 0 };
            weft_confusion_add(got, CLASSES, m);
            OK(w);
            cr_assert(!memcmp(got, want, sizeof got), "layout %d", layout);
            weft_confusion_add(got, CLASSES, m);
            for (int k = 0; k < CLASSES * CLASSES; k++)
                cr_assert_eq(got[k], 2 * want[k]);
            cr_assert_eq(weft_usage_of(w).tape, tape, "a metric is on the tape");
            weft_clear(w);
        }
}

Test(confusion, of_nothing)
{
    weft *w = open_on(WEFT_CPU);
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
    CLEAN(w);
}

Test(confusion, refusals)
{
    weft *w = open_on(WEFT_CPU);
    double got[9] = { 0 };
    weft_confusion_matrix(weft_zeros(w, WEFT_SHAPE(4, 3)), weft_ints(w, NULL, WEFT_SHAPE(5)), NULL);
    FAILS(w, WEFT_ESHAPE, "confusion_matrix: scores [4, 3], classes [5] of ints");
    weft_confusion_matrix(weft_zeros(w, WEFT_SHAPE(2, 3)), weft_ints(w, (int32_t[]){ 0, 3 }, WEFT_SHAPE(2)),
                          NULL);
    FAILS(w, WEFT_EARG, "row 1; 0 .. 2");
    weft_confusion_add(got, 3, weft_full(w, 1, WEFT_SHAPE(3, 2)));
    FAILS(w, WEFT_ESHAPE, "the matrix is [3, 2], counts are there; [3, 3]");
    weft_confusion_add(NULL, 3, weft_zeros(w, WEFT_SHAPE(3, 3)));
    FAILS(w, WEFT_ESHAPE, "counts is NULL");
    weft_confusion_add(got, 3, NULL);
    cr_assert(got[0] == 0);
    CLEAN(w);
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
Test(confusion, three_classes)
{
    static const double counts[] = { 1, 0, 1, 1, 1, 0, 1, 1, 0 };
    near(weft_class_scores_of(counts, 3, 0), 1. / 3, 1. / 2, .4, 2);
    near(weft_class_scores_of(counts, 3, 1), 1. / 2, 1. / 2, .5, 2);
    near(weft_class_scores_of(counts, 3, 2), 0, 0, 0, 2);
    near(weft_class_scores_of(counts, 3, WEFT_AVERAGE_MACRO), (1. / 3 + .5) / 3, 1. / 3, .3, 6);
    near(weft_class_scores_of(counts, 3, WEFT_AVERAGE_WEIGHTED), (1. / 3 + .5) / 3, 1. / 3, .3, 6);
    near(weft_class_scores_of(counts, 3, WEFT_AVERAGE_MICRO), 1. / 3, 1. / 3, 1. / 3, 6);
}

/* Class 1 is never true, but predicted twice; class 2 occurs nowhere; class 3 is true and never predicted. */
Test(confusion, classes_that_are_missing)
{
    static const double counts[] = { 4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0 };
    near(weft_class_scores_of(counts, 4, 0), 4. / 5, 4. / 5, 4. / 5, 5);
    near(weft_class_scores_of(counts, 4, 1), 0, 0, 0, 0);
    near(weft_class_scores_of(counts, 4, 2), 0, 0, 0, 0);
    near(weft_class_scores_of(counts, 4, 3), 0, 0, 0, 2);
    near(weft_class_scores_of(counts, 4, WEFT_AVERAGE_MACRO), .8 / 3, .8 / 3, .8 / 3, 7);
    near(weft_class_scores_of(counts, 4, WEFT_AVERAGE_WEIGHTED), 4. / 7, 4. / 7, 4. / 7, 7);
    near(weft_class_scores_of(counts, 4, WEFT_AVERAGE_MICRO), 4. / 7, 4. / 7, 4. / 7, 7);
    static const double nothing[4] = { 0 };
    for (int how = WEFT_AVERAGE_MACRO; how <= WEFT_AVERAGE_MICRO; how++)
        near(weft_class_scores_of(nothing, 2, how), 0, 0, 0, 0);
    near(weft_class_scores_of(counts, 4, WEFT_AVERAGE_MICRO + 1), 0, 0, 0, 0);
    near(weft_class_scores_of(counts, 4, 4), 0, 0, 0, 0);
    near(weft_class_scores_of(counts, 4, -1), 0, 0, 0, 0);
    near(weft_class_scores_of(NULL, 4, 0), 0, 0, 0, 0);
    near(weft_class_scores_of(NULL, 4, WEFT_AVERAGE_MICRO), 0, 0, 0, 0);
}
