/* plan.h - shared by the planners: memory, orders of sequences, building rows and batches, open rows,
 * checks. */
#ifndef WEFT_PLAN_PLAN_H
#define WEFT_PLAN_PLAN_H
#include "plan/api_measures.h"

/* ---- memory ---- */
/* Allocates n elements of that size, and one more. Returns NULL, with a message, if memory is short. The
 * memory lives until the open scope is closed; nothing else frees it. weft_plan_make opens a scope for each
 * planner. */
void *weft__plan_memory(int64_t n, size_t bytes);
/* Open a scope, and close it with all scopes that were opened after it. */
typedef struct weft__plan_scope weft__plan_scope;
weft__plan_scope *weft__plan_scope_open(void);
void weft__plan_scope_close(weft__plan_scope **);
/* Opens a scope until the end of the block. */
#define WEFT__PLAN_SCOPE \
    weft__plan_scope *scope __attribute__((cleanup(weft__plan_scope_close), unused)) = weft__plan_scope_open()

/* Makes *list, a pointer to an array of *room elements, hold `needed` of them; the array at least doubles.
 * Returns false, with a message, if memory is short. */
bool weft__plan_grow(void *list, int64_t *room, int64_t needed, size_t bytes);

/* ---- orders ---- */
/* Returns how many of n ascending numbers are at most `value`. */
int64_t weft__plan_count_up_to(const int64_t *number, int64_t n, int64_t value);
/* Compares two int64_t, for qsort. */
int weft__plan_by_number(const void *, const void *);
/* Returns 0 .. n - 1; NULL, with a message, if memory is short. */
int32_t *weft__plan_order(int64_t n);
/* Sorts an order by length, stable, in blocks of `lookahead` (0: one block). Returns false, with a message,
 * if memory is short. */
bool weft__plan_sort(const int32_t *len, int32_t *order, int64_t n, bool descending, int64_t lookahead);
/* Sorts in one block, with scratch [n]. */
void weft__plan_sort_in(const int32_t *len, int32_t *order, int64_t n, bool descending, int32_t *scratch);

/* Shuffles an order in place if the options shuffle. weft_plan_make provides the stream. */
void weft__plan_shuffle(const weft_plan_opts *, int32_t *order, int64_t n);
/* Returns 0 .. n - 1, shuffled if the options shuffle; NULL, with a message, if memory is short. Planners
 * begin with it, so each epoch has other rows and batches. A sort after it is stable, so sequences of equal
 * length keep the shuffled order. */
int32_t *weft__plan_random_order(const weft_plan_opts *, int64_t n);

/* Returns weft__plan_random_order sorted by length, stable, in blocks of the options' lookahead. */
int32_t *weft__plan_sorted(const weft_plan_opts *, const int32_t *len, int64_t n, bool descending);
/* Returns the first index in a descending order of a length of at most `length`; n: none. */
int64_t weft__plan_first_up_to(const int32_t *len, const int32_t *order, int64_t n, int64_t length);
/* Returns the root of x, rounded down; at most INT32_MAX. */
int64_t weft__plan_root(int64_t x);
/* Returns the longest of n lengths; 0 if n is 0. */
int32_t weft__plan_longest(const int32_t *len, int64_t n);

/* ---- building ---- */
/* Returns whether the counts fit the arrays. A planner of the program may have changed them. */
bool weft__plan_is_intact(const weft_plan *);
int64_t weft__plan_open(const weft_plan *);      /* segments of the unfinished batch */
weft_status weft__plan_add_whole(weft_plan *, const int32_t *len, int64_t sequence);
/* Ends a batch whose segments are one row each, as wide as the longest. */
weft_status weft__plan_end_whole(weft_plan *);
weft_status weft__plan_shuffle_batches(const weft_plan_opts *, weft_plan *);

/* Makes rows of that width, and batches of `rows` of them as the options say. order [n]: the sequences in the
 * order of their assignment. row [n]: the row of each, -1: no row. */
weft_status weft__plan_rows(weft_plan *, const int32_t *len, int64_t n, const int32_t *order,
                            const int32_t *row, int64_t rows, int64_t width, const weft_plan_opts *);

/* ---- open rows by their gaps ---- */
typedef struct weft__gaps weft__gaps;
/* Creates an index for rows 0 .. rows - 1 and gaps 0 .. capacity. Returns NULL, with a message, if memory is
 * short. */
weft__gaps *weft__gaps_new(int64_t rows, int64_t capacity);
bool weft__gaps_add(weft__gaps *, int64_t gap, int64_t row);  /* false, with a message, if memory is short */
/* Return the smallest gap of `least` or more, and the largest gap; -1: no such gap. */
int64_t weft__gaps_at_least(const weft__gaps *, int64_t least);
int64_t weft__gaps_max(const weft__gaps *);
/* Removes and returns the lowest row with that gap, which must exist. */
int64_t weft__gaps_take(weft__gaps *, int64_t gap);

/* ---- slots: the slot with the fewest tokens takes the next sequence (Graham 1969) ---- */
/* A heap whose first entry is the slot with the lowest load; ties go to the lowest slot. */
typedef struct weft__bin { int64_t load, slot; } weft__bin;
void weft__bins_begin(weft__bin *heap, int64_t n);
/* Adds tokens to that slot, and returns its number. */
int64_t weft__bins_add(weft__bin *heap, int64_t n, int64_t tokens);

/* ---- checks ---- */
/* The largest width of a batch, 2^48. It exceeds any data, and the sum of a few widths does not overflow. */
#define WEFT__PLAN_WIDTH ((int64_t)1 << 48)
/* Checks the properties that all formulas rely on. Arrays exist. Batches follow each other. Segments are
 * inside their batches and name sequences 0 .. sequences - 1. Sums fit an int64_t. function: the start of the
 * message, "plan_measure: ". Errors: WEFT_EARG, WEFT_EFORMAT. */
weft_status weft__plan_is_sound(const weft_plan *, int64_t sequences, const char *function);
/* Return the tokens of a batch, and the largest number of segments and of rows of a batch. */
int64_t weft__plan_tokens_of(const weft_plan *, int64_t batch);
int64_t weft__plan_most_segments(const weft_plan *);
int64_t weft__plan_most_rows(const weft_plan *);
/* Counts into steps[k], k = 0 .. most, the steps at which k rows have a token. Errors: WEFT_EFORMAT if more
 * than `most` rows have one. */
weft_status weft__plan_live(const weft_plan *, int64_t *steps, int64_t most, const char *function);
/* Sets sequences, tokens, not_empty and empty of a plan without segments. */
void weft__plan_set_counts(weft_plan *, const int32_t *len, int64_t n);
/* Counts the sequences of length 0 without a segment. */
int64_t weft__plan_without_segment(const weft_plan *, const int32_t *len, int64_t n);
/* Plans by differencing, for the planner balance. cost [n]: of each sequence, above 0 if it has a token. */
weft_status weft__plan_differencing(const int32_t *len, const int32_t *cost, int64_t n,
                                    const weft_plan_opts *, weft_plan *);
#endif
