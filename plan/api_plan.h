/* api_plan.h - plans: which sequences, or pieces of them, form a batch, and at which place each is.
 * Plain memory and no context: a plan is a function of lengths, options, seed and epoch.
 *
 * Contents: a plan, options, the divisor of a loss, planners, making a plan, a planner of your own.
 * A batch is a grid of rows and columns; each cell has a token or is padding. A piece is a run of
 * tokens of one sequence. All numbers count from 0.
 * Functions return WEFT_OK, WEFT_EARG (an argument, also NULL), WEFT_EFORMAT (a plan that breaks a
 * rule) or WEFT_ENOMEM; weft_plan_message then explains. They keep no pointer to an argument. */
#ifndef WEFT_API_PLAN_H
#define WEFT_API_PLAN_H
#include "../core/api_core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- a plan ---- */
/* A segment: a piece of a sequence in its batch. A whole sequence is one piece with offset 0. If
 * weft_plan.in_rows is false, each piece has a row of its own and column 0. */
typedef struct {
    int64_t sequence;        /* number of the sequence */
    int64_t column;          /* column of its first token */
    int32_t offset;          /* number of its first token in the sequence */
    int32_t length;          /* number of its tokens */
    int32_t row;             /* its row in the batch */
    int32_t carry;           /* segment of the batch before, counted from 0 there, whose last
                              * state this one starts with; -1, not 0: starts with zeros */
} weft_segment;
/* A batch, segments first .. first + n - 1 of the plan. A recurrent layer takes `width` steps. */
typedef struct {
    int64_t first;                   /* its first segment in weft_plan.segment */
    int64_t n;                       /* number of segments */
    int64_t rows;                    /* number of rows */
    int64_t width;                   /* cells of a row, pads included */
} weft_plan_batch;
/* A plan, plain data. Zero-initialised it is empty. The program frees it by weft_plan_free. */
typedef struct {
    int64_t sequences;       /* number of planned lengths */
    int64_t tokens;          /* sum of these lengths */
    int64_t not_empty;       /* number of sequences with a length above 0 */
    int64_t batches;
    int64_t segments;
    weft_plan_batch *batch;  /* [batches] */
    weft_segment *segment;   /* [segments], batch after batch */
    int64_t empty;           /* number of sequences of length 0 that have no segment */
    int64_t dropped;         /* number of tokens in no segment; the planner counts them */
    bool in_rows;            /* batches are rows of cells; false: a row is one sequence or piece */
    int shard;               /* 0: a whole plan; otherwise part shard - 1 of weft_plan_split */
    int32_t align;           /* columns of segments and widths are multiples of it; 0: any */
    int64_t room[3];         /* private */
} weft_plan;
/* Frees the arrays of a plan and zeroes it. NULL is allowed. */
WEFT_API void weft_plan_free(weft_plan *plan);

/* ---- options ---- */
/* How the planner `balance` assigns sequences to ranks. LPT: the highest cost first, each to the
 * rank with the lowest cost. KK: Karmarkar and Karp's differencing. */
typedef enum { WEFT_BALANCE_LPT, WEFT_BALANCE_KK } weft_balance;
/* What happens to a sequence that is longer than a row. REFUSE: an error names it. SPLIT: it is cut
 * into full pieces and a rest. TRUNCATE: it keeps its first tokens. DROP: it gets no segment. Lost
 * tokens count as dropped. */
typedef enum {
    WEFT_LONGER_REFUSE, WEFT_LONGER_SPLIT, WEFT_LONGER_TRUNCATE, WEFT_LONGER_DROP
} weft_longer;
/* Options of planners. Each comment first names the planners that take the option; for others it is
 * an error (WEFT_EARG). PACKERS are that group in the table of weft_planner_named, with the
 * required options. 0 or NULL: not given; the default is in brackets. Limits of a batch are
 * maxima. */
