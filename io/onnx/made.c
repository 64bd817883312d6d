/* made.c - operators that make numbers from shapes, positions and orders. */
#include <math.h>
#include "io/onnx/model.h"

static void constant_of_shape(run *r, const value *in, value *out)
{
    value shape = weft__onnx_list(r, in, 0, NULL);
    const attribute *a = weft__onnx_attribute(r, "value", 4);
    weft__number number = weft__onnx_number(a ? a->tensor.type : WEFT__ONNX_FLOAT);
    int64_t size[WEFT_RANK];
    int rank = weft__onnx_shape(r, &shape, 0, size);
    if ((a && a->tensor.count != 1) || number == WEFT__ODD)
        weft__onnx_fail(r, "value is not one number");
    if (!weft_ok(r->w))
        return;
    value one = weft__number_is_float(number) ?
                    weft__onnx_reals(r, weft_scalar(r->w, a ? (double)a->floats[0] : 0)) :
                    weft__onnx_reshape(r, &a->tensor, 0, NULL);
    *out = weft__onnx_expand(r, &one, rank, size);
}

static void range(run *r, const value *in, value *out)
{
    bool is_real = in[0].x || in[1].x || in[2].x;
    double p[3];
    for (int i = 0; i < 3; i++)
        p[i] = in[i].x ? weft_item(in[i].x) : in[i].count ? (double)*in[i].number : (double)NAN;
    double count = ceil((p[1] - p[0]) / p[2]);
    if (!(count < 0x1p40)) {
        weft__onnx_fail(r, "a range with step %g", p[2]);
        return;
    }
    int64_t n = count > 0 ? (int64_t)count : 0;
    *out = weft__onnx_integers(r, in->type, 1, &n);
    uint64_t from = is_real ? 0 : (uint64_t)*in[0].number, step = is_real ? 1 : (uint64_t)*in[2].number;
    for (int64_t i = 0; out->type && i < n; i++)
        out->number[i] = (int64_t)(from + (uint64_t)i * step);
    if (is_real)
        *out = weft__onnx_reals(
            r, weft_add(weft_scale(weft__onnx_tensor_of(r, out), p[2]), weft_scalar(r->w, p[0])));
}

static void one_hot(run *r, const value *in, value *out)
{
    value index = weft__onnx_integers_of(r, in), list = weft__onnx_list(r, in, 1, NULL);
    int64_t axis = weft__onnx_int(r, "axis", -1), size[WEFT_RANK + 1], depth = list.count ? *list.number : 0;
    if (in->rank == WEFT_RANK || depth < 1 || in[2].count != 2)
        weft__onnx_fail(r, "depth %lld, %lld values", (long long)depth, (long long)in[2].count);
    if (!weft__onnx_axis(r, &axis, in->rank + 1))
        return;
    for (int i = 0; i <= in->rank; i++)
        size[i] = i < axis ? in->size[i] : i == axis ? depth : in->size[i - 1];
    int64_t n = weft__onnx_product(size, in->rank + 1),
            inner = weft__onnx_product(in->size + axis, in->rank - (int)axis);
    int64_t *from = weft__onnx_take(r, n, sizeof *from);
    for (int64_t i = 0; from && i < n; i++) {
        int64_t class = index.number[i / (inner * depth) * inner + i % inner];
        from[i] = (class < 0 ? class + depth : class) == i / inner % depth;
    }
    *out = weft__onnx_select(r, in + 2, from, 1, in->rank + 1, size);
}

static void non_zero(run *r, const value *in, value *out)
{
    value x = weft__onnx_truths(r, in);
    int64_t n = 0, k = 0;
    for (int64_t i = 0; i < x.count; i++)
        n += x.number[i];
    *out = weft__onnx_integers(r, WEFT__ONNX_INT64, 2, (int64_t[]){ in->rank, n });
    for (int64_t i = 0; out->type && i < x.count; i++) {
        int64_t at = i;
        for (int a = in->rank - 1; x.number[i] && a >= 0; at /= in->size[a--])
            out->number[a * n + k] = at % in->size[a];
        k += x.number[i];
    }
}

