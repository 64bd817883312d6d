/* reduce.c - operators that reduce axes, softmax and normalisation. */
#include "io/onnx/model.h"

/* ---- sums and extremes ---- */
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
    int how = r->node->operation->option, kept = 0, rank = 0, n = 0;
    value axes = weft__onnx_list(r, in, 1, "axes");
    bool drop[WEFT_RANK], keep = weft__onnx_int(r, "keepdims", 1), pools = r->node->op[0] == 'G',
                          all = !axes.count && !weft__onnx_int(r, "noop_with_empty_axes", 0);
    int64_t size[WEFT_RANK], order[WEFT_RANK];
    if (!weft__onnx_marks(r, &axes, in->rank, drop))
        return;
    for (int i = 0; i < in->rank; i++) {
        drop[i] = pools ? i > 1 : all || drop[i];
        kept += !drop[i];
        if (!drop[i] || keep)
            size[rank++] = drop[i] ? 1 : in->size[i];
    }
    for (int last = 0; last < 2; last++)
        for (int i = 0; i < in->rank; i++)
            if (drop[i] == last)
                order[n++] = i;
    value x = weft__onnx_permute(r, in, order);
    x = weft__onnx_matrix(r, &x, kept);
    x = x.x || how > PROD ? weft__onnx_reals(r, reduced(weft__onnx_tensor_of(r, &x), how)) :
                            reduced_integers(r, &x, how);
    *out = weft__onnx_reshape(r, &x, rank, size);
}

/* ---- softmax and normalisation ---- */
static double epsilon(run *r) { return weft__onnx_float(r, "epsilon", 1e-5); }

/* Before opset 13 the axes from `axis` on are one. */
static void softmax(run *r, const value *in, value *out)
{
    bool old = r->node->version < 13;
    int64_t axis = weft__onnx_int(r, "axis", old ? 1 : -1);
    if (!weft__onnx_axis(r, &axis, in->rank))
        return;
    value x = old ? weft__onnx_matrix(r, in, (int)axis) : *in;
    weft_tensor *y = weft__onnx_tensor_of(r, &x);
    axis = old ? 1 : axis;
    y = r->node->operation->option ? weft_log_softmax(y, (int)axis, NULL) : weft_softmax(y, (int)axis, NULL);
    *out = weft__onnx_reals(r, weft_reshape(y, in->rank, in->size));
}

/* LayerNormalization, RMSNormalization: over the axes from `axis` on. */
static void layer_norm(run *r, const value *in, value *out)
{
    int64_t axis = weft__onnx_int(r, "axis", -1);
    double eps = epsilon(r) == 0 ? WEFT_ZERO : epsilon(r);
    if (!in->x || !in[1].x || !weft__onnx_axis(r, &axis, in->rank))
        return;
    value matrix = weft__onnx_matrix(r, in, (int)axis);
    int64_t width = matrix.size[1];
    weft_tensor *x = matrix.x, *gain = weft_reshape(in[1].x, 1, &width);
    if (r->node->operation->option) {
        x = weft_rms_norm(x, gain, eps);
    } else {
        weft_tensor *shift = in[2].x ? weft_reshape(in[2].x, 1, &width) : weft_zeros(r->w, 1, &width);
        x = weft_layer_norm(x, gain, shift, eps);
    }
    *out = weft__onnx_reals(r, weft_reshape(x, in->rank, in->size));
}

static void batch_norm(run *r, const value *in, value *out)
{
    int64_t size[WEFT_RANK] = { 1, 1, 1, 1, 1, 1 };
    weft_tensor *x = weft__onnx_tensor_of(r, in), *p[5];
    if (weft__onnx_int(r, "training_mode", 0))
        weft__onnx_fail(r, "training_mode; expected inference");
    int channel = in->rank > 1;
    size[channel] = in->size[channel];
    for (int i = 1; i < 5; i++)
        p[i] = weft_reshape(weft__onnx_tensor_of(r, &in[i]), in->rank, size);
    weft_tensor *factor = weft_mul(p[1], weft_rsqrt(weft_add(p[4], weft_scalar(r->w, epsilon(r)))));
    *out = weft__onnx_reals(r, weft_add(weft_mul(weft_sub(x, p[3]), factor), p[2]));
}

const operation weft__onnx_reductions[] = {
    { "ReduceSum", reduce, 1, .option = SUM }, { "ReduceMean", reduce, 1, .option = MEAN },
    { "GlobalAveragePool", reduce, 1, .option = MEAN }, { "ReduceMax", reduce, 1, .option = MAX },
    { "ReduceMin", reduce, 1, .option = MIN }, { "ReduceProd", reduce, 1, .option = PROD },
    { "ReduceL1", reduce, 1, .option = L1 }, { "ReduceL2", reduce, 1, .option = L2 },
    { "ReduceLogSumExp", reduce, 1, .option = LOG_SUM_EXP },
    { "ReduceSumSquare", reduce, 1, .option = SUM_SQUARE }, { "ReduceLogSum", reduce, 1, .option = LOG_SUM },
    { "Softmax", softmax, .inputs = 1 }, { "LogSoftmax", softmax, 1, .option = 1 },
    { "LayerNormalization", layer_norm, .inputs = 2 }, { "RMSNormalization", layer_norm, 2, .option = 1 },
    { "SimplifiedLayerNormalization", layer_norm, 2, .option = 1 },
    { "BatchNormalization", batch_norm, .inputs = 5 },
    { .name = NULL },
};
