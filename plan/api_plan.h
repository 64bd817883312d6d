/* api_plan.h - plans: which sequences, or pieces of them, form a batch, and at which place each is.
 * Plain memory and no context: a plan is a function of lengths, options, seed and epoch.
 *
 * Contents: a plan, options, the divisor of a loss, planners, making a plan, a planner of your own.
 * Functions return WEFT_OK, WEFT_EARG (an argument, also NULL), WEFT_EFORMAT (a plan that breaks a
 * rule) or WEFT_ENOMEM; weft_plan_message then explains. Arguments are read, not kept. */
#ifndef WEFT_API_PLAN_H
#define WEFT_API_PLAN_H
#include "../core/api_core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- a plan ---- */
/* A piece of a sequence in its batch. A whole sequence has offset 0. In batches that are not rows
 * of cells each piece is a row, from column 0 on. */
typedef struct {
    int64_t sequence;        /* its number, from 0 */
    int64_t column;          /* where the piece begins in its row */
    int32_t offset;          /* its first token in the sequence */
    int32_t length;          /* its tokens */
    int32_t row;             /* its row in the batch, from 0 */
    int32_t carry;           /* starts with the last state of this segment of the batch before,
                              * counted from 0 there; -1, not 0: starts with zeros */
} weft_segment;
/* Segments first .. first + n - 1 in `rows` rows of `width` cells. A batch takes width steps. */
typedef struct {
    int64_t first;                   /* its first segment in weft_plan.segment */
    int64_t n;                       /* number of segments */
    int64_t rows;                    /* number of rows */
    int64_t width;                   /* cells of a row */
} weft_plan_batch;
/* A plan, plain data. Zero-initialised it is empty. The program frees it by weft_plan_free. */
typedef struct {
    int64_t sequences;       /* number of planned lengths */
    int64_t tokens;          /* sum of these lengths */
    int64_t not_empty;       /* sequences with a token */
    int64_t batches;
    int64_t segments;
    weft_plan_batch *batch;  /* [batches] */
    weft_segment *segment;   /* [segments], batch after batch */
    int64_t empty;           /* sequences of length 0 that have no segment */
    int64_t dropped;         /* tokens that are in no segment; the planner counts them */
    bool in_rows;            /* batches are rows of cells; false: a row is one sequence or piece */
    int shard;               /* 0: a whole plan; otherwise part shard - 1 of weft_plan_split */
    int64_t room[3];         /* private */
} weft_plan;
/* Frees the arrays of a plan and zeroes it. NULL is allowed. */
WEFT_API void weft_plan_free(weft_plan *plan);

/* ---- options ---- */
/* How `balance` assigns sequences: by longest processing time, or by Karmarkar and Karp's
 * differencing. */
typedef enum { WEFT_BALANCE_LPT, WEFT_BALANCE_KK } weft_balance;
/* Options of planners. Each comment first names the planners that take the option; for others it
 * is an error. The table of weft_planner_named has the PACKERS and lists the required options. 0 or
 * NULL: not given; the default is in brackets. Limits of a batch are maxima. */
typedef struct {
    int64_t count;   /* order pool sorted random laplace optimal_buckets: sequences of a batch */
    int64_t tokens;  /* order pool: tokens of a batch, no pads; a longer sequence is alone [any] */
    int64_t pool;            /* pool laplace: number of batches that are sorted together [50] */
    int64_t budget;          /* tokens geometric powers: most cells of a padded batch */
    int64_t multiple;        /* tokens: batches have a multiple of this many sequences [1] */
    bool keep_order;         /* tokens: does not sort by length [sorts] */
    const int64_t *bounds;   /* buckets: [edges] ascending; bounds[i - 1] <= length < bounds[i] */
    const int64_t *sizes;    /* buckets: [edges + 1] sequences in a batch of each bucket */
    int64_t edges;           /* buckets: number of bounds; with 0, bounds may be NULL */
    double ratio;            /* geometric: each bound is the one before times ratio, above 1 */
    int64_t least;           /* geometric: first bound */
    int64_t k;               /* optimal_buckets: number of buckets */
    int64_t capacity;        /* PACKERS: cells of a row */
    int64_t limit;           /* PACKERS, not chunk and column_generation: pieces of a row [any] */
    bool carry;              /* chunk: carries the state over a cut into the next batch [no] */
    int64_t slots;           /* refill streams: rows of a batch */
    int64_t window;          /* streams: width of a batch, after which a state is carried on */
    bool longest_first;      /* refill: takes long sequences first [in order] */
    int64_t ranks;           /* balance: number of ranks */
    weft_balance method;     /* balance: how it assigns sequences to ranks [WEFT_BALANCE_LPT] */
    int64_t rows;            /* PACKERS: rows of a batch [all rows in one batch] */
    int64_t open;            /* first_fit best_fit worst_fit: most rows that still accept [any] */
    int64_t lookahead;       /* sorted tokens refill .._decreasing: sorts each block of this many
                              * sequences alone [all together] */
    bool shuffle;            /* all but random fold balance: draws a new order each epoch [no] */
    uint64_t seed;           /* all: with epoch, determines the draws of shuffle and random */
    int64_t epoch;           /* all: see seed; without a draw neither has an effect */
    weft_stream *stream;     /* all: draws from it instead of seed and epoch [NULL: from these] */
} weft_plan_opts;

