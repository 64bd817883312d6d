/* costs.h - what a step of a layer costs here, measured. calibrate.c and cost_layer.c stand on weft.h alone;
 * the bench links them, too. */
#ifndef WEFT_TOOLS_COSTS_H
#define WEFT_TOOLS_COSTS_H
#include <stddef.h>
#include "weft.h"

/* ---- a pass over a plan that can be timed ---- */
/* GATHER: tokens are brought to the layout and back, and nothing else. */
typedef enum { COST_PLAN, COST_PADDED, COST_GATHER } cost_pass;
/* One pass over all batches, forward and backward. False: it has failed, and the user knows why. */
typedef struct {
    bool (*pass)(void *user, const weft_plan *, cost_pass);
    void *user;
} cost_runner;
/* The least of so many passes, in milliseconds; at least one, no more after so many seconds. NaN: failed. */
double cost_least_ms(const cost_runner *, const weft_plan *, cost_pass, int passes, double seconds);
/* calibrate.c: the table of up to `most_rows` rows, in about so many seconds. error is 0 then. */
bool calibrate(const cost_runner *, int64_t most_rows, double seconds, weft_plan_cost *out);

/* ---- a recurrent layer above an embedding ---- */
typedef struct {
    char cell[8];                               /* lstm, gru */
    int64_t input, hidden;
    int threads;                                /* 0: all */
    weft_device device;
    weft_precision precision;
} cost_layer;
typedef struct {
    weft *w;
    weft_module *m;
    weft_embedding *table;
    weft_rnn *rnn;
    weft_carried *kept;
    int32_t *ids;
    int64_t room;
} cost_model;
/* cost_layer.c. False: the context has failed, and says why; to be closed in any case. */
bool cost_model_open(cost_model *, const cost_layer *);
void cost_model_close(cost_model *);
bool cost_model_pass(void *model, const weft_plan *, cost_pass);
/* How long calibrating may take: 0.5 s up to 128 units, 3 s at 512. */
double cost_seconds(const cost_layer *);
#endif
