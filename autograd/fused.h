/* fused.h - autograd's private functions for nn, rnn, io and parallel: operators that layers share, layouts,
 * and the parts of an operator. */
#ifndef WEFT_FUSED_H
#define WEFT_FUSED_H
#include "autograd/tape.h"
#include "core/ragged.h"

/* ---- applying an operator (apply.c): all results ---- */
const weft_call *weft__apply(const weft_op *, weft_tensor *const *x, int n, const void *attributes,
                             size_t bytes);
#define LIST(...) \
    (weft_tensor *[]){ __VA_ARGS__ }, (int)(sizeof((weft_tensor *[]){ __VA_ARGS__ }) / sizeof(weft_tensor *))
/* of the library's own records, whose raw functions start kernels */
#define APPLY(op, ...) (weft__apply(op, LIST(__VA_ARGS__), NULL, 0)->y[0])
#define APPLY_WITH(op, attributes, ...) \
    (weft__apply(op, LIST(__VA_ARGS__), &(attributes), sizeof(attributes))->y[0])

/* ---- short words for raw functions: the device, and the numbers of x and y ---- */
static inline weft__device *dev(const weft_call *c)         { return &c->y[0]->w->dev; }
static inline real    *X(const weft_call *c, int i)         { return c->x[i]->data; }
static inline int32_t *I(const weft_call *c, int i)         { return (int32_t *)(void *)c->x[i]->data; }
static inline real    *Y(const weft_call *c, int k)         { return c->y[k]->data; }
static inline int32_t *YI(const weft_call *c, int k)        { return (int32_t *)(void *)c->y[k]->data; }
static inline int64_t  count(const weft_tensor *t)          { return weft__elements(&t->f); }
static inline int64_t  width(const weft_tensor *t) { return t->f.rank ? t->f.size[t->f.rank - 1] : 1; }
static inline bool     is_real(const weft_call *c, int i)   { return c->x[i]->f.type == WEFT_REAL; }
#define RUN(c, kernel, ...) (dev(c)->k->kernel(dev(c), __VA_ARGS__))

