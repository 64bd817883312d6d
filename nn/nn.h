/* nn.h - what nn, rnn and io know of modules and optimisers. */
#ifndef WEFT_NN_H
#define WEFT_NN_H
#include "core/core.h"
#include "nn/api_nn.h"

enum { WEFT__NAME = 64, WEFT__PATH = 256 };

typedef struct weft__parameter {                 /* of one module, in the order in which they were made */
    struct weft__parameter *next;
    weft_module *module;
    char name[WEFT__NAME];
    int64_t at;                                  /* where in the root's flat vectors; buffers: -1, their memory is their own */
    weft_tensor value, grad;                     /* value.grad is &grad; step 0: they live until weft_close */
    struct weft__parameter *tied;                /* another name of that one; else NULL */
    bool buffer;
} weft__parameter;

typedef struct weft__note { struct weft__note *next; char key[32], value[96]; } weft__note;   /* a text that a checkpoint keeps with the module */

struct weft_module {
    weft *w;                                     /* NULL: a module that could not be made */
    weft_module *root, *parent, *child, *sibling;                 /* first child, next sibling, in the order in which they were made */
    char name[WEFT__NAME];
    weft__parameter *parameters;                 /* first of this module */
    weft__note *notes;                           /* what its parameters mean: cell, gate order; by key */
    real *values, *gradients; int64_t n, room;   /* of a root: device memory */
    uint64_t version;                            /* of a root: grows when any value changes */
};

/* Every parameter and buffer below m, m's own first; visit returns false to stop. */
void weft__each_parameter(const weft_module *m, bool (*visit)(weft__parameter *, void *), void *user);
/* "encoder.lstm.weight_ih_l0", counted from (and without) `from`; for messages from is NULL: the root's name is included. */
const char *weft__parameter_path(const weft__parameter *p, const weft_module *from, char *buffer, size_t size);
const char *weft__module_path(const weft_module *m, char *buffer, size_t size);
/* A layer runs: messages of the context name it until weft__leave. Returns the scope before. m->w must not be NULL. */
const weft_module *weft__enter(const weft_module *m);
void weft__leave(const weft_module *m, const weft_module *before);
/* An object of `bytes` bytes, zeroed, below the context; NULL (and the module fails) if there is no memory or m->w is NULL. */
void *weft__layer(weft_module *m, size_t bytes);

/* Keeps a text with the module, "cell" = "lstm": checkpoints hold it, and loading compares it. A key said again replaces its value. */
void weft__describe(weft_module *m, const char *key, const char *value);

/* All that an optimiser must find again: numbers of the host, or flat vectors on the device. */
typedef struct weft__saved { const char *name; weft_dtype type; void *data; int64_t n; bool device; } weft__saved;
int  weft__optim_saved(weft_optim *o, weft__saved *out, int room);
void weft__optim_restored(weft_optim *o);        /* after the data were replaced */
#endif
