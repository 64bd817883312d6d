/* shape.c - changes shapes: reshape, concat, stack, slice. */
#include "autograd/op.h"

/* ---- reshape: a view ---- */
/* Writes the shape with -1 replaced to f. Returns false if it does not fit x. */
static bool complete_shape(weft_tensor *x, int rank, const int64_t *shape, weft__form *f)
{
    int64_t rest = 1, free_axis = -1;
    *f = weft__plain(x->f.type, rank, shape);
    for (int i = 0; i < rank; i++) {
        if (shape[i] < -1 || (shape[i] == -1 && free_axis >= 0))
            return false;
        if (shape[i] == -1)
            free_axis = i;
        else if (__builtin_mul_overflow(rest, shape[i], &rest))
            return false;
    }
    if (free_axis >= 0)
        f->size[free_axis] = rest ? count(x) / rest : 0;
    return rest * (free_axis >= 0 ? f->size[free_axis] : 1) == count(x);
}

static const char *describe_shape(const weft_tensor *x, int rank, const int64_t *shape, char text[128])
{
    weft__form f = weft__plain(x->f.type, rank, shape);
    return weft__text(&f, text);
}

weft_tensor *weft_reshape(weft_tensor *x, int rank, const int64_t *shape)
{
    char text[128];
    weft__form f;
    if (!x || weft__handle_error(x->w, x) || rank < 0 || rank > WEFT_RANK || (rank && !shape))
        return weft__failed(x, WEFT_EARG, "reshape", "rank %d%s; expected a shape of rank 0 .. %d", rank,
                            rank && !shape ? " without a shape" : "", WEFT_RANK);
    if (!complete_shape(x, rank, shape, &f))
        return weft__failed(x, WEFT_ESHAPE, "reshape", "%lld elements; expected the number of %s",
                            (long long)count(x), describe_shape(x, rank, shape, text));
    if (x->f.batch && (rank == 0 || f.size[0] != x->f.size[0]))
        return weft__failed(x, WEFT_ESHAPE, "reshape",
                            "to %s; expected axis 0 with the %lld rows of the ragged tensor (weft_plain)",
                            describe_shape(x, rank, shape, text), (long long)x->f.size[0]);
    if (x->f.batch)
        weft__copy_layout(&f, &x->f);
    return weft__view(x, &f);
}

static const weft_op op_detach = {
    .name = "detach", .layout = WEFT_ROWS, .no_gradient = true, .shape = weft__form_shape
};
weft_tensor *weft_detach(weft_tensor *x)
{
    weft__form f = x ? x->f : (weft__form){ 0 };
    return APPLY_WITH(&op_detach, f, x);
}

/* ---- slice; its transpose, which inserts a part into zeros ---- */
typedef weft__part part;
typedef struct { int64_t rows, of_part, of_whole, from; } strip;  /* the part as a block of a matrix */

static strip strip_of(const part *p)
{
    const int64_t inner = weft__extents(&p->whole, p->axis + 1, p->whole.rank);
    return (strip){ weft__extents(&p->whole, 0, p->axis), inner * (p->to - p->from),
                    inner * p->whole.size[p->axis], inner * p->from };
}

static void copy_block(weft_call *c, const strip *s, int i, int64_t x_at, int64_t ldx, int64_t y_at,
                       int64_t ldy)
{
    if (is_real(c, i))
        RUN(c, blocks, 1, &(weft__block_copy){ s->rows, s->of_part, X(c, i) + x_at, ldx, Y(c, 0) + y_at, ldy,
                                               c->add, NULL, NULL });
    else
        RUN(c, block_ints, s->rows, s->of_part, I(c, i) + x_at, ldx, YI(c, 0) + y_at, ldy);
}

