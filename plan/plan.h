/* plan.h - what planners share: orders of sequences, pieces, open rows by their gaps. */
#ifndef WEFT_PLAN_PLAN_H
#define WEFT_PLAN_PLAN_H
#include "plan/api_measures.h"

/* ---- memory ---- */
/* Returns memory for n things of so many bytes, and one more; NULL, with a message, if there is none. It ends
 * with the scope that is open: nothing frees it. weft_plan_make opens one for each planner. */
void *weft__plan_memory(int64_t n, size_t bytes);
/* Opens a scope; closes it and all that were opened since. */
typedef struct weft__plan_scope weft__plan_scope;
weft__plan_scope *weft__plan_scope_open(void);
void weft__plan_scope_close(weft__plan_scope *);

/* ---- orders ---- */
/* Returns how many of n numbers, which do not fall, are at most `value`. */
int64_t weft__plan_up_to(const int64_t *number, int64_t n, int64_t value);
/* 0 .. n - 1; NULL, with a message, if there is no memory. */
int32_t *weft__plan_order(int64_t n);
/* Stable, by length, in blocks of `lookahead` (0: one). False, with a message: no memory. */
bool weft__plan_sort(const int32_t *len, int32_t *order, int64_t n, bool descending, int64_t lookahead);
/* The same in one block, with scratch [n]. */
void weft__plan_sort_in(const int32_t *len, int32_t *order, int64_t n, bool descending, int32_t *scratch);

/* Puts 0 .. n - 1 in a drawn order if the plan is shuffled. weft_plan_make gives options a stream. */
void weft__plan_shuffle(const weft_plan_opts *, int32_t *order, int64_t n);
/* Returns 0 .. n - 1, in a drawn order if the plan is shuffled; NULL, with a message: no memory. Planners
 * begin with it, so each epoch has other rows and batches; a sort after it is stable, so it draws the order
 * of sequences of equal length. */
int32_t *weft__plan_drawn(const weft_plan_opts *, int64_t n);

/* Returns the same, sorted by length, stable, in blocks of the plan's lookahead. */
int32_t *weft__plan_sorted(const weft_plan_opts *, const int32_t *len, int64_t n, bool descending);
/* Returns the longest of n lengths; 0 if there is none. */
int32_t weft__plan_longest(const int32_t *len, int64_t n);

/* ---- building ---- */
bool weft__plan_reserve(weft_plan *, int64_t segments);
/* Whether it has no more segments and batches than there is room for: a planner may have written to it. */
bool weft__plan_is_intact(const weft_plan *);
int64_t weft__plan_open(const weft_plan *);      /* segments of the batch that is being made */
weft_status weft__plan_add_whole(weft_plan *, const int32_t *len, int64_t sequence);
/* Ends a batch of segments that are a row each: as wide as the longest. */
weft_status weft__plan_end_whole(weft_plan *);
/* An order cut into batches of `count`. */
weft_status weft__plan_cut(weft_plan *, const int32_t *len, const int32_t *order, int64_t n, int64_t count);
weft_status weft__plan_shuffle_batches(const weft_plan_opts *, weft_plan *);

/* Pieces in the order in which they were given to rows, and the row of each. NULL: piece i is sequence i,
 * from 0 on. */
typedef struct { int64_t n; const int32_t *sequence, *offset, *length; } weft__pieces;
/* Rows of that width, `rows` of the options a batch. order [n]: in which the pieces were dealt; row [n]: that
 * of each piece, -1: none. */
weft_status weft__plan_rows(weft_plan *, const weft__pieces *, const int32_t *order, const int32_t *row,
                            int64_t rows, int64_t width, const weft_plan_opts *);

/* ---- open rows by their gaps ---- */
typedef struct weft__gaps weft__gaps;
/* Of rows 0 .. rows - 1 and gaps 0 .. capacity; NULL, with a message, if there is no memory. */
weft__gaps *weft__gaps_new(int64_t rows, int64_t capacity);
bool weft__gaps_add(weft__gaps *, int64_t gap, int64_t row);         /* false, with a message: no memory */
/* The smallest gap of at least `least`, the largest of all; -1: none. */
int64_t weft__gaps_from(const weft__gaps *, int64_t least);
int64_t weft__gaps_most(const weft__gaps *);
/* Takes the lowest row of a gap that there is. */
int64_t weft__gaps_take(weft__gaps *, int64_t gap);

/* ---- slots: the emptiest takes the next sequence (Graham 1969) ---- */
/* A heap with the emptiest slot first, of equals the lowest. */
typedef struct weft__bin { int64_t load, slot; } weft__bin;
void weft__bins_begin(weft__bin *heap, int64_t n);
/* Adds tokens to the emptiest slot and returns its number. */
int64_t weft__bins_give(weft__bin *heap, int64_t n, int64_t tokens);

/* ---- checks ---- */
/* The largest width of a batch, 2^48: far beyond any data, and sums of a few widths do not overflow. */
#define WEFT__PLAN_WIDTH ((int64_t)1 << 48)
/* Checks what all formulas of a plan rely on: arrays, batches one after the other, segments inside their
 * batches and of sequences 0 .. sequences - 1, sums that an int64_t holds. function: begins the message,
 * "plan_measure: ". WEFT_EARG or WEFT_EFORMAT if it is not so. */
weft_status weft__plan_is_sound(const weft_plan *, int64_t sequences, const char *function);
/* Returns the tokens of a batch, and the most segments and rows of a batch. */
int64_t weft__plan_tokens_of(const weft_plan *, int64_t batch);
int64_t weft__plan_most_segments(const weft_plan *);
int64_t weft__plan_most_rows(const weft_plan *);
/* Counts steps[k], k = 0 .. most, at which k rows have a token. most: no fewer than are live anywhere; fewer
 * is WEFT_EFORMAT. */
weft_status weft__plan_live(const weft_plan *, int64_t *steps, int64_t most, const char *function);
/* Counts the sequences of length 0 without a segment. */
int64_t weft__plan_without_segment(const weft_plan *, const int32_t *len, int64_t n);
/* An error names a sequence that is longer. */
weft_status weft__plan_fits(const int32_t *len, int64_t n, int64_t capacity);
/* balance by differencing: differencing.c */
weft_status weft__plan_differencing(const int32_t *len, int64_t n, const weft_plan_opts *, weft_plan *);
#endif
