/* api_measures.h - measures of a plan: figures, weights of tokens, work, order, predicted time.
 *
 * Contents: figures, weights of tokens, work, order, predicted time. Status and message are those
 * of api_plan.h; a NULL argument is WEFT_EARG. After an error *out is undefined, unless the
 * function's comment gives its value. */
#ifndef WEFT_API_MEASURES_H
#define WEFT_API_MEASURES_H
#include "api_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- figures ---- */
typedef struct {
    int64_t batches;
    int64_t rows;              /* number of rows of all batches */
    int64_t segments;
    int64_t tokens;            /* sum of the lengths of segments */
    int64_t cells;             /* rows times width, summed over batches */
    int64_t steps;             /* sum of the widths of batches */
    int64_t runs;              /* for each batch the number of different row lengths above 0,
                                * summed. A row ends with its last token; gaps count */
    int64_t empty;             /* sequences of length 0 that have no segment */
    int64_t dropped;           /* tokens that are in no segment */
    int64_t cuts;              /* segments that do not begin their sequence */
    int64_t l1;                /* lower bound of the number of rows: ceil(cells / capacity), for
                                * segments rounded up to plan->align */
    int64_t l2;                /* tighter bound L2 of Martello & Toth 1990; l1 if the plan cuts a
                                * sequence */
    double fill;               /* tokens / cells; 0 without cells */
    double eta2;               /* share of the variance of segment lengths that is between batches,
                                * 0 .. 1; 0 if all lengths are equal */
    double mean_live;          /* mean number of rows that have a token at a step; tokens / steps */
    double segments_per_row;   /* mean number of segments of a row */
    double imbalance;          /* tokens if each row had those of the fullest of its batch / tokens:
                                * largest / mean for one batch; 1: balanced, 0: no token */
    double imbalance_squares;  /* the same for the sum of a row's squared segment lengths, the cost
                                * of attention */
} weft_plan_figures;
/* Computes the figures of a plan. len [n]: the lengths that were planned. capacity: cells of a row,
 * for l1 and l2; with 0 both are 0. Errors: WEFT_EARG for NULL; WEFT_EFORMAT for a segment of a
 * sequence that is not below n. After any error all figures are 0. */
WEFT_API weft_status weft_plan_measure(const weft_plan *plan, const int32_t *len, int64_t n,
                                       int64_t capacity, weft_plan_figures *out) WEFT_MUST_USE;

/* ---- weights of tokens ---- */
/* The gradient of a plan is the sum of the gradients of its batches. The weight of a token is the
 * factor of the token's loss in this sum, scaled so that the mean over all tokens is 1. */
enum { WEFT_WEIGHT_BINS = 40 };
typedef struct {
    double least;                                /* smallest weight of a token */
    double largest;                              /* largest weight of a token */
    double cv;                                   /* standard deviation over mean */
    /* Number of tokens by weight, two bins for each power of two: bin i has weights near
     * 2^((i - 20) / 2). The first and the last bin also count weights beyond them. */
    int64_t tokens[WEFT_WEIGHT_BINS];
} weft_token_weights;
/* Computes how much each token weighs in the gradient of a plan if the loss of each batch is
 * divided by `by`. All 0 for a plan without a token. */
WEFT_API weft_status weft_plan_weigh(const weft_plan *plan, weft_plan_mean by,
                                     weft_token_weights *out) WEFT_MUST_USE;

/* ---- work ---- */
/* Numbers of operations in all batches. padded_..: of a layer that computes all cells of a batch.
 * The others: of a layer that computes tokens only. */
typedef struct {
    int64_t padded_products;   /* products of one matrix and a vector, one for each cell. For a
                                * recurrent layer, which has two matrices, multiply by 2 */
    int64_t products;          /* the same products, one for each token */
    int64_t padded_sums;       /* additions that sum over each row: its width - 1 */
    int64_t sums;              /* additions that sum over each segment: its length - 1 */
    double padded_squares;     /* sum of the squared widths of rows: attention of all to all */
    double squares;            /* sum of the squared lengths of segments */
} weft_plan_work;
/* Counts the operations of a plan. Errors: WEFT_EARG for NULL, WEFT_EFORMAT for a bad plan. */
WEFT_API weft_status weft_plan_count_work(const weft_plan *plan, weft_plan_work *out) WEFT_MUST_USE;
/* Sets sizes[t] to the number of rows of batch number `batch` that have a token at step t, t = 0 ..
 * n - 1. Errors: no such batch; n is not the width of the batch. Like batch_sizes of
 * PackedSequence. */
WEFT_API weft_status weft_plan_batch_sizes(const weft_plan *plan, int64_t batch, int64_t *sizes,
                                           int64_t n) WEFT_MUST_USE;
/* Counts the steps of all batches at which exactly k rows have a token, into steps[k], k = 0 .. n -
 * 1. Errors: n is not one more than the most rows of a batch. */
WEFT_API weft_status weft_plan_live_rows(const weft_plan *plan, int64_t *steps,
                                         int64_t n) WEFT_MUST_USE;

