/* extreme.c - computes the largest and smallest elements along an axis, their indices, and the k largest. */
#include "autograd/op.h"

/* ---- max: returns the value and a hidden result, its index, which receives the gradient. min is max of the
 * negated input, which is another hidden result. ---- */
static const weft_op op_pick;

/* Returns the number of the result with the value; the other of the first two results is its index. The
 * operators without a gradient return the index first. */
static int value_of(const weft_call *c) { return c->op->no_gradient ? 1 : 0; }

static bool extreme_shape(weft_call *c)
{
    const weft__along *a = weft__store_form(c);
    if (!is_real(c, 0))
        return weft_op_refuse(c, "expected reals (weft_to_reals)");
    c->y[0]->f = c->y[1]->f = weft__reduced_form(a);
    c->y[!value_of(c)]->f.type = WEFT_I32;
    if (c->m > 2)
        c->y[2]->f = a->whole;
    return a->tokens || a->whole.size[a->axis] || !count(c->y[0]) ||
           weft_op_refuse(c, c->m > 2 ? "the axis is empty; expected an element for the minimum" :
                                        "the axis is empty; expected an element for the maximum");
}
static void extreme_run(weft_call *c)
{
    real *y = Y(c, value_of(c)), *negated = c->m > 2 ? Y(c, 2) : NULL;
    int32_t *row = YI(c, !value_of(c));
    if (negated)
        RUN(c, scale, count(c->x[0]), -1, X(c, 0), negated, false);
    RUN(c, segment_max, SEGMENTS(c), negated ? negated : X(c, 0), y, row);
    if (negated)
        RUN(c, scale, count(c->y[value_of(c)]), -1, y, y, false);
}
static weft_tensor *extreme_back(const weft_call *c, weft_tensor *dy, int i)
{
    weft__along a = weft__current_along(c);
    (void)i;
    return weft__place_along(&a, dy, c->y[1]);
}
static void place_along_run(weft_call *c)
{
    if (!c->add)
        RUN(c, fill, count(c->y[0]), 0, Y(c, 0));
    RUN(c, segment_place, SEGMENTS(c), X(c, 0), I(c, 1), Y(c, 0));
}
static weft_tensor *place_along_back(const weft_call *c, weft_tensor *dy, int i)
{
    return i ? NULL : APPLY_WITH(&op_pick, *(const weft__along *)c->attributes, dy, c->x[1]);
}
static bool pick_shape(weft_call *c)
{
    c->y[0]->f = weft__reduced_form(c->attributes);
    return true;
}
static void pick_run(weft_call *c) { RUN(c, segment_pick, SEGMENTS(c), X(c, 0), I(c, 1), Y(c, 0), c->add); }
static weft_tensor *pick_back(const weft_call *c, weft_tensor *dy, int i)
{
    return i ? NULL : weft__place_along(c->attributes, dy, c->x[1]);
}
static const weft_op op_place = LINEAR_RECORD("place", WEFT_ROWS, weft__form_shape, place_along_run,
                                              place_along_back, weft__describe_along);
static const weft_op op_pick = LINEAR_RECORD("gather", WEFT_ROWS, pick_shape, pick_run, pick_back,
                                             weft__describe_along);

weft_tensor *weft__place_along(const weft__along *a, weft_tensor *x, weft_tensor *index)
{
    return APPLY_WITH(&op_place, *a, x, index);
}

/* ---- largest of ints: no index and no gradient ---- */
static bool int_shape(weft_call *c)
{
    const weft__along *a = c->attributes;
    return weft__reduced_shape(c) && (a->tokens || a->whole.size[a->axis] || !count(c->y[0]) ||
                                      weft_op_refuse(c, "the axis is empty; expected an element"));
}
static void int_max_run(weft_call *c) { weft__run_segment_ints(c, WEFT__maximum); }
static void int_min_run(weft_call *c) { weft__run_segment_ints(c, WEFT__minimum); }
#define INT_RECORD(its_name, run)                                                              \
    {                                                                                          \
        .name = its_name, .layout = WEFT__ALONG, .no_gradient = true,             \
        .shape = int_shape, .forward = run, .describe = weft__describe_along                   \
    }
static const weft_op op_int_max = INT_RECORD("max", int_max_run), op_int_min = INT_RECORD("min", int_min_run);