typedef struct {
    int64_t count;   /* order pool sorted random laplace optimal_buckets: sequences of a batch */
    int64_t tokens;  /* order pool: tokens of a batch, no pads; a longer sequence is alone [any] */
    int64_t pool;            /* pool laplace: number of batches that are sorted together [50] */
    int64_t budget;          /* tokens geometric powers: most cells of a padded batch. tokens: a
                              * longer sequence is an error. Others: long pieces are alone */
    int64_t multiple;        /* tokens: a batch of `multiple` sequences or more, except the last,
                              * has a multiple of it [1] */
    bool keep_order;         /* tokens: does not sort by length [false] */
    const int64_t *bounds;   /* buckets: [edges] ascending; bounds[i - 1] <= length < bounds[i] */
    const int64_t *sizes;    /* buckets: [edges + 1] sequences in a batch of each bucket */
    int64_t edges;           /* buckets: number of bounds; with 0, bounds may be NULL */
    double ratio;            /* geometric: each bound is the one before times ratio, above 1 */
    int64_t least;           /* geometric: first bound */
    int64_t k;               /* optimal_buckets: number of buckets */
    int64_t capacity;        /* PACKERS: cells of a row */
    int64_t limit;           /* PACKERS, not chunk and column_generation: pieces of a row [any] */
    int64_t squares;         /* .._fit, .._fit_decreasing but modified, greedy_knapsack,
                              * best_fit_split: sum of the squared lengths of a row's pieces, the
                              * cost of attention. A row's gap is then the longest sequence that it
                              * still takes [any] */
    int64_t align;           /* PACKERS fold balance: pieces begin at multiples of it, and widths
                              * are multiples; lengths count rounded up. It divides capacity [1] */
    weft_longer longer;      /* PACKERS, not chunk and best_fit_split: what happens to a sequence
                              * longer than capacity or the root of squares [WEFT_LONGER_REFUSE] */
    int64_t extra;           /* greedy_knapsack: rows opened at the start beyond the fewest [0] */
    bool carry;              /* chunk: carries the state over a cut into the next batch [false] */
    int64_t slots;           /* refill streams: rows of a batch */
    int64_t window;          /* streams: width of a batch; a longer sequence carries its state on */
    bool longest_first;      /* refill: takes long sequences first [false: in order] */
    int64_t ranks;           /* balance: number of ranks */
    weft_balance method;     /* balance: how it assigns sequences to ranks [WEFT_BALANCE_LPT] */
    double per_square;       /* balance: a sequence of l tokens costs l + per_square * l * l [0] */
    const double *cost;      /* balance: measured cost of each sequence, 0 or more [its tokens] */
    int64_t rows;            /* PACKERS: rows of a batch [all rows in one batch] */
    int64_t open;            /* first_fit best_fit worst_fit: most rows that stay open [any] */
    int64_t lookahead;       /* sorted tokens refill .._decreasing but modified: sorts each block of
                              * this many sequences separately [all in one block] */
    bool shuffle;            /* all but random fold balance: shuffles the sequences before planning
                              * (not order), then the batches (order to powers in the table, not
                              * laplace), or the rows (PACKERS but chunk), each epoch [false] */
    uint64_t seed;           /* all: with epoch, determines the draws of shuffle and random */
    int64_t epoch;           /* all: see seed; without a draw neither has an effect */
    weft_stream *stream;     /* all: draws from it, not by seed and epoch [NULL: by these] */
} weft_plan_opts;

/* ---- the divisor of a loss ---- */
/* The number that divides a batch's loss, which is a sum over tokens. BATCH: loss.weight, the
 * tokens of this batch that a mask does not exclude; a token of a small batch weighs more. PLAN:
 * the plan's mean number of tokens of a batch; all tokens weigh the same. SEQUENCES: its mean
 * number of sequences of a batch; with weft_plan_weights as mask all sequences weigh the same. */
typedef enum { WEFT_MEAN_OF_BATCH, WEFT_MEAN_OF_PLAN, WEFT_MEAN_OF_SEQUENCES } weft_plan_mean;

