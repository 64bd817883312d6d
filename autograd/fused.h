/* fused.h - private functions of autograd for nn, rnn, io and parallel: operators that several layers use,
 * layouts, and helpers for the functions of an operator. */
#ifndef WEFT_FUSED_H
#define WEFT_FUSED_H
#include "autograd/tape.h"
#include "core/ragged.h"

/* ---- applying an operator (apply.c); the call has all results ---- */
const weft_call *weft__apply(const weft_op *, weft_tensor *const *x, int n, const void *attributes,
                             size_t bytes);
#define LIST(...) \
    (weft_tensor *[]){ __VA_ARGS__ }, (int)(sizeof((weft_tensor *[]){ __VA_ARGS__ }) / sizeof(weft_tensor *))
/* Apply a record of the library, whose raw functions start kernels. */
#define APPLY(op, ...) (weft__apply(op, LIST(__VA_ARGS__), NULL, 0)->y[0])
#define APPLY_WITH(op, attributes, ...) \
    (weft__apply(op, LIST(__VA_ARGS__), &(attributes), sizeof(attributes))->y[0])

/* ---- short names for raw functions: the device, and the numbers of x and y ---- */
static inline weft__device *dev(const weft_call *c)         { return &c->y[0]->w->dev; }
static inline real    *X(const weft_call *c, int i)         { return c->x[i]->data; }
static inline int32_t *I(const weft_call *c, int i)         { return (int32_t *)(void *)c->x[i]->data; }
static inline real    *Y(const weft_call *c, int k)         { return c->y[k]->data; }
static inline int32_t *YI(const weft_call *c, int k)        { return (int32_t *)(void *)c->y[k]->data; }
static inline int64_t  count(const weft_tensor *t)          { return weft__elements(&t->f); }
static inline int64_t  width(const weft_tensor *t) { return t->f.rank ? t->f.size[t->f.rank - 1] : 1; }
static inline bool     is_real(const weft_call *c, int i)   { return c->x[i]->f.type == WEFT_REAL; }
/* Returns device memory for n numbers, which ends after the entry's backward, or with the step. */
static inline real *weft__device_scratch(const weft_call *c, int64_t n)
{
    return weft__take(c->y[0]->w, WEFT__ARENA_DATA, n * (int64_t)sizeof(real));
}
#define RUN(c, kernel, ...) (dev(c)->k->kernel(dev(c), __VA_ARGS__))

