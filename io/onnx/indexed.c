/* indexed.c - operators that read or write elements at indices. */
#include <string.h>
#include "io/onnx/model.h"

/* Makes an index 0 or more. Returns false, and fails, if it is outside the extent. */
static bool index_in(run *r, int64_t *i, int64_t extent)
{
    if (*i < -extent || *i >= extent)
        weft__onnx_fail(r, "index %lld; expected %lld .. %lld", (long long)*i, (long long)-extent,
                        (long long)extent - 1);
    *i += *i < 0 ? extent : 0;
    return weft_ok(r->w);
}

/* Selects blocks of x. The result has the axes of x before `axis`, n axes of the index, and the axes of a
 * block, those of x from `rest` on. */
static value select_at(run *r, const value *x, const int64_t *from, int axis, const value *index, int n,
                       int rest)
{
    int64_t size[3 * WEFT_RANK];
    int rank = axis + n + x->rank - rest;
    if (rank > WEFT_RANK)
        weft__onnx_fail(r, "a result of %d axes", rank);
    if (!weft_ok(r->w))
        return (value){ 0 };
    memcpy(size, x->size, (size_t)axis * sizeof *size);
    memcpy(size + axis, index->size, (size_t)n * sizeof *size);
    memcpy(size + axis + n, x->size + rest, (size_t)(x->rank - rest) * sizeof *size);
    return weft__onnx_select(r, x, from, weft__onnx_product(x->size + rest, x->rank - rest), rank, size);
}

value weft__onnx_gather(run *r, const value *x, int axis, const value *index)
{
    int64_t extent = x->size[axis], outer = index->count ? weft__onnx_product(x->size, axis) : 0,
            n = weft__onnx_product((int64_t[]){ outer, index->count }, 2);
    int64_t *from = weft__onnx_take(r, n, sizeof *from);
    for (int64_t i = 0; from && i < n; i++) {
        int64_t at = index->number[i % index->count];
        if (!index_in(r, &at, extent))
            return (value){ 0 };
        from[i] = i / index->count * extent + at;
    }
    return select_at(r, x, from, axis, index, index->rank, axis + 1);
}

static void gather(run *r, const value *in, value *out)
{
    int64_t axis = weft__onnx_int(r, "axis", 0);
    value index = weft__onnx_integers_of(r, in + 1);
    if (weft__onnx_axis(r, &axis, in->rank))
        *out = weft__onnx_gather(r, in, (int)axis, &index);
}

/* Returns for each element of `index` its position in x: the element's own index, with index's number on one
 * axis. NULL after a failure. */
static int64_t *positions(run *r, const value *x, const value *index)
{
    int64_t axis = weft__onnx_int(r, "axis", 0), *to = weft__onnx_take(r, index->count, sizeof *to);
    if (!weft__onnx_axis(r, &axis, x->rank))
        return NULL;
    for (int k = 0; k < x->rank; k++)
        if (index->rank != x->rank || (k != axis && index->size[k] > x->size[k]))
            weft__onnx_fail(r, "indices of another shape than the data");
    for (int64_t i = 0; weft_ok(r->w) && i < index->count; i++) {
        int64_t each = index->count, number = index->number[i];
        if (!index_in(r, &number, x->size[axis]))
            break;
        for (int k = 0; k < x->rank; k++) {
            each /= index->size[k];
            to[i] = to[i] * x->size[k] + (k == axis ? number : i / each % index->size[k]);
        }
    }
    return weft_ok(r->w) ? to : NULL;
}

static void gather_elements(run *r, const value *in, value *out)
{
    value index = weft__onnx_integers_of(r, in + 1);
    *out = weft__onnx_select(r, in, positions(r, in, &index), 1, index.rank, index.size);
}

/* Returns the positions of blocks at indices [.., k] in the first k axes of x after `batch`, NULL after a
 * failure. *rest: the first axis of a block. */
