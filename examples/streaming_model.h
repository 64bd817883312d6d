/* streaming_model.h - a language model of bytes that answers one token at a time, and what it knows of each
 * user: a state that is plain memory, and as bytes can go to another process, or another machine. */
#ifndef EXAMPLES_STREAMING_MODEL_H
#define EXAMPLES_STREAMING_MODEL_H
#include "weft.h"

enum { BYTES = 256 };                            /* tokens that there are */
typedef struct { int64_t hidden, layers, seed; const char *file; } settings;

/* A context, which is one thread's, and its model. The weights are those of a file, or by the seed. print: a
 * hash of the weights: states go from one model to another only where both are the same. */
typedef struct {
    weft *w;
    weft_module *all;
    weft_embedding *table;
    weft_rnn *lstm;
    weft_linear *head;
    int64_t hidden, layers, most;                /* most: users of a batch */
    weft_real *h, *c, *scores;                   /* a batch's, from all its users and back */
    uint64_t print;
} model;

/* Of a user: h and c of all layers, and how many tokens it has seen. */
typedef struct { weft_real *h, *c; int64_t tokens; } state;

model model_open(const settings *, int64_t most);
void  model_close(model *);
int64_t model_bytes(const model *);              /* that its context holds */
/* The next token of n users, whose states go on; likeliest: what each says next. */
void  model_step(model *, int64_t n, state *const *users, const int32_t *token, int32_t *likeliest);

state state_new(const model *);                  /* zeros */
void  state_free(state *);
/* A state as bytes: name and version of the format, the model's sizes and print, the tokens, the numbers, a
 * checksum. Little-endian, whatever the machine. */
size_t state_size(const model *);
void   state_save(const model *, const state *, unsigned char *bytes);
/* NULL, or why these bytes are no state of this model; then the state stays as it was. */
const char *state_restore(const model *, const unsigned char *bytes, size_t n, state *);
#endif
