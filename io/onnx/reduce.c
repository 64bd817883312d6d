/* reduce.c - operators that reduce axes. */
#include <math.h>
#include <string.h>
#include "io/onnx/model.h"

enum { SUM, MEAN, MAX, MIN, PROD, L1, L2, LOG_SUM_EXP, SUM_SQUARE, LOG_SUM };

static weft_tensor *product(weft_tensor *x, int axis)
{
    int64_t n = weft_size(x, axis);
    weft_tensor *y = n ? weft_max(weft_slice(x, axis, 0, 1), axis) : weft_exp(weft_sum(x, axis));
    for (int64_t i = 1; i < n; i++)
        y = weft_mul(y, weft_max(weft_slice(x, axis, i, i + 1), axis));
    return y;
}

static weft_tensor *reduced(weft_tensor *x, int how, int axis)
{
    return how == MEAN        ? weft_mean(x, axis) :
           how == MAX         ? weft_max(x, axis) :
           how == MIN         ? weft_min(x, axis) :
           how == PROD        ? product(x, axis) :
           how == L1          ? weft_vector_norm(x, axis, 1) :
           how == L2          ? weft_vector_norm(x, axis, 2) :
           how == LOG_SUM_EXP ? weft_logsumexp(x, axis, NULL) :
                                weft_sum(x, axis);
}

/* Reduces integers along an axis, which keeps the extent 1. */
static value reduced_integers(run *r, const value *x, int how, int axis)
{
    int64_t size[WEFT_RANK], extent = x->size[axis],
                             inner = weft__onnx_product(x->size + axis + 1, x->rank - axis - 1);
    memcpy(size, x->size, sizeof size);
    size[axis] = 1;
    value y = weft__onnx_integers(r, x->type, x->rank, size);
    if (how > PROD || (!extent && how != SUM && how != PROD))
        weft__onnx_fail(r, "integers, or an empty axis of %lld; expected reals", (long long)extent);
    for (int64_t i = 0; y.type && weft_ok(r->w) && i < y.count; i++) {
        const int64_t *from = x->number + i / inner * extent * inner + i % inner;
        int64_t all = how == PROD ? 1 : how == SUM || how == MEAN ? 0 : *from;
        for (int64_t t = 0; t < extent; t++) {
            int64_t v = from[t * inner];
            all = how == PROD ? (int64_t)((uint64_t)all * (uint64_t)v) :
                  how == MAX  ? (v > all ? v : all) :
                  how == MIN  ? (v < all ? v : all) :
                                (int64_t)((uint64_t)all + (uint64_t)v);
        }
        y.number[i] = how == MEAN ? all / extent : all;
    }
    return y;
}

static value axis_of(run *r, const value *x, int how, int axis)
{
    int64_t size[WEFT_RANK];
    if (!x->x)
        return reduced_integers(r, x, how, axis);
    value y = weft__onnx_reals(r, reduced(x->x, how, axis));
    memcpy(size, x->size, sizeof size);
    size[axis] = 1;
    return y.type ? weft__onnx_reshape(r, &y, x->rank, size) : y;
}

static void reduce(run *r, const value *in, value *out)
{
    int how = r->node->operation->option, rank = 0;
    value axes = weft__onnx_list(r, in, 1, "axes"), y = *in;
    bool drop[WEFT_RANK], keep = weft__onnx_int(r, "keepdims", 1), all = !axes.count,
                          pools = !strcmp(r->node->op, "GlobalAveragePool");
    int64_t size[WEFT_RANK];
    for (int i = 0; i < in->rank; i++)
        drop[i] = pools ? i > 1 : all && !weft__onnx_int(r, "noop_with_empty_axes", 0);
    for (int64_t i = 0; i < axes.count; i++) {
        int64_t axis = axes.number[i];
        if (!weft__onnx_axis(r, &axis, in->rank))
            return;
        drop[axis] = true;
    }
    if (how == SUM_SQUARE && y.x)
        y = weft__onnx_reals(r, weft_square(y.x));
    for (int i = 0; i < in->rank && y.type; i++)
        if (drop[i])
            y = axis_of(r, &y, how, i);
    for (int i = 0; i < in->rank; i++)
        if (!drop[i] || keep)
            size[rank++] = y.size[i];
    if (how == LOG_SUM && y.x)
        y = weft__onnx_reals(r, weft_log(y.x));
    if (y.type)
        *out = rank == y.rank ? y : weft__onnx_reshape(r, &y, rank, size);
}

const operation weft__onnx_reductions[] = {
    { "ReduceSum", reduce, 1, SUM, NULL, NULL }, { "ReduceMean", reduce, 1, MEAN, NULL, NULL },
    { "GlobalAveragePool", reduce, 1, MEAN, NULL, NULL }, { "ReduceMax", reduce, 1, MAX, NULL, NULL },
    { "ReduceMin", reduce, 1, MIN, NULL, NULL }, { "ReduceProd", reduce, 1, PROD, NULL, NULL },
    { "ReduceL1", reduce, 1, L1, NULL, NULL }, { "ReduceL2", reduce, 1, L2, NULL, NULL },
    { "ReduceLogSumExp", reduce, 1, LOG_SUM_EXP, NULL, NULL },
    { "ReduceSumSquare", reduce, 1, SUM_SQUARE, NULL, NULL },
    { "ReduceLogSum", reduce, 1, LOG_SUM, NULL, NULL },
    { NULL, NULL, 0, 0, NULL, NULL },
};
