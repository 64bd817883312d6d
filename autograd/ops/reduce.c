/* reduce.c - computes sums, variances, norms, running sums and flips along an axis, or over the tokens of
 * each sequence. For the kernels both are runs of rows (weft__segments), so one operator does both. */
#include <math.h>
#include "autograd/op.h"

bool weft__find_axis(const weft_tensor *x, int *axis, const char *function)
{
    weft *w = x ? x->w : weft__no_context();
    if (!WEFT__IS_USABLE(w, x, "%s: the tensor", function) || w->status)
        return false;
    if (*axis >= x->f.rank || *axis < -x->f.rank)
        weft__fail(w, WEFT_EARG, "%s: %s has no axis %d", function, WEFT__TEXT(&x->f), *axis);
    *axis += *axis < 0 ? x->f.rank : 0;
    return !w->status;
}

bool weft__axis_not_rows(weft_tensor *x, int *axis, const char *function)
{
    if (!weft__find_axis(x, axis, function))
        return false;
    if (!x->f.batch || *axis != 0)
        return true;
    weft__failed(x, WEFT_ESHAPE, function,
                 "axis 0 of a ragged tensor; expected weft_pool for each sequence, or weft_sum_all, "
                 "weft_mean_all or weft_plain for all tokens");
    return false;
}

weft__along weft__along_axis(const weft_tensor *x, int axis, bool tokens)
{
    return (weft__along){ x->f, axis, tokens && x->f.batch && axis == 0, false };
}

weft__segments weft__segments_of(const weft__along *a)
{
    const weft__form *f = &a->whole;
    const int64_t inner = weft__extents(f, a->axis + 1, f->rank);
    return a->tokens ? (weft__segments){ f->batch->n, 0, inner, f->batch->offset.device } :
                       (weft__segments){ weft__extents(f, 0, a->axis), f->size[a->axis], inner, NULL };
}

weft__form weft__reduced_form(const weft__along *a)
{
    weft__form f = a->whole;
    if (a->axis == 0) {
        f.batch = NULL;
        f.layout = WEFT_PLAIN;
        f.place = NULL;
    }
    if (a->tokens) {
        f.size[0] = a->whole.batch->n;
        return f;
    }
    for (int i = a->axis; i + 1 < f.rank; i++)
        f.size[i] = f.size[i + 1];
    f.rank--;
    return f;
}

void weft__describe_along(const weft_call *c, char *text, size_t size)
{
    const weft__along *a = c->attributes;
    if (a->tokens)
        snprintf(text, size, "within sequences%s", a->flag ? ", from the end" : "");
    else
        snprintf(text, size, "axis=%d%s", a->axis, a->flag ? ", from the end" : "");
}

weft__along weft__current_along(const weft_call *c)
{
    weft__along a = *(const weft__along *)c->attributes;
    a.whole = c->x[0]->f;
    return a;
}

weft__along *weft__store_form(weft_call *c)
{
    weft__along *a = (weft__along *)(uintptr_t)c->attributes;
    a->whole = c->x[0]->f;
    if (a->axis == 0)
        weft__drop_row_order(c);
    return a;
}

bool weft__reduced_shape(weft_call *c)
{
    c->y[0]->f = weft__reduced_form(weft__store_form(c));
    return true;
}

void weft__run_segment_ints(weft_call *c, int f) { RUN(c, segment_ints, SEGMENTS(c), f, I(c, 0), YI(c, 0)); }

/* ---- sum, and its transpose ---- */
static void reduce_run(weft_call *c)
{
    if (is_real(c, 0))
        RUN(c, segment_sum, SEGMENTS(c), X(c, 0), Y(c, 0), c->add);
    else
        weft__run_segment_ints(c, WEFT__add);
}
static bool expand_shape(weft_call *c)
{
    weft__along *a = (weft__along *)(uintptr_t)c->attributes;
    const weft__form *x = &c->x[0]->f;
    if (a->axis > 0 && a->whole.batch && x->batch)
        weft__copy_layout(&a->whole, x);
    c->y[0]->f = a->whole;
    if (a->axis == 0)
        weft__drop_row_order(c);
    weft__form expected = weft__reduced_form(a);
    return weft__forms_equal(&expected, x) || weft_op_refuse(c, "expected one row for each run");
}
static void expand_run(weft_call *c) { RUN(c, segment_spread, SEGMENTS(c), X(c, 0), Y(c, 0), c->add); }
static const weft_op op_sum;
static weft_tensor *along_back(const weft_call *c, weft_tensor *dy, int i) /* the other operator */
{
    (void)i;
    return (c->op == &op_sum ? weft__expand : weft__reduce)(dy, c->attributes);
}
static const weft_op op_sum =
    LINEAR_RECORD("sum", WEFT__ALONG, weft__reduced_shape, reduce_run, along_back, weft__describe_along);
