/* shape.c - shapes, and operators that change the shape of a value, move its elements, join values or cut
 * them into parts. */
#include <string.h>
#include "io/onnx/model.h"

/* ---- shapes ---- */
int weft__onnx_broadcast(run *r, int ra, const int64_t *a, int rb, const int64_t *b, int64_t *size)
{
    int rank = ra > rb ? ra : rb;
    int64_t all[WEFT_RANK] = { 0 };
    for (int i = 1; i <= rank && ra >= 0 && rb >= 0; i++) {
        int64_t x = i <= ra ? a[ra - i] : 1, y = i <= rb ? b[rb - i] : 1;
        if (x != y && x != 1 && y != 1)
            weft__onnx_fail(r, "extents %lld and %lld do not broadcast", (long long)x, (long long)y);
        all[rank - i] = x == 1 ? y : x;
    }
    memcpy(size, all, sizeof all);
    return weft_ok(r->w) ? rank : -1;
}

int weft__onnx_shape(run *r, const value *list, int64_t least, int64_t *size)
{
    if (!list->type || list->count > WEFT_RANK)
        weft__onnx_fail(r, "a shape of %lld axes; expected 0 .. %d", (long long)list->count, WEFT_RANK);
    for (int64_t i = 0; weft_ok(r->w) && i < list->count; i++) {
        size[i] = list->number[i];
        if (size[i] < least)
            weft__onnx_fail(r, "extent %lld", (long long)size[i]);
    }
    return weft_ok(r->w) ? (int)list->count : -1;
}

bool weft__onnx_marks(run *r, const value *axes, int rank, bool *marked)
{
    memset(marked, 0, WEFT_RANK * sizeof *marked);
    for (int64_t i = 0; i < axes->count; i++) {
        int64_t axis = axes->number[i];
        if (!weft__onnx_axis(r, &axis, rank))
            return false;
        marked[axis] = true;
    }
    return weft_ok(r->w);
}

value weft__onnx_reshape(run *r, const value *x, int rank, const int64_t *size)
{
    value y = *x;
    int64_t n = rank <= WEFT_RANK ? weft__onnx_product(size, rank) : -1;
    if (n != x->count)
        weft__onnx_fail(r, "%lld elements in a shape of %lld", (long long)x->count, (long long)n);
    for (int i = 0; weft_ok(r->w) && i < rank; i++) {
        y.size[i] = size[i];
        if (size[i] < 0)
            weft__onnx_fail(r, "extent %lld", (long long)size[i]);
    }
    if (!weft_ok(r->w))
        return (value){ 0 };
    y.rank = rank;
    return x->x ? weft__onnx_reals(r, weft_reshape(x->x, rank, size)) : y;
}

value weft__onnx_matrix(run *r, const value *x, int axis)
{
    int64_t rows = weft__onnx_product(x->size, axis),
            columns = weft__onnx_product(x->size + axis, x->rank - axis);
    return weft__onnx_reshape(r, x, 2, (int64_t[]){ rows, columns });
}

/* ---- moving elements ---- */
value weft__onnx_select(run *r, const value *x, const int64_t *from, int64_t block, int rank,
                        const int64_t *size)
{
    int64_t n = weft__onnx_product(size, rank), rows = n / (block ? block : 1);
    if (!from || !weft__onnx_fits(r, rank, size))
        return (value){ 0 };
    if (!x->x) {
        value y = weft__onnx_integers(r, x->type, rank, size);
        for (int64_t i = 0; y.type && i < n; i++)
            y.number[i] = from[i / block] < 0 ? 0 : x->number[from[i / block] * block + i % block];
        return y;
    }
    int64_t table[2] = { block ? x->count / block : 0, block };
    int32_t *row = weft__onnx_take(r, rows, sizeof *row);
    if (table[0] > INT32_MAX)
        weft__onnx_fail(r, "a tensor of more than 2^31 - 1 elements");
    for (int64_t i = 0; row && i < rows; i++)
        row[i] = (int32_t)from[i];
    if (!weft_ok(r->w))
        return (value){ 0 };
    weft_tensor *y = weft_index_select(weft_reshape(x->x, 2, table), weft_ints(r->w, row, 1, &rows));
    return weft__onnx_reals(r, weft_reshape(y, rank, size));
}