#define EXTREME_RECORD(its_name, n, of_index)                                                  \
    {                                                                                          \
        .name = its_name, .results = n, .layout = WEFT__ALONG, .unread = 1,                    \
        .no_gradient = of_index, .shape = extreme_shape, .forward = extreme_run,               \
        .backward = extreme_back, .describe = weft__describe_along                             \
    }
static const weft_op op_max = EXTREME_RECORD("max", 2, false), op_min = EXTREME_RECORD("min", 3, false),
                     op_argmax = EXTREME_RECORD("argmax", 2, true),
                     op_argmin = EXTREME_RECORD("argmin", 3, true);

static bool is_of_ints(const weft_tensor *x)
{
    return x && !weft__handle_error(x->w, x) && x->f.type == WEFT_I32;
}

static weft_tensor *extreme_along(const weft_op *op, weft_tensor *x, int axis)
{
    if (!weft__axis_not_rows(x, &axis, op->name))
        return weft__inert_of(x);
    weft__along a = weft__along_axis(x, axis, false);
    return APPLY_WITH(op, a, x);
}

weft_tensor *weft__pool_max(weft_tensor *x)
{
    weft__along a = weft__along_axis(x, 0, true);
    return APPLY_WITH(is_of_ints(x) ? &op_int_max : &op_max, a, x);
}

weft_tensor *weft_max(weft_tensor *x, int axis)
{
    return extreme_along(is_of_ints(x) ? &op_int_max : &op_max, x, axis);
}
weft_tensor *weft_min(weft_tensor *x, int axis)
{
    return extreme_along(is_of_ints(x) ? &op_int_min : &op_min, x, axis);
}
weft_tensor *weft_argmax(weft_tensor *x, int axis) { return extreme_along(&op_argmax, x, axis); }
weft_tensor *weft_argmin(weft_tensor *x, int axis) { return extreme_along(&op_argmin, x, axis); }

/* ---- the k largest: indices along the axis and, hidden, in the whole tensor, to gather values ---- */
typedef weft__top top;

static bool topk_shape(weft_call *c)
{
    top *t = (top *)(uintptr_t)c->attributes;
    const weft__form *f = &weft__store_form(c)->whole;
    int64_t n = f->size[t->along.axis];
    if (!is_real(c, 0) || t->k < 0 || t->k > n || count(c->x[0]) > INT32_MAX)
        return weft__refuse(c,
                            "the %lld largest along axis %d; expected reals (weft_to_reals), 0 .. %lld of "
                            "them, and at most %d elements",
                            (long long)t->k, t->along.axis, (long long)n, INT32_MAX);
    c->y[0]->f = *f;
    c->y[0]->f.type = WEFT_I32;
    c->y[0]->f.size[t->along.axis] = t->k;
    c->y[1]->f = c->y[0]->f;
    return true;
}
static void topk_run(weft_call *c)
{
    const top *t = c->attributes;
    RUN(c, segment_topk, SEGMENTS(c), t->k, X(c, 0), YI(c, 0), YI(c, 1));
}
static void describe_topk(const weft_call *c, char *text, size_t size)
{
    const top *t = c->attributes;
    snprintf(text, size, "k=%lld, axis=%d", (long long)t->k, t->along.axis);
}
static const weft_op op_topk = { .name = "topk",
                                 .results = 2,
                                 .no_gradient = true,
                                 .shape = topk_shape,
                                 .forward = topk_run,
                                 .describe = describe_topk };

void weft_topk(weft_tensor *x, int64_t k, int axis, weft_tensor **values, weft_tensor **indices)
{
    weft_tensor *inert = weft__inert_of(x), *index = inert, *value = inert;
    if (weft__axis_not_rows(x, &axis, "topk")) {
        top t = { weft__along_axis(x, axis, false), k };
        const weft_call *c = weft__apply(&op_topk, &x, 1, &t, sizeof t);
        index = c->y[0];
        if (weft_ok(x->w)) {
            weft_tensor *flat = weft_plain(index->f.batch ? weft__arranged_as(x, &index->f) : x);
            value = weft_index_select(weft_reshape(flat, 1, (int64_t[]){ -1 }), c->y[1]);
        }
    }
    if (values)
        *values = value;
    if (indices)
        *indices = index;
}
