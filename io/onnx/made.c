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
    if (shape.count > WEFT_RANK || (a && a->tensor.count != 1))
        weft__onnx_fail(r, "a shape of %lld axes; expected 0 .. %d", (long long)shape.count, WEFT_RANK);
    for (int64_t i = 0; weft_ok(r->w) && i < shape.count; i++)
        if (shape.number[i] < 0)
            weft__onnx_fail(r, "extent %lld", (long long)shape.number[i]);
    if (!weft_ok(r->w))
        return;
    int rank = (int)shape.count;
    int64_t n = weft__onnx_product(shape.number, rank);
    bool is_real = weft__number_is_float(weft__onnx_number(type));
    if (is_real && r->importing && (uint64_t)n >= r->left / sizeof(weft_real))
        weft__onnx_fail(r, "%lld numbers are too many for this file", (long long)n);
    else if (is_real)
        *out = weft__onnx_reals(r, weft_full(r->w, a ? (double)a->floats[0] : 0, rank, shape.number));
    else
        *out = weft__onnx_integers(r, type, rank, shape.number);
    for (int64_t i = 0; !is_real && out->type && i < out->count; i++)
        out->number[i] = *a->tensor.number;
}

static void range(run *r, const value *in, value *out)
{
    if (in[0].x || in[1].x || in[2].x) {
        double p[3];
        for (int i = 0; i < 3; i++)
            p[i] = in[i].x ? weft_item(in[i].x) : (double)*in[i].number;
        double count = ceil((p[1] - p[0]) / p[2]);
        int64_t n = count > 0 && count < 0x1p40 ? (int64_t)count : 0;
        weft_real *x = weft__onnx_take(r, n, sizeof *x);
        for (int64_t i = 0; x && i < n; i++)
            x[i] = (weft_real)(p[0] + (double)i * p[2]);
        *out = weft__onnx_reals(r, weft_reals(r->w, x, 1, &n));
        return;
    }
    int64_t from = *in[0].number, step = *in[2].number, distance, n;
    if (!step || step == INT64_MIN || __builtin_sub_overflow(*in[1].number, from, &distance)) {
        weft__onnx_fail(r, "a range with step %lld", (long long)step);
        return;
    }
    n = distance && (distance > 0) == (step > 0) ? distance / step + (distance % step != 0) : 0;
    *out = weft__onnx_integers(r, in->type, 1, &n);
    for (int64_t i = 0; out->type && i < n; i++)
        out->number[i] = from + i * step;
}

static void one_hot(run *r, const value *in, value *out)
{
    value index = weft__onnx_integers_of(r, in), depth = weft__onnx_list(r, in, 1, NULL);
    int64_t axis = weft__onnx_int(r, "axis", -1), size[WEFT_RANK] = { 0 },
            d = depth.count ? *depth.number : 0;
    if (in->rank == WEFT_RANK || d < 1 || in[2].count != 2 || !weft__onnx_axis(r, &axis, in->rank + 1) ||
        !index.type) {
        weft__onnx_fail(r, "depth %lld, %lld values", (long long)d, (long long)in[2].count);
        return;
    }
    for (int i = 0; i <= in->rank; i++)
        size[i] = i < axis ? in->size[i] : i == axis ? d : in->size[i - 1];
    int64_t n = weft__onnx_product(size, in->rank + 1),
            inner = weft__onnx_product(in->size + axis, in->rank - (int)axis);
    int64_t *from = weft__onnx_take(r, n, sizeof *from);
    for (int64_t i = 0; from && i < n; i++) {
        int64_t class = index.number[i / (inner * d) * inner + i % inner];
        from[i] = (class < 0 ? class + d : class) == i / inner % d;
    }
    *out = weft__onnx_select(r, in + 2, from, in->rank + 1, size);
}

static void non_zero(run *r, const value *in, value *out)
{
    weft_real *x = weft__onnx_read(r, in);
    int64_t n = 0, k = 0, at;
    for (int64_t i = 0; x && i < in->count; i++)
        n += in->x ? x[i] != 0 : in->number[i] != 0;
    *out = weft__onnx_integers(r, WEFT__ONNX_INT64, 2, (int64_t[]){ in->rank, n });
    for (int64_t i = 0; x && out->type && i < in->count; i++)
        if (in->x ? x[i] != 0 : in->number[i] != 0) {
            at = i;
            for (int a = in->rank - 1; a >= 0; at /= in->size[a--])
                out->number[a * n + k] = at % in->size[a];
            k++;
        }
}

/* ---- along an axis ---- */
typedef struct {
    int64_t outer, extent, inner;
} lane;
static lane lanes(const value *x, int axis)
{
    return (lane){ weft__onnx_product(x->size, axis), x->size[axis],
                   weft__onnx_product(x->size + axis + 1, x->rank - axis - 1) };
}

