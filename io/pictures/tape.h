/* tape.h - a tape as a graph, for its pictures: operators and their inputs, with numbers and gradients. */
#ifndef WEFT_IO_TAPE_H
#define WEFT_IO_TAPE_H
#include "autograd/inspect.h"
#include "io/io.h"

/* An entry of the tape, or a leaf (entry -1), with its result x. If x has one element its number is shown,
 * and its gradient if requested. */
typedef struct weft__drawn {
    weft_tensor *x;
    int64_t entry;
    bool has_number, has_gradient;
    double number, gradient;
} weft__drawn;
/* Nodes are in the order of the tape, each leaf before the first entry that uses it. */
typedef struct weft__graph {
    weft *w;
    weft_tensor *target;  /* tensor whose gradients are shown; NULL: the whole tape without gradients */
    weft__listing list;
    weft__drawn *node;
    int64_t nodes;
    int64_t *of_entry, *of_leaf;                 /* the node of each, -1: not drawn */
} weft__graph;

/* tape.c */
/* the number of inputs of node i, and the node of input k */
int         weft__inputs_of(const weft__graph *, int64_t i);
int64_t     weft__input_of(const weft__graph *, int64_t i, int k);
/* Writes three lines about a node: operator or name; attributes, or ""; number and gradient, or shape. */
enum { WEFT__LINES = 3, WEFT__LINE_ROOM = 160 };
void        weft__lines_of(const weft__graph *, int64_t i, char line[WEFT__LINES][WEFT__LINE_ROOM]);
/* Returns a node in one line, as in weft_print_tape, to be freed; NULL: memory is short. */
char       *weft__tooltip_of(weft__graph *, int64_t i);

/* tape_svg.c: green for parameters, grey for other leaves, blue for operators, yellow for the tensor whose
 * gradients are shown */
const char *weft__node_colour(const weft__graph *, const weft__drawn *);
weft_status weft__tape_as_svg(weft__graph *, const char *path, const char *title);
#endif
