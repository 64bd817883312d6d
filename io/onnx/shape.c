/* shape.c - operators that move elements: one function selects elements by a list of positions, for reals and
 * for integers. */
#include <string.h>
#include "io/onnx/model.h"

/* ---- moving elements ---- */
int weft__onnx_broadcast(run *r, int ra, const int64_t *a, int rb, const int64_t *b, int64_t *size)
{
    int rank = ra > rb ? ra : rb;
    int64_t all[WEFT_RANK] = { 0 };
    for (int i = 1; i <= rank; i++) {
        int64_t x = i <= ra ? a[ra - i] : 1, y = i <= rb ? b[rb - i] : 1;
        if (x != y && x != 1 && y != 1) {
            weft__onnx_fail(r, "extents %lld and %lld do not broadcast", (long long)x, (long long)y);
            return -1;
        }
        all[rank - i] = x == 1 ? y : x;
    }
    memcpy(size, all, sizeof all);
    return rank;
}

value weft__onnx_reshape(run *r, const value *x, int rank, const int64_t *size)
{
    value y = *x;
    if (rank > WEFT_RANK || weft__onnx_product(size, rank) != x->count) {
        weft__onnx_fail(r, "%lld elements in a shape of %lld", (long long)x->count,
                        (long long)(rank > WEFT_RANK ? -1 : weft__onnx_product(size, rank)));
        return (value){ 0 };
    }
    if (x->x)
        return weft__onnx_reals(r, weft_reshape(x->x, rank, size));
    y.rank = rank;
    for (int i = 0; i < rank; i++)
        y.size[i] = size[i];
    return y;
}

/* Returns the length of the blocks, one or more of the last axes, that a list keeps together. */
static int64_t block_of(const int64_t *from, int64_t n, int rank, const int64_t *size, int64_t all)
{
    int64_t block = 1;
    for (int axis = rank - 1; axis >= 0 && n; axis--) {
        int64_t larger = block * size[axis];
        if (!larger || all % larger)
            break;
        for (int64_t i = 0; i < n; i += larger)
            for (int64_t k = 0; k < larger; k += block)
                if (from[i] < 0 || from[i] % larger || from[i + k] != from[i] + k)
                    return block;
        block = larger;
    }
    return block;
}

value weft__onnx_select(run *r, const value *x, const int64_t *from, int rank, const int64_t *size)
{
    int64_t n = weft__onnx_product(size, rank);
    if (!from || !weft_ok(r->w))
        return (value){ 0 };
    if (!x->x) {
        value y = weft__onnx_integers(r, x->type, rank, size);
        for (int64_t i = 0; y.type && i < n; i++)
            y.number[i] = from[i] < 0 ? 0 : x->number[from[i]];
        return y;
    }
    int64_t block = block_of(from, n, rank, size, x->count), rows = n / block;
    int32_t *row = weft__onnx_take(r, rows, sizeof *row);
    if (x->count / block > INT32_MAX)
        weft__onnx_fail(r, "a tensor of more than 2^31 - 1 elements");
    for (int64_t i = 0; row && i < rows; i++)
        row[i] = from[i * block] < 0 ? -1 : (int32_t)(from[i * block] / block);
    if (!weft_ok(r->w))
        return (value){ 0 };
    weft_tensor *table = weft_reshape(x->x, 2, (int64_t[]){ x->count / block, block });
    weft_tensor *y = weft_index_select(table, weft_ints(r->w, row, 1, &rows));
    return weft__onnx_reals(r, weft_reshape(y, rank, size));
}

void weft__onnx_next(int64_t *index, int rank, const int64_t *size)
{
    for (int i = rank - 1; i >= 0 && ++index[i] == size[i]; i--)
        index[i] = 0;
}

static int64_t *strided(run *r, int64_t first, const int64_t *step, int rank, const int64_t *size, int64_t n)
{
    int64_t index[2 * WEFT_RANK] = { 0 }, *from = weft__onnx_take(r, n, sizeof *from);
    for (int64_t i = 0; from && i < n; i++) {
        from[i] = first;
        for (int k = 0; k < rank; k++)
            from[i] += index[k] * step[k];
        weft__onnx_next(index, rank, size);
    }
    return from;
}

value weft__onnx_strided(run *r, const value *x, int64_t first, const int64_t *step, int rank,
                         const int64_t *size)
{
    int64_t *from = strided(r, first, step, rank, size, weft__onnx_product(size, rank));
    return weft__onnx_select(r, x, from, rank, size);
}

void weft__onnx_strides(const value *x, int64_t *step)
{
    for (int i = x->rank - 1; i >= 0; i--)
        step[i] = i == x->rank - 1 ? 1 : step[i + 1] * x->size[i + 1];
}

