/* api_measures.h - measures of a plan: figures, weights of tokens, work, order, predicted time.
 *
 * Contents: figures, weights of tokens, work, order, predicted time. Status and message are those
 * of api_plan.h. After an error do not use *out. */
#ifndef WEFT_API_MEASURES_H
#define WEFT_API_MEASURES_H
#include "api_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- figures ---- */
typedef struct {
    int64_t batches;
    int64_t rows;              /* of all batches */
    int64_t segments;
    int64_t tokens;            /* in segments */
    int64_t cells;             /* rows times width, summed over batches */
    int64_t steps;             /* sum of widths */
    int64_t runs;              /* distinct lengths of rows above 0 in each batch, summed */
    int64_t empty;             /* sequences of length 0 that have no segment */
    int64_t dropped;           /* tokens that are in no segment */
    int64_t cuts;              /* segments that do not begin their sequence */
    int64_t l1;                /* lower bound of rows of that capacity: ceil(tokens / capacity) */
    int64_t l2;                /* the tighter bound L2 of Martello & Toth 1990; l1 if the plan cuts
                                * a sequence */
    double fill;               /* tokens / cells */
    double eta2;               /* variance of segment lengths between batches, as a share of their
                                * variance; 0 if all lengths are equal */
    double mean_live;          /* mean number of rows that have a token at a step */
    double segments_per_row;
} weft_plan_figures;
/* Computes the figures of a plan. len [n]: the lengths that were planned. capacity: cells of a row,
 * for l1 and l2; with 0 both are 0. Errors: WEFT_EARG for NULL, or a segment of a sequence that is
 * not below n; all figures are 0. */
WEFT_API weft_status weft_plan_measure(const weft_plan *plan, const int32_t *len, int64_t n,
                                       int64_t capacity, weft_plan_figures *out) WEFT_MUST_USE;

/* ---- weights of tokens ---- */
/* The weight of a token is its factor in the sum of a plan's gradients, one for each batch. Weights
 * are scaled so that their mean over all tokens is 1. */
enum { WEFT_WEIGHT_BINS = 40 };
typedef struct {
    double least;                                /* smallest weight of a token */
    double largest;                              /* largest weight of a token */
    double cv;                                   /* standard deviation over mean */
    /* Number of tokens by weight, two bins for each power of two: bin i has weights near
     * 2^((i - 20) / 2). The first and the last bin also count weights beyond them. */
    int64_t tokens[WEFT_WEIGHT_BINS];
} weft_token_weights;
/* Computes how much each token weighs in the gradients of a plan if its losses are divided by `by`.
 * All 0 for a plan without a token. */
WEFT_API weft_status weft_plan_weigh(const weft_plan *plan, weft_plan_mean by,
                                     weft_token_weights *out) WEFT_MUST_USE;

/* ---- work ---- */
/* Operations of a layer whose rows are all as wide as their batch (padded), and of one that works
 * on tokens only. */
typedef struct {
    int64_t padded_products;   /* products of a matrix and a cell's vector: one for each cell. A
                                * recurrent layer has two matrices, so twice as many */
    int64_t products;          /* the same for tokens */
    int64_t padded_sums;       /* additions that sum over each row: its width - 1 */
    int64_t sums;              /* additions that sum over each segment: its length - 1 */
    double padded_squares;     /* sum of the squared widths of rows: attention of all to all */
    double squares;            /* sum of the squared lengths of segments */
} weft_plan_work;
/* Counts the operations of all batches of a plan. Errors: WEFT_EARG for NULL or a wrong plan. */
WEFT_API weft_status weft_plan_count_work(const weft_plan *plan, weft_plan_work *out) WEFT_MUST_USE;
/* Counts the rows that have a token at each step of batch number `batch`: sizes [n], n the batch's
 * width. Like batch_sizes of PackedSequence. */
WEFT_API weft_status weft_plan_batch_sizes(const weft_plan *plan, int64_t batch, int64_t *sizes,
                                           int64_t n) WEFT_MUST_USE;
/* Counts the steps of the plan at which k rows have a token, into steps[k]; n is one more than the
 * most rows of a batch. */
WEFT_API weft_status weft_plan_live_rows(const weft_plan *plan, int64_t *steps,
                                         int64_t n) WEFT_MUST_USE;

