/* export.h - the ONNX graph that grows while the exporter follows the tape.
 *
 * A value is the ONNX tensor of a weft tensor. Each axis of the weft tensor is a group of ONNX axes, usually
 * of one. The rows of a ragged tensor are the group [time, batch], also after weft_plain. A dynamic axis has
 * a symbol; its extent in the traced step is known too, so a reshape finds the groups of its result. */
#ifndef WEFT_ONNX_EXPORT_H
#define WEFT_ONNX_EXPORT_H
#include <setjmp.h>
#include "autograd/attributes.h"
#include "autograd/inspect.h"
#include "io/onnx/api_onnx.h"
#include "io/weights/weights.h"

enum { AXES = 12, SYMBOLS = 256, BATCHES = 128, FLOAT = 1, INT32 = 6, INT64 = 7 };

/* n: extent in the traced step. symbol: 1 + its number, or 0 for a fixed extent. rows: of the first axis of
 * the rows of a batch, their number in the traced step; otherwise 0. joined: a further axis of these rows. */
typedef struct extent { int64_t n, rows; int symbol; bool joined; } extent;

/* name: NULL if its operator is refused. first: first ONNX axis of each axis, and at the end `axes`. A value
 * of the layout PADDED has the axes of the rows. last: of a result of a recurrent layer, the last state
 * [1, batch, width]. count: of a sum along dynamic axes, the number of terms as a float, `counted` in the
 * traced step. view: of a plain tensor, the operator that reads its first axes as sequences and steps. */
typedef struct value {
    const char *name, *last, *count;
    int64_t counted;
    bool negative;                               /* ids may be -1, which looks up zeros */
    double inverse;                              /* reciprocal of this constant; otherwise 0 */
    extent gone;                                 /* dynamic axis that a sum has removed */
    const weft_call *view;
    int rank, axes, first[WEFT_RANK + 1]; extent dim[AXES];
} value;

/* n: extent in the traced step. source, axis: a tensor with this extent, and its axis; NULL so far for the
 * time of a batch with these lengths. size: the extent as int64 [1], or NULL so far. */
typedef struct symbol { char name[24]; int64_t n; const char *source, *lengths, *size; int axis; } symbol;

/* A batch of the step. rows: the group of its rows, [time, batch]; for pairs [time of k, time of q, batch].
 * lengths: int64, with axes that broadcast to those after the time. NULL: each length is the extent of the
 * time. mask: bool like the rows. position: int64 [time, 1 ..]. Both NULL so far. a: for a joined batch the
 * first, for pairs that of the queries. padded: the time is that of a plain input. longest: axis of padded
 * tensors that have no more padding than needed; its symbol is 0 so far. */
typedef struct batch {
    const weft_batch *b, *a;
    int axes; extent rows[4], longest;
    const char *lengths, *lengths32, *mask, *position;
    bool pairs, padded;
} batch;

/* A growing protobuf message. */
typedef struct graph graph;
typedef struct proto { graph *x; unsigned char *bytes; size_t n, room; } proto;

struct graph {
    weft *w;
    const weft_onnx_export_opts *opts;
    weft__listing listing;
    int64_t entry; const weft_call *call;        /* the current one */
    /* Its axis, the ONNX axis, and the batch if that axis is the tokens of each sequence, otherwise NULL. */
    int axis, at; batch *tokens;
    bool *needed;                                /* [entries] */
    value **result, *leaf;                       /* [entries][results], [leaves]; result NULL so far */
    proto nodes, initializers, inputs, outputs;
    symbol symbol[SYMBOLS]; int symbols;
    batch batch[BATCHES]; int batches;
    struct constant { struct constant *next; const char *name; int type, rank; size_t n;
                      unsigned char bytes[]; } *constants;
    weft__piece *memory;
    struct used { struct used *next; const char *name; } *used; /* names of inputs, outputs and parameters */
    int names, given, lengths;                   /* counters of names */
    const char *out[3];                          /* results of the last node */
    char refused[2048];                          /* reasons */
    weft_status status;
    jmp_buf failed, next;                        /* where to go on after a failure, and a refusal */
    size_t root;                                 /* bytes of the root's name that parameters leave out */
};

