/* keras.h - shared by the readers of Keras' files. */
#ifndef WEFT_IO_KERAS_H
#define WEFT_IO_KERAS_H
#include "io/weights/weights.h"

/* ---- keras_config.c: the JSON text that describes a model ---- */
/* A layer, "encoder.lstm" for one in a nested model, and the part of the text that describes it. */
typedef struct weft__keras_layer { const char *name, *config; } weft__keras_layer;
typedef struct weft__keras_config { weft__keras_layer *layer; int64_t n; } weft__keras_config;
/* Lists the layers in the model's order, at most 4096; none if the text does not describe them. It must stay
 * valid. */
void weft__keras_layers(weft__weights *, const char *text, weft__keras_config *out);
/* Returns the number of the layer that has this name, or that a part with this name belongs to; -1: none. */
int64_t weft__keras_find(const weft__keras_config *, const char *name);
/* Returns the cell that a recurrent layer computes, with its reset gate and activations: `cell`, or the
 * one of its description; NULL: the layer has no description. */
const char *weft__keras_cell(weft__weights *, const weft__keras_config *, int64_t layer, bool reverse,
                             const char *cell);

/* ---- keras.c: finds the parts of the layers that have variables: a cell, a direction, a dense layer ---- */
/* role: its name, "0" or "kernel". */
typedef struct weft__keras_variable {
    struct weft__keras_variable *next;
    const char *path, *role;
    weft__kind kind;
} weft__keras_variable;
typedef enum {
    WEFT__OTHER, WEFT__CELL, WEFT__DENSE, WEFT__EMBEDDING, WEFT__LAYER_NORM, WEFT__BATCH_NORM
} weft__keras_class;
typedef struct weft__keras_part {
    struct weft__keras_part *next;
    const char *name, *place;                    /* "encoder.lstm"; group in the file */
    weft__keras_class class;
    bool reverse;
    int gates, n;                                /* gates of a cell; variables */
    weft__keras_variable *first, **end, *v[4];   /* all variables in a list, and the first ones */
    int64_t number;                              /* of its layer in the model's description; -1: unknown */
} weft__keras_part;
typedef struct weft__keras_parts {
    weft__weights *w;
    weft__keras_part *first, **end;
    int64_t n, objects;                          /* parts; objects of the file that were visited */
    weft__keras_config config;
} weft__keras_parts;

/* ---- keras_arrays.c ---- */
/* Numbers the layers, and adds the arrays of each part. in_order: the parts are in the model's order. */
void weft__keras_add_arrays(weft__keras_parts *, bool in_order);
#endif
