/* autograd.h - what the operators' own files share. */
#ifndef WEFT_AUTOGRAD_H
#define WEFT_AUTOGRAD_H
#include "autograd/api_op.h"
#include "autograd/tape.h"

/* call.c: all results; agree, if not NULL, brings the inputs to one layout first; host: raw functions see
 * host memory, see host.c */
typedef struct weft__inputs {
    weft_tensor *const *x;
    int n;
    const void *attributes;
    size_t bytes;
} weft__inputs;
const weft_call *weft__call(weft *, const weft_op *, const weft__inputs *, bool agree(weft_call *),
                            bool host);
/* for `shape`: y as the attribute, a weft__form, says */
bool         weft__form_shape(weft_call *);
/* call.c: weft__callback_begin around a function of a program's own operator; around the library's own
 * functions, which call no program, it changes nothing */
weft__callback weft__own_begin(weft *, const weft_call *, const char *kind);
/* apply.c: all results */
const weft_call *weft__apply(const weft_op *, weft_tensor *const *x, int n, const void *attributes,
                             size_t bytes);
/* arrange.c: the same numbers, another form */
weft_tensor *weft__view(weft_tensor *, const weft__form *);
/* the same again, an entry of its own on the tape */
weft_tensor *weft__view_anew(weft_tensor *);
/* to a layout of its batch; a view if it lies so */
weft_tensor *weft__arranged(weft_tensor *, const weft__form *, real fill);
/* a ragged tensor to the layout of another one of its batch; itself if it lies so or the context failed */
weft_tensor *weft__arranged_as(weft_tensor *, const weft__form *like);
/* refuse.c: the context in which a function of these fails: of the first that has not failed */
weft        *weft__context(weft_tensor *const *x, int64_t n);
/* the inert tensor of its context, of no context for NULL */
weft_tensor *weft__inert_beside(const weft_tensor *x);
/* row_order.c: notes for each plain result in which order its rows are stored; called by a shape function:
 * no result keeps the rows of an input in their places; result 0 has those of input i; plain rows under the
 * form of a ragged tensor, in whose order they must be stored */
void         weft__carry_order(weft_call *);
/* for `shape`: whether the plain inputs with that many rows, of that rank or more, are stored in one order as
 * far as is known; else it refuses */
bool         weft__rows_agree(const weft_call *, int64_t rows, int least);
void         weft__rows_moved(weft_call *);
void         weft__rows_as(weft_call *, int i);
weft_tensor *weft__ragged_as(weft_tensor *, const weft__form *like);
/* ragged.c */
/* plain [n, T, F], or [n, F] with T = 1, as n sequences of T tokens: a view */
weft_tensor *weft__as_batch(weft_tensor *x, const char *function, int64_t n, int64_t T);
/* versions.c: whether the parameters and buffers that the entry's backward reads are what its call read;
 * else the context fails */
bool         weft__as_it_was(const weft__entry *);
/* backward_check.c: whether weft_backward may begin at t; whether what is to be trained has led to it
 * (after the walk's scan). Else the context fails */
bool         weft__is_loss(weft_tensor *t);
/* for messages about a tensor that no entry of the tape has made */
const char  *weft__why_not_on_tape(const weft_tensor *t);
bool         weft__reaches_parameters(const weft_tensor *loss);
/* host.c: around a raw function of the call; false and a sticky error if there is no memory. What it sees of
 * a tensor, and of a gradient of that form: NULL and a sticky error where it may not look */
bool         weft__work_begin(weft *, weft__work *, const weft_call *, bool back);
void         weft__work_end(weft *, weft__work *);
void        *weft__seen(const weft_tensor *, const char *function);
void        *weft__gradient_seen(const weft_call *, const weft_tensor *, void *gradient, bool fetched,
                                 bool back);
/* backward.c */
/* blocks.c: copies of blocks that wait, those before a block first if it adds where they go; n zeros among
 * them; until they are run */
typedef struct weft__blocks { int64_t n; weft__block_copy of[16]; } weft__blocks;
void         weft__add_block(const weft_call *, weft__blocks *, weft__block_copy);
void         weft__add_zeros(const weft_call *, weft__blocks *, real *to, int64_t n);
void         weft__run_blocks(const weft_call *, weft__blocks *);
/* accumulate.c: where a kernel adds the gradient of x[i]; NULL: not needed. If nothing came before, it is
 * zeros when the blocks are run */
