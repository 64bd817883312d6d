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
enum { WEFT__ONNX_RANK = 12, WEFT__ONNX_SYMBOLS = 256, WEFT__ONNX_BATCHES = 128 };

/* name: NULL if its operator is refused. first: first ONNX axis of each axis, and at the end `axes`. last: of
 * a result of a recurrent layer, the last state [1, batch, width]. count: of a sum along dynamic axes, the
 * number of terms as a float, `counted` in the traced step. */
typedef struct weft__value {
    const char *name, *last, *count;
    int64_t counted;
    bool negative;                               /* ids may be -1, which looks up zeros */
    int axes, first[WEFT_RANK + 1]; weft__dim dim[WEFT__ONNX_RANK];
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
typedef struct weft__onnx_batch {
    const weft_batch *b, *a;
    int axes; weft__dim rows[4];
    const char *lengths, *lengths32, *mask, *position;
    bool pairs;
} weft__onnx_batch;

typedef struct weft__onnx {
    weft *w;
    const weft_onnx_export_opts *opts;
    weft__listing listing;
    bool *needed;                                /* [entries] */
    const weft_call **views, **leaf_views; /* [entries], [leaves]: view that makes the first axes a batch */
    weft__value **result, *leaf;                 /* [entries][results], [leaves]; result NULL so far */
    weft__proto nodes, initializers, inputs, outputs;
    weft__symbol symbol[WEFT__ONNX_SYMBOLS]; int symbols;
    weft__onnx_batch batch[WEFT__ONNX_BATCHES]; int batches;
    struct weft__onnx_constant { struct weft__onnx_constant *next; const char *name; int type, rank;
                                 size_t n; unsigned char bytes[]; } *constants;
    struct weft__onnx_piece { struct weft__onnx_piece *next; } *memory;
    const char **used; int used_n, used_room;    /* names of inputs, outputs and parameters */
    int names, given, lengths;                   /* counters of names */
    int64_t entry;                               /* the current one */
    char refused[2048]; weft_status status;      /* reasons; the first failure */
    size_t root;                                 /* bytes of the root's name that parameters leave out */
} weft__onnx;

/* ---- export_graph.c ---- */
void *weft__onnx_memory(weft__onnx *, size_t bytes);       /* zeroed; NULL: no memory, and status is set */
const char *weft__onnx_text(weft__onnx *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* An attribute; type: i, f, s, I (ints), S (one text in a list, written `n` times). A list ends with {0}. */
typedef struct weft__onnx_attribute {
    const char *name; char type; int n; int64_t i; double f; const char *s; const int64_t *ints;
} weft__onnx_attribute;
/* Adds a node with one result, or with `results` ones into out. NULL as an input: left out. A NULL name of an
 * input that a refused operator made cannot occur. Returns the name of the first result. */
const char *weft__onnx_node(weft__onnx *, const char *op, const char *const *in, int n,
                            const weft__onnx_attribute *, const char **out, int results);
#define NODE_OUT(x, op, attributes, out, results, ...)                                                    \
    weft__onnx_node(x, op, (const char *const[]){ __VA_ARGS__ },                                           \
                    (int)(sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *)), attributes, out, \
                    results)
#define NODE_WITH(x, op, attributes, ...) NODE_OUT(x, op, attributes, NULL, 1, __VA_ARGS__)
#define NODE(x, op, ...)                  NODE_WITH(x, op, NULL, __VA_ARGS__)
#define ATTRIBUTES(...)                   ((const weft__onnx_attribute[]){ __VA_ARGS__, { 0 } })
#define INT(its_name, value)              { its_name, 'i', .i = value }
#define REAL(its_name, value)             { its_name, 'f', .f = value }
#define TEXT(its_name, value)             { its_name, 's', .s = value }
/* Constants: int64 [n], int64 [], float []. Equal ones are one initializer. */
const char *weft__onnx_ints(weft__onnx *, int n, const int64_t *);
#define INTS(x, ...)                                                                 \
    weft__onnx_ints(x, (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), \
                    (int64_t[]){ __VA_ARGS__ })
const char *weft__onnx_int(weft__onnx *, int64_t);
const char *weft__onnx_number(weft__onnx *, double);
enum { WEFT__ONNX_FLOAT = 1, WEFT__ONNX_INT64 = 7 };
/* Adds an initializer; a NULL name makes one. Returns the name. */
const char *weft__onnx_initializer(weft__onnx *, const char *name, int type, int rank, const int64_t *shape,
                                   const void *, size_t bytes);
const char *weft__onnx_transpose(weft__onnx *, const char *, int axes, const int *order);
const char *weft__onnx_unsqueeze(weft__onnx *, const char *, int axis);
const char *weft__onnx_squeeze(weft__onnx *, const char *, int axis);
const char *weft__onnx_cast(weft__onnx *, const char *, int type);
/* Part from .. to of an axis. */
const char *weft__onnx_slice(weft__onnx *, const char *, int axis, int64_t from, int64_t to);
/* Repeats a tensor with axes of extent 1 to these extents. */
const char *weft__onnx_expand(weft__onnx *, const char *, int axes, const weft__dim *);
/* Returns the extent as int64 [1]. */
const char *weft__onnx_size(weft__onnx *, weft__dim);
/* Returns a new dynamic axis "time", "time2", ..; the axis "batch" for that number of sequences. */
weft__dim weft__onnx_symbol(weft__onnx *, const char *name, int64_t n, const char *source, int axis);
weft__dim weft__onnx_batch_axis(weft__onnx *, int64_t n, const char *source, int axis);
void weft__onnx_add_value(weft__onnx *, weft__proto *list, int field, const char *name, int type,
                          const weft__value *);
/* Reserves a name; false, and a failure, if it is used or empty. */
bool weft__onnx_reserve(weft__onnx *, const char *name);
void weft__onnx_fail(weft__onnx *, weft_status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- export.c ---- */
/* Returns the value of a tensor; its name is NULL if it has none. */
const weft__value *weft__onnx_value(weft__onnx *, const weft_tensor *);
void weft__onnx_set(weft__onnx *, const weft_tensor *, weft__value);
weft__value *weft__onnx_place(weft__onnx *, const weft_tensor *);   /* also if it has no value yet */
bool weft__onnx_is_own(const weft_call *);      /* an operator of the program? */
/* ---- export_inputs.c ---- */
/* Makes the value of a tensor that no operator made. */
void weft__onnx_make_leaf(weft__onnx *, const weft_tensor *, weft__value *);
/* Called for needed entries, the last first: notes for plain inputs that a later view makes their first axes
 * sequences and steps. */
void weft__onnx_trace_steps(weft__onnx *, int64_t entry);
/* Reads a tensor's ints; NULL after a failure. */
int32_t *weft__onnx_read_ints(weft__onnx *, const weft_tensor *);
/* ---- export_values.c ---- */
/* Returns a value with the axes of another one. */
weft__value weft__onnx_like(const weft__value *, const char *name);
/* Removes the group of axis `at`, or inserts there a group of n axes. */
void weft__onnx_remove(weft__value *, int rank, int at);
void weft__onnx_insert(weft__value *, int rank, int at, int n, const weft__dim *);
/* Refuses the operator for that reason. Returns false. */
bool weft__onnx_refuse(weft__onnx *, const weft_call *, const char *reason);
/* Finds the axes of n operands that broadcast. Axes from the right are one group each. */
bool weft__onnx_broadcast(weft__onnx *, const weft_call *, const weft__value *const *, const int *rank, int n,
                          weft__value *out);
/* Gives axes `from` .. of a value of that rank the extents `size` [to_rank]. */
bool weft__onnx_reshape(weft__onnx *, const weft_call *, const weft__value *, int rank, int from, int to_rank,
                        const int64_t *size, weft__value *out);
/* Returns the batch, or NULL. root: adds it with an input for its lengths. equal: adds it with all lengths
 * equal to that extent. */
weft__onnx_batch *weft__onnx_batch_of(weft__onnx *, const weft_batch *);
weft__onnx_batch *weft__onnx_root(weft__onnx *, const weft_batch *);
weft__onnx_batch *weft__onnx_equal(weft__onnx *, const weft_batch *, weft__dim time, weft__dim batch);
weft__onnx_batch *weft__onnx_new_batch(weft__onnx *, const weft_batch *, int axes, const weft__dim *rows);
/* bool like the rows, int64 [time, 1 ..], int64 lengths. mask: NULL if all rows are data. */
const char *weft__onnx_mask(weft__onnx *, weft__onnx_batch *);
const char *weft__onnx_position(weft__onnx *, weft__onnx_batch *);
const char *weft__onnx_lengths(weft__onnx *, weft__onnx_batch *);
/* Replaces the padding of a value whose axis 0 is the rows of a batch. */
const char *weft__onnx_filled(weft__onnx *, weft__onnx_batch *, const weft__value *, const char *fill);
/* Gathers along the time: row t of a sequence becomes row index[t, batch]. axes: of the value. */
const char *weft__onnx_gather_time(weft__onnx *, const char *, const char *index, const weft__value *);

/* ---- translators: each translates a call, or refuses it ---- */
typedef bool weft__onnx_translator(weft__onnx *, const weft_call *);
/* Each file export_*.c has a table of operators; the last has a NULL name. weft__onnx_recurrent translates
 * the cells of core/cells.def. */
typedef struct weft__onnx_entry { const char *name; weft__onnx_translator *run; } weft__onnx_entry;
extern const weft__onnx_entry weft__onnx_pointwise[], weft__onnx_shapes[], weft__onnx_axes[],
    weft__onnx_layers[], weft__onnx_rows[];
weft__onnx_translator weft__onnx_recurrent;
bool weft__onnx_is_recurrent(const weft_call *);

/* Returns the value of input i; the batch of a ragged tensor, or NULL. */
static inline const weft__value *weft__onnx_in(weft__onnx *x, const weft_call *c, int i)
{
    return weft__onnx_value(x, c->x[i]);
}
static inline weft__onnx_batch *weft__onnx_of(weft__onnx *x, const weft_tensor *t)
{
    return t->f.batch ? weft__onnx_batch_of(x, t->f.batch) : NULL;
}
/* Sets result 0 to that name, with the axes of v. Returns true. */
static inline bool weft__onnx_done(weft__onnx *x, const weft_call *c, const weft__value *v, const char *name)
{
    weft__onnx_set(x, c->y[0], weft__onnx_like(v, name));
    return true;
}
/* Returns the ONNX axis of an axis, or -1, with a refusal, if that is several. export_values.c */
int weft__onnx_axis(weft__onnx *, const weft_call *, const weft__value *, int axis);
/* export_pointwise.c: f(name) for a function of pointwise.def. */
const char *weft__onnx_function(weft__onnx *, const char *, int f, double p, double q);
/* export_rows.c: Returns whether the translation reads input i. */
bool weft__onnx_reads(const weft_call *, int i);
#endif
