/* cost.h - what the files of `weft plan --explain` share: what a layer costs on a device. */
#ifndef WEFT_TOOLS_COST_H
#define WEFT_TOOLS_COST_H
#include "tools/plan/plan.h"

enum { COST_NAME = 128 };
/* name: the layer and the device in words. */
typedef struct {
    char name[COST_NAME];
    weft_plan_cost cost;
} layer_cost;
/* A recurrent layer by "CELL:UNITS"; its input is as wide. */
typedef struct {
    const char *cell;
    int64_t hidden;
    int threads;
} layer_asked;

/* calibrate.c: a layer by its text; false: the error was said. */
bool parse_layer(const char *text, int threads, layer_asked *out);
/* Measures it on this device, in half a second up to 128 units, three at 512. False: the error was said. */
bool calibrate(const layer_asked *, layer_cost *out);
/* Of the device that it would be measured on, and how many threads it would use. */
bool device_of(const layer_asked *, char *name, size_t size, int *threads);

/* costs.c: from a file of JSON. False: the error was said. */
bool read_costs(const char *path, layer_cost *out);
/* From the cache, else measured and put there. False: the error was said. */
bool costs_of(const layer_asked *, layer_cost *out);

/* explain.c: what each plan will cost, where the time goes, and which one to take. False: the error was
 * said. */
bool explain_plans(const planned *, int count, const int32_t *len, int64_t n, const layer_cost *);
#endif