/* ---- the divisor of a loss ---- */
/* Number that divides a batch's loss, a sum over its tokens. BATCH: the tokens of this batch, so
 * tokens of small batches weigh more. PLAN: the mean number of tokens of a batch, so all tokens
 * weigh the same. SEQUENCES: the mean number of sequences of a batch; each token of the sum is
 * divided by the length of its sequence before, so all sequences weigh the same. */
typedef enum { WEFT_MEAN_OF_BATCH, WEFT_MEAN_OF_PLAN, WEFT_MEAN_OF_SEQUENCES } weft_plan_mean;

/* ---- planners ---- */
/* Promises, which the check verifies for each plan. */
enum {
    WEFT_PLAN_WHOLE = 1,                         /* no sequence is cut */
    WEFT_PLAN_IN_ORDER = 2,                      /* sequences are in order, unless shuffled */
    WEFT_PLAN_CARRIES = 4                        /* a piece after a cut carries the state on */
};
/* A planner, a static record. */
typedef struct weft_planner {
    const char *name;        /* as in weft_planner_named; required */
    const char *source;      /* paper or program */
    const char *about;       /* one line */
    const char *options;     /* names, with blanks between; NULL: takes all */
    unsigned promises;       /* WEFT_PLAN_WHOLE | .., or 0 */
    /* Plans n sequences of the lengths len [n], each 0 or more, by weft_plan_add and
     * weft_plan_end_batch, which count segments and batches. It sets out->dropped and out->in_rows
     * if they are not 0; weft_plan_make has set the other counts. opts and opts->stream are never
     * NULL. Returns WEFT_OK, or at the first failure the status of these functions or of
     * weft_plan_refuse. */
    weft_status (*plan)(const int32_t *len, int64_t n, const weft_plan_opts *opts, weft_plan *out);
} weft_planner;
/* Returns the number of the library's planners. */
WEFT_API int weft_planner_count(void);
/* Returns planner i, a static record; NULL if i is out of range. */
WEFT_API const weft_planner *weft_planner_at(int i);
/* Returns the planner of that name, a static record. NULL if it is unknown; weft_plan_message then
 * names the most similar one.
 *     planner           required options      batches
 *     order             count or tokens       in the given order
 *     sorted, random    count                 the shortest first; in a drawn order
 *     pool              count or tokens       sorted within pools of batches
 *     laplace           count                 as pool, but every other pool descends
 *     tokens            budget                sorted, as long as the padded cells fit the budget
 *     buckets           sizes, bounds         similar lengths, between two bounds
 *     geometric         budget, ratio, least  as buckets, with bounds that grow by a ratio
 *     optimal_buckets   k, count              as buckets, with the bounds of the least padding
 *     powers            budget                pieces of 2^k tokens, without padding
 *     PACKERS           capacity              several sequences in each row:
 *         next_fit, first_fit, best_fit, worst_fit  in the last, lowest, fullest, emptiest row
 *         each of these four with _decreasing       the same, the longest first
 *         spfhp, spfhp_stacked, lpfhp, exact_fill, column_generation  by counts of equal lengths
 *         chunk                                     end to end, cut at the end of each row
 *         best_fit_split                            cut only if longer than a row
 *     refill            slots                 one batch, a free row takes the next sequence
 *     streams           slots, window         windows of rows, which carry their states on
 *     fold              none                  one batch in rows of the longest length
 *     balance           ranks                 one batch, for each rank a row of equal tokens
 * Like BatchSampler, bucket_by_sequence_length or batch_by_size. */
