/* model.h - the language model of the laboratory: an embedding, an LSTM, dropout, and scores of the next
 * token. */
#ifndef WEFT_TOOLS_LAB_MODEL_H
#define WEFT_TOOLS_LAB_MODEL_H
#include "weft_plan.h"

/* dropout: of the LSTM's outputs. lr: of AdamW. threads 0: all cores. padded: plans without rows of cells run
 * padded instead of packed. */
typedef struct {
    int64_t classes, embedding, hidden;
    double dropout, lr;
    int threads;
    uint64_t seed;
    bool padded;
} lab_model_opts;
typedef struct {
    weft *w;
    weft_module *m;
    weft_embedding *table;
    weft_rnn *lstm;
    weft_dropout_layer *drop;
    weft_linear *scores;
    weft_optim *optim;
    weft_carried *kept;                         /* NULL until lab_model_carries */
    bool padded;
} lab_model;

/* Opens a model. False: the context has failed and holds the message. The caller closes w in any case. */
bool lab_model_open(lab_model *, const lab_model_opts *);
/* Allocates the carried states for plans like this one, once. */
bool lab_model_carries(lab_model *, const weft_plan *);
/* Runs a layer on x, padded. The result is ragged again. */
weft_tensor *lab_run_padded(weft_rnn *, const weft_plan_step *, weft_tensor *x);
/* Returns the loss of a batch. Each token is predicted from those before it in its sequence; token 0 precedes
 * the first. weights: of the tokens; NULL: all 1. */
weft_loss lab_model_loss(lab_model *, const weft_plan_step *, const weft_dataset *, weft_tensor *weights);
/* Makes one update from a batch, with the gradient clipped to norm 1. */
bool lab_model_update(lab_model *, const weft_plan *, int64_t batch, const weft_dataset *);
/* Returns bits a token on other data, or NaN if the context has failed. */
double lab_model_bits(lab_model *, const weft_dataset *);
#endif
