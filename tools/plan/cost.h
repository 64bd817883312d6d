/* cost.h - what the files of `weft plan --explain` share: the cost of a layer on a device. */
#ifndef WEFT_TOOLS_COST_H
#define WEFT_TOOLS_COST_H
#include "weft_plan.h"
#include "tools/plan/plan.h"

enum { COST_NAME = 128, MOST_TIMES = 64 };
/* Two halves of a measurement may differ by this share, and a step may be cheaper by it than a step of fewer
 * rows. */
#define COST_SPREAD .1
/* name: the layer and the device in words. doubt: why the costs cannot be right; empty: they are. */
typedef struct {
    char name[COST_NAME], doubt[COST_NAME];
    weft_plan_cost cost;
} layer_cost;
/* A recurrent layer by "CELL:UNITS"; its input is as wide. renew: the cache is not read. */
typedef struct {
    const char *cell;
    int64_t hidden;
    int threads;
    bool renew;
} layer_asked;

/* ---- layer.c ---- */
/* Returns whether a text names a cell, alone or before a colon. */
bool is_layer(const char *text);
/* Reads a layer from its text. False: the error was printed. */
bool parse_layer(const char *text, int threads, layer_asked *out);
weft_rnn *make_layer(const layer_asked *, weft_module *);
/* Opens the context that the layer is measured in. False: the error was printed. */
bool open_device(const layer_asked *, weft **);
/* Writes the name of the device that the layer would be measured on, and its number of threads. */
bool device_of(const layer_asked *, char *name, size_t size, int *threads);
/* Returns seconds of a clock that counts the work of this context: the CPU time of the thread that calls, or
 * on a GPU the time that passes. */
double work_seconds(const weft *);
/* Returns a time that a tenth of n measurements, at most MOST_TIMES, are below: a disturbance only adds to a
 * time. */
double typical(const double *, int n);

/* A layer that runs the first batches of a plan. part is a view of that plan. */
typedef struct {
    weft *w;
    weft_module *m;
    weft_rnn *layer;
    weft_carried *kept;
    weft_tensor *scale;
    weft_plan part;
    bool padded;
} layer_run;
/* Opens a layer for the batches that have the first `tokens` tokens; the context is to be closed. False: the
 * context holds the error. */
bool open_run(const layer_asked *, const weft_plan *, int64_t tokens, bool padded, layer_run *);
/* Runs them forwards and backwards; returns milliseconds. */
double run_layer(layer_run *, const weft_dataset *rows);
/* Makes rows of numbers for sequences of these lengths, as wide as the layer; rows to be freed. */
void make_rows(const weft_dataset *of, int64_t width, weft_dataset *out);

/* ---- calibrate.c ---- */
/* Measures the layer on this device, in about a second up to 128 units. False: the error was printed. */
bool calibrate(const layer_asked *, layer_cost *out);
/* Returns whether a step of more rows never costs less. */
bool is_plausible(const weft_plan_cost *);

/* ---- costs.c ---- */
/* Reads costs from a file of JSON. False: the error was printed. */
bool read_costs(const char *path, layer_cost *out);
/* Takes costs from the cache, or measures them and keeps them there unless they are in doubt. False: the
 * error was printed. */
bool costs_of(const layer_asked *, layer_cost *out);

/* ---- explain.c ---- */
/* Prints what each plan will cost, where the time goes, and which one to take. False: the error was printed.
 */
bool explain_plans(const planned *, int count, const int32_t *len, int64_t n, const layer_cost *);
#endif