/* ---- along an axis ---- */
value weft__onnx_ints(run *r, weft_tensor *x)
{
    value v = weft__onnx_reals(r, x), to = weft__onnx_integers(r, WEFT__ONNX_INT64, v.rank, v.size);
    int32_t *ints = weft__onnx_take(r, v.count, sizeof *ints);
    if (ints)
        weft_read(x, ints, (size_t)v.count * sizeof *ints);
    for (int64_t i = 0; ints && to.type && i < v.count; i++)
        to.number[i] = ints[i];
    return weft_ok(r->w) ? to : (value){ 0 };
}

/* Fails if an integer has more digits than reals hold. */
static void check_digits(run *r, const value *x)
{
    for (int64_t i = 0; weft_ok(r->w) && !x->x && i < x->count; i++)
        if (x->number[i] > 1 << 24 || x->number[i] < -(1 << 24))
            weft__onnx_fail(r, "%lld; expected integers up to 2^24", (long long)x->number[i]);
}

static weft_tensor *exact(run *r, const value *x)
{
    check_digits(r, x);
    return weft__onnx_tensor_of(r, x);
}

/* Returns x as reals or integers, like `like`. */
static value exact_like(run *r, const value *like, weft_tensor *x)
{
    value y = weft__onnx_reals(r, x);
    if (like->x)
        return y;
    y = weft__onnx_integers_of(r, &y);
    y.type = y.type ? like->type : 0;
    check_digits(r, &y);
    return y;
}

static void cumsum(run *r, const value *in, value *out)
{
    value list = weft__onnx_list(r, in, 1, NULL);
    bool exclusive = weft__onnx_int(r, "exclusive", 0), reverse = weft__onnx_int(r, "reverse", 0);
    int64_t axis = list.count ? *list.number : 0;
    if (!weft__onnx_axis(r, &axis, in->rank))
        return;
    weft_tensor *x = exact(r, in), *y;
    x = reverse ? weft_flip(x, (int)axis) : x;
    y = weft_cumsum(x, (int)axis);
    y = exclusive ? weft_sub(y, x) : y;
    *out = exact_like(r, in, reverse ? weft_flip(y, (int)axis) : y);
}

static void top_k(run *r, const value *in, value *out)
{
    int64_t axis = weft__onnx_int(r, "axis", -1), k = weft__onnx_int(r, "k", 0);
    bool largest = weft__onnx_int(r, "largest", 1);
    value list = weft__onnx_list(r, in, 1, NULL);
    if (!weft__onnx_axis(r, &axis, in->rank))
        return;
    weft_tensor *x = exact(r, in), *values, *indices;
    weft_topk(largest ? x : weft_neg(x), list.count ? *list.number : k, (int)axis, &values, &indices);
    out[0] = exact_like(r, in, largest ? values : weft_neg(values));
    out[1] = weft__onnx_ints(r, indices);
}

static void arg_extreme(run *r, const value *in, value *out)
{
    int64_t at = weft__onnx_int(r, "axis", 0);
    bool last = weft__onnx_int(r, "select_last_index", 0);
    if (!weft__onnx_axis(r, &at, in->rank))
        return;
    int axis = (int)at;
    weft_tensor *x = exact(r, in);
    x = last ? weft_flip(x, axis) : x;
    *out = weft__onnx_ints(r, r->node->operation->option ? weft_argmin(x, axis) : weft_argmax(x, axis));
    for (int64_t i = 0; last && i < out->count; i++)
        out->number[i] = in->size[axis] - 1 - out->number[i];
    value kept = *in;
    kept.size[axis] = 1;
    if (weft__onnx_int(r, "keepdims", 1))
        *out = weft__onnx_reshape(r, out, in->rank, kept.size);
}

const operation weft__onnx_made[] = {
    { "ConstantOfShape", constant_of_shape, .inputs = 1 }, { "Range", range, .inputs = 3 },
    { "OneHot", one_hot, .inputs = 3 }, { "NonZero", non_zero, .inputs = 1 },
    { "CumSum", cumsum, .inputs = 2 }, { "TopK", top_k, .inputs = 1 },
    { "ArgMax", arg_extreme, .inputs = 1 }, { "ArgMin", arg_extreme, .inputs = 1, .option = 1 },
    { .name = NULL },
};
