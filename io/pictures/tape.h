/* tape.h - a tape as a graph, for its pictures: operators and what they take, with numbers and gradients. */
#ifndef WEFT_IO_TAPE_H
#define WEFT_IO_TAPE_H
#include "autograd/inspect.h"
#include "io/text.h"

/* An entry of the tape, or a leaf (entry -1): x is what it gives. Of one element its number is shown, and its
 * gradient, if that was asked for. */
typedef struct weft__drawn {
    weft_tensor *x;
    int64_t entry;
    bool has_number, has_gradient;
    double number, gradient;
} weft__drawn;
/* In the order of the tape, each leaf before the entry that takes it first. */
typedef struct weft__graph {
    weft *w;
    weft_tensor *of;                             /* NULL: all of the tape, without gradients */
    weft__listing list;
    weft__drawn *node;
    int64_t nodes;
    int64_t *of_entry, *of_leaf;                 /* the node of each, -1: it is not drawn */
} weft__graph;

/* tape.c */
/* how many nodes come before node i as its inputs, and which one input k is */
int         weft__inputs_of(const weft__graph *, int64_t i);
int64_t     weft__input_of(const weft__graph *, int64_t i, int k);
/* Three lines that tell of a node: operator or name; attributes, or ""; number and gradient, or shape. */
enum { WEFT__LINES = 3, WEFT__LINE_ROOM = 160 };
void        weft__lines_of(const weft__graph *, int64_t i, char line[WEFT__LINES][WEFT__LINE_ROOM]);
/* All in one line, as weft_print_tape has it; to be freed; NULL: no memory. */
char       *weft__tip_of(weft__graph *, int64_t i);

/* tape_svg.c: green parameters, grey what was given, blue operators, yellow what gradients are of */
const char *weft__node_colour(const weft__graph *, const weft__drawn *);
weft_status weft__tape_as_svg(weft__graph *, const char *path, const char *title);
#endif
