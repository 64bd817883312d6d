/* forecast_options.h - what the user of forecast can choose. The settings make data, model and training;
 * they are saved with it. */
#ifndef FORECAST_OPTIONS_H
#define FORECAST_OPTIONS_H
#include "common/options.h"

typedef struct {
    int64_t model, hidden, layers, heads, blocks, context, horizon, stride, series, series_seed, batch,
        shards, epochs, warmup, patience, seed;
    double  dropout, noise, lr, decay, clip, average;
} settings;
enum { SETTINGS = 22 };

typedef struct {
    settings    set;
    bool        given[OPTIONS];                  /* on the command line */
    const char *out, *log, *pictures, *test, *forecasts;
    bool        resume, quick;
    int64_t     threads, every;
    weft_device device;
} options;

extern const option_table forecast_table;
/* Reads the command line; --help and mistakes end the program. */
options command_line(int argc, char **argv);
#endif
