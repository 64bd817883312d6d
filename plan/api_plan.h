/* api_plan.h - plans: which sequences, or pieces of them, meet in a batch, and where each lies in
 * it. Plain memory and no context: a plan is a function of lengths, options, seed and epoch.
 *
 * Contents: a plan, options, planners, making a plan, a planner of your own, figures,
 * measures, cost. */
#ifndef WEFT_API_PLAN_H
#define WEFT_API_PLAN_H
#include "../core/api_core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- a plan ---- */
/* Tokens offset .. offset + length - 1 of a sequence, in this row of their batch from this column
 * on. Of a batch of whole sequences the row is its number in the batch, the column 0. carry: the
 * segment of the batch before, counted from its first, whose last state is the first state here;
 * -1: zeros. */
typedef struct {
    int64_t sequence, column;
    int32_t offset, length, row, carry;
} weft_segment;
/* Segments first .. first + n - 1 in `rows` rows of `width` cells; a batch takes width steps. */
typedef struct { int64_t first, n, rows, width; } weft_plan_batch;
/* Plain data, zero-initialised it is empty; the program's, freed by weft_plan_free. */
typedef struct {
    int64_t sequences, tokens, not_empty;        /* planned for; sequences that have a token */
    int64_t batches, segments;
    weft_plan_batch *batch;                      /* [batches] */
    weft_segment *segment;                       /* [segments], batch after batch */
    int64_t empty;                               /* sequences of length 0 without a segment */
    int64_t dropped;                             /* tokens that a planner says it has left out */
    bool in_rows;                           /* rows of cells; else a row is one sequence or piece */
    int64_t room[3];                             /* the library's */
} weft_plan;
WEFT_API void weft_plan_free(weft_plan *plan);

/* ---- options; 0 or NULL: not given, or the default in brackets ---- */
/* How `balance` deals: by longest processing time, or by Karmarkar and Karp's differencing. */
typedef enum { WEFT_BALANCE_LPT, WEFT_BALANCE_KK } weft_balance;
typedef struct {
    int64_t count;                               /* sequences of a batch */
    int64_t tokens;                              /* real tokens of a batch, one sequence at least */
    int64_t pool;                                /* batches of a pool [50] */
    int64_t budget, multiple;                    /* cells of a padded batch; of its sequences [1] */
    bool keep_order;                             /* tokens: do not sort */
    const int64_t *bounds, *sizes;               /* buckets: [edges], ascending; [edges + 1] */
    int64_t edges;
    double ratio;                                /* geometric: of a bound to the one before, > 1 */
    int64_t least, k;                            /* geometric: the first bound; intervals */
    int64_t capacity, limit;                     /* cells of a row; pieces of a row [any] */
    bool carry;                                  /* chunk: the state goes on over a cut */
    int64_t slots, window;                       /* rows at work; steps between two batches */
    bool longest_first;                          /* refill: in descending order */
    int64_t ranks;                               /* balance: over how many */
    weft_balance method;
    int64_t rows, open;                          /* rows of a batch [all]; that are open [any] */
    int64_t lookahead;                           /* sequences that a sort sees [all] */
    bool shuffle;                                /* else nothing is drawn, but by `random` */
    uint64_t seed;
    int64_t epoch;
    weft_stream *stream;                         /* to draw from instead of seed and epoch */
} weft_plan_opts;

/* ---- planners ---- */
/* What the check demands of each plan beyond what it demands of all. */
enum {
    WEFT_PLAN_WHOLE = 1,                         /* no sequence is cut */
    WEFT_PLAN_IN_ORDER = 2,                      /* sequences come in order, unless shuffled */
    WEFT_PLAN_CARRIES = 4                        /* what follows a cut carries the state on */
};
/* A static record: name, source, one line about it, the options that it takes by the names above,
 * promises, and the function. It plans n sequences of these lengths, each 0 or more, into an empty
 * plan by weft_plan_add and weft_plan_end_batch, and returns what these or weft_plan_refuse
 * return. */
typedef struct weft_planner {
    const char *name, *source, *about, *options;
    unsigned promises;
    weft_status (*plan)(const int32_t *len, int64_t n, const weft_plan_opts *opts, weft_plan *out);
} weft_planner;
/* The library's planners: how many, the i-th, that of a name; NULL if there is none. */
WEFT_API int weft_planner_count(void);
WEFT_API const weft_planner *weft_planner_at(int i);
WEFT_API const weft_planner *weft_planner_named(const char *name);

/* ---- making a plan ---- */
/* Plans these lengths [n]; always checked. After an error *out is empty and weft_plan_message says
 * which option, sequence, segment or row was wrong. */