int64_t weft__onnx_stride(const value *x, int64_t axis)
{
    return weft__onnx_product(x->size + axis + 1, x->rank - (int)axis - 1);
}

value weft__onnx_permute(run *r, const value *x, const int64_t *axes)
{
    int64_t step[WEFT_RANK], size[WEFT_RANK];
    int order[WEFT_RANK];
    bool used[WEFT_RANK] = { false }, moves = false;
    for (int i = 0; i < x->rank; i++) {
        int64_t axis = axes ? axes[i] : x->rank - 1 - i;
        if (axis < 0 || axis >= x->rank || used[axis]) {
            weft__onnx_fail(r, "perm is not a permutation of the axes");
            return (value){ 0 };
        }
        used[axis] = true;
        order[i] = (int)axis;
        step[i] = weft__onnx_stride(x, axis);
        size[i] = x->size[axis];
        moves = moves || axis != i;
    }
    if (!moves || x->x)
        return moves ? weft__onnx_reals(r, weft_permute(x->x, order)) : *x;
    value y = weft__onnx_integers(r, x->type, x->rank, size);
    for (int64_t i = 0; y.type && i < y.count; i++) {
        int64_t from = 0, rest = i;
        for (int k = x->rank - 1; k >= 0; rest /= size[k--])
            from += rest % size[k] * step[k];
        y.number[i] = x->number[from];
    }
    return y;
}

/* Returns elements first, first + step, .. along an axis. */
static value sliced(run *r, const value *x, int axis, int64_t first, int64_t step, int64_t n)
{
    if (step == 1 && n == x->size[axis])
        return *x;
    if (step == 1 && x->x)
        return weft__onnx_reals(r, weft_slice(x->x, axis, first, first + n));
    value index = weft__onnx_integers(r, WEFT__ONNX_INT64, 1, &n);
    for (int64_t i = 0; index.type && i < n; i++)
        index.number[i] = first + i * step;
    return weft__onnx_gather(r, x, axis, &index);
}

value weft__onnx_expand(run *r, const value *x, int rank, const int64_t *size)
{
    int64_t ones[WEFT_RANK] = { 1, 1, 1, 1, 1, 1 };
    memcpy(ones + rank - x->rank, x->size, (size_t)x->rank * sizeof *ones);
    value y = rank == x->rank ? *x : weft__onnx_reshape(r, x, rank, ones);
    for (int i = rank - 1; i >= 0; i--)
        if (y.size[i] != size[i])
            y = sliced(r, &y, i, 0, 0, size[i]);
    return y;
}

/* ---- operators ---- */
static void reshape(run *r, const value *in, value *out)
{
    value to = weft__onnx_list(r, in, 1, "shape");
    int64_t size[WEFT_RANK], known;
    int rank = weft__onnx_shape(r, &to, -1, size), open = -1;
    bool zero = weft__onnx_int(r, "allowzero", 0);
    for (int i = 0; i < rank; i++) {
        size[i] = size[i] || zero ? size[i] : i < in->rank ? in->size[i] : 0;
        open = size[i] < 0 ? i : open;
    }
    if (open >= 0) {
        size[open] = 1;
        known = weft__onnx_product(size, rank);
        size[open] = known > 0 ? in->count / known : 0;
    }
    if (rank >= 0)
        *out = weft__onnx_reshape(r, in, rank, size);
}

static void flatten(run *r, const value *in, value *out)
{
    int64_t axis = weft__onnx_int(r, "axis", 1);
    if (axis == in->rank || weft__onnx_axis(r, &axis, in->rank))
        *out = weft__onnx_matrix(r, in, (int)axis);
}

