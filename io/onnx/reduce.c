/* reduce.c - operators that reduce axes. */
#include <math.h>
#include <string.h>
#include "io/onnx/model.h"

enum { SUM, MEAN, MAX, MIN, PROD, L1, L2, LOG_SUM_EXP, SUM_SQUARE, LOG_SUM };

static weft_tensor *product(weft_tensor *x)
{
    int64_t n = weft_size(x, 1);
    weft_tensor *y = n ? weft_max(weft_slice(x, 1, 0, 1), 1) : weft_exp(weft_sum(x, 1));
    for (int64_t i = 1; i < n; i++)
        y = weft_mul(y, weft_max(weft_slice(x, 1, i, i + 1), 1));
    return y;
}

/* Reduces each row of a matrix. */
static weft_tensor *reduced(weft_tensor *x, int how)
{
    return how == MEAN        ? weft_mean(x, 1) :
           how == MAX         ? weft_max(x, 1) :
           how == MIN         ? weft_min(x, 1) :
           how == PROD        ? product(x) :
           how == L1          ? weft_vector_norm(x, 1, 1) :
           how == L2          ? weft_vector_norm(x, 1, 2) :
           how == LOG_SUM_EXP ? weft_logsumexp(x, 1, NULL) :
           how == SUM_SQUARE  ? weft_sum(weft_square(x), 1) :
           how == LOG_SUM     ? weft_log(weft_sum(x, 1)) :
                                weft_sum(x, 1);
}

static value reduced_integers(run *r, const value *x, int how)
{
    int64_t n = x->size[1];
    value y = weft__onnx_integers(r, x->type, 1, x->size);
    if (!n && how != SUM && how != PROD)
        weft__onnx_fail(r, "an empty axis");
    for (int64_t i = 0; y.type && weft_ok(r->w) && i < y.count; i++) {
        const int64_t *row = x->number + i * n;
        int64_t all = how == PROD ? 1 : how == SUM || how == MEAN ? 0 : *row;
        for (int64_t t = 0; t < n; t++)
            all = how == PROD ? (int64_t)((uint64_t)all * (uint64_t)row[t]) :
                  how == MAX  ? (row[t] > all ? row[t] : all) :
                  how == MIN  ? (row[t] < all ? row[t] : all) :
                                (int64_t)((uint64_t)all + (uint64_t)row[t]);
        y.number[i] = how == MEAN ? all / n : all;
    }
    return y;
}

/* Brings the axes to reduce to the end, where they are the columns of a matrix. */
static void reduce(run *r, const value *in, value *out)
{
    int how = r->node->operation->option, kept = 0, rank = 0;
    value axes = weft__onnx_list(r, in, 1, "axes");
    bool drop[WEFT_RANK], keep = weft__onnx_int(r, "keepdims", 1), pools = r->node->op[0] == 'G',
                          all = !axes.count && !weft__onnx_int(r, "noop_with_empty_axes", 0);
    int64_t size[WEFT_RANK], order[WEFT_RANK];
    if (!weft__onnx_marks(r, &axes, in->rank, drop))
        return;
    for (int i = 0; i < in->rank; i++) {
        drop[i] = pools ? i > 1 : all || drop[i];
        if (!drop[i] || keep)
            size[rank++] = drop[i] ? 1 : in->size[i];
        if (!drop[i])
            order[kept++] = i;
    }
    for (int i = 0, last = kept; i < in->rank; i++)
        if (drop[i])
            order[last++] = i;
    value x = weft__onnx_permute(r, in, order);
    x = weft__onnx_matrix(r, &x, kept);
    x = x.x || how > PROD ? weft__onnx_reals(r, reduced(weft__onnx_tensor_of(r, &x), how)) :
                            reduced_integers(r, &x, how);
    *out = weft__onnx_reshape(r, &x, rank, size);
}

const operation weft__onnx_reductions[] = {
    { "ReduceSum", reduce, 1, .option = SUM }, { "ReduceMean", reduce, 1, .option = MEAN },
    { "GlobalAveragePool", reduce, 1, .option = MEAN }, { "ReduceMax", reduce, 1, .option = MAX },
    { "ReduceMin", reduce, 1, .option = MIN }, { "ReduceProd", reduce, 1, .option = PROD },
    { "ReduceL1", reduce, 1, .option = L1 }, { "ReduceL2", reduce, 1, .option = L2 },
    { "ReduceLogSumExp", reduce, 1, .option = LOG_SUM_EXP },
    { "ReduceSumSquare", reduce, 1, .option = SUM_SQUARE }, { "ReduceLogSum", reduce, 1, .option = LOG_SUM },
    { .name = NULL },
};