WEFT_API const weft_planner *weft_planner_named(const char *name);

/* ---- making a plan ---- */
/* Plans n sequences of the lengths len [n], each 0 or more, and checks the plan. opts NULL: all
 * defaults. *out is overwritten, not freed; the program frees it by weft_plan_free. After an error
 * it is empty, and weft_plan_message names the option, sequence, segment or row. Errors: a bad
 * length or option, a required option that is 0, an option that the planner does not take. Like
 * pack_dataset of TRL. */
WEFT_API weft_status weft_plan_make(const weft_planner *planner, const int32_t *len, int64_t n,
                                    const weft_plan_opts *opts, weft_plan *out) WEFT_MUST_USE;
/* Splits a plan by its rows into one plan for each shard of a batch. Overwrites out [shards], which
 * may be uninitialised; the program frees each part. Row r goes to shard r * shards / R, rounded
 * down, where R is the largest number of rows of a batch. So a row and the states that it carries
 * stay in one shard. Each part has the same number of batches as the plan, some perhaps empty.
 * Tokens of other shards count as dropped. After an error all parts are empty. Errors, WEFT_EARG:
 * plan is itself a part; a row carries a state from a row of another shard. */
WEFT_API weft_status weft_plan_split(const weft_plan *plan, int shards,
                                     weft_plan *out) WEFT_MUST_USE;
/* Checks that a plan of the lengths len [n] keeps all rules. Each token is in it once or counts as
 * dropped. Rows are inside their batch, and no two segments share a cell. Each carry names the
 * piece that ends where its own begins. Counts are those of the lengths. The promises hold:
 * WEFT_PLAN_WHOLE | ... Errors: WEFT_EFORMAT if one of these fails. */
WEFT_API weft_status weft_plan_check(const weft_plan *plan, const int32_t *len, int64_t n,
                                     unsigned promises) WEFT_MUST_USE;
/* Returns the text of the last failure of a function on plans in this thread; "" before the first.
 * Valid until the next failure in the thread; a success does not change it. Never NULL. */
WEFT_API const char *weft_plan_message(void);
/* Reads "name:key=value,key=value" as a planner of the library and its options. Overwrites *opts.
 * Keys are the fields of weft_plan_opts that the planner takes, and seed and epoch. sort=no sets
 * keep_order; edges and stream have no key. A list has / between its numbers, a flag is yes or no,
 * method is lpt or kk. No argument may be NULL. *memory holds the lists of opts, or is NULL; the
 * program frees it by free after their use. After an error *planner and *memory are NULL and *opts
 * is zeros. */
WEFT_API weft_status weft_plan_parse(const char *text, const weft_planner **planner,
                                     weft_plan_opts *opts, void **memory) WEFT_MUST_USE;
/* Reads "key=value,key=value" as weft_plan_parse does, for a planner of the library or of the
 * program. text NULL: no options; the other arguments may not be NULL. */
WEFT_API weft_status weft_plan_parse_options(const weft_planner *planner, const char *text,
                                             weft_plan_opts *opts, void **memory) WEFT_MUST_USE;
/* Places a batch in rows of that width by `first_fit`, in the user's order: fills row and column
 * [n], which the caller owns, and *rows, their number. Errors: a sequence longer than width. */
WEFT_API weft_status weft_first_fit(const weft_lengths *lengths, int64_t width, int32_t *row,
                                    int32_t *column, int64_t *rows) WEFT_MUST_USE;

/* ---- a planner of your own ---- */
/* Adds a copy of a segment, unchecked, to the batch that is being made. The planner sets all
 * fields. row counts from 0 in each batch; without plan->in_rows each segment has its own row. */
WEFT_API weft_status weft_plan_add(weft_plan *plan, weft_segment segment) WEFT_MUST_USE;
/* Ends the batch that is being made, of the segments since the last call, with `rows` rows of
 * `width` cells, both 0 or more. */
WEFT_API weft_status weft_plan_end_batch(weft_plan *plan, int64_t rows,
                                         int64_t width) WEFT_MUST_USE;
/* Sets the text of weft_plan_message, as printf does, cut after 511 bytes, and returns status. */
WEFT_API weft_status weft_plan_refuse(weft_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#ifdef __cplusplus
}
#endif
#endif
