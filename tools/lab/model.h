/* model.h - the language model that the laboratory's experiments train: an embedding, an LSTM, dropout,
 * the scores of the next token. */
#ifndef WEFT_TOOLS_LAB_MODEL_H
#define WEFT_TOOLS_LAB_MODEL_H
#include "weft_plan.h"

/* Sizes; dropout behind the LSTM; the rate of AdamW; 0 threads: all. padded: what is not in rows runs padded
 * instead of packed. */
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

/* False: the model's context has failed, and says why. It is to be closed in any case. */
bool lab_model_open(lab_model *, const lab_model_opts *);
void lab_model_close(lab_model *);
/* Room for the states that plans like this one carry on, made once. */
bool lab_model_carries(lab_model *, const weft_plan *);
/* The loss of a batch, each token from those before it in its sequence; token 0 stands before the first.
 * weights: of the tokens; NULL: all count alike. */
weft_loss lab_model_loss(lab_model *, const weft_plan_step *, const weft_dataset *, weft_tensor *weights);
/* One update from a batch, the gradient clipped at norm 1. */
bool lab_model_update(lab_model *, const weft_plan *, int64_t batch, const weft_dataset *, weft_plan_mean);
/* Bits a token on other data; NaN: the context has failed. */
double lab_model_bits(lab_model *, const weft_dataset *);
#endif
