/* made.c - operators that make numbers from shapes, positions and orders. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "io/onnx/model.h"

static void constant_of_shape(run *r, const value *in, value *out)
{
    value shape = weft__onnx_list(r, in, 0, NULL);
    const attribute *a = weft__onnx_attribute(r, "value", 4);
    int type = a ? a->tensor.type : WEFT__ONNX_FLOAT;
    int64_t size[WEFT_RANK];
    int rank = weft__onnx_shape(r, &shape, 0, size);
    if ((a && a->tensor.count != 1) || weft__onnx_number(type) == WEFT__ODD)
        weft__onnx_fail(r, "value has the element type %d; expected one number", type);
    if (!weft_ok(r->w))
        return;
    if (weft__number_is_float(weft__onnx_number(type))) {
        if (weft__onnx_fits(r, rank, size))
            *out = weft__onnx_reals(r, weft_full(r->w, a ? (double)a->floats[0] : 0, rank, size));
        return;
    }
    *out = weft__onnx_integers(r, type, rank, size);
    for (int64_t i = 0; out->type && i < out->count; i++)
        out->number[i] = *a->tensor.number;
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
    if (is_real) {
        weft_real *x = weft__onnx_take(r, n, sizeof *x);
        for (int64_t i = 0; x && i < n; i++)
            x[i] = (weft_real)(p[0] + (double)i * p[2]);
        *out = weft__onnx_reals(r, weft_reals(r->w, x, 1, &n));
        return;
    }
    *out = weft__onnx_integers(r, in->type, 1, &n);
    for (int64_t i = 0; out->type && i < n; i++)
        out->number[i] = (int64_t)((uint64_t)*in[0].number + (uint64_t)i * (uint64_t)*in[2].number);
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
/* Exchanges an axis with the last. */
static value exchanged(run *r, const value *x, int axis)
{
    int64_t axes[WEFT_RANK];
    int last = x->rank - 1;
    for (int i = 0; i <= last; i++)
        axes[i] = i == axis ? last : i == last ? axis : i;
    return weft__onnx_permute(r, x, axes);
}

static value flipped(run *r, const value *x, int axis)
{
    int64_t n = x->size[axis];
    return weft__onnx_slice(r, x, axis, n - 1, -1, n);
}

static value sums(run *r, const value *in, int axis, bool exclusive)
{
    value x = exchanged(r, in, axis), y = weft__onnx_integers(r, x.type, x.rank, x.size);
    int64_t extent = in->size[axis];
    uint64_t sum = 0;
    for (int64_t i = 0; y.type && i < y.count; i++) {
        sum = i % extent ? sum : 0;
        y.number[i] = (int64_t)(exclusive ? sum : sum + (uint64_t)x.number[i]);
        sum += (uint64_t)x.number[i];
    }
    return exchanged(r, &y, axis);
}

static void cumsum(run *r, const value *in, value *out)
{
    value list = weft__onnx_list(r, in, 1, NULL), x = *in;
    bool exclusive = weft__onnx_int(r, "exclusive", 0), reverse = weft__onnx_int(r, "reverse", 0);
    int64_t at = list.count ? *list.number : 0;
    if (!weft__onnx_axis(r, &at, in->rank))
        return;
    int axis = (int)at;
    x = reverse ? flipped(r, &x, axis) : x;
    if (in->x) {
        weft_tensor *y = weft_cumsum(x.x, axis);
        x = weft__onnx_reals(r, exclusive ? weft_sub(y, x.x) : y);
    } else
        x = sums(r, &x, axis, exclusive);
    *out = reverse ? flipped(r, &x, axis) : x;
}

/* A number and its position, for a sort of integers. */
typedef struct {
    int64_t number, at;
} ranked;
static int larger_first(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    return x->number != y->number ? (x->number < y->number ? 1 : -1) : x->at < y->at ? -1 : 1;
}

static void top_integers(run *r, const value *in, int axis, int64_t k, bool largest, value *out)
{
    value x = exchanged(r, in, axis);
    int64_t n = in->size[axis];
    ranked *row = weft__onnx_take(r, n, sizeof *row);
    out[0] = weft__onnx_integers(r, in->type, x.rank, x.size);
    out[1] = weft__onnx_integers(r, WEFT__ONNX_INT64, x.rank, x.size);
    for (int64_t i = 0; row && out[1].type && i < x.count; i += n) {
        for (int64_t t = 0; t < n; t++)
            row[t] = (ranked){ largest ? x.number[i + t] : ~x.number[i + t], t };
        qsort(row, (size_t)n, sizeof *row, larger_first);
        for (int64_t t = 0; t < n; t++) {
            out[0].number[i + t] = largest ? row[t].number : ~row[t].number;
            out[1].number[i + t] = row[t].at;
        }
    }
    for (int i = 0; i < 2; i++) {
        out[i] = weft__onnx_slice(r, &out[i], in->rank - 1, 0, 1, k);
        out[i] = exchanged(r, &out[i], axis);
    }
}

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

static void top_k(run *r, const value *in, value *out)
{
    int64_t axis = weft__onnx_int(r, "axis", -1), k = weft__onnx_int(r, "k", 0);
    bool largest = weft__onnx_int(r, "largest", 1);
    value list = weft__onnx_list(r, in, 1, NULL);
    weft_tensor *values, *indices;
    k = list.count ? *list.number : k;
    if (!weft__onnx_axis(r, &axis, in->rank))
        return;
    if (k < 0 || k > in->size[axis])
        weft__onnx_fail(r, "k is %lld of %lld", (long long)k, (long long)in->size[axis]);
    else if (!in->x)
        top_integers(r, in, (int)axis, k, largest, out);
    else {
        weft_topk(largest ? in->x : weft_neg(in->x), k, (int)axis, &values, &indices);
        out[0] = weft__onnx_reals(r, largest ? values : weft_neg(values));
        out[1] = weft__onnx_ints(r, indices);
    }
}

static void arg_extreme(run *r, const value *in, value *out)
{
    int64_t axis = weft__onnx_int(r, "axis", 0);
    bool last = weft__onnx_int(r, "select_last_index", 0);
    if (!weft__onnx_axis(r, &axis, in->rank))
        return;
    weft_tensor *x = weft__onnx_tensor_of(r, in);
    x = last ? weft_flip(x, (int)axis) : x;
    x = r->node->operation->option ? weft_argmin(x, (int)axis) : weft_argmax(x, (int)axis);
    *out = weft__onnx_ints(r, x);
    for (int64_t i = 0; last && out->type && i < out->count; i++)
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
