/* op.h - functions shared by the files of autograd/. */
#ifndef WEFT_OP_H
#define WEFT_OP_H
#include "autograd/fused.h"

static inline weft__node *node(const weft_tensor *t) { return weft__node_of(t); }

/* call.c: all results; agree, if not NULL, brings the inputs to one layout first; host: raw functions see
 * host memory, see host_mirror.c */
typedef struct weft__inputs {
    weft_tensor *const *x;
    int n;
    const void *attributes;
    size_t bytes;
} weft__inputs;
const weft_call *weft__call(weft *, const weft_op *, const weft__inputs *, bool agree(weft_call *),
                            bool host);
/* for `shape`: y as the form says with which the attribute begins */
bool         weft__form_shape(weft_call *);
/* call.c: weft__callback_begin around a function of a program's own operator; around the library's own
 * functions, which call no program, it changes nothing */
weft__callback weft__own_begin(weft *, const weft_call *, const char *kind);
/* arrange.c: weft__view as an entry of its own on the tape */
weft_tensor *weft__view_anew(weft_tensor *);
/* row_order.c: these record the row order of each plain result. A shape function calls the last two: no
 * result keeps the row order of an input; result 0 keeps that of input i. */
void         weft__carry_order(weft_call *);
void         weft__rows_moved(weft_call *);
void         weft__rows_as(weft_call *, int i);
/* host_mirror.c: called before and after a raw function of the call. begin returns false, and the context
 * fails, without memory. seen and gradient_seen return the host memory that the raw function reads or writes;
 * NULL, and the context fails, if it may not. */
bool         weft__work_begin(weft *, weft__work *, const weft_call *, bool back);
void         weft__work_end(weft *, weft__work *);
void        *weft__seen(const weft_tensor *, const char *function);
void        *weft__gradient_seen(const weft_call *, const weft_tensor *, void *gradient, bool fetched,
                                 bool back);
/* accumulate.c: same as weft_op_dy, for a function that overwrites it. Returns NULL if another reads it
 * later. */
real        *weft__dy_spent(const weft_call *, int k);
/* table_rows.c: y's rows are those of x, arranged */
void         weft__looked_up_as(weft_tensor *y, const weft_tensor *x);
/* nan.c, if w->check: what a call has made, or only moved; and what it has handed to its inputs on the way
 * back */
void         weft__check_results(weft_call *, bool moves);
void         weft__check_gradients(weft_call *);
/* prints a line, once, if a real does not hold one of these ints */
void         weft__check_exact(const weft_tensor *ints);
/* shape.c: a view that has a new axis of extent 1 there */
weft_tensor *weft__with_axis(weft_tensor *, int axis);
/* dropout.c */
/* of the next mask of that name in this step */
uint64_t     weft__mask_key(weft *, const char *name);
/* Inside a shard masks want the sequences' ids; false, and the context fails, if x's are not known. */
bool         weft__ids_are_known(const weft_tensor *x, const char *function);
/* pointwise.c */
/* a function of pointwise.def with one parameter or none */
weft_tensor *weft__unary(int f, weft_tensor *x, real p);
const char  *weft__unary_name(int f);
/* "slope=0.1" of those that have one, else "" */
void         weft__describe_parameter(int f, real p, char *text, size_t size);
/* A gradient g divided by b: 0 where g is 0, also where b is infinite, NaN or 0. */
weft_tensor *weft__given_over(weft_tensor *g, weft_tensor *b);
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
/* the layout of a record whose attribute is a weft__along: of tokens concat, else as PLAIN says */
#define WEFT__ALONG ((weft_layout)(WEFT_PADDED + 1))
/* the attribute, in the layout in which the input came */
weft__along  weft__along_now(const weft_call *);
/* For `shape`: notes the form of the input in the attribute; result 0 is without the axis. */
weft__along *weft__take_whole(weft_call *);
bool         weft__less_shape(weft_call *);
weft__segments weft__segments_of(const weft__along *);
/* for RUN: those of the attribute, which a weft__along begins */
#define SEGMENTS(c) ((weft__segments[]){ weft__segments_of((c)->attributes) })
/* for `describe` where they are a weft__along */
void         weft__describe_along(const weft_call *, char *text, size_t size);
/* y = f of the rows of each run, ints; f: add, minimum, maximum */
void         weft__run_segment_ints(weft_call *, int f);
/* without the axis; of tokens [sequences, ..] */
weft__form   weft__less(const weft__along *);
/* extreme.c */
weft_tensor *weft__pool_max(weft_tensor *);
weft_tensor *weft__reduce(weft_tensor *x, const weft__along *);
weft_tensor *weft__expand(weft_tensor *y, const weft__along *);
weft_tensor *weft__no_third(const weft_call *);
#endif
