/* model.h - an imported model: values, nodes, and the functions that run operators. */
#ifndef WEFT_IO_ONNX_MODEL_H
#define WEFT_IO_ONNX_MODEL_H
#include "autograd/api_windows.h"
#include "io/onnx/api_onnx.h"
#include "io/weights/onnx.h"

/* A value of the graph: a tensor of reals, or integers in host memory. */
typedef struct value {
    int type; /* element type of ONNX; 0: the value is missing */
    weft_tensor *x; /* reals; NULL: integers */
    int64_t *number; /* [count] integers or truth values */
    int64_t count;
    int rank;
    int64_t size[WEFT_RANK];
    const weft__array *stored; /* during the import: its numbers, in the file or on the host */
    int split; /* SplitToSequence: 1 + axis; its elements are slices */
    bool keeps_axis;
} value;

typedef struct attribute {
    const char *name;
    int type; /* FLOAT 1, INT 2, STRING 3, TENSOR 4, GRAPH 5, FLOATS 6, .. */
    float f;
    int64_t i, n; /* n: number of floats or ints */
    const char *text;
    weft_real *floats;
    int64_t *ints;
    const char **texts; /* [n] */
    value tensor; /* a single real is also in floats */
    weft__pb graph;
} attribute;

typedef struct run run;
/* Computes the results of r->node. in has all inputs, at least 8; out at least 8 results. */
typedef void operate(run *r, const value *in, value *out);
/* inputs: number of those that it requires. option, function: for operate. A table ends with name NULL. */
typedef weft_tensor *unary_function(weft_tensor *x);
typedef weft_tensor *binary_function(weft_tensor *a, weft_tensor *b);
typedef struct operation {
    const char *name;
    operate *operate;
    int inputs, option; /* inputs < 0: costly, not computed during the import */
    unary_function *unary;
    binary_function *binary;
} operation;

typedef struct node {
    const char *name, *op;
    const operation *operation;
    int version; /* of its operator set */
    int *in, *out, inputs, outputs; /* slots; -1: missing */
    attribute *attribute;
    int attributes;
    struct layer *layer;
    int guard; /* slot of a condition; -1: none */
    bool guard_is; /* value of the condition that lets the node run */
    bool needed, weights_are_known;
} node;

/* A name of the graph, or several for the same value. */
struct slot {
    const weft__array *initial; /* reals of the file; in the image, which ends */
    int type; /* of an input: its element type */
    weft_tensor *kept; /* the parameter or buffer of a value that is known */
    bool trained; /* depends on initialisers that become parameters */
    bool needed, is_statistic;
};

/* A recurrent node: an ordinary layer, and the numbers of its own cell. */
typedef struct layer {
    weft_rnn *rnn; /* NULL: not made yet */
    int64_t hidden, input;
    int kind, directions; /* kind: RNN 0, GRU 1, LSTM 2 */
    node function[3]; /* activations, as nodes of the operators with their names */
    attribute parameter[3][2];
    double clip;
    bool relu, reversed, has_bias, linear_before_reset, input_forget, peepholes, own;
    int parts; /* of each direction */
    weft__array part[2 * 5]; /* weights that wait, in the order of the layer's parameters */
} layer;

struct weft_onnx {
    weft *w;
    weft__weights *weights; /* owns the memory of everything below */
    weft_module *module, *constants;
    struct slot *slot;
    value *known; /* [slots] values before a run; type 0: not known */
    node *node;
    int slots, nodes;
    int renamed; /* names that were taken */
    struct ends {
        weft_onnx_value *value;
        int *slot;
        int64_t n;
    } in, out;
};

struct run {
    weft *w;
    weft_onnx *model;
    const node *node;
    weft__piece *memory; /* ends with the run, by weft__pieces_end */
    size_t left; /* bytes that it may still take */
    bool importing;
};

