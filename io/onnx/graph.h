/* graph.h - reading a graph: names, their scopes, and the state of the reader. */
#ifndef WEFT_IO_ONNX_GRAPH_H
#define WEFT_IO_ONNX_GRAPH_H
#include "io/onnx/model.h"

enum { MOST_FUNCTIONS = 1000, MAIN = 0, LEARNING = 1 };
enum { UNDEFINED = -1, MISSING = -2 }; /* instead of a slot. MISSING: left out by a call */
typedef struct entry {
    weft__pb name;
    int scope, slot;
} entry;
/* Names of a graph or of a function, with those of the outer graphs. */
typedef struct scope {
    int number, depth;
    const struct scope *outer;
    int64_t version[2]; /* of both operator sets */
    const node *caller; /* of a function */
    int guard; /* as in node */
    bool guard_is;
} scope;
typedef struct builder {
    run *r;
    weft_onnx *m;
    weft__weights *w;
    struct {
        weft__pb body, name, domain;
    } function[MOST_FUNCTIONS];
    int functions;
    entry *table; /* by hash; an empty name is free */
    int64_t room, entries, slot_room, known_room, node_room;
    int scopes, unknown_count;
    int64_t work; /* elements that were read and written by constants */
    size_t unknown_length;
    char unknown[400];
} builder;

/* ---- names.c ---- */
bool weft__onnx_same(weft__pb a, weft__pb b);
/* Returns the slot of a name, or UNDEFINED or MISSING. */
int  weft__onnx_find(const builder *, const scope *, weft__pb name);
/* Gives a name a slot. Returns false after a failure, such as a name that has one. */
bool weft__onnx_define(builder *, const scope *, weft__pb name, int at);
/* Gives a name a new slot and returns it; -1 after a failure. */
int  weft__onnx_defined(builder *, const scope *, weft__pb name);
/* Reads an initialiser. Those of reals are only loaded as tensors if a constant depends on them. */
bool weft__onnx_initialiser(builder *, const scope *, weft__pb message);
bool weft__onnx_load(builder *, int at);
/* Sets *v to the value of a node Constant. */
bool weft__onnx_constant(builder *, node *, value *v);
/* Keeps a function of the file, the first 1000. */
void weft__onnx_note_function(builder *, weft__pb message);
/* Returns the function that a node calls; next NULL: none. */
weft__pb weft__onnx_function(const builder *, weft__pb domain, weft__pb op);
#endif
