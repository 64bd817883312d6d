/* cost.h - the cost of a layer on a device, for `weft plan --explain`.
 *
 * A function that returns false has printed the error, except open_run. */
#ifndef WEFT_TOOLS_COST_H
#define WEFT_TOOLS_COST_H
#include "weft_plan.h"
#include "tools/plan/plan.h"

enum { COST_NAME = 128, COST_POINTS = 8, LEAST_BLOCKS = 3, MOST_BLOCKS = 8 };
/* Relative differences. Above COST_SPREAD another block is measured, and a curve falls; costs whose blocks or
 * predictions differ by more than COST_DOUBT in the end are in doubt. */
#define COST_SPREAD .1
#define COST_DOUBT .25
/* name: the layer and the device in words. doubt: why the costs are implausible; empty: plausible. */
typedef struct {
    char name[COST_NAME], doubt[COST_NAME];
    weft_plan_cost cost;
} layer_cost;
/* A layer "CELL:UNITS", recurrent or attention; its input has the same width. renew: ignore the cache. */
typedef struct {
    const char *cell;
    int64_t hidden;
    int threads;
    bool renew;
} layer_asked;

/* ---- layer.c ---- */
/* Returns whether a text names a cell, alone or before a colon. */
bool is_layer(const char *text);
/* Reads a layer from its text. */
bool parse_layer(const char *text, int threads, layer_asked *out);
/* A recurrent layer, or self-attention over the tokens of each piece. The other is NULL. */
typedef struct {
    weft_rnn *rnn;
    weft_attention_layer *attention;
} costed_layer;
bool is_attention(const layer_asked *);
/* Runs the layer on a ragged or padded input, from states of 0. */
weft_tensor *run_costed(const costed_layer *, weft_tensor *x);
/* Returns seconds of a clock for the work of this context: CPU time with one thread, or elapsed time with
 * several and on a GPU. */
double work_seconds(const weft *);

/* A layer that runs the first batches of a plan. part is a view of that plan. least [part.batches]: the least
 * milliseconds of each batch; ms: their sum. A disturbance can only add to a time. */
typedef struct {
    weft *w;
    weft_module *m;
    costed_layer layer;
    weft_carried *kept;
    weft_tensor *scale;
    weft_plan part;
    bool padded;
    double *least, ms;
} layer_run;
/* Opens a layer for the first batches, which have `tokens` tokens. False: the context holds the error. The
 * caller calls close_run in any case. */
bool open_run(const layer_asked *, const weft_plan *, int64_t tokens, bool padded, layer_run *);
/* Runs these batches forwards and backwards, and sets ms and least. */
void run_layer(layer_run *, const weft_dataset *rows);
void close_run(layer_run *);
/* Makes rows of numbers for sequences of these lengths, as wide as the layer. The caller frees the rows. */
void make_rows(const weft_dataset *of, int64_t width, weft_dataset *out);

/* ---- fit.c ---- */
/* A batch of `units` units: steps of `each` rows, or for attention sequences of `each` tokens. least: the
 * least milliseconds in each block of rounds. */
typedef struct {
    int64_t each, units;
    double least[MOST_BLOCKS];
} timed_batch;
/* point [k]: a short and a long batch with the same `each`. large: exceeds the caches. moved: tokens that
 * only move to the layer and back; the other batches move them also. */
typedef struct {
    int blocks;
    bool attention;
    timed_batch point[COST_POINTS][2], large, moved;
} timings;
/* Fits costs to 2 blocks or more. The least time of all blocks counts. Sets cost except error, and doubt if
 * the two best blocks of a batch differ, or if the curve falls. Returns the largest of these differences. */
double fit_costs(const timings *, layer_cost *out);
/* Returns whether a step of more rows never costs less. */
bool is_plausible(const weft_plan_cost *);

/* ---- calibrate.c ---- */
/* Measures the layer on this device, in about two seconds up to 128 units. */
bool calibrate(const layer_asked *, layer_cost *out);

/* ---- costs.c ---- */
/* Reads costs from a JSON file. */
bool read_costs(const char *path, layer_cost *out);
/* Reads costs from the cache, or measures them and caches them unless they are in doubt. */
bool costs_of(const layer_asked *, layer_cost *out);

/* ---- explain.c ---- */
/* Prints the cost of each plan, the parts of the time, and which plan to take. */
bool explain_plans(const planned *, int count, const int32_t *len, int64_t n, const layer_cost *);
#endif
