/* planners.h - the functions of the library's planners; planners.def lists them. */
#ifndef WEFT_PLAN_PLANNERS_H
#define WEFT_PLAN_PLANNERS_H
#include "plan/plan.h"

#define PLANNER(name, source, about, options, promises)                                                \
    weft_status weft__planner_##name(const int32_t *len, int64_t n, const weft_plan_opts *, weft_plan *);
#include "plan/planners.def"
#undef PLANNER

typedef weft_status weft__planning(const int32_t *len, int64_t n, const weft_plan_opts *, weft_plan *);
/* Plans with the options align, longer and squares, which the planner then need not know. options: those that
 * it takes; with `longer`, a piece must fit a row. */
weft_status weft__plan_in_room(weft__planning *, const char *options, const int32_t *len, int64_t n,
                               const weft_plan_opts *, weft_plan *);

/* ---- shared by families of planners ---- */
typedef enum { WEFT__NEXT_FIT, WEFT__FIRST_FIT, WEFT__BEST_FIT, WEFT__WORST_FIT } weft__fit;
/* A pattern is a list of lengths that fill a row, with the number of its rows. Sequences of one length are
 * used in their order. */
typedef struct weft__pattern {
    struct weft__pattern *next;
    int64_t times;
    int32_t pieces, length[];
} weft__pattern;
weft__pattern *weft__pattern_new(weft__pattern *next, int64_t times, int32_t pieces);
/* Packs left[length] sequences of each length into patterns, which it prepends to *first. left [capacity + 1]
 * is changed. Returns false, with a message, if memory is short. */
typedef bool weft__packing(int64_t *left, int64_t capacity, int64_t limit, weft__pattern **first);
weft__packing weft__pack_lpfhp, weft__pack_exact_fill;
/* Plans by patterns. */
weft_status weft__plan_patterns(weft__packing *, const int32_t *len, int64_t n, const weft_plan_opts *,
                                weft_plan *);
#endif
