/* cut.c - operators that join values and cut them into parts. */
#include <string.h>
#include "io/onnx/model.h"

static void concat(run *r, const value *in, value *out)
{
    int n = r->node->inputs;
    int64_t axis = weft__onnx_int(r, "axis", 1), outer, to = 0, size[WEFT_RANK];
    bool reals = false;
    weft_tensor **x = weft__onnx_take(r, n, sizeof *x);
    if (!weft__onnx_axis(r, &axis, in->rank) || !x)
        return;
    memcpy(size, in->size, sizeof size);
    size[axis] = 0;
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < in->rank; k++)
            if (!in[i].type || in[i].rank != in->rank || (k != axis && in[i].size[k] != size[k])) {
                weft__onnx_fail(r, "the shape of input %d does not fit that of input 0", i);
                return;
            }
        size[axis] += in[i].size[axis];
        reals = reals || in[i].x;
    }
    for (int i = 0; reals && i < n; i++)
        x[i] = weft__onnx_tensor_of(r, &in[i]);
    *out = reals ? weft__onnx_reals(r, weft_concat(x, n, (int)axis)) :
                   weft__onnx_integers(r, in->type, in->rank, size);
    outer = weft__onnx_product(size, (int)axis);
    for (int64_t o = 0; !reals && out->type && o < outer; o++)
        for (int i = 0; i < n; i++) {
            int64_t part = outer ? in[i].count / outer : 0;
            memcpy(out->number + to, in[i].number + o * part, (size_t)part * sizeof *out->number);
            to += part;
        }
}

/* Python's bounds of a slice, and the number of its elements. */
static int64_t bounds(int64_t *from, int64_t to, int64_t step, int64_t extent)
{
    int64_t low = step < 0 ? -1 : 0, high = step < 0 ? extent - 1 : extent;
    *from += *from < 0 ? extent : 0;
    to += to < 0 && to >= -extent ? extent : to < 0 ? -1 - extent - to : 0;
    to = to < low ? low : to > high ? high : to;
    *from = *from < low ? low : *from > high ? high : *from;
    return step < 0   ? (*from > to ? (*from - to - 1) / -step + 1 : 0) :
           *from < to ? (to - *from - 1) / step + 1 :
                        0;
}

static void slice(run *r, const value *in, value *out)
{
    value from = weft__onnx_list(r, in, 1, "starts"), to = weft__onnx_list(r, in, 2, "ends"),
          axes = weft__onnx_list(r, in, 3, "axes"), steps = weft__onnx_list(r, in, 4, NULL);
    int64_t stride[WEFT_RANK], size[WEFT_RANK], first = 0;
    bool dense = in->x;
    value x = *in;
    if (!from.type || !to.type || to.count != from.count ||
        (axes.type ? axes.count != from.count : from.count > in->rank) ||
        (steps.type && steps.count != from.count)) {
        weft__onnx_fail(r, "starts, ends, axes and steps do not agree");
        return;
    }
    weft__onnx_strides(in, stride);
    memcpy(size, in->size, sizeof size);
    for (int64_t i = 0; i < from.count; i++) {
        int64_t axis = axes.type ? axes.number[i] : i, step = steps.type ? steps.number[i] : 1,
                begin = from.number[i];
        if (!weft__onnx_axis(r, &axis, in->rank))
            return;
        if (!step || step == INT64_MIN) {
            weft__onnx_fail(r, "a step of 0");
            return;
        }
        size[axis] = bounds(&begin, to.number[i], step, in->size[axis]);
        first += size[axis] ? begin * stride[axis] : 0;
        stride[axis] *= size[axis] > 1 ? step : 1;
        if (dense && (dense = step == 1) && size[axis] != in->size[axis])
            x = weft__onnx_reals(
                r, weft_slice(x.x, (int)axis, size[axis] ? begin : 0, size[axis] ? begin + size[axis] : 0));
    }
    *out = dense ? x : weft__onnx_strided(r, in, first, stride, in->rank, size);
}

static void split(run *r, const value *in, value *out)
{
    int64_t axis = weft__onnx_int(r, "axis", 0), at = 0;
    value parts = weft__onnx_list(r, in, 1, "split");
    int n = r->node->outputs;
    if (!weft__onnx_axis(r, &axis, in->rank))
        return;
    int64_t extent = in->size[axis], each = (extent + n - 1) / (n ? n : 1);
    if (parts.type && parts.count != n)
        weft__onnx_fail(r, "split has %lld parts; expected %d", (long long)parts.count, n);
    for (int i = 0; weft_ok(r->w) && i < n; i++) {
        int64_t part = parts.type ? parts.number[i] : each < extent - at ? each : extent - at;
        if (part < 0 || part > extent - at)
            weft__onnx_fail(r, "part %d has %lld of the %lld that are left", i, (long long)part,
                            (long long)(extent - at));
        else
            out[i] = weft__onnx_slice(r, in, (int)axis, at, at + part);
        at += part;
    }
}

/* A sequence is the tensor itself, with the axis along which it is split to slices of 1. */
static void split_to_sequence(run *r, const value *in, value *out)
{
    int64_t axis = weft__onnx_int(r, "axis", 0);
    if (in[1].type)
        weft__onnx_fail(r, "parts; expected slices of 1");
    else if (weft__onnx_axis(r, &axis, in->rank)) {
        *out = *in;
        out->split = 1 + (int)axis;
        out->keeps_axis = weft__onnx_int(r, "keepdims", 1);
    }
}

static void sequence_at(run *r, const value *in, value *out)
{
    value at = weft__onnx_list(r, in, 1, NULL);
    int axis = in->split - 1;
    int64_t i = at.type && at.count == 1 ? *at.number : INT64_MAX, size[WEFT_RANK], rank = 0;
    if (axis < 0 || i < -in->size[axis] || i >= in->size[axis]) {
        weft__onnx_fail(r, "no such element of a sequence made by SplitToSequence");
        return;
    }
    i += i < 0 ? in->size[axis] : 0;
    value x = *in;
    x.split = 0;
    x = weft__onnx_slice(r, &x, axis, i, i + 1);
    for (int k = 0; k < in->rank; k++)
        if (k != axis || in->keeps_axis)
            size[rank++] = k == axis ? 1 : in->size[k];
    if (x.type)
        *out = weft__onnx_reshape(r, &x, (int)rank, size);
}

const operation weft__onnx_parts[] = {
    { "Concat", concat, 1, 0, NULL, NULL },
    { "Slice", slice, 1, 0, NULL, NULL },
    { "Split", split, 1, 0, NULL, NULL },
    { "SplitToSequence", split_to_sequence, 1, 0, NULL, NULL },
    { "SequenceAt", sequence_at, 2, 0, NULL, NULL },
    { NULL, NULL, 0, 0, NULL, NULL },
};