static bool slice_shape(weft_call *c)
{
    part *p = (part *)(uintptr_t)c->attributes;
    p->whole = c->x[0]->f;
    if (p->from < 0 || p->to < p->from || p->to > p->whole.size[p->axis])
        return weft__refuse(c, "from %lld to %lld of axis %d; expected a part of 0 .. %lld",
                            (long long)p->from, (long long)p->to, p->axis, (long long)p->whole.size[p->axis]);
    if (p->axis == 0 && p->whole.batch)
        return weft_op_refuse(c, "ragged rows; expected another axis (weft_plain, weft_split_sequences)");
    c->y[0]->f = p->whole;
    c->y[0]->f.size[p->axis] = p->to - p->from;
    return true;
}
static void slice_run(weft_call *c)
{
    strip s = strip_of(c->attributes);
    copy_block(c, &s, 0, s.from, s.of_whole, 0, s.of_part);
}
static void describe_part(const weft_call *c, char *text, size_t size)
{
    const part *p = c->attributes;
    snprintf(text, size, "axis=%d, from=%lld, to=%lld", p->axis, (long long)p->from, (long long)p->to);
}
/* Adds only the part. So T slices of one tensor cost one backward pass over it in total, not T. */
static void inset_run(weft_call *c)
{
    strip s = strip_of(c->attributes);
    const int64_t end = s.from + s.of_part, width[] = { s.from, s.of_part, s.of_whole - end };
    weft__blocks all = { 0 };
    for (int i = 0; i < 3; i++)                  /* zeros before and after the part */
        if (width[i] && (i == 1 || !c->add))
            weft__add_block(c, &all,
                            (weft__block_copy){ .rows = s.rows, .width = width[i], .ldx = s.of_part,
                                                .x = i == 1 ? X(c, 0) : NULL, .ldy = s.of_whole,
                                                .y = Y(c, 0) + (i == 0 ? 0 : i == 1 ? s.from : end),
                                                .add = c->add });
    weft__run_blocks(c, &all);
}
static const weft_op op_slice, op_inset;
static weft_tensor *part_back(const weft_call *c, weft_tensor *dy, int i) /* each is the other's transpose */
{
    (void)i;
    return APPLY_WITH(c->op == &op_slice ? &op_inset : &op_slice, *(const part *)c->attributes, dy);
}
static const weft_op op_slice = LINEAR_RECORD("slice", WEFT_PLAIN, slice_shape, slice_run, part_back,
                                              describe_part);
static const weft_op op_inset = LINEAR_RECORD("inset", WEFT_ROWS, weft__form_shape, inset_run, part_back,
                                              describe_part);

weft_tensor *weft_slice(weft_tensor *x, int axis, int64_t from, int64_t to)
{
    if (!weft__find_axis(x, &axis, "slice"))
        return weft__inert_of(x);
    int64_t n = x->f.size[axis];
    part p = { x->f, axis, from < 0 ? from + n : from, to < 0 ? to + n : to };
    return APPLY_WITH(&op_slice, p, x);
}

/* ---- concat ---- */
static bool concat_shape(weft_call *c)
{
    int axis = *(const int *)c->attributes;
    weft__form *y = &c->y[0]->f, f = c->x[0]->f;
    *y = f;
    if (axis == 0 && y->batch)
        return weft_op_refuse(c, "ragged rows along axis 0; expected another axis (weft_concat_sequences)");
    if (axis == 0)
        weft__drop_row_order(c);
    for (int i = 1; i < c->n; i++) {
        if (c->x[i]->f.rank == f.rank)
            f.size[axis] = c->x[i]->f.size[axis];
        if (!weft__forms_equal(&f, &c->x[i]->f))
            return weft__refuse(
                c, "along axis %d: input %d is %s, input 0 %s; expected equal extents on all other axes",
                axis, i, WEFT__TEXT(&c->x[i]->f), WEFT__TEXT(&c->x[0]->f));
        if (__builtin_add_overflow(y->size[axis], f.size[axis], &y->size[axis]))
            return weft__refuse(c, "%d such tensors: too many elements", c->n);
    }
    return axis == 0 || y->batch || weft__rows_agree(c, y->size[0], 1);
}
/* Returns the block of input i in the result. p: the part of input i - 1; ignored for i = 0. */
static strip next_strip(const weft_call *c, part *p, int i)
{
    if (i == 0)
        *p = (part){ .whole = c->y[0]->f, .axis = *(const int *)c->attributes };
    p->from = p->to;
    p->to = p->from + c->x[i]->f.size[p->axis];
    return strip_of(p);
}
static void concat_run(weft_call *c)
{
    part p;
    weft__blocks all = { 0 };
    for (int i = 0; i < c->n; i++) {
        const strip s = next_strip(c, &p, i);
        const int64_t n = s.of_part;
        if (is_real(c, 0))
            weft__add_block(c, &all,
                            (weft__block_copy){ .rows = s.rows, .width = n, .x = X(c, i), .ldx = n,
                                                .y = Y(c, 0) + s.from, .ldy = s.of_whole, .add = c->add });
        else
            copy_block(c, &s, i, 0, n, s.from, s.of_whole);
    }
    weft__run_blocks(c, &all);
}
static void concat_fused(const weft_call *c)
{
    part p;
    weft__blocks all = { 0 };
    for (int i = 0; i < c->n; i++) {
        bool add;
        const strip s = next_strip(c, &p, i);
        real *dx = weft__dx_whole(c, i, &add);
        if (dx)
            weft__add_block(c, &all,
                            (weft__block_copy){ .rows = s.rows, .width = s.of_part,
                                                .x = weft_op_dy(c, 0) + s.from, .ldx = s.of_whole, .y = dx,
                                                .ldy = s.of_part, .add = add });
    }
    weft__run_blocks(c, &all);
}
static weft_tensor *concat_back(const weft_call *c, weft_tensor *dy, int i)
{
    int axis = *(const int *)c->attributes;
    int64_t from = 0;
    for (int j = 0; j < i; j++)
        from += c->x[j]->f.size[axis];
    return weft_slice(dy, axis, from, from + c->x[i]->f.size[axis]);
}
static void describe_axis(const weft_call *c, char *text, size_t size)
{
    snprintf(text, size, "axis=%d", *(const int *)c->attributes);
}
#define CONCAT_RECORD(its_name)                                                                       \
    {                                                                                                 \
        .name = its_name, .adds = true, .unread = ~0u, .shape = concat_shape, .forward = concat_run,  \
        .backward = concat_back, .fused = concat_fused, .describe = describe_axis                     \
    }