/* ---- failing (refuse.c); messages are formatted as by printf ---- */
bool         weft__refuse(const weft_call *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Fails a function that got x, or several tensors that it needs. Returns the inert tensor. */
weft_tensor *weft__failed(weft_tensor *x, weft_status, const char *function, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
weft_tensor *weft__failed_of(weft_tensor *const *x, int64_t n, weft_status, const char *function,
                             const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Returns the context for an error of these tensors: that of the first one whose context has not failed. */
weft        *weft__context(weft_tensor *const *x, int64_t n);
/* Returns the inert tensor of x's context, or without a context for NULL. */
weft_tensor *weft__inert_of(const weft_tensor *x);

/* ---- layouts (arrange.c, ragged.c, row_order.c) ---- */
/* Gives f the rows of `like`: their number, batch and layout. */
static inline void weft__copy_layout(weft__form *f, const weft__form *like)
{
    f->batch = like->batch;
    f->layout = like->layout;
    f->place = like->place;
    f->size[0] = like->size[0];
}
/* Returns the same numbers with another form. */
weft_tensor *weft__view(weft_tensor *, const weft__form *);
/* Moves rows to a layout of their batch. Returns a view if they have that layout already. */
weft_tensor *weft__arranged(weft_tensor *, const weft__form *, real fill);
/* Moves a ragged tensor to the layout of another tensor of its batch. Returns it unchanged if it has that
 * layout, or if the context has failed. */
weft_tensor *weft__arranged_as(weft_tensor *, const weft__form *like);
weft_tensor *weft__ragged_as(weft_tensor *, const weft__form *like);
/* Returns a view of a plain [n, T, F], or of [n, F] with T = 1, as n sequences of T tokens. */
weft_tensor *weft__as_batch(weft_tensor *x, const char *function, int64_t n, int64_t T);
/* For shape functions. Refuses plain inputs with that number of rows, and at least that rank, if they are
 * known to have different row orders. */
bool         weft__rows_agree(const weft_call *, int64_t rows, int least);
/* Returns the number of elements, without padding. */
int64_t      weft__numbers(const weft__form *);
/* Returns the product of the extents from axis `from` up to, not including, axis `to`. */
int64_t      weft__extents(const weft__form *, int from, int to);
/* These check padded input and name the sequence at fault. lengths_fit: there are n lengths, each in 0 ..
 * total. is_padded: x is plain [n, T, ..] and the lengths fit. */
bool         weft__lengths_fit(weft *, const weft_lengths *, int64_t n, int64_t total, const char *function);
bool         weft__is_padded(weft_tensor *x, const weft_lengths *, weft_align, const char *function);

/* ---- gradients of a fused operator (gradient_blocks.c, accumulate.c) ---- */
/* A list of block copies and of buffers to zero, which run in one launch. add_block first runs the list if it
 * is full, or if the new block adds to a buffer in the list. */
typedef struct weft__blocks { int64_t n; weft__block_copy block[16]; } weft__blocks;
void         weft__add_block(const weft_call *, weft__blocks *, weft__block_copy);
void         weft__add_zeros(const weft_call *, weft__blocks *, real *to, int64_t n);
void         weft__run_blocks(const weft_call *, weft__blocks *);
/* Returns the buffer for a kernel that adds the gradient of x[i]; NULL if it is not needed. A new buffer is
 * zeroed when the blocks run. */
real *weft__dx_sum(const weft_call *, int i, weft__blocks *zeros);
/* Same as weft_op_dx, for a kernel that rounds each sum of products before it adds it once. Such a kernel may
 * add to the gradient of a ragged tensor directly, also on a GPU, with the same bits. A function of one
 * number may not: a GPU would fuse it with the addition. */
real        *weft__dx_whole(const weft_call *, int i, bool *add);

/* ---- rows of a table (table_rows.c) ---- */
/* Records that y's rows are rows of the table, by ids. */
void weft__record_lookup(weft_tensor *y, weft_tensor *table, weft_tensor *ids);
/* If x was looked up, returns its table and sets *ids. Otherwise, or if the table has changed since, returns
 * NULL. */
weft_tensor *weft__table_of(const weft_tensor *x, weft_tensor **ids);
/* Does the backward pass keep the gradient of looked-up rows x, also as they were before a rearrangement? */
bool weft__keeps_gradient(const weft_tensor *x);

/* ---- operators that layers share ---- */
/* linear.c: Returns f(x weight^T + bias). bias may be NULL. f: a function whose derivative follows from its
 * value, or WEFT__UNARIES for none. With a weight [G, O, K] and a bias [G, O] each group of x [.., G, K] has
 * its own. */
weft_tensor *weft__linear(weft_tensor *x, weft_tensor *weight, weft_tensor *bias, int f, real p);
/* Does the same with `rows` rows of weight and bias, from row `from` on. f has no parameter. */
weft_tensor *weft__linear_part(weft_tensor *x, weft_tensor *weight, weft_tensor *bias, int64_t from,
                               int64_t rows, int f);
/* conv.c: Returns [rows, out], ragged: the windows of x [N, in] times the weight [out, in, width]. bias [out]
 * may be NULL. reads->repeat is 1. */
weft_tensor *weft__conv(weft_tensor *x, weft_tensor *weight, weft_tensor *bias, const weft__reads *reads);
weft_tensor *weft__glu(weft_tensor *x);          /* returns a sigmoid(b) of x = [a, b] */
/* concat_lists.c: Sets y[l] = weft_concat(list[l], n, 0) for 1 .. 4 lists of tensors of one shape. */
void         weft__concat_lists(weft_tensor *const *const *list, int lists, int n, weft_tensor **y);
/* norm.c: Layer norm of glu(gate) + skip. A gate [.., 2 F] must fit a skip [.., F]. gain and shift are [F],
 * or [G, F] for inputs [.., G, F]. */
bool         weft__gate_fits(const weft_tensor *gate, const weft_tensor *skip);
weft_tensor *weft__gate_norm_of(weft_tensor *gate, weft_tensor *skip, weft_tensor *gain, weft_tensor *shift,
                                double eps);
/* Layer norm over the last axis of [.., G, F]; gain and shift are [G, F]. */
weft_tensor *weft__layer_norm_of_groups(weft_tensor *x, weft_tensor *gain, weft_tensor *shift, double eps);
/* dropout.c: Returns [rows] factors, each 0 or 1 / (1 - p). They depend on (seed, name, step, row) only, so
 * all calls in a step get the same. */
weft_tensor *weft__row_factors(weft *, int64_t rows, double p, const char *name);
/* pointwise.c: Multiplies a gradient g by b. The result is 0 where g is 0, even if b is infinite or NaN. */
weft_tensor *weft__given_times(weft_tensor *g, weft_tensor *b);
#endif