/* ---- failing (refuse.c): the text ends as printf says ---- */
bool         weft__refuse(const weft_call *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A function's own failure, of x or of several tensors that are all needed. Returns the inert tensor. */
weft_tensor *weft__failed(weft_tensor *x, weft_status, const char *function, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
weft_tensor *weft__failed_of(weft_tensor *const *x, int64_t n, weft_status, const char *function,
                             const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Returns the context that an error of these tensors goes to: that of the first which has not failed. */
weft        *weft__context(weft_tensor *const *x, int64_t n);
/* The inert tensor of its context, of no context for NULL. */
weft_tensor *weft__inert_beside(const weft_tensor *x);

/* ---- layouts (arrange.c, ragged.c, row_order.c) ---- */
/* Gives f the rows of `like`: as many, of its batch and in its layout. */
static inline void weft__lie_as(weft__form *f, const weft__form *like)
{
    f->batch = like->batch;
    f->layout = like->layout;
    f->place = like->place;
    f->size[0] = like->size[0];
}
/* The same numbers, another form. */
weft_tensor *weft__view(weft_tensor *, const weft__form *);
/* Moves rows to a layout of their batch. Returns a view if they have that layout already. */
weft_tensor *weft__arranged(weft_tensor *, const weft__form *, real fill);
/* Moves a ragged tensor to the layout of another tensor of its batch. Returns it unchanged if it has that
 * layout, or if the context has failed. */
weft_tensor *weft__arranged_as(weft_tensor *, const weft__form *like);
weft_tensor *weft__ragged_as(weft_tensor *, const weft__form *like);
/* Plain [n, T, F], or [n, F] with T = 1, as n sequences of T tokens: a view. */
weft_tensor *weft__as_batch(weft_tensor *x, const char *function, int64_t n, int64_t T);
/* For `shape`: refuses if plain inputs with that number of rows, and at least that rank, are known to have
 * different row orders. */
bool         weft__rows_agree(const weft_call *, int64_t rows, int least);
/* Elements without the pads that a layout may have. */
int64_t      weft__numbers(const weft__form *);
/* the product of the extents from axis `from` to before axis `to` */
int64_t      weft__extents(const weft__form *, int from, int to);
/* These check padded input and name the sequence at fault: n lengths of 0 .. total each; a plain x [n, T, ..]
 * with such lengths; the same with pads of 0, for which it waits for the device. */
bool         weft__lengths_fit(weft *, const weft_lengths *, int64_t n, int64_t total, const char *function);
bool         weft__is_padded(weft_tensor *x, const weft_lengths *, weft_align, const char *function);
bool         weft__pads_are_zero(weft_tensor *x, const weft_lengths *, weft_align, const char *function);

/* ---- gradients of a fused operator (gradient_blocks.c, accumulate.c) ---- */
/* Copies of blocks that wait, those before a block first if it adds where they go; n zeros among them; until
 * they are run. */
typedef struct weft__blocks { int64_t n; weft__block_copy of[16]; } weft__blocks;
void         weft__add_block(const weft_call *, weft__blocks *, weft__block_copy);
void         weft__add_zeros(const weft_call *, weft__blocks *, real *to, int64_t n);
void         weft__run_blocks(const weft_call *, weft__blocks *);
/* Where a kernel adds the gradient of x[i]; NULL: not needed. If nothing came before, it is zeros when the
 * blocks are run. */
real        *weft__dx_added(const weft_call *, int i, weft__blocks *zeros);
/* Same as weft_op_dx, for a kernel that rounds each sum of products before it adds it once. Such a kernel may
 * add to the gradient of a ragged tensor directly, also on a GPU, with the same bits. A function of one
 * number may not: a GPU would fuse it with the addition. */
real        *weft__dx_whole(const weft_call *, int i, bool *add);

/* ---- rows of a table (table_rows.c) ---- */
/* y's rows are the table's, by ids. */
void         weft__looked_up(weft_tensor *y, weft_tensor *table, weft_tensor *ids);
/* Returns the table and the ids from which x was looked up. Returns NULL if it was not looked up, or if the
 * table has changed since. */
weft_tensor *weft__table_of(const weft_tensor *x, weft_tensor **ids);
/* Returns whether this walk needs the gradient of such rows, or of the rows before they were rearranged. */
bool         weft__asked_for(const weft_tensor *x);

/* ---- operators that layers share ---- */
/* linear.c: f(x weight^T + bias). bias may be NULL. f: a function whose derivative follows from its value, or
 * WEFT__UNARIES for none. With a weight [G, O, K] and a bias [G, O] each group of x [.., G, K] has its own.
 */
weft_tensor *weft__linear(weft_tensor *x, weft_tensor *weight, weft_tensor *bias, int f, real p);
/* The same by `rows` rows of weight and bias, from row `from` on. */
weft_tensor *weft__linear_part(weft_tensor *x, weft_tensor *weight, weft_tensor *bias, int64_t from,
                               int64_t rows);
weft_tensor *weft__glu(weft_tensor *x);          /* a sigmoid(b) of x = [a, b] */
/* concat_lists.c: y[l] = weft_concat(list[l], n, 0) of tensors of one shape, for 1 .. 4 lists. */
void         weft__concat_lists(weft_tensor *const *const *list, int lists, int n, weft_tensor **y);
/* norm.c: layer norm of glu(gate) + skip, of a gate [.., 2 F] that fits a skip [.., F]; gain and shift [F],
 * or [G, F] of [.., G, F]. */
bool         weft__gate_fits(const weft_tensor *gate, const weft_tensor *skip);
weft_tensor *weft__gate_norm_of(weft_tensor *gate, weft_tensor *skip, weft_tensor *gain, weft_tensor *shift,
                                double eps);
/* Over the last axis of [.., G, F]; gain and shift [G, F]. */
weft_tensor *weft__layer_norm_of_groups(weft_tensor *x, weft_tensor *gain, weft_tensor *shift, double eps);
/* dropout.c: [rows] of 0 and 1 / (1 - p), a function of (seed, name, number of the step, row), so the same at
 * every call in a step. */
weft_tensor *weft__row_factors(weft *, int64_t rows, double p, const char *name);
/* pointwise.c: a gradient g times b: 0 where g is 0, also where b is infinite or NaN. */
weft_tensor *weft__given_times(weft_tensor *g, weft_tensor *b);
#endif
