/* verdict.h - a verdict: the plan to take, the reason, its costs and their error. The page, `weft plan
 * --explain` and its JSON print the same verdict. */
#ifndef WEFT_TOOLS_VERDICT_H
#define WEFT_TOOLS_VERDICT_H
#include "tools/plan/cost.h"

/* The source of ms. VERDICT_BY_CELLS: none; plans are compared by their cells. */
typedef enum { VERDICT_BY_CELLS, VERDICT_BY_COSTS, VERDICT_BY_TIMES } verdict_basis;

/* ms: of a pass; low, high: its range; NaN: unknown. memory: cells that the largest batch stores.
 * tied: as good as the fastest within the error. */
typedef struct {
    const planned *made;
    double ms, low, high;
    int64_t memory;
    weft_plan_disturbance by;
    bool tied;
} judged_plan;

/* plan [n]. chosen, fastest: their numbers, or -1 without a plan to take. error: plans whose costs differ by
 * at most this share tie. why, cost, sure: sentences. */
typedef struct {
    verdict_basis basis;
    int n, chosen, fastest, tied;
    double error;
    judged_plan *plan;
    char why[400], cost[800], sure[500];
} verdict;
/* Declares verdicts whose plans are freed at the end of the block. */
#define VERDICT __attribute__((cleanup(free_verdict))) verdict
void free_verdict(verdict *);

/* Judges n plans, whose made, ms, low and high are set. VERDICT_BY_COSTS needs costs; they predict each ms
 * that is NaN. Returns false after a printed error. */
bool judge_plans(verdict *, const int32_t *len, int64_t count, const layer_cost *costs);
/* Judges plans by costs, or by cells if costs is NULL. v is a VERDICT. */
bool judge_made(verdict *v, const planned *all, int n, const int32_t *len, int64_t count,
                const layer_cost *costs);

/* json.c: prints plans as JSON, with a verdict unless it is NULL. */
void print_json(const planned *all, int n, const int32_t *len, const verdict *);
/* report.c: writes the page of these plans. command: the command line to show. times: show the planners'
 * times. costs: predict milliseconds of a pass; NULL: do not. */
bool report_plans(const char *file, const char *corpus, const int32_t *len, int64_t n, const planned *all,
                  int count, const char *command, bool times, const layer_cost *costs);
#endif
