/* export.h - the ONNX graph that grows while the exporter follows the tape.
 *
 * A value is the ONNX tensor of a weft tensor. Each axis of the weft tensor is a group of ONNX axes, usually
 * of one. The rows of a ragged tensor are the group [time, batch], also after weft_plain. A dynamic axis has
 * a symbol; its extent in the traced step is known too, so a reshape finds the groups of its result. */
#ifndef WEFT_ONNX_EXPORT_H
#define WEFT_ONNX_EXPORT_H
#include "autograd/attributes.h"
#include "autograd/inspect.h"
#include "io/onnx/api_onnx.h"
#include "io/onnx/protobuf_write.h"

/* n: extent in the traced step. symbol: 1 + its number, or 0 for a fixed extent. rows: of the first axis of
 * the rows of a batch, their number in the traced step; otherwise 0. joined: a further axis of these rows. */
typedef struct weft__dim { int64_t n, rows; int symbol; bool joined; } weft__dim;
enum { WEFT__EXPORT_RANK = 12, WEFT__EXPORT_SYMBOLS = 256, WEFT__EXPORT_BATCHES = 128 };

/* name: NULL if its operator is refused. first: first ONNX axis of each axis, and at the end `axes`. last: of
 * a result of a recurrent layer, the last state [1, batch, width]. count: of a sum along dynamic axes, the
 * number of terms as a float, `counted` in the traced step. */
typedef struct weft__value {
    const char *name, *last, *count;
    int64_t counted;
    bool negative;                               /* ids may be -1, which looks up zeros */
    int axes, first[WEFT_RANK + 1]; weft__dim dim[WEFT__EXPORT_RANK];
} weft__value;

/* n: extent in the traced step. source, axis: a tensor with this extent, and its axis; NULL so far for the
 * time of a batch with these lengths. size: the extent as int64 [1], or NULL so far. */
typedef struct weft__symbol {
    char name[24]; int64_t n; const char *source, *lengths, *size; int axis;
} weft__symbol;

/* A batch of the step. rows: the group of its rows, [time, batch]; for pairs [time of k, time of q, batch].
 * lengths: int64, with axes that broadcast to those after the time. NULL: each length is the extent of the
 * time. mask: bool like the rows. position: int64 [time, 1 ..]. Both NULL so far. a: for a joined batch the
 * first, for pairs that of the queries. */
typedef struct weft__export_batch {
    const weft_batch *b, *a;
    int axes; weft__dim rows[4];
    const char *lengths, *lengths32, *mask, *position;
    bool pairs;
} weft__export_batch;

typedef struct weft__export {
    weft *w;
    const weft_onnx_export_opts *opts;
    weft__listing listing;
    bool *needed;                                /* [entries] */
    const weft_call **views, **leaf_views; /* [entries], [leaves]: view that makes the first axes a batch */
    weft__value **result, *leaf;                 /* [entries][results], [leaves]; result NULL so far */
    weft__proto nodes, initializers, inputs, outputs;
    weft__symbol symbol[WEFT__EXPORT_SYMBOLS]; int symbols;
    weft__export_batch batch[WEFT__EXPORT_BATCHES]; int batches;
    struct weft__export_constant { struct weft__export_constant *next; const char *name; int type, rank;
                                 size_t n; unsigned char bytes[]; } *constants;
    struct weft__export_piece { struct weft__export_piece *next; } *memory;
    const char **used; int used_n, used_room;    /* names of inputs, outputs and parameters */
    int names, given, lengths;                   /* counters of names */
    int64_t entry;                               /* the current one */
    char refused[2048]; weft_status status;      /* reasons; the first failure */
    size_t root;                                 /* bytes of the root's name that parameters leave out */
} weft__export;