/* ---- export_graph.c ---- */
/* Ends the export with that message. */
_Noreturn void weft__ex_fail(graph *, weft_status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void *weft__ex_memory(graph *, size_t bytes);    /* zeroed, until the export ends */
const char *weft__ex_text(graph *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds the nodes of a text, such as "Where(Equal(@0, 0.), %g, Sqrt(%s))", and returns the name of its result.
 * Inputs: a node; @0, input 0 of the current call; %s, a name, NULL if it is left out; $, the %s before it;
 * 1. or %g, a float; 1, %d or %lld, an int64; [1, %d] or [%*p], int64 [n]; %*p, n names. Attributes:
 * axis=1, epsilon=%g, direction=%s, perm=[1, 0]. The operator may be %s. "TopK:2(" has two results, in x->out
 * until the next node. Equal constants are one initializer. */
const char *weft__ex_nodes(graph *, const char *text, ...) __attribute__((format(printf, 2, 3)));
#define NODES(...)     weft__ex_nodes(__VA_ARGS__)
#define ITEMS(n, list) (int)(n), (const void *)(list) /* for %*p */
/* Adds an initializer; a NULL name makes one. Returns the name. */
const char *weft__ex_initializer(graph *, const char *name, int type, int rank, const int64_t *shape,
                                 const void *, size_t bytes);
/* Reserves a name, and fails if it is used or empty. */
void weft__ex_reserve(graph *, const char *name);
/* Adds an input or output of the graph, with the type of the tensor. */
void weft__ex_end(graph *, bool output, const char *name, weft_dtype, const value *);
void weft__ex_write(graph *, const char *path);
/* ---- export.c ---- */
/* Returns the value of a tensor. place: also if it has none yet, which the name NULL says. */
const value *weft__ex_value(graph *, const weft_tensor *);
value *weft__ex_place(graph *, const weft_tensor *);
bool weft__ex_is_own(const weft_call *);         /* an operator of the program? */
/* Returns a tensor's numbers, reals or int32, in memory that also holds their number of int64. */
void *weft__ex_read(graph *, const weft_tensor *);
/* ---- export_values.c ---- */
/* Removes the group of axis `at`; inserts a group of n axes there; replaces axis 0 by a group. */
void weft__ex_remove(value *, int at);
void weft__ex_insert(value *, int at, int n, const extent *);
void weft__ex_replace(value *, int n, const extent *);
/* Refuses the current operator for that reason, and goes on with the next one. */
_Noreturn void weft__ex_refuse(graph *, const char *reason);
extern const char weft__ex_one_dynamic[], weft__ex_dropout[]; /* reasons */
/* Returns the ONNX axis of an axis. Refuses the operator if that is several. */
int weft__ex_axis(graph *, const value *, int axis);
/* Returns an extent as int64 [1], and several as int64 [n]. */
const char *weft__ex_size(graph *, extent);
const char *weft__ex_sizes(graph *, int n, const extent *);
const char *weft__ex_expand(graph *, const char *, int n, const extent *);
/* Returns a new dynamic axis, such as "steps", then "steps2"; "batch": the axis for that many sequences. */
extent weft__ex_symbol(graph *, const char *name, int64_t n, const char *source, int axis);
/* Gives axes `from` .. of v the extents `size` [to_rank]. Returns y's name. */
const char *weft__ex_reshape(graph *, const value *v, int from, int to_rank, const int64_t *size, value *y);
/* Returns the batch, or NULL. root: adds it with an input for its lengths. */
batch *weft__ex_batch(graph *, const weft_batch *);
batch *weft__ex_root(graph *, const weft_batch *);
batch *weft__ex_new_batch(graph *, const weft_batch *, int axes, const extent *rows);
/* Sets the source of the time of a batch. Returns false if it has one. */
bool weft__ex_time_source(graph *, const batch *, const char *source, int axis);
/* Return int64 [time, 1 ..], and the lengths. */
const char *weft__ex_position(graph *, batch *);
const char *weft__ex_range(graph *, extent, int axes); /* 0, 1, .. as int64 [n, 1 ..] */
const char *weft__ex_lengths(graph *, const batch *);
/* Replaces elements of a value where `inside`, bool with its first `axes` axes, is false; the padding of a
 * value whose axis 0 is the rows of a batch; the elements of empty sequences by 0. */
const char *weft__ex_where(graph *, const char *inside, int axes, const value *, weft_dtype, double fill);
const char *weft__ex_filled(graph *, batch *, const value *, weft_dtype, double fill);
const char *weft__ex_not_empty(graph *, const batch *, const value *, weft_dtype);
/* Replaces the rows of a batch by an axis of its sequences. */
void weft__ex_per_sequence(value *, const batch *);
/* Gathers along the time: row t of a sequence becomes row index[t, batch]. */
const char *weft__ex_gather_time(graph *, const value *, const char *index);

/* ---- translators ---- */
/* Translates the current call. y has the axes of input 0. Returns the name of result 0, or NULL if it has set
 * the results itself. */
typedef const char *translator(graph *x, const weft_call *c, value *y);
#define UNUSED __attribute__((unused))
#define TRANSLATOR(name) \
    static const char *name(graph *x UNUSED, const weft_call *c UNUSED, value *y UNUSED)
/* Each file export_*.c has a table of operators; the last has a NULL name. along: their attributes are a
 * weft__along, so x->axis, at and tokens are set. weft__ex_recurrent: the cells of core/cells.def. */
typedef struct translation { const char *name; translator *run; bool along; } translation;
extern const translation weft__ex_pointwise[], weft__ex_shapes[], weft__ex_layers[];
translator weft__ex_recurrent;
bool weft__ex_is_recurrent(const weft_call *);
/* export_pointwise.c: f(name) for a function of pointwise.def. export_shapes.c: does it read input i? */
const char *weft__ex_function(graph *, const char *, int f, double p, double q);
bool weft__ex_reads(const weft_call *, int i);

/* ---- short names ---- */
static inline const weft_call *call_of(const graph *x, int64_t e) { return x->w->tape->entry[e].call; }
static inline const weft_call *maker_of(const weft_tensor *t) /* NULL: no operator */
{
    const uint64_t entry = weft__node_of(t)->entry_number;
    return entry ? t->w->tape->entry[entry - 1].call : NULL;
}
static inline const value *input(graph *x, int i) { return weft__ex_value(x, x->call->x[i]); }
static inline batch *batch_of(graph *x, const weft_tensor *t)
{
    return t->f.batch ? weft__ex_batch(x, t->f.batch) : NULL;
}
static inline value like(const value *v, const char *name)
{
    value y = *v;
    y.name = name;
    y.last = y.count = NULL;
    y.inverse = 0;
    return y;
}
static inline int axes_of(const value *v, int i) { return v->first[i + 1] - v->first[i]; }
static inline bool same_axes(const extent *a, const extent *b, int n)
{
    while (n > 0 && a[n - 1].symbol == b[n - 1].symbol && (a[n - 1].symbol || a[n - 1].n == b[n - 1].n))
        n--;
    return n == 0;
}
#endif