/* ---- order ---- */
/* Computes the correlation of the mean segment length of a batch with that of the next batch: near
 * 1 where lengths change slowly, 0 without order, if all means are equal, or with fewer than two
 * batches. Batches without segments do not count. After an error *out is unchanged. */
WEFT_API weft_status weft_plan_autocorrelation(const weft_plan *plan, double *out) WEFT_MUST_USE;
typedef struct {
    double pairs;              /* pairs that meet, summed over the epochs */
    double again;              /* pairs that meet in both of two epochs, summed over all pairs of
                                * epochs; 0 for one epoch */
    double by_chance;          /* expected `again` if batches were drawn at random each epoch */
} weft_plan_meetings;
/* Counts the pairs of sequences that meet: both begin in the same batch. plans [epochs], 1 .. 1000,
 * one for each epoch, all of the same number of sequences. */
WEFT_API weft_status weft_plan_count_meetings(const weft_plan *plans, int epochs,
                                              weft_plan_meetings *out) WEFT_MUST_USE;

/* ---- predicted time ---- */
/* Measured costs of a layer on a device, forward and backward together. step_ms[i] is one step with
 * rows[i] live rows, ascending from 1; linear between two points, and beyond the last along the
 * line of the last two. */
enum { WEFT_COST_POINTS = 16 };
typedef struct {
    int points;                                  /* 2 .. WEFT_COST_POINTS */
    double rows[WEFT_COST_POINTS];
    double step_ms[WEFT_COST_POINTS];
    double token_ms;                             /* extra cost of a token, to gather it */
    double piece_ms;                             /* extra cost of a segment */
    double batch_ms;                             /* extra cost of a batch */
    /* Extra cost of a token in a batch that the caches do not hold; 0: none. A batch of up to
     * near_tokens has none of it and one of far_tokens all; between them it is linear in the
     * logarithm of the tokens. */
    double far_ms;
    double near_tokens;                          /* 1 or more, if far_ms is above 0 */
    double far_tokens;                           /* above near_tokens, if far_ms is above 0 */
    double error;                                /* relative error that 9 of 10 predictions do not
                                                  * exceed, for weft_plan_choose; 0: unknown */
} weft_plan_cost;
typedef struct {
    double ms;                                   /* the sum of the next four */
    double steps_ms;                             /* of the steps of the recurrence */
    double tokens_ms;                            /* of token_ms and far_ms */
    double pieces_ms;                            /* of piece_ms */
    double batches_ms;                           /* of batch_ms */
    double latency_ms;                           /* steps_ms if each step had one row */
} weft_plan_prediction;
/* Predicts the time of a plan. padded: every row is as wide as its batch, and pads cost as much as
 * tokens. Errors: rows that do not ascend, negative or NaN costs. */
WEFT_API weft_status weft_plan_predict(const weft_plan *plan, const weft_plan_cost *cost,
                                       bool padded, weft_plan_prediction *out) WEFT_MUST_USE;
/* How much a plan's gradients differ from those of sequences drawn at random. likeness, order and
 * cuts are limited to 0 .. 1; 0 means that they do not differ. */
typedef struct {
    double sum;                                  /* likeness + order + cuts */
    double likeness;                             /* (eta2 - c) / (1 - c), where c = (batches - 1) /
                                                  * (segments - 1) is eta2 by chance; 0 if c >= 1 */
    double order;                                /* |autocorrelation| */
    double cuts;                                 /* share of the tokens in pieces that do not begin
                                                  * their sequence; with a carried state half */
} weft_plan_disturbance;
/* Computes the disturbance of a plan of the lengths len [n]. */
WEFT_API weft_status weft_plan_disturb(const weft_plan *plan, const int32_t *len, int64_t n,
                                       weft_plan_disturbance *out) WEFT_MUST_USE;
/* Returns the index of one of n plans. Of those with ms[i] at most (1 + error) times the least ms,
 * the smallest disturbance[i] wins (.sum of weft_plan_disturb), then the smallest ms, then the
 * first. Returns -1 for n < 1, NULL, or a number that is negative or not finite. */
WEFT_API int weft_plan_choose(const double *ms, const double *disturbance, int n, double error);

#ifdef __cplusplus
}
#endif
#endif