WEFT_API weft_status weft_plan_make(const weft_planner *planner, const int32_t *len, int64_t n,
                                    const weft_plan_opts *opts, weft_plan *out) WEFT_MUST_USE;
/* The check alone: each token once or counted as dropped, no row beyond its batch, no two segments
 * in one cell, carries that meet, and the promises. WEFT_EFORMAT if it fails. */
WEFT_API weft_status weft_plan_check(const weft_plan *plan, const int32_t *len, int64_t n,
                                     unsigned promises) WEFT_MUST_USE;
/* What this thread's last function of plans that failed has said. */
WEFT_API const char *weft_plan_message(void);
/* "name:key=value,key=value" into a planner of the library and its options; lists with /, yes and
 * no. The lists of opts point into the memory that *memory returns, to be freed by free(). */
WEFT_API weft_status weft_plan_parse(const char *text, const weft_planner **planner,
                                     weft_plan_opts *opts, void **memory) WEFT_MUST_USE;
/* "key=value,key=value" alone, for any planner; NULL: no options. */
WEFT_API weft_status weft_plan_parse_options(const weft_planner *planner, const char *text,
                                             weft_plan_opts *opts, void **memory) WEFT_MUST_USE;
/* The rows of `first_fit` for a batch in the user's order, a placement of that width: fills row and
 * column [n], which the caller owns, and *rows. */
WEFT_API weft_status weft_first_fit(const weft_lengths *lengths, int64_t width, int32_t *row,
                                    int32_t *column, int64_t *rows) WEFT_MUST_USE;

/* ---- a planner of your own ---- */
/* One more segment of the batch that is being made; it ends with weft_plan_end_batch. in_rows of
 * the plan is to be set by a planner whose batches are rows of cells. */
WEFT_API weft_status weft_plan_add(weft_plan *plan, weft_segment segment) WEFT_MUST_USE;
WEFT_API weft_status weft_plan_end_batch(weft_plan *plan, int64_t rows,
                                         int64_t width) WEFT_MUST_USE;
