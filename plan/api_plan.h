/* api_plan.h - plans: which sequences, or pieces of them, meet in a batch, and where each lies in
 * it. Plain memory and no context: a plan is a function of lengths, options, seed and epoch.
 *
 * Contents: a plan, options, planners, making a plan, a planner of your own, figures, measures,
 * cost. */
#ifndef WEFT_API_PLAN_H
#define WEFT_API_PLAN_H
#include "../core/api_core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- a plan ---- */
/* A piece of a sequence in its batch. A whole sequence has offset 0; in batches that are not rows
 * of cells each piece is a row, from column 0 on. */
typedef struct {
    int64_t sequence;
    int64_t column;          /* where the piece begins in its row */
    int32_t offset;          /* its first token in the sequence */
    int32_t length;          /* its tokens */
    int32_t row;
    int32_t carry; /* the segment of the batch before, counted from that batch's first, whose
                              * last state is the first state here; -1: zeros */
} weft_segment;
/* Segments first .. first + n - 1 in `rows` rows of `width` cells. A batch takes width steps. */
typedef struct {
    int64_t first;
    int64_t n;
    int64_t rows;
    int64_t width;
} weft_plan_batch;
/* A plan, plain data. Zero-initialised it is empty. The program frees it by weft_plan_free. */
typedef struct {
    int64_t sequences;       /* that were planned for */
    int64_t tokens;          /* of all of them */
    int64_t not_empty;       /* sequences with a token */
    int64_t batches;
    int64_t segments;
    weft_plan_batch *batch;  /* [batches] */
    weft_segment *segment;   /* [segments], batch after batch */
    int64_t empty;           /* sequences of length 0 without a segment */
    int64_t dropped;         /* tokens that the planner says it has left out */
    bool in_rows;            /* batches are rows of cells; false: a row is one sequence or piece */
    int shard;               /* of weft_plan_split: its number plus 1; 0: a whole plan */
    int64_t room[3];         /* private */
} weft_plan;
WEFT_API void weft_plan_free(weft_plan *plan);

/* ---- options ---- */
/* How `balance` deals: by longest processing time, or by Karmarkar and Karp's differencing. */
typedef enum { WEFT_BALANCE_LPT, WEFT_BALANCE_KK } weft_balance;
/* Each planner takes those options that its record names; 0 or NULL: not given, or the default in
 * brackets. `fits` are next_fit to worst_fit_decreasing, `rows` those, spfhp to column_generation,
 * chunk and best_fit_split. All but random, fold and balance take shuffle. */
