/* op.h - functions shared by the files of autograd/. */
#ifndef WEFT_OP_H
#define WEFT_OP_H
#include "autograd/attributes.h"
#include "autograd/fused.h"

static inline weft__node *node(const weft_tensor *t) { return weft__node_of(t); }

/* call.c: Applies an operator and returns its call with all results. agree, unless NULL, first brings the
 * inputs to one layout. host: raw functions get host memory, see host_mirror.c. */
typedef struct weft__inputs {
    weft_tensor *const *x;
    int n;
    const void *attributes;
    size_t bytes;
} weft__inputs;
const weft_call *weft__call(weft *, const weft_op *, const weft__inputs *, bool agree(weft_call *),
                            bool host);
/* A shape function: gives y the form that the attribute begins with. */
bool         weft__form_shape(weft_call *);
/* call.c: Calls weft__callback_begin for a function of a program's operator. Does nothing for the library's
 * operators, which never call the program. */
weft__callback weft__op_callback_begin(weft *, const weft_call *, const char *kind);
/* arrange.c: Does the same as weft__view, always as a new entry of the tape. */
weft_tensor *weft__new_view(weft_tensor *);
/* row_order.c: carry_order records the row order of each plain result. A shape function may call the other
 * two. rows_moved: no result keeps the row order of an input. rows_as: result 0 keeps that of input i. */
void         weft__carry_order(weft_call *);
void weft__drop_row_order(weft_call *);
void weft__keep_row_order(weft_call *, int i);
/* host_mirror.c: work_begin and work_end surround a raw function of the call. work_begin returns false and
 * fails the context if memory runs out. seen and gradient_seen return the host memory that the raw function
 * reads or writes. If it may not, they return NULL and fail the context. */
bool         weft__work_begin(weft *, weft__work *, const weft_call *, bool back);
void         weft__work_end(weft *, weft__work *);
void *weft__host_data(const weft_tensor *, const char *function);
void *weft__host_gradient(const weft_call *, const weft_tensor *, void *gradient, bool fetched, bool back);
/* accumulate.c: Returns the same as weft_op_dy, for a function that overwrites it. Returns NULL if the
 * gradient is read again later. */
real *weft__dy_reusable(const weft_call *, int k);
/* table_rows.c: Records that y's rows are those of x in another layout. */
void weft__copy_lookup(weft_tensor *y, const weft_tensor *x);
/* nan.c, if w->check: These check the results of a call for NaN, and the gradients that it gave to its
 * inputs. moves: the operator only moves numbers. */
void         weft__check_results(weft_call *, bool moves);
void         weft__check_gradients(weft_call *);
/* Prints a line, once, if a real cannot hold one of these ints exactly. */
void         weft__check_exact(const weft_tensor *ints);
/* shape.c: Returns a view with a new axis of extent 1. */
weft_tensor *weft__insert_axis(weft_tensor *, int axis);
/* dropout.c */
/* Returns the key of the next mask of that name in this step. */
uint64_t     weft__mask_key(weft *, const char *name);
/* Checks that the sequence ids of x are known, as masks inside a shard require, or fails the context. */
bool         weft__ids_are_known(const weft_tensor *x, const char *function);
/* pointwise.c */
/* Applies a function of pointwise.def that has one parameter or none. */
weft_tensor *weft__unary(int f, weft_tensor *x, real p);
const char  *weft__unary_name(int f);
/* Writes the parameter as "slope=0.1", or "" if f has none. */
void         weft__describe_parameter(int f, real p, char *text, size_t size);
/* Divides a gradient g by b. The result is 0 where g is 0, even if b is infinite, NaN or 0. */
weft_tensor *weft__given_over(weft_tensor *g, weft_tensor *b);
/* Multiplies two gradients. The result is 0 where one of them is 0. */
weft_tensor *weft__cross(weft_tensor *g, weft_tensor *h);
/* Returns 1 where a > b, 1/2 where a = b, and 0 elsewhere. */
weft_tensor *weft__share(weft_tensor *a, weft_tensor *b);
/* broadcast.c */
/* Sets y to the common form of n operands, and the grid to their strides, with axes merged. Returns false if
 * they do not broadcast. */