/* Sets the message, as printf, and returns status. */
WEFT_API weft_status weft_plan_refuse(weft_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- figures: formulas of the plan alone ---- */
/* cells: rows times width. steps: the sum of widths. runs: of equal live counts, the sum over the
 * batches of distinct lengths above 0. eta2: between-batch over total sum of squares of the lengths
 * of segments, 0 if all are equal. cuts: segments that do not begin their sequence. l1, l2: the
 * least number of rows of that capacity, ceil(tokens / capacity), and Martello & Toth's 1990 bound;
 * 0 without a capacity. */
typedef struct {
    int64_t batches, rows, segments, tokens, cells, steps, runs, empty, dropped, cuts, l1, l2;
    double fill, eta2, mean_live, segments_per_row;
} weft_plan_figures;
/* capacity: 0 for plans without one. WEFT_ENOMEM: all 0. */
WEFT_API weft_status weft_plan_measure(const weft_plan *plan, const int32_t *len, int64_t n,
                                       int64_t capacity, weft_plan_figures *out) WEFT_MUST_USE;

/* ---- measures: what a plan does to gradients, work and order; formulas of it alone ---- */
/* What a batch's loss, a sum over its tokens, is divided by. BATCH: by its tokens, the mean of the
 * batch, in which tokens of a small batch weigh more. PLAN: by tokens of the plan / batches, so all
 * tokens weigh the same. SEQUENCES: each token by the length of its sequence, and all by sequences
 * / batches, so all these weigh the same. weft_plan_loss of api_rnn.h does it. */
typedef enum { WEFT_MEAN_OF_BATCH, WEFT_MEAN_OF_PLAN, WEFT_MEAN_OF_SEQUENCES } weft_plan_mean;
/* The weight of a token in the gradient of one pass over a plan, each batch an update, where the
 * mean of all is 1. */
enum { WEFT_WEIGHT_BINS = 40 };
/* cv: the standard deviation over the mean. tokens[i]: how many have a weight to which, of all
 * such powers, 2^((i - 20) / 2) is nearest on a logarithmic scale; the first and the last bin have
 * all beyond. All 0 without a token. */
typedef struct {
    double least, largest, cv;
    int64_t tokens[WEFT_WEIGHT_BINS];
} weft_token_weights;
WEFT_API weft_status weft_plan_weigh(const weft_plan *plan, weft_plan_mean by,
                                     weft_token_weights *out) WEFT_MUST_USE;
/* Operations of a layer whose rows are all as wide as their batch, and of one that works on tokens
 * alone. products: one a cell or a token; a recurrent layer multiplies by its two matrices for
 * each. sums: what adds up a row's or a piece's products, one fewer than there are. squares: of
 * widths, one a row, and of the pieces' lengths, for attention of all tokens to all. */
typedef struct {
    int64_t padded_products, products, padded_sums, sums;
    double padded_squares, squares;
} weft_plan_work;
WEFT_API weft_status weft_plan_count_work(const weft_plan *plan, weft_plan_work *out) WEFT_MUST_USE;
/* Rows that have a token at each step of a batch: sizes [n], n the batch's width. What PyTorch
 * calls batch_sizes, if rows are one sequence each. */
WEFT_API weft_status weft_plan_batch_sizes(const weft_plan *plan, int64_t batch, int64_t *sizes,
                                           int64_t n) WEFT_MUST_USE;
/* steps[k]: at how many steps of the plan k rows have a token; n is one more than the most rows of
 * a batch. They have k * steps[k] tokens. */
WEFT_API weft_status weft_plan_live_rows(const weft_plan *plan, int64_t *steps,
                                         int64_t n) WEFT_MUST_USE;
/* Of the mean length of a batch's segments, with the batch after it: about 1 where lengths rise or
 * fall slowly, 0 without order, and where all means are equal. Batches without segments are left
 * out. */
WEFT_API weft_status weft_plan_autocorrelation(const weft_plan *plan, double *out) WEFT_MUST_USE;
/* pairs: of sequences that begin in one batch, over all epochs. again: of two epochs, pairs that do
 * so in both, over all twos of epochs; exact. by_chance: what again would be on average if each
 * epoch's batches were of sequences drawn anew. */
typedef struct { double pairs, again, by_chance; } weft_plan_meetings;
/* plans [epochs], 1 .. 1000 of them, of the same sequences. */
WEFT_API weft_status weft_plan_count_meetings(const weft_plan *plans, int epochs,
                                              weft_plan_meetings *out) WEFT_MUST_USE;

/* ---- cost: milliseconds of a plan before it runs ---- */
/* What a layer's forward and backward pass cost on one device: rows[i], ms[i]: a step at which so
 * many rows have a token, ascending; between two of them a straight line, beyond the last the line
 * goes on, before the first it is as long as there. batch_ms[i]: a batch of so many rows, beside
 * its steps. blocks, 0 .. 1: how far the rows of a batch keep the price of all its rows where fewer
 * are live, because they are worked through block by block. long_tokens, long_share: each time that
 * a batch has twice as many tokens again its steps take this share longer, because memory is
 * farther away. token_ms: a token (of a padded batch a cell) brought to its layout and back.
 * segment_ms: each segment of a row but the first. error: nine of ten predictions are within this
 * share of what is measured then. `weft plan --explain` measures it, docs/cost.md has how well. */
enum { WEFT_COST_POINTS = 16 };
typedef struct {
    int points;                                  /* 1 .. WEFT_COST_POINTS */
    double rows[WEFT_COST_POINTS], ms[WEFT_COST_POINTS], batch_ms[WEFT_COST_POINTS];
    double blocks, long_tokens, long_share, token_ms, segment_ms, error;
} weft_plan_cost;
/* ms, the sum of six parts. row_ms: the tokens (padded: cells) if each cost what it costs in a step
 * of the table at which it is cheapest. step_ms: what steps cost above that, because fewer rows are
 * live. long_ms: what long batches add. cells: of steps, all of a padded batch, else tokens. */
typedef struct {
    double ms, step_ms, row_ms, long_ms, gather_ms, segment_ms, batch_ms;
    int64_t steps, cells, segments, batches;
} weft_plan_time;
/* padded: all rows of a batch are as wide as it is; else tokens alone are computed. */
WEFT_API weft_status weft_plan_predict(const weft_plan *plan, const weft_plan_cost *cost,
                                       bool padded, weft_plan_time *out) WEFT_MUST_USE;
/* Milliseconds of one step with so many live rows; 0 for none. NaN: no such table. */
WEFT_API double weft_plan_step_ms(const weft_plan_cost *cost, double rows);
/* Of the time in steps, which share is there whatever their rows: near 0 the device follows tokens,
 * near 1 steps. */
WEFT_API double weft_plan_steps_share(const weft_plan_time *time);
/* How far a plan's updates are from those of random batches, a sum of shares: of the lengths'
 * variance that batches explain beyond chance, of the mean lengths' variance that the batch before
 * explains, the variance of the weights of tokens where each loss is its batch's mean, and of
 * segments that begin within their sequence, half as much where the state is carried on. */
WEFT_API weft_status weft_plan_disturbance(const weft_plan *plan, double *out) WEFT_MUST_USE;
/* Of n predictions: among those within `error` of the fastest the one with the least disturbance,
 * and of those that are less than 0.05 above it the fastest. */
WEFT_API weft_status weft_plan_choose(const double *ms, const double *disturbance, int n,
                                      double error, int *chosen) WEFT_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