static const weft_op op_concat = CONCAT_RECORD("concat"), op_stack = CONCAT_RECORD("stack");

weft_tensor *weft_concat(weft_tensor *const *x, int64_t n, int axis)
{
    if (!x || n < 1 || n > INT32_MAX)
        return weft__failed(x && n > 0 ? x[0] : NULL, WEFT_EARG, "concat",
                            "%lld tensors%s; expected 1 .. 2^31 - 1", (long long)n, x ? "" : ", NULL");
    if (!weft__find_axis(x[0], &axis, "concat"))
        return weft__failed_of(x, n, WEFT_EARG, "concat", "%lld tensors; expected usable ones", (long long)n);
    return weft__apply(&op_concat, x, (int)n, &axis, sizeof axis)->y[0];
}

/* ---- stack: concat along a new axis of size 1 ---- */
static bool stackable(weft_tensor *const *x, int64_t n, int axis)
{
    weft *w = x[0]->w;
    for (int64_t i = 1; i < n && weft_ok(w); i++) {
        weft__form f = x[i]->f;
        if (f.batch && x[0]->f.batch)            /* concat compares the batches later */
            weft__copy_layout(&f, &x[0]->f);
        if (!weft__forms_equal(&f, &x[0]->f))
            weft__fail(w, WEFT_ESHAPE, "stack: input %lld is %s, input 0 %s; expected one shape",
                       (long long)i, WEFT__TEXT(&x[i]->f), WEFT__TEXT(&x[0]->f));
    }
    if (x[0]->f.batch && axis == 0)
        weft__failed(x[0], WEFT_ESHAPE, "stack", "a new axis 0; expected the ragged rows there (weft_plain)");
    return weft_ok(w);
}

weft_tensor *weft__insert_axis(weft_tensor *x, int axis)
{
    weft__form f = x->f;
    for (int i = f.rank++; i > axis; i--)
        f.size[i] = f.size[i - 1];
    f.size[axis] = 1;
    return weft__view(x, &f);
}

weft_tensor *weft_stack(weft_tensor *const *x, int64_t n, int axis)
{
    bool ok = x && n > 0 && n <= INT32_MAX;
    weft *w = weft__context(x, ok ? (int)n : 0);
    for (int64_t i = 0; ok && i < n; i++)
        ok = !weft__handle_error(w, x[i]);
    if (!ok || !weft_ok(w))
        return weft__failed_of(x, x && n > 0 && n <= INT32_MAX ? (int)n : 0, WEFT_EARG, "stack",
                               "%lld tensors%s; expected one or more", (long long)n, x ? "" : ", NULL");
    int rank = x[0]->f.rank + 1, position = axis < 0 ? axis + rank : axis;
    if (rank > WEFT_RANK || position < 0 || position >= rank)
        return weft__failed(x[0], WEFT_ESHAPE, "stack",
                            "new axis %d; expected an input of rank 0 .. %d and an axis of the result", axis,
                            WEFT_RANK - 1);
    weft_tensor **views =
        stackable(x, n, position) ? weft__take(w, WEFT__ARENA_CALLS, n * (int64_t)sizeof *views) : NULL;
    for (int64_t i = 0; views && i < n; i++)
        views[i] = weft__insert_axis(x[i], position);
    return views ? weft__apply(&op_stack, views, (int)n, &position, sizeof position)->y[0] : &w->nil;
}