real        *weft__dx_added(const weft_call *, int i, weft__blocks *zeros);
/* as weft_op_dx, for a kernel that computes each number in full, rounds it, and then adds it once: a sum of
 * products that is rounded as a whole, but not a function of one number, which a GPU would fuse with the
 * addition. So on a GPU it may go onto what a ragged tensor has at once, where else it is computed apart and
 * then added: the bits are the same */
real        *weft__dx_whole(const weft_call *, int i, bool *add);
/* weft_op_dy, to be overwritten, where no one else will look at it; else NULL */
real        *weft__dy_spent(const weft_call *, int k);
/* origin.c: y's rows are a table's, by ids; are those of x, arranged; that table and those ids, if it is so
 * and the table has not changed since, else NULL; whether this walk wants the gradient of such rows, or of
 * what they were arranged from */
void         weft__looked_up(weft_tensor *y, weft_tensor *table, weft_tensor *ids);
void         weft__looked_up_as(weft_tensor *y, const weft_tensor *x);
weft_tensor *weft__table_of(const weft_tensor *x, weft_tensor **ids);
bool         weft__asked_for(const weft_tensor *x);
/* nan.c, if w->check: what a call has made, or only moved; and what it has handed to its inputs on the way
 * back */
void         weft__check_results(weft_call *, bool moves), weft__check_gradients(weft_call *);
/* prints a line, once, if a real does not hold one of these ints */
void         weft__check_exact(const weft_tensor *ints);
/* linear.c: f(x weight^T + bias), bias or NULL; f one of those whose derivative a value tells, or
 * WEFT__UNARIES, none; a weight [G, O, K] with a bias [G, O]: each group of x [.., G, K] by its own.
 * a sigmoid(b) of x = [a, b] */
weft_tensor *weft__linear(weft_tensor *x, weft_tensor *weight, weft_tensor *bias, int f, real p);
/* by some rows of the weight, and as many numbers of the bias, only */
weft_tensor *weft__linear_part(weft_tensor *x, weft_tensor *weight, weft_tensor *bias, int64_t from,
                               int64_t rows);
weft_tensor *weft__glu(weft_tensor *x);
/* concat_lists.c: y[l], weft_concat(list[l], n, 0) of tensors of one shape, of up to four lists at once */
void         weft__concat_lists(weft_tensor *const *const *list, int lists, int n, weft_tensor **y);
/* norm.c: layer norm of glu(gate) + skip, of a gate [.., 2 F] that fits a skip [.., F]; gain and shift [F],
 * or [G, F] of [.., G, F] */
bool         weft__gate_fits(const weft_tensor *gate, const weft_tensor *skip);
weft_tensor *weft__gate_norm_of(weft_tensor *gate, weft_tensor *skip, weft_tensor *gain, weft_tensor *shift,
                                double eps);
/* over the last axis of [.., G, F], gain and shift [G, F] */
weft_tensor *weft__layer_norm_of_groups(weft_tensor *x, weft_tensor *gain, weft_tensor *shift, double eps);
/* dropout.c */
/* of the next mask of that name in this step */
uint64_t     weft__mask_key(weft *, const char *name);
/* Inside a shard masks want the sequences' ids; false, and the context fails, if x's are not known. */
bool         weft__ids_are_known(const weft_tensor *x, const char *function);
/* [rows] of 0 and 1 / (1 - p): a function of (seed, name, number of the step, row), so the same at every
 * call in a step */
weft_tensor *weft__row_factors(weft *, int64_t rows, double p, const char *name);
/* pointwise.c */
/* a function of pointwise.def with one parameter or none */
weft_tensor *weft__unary(int f, weft_tensor *x, real p);
const char  *weft__unary_name(int f);
/* "slope=0.1" of those that have one, else "" */
void         weft__describe_parameter(int f, real p, char *text, size_t size);
/* A gradient g times b, or divided by b: 0 where g is 0, also where b is infinite, NaN or 0. */
weft_tensor *weft__given_times(weft_tensor *g, weft_tensor *b),
    *weft__given_over(weft_tensor *g, weft_tensor *b);