/* ---- export_graph.c ---- */
void *weft__export_memory(weft__export *, size_t bytes);       /* zeroed; NULL: no memory, and status is set */
const char *weft__export_name_of(weft__export *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* An attribute; type: i, f, s, I (ints), S (one text in a list, written `n` times). A list ends with {0}. */
typedef struct weft__export_attribute {
    const char *name; char type; int n; int64_t i; double f; const char *s; const int64_t *ints;
} weft__export_attribute;
/* Adds a node with one result, or with `results` ones into out. NULL as an input: left out. A NULL name of an
 * input that a refused operator made cannot occur. Returns the name of the first result. */
const char *weft__export_node(weft__export *, const char *op, const char *const *in, int n,
                            const weft__export_attribute *, const char **out, int results);
#define NODE_OUT(x, op, attributes, out, results, ...)                                                    \
    weft__export_node(x, op, (const char *const[]){ __VA_ARGS__ },                                           \
                    (int)(sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *)), attributes, out, \
                    results)
#define NODE_WITH(x, op, attributes, ...) NODE_OUT(x, op, attributes, NULL, 1, __VA_ARGS__)
#define NODE(x, op, ...)                  NODE_WITH(x, op, NULL, __VA_ARGS__)
#define ATTRIBUTES(...)                   ((const weft__export_attribute[]){ __VA_ARGS__, { 0 } })
#define INT(its_name, value)              { its_name, 'i', .i = value }
#define REAL(its_name, value)             { its_name, 'f', .f = value }
#define TEXT(its_name, value)             { its_name, 's', .s = value }
/* Constants: int64 [n], int64 [], float []. Equal ones are one initializer. */
const char *weft__export_ints(weft__export *, int n, const int64_t *);
#define INTS(x, ...)                                                                 \
    weft__export_ints(x, (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), \
                    (int64_t[]){ __VA_ARGS__ })
const char *weft__export_int(weft__export *, int64_t);
const char *weft__export_number_of(weft__export *, double);
enum { WEFT__EXPORT_FLOAT = 1, WEFT__EXPORT_INT64 = 7 };
/* Adds an initializer; a NULL name makes one. Returns the name. */
const char *weft__export_initializer(weft__export *, const char *name, int type, int rank, const int64_t *shape,
                                   const void *, size_t bytes);
const char *weft__export_transpose(weft__export *, const char *, int axes, const int *order);
const char *weft__export_unsqueeze(weft__export *, const char *, int axis);
const char *weft__export_squeeze(weft__export *, const char *, int axis);
const char *weft__export_cast(weft__export *, const char *, int type);
/* Part from .. to of an axis. */
const char *weft__export_slice(weft__export *, const char *, int axis, int64_t from, int64_t to);
/* Repeats a tensor with axes of extent 1 to these extents. */
const char *weft__export_expand(weft__export *, const char *, int axes, const weft__dim *);
/* Returns the extent as int64 [1]. */
const char *weft__export_size(weft__export *, weft__dim);
/* Returns a new dynamic axis "time", "time2", ..; the axis "batch" for that number of sequences. */
weft__dim weft__export_symbol(weft__export *, const char *name, int64_t n, const char *source, int axis);
weft__dim weft__export_batch_axis(weft__export *, int64_t n, const char *source, int axis);
void weft__export_add_value(weft__export *, weft__proto *list, int field, const char *name, int type,
                          const weft__value *);