static int64_t *block_positions(run *r, const value *x, const value *index, int64_t batch, int *rest)
{
    int64_t k = index->rank ? index->size[index->rank - 1] : 0, n = k > 0 ? index->count / k : 0;
    int64_t *to = weft__onnx_take(r, n, sizeof *to);
    if (k < 1 || batch < 0 || batch >= index->rank || k > x->rank - batch ||
        memcmp(index->size, x->size, (size_t)batch * sizeof *x->size)) {
        weft__onnx_fail(r, "indices of another shape than the data");
        return NULL;
    }
    int64_t batches = weft__onnx_product(x->size, (int)batch);
    for (int64_t i = 0; to && i < n; i++) {
        to[i] = i / (n / batches);
        for (int64_t c = 0; c < k; c++) {
            int64_t number = index->number[i * k + c], extent = x->size[batch + c];
            if (!index_in(r, &number, extent))
                return NULL;
            to[i] = to[i] * extent + number;
        }
    }
    *rest = (int)(batch + k);
    return to;
}

static void gather_nd(run *r, const value *in, value *out)
{
    value index = weft__onnx_integers_of(r, in + 1);
    int rest = 0;
    int64_t *from = block_positions(r, in, &index, weft__onnx_int(r, "batch_dims", 0), &rest);
    if (from)
        *out = select_at(r, in, from, 0, &index, index.rank - 1, rest);
}

/* Replaces blocks of x: block to[i] by block i of the n updates. */
static value scatter(run *r, const value *x, const value *updates, const int64_t *to, int64_t n,
                     int64_t block)
{
    int64_t blocks = block ? x->count / block : 0, *from = weft__onnx_take(r, blocks, sizeof *from);
    if (strcmp(weft__onnx_string(r, "reduction", "none"), "none"))
        weft__onnx_fail(r, "reduction; expected none");
    if (!block || updates->count % block || updates->count / block != n)
        weft__onnx_fail(r, "%lld updates; expected %lld blocks of %lld", (long long)updates->count,
                        (long long)n, (long long)block);
    if (!to || !weft_ok(r->w))
        return (value){ 0 };
    for (int64_t i = 0; i < blocks; i++)
        from[i] = i;
    for (int64_t i = 0; i < n; i++)
        from[to[i]] = blocks + i;
    value both[] = { weft__onnx_reshape(r, x, 1, &x->count),
                     weft__onnx_reshape(r, updates, 1, &updates->count) },
          all = weft__onnx_concat(r, both, 2, 0);
    return weft__onnx_select(r, &all, from, block, x->rank, x->size);
}

static void scatter_elements(run *r, const value *in, value *out)
{
    value index = weft__onnx_integers_of(r, in + 1);
    *out = scatter(r, in, in + 2, positions(r, in, &index), index.count, 1);
}

static void scatter_nd(run *r, const value *in, value *out)
{
    value index = weft__onnx_integers_of(r, in + 1);
    int rest = 0;
    int64_t *to = block_positions(r, in, &index, 0, &rest);
    if (to)
        *out = scatter(r, in, in + 2, to, index.count / index.size[index.rank - 1],
                       weft__onnx_product(in->size + rest, in->rank - rest));
}

/* ---- pads ---- */
/* Position on an axis that an element outside of it copies; -1: none. */
static int64_t mirrored(int64_t i, int64_t extent, char mode)
{
    if (i >= 0 && i < extent)
        return i;
    if (mode == 'c' || extent < 1)
        return -1;
    if (mode == 'e')
        return i < 0 ? 0 : extent - 1;
    int64_t period = mode == 'w' ? extent : extent > 1 ? 2 * (extent - 1) : 1;
    i = ((i % period) + period) % period;
    return i < extent ? i : period - i;
}

/* Pads one axis. */
static value padded(run *r, const value *x, int axis, int64_t low, int64_t high, const value *fill, char mode)
{
    int64_t extent = x->size[axis], n;
    if (__builtin_add_overflow(extent, low, &n) || __builtin_add_overflow(n, high, &n) || n < 0 ||
        low < -INT32_MAX) {
        weft__onnx_fail(r, "pads %lld and %lld", (long long)low, (long long)high);
        return (value){ 0 };
    }
    value both[2] = { *x, *x }, index = weft__onnx_integers(r, WEFT__ONNX_INT64, 1, &n);
    for (int64_t i = 0; index.type && i < n; i++)
        index.number[i] = mirrored(i - low, extent, mode);
    both[1].size[axis] = 1;
    both[1] = weft__onnx_expand(r, fill, x->rank, both[1].size);
    value all = weft__onnx_concat(r, both, 2, axis); /* the last has the index `extent` or -1 */
    return weft__onnx_gather(r, &all, axis, &index);
}