/* ---- order ---- */
/* Computes the correlation of a batch's mean segment length with that of the next batch. Near 1:
 * lengths change slowly. 0: no order, all means are equal, or fewer than two batches. Batches
 * without segments do not count. After an error *out is unchanged. */
WEFT_API weft_status weft_plan_autocorrelation(const weft_plan *plan, double *out) WEFT_MUST_USE;
typedef struct {
    double pairs;              /* pairs of sequences that meet, summed over the epochs */
    double again;              /* pairs of sequences that meet in epoch a and in epoch b, summed
                                * over all a < b; 0 for one epoch */
    double by_chance;          /* expected `again` if batches were drawn at random each epoch */
} weft_plan_meetings;
/* Counts the pairs of sequences that meet: both begin in the same batch. plans [epochs], 1 .. 1000,
 * has a plan of the same sequences for each epoch. Errors: other numbers of sequences. */
WEFT_API weft_status weft_plan_count_meetings(const weft_plan *plans, int epochs,
                                              weft_plan_meetings *out) WEFT_MUST_USE;

/* ---- predicted time ---- */
/* Measured costs of a layer on a device, forward and backward together, in milliseconds. A live row
 * is one that has a token at a step. step_ms[i] is the time of one step with rows[i] live rows.
 * rows[0] is 1, or less but above 0; each later number is larger. The time is linear between two
 * points, and beyond the last continues the line of the last two. */
enum { WEFT_COST_POINTS = 16 };
typedef struct {
    int points;                                  /* 2 .. WEFT_COST_POINTS; 0: steps cost nothing;
                                                  * pair_ms is then above 0 */
    double rows[WEFT_COST_POINTS];
    double step_ms[WEFT_COST_POINTS];
    double token_ms;                             /* extra cost of a token, to gather it */
    double piece_ms;                             /* extra cost of a segment */
    double batch_ms;                             /* extra cost of a batch */
    double start_ms[WEFT_COST_POINTS];           /* further cost of a batch of rows[i] rows; linear
                                                  * between points, constant beyond them */
    /* Extra cost of a token in a batch that the caches do not hold; 0: none. The cost is 0 up to
     * near_tokens in a batch, and full from far_tokens on. Between them it is linear in the
     * logarithm of the batch's tokens. */
    double far_ms;
    double near_tokens;                          /* 1 or more, if far_ms is above 0 */
    double far_tokens;                           /* above near_tokens, if far_ms is above 0 */
    double error;                                /* relative error, .1 is 10 %, that 9 of 10
                                                  * predictions do not exceed; 0: unknown */
    double pair_ms;                              /* extra cost of a pair of tokens of one segment:
                                                  * n tokens have n^2; 0: no attention */
} weft_plan_cost;
typedef struct {
    double ms;                                   /* the sum of the next four, and of pairs_ms */
    double steps_ms;                             /* of the steps of the recurrence */
    double tokens_ms;                            /* of token_ms and far_ms */
    double pieces_ms;                            /* of piece_ms */
    double batches_ms;                           /* of batch_ms and start_ms */
    double latency_ms;                           /* steps_ms if each step had one row */
    double pairs_ms;                             /* of the pairs of tokens in attention */
} weft_plan_prediction;
/* Predicts the time of a plan in milliseconds. padded false: a row costs time at a step only if it
 * has a token there, and only tokens cost token_ms. padded true: all rows of the batch cost time at
 * each step, and pads cost as much as tokens; a row's pairs are those of its cells. Errors:
 * cost->rows[0] is above 1, or rows do not ascend; a step_ms is not above 0; another cost is
 * negative or not finite. After any error *out is all 0. */
WEFT_API weft_status weft_plan_predict(const weft_plan *plan, const weft_plan_cost *cost,
                                       bool padded, weft_plan_prediction *out) WEFT_MUST_USE;
/* How much a plan's gradients differ from those of sequences drawn at random. likeness, order and
 * cuts are each 0 .. 1; 0: no difference. The first two count what exceeds the limit L of chance,
 * two standard deviations from the mean of random orders: (x - L) / (1 - L). */
typedef struct {
    double sum;                                  /* likeness + order + cuts */
    double likeness;                             /* of x = eta2 between batches */
    double order;                                /* of x = |autocorrelation - its mean| (Moran
                                                  * 1948); 0 for fewer than 3 batches */
    double cuts;                                 /* share of the tokens in pieces that do not begin
                                                  * their sequence, half if the state is carried */
} weft_plan_disturbance;
/* Computes the disturbance of a plan of the lengths len [n]. On error *out is all 0. */
WEFT_API weft_status weft_plan_disturb(const weft_plan *plan, const int32_t *len, int64_t n,
                                       weft_plan_disturbance *out) WEFT_MUST_USE;
/* Returns the index of the best of n plans, by ms [n] and disturbance [n] (.sum of
 * weft_plan_disturb). error: see weft_plan_cost. A plan competes if its ms[i] is at most (1 +
 * error) times the least ms. The smallest disturbance wins, then the smallest ms, then the first.
 * Returns -1 for n < 1, NULL, or a number that is negative or not finite. */
WEFT_API int weft_plan_choose(const double *ms, const double *disturbance, int n, double error);

#ifdef __cplusplus
}
#endif
#endif
