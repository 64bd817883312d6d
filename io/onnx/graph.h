/* graph.h - reading a graph: messages, names, their scopes, and the state of the reader. */
#ifndef WEFT_IO_ONNX_GRAPH_H
#define WEFT_IO_ONNX_GRAPH_H
#include "io/onnx/model.h"

enum { MOST_FUNCTIONS = 1000 };
enum { UNDEFINED = -1, MISSING = -2 }; /* instead of a slot. MISSING: left out by a call */
enum { A_FLOAT = 1, A_INT, A_STRING, A_TENSOR, A_GRAPH, A_FLOATS, A_INTS, A_STRINGS };

typedef weft__onnx_record record;
typedef struct entry {
    weft__pb name;
    int scope, slot;
} entry;
/* Names of a graph or of a function, with those of the outer graphs. */
typedef struct scope {
    int number, depth, version; /* version: of the operators */
    const struct scope *outer;
    const node *caller; /* of a function */
    int guard; /* as in node */
    bool guard_is;
} scope;
typedef struct builder {
    run *r;
    weft_onnx *m;
    weft__weights *w;
    struct function {
        weft__pb body, name, domain;
    } function[MOST_FUNCTIONS];
    int functions, scopes;
    entry *table; /* by hash; an empty name is free */
    int64_t room, entries;
    int64_t work; /* elements that were read and written by constants */
    char unknown[400]; /* operators */
} builder;

/* ---- names.c ---- */
bool weft__onnx_same(weft__pb a, weft__pb b);
/* Returns the slot of a name, or UNDEFINED or MISSING. */
int  weft__onnx_find(const builder *, const scope *, weft__pb name);
/* Gives a name a slot. Returns false after a failure, such as a name that has one. */
bool weft__onnx_define(builder *, const scope *, weft__pb name, int at);
/* Gives a name a new slot and returns it; -1 after a failure. */
int  weft__onnx_defined(builder *, const scope *, weft__pb name);

/* ---- attributes.c ---- */
/* Reads a TensorProto. Its reals stay in the file. */
bool weft__onnx_value(weft__weights *, weft__pb message, value *);
/* Reads the attributes of a node; caller: the node whose function has it, or NULL. */
bool weft__onnx_attributes(weft__weights *, const record *, node *, const node *caller);
/* Describes an input or output. *type gets its element type, 0 if it is not a tensor. */
bool weft__onnx_describe(weft__weights *, const record *, weft_onnx_value *, int *type);
#endif
