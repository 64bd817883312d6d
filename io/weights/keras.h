/* keras.h - shared by the readers of Keras' files. */
#ifndef WEFT_IO_KERAS_H
#define WEFT_IO_KERAS_H
#include "io/hdf5/hdf5.h"
#include "io/weights/weights.h"

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
    int n;                                       /* variables */
    weft__keras_variable *first, **end, *v[4];   /* all variables in a list, and the first ones */
    int64_t number;                              /* of its layer in the model's description; -1: unknown */
} weft__keras_part;
typedef struct weft__keras_parts {
    weft__weights *w;
    weft__keras_part *first, **end;
    int64_t n, objects;                          /* parts; objects of the file that were visited */
} weft__keras_parts;

/* ---- keras_arrays.c ---- */
/* Returns the class of a layer with a name that Keras gives, "dense_1". */
weft__keras_class weft__keras_class_of(const char *name);
/* Numbers the layers, and adds the arrays of each part. config: the JSON text that describes the model, or
 * NULL. in_order: the parts are in the model's order. */
void weft__keras_add_arrays(weft__keras_parts *, const char *config, bool in_order);
#endif
