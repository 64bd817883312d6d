/* indexed.c - operators that read or write elements at indices. */
#include <stdlib.h>
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

static void gather(run *r, const value *in, value *out)
{
    int64_t axis = weft__onnx_int(r, "axis", 0), size[2 * WEFT_RANK], rows = 0;
    value index = weft__onnx_integers_of(r, in + 1);
    int rank = in->rank - 1 + index.rank;
    if (!weft__onnx_axis(r, &axis, in->rank) || !index.type || rank > WEFT_RANK) {
        weft__onnx_fail(r, "a result of %d axes", rank);
        return;
    }
    int a = (int)axis;
    int64_t outer = weft__onnx_product(in->size, a),
            inner = weft__onnx_product(in->size + a + 1, in->rank - a - 1);
    memcpy(size, in->size, (size_t)a * sizeof *size);
    memcpy(size + a, index.size, (size_t)index.rank * sizeof *size);
    memcpy(size + a + index.rank, in->size + a + 1, (size_t)(in->rank - a - 1) * sizeof *size);
    bool table = in->x && a == 0;
    int64_t n = weft__onnx_product(size, rank);
    int64_t *from = weft__onnx_take(r, table ? 0 : n, sizeof *from);
    int32_t *row = weft__onnx_take(r, table ? index.count : 0, sizeof *row);
    for (int64_t o = 0; from && row && o < (table ? 1 : n ? outer : 0); o++)
        for (int64_t k = 0; k < index.count; k++) {
            int64_t i = index.number[k];
            if (!index_in(r, &i, in->size[a]))
                return;
            for (int64_t e = 0; !table && e < inner; e++)
                from[rows++] = (o * in->size[a] + i) * inner + e;
            if (table)
                row[k] = (int32_t)i;
        }
    if (table && row && weft_ok(r->w))
        *out = weft__onnx_reals(r, weft_index_select(in->x, weft_ints(r->w, row, index.rank, index.size)));
    else
        *out = weft__onnx_select(r, in, from, rank, size);
}

/* Writes for each element of `index` its position in x: the element's own index, with index's number on one
 * axis. Returns NULL after a failure. */
static int64_t *positions(run *r, const value *x, const value *index, int axis)
{
    int64_t step[WEFT_RANK], at[WEFT_RANK] = { 0 };
    int64_t *to = weft__onnx_take(r, index->count, sizeof *to);
    bool fits = index->rank == x->rank && index->type;
    for (int k = 0; fits && k < x->rank; k++)
        fits = k == axis || index->size[k] <= x->size[k];
    if (!fits)
        weft__onnx_fail(r, "indices of another shape than the data");
    weft__onnx_strides(x, step);
    for (int64_t i = 0; fits && to && i < index->count; i++) {
        int64_t number = index->number[i];
        if (!index_in(r, &number, x->size[axis]))
            return NULL;
        for (int k = 0; k < x->rank; k++)
            to[i] += (k == axis ? number : at[k]) * step[k];
        weft__onnx_next(at, x->rank, index->size);
    }
    return fits ? to : NULL;
}

static void gather_elements(run *r, const value *in, value *out)
{
    int64_t axis = weft__onnx_int(r, "axis", 0);
    value index = weft__onnx_integers_of(r, in + 1);
    if (!weft__onnx_axis(r, &axis, in->rank))
        return;
    int64_t *from = positions(r, in, &index, (int)axis);
    *out = weft__onnx_select(r, in, from, index.rank, index.size);
}

/* Positions of blocks at indices [.., k] in the first k axes of x after `batch`. *block: their length. */
static int64_t *block_positions(run *r, const value *x, const value *index, int batch, int64_t *block)
{
    int64_t k = index->rank ? index->size[index->rank - 1] : 0, n = k > 0 ? index->count / k : 0,
            step[WEFT_RANK];
    int64_t *to = weft__onnx_take(r, n, sizeof *to);
    if (!index->rank || k < 1 || k > x->rank - batch || batch >= index->rank || batch < 0) {
        weft__onnx_fail(r, "indices of another shape than the data");
        return NULL;
    }
    weft__onnx_strides(x, step);
    *block = weft__onnx_product(x->size + batch + k, x->rank - batch - (int)k);
    int64_t batches = weft__onnx_product(x->size, batch), each = batches ? n / batches : 0;
    if (each * batches != n)
        weft__onnx_fail(r, "batch_dims of another shape than the data");
    for (int64_t i = 0; to && weft_ok(r->w) && i < n; i++) {
        to[i] = batch && each ? i / each * step[batch - 1] : 0;
        for (int64_t c = 0; c < k; c++) {
            int64_t number = index->number[i * k + c];
            if (!index_in(r, &number, x->size[batch + c]))
                return NULL;
            to[i] += number * step[batch + c];
        }
    }
    return to;
}