typedef struct {
    /* field                    planners: meaning */
    int64_t count;           /* order sorted random pool laplace optimal_buckets: sequences */
    int64_t tokens;          /* order pool: real tokens of a batch, one sequence at least */
    int64_t pool;            /* pool laplace: batches of a pool [50] */
    int64_t budget;          /* tokens geometric powers: cells of a padded batch */
    int64_t multiple;        /* tokens: of which a batch's sequences are a multiple [1] */
    bool keep_order;         /* tokens: do not sort; sort=no in a text */
    const int64_t *bounds;   /* buckets: [edges], ascending */
    const int64_t *sizes;    /* buckets: [edges + 1] sequences of a batch */
    int64_t edges;           /* buckets */
    double ratio;            /* geometric: of a bound to the one before, > 1 */
    int64_t least;           /* geometric: the first bound */
    int64_t k;               /* optimal_buckets: intervals */
    int64_t capacity;        /* rows: cells of a row */
    int64_t limit;           /* rows but chunk and column_generation: pieces of a row [any] */
    bool carry;              /* chunk: the state goes on over a cut */
    int64_t slots;           /* refill streams: rows at work */
    int64_t window;          /* streams: steps between two batches */
    bool longest_first;      /* refill: in descending order */
    int64_t ranks;           /* balance: over how many */
    weft_balance method;     /* balance */
    int64_t rows;            /* rows: rows of a batch [all] */
    int64_t open;            /* first_fit best_fit worst_fit: rows that are open [any] */
    int64_t lookahead;       /* sorted tokens refill fits: sequences that a sort sees [all] */
    bool shuffle;            /* draws an order for each seed and epoch [no] */
    uint64_t seed;           /* all */
    int64_t epoch;           /* all */
    weft_stream *stream;     /* all: to draw from instead of seed and epoch */
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
/* Return the number of the library's planners, the i-th one, and the one of that name. NULL if
 * there is none; after weft_planner_named, weft_plan_message then names the nearest one. */
WEFT_API int weft_planner_count(void);
WEFT_API const weft_planner *weft_planner_at(int i);
WEFT_API const weft_planner *weft_planner_named(const char *name);

/* ---- making a plan ---- */
/* Plans these lengths [n] and checks the plan. opts NULL: all defaults. After an error *out is
 * empty, and weft_plan_message says which option, sequence, segment or row was wrong. Errors: an
 * option that is set but that the planner does not take. A planner whose record has no options
 * (NULL) takes all. */
WEFT_API weft_status weft_plan_make(const weft_planner *planner, const int32_t *len, int64_t n,
                                    const weft_plan_opts *opts, weft_plan *out) WEFT_MUST_USE;
/* A plan's rows for the shards of weft_parallel_begin_plan: fills out [shards], each to be freed.
 * Shard k has those rows r, counted anew, of which r * shards / rows, rounded down, is k; rows is
 * the most of a batch. So a row and the states that it carries on stay in one shard. All have as
 * many batches as the plan, some of them maybe without a segment; tokens of other shards count as
 * dropped. WEFT_EARG, and all are empty: a state is carried from a row of one shard to a row of
 * another; the message names batch, rows and shards. */
WEFT_API weft_status weft_plan_split(const weft_plan *plan, int shards,
                                     weft_plan *out) WEFT_MUST_USE;
/* The check alone: each token once or counted as dropped, no row beyond its batch, no two segments
 * in one cell, carries that meet, the promises, and counts that are those of the lengths.
 * WEFT_EFORMAT if it fails. */
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
 * least number of rows of that capacity, ceil(tokens / capacity), and Martello & Toth's 1990 bound,
 * which is of whole sequences and l1 where one is cut; 0 without a capacity. */
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
 * / batches, so all these weigh the same. weft_plan_loss of api_plan_run.h divides so. */
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
/* What a layer costs on a device, forwards and backwards, as measured: step_ms[i] one step of
 * rows[i] live rows, ascending from 1 on; between two points along a straight line, beyond the last
 * along that of the last two. token_ms: a token besides, as it is gathered; piece_ms, batch_ms: a
 * piece of a sequence, a batch. far_ms: a token besides in batches of far_tokens and more, which
 * the caches do not hold; nothing up to near_tokens, between them along the logarithm; far_ms 0:
 * never. error: nine of ten predictions are nearer than this share; 0: not known. */
enum { WEFT_COST_POINTS = 16 };
typedef struct {
    int points;                                  /* 2 .. WEFT_COST_POINTS */
    double rows[WEFT_COST_POINTS], step_ms[WEFT_COST_POINTS];
    double token_ms, piece_ms, batch_ms, far_ms, near_tokens, far_tokens, error;
} weft_plan_cost;
/* ms is the sum of steps_ms, tokens_ms, pieces_ms and batches_ms. latency_ms: of steps_ms what the
 * steps would take with one row each; where that is most of ms, time follows steps, else tokens. */
typedef struct {
    double ms, steps_ms, tokens_ms, pieces_ms, batches_ms, latency_ms;
} weft_plan_prediction;
/* padded: every row of a batch is as wide as the batch, and pads cost what tokens do. */
WEFT_API weft_status weft_plan_predict(const weft_plan *plan, const weft_plan_cost *cost,
                                       bool padded, weft_plan_prediction *out) WEFT_MUST_USE;
/* How much a plan's gradients differ from those of sequences drawn at random, 0: not; the sum of
 * three shares in 0 .. 1. likeness: eta2 beyond what chance would give, (eta2 - c) / (1 - c) with
 * c = (batches - 1) / (segments - 1). order: the autocorrelation's amount. cuts: of the tokens,
 * those in a piece that begins without its state, and half of those in one that is carried. */
typedef struct { double sum, likeness, order, cuts; } weft_plan_disturbance;
WEFT_API weft_status weft_plan_disturb(const weft_plan *plan, const int32_t *len, int64_t n,
                                       weft_plan_disturbance *out) WEFT_MUST_USE;
/* Of n plans the one that disturbs least among those whose ms is at most (1 + error) times the
 * least, of equals the fastest, then the first; -1: a number is no number, or n < 1. */
WEFT_API int weft_plan_choose(const double *ms, const double *disturbance, int n, double error);

#ifdef __cplusplus
}
#endif
#endif