bool         weft__broadcast(weft__grid *, const weft__form *const *x, int n, weft__form *y);
/* Sums a tensor to a smaller form, or repeats it to a larger one: transposes. NULL gives NULL. */
weft_tensor *weft__sum_to(weft_tensor *, const weft__form *);
weft_tensor *weft__spread_to(weft_tensor *, const weft__form *);
/* Writes elements of x, reals or ints, to y by the strides of a grid that begins at element `first`. */
void         weft__run_spread(weft_call *, const weft__grid *, int64_t first);
/* join.c: pairs_seen does the same as weft_pairs, for the keys that each query sees under that weft_causal.
 * all_pairs extends numbers of such pairs to all pairs, with 0 for unseen keys. */
void weft__visible_pairs(weft_tensor *q, weft_tensor *k, int causal, weft_tensor **q_of_pair,
                         weft_tensor **k_of_pair);
weft_tensor *weft__all_pairs(weft_tensor *seen, const weft_tensor *q, const weft_tensor *k, int causal);
/* window.c: Returns the rows of x, ragged, that the result reads, [rows, width, ..]; without the axis
 * [rows, ..] for a width of 1. */
weft_tensor *weft__windows(weft_tensor *x, const weft__reads *reads, bool axis, const char *function);
/* reduce.c */
/* Resolves a negative axis. If the axis does not exist, fails the context and returns false. */
bool         weft__find_axis(const weft_tensor *x, int *axis, const char *function);
/* Does the same, and refuses axis 0 of a ragged tensor, which is ambiguous. */
bool         weft__axis_not_rows(weft_tensor *x, int *axis, const char *function);
weft__along  weft__along_axis(const weft_tensor *x, int axis, bool tokens);
/* Layout of a record whose attribute is a weft__along: CONCAT over tokens, otherwise as for PLAIN. */
#define WEFT__ALONG ((weft_layout)(WEFT_PADDED + 1))
/* A linear operator: its results can be added to y[0], and the backward pass does not read x[0]. */
#define LINEAR_RECORD(its_name, its_layout, its_shape, run, back, says)                            \
    {                                                                                              \
        .name = its_name, .layout = its_layout, .adds = true, .unread = 1, .shape = its_shape,     \
        .forward = run, .backward = back, .describe = says                                         \
    }
/* Returns the attribute with the layout of the call's input. */
weft__along weft__current_along(const weft_call *);
/* For shape functions. take_whole stores the input's form in the attribute. less_shape also sets result 0 to
 * that form without the axis. */
weft__along *weft__store_form(weft_call *);
bool weft__reduced_shape(weft_call *);
weft__segments weft__segments_of(const weft__along *);
/* For RUN: the segments of an attribute that begins with a weft__along. */
#define SEGMENTS(c) ((weft__segments[]){ weft__segments_of((c)->attributes) })
/* A describe function for an attribute that begins with a weft__along. */
void         weft__describe_along(const weft_call *, char *text, size_t size);
/* Reduces the ints of each segment by f: add, minimum or maximum. */
void         weft__run_segment_ints(weft_call *, int f);
/* Returns the form without the axis; [sequences, ..] if over tokens. */
weft__form weft__reduced_form(const weft__along *);
/* extreme.c: place_along returns a tensor of zeros, with the elements of x at the indices along the axis. */
weft_tensor *weft__place_along(const weft__along *, weft_tensor *x, weft_tensor *index);
weft_tensor *weft__pool_max(weft_tensor *);
weft_tensor *weft__reduce(weft_tensor *x, const weft__along *);
weft_tensor *weft__expand(weft_tensor *y, const weft__along *);
#endif