static void gather_nd(run *r, const value *in, value *out)
{
    value index = weft__onnx_integers_of(r, in + 1);
    int batch = (int)weft__onnx_int(r, "batch_dims", 0), rank;
    int64_t block = 0, size[2 * WEFT_RANK];
    int64_t *at = index.type ? block_positions(r, in, &index, batch, &block) : NULL;
    if (!at)
        return;
    int k = (int)index.size[index.rank - 1];
    rank = index.rank - 1 + in->rank - batch - k;
    if (rank > WEFT_RANK) {
        weft__onnx_fail(r, "a result of %d axes", rank);
        return;
    }
    memcpy(size, index.size, (size_t)(index.rank - 1) * sizeof *size);
    memcpy(size + index.rank - 1, in->size + batch + k, (size_t)(in->rank - batch - k) * sizeof *size);
    int64_t n = weft__onnx_product(size, rank);
    int64_t *from = weft__onnx_take(r, n, sizeof *from);
    for (int64_t i = 0; from && i < n; i++)
        from[i] = at[i / block] + i % block;
    *out = weft__onnx_select(r, in, from, rank, size);
}

/* Returns the elements of a, then those of b, as a list. */
static value joined(run *r, const value *a, const value *b)
{
    if (a->x || b->x) {
        weft_tensor *parts[] = { weft_reshape(weft__onnx_tensor_of(r, a), 1, &a->count),
                                 weft_reshape(weft__onnx_tensor_of(r, b), 1, &b->count) };
        return weft__onnx_reals(r, weft_concat(parts, 2, 0));
    }
    value all = weft__onnx_integers(r, a->type, 1, (int64_t[]){ a->count + b->count });
    if (all.type && a->count)
        memcpy(all.number, a->number, (size_t)a->count * sizeof *all.number);
    if (all.type && b->count)
        memcpy(all.number + a->count, b->number, (size_t)b->count * sizeof *all.number);
    return all;
}

/* Replaces elements of x: element to[i] + e of x by element i * block + e of the updates. */
static value scatter(run *r, const value *x, const value *updates, const int64_t *to, int64_t n,
                     int64_t block)
{
    value none = { 0 };
    int64_t *from = weft__onnx_take(r, x->count, sizeof *from);
    if (strcmp(weft__onnx_string(r, "reduction", "none"), "none"))
        weft__onnx_fail(r, "reduction; expected none");
    if (!to || !from || !block || updates->count % block || updates->count / block != n) {
        weft__onnx_fail(r, "%lld updates; expected %lld blocks of %lld", (long long)updates->count,
                        (long long)n, (long long)block);
        return none;
    }
    for (int64_t i = 0; i < x->count; i++)
        from[i] = i;
    for (int64_t i = 0; i < n * block; i++)
        from[to[i / block] + i % block] = x->count + i;
    value all = joined(r, x, updates);
    return all.type ? weft__onnx_select(r, &all, from, x->rank, x->size) : none;
}

static void scatter_elements(run *r, const value *in, value *out)
{
    int64_t axis = weft__onnx_int(r, "axis", 0);
    value index = weft__onnx_integers_of(r, in + 1);
    if (weft__onnx_axis(r, &axis, in->rank))
        *out = scatter(r, in, in + 2, positions(r, in, &index, (int)axis), index.count, 1);
}

static void scatter_nd(run *r, const value *in, value *out)
{
    value index = weft__onnx_integers_of(r, in + 1);
    int64_t block = 0;
    int64_t *to = index.type ? block_positions(r, in, &index, 0, &block) : NULL;
    if (to)
        *out = scatter(r, in, in + 2, to, index.count / index.size[index.rank - 1], block);
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
    if (mode == 'w')
        return ((i % extent) + extent) % extent;
    int64_t period = 2 * (extent - 1);
    i = period ? ((i % period) + period) % period : 0;
    return i < extent ? i : period - i;
}

static bool pad_sizes(run *r, const value *in, int64_t *before, int64_t *size)
{
    value pads = weft__onnx_list(r, in, 1, "pads"), axes = weft__onnx_list(r, in, 3, NULL);
    int64_t n = axes.type ? axes.count : in->rank;
    if (!pads.type || pads.count != 2 * n)
        weft__onnx_fail(r, "%lld pads; expected %lld", (long long)pads.count, 2 * (long long)n);
    for (int64_t i = 0; weft_ok(r->w) && i < n; i++) {
        int64_t axis = axes.type ? axes.number[i] : i, end;
        if (!weft__onnx_axis(r, &axis, in->rank))
            return false;
        before[axis] = pads.number[i];
        if (__builtin_add_overflow(in->size[axis], before[axis], &end) ||
            __builtin_add_overflow(end, pads.number[n + i], &end) || end < 0 || before[axis] < -INT32_MAX)
            weft__onnx_fail(r, "pads %lld and %lld", (long long)before[axis], (long long)pads.number[n + i]);
        size[axis] = end;
    }
    return weft_ok(r->w);
}

