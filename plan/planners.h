/* planners.h - the library's planners, one record each; planners.c lists them. */
#ifndef WEFT_PLAN_PLANNERS_H
#define WEFT_PLAN_PLANNERS_H
#include "plan/plan.h"

extern const weft_planner weft__planner_order, weft__planner_sorted, weft__planner_random, weft__planner_pool,
    weft__planner_laplace, weft__planner_tokens, weft__planner_buckets, weft__planner_geometric,
    weft__planner_optimal_buckets, weft__planner_powers;
extern const weft_planner weft__planner_next_fit, weft__planner_first_fit, weft__planner_best_fit,
    weft__planner_worst_fit, weft__planner_next_fit_decreasing, weft__planner_first_fit_decreasing,
    weft__planner_best_fit_decreasing, weft__planner_worst_fit_decreasing, weft__planner_fold,
    weft__planner_best_fit_split;
extern const weft_planner weft__planner_spfhp, weft__planner_spfhp_stacked, weft__planner_lpfhp,
    weft__planner_exact_fill, weft__planner_column_generation;
extern const weft_planner weft__planner_chunk, weft__planner_refill, weft__planner_streams,
    weft__planner_balance;

/* ---- what families share ---- */
typedef enum { WEFT__NEXT_FIT, WEFT__FIRST_FIT, WEFT__BEST_FIT, WEFT__WORST_FIT } weft__fit;
/* The row of each piece, dealt in this order by a rule, and how many rows; -1, with a message: no memory.
 * Pieces of length 0 have no row. */
int64_t weft__plan_fit(weft__fit, const int32_t *length, const int32_t *order, int64_t n, int64_t capacity,
                       const weft_plan_opts *, int32_t *row);
/* Patterns of lengths and how often each is used: rows of the sequences, those of a length in their order. */
typedef struct weft__pattern {
    struct weft__pattern *next;
    int64_t times;
    int32_t pieces, length[];
} weft__pattern;
void weft__plan_free_patterns(weft__pattern *);
/* How many sequences there are of each length, [capacity + 1], to be freed; an error, and NULL, if one is too
 * long. */
weft_status weft__plan_count(const int32_t *len, int64_t n, const weft_plan_opts *, int64_t **left);
/* Patterns of all lengths that are left, before *first; false, with a message: no memory. */
typedef enum { WEFT__SHORTEST_PACK, WEFT__STACKED_PACK, WEFT__LONGEST_PACK } weft__manner;
bool weft__plan_packs(weft__manner, int64_t *left, int64_t capacity, int64_t limit, weft__pattern **first);
bool weft__plan_exact_fill(const int64_t *left, int64_t capacity, int64_t limit, weft__pattern **first);
weft_status weft__plan_patterns(weft_plan *, const int32_t *len, int64_t n, const weft__pattern *,
                                const weft_plan_opts *);
#endif
