/* planners.c - the library's planners, in the order of docs/planners.md. */
#include <stdio.h>
#include <string.h>
#include "core/nearest.h"
#include "plan/options.h"
#include "plan/planners.h"

static const weft_planner *const all[] = { &weft__planner_order,
                                           &weft__planner_sorted,
                                           &weft__planner_random,
                                           &weft__planner_pool,
                                           &weft__planner_laplace,
                                           &weft__planner_tokens,
                                           &weft__planner_buckets,
                                           &weft__planner_geometric,
                                           &weft__planner_optimal_buckets,
                                           &weft__planner_powers,
                                           &weft__planner_next_fit,
                                           &weft__planner_first_fit,
                                           &weft__planner_best_fit,
                                           &weft__planner_worst_fit,
                                           &weft__planner_next_fit_decreasing,
                                           &weft__planner_first_fit_decreasing,
                                           &weft__planner_best_fit_decreasing,
                                           &weft__planner_worst_fit_decreasing,
                                           &weft__planner_spfhp,
                                           &weft__planner_spfhp_stacked,
                                           &weft__planner_lpfhp,
                                           &weft__planner_exact_fill,
                                           &weft__planner_column_generation,
                                           &weft__planner_chunk,
                                           &weft__planner_best_fit_split,
                                           &weft__planner_refill,
                                           &weft__planner_streams,
                                           &weft__planner_fold,
                                           &weft__planner_balance };

int weft_planner_count(void) { return (int)(sizeof all / sizeof *all); }

const weft_planner *weft_planner_at(int i) { return i >= 0 && i < weft_planner_count() ? all[i] : NULL; }

/* ---- by name ---- */
static _Thread_local char missed[160];

static const char *name_at(int i, const void *of)
{
    (void)of;
    return weft_planner_at(i) ? weft_planner_at(i)->name : NULL;
}

const weft_planner *weft_planner_named(const char *name)
{
    missed[0] = 0;
    for (int i = 0; name && i < weft_planner_count(); i++)
        if (!strcmp(all[i]->name, name))
            return all[i];
    const char *near = name ? weft__nearest(name, name_at, NULL) : NULL;
    snprintf(missed, sizeof missed, "there is no planner %s%.60s%s%s%s%s", name ? "\"" : "",
             name ? name : "NULL", name ? "\"" : "", near ? "; \"" : "", near ? near : "",
             near ? "\" is near" : "");
    weft_plan_refuse(WEFT_EARG, "%s", missed);
    return NULL;
}

const char *weft__planner_missed(void) { return missed; }
