/* lab.h - what the page of the packing laboratory is drawn from: a corpus, plans of it, and what was
 * measured. What was not measured is NaN, NULL or 0; the page prints "-" for it, or says in a sentence that
 * it is missing. */
#ifndef WEFT_TOOLS_LAB_H
#define WEFT_TOOLS_LAB_H
#include <math.h>
#include "tools/plan/plan.h"

#define LAB_NONE ((double)NAN)                   /* a number that was not measured */

/* A learning run of one seed, point by point. Runs of a plan have their points at the same places. */
typedef struct { double tokens, updates, seconds, loss; } lab_point;
typedef struct { uint64_t seed; int n; const lab_point *point; } lab_curve;

/* ms in milliseconds for one pass: the median, and the 10th and 90th of 100. bias: |mean of a batch's
 * gradient - the whole gradient| over the latter; noise: the trace of the covariance over the square of the
 * latter. epochs: of which `meetings` were counted, 0: they were not. */
typedef struct {
    const planned *made;
    double planner_ms, predicted_ms, median_ms, p10_ms, p90_ms, bias, noise;
    const char *no_curve;                       /* why it has none; NULL: it has, or nothing was learnt */
    int epochs, curves;
    weft_plan_meetings meetings;
    const lab_curve *curve;
} lab_plan;

/* Two layouts, or a planner against whole sequences: how many numbers were compared, how many differ. */
typedef struct { const char *name; int64_t compared, differ; } lab_exact;
/* Of a planner: sequences that were changed one at a time; numbers of others that were compared, that differ,
 * and that became NaN where the changed one was NaN. */
typedef struct { const char *name; int64_t changed, compared, differ, spread; } lab_contamination;
/* rows of a planner for a hard instance, the bound on rows, their ratio, and what the planner guarantees, 0:
 * nothing. */
typedef struct {
    const char *instance, *planner;
    int64_t rows, bound;
    double ratio, guarantee;
} lab_adversary;
/* held_out: the model was not fitted to it. */
typedef struct { const char *name; double predicted_ms, measured_ms; bool held_out; } lab_cost;

typedef struct {
    const char *corpus;
    int64_t n;
    const int32_t *len;
    lab_plan *plan;
    int plans;
    /* seed, device with its threads, and date may be NULL; these two belong to measured times */
    const char *command, *version, *seed, *device, *date;
    lab_exact *exact;
    lab_contamination *contamination;
    lab_adversary *adversary;
    lab_cost *cost;
    int exacts, contaminations, adversaries, costs;
    const char *cost_words;                     /* the model in words, its coefficients; a paragraph a line */
    const char *stopped;                        /* why experiments may be missing; NULL: all were made */
    double target;                              /* bits a token that learning ended at; 0: it did not */
} lab;

/* report.c: a plan of which nothing is measured yet; who meets again over so many epochs, 5 at most, is
 * counted, if the planner is one of the library's. False: the error was said. */
bool lab_begin_plan(lab_plan *, const planned *, const int32_t *len, int64_t n, int epochs);
/* page.c: one self-contained file of HTML, whole or not at all; the same bytes for the same numbers. */
bool write_page(const char *path, const lab *);
#endif