value weft__onnx_permute(run *r, const value *x, const int *axes)
{
    int64_t all[WEFT_RANK] = { 0 }, step[WEFT_RANK] = { 0 }, size[WEFT_RANK] = { 0 };
    bool used[WEFT_RANK] = { false };
    weft__onnx_strides(x, all);
    for (int i = 0; i < x->rank; i++) {
        if (axes[i] < 0 || axes[i] >= x->rank || used[axes[i]]) {
            weft__onnx_fail(r, "perm is not a permutation of the axes");
            return (value){ 0 };
        }
        used[axes[i]] = true;
        step[i] = all[axes[i]];
        size[i] = x->size[axes[i]];
    }
    return x->x ? weft__onnx_reals(r, weft_permute(x->x, axes)) :
                  weft__onnx_strided(r, x, 0, step, x->rank, size);
}

value weft__onnx_slice(run *r, const value *x, int axis, int64_t from, int64_t to)
{
    int64_t step[WEFT_RANK], size[WEFT_RANK];
    if (x->x)
        return weft__onnx_reals(r, weft_slice(x->x, axis, from, to));
    weft__onnx_strides(x, step);
    memcpy(size, x->size, sizeof size);
    size[axis] = to - from;
    return weft__onnx_strided(r, x, from * step[axis], step, x->rank, size);
}

value weft__onnx_expand(run *r, const value *x, int rank, const int64_t *size)
{
    int64_t step[WEFT_RANK] = { 0 }, all[WEFT_RANK];
    weft__onnx_strides(x, all);
    bool same = rank == x->rank;
    for (int i = 1; i <= x->rank; i++) {
        step[rank - i] = x->size[x->rank - i] == 1 ? 0 : all[x->rank - i];
        same = same && size[rank - i] == x->size[x->rank - i];
    }
    return same ? *x : weft__onnx_strided(r, x, 0, step, rank, size);
}

/* ---- operators ---- */
static void reshape(run *r, const value *in, value *out)
{
    value to = weft__onnx_list(r, in, 1, "shape");
    int64_t size[WEFT_RANK], known = 1, open = -1;
    bool zero = weft__onnx_int(r, "allowzero", 0);
    if (!to.type || to.count > WEFT_RANK) {
        weft__onnx_fail(r, "a shape of %lld axes; expected 0 .. %d", (long long)to.count, WEFT_RANK);
        return;
    }
    for (int i = 0; i < to.count; i++) {
        size[i] = to.number[i] || zero ? to.number[i] : i < in->rank ? in->size[i] : 0;
        open = size[i] == -1 ? i : open;
        if (size[i] != -1 && (size[i] < 0 || __builtin_mul_overflow(known, size[i], &known)))
            weft__onnx_fail(r, "extent %lld", (long long)size[i]);
    }
    if (open >= 0)
        size[open] = known > 0 ? in->count / known : 0;
    if (weft_ok(r->w))
        *out = weft__onnx_reshape(r, in, (int)to.count, size);
}

static void flatten(run *r, const value *in, value *out)
{
    int64_t axis = weft__onnx_int(r, "axis", 1);
    axis += axis < 0 ? in->rank : 0;
    if (axis < 0 || axis > in->rank)
        weft__onnx_fail(r, "axis %lld of %d", (long long)axis, in->rank);
    else {
        int64_t rows = weft__onnx_product(in->size, (int)axis);
        *out = weft__onnx_reshape(
            r, in, 2, (int64_t[]){ rows, weft__onnx_product(in->size + axis, in->rank - (int)axis) });
    }
}

static void squeeze(run *r, const value *in, value *out)
{
    value axes = weft__onnx_list(r, in, 1, "axes");
    bool drop[WEFT_RANK];
    int64_t size[WEFT_RANK];
    int rank = 0;
    for (int i = 0; i < in->rank; i++)
        drop[i] = !axes.type && in->size[i] == 1;
    for (int64_t i = 0; i < axes.count; i++) {
        int64_t axis = axes.number[i];
        if (!weft__onnx_axis(r, &axis, in->rank))
            return;
        drop[axis] = true;
    }
    for (int i = 0; i < in->rank; i++)
        if (!drop[i])
            size[rank++] = in->size[i];
    *out = weft__onnx_reshape(r, in, rank, size);
}