/* Reserves a name; false, and a failure, if it is used or empty. */
bool weft__export_reserve(weft__export *, const char *name);
void weft__export_fail(weft__export *, weft_status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- export.c ---- */
/* Returns the value of a tensor; its name is NULL if it has none. */
const weft__value *weft__export_value(weft__export *, const weft_tensor *);
void weft__export_set(weft__export *, const weft_tensor *, weft__value);
weft__value *weft__export_place(weft__export *, const weft_tensor *);   /* also if it has no value yet */
bool weft__export_is_own(const weft_call *);      /* an operator of the program? */
/* ---- export_inputs.c ---- */
/* Makes the value of a tensor that no operator made. */
void weft__export_make_leaf(weft__export *, const weft_tensor *, weft__value *);
/* Called for needed entries, the last first: notes for plain inputs that a later view makes their first axes
 * sequences and steps. */
void weft__export_trace_steps(weft__export *, int64_t entry);
/* Reads a tensor's ints; NULL after a failure. */
int32_t *weft__export_read_ints(weft__export *, const weft_tensor *);
/* ---- export_values.c ---- */
/* Returns a value with the axes of another one. */
weft__value weft__export_like(const weft__value *, const char *name);
/* Removes the group of axis `at`, or inserts there a group of n axes. */
void weft__export_remove(weft__value *, int rank, int at);
void weft__export_insert(weft__value *, int rank, int at, int n, const weft__dim *);
/* Refuses the operator for that reason. Returns false. */
bool weft__export_refuse(weft__export *, const weft_call *, const char *reason);
/* Finds the axes of n operands that broadcast. Axes from the right are one group each. */
bool weft__export_broadcast(weft__export *, const weft_call *, const weft__value *const *, const int *rank, int n,
                          weft__value *out);
/* Gives axes `from` .. of a value of that rank the extents `size` [to_rank]. */
bool weft__export_reshape(weft__export *, const weft_call *, const weft__value *, int rank, int from, int to_rank,
                        const int64_t *size, weft__value *out);
/* Returns the batch, or NULL. root: adds it with an input for its lengths. equal: adds it with all lengths
 * equal to that extent. */
weft__export_batch *weft__export_batch_of(weft__export *, const weft_batch *);
weft__export_batch *weft__export_root(weft__export *, const weft_batch *);
weft__export_batch *weft__export_equal(weft__export *, const weft_batch *, weft__dim time, weft__dim batch);
weft__export_batch *weft__export_new_batch(weft__export *, const weft_batch *, int axes, const weft__dim *rows);
/* bool like the rows, int64 [time, 1 ..], int64 lengths. mask: NULL if all rows are data. */
const char *weft__export_mask(weft__export *, weft__export_batch *);
const char *weft__export_position(weft__export *, weft__export_batch *);
const char *weft__export_lengths(weft__export *, weft__export_batch *);
/* Replaces the padding of a value whose axis 0 is the rows of a batch. */
const char *weft__export_filled(weft__export *, weft__export_batch *, const weft__value *, const char *fill);
/* Gathers along the time: row t of a sequence becomes row index[t, batch]. axes: of the value. */
const char *weft__export_gather_time(weft__export *, const char *, const char *index, const weft__value *);

/* ---- translators: each translates a call, or refuses it ---- */
typedef bool weft__export_translator(weft__export *, const weft_call *);
/* Each file export_*.c has a table of operators; the last has a NULL name. weft__export_recurrent translates
 * the cells of core/cells.def. */
typedef struct weft__export_entry { const char *name; weft__export_translator *run; } weft__export_entry;
extern const weft__export_entry weft__export_pointwise[], weft__export_shapes[], weft__export_axes[],
    weft__export_layers[], weft__export_rows[];
weft__export_translator weft__export_recurrent;
bool weft__export_is_recurrent(const weft_call *);

/* Returns the value of input i; the batch of a ragged tensor, or NULL. */
static inline const weft__value *weft__export_in(weft__export *x, const weft_call *c, int i)
{
    return weft__export_value(x, c->x[i]);
}
static inline weft__export_batch *weft__export_of(weft__export *x, const weft_tensor *t)
{
    return t->f.batch ? weft__export_batch_of(x, t->f.batch) : NULL;
}
/* Sets result 0 to that name, with the axes of v. Returns true. */
static inline bool weft__export_done(weft__export *x, const weft_call *c, const weft__value *v, const char *name)
{
    weft__export_set(x, c->y[0], weft__export_like(v, name));
    return true;
}
/* Returns the ONNX axis of an axis, or -1, with a refusal, if that is several. export_values.c */
int weft__export_axis(weft__export *, const weft_call *, const weft__value *, int axis);
/* export_pointwise.c: f(name) for a function of pointwise.def. */
const char *weft__export_function(weft__export *, const char *, int f, double p, double q);
/* export_rows.c: Returns whether the translation reads input i. */
bool weft__export_reads(const weft_call *, int i);
#endif