static void pad(run *r, const value *in, value *out)
{
    int64_t before[WEFT_RANK] = { 0 }, size[WEFT_RANK], step[WEFT_RANK], at[WEFT_RANK] = { 0 };
    char mode = weft__onnx_string(r, "mode", "constant")[0];
    value fill = in[2];
    memcpy(size, in->size, sizeof size);
    if (!pad_sizes(r, in, before, size))
        return;
    weft__onnx_strides(in, step);
    int64_t n = weft__onnx_product(size, in->rank), *from = weft__onnx_take(r, n, sizeof *from);
    if (!fill.type) /* the last element of the joined list */
        fill = in->x ? weft__onnx_reals(r, weft_scalar(r->w, weft__onnx_float(r, "value", 0))) :
                       weft__onnx_integers(r, in->type, 0, NULL);
    for (int64_t i = 0; from && i < n; i++) {
        for (int k = 0; k < in->rank && from[i] >= 0; k++) {
            int64_t p = mirrored(at[k] - before[k], in->size[k], mode);
            from[i] = p < 0 ? -1 : from[i] + p * step[k];
        }
        if (from[i] < 0)
            from[i] = in->count;
        weft__onnx_next(at, in->rank, size);
    }
    value x = fill.type && fill.count ? joined(r, in, &fill) : (value){ 0 };
    if (x.type)
        *out = weft__onnx_select(r, &x, from, in->rank, size);
}

static void trilu(run *r, const value *in, value *out)
{
    bool upper = weft__onnx_int(r, "upper", 1);
    value k = weft__onnx_list(r, in, 1, NULL);
    int64_t diagonal = k.type && k.count ? *k.number : 0, *from = weft__onnx_take(r, in->count, sizeof *from);
    if (in->rank < 2) {
        weft__onnx_fail(r, "rank %d; expected 2 or more", in->rank);
        return;
    }
    int64_t columns = in->size[in->rank - 1], rows = in->size[in->rank - 2];
    diagonal = diagonal > columns ? columns : diagonal < -rows ? -rows : diagonal;
    for (int64_t i = 0; from && i < in->count; i++) {
        int64_t row = i / columns % rows, column = i % columns;
        from[i] = (upper ? column - row >= diagonal : column - row <= diagonal) ? i : -1;
    }
    *out = weft__onnx_select(r, in, from, in->rank, in->size);
}

static void reverse_sequence(run *r, const value *in, value *out)
{
    int64_t batch = weft__onnx_int(r, "batch_axis", 1), time = weft__onnx_int(r, "time_axis", 0),
            step[WEFT_RANK], at[WEFT_RANK] = { 0 }, *from = weft__onnx_take(r, in->count, sizeof *from);
    value lens = weft__onnx_integers_of(r, in + 1);
    if (!weft__onnx_axis(r, &batch, in->rank) || !weft__onnx_axis(r, &time, in->rank) || !lens.type ||
        lens.count != in->size[batch]) {
        weft__onnx_fail(r, "%lld sequence_lens", (long long)lens.count);
        return;
    }
    weft__onnx_strides(in, step);
    for (int64_t i = 0; from && i < in->count; i++) {
        int64_t len = lens.number[at[batch]], t = at[time];
        from[i] = i + (t < len && len <= in->size[time] ? (len - 1 - 2 * t) * step[time] : 0);
        weft__onnx_next(at, in->rank, in->size);
    }
    *out = weft__onnx_select(r, in, from, in->rank, in->size);
}

const operation weft__onnx_indexed[] = {
    { "Gather", gather, 2, 0, NULL, NULL }, { "GatherElements", gather_elements, 2, 0, NULL, NULL },
    { "GatherND", gather_nd, 2, 0, NULL, NULL }, { "ScatterElements", scatter_elements, 3, 0, NULL, NULL },
    { "ScatterND", scatter_nd, 3, 0, NULL, NULL }, { "Pad", pad, 1, 0, NULL, NULL },
    { "Trilu", trilu, 1, 0, NULL, NULL }, { "ReverseSequence", reverse_sequence, 2, 0, NULL, NULL },
    { NULL, NULL, 0, 0, NULL, NULL },
};
