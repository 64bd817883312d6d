/* explain.h - `weft plan --explain`: predicted milliseconds, where they go, and which plan to take. */
#ifndef WEFT_TOOLS_EXPLAIN_H
#define WEFT_TOOLS_EXPLAIN_H
#include "tools/plan/costs.h"
#include "tools/plan/plan.h"

/* Nine of ten predictions of a table that was measured are within this share of the time: docs/cost.md. */
#define MODEL_ERROR .15

/* what: is predicted, "": a layer; device: as people call it; from: where the constants come from, in words;
 * precision: by its name; foreign: not measured, from a file. */
typedef struct {
    cost_layer layer;
    int threads;
    bool gpu, foreign;
    char what[120], device[160], from[300];
    const char *precision;
    weft_plan_cost table;
} costs;

/* cost_cache.c: constants of a file. False: the error was said. */
bool read_costs(const char *path, costs *);
/* What was measured here before, for the layer, threads, precision and device of c; false: there is none, or
 * it is damaged, which was said. */
bool read_cached_costs(costs *c);
void keep_costs(const costs *c);

/* explain.c: "CELL:HIDDEN", "" for lstm:128. False: the error was said. */
bool read_layer(const char *text, cost_layer *);
/* Constants for it: from a file, from the cache, or measured now. */
bool find_costs(const cost_layer *, const char *path, costs *);
/* Predicts each plan, into planned.time, padded and disturbance. */
bool predict_all(planned *all, int n, const costs *);
void print_explanation(const planned *all, int n, const costs *);
/* The same for the page, a paragraph a line; to be freed. */
char *cost_words(const planned *all, int n, const costs *);
#endif