/* ---- run.c ---- */
/* Runs one node: reads and sets the values of its slots. Returns whether it succeeded. */
bool weft__onnx_step(run *, const node *, value *values);
/* Returns zeroed memory of the run; NULL, and the context fails, if there is too little. */
void *weft__onnx_take(run *, int64_t n, size_t each);
/* Fails the context. Returns false. */
bool weft__onnx_fail(run *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Puts the node that failed in front of the message, once. Returns false. */
bool weft__onnx_explain(run *);
value weft__onnx_reals(run *, weft_tensor *x); /* type 0 after a failure */
/* Returns integers, all 0. Without memory it returns a missing value. */
value weft__onnx_integers(run *, int type, int rank, const int64_t *size);
/* Returns the value as a tensor of reals, or as integers; reals are rounded towards 0. */
weft_tensor *weft__onnx_tensor_of(run *, const value *);
value weft__onnx_integers_of(run *, const value *);
/* Returns the numbers of an input that the operator needs on the host as reals, NULL after a failure. */
weft_real *weft__onnx_read(run *, const value *);

/* Attributes of the node that runs. Another type fails. */
int64_t weft__onnx_int(run *, const char *name, int64_t otherwise);
double weft__onnx_float(run *, const char *name, double otherwise);
const char *weft__onnx_string(run *, const char *name, const char *otherwise);
/* Returns NULL if it is missing. types: FLOATS 6, INTS 7, TENSOR 4. */
const attribute *weft__onnx_attribute(run *, const char *name, int type);
/* Returns whether `axis` counts from the end or is inside the rank, and makes it 0 or more. */
bool weft__onnx_axis(run *, int64_t *axis, int rank);
/* Returns integers of input i or, if it is missing, of an attribute; type 0 if both are. */
value weft__onnx_list(run *, const value *in, int i, const char *name);
int64_t weft__onnx_product(const int64_t *size, int n);

/* ---- shape.c ---- */
/* Sets size to the common shape of two. Returns the rank, -1 after a failure or if a rank is below 0. */
int weft__onnx_broadcast(run *, int rank_a, const int64_t *a, int rank_b, const int64_t *b, int64_t *size);
/* Copies a list of extents, each `least` or more. Returns their number, -1 after a failure. */
int weft__onnx_shape(run *, const value *list, int64_t least, int64_t *size);
/* Sets marked[axis] for the listed axes, and clears the others. Returns whether all are inside the rank. */
bool weft__onnx_marks(run *, const value *axes, int rank, bool *marked);
/* These return type 0 after a failure. */
value weft__onnx_reshape(run *, const value *, int rank, const int64_t *size);
value weft__onnx_matrix(run *, const value *, int axis); /* columns: the axes from `axis` on */
/* Joins blocks: block i of the result is block from[i] of x, or 0 if from[i] is -1. from may be NULL. */
value weft__onnx_select(run *, const value *x, const int64_t *from, int64_t block, int rank,
                        const int64_t *size);
value weft__onnx_permute(run *, const value *x, const int64_t *axes); /* NULL: reversed */
value weft__onnx_expand(run *, const value *x, int rank, const int64_t *size);
value weft__onnx_concat(run *, const value *x, int n, int axis);
int64_t weft__onnx_stride(const value *x, int64_t axis); /* elements between neighbours along the axis */

operate weft__onnx_identity; /* pointwise.c; also for ZipMap, whose map is the tensor of probabilities */
value weft__onnx_gather(run *, const value *x, int axis, const value *index);        /* indexed.c */
value weft__onnx_truths(run *, const value *x); /* pointwise.c: whether elements are not 0 */
/* pointwise.c: fails if a result of this shape is too large for the import. */
bool weft__onnx_fits(run *, int rank, const int64_t *size);
value weft__onnx_ints(run *, weft_tensor *x); /* made.c: copies ints to the host */

/* Finds an operator; NULL: unknown. */
const operation *weft__onnx_operation(weft__pb domain, weft__pb op);
extern const operation weft__onnx_learning[], weft__onnx_layers[], weft__onnx_pointwise[],
    weft__onnx_shapes[], weft__onnx_indexed[], weft__onnx_made[], weft__onnx_reductions[],
    weft__onnx_products[];

/* ---- layer.c ---- */
operate weft__onnx_recurrent;
/* Reads the layer of a recurrent node if its weights are known. */
bool weft__onnx_layer(run *, node *, const value *known);
/* Adds the layer of a node to the module, if it is not there, and assigns the weights that wait. */
void weft__onnx_make(run *, const node *);

/* ---- import.c ---- */
/* Returns an array with the numbers of a value: in the file, or read to memory of the run. */
weft__array weft__onnx_array(run *, const value *);
/* Sets a tensor of reals to an array. Converts few rows at a time, to need little memory. */
void weft__onnx_assign(run *, weft_tensor *, const weft__array *);
/* Writes the name, made valid, or one with a number that the module does not have yet. */
void weft__onnx_name(weft_onnx *, const char *name, char text[64]);

/* ---- graph.c ---- */
/* Reads the graph of an open file, and computes constants. Returns false after a failure. */
bool weft__onnx_graph(run *);
#endif