static void pad(run *r, const value *in, value *out)
{
    char mode = weft__onnx_string(r, "mode", "constant")[0];
    value pads = weft__onnx_list(r, in, 1, "pads"), axes = weft__onnx_list(r, in, 3, NULL), fill = in[2];
    int64_t n = axes.type ? axes.count : in->rank;
    if (!fill.type)
        fill = in->x ? weft__onnx_reals(r, weft_scalar(r->w, weft__onnx_float(r, "value", 0))) :
                       weft__onnx_integers(r, in->type, 0, NULL);
    fill = weft__onnx_reshape(r, &fill, 0, NULL);
    if (!pads.type || pads.count != 2 * n)
        weft__onnx_fail(r, "%lld pads; expected %lld", (long long)pads.count, 2 * (long long)n);
    *out = *in;
    for (int64_t i = 0; weft_ok(r->w) && i < n; i++) {
        int64_t axis = axes.type ? axes.number[i] : i, low = pads.number[i], high = pads.number[n + i];
        if (weft__onnx_axis(r, &axis, in->rank) && (low || high))
            *out = padded(r, out, (int)axis, low, high, &fill, mode);
    }
}

static void trilu(run *r, const value *in, value *out)
{
    bool upper = weft__onnx_int(r, "upper", 1);
    value k = weft__onnx_list(r, in, 1, NULL);
    int64_t diagonal = k.count ? *k.number : 0, *from = weft__onnx_take(r, in->count, sizeof *from);
    if (in->rank < 2) {
        weft__onnx_fail(r, "rank %d; expected 2 or more", in->rank);
        return;
    }
    int64_t columns = in->size[in->rank - 1], rows = in->size[in->rank - 2];
    diagonal = diagonal > columns ? columns : diagonal < -rows ? -rows : diagonal;
    for (int64_t i = 0; from && i < in->count; i++) {
        int64_t above = i % columns - i / columns % rows - diagonal;
        from[i] = (upper ? above >= 0 : above <= 0) ? i : -1;
    }
    *out = weft__onnx_select(r, in, from, 1, in->rank, in->size);
}

static void reverse_sequence(run *r, const value *in, value *out)
{
    int64_t batch = weft__onnx_int(r, "batch_axis", 1), time = weft__onnx_int(r, "time_axis", 0);
    value lens = weft__onnx_integers_of(r, in + 1);
    if (!weft__onnx_axis(r, &batch, in->rank) || !weft__onnx_axis(r, &time, in->rank) ||
        lens.count != in->size[batch]) {
        weft__onnx_fail(r, "%lld sequence_lens", (long long)lens.count);
        return;
    }
    int64_t each = weft__onnx_stride(in, batch), step = weft__onnx_stride(in, time),
            block = each < step ? each : step, *from = weft__onnx_take(r, in->count, sizeof *from);
    for (int64_t i = 0; from && block && i < in->count / block; i++) {
        int64_t t = i * block / step % in->size[time], len = lens.number[i * block / each % in->size[batch]];
        from[i] = i + (t < len && len <= in->size[time] ? (len - 1 - 2 * t) * (step / block) : 0);
    }
    *out = weft__onnx_select(r, in, from, block, in->rank, in->size);
}

const operation weft__onnx_indexed[] = {
    { "Gather", gather, .inputs = 2 }, { "GatherElements", gather_elements, .inputs = 2 },
    { "GatherND", gather_nd, .inputs = 2 }, { "ScatterElements", scatter_elements, .inputs = 3 },
    { "ScatterND", scatter_nd, .inputs = 3 }, { "Pad", pad, .inputs = 1 }, { "Trilu", trilu, .inputs = 1 },
    { "ReverseSequence", reverse_sequence, .inputs = 2 },
    { .name = NULL },
};