static const weft_op op_spread =
    LINEAR_RECORD("broadcast", WEFT__ALONG, expand_shape, expand_run, along_back, weft__describe_along);

weft_tensor *weft__reduce(weft_tensor *x, const weft__along *a) { return APPLY_WITH(&op_sum, *a, x); }
weft_tensor *weft__expand(weft_tensor *y, const weft__along *a) { return APPLY_WITH(&op_spread, *a, y); }

weft_tensor *weft_sum(weft_tensor *x, int axis)
{
    if (!weft__axis_not_rows(x, &axis, "sum"))
        return weft__inert_of(x);
    weft__along a = weft__along_axis(x, axis, false);
    return weft__reduce(x, &a);
}

weft_tensor *weft_mean(weft_tensor *x, int axis)
{
    if (!weft__axis_not_rows(x, &axis, "mean"))
        return weft__inert_of(x);
    if (x->f.type != WEFT_REAL)
        return weft__failed(x, WEFT_ESHAPE, "mean", "expected reals (weft_to_reals)");
    int64_t n = x->f.size[axis];
    return weft_scale(weft_sum(x, axis), n ? (double)(1 / (real)n) : 0);
}

/* ---- variance: first the mean, then the squared differences from it ---- */
static weft_tensor *variance(weft_tensor *x, int axis, double correction, const char *name)
{
    if (!weft__axis_not_rows(x, &axis, name))
        return weft__inert_of(x);
    if (x->f.type != WEFT_REAL)
        return weft__failed(x, WEFT_ESHAPE, name, "expected reals (weft_to_reals)");
    if (!(correction >= 0 && isfinite(correction)))
        return weft__failed(x, WEFT_EARG, name, "correction %g; expected 0 or more", correction);
    double divisor = (double)x->f.size[axis] - correction;
    weft__along a = weft__along_axis(x, axis, false);
    weft_tensor *apart = weft_sub(x, weft__expand(weft_mean(x, axis), &a));
    return weft_scale(weft__reduce(weft_square(apart), &a), divisor > 0 ? 1 / divisor : 0);
}

weft_tensor *weft_var(weft_tensor *x, int axis, double correction)
{
    return variance(x, axis, correction, "var");
}

/* Where the deviation is 0, its gradient is that of the variance, 0, not the infinite one of the root. */
weft_tensor *weft_std(weft_tensor *x, int axis, double correction)
{
    weft_tensor *v = variance(x, axis, correction, "std"), *positive = weft_greater(v, weft_scalar(v->w, 0));
    return weft_where(positive, weft_sqrt(weft_where(positive, v, weft_scalar(v->w, 1))), v);
}

/* ---- norms ---- */
/* Returns the largest absolute value along the axis, repeated along it; 1 where it is 0, infinite or NaN.
 * After division by it no square overflows. It is a constant: norm and derivatives do not depend on it. */
static weft_tensor *scale_of(weft_tensor *x, const weft__along *a)
{
    weft *w = x->w;
    bool recording = weft_set_grad_enabled(w, false);
    weft_tensor *one = weft_scalar(w, 1), *most = weft_max(weft_abs(x), a->axis);
    most = weft_where(weft_less(most, weft_scalar(w, (double)INFINITY)), most, one);
    most = weft_where(most, most, one);
    weft_set_grad_enabled(w, recording);
    return most;
}

/* Where x is 0 a constant 0 is selected, so all derivatives are 0 there. */
static weft_tensor *euclidean(weft_tensor *x, int axis)
{
    weft__along a = weft__along_axis(x, axis, false);
    weft_tensor *scale = scale_of(x, &a);
    weft_tensor *sum = weft_sum(weft_square(weft_div(x, weft__expand(scale, &a))), axis);
    return weft_where(sum, weft_mul(weft_sqrt(sum), scale), weft_scalar(x->w, 0));
}