/* The product of two gradients: 0 where one of them is 0. */
weft_tensor *weft__cross(weft_tensor *g, weft_tensor *h);
/* 1 where a > b, 1/2 where equal, else 0 */
weft_tensor *weft__share(weft_tensor *a, weft_tensor *b);
/* broadcast.c */
/* y and, merged, the steps of the n operands */
bool         weft__broadcast(weft__grid *, const weft__form *const *x, int n, weft__form *y);
/* transposes of each other; NULL stays NULL */
weft_tensor *weft__sum_to(weft_tensor *, const weft__form *);
weft_tensor *weft__spread_to(weft_tensor *, const weft__form *);
/* y = x's elements, reals or ints, by the steps of a grid that begins at element `first` */
void         weft__run_spread(weft_call *, const weft__grid *, int64_t first);
/* elements without the pads that a layout may have */
int64_t      weft__numbers(const weft__form *);
/* ragged.c: fail, and say which sequence, if there are not n lengths of 0 .. total each; if x is no plain [n,
 * T, ..] of such lengths; if what lies beside them is not 0, too, which waits for the device */
bool         weft__lengths_fit(weft *, const weft_lengths *, int64_t n, int64_t total, const char *function);
bool         weft__is_padded(weft_tensor *x, const weft_lengths *, weft_align, const char *function);
/* join.c: weft_pairs of the keys that each query sees under that weft_causal; and numbers of such pairs as
 * numbers of all pairs, with 0 where a key is not seen */
void         weft__pairs_seen(weft_tensor *q, weft_tensor *k, int causal, weft_tensor **q_of_pair,
                              weft_tensor **k_of_pair);
weft_tensor *weft__all_pairs(weft_tensor *seen, const weft_tensor *q, const weft_tensor *k, int causal);
/* reduce.c: an axis, or the tokens of each sequence (axis 0 of a ragged tensor, if `tokens`) */
typedef struct weft__along { weft__form whole; int axis; bool tokens, flag; } weft__along;
/* resolves a negative one; fails and false if there is none */
bool         weft__axis(const weft_tensor *x, int *axis, const char *function);
/* the same, and that it is not the rows of a ragged tensor, of which there are two readings */
bool         weft__axis_not_rows(weft_tensor *x, int *axis, const char *function);
weft__along  weft__along_axis(const weft_tensor *x, int axis, bool tokens);
/* the attribute, in the layout in which the input came */
weft__along  weft__along_now(const weft_call *);
weft__segments weft__segments_of(const weft__along *);
/* for `describe` where they are a weft__along */
void         weft__describe_along(const weft_call *, char *text, size_t size);
/* y = f of the rows of each run, ints; f: add, minimum, maximum */
void         weft__run_segment_ints(weft_call *, int f);
/* without the axis; of tokens [sequences, ..] */
weft__form   weft__less(const weft__along *);
/* extreme.c */
weft_tensor *weft__pool_max(weft_tensor *);
weft_tensor *weft__reduce(weft_tensor *x, const weft__along *),
    *weft__expand(weft_tensor *y, const weft__along *);
weft_tensor *weft__no_third(const weft_call *);
/* Errors whose text ends as printf says: weft_op_refuse; a function's own, of x or of several tensors that
 * are all needed, and the inert tensor */
bool         weft__refuse(const weft_call *, const char *format, ...) __attribute__((format(printf, 2, 3)));
weft_tensor *weft__failed(weft_tensor *x, weft_status, const char *function, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
weft_tensor *weft__failed_of(weft_tensor *const *x, int64_t n, weft_status, const char *function,
                             const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Short words for raw functions: the device, and the numbers of x and y. */
static inline weft__device *dev(const weft_call *c)         { return &c->y[0]->w->dev; }
static inline real    *X(const weft_call *c, int i)         { return c->x[i]->data; }
static inline int32_t *I(const weft_call *c, int i)         { return (int32_t *)(void *)c->x[i]->data; }
static inline real    *Y(const weft_call *c, int k)         { return c->y[k]->data; }
static inline int64_t  count(const weft_tensor *t)          { return weft__elements(&t->f); }
static inline int64_t width(const weft_tensor *t) { return t->f.rank ? t->f.size[t->f.rank - 1] : 1; }
static inline bool     is_real(const weft_call *c, int i)   { return c->x[i]->f.type == WEFT_REAL; }
#define RUN(c, kernel, ...) (dev(c)->k->kernel(dev(c), __VA_ARGS__))
#define LIST(...) \
    (weft_tensor *[]){ __VA_ARGS__ }, (int)(sizeof((weft_tensor *[]){ __VA_ARGS__ }) / sizeof(weft_tensor *))
/* of the library's own records, whose raw functions start kernels */
#define APPLY(op, ...) (weft__apply(op, LIST(__VA_ARGS__), NULL, 0)->y[0])
#define APPLY_WITH(op, attributes, ...) \
    (weft__apply(op, LIST(__VA_ARGS__), &(attributes), sizeof(attributes))->y[0])
#endif
