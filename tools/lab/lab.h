/* lab.h - the contents of the laboratory's page: a corpus, its plans and the measurements. An unmeasured
 * value is NaN, NULL or 0. The page prints "-" for it, or a sentence that it is missing. */
#ifndef WEFT_TOOLS_LAB_H
#define WEFT_TOOLS_LAB_H
#include <jansson.h>
#include <math.h>
#include "tools/plan/verdict.h"

#define LAB_NONE ((double)NAN)                   /* not measured */

/* A learning run of one seed. All runs of a plan have points at the same tokens. */
typedef struct { double tokens, updates, seconds, loss; } lab_point;
typedef struct {
    int n;
    const lab_point *point;
} lab_curve;

/* *_ms: milliseconds of one pass; median, 10th and 90th percentile. bias: |mean gradient of the batches -
 * whole gradient| / |whole gradient|. noise: trace of the covariance / |whole gradient|^2. epochs: the number
 * over which `meetings` was counted; 0: not counted. */
typedef struct {
    const planned *made;
    double planner_ms, predicted_ms, median_ms, p10_ms, p90_ms, bias, noise;
    const char *no_curve;                       /* the reason for a missing curve, or NULL */
    int epochs, curves;
    weft_plan_meetings meetings;
    const lab_curve *curve;
} lab_plan;

/* Two layouts, or a planner and whole sequences: the numbers compared, and those that differ. */
typedef struct { const char *name; int64_t compared, differ; } lab_exact;
/* Contamination by a planner. changed: sequences changed, one at a time. Numbers of the others: compared,
 * different, and NaN when the changed sequence is NaN (spread). */
typedef struct { const char *name; int64_t changed, compared, differ, spread; } lab_contamination;
/* Rows of a planner for a hard instance, the lower bound, their ratio, the planner's guarantee (0: none). */
typedef struct {
    const char *instance, *planner;
    int64_t rows, bound;
    double ratio, guarantee;
} lab_adversary;
/* held_out: not used to fit the model. */
typedef struct { const char *name; double predicted_ms, measured_ms; bool held_out; } lab_cost;

typedef struct {
    const char *corpus;
    int64_t n;
    const int32_t *len;
    lab_plan *plan;
    int plans;
    /* device with its threads, and date may be NULL; they belong to measured times */
    const char *command, *device, *date;
    lab_exact *exact;
    lab_contamination *contamination;
    lab_adversary *adversary;
    lab_cost *cost;
    int exacts, contaminations, adversaries, costs;
    const char *stopped;                        /* why experiments may be missing; NULL: all ran */
    double target;                              /* bits a token that end the learning; 0: no target */
    const layer_cost *layer;                    /* costs that predicted the times; NULL: none */
    const verdict *verdict;                     /* set by write_page */
    const char *busy;                           /* how busy the machine was while times were taken, or NULL */
} lab;

/* report.c: begins a plan without measurements. For a planner of the library it counts the meetings over
 * `epochs`, at most 5. Returns false after a printed error. */
bool lab_begin_plan(lab_plan *, const planned *, const int32_t *len, int64_t n, int epochs);
/* page.c: writes one self-contained HTML file, atomically. Equal numbers give equal bytes. */
bool write_page(const char *path, const lab *);
/* paper.c: writes a report in Markdown, and its pictures next to it. record: facts of the method.
 * record_path: of the command that repeats the run, or NULL. */
bool write_paper(const char *path, const lab *, const json_t *record, const char *record_path);
#endif