static void cumsum(run *r, const value *in, value *out)
{
    value list = weft__onnx_list(r, in, 1, NULL);
    bool exclusive = weft__onnx_int(r, "exclusive", 0), reverse = weft__onnx_int(r, "reverse", 0);
    int64_t axis = list.count ? *list.number : 0;
    if (!weft__onnx_axis(r, &axis, in->rank))
        return;
    int a = (int)axis;
    if (in->x) {
        weft_tensor *x = reverse ? weft_flip(in->x, a) : in->x, *y = weft_cumsum(x, a);
        y = exclusive ? weft_sub(y, x) : y;
        *out = weft__onnx_reals(r, reverse ? weft_flip(y, a) : y);
        return;
    }
    lane l = lanes(in, a);
    *out = weft__onnx_integers(r, in->type, in->rank, in->size);
    for (int64_t i = 0; out->type && i < l.outer * l.inner; i++) {
        int64_t first = i / l.inner * l.extent * l.inner + i % l.inner;
        uint64_t sum = 0;
        for (int64_t t = 0; t < l.extent; t++) {
            int64_t at = first + (reverse ? l.extent - 1 - t : t) * l.inner;
            out->number[at] = (int64_t)(exclusive ? sum : sum + (uint64_t)in->number[at]);
            sum += (uint64_t)in->number[at];
        }
    }
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
    lane l = lanes(in, axis);
    int64_t size[WEFT_RANK];
    memcpy(size, in->size, sizeof size);
    size[axis] = k;
    ranked *all = weft__onnx_take(r, l.extent, sizeof *all);
    out[0] = weft__onnx_integers(r, in->type, in->rank, size);
    out[1] = weft__onnx_integers(r, WEFT__ONNX_INT64, in->rank, size);
    for (int64_t i = 0; all && out[1].type && i < l.outer * l.inner; i++) {
        const int64_t *from = in->number + i / l.inner * l.extent * l.inner + i % l.inner;
        for (int64_t t = 0; t < l.extent; t++)
            all[t] = (ranked){ largest ? from[t * l.inner] : ~from[t * l.inner], t };
        qsort(all, (size_t)l.extent, sizeof *all, larger_first);
        for (int64_t t = 0; t < k; t++) {
            int64_t to = i / l.inner * k * l.inner + i % l.inner + t * l.inner;
            out[0].number[to] = largest ? all[t].number : ~all[t].number;
            out[1].number[to] = all[t].at;
        }
    }
}

/* Copies a tensor of ints to the host. */
static value read_ints(run *r, weft_tensor *x)
{
    value v = weft__onnx_reals(r, x), to = weft__onnx_integers(r, WEFT__ONNX_INT64, v.rank, v.size);
    int32_t *ints = weft__onnx_take(r, v.count, sizeof *ints);
    if (ints)
        weft_read(x, ints, (size_t)v.count * sizeof *ints);
    for (int64_t i = 0; ints && to.type && i < v.count; i++)
        to.number[i] = ints[i];
    return to;
}

static void top_k(run *r, const value *in, value *out)
{
    int64_t axis = weft__onnx_int(r, "axis", -1), k = weft__onnx_int(r, "k", 0);
    bool largest = weft__onnx_int(r, "largest", 1);
    value list = weft__onnx_list(r, in, 1, NULL);
    k = list.count ? *list.number : k;
    if (!weft__onnx_axis(r, &axis, in->rank))
        return;
    if (k < 0 || k > in->size[axis])
        weft__onnx_fail(r, "k is %lld of %lld", (long long)k, (long long)in->size[axis]);
    else if (!in->x)
        top_integers(r, in, (int)axis, k, largest, out);
    else {
        weft_tensor *values, *indices;
        weft_topk(largest ? in->x : weft_neg(in->x), k, (int)axis, &values, &indices);
        out[0] = weft__onnx_reals(r, largest ? values : weft_neg(values));
        out[1] = read_ints(r, indices);
    }
}

static void arg_extreme(run *r, const value *in, value *out)
{
    int64_t axis = weft__onnx_int(r, "axis", 0), size[WEFT_RANK];
    bool smallest = r->node->operation->option, last = weft__onnx_int(r, "select_last_index", 0);
    if (!weft__onnx_axis(r, &axis, in->rank))
        return;
    weft_tensor *x = weft__onnx_tensor_of(r, in);
    x = last ? weft_flip(x, (int)axis) : x;
    value y = read_ints(r, smallest ? weft_argmin(x, (int)axis) : weft_argmax(x, (int)axis));
    for (int64_t i = 0; last && y.type && i < y.count; i++)
        y.number[i] = in->size[axis] - 1 - y.number[i];
    memcpy(size, in->size, sizeof size);
    size[axis] = 1;
    if (y.type)
        *out = weft__onnx_int(r, "keepdims", 1) ? weft__onnx_reshape(r, &y, in->rank, size) : y;
}

const operation weft__onnx_made[] = {
    { "ConstantOfShape", constant_of_shape, 1, 0, NULL, NULL },
    { "Range", range, 3, 0, NULL, NULL },
    { "OneHot", one_hot, 3, 0, NULL, NULL },
    { "NonZero", non_zero, 1, 0, NULL, NULL },
    { "CumSum", cumsum, 2, 0, NULL, NULL },
    { "TopK", top_k, 1, 0, NULL, NULL },
    { "ArgMax", arg_extreme, 1, 0, NULL, NULL },
    { "ArgMin", arg_extreme, 1, 1, NULL, NULL },
    { NULL, NULL, 0, 0, NULL, NULL },
};
