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
    int32_t carry;           /* the segment of the batch before, counted from its first, whose
                              * last state is the first state here; -1: zeros */
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
    int64_t sequences;       /* number of lengths that were given */
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
/* Each planner takes the options that its record names; 0 or NULL: not given, or the default in
 * brackets. `fits` are next_fit to worst_fit_decreasing; `rows` are those, spfhp to
 * column_generation, chunk and best_fit_split. All but random, fold and balance take shuffle. */
typedef struct {
    /* field                    planners: meaning */
    int64_t count;           /* order sorted random pool laplace optimal_buckets: sequences */
    int64_t tokens;          /* order pool: real tokens of a batch, one sequence at least */
    int64_t pool;            /* pool laplace: batches of a pool [50] */
    int64_t budget;          /* tokens geometric powers: cells of a padded batch */
    int64_t multiple;        /* tokens: the number of sequences of a batch is a multiple [1] */
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
    int64_t slots;           /* refill streams: active rows */
    int64_t window;          /* streams: steps between two batches */
    bool longest_first;      /* refill: in descending order */
    int64_t ranks;           /* balance: number of ranks */
    weft_balance method;     /* balance */
    int64_t rows;            /* rows: rows of a batch [all] */
    int64_t open;            /* first_fit best_fit worst_fit: open rows [any] */
    int64_t lookahead;       /* sorted tokens refill fits: sequences that a sort sees [all] */
    bool shuffle;            /* draws an order for each seed and epoch [no] */
    uint64_t seed;           /* all */
    int64_t epoch;           /* all */
    weft_stream *stream;     /* all: to draw from instead of seed and epoch */
} weft_plan_opts;

/* ---- the divisor of a loss ---- */
/* Divisor of a batch's loss, which is a sum over its tokens. BATCH: tokens of the batch, so tokens
 * of a small batch weigh more. PLAN: tokens of the plan / batches, so all tokens weigh the same.
 * SEQUENCES: each token by the length of its sequence, and the sum by sequences / batches, so all
 * sequences weigh the same. weft_plan_loss divides so, weft_plan_weigh measures it. */
typedef enum { WEFT_MEAN_OF_BATCH, WEFT_MEAN_OF_PLAN, WEFT_MEAN_OF_SEQUENCES } weft_plan_mean;

/* ---- planners ---- */
/* Promises, which the check verifies for each plan. */
enum {
    WEFT_PLAN_WHOLE = 1,                         /* no sequence is cut */
    WEFT_PLAN_IN_ORDER = 2,                      /* sequences are in order, unless shuffled */
    WEFT_PLAN_CARRIES = 4                        /* a piece after a cut carries the state on */
};
/* A static record. `plan` plans n sequences of these lengths, each 0 or more, into an empty plan by
 * weft_plan_add and weft_plan_end_batch. It returns WEFT_OK, or at the first failure the status of
 * these or of weft_plan_refuse. */
typedef struct weft_planner {
    const char *name;                            /* as in weft_planner_named; required */
    const char *source;                          /* paper or program */
    const char *about;                           /* one line */
    const char *options;                         /* names, with blanks between; NULL: takes all */
    unsigned promises;                           /* WEFT_PLAN_WHOLE | .., or 0 */
    weft_status (*plan)(const int32_t *len, int64_t n, const weft_plan_opts *opts, weft_plan *out);
} weft_planner;
/* Returns the number of the library's planners. */
WEFT_API int weft_planner_count(void);
/* Returns planner i, a static record; NULL if i is out of range. */
WEFT_API const weft_planner *weft_planner_at(int i);
/* Returns the planner of that name, a static record. NULL if it is unknown; weft_plan_message then
 * names the most similar one. Like BatchSampler, bucket_by_sequence_length or batch_by_size. */
WEFT_API const weft_planner *weft_planner_named(const char *name);

/* ---- making a plan ---- */
/* Plans n sequences of the lengths len [n], each 0 or more, and checks the plan. opts NULL: all
 * defaults. A planner whose record has no options (NULL) takes all. *out is overwritten, not freed.
 * After an error it is empty, and weft_plan_message names the option, sequence, segment or row.
 * Errors: a bad length or option, an option that the planner does not take. Like pack_dataset of
 * TRL. */
WEFT_API weft_status weft_plan_make(const weft_planner *planner, const int32_t *len, int64_t n,
                                    const weft_plan_opts *opts, weft_plan *out) WEFT_MUST_USE;
/* Splits a plan by its rows for the shards of weft_parallel_begin_plan: overwrites out [shards],
 * which the program frees one by one. Shard k gets the rows r with k = r * shards / rows, rounded
 * down, where rows is that of the batch with most rows. So a row and the states that it carries
 * stay in one shard. All parts have the number of batches of the plan, some perhaps without a
 * segment; tokens of other shards count as dropped. Errors, and all parts are empty: plan is itself
 * a part; a state is carried from a row of one shard to a row of another (WEFT_EARG; the message
 * names batch, rows and shards). */
WEFT_API weft_status weft_plan_split(const weft_plan *plan, int shards,
                                     weft_plan *out) WEFT_MUST_USE;
/* Checks a plan of the lengths len [n]: each token is in it once or counts as dropped, no row is
 * beyond its batch, no two segments share a cell, each carry names the piece that ends where its
 * own begins, counts are those of the lengths, and the promises (WEFT_PLAN_WHOLE | ..) hold.
 * Errors: WEFT_EFORMAT if one of these fails. */
WEFT_API weft_status weft_plan_check(const weft_plan *plan, const int32_t *len, int64_t n,
                                     unsigned promises) WEFT_MUST_USE;
/* Returns the text of the last failure of a function on plans in this thread; "" before the first.
 * Valid until the next failure in the thread; a success does not change it. Never NULL. */
WEFT_API const char *weft_plan_message(void);
/* Reads "name:key=value,key=value" as a planner of the library and its options; a list has /
 * between its numbers, a flag is yes or no. The lists of opts point into *memory, which the program
 * frees by free after their use; it may be NULL. After an error planner and memory are NULL and
 * opts is zeros. */
WEFT_API weft_status weft_plan_parse(const char *text, const weft_planner **planner,
                                     weft_plan_opts *opts, void **memory) WEFT_MUST_USE;
/* Reads "key=value,key=value" as options of any planner, as weft_plan_parse does. text NULL: no
 * options. */
WEFT_API weft_status weft_plan_parse_options(const weft_planner *planner, const char *text,
                                             weft_plan_opts *opts, void **memory) WEFT_MUST_USE;
/* Places a batch in rows of that width by `first_fit`, in the user's order: fills row and column
 * [n], which the caller owns, and *rows, their number. Errors: a sequence longer than width. */
WEFT_API weft_status weft_first_fit(const weft_lengths *lengths, int64_t width, int32_t *row,
                                    int32_t *column, int64_t *rows) WEFT_MUST_USE;

/* ---- a planner of your own ---- */
/* Adds a copy of a segment, unchecked, to the batch that is being made. A planner whose batches are
 * rows of cells sets plan->in_rows. */
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
