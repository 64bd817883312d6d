/* cut.c - operators that join values and cut them into parts. */
#include <string.h>
#include "io/onnx/model.h"

value weft__onnx_concat(run *r, const value *x, int n, int axis)
{
    value y = x[0];
    bool reals = false;
    weft_tensor **parts = weft__onnx_take(r, n, sizeof *parts);
    y.size[axis] = 0;
    for (int i = 0; i < n; i++) {
        value like = x[i];
        reals = reals || like.x;
        y.size[axis] += like.size[axis];
        like.size[axis] = x->size[axis];
        if (!like.type || like.rank != x->rank ||
            memcmp(like.size, x->size, (size_t)x->rank * sizeof *like.size))
            weft__onnx_fail(r, "the shape of input %d does not fit that of input 0", i);
    }
    for (int i = 0; reals && weft_ok(r->w) && i < n; i++)
        parts[i] = weft__onnx_tensor_of(r, &x[i]);
    if (reals && weft_ok(r->w))
        return weft__onnx_reals(r, weft_concat(parts, n, axis));
    y = weft__onnx_integers(r, x->type, x->rank, y.size);
    int64_t *to = y.number, outer = weft__onnx_product(x->size, axis);
    for (int64_t k = 0; y.type && y.count && k < outer * n; k++) {
        const value *from = &x[k % n];
        int64_t part = from->count / outer;
        if (part)
            memcpy(to, from->number + k / n * part, (size_t)part * sizeof *to);
        to += part;
    }
    return y;
}

static void concat(run *r, const value *in, value *out)
{
    int64_t axis = weft__onnx_int(r, "axis", 1);
    if (weft__onnx_axis(r, &axis, in->rank))
        *out = weft__onnx_concat(r, in, r->node->inputs, (int)axis);
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
          axes = weft__onnx_list(r, in, 3, "axes"), steps = weft__onnx_list(r, in, 4, NULL), x = *in;
    if (!from.type || to.count != from.count ||
        (axes.type ? axes.count != from.count : from.count > in->rank) ||
        (steps.type && steps.count != from.count)) {
        weft__onnx_fail(r, "starts, ends, axes and steps do not agree");
        return;
    }
    for (int64_t i = 0; i < from.count; i++) {
        int64_t axis = axes.type ? axes.number[i] : i, step = steps.type ? steps.number[i] : 1,
                first = from.number[i];
        if (!step || step == INT64_MIN)
            weft__onnx_fail(r, "a step of 0");
        if (!weft__onnx_axis(r, &axis, in->rank))
            return;
        int64_t n = bounds(&first, to.number[i], step, x.size[axis]);
        x = weft__onnx_slice(r, &x, (int)axis, first, step, n);
    }
    *out = x;
}

static void shape(run *r, const value *in, value *out)
{
    int64_t from = weft__onnx_int(r, "start", 0),
            n = bounds(&from, weft__onnx_int(r, "end", in->rank), 1, in->rank);
    *out = weft__onnx_integers(r, WEFT__ONNX_INT64, 1, &n);
    for (int64_t i = 0; out->type && i < n; i++)
        out->number[i] = in->size[from + i];
}

static void split(run *r, const value *in, value *out)
{
    int64_t axis = weft__onnx_int(r, "axis", 0), from = 0;
    value parts = weft__onnx_list(r, in, 1, "split");
    int n = r->node->outputs;
    if (parts.type && parts.count != n)
        weft__onnx_fail(r, "split has %lld parts; expected %d", (long long)parts.count, n);
    if (!weft__onnx_axis(r, &axis, in->rank))
        return;
    int64_t extent = in->size[axis], each = n ? (extent + n - 1) / n : 0;
    for (int i = 0; i < n; i++) {
        int64_t left = extent - from, part = parts.type ? parts.number[i] : each < left ? each : left;
        if (part < 0 || part > left) {
            weft__onnx_fail(r, "part %d has %lld of %lld", i, (long long)part, (long long)left);
            return;
        }
        out[i] = weft__onnx_slice(r, in, (int)axis, from, 1, part);
        from += part;
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
    value at = weft__onnx_list(r, in, 1, NULL), x = *in;
    x.split = 0;
    at = weft__onnx_reshape(r, &at, in->keeps_axis, (int64_t[]){ 1 });
    if (in->split)
        *out = weft__onnx_gather(r, &x, in->split - 1, &at);
    else
        weft__onnx_fail(r, "a sequence that SplitToSequence did not make");
}

const operation weft__onnx_parts[] = {
    { "Concat", concat, .inputs = 1 }, { "Slice", slice, .inputs = 1 }, { "Split", split, .inputs = 1 },
    { "Shape", shape, .inputs = 1 }, { "SplitToSequence", split_to_sequence, .inputs = 1 },
    { "SequenceAt", sequence_at, .inputs = 2 },
    { .name = NULL },
};