/* Squeeze, and with an option Unsqueeze. */
static void squeeze(run *r, const value *in, value *out)
{
    value axes = weft__onnx_list(r, in, 1, "axes");
    bool adds = r->node->operation->option, marked[WEFT_RANK];
    int64_t size[WEFT_RANK], all = in->rank + (adds ? axes.count : 0);
    int rank = 0, from = 0;
    if (all > WEFT_RANK || (adds && !axes.type))
        weft__onnx_fail(r, "axes for a result of rank %lld; expected 0 .. %d", (long long)all, WEFT_RANK);
    if (!weft_ok(r->w) || !weft__onnx_marks(r, &axes, (int)all, marked))
        return;
    for (int i = 0; i < all; i++)
        if (adds)
            size[rank++] = marked[i] || from == in->rank ? 1 : in->size[from++];
        else if (axes.type ? !marked[i] : in->size[i] != 1)
            size[rank++] = in->size[i];
    *out = weft__onnx_reshape(r, in, rank, size);
}

static void transpose(run *r, const value *in, value *out)
{
    value perm = weft__onnx_list(r, in, -1, "perm");
    if (perm.type && perm.count != in->rank)
        weft__onnx_fail(r, "perm has %lld axes; expected %d", (long long)perm.count, in->rank);
    else
        *out = weft__onnx_permute(r, in, perm.number);
}

static void expand(run *r, const value *in, value *out)
{
    value to = weft__onnx_list(r, in, 1, NULL);
    int64_t size[WEFT_RANK];
    int rank = weft__onnx_shape(r, &to, 0, size);
    rank = weft__onnx_broadcast(r, in->rank, in->size, rank, size, size);
    if (rank >= 0)
        *out = weft__onnx_expand(r, in, rank, size);
}

static void tile(run *r, const value *in, value *out)
{
    value list = weft__onnx_list(r, in, 1, NULL);
    int64_t times[WEFT_RANK], n;
    if (weft__onnx_shape(r, &list, 0, times) != in->rank)
        weft__onnx_fail(r, "%lld repeats for %d axes", (long long)list.count, in->rank);
    *out = *in;
    for (int axis = 0; weft_ok(r->w) && axis < in->rank; axis++) {
        if (__builtin_mul_overflow(in->size[axis], times[axis], &n))
            weft__onnx_fail(r, "%lld repeats", (long long)times[axis]);
        value index = weft__onnx_integers(r, WEFT__ONNX_INT64, 1, &n);
        for (int64_t i = 0; index.type && i < n; i++)
            index.number[i] = i % in->size[axis];
        *out = weft__onnx_gather(r, out, axis, &index);
    }
}

static void size_of(run *r, const value *in, value *out)
{
    *out = weft__onnx_integers(r, WEFT__ONNX_INT64, 0, NULL);
    if (out->type)
        *out->number = in->count;
}

/* ---- joining and cutting ---- */
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
        (steps.type && steps.count != from.count))
        weft__onnx_fail(r, "starts, ends, axes and steps do not agree");
    for (int64_t i = 0; weft_ok(r->w) && i < from.count; i++) {
        int64_t axis = axes.type ? axes.number[i] : i, step = steps.type ? steps.number[i] : 1,
                first = from.number[i];
        if (!step || step == INT64_MIN)
            weft__onnx_fail(r, "a step of 0");
        if (!weft__onnx_axis(r, &axis, in->rank))
            return;
        int64_t n = bounds(&first, to.number[i], step, x.size[axis]);
        x = sliced(r, &x, (int)axis, first, step, n);
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
        out[i] = sliced(r, in, (int)axis, from, 1, part);
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

const operation weft__onnx_shapes[] = {
    { "Reshape", reshape, .inputs = 1 }, { "Flatten", flatten, .inputs = 1 },
    { "Squeeze", squeeze, .inputs = 1 }, { "Unsqueeze", squeeze, 1, .option = 1 },
    { "Transpose", transpose, .inputs = 1 }, { "Expand", expand, .inputs = 2 },
    { "Tile", tile, .inputs = 2 }, { "Size", size_of, .inputs = 1 },
    { "Concat", concat, .inputs = 1 }, { "Slice", slice, .inputs = 1 }, { "Split", split, .inputs = 1 },
    { "Shape", shape, .inputs = 1 }, { "SplitToSequence", split_to_sequence, .inputs = 1 },
    { "SequenceAt", sequence_at, .inputs = 2 },
    { .name = NULL },
};