static void unsqueeze(run *r, const value *in, value *out)
{
    value axes = weft__onnx_list(r, in, 1, "axes");
    int64_t size[WEFT_RANK] = { 0 };
    int rank = in->rank + (int)axes.count, from = 0;
    if (!axes.type || axes.count > WEFT_RANK || rank > WEFT_RANK) {
        weft__onnx_fail(r, "a result of more than %d axes", WEFT_RANK);
        return;
    }
    for (int64_t i = 0; i < axes.count; i++) {
        int64_t axis = axes.number[i];
        if (!weft__onnx_axis(r, &axis, rank))
            return;
        size[axis] = -1;
    }
    for (int i = 0; i < rank; i++)
        size[i] = size[i] < 0 || from == in->rank ? 1 : in->size[from++];
    *out = weft__onnx_reshape(r, in, rank, size);
}

static void transpose(run *r, const value *in, value *out)
{
    value perm = weft__onnx_list(r, in, -1, "perm");
    int axes[WEFT_RANK];
    if (perm.type && perm.count != in->rank)
        weft__onnx_fail(r, "perm has %lld axes; expected %d", (long long)perm.count, in->rank);
    for (int i = 0; weft_ok(r->w) && i < in->rank; i++)
        axes[i] = !perm.type                                        ? in->rank - 1 - i :
                  perm.number[i] >= 0 && perm.number[i] < WEFT_RANK ? (int)perm.number[i] :
                                                                      -1;
    if (weft_ok(r->w))
        *out = weft__onnx_permute(r, in, axes);
}

static void expand(run *r, const value *in, value *out)
{
    value to = weft__onnx_list(r, in, 1, NULL);
    int64_t size[WEFT_RANK];
    if (!to.type || to.count > WEFT_RANK)
        weft__onnx_fail(r, "a shape of more than %d axes", WEFT_RANK);
    for (int64_t i = 0; weft_ok(r->w) && i < to.count; i++)
        if (to.number[i] < 0)
            weft__onnx_fail(r, "extent %lld", (long long)to.number[i]);
    int rank =
        weft_ok(r->w) ? weft__onnx_broadcast(r, in->rank, in->size, (int)to.count, to.number, size) : -1;
    if (rank >= 0)
        *out = weft__onnx_expand(r, in, rank, size);
}

static void tile(run *r, const value *in, value *out)
{
    value times = weft__onnx_list(r, in, 1, NULL);
    int64_t size[2 * WEFT_RANK], step[2 * WEFT_RANK], all[WEFT_RANK], end[WEFT_RANK];
    if (!times.type || times.count != in->rank) {
        weft__onnx_fail(r, "%lld repeats for %d axes", (long long)times.count, in->rank);
        return;
    }
    weft__onnx_strides(in, all);
    for (int i = 0; i < in->rank; i++) {
        size[2 * i] = times.number[i];
        step[2 * i] = 0;
        size[2 * i + 1] = in->size[i];
        step[2 * i + 1] = all[i];
        if (times.number[i] < 0 || __builtin_mul_overflow(times.number[i], in->size[i], &end[i]))
            weft__onnx_fail(r, "%lld repeats", (long long)times.number[i]);
    }
    int64_t n = weft_ok(r->w) ? weft__onnx_product(end, in->rank) : -1;
    int64_t *from = strided(r, 0, step, 2 * in->rank, size, n);
    *out = weft__onnx_select(r, in, from, in->rank, end);
}

static void shape(run *r, const value *in, value *out)
{
    int64_t from = weft__onnx_int(r, "start", 0), to = weft__onnx_int(r, "end", in->rank);
    from += from < 0 ? in->rank : 0;
    to += to < 0 ? in->rank : 0;
    from = from < 0 ? 0 : from > in->rank ? in->rank : from;
    to = to < from ? from : to > in->rank ? in->rank : to;
    *out = weft__onnx_integers(r, WEFT__ONNX_INT64, 1, (int64_t[]){ to - from });
    for (int64_t i = from; out->type && i < to; i++)
        out->number[i - from] = in->size[i];
}

static void size_of(run *r, const value *in, value *out)
{
    *out = weft__onnx_integers(r, WEFT__ONNX_INT64, 0, NULL);
    if (out->type)
        *out->number = in->count;
}

const operation weft__onnx_shapes[] = {
    { "Reshape", reshape, 1, 0, NULL, NULL }, { "Flatten", flatten, 1, 0, NULL, NULL },
    { "Squeeze", squeeze, 1, 0, NULL, NULL }, { "Unsqueeze", unsqueeze, 1, 0, NULL, NULL },
    { "Transpose", transpose, 1, 0, NULL, NULL }, { "Expand", expand, 2, 0, NULL, NULL },
    { "Tile", tile, 2, 0, NULL, NULL }, { "Shape", shape, 1, 0, NULL, NULL },
    { "Size", size_of, 1, 0, NULL, NULL },
    { NULL, NULL, 0, 0, NULL, NULL },
};