/* ---- planners ---- */
/* Promises of a planner, which weft_plan_make verifies for each plan. */
enum {
    WEFT_PLAN_WHOLE = 1,                         /* no sequence is cut */
    WEFT_PLAN_IN_ORDER = 2,                      /* sequences ascend, unless opts.shuffle is set */
    WEFT_PLAN_CARRIES = 4                        /* a piece after a cut has a carried state */
};
/* A planner, of the library or the program. It must outlive loaders that use it. */
typedef struct weft_planner {
    const char *name;        /* as in weft_planner_named; required */
    const char *source;      /* paper or program */
    const char *about;       /* one line */
    const char *options;     /* names of those it takes, with blanks between; NULL: all */
    unsigned promises;       /* WEFT_PLAN_WHOLE | .., or 0 */
    /* Plans n sequences of the lengths len [n], each 0 or more, by weft_plan_add and
     * weft_plan_end_batch, which count segments and batches. The planner sets out->in_rows,
     * out->dropped and out->align if they are not 0, at any time. weft_plan_make has set sequences,
     * tokens and not_empty, and counts .empty afterwards; empty sequences need no segment. opts and
     * opts->stream are never NULL; options that the program left at 0 are 0. Returns WEFT_OK, or at
     * the first failure the status of these functions or of weft_plan_refuse. */
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
 *     geometric         budget, ratio, least  as buckets, bounds grow; budget / bound sequences
 *     optimal_buckets   k, count              as buckets, with the bounds of the least padding
 *     powers            budget                a length as a sum of powers of 2, largest first;
 *                                             one power a batch; each piece starts with zeros
 *     PACKERS           capacity              several sequences in each row:
 *         next_fit, first_fit, best_fit, worst_fit  in the last, lowest, fullest, emptiest row
 *         each of these four with _decreasing       the same, the longest first
 *         modified_first_fit_decreasing             long ones first get one or two partners
 *         greedy_knapsack                           longest first, emptiest of all rows needed
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
 * defaults. *out is overwritten, not freed; free it by weft_plan_free. After an error *out is
 * empty, and weft_plan_message names the option or segment. Errors: planner NULL; a bad length or
 * option; an option that is missing or that the planner does not take. Like pack_dataset of TRL. */
WEFT_API weft_status weft_plan_make(const weft_planner *planner, const int32_t *len, int64_t n,
                                    const weft_plan_opts *opts, weft_plan *out) WEFT_MUST_USE;
/* Splits a plan by its rows into one plan for each shard of a batch. shards is 1 or more.
 * Overwrites out [shards], which may be uninitialised; the program frees each part. Row r goes to
 * shard r * shards / R, rounded down; R is the largest number of rows of a batch. So row r of every
 * batch goes to the same shard. Each part has the plan's number of batches; some may be empty.
 * Tokens of other shards count as dropped. After an error all parts are empty. Errors,
 * WEFT_EARG: plan is itself a part; a row takes a state from a row of another shard. */
WEFT_API weft_status weft_plan_split(const weft_plan *plan, int shards,
                                     weft_plan *out) WEFT_MUST_USE;
/* Splits a plan into one plan for each rank of context parallelism. ranks is 1 or more. Each
 * segment becomes 2 * ranks chunks as equal as possible. Rank r gets the chunks r and 2 * ranks - 1
 * - r, so that all ranks have the same causal attention. Overwrites out [ranks], which may be
 * uninitialised; the program frees each part. All parts have the plan's batches and rows. If
 * plan->align is a multiple of 2 * ranks, chunks are equal parts of the length rounded up to align,
 * the last of them shorter or empty; columns and widths are the plan's, divided by ranks. Otherwise
 * the sizes of chunks differ by at most 1, columns follow each other, and the widths of all parts
 * are equal. Empty chunks have no segment. Tokens of other ranks count as dropped. After an error
 * all parts are empty. Errors, WEFT_EARG: plan is itself a part; it carries states. Like Megatron's
 * get_batch_on_this_cp_rank. */
WEFT_API weft_status weft_plan_split_context(const weft_plan *plan, int ranks,
                                             weft_plan *out) WEFT_MUST_USE;
/* Checks that a plan of the lengths len [n] keeps all rules. Each token is in one segment, or
 * counts as dropped. Rows are inside their batch, and no two segments share a cell. Columns and
 * widths are multiples of plan->align. A carry names the piece of the same sequence that ends
 * where the segment begins. Counts are those of the lengths. promises, WEFT_PLAN_WHOLE | .. or 0,
 * hold. Errors: WEFT_EFORMAT if a rule is broken. */
WEFT_API weft_status weft_plan_check(const weft_plan *plan, const int32_t *len, int64_t n,
                                     unsigned promises) WEFT_MUST_USE;
/* Returns the text of the last failure of a function on plans in this thread; "" before the first.
 * Valid until the next failure in the thread; a success does not change it. Never NULL. */
WEFT_API const char *weft_plan_message(void);
/* Reads "name:key=value,key=value" as a planner of the library and its options. Overwrites
 * *planner, *opts and *memory. A key is the name of a field of weft_plan_opts that the planner
 * takes, or seed or epoch. keep_order has the key sort instead, with the opposite value: sort=no
 * sets it. edges has no key: bounds sets it. stream and cost have none. A list has / between its
 * numbers, a flag is yes or no, method is lpt or kk, longer is refuse, split, truncate or drop. No
 * argument may be NULL. *memory holds the lists of *opts, or is NULL. The program calls
 * free(*memory) after the last use of *opts. After an error *planner and *memory are NULL and *opts
 * is zeros. */
WEFT_API weft_status weft_plan_parse(const char *text, const weft_planner **planner,
                                     weft_plan_opts *opts, void **memory) WEFT_MUST_USE;
/* Reads "key=value,key=value" as weft_plan_parse does, for a planner of the library or of the
 * program. text NULL: no options; no other argument may be NULL. Overwrites *opts and *memory.
 * *memory holds the lists of *opts, or is NULL. The program calls free(*memory) after the last use
 * of *opts. After an error *memory is NULL and *opts is zeros. */
WEFT_API weft_status weft_plan_parse_options(const weft_planner *planner, const char *text,
                                             weft_plan_opts *opts, void **memory) WEFT_MUST_USE;
/* Places the sequences of a batch in rows of `width` cells by `first_fit`, in the user's order.
 * Fills row [n], column [n] (see weft_placement) and *rows. Errors: NULL; a length above width. */
WEFT_API weft_status weft_first_fit(const weft_lengths *lengths, int64_t width, int32_t *row,
                                    int32_t *column, int64_t *rows) WEFT_MUST_USE;

/* ---- a planner of your own ---- */
/* Adds a copy of a segment to the unfinished batch; weft_plan_make checks it later. Set all fields.
 * row counts from 0 in each batch. Without plan->in_rows each segment has a row of its own. */
WEFT_API weft_status weft_plan_add(weft_plan *plan, weft_segment segment) WEFT_MUST_USE;
/* Ends the unfinished batch, the segments added since the last call, with `rows` rows of `width`
 * cells. Errors: rows or width below 0, rows above 2^31 - 1. */
WEFT_API weft_status weft_plan_end_batch(weft_plan *plan, int64_t rows,
                                         int64_t width) WEFT_MUST_USE;
/* Sets the text of weft_plan_message, as printf does, cut after 511 bytes, and returns status. */
WEFT_API weft_status weft_plan_refuse(weft_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#ifdef __cplusplus
}
#endif
#endif