weft_tensor *weft_vector_norm(weft_tensor *x, int axis, double power)
{
    if (!weft__axis_not_rows(x, &axis, "vector_norm"))
        return weft__inert_of(x);
    if (x->f.type != WEFT_REAL)
        return weft__failed(x, WEFT_EARG, "vector_norm", "expected reals (weft_to_reals)");
    if (power != 0 && power != 1 && power != 2 && power != (double)INFINITY)
        return weft__failed(x, WEFT_EARG, "vector_norm", "power %g; expected 1, 2 (or 0) or INFINITY", power);
    if (power == 1 || !x->f.size[axis])
        return weft_sum(weft_abs(x), axis);
    return power == (double)INFINITY ? weft_max(weft_abs(x), axis) : euclidean(x, axis);
}

/* ---- running sums, flips: y has the form of x; the transpose only reverses the direction ---- */
static bool shape_of_input(weft_call *c)
{
    weft_op_like(c->y[0], c->x[0]);
    weft__store_form(c);
    return true;
}
static bool cumsum_shape(weft_call *c)
{
    return shape_of_input(c) && (is_real(c, 0) || weft_op_refuse(c, "expected reals (weft_to_reals)"));
}
static void cumsum_run(weft_call *c)
{
    const weft__along *a = c->attributes;
    RUN(c, cumsum, SEGMENTS(c), a->flag, X(c, 0), Y(c, 0), c->add);
}
static weft_tensor *cumsum_back(const weft_call *c, weft_tensor *dy, int i)
{
    weft__along a = *(const weft__along *)c->attributes;
    (void)i;
    a.flag = !a.flag;
    return APPLY_WITH(c->op, a, dy);
}
/* Reverses the rows, within each sequence if the axis is tokens. */
static void flip_ints(weft_call *c)
{
    const weft__along *a = c->attributes;
    const weft__segments *s = SEGMENTS(c);
    const weft_batch *b = a->tokens ? a->whole.batch : NULL;
    for (int64_t run = 0; run < (b ? b->n : 1); run++) {
        int64_t first = b ? b->offset.host[run] : 0, n = b ? b->len[run] : s->length, w = s->inner;
        weft__grid g = { 3, { b ? 1 : s->count, n, w }, { { n * w, -w, 1 } } };
        if (n)
            RUN(c, spread_ints, &g, I(c, 0) + (first + n - 1) * w, YI(c, 0) + first * w);
    }
}
static void flip_run(weft_call *c)
{
    if (is_real(c, 0))
        RUN(c, flip, SEGMENTS(c), X(c, 0), Y(c, 0), c->add);
    else
        flip_ints(c);
}
static weft_tensor *flip_back(const weft_call *c, weft_tensor *dy, int i)
{
    (void)i;
    return weft__apply(c->op, &dy, 1, c->attributes, sizeof(weft__along))->y[0];
}
static const weft_op op_cumsum =
    LINEAR_RECORD("cumsum", WEFT__ALONG, cumsum_shape, cumsum_run, cumsum_back, weft__describe_along);
static const weft_op op_flip =
    LINEAR_RECORD("flip", WEFT__ALONG, shape_of_input, flip_run, flip_back, weft__describe_along);

static weft_tensor *ordered(const weft_op *op, weft_tensor *x, int axis)
{
    if (!weft__find_axis(x, &axis, op->name))
        return weft__inert_of(x);
    weft__along a = weft__along_axis(x, axis, true);
    return APPLY_WITH(op, a, x);
}

weft_tensor *weft_cumsum(weft_tensor *x, int axis) { return ordered(&op_cumsum, x, axis); }
weft_tensor *weft_flip(weft_tensor *x, int axis) { return ordered(&op_flip, x, axis); }

/* ---- over all elements ---- */
static weft_tensor *sum_of_all(weft_tensor *x, const char *function)
{
    if (!x || x->f.type != WEFT_REAL || weft__handle_error(x->w, x))
        return weft__failed(x, WEFT_EARG, function, "expected reals (weft_to_reals)");
    return weft__sum_to(x, &(weft__form){ 0 });
}

weft_tensor *weft_sum_all(weft_tensor *x) { return sum_of_all(x, "sum_all"); }

weft_tensor *weft_mean_all(weft_tensor *x)
{
    weft_tensor *sum = sum_of_all(x, "mean_all");
    int64_t n = weft_ok(sum->w) ? weft__numbers(&x->f) : 0;
    return weft_scale(sum, n ? (double)(1 / (real)n) : 0);
}
